//! Reductions that end without a result, since one member cannot do what was asked of it.
//!
//! What it lacks cannot be told apart from what others have given: no member gets a value, and all
//! whose calls have not ended are told because of which member.

use alloc::vec::Vec;

use sapwood_packet::RankSet;

use crate::error::Reason;
use crate::identity::{FoldId, MemberId};
use crate::member::Member;
use crate::message::{Message, Ranges};

impl Member {
    /// The function that defines the operation has failed at this member.
    pub(super) fn function_failed(&mut self, id: FoldId) {
        let own = self.view.names_of(self.me);
        self.break_fold(None, id, &own, Reason::FunctionFailed);
    }

    /// The root tells all, and others tell the root, which may not have called yet, unless it is
    /// the one that says so.
    pub(super) fn break_fold(
        &mut self,
        from: Option<MemberId>,
        id: FoldId,
        names: &RankSet,
        reason: Reason,
    ) {
        if self.finished.broken_by(id).is_some() {
            return;
        }
        let told = |names| Message::Broken { fold: id, names: Ranges::from(names), reason };
        let request = self.folds.get(&id).and_then(|fold| fold.request);
        let root = self.root_of(id);
        if root == Some(self.me) {
            // What has ended well stays so.
            if self.finished.contains(id) {
                return;
            }
            for (owner, _) in self.view.owners(self.view.everyone().as_ref()).0 {
                self.send(owner, told(names));
            }
            self.end_fold(id);
        } else {
            if let Some(root) = root.filter(|root| from != Some(*root)) {
                self.send(root, told(names));
            }
            self.folds.remove(&id);
            self.note_finished(id);
        }
        self.finished.note_broken(id, names.clone(), reason);
        if let Some(request) = request {
            let missing = Vec::from([(names.clone(), reason)]);
            self.answer(request, None, RankSet::new(), missing);
        }
    }

    /// Another member says so. One that is not the root passes it on: the sender may have been
    /// told late of a hand-over of the root.
    pub(crate) fn broken(&mut self, from: MemberId, id: FoldId, names: &Ranges, reason: Reason) {
        self.break_fold(Some(from), id, &names.as_set().to_set(), reason);
    }
}
