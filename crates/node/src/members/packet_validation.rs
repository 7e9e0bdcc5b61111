//! Whether a child may send a packet, by what is known of that child. `validation` judges control
//! messages.

use sapwood_packet::PacketRef;

use crate::interface::breach::Breach;
use crate::members::children::Children;
use crate::streams::stream::Stream;
use crate::waves::permission::PacketPermission;

impl Children {
    /// Judges a packet of a child on a stream that is open here.
    #[inline]
    pub(crate) fn validate_packet(
        &mut self,
        slot: usize,
        packet: &PacketRef<'_>,
        stream: &mut Stream,
    ) -> Result<(), Breach> {
        if stream.slots[slot].permission.is_none() {
            self.permission(slot, stream);
        }
        stream.validate_packet(slot, packet)
    }

    #[cold]
    fn permission(&self, slot: usize, stream: &mut Stream) {
        let link = stream.slots[slot].link;
        let Some(rank) = link.and_then(|link| self.rank_of(link)) else { return };
        let Some(child) = self.get(rank) else { return };
        stream.slots[slot].permission = Some(PacketPermission::new(
            &child.authority.domain,
            child.authority.is_back_end,
            rank,
            &stream.members,
        ));
    }
}
