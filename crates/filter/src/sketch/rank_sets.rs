//! Many rank sets beside one another: how many ranges they may have, and how two are united at the
//! cost of those.

use sapwood_packet::{RankSet, RankSetRef};

use crate::FilterError;

use super::failed;

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
        // Ranges are in the order of their first ranks, so that each is appended in O(1).
        if let Some(&[first, last]) = next {
            united.insert_range(first, last);
        }
    }
    *ranks = united;
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
