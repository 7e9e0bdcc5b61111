//! A run of 8 ranks, of which some are missing or lost, that every test reports.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::time::{Duration, SystemTime};

use sapwood_profile::{
    Activity, ActivityKind, Classification, Condition, Counters, Counts, Deviations, EventKey,
    Extremes, Function, HistogramSketches, Measure, Medians, Metric, Peer, RankProfile, RankRows,
    RankState, RankValues, Round, Scheme, SizeClass, TimeShare,
};
use sapwood_report::analysis::{classification, histogram, rank_outliers, rank_values, sketches};
use sapwood_report::record::Stacks;
use sapwood_report::stacks::{MergedStacks, Sample};
use sapwood_report::{Analysis, Missing, Report, Standstills, Tree, Uninitialised, record};

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

/// What further filters find in the profiles.
fn analysis(profiles: &[RankProfile]) -> Analysis {
    let function = Function::named("MPI_Allreduce").expect("every MPI has it");
    let size_class = SizeClass::from_code(3).expect("a class");
    let event = EventKey::Function { id: function.id, size_class };
    let measures = [Measure { event, metric: Metric::TimeNs }];
    let limits = Extremes::of(profiles, &measures).limits(|_| 4);
    let counts = Counts::of(profiles, &limits, |_| 0);
    let histograms = counts.histograms().map(|(limits, counts)| histogram(limits, counts));
    let medians = Medians::of(profiles, &measures, 0);
    let middles: Vec<_> = medians.medians().map(|(one, median)| (one.clone(), median)).collect();
    let classes = Classification::of(profiles, &Scheme::mpi());
    Analysis {
        round: Some(11),
        histograms: histograms
            .chain(sketches(&HistogramSketches::of(profiles, &measures)))
            .collect(),
        histograms_left_out: 1,
        measures_left_out: 0,
        classifications: vec![record::Classification {
            reduction_factor: 3.5,
            cumulated_factor: 3.25,
            ..classification("mpi", &classes)
        }],
        outliers: rank_outliers(&Deviations::of(profiles, &middles, 2, 0)),
        rank_values: rank_values(&RankValues::of(profiles), 8),
        missing: [("histograms".to_owned(), "6-7".to_owned())].into(),
    }
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
    let analysis = analysis(&profiles);
    let rows = RankRows::new(profiles).expect("every rank once");
    let missing = Missing {
        ranks: "6".parse().expect("a rank"),
        reason: "back-end 3 closed its connection".to_string(),
    };
    let uninitialised = Uninitialised {
        rank: 7,
        pid: 123,
        host: "h".to_string(),
        program: "solver".to_string(),
        for_s: 12.0,
        state: Uninitialised::state_of(Some("sleeping")),
        place: "nanosleep".to_string(),
        in_init_s: None,
    };
    Report {
        program: "solver".to_string(),
        command: ["mpirun", "-np", "8", "solver"].map(str::to_string).to_vec(),
        mpi: "Open MPI 4.1.4".to_string(),
        tree: Tree { topology: "2x2".to_string(), nodes: 7 },
        hosts: Vec::new(),
        first_lost: None,
        deaths: Vec::new(),
        rounds: 12,
        elapsed: Duration::from_millis(12_340),
        round: round(&state),
        standstills,
        stacks: None,
        missing: vec![missing],
        uninitialised: vec![uninitialised],
        outdated: None,
        rows,
        analysis,
        started: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_770_000_000)),
        interval: Duration::from_secs(1),
        is_final: true,
        rounds_file: None,
        ..Report::default()
    }
}

/// Seven ranks in a barrier; of the one that was lost there is no stack.
pub fn stacks() -> Stacks {
    let mut merged = MergedStacks::default();
    for rank in (0..5).chain(6..8) {
        let stack =
            ["main (solver.c:7)", "MPI_Barrier [libmpi.so.40]"].map(str::to_string).to_vec();
        let note = if rank == 7 { "stopped by a signal" } else { "" }.to_string();
        let stopped_ns = 90_000;
        merged.add(&Sample { rank, stopped_ns, stacks: vec![stack], note, ..Sample::default() });
    }
    merged.miss([5], "its process has ended");
    merged.section(Duration::from_millis(4600))
}
