//! What the packets of rounds and of rows have in common: rank sets and wide integers as arrays,
//! and the check of a packet's format.

use alloc::string::ToString;
use alloc::vec::Vec;

use sapwood_packet::{
    Directive, ElementType, FormatRef, IndexedValues, PacketError, RankRange, RankSet, RankSetRef,
    Shape, Slab, Values, ValuesRef,
};

use crate::ProfileError;

pub(crate) const WORD: Directive = Directive::new(ElementType::Uint32, Shape::Scalar);
pub(crate) const LONG: Directive = Directive::new(ElementType::Uint64, Shape::Scalar);
pub(crate) const BYTES: Directive = Directive::new(ElementType::Uint8, Shape::Array);
pub(crate) const WORDS: Directive = Directive::new(ElementType::Uint32, Shape::Array);
pub(crate) const LONGS: Directive = Directive::new(ElementType::Uint64, Shape::Array);
pub(crate) const NAMES: Directive = Directive::new(ElementType::String, Shape::Array);

/// Refuses a packet that is of another format, or of another version of this one.
pub(crate) fn check_format(
    values: &IndexedValues<'_>,
    layout: &[Directive],
    version: u32,
    wanted: &'static str,
) -> Result<(), ProfileError> {
    let fits = values.format().directives().eq(layout.iter().copied());
    if !fits || values.scalar::<u32>(0)? != version {
        return Err(ProfileError::Format { wanted, format: values.format().to_string() });
    }
    Ok(())
}

/// Adds a rank set as the first and last ranks of its ranges, in turn.
pub(crate) fn push_ranks(values: Values, ranks: &RankSet) -> Values {
    values.array(bytemuck::cast_slice::<RankRange, u32>(ranks.as_ref().ranges()))
}

/// Reads a rank set.
pub(crate) fn ranks(values: &IndexedValues<'_>, index: usize) -> Result<RankSet, ProfileError> {
    ranks_of(values.array(index)?)
}

/// Reads a rank set out of the first and last ranks of its ranges.
pub(crate) fn ranks_of(words: &[u32]) -> Result<RankSet, ProfileError> {
    let ranges = bytemuck::try_cast_slice(words).map_err(|_| PacketError::RankOrder)?;
    Ok(RankSetRef::from_ranges(ranges)?.to_set())
}

/// Adds 128-bit integers as their low halves and their high halves, which are left out when all are
/// 0.
pub(crate) fn push_wide(values: Values, wide: &[u128]) -> Values {
    #[allow(clippy::cast_possible_truncation, reason = "the low half is what is taken")]
    let lows: Vec<u64> = wide.iter().map(|&number| number as u64).collect();
    #[allow(clippy::cast_possible_truncation, reason = "a high half has 64 bits")]
    let mut highs: Vec<u64> = wide.iter().map(|&number| (number >> 64) as u64).collect();
    if highs.iter().all(|&high| high == 0) {
        highs.clear();
    }
    values.array(&lows).array(&highs)
}

/// Adds values inside of values, as strings of their bytes.
pub(crate) fn push_embedded(values: Values, parts: Vec<Values>) -> Values {
    let bodies: Vec<_> = parts.into_iter().map(|part| part.into_parts().1).collect();
    values.strings(&bodies.iter().map(|body| body.as_bytes()).collect::<Vec<_>>())
}

/// Reads as many values of one format that lie inside of values.
pub(crate) fn embedded<T>(
    values: &IndexedValues<'_>,
    index: usize,
    count: usize,
    format: FormatRef<'_>,
    read: impl Fn(ValuesRef<'_>) -> Result<T, ProfileError>,
) -> Result<Vec<T>, ProfileError> {
    let bodies = values.strings(index)?.map(|bytes| {
        // Where numbers may be read in place.
        let body = Slab::copy_of(bytes);
        read(ValuesRef::parse(format, body.as_bytes())?)
    });
    let parts = bodies.collect::<Result<Vec<T>, ProfileError>>()?;
    if parts.len() == count {
        Ok(parts)
    } else {
        Err(ProfileError::Contradiction { what: "lengths" })
    }
}

/// 128-bit integers where they lie.
#[derive(Clone, Copy)]
pub(crate) struct Wide<'a> {
    lows: &'a [u64],
    highs: &'a [u64],
}

impl<'a> Wide<'a> {
    /// Reads as many as `count`.
    pub(crate) fn read(
        values: &IndexedValues<'a>,
        index: usize,
        count: usize,
    ) -> Result<Self, ProfileError> {
        let wide = Self { lows: values.array(index)?, highs: values.array(index + 1)? };
        let fits = wide.lows.len() == count && [0, count].contains(&wide.highs.len());
        if fits { Ok(wide) } else { Err(ProfileError::Contradiction { what: "lengths" }) }
    }

    /// One of them, by an index below the count.
    pub(crate) fn at(self, index: usize) -> u128 {
        let high = self.highs.get(index).copied().unwrap_or(0);
        u128::from(high) << 64 | u128::from(self.lows[index])
    }
}

/// Reads an array of exactly `count` elements.
pub(crate) fn column<'a, T: sapwood_packet::Element>(
    values: &IndexedValues<'a>,
    index: usize,
    count: usize,
) -> Result<&'a [T], ProfileError> {
    let column = values.array::<T>(index)?;
    if column.len() == count {
        Ok(column)
    } else {
        Err(ProfileError::Contradiction { what: "lengths" })
    }
}
