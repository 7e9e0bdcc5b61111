//! What the application receives: packets at a back-end, answers at the front-end.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;

use sapwood_packet::{Packet, RankSet, StreamId, Wave};
use sapwood_wire::Cause;

/// Back-ends that an answer lacks, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// The back-ends.
    pub ranks: RankSet,
    /// Why, for programs.
    pub cause: Cause,
    /// Why, in one line for people.
    pub reason: String,
}

impl Missing {
    /// These back-ends, for this reason.
    #[must_use]
    pub fn new(ranks: RankSet, cause: Cause, reason: impl Into<String>) -> Self {
        Self { ranks, cause, reason: reason.into() }
    }

    /// The same in as few entries as there are causes, for display: reasons that differ only in the
    /// rank of a back-end are told once without it, those that differ otherwise by the cause and
    /// the first of them.
    #[must_use]
    pub fn fold(missing: &[Self]) -> Vec<Self> {
        let mut folded: Vec<Alike<'_>> = Vec::new();
        let mut places: BTreeMap<(Cause, &str), usize> = BTreeMap::new();
        for part in missing {
            let words = without_rank(&part.reason);
            // Only their words tell apart the reasons of which programs know no more.
            let told_apart = if part.cause == Cause::Other { words } else { "" };
            match places.entry((part.cause, told_apart)) {
                Entry::Occupied(place) => folded[*place.get()].add(part, words),
                Entry::Vacant(place) => {
                    place.insert(folded.len());
                    folded.push(Alike { all: part.clone(), words, common: Common::Reason });
                }
            }
        }
        folded.into_iter().map(Alike::told).collect()
    }
}

/// Entries that are reported as one.
struct Alike<'a> {
    all: Missing,
    /// The words of the first, without its rank.
    words: &'a str,
    common: Common,
}

/// What the reasons of several entries have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Common {
    /// The cause.
    Cause,
    /// All but the rank of a back-end.
    Words,
    /// All of it.
    Reason,
}

impl Alike<'_> {
    fn add(&mut self, part: &Missing, words: &str) {
        self.all.ranks.union_with(part.ranks.as_ref());
        let common = if part.reason == self.all.reason {
            Common::Reason
        } else if words == self.words {
            Common::Words
        } else {
            Common::Cause
        };
        self.common = self.common.min(common);
    }

    fn told(self) -> Missing {
        let reason = match self.common {
            Common::Reason => return self.all,
            Common::Words => String::from(self.words),
            Common::Cause => alloc::format!("{}; the first: {}", self.all.cause, self.words),
        };
        Missing { reason, ..self.all }
    }
}

/// A reason without the rank of the back-end that it begins with, as [`Reason::gone`] and
/// [`Reason::left`] give it.
fn without_rank(reason: &str) -> &str {
    let Some((rank, rest)) = reason.strip_prefix("back-end ").and_then(|rest| rest.split_once(' '))
    else {
        return reason;
    };
    if rank.is_empty() || !rank.bytes().all(|byte| byte.is_ascii_digit()) {
        return reason;
    }
    rest.strip_prefix("is gone: ").unwrap_or(rest)
}

/// Why something is missing: for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) cause: Cause,
    pub(crate) words: String,
}

impl Reason {
    pub(crate) fn new(cause: Cause, words: impl Into<String>) -> Self {
        Self { cause, words: words.into() }
    }

    /// The link to a process was lost.
    pub(crate) fn gone(cause: Cause, process: impl Display, why: impl Display) -> Self {
        Self::new(cause, alloc::format!("{process} is gone: {why}"))
    }

    /// A process has left by its own will.
    pub(crate) fn left(process: impl Display) -> Self {
        Self::new(Cause::Left, alloc::format!("{process} has left"))
    }

    /// The same of a process that is known to have ended in this way.
    pub(crate) fn ended(&self, cause: Cause) -> Self {
        match (self.cause, cause) {
            (Cause::Died | Cause::Silent, Cause::Exited { .. } | Cause::Killed { .. }) => {
                Self::new(cause, alloc::format!("{}; {cause}", self.words))
            }
            _ => self.clone(),
        }
    }

    /// These back-ends are missing because of it.
    pub(crate) fn of(self, ranks: RankSet) -> Missing {
        Missing { ranks, cause: self.cause, reason: self.words }
    }
}

/// What came of one wave: a value, its contributors, the missing members, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The stream.
    pub stream: StreamId,
    /// The wave.
    pub wave: Wave,
    /// The value; none when a filter failed or no back-end was left.
    pub packet: Option<Packet>,
    /// The back-ends that the value stands for, or whose packets the filters made nothing of.
    pub contributors: RankSet,
    /// The members of the stream that the wave lacks. Where no filter joins the packets of a wave,
    /// it comes with the wave's last one. On streams that do not wait, only what a filter
    /// refused.
    pub missing: Vec<Missing>,
    /// Whether the wave had been answered before this part of it came.
    pub is_late: bool,
}

impl Answer {
    /// Whether every member of the stream is in it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.packet.is_some()
    }
}

/// One thing for the application. Its bytes count against the stream's window until
/// [`crate::Application::consumed`] is told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// An answer, at the front-end.
    Answer(Answer),
    /// A packet from the front-end, at a back-end.
    Packet(Packet),
}

impl Delivery {
    /// The stream that it came on.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Answer(answer) => answer.stream,
            Self::Packet(packet) => packet.header.stream,
        }
    }

    /// How many bytes of the stream's window it takes up.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let values = match self {
            Self::Answer(answer) => answer.packet.as_ref().map_or(0, |packet| packet.body().len()),
            Self::Packet(packet) => packet.body().len(),
        };
        u32::try_from(values).unwrap_or(u32::MAX).saturating_add(COST_BYTES)
    }
}

/// What a delivery costs besides its values, in bytes.
const COST_BYTES: u32 = 64;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn missing_back_ends_fold_by_cause_whatever_their_reasons_name() {
        let killed = |rank: u32| {
            let reason = format!("back-end {rank} is gone: connection closed; killed by signal 9");
            Missing::new(RankSet::range(rank, rank), Cause::Killed { signal: 9 }, reason)
        };
        let late = Missing::new(RankSet::range(5, 6), Cause::Late, "no answer within 100 ms");
        let other =
            |rank: u32, words: &str| Missing::new(RankSet::range(rank, rank), Cause::Other, words);
        let all = [killed(3), late.clone(), killed(4), other(9, "a"), other(10, "b"), killed(1)];
        let lines: Vec<String> = Missing::fold(&all)
            .iter()
            .map(|part| format!("{}: {}", part.ranks, part.reason))
            .collect();
        let killed = "1,3-4: connection closed; killed by signal 9";
        assert_eq!(lines, [killed, "5-6: no answer within 100 ms", "9: a", "10: b"]);
    }

    #[test]
    fn what_differs_otherwise_is_told_by_its_cause_and_the_first() {
        let lost = |rank: u32, why: &str| {
            let reason = Reason::gone(Cause::Died, format!("back-end {rank}"), why);
            reason.of(RankSet::range(rank, rank))
        };
        let all = [lost(2, "connection closed"), lost(3, "connection reset"), lost(1, "no route")];
        let folded = Missing::fold(&all);
        let [one] = folded.as_slice() else { panic!("{folded:?}") };
        let (ranks, reason) = (alloc::string::ToString::to_string(&one.ranks), &one.reason);
        assert_eq!(format!("{ranks}: {reason}"), "1-3: is gone; the first: connection closed");
        assert_eq!(Missing::fold(&all[..1]), all[..1], "alone it keeps its words");
    }

    #[test]
    fn only_the_own_rank_is_left_out() {
        for whole in ["back-end", "back-end x is gone: a", "rank 3 is gone: a", "back-end 3"] {
            assert_eq!(without_rank(whole), whole);
        }
        let twice = Reason::gone(Cause::Died, "back-end 3", "back-end 4");
        assert_eq!(without_rank(&twice.words), "back-end 4");
        assert_eq!(without_rank(&Reason::left("back-end 3").words), "has left");
    }

    #[test]
    fn what_is_known_of_an_end_is_told_beside_the_link() {
        let closed = Reason::new(Cause::Died, "back-end 3 is gone: connection closed");
        let killed = closed.ended(Cause::Killed { signal: 9 });
        assert_eq!(killed.cause, Cause::Killed { signal: 9 });
        assert_eq!(killed.words, "back-end 3 is gone: connection closed; killed by signal 9");
        let left = Reason::new(Cause::Left, "back-end 3 has left");
        assert_eq!(left.ended(Cause::Exited { status: 0 }), left);
    }
}
