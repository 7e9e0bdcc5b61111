//! What happens to the packets of a wave: the [`Filter`] rule, the [`WaveRule`] and the built-in
//! filters, one file each.
//!
//! A filter turns the packets of one wave into packets that travel on ([`Emitter::emit`]) or back
//! ([`Emitter::reply`]). It is made by name from a [`Registry`] in every process that a stream passes,
//! and may keep state from wave to wave. It knows nothing of frames, links or trees.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod error;
mod registry;
mod rule;

pub use error::FilterError;
pub use registry::{FilterSpec, Maker, Registry};
pub use rule::{Emission, Emitter, Filter, Fold, WaveRef, WaveRule};
