//! How many bytes a node keeps for others, so that its bounds can be checked.

use crate::interface::Delivery;

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
