//! A run of 8 ranks, of which some are missing or lost, that every test reports.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::time::Duration;

use sapwood_profile::{
    Activity, ActivityKind, Condition, Counters, EventKey, Function, Peer, RankProfile, RankRows,
    RankState, Round, SizeClass, TimeShare,
};
use sapwood_report::{Missing, Report, Standstills, Tree};

pub fn function(name: &str, size_class: u8) -> EventKey {
    let id = Function::named(name).expect("every MPI has it").id;
    EventKey::Function { id, size_class: SizeClass::from_code(size_class).expect("a size class") }
}

/// One rank of a small solver; the later ranks spend longer in it.
pub fn profile(mpi_rank: u32, state: RankState) -> RankProfile {
    let nth = u64::from(mpi_rank) + 1;
    let counted = |count, time_ns, bytes| Counters { count, time_ns, bytes };
    let mut events = vec![
        (function("MPI_Allreduce", 3), counted(1000, 150_000_000 * nth, 8000)),
        (function("MPI_Send", 3), counted(20 * nth, 1_250_000 * nth, 4096 * nth)),
        (function("MPI_Comm_rank", 3), counted(1, 0, 0)),
        (EventKey::Region("solve\x1b[2J".to_string()), counted(10, 2_000_000_000, 0)),
    ];
    if mpi_rank == 0 {
        events.push((function("MPI_Init", 255), counted(1, 12_345, 0)));
    }
    RankProfile {
        pid: 4000 + mpi_rank,
        state,
        host: format!("node{}", mpi_rank / 4),
        program: "solver".to_string(),
        dropped: u64::from(mpi_rank == 3),
        events: events.into_iter().collect(),
        ..RankProfile::new(mpi_rank, 8)
    }
}

/// What a rank that has not ended in order was inside.
fn waits(rank: u32, state: RankState) -> Option<Activity> {
    let (name, condition) = match state {
        RankState::Running => ("MPI_Allreduce", Condition::Unknown),
        RankState::Lost => ("MPI_Recv", Condition::Lost),
        RankState::Finalized | RankState::Exited => return None,
    };
    let kind = ActivityKind {
        function: Function::named(name).map(|function| function.id),
        is_long: true,
        condition,
        communicator: "MPI_COMM_WORLD".to_string(),
        region: "solve".to_string(),
    };
    Some(Activity { kind, peer: Peer::None, for_ns: 2_000_000_000 + u64::from(rank) })
}

/// What is reported: ranks 0 to 5 came, 5 was lost, 6 and 7 are missing.
pub fn report() -> Report {
    let state = |rank| if rank == 5 { RankState::Lost } else { RankState::Finalized };
    let profiles: Vec<_> = (0..6).map(|rank| profile(rank, state(rank))).collect();
    let round = |state: &dyn Fn(u32) -> RankState| {
        let mut round = Round::new(8);
        for rank in 0..6 {
            let mut profile = profile(rank, state(rank));
            profile.activities.extend(waits(rank, profile.state));
            let mpi_ns = 100_000_000 * (u64::from(rank) + 1);
            profile.time = TimeShare { wall_ns: 1_000_000_000, mpi_ns };
            round.add(&profile).expect("every rank once");
        }
        round
    };
    // While it ran all others waited for the one that was lost.
    let running = |rank| if rank == 5 { RankState::Lost } else { RankState::Running };
    let mut standstills = Standstills::default();
    let _ = standstills.note(Duration::from_millis(4500), &round(&running));
    let rows = RankRows::new(profiles).expect("every rank once");
    let missing = Missing {
        ranks: "6".parse().expect("a rank"),
        reason: "back-end 3 closed its connection".to_string(),
    };
    Report {
        program: "solver".to_string(),
        command: ["mpirun", "-np", "8", "solver"].map(str::to_string).to_vec(),
        mpi: "Open MPI 4.1.4".to_string(),
        tree: Tree { topology: "2x2".to_string(), nodes: 7 },
        rounds: 12,
        elapsed: Duration::from_millis(12_340),
        round: round(&state),
        standstills,
        missing: vec![missing],
        rows,
    }
}
