//! How many bytes a node keeps for others, so that its bounds can be checked.

use crate::interface::Delivery;
use crate::node::Node;

pub(crate) fn cost(delivery: &Delivery) -> usize {
    delivery.cost() as usize
}

impl crate::streams::stream::Stream {
    pub(crate) fn queued_bytes(&self) -> usize {
        let slots = self.slots.iter();
        let slots: usize = slots.map(|s| s.down.waiting_bytes() + s.assemblies.bytes()).sum();
        slots + self.sender.waiting_bytes() + self.assemblies.bytes() + self.waves.charged_bytes()
    }
}

impl Node {
    pub(crate) fn queued(&self) -> usize {
        let links = self.turn.links.ids().filter_map(|id| self.turn.links.link(id));
        let links: usize = links.map(|link| link.inbox.bytes() + link.outbox.bytes()).sum();
        let streams: usize =
            self.streams.iter().map(crate::streams::stream::Stream::queued_bytes).sum();
        let deliveries: usize = self.turn.deliveries.iter().map(cost).sum();
        links + streams + deliveries
    }
}
