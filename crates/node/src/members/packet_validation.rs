//! What a child's packets may say: whose data they bring, of which wave, and what they were made
//! by. `validation` judges control messages.

use sapwood_link::{END, bounds_of};
use sapwood_packet::{PacketRef, Rank, RankSet, Wave};

use crate::interface::LinkId;
use crate::members::dynamic::DYNAMIC_RANKS_BEGIN;
use crate::members::validation::{Breach, Standing, breach};
use crate::node::Node;
use crate::streams::stream::Stream;

/// So many waves ahead of what it has sent a child may go on. An application may give its waves any
/// numbers, such as times in nanoseconds; what comes near the last wave of all is no number of its.
pub(crate) const WAVES_AHEAD_MAX: u64 = 1 << 62;

/// For whom a child may send on a stream.
#[derive(Debug)]
pub(crate) struct PacketPermission {
    /// The stream's members that its packets may stand for.
    members: RankSet,
    /// Its rank, if it is a back-end.
    back_end: Option<Rank>,
    /// The wave behind the last that it, a back-end, has ended.
    ended: Wave,
}

impl PacketPermission {
    fn new(standing: &Standing, rank: Rank, members: &RankSet) -> Self {
        let mut own = standing.domain.clone();
        if !standing.is_back_end {
            own.insert_range(DYNAMIC_RANKS_BEGIN, Rank::MAX);
        }
        own.intersect_with(members.as_ref());
        Self { members: own, back_end: standing.is_back_end.then_some(rank), ended: 0 }
    }

    /// What only holds for back-ends, which bring nobody's data but their own, once.
    #[inline]
    fn validate_back_end(
        &mut self,
        rank: Rank,
        packet: &PacketRef<'_>,
        runs_filters: bool,
    ) -> Result<(), Breach> {
        let header = packet.header;
        if header.origin != rank {
            return breach!("a packet of rank {}", header.origin);
        }
        if header.wave == END.wave && header.void && runs_filters {
            // It could not make the stream's filters, and sends nothing.
            return Ok(());
        }
        if header.wave == END.wave || header.late {
            return breach!("a packet that only a communication process sends");
        }
        if header.direct {
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
        if self.members.contains(origin) && !permission.members.contains(origin) {
            return breach!("a packet of rank {origin}, which is not below it");
        }
        let begins = packet.chunk.is_some_and(|chunk| chunk.offset == 0);
        if begins && assemblies > PARTS_BEGUN + 2 * permission.members.len() {
            return breach!("parts of more packets on stream {id} than processes are below it");
        }
        Ok(())
    }

    /// Whether a wave is one that anybody could have come to.
    #[inline]
    pub(crate) fn validate_wave(&self, wave: Wave, from: Wave) -> Result<(), Breach> {
        if wave == END.wave || wave.saturating_sub(from) <= WAVES_AHEAD_MAX {
            return Ok(());
        }
        breach!("wave {wave} of stream {}, where it was at wave {from}", self.id)
    }
}

/// Processes of a chain without branches that may each have begun a packet.
const PARTS_BEGUN: u64 = 64;

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
        stream.slots[slot].permission =
            Some(PacketPermission::new(&child.standing, rank, &stream.members));
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
