//! An event scope: which events are wanted, by what they are distinguished, and which value of them
//! is reduced.
//!
//! The noun and the idea are EventSpace's (Bongo, Anshus, Bjorndalen, "EventSpace - Exposing and
//! observing communication behavior of parallel cluster applications", section 3): a view onto the
//! events of many threads, with which a monitor extracts just what it needs. Here a scope selects
//! and reduces beside the rank, so that what travels does not grow with the number of events.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use sapwood_packet::{Directive, ElementType, Rank, RankSet, Shape, Values, ValuesRef};

use crate::TraceError;
use crate::coscheduling::Coscheduling;
use crate::event::EventKind;

/// The most events of each group that one window may hold.
pub const WINDOW_MAX: u32 = 10_000;
/// A scope without a limit of its own uses this part of a processor, in millionths.
pub const CPU_PPM: u32 = 10_000;
/// A scope without a limit of its own sends as much from each leaf, in bytes per second.
pub const BYTES_PER_S: u64 = 64 << 10;
/// The most groups that [`ScopeReduction::Top`] keeps.
pub const TOP_GROUPS_MAX: u8 = 100;

const U32: ElementType = ElementType::Uint32;
/// Values of an encoded scope.
pub const SCOPE_VALUES: usize = 9;
pub(crate) const LAYOUT: [Directive; SCOPE_VALUES] = [
    Directive::new(U32, Shape::Array),
    Directive::new(U32, Shape::Scalar),
    Directive::new(ElementType::String, Shape::Array),
    Directive::new(U32, Shape::Array),
    Directive::new(ElementType::Uint64, Shape::Scalar),
    Directive::new(U32, Shape::Scalar),
    Directive::new(U32, Shape::Scalar),
    Directive::new(U32, Shape::Scalar),
    Directive::new(ElementType::Uint64, Shape::Scalar),
];

/// Which value of an event is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ScopeValue {
    /// The time until the call returned, in nanoseconds.
    #[default]
    Span = 0,
    /// The time between the return of the thread's last call before and the begin of this one, in
    /// nanoseconds: what the program did meanwhile.
    Gap = 1,
}

/// What is made of the values of a group, and which groups are in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeReduction {
    /// Sums, and a sketch from which quantiles are read.
    #[default]
    Sketch,
    /// Sums only, which take fewer bytes and less time of the leaf.
    Sums,
    /// As [`ScopeReduction::Sketch`], of the groups with the largest sums; all others are one.
    Top {
        /// How many groups, 1 to [`TOP_GROUPS_MAX`].
        groups: u8,
    },
}

impl ScopeReduction {
    /// The one of a code, as [`ScopeReduction::code`] has it.
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Sketch,
            1 => Self::Sums,
            beyond => {
                let groups = u8::try_from(beyond - 1).unwrap_or(TOP_GROUPS_MAX);
                Self::Top { groups: groups.min(TOP_GROUPS_MAX) }
            }
        }
    }

    /// As a number of 8 bits: 0 for a sketch, 1 for sums, else one more than the groups.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Sketch => 0,
            Self::Sums => 1,
            Self::Top { groups } => u32::from(groups.clamp(1, TOP_GROUPS_MAX)) + 1,
        }
    }

    /// How many groups are in the answer beside that of others; none for all.
    #[must_use]
    pub fn groups_max(self) -> Option<u32> {
        match self {
            Self::Sketch | Self::Sums => None,
            Self::Top { groups } => Some(groups.into()),
        }
    }
}

impl fmt::Display for ScopeReduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sketch => f.write_str("sketch"),
            Self::Sums => f.write_str("sums"),
            Self::Top { groups } => write!(f, "top={groups}"),
        }
    }
}

impl FromStr for ScopeReduction {
    type Err = String;

    /// The one of a word; the error names all words.
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "sketch" => return Ok(Self::Sketch),
            "sums" => return Ok(Self::Sums),
            _ => {}
        }
        let groups = word.strip_prefix("top=").and_then(|number| number.parse::<u8>().ok());
        let groups = groups.filter(|groups| (1..=TOP_GROUPS_MAX).contains(groups));
        groups.map(|groups| Self::Top { groups }).ok_or_else(|| {
            format!("'{word}' is none of sketch, sums, top=K with K from 1 to {TOP_GROUPS_MAX}")
        })
    }
}

/// By what the events of a scope are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeBy {
    /// By rank.
    pub rank: bool,
    /// By function.
    pub function: bool,
    /// By communicator.
    pub communicator: bool,
    /// By kind.
    pub kind: bool,
    /// By thread of each rank.
    pub thread: bool,
}

/// What is wanted of the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The functions; empty for all.
    pub functions: BTreeSet<u32>,
    /// The kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// The names of the communicators, with `*` for any letters; empty for all.
    pub communicators: Vec<String>,
    /// The ranks in `MPI_COMM_WORLD`; empty for all.
    pub ranks: RankSet,
    /// Calls that lasted less are left out, in nanoseconds.
    pub at_least_ns: u64,
    /// What is reduced.
    pub value: ScopeValue,
    /// To what.
    pub reduction: ScopeReduction,
    /// By what.
    pub by: ScopeBy,
    /// Figures are of the last as many events of each group and thread; 0 for those since the
    /// question before.
    pub window: u32,
    /// The part of a processor that a leaf may use for it, in millionths.
    pub cpu_ppm: u32,
    /// What a process may send of it, in bytes per second.
    pub bytes_per_s: u64,
    /// When leaves read events for it.
    pub when: Coscheduling,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            functions: BTreeSet::new(),
            kinds: Vec::new(),
            communicators: Vec::new(),
            ranks: RankSet::new(),
            at_least_ns: 0,
            value: ScopeValue::default(),
            reduction: ScopeReduction::default(),
            by: ScopeBy::default(),
            window: 0,
            cpu_ppm: CPU_PPM,
            bytes_per_s: BYTES_PER_S,
            when: Coscheduling::default(),
        }
    }
}

impl Scope {
    /// Whether a rank's events are wanted.
    #[must_use]
    pub fn wants_rank(&self, rank: Rank) -> bool {
        self.ranks.is_empty() || self.ranks.contains(rank)
    }

    /// Whether a communicator of this name is wanted.
    #[must_use]
    pub fn wants_communicator(&self, name: &str) -> bool {
        self.communicators.is_empty()
            || self.communicators.iter().any(|wanted| matches_pattern(wanted, name))
    }

    /// Whether an event of this function, kind and length is wanted.
    #[must_use]
    pub fn wants(&self, function: u32, kind: EventKind, span_ns: u64) -> bool {
        (self.functions.is_empty() || self.functions.contains(&function))
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
            && span_ns >= self.at_least_ns
    }

    /// How many groups a part of the answer has on its way to the root, beside that of others;
    /// none for all. A group of one rank is whole in each part, so that the largest of all are
    /// among the largest of the parts. Of another group each part may be small and the sum large:
    /// these are chosen at the root only.
    #[must_use]
    pub fn part_groups_max(&self) -> Option<u32> {
        self.reduction.groups_max().filter(|_| self.by.rank)
    }

    /// As values of a packet, behind others.
    #[must_use]
    pub fn encode(&self, values: Values) -> Values {
        let functions: Vec<u32> = self.functions.iter().copied().collect();
        let kinds = self.kinds.iter().fold(0_u32, |all, &kind| all | 1 << kind as u8);
        let codes = u32::from(self.by.rank)
            | u32::from(self.by.function) << 1
            | u32::from(self.by.communicator) << 2
            | u32::from(self.by.kind) << 3
            | u32::from(self.by.thread) << 4
            | (self.value as u32) << 8
            | (self.when as u32) << 16
            | self.reduction.code() << 24;
        let ranges: Vec<u32> = self.ranks.as_ref().ranges().iter().flatten().copied().collect();
        let names: Vec<&str> = self.communicators.iter().map(String::as_str).collect();
        values
            .array(&functions)
            .scalar(kinds)
            .strings(&names)
            .array(&ranges)
            .scalar(self.at_least_ns)
            .scalar(codes)
            .scalar(self.window)
            .scalar(self.cpu_ppm)
            .scalar(self.bytes_per_s)
    }

    /// Reads the values that begin at this place of a packet.
    ///
    /// # Errors
    /// [`TraceError`] when they are no scope.
    pub fn decode(values: ValuesRef<'_>, at: usize) -> Result<Self, TraceError> {
        let format = values.format();
        if !format.directives().skip(at).eq(LAYOUT) {
            return Err(TraceError::Contradiction { what: "values of a scope" });
        }
        let functions: &[u32] = values.array(at)?;
        let kinds: u32 = values.scalar(at + 1)?;
        let names = values.strings(at + 2)?;
        let ranges: &[u32] = values.array(at + 3)?;
        let codes: u32 = values.scalar(at + 5)?;
        let mut ranks = RankSet::new();
        for pair in ranges.chunks_exact(2).filter(|pair| pair[0] <= pair[1]) {
            ranks.insert_range(pair[0], pair[1]);
        }
        Ok(Self {
            functions: functions.iter().copied().collect(),
            kinds: EventKind::ALL.into_iter().filter(|&one| kinds & 1 << one as u8 != 0).collect(),
            communicators: names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
            ranks,
            at_least_ns: values.scalar(at + 4)?,
            value: if codes >> 8 & 0xff == 1 { ScopeValue::Gap } else { ScopeValue::Span },
            reduction: ScopeReduction::from_code(codes >> 24),
            by: ScopeBy {
                rank: codes & 1 != 0,
                function: codes & 2 != 0,
                communicator: codes & 4 != 0,
                kind: codes & 8 != 0,
                thread: codes & 16 != 0,
            },
            window: values.scalar::<u32>(at + 6)?.min(WINDOW_MAX),
            cpu_ppm: values.scalar(at + 7)?,
            bytes_per_s: values.scalar(at + 8)?,
            when: Coscheduling::from_code(codes >> 16 & 0xff),
        })
    }
}

/// Whether a name is what a pattern stands for, in which `*` stands for any letters.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut left) = name.strip_prefix(first) else { return false };
    for part in middle.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn scope() -> Scope {
        Scope {
            functions: [17, 18].into(),
            kinds: [EventKind::Collective, EventKind::ReceiveCompleted].into(),
            communicators: ["grid".into()].into(),
            ranks: RankSet::range(2, 5),
            at_least_ns: 1_000,
            value: ScopeValue::Gap,
            reduction: ScopeReduction::Top { groups: TOP_GROUPS_MAX },
            by: ScopeBy { rank: true, kind: true, thread: true, ..ScopeBy::default() },
            window: 100,
            cpu_ppm: 5,
            bytes_per_s: 6,
            when: Coscheduling::Released,
        }
    }

    #[test]
    fn a_scope_is_read_as_it_was_written() {
        let sums = Scope { reduction: ScopeReduction::Sums, ..scope() };
        for one in [scope(), sums, Scope::default()] {
            let values = one.encode(Values::new().scalar(7_u32));
            assert_eq!(Scope::decode(values.as_ref(), 1), Ok(one));
            assert!(Scope::decode(values.as_ref(), 0).is_err());
        }
    }

    #[test]
    fn a_reduction_is_read_as_it_was_written() {
        let top = |groups| ScopeReduction::Top { groups };
        for one in [ScopeReduction::Sketch, ScopeReduction::Sums, top(1), top(TOP_GROUPS_MAX)] {
            assert_eq!(ScopeReduction::from_str(&one.to_string()), Ok(one));
            assert_eq!(ScopeReduction::from_code(one.code()), one);
        }
        for word in ["", "top", "top=", "top=0", "top=101", "top=-1", "top=256", "Sums", "sums="] {
            let error = word.parse::<ScopeReduction>().expect_err(word);
            assert!(error.ends_with("none of sketch, sums, top=K with K from 1 to 100"), "{error}");
        }
        assert_eq!(ScopeReduction::from_code(u32::MAX), top(TOP_GROUPS_MAX));
        // What no text gives is still a number of groups, and of 8 bits.
        assert_eq!((top(0).code(), top(u8::MAX).code()), (2, u32::from(TOP_GROUPS_MAX) + 1));
    }

    #[test]
    fn groups_are_chosen_on_the_way_only_where_each_is_of_one_rank() {
        let reduction = ScopeReduction::Top { groups: 3 };
        let chosen = |by| Scope { reduction, by, ..Scope::default() }.part_groups_max();
        assert_eq!(chosen(ScopeBy { rank: true, function: true, ..ScopeBy::default() }), Some(3));
        assert_eq!(chosen(ScopeBy { function: true, ..ScopeBy::default() }), None);
        assert_eq!(scope().part_groups_max(), Some(TOP_GROUPS_MAX.into()));
        assert_eq!(Scope { by: scope().by, ..Scope::default() }.part_groups_max(), None);
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for pattern in ["MPI_All*", "*reduce", "MPI_*red*", "*", "MPI_Allreduce", "M*l*e*"] {
            assert!(matches_pattern(pattern, "MPI_Allreduce"), "{pattern}");
        }
        for pattern in ["MPI_all*", "*reduce_", "MPI_*reduce*e", "", "MPI_Allreduc"] {
            assert!(!matches_pattern(pattern, "MPI_Allreduce"), "{pattern}");
        }
    }

    #[test]
    fn what_is_not_named_is_not_selected() {
        let one = scope();
        assert!(one.wants(17, EventKind::Collective, 1_000));
        assert!(!one.wants(17, EventKind::Collective, 999));
        assert!(!one.wants(19, EventKind::Collective, 1_000));
        assert!(!one.wants(17, EventKind::Send, 1_000));
        assert!(one.wants_rank(5) && !one.wants_rank(6));
        assert!(one.wants_communicator("grid") && !one.wants_communicator("MPI_COMM_WORLD"));
        let all = Scope::default();
        assert!(
            all.wants(1, EventKind::Send, 0) && all.wants_rank(9) && all.wants_communicator("")
        );
    }
}
