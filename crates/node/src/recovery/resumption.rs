//! A front-end that is gone, and the one that may come in its place.
//!
//! Where the network's terms say so, the tree stays for a while without its root: the streams are
//! closed, since no process knows any more what their front-end had seen, and the processes below
//! the root ask for it at its address again and again. The front-end that is there at last opens
//! streams under numbers that no stream before it has had.

use alloc::vec::Vec;

use sapwood_packet::StreamId;

use crate::streams::table::Streams;
use crate::turn::Turn;

impl Streams {
    /// Closes all streams here and below, as their front-end is gone.
    pub(crate) fn close_all_streams(&mut self, turn: &mut Turn) {
        let streams: Vec<StreamId> = self.iter().map(|stream| stream.id).collect();
        for stream in streams {
            self.close_now(stream, turn);
        }
    }
}
