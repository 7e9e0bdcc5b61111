//! What changed between two runs: every event's time, calls and bytes, efficiencies and losses.
//!
//! [`Difference`] is the JSON document `sapwood.mpi-diff/1` (docs/schema/mpi-diff-1.json) and can
//! be shown as text. Events are matched by name, class and size class of their communicator; those
//! with the largest change of time come first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sapwood_report::quantity::{bytes, percent, time, whole};
use sapwood_report::record::{Event, Loss};
use sapwood_report::{Profile, ranks_text};
use serde::Serialize;

use crate::event_names::{full_name, visible};

/// Which form the document has.
const SCHEMA: &str = "sapwood.mpi-diff/1";
/// Events that are shown as text.
const EVENTS_SHOWN: usize = 40;

/// A number in both runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// In the first run; 0 where it has no such event.
    pub before: f64,
    /// In the second run.
    pub after: f64,
    /// The second less the first.
    pub change: f64,
    /// The change over the first; none where that is 0.
    pub relative: Option<f64>,
}

impl Change {
    fn of(before: f64, after: f64) -> Self {
        let change = after - before;
        Self { before, after, change, relative: (before != 0.0).then(|| change / before) }
    }
}

/// An event in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventChange {
    /// The name.
    pub name: String,
    /// Its function class.
    pub class: String,
    /// Size class of the communicator.
    pub communicator_size_class: Option<u8>,
    /// Ranks that have it.
    pub ranks: Change,
    /// Calls of all ranks.
    pub calls: Change,
    /// Inclusive time of all ranks.
    pub time_ns: Change,
    /// Mean time of a rank that has it.
    pub time_ns_per_rank: Change,
    /// Bytes of all ranks.
    pub bytes: Change,
}

/// One of the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// What was named on the command line.
    pub path: String,
    /// File name of the program.
    pub program: String,
    /// The command, word by word.
    pub command: Vec<String>,
    /// When it was started.
    pub started: String,
    /// Whether it had ended.
    pub is_final: bool,
    /// Ranks that are not in its statistics.
    pub missing: Vec<Loss>,
    /// Ranks that ended without a word.
    pub lost: String,
    /// Counts that found no room.
    pub dropped: u64,
}

/// Efficiencies in both runs; none where one has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct EfficiencyChange {
    /// Load balance times communication efficiency.
    pub parallel: Change,
    /// Mean computing time over the largest.
    pub load_balance: Change,
    /// Largest computing time over the wall time.
    pub communication: Change,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// `sapwood.mpi-diff/1`.
    pub schema: &'static str,
    /// The first run.
    pub before: Side,
    /// The second run.
    pub after: Side,
    /// Ranks of the world.
    pub world_size: Change,
    /// Time for which it was watched.
    pub elapsed_s: Change,
    /// Share of MPI in the ranks' time, mean of ranks; none where one run does not know it.
    pub mpi_ratio: Option<Change>,
    /// Efficiencies.
    pub efficiency: Option<EfficiencyChange>,
    /// Every event of either.
    pub events: Vec<EventChange>,
}

type Key<'a> = (&'a str, &'a str, Option<u8>);

impl Difference {
    /// What changed from one run, by its path and report, to another.
    #[must_use]
    pub fn between(before: (&str, &Profile), after: (&str, &Profile)) -> Self {
        let (one, two) = (before.1, after.1);
        let mut pairs: BTreeMap<Key<'_>, [Option<&Event>; 2]> = BTreeMap::new();
        for (side, profile) in [one, two].into_iter().enumerate() {
            for event in &profile.events {
                let key =
                    (event.name.as_str(), event.class.as_str(), event.communicator_size_class);
                pairs.entry(key).or_default()[side] = Some(event);
            }
        }
        let mut events: Vec<EventChange> = pairs.into_iter().map(event_change).collect();
        events.sort_by(|one, two| two.time_ns.change.abs().total_cmp(&one.time_ns.change.abs()));
        let times = one.time.as_ref().zip(two.time.as_ref());
        let efficiency =
            times.and_then(|(one, two)| one.efficiency.as_ref().zip(two.efficiency.as_ref()));
        Self {
            schema: SCHEMA,
            before: side(before),
            after: side(after),
            world_size: Change::of(one.world_size.into(), two.world_size.into()),
            elapsed_s: Change::of(one.elapsed_s, two.elapsed_s),
            mpi_ratio: times
                .map(|(one, two)| Change::of(one.mpi_ppm.mean / 1e6, two.mpi_ppm.mean / 1e6)),
            efficiency: efficiency.map(|(one, two)| EfficiencyChange {
                parallel: Change::of(one.parallel, two.parallel),
                load_balance: Change::of(one.load_balance, two.load_balance),
                communication: Change::of(one.communication, two.communication),
            }),
            events,
        }
    }

    /// The document.
    #[must_use]
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("numbers, text and lists of them are always JSON") + "\n"
    }

    /// The same for a reader.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, side) in [("before", &self.before), ("after", &self.after)] {
            let _ = writeln!(text, "{name:<7} {}", visible(&side_line(side)));
        }
        let seconds = |value: f64| format!("{value:.1} s");
        let mut lines = vec![line("ranks", &self.world_size, |value| format!("{value}"))];
        lines.push(line("watched", &self.elapsed_s, seconds));
        let ratio = |value: f64| percent(Some(value));
        lines.extend(self.mpi_ratio.map(|change| line("MPI", &change, ratio)));
        if let Some(efficiency) = &self.efficiency {
            lines.push(line("parallel efficiency", &efficiency.parallel, ratio));
            lines.push(line("load balance", &efficiency.load_balance, ratio));
            lines.push(line("communication efficiency", &efficiency.communication, ratio));
        }
        text.push('\n');
        text.extend(lines);
        let _ = writeln!(
            text,
            "\n{:>10} {:>9}  {:>10} {:>10}  {:>13} {:>13}  event (time of all ranks)",
            "change", "relative", "before", "after", "calls", "bytes"
        );
        for event in self.events.iter().take(EVENTS_SHOWN) {
            text.push_str(&event_line(event));
        }
        if self.world_size.change != 0.0 && self.has_other_sizes() {
            text.push_str(
                "the runs have different numbers of ranks: a function has one row for each size of \
                 communicator\n",
            );
        }
        if self.events.len() > EVENTS_SHOWN {
            let more = self.events.len() - EVENTS_SHOWN;
            let _ = writeln!(text, "and {more} more events; --json has all");
        }
        text
    }
}

impl Difference {
    /// Whether a function is in both runs, but on communicators of other sizes.
    fn has_other_sizes(&self) -> bool {
        let only = |is_before: bool| {
            let is_only = move |event: &&EventChange| match is_before {
                true => event.ranks.after == 0.0,
                false => event.ranks.before == 0.0,
            };
            self.events
                .iter()
                .filter(is_only)
                .filter(|event| event.communicator_size_class.is_some())
        };
        let names: BTreeSet<&str> = only(true).map(|event| event.name.as_str()).collect();
        only(false).any(|event| names.contains(event.name.as_str()))
    }
}

fn side((path, profile): (&str, &Profile)) -> Side {
    Side {
        path: path.to_owned(),
        program: profile.program.clone(),
        command: profile.command.clone(),
        started: profile.started.clone(),
        is_final: profile.is_final,
        missing: profile.missing.clone(),
        lost: profile.states.lost.clone(),
        dropped: profile.dropped,
    }
}

fn event_change((key, [before, after]): (Key<'_>, [Option<&Event>; 2])) -> EventChange {
    let change = |of: fn(&Event) -> f64| Change::of(before.map_or(0.0, of), after.map_or(0.0, of));
    EventChange {
        name: key.0.to_owned(),
        class: key.1.to_owned(),
        communicator_size_class: key.2,
        ranks: change(|event| event.ranks.into()),
        calls: change(|event| event.calls.sum as f64),
        time_ns: change(|event| event.time_ns.sum as f64),
        time_ns_per_rank: change(|event| event.time_ns.mean),
        bytes: change(|event| event.bytes.sum as f64),
    }
}

fn side_line(side: &Side) -> String {
    let mut line = format!("{}: {}", side.path, side.command.join(" "));
    if !side.started.is_empty() {
        let _ = write!(line, ", {}", side.started);
    }
    if !side.is_final {
        line.push_str(", not ended");
    }
    for loss in &side.missing {
        let _ = write!(line, "; {} missing ({})", ranks_text(&loss.ranks), loss.reason);
    }
    if !side.lost.is_empty() {
        let _ = write!(line, "; {} lost", ranks_text(&side.lost));
    }
    if side.dropped > 0 {
        let _ = write!(line, "; {} counts dropped", side.dropped);
    }
    line
}

fn line(name: &str, change: &Change, shown: impl Fn(f64) -> String) -> String {
    format!(
        "{name:<25} {:>10} -> {:<10} {}\n",
        shown(change.before),
        shown(change.after),
        relative(change)
    )
}

fn relative(change: &Change) -> String {
    match change.relative {
        Some(relative) => format!("{:+.1} %", 100.0 * relative),
        None if change.after == 0.0 => "-".into(),
        None => "new".into(),
    }
}

fn signed(value: f64, shown: impl Fn(f64) -> String) -> String {
    let sign = match value {
        _ if value < 0.0 => "-",
        _ if value > 0.0 => "+",
        _ => "",
    };
    format!("{sign}{}", shown(value.abs()))
}

fn event_line(event: &EventChange) -> String {
    let times = &event.time_ns;
    let name = visible(&full_name(&event.name, event.communicator_size_class));
    let count = |value: f64| whole(value as u128);
    format!(
        "{:>10} {:>9}  {:>10} {:>10}  {:>13} {:>13}  {name}\n",
        signed(times.change, time),
        relative(times),
        time(times.before),
        time(times.after),
        signed(event.calls.change, count),
        signed(event.bytes.change, bytes),
    )
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, EventKey, Function, RankProfile, Round, SizeClass};
    use sapwood_report::Report;
    use sapwood_schema::assert_fits;

    use super::*;

    fn profile(events: &[(&str, u64)]) -> Profile {
        let mut round = Round::new(1);
        let mut rank = RankProfile::new(0, 1);
        for &(name, time_ns) in events {
            let counters = Counters { count: 1, time_ns, bytes: 0 };
            rank.events.insert(EventKey::Region(name.to_owned()), counters);
        }
        round.add(&rank).expect("a new rank");
        Profile::of(&Report { round, ..Report::default() })
    }

    #[test]
    fn what_has_changed_is_as_its_schema_says() {
        let (before, after) = (profile(&[("solve", 10), ("gone", 5)]), profile(&[("solve", 40)]));
        let difference = Difference::between(("one", &before), ("two", &after));
        let json = serde_json::from_str(&difference.json()).expect("JSON");
        assert_fits("mpi-diff-1", &json);
        assert_eq!(difference.events[0].name, "solve", "the largest change first");
    }

    #[test]
    fn functions_on_communicators_of_another_size_are_noted() {
        let profile = |ranks: u32| {
            let mut round = Round::new(ranks);
            for rank in 0..ranks {
                let mut one = RankProfile::new(rank, ranks);
                let id = Function::named("MPI_Bcast").expect("a function").id;
                let code = u8::try_from(ranks.ilog2()).expect("few ranks");
                let size_class = SizeClass::from_code(code).expect("a class");
                let counters = Counters { count: 1, time_ns: 5, bytes: 0 };
                one.events.insert(EventKey::Function { id, size_class }, counters);
                round.add(&one).expect("a new rank");
            }
            Profile::of(&Report { round, ..Report::default() })
        };
        let text = |before, after| {
            Difference::between(("one", &profile(before)), ("two", &profile(after))).text()
        };
        assert!(text(2, 4).contains("a function has one row for each size of communicator"));
        assert!(!text(4, 4).contains("size of communicator"));
    }
}
