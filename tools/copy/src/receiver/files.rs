//! Files as they come, block by block: begun or gone on with, written where they will stay, and
//! named once they are whole.

use std::os::unix::fs::FileExt;

use super::{Begun, Progress, Receiver};
use crate::blocks::{BLOCK_BYTES, Beginning, Digest, block_digest};
use crate::held::Held;
use crate::manifest::Content;
use crate::store::Trouble;

impl Receiver {
    /// What was begun of the current file is kept, to go on from there.
    pub(super) fn suspend(&mut self) {
        if let Some((entry, begun)) = self.current.take()
            && begun.offset > 0
            && self.begun.len() < self.kept_open_max
        {
            self.begun.insert(entry, begun);
        }
    }

    pub(super) fn go_on(&mut self, entry: u64) {
        self.suspend();
        self.current = self.begun.remove(&entry).map(|begun| (entry, begun));
    }

    pub(super) fn take_part(&mut self, entry: u64, offset: u64, digest: &Digest, bytes: &[u8]) {
        let is_current = self.current.as_ref().is_some_and(|(current, _)| *current == entry);
        if offset == 0 {
            if !is_current {
                self.suspend();
            }
            if !self.begin(entry) {
                return;
            }
        } else if !is_current {
            return;
        }
        let Some((_, begun)) = &mut self.current else { return };
        let content = self.manifest.entries()[entry as usize].content();
        let Some(content) = content else { return };
        let left = content.data_bytes() - begun.offset;
        if offset != begun.offset
            || bytes.len() as u64 != left.min(BLOCK_BYTES as u64)
            || block_digest(bytes) != *digest
        {
            return;
        }
        let Some(file) = &mut begun.file else { return };
        match write(file, content, offset, bytes) {
            Ok(()) => {
                begun.offset += bytes.len() as u64;
                begun.beginning.add(digest);
                self.taken_bytes += bytes.len() as u64;
            }
            Err(error) => {
                self.discard(entry);
                self.fail(entry, &error.into());
            }
        }
    }

    /// Begins the current file from nothing. Gives whether that was possible.
    fn begin(&mut self, entry: u64) -> bool {
        self.current = None;
        self.begun.remove(&entry);
        let Some(store) = &mut self.store else { return false };
        match store.begin_file(&self.manifest.entries()[entry as usize]) {
            Ok(file) => {
                let beginning = Beginning::default();
                self.current = Some((entry, Begun { file: Some(file), offset: 0, beginning }));
                true
            }
            Err(trouble) => {
                self.fail(entry, &trouble);
                false
            }
        }
    }

    pub(super) fn end_file(&mut self, entry: u64, digest: &Digest) {
        let meant = &self.manifest.entries()[entry as usize];
        let data_bytes = meant.content().map_or(0, Content::data_bytes);
        let is_current = self.current.as_ref().is_some_and(|(current, _)| *current == entry);
        if !is_current {
            self.suspend();
            if data_bytes > 0 || !self.begin(entry) {
                return;
            }
        }
        let Some((_, mut begun)) = self.current.take() else { return };
        if begun.offset < data_bytes {
            // Something was lost on the way: it goes on from there in the next round.
            self.begun.insert(entry, begun);
            return;
        }
        if begun.beginning.digest() != *digest {
            drop(begun);
            return self.discard(entry);
        }
        let Some(store) = &mut self.store else { return };
        let meant = &self.manifest.entries()[entry as usize];
        let finished = match &mut begun.file {
            Some(file) => store.finish_file(meant, file),
            None => match store.find(meant) {
                Some(present) if present.is_final => store.finish_present(meant, &present.file),
                _ => Err(Trouble::new("was changed by another process meanwhile")),
            },
        };
        match finished {
            Ok(()) => {
                self.progress[entry as usize] = Progress::There;
                self.there_bytes += data_bytes;
                self.there_files += 1;
            }
            Err(trouble) => {
                drop(begun);
                self.discard(entry);
                self.fail(entry, &trouble);
            }
        }
    }

    /// The source has no such file any more, and says so itself.
    pub(super) fn drop_file(&mut self, entry: u64) {
        self.discard(entry);
        self.progress[entry as usize] = Progress::Failed;
        self.fail_root(entry);
    }

    /// Takes away what there is of a file.
    pub(super) fn discard(&mut self, entry: u64) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == entry) {
            self.current = None;
        }
        self.begun.remove(&entry);
        if let Some(store) = &mut self.store {
            store.discard(&self.manifest.entries()[entry as usize]);
        }
    }
}

fn write(file: &mut Held, content: &Content, from: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut rest = bytes;
    for (offset, length) in content.places(from, bytes.len()) {
        let (part, behind) = rest.split_at(length);
        file.write_all_at(part, offset)?;
        rest = behind;
    }
    file.wrote(bytes.len() as u64)
}
