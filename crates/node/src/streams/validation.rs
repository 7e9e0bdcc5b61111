//! Whether a child may send a packet on a stream.

use sapwood_packet::{PacketRef, Wave};

use crate::interface::breach::{Breach, breach};
use crate::streams::stream::Stream;

/// How many waves ahead of what it has sent a child may go on. An application may give its waves
/// any numbers, such as times in nanoseconds, and answers to questions are behind them
/// ([`ANSWERS_BEGIN`](sapwood_packet::ANSWERS_BEGIN)); what comes near the last wave of all is
/// neither.
pub(crate) const WAVES_AHEAD_MAX: u64 = 1 << 63;

/// Processes of a chain without branches that may each have begun a packet.
const PARTS_BEGUN: u64 = 64;

impl Stream {
    /// Whether a child may send this packet.
    #[inline]
    pub(crate) fn validate_packet(
        &mut self,
        slot: usize,
        packet: &PacketRef<'_>,
    ) -> Result<(), Breach> {
        let (id, next) = (self.id, self.slots[slot].next.wave);
        self.validate_wave(packet.header.wave, next)?;
        let assemblies = self.slots[slot].assemblies.count() as u64;
        let Some(permission) = &mut self.slots[slot].permission else { return Ok(()) };
        let own = permission.members.as_ref();
        // Every packet passes here: the sets are nearly always equal, which is cheaper to see than
        // that one lies within the other.
        if packet.contributors.ranges() != own.ranges() && !packet.contributors.is_within(own) {
            return breach!("a packet on stream {id} for back-ends that are not below it");
        }
        if !packet.destinations.ranges().is_empty() {
            return breach!("a packet on stream {id} with destinations");
        }
        if let Some(rank) = permission.back_end {
            return permission.validate_back_end(rank, packet, self.request.at_back_ends);
        }
        let origin = packet.header.origin;
        // A filter below sends under the rank of its own process, which is no member; only the rank
        // of a back-end names the speaker.
        if self.members.contains(origin) && !permission.members.contains(origin) {
            return breach!("a packet of rank {origin}, which is not below it");
        }
        let begins = packet.chunk.is_some_and(|chunk| chunk.offset == 0);
        // The first chunk has memory taken for the whole packet: a child that begins packets and
        // never ends them would take all of it.
        if begins && assemblies > PARTS_BEGUN + 2 * permission.members.len() {
            return breach!("parts of more packets on stream {id} than processes are below it");
        }
        Ok(())
    }

    /// Whether a wave is one that a child could have come to.
    #[inline]
    pub(crate) fn validate_wave(&self, wave: Wave, from: Wave) -> Result<(), Breach> {
        if wave.saturating_sub(from) <= WAVES_AHEAD_MAX {
            return Ok(());
        }
        breach!("wave {wave} of stream {}, where it was at wave {from}", self.id)
    }
}
