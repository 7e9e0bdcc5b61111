//! How the ranks' time is divided between MPI and computing, in words.

use sapwood_profile::{Figure, Figures, Load};

use crate::quantity;

/// The share of MPI, how threads are counted in it where ranks have several, and the efficiencies.
pub(crate) fn lines(load: &Load, figures: &Figures) -> Vec<String> {
    let share = |ppm: f64| quantity::percent(Some(ppm / 1e6));
    let (least, most) = (load.mpi_ppm.min() as f64, load.mpi_ppm.max() as f64);
    let mut lines = vec![format!(
        "MPI takes {} of the time, mean of ranks; {} (rank {}) to {} (rank {})",
        share(load.mpi_ppm.mean()),
        share(least),
        load.mpi_ppm.min_rank(),
        share(most),
        load.mpi_ppm.max_rank(),
    )];
    lines.extend(threads_line(figures));
    let percent = |part: f64| quantity::percent(Some(part));
    lines.extend(load.efficiency().map(|efficiency| {
        format!(
            "parallel efficiency {} = load balance {} x communication efficiency {}",
            percent(efficiency.parallel),
            percent(efficiency.load_balance),
            percent(efficiency.communication),
        )
    }));
    lines
}

/// How many threads of a rank at a time are asked whether they are in MPI.
const ASKED_THREADS_MAX: u64 = 16;

/// How several threads of a rank are counted; none where no rank has several that call MPI.
fn threads_line(figures: &Figures) -> Option<String> {
    let threads = figures.get(&Figure::MpiThreads)?;
    let (count, most) = (threads.ranks(), threads.max());
    let ranks = if count == 1 { "rank calls" } else { "ranks call" };
    let unasked = match most > ASKED_THREADS_MAX {
        true => format!(
            "; only {ASKED_THREADS_MAX} threads of a rank are asked, so that MPI's share is an \
             upper bound"
        ),
        false => String::new(),
    };
    Some(format!(
        "{count} {ranks} MPI in several threads, up to {most} (rank {}): in MPI only while all of \
         these are{unasked}",
        threads.max_rank(),
    ))
}

/// A line of the interval since the round before; none where no rank had time in it.
pub(crate) fn interval_line(load: &Load) -> Option<String> {
    let percent = |part: f64| quantity::percent(Some(part));
    let efficiency = load.efficiency()?;
    Some(format!(
        "this interval: MPI {}, parallel efficiency {} = {} x {}",
        percent(load.mpi_ppm.mean() / 1e6),
        percent(efficiency.parallel),
        percent(efficiency.load_balance),
        percent(efficiency.communication),
    ))
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{RankProfile, Round, TimeShare};

    use super::*;

    fn told(threads: &[u64]) -> Vec<String> {
        let mut round = Round::new(8);
        for (rank, &threads) in (0..).zip(threads) {
            let figures = (threads > 1).then_some((Figure::MpiThreads, threads));
            let profile = RankProfile {
                time: TimeShare { wall_ns: 100, mpi_ns: 30 },
                figures: figures.into_iter().collect(),
                ..RankProfile::new(rank, 8)
            };
            round.add(&profile).expect("every rank once");
        }
        lines(round.load().expect("they have run"), round.figures())
    }

    #[test]
    fn how_threads_are_counted_is_said_where_a_rank_has_several() {
        assert_eq!(told(&[1, 1]).len(), 2);
        let [_, threads, _] = &told(&[1, 4, 2])[..] else { panic!("three lines") };
        let expected = "2 ranks call MPI in several threads, up to 4 (rank 1): in MPI only while \
                        all of these are";
        assert_eq!(threads, expected);
    }

    #[test]
    fn of_more_threads_than_are_asked_the_share_of_mpi_is_said_to_be_a_bound() {
        let bound = |threads: u64| told(&[threads])[1].ends_with("MPI's share is an upper bound");
        assert!(bound(17) && !bound(16));
    }
}
