//! What a reader sees: the live table and `report.txt`, to the letter.

use std::time::Duration;

use crate::harness::{profile, report};
use sapwood_profile::{RankState, Round, TimeShare};
use sapwood_report::record::Settings;
use sapwood_report::{LiveTable, Report};

fn table(round: &Round) -> LiveTable<'_> {
    LiveTable {
        round,
        elapsed: Duration::from_secs(3),
        missing: &[],
        rows_max: 3,
        before: None,
        waits: None,
    }
}

fn full_round() -> Round {
    let mut round = Round::new(8);
    for rank in 0..8 {
        round.add(&profile(rank, RankState::Running)).expect("every rank once");
    }
    round
}

#[test]
fn the_events_that_took_most_time_come_first() {
    let expected = "\
3.0 s   8 of 8 ranks
events not counted: 1; a table was full, or a region ended that had not begun
event                calls  time per rank, mean  deviation   min@rank   max@rank  imbalance  ranks  mean size
solve\u{fffd}[2J               80               2.00 s       0 ns   2.00 s@0   2.00 s@0      0.0 %      8          -
MPI_Allreduce (5-8)  8,000               675 ms     344 ms   150 ms@0   1.20 s@7     77.8 %      8          -
MPI_Send (5-8)         720              5.62 ms    2.86 ms  1.25 ms@0  10.0 ms@7     77.8 %      8          -
and 2 more events
";
    assert_eq!(table(&full_round()).render(110, false), expected);
}

#[test]
fn no_line_of_the_table_is_wider_than_the_terminal() {
    let mut round = full_round();
    for width in 25..120 {
        for line in table(&round).render(width, false).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    round = Round::new(0);
    assert_eq!(table(&round).render(80, false).lines().next(), Some("3.0 s   0 of 0 ranks"));
}

#[test]
fn colour_changes_nothing_but_colour() {
    let report = report();
    let table = LiveTable { missing: &report.missing, ..table(&report.round) };
    let (plain, colour) = (table.render(110, false), table.render(110, true));
    assert!(!plain.contains('\x1b') && colour.contains("\x1b[31mmissing rank 6"));
    let codes = ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m"];
    let stripped = codes.iter().fold(colour, |text, code| text.replace(code, ""));
    assert_eq!(stripped, plain);
}

#[test]
fn a_report_says_what_was_watched_and_what_was_lost() {
    let expected = "\
program   solver
command   mpirun -np 8 solver
MPI       Open MPI 4.1.4
started   2026-02-02T02:40:00Z
tree      2x2, 7 processes
hosts     node0 node1
watched   12.3 s, 12 rounds; each round collects the counts of all ranks
ranks     6 of 8
          0-4 finalized
          5 lost
time      MPI takes 35.0 % of the time, mean of ranks; 10.0 % (rank 0) to 60.0 % (rank 5)
          parallel efficiency 65.0 % = load balance 72.2 % x communication efficiency 90.0 %
losses    missing rank 6: back-end 3 closed its connection
          missing rank 7: no profile arrived; they run on hosts that are not watched (--hosts), or without the shim
          lost rank 5: ended without MPI_Finalize or exit; their last counts are shown
          events not counted: 1; a table was full, or a region ended that had not begun
waits     no MPI call returned from 2.5 s to 4.5 s
          waiting: ranks 0-4 in MPI_Allreduce on MPI_COMM_WORLD in region solve, for 2.00 s
          not arrived: rank 5, lost in MPI_Recv on MPI_COMM_WORLD in region solve, for 2.00 s
          no data: ranks 6-7
at end    rank 5, lost in MPI_Recv on MPI_COMM_WORLD in region solve, for 2.00 s

Time by class, inclusive; a region holds what is called in it

class           events  calls  time, all ranks  time per rank, mean    bytes
collective           1  6,000           3.15 s               525 ms  48.0 KB
point-to-point       1    420          26.2 ms              4.38 ms  86.0 KB
other                2      7          12.3 us              2.06 us      0 B
region               1     60           12.0 s               2.00 s      0 B

Time by event, inclusive

event                calls  time per rank, mean  deviation   min@rank   max@rank  imbalance  ranks  mean size
solve\u{fffd}[2J               60               2.00 s       0 ns   2.00 s@0   2.00 s@0      0.0 %      6          -
MPI_Allreduce (5-8)  6,000               525 ms     256 ms   150 ms@0   900 ms@5     71.4 %      6          -
MPI_Send (5-8)         420              4.38 ms    2.13 ms  1.25 ms@0  7.50 ms@5     71.4 %      6          -
and 2 events of less than 0.1 % of the time each: 7 calls, 2.06 us per rank

Distribution over the ranks, from the smallest to the largest value

event                 metric  ranks  smallest  largest  ranks per bin
MPI_Allreduce (5-8)  time_ns      6    150 ms   900 ms  █▄▄█
and 1 more histogram

Ranks by their events, scheme mpi

ranks  number  events  MPI time, mean   heaviest
1-5         5       3          605 ms  solve\u{fffd}[2J
0           1       4          151 ms  solve\u{fffd}[2J
data reduced in the tree by a factor of 3.5 in the last round, 3.2 over all rounds

ranks 6-7 are not in the histograms
";
    assert_eq!(report().text(), expected);
}

#[test]
fn a_report_says_in_a_line_that_ranks_were_switched_off_or_are_the_tools() {
    // Ranks 4 and 5 have no division of time.
    let round = |partly: u32| {
        let mut round = Round::new(8);
        for rank in 0..6 {
            let mut profile = profile(rank, RankState::Finalized);
            let wall_ns = if rank < 6 - partly { 1_000_000_000 } else { 0 };
            profile.time = TimeShare { wall_ns, mpi_ns: wall_ns / 2 };
            round.add(&profile).expect("every rank once");
        }
        round
    };
    let settings = Some(Settings::default());
    let text = |report: Report| Report { settings: settings.clone(), ..report }.text();
    let whole = text(Report { round: round(0), ..report() });
    assert!(!whole.contains("MPI_Pcontrol") && !whole.contains("--in-world"), "{whole}");
    let partly = text(Report { round: round(2), ..report() });
    let line = "\nsettings  2 of 6 ranks switched counting off for a time (MPI_Pcontrol, ";
    assert!(partly.contains(line), "{partly}");
    for (tool_ranks, line) in [
        (1, "1 more rank of the job belongs to the tool (--in-world) and is not counted\n"),
        (3, "3 more ranks of the job belong to the tool (--in-world) and are not counted\n"),
    ] {
        let told = text(Report { tool_ranks, round: round(0), ..report() });
        assert!(told.contains(line), "{told}");
    }
}
