//! What this process tells of itself.

use alloc::string::String;

use sapwood_packet::{RankSet, StreamId};

use crate::node::Node;

impl Node {
    /// Bytes that this node holds: cut-off frames, waves that are not complete, packets that are
    /// not whole, what waits for credit, what waits to be written, and what the application has not
    /// taken. Memory that is shared by several links counts once for each.
    ///
    /// It is at most a few windows per stream and link, and one packet where whole ones are needed.
    /// It looks at everything: for tests and people, not for the packet path.
    #[doc(hidden)]
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.streams.queued(&self.turn)
    }

    /// How many deliveries of a stream wait for the application; for tests, as above.
    #[doc(hidden)]
    #[must_use]
    pub fn waiting_answers(&self, stream: StreamId) -> u64 {
        self.turn.deliveries.iter().filter(|delivery| delivery.stream() == stream).count() as u64
    }

    /// The name of this process's host, for people.
    pub fn set_host(&mut self, host: String) {
        self.turn.host = host;
    }

    /// By how much the wall clock of this process's host is ahead of the clock that the node is
    /// told, in nanoseconds.
    pub fn set_wall(&mut self, wall: i64) {
        self.turn.wall = wall;
    }

    /// The back-ends of the network that are connected below this node.
    #[must_use]
    pub fn back_ends(&self) -> RankSet {
        self.membership.connected()
    }

    /// The members of an open stream.
    #[must_use]
    pub fn members(&self, stream: StreamId) -> Option<&RankSet> {
        self.streams.get(stream).map(|stream| &stream.members)
    }

    /// Packets that were dropped on a stream at this node.
    #[must_use]
    pub fn dropped(&self, stream: StreamId) -> u64 {
        self.streams.get(stream).map_or(0, |stream| stream.dropped)
    }
}
