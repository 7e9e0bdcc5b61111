//! Large packets cut into chunks, so that the first travels while later ones are still being made.

use sapwood_packet::{Body, Chunk, PacketRef};

/// The chunks of a packet, in order, each of `chunk_bytes` but the last; a packet that is no longer
/// is one whole piece.
pub fn cut<'a>(
    packet: PacketRef<'a>,
    body: &'a Body,
    chunk_bytes: usize,
) -> impl Iterator<Item = (PacketRef<'a>, Body)> + 'a {
    let total = body.len();
    let is_cut = total > chunk_bytes;
    (0..total.max(1)).step_by(chunk_bytes).map(move |offset| {
        let length = (total - offset).min(chunk_bytes);
        let mut part = PacketRef { body: &body.as_bytes()[offset..offset + length], ..packet };
        if is_cut {
            part.chunk = Some(Chunk { offset: offset as u64, total: total as u64 });
            part.header.ends_wave = packet.header.ends_wave && offset + length == total;
        }
        (part, body.part(offset, length))
    })
}
