//! The rules of packets that go down: each arrives once, in order, at all of its destinations.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};

use super::Known;

/// The downward packets of a stream, numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Downward {
    /// By number: its destinations.
    sent: Vec<RankSet>,
    /// By process: the number of the next packet that may come. Two processes of one rank, which do
    /// not know of each other, each receive in order.
    next: BTreeMap<usize, u64>,
    /// How many each has received.
    count: BTreeMap<Rank, u64>,
    /// The first packet that a back-end must receive, where that is not the very first.
    since: BTreeMap<Rank, usize>,
}

impl Downward {
    /// One more has been sent; gives its number.
    pub(super) fn sent(&mut self, destinations: RankSet) -> u64 {
        self.sent.push(destinations);
        self.sent.len() as u64 - 1
    }

    /// Another process has this rank from now on.
    pub(super) fn reborn(&mut self, rank: Rank) {
        self.since.insert(rank, self.sent.len());
        self.count.remove(&rank);
    }

    /// A back-end, this process of its rank, receives one.
    pub(super) fn received(
        &mut self,
        process: usize,
        rank: Rank,
        number: u64,
    ) -> Result<(), String> {
        let next = self.next.entry(process).or_default();
        if number < *next {
            return Err(format!(
                "downward packet {number} comes to rank {rank} after {}",
                *next - 1
            ));
        }
        *next = number + 1;
        *self.count.entry(rank).or_default() += 1;
        match self.sent.get(number as usize) {
            None => Err(format!("rank {rank} received packet {number}, which was never sent")),
            Some(ranks) if !ranks.contains(rank) => {
                Err(format!("packet {number} came to rank {rank}, for which it is not"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Known {
    /// A back-end that has not received all packets for it, as text.
    pub(super) fn down_lacking(&self, there: &RankSet, disturbed: &RankSet) -> Option<String> {
        if self.drops || self.down.sent.is_empty() {
            return None;
        }
        // A process that was moving to another parent when the stream closed has missed the rest.
        let is_due =
            |rank: &Rank| there.contains(*rank) && !(self.is_closed && disturbed.contains(*rank));
        self.members.iter().filter(is_due).find_map(|rank| {
            let since = self.down.since.get(&rank).copied().unwrap_or(0);
            let due = self.down.sent.iter().skip(since);
            let due = due.filter(|ranks| ranks.contains(rank)).count() as u64;
            let count = self.down.count.get(&rank).copied().unwrap_or(0);
            (count < due)
                .then(|| format!("rank {rank} has received {count} of {due} downward packets"))
        })
    }
}
