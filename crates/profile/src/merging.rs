//! Filters that merge parts, each of which covers other ranks: many packets become one.

use alloc::boxed::Box;
use alloc::format;
use core::marker::PhantomData;

use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef};
use sapwood_packet::{RankSet, Values, ValuesRef};

use crate::ProfileError;

/// What leaves make of their ranks and the processes above them merge.
///
/// The filter of each is registered by [`crate::register`] and takes no parameters. A wave in which
/// a rank is covered twice fails, since its numbers would count twice.
pub trait Part: Sized + 'static {
    /// The name of its filter.
    const FILTER: &'static str;

    /// The MPI ranks that it sums over.
    fn covered(&self) -> &RankSet;

    /// Takes in what covers other ranks.
    ///
    /// # Errors
    /// When the two are answers to different questions.
    fn absorb(&mut self, other: Self) -> Result<(), ProfileError>;

    /// As the values of a packet.
    #[must_use]
    fn encode(&self) -> Values;

    /// Reads the values of a packet.
    ///
    /// # Errors
    /// [`ProfileError::Format`] when they are another thing, else what is wrong with them.
    fn decode(values: ValuesRef<'_>) -> Result<Self, ProfileError>;

    /// Takes in a part over other ranks.
    ///
    /// # Errors
    /// [`ProfileError::CountedTwice`], or as [`Part::absorb`].
    fn merge(&mut self, other: Self) -> Result<(), ProfileError> {
        if self.covered().as_ref().intersects(other.covered().as_ref()) {
            let mut ranks = self.covered().clone();
            ranks.intersect_with(other.covered().as_ref());
            return Err(ProfileError::CountedTwice { ranks });
        }
        self.absorb(other)
    }
}

/// Adds the filter of these parts.
pub(crate) fn register<P: Part>(registry: Registry) -> Registry {
    registry.with(P::FILTER, make::<P>)
}

fn make<P: Part>(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(Merging::<P>(PhantomData)))
    } else {
        Err(FilterError::Parameters { name: P::FILTER, takes: "no parameters" })
    }
}

struct Merging<P>(PhantomData<fn() -> P>);

impl<P: Part> Filter for Merging<P> {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        let failed =
            |error: ProfileError| FilterError::Failed(format!("filter '{}': {error}", P::FILTER));
        let mut part = P::decode(first.values()).map_err(failed)?;
        if others.is_empty() {
            out.emit_encoded(first.header.tag, first.values());
            return Ok(());
        }
        for other in others {
            part.merge(P::decode(other.values()).map_err(failed)?).map_err(failed)?;
        }
        out.emit(first.header.tag, part.encode());
        Ok(())
    }
}
