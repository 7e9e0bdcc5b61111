//! The filter `profile-statistics`: many rounds become one.

use alloc::boxed::Box;
use alloc::format;

use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef};
use sapwood_packet::ValuesRef;

use crate::delta_filter::{self, PROFILE_CHANGES};
use crate::report::{self, RANK_REPORTS};
use crate::{ProfileError, Round, merging};

/// The filter's name.
pub const PROFILE_STATISTICS: &str = "profile-statistics";

/// Adds this filter and the others of this crate to those that a process can make.
///
/// They take no parameters. The packets of this one are rounds ([`Round::encode`]) on their way in
/// and on their way out. A wave in which an MPI rank is covered twice fails: its numbers would
/// count twice. Of rounds of programs of different size those of the largest are taken.
#[must_use]
pub fn register(registry: Registry) -> Registry {
    let registry = registry
        .with(PROFILE_STATISTICS, make)
        .with(PROFILE_CHANGES, delta_filter::make)
        .with(RANK_REPORTS, report::make);
    let registry = merging::register::<crate::Extremes>(registry);
    let registry = merging::register::<crate::Counts>(registry);
    let registry = merging::register::<crate::HistogramSketches>(registry);
    let registry = merging::register::<crate::Classification>(registry);
    let registry = merging::register::<crate::Medians>(registry);
    let registry = merging::register::<crate::Deviations>(registry);
    merging::register::<crate::RankValues>(registry)
}

fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(ProfileStatistics))
    } else {
        Err(FilterError::Parameters { name: PROFILE_STATISTICS, takes: "no parameters" })
    }
}

struct ProfileStatistics;

impl Filter for ProfileStatistics {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        let mut round = Round::decode(first.values()).map_err(failed)?;
        if others.is_empty() {
            out.emit_encoded(first.header.tag, first.values());
            return Ok(());
        }
        for other in others {
            let other = Round::decode(other.values()).map_err(failed)?;
            join(&mut round, other)?;
        }
        out.emit(first.header.tag, round.encode());
        Ok(())
    }
}

/// Takes one more child's round into another one. Of two programs at once, of which no leaf was
/// told which one is watched, it is the larger one, whatever the order.
pub(crate) fn join(round: &mut Round, other: Round) -> Result<(), FilterError> {
    match (round.world_size(), other.world_size()) {
        (ours, theirs @ 1..) if ours != 0 && ours < theirs => *round = other,
        (ours, theirs @ 1..) if ours > theirs => {}
        _ => round.merge(other).map_err(failed)?,
    }
    Ok(())
}

#[cold]
pub(crate) fn failed(error: ProfileError) -> FilterError {
    FilterError::Failed(format!("filter '{PROFILE_STATISTICS}': {error}"))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use sapwood_packet::{Packet, RankSet, Values};

    use super::*;
    use crate::RankProfile;

    fn transform(packets: &[Packet]) -> Result<Round, FilterError> {
        let mut filter = register(Registry::built_in())
            .make(PROFILE_STATISTICS, ValuesRef::default())
            .expect("just registered");
        let packets: alloc::vec::Vec<_> = packets.iter().map(Packet::as_ref).collect();
        let contributors = RankSet::range(0, 1);
        let wave = WaveRef {
            stream: 1,
            wave: 0,
            packets: &packets,
            contributors: contributors.as_ref(),
            rank: 2,
            is_root: true,
            children: 2,
            back_ends: 2,
        };
        let mut out = Emitter::new();
        filter.transform(&wave, &mut out)?;
        let (emission, values) = out.emissions().next().expect("a wave becomes one packet");
        assert_eq!(emission.tag, 100);
        Ok(Round::decode(values).expect("the filter's own packet"))
    }

    fn leaf(mpi_rank: u32) -> Packet {
        let mut round = Round::new(8);
        round.add(&RankProfile::new(mpi_rank, 8)).expect("a new rank");
        Packet::new(1, 100, round.encode())
    }

    #[test]
    fn rounds_of_different_ranks_become_one() {
        let round = transform(&[leaf(5), leaf(1)]).expect("different ranks");
        assert_eq!(round.covered().to_string(), "1,5");
        assert_eq!(round.missing().to_string(), "0,2-4,6-7");
        let alone = transform(&[leaf(5)]).expect("one rank");
        assert_eq!(alone.covered().to_string(), "5");
    }

    #[test]
    fn leaves_without_ranks_do_not_know_the_size_and_of_two_programs_the_larger_is_taken() {
        let empty = || Packet::new(1, 100, Round::new(0).encode());
        let round = transform(&[empty(), leaf(5), empty()]).expect("one program");
        assert_eq!((round.world_size(), round.covered().to_string().as_str()), (8, "5"));
        let mut small = Round::new(2);
        small.add(&RankProfile::new(1, 2)).expect("a new rank");
        let small = || Packet::new(1, 100, small.encode());
        for packets in [[small(), leaf(1)], [leaf(1), small()]] {
            let round = transform(&packets).expect("two programs");
            assert_eq!((round.world_size(), round.covered().to_string().as_str()), (8, "1"));
        }
        let none = transform(&[empty(), empty()]).expect("no program yet");
        assert_eq!(none, Round::new(0));
    }

    #[test]
    fn a_rank_that_came_twice_fails_the_wave() {
        let error = transform(&[leaf(5), leaf(5)]).expect_err("rank 5 twice");
        assert_eq!(
            error.to_string(),
            "filter 'profile-statistics': profile: MPI ranks 5 were reported twice in one round; \
             let each table be read by one leaf only"
        );
    }

    #[test]
    fn other_packets_and_parameters_are_refused() {
        let error = transform(&[Packet::new(1, 100, 7_i32)]).expect_err("no round");
        assert_eq!(
            error.to_string(),
            "filter 'profile-statistics': profile: a packet of format '%d' is no round of profiles"
        );
        let parameters = Values::new().scalar(1_i32);
        let registry = register(Registry::empty());
        assert!(registry.make(PROFILE_STATISTICS, parameters.as_ref()).is_err());
    }
}
