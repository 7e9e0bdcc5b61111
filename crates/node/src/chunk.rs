//! Large packets cut into chunks, so that the first travels while later ones are still being made.

use sapwood_packet::{Body, Chunk, PacketRef};
use sapwood_wire::limits::CHUNK_BYTES;

/// The chunks of a packet, in order; a small packet is one whole piece.
pub(crate) fn cut<'a>(
    packet: PacketRef<'a>,
    body: &'a Body,
) -> impl Iterator<Item = (PacketRef<'a>, Body)> + 'a {
    let total = body.len();
    let is_cut = total > CHUNK_BYTES;
    (0..total.max(1)).step_by(CHUNK_BYTES).map(move |offset| {
        let length = (total - offset).min(CHUNK_BYTES);
        let mut part = PacketRef { body: &body.as_bytes()[offset..offset + length], ..packet };
        if is_cut {
            part.chunk = Some(Chunk { offset: offset as u64, total: total as u64 });
            part.header.ends_wave = packet.header.ends_wave && offset + length == total;
        }
        (part, body.part(offset, length))
    })
}
