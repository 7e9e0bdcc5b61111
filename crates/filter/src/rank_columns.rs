//! Rank sets as they lie in a packet: a column with the number of ranges of each, and one with the
//! first and last rank of every range.

use alloc::vec::Vec;

use sapwood_packet::{RankRange, RankSetRef, Slab, ValuesRef};

use crate::FilterError;

/// The error for values that no filter has made.
type Forged = fn(&str) -> FilterError;

/// The sets of a packet, one after another.
pub(crate) struct EncodedSets<'a> {
    counts: &'a [u32],
    rest: &'a [RankRange],
    at: usize,
    forged: Forged,
}

impl<'a> EncodedSets<'a> {
    /// The sets whose two columns begin at that value, of a packet that has `sets` of them.
    pub(crate) fn read(
        values: ValuesRef<'a>,
        first: usize,
        sets: usize,
        forged: Forged,
    ) -> Result<Self, FilterError> {
        let counts = values.array::<u32>(first)?;
        let ranges = bytemuck::try_cast_slice::<u32, RankRange>(values.array(first + 1)?);
        let rest = ranges.map_err(|_| forged("half a range of ranks"))?;
        let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        if counts.len() != sets || total != rest.len() as u64 {
            return Err(forged("other numbers of rank sets and ranges than it says"));
        }
        Ok(Self { counts, rest, at: 0, forged })
    }

    /// The next set.
    pub(crate) fn next(&mut self) -> Result<RankSetRef<'a>, FilterError> {
        let fewer = || (self.forged)("fewer ranges than it says");
        let count = *self.counts.get(self.at).ok_or_else(fewer)?;
        let (mine, rest) = self.rest.split_at_checked(count as usize).ok_or_else(fewer)?;
        (self.at, self.rest) = (self.at + 1, rest);
        Ok(RankSetRef::from_ranges(mine)?)
    }
}

/// The two columns.
pub(crate) fn columns<'a>(sets: impl Iterator<Item = RankSetRef<'a>>) -> (Vec<u32>, Vec<u32>) {
    let (mut counts, mut ranges) = (Vec::new(), Vec::new());
    for set in sets {
        // A packet with 2^32 ranges would be longer than any that can be sent.
        counts.push(set.ranges().len() as u32);
        ranges.extend_from_slice(bytemuck::cast_slice(set.ranges()));
    }
    (counts, ranges)
}

/// Writes the two columns to the end of a packet's values.
pub(crate) fn write<'a>(sets: impl Iterator<Item = RankSetRef<'a>>, bytes: &mut Slab) {
    let (counts, ranges) = columns(sets);
    for column in [counts, ranges] {
        bytes.extend_u64(column.len() as u64);
        bytes.extend(bytemuck::cast_slice(&column));
        bytes.pad();
    }
}

/// Writes a column of strings behind them.
pub(crate) fn write_strings<'a>(
    strings: impl ExactSizeIterator<Item = &'a [u8]>,
    bytes: &mut Slab,
) {
    bytes.extend_u64(strings.len() as u64);
    for string in strings {
        bytes.extend_u64(string.len() as u64);
        bytes.extend(string);
        bytes.pad();
    }
}
