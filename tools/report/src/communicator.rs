//! What communicators are called.

use sapwood_packet::RankSet;
use sapwood_trace::{ENDING, FILES, Place, Standing, Standpoint, WINDOWS};

use crate::text::{cut_in_the_middle, unnamed};

/// Characters for the members of a communicator without a name, at most.
const MEMBERS_MAX: usize = 24;
/// Characters for a name, at most. MPI keeps no longer one of a communicator; that of a file is its
/// path, which may be.
const NAME_MAX: usize = 128;

/// A name as it stands in a line: of a long one both ends are told, as of long sets of members.
fn shown(name: &str) -> String {
    cut_in_the_middle(&crate::printable(name), NAME_MAX)
}

/// What a communicator of as many processes is called where ranks have waited.
pub(crate) fn place_name(standing: &Standing, space: u64, size: u32) -> String {
    let is_known = standing.names.contains_key(&space) || standing.members(space).next().is_some();
    match is_known {
        true => communicator_name(standing, space),
        false => format!("{} of {size} ranks", unnamed(space)),
    }
}

/// What the communicator of a place is called. Of a place that stands for files or windows it is
/// the one on which all ranks are that are in the call, if it has a name.
pub(crate) fn name_at(standing: &Standing, place: &Place) -> String {
    let shared = match place.space {
        FILES | WINDOWS => shared_name(standing, place),
        _ => None,
    };
    shared.unwrap_or_else(|| communicator_name(standing, place.space))
}

fn shared_name(standing: &Standing, place: &Place) -> Option<String> {
    let calls = standing.postures.values().filter_map(|posture| posture.call);
    let is_here = |call: &Standpoint| (call.kind, call.function) == (place.kind, place.function);
    let mut spaces = calls.filter(is_here).map(|call| call.space);
    let first = spaces.next()?;
    let is_same = spaces.all(|space| space == first);
    standing.names.get(&first).filter(|_| is_same).map(|name| shown(name))
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
        return shown(name);
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

#[cfg(test)]
mod tests {
    use sapwood_trace::{CallKind, Posture};

    use super::*;

    #[test]
    fn a_file_is_named_where_all_ranks_in_the_call_are_on_it() {
        let place = Place { space: FILES, function: 7, kind: CallKind::File, ..Place::default() };
        let posture = |space| {
            let call =
                Standpoint { function: 7, kind: CallKind::File, space, ..Standpoint::default() };
            Posture { call: Some(call), ..Posture::default() }
        };
        let mut standing = Standing { world_size: 3, ..Standing::default() };
        standing.add_name(90, "out.dat".to_owned());
        standing.postures.insert(0, posture(90));
        standing.postures.insert(1, posture(90));
        standing.postures.insert(2, Posture::default());
        assert_eq!(name_at(&standing, &place), "out.dat");
        standing.postures.insert(2, posture(91));
        assert_eq!(name_at(&standing, &place), "a file", "they are on two");
        standing.postures.clear();
        assert_eq!(name_at(&standing, &place), "a file");
    }

    #[test]
    fn of_a_long_path_both_ends_are_told_as_of_many_members() {
        let mut standing = Standing { world_size: 1, ..Standing::default() };
        standing.add_name(90, format!("/scratch/{}/out.dat", "x".repeat(4000)));
        standing.add_name(91, "y".repeat(NAME_MAX));
        let name = communicator_name(&standing, 90);
        assert_eq!(name.chars().count(), NAME_MAX);
        assert!(name.starts_with("/scratch/x") && name.ends_with("x/out.dat"), "{name}");
        assert!(name.contains('~'), "{name}");
        assert_eq!(communicator_name(&standing, 91), "y".repeat(NAME_MAX), "it has room");
    }
}
