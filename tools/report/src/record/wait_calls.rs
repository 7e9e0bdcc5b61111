//! The time that ranks have lost in collectives, by function and communicator.

use sapwood_packet::Rank;
use sapwood_trace::{Findings, PlaceFigures, Standing};
use serde::{Deserialize, Serialize};

use crate::lost_places::{LostPlace, lost_places};

/// Calls in a record, those in which most was lost first.
const CALLS_MAX: usize = 64;

/// A function on a communicator in which ranks have waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitCall {
    /// The function.
    pub function: String,
    /// What the communicator is called.
    pub communicator: String,
    /// Processes of it.
    pub size: u32,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// How long ranks have waited here for others, all together.
    pub lost_ns: u64,
    /// The rank for which they waited longest.
    pub late_rank: Rank,
    /// Collectives in which the others waited for it.
    pub times_last: u64,
    /// How long they did, all together.
    pub late_ns: u64,
}

/// Where ranks have waited in collectives, most time first.
pub(super) fn wait_calls(findings: &Findings, standing: Option<&Standing>) -> Vec<WaitCall> {
    let unknown = Standing::default();
    let standing = standing.unwrap_or(&unknown);
    let call = |place: LostPlace<'_>| {
        let one = place.figures;
        let (late_rank, late_ns) = latest(one);
        WaitCall {
            function: place.function,
            communicator: place.communicator,
            size: one.size,
            collectives: one.collectives,
            lost_ns: one.lost_ns(),
            late_rank,
            times_last: one.late.get(&late_rank).map_or(0, |late| late.last),
            late_ns,
        }
    };
    lost_places(findings, standing, CALLS_MAX).into_iter().map(call).collect()
}

/// The rank for which others have waited longest, and for how long: the lowest of several.
fn latest(place: &PlaceFigures) -> (Rank, u64) {
    let mut longest = (0, 0);
    let mut at = (0, 0_u64);
    // They come in the order of the ranks that were waited for.
    for (&(rank, _), one) in &place.waits {
        let before = if at.0 == rank { at.1 } else { 0 };
        at = (rank, before.saturating_add(one.wait_ns));
        if at.1 > longest.1 {
            longest = at;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::{MESSAGES, PlaceWaits};

    use super::*;
    use crate::lost_places::OTHER_PLACES;

    fn place(waits: &[((Rank, Rank), u64)]) -> PlaceFigures {
        let mut place = PlaceFigures { size: 3, collectives: 9, ..PlaceFigures::default() };
        for &(key, wait_ns) in waits {
            place.waits.insert(key, PlaceWaits { calls: 1, wait_ns });
            place.late.entry(key.0).or_default().add(wait_ns);
        }
        place
    }

    #[test]
    fn calls_come_by_lost_time_with_the_rank_that_was_waited_for_most() {
        let barrier = Function::named("MPI_Barrier").expect("every MPI has it").id;
        let mut found = Findings::default();
        found.places.insert((77, barrier), place(&[((0, 1), 30), ((2, 0), 20), ((2, 1), 20)]));
        found.places.insert((78, barrier), place(&[((1, 0), 500)]));
        found.places.insert((79, barrier), place(&[]));
        found.places.insert(MESSAGES, place(&[((1, 0), 9_000)]));
        let mut standing = Standing::default();
        standing.names.insert(78, "high".to_owned());
        let calls = wait_calls(&found, Some(&standing));
        let told: Vec<_> =
            calls.iter().map(|one| (one.lost_ns, one.late_rank, one.late_ns)).collect();
        assert_eq!(told, [(500, 1, 500), (70, 2, 40)]);
        assert_eq!(calls[0].communicator, "high");
        assert_eq!(calls[1].communicator, "communicator #004d of 3 ranks");
        assert_eq!(calls[1].function, "MPI_Barrier");
    }

    #[test]
    fn places_without_room_are_told_together() {
        let mut found = Findings::default();
        found.places.insert(OTHER_PLACES, place(&[((1, 0), 500)]));
        assert_eq!(wait_calls(&found, None)[0].function, "others");
    }
}
