//! Many rank sets beside one another: how they are encoded, and how two are united at the cost of
//! their ranges.

use alloc::vec::Vec;

use sapwood_packet::{RankRange, RankSet, RankSetRef, ValuesRef};

use crate::FilterError;

use super::{failed, forged};

/// Most ranges of ranks of all sets of a sketch together: 32 MiB. A back-end's own packet has one.
pub(super) const RANGES_MAX: usize = 1 << 22;

/// The sets of a sketch would take more than [`RANGES_MAX`].
#[cold]
pub(super) fn too_scattered(name: &str) -> FilterError {
    failed(name, "the ranks are scattered over more than 2^22 ranges; ask for less")
}

/// Adds the ranks of another set. [`RankSet::union_with`] moves what lies behind each range that it
/// inserts; sets that interleave are walked side by side instead.
pub(super) fn unite(ranks: &mut RankSet, other: RankSetRef<'_>) {
    let (Some(first), mine) = (other.first(), ranks.as_ref()) else { return };
    if mine.last().is_none_or(|last| last < first) || other.ranges().len() == 1 {
        ranks.union_with(other);
        return;
    }
    if mine == other {
        return;
    }
    let mut united = RankSet::new();
    let (mut mine, mut theirs) =
        (mine.ranges().iter().peekable(), other.ranges().iter().peekable());
    loop {
        let next = match (mine.peek(), theirs.peek()) {
            (Some(a), Some(b)) if a[0] <= b[0] => mine.next(),
            (Some(_), None) => mine.next(),
            (_, Some(_)) => theirs.next(),
            (None, None) => break,
        };
        // Ranges come in the order of their first ranks, which appends each in O(1).
        if let Some(&[first, last]) = next {
            united.insert_range(first, last);
        }
    }
    *ranks = united;
}

/// Rank sets as they lie in a packet: how many ranges each has, and all ranges.
pub(super) struct EncodedSets<'a> {
    counts: &'a [u32],
    rest: &'a [RankRange],
    at: usize,
    name: &'static str,
}

impl<'a> EncodedSets<'a> {
    /// The sets whose two columns begin at that value, of a sketch that has `sets` of them.
    pub(super) fn read(
        name: &'static str,
        values: ValuesRef<'a>,
        first: usize,
        sets: usize,
    ) -> Result<Self, FilterError> {
        let counts = values.array::<u32>(first)?;
        let ranges = bytemuck::try_cast_slice::<u32, RankRange>(values.array(first + 1)?);
        let rest = ranges.map_err(|_| forged(name, "half a range of ranks"))?;
        let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        if counts.len() != sets || total != rest.len() as u64 {
            return Err(forged(name, "other numbers of rank sets and ranges than it says"));
        }
        Ok(Self { counts, rest, at: 0, name })
    }

    /// The next set.
    pub(super) fn next(&mut self) -> Result<RankSetRef<'a>, FilterError> {
        let fewer = || forged(self.name, "fewer ranges than it says");
        let count = *self.counts.get(self.at).ok_or_else(fewer)?;
        let (mine, rest) = self.rest.split_at_checked(count as usize).ok_or_else(fewer)?;
        (self.at, self.rest) = (self.at + 1, rest);
        Ok(RankSetRef::from_ranges(mine)?)
    }
}

/// The two columns of rank sets: counts of ranges, and first and last rank of every range.
pub(super) fn columns<'a>(sets: impl Iterator<Item = RankSetRef<'a>>) -> (Vec<u32>, Vec<u32>) {
    let (mut counts, mut ranges) = (Vec::new(), Vec::new());
    for set in sets {
        // A packet with 2^32 ranges would be longer than any that can be sent.
        counts.push(set.ranges().len() as u32);
        ranges.extend_from_slice(bytemuck::cast_slice(set.ranges()));
    }
    (counts, ranges)
}

#[cfg(test)]
mod tests {
    use sapwood_packet::RankSet;

    use super::unite;

    #[test]
    fn sets_that_interleave_touch_and_overlap_are_united() {
        let cases = [
            ("", "3", "3"),
            ("0-2", "3,5", "0-3,5"),
            ("0,4,8", "2,6", "0,2,4,6,8"),
            ("0-9,20", "5-15,19", "0-15,19-20"),
            ("5,7", "0-1,6,8", "0-1,5-8"),
        ];
        for (mine, other, both) in cases {
            let [mut mine, other, both] =
                [mine, other, both].map(|text| text.parse::<RankSet>().expect("ranks"));
            unite(&mut mine, other.as_ref());
            assert_eq!(mine, both);
        }
    }
}
