//! Rounds at points that the program chooses: the k-th mark of each rank makes iteration k.
//!
//! A rank that reaches a mark leaves a snapshot of its counts in its table and goes on. A leaf
//! copies it, and sends the iteration up as a wave of that number once each of its ranks has come
//! that far, or has ended.
//!
//! A rank that was started without leaves numbers its marks as well. Where a leaf has attached to
//! it and controls it, its iterations begin with the next mark; as it has no connection by which it
//! could wake the leaf, the leaf looks at its marks from time to time.

use std::time::Duration;

use sapwood::Wave;
use sapwood_profile::{RankProfile, Round, TableReader};

use super::iterations::WAITING_MAX;
use super::presence::Presence;
use super::rank_control::{ARMED, TAKEN};
use super::tables::{RankTable, Tables};

/// Between two looks at the marks of ranks that are attached to.
const LOOK: Duration = Duration::from_millis(20);
/// The same as long as they have not reached any.
const FIRST_LOOK: Duration = Duration::from_secs(1);

impl Tables {
    /// How long this leaf may sleep, with regard to marks of ranks that cannot wake it.
    pub(crate) fn marks_wait(&self) -> Option<Duration> {
        self.marks_stream?;
        let is_attached = |rank: &&RankTable| {
            matches!(rank.peer, Some(Presence::Attached { .. })) && rank.control.is_ours()
        };
        let attached = self.ranks.values().filter(is_attached);
        attached.map(|rank| if rank.marks() > 0 { LOOK } else { FIRST_LOOK }).min()
    }

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
    /// Marks that were left out since these are taken.
    pub(crate) fn marks_left_out(&self) -> u64 {
        let before = self.control.left_out_before;
        before.map_or(0, |before| self.left_out().saturating_sub(before))
    }

    fn left_out(&self) -> u64 {
        self.table.load_word(400 / 8).unwrap_or(0)
    }

    /// The last mark that the rank has reached.
    fn marks(&self) -> u64 {
        self.table.load_word(392 / 8).unwrap_or(0)
    }

    /// The snapshots since the last time, in order; those that were overwritten are passed over.
    fn new_snapshots(&mut self, number: u32) -> Vec<(u64, RankProfile)> {
        let mut found = Vec::new();
        // What is taken is noted in the page, which another watcher may write.
        let page = self.control.page.as_ref().filter(|_| self.control.is_ours());
        let Some(page) = page else { return found };
        if self.control.left_out_before.is_none() {
            let marks = self.marks();
            page.store_long(TAKEN, marks);
            self.control.taken = marks;
            self.control.left_out_before = Some(self.left_out());
            return found;
        }
        loop {
            let marks = self.marks();
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
