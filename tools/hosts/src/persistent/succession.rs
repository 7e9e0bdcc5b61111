//! How a tree and the trees before it end together.
//!
//! Each earlier tree holds a [`Leash`], and the newest one the other end of it, an [`Earlier`]. The
//! end of the newest one reaches all in this way, also that of a thread that fails, and it waits
//! until all have ended.

use std::io::{PipeReader, PipeWriter};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// What an earlier tree has until nothing is left of it.
pub(crate) struct Leash {
    end: PipeReader,
    /// Closed with it.
    _ended: Sender<()>,
}

/// An earlier tree, as the newest one sees it. It ends when this is dropped.
pub(crate) struct Earlier {
    /// Closed with it.
    _leash: PipeWriter,
    ended: Receiver<()>,
    is_in_use: bool,
}

/// The two ends of a leash.
///
/// # Errors
/// The system's.
pub(crate) fn succession() -> std::io::Result<(Leash, Earlier)> {
    let (end, leash) = std::io::pipe()?;
    let (sender, ended) = channel();
    let earlier = Earlier { _leash: leash, ended, is_in_use: true };
    Ok((Leash { end, _ended: sender }, earlier))
}

impl Leash {
    /// What becomes readable when the tree is to end.
    pub(crate) fn end(&self) -> &PipeReader {
        &self.end
    }
}

impl Earlier {
    /// Whether something is left of it.
    pub(crate) fn is_there(&self) -> bool {
        self.ended.try_recv() != Err(TryRecvError::Disconnected)
    }

    /// The same of a tree in which no command goes on: it ends by itself.
    pub(crate) fn unused(self) -> Self {
        Self { is_in_use: false, ..self }
    }

    /// Whether commands went on in it when it gave way.
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use
    }

    /// Has these end, all at the same time, and waits until they have.
    pub(crate) fn end(trees: Vec<Self>) {
        let ended: Vec<Receiver<()>> = trees.into_iter().map(|tree| tree.ended).collect();
        for one in ended {
            // Nothing is ever sent: it fails when the other end is dropped.
            let _ = one.recv();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn all_earlier_trees_are_told_before_one_is_waited_for() {
        let pairs = [(); 2].map(|()| succession().unwrap());
        let (leashes, trees): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        assert!(trees.iter().all(Earlier::is_there));
        // The one that is waited for last ends first.
        let ending = std::thread::spawn(move || {
            for leash in leashes.into_iter().rev() {
                assert_eq!(leash.end().read(&mut [0]).unwrap(), 0);
            }
        });
        Earlier::end(trees);
        ending.join().unwrap();
    }

    #[test]
    fn a_tree_that_has_ended_is_not_there() {
        let (leash, tree) = succession().unwrap();
        drop(leash);
        assert!(!tree.is_there());
        Earlier::end(vec![tree]);
    }

    #[test]
    fn a_tree_without_commands_is_there_until_it_has_ended_and_not_in_use() {
        let (leash, tree) = succession().unwrap();
        assert!(tree.is_in_use());
        let tree = tree.unused();
        assert!(tree.is_there() && !tree.is_in_use());
        drop(leash);
        assert!(!tree.is_there());
    }
}
