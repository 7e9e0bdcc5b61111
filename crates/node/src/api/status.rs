//! What this process tells of itself.

use alloc::string::String;

use crate::interface::Instant;
use crate::interface::record::Records;
use crate::node::Node;
use crate::status::telemetry::TELEMETRY_TAG;

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
    pub fn waiting_answers(&self, stream: sapwood_packet::StreamId) -> u64 {
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

    /// Where this process takes connections, if it does.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.turn.settings.address.as_deref()
    }

    /// Asks all processes that lead to a telemetry stream's members (front-end). The answer comes
    /// on that stream; [`Records::from_values`] reads it.
    ///
    /// # Errors
    /// As [`Node::broadcast`].
    pub fn ask_everyone(
        &mut self,
        now: Instant,
        stream: sapwood_packet::StreamId,
    ) -> Result<(), crate::NodeError> {
        self.broadcast(now, stream, TELEMETRY_TAG, (), &sapwood_packet::Recipients::All)
    }

    /// What this process tells of itself and its links, outside of any wave.
    pub fn own_records(&mut self) -> Records {
        self.membership.records(None, &mut self.streams, &mut self.turn)
    }
}
