//! Activities as a part of a round's packet, from one place in it on; `round` draws the whole.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{IndexedValues, RankRange, RankSet, RankSetRef, Values};

use crate::activity::{
    ACTIVITY_KINDS_MAX, Activities, ActivityKind, ActivityStatistics, Condition,
};
use crate::codec::column;
use crate::{ProfileError, REGION_NAME_BYTES_MAX};

const WRONG: ProfileError = ProfileError::Contradiction { what: "activities" };
/// In the byte of a kind's condition: it is long.
const LONG: u8 = 1 << 7;

/// Adds the activities' columns.
pub(crate) fn push(values: Values, activities: &Activities) -> Values {
    let kinds: Vec<&ActivityKind> = activities.kinds.keys().collect();
    let all: Vec<&ActivityStatistics> = activities.kinds.values().collect();
    let functions: Vec<u32> = kinds.iter().map(|kind| kind.function.unwrap_or(0)).collect();
    let condition =
        |kind: &&ActivityKind| kind.condition as u8 | if kind.is_long { LONG } else { 0 };
    let conditions: Vec<u8> = kinds.iter().map(condition).collect();
    let communicators: Vec<&str> = kinds.iter().map(|kind| kind.communicator.as_str()).collect();
    let regions: Vec<&str> = kinds.iter().map(|kind| kind.region.as_str()).collect();
    let mut values = values
        .scalar(u32::from(activities.is_cut))
        .array(&functions)
        .array(&conditions)
        .strings(&communicators)
        .strings(&regions);
    values = push_sets(values, all.iter().map(|one| &one.ranks));
    values = push_sets(values, all.iter().map(|one| &one.peers));
    values
        .array(&all.iter().map(|one| u8::from(one.any_peer)).collect::<Vec<_>>())
        .array(&all.iter().map(|one| one.longest_ns).collect::<Vec<_>>())
        .array(&all.iter().map(|one| one.longest_rank).collect::<Vec<_>>())
        .array(&all.iter().map(|one| one.shortest_ns).collect::<Vec<_>>())
}

/// Adds rank sets: their numbers of ranges, then the ranges of all.
pub(crate) fn push_sets<'a>(values: Values, sets: impl Iterator<Item = &'a RankSet>) -> Values {
    let (mut counts, mut ranges) = (Vec::new(), Vec::<RankRange>::new());
    for set in sets {
        let own = set.as_ref().ranges();
        counts.push(u32::try_from(own.len()).unwrap_or(u32::MAX));
        ranges.extend_from_slice(own);
    }
    values.array(&counts).array(bytemuck::cast_slice::<RankRange, u32>(&ranges))
}

/// Reads the columns from the value of this index on.
pub(crate) fn read(
    values: &IndexedValues<'_>,
    first: usize,
    covered: &RankSet,
) -> Result<Activities, ProfileError> {
    let functions: &[u32] = values.array(first + 1)?;
    let count = functions.len();
    if count > ACTIVITY_KINDS_MAX {
        return Err(WRONG);
    }
    let conditions: &[u8] = column(values, first + 2, count)?;
    let communicators = texts(values, first + 3, count)?;
    let regions = texts(values, first + 4, count)?;
    let ranks = sets(values, first + 5, count)?;
    let peers = sets(values, first + 7, count)?;
    let any_peers: &[u8] = column(values, first + 9, count)?;
    let longest: &[u64] = column(values, first + 10, count)?;
    let longest_ranks: &[u32] = column(values, first + 11, count)?;
    let shortest: &[u64] = column(values, first + 12, count)?;
    let is_cut = match values.scalar::<u32>(first)? {
        0 => false,
        1 => true,
        _ => return Err(WRONG),
    };
    let mut activities = Activities { is_cut, ..Activities::default() };
    let texts = communicators.into_iter().zip(regions);
    let sets = ranks.into_iter().zip(peers);
    for (at, ((communicator, region), (ranks, peers))) in texts.zip(sets).enumerate() {
        let condition = Condition::from_code(conditions[at] & !LONG).ok_or(WRONG)?;
        let function = (functions[at] != 0).then_some(functions[at]);
        let is_long = conditions[at] & LONG != 0;
        let kind = ActivityKind { function, is_long, condition, communicator, region };
        let one = ActivityStatistics {
            ranks,
            peers,
            any_peer: any_peers[at] == 1,
            longest_ns: longest[at],
            longest_rank: longest_ranks[at],
            shortest_ns: shortest[at],
        };
        let is_known = one.ranks.difference(covered.as_ref()).is_empty();
        let is_plausible = one.ranks.contains(one.longest_rank)
            && one.shortest_ns <= one.longest_ns
            && any_peers[at] <= 1;
        let is_sorted = activities.kinds.last_key_value().is_none_or(|(last, _)| *last < kind);
        if !(is_known && is_plausible && is_sorted) {
            return Err(WRONG);
        }
        activities.kinds.insert(kind, one);
    }
    Ok(activities)
}

pub(crate) fn texts(
    values: &IndexedValues<'_>,
    index: usize,
    count: usize,
) -> Result<Vec<String>, ProfileError> {
    let texts = values.strings(index)?.map(|text| {
        let text = core::str::from_utf8(text).ok();
        text.filter(|text| text.len() <= REGION_NAME_BYTES_MAX).map(str::to_owned)
    });
    let texts: Option<Vec<_>> = texts.collect();
    texts.filter(|texts| texts.len() == count).ok_or(WRONG)
}

pub(crate) fn sets(
    values: &IndexedValues<'_>,
    index: usize,
    count: usize,
) -> Result<Vec<RankSet>, ProfileError> {
    let counts: &[u32] = column(values, index, count)?;
    let words: &[u32] = values.array(index + 1)?;
    let mut rest: &[RankRange] = bytemuck::try_cast_slice(words).map_err(|_| WRONG)?;
    let mut sets = Vec::with_capacity(count);
    for &count in counts {
        let (own, others) = rest.split_at_checked(count as usize).ok_or(WRONG)?;
        sets.push(RankSetRef::from_ranges(own)?.to_set());
        rest = others;
    }
    if rest.is_empty() { Ok(sets) } else { Err(WRONG) }
}
