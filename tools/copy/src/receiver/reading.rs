//! What is there already of a file, read step by step to know how much of it is right.

use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::blocks::{BLOCK_BYTES, Beginning, block_digest};
use crate::manifest::Content;
use crate::store::Present;

/// Bytes that are read in one step.
const STEP_BYTES: u64 = 4 << 20;

/// A file of which the beginning is being read.
pub(super) struct Reading {
    pub(super) present: Present,
    pub(super) offset: u64,
    pub(super) beginning: Beginning,
    /// Up to here in the file, holes have been looked at.
    looked_to: u64,
    /// Whether nothing but zeros stands in holes.
    pub(super) is_empty_in_holes: bool,
    pub(super) read_bytes: u64,
}

impl Reading {
    pub(super) fn begin(present: Present) -> Self {
        Self {
            present,
            offset: 0,
            beginning: Beginning::default(),
            looked_to: 0,
            is_empty_in_holes: true,
            read_bytes: 0,
        }
    }

    /// How much of the file is of use: all of it where it has its name, else what was read.
    fn end(&self, content: &Content) -> u64 {
        match (self.present.is_final, self.offset.checked_sub(1)) {
            (true, _) => content.size,
            (false, None) => 0,
            (false, Some(last)) => content.places(last, 1).first().map_or(0, |&(at, _)| at + 1),
        }
    }

    /// Looks whether holes are empty; gives whether that is known. An earlier state of the file may
    /// have had something there, and what is in no extent is in no digest.
    pub(super) fn look_at_holes(&mut self, content: &Content) -> bool {
        let (end, until) = (self.end(content), self.read_bytes + STEP_BYTES);
        while self.read_bytes < until {
            let Some((from, to)) = content.hole_from(self.looked_to, end) else { return true };
            let at = match seek(&*self.present.file, SeekFrom::Data(from)) {
                Ok(at) if at < to => at,
                Ok(_) | Err(Errno::NXIO) => {
                    self.looked_to = to;
                    continue;
                }
                // A file system that knows of no holes.
                Err(_) => from,
            };
            let mut block = vec![0; (to - at).min(BLOCK_BYTES as u64) as usize];
            let is_read = self.present.file.read_exact_at(&mut block, at).is_ok();
            if !is_read || block.iter().any(|&byte| byte != 0) {
                self.is_empty_in_holes = false;
                return true;
            }
            self.looked_to = at + block.len() as u64;
            self.read_bytes += block.len() as u64;
        }
        false
    }

    /// Whether a part can be gone on from. What stands behind that is cut off, since what follows
    /// may be a hole.
    pub(super) fn keeps_what_is_read(&self, content: &Content) -> bool {
        let is_cut = |end| self.present.file.set_len(end).is_ok();
        self.offset > 0 && self.is_empty_in_holes && is_cut(self.end(content))
    }

    /// Reads on; gives whether all that can be used has been read.
    pub(super) fn go_on(&mut self, content: &Content) -> bool {
        let data_bytes = content.data_bytes();
        let until = self.offset + STEP_BYTES;
        while self.offset < until {
            let left = data_bytes - self.offset;
            let length = left.min(BLOCK_BYTES as u64);
            // A part of a block is of no use.
            if left == 0 || self.offset + length > self.present.length {
                return true;
            }
            let mut block = vec![0; length as usize];
            let mut rest = &mut *block;
            for (offset, length) in content.places(self.offset, length as usize) {
                let (part, behind) = std::mem::take(&mut rest).split_at_mut(length);
                if self.present.file.read_exact_at(part, offset).is_err() {
                    return true;
                }
                rest = behind;
            }
            self.beginning.add(&block_digest(&block));
            self.offset += length;
            self.read_bytes += length;
        }
        false
    }
}
