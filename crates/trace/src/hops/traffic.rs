//! What hops are of: the streams of a network, or the operations of a group.

use alloc::format;
use alloc::string::String;
use core::str::FromStr;

use sapwood_packet::{Rank, StreamId};

/// Where hops are noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopSource {
    /// In the processes of a network's tree.
    #[default]
    Network,
    /// In the members of a group.
    Group,
}

impl HopSource {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Network, Self::Group];

    /// Its word, as scopes name their source.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Network => "hops",
            Self::Group => "group",
        }
    }

    /// What its processes may be.
    #[must_use]
    pub const fn roles(self) -> [HopRole; 3] {
        match self {
            Self::Network => [HopRole::FrontEnd, HopRole::Communication, HopRole::BackEnd],
            Self::Group => [HopRole::Root, HopRole::Relay, HopRole::Leaf],
        }
    }

    /// What a word says that its processes are.
    ///
    /// # Errors
    /// All words of this source, for another one.
    pub fn role(self, word: &str) -> Result<HopRole, String> {
        let roles = self.roles();
        let found = roles.into_iter().find(|role| role.word() == word);
        found.ok_or_else(|| {
            let known = roles.map(HopRole::word).join(", ");
            format!("'{word}' is none of {known}")
        })
    }
}

/// What a process is; of a link, what its child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HopRole {
    /// Of a network: it has no parent.
    FrontEnd = 1,
    /// Of a network: it has a parent and children.
    Communication = 2,
    /// Of a network: it has no children.
    BackEnd = 3,
    /// Of a group's operation: no part of it went up from here, and no value came down.
    Root = 4,
    /// Of a group's operation: between others.
    Relay = 5,
    /// Of a group's operation: no other member was below it.
    Leaf = 6,
}

impl HopRole {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FrontEnd, Self::Communication, Self::BackEnd, Self::Root, Self::Relay, Self::Leaf];

    /// Its word, as in other JSON objects of trees.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FrontEnd => "front-end",
            Self::Communication => "communication-process",
            Self::BackEnd => "back-end",
            Self::Root => "root",
            Self::Relay => "relay",
            Self::Leaf => "leaf",
        }
    }
}

/// What a group's operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HopCollective {
    /// Parts go up a tree, and what is made of them may come down.
    Reduction = 1,
    /// A value goes down a tree.
    Transfer = 2,
}

impl HopCollective {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Reduction, Self::Transfer];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reduction => "reduction",
            Self::Transfer => "transfer",
        }
    }
}

impl FromStr for HopCollective {
    type Err = String;

    /// The one of a word; the error names all words.
    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.word() == word);
        found.ok_or_else(|| format!("'{word}' is neither reduction nor transfer"))
    }
}

/// A group's operation, as scopes tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopOperation {
    /// What it is.
    pub collective: HopCollective,
    /// The virtual node at its root; [`OTHERS`](crate::OTHERS) if that is not known.
    pub root: Rank,
}

/// What a hop is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopTraffic {
    /// A stream of a network.
    Stream(StreamId),
    /// An operation of a group.
    Operation(HopOperation),
}
