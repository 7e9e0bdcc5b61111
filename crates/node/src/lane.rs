//! Where in a stream's order a packet belongs, and how it is acknowledged.

use sapwood_packet::{Chunk, Header, PacketRef, Rank, Wave};

use crate::membership::END;

/// Where in a stream's sequence something belongs: the wave (on the way down: the packet's number),
/// and the offset within a packet that is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) wave: Wave,
    pub(crate) offset: u64,
}

/// Where the index of a packet among those that a downward filter made of one is kept in the offset
/// of a place: above the length of any packet.
const INDEX_SHIFT: u32 = 32;

impl Place {
    pub(crate) const fn start_of(wave: Wave) -> Self {
        Self { wave, offset: 0 }
    }

    /// Where a packet on its way down belongs.
    pub(crate) fn of_downward(packet: &PacketRef<'_>) -> Self {
        let index = u64::from(packet.header.generation) << INDEX_SHIFT;
        let offset = packet.chunk.map_or(0, |chunk| chunk.offset);
        Self { wave: packet.header.wave, offset: index | offset }
    }

    /// The place behind a packet on its way down.
    pub(crate) fn behind_downward(packet: &PacketRef<'_>) -> Self {
        let Header { wave, generation, ends_wave, .. } = packet.header;
        match packet.chunk {
            Some(chunk) if chunk.offset + (packet.body.len() as u64) < chunk.total => {
                let place = Self::of_downward(packet);
                Self { offset: place.offset + packet.body.len() as u64, ..place }
            }
            _ if ends_wave => Self::start_of(wave + 1),
            _ => Self { wave, offset: (u64::from(generation) + 1) << INDEX_SHIFT },
        }
    }

    /// The beginning of the packet, on its way down, that this place lies inside of.
    pub(crate) fn start_of_packet(self) -> Self {
        Self { offset: self.offset >> INDEX_SHIFT << INDEX_SHIFT, ..self }
    }
}

/// How what goes up is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lane {
    /// With its wave.
    #[default]
    Waves,
    /// By its number, which stands for the wave in its place.
    Singles,
    /// Not at all: it is not kept.
    Outside,
}

/// What is to be known of a frame that waits or is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passage {
    pub(crate) lane: Lane,
    /// The place of the last thing in it.
    pub(crate) place: Place,
    /// The place behind it (on the way down).
    pub(crate) behind: Place,
    pub(crate) origin: Rank,
    /// Whether it begins its packet.
    pub(crate) begins: bool,
    /// Whether it ends its packet.
    pub(crate) ends: bool,
    /// How many packets more than one it holds: those of a run.
    pub(crate) more: u32,
}

impl Passage {
    /// Of a packet that goes up.
    #[inline]
    pub(crate) fn upward(packet: &PacketRef<'_>) -> Self {
        let Header { wave, generation, direct, origin, .. } = packet.header;
        let offset = packet.chunk.map_or(0, |chunk| chunk.offset);
        let (begins, ends) = bounds_of(packet);
        let (lane, place) = if direct {
            (Lane::Outside, Place::default())
        } else if wave == END.wave {
            (Lane::Outside, END)
        } else if generation > 0 {
            (Lane::Singles, Place::start_of(generation.into()))
        } else {
            (Lane::Waves, Place { wave: wave + u64::from(packet.more_waves), offset })
        };
        Self { lane, place, behind: place, origin, begins, ends, more: packet.more_waves }
    }

    /// Of a packet that goes down.
    pub(crate) fn downward(packet: &PacketRef<'_>) -> Self {
        let (begins, ends) = bounds_of(packet);
        let place = Place::of_downward(packet);
        let lane = if packet.header.direct { Lane::Outside } else { Lane::Waves };
        let behind = Place::behind_downward(packet);
        Self { lane, place, behind, origin: packet.header.origin, begins, ends, more: 0 }
    }
}

/// Whether a frame begins its packet, and whether it ends it.
#[inline]
pub(crate) fn bounds_of(packet: &PacketRef<'_>) -> (bool, bool) {
    let end = |chunk: Chunk| chunk.offset + packet.body.len() as u64 >= chunk.total;
    packet.chunk.map_or((true, true), |chunk| (chunk.offset == 0, end(chunk)))
}

/// Whether everything up to a number has been acknowledged. Numbers begin again after 2^32.
#[inline]
pub(crate) fn has_reached(acknowledged: u32, number: u32) -> bool {
    number == 0 || acknowledged.wrapping_sub(number) < 1 << 31
}
