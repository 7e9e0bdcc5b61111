//! The filter `trace-waits`: what several leaves have gathered becomes one packet.

use alloc::boxed::Box;
use alloc::format;

use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef};
use sapwood_packet::ValuesRef;

use crate::frozen_codec::{self, TRACE_FREEZE};
use crate::scope_figures::{self, TRACE_SCOPE};
use crate::standing_codec::{self, TRACE_STANDING};
use crate::{Gathered, TraceError};

/// The filter's name.
pub const TRACE_WAITS: &str = "trace-waits";

/// Adds this filter and those for where ranks stand, for frozen events and for scopes to those that
/// a process can make. But for the last one they take no parameters; packets of this one are
/// [`Gathered::encode`]d on their way in and out.
#[must_use]
pub fn register(registry: Registry) -> Registry {
    let registry = registry.with(TRACE_WAITS, make).with(TRACE_STANDING, standing_codec::make);
    registry.with(TRACE_FREEZE, frozen_codec::make).with(TRACE_SCOPE, scope_figures::make)
}

fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(TraceWaits))
    } else {
        Err(FilterError::Parameters { name: TRACE_WAITS, takes: "no parameters" })
    }
}

struct TraceWaits;

impl Filter for TraceWaits {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        if others.is_empty() {
            out.emit_encoded(first.header.tag, first.values());
            return Ok(());
        }
        let mut gathered = Gathered::decode(first.values()).map_err(failed)?;
        for other in others {
            gathered.merge(Gathered::decode(other.values()).map_err(failed)?);
        }
        gathered.bound();
        out.emit(first.header.tag, gathered.encode());
        Ok(())
    }
}

#[cold]
fn failed(error: TraceError) -> FilterError {
    FilterError::Failed(format!("filter '{TRACE_WAITS}': {error}"))
}
