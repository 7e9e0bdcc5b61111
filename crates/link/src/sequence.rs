//! Sequence spaces of a stream: the position of a packet in its order, and how it is acknowledged.

use sapwood_packet::{Chunk, Header, Order, PacketRef, Rank, Wave};

/// Where in a stream's sequence something belongs: the wave (on the way down: the packet's number),
/// and the offset within a packet that is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The wave; on the way down the packet's number.
    pub wave: Wave,
    /// In bytes within the packet; on the way down with the packet's index above 32 bits.
    pub offset: u64,
}

/// The position behind all waves, where a sender is after [`Order::Last`]: it sends nothing more.
/// No wave has this number, and no frame states it.
pub const END: Position = Position { wave: Wave::MAX, offset: 0 };

/// A downward filter may make several packets of one. The packet's index is stored in the offset
/// above this bit; packets are shorter than 2^32 bytes.
const INDEX_SHIFT: u32 = 32;

impl Position {
    /// The position of a wave's first byte.
    pub const fn start_of(wave: Wave) -> Self {
        Self { wave, offset: 0 }
    }

    /// Where a packet on its way down belongs.
    pub fn of_downward(packet: &PacketRef<'_>) -> Self {
        let index = u64::from(packet.header.order.part_index()) << INDEX_SHIFT;
        let offset = packet.chunk.map_or(0, |chunk| chunk.offset);
        Self { wave: packet.header.wave, offset: index | offset }
    }

    /// The position behind a packet on its way down.
    pub fn behind_downward(packet: &PacketRef<'_>) -> Self {
        let Header { wave, order, ends_wave, .. } = packet.header;
        match packet.chunk {
            Some(chunk) if chunk.offset + (packet.body.len() as u64) < chunk.total => {
                let position = Self::of_downward(packet);
                Self { offset: position.offset + packet.body.len() as u64, ..position }
            }
            _ if ends_wave => Self::start_of(wave + 1),
            _ => Self { wave, offset: (u64::from(order.part_index()) + 1) << INDEX_SHIFT },
        }
    }

    /// The beginning of the packet, on its way down, that this place lies inside of.
    pub fn start_of_packet(self) -> Self {
        Self { offset: self.offset >> INDEX_SHIFT << INDEX_SHIFT, ..self }
    }
}

/// How a packet is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SequenceSpace {
    /// With its wave.
    #[default]
    Waves,
    /// By its number, which stands for the wave in its place.
    Singles,
    /// Not at all: it is not retransmitted.
    Unsequenced,
}

/// What a gate or a retransmit buffer knows of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameInfo {
    /// How it is acknowledged.
    pub space: SequenceSpace,
    /// The position of the last thing in it.
    pub position: Position,
    /// The position behind it (on the way down).
    pub behind: Position,
    /// The rank that made the packet.
    pub origin: Rank,
    /// Whether it begins its packet.
    pub begins: bool,
    /// Whether it ends its packet.
    pub ends: bool,
    /// How many packets more than one it holds: those of a run.
    pub more: u32,
}

impl FrameInfo {
    /// Of a packet that goes up.
    #[inline]
    pub fn upward(packet: &PacketRef<'_>) -> Self {
        let Header { wave, order, origin, .. } = packet.header;
        let offset = packet.chunk.map_or(0, |chunk| chunk.offset);
        let (begins, ends) = bounds_of(packet);
        let (space, position) = match order {
            Order::Direct => (SequenceSpace::Unsequenced, Position::default()),
            Order::Last => (SequenceSpace::Unsequenced, END),
            Order::Single(number) => {
                (SequenceSpace::Singles, Position::start_of(number.get().into()))
            }
            Order::Wave | Order::Part(_) => {
                let wave = wave + u64::from(packet.more_waves);
                (SequenceSpace::Waves, Position { wave, offset })
            }
        };
        Self { space, position, behind: position, origin, begins, ends, more: packet.more_waves }
    }

    /// Of a packet that goes down.
    pub fn downward(packet: &PacketRef<'_>) -> Self {
        let (begins, ends) = bounds_of(packet);
        let position = Position::of_downward(packet);
        let space = if packet.header.is_direct() {
            SequenceSpace::Unsequenced
        } else {
            SequenceSpace::Waves
        };
        let behind = Position::behind_downward(packet);
        Self { space, position, behind, origin: packet.header.origin, begins, ends, more: 0 }
    }
}

/// Whether a frame begins its packet, and whether it ends it.
#[inline]
pub fn bounds_of(packet: &PacketRef<'_>) -> (bool, bool) {
    let end = |chunk: Chunk| chunk.offset + packet.body.len() as u64 >= chunk.total;
    packet.chunk.map_or((true, true), |chunk| (chunk.offset == 0, end(chunk)))
}

/// Whether everything up to a number has been acknowledged. Numbers begin again after 2^32.
#[inline]
pub fn has_reached(acknowledged: u32, number: u32) -> bool {
    number == 0 || acknowledged.wrapping_sub(number) < 1 << 31
}
