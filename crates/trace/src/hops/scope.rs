//! Scopes over hops: which of the times that waves and packets take in a tree are wanted, by what
//! they are distinguished, and what is made of them.
//!
//! They are what [`Scope`](crate::Scope) is for the calls of ranks, and have the same figures. The
//! times of a link need the events of both its ends, so that they are reduced where the events are
//! joined: those of a network by [`HopTrace`](crate::HopTrace), those of a group by the command
//! that reads its members.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use sapwood_packet::{Rank, RankSet, StreamId};

use crate::hops::traffic::{HopCollective, HopRole, HopSource, HopTraffic};
use crate::place::OTHERS;
use crate::scope::ScopeReduction;
use crate::scope_figures::{ScopeCounter, ScopeFigures, ScopeKey};
use crate::scope_windows::{ScopeWindows, WindowOwner, WindowRule};

/// A scope over hops without a limit of its own has as many bytes of events read per second, of the
/// whole tree.
pub const HOP_BYTES_PER_S: u64 = 16 << 20;

/// Which time is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopValue {
    /// From the child's sending to the parent's having the part; 0 inside the error of the clocks.
    Up,
    /// From the parent's sending of a packet to the child's having it; 0 likewise.
    Down,
    /// Both ways of a question with its answer over a link.
    TwoWay,
    /// How long a child's part lay at its parent before the last part came; the parts of a group's
    /// member include that of its own application.
    #[default]
    Wait,
    /// Of a back-end, from the question to its answer; of another process, and of a group's member,
    /// from its last part to the sending of what was made of all of them.
    Inside,
}

impl HopValue {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Up, Self::Down, Self::TwoWay, Self::Wait, Self::Inside];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::TwoWay => "two-way",
            Self::Wait => "wait",
            Self::Inside => "inside",
        }
    }

    /// Whether it is a time of a link, not of a process.
    #[must_use]
    pub const fn is_of_link(self) -> bool {
        !matches!(self, Self::Inside)
    }
}

impl fmt::Display for HopValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for HopValue {
    type Err = String;

    /// The one of a word; the error names all words.
    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|value| value.word() == word);
        found.ok_or_else(|| format!("'{word}' is none of up, down, two-way, wait, inside"))
    }
}

/// By what the times of hops are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopBy {
    /// By link: the parent and its child.
    pub edge: bool,
    /// By process; of a link, by its child.
    pub process: bool,
    /// By stream.
    pub stream: bool,
    /// By what the process is.
    pub kind: bool,
    /// Of a group, by what the operation is.
    pub collective: bool,
    /// Of a group, by the virtual node at the operation's root.
    pub root: bool,
}

/// One time of one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopMeasure {
    /// Of what.
    pub traffic: HopTraffic,
    /// Which time.
    pub value: HopValue,
    /// The process, of a group's member its first virtual node; of a link, its child. No scope
    /// selects [`OTHERS`], which is a member without one.
    pub process: Rank,
    /// Of a link, its parent.
    pub parent: Option<Rank>,
    /// What the process is.
    pub role: HopRole,
    /// How long, in nanoseconds.
    pub ns: u64,
}

/// What is wanted of the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopScope {
    /// Where they are noted.
    pub source: HopSource,
    /// The streams; empty for all.
    pub streams: BTreeSet<StreamId>,
    /// Of a group, what the operations are; empty for all.
    pub collectives: BTreeSet<HopCollective>,
    /// The processes, of links the children; empty for all.
    pub processes: RankSet,
    /// What these are; empty for all.
    pub roles: BTreeSet<HopRole>,
    /// Shorter times are left out, in nanoseconds.
    pub at_least_ns: u64,
    /// Which time is reduced.
    pub value: HopValue,
    /// To what.
    pub reduction: ScopeReduction,
    /// By what.
    pub by: HopBy,
    /// Figures are of the last as many times of each group; 0 for those since the figures before.
    pub window: u32,
    /// Events that are read for it, of the whole tree, in bytes per second.
    pub bytes_per_s: u64,
}

impl Default for HopScope {
    fn default() -> Self {
        Self {
            source: HopSource::default(),
            streams: BTreeSet::new(),
            collectives: BTreeSet::new(),
            processes: RankSet::new(),
            roles: BTreeSet::new(),
            at_least_ns: 0,
            value: HopValue::default(),
            reduction: ScopeReduction::default(),
            by: HopBy::default(),
            window: 0,
            bytes_per_s: HOP_BYTES_PER_S,
        }
    }
}

impl HopScope {
    /// Whether a time of the scope's value is selected.
    #[must_use]
    pub fn wants(&self, measure: &HopMeasure) -> bool {
        let is_chosen = match measure.traffic {
            HopTraffic::Stream(stream) => self.streams.is_empty() || self.streams.contains(&stream),
            HopTraffic::Operation(operation) => {
                (self.collectives.is_empty() || self.collectives.contains(&operation.collective))
                    && (!self.by.root || operation.root != OTHERS)
            }
        };
        is_chosen
            && measure.process != OTHERS
            && measure.parent != Some(OTHERS)
            && (self.processes.is_empty() || self.processes.contains(measure.process))
            && (self.roles.is_empty() || self.roles.contains(&measure.role))
            && measure.ns >= self.at_least_ns
    }

    fn key(&self, measure: &HopMeasure) -> ScopeKey {
        let by = self.by;
        let (stream, operation) = match measure.traffic {
            HopTraffic::Stream(stream) => (Some(stream), None),
            HopTraffic::Operation(operation) => (None, Some(operation)),
        };
        let key = HopKey {
            process: (by.process || by.edge).then_some(measure.process),
            parent: measure.parent.filter(|_| by.edge),
            stream: stream.filter(|_| by.stream),
            role: by.kind.then_some(measure.role),
            collective: operation.map(|one| one.collective).filter(|_| by.collective),
            root: operation.map(|one| one.root).filter(|_| by.root),
        };
        key.into()
    }
}

/// Which group of hops: what the scope does not tell apart is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopKey {
    /// The process; of a link, its child.
    pub process: Option<Rank>,
    /// The parent of a link.
    pub parent: Option<Rank>,
    /// The stream.
    pub stream: Option<StreamId>,
    /// What the process is.
    pub role: Option<HopRole>,
    /// What the operation of a group is.
    pub collective: Option<HopCollective>,
    /// The virtual node at its root.
    pub root: Option<Rank>,
}

/// Figures of hops have the form of those of calls: the stream or the root, plus one, has the place
/// of the communicator, the parent that of the function, and the collective that of the thread.
impl From<HopKey> for ScopeKey {
    fn from(key: HopKey) -> Self {
        Self {
            rank: key.process.unwrap_or(OTHERS),
            function: key.parent.unwrap_or_default(),
            communicator: key.stream.or(key.root).map_or(0, |number| u64::from(number) + 1),
            kind: key.role.map_or(0, |role| role as u8),
            thread: key.collective.map_or(0, |collective| collective as u8),
        }
    }
}

impl HopKey {
    /// The one of a group of a scope that tells hops apart in this way.
    #[must_use]
    pub fn of(key: ScopeKey, by: HopBy) -> Self {
        let number = key.communicator.checked_sub(1).and_then(|one| u32::try_from(one).ok());
        Self {
            process: (by.process || by.edge).then_some(key.rank),
            parent: by.edge.then_some(key.function),
            stream: number.filter(|_| by.stream),
            role: HopRole::ALL.into_iter().find(|&role| role as u8 == key.kind),
            collective: HopCollective::ALL.into_iter().find(|&one| one as u8 == key.thread),
            root: number.filter(|_| by.root),
        }
    }
}

/// A scope, and what has come of it since its figures were taken.
#[derive(Clone, Debug)]
pub struct ScopedHops {
    scope: HopScope,
    figures: ScopeFigures,
    /// The last times of each group, for a scope with a window.
    windows: ScopeWindows,
    /// Streams that the scope names and of which no time of any kind has come yet.
    unseen: BTreeSet<StreamId>,
}

impl ScopedHops {
    /// One of which no time has come yet.
    #[must_use]
    pub fn new(scope: HopScope) -> Self {
        let unseen = scope.streams.clone();
        let windows = ScopeWindows::default();
        Self { scope, figures: ScopeFigures::default(), windows, unseen }
    }

    /// Takes a time, which the scope need not select.
    pub fn add(&mut self, measure: &HopMeasure) {
        if let HopTraffic::Stream(stream) = measure.traffic {
            self.unseen.remove(&stream);
        }
        if measure.value != self.scope.value {
            return;
        }
        self.figures.count(ScopeCounter::Read, 1);
        if !self.scope.wants(measure) {
            return;
        }
        self.figures.count(ScopeCounter::Selected, 1);
        let owner = WindowOwner { key: self.scope.key(measure), ..WindowOwner::default() };
        let rule = WindowRule { window: self.scope.window, reduction: self.scope.reduction };
        self.windows.add(owner, measure.ns, rule, &mut self.figures);
    }

    /// Streams that the scope names and of which no time of any kind has come yet.
    #[must_use]
    pub const fn unseen(&self) -> &BTreeSet<StreamId> {
        &self.unseen
    }

    /// The figures of all that has come since they were taken before.
    pub fn take(&mut self) -> ScopeFigures {
        let mut figures = core::mem::take(&mut self.figures);
        self.windows.add_to(&mut figures, self.scope.reduction);
        if let Some(groups) = self.scope.reduction.groups_max() {
            figures.keep_largest(groups);
        }
        // No packet is to be filled, but groups are kept within the bound that all figures have.
        figures.bound(u64::MAX);
        figures
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::hops::traffic::HopOperation;

    fn measure(stream: StreamId, process: Rank, ns: u64) -> HopMeasure {
        let role = if process == 0 { HopRole::Communication } else { HopRole::BackEnd };
        let traffic = HopTraffic::Stream(stream);
        HopMeasure { traffic, value: HopValue::Wait, process, parent: Some(9), role, ns }
    }

    #[test]
    fn a_group_is_read_as_it_was_written() {
        let all = HopBy { edge: true, process: true, stream: true, kind: true, ..HopBy::default() };
        let wait = measure(0, 0, 5);
        for by in [
            all,
            HopBy { kind: false, ..all },
            HopBy { stream: true, ..HopBy::default() },
            HopBy { kind: true, ..HopBy::default() },
            HopBy { process: true, ..HopBy::default() },
        ] {
            let key = HopScope { by, ..HopScope::default() }.key(&wait);
            assert_ne!(key, ScopeKey::OTHERS, "{by:?}");
            let read = HopKey::of(key, by);
            assert_eq!(read.process, (by.process || by.edge).then_some(0), "{by:?}");
            assert_eq!(read.parent, by.edge.then_some(9), "{by:?}");
            assert_eq!(read.stream, by.stream.then_some(0), "{by:?}");
            assert_eq!(read.role, by.kind.then_some(HopRole::Communication), "{by:?}");
        }
        assert_eq!(HopScope::default().key(&wait), ScopeKey::OTHERS);
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for value in HopValue::ALL {
            assert_eq!(HopValue::from_str(value.word()), Ok(value));
        }
        for collective in HopCollective::ALL {
            assert_eq!(HopCollective::from_str(collective.word()), Ok(collective));
        }
        for source in HopSource::ALL {
            for role in source.roles() {
                assert_eq!(source.role(role.word()), Ok(role));
            }
        }
        let role = HopSource::Network.role("leaf");
        assert_eq!(
            role.unwrap_err(),
            "'leaf' is none of front-end, communication-process, back-end"
        );
        assert!("span".parse::<HopValue>().is_err() && HopSource::Group.role("back-end").is_err());
    }

    fn of_group(collective: HopCollective, root: Rank, process: Rank) -> HopMeasure {
        let traffic = HopTraffic::Operation(HopOperation { collective, root });
        let role = HopRole::Leaf;
        HopMeasure { traffic, value: HopValue::Wait, process, parent: Some(9), role, ns: 5 }
    }

    #[test]
    fn operations_of_a_group_are_told_apart_and_chosen_by_what_they_are() {
        use HopCollective::{Reduction, Transfer};
        let source = HopSource::Group;
        let by = HopBy { collective: true, root: true, ..HopBy::default() };
        let scope = HopScope { source, by, ..HopScope::default() };
        for (collective, root) in [(Reduction, 0), (Transfer, 0), (Transfer, 7)] {
            let key = scope.key(&of_group(collective, root, 3));
            assert_ne!(key, ScopeKey::OTHERS);
            let read = HopKey::of(key, by);
            assert_eq!((read.collective, read.root), (Some(collective), Some(root)));
            assert_eq!((read.process, read.parent, read.stream), (None, None, None));
        }
        let transfers = HopScope { collectives: [Transfer].into(), ..scope };
        assert!(transfers.wants(&of_group(Transfer, 0, 3)));
        assert!(!transfers.wants(&of_group(Reduction, 0, 3)));
    }

    #[test]
    fn a_member_without_a_virtual_node_is_in_no_group() {
        use HopCollective::Transfer;
        let all = HopScope { source: HopSource::Group, ..HopScope::default() };
        assert!(!all.wants(&of_group(Transfer, 0, OTHERS)));
        assert!(all.wants(&of_group(Transfer, OTHERS, 3)), "its root tells nothing apart here");
        let by = HopBy { root: true, ..HopBy::default() };
        assert!(!HopScope { by, ..all }.wants(&of_group(Transfer, OTHERS, 3)));
    }

    #[test]
    fn what_is_not_named_is_not_selected() {
        let scope = HopScope {
            streams: [3].into(),
            processes: RankSet::range(1, 2),
            roles: [HopRole::BackEnd].into(),
            at_least_ns: 10,
            ..HopScope::default()
        };
        assert!(scope.wants(&measure(3, 1, 10)));
        assert!(!scope.wants(&measure(4, 1, 10)) && !scope.wants(&measure(3, 1, 9)));
        assert!(!scope.wants(&measure(3, 3, 10)) && !scope.wants(&measure(3, 0, 10)));
        assert!(HopScope::default().wants(&measure(9, 0, 0)));
    }

    #[test]
    fn streams_of_which_nothing_has_come_are_known() {
        let streams = [1, 7, 999].into();
        let mut scoped = ScopedHops::new(HopScope { streams, ..HopScope::default() });
        scoped.add(&measure(7, 1, 5));
        // A time of another kind says as much of its stream.
        scoped.add(&HopMeasure { value: HopValue::Up, ..measure(1, 1, 77) });
        scoped.add(&measure(8, 1, 5));
        assert_eq!(scoped.unseen().iter().copied().collect::<Vec<_>>(), [999]);
    }

    #[test]
    fn a_window_has_the_last_times_of_each_group_and_stays() {
        let by = HopBy { process: true, ..HopBy::default() };
        let mut scoped = ScopedHops::new(HopScope { by, window: 2, ..HopScope::default() });
        for ns in [100, 20, 3] {
            scoped.add(&measure(1, 1, ns));
            scoped.add(&measure(1, 2, 1));
        }
        scoped.add(&HopMeasure { value: HopValue::Up, ..measure(1, 1, 77) });
        for read in [6, 0] {
            let figures = scoped.take();
            assert_eq!(figures.counter(ScopeCounter::Read), read);
            let sums: Vec<u64> = figures.groups.values().map(|one| one.sum).collect();
            assert_eq!(sums, [23, 2]);
        }
    }
}
