//! Reductions that end without a result, since one member cannot do what was asked of it.
//!
//! What it lacks cannot be distinguished from what others have given: no member gets a value, and
//! all whose calls have not ended are told because of which member.

use alloc::vec::Vec;

use sapwood_packet::{RankSet, RankSetRef};

use super::call::Transfer;
use crate::error::Reason;
use crate::identity::{FoldId, MemberId};
use crate::member::Member;
use crate::message::{Message, Purpose, Ranges};
use crate::payload::Payload;
use crate::trees::TreeKind;

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
        let request = self.folds.get(&id).and_then(|fold| fold.request);
        let root = self.root_of(id);
        if root == Some(self.me) {
            // What has ended well stays so.
            if self.finished.contains(id) {
                return;
            }
            self.end_fold(id);
            self.tell_broken(id, names, reason);
        } else {
            if let Some(root) = root.filter(|root| from != Some(*root)) {
                self.send(root, broken(id, names, reason));
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

    /// Down a tree, as a result goes: each member has few links, and hears of it also after deaths.
    fn tell_broken(&mut self, id: FoldId, names: &RankSet, reason: Reason) {
        let targets = self.others();
        if targets.is_empty() {
            return;
        }
        let purpose = Purpose::Broken { fold: id, names: Ranges::from(names), reason };
        let transfer = Transfer { targets, value: Payload::default(), purpose, tag: 0 };
        self.start_internal(TreeKind::Adaptive, transfer);
    }

    /// The member that gets virtual nodes is told why reductions with a root among them have ended
    /// without a result: members may still call to them.
    pub(crate) fn hand_over_causes(&mut self, to: MemberId, names: RankSetRef<'_>) {
        let ended: Vec<FoldId> = self.finished.of_roots(names).collect();
        for id in ended {
            if let Some((names, reason)) = self.finished.broken_by(id) {
                let message = broken(id, names, *reason);
                self.send(to, message);
            }
        }
    }

    /// Another member says so. One that is not the root passes it on: the sender may have been
    /// told late of a hand-over of the root.
    pub(crate) fn broken(&mut self, from: MemberId, id: FoldId, names: &Ranges, reason: Reason) {
        self.break_fold(Some(from), id, &names.as_set().to_set(), reason);
    }
}

fn broken(id: FoldId, names: &RankSet, reason: Reason) -> Message {
    Message::Broken { fold: id, names: Ranges::from(names), reason }
}
