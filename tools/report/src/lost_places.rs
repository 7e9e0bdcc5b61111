//! Where ranks have lost time in collectives: the places of a run, named, those with most lost
//! time first.

use std::cmp::Reverse;

use sapwood_trace::{Findings, MESSAGES, PlaceFigures, PlaceKey, Standing};

use crate::communicator::place_name;
use crate::mpi_call::function_name;

/// In the place of a function and a communicator: those that found no room.
pub(crate) const OTHER_PLACES: PlaceKey = (0, 0);

/// A function on a communicator.
pub(crate) struct LostPlace<'a> {
    /// The function; `others` for those that found no room.
    pub(crate) function: String,
    /// What the communicator is called; empty for others.
    pub(crate) communicator: String,
    pub(crate) figures: &'a PlaceFigures,
}

/// The first of them, at most this number.
pub(crate) fn lost_places<'a>(
    findings: &'a Findings,
    standing: &Standing,
    most: usize,
) -> Vec<LostPlace<'a>> {
    let is_lost = |(key, one): &(&PlaceKey, &PlaceFigures)| **key != MESSAGES && one.lost_ns() > 0;
    let mut places: Vec<_> = findings.places.iter().filter(is_lost).collect();
    places.sort_unstable_by_key(|(key, one)| (Reverse(one.lost_ns()), **key));
    places.truncate(most);
    let name = |(&(space, function), figures): (&PlaceKey, &'a PlaceFigures)| {
        let (function, communicator) = match (space, function) {
            OTHER_PLACES => ("others".to_owned(), String::new()),
            _ => (function_name(function), place_name(standing, space, figures.size)),
        };
        LostPlace { function, communicator, figures }
    };
    places.into_iter().map(name).collect()
}
