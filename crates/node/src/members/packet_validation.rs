//! Whether a child may send a packet, by what is known of that child. `validation` judges control
//! messages.

use sapwood_packet::PacketRef;

use crate::interface::LinkId;
use crate::interface::breach::Breach;
use crate::node::Node;
use crate::waves::permission::PacketPermission;

impl Node {
    /// Judges a packet of a child on a stream that is open here.
    #[inline]
    pub(crate) fn validate_packet(
        &mut self,
        at: usize,
        slot: usize,
        packet: &PacketRef<'_>,
    ) -> Result<(), Breach> {
        if self.streams.at(at).slots[slot].permission.is_none() {
            self.permission(at, slot);
        }
        self.streams.at(at).validate_packet(slot, packet)
    }

    #[cold]
    fn permission(&mut self, at: usize, slot: usize) {
        let Self { streams, membership, .. } = self;
        let stream = streams.at(at);
        let Some(rank) = membership.rank_of(stream.slots[slot].link) else { return };
        let Some(child) = membership.child(rank) else { return };
        stream.slots[slot].permission = Some(PacketPermission::new(
            &child.standing.domain,
            child.standing.is_back_end,
            rank,
            &stream.members,
        ));
    }

    /// A packet of a child on a stream that is not open here, or not to it.
    #[cold]
    pub(crate) fn validate_stray(&mut self, link: LinkId, packet: &PacketRef<'_>) {
        let Some(rank) = self.membership.rank_of(link) else { return };
        if let Err(breach) = self.validate_stream(rank, packet.header.stream, "a packet") {
            self.break_off(link, &breach);
        }
    }
}
