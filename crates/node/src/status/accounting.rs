//! How many bytes a node keeps for others, so that its bounds can be checked.

use crate::interface::Delivery;
use crate::streams::table::Streams;
use crate::turn::Turn;

pub(crate) fn cost(delivery: &Delivery) -> usize {
    delivery.cost() as usize
}

impl crate::streams::stream::Stream {
    pub(crate) fn held_bytes(&self) -> usize {
        let slots = self.slots.iter();
        let slots: usize = slots.map(|s| s.down.waiting_bytes() + s.assemblies.bytes()).sum();
        slots + self.sender.waiting_bytes() + self.assemblies.bytes() + self.waves.charged_bytes()
    }
}

impl Streams {
    pub(crate) fn queued(&self, turn: &Turn) -> usize {
        let links = turn.links.ids().filter_map(|id| turn.links.link(id));
        let links: usize = links.map(|link| link.inbox.bytes() + link.outbox.bytes()).sum();
        let streams: usize = self.iter().map(crate::streams::stream::Stream::held_bytes).sum();
        let deliveries: usize = turn.deliveries.iter().map(cost).sum();
        links + streams + deliveries
    }
}
