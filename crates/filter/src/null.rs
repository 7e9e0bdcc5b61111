//! `null`, also `pass`: every packet of the wave travels on as it came.

use alloc::boxed::Box;

use sapwood_packet::ValuesRef;

use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

struct Null;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters("null", parameters)?;
    Ok(Box::new(Null))
}

/// Emits all packets of a wave.
pub(crate) fn pass(wave: &WaveRef<'_>, out: &mut Emitter) {
    for packet in wave.packets {
        out.emit_encoded(packet.header.tag, packet.values());
    }
}

impl Filter for Null {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        pass(wave, out);
        Ok(())
    }

    fn is_pass(&self) -> bool {
        true
    }
}
