//! The trees by name.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A rule by which trees are built.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum TreeKind {
    /// The root sends to each member itself.
    Flat,
    /// A binomial tree in the order of the virtual nodes; knows nothing of the network.
    Binomial,
    /// Binomial inside the clusters that the operators gave, one edge to each (MagPIe).
    Static,
    /// One chain through the given clusters in turn, for bulk.
    List,
    /// The latency rule of Saito, Taura and Chikayama.
    PaperLatency,
    /// Their bandwidth rule.
    PaperBandwidth,
    /// Inferred clusters and delegation; interior-disjoint trees for bulk.
    #[default]
    Adaptive,
}

impl TreeKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Flat,
        Self::Binomial,
        Self::Static,
        Self::List,
        Self::PaperLatency,
        Self::PaperBandwidth,
        Self::Adaptive,
    ];

    /// The name of the tree.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Binomial => "binomial",
            Self::Static => "static",
            Self::List => "list",
            Self::PaperLatency => "paper-latency",
            Self::PaperBandwidth => "paper-bandwidth",
            Self::Adaptive => "adaptive",
        }
    }

    /// Whether members probe for each root of such trees.
    #[must_use]
    pub fn is_paper(self) -> bool {
        matches!(self, Self::PaperLatency | Self::PaperBandwidth)
    }
}

impl fmt::Display for TreeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no tree's; takes one of [`TreeKind::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTree(pub String);

impl fmt::Display for UnknownTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no tree is called '{}'; take adaptive, or", self.0)?;
        for kind in Self::others() {
            write!(f, " {kind}")?;
        }
        Ok(())
    }
}

impl UnknownTree {
    fn others() -> impl Iterator<Item = TreeKind> {
        TreeKind::ALL.into_iter().filter(|kind| *kind != TreeKind::Adaptive)
    }
}

impl core::error::Error for UnknownTree {}

impl FromStr for TreeKind {
    type Err = UnknownTree;

    fn from_str(text: &str) -> Result<Self, UnknownTree> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| UnknownTree(text.to_string()))
    }
}
