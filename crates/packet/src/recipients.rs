//! Which members of a stream a packet goes down to.
//!
//! The principal type is [`Recipients`]. It keeps "all members" and "these ranks" apart, so that a
//! set that happens to be empty reaches no back-end.

use crate::{RankSet, RankSetRef};

/// The members of a stream that a packet goes down to. There is no third case, so that a `match`
/// on it is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recipients {
    /// All members of the stream.
    #[default]
    All,
    /// These members; the empty set sends to no back-end.
    Only(RankSet),
}

impl Recipients {
    /// Whether the packet goes to no back-end.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Only(ranks) if ranks.is_empty())
    }

    /// The ranks that are named, as the destinations of a frame state them: there, an empty set
    /// stands for all members. A packet to no back-end has no frame.
    #[must_use]
    pub fn named(&self) -> RankSetRef<'_> {
        match self {
            Self::All => RankSetRef::default(),
            Self::Only(ranks) => ranks.as_ref(),
        }
    }
}

impl From<RankSet> for Recipients {
    fn from(ranks: RankSet) -> Self {
        Self::Only(ranks)
    }
}

impl From<&RankSet> for Recipients {
    fn from(ranks: &RankSet) -> Self {
        Self::Only(ranks.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_set_is_no_back_end_and_not_all() {
        assert!(Recipients::from(RankSet::new()).is_none());
        assert_ne!(Recipients::from(RankSet::new()), Recipients::All);
        assert!(!Recipients::All.is_none() && Recipients::All.named().is_empty());
        let some = Recipients::from(&RankSet::range(2, 4));
        assert!(!some.is_none() && some.named().len() == 3);
    }
}
