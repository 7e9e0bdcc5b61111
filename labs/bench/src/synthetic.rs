//! Synthetic MPI ranks: profiles that are made from numbers instead of being counted.
//!
//! A rank's profile at a round follows from its rank alone, so that what comes up a tree can be
//! compared with what every rank must have. Ranks play roles: one coordinates, some do input and
//! output, the others compute, inside or at the edge; a part of the events is of one role only.

use sapwood::Rank;
use sapwood_profile::{Counters, EventKey, Function, RankProfile, SizeClass, TimeShare};

/// Of this number of events one belongs to the role of the rank.
const ROLE_SHARE: u32 = 10;
/// Of this number of ranks one does input and output.
const IO_SHARE: Rank = 16;
/// Of this number of ranks one is at the edge.
const EDGE_SHARE: Rank = 5;
/// Ranks on one host.
const RANKS_PER_HOST: Rank = 64;

/// What a rank does in its program.
#[must_use]
pub const fn role(rank: Rank) -> &'static str {
    match rank {
        0 => "coordinator",
        _ if rank % IO_SHARE == 1 => "io",
        _ if rank.is_multiple_of(EDGE_SHARE) => "edge",
        _ => "interior",
    }
}

/// A number that looks random and follows from these two.
const fn scattered(rank: Rank, place: u64) -> u64 {
    let mixed = ((rank as u64) << 32 ^ place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}

/// The event of a number from 0 to the number of events, for a role.
fn event(number: u32, events: u32, role: &str) -> EventKey {
    let functions = Function::all();
    let of_role = events / ROLE_SHARE;
    if number < of_role {
        return EventKey::Region(format!("{role}/part{number}"));
    }
    let id = number as usize % 3;
    if id == 0 {
        let size_class = SizeClass::from_code(5).expect("a code of a size class");
        return EventKey::Function { id: functions[number as usize].id, size_class };
    }
    EventKey::Region(format!("phase{}/kernel{number}", number % 7))
}

/// The most events of a rank.
#[must_use]
pub fn events_max() -> u32 {
    u32::try_from(Function::all().len()).unwrap_or(u32::MAX)
}

/// A rank's profile at a round.
#[must_use]
pub fn profile(rank: Rank, world_size: u32, events: u32, round: u64) -> RankProfile {
    let mut profile = RankProfile::new(rank, world_size);
    profile.host = format!("node{}", rank / RANKS_PER_HOST);
    let role = role(rank);
    let keys = (0..events).map(|number| (event(number, events, role), Counters::default()));
    profile.events = keys.collect();
    advance(&mut profile, round);
    profile
}

/// Brings a profile to a round.
pub fn advance(profile: &mut RankProfile, round: u64) {
    let (rank, turns) = (profile.mpi_rank, round + 1);
    for ((event, counters), place) in profile.events.iter_mut().zip(0..) {
        let spread = scattered(rank, place);
        // Around a millisecond; the slowest rank is far from the others.
        let slow = if rank == profile.world_size / 2 { 40 } else { 1 };
        let is_call = matches!(event, EventKey::Function { .. });
        *counters = Counters {
            count: turns * (1 + spread % 10),
            time_ns: turns * slow * (900_000 + spread % 200_000),
            bytes: if is_call { turns * 8 * (spread % 1024) } else { 0 },
        };
    }
    let mpi_ns = turns * (scattered(rank, u64::MAX) % 1_000_000_000);
    profile.time = TimeShare { wall_ns: turns * 1_000_000_000, mpi_ns };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_as_many_events_as_asked_for_and_roles_differ() {
        for events in [20, 50, 150] {
            for rank in [0, 1, 5, 7] {
                assert_eq!(profile(rank, 64, events, 3).events.len(), events as usize);
            }
            let keys = |rank| profile(rank, 64, events, 3).events.into_keys().collect::<Vec<_>>();
            assert_ne!(keys(1), keys(7));
            assert_eq!(keys(7), keys(8));
        }
    }
}
