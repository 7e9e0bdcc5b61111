//! What is done once all files have come: links are made, folders finished from the inside out, and
//! new ones get their names.

use super::{Phase, Progress, Receiver};
use crate::manifest::Kind;
use crate::store::Trouble;

/// Why a new folder does not get its name.
const INCOMPLETE: &str = "is incomplete and not renamed into place";

/// What becomes of it, unless nothing is kept.
const KEPT: &str = "; the part that arrived is kept for the next copy";

impl Receiver {
    /// Everything has been said.
    pub(super) fn begin_end(&mut self) {
        self.suspend();
        if self.lacking().is_empty() {
            self.phase = Phase::Linking(0);
        } else {
            (self.phase, self.is_lacking) = (Phase::Over, true);
        }
    }

    pub(super) fn link(&mut self, at: u64) {
        let entries = self.manifest.entries();
        let (Some(store), Some(entry)) = (&mut self.store, entries.get(at as usize)) else {
            self.phase = Phase::Closing(self.manifest.len());
            return;
        };
        self.phase = Phase::Linking(at + 1);
        let made = match &entry.kind {
            _ if self.progress[at as usize] == Progress::Failed => Ok(()),
            Kind::Symlink(target) => store.make_symlink(entry, target),
            Kind::HardLink(to) => match self.progress[*to as usize] {
                Progress::There => store.make_hard_link(entry, &entries[*to as usize]),
                _ => Err(Trouble::new("the target of this hard link was not copied")),
            },
            Kind::File(_) | Kind::Folder => Ok(()),
        };
        if let Err(trouble) = made {
            self.fail(at, &trouble);
        }
    }

    pub(super) fn close(&mut self, behind: u64) {
        let Some(at) = behind.checked_sub(1) else { return self.publish() };
        self.phase = Phase::Closing(at);
        let entry = &self.manifest.entries()[at as usize];
        let is_there = self.progress[at as usize] != Progress::Failed;
        // A new folder that lacks something does not get its name: the next try writes into it.
        let is_new = self.store.as_ref().is_some_and(|store| store.is_new(entry.root));
        let is_there = is_there && !(is_new && self.failed_roots.contains(&entry.root));
        if let (Kind::Folder, true, Some(store)) = (&entry.kind, is_there, &mut self.store)
            && let Err(trouble) = store.finish_folder(entry)
        {
            self.fail(at, &trouble);
        }
    }

    /// Gives new folders their names, each if it is whole.
    fn publish(&mut self) {
        self.phase = Phase::Over;
        let roots: Vec<u64> = (0..)
            .zip(self.manifest.entries())
            .filter(|(_, entry)| entry.path.is_empty() && entry.kind == Kind::Folder)
            .map(|(at, _)| at)
            .collect();
        for at in roots {
            let root = self.manifest.entries()[at as usize].root;
            let Some(store) = &mut self.store else { return };
            if self.failed_roots.contains(&root) {
                if store.is_new(root) {
                    let shown = store.shown(&self.manifest.entries()[at as usize]);
                    let kept = if self.is_anew { "" } else { KEPT };
                    self.complaints.add(shown, format!("{INCOMPLETE}{kept}"));
                }
                continue;
            }
            if let Err(trouble) = store.publish(root) {
                self.fail(at, &trouble);
            }
        }
    }
}
