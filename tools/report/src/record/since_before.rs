//! What is new in the events of a round since the round before.
//!
//! Counters of a record are cumulative. A reader of a file that was thinned, or that begins in the
//! middle, has no record to subtract: the difference stands in the record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Event, RoundRecord};

/// What ranks have added to an event since the round before, all together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventInterval {
    /// The name of the event.
    pub name: String,
    /// Its function class; a region may have the name of a function.
    pub class: String,
    /// Size class of its communicator.
    pub communicator_size_class: Option<u8>,
    /// Calls that returned.
    pub calls: u128,
    /// Their inclusive time.
    pub time_ns: u128,
    /// Their bytes.
    pub bytes: u128,
}

/// The sums of a record, for the one that follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSums {
    covered: String,
    has_left_out: bool,
    sums: BTreeMap<EventName, EventTotals>,
}

/// By what events of a record are distinguished.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EventName {
    name: String,
    class: String,
    size_class: Option<u8>,
}

/// The numbers of one event, over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTotals {
    /// Calls that returned.
    pub calls: u128,
    /// Their inclusive time.
    pub time_ns: u128,
    /// Their bytes.
    pub bytes: u128,
}

impl EventSums {
    /// Those of a record.
    #[must_use]
    pub fn of(record: &RoundRecord) -> Self {
        let sums = record.events.iter().map(|event| {
            let (name, class) = (event.name.clone(), event.class.clone());
            let key = EventName { name, class, size_class: event.communicator_size_class };
            let (calls, time_ns, bytes) = (event.calls.sum, event.time_ns.sum, event.bytes.sum);
            (key, EventTotals { calls, time_ns, bytes })
        });
        Self {
            covered: record.covered.clone(),
            has_left_out: record.has_left_out,
            sums: sums.collect(),
        }
    }

    /// What is new in these, of events that have something new; none where the two are not of the
    /// same ranks, or where events were left out, so that a difference would not mean anything.
    fn since(&self, before: &Self) -> Option<Vec<EventInterval>> {
        if self.covered != before.covered || self.has_left_out || before.has_left_out {
            return None;
        }
        let interval = |(key, now): (&EventName, &EventTotals)| {
            let old = before.sums.get(key).copied().unwrap_or_default();
            EventInterval {
                name: key.name.clone(),
                class: key.class.clone(),
                communicator_size_class: key.size_class,
                calls: now.calls.saturating_sub(old.calls),
                time_ns: now.time_ns.saturating_sub(old.time_ns),
                bytes: now.bytes.saturating_sub(old.bytes),
            }
        };
        let is_new = |one: &EventInterval| (one.calls, one.time_ns, one.bytes) != (0, 0, 0);
        Some(self.sums.iter().map(interval).filter(is_new).collect())
    }
}

impl EventInterval {
    /// By what the intervals of a record are distinguished, and in whose order they are.
    fn key(&self) -> (&str, &str, Option<u8>) {
        (&self.name, &self.class, self.communicator_size_class)
    }
}

impl RoundRecord {
    /// What is new in one of its events: nothing for an event without anything new, none where
    /// intervals are not known.
    #[must_use]
    pub fn interval_of(&self, event: &Event) -> Option<EventTotals> {
        let wanted = (&event.name[..], &event.class[..], event.communicator_size_class);
        let intervals = self.event_intervals.as_ref()?;
        let Ok(at) = intervals.binary_search_by(|one| one.key().cmp(&wanted)) else {
            return Some(EventTotals::default());
        };
        let EventInterval { calls, time_ns, bytes, .. } = intervals[at];
        Some(EventTotals { calls, time_ns, bytes })
    }

    /// Adds what is new in its events since the round before, of which these are the sums, and
    /// gives its own for the one that follows.
    pub fn note_event_intervals(&mut self, before: Option<&EventSums>) -> EventSums {
        let sums = EventSums::of(self);
        self.event_intervals = before.and_then(|before| sums.since(before));
        sums
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_profile::{Counters, EventKey, RankProfile, Round};

    use super::*;

    fn record(ranks: u32, events: &[(&str, u64)]) -> RoundRecord {
        let mut round = Round::new(2);
        for rank in 0..ranks {
            let mut profile = RankProfile::new(rank, 2);
            for &(name, count) in events {
                let counters = Counters { count, time_ns: 10 * count, bytes: 0 };
                profile.events.insert(EventKey::Region(name.into()), counters);
            }
            round.add(&profile).expect("a new rank");
        }
        RoundRecord::new(0, Duration::ZERO, &round, &[])
    }

    #[test]
    fn a_record_has_what_is_new_in_its_events_since_the_one_before() {
        let mut first = record(2, &[("solve", 5), ("read", 1)]);
        let sums = first.note_event_intervals(None);
        assert_eq!(first.event_intervals, None);
        let mut second = record(2, &[("solve", 8), ("read", 1), ("write", 2)]);
        let sums = second.note_event_intervals(Some(&sums));
        let one = |name: &str, calls| EventInterval {
            name: name.to_owned(),
            class: "region".to_owned(),
            communicator_size_class: None,
            calls,
            time_ns: 10 * calls,
            bytes: 0,
        };
        assert_eq!(second.event_intervals, Some(vec![one("solve", 6), one("write", 4)]));
        let calls = |record: &RoundRecord| -> BTreeMap<String, Option<u128>> {
            let of = |event: &Event| record.interval_of(event).map(|totals| totals.calls);
            record.events.iter().map(|event| (event.name.clone(), of(event))).collect()
        };
        let told = |name: &str, calls| (name.to_owned(), calls);
        let expected = [told("read", Some(0)), told("solve", Some(6)), told("write", Some(4))];
        assert_eq!(calls(&second), BTreeMap::from(expected));
        assert_eq!(calls(&first), BTreeMap::from([told("read", None), told("solve", None)]));
        assert_eq!(RoundRecord::parse(&second.line()), Ok(second));
        let mut same = record(2, &[("solve", 8), ("read", 1), ("write", 2)]);
        same.note_event_intervals(Some(&sums));
        assert_eq!(same.event_intervals, Some(Vec::new()));
    }

    #[test]
    fn rounds_of_other_ranks_are_not_compared() {
        let sums = EventSums::of(&record(1, &[("solve", 5)]));
        let mut all = record(2, &[("solve", 5)]);
        all.note_event_intervals(Some(&sums));
        assert_eq!(all.event_intervals, None);
    }
}
