//! The output of one command on one host: counted and hashed to its end, and kept as far as there
//! is room, first in memory, then in a file without a name.

use std::fs::File;
use std::os::unix::fs::FileExt;

use blake2::{Blake2s256, Digest as _};
use rustix::fs::{Mode, OFlags};

use super::protocol::{Digest, INLINE_BYTES_MAX, SPOOL_BYTES_MAX};

/// Bytes that are taken from one file to another at once.
const COPIED_BYTES: usize = 1 << 20;

/// What is left of an output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Kept,
    /// Its length and hash alone.
    Hashed,
}

/// One output.
pub(super) struct Spool {
    hash: Blake2s256,
    length: u64,
    /// Whether anything is kept.
    is_kept: bool,
    memory: Vec<u8>,
    file: Option<File>,
    kept: u64,
}

impl Spool {
    pub(super) fn new(content: Content) -> Self {
        let (is_kept, memory) = (content == Content::Kept, Vec::new());
        Self { hash: Blake2s256::new(), length: 0, is_kept, memory, file: None, kept: 0 }
    }

    /// Takes what came.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        let was_cut = self.kept < self.length;
        self.length += bytes.len() as u64;
        if !self.is_kept || was_cut {
            return;
        }
        let room = usize::try_from(SPOOL_BYTES_MAX - self.kept).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        if self.file.is_none() {
            if self.memory.len() + bytes.len() <= INLINE_BYTES_MAX {
                self.memory.extend_from_slice(bytes);
                self.kept += bytes.len() as u64;
                return;
            }
            // Where there is no room for files at all, what is in memory is kept.
            let mut files = [nameless_file, memory_file].into_iter().filter_map(|open| open());
            self.file = files.find(|file| file.write_all_at(&self.memory, 0).is_ok());
            if self.file.is_some() {
                self.memory = Vec::new();
            }
        }
        let Some(file) = &self.file else { return };
        if file.write_all_at(bytes, self.kept).is_ok() || self.goes_on_in_memory(bytes) {
            self.kept += bytes.len() as u64;
        }
    }

    /// Takes what was kept out of a file that has no room for these bytes, as on a full disk, into
    /// memory that can be paged out, and writes them there; whether that is done.
    fn goes_on_in_memory(&mut self, bytes: &[u8]) -> bool {
        let Some(memory) = memory_file() else { return false };
        let mut at = 0;
        while at < self.kept {
            let part = self.read(at, COPIED_BYTES);
            if part.is_empty() || memory.write_all_at(&part, at).is_err() {
                return false;
            }
            at += part.len() as u64;
        }
        if memory.write_all_at(bytes, at).is_err() {
            return false;
        }
        self.file = Some(memory);
        true
    }

    /// What the output was.
    pub(super) fn digest(&self) -> Digest {
        let hash = self.hash.clone().finalize().into();
        Digest { length: self.length, hash }
    }

    /// All of it, if it is in memory.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        (self.file.is_none() && self.kept == self.length).then_some(&self.memory)
    }

    /// A part of what was kept; empty at its end.
    pub(super) fn read(&self, from: u64, bytes: usize) -> Vec<u8> {
        let left = usize::try_from(self.kept.saturating_sub(from)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let mut part = vec![0; bytes];
        match &self.file {
            Some(file) => match file.read_exact_at(&mut part, from) {
                Ok(()) => part,
                Err(_) => Vec::new(),
            },
            None => self.memory[from as usize..][..bytes].to_vec(),
        }
    }
}

/// A file that no other process can open and that is gone with its descriptor.
fn nameless_file() -> Option<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR).map(File::from).ok()
}

/// Memory that can be paged out, as a file: some file systems have no nameless files, or are full.
fn memory_file() -> Option<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    rustix::fs::memfd_create("sapwood-output", flags).map(File::from).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_kept_in_memory_and_then_in_a_file() {
        let mut spool = Spool::new(Content::Kept);
        spool.add(b"begin");
        assert_eq!(spool.in_memory(), Some(&b"begin"[..]));
        spool.add(&vec![b'x'; INLINE_BYTES_MAX]);
        spool.add(b"end");
        assert_eq!(spool.in_memory(), None);
        let digest = spool.digest();
        assert_eq!(digest.length, INLINE_BYTES_MAX as u64 + 8);
        assert_eq!(spool.kept, digest.length);
        assert_eq!(spool.read(0, 6), b"beginx");
        assert_eq!(spool.read(digest.length - 4, 100), b"xend");
        assert!(spool.read(digest.length, 100).is_empty());
    }

    #[test]
    fn an_output_is_kept_whole_though_the_disk_is_full() {
        let full = || File::options().read(true).write(true).open("/dev/full").ok();
        let mut spool = Spool { file: full(), ..Spool::new(Content::Kept) };
        assert!(spool.file.is_some());
        spool.add(b"begin");
        spool.add(&vec![b'x'; 2 * COPIED_BYTES]);
        let digest = spool.digest();
        assert_eq!((spool.kept, digest.length), (digest.length, 2 * COPIED_BYTES as u64 + 5));
        assert_eq!(spool.read(0, 6), b"beginx");
        // What is in such a file reads as zeros.
        spool.file = full();
        spool.add(b"end");
        assert_eq!(spool.read(digest.length - 1, 100), b"\0end");
    }

    #[test]
    fn equal_outputs_have_equal_hashes_however_they_came() {
        let (mut one, mut other) = (Spool::new(Content::Hashed), Spool::new(Content::Kept));
        one.add(b"a\0b\n");
        other.add(b"a\0");
        other.add(b"b\n");
        assert_eq!((one.kept, other.kept), (0, 4));
        assert_eq!(one.digest(), other.digest(), "however much of them was kept");
    }
}
