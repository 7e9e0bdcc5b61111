//! Which ranks waited for which, as a section of a record and of `profile.json`.
//!
//! It is there only where it was asked for. How waits are matched is `sapwood-trace`'s.

use std::cmp::Reverse;
use std::time::Duration;

use sapwood_packet::{Rank, nanoseconds};
use sapwood_profile::{EventKey, SizeClass};
use sapwood_trace::{Counter, EventWaits, Findings, OTHERS, Standing, culprits};
use serde::{Deserialize, Serialize};

use super::wait_calls::wait_calls;
use super::{Event, RoundRecord};
use crate::quantity;

/// Ranks in a record and in `profile.json`, those that others waited for most first.
const RANKS_MAX: usize = 1024;

/// How the ranks have waited in one event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventWait {
    /// Ranks of which it is known.
    pub ranks: u32,
    /// Calls of which it is known.
    pub calls: u64,
    /// Calls in which the clocks do not tell it.
    pub undecided: u64,
    /// Over all ranks.
    pub sum: u64,
    /// Mean over these ranks.
    pub mean: f64,
    /// The largest of a rank.
    pub max: u64,
    /// The lowest rank that has it.
    pub max_rank: Rank,
    /// By how much the sum may be off.
    pub error: u64,
}

/// How one rank has waited, and made others wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankWait {
    /// The rank.
    pub rank: Rank,
    /// How long it waited itself.
    pub wait_ns: u64,
    /// Collectives in which the others waited for it: it came last, or late as the root.
    pub times_last: u64,
    /// How long all others together have waited for it in these.
    pub made_wait_ns: u64,
    /// Calls that waited for a message that it had not begun to send.
    pub late_sends: u64,
    /// How long these waited.
    pub late_send_ns: u64,
    /// Sends, and exchanges such as MPI_Sendrecv, that waited for it to begin to receive.
    pub late_receives: u64,
    /// How long these waited.
    pub late_receive_ns: u64,
}

/// A rank that made the others wait clearly more than its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CulpritRank {
    /// The rank.
    pub rank: Rank,
    /// Its share of the calls in which a rank was waited for, from 0 to 1.
    pub share_of_times: f64,
    /// Its share of the time that was waited, from 0 to 1.
    pub share_of_time: f64,
    /// How long all others together have waited for it.
    pub made_wait_ns: u64,
}

/// Which ranks waited for which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Ranks that are to be named, those that others waited for most first.
    pub culprits: Vec<CulpritRank>,
    /// The ranks, those that others waited for most first.
    pub ranks: Vec<RankWait>,
    /// Ranks that are left out of these.
    pub ranks_left_out: u64,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// Of these, those of which the clocks do not tell which rank came last.
    pub undecided: u64,
    /// Of these, those in which processes called different functions, or gave different roots.
    pub mixed: u64,
    /// Collectives of which some processes are not known.
    pub incomplete: u64,
    /// Receives of which the send is not known.
    pub unmatched_receives: u64,
    /// Sends of which the receive is not known.
    pub unmatched_sends: u64,
    /// Receives of which it is not known which message they took.
    pub unsure: u64,
    /// Collectives whose number is not known.
    pub unordered: u64,
    /// Events that were read.
    pub events: u64,
    /// Events that were overwritten before they were read.
    pub dropped: u64,
    /// Events of threads without a ring.
    pub without_ring: u64,
    /// Calls on communicators for which there was no room.
    pub without_communicator: u64,
    /// Entries that found no room on their way.
    pub left_out: u64,
    /// Readings of a rank that ended early because the share of a processor was used up.
    pub throttled: u64,
    /// Readings of a rank that ended because the ranks did not come to where events are to be read.
    pub put_off: u64,
    /// Records that were read at another moment, before they would have been overwritten.
    pub overdue: u64,
    /// Ranks whose event file cannot be read any more.
    #[serde(default)]
    pub unreadable: u64,
    /// Events of communicators whose place another one had before they were read.
    #[serde(default)]
    pub former: u64,
    /// Records that their rank cannot have written.
    #[serde(default)]
    pub damaged: u64,
}

/// Something for lack of which collectives are not matched.
pub(crate) struct MatchingLoss {
    /// As what it is counted.
    pub(crate) counter: Counter,
    of: fn(&Waits) -> u64,
    things: &'static str,
    what: &'static str,
}

/// All of them, in the order in which they are told.
pub(crate) static MATCHING_LOSSES: [MatchingLoss; 6] = [
    MatchingLoss {
        counter: Counter::Dropped,
        of: |waits| waits.dropped,
        things: "calls",
        what: "overwritten unread",
    },
    MatchingLoss {
        counter: Counter::Unordered,
        of: |waits| waits.unordered,
        things: "collectives",
        what: "while ranks were not counted, or after one that failed",
    },
    MatchingLoss {
        counter: Counter::WithoutSpace,
        of: |waits| waits.without_communicator,
        things: "calls",
        what: "on communicators beyond the capacity of a table",
    },
    MatchingLoss {
        counter: Counter::WithoutRing,
        of: |waits| waits.without_ring,
        things: "calls",
        what: "of threads that have no ring",
    },
    MatchingLoss {
        counter: Counter::Unreadable,
        of: |waits| waits.unreadable,
        things: "ranks",
        what: "whose calls cannot be read any more",
    },
    MatchingLoss {
        counter: Counter::Damaged,
        of: |waits| waits.damaged,
        things: "damaged records",
        what: "of calls left out",
    },
];

impl MatchingLoss {
    /// For people; none if nothing was lost so.
    pub(crate) fn line(&self, count: u64) -> Option<String> {
        (count > 0)
            .then(|| format!("{} {}", quantity::counted(count.into(), self.things), self.what))
    }

    /// The same of what a section has.
    pub(crate) fn line_of(&self, waits: &Waits) -> Option<String> {
        self.line((self.of)(waits))
    }
}

impl Waits {
    /// The section of what was found in a time.
    #[must_use]
    pub fn of(findings: &Findings, world_size: u32, elapsed: Duration) -> Self {
        let elapsed_ns = nanoseconds(elapsed);
        let culprit = |one: sapwood_trace::Culprit| CulpritRank {
            rank: one.rank,
            share_of_times: one.share_of_times,
            share_of_time: one.share_of_time,
            made_wait_ns: one.made.total_ns(),
        };
        let (ranks, ranks_left_out) = ranks(findings);
        Self {
            culprits: culprits(findings, world_size, elapsed_ns).into_iter().map(culprit).collect(),
            ranks,
            ranks_left_out,
            collectives: findings.collectives,
            undecided: findings.undecided,
            mixed: findings.mixed,
            incomplete: findings.incomplete,
            unmatched_receives: findings.unmatched_receives,
            unmatched_sends: findings.unmatched_sends,
            unsure: findings.counter(Counter::Unsure),
            unordered: findings.counter(Counter::Unordered),
            events: findings.counter(Counter::Events),
            dropped: findings.counter(Counter::Dropped),
            without_ring: findings.counter(Counter::WithoutRing),
            without_communicator: findings.counter(Counter::WithoutSpace),
            left_out: findings.counter(Counter::LeftOut),
            throttled: findings.counter(Counter::Throttled),
            put_off: findings.counter(Counter::PutOff),
            overdue: findings.counter(Counter::Overdue),
            unreadable: findings.counter(Counter::Unreadable),
            former: findings.counter(Counter::Former),
            damaged: findings.counter(Counter::Damaged),
        }
    }

    /// One line: the ranks for which the others wait.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    pub fn line(&self) -> String {
        let told = |one: &CulpritRank| {
            format!(
                "rank {} made the others wait {} in all, {:.0} % of all waits, in {:.0} % of the calls that waited",
                one.rank,
                quantity::time(one.made_wait_ns as f64),
                one.share_of_time * 100.0,
                one.share_of_times * 100.0
            )
        };
        if !self.culprits.is_empty() {
            let named = self.culprits.iter().map(told).collect::<Vec<_>>().join("; ");
            return named + &self.unknown_waits();
        }
        let waited: u64 = self.ranks.iter().map(|one| one.wait_ns).sum();
        if self.collectives == 0 {
            return self.without_collectives(waited);
        }
        let known = quantity::counted(self.collectives.into(), "collectives");
        let waited = quantity::time(waited as f64);
        let unknown = self.unknown_waits();
        format!("no rank stands out: {waited} waited by all ranks, {known} matched{unknown}")
    }

    /// The same where no collective was matched, and why not.
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn without_collectives(&self, waited_ns: u64) -> String {
        let losses = MATCHING_LOSSES.iter().filter_map(|loss| loss.line_of(self));
        let mut reasons: Vec<String> = losses.collect();
        if self.events == 0 {
            reasons.insert(0, "no call was recorded".to_owned());
        }
        let waited = match waited_ns {
            0 => String::new(),
            waited_ns => format!(
                "no rank stands out: {} waited by all ranks for messages, and ",
                quantity::time(waited_ns as f64)
            ),
        };
        let why = if reasons.is_empty() { "" } else { ": " };
        let reasons = reasons.join("; ");
        format!("{waited}no collective was matched{why}{reasons}{}", self.unknown_waits())
    }

    /// Of how much it is not known which rank was waited for: it may be another rank than the one
    /// that is named.
    fn unknown_waits(&self) -> String {
        let receives = self.unsure + self.unmatched_receives;
        match (receives, self.incomplete) {
            (0, 0) => String::new(),
            (receives, 0) => {
                format!("; {} could not be matched", quantity::counted(receives.into(), "receives"))
            }
            (receives, incomplete) => format!(
                "; {} and {} could not be matched",
                quantity::counted(receives.into(), "receives"),
                quantity::counted(incomplete.into(), "collectives")
            ),
        }
    }
}

impl EventWait {
    #[allow(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    pub(crate) fn of(one: &EventWaits) -> Self {
        Self {
            ranks: one.ranks,
            calls: one.sum.calls,
            undecided: one.sum.undecided,
            sum: one.sum.wait_ns,
            mean: one.sum.wait_ns as f64 / f64::from(one.ranks.max(1)),
            max: one.max_ns,
            max_rank: one.max_rank,
            error: one.sum.error_ns,
        }
    }
}

impl RoundRecord {
    /// Adds which ranks waited for which.
    ///
    /// What is known of where ranks stand has the names of communicators.
    pub fn add_waits(
        &mut self,
        findings: &Findings,
        standing: Option<&Standing>,
        elapsed: Duration,
    ) {
        fill(&mut self.events, findings);
        self.wait_calls = wait_calls(findings, standing);
        self.waits = Some(Waits::of(findings, self.world_size, elapsed));
    }
}

/// Gives events their waits.
pub(crate) fn fill(events: &mut [Event], findings: &Findings) {
    for waits in findings.events() {
        let Some(key) = EventKey::from_word(waits.event) else { continue };
        let (name, class) = (key.name(), key.size_class());
        let class = (class != SizeClass::NONE).then(|| class.code());
        let is_it = |one: &&mut Event| one.communicator_size_class == class && one.name == name;
        if let Some(event) = events.iter_mut().find(is_it) {
            event.wait_ns = Some(EventWait::of(&waits));
        }
    }
}

/// The ranks that waited or that others waited for, and how many more there are.
fn ranks(findings: &Findings) -> (Vec<RankWait>, u64) {
    let mut ranks: Vec<RankWait> = Vec::new();
    let waited = findings.waited.keys().map(|(rank, _)| *rank);
    let mut known: Vec<Rank> = waited.chain(findings.made.keys().copied()).collect();
    known.sort_unstable();
    known.dedup();
    for rank in known.into_iter().filter(|&rank| rank != OTHERS) {
        let made = findings.made.get(&rank).copied().unwrap_or_default();
        ranks.push(RankWait {
            rank,
            wait_ns: findings.of_rank(rank).wait_ns,
            times_last: made.last,
            made_wait_ns: made.collective_ns,
            late_sends: made.sends,
            late_send_ns: made.send_ns,
            late_receives: made.receives,
            late_receive_ns: made.receive_ns,
        });
    }
    let made = |one: &RankWait| one.made_wait_ns + one.late_send_ns + one.late_receive_ns;
    ranks.sort_by_key(|one| (Reverse(made(one)), one.rank));
    let left_out = ranks.len().saturating_sub(RANKS_MAX) as u64;
    ranks.truncate(RANKS_MAX);
    (ranks, left_out)
}

#[cfg(test)]
pub(crate) mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::{Made, Waited};

    use super::*;

    /// Of four ranks, of which one is late.
    pub(crate) fn findings() -> Findings {
        let allreduce = Function::named("MPI_Allreduce").expect("every MPI has it").id << 8 | 2;
        let mut found = Findings { collectives: 100, ..Findings::default() };
        for (rank, wait_ns) in [(0, 3_000_000), (1, 5_000_000), (2, 0), (3, 4_000_000)] {
            let waited = Waited { calls: 100, wait_ns, ..Waited::default() };
            found.waited.insert((rank, allreduce), waited);
        }
        let made = Made { last: 97, collective_ns: 12_000_000, ..Made::default() };
        found.made.insert(2, made);
        found
    }

    #[test]
    fn no_rank_is_named_where_little_is_waited() {
        let waits = Waits::of(&findings(), 4, Duration::from_secs(100));
        assert_eq!(waits.culprits, []);
        assert!(waits.line().starts_with("no rank stands out: 12.0 ms"), "{}", waits.line());
    }

    #[test]
    fn where_no_collective_was_matched_that_is_said_with_the_reasons() {
        let told = |waits: Waits| waits.line();
        assert_eq!(told(Waits::default()), "no collective was matched: no call was recorded");
        let some = Waits { events: 90, dropped: 20, unordered: 7, ..Waits::default() };
        assert_eq!(
            told(some),
            "no collective was matched: 20 calls overwritten unread; 7 collectives while ranks were \
             not counted, or after one that failed"
        );
        let rank = RankWait { wait_ns: 12_000_000, ..RankWait::default() };
        let line = told(Waits { events: 9, ranks: vec![rank], ..Waits::default() });
        let waited = "no rank stands out: 12.0 ms waited by all ranks for messages, and no ";
        assert_eq!(line, waited.to_owned() + "collective was matched");
    }

    #[test]
    fn ranks_are_in_order_of_what_they_made_others_wait() {
        let (ranks, left_out) = ranks(&findings());
        let order: Vec<Rank> = ranks.iter().map(|one| one.rank).collect();
        assert_eq!((order, left_out), (vec![2, 0, 1, 3], 0));
        assert_eq!((ranks[0].wait_ns, ranks[2].wait_ns), (0, 5_000_000));
    }
}
