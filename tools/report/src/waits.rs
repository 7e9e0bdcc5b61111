//! Which ranks waited for which, for a reader.

use std::cmp::Reverse;
use std::fmt::Write;

use sapwood_profile::EventKey;
use sapwood_trace::{Counter, Findings};

use crate::quantity;
use crate::record::{EventWait, MATCHING_LOSSES, Waits};
use crate::text::{Grid, Paint, Side, printable};

/// Ranks in the text.
const RANKS_TOLD: usize = 16;

impl Waits {
    /// Lines for what is not known; none if all is.
    fn gaps(&self) -> Vec<String> {
        let known = [
            (
                self.dropped,
                "events",
                "overwritten before they were read; give rings more bytes by SAPWOOD_MPI_RING_BYTES, or ask more often by --interval",
            ),
            (self.incomplete, "collectives", "of which some ranks' calls were not read"),
            (
                self.undecided,
                "collectives",
                "whose last rank is unknown, as the hosts' clocks are not exact enough",
            ),
            (
                self.mixed,
                "collectives",
                "in which ranks did not call the same; 'sapwood trace why' names them",
            ),
            (self.unsure, "receives", "whose message is unknown"),
            (self.unmatched_receives, "receives", "whose send is unknown"),
            (
                self.former,
                "events",
                "of freed communicators that were read after others had taken their places; ask more often by --interval",
            ),
            (self.left_out, "entries", "dropped in the tree for lack of space"),
        ];
        let told = |(count, things, what): (u64, &str, &str)| {
            format!("{} {what}", quantity::counted(count.into(), things))
        };
        let known = known.into_iter().filter(|(count, ..)| *count > 0).map(told);
        // What can be done for those that were overwritten is told with them.
        let losses = MATCHING_LOSSES.iter().filter(|loss| loss.counter != Counter::Dropped);
        known.chain(losses.filter_map(|loss| loss.line_of(self))).collect()
    }

    /// The section for a reader.
    pub(crate) fn text(&self, findings: &Findings, width: usize) -> String {
        let mut text =
            "\nWaits by event: time in a call until the rank arrived for which it waited\n\n"
                .to_owned();
        text.push_str(&event_grid(findings).render(width, Paint::PLAIN));
        text.push_str("\nRanks for which others waited; times are sums over the others\n\n");
        text.push_str(&self.rank_grid().render(width, Paint::PLAIN));
        let more = self.ranks.len().saturating_sub(RANKS_TOLD) as u64 + self.ranks_left_out;
        if more > 0 {
            let _ = writeln!(text, "and {}", quantity::counted(more.into(), "more ranks"));
        }
        let _ = writeln!(text, "{}", self.line());
        for line in self.gaps() {
            let _ = writeln!(text, "not known: {line}");
        }
        text
    }

    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn rank_grid(&self) -> Grid {
        let mut grid = Grid::new(6);
        grid.column("rank", Side::Left);
        for name in [
            "times last",
            "made wait",
            "late sends",
            "made wait",
            "late receives",
            "made wait",
            "waited itself",
        ] {
            grid.column(name, Side::Right);
        }
        for one in &self.ranks[..self.ranks.len().min(RANKS_TOLD)] {
            let time = |ns: u64| quantity::time(ns as f64);
            let count = |number: u64| quantity::whole(number.into());
            let is_named = self.culprits.iter().any(|culprit| culprit.rank == one.rank);
            let cells = [
                one.rank.to_string(),
                count(one.times_last),
                time(one.made_wait_ns),
                count(one.late_sends),
                time(one.late_send_ns),
                count(one.late_receives),
                time(one.late_receive_ns),
                time(one.wait_ns),
            ];
            match is_named {
                true => grid.marked_row(cells.to_vec()),
                false => grid.row(cells.to_vec()),
            }
        }
        grid
    }
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn event_grid(findings: &Findings) -> Grid {
    let mut grid = Grid::new(14);
    grid.column("event", Side::Left);
    for name in
        ["calls", "wait per rank, mean", "max@rank", "wait per call", "undecided", "may be off by"]
    {
        grid.column(name, Side::Right);
    }
    grid.give_up(&["may be off by", "undecided", "wait per call"]);
    let mut events = findings.events();
    events.sort_by_key(|one| Reverse(one.sum.wait_ns));
    for one in &events {
        let Some(key) = EventKey::from_word(one.event) else { continue };
        let wait = EventWait::of(one);
        let cells = [
            printable(&key.to_string()),
            quantity::whole(wait.calls.into()),
            quantity::time(wait.mean),
            format!("{}@{}", quantity::time(wait.max as f64), wait.max_rank),
            quantity::time(wait.sum as f64 / wait.calls.max(1) as f64),
            quantity::whole(wait.undecided.into()),
            quantity::time(wait.error as f64),
        ];
        grid.row(cells.to_vec());
    }
    grid
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::waits_of_tests;

    #[test]
    fn the_rank_that_others_wait_for_is_named_and_gaps_are_told() {
        let mut found = waits_of_tests();
        found.counters[Counter::Dropped as usize] = 1234;
        found.counters[Counter::Former as usize] = 56;
        found.counters[Counter::WithoutRing as usize] = 7;
        let waits = Waits::of(&found, 4, Duration::from_millis(100));
        assert_eq!(waits.culprits.iter().map(|one| one.rank).collect::<Vec<_>>(), [2]);
        assert!(
            waits.line().starts_with("rank 2 made the others wait 12.0 ms"),
            "{}",
            waits.line()
        );
        let text = waits.text(&found, 120);
        assert!(text.contains("MPI_Allreduce"), "{text}");
        assert!(text.contains("5.00 ms@1"), "{text}");
        assert!(text.contains("not known: 1,234 events overwritten"), "{text}");
        assert!(text.contains("not known: 56 events of freed communicators"), "{text}");
        assert!(text.contains("not known: 7 calls of threads that have no ring"), "{text}");
        assert_eq!(text.matches("overwritten").count(), 1, "{text}");
        assert!(!text.contains("for lack of space"), "{text}");
    }
}
