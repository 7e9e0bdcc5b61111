//! Where the time of a round trip goes, by kind of process, in the tree and in its floor.
//!
//! Owns [`Kind`] and [`Cast`], the processes of a contender by kind. `pages` counts the pages that
//! a process refers to while it works; `costs` counts what it asks of the system.

pub(super) mod costs;
pub(super) mod pages;

/// Which part a process has in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Communication,
    BackEnd,
}

/// Both.
pub(super) const KINDS: [Kind; 2] = [Kind::Communication, Kind::BackEnd];

/// The processes of a contender but for the root, which is this program.
#[derive(Clone, Debug, Default)]
pub(super) struct Cast(pub(super) Vec<(u32, Kind)>);

impl Cast {
    /// Those of one kind.
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = u32> {
        self.0.iter().filter(move |(_, other)| *other == kind).map(|(pid, _)| *pid)
    }
}
