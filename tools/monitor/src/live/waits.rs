//! The sheets of waits: which ranks came last and made others wait, and in which calls time was
//! lost.

use sapwood_report::quantity;
use sapwood_report::record::{RankWait, RoundRecord, WaitCall};

use super::sheets::{Cell, Line, number, text};

/// From this part of all ranks' time on a call is marked.
const LOST_MARKED: f64 = 0.01;

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn time(ns: u64) -> Cell {
    Cell::Number(ns as f64, quantity::time(ns as f64))
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn part(of: u64, whole: u64) -> Cell {
    let share = of as f64 / whole.max(1) as f64;
    Cell::Number(share, quantity::percent(Some(share)))
}

/// All that others have waited for a rank.
fn made_ns(one: &RankWait) -> u64 {
    one.made_wait_ns.saturating_add(one.late_send_ns).saturating_add(one.late_receive_ns)
}

pub(super) fn by_rank(record: &RoundRecord) -> Vec<Line> {
    let Some(waits) = &record.waits else { return Vec::new() };
    let all = waits.ranks.iter().fold(0_u64, |all, one| all.saturating_add(made_ns(one)));
    let line = |one: &RankWait| Line {
        cells: vec![
            // The lowest rank first.
            Cell::Number(-f64::from(one.rank), one.rank.to_string()),
            number(one.times_last.into()),
            part(one.times_last, waits.collectives),
            time(made_ns(one)),
            part(made_ns(one), all),
            time(one.wait_ns),
        ],
        is_marked: waits.culprits.iter().any(|culprit| culprit.rank == one.rank),
    };
    waits.ranks.iter().map(line).collect()
}

pub(super) fn by_call(record: &RoundRecord) -> Vec<Line> {
    let whole_ns = record.elapsed_s * 1e9 * f64::from(record.world_size.max(1));
    let line = |one: &WaitCall| {
        #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
        let share = one.lost_ns as f64 / whole_ns.max(1.0);
        let last = format!("rank {} ({} of {})", one.late_rank, one.times_last, one.collectives);
        Line {
            cells: vec![
                text(&one.function),
                text(&one.communicator),
                time(one.lost_ns),
                Cell::Number(share, quantity::percent(Some(share))),
                number(one.collectives.into()),
                Cell::Text(last),
            ],
            is_marked: share >= LOST_MARKED,
        }
    };
    record.wait_calls.iter().map(line).collect()
}

/// The line of the events that were lost, which every sheet has: ranks may have waited in them.
pub(super) fn dropped(record: &RoundRecord) -> Option<String> {
    let waits = record.waits.as_ref().filter(|waits| waits.dropped > 0)?;
    let dropped = quantity::whole(waits.dropped.into());
    let all = quantity::whole(u128::from(waits.events) + u128::from(waits.dropped));
    Some(format!(
        "dropped: {dropped} of {all} events were overwritten before they were read; \
         SAPWOOD_MPI_RING_BYTES makes rings larger"
    ))
}

#[cfg(test)]
mod tests {
    use sapwood_report::record::{CulpritRank, Waits};

    use super::*;

    fn texts(line: &Line) -> Vec<&str> {
        line.cells.iter().map(Cell::text).collect()
    }

    #[test]
    fn ranks_have_what_they_caused_and_had() {
        let one =
            RankWait { rank: 3, times_last: 60, made_wait_ns: 2_000_000, ..RankWait::default() };
        let late_sends =
            RankWait { late_send_ns: 6_000_000, wait_ns: 1_000, rank: 1, ..one.clone() };
        let culprit = CulpritRank {
            rank: 1,
            share_of_times: 0.6,
            share_of_time: 0.8,
            made_wait_ns: 8_000_000,
        };
        let waits = Waits {
            collectives: 80,
            ranks: vec![late_sends, one],
            culprits: vec![culprit],
            ..Waits::default()
        };
        let mut record = RoundRecord::default();
        assert_eq!(by_rank(&record), []);
        record.waits = Some(waits);
        let lines = by_rank(&record);
        assert_eq!(texts(&lines[0]), ["1", "60", "75.0 %", "8.00 ms", "80.0 %", "1.00 us"]);
        assert_eq!(texts(&lines[1]), ["3", "60", "75.0 %", "2.00 ms", "20.0 %", "0 ns"]);
        assert_eq!(lines.iter().map(|line| line.is_marked).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn events_that_were_overwritten_are_told_with_how_many_there_were() {
        let mut record = RoundRecord::default();
        assert_eq!(dropped(&record), None, "no waits are recorded");
        record.waits = Some(Waits { events: 9_000, ..Waits::default() });
        assert_eq!(dropped(&record), None);
        record.waits = Some(Waits { events: 9_000, dropped: 1_234, ..Waits::default() });
        let line = dropped(&record).expect("events were lost");
        assert!(line.starts_with("dropped: 1,234 of 10,234 events were overwritten"), "{line}");
    }

    #[test]
    fn calls_have_their_part_of_all_ranks_time() {
        let mut record = RoundRecord::default();
        (record.elapsed_s, record.world_size) = (2.0, 4);
        record.wait_calls = vec![WaitCall {
            function: "MPI_Barrier".to_owned(),
            communicator: "high".to_owned(),
            size: 3,
            collectives: 12,
            lost_ns: 2_000_000_000,
            late_rank: 2,
            times_last: 11,
            late_ns: 1_900_000_000,
        }];
        let lines = by_call(&record);
        let expected = ["MPI_Barrier", "high", "2.00 s", "25.0 %", "12", "rank 2 (11 of 12)"];
        assert_eq!(texts(&lines[0]), expected);
        assert!(lines[0].is_marked);
    }
}
