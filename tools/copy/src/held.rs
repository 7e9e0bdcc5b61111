//! A file that is being written or was found, its lock, and how what is written to it gets on the
//! disk.
//!
//! Where files are to be on the disk, what is written is brought there piece by piece while more
//! comes. So no wait for the disk is longer than that for a few pieces, however large the file is,
//! and the host answers in between; a disk that does not get on with one piece counts as hung.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::thread::{self, JoinHandle};

use rustix::fs::{FlockOperation, flock};

/// So much is written before it is brought to the disk. While that goes on as much again is taken.
const PIECE_BYTES: u64 = 16 << 20;

/// The stack of a thread that makes one call.
const STACK_BYTES: usize = 64 << 10;

/// A file that may be locked. The lock goes with it, even where a process that is being started has
/// a copy of the descriptor for a moment.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    /// None where the system may choose when the disk gets it.
    writeback: Option<Writeback>,
}

/// What of a file is on its way to the disk.
#[derive(Debug, Default)]
struct Writeback {
    /// Bytes that were written since the last piece was begun.
    bytes: u64,
    piece: Option<JoinHandle<io::Result<()>>>,
}

impl Held {
    /// What is written is to be on the disk.
    pub(super) fn synced(file: File) -> Self {
        Self { file, writeback: Some(Writeback::default()) }
    }

    /// The system writes to the disk when it likes.
    pub(super) fn unsynced(file: File) -> Self {
        Self { file, writeback: None }
    }

    /// This number of bytes more was written. Waits only where the disk is more than a piece
    /// behind.
    ///
    /// # Errors
    /// What the system says of an earlier piece.
    pub(super) fn wrote(&mut self, bytes: u64) -> io::Result<()> {
        let Some(writeback) = &mut self.writeback else { return Ok(()) };
        writeback.bytes += bytes;
        if writeback.bytes < PIECE_BYTES {
            return Ok(());
        }
        writeback.settle()?;
        writeback.bytes = 0;
        let file = self.file.try_clone()?;
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        match thread.spawn(move || file.sync_data()) {
            Ok(piece) => writeback.piece = Some(piece),
            // Where no thread can be had, it takes its time here.
            Err(_) => self.file.sync_data()?,
        }
        Ok(())
    }

    /// Has everything on the disk, if that is wanted.
    ///
    /// # Errors
    /// What the system says of any piece.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(writeback) = &mut self.writeback else { return Ok(()) };
        // The system tells a failure once: it must not be lost with the piece.
        writeback.settle()?;
        self.file.sync_all()
    }
}

impl Writeback {
    /// Waits for the piece that is on its way.
    fn settle(&mut self) -> io::Result<()> {
        match self.piece.take() {
            Some(piece) => piece.join().expect("the thread makes one call"),
            None => Ok(()),
        }
    }
}

impl Deref for Held {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It may not be locked, or the file system may know no locks.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cannot be brought to any disk: an attempt fails with an error.
    fn pipe() -> File {
        File::from(rustix::pipe::pipe().unwrap().1)
    }

    #[test]
    fn what_is_written_goes_to_the_disk_piece_by_piece() {
        let mut file = Held::synced(pipe());
        file.wrote(PIECE_BYTES - 1).unwrap();
        assert!(file.writeback.as_ref().unwrap().piece.is_none());
        file.wrote(1).unwrap();
        file.wrote(PIECE_BYTES - 1).unwrap();
        // What became of the first piece is told when the second is full.
        assert!(file.wrote(1).is_err());
    }

    #[test]
    fn the_end_of_a_file_tells_what_became_of_its_last_piece() {
        let mut file = Held::synced(tempfile::tempfile().unwrap());
        file.wrote(PIECE_BYTES).unwrap();
        let writeback = file.writeback.as_mut().unwrap();
        writeback.settle().unwrap();
        writeback.piece = Some(thread::spawn(|| Err(io::Error::other("bad block"))));
        assert_eq!(file.finish().unwrap_err().to_string(), "bad block");
        assert!(file.finish().is_ok());
    }

    #[test]
    fn where_nobody_asks_for_it_nothing_is_brought_to_the_disk() {
        let mut file = Held::unsynced(pipe());
        file.wrote(PIECE_BYTES * 3).unwrap();
        assert!(file.finish().is_ok());
    }
}
