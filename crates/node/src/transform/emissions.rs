//! What a chain of filters has made for one wave or packet.

use sapwood_filter::{Emitter, FilterError};
use sapwood_link::SHARED_BODY_BYTES;
use sapwood_packet::{Body, DIRECTIVES_MAX, OutOfMemory, Slab};
use sapwood_wire::limits::PACKET_BYTES_MAX;

/// A copy of a large body, to be shared by those that it goes to; a small one is copied with its
/// frame.
pub(crate) fn shared(body: &[u8]) -> Result<Option<Body>, OutOfMemory> {
    if body.len() < SHARED_BODY_BYTES {
        return Ok(None);
    }
    Slab::try_copy_of(body).map(|slab| Some(Body::from(slab)))
}

/// A packet that exceeds the frame limits fails its wave here. It would be lost on the link
/// otherwise, and the parent would wait for it.
pub(crate) fn check_emissions(out: &Emitter) -> Result<(), FilterError> {
    out.check_memory()?;
    let is_carried = |values: sapwood_packet::ValuesRef<'_>| {
        values.len() <= DIRECTIVES_MAX && values.body().len() as u64 <= PACKET_BYTES_MAX
    };
    if out.emissions().all(|(_, values)| is_carried(values)) {
        return Ok(());
    }
    let reason = alloc::format!(
        "a filter made a packet of more than {DIRECTIVES_MAX} values or {PACKET_BYTES_MAX} bytes"
    );
    Err(FilterError::Failed(reason))
}
