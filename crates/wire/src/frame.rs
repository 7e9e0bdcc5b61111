//! Frames: the units that are written on a link.
//!
//! All numbers are little-endian; every part starts at a multiple of 8, so that the values of a
//! packet can be read in place.
//!
//! ```text
//!  0        4     5      6      7      8         a frame's prefix
//! | length  | kind| flags| count| order|         length: bytes of the whole frame, a multiple of 8
//!
//! kind 1, a packet (count: directives of its format):
//!  8              12             16                             24
//! | stream u32    | tag i32       | wave u64                     |
//!  24             28             32                36           40
//! | origin u32    | number u32    | contributors u32| destinations u32 |   (numbers of ranges)
//! | chunk offset u64, chunk total u64         only with flag 8  |
//! | further waves u32, 0 u32                  only with flag 64 |
//! | format: one byte per directive            0 up to 8         |
//! | contributors: first u32, last u32 ...                       |
//! | destinations: first u32, last u32 ...                       |
//! | body: the values, or the chunk's part of them               |
//!
//! kind 2, control (flags, count and order 0):
//! | one control message in postcard's encoding   0 up to 8      |
//! ```
//!
//! Order: 0 wave, 1 single, 2 part, 3 direct, 4 last, as [`Order`] says; `number` is that of a
//! single packet, or the index of a part, and 0 in all others. The wave of a last packet is 0, and
//! no wave is 2^64 - 1.
//!
//! Flags: 1 filtered, 2 ends its wave, 4 late, 8 chunk, 16 void (no value: it only ends its wave),
//! 32 run: the values of several waves in a row, of one numeric directive and all of one length,
//! under the header of the first.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use sapwood_packet::{
    Chunk, DIRECTIVES_MAX, FormatRef, Header, Order, PacketRef, RankRange, RankSetRef, Shape, Slab,
    ValuesRef, Wave, padded,
};

use crate::limits::{
    CONTROL_BYTES_MAX, FRAME_BYTES_MAX, PACKET_BYTES_MAX, RANGES_MAX, RUN_BYTES_MAX, RUN_WAVES_MAX,
};
use crate::{Control, WireError};

/// Length of a frame's prefix in bytes: enough to know the frame's length.
pub const PREFIX_BYTES: usize = 8;

const HEADER_BYTES: usize = 40;
const CHUNK_PART_BYTES: usize = 16;
const KIND_PACKET: u8 = 1;
const KIND_CONTROL: u8 = 2;
const FLAG_FILTERED: u8 = 1;
const FLAG_ENDS_WAVE: u8 = 2;
const FLAG_LATE: u8 = 4;
const FLAG_CHUNK: u8 = 8;
const FLAG_VOID: u8 = 16;
const FLAG_RUN: u8 = 32;
const FLAGS_KNOWN: u8 = 63;
const RUN_PART_BYTES: usize = 8;
const ORDER_WAVE: u8 = 0;
const ORDER_SINGLE: u8 = 1;
const ORDER_PART: u8 = 2;
const ORDER_DIRECT: u8 = 3;
const ORDER_LAST: u8 = 4;

/// One decoded frame, lent from the bytes that it came in.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// A packet or a chunk of one.
    Packet(PacketRef<'a>),
    /// A control message.
    Control(Control),
}

/// The length of the frame that begins with these bytes, or `None` while its prefix is incomplete.
///
/// # Errors
/// [`WireError::Length`] or [`WireError::Kind`]: no frame begins like this.
#[inline]
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let length = u32_at(prefix, 0) as usize;
    let (least, most) = match prefix[4] {
        KIND_PACKET => (HEADER_BYTES, FRAME_BYTES_MAX),
        KIND_CONTROL => (PREFIX_BYTES + 1, CONTROL_BYTES_MAX),
        kind => return Err(WireError::Kind { kind }),
    };
    if length < least || length > most || !length.is_multiple_of(8) {
        return Err(WireError::Length { bytes: length });
    }
    Ok(Some(length))
}

/// Whether the frame that begins with these bytes is a control message; not while too little of it
/// is there.
#[must_use]
#[inline]
pub fn is_control(frame: &[u8]) -> bool {
    frame.get(4) == Some(&KIND_CONTROL)
}

/// Reads one whole frame. `bytes` must start at a multiple of 8 and be exactly the frame.
///
/// # Errors
/// The [`WireError`] that describes the fault.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Frame<'_>, WireError> {
    if frame_length(bytes)? != Some(bytes.len()) {
        return Err(WireError::Length { bytes: bytes.len() });
    }
    match bytes[4] {
        KIND_PACKET => decode_packet(bytes).map(Frame::Packet),
        _ => decode_control(bytes).map(Frame::Control),
    }
}

fn decode_control(bytes: &[u8]) -> Result<Control, WireError> {
    if bytes[5] != 0 {
        return Err(WireError::Kind { kind: bytes[5] });
    }
    if bytes[6..8] != [0, 0] {
        return Err(WireError::Parts);
    }
    match postcard::take_from_bytes(&bytes[PREFIX_BYTES..]) {
        Ok((control, rest)) if rest.len() < 8 && rest.iter().all(|&byte| byte == 0) => Ok(control),
        _ => Err(WireError::Control),
    }
}

#[inline]
fn decode_packet(bytes: &[u8]) -> Result<PacketRef<'_>, WireError> {
    let Some((fixed, mut rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(WireError::Parts);
    };
    let (flags, directives) = (fixed[5], usize::from(fixed[6]));
    if flags & !FLAGS_KNOWN != 0 {
        return Err(WireError::Kind { kind: flags });
    }
    if flags & FLAG_VOID != 0 && (directives > 0 || flags & FLAG_CHUNK != 0) {
        return Err(WireError::Parts);
    }
    let chunk = if flags & FLAG_CHUNK == 0 {
        None
    } else {
        let part = take(&mut rest, CHUNK_PART_BYTES)?;
        Some(Chunk { offset: u64_at(part, 0), total: u64_at(part, 8) })
    };
    let more_waves = if flags & FLAG_RUN == 0 {
        0
    } else {
        let part = take(&mut rest, RUN_PART_BYTES)?;
        if u32_at(part, 4) != 0 {
            return Err(WireError::Parts);
        }
        u32_at(part, 0)
    };
    let (codes, padding) = take(&mut rest, padded(directives))?.split_at(directives);
    // At most 7 bytes; with them checked, a packet has one frame and no other.
    if !padding.is_empty() && padding.iter().any(|&byte| byte != 0) {
        return Err(WireError::Format);
    }
    let format = FormatRef::from_codes(codes).ok_or(WireError::Format)?;
    let contributors = take_ranks(&mut rest, u32_at(fixed, 32) as usize)?;
    let destinations = take_ranks(&mut rest, u32_at(fixed, 36) as usize)?;
    match chunk {
        _ if flags & FLAG_RUN != 0 => {
            // The number behind the last wave is needed, too.
            let end = u64_at(fixed, 16).checked_add(u64::from(more_waves) + 1);
            end.ok_or(WireError::Parts)?;
            check_run(fixed, more_waves, format, rest)?;
        }
        None => drop(ValuesRef::parse(format, rest)?),
        Some(chunk) => check_chunk(chunk, rest.len() as u64)?,
    }
    let header = Header {
        stream: u32_at(fixed, 8),
        tag: u32_at(fixed, 12).cast_signed(),
        wave: u64_at(fixed, 16),
        origin: u32_at(fixed, 24),
        order: order_of(fixed)?,
        filtered: flags & FLAG_FILTERED != 0,
        ends_wave: flags & FLAG_ENDS_WAVE != 0,
        late: flags & FLAG_LATE != 0,
        void: flags & FLAG_VOID != 0,
    };
    Ok(PacketRef { header, format, contributors, destinations, chunk, more_waves, body: rest })
}

/// The order that a packet's head states, in the one way in which it can be stated.
#[inline]
fn order_of(fixed: &[u8; HEADER_BYTES]) -> Result<Order, WireError> {
    let (wave, number) = (u64_at(fixed, 16), NonZeroU32::new(u32_at(fixed, 28)));
    if wave == Wave::MAX {
        return Err(WireError::Parts);
    }
    match (fixed[7], number) {
        (ORDER_WAVE, None) => Ok(Order::Wave),
        (ORDER_SINGLE, Some(number)) => Ok(Order::Single(number)),
        (ORDER_PART, Some(index)) => Ok(Order::Part(index)),
        (ORDER_DIRECT, None) => Ok(Order::Direct),
        (ORDER_LAST, None) if wave == 0 && fixed[5] & FLAG_VOID != 0 => Ok(Order::Last),
        _ => Err(WireError::Parts),
    }
}

/// Its code and its number.
#[inline]
fn order_code(order: Order) -> (u8, u32) {
    match order {
        Order::Wave => (ORDER_WAVE, 0),
        Order::Single(number) => (ORDER_SINGLE, number.get()),
        Order::Part(index) => (ORDER_PART, index.get()),
        Order::Direct => (ORDER_DIRECT, 0),
        Order::Last => (ORDER_LAST, 0),
    }
}

/// The destinations in the head of a packet's frame, without reading its values, which may be in
/// other memory; empty if the bytes are no such frame.
#[must_use]
pub fn destinations_of(frame: &[u8]) -> RankSetRef<'_> {
    fn read(frame: &[u8]) -> Result<RankSetRef<'_>, WireError> {
        let Some((fixed, mut rest)) = frame.split_first_chunk::<HEADER_BYTES>() else {
            return Err(WireError::Parts);
        };
        if fixed[4] != KIND_PACKET {
            return Err(WireError::Kind { kind: fixed[4] });
        }
        let directives = usize::from(fixed[6]);
        let chunk = if fixed[5] & FLAG_CHUNK == 0 { 0 } else { CHUNK_PART_BYTES };
        let run = if fixed[5] & FLAG_RUN == 0 { 0 } else { RUN_PART_BYTES };
        take(&mut rest, chunk + run + padded(directives))?;
        take_ranks(&mut rest, u32_at(fixed, 32) as usize)?;
        take_ranks(&mut rest, u32_at(fixed, 36) as usize)
    }
    read(frame).unwrap_or_default()
}

/// Whether packets of this format may be put into runs.
#[must_use]
#[inline]
pub fn may_run(format: FormatRef<'_>) -> bool {
    format.len() == 1 && format.directive(0).is_some_and(|directive| directive.element.is_numeric())
}

/// What all bodies of one run have in common besides their length: an array's count.
#[must_use]
#[inline]
pub fn run_key(format: FormatRef<'_>, body: &[u8]) -> u64 {
    match format.directive(0) {
        Some(directive) if directive.shape != Shape::Scalar && body.len() >= 8 => u64_at(body, 0),
        _ => 0,
    }
}

/// How many waves a run of bodies of this length has at most; a power of two, or 0 for no runs.
#[must_use]
#[inline]
pub fn run_waves_max(body: usize) -> u32 {
    match RUN_BYTES_MAX.checked_div(body).unwrap_or(0).min(RUN_WAVES_MAX as usize) {
        0 | 1 => 0,
        most => 1 << most.ilog2(),
    }
}

fn check_run(
    fixed: &[u8; HEADER_BYTES],
    more_waves: u32,
    format: FormatRef<'_>,
    bodies: &[u8],
) -> Result<(), WireError> {
    let flags = fixed[5];
    let odd = flags & (FLAG_CHUNK | FLAG_LATE | FLAG_VOID) != 0 || fixed[7] > ORDER_SINGLE;
    let waves = more_waves as usize + 1;
    let fits = (1..RUN_WAVES_MAX).contains(&more_waves)
        && bodies.len() <= RUN_BYTES_MAX
        && !bodies.is_empty()
        && bodies.len().is_multiple_of(waves * 8);
    if odd || !fits || flags & FLAG_ENDS_WAVE == 0 || !may_run(format) {
        return Err(WireError::Parts);
    }
    let stride = bodies.len() / waves;
    let is_uniform =
        bodies.chunks_exact(stride).all(|body| run_key(format, body) == run_key(format, bodies));
    if !is_uniform {
        return Err(WireError::Parts);
    }
    // Of the same length and count, they are all values of the format or none is.
    ValuesRef::parse(format, &bodies[..stride])?;
    Ok(())
}

fn check_chunk(chunk: Chunk, length: u64) -> Result<(), WireError> {
    let end = chunk.offset.checked_add(length).ok_or(WireError::Chunk)?;
    let inside = length > 0 && end <= chunk.total && chunk.total <= PACKET_BYTES_MAX;
    if inside && chunk.offset.is_multiple_of(8) && chunk.total.is_multiple_of(8) {
        Ok(())
    } else {
        Err(WireError::Chunk)
    }
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8], WireError> {
    let (part, after) = rest.split_at_checked(bytes).ok_or(WireError::Parts)?;
    *rest = after;
    Ok(part)
}

#[inline]
fn take_ranks<'a>(rest: &mut &'a [u8], ranges: usize) -> Result<RankSetRef<'a>, WireError> {
    if ranges > RANGES_MAX {
        return Err(WireError::Parts);
    }
    let part = take(rest, ranges * size_of::<RankRange>())?;
    let ranges = bytemuck::try_cast_slice(part).map_err(|_| WireError::Parts)?;
    Ok(RankSetRef::from_ranges(ranges)?)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// How many bytes the frame of a packet takes before its body.
#[must_use]
#[inline]
pub fn head_length(packet: &PacketRef<'_>) -> usize {
    let ranges = packet.contributors.ranges().len() + packet.destinations.ranges().len();
    let chunk = if packet.chunk.is_some() { CHUNK_PART_BYTES } else { 0 };
    let run = if packet.more_waves > 0 { RUN_PART_BYTES } else { 0 };
    HEADER_BYTES + chunk + run + padded(packet.format.len()) + ranges * size_of::<RankRange>()
}

/// Writes everything of a packet's frame but the body, which must follow: `packet.body`, as it is.
/// Gives the length of the whole frame.
///
/// # Errors
/// [`WireError::Length`] or [`WireError::Parts`] when the packet is longer than a frame may be:
/// large bodies must be cut into chunks before. [`WireError::Format`] when it has more than
/// [`DIRECTIVES_MAX`] values.
#[inline]
pub fn encode_head(out: &mut Slab, packet: &PacketRef<'_>) -> Result<usize, WireError> {
    let (head, length) = check_lengths(packet)?;
    write_head(out.grow(head), packet, length);
    Ok(length)
}

/// Length of a packet's head and of its whole frame, if the frame is one that may be sent.
#[inline]
fn check_lengths(packet: &PacketRef<'_>) -> Result<(usize, usize), WireError> {
    let head = head_length(packet);
    let length = head + packet.body.len();
    if length > FRAME_BYTES_MAX || !packet.body.len().is_multiple_of(8) {
        return Err(WireError::Length { bytes: length });
    }
    let (contributors, destinations) = (packet.contributors.ranges(), packet.destinations.ranges());
    if contributors.len() > RANGES_MAX || destinations.len() > RANGES_MAX {
        return Err(WireError::Parts);
    }
    let header = &packet.header;
    let is_void = packet.format.is_empty() && packet.body.is_empty();
    let is_end = header.void && header.wave == 0;
    if header.void && !is_void || header.is_last() && !is_end || header.wave == Wave::MAX {
        return Err(WireError::Parts);
    }
    if packet.format.len() > DIRECTIVES_MAX {
        return Err(WireError::Format);
    }
    Ok((head, length))
}

/// Writes a packet's head into exactly the room that it takes.
#[inline]
fn write_head(room: &mut [u8], packet: &PacketRef<'_>, length: usize) {
    let (contributors, destinations) = (packet.contributors.ranges(), packet.destinations.ranges());
    let codes = packet.format.codes();
    let mut fixed = [0; HEADER_BYTES];
    let mut put = |at: usize, part: &[u8]| fixed[at..at + part.len()].copy_from_slice(part);
    put(0, &narrow(length).to_le_bytes());
    let (order, number) = order_code(packet.header.order);
    put(4, &[KIND_PACKET, flags_of(packet), codes.len().to_le_bytes()[0], order]);
    put(8, &packet.header.stream.to_le_bytes());
    put(12, &packet.header.tag.to_le_bytes());
    put(16, &packet.header.wave.to_le_bytes());
    put(24, &packet.header.origin.to_le_bytes());
    put(28, &number.to_le_bytes());
    put(32, &narrow(contributors.len()).to_le_bytes());
    put(36, &narrow(destinations.len()).to_le_bytes());
    let (room_for_fixed, mut rest) = room.split_at_mut(HEADER_BYTES);
    room_for_fixed.copy_from_slice(&fixed);
    if let Some(chunk) = packet.chunk {
        let (part, after) = rest.split_at_mut(CHUNK_PART_BYTES);
        part[..8].copy_from_slice(&chunk.offset.to_le_bytes());
        part[8..].copy_from_slice(&chunk.total.to_le_bytes());
        rest = after;
    }
    if packet.more_waves > 0 {
        let (part, after) = rest.split_at_mut(RUN_PART_BYTES);
        part.copy_from_slice(&u64::from(packet.more_waves).to_le_bytes());
        rest = after;
    }
    let (format, rest) = rest.split_at_mut(padded(codes.len()));
    format.fill(0);
    format[..codes.len()].copy_from_slice(codes);
    let (first, second) = rest.split_at_mut(size_of_val(contributors));
    first.copy_from_slice(bytemuck::cast_slice(contributors));
    second.copy_from_slice(bytemuck::cast_slice(destinations));
}

/// Writes a packet's whole frame. Returns its length.
///
/// # Errors
/// As [`encode_head`].
#[inline]
pub fn encode_packet(out: &mut Slab, packet: &PacketRef<'_>) -> Result<usize, WireError> {
    let (head, length) = check_lengths(packet)?;
    let room = out.grow(length);
    let (head, body) = room.split_at_mut(head);
    write_head(head, packet, length);
    body.copy_from_slice(packet.body);
    Ok(length)
}

/// Adds the values of the next wave to a frame that was written last, at `start`, by
/// [`encode_packet`]; `waves` is how many it holds. Gives how many bytes the frame has grown. The
/// caller sees to it that everything but the wave and the values is the same, that [`may_run`]
/// allows it and that [`run_waves_max`] is kept.
#[inline]
pub fn extend_run(out: &mut Slab, start: usize, waves: u32, body: &[u8]) -> usize {
    let is_first = waves == 1;
    let grown = body.len() + if is_first { RUN_PART_BYTES } else { 0 };
    let end = out.len() - start;
    out.grow(grown);
    let frame = &mut out.as_mut_bytes()[start..];
    if is_first {
        frame.copy_within(HEADER_BYTES..end, HEADER_BYTES + RUN_PART_BYTES);
        frame[5] |= FLAG_RUN;
    }
    let at = end + grown - body.len();
    frame[at..].copy_from_slice(body);
    frame[..4].copy_from_slice(&narrow(end + grown).to_le_bytes());
    frame[HEADER_BYTES..HEADER_BYTES + RUN_PART_BYTES]
        .copy_from_slice(&u64::from(waves).to_le_bytes());
    grown
}

fn flags_of(packet: &PacketRef<'_>) -> u8 {
    let header = &packet.header;
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    flag(header.filtered, FLAG_FILTERED)
        | flag(header.ends_wave, FLAG_ENDS_WAVE)
        | flag(header.late, FLAG_LATE)
        | flag(packet.chunk.is_some(), FLAG_CHUNK)
        | flag(header.void, FLAG_VOID)
        | flag(packet.more_waves > 0, FLAG_RUN)
}

/// Lengths here are below [`FRAME_BYTES_MAX`], which fits.
#[allow(clippy::cast_possible_truncation)]
const fn narrow(length: usize) -> u32 {
    length as u32
}

/// Writes a control message's frame.
///
/// # Errors
/// [`WireError::Length`] when it is longer than [`CONTROL_BYTES_MAX`].
pub fn encode_control(out: &mut Slab, control: &Control) -> Result<usize, WireError> {
    let message: Vec<u8> = postcard::to_allocvec(control).map_err(|_| WireError::Control)?;
    let length = padded(PREFIX_BYTES + message.len());
    if length > CONTROL_BYTES_MAX {
        return Err(WireError::Length { bytes: length });
    }
    out.extend(&narrow(length).to_le_bytes());
    out.extend(&[KIND_CONTROL, 0, 0, 0]);
    out.extend(&message);
    out.pad();
    Ok(length)
}
