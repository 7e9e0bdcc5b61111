//! Rounds at points that the program chooses: the k-th mark of each rank makes iteration k.
//!
//! A rank that reaches a mark leaves a snapshot of its counts in its table and goes on. A leaf
//! copies it, and sends the iteration up as a wave of that number once each of its ranks has come
//! that far, or has ended.

use sapwood::Wave;
use sapwood_profile::{RankProfile, Round, TableReader};

use super::iterations::WAITING_MAX;
use super::rank_control::{ARMED, TAKEN};
use super::tables::{RankTable, Tables};

impl Tables {
    /// Copies the snapshots that are new; gives the iterations that are complete, as waves, which
    /// count from 0.
    pub(crate) fn take_marks(&mut self, world_size: u32) -> Vec<(Wave, Round)> {
        let mut iterations = std::mem::take(&mut self.iterations);
        for (&number, rank) in &mut self.ranks {
            for (mark, profile) in rank.new_snapshots(number) {
                if mark > iterations.sent {
                    iterations.waiting.entry(mark).or_default().push(profile);
                }
            }
        }
        let least = self.ranks.values().filter(|rank| rank.peer.is_some());
        let least = least.map(|rank| rank.control.taken).min().unwrap_or(u64::MAX);
        let mut complete = Vec::new();
        while let Some(entry) = iterations.waiting.first_entry() {
            if *entry.key() > least && complete.len() + WAITING_MAX > iterations.waiting.len() {
                break;
            }
            let Some((mark, profiles)) = iterations.waiting.pop_first() else { break };
            iterations.sent = mark;
            let mut round = Round::new(world_size.max(profiles[0].world_size));
            for profile in &profiles {
                // One that fits to no round is of another program; the rounds by time say so.
                let _ = round.add(profile);
            }
            complete.push((mark - 1, round));
        }
        self.iterations = iterations;
        complete
    }
}

impl RankTable {
    pub(crate) fn marks_left_out(&self) -> u64 {
        self.table.load_word(400 / 8).unwrap_or(0)
    }

    /// The snapshots since the last time, in order; those that were overwritten are passed over.
    fn new_snapshots(&mut self, number: u32) -> Vec<(u64, RankProfile)> {
        let mut found = Vec::new();
        // What is taken is noted in the page, which another watcher may write.
        let page = self.control.page.as_ref().filter(|_| self.control.is_ours());
        let Some(page) = page else { return found };
        loop {
            let marks = self.table.load_word(392 / 8).unwrap_or(0);
            if marks <= self.control.taken {
                return found;
            }
            if let Ok(words) = self.words()
                && let Ok(table) = TableReader::new(&words)
            {
                for mark in self.control.taken.max(marks.saturating_sub(8)) + 1..=marks {
                    let place = table.snapshot_words(mark);
                    let copy = place.and_then(|place| self.table.copy_words(place).ok());
                    let profile = copy.and_then(|copy| table.profile_at(mark, &copy));
                    let named = |profile| RankProfile { mpi_rank: number, ..profile };
                    found.extend(profile.map(named).map(|profile| (mark, profile)));
                }
            }
            self.control.taken = marks;
            page.store_long(TAKEN, marks);
            // A mark from now on wakes this process; one from before is seen in the next turn.
            page.store(ARMED, 1);
        }
    }
}
