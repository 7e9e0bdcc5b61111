//! How many bytes a node keeps for others, so that its bounds can be checked.

use crate::interface::Delivery;
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
        let links = self.turn.links.ids().filter_map(|id| self.turn.links.link(id));
        let links: usize = links.map(|link| link.inbox.bytes() + link.outbox.bytes()).sum();
        let streams: usize =
            self.streams.iter().map(crate::streams::stream::Stream::queued_bytes).sum();
        let deliveries: usize = self.turn.deliveries.iter().map(cost).sum();
        links + streams + deliveries
    }

    /// How many deliveries of a stream wait for the application; for tests, as above.
    #[doc(hidden)]
    #[must_use]
    pub fn waiting_answers(&self, stream: sapwood_packet::StreamId) -> u64 {
        self.turn.deliveries.iter().filter(|delivery| delivery.stream() == stream).count() as u64
    }
}

fn cost(delivery: &Delivery) -> usize {
    delivery.cost() as usize
}

impl crate::streams::stream::Stream {
    fn queued_bytes(&self) -> usize {
        let slots = self.slots.iter();
        let slots: usize = slots.map(|s| s.down.waiting_bytes() + s.assemblies.bytes()).sum();
        slots + self.sender.waiting_bytes() + self.assemblies.bytes() + self.waves.charged_bytes()
    }
}
