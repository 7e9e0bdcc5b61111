//! What a child's packets may say: whose data they bring, of which wave, and what they were made
//! by. `validation` judges control messages.

use sapwood_link::bounds_of;
use sapwood_packet::{PacketRef, Rank, RankSet, Wave};

use crate::interface::DYNAMIC_RANKS_BEGIN;
use crate::interface::breach::{Breach, breach};

/// The members for which a child may send on a stream.
#[derive(Debug)]
pub(crate) struct PacketPermission {
    /// The stream's members that its packets may stand for.
    pub(crate) members: RankSet,
    /// Its rank, if it is a back-end.
    pub(crate) back_end: Option<Rank>,
    /// The wave behind the last that it, a back-end, has ended.
    pub(crate) ended: Wave,
}

impl PacketPermission {
    pub(crate) fn new(domain: &RankSet, is_back_end: bool, rank: Rank, members: &RankSet) -> Self {
        let mut own = domain.clone();
        if !is_back_end {
            own.insert_range(DYNAMIC_RANKS_BEGIN, Rank::MAX);
        }
        own.intersect_with(members.as_ref());
        Self { members: own, back_end: is_back_end.then_some(rank), ended: 0 }
    }

    /// What only holds for back-ends, which bring no data but their own, once.
    #[inline]
    pub(crate) fn validate_back_end(
        &mut self,
        rank: Rank,
        packet: &PacketRef<'_>,
        runs_filters: bool,
    ) -> Result<(), Breach> {
        let header = packet.header;
        if header.origin != rank {
            return breach!("a packet of rank {}", header.origin);
        }
        if header.is_last() && header.void && runs_filters {
            // It could not make the stream's filters, and sends nothing.
            return Ok(());
        }
        if header.is_last() || header.late {
            return breach!("a packet that only a communication process sends");
        }
        if header.is_direct() {
            return match runs_filters {
                true => Ok(()),
                false => breach!("a reply of a filter, and runs none"),
            };
        }
        if !header.void && packet.contributors.is_empty() {
            return breach!("values for no back-end");
        }
        if header.wave < self.ended {
            return breach!("wave {} a second time", header.wave);
        }
        if header.ends_wave && bounds_of(packet).1 {
            self.ended = header.wave + u64::from(packet.more_waves) + 1;
        }
        Ok(())
    }
}
