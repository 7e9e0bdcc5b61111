//! Ranks that move data in a call on a file, and what others wait for because of that: these go on
//! once the data is there, so that they are not stuck.

use sapwood::RankSet;
use sapwood_trace::{Posture, Presence, Standing, Verdict};

/// Whether ranks may only wait for some that move data: none but these are named, or none is.
pub(super) fn is_for_movers(verdict: &Verdict, standing: &Standing) -> bool {
    let moving = standing.postures.iter().filter(|(_, posture)| moves_data(posture));
    let moving: RankSet = moving.map(|(&rank, _)| rank).collect();
    !moving.is_empty() && verdict.culprits().difference(moving.as_ref()).is_empty()
}

/// Whether a rank moves data in its call. Of one in which a thread computes beside its calls it is
/// told what that thread does.
fn moves_data(posture: &Posture) -> bool {
    posture.call.is_some() && posture.beside_ns > 0 && posture.presence == Presence::Running
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{CallKind, FILES, Finding, Seat, Standpoint};

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const WORLD: u64 = 7;
    const BARRIER: u32 = 1;
    const WRITE: u32 = 2;

    /// A job whose ranks are in these kinds of calls, or in none, each for four seconds.
    fn job(calls: &[Option<CallKind>]) -> Standing {
        let world_size = u32::try_from(calls.len()).expect("a few ranks");
        let mut job = Standing { world_size, ..Standing::default() };
        for (rank, &kind) in (0..).zip(calls) {
            let call = kind.map(|kind| match kind {
                CallKind::Collective => {
                    Standpoint { function: BARRIER, kind, space: WORLD, ..Standpoint::default() }
                }
                _ => Standpoint { function: WRITE, kind, ..Standpoint::default() },
            });
            let presence = if call.is_some() { Presence::Running } else { Presence::Sleeping };
            let posture = Posture { presence, call, for_ns: 4 * SECOND, ..Posture::default() };
            job.postures.insert(rank, posture);
            let seat = Seat { rank, size: world_size, made: 5, ..Seat::default() };
            job.seats.insert((WORLD, rank), seat);
            job.shared.insert((rank, WRITE), (CallKind::File, 1));
        }
        job
    }

    fn set_moving(job: &mut Standing, rank: u32) {
        job.postures.get_mut(&rank).expect("a rank of the job").beside_ns = 4 * SECOND;
    }

    fn verdict(job: &Standing) -> Verdict {
        Verdict::of(job, 2 * SECOND).expect("ranks wait")
    }

    #[test]
    fn ranks_that_wait_for_one_that_writes_are_not_stuck() {
        let (writes, waits) = (Some(CallKind::Other), Some(CallKind::Collective));
        let mut job = job(&[writes, waits, waits]);
        assert!(!is_for_movers(&verdict(&job), &job), "no bytes move");
        set_moving(&mut job, 0);
        assert_eq!(verdict(&job).culprits().to_string(), "0");
        assert!(is_for_movers(&verdict(&job), &job));
        job.postures.get_mut(&0).expect("a rank of the job").presence = Presence::Stopped;
        assert!(!is_for_movers(&verdict(&job), &job), "it is stopped now");
    }

    #[test]
    fn a_rank_that_others_wait_for_beside_one_that_writes_is_named() {
        let (writes, waits) = (Some(CallKind::Other), Some(CallKind::Collective));
        let mut job = job(&[writes, waits, waits, None]);
        set_moving(&mut job, 0);
        assert_eq!(verdict(&job).culprits().to_string(), "0,3");
        assert!(!is_for_movers(&verdict(&job), &job));
    }

    #[test]
    fn ranks_that_write_together_are_stuck_only_if_none_of_them_moves_data() {
        let mut together = job(&[Some(CallKind::File); 3]);
        assert_eq!(verdict(&together).finding, Finding::NoneMissing);
        assert!(!is_for_movers(&verdict(&together), &together));
        set_moving(&mut together, 1);
        assert!(is_for_movers(&verdict(&together), &together));
        let mut missed = job(&[Some(CallKind::File), Some(CallKind::File), None]);
        assert_eq!(verdict(&missed).culprits().to_string(), "2");
        assert_eq!(verdict(&missed).waiting[0].place.space, FILES);
        set_moving(&mut missed, 1);
        assert!(!is_for_movers(&verdict(&missed), &missed));
    }
}
