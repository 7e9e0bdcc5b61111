//! What the application receives: packets at a back-end, answers at the front-end.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Packet, RankSet, StreamId, Wave};
use sapwood_wire::Cause;

/// Back-ends that an answer lacks, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Who.
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

    /// The same in as few entries as there are causes, for display: reasons that differ only in a
    /// rank or a host are told once, by the cause and the first of them.
    #[must_use]
    pub fn fold(missing: &[Self]) -> Vec<Self> {
        let mut folded: Vec<(Self, bool)> = Vec::new();
        for part in missing {
            let is_same = |other: &Self| match part.cause {
                Cause::Other => other.reason == part.reason,
                cause => other.cause == cause,
            };
            match folded.iter_mut().find(|(other, _)| is_same(other)) {
                Some((other, differs)) => {
                    other.ranks.union_with(part.ranks.as_ref());
                    *differs |= other.reason != part.reason;
                }
                None => folded.push((part.clone(), false)),
            }
        }
        let shorten = |(part, differs): (Self, bool)| match differs {
            true => {
                let reason = alloc::format!("{}; the first: {}", part.cause, part.reason);
                Self { reason, ..part }
            }
            false => part,
        };
        folded.into_iter().map(shorten).collect()
    }
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

/// What came of one wave: a value, who is in it, who is not, and why not.
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
        let killed = "1,3-4: killed by signal 9; the first: back-end 3 is gone: connection closed; \
                      killed by signal 9";
        assert_eq!(lines, [killed, "5-6: no answer within 100 ms", "9: a", "10: b"]);
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
