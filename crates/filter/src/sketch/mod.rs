//! Sketches: summaries of many numbers or strings that are small, can be merged in any order, and
//! say how far they may be from the truth.
//!
//! A [`Sketch`] is made of what back-ends send; [`SketchFilter`] is the filter around it. A packet
//! is either *raw*, one value (a number, a string, or an array of them) that the first process
//! above the back-end adds to a sketch, or a sketch already, of the filter below or of a back-end
//! that made one with the library's type. The two are distinguished by the format: no sketch is
//! encoded as one value alone, so a back-end need not know which the stream expects.
//!
//! Whatever the tree's shape, a sketch keeps its bound: each file says what is the same in every
//! order (mostly all of it) and what is not. Bytes from outside are checked when they are decoded,
//! and a sketch never takes more memory than a small multiple of the packets that it is made of.

use alloc::boxed::Box;
use alloc::format;

use sapwood_packet::{Directive, ElementType, FormatRef, IntoValues, PacketRef, Shape, ValuesRef};

use crate::{Emitter, Filter, FilterError, WaveRef};

mod any;
pub(crate) mod distinct;
mod hash;
pub(crate) mod heavy_hitters;
pub(crate) mod histogram;
mod item;
pub(crate) mod kll;
mod parameter;
pub(crate) mod prefix_tree;
pub(crate) mod quantiles;
mod rank_sets;
mod raw;
pub(crate) mod top;
pub(crate) mod union;

pub use any::AnySketch;
pub use distinct::Distinct;
pub use heavy_hitters::{HeavyHitters, Hitter};
pub use histogram::{Histogram, HistogramBin};
pub use item::Item;
pub use kll::Kll;
pub use prefix_tree::{PrefixNode, PrefixTree};
pub use quantiles::Quantiles;
pub use top::{TopEntry, TopK, TopNumber};
pub use union::{ItemSet, SET_BYTES_MAX};

/// What a type must do to be the sketch of a filter.
trait Sketch: IntoValues + Sized {
    /// The filter's name.
    const NAME: &'static str;
    /// What back-ends may send.
    const TAKES: &'static str;
    /// The filter's parameters, read.
    type Parameters: Send + 'static;

    /// Reads the filter's parameters.
    fn parameters(values: ValuesRef<'_>) -> Result<Self::Parameters, FilterError>;

    /// The sketch of nothing, at the node and in the wave at hand.
    fn begin(parameters: &Self::Parameters, wave: &WaveRef<'_>) -> Self;

    /// Whether a format is that of an encoded sketch.
    fn is_layout(format: FormatRef<'_>) -> bool;

    /// Whether a format is one of what back-ends may send.
    fn is_raw(format: FormatRef<'_>) -> bool;

    /// Adds what a back-end sent.
    fn add_raw(&mut self, packet: &PacketRef<'_>) -> Result<(), FilterError>;

    /// Reads an encoded sketch, trusting nothing.
    fn decode(values: ValuesRef<'_>) -> Result<Self, FilterError>;

    /// Takes in another sketch, whose memory may be used.
    fn absorb(&mut self, other: Self) -> Result<(), FilterError>;

    /// [`Sketch::decode`] behind a check of the format, for the public types.
    fn read(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        if Self::is_layout(values.format()) {
            Self::decode(values)
        } else {
            Err(FilterError::format(Self::NAME, "its own sketch to be read", values.format()))
        }
    }
}

/// The filter around a sketch: every wave becomes one packet, the sketch of all that is in it.
struct SketchFilter<S: Sketch> {
    parameters: S::Parameters,
}

/// Makes the filter of a sketch.
fn make<S: Sketch + 'static>(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(SketchFilter::<S> { parameters: S::parameters(parameters)? }))
}

impl<S: Sketch> Filter for SketchFilter<S> {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut sketch = S::begin(&self.parameters, wave);
        for packet in wave.packets {
            if S::is_layout(packet.format) {
                sketch.absorb(S::decode(packet.values())?)?;
            } else if S::is_raw(packet.format) {
                sketch.add_raw(packet)?;
            } else {
                return Err(FilterError::format(S::NAME, S::TAKES, packet.format));
            }
        }
        out.emit(first.header.tag, sketch);
        Ok(())
    }
}

/// One number of a layout.
const fn scalar(element: ElementType) -> Directive {
    Directive::new(element, Shape::Scalar)
}

/// One array of a layout.
const fn array(element: ElementType) -> Directive {
    Directive::new(element, Shape::Array)
}

/// Whether a format is that layout.
fn is_same(format: FormatRef<'_>, layout: &[Directive]) -> bool {
    format.len() == layout.len() && format.directives().eq(layout.iter().copied())
}

/// A filter's own reason.
#[cold]
fn failed(name: &str, reason: &str) -> FilterError {
    FilterError::Failed(format!("filter '{name}': {reason}"))
}

/// An encoded sketch that no sketch is encoded as.
#[cold]
fn forged(name: &str, what: &str) -> FilterError {
    failed(name, &format!("a sketch has {what}; it was not made by this filter or its type"))
}

/// Two sketches that cannot be merged.
#[cold]
fn unlike(name: &str, what: &str) -> FilterError {
    failed(
        name,
        &format!("a sketch with {what} arrived; make it with the parameters of the stream"),
    )
}
