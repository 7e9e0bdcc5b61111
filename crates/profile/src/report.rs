//! What ranks report beside their counts: which settings they obey, and how they ended.
//!
//! It travels as the values of one packet; sets of ranks are numbers of ranges and then the ranges:
//!
//! ```text
//!  0  %ud    version of this format, 5
//!  1  %ud    1 if a rank has asked for advice
//!  2  %uld   marks of iterations that are in no round
//!  3  %aud   numbers of changes of settings, increasing
//!  4  %aud   the ranks that obey each: numbers of ranges
//!  5  %aud   these
//!  6  %auc   K causes of ends: 1 exit code, 2 MPI_Abort, 3 signal, 4 not known
//!  7  %aud   K codes
//!  8  %auc   K times 1 if the ranks had returned from MPI_Finalize
//!  9  %as    K texts: what the ranks were inside
//! 10  %aud   K sets of ranks: numbers of ranges
//! 11  %aud   these
//! 12  %auld  K times since the first of them ended, in nanoseconds before the question
//! 13  %aud   K lowest ranks with this
//! 14  %as    the file names of the programs that the ranks run
//! 15  %aud   K numbers of the leaves that have noticed the first of them
//! 16  %auld  K times since the first of them that another leaf has noticed; 0 none
//! 17  %auc   the cause of the end of a rank of the tool; none if none has ended
//! 18  %aud   its code
//! 19  %auld  the time since it ended, in nanoseconds before the question
//! 20  %aud   its number in the job; none if that is not known
//! 21  %aud   the ranks that take over no more settings: the number of ranges
//! 22  %aud   these
//! ```

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sapwood_filter::{Emitter, Filter, FilterError, WaveRef};
use sapwood_packet::{Directive, IndexedValues, Rank, RankSet, Values, ValuesRef};

use crate::ProfileError;
use crate::activity_codec::{push_sets, sets, texts};
use crate::codec::{BYTES, LONG, LONGS, NAMES, WORD, WORDS, check_format, column};

/// The name of the filter that merges these reports.
pub const RANK_REPORTS: &str = "rank-reports";
/// Kinds of ends that a report tells apart, at most; others are told without what the ranks were
/// inside.
pub const END_KINDS_MAX: usize = 256;
/// Names of programs in a report, at most; of more the first in order.
pub const PROGRAMS_MAX: usize = 8;

const VERSION: u32 = 5;
const LAYOUT: [Directive; 23] = [
    WORD, WORD, LONG, WORDS, WORDS, WORDS, BYTES, WORDS, BYTES, NAMES, WORDS, WORDS, LONGS, WORDS,
    NAMES, WORDS, LONGS, BYTES, WORDS, LONGS, WORDS, WORDS, WORDS,
];
const WRONG: ProfileError = ProfileError::Contradiction { what: "ends of ranks" };

/// Why a rank's process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// `exit` or the return of `main`, with this code.
    Code(i32),
    /// `MPI_Abort` with this error code.
    Abort(i32),
    /// This signal.
    Signal(i32),
    /// It ended, and the system did not say how.
    Unknown,
}

impl Cause {
    const fn codes(self) -> (u8, i32) {
        match self {
            Self::Code(code) => (1, code),
            Self::Abort(code) => (2, code),
            Self::Signal(number) => (3, number),
            Self::Unknown => (4, 0),
        }
    }

    const fn of(kind: u8, code: i32) -> Option<Self> {
        match kind {
            1 => Some(Self::Code(code)),
            2 => Some(Self::Abort(code)),
            3 => Some(Self::Signal(code)),
            4 => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Abort(code) => write!(f, "MPI_Abort({code})"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Unknown => f.write_str("ended for an unknown reason"),
        }
    }
}

/// How ranks ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndKind {
    /// Why.
    pub cause: Cause,
    /// Whether they had returned from `MPI_Finalize`.
    pub is_finalized: bool,
    /// What they were inside, for people; empty where that is not known.
    pub inside: String,
}

impl EndKind {
    /// Whether it is the end of every good program.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.is_finalized && self.cause == Cause::Code(0)
    }
}

/// The ranks that ended in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndStatistics {
    /// These ranks.
    pub ranks: RankSet,
    /// How long before the question the first of them ended, in nanoseconds.
    pub oldest_ns: u64,
    /// The lowest rank of those that ended then.
    pub oldest_rank: Rank,
    /// The leaf that has noticed it.
    pub leaf: u32,
    /// The same as `oldest_ns` of the first of them that another leaf has noticed; 0 for none. Only
    /// what one leaf has noticed is in the order in which it came.
    pub next_ns: u64,
}

/// The end of a rank of the tool, in a job that has some: none of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolEnd {
    /// Its number in the job, if that is known.
    pub rank: Option<Rank>,
    /// Why.
    pub cause: Cause,
    /// How long before the question it ended, in nanoseconds.
    pub age_ns: u64,
}

/// What some ranks report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankReport {
    /// The ranks by the number of the settings that they obey; 0 before the first change.
    pub obeyed: BTreeMap<u32, RankSet>,
    /// Those of them that take over no more settings: they have called `MPI_Finalize`, or exit.
    pub finished: RankSet,
    /// The ranks that have ended and of which the front-end has not confirmed that it knows.
    pub ends: BTreeMap<EndKind, EndStatistics>,
    /// Whether one of them wants advice.
    pub wants_advice: bool,
    /// Marks of iterations that were left out because they came too fast.
    pub marks_left_out: u64,
    /// The file names of the programs that the ranks run.
    pub programs: BTreeSet<String>,
    /// Of the ranks of the tool the one that ended first.
    pub tool_end: Option<ToolEnd>,
    /// The leaf that notices ends. Not part of the packet, which has that of each end.
    pub leaf: u32,
}

/// Takes in the file names of programs, and keeps [`PROGRAMS_MAX`] of them: the first in order.
/// Whether the known ones have changed.
pub fn add_programs(known: &mut BTreeSet<String>, names: impl IntoIterator<Item = String>) -> bool {
    let mut has_changed = false;
    for name in names {
        let is_kept = known.len() < PROGRAMS_MAX || known.last().is_some_and(|last| name < *last);
        if is_kept && known.insert(name) {
            has_changed = true;
            if known.len() > PROGRAMS_MAX {
                known.pop_last();
            }
        }
    }
    has_changed
}

impl RankReport {
    /// Takes in the end of one rank, this number of nanoseconds ago.
    pub fn end(&mut self, rank: Rank, kind: EndKind, age_ns: u64) {
        let ranks = RankSet::range(rank, rank);
        let (oldest_ns, oldest_rank, leaf) = (age_ns, rank, self.leaf);
        let end = EndStatistics { ranks, oldest_ns, oldest_rank, leaf, next_ns: 0 };
        self.add_end(kind, end);
    }

    fn add_end(&mut self, mut kind: EndKind, other: EndStatistics) {
        if self.ends.len() >= END_KINDS_MAX && !self.ends.contains_key(&kind) {
            kind.inside.clear();
        }
        match self.ends.get_mut(&kind) {
            Some(mine) => {
                mine.ranks.union_with(other.ranks.as_ref());
                mine.next_ns = mine.next_ns.max(other.next_ns);
                if mine.leaf != other.leaf {
                    mine.next_ns = mine.next_ns.max(mine.oldest_ns.min(other.oldest_ns));
                }
                let is_older = (other.oldest_ns, u32::MAX - other.oldest_rank)
                    > (mine.oldest_ns, u32::MAX - mine.oldest_rank);
                if is_older {
                    (mine.oldest_ns, mine.oldest_rank) = (other.oldest_ns, other.oldest_rank);
                    mine.leaf = other.leaf;
                }
            }
            None => {
                self.ends.insert(kind, other);
            }
        }
    }

    /// Takes in the report of other ranks.
    pub fn merge(&mut self, other: Self) {
        for (change, ranks) in other.obeyed {
            self.obeyed.entry(change).or_default().union_with(ranks.as_ref());
        }
        self.finished.union_with(other.finished.as_ref());
        for (kind, statistics) in other.ends {
            self.add_end(kind, statistics);
        }
        self.wants_advice |= other.wants_advice;
        self.marks_left_out = self.marks_left_out.saturating_add(other.marks_left_out);
        add_programs(&mut self.programs, other.programs);
        let tool_ends = self.tool_end.into_iter().chain(other.tool_end);
        self.tool_end = tool_ends.max_by_key(|end| (end.age_ns, end.rank));
    }

    /// The report as the values of a packet.
    #[must_use]
    pub fn encode(&self) -> Values {
        let kinds: Vec<&EndKind> = self.ends.keys().collect();
        let all: Vec<&EndStatistics> = self.ends.values().collect();
        let codes = kinds.iter().map(|kind| kind.cause.codes());
        let (causes, codes): (Vec<u8>, Vec<i32>) = codes.unzip();
        let codes: Vec<u32> = codes.into_iter().map(i32::cast_unsigned).collect();
        let texts: Vec<&str> = kinds.iter().map(|kind| kind.inside.as_str()).collect();
        let mut values = Values::new()
            .scalar(VERSION)
            .scalar(u32::from(self.wants_advice))
            .scalar(self.marks_left_out)
            .array(&self.obeyed.keys().copied().collect::<Vec<_>>());
        values = push_sets(values, self.obeyed.values())
            .array(&causes)
            .array(&codes)
            .array(&kinds.iter().map(|kind| u8::from(kind.is_finalized)).collect::<Vec<_>>())
            .strings(&texts);
        values = push_sets(values, all.iter().map(|one| &one.ranks))
            .array(&all.iter().map(|one| one.oldest_ns).collect::<Vec<_>>())
            .array(&all.iter().map(|one| one.oldest_rank).collect::<Vec<_>>())
            .strings(&self.programs.iter().map(String::as_str).collect::<Vec<_>>())
            .array(&all.iter().map(|one| one.leaf).collect::<Vec<_>>())
            .array(&all.iter().map(|one| one.next_ns).collect::<Vec<_>>());
        push_sets(push_tool_end(values, self.tool_end), core::iter::once(&self.finished))
    }

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`ProfileError::Format`] when they are no report, [`ProfileError::Contradiction`] or
    /// [`ProfileError::Values`] when they are a forged one.
    pub fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError> {
        let values = &IndexedValues::new(values)?;
        check_format(values, &LAYOUT, VERSION, "report of ranks")?;
        let mut report = Self {
            wants_advice: values.scalar::<u32>(1)? != 0,
            marks_left_out: values.scalar(2)?,
            ..Self::default()
        };
        let changes: &[u32] = values.array(3)?;
        for (&change, ranks) in changes.iter().zip(sets(values, 4, changes.len())?) {
            report.obeyed.insert(change, ranks);
        }
        let causes: &[u8] = values.array(6)?;
        let count = causes.len();
        let codes: &[u32] = column(values, 7, count)?;
        let finalized: &[u8] = column(values, 8, count)?;
        let inside = texts(values, 9, count)?;
        let oldest: &[u64] = column(values, 12, count)?;
        let oldest_ranks: &[u32] = column(values, 13, count)?;
        let leaves: &[u32] = column(values, 15, count)?;
        let next: &[u64] = column(values, 16, count)?;
        let ranks = sets(values, 10, count)?;
        for (at, (inside, ranks)) in inside.into_iter().zip(ranks).enumerate() {
            let cause = Cause::of(causes[at], codes[at].cast_signed()).ok_or(WRONG)?;
            let is_finalized = finalized[at] == 1;
            let (oldest_ns, oldest_rank) = (oldest[at], oldest_ranks[at]);
            if !ranks.contains(oldest_rank) || next[at] > oldest_ns {
                return Err(WRONG);
            }
            let kind = EndKind { cause, is_finalized, inside };
            let (leaf, next_ns) = (leaves[at], next[at]);
            let end = EndStatistics { ranks, oldest_ns, oldest_rank, leaf, next_ns };
            report.add_end(kind, end);
        }
        let names = values.strings(14)?.map(|name| String::from_utf8_lossy(name).into_owned());
        add_programs(&mut report.programs, names);
        report.tool_end = tool_end(values)?;
        report.finished = sets(values, 21, 1)?.pop().unwrap_or_default();
        Ok(report)
    }
}

/// Adds the four values of the tool's rank.
fn push_tool_end(values: Values, end: Option<ToolEnd>) -> Values {
    let codes = end.map(|end| end.cause.codes());
    let kind: Option<u8> = codes.map(|(kind, _)| kind);
    let code: Option<u32> = codes.map(|(_, code)| code.cast_unsigned());
    values
        .array(kind.as_slice())
        .array(code.as_slice())
        .array(end.map(|end| end.age_ns).as_slice())
        .array(end.and_then(|end| end.rank).as_slice())
}

/// Reads the four values of the tool's rank: one end or none.
fn tool_end(values: &IndexedValues<'_>) -> Result<Option<ToolEnd>, ProfileError> {
    let kinds: &[u8] = values.array(17)?;
    let codes: &[u32] = column(values, 18, kinds.len())?;
    let ages: &[u64] = column(values, 19, kinds.len())?;
    let ranks: &[u32] = values.array(20)?;
    match (kinds, codes, ages, ranks) {
        ([], [], [], []) => Ok(None),
        (&[kind], &[code], &[age_ns], [] | [_]) => {
            let cause = Cause::of(kind, code.cast_signed()).ok_or(WRONG)?;
            Ok(Some(ToolEnd { rank: ranks.first().copied(), cause, age_ns }))
        }
        _ => Err(WRONG),
    }
}

/// It takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(RankReports))
    } else {
        Err(FilterError::Parameters { name: RANK_REPORTS, takes: "no parameters" })
    }
}

struct RankReports;

impl Filter for RankReports {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let failed = |error| FilterError::Failed(format!("filter '{RANK_REPORTS}': {error}"));
        let mut report = RankReport::default();
        for packet in wave.packets {
            report.merge(RankReport::decode(packet.values()).map_err(failed)?);
        }
        out.emit(first.header.tag, report.encode());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;

    use super::*;

    fn kind(cause: Cause) -> EndKind {
        EndKind { cause, is_finalized: false, inside: "MPI_Barrier".to_owned() }
    }

    #[test]
    fn reports_are_merged_and_come_back() {
        let mut one = RankReport::default();
        one.obeyed.insert(3, RankSet::range(0, 1));
        one.end(1, kind(Cause::Signal(9)), 700);
        one.end(0, kind(Cause::Abort(-13)), 500);
        let mut other = RankReport { wants_advice: true, marks_left_out: 2, ..Default::default() };
        other.obeyed.insert(2, RankSet::range(2, 2));
        other.obeyed.insert(3, RankSet::range(3, 3));
        one.finished.insert(0);
        other.finished.insert(2);
        other.end(3, kind(Cause::Signal(9)), 900);
        let tool = ToolEnd { rank: Some(4), cause: Cause::Signal(9), age_ns: 950 };
        one.tool_end = Some(ToolEnd { rank: None, age_ns: 940, ..tool });
        other.tool_end = Some(tool);
        add_programs(&mut one.programs, ["a.out".to_owned()]);
        add_programs(&mut other.programs, ["python3".to_owned()]);
        one.merge(RankReport::decode(other.encode().as_ref()).expect("its own packet"));
        assert_eq!(one.obeyed[&3].to_string(), "0-1,3");
        assert_eq!(one.finished.to_string(), "0,2");
        assert_eq!(one.programs.iter().collect::<Vec<_>>(), ["a.out", "python3"]);
        let killed = &one.ends[&kind(Cause::Signal(9))];
        let told = (killed.ranks.to_string(), killed.oldest_ns, killed.oldest_rank);
        assert_eq!(told, ("1,3".to_owned(), 900, 3));
        assert_eq!(one.tool_end, Some(tool), "the first of both");
        assert_eq!(RankReport::decode(one.encode().as_ref()), Ok(one));
    }

    #[test]
    fn forged_ends_are_refused() {
        let mut report = RankReport::default();
        report.end(1, kind(Cause::Signal(9)), 700);
        let end = report.ends.get_mut(&kind(Cause::Signal(9))).expect("it was added");
        end.next_ns = 700;
        assert_eq!(RankReport::decode(report.encode().as_ref()), Ok(report.clone()));
        report.ends.values_mut().for_each(|end| end.next_ns += 1);
        let decoded = RankReport::decode(report.encode().as_ref());
        assert_eq!(decoded, Err(WRONG), "what is next came before the first");
        // In place of the values before those of the tool's rank.
        let before = || (0..17).fold(Values::new(), |values, _| values.scalar(0_u32));
        let end = || before().array(&[1_u8]).array(&[9_u32]).array(&[950_u64]);
        let read = |values: Values| {
            let values = IndexedValues::new(values.as_ref()).expect("values");
            tool_end(&values)
        };
        let whole = read(end().array(&[4_u32])).expect("an end").expect("of a rank");
        assert_eq!((whole.rank, whole.age_ns), (Some(4), 950));
        assert_eq!(read(end().array(&[4_u32, 5])), Err(WRONG), "an end of two ranks");
        let none = before().array::<u8>(&[]).array::<u32>(&[]).array::<u64>(&[]);
        assert_eq!(read(none.clone().array::<u32>(&[])), Ok(None));
        assert_eq!(read(none.array(&[4_u32])), Err(WRONG), "a rank without an end");
    }

    #[test]
    fn the_next_end_is_the_first_that_another_leaf_has_noticed() {
        let of_leaf = |leaf, ends: &[(Rank, u64)]| {
            let mut report = RankReport { leaf, ..RankReport::default() };
            ends.iter().for_each(|&(rank, age)| report.end(rank, kind(Cause::Signal(9)), age));
            RankReport::decode(report.encode().as_ref()).expect("its own packet")
        };
        let leaves =
            [(0, [(0, 900), (1, 890)]), (1, [(2, 600), (3, 700)]), (2, [(4, 650), (5, 1)])];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut merged = RankReport::default();
            for at in order {
                let (leaf, ends) = &leaves[at];
                merged.merge(of_leaf(*leaf, ends));
            }
            let killed = &merged.ends[&kind(Cause::Signal(9))];
            let told = (killed.oldest_rank, killed.leaf, killed.oldest_ns, killed.next_ns);
            assert_eq!(told, (0, 0, 900, 700), "{order:?}");
        }
        let alone = of_leaf(7, &[(0, 900), (1, 890)]);
        assert_eq!(alone.ends[&kind(Cause::Signal(9))].next_ns, 0);
    }

    #[test]
    fn names_of_programs_are_bounded_in_any_order() {
        let names = |order: &mut dyn Iterator<Item = usize>| {
            let mut known = BTreeSet::new();
            assert!(add_programs(&mut known, order.map(|at| format!("{at:02}"))));
            assert!(!add_programs(&mut known, ["03", "08"].map(str::to_owned)), "known, and last");
            known
        };
        let kept = names(&mut (0..20));
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (PROGRAMS_MAX, Some("07")));
        assert_eq!(kept, names(&mut (0..20).rev()));
    }

    #[test]
    fn kinds_of_ends_are_bounded() {
        let mut report = RankReport::default();
        for rank in 0..2 * u32::try_from(END_KINDS_MAX).expect("a small number") {
            let kind = EndKind { inside: format!("region {rank}"), ..kind(Cause::Unknown) };
            report.end(rank, kind, 1);
        }
        assert_eq!(report.ends.len(), END_KINDS_MAX + 1);
        let ranks = report.ends.values().map(|end| end.ranks.len()).sum::<u64>();
        assert_eq!(ranks, 2 * END_KINDS_MAX as u64);
    }
}
