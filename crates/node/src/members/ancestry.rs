//! The processes above this one: its parent, the ancestors to which it turns when the parent is
//! gone, and the search for a new parent.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::RecoveryTerms;
use sapwood_wire::limits::ANCESTORS_MAX;

use crate::interface::{Output, Recovery};
use crate::members::search::{Search, Step};
use crate::turn::Turn;

/// What a process knows of those above it.
#[derive(Debug, Default)]
pub(crate) struct Ancestry {
    /// The processes above, nearest first, and where they take connections.
    pub(crate) processes: Vec<(Rank, String)>,
    /// The parents that this process has had and left, and those above them that it passed over.
    pub(crate) former: RankSet,
    /// Whether the parent answers probes at any time.
    pub(crate) parent_is_responsive: bool,
    /// Whether the parent has sent its welcome over the present link.
    pub(crate) is_welcomed: bool,
    /// Whether a process that has lost its parent looks for a new one, where the terms allow it.
    pub(crate) has_recovery: bool,
    /// The search for a new parent, while there is none.
    pub(crate) search: Option<Search>,
}

impl Ancestry {
    /// The welcome of an ancestor, or of the first parent: what it says of the tree above.
    pub(crate) fn learn(
        &mut self,
        ancestors: Vec<(Rank, String)>,
        terms: RecoveryTerms,
        is_responsive: bool,
        turn: &mut Turn,
    ) {
        self.processes = ancestors;
        self.parent_is_responsive = is_responsive;
        turn.settings.recovery = Recovery::from_terms(terms);
    }

    /// The ancestors of this process's children, nearest first. Of a chain that is too long, those
    /// in the middle are left out.
    pub(crate) fn of_children(&self, turn: &Turn) -> Vec<(Rank, String)> {
        let own = turn.settings.address.clone().unwrap_or_default();
        let mut ancestors = Vec::new();
        if !own.is_empty() {
            ancestors.push((turn.rank(), own));
        }
        ancestors.extend(self.processes.iter().cloned());
        while ancestors.len() > ANCESTORS_MAX {
            // Never the last, which is the front-end: an orphan that finds none of the others must
            // still find that one.
            ancestors.remove(ANCESTORS_MAX - 1);
        }
        ancestors
    }

    /// No parent is looked for any more.
    pub(crate) fn end_search(&mut self, turn: &mut Turn) {
        if let Some(Search { step: Step::Asking { link, .. }, .. }) = self.search.take() {
            turn.outputs.push_back(Output::Hangup(link));
        }
    }
}
