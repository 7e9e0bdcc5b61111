//! What communicators are called.

use sapwood_packet::RankSet;
use sapwood_trace::{ENDING, FILES, Standing, WINDOWS};

use crate::text::{cut_in_the_middle, unnamed};

/// Characters for the members of a communicator without a name, at most.
const MEMBERS_MAX: usize = 24;

/// What a communicator of as many processes is called where ranks have waited.
pub(crate) fn place_name(standing: &Standing, space: u64, size: u32) -> String {
    let is_known = standing.names.contains_key(&space) || standing.members(space).next().is_some();
    match is_known {
        true => communicator_name(standing, space),
        false => format!("{} of {size} ranks", unnamed(space)),
    }
}

/// What a communicator is called.
pub(crate) fn communicator_name(standing: &Standing, space: u64) -> String {
    match space {
        FILES => return "a file".to_owned(),
        WINDOWS => return "a window".to_owned(),
        0 | ENDING => return String::new(),
        _ => {}
    }
    if let Some(name) = standing.names.get(&space) {
        return crate::printable(name);
    }
    let unnamed = unnamed(space);
    let Some((_, seat)) = standing.members(space).next() else { return unnamed };
    let members: RankSet = standing.members(space).map(|(rank, _)| rank).collect();
    if members.len() < seat.size.into() || seat.is_between {
        return format!("{unnamed} of {} ranks", seat.size);
    }
    if seat.size == standing.world_size {
        return format!("{unnamed} of all ranks");
    }
    let ranks = cut_in_the_middle(&members.to_string(), MEMBERS_MAX);
    format!("{unnamed} of {}", crate::ranks_text(&ranks))
}
