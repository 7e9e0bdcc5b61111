//! Calls by where they were made, on which communicator, and from which host to which: what is
//! known of a run only where it was asked for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use sapwood_packet::Rank;
use sapwood_profile::{EventKey, EventStatistics, RankRows, Round, SizeClass, Tally};
use serde::{Deserialize, Serialize};

use crate::quantity;
use crate::record::Metric;
use crate::text::{Grid, Paint, Side, cut_in_the_middle, printable};

/// Lines of each table in `report.txt`; all are in `profile.json`.
const SHOWN_MAX: usize = 40;
/// Columns of a file's name, so that the address behind it is seen.
const FILE_COLUMNS: usize = 20;
/// Pairs of ranks in `profile.json`, those with most bytes first.
const PAIRS_MAX: usize = 4096;

/// What was tallied in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tallies {
    /// Places that call MPI; none where they were not asked for.
    pub call_sites: Option<Vec<Calls>>,
    /// Communicators; none where they were not asked for.
    pub communicators: Option<Vec<Calls>>,
    /// Which ranks send to which; none where that was not asked for.
    pub peers: Option<Peers>,
    /// Calls that found no room.
    pub dropped: u64,
}

/// Calls of one function from one place, or on one communicator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The function.
    pub function: String,
    /// Size class of the communicator: `ceil(log2(size))`.
    pub communicator_size_class: Option<u8>,
    /// The file of a call site; the name and the ranks of a communicator.
    pub name: String,
    /// The address behind the call in that file, as linked; 0 for a communicator.
    pub address: u64,
    /// Source file, line and function of a call site; empty where these are not known.
    pub place: String,
    /// How many ranks have made such calls.
    pub ranks: u32,
    /// Calls that returned.
    pub calls: Metric,
    /// Inclusive time.
    pub time_ns: Metric,
    /// Bytes by the rules of `functions.table`.
    pub bytes: Metric,
}

/// Which ranks send to which, by the blocking and non-blocking sends of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peers {
    /// Folded to hosts, those with most bytes first.
    pub hosts: Vec<Pair<String>>,
    /// Rank to rank, those with most bytes first.
    pub ranks: Vec<Pair<Rank>>,
    /// Pairs of ranks that are left out of these, not of the hosts.
    pub ranks_left_out: usize,
}

/// What one sends to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair<T> {
    /// The sender.
    pub from: T,
    /// The destination.
    pub to: T,
    /// Sends.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tallies {
    /// The calls of a round whose events are tallies, those that took most time first. `place`
    /// gives source file and line of an address in a file.
    #[must_use]
    pub fn calls(round: &Round, mut place: impl FnMut(&str, u64) -> String) -> Vec<Calls> {
        let of = |(key, statistics): &(EventKey, EventStatistics)| {
            let tally = Tally::parse(&key.name())?;
            let place =
                if tally.address == 0 { String::new() } else { place(&tally.name, tally.address) };
            let class = tally.size_class;
            Some(Calls {
                function: tally.event().name().into_owned(),
                communicator_size_class: (class != SizeClass::NONE).then(|| class.code()),
                name: tally.name,
                address: tally.address,
                place,
                ranks: statistics.ranks(),
                calls: Metric::of(&statistics.count),
                time_ns: Metric::of(&statistics.time_ns),
                bytes: Metric::of(&statistics.bytes),
            })
        };
        let mut calls: Vec<Calls> = round.events().iter().filter_map(of).collect();
        calls.sort_by_key(|one| Reverse(one.time_ns.sum));
        calls
    }

    /// Tables of what was asked for, each under its title.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = String::new();
        let mut table = |title: &str, grid: &Grid, left: usize| {
            text.push_str(&format!("\n{title}\n\n{}", grid.render(width, Paint::PLAIN)));
            if left > 0 {
                text.push_str(&format!("and {left} more; all are in profile.json\n"));
            }
        };
        if let Some(calls) = &self.call_sites {
            let left = calls.len().saturating_sub(SHOWN_MAX);
            table("Time by call site, inclusive", &grid("call site", calls), left);
        }
        if let Some(calls) = &self.communicators {
            let left = calls.len().saturating_sub(SHOWN_MAX);
            table(
                "Time by communicator, inclusive; its ranks in MPI_COMM_WORLD",
                &grid("communicator", calls),
                left,
            );
        }
        if let Some(peers) = &self.peers {
            let left = peers.hosts.len().saturating_sub(SHOWN_MAX);
            table("Messages sent, from host to host", &peers.grid(), left);
        }
        if self.dropped > 0 {
            let dropped = quantity::whole(self.dropped.into());
            text.push_str(&format!("\ncalls not listed above: {dropped}; a table was full\n"));
        }
        text
    }
}

impl Calls {
    /// The place or communicator for a reader.
    #[must_use]
    pub fn told(&self) -> String {
        if self.address == 0 {
            return self.name.clone();
        }
        let file = self.name.rsplit('/').next().unwrap_or(&self.name);
        match self.place.as_str() {
            // Modules of Python end in the same long word, and begin alike within a package.
            "" => format!("{}+0x{:x}", cut_in_the_middle(file, FILE_COLUMNS), self.address),
            place => place.to_owned(),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn grid(title: &'static str, calls: &[Calls]) -> Grid {
    // A file and an address fit.
    let mut grid = Grid::new(FILE_COLUMNS + 12);
    grid.column(title, Side::Left);
    grid.column("function", Side::Left);
    for name in ["calls", "time per rank, mean", "max@rank", "bytes", "ranks"] {
        grid.column(name, Side::Right);
    }
    grid.give_up(&["ranks", "bytes", "max@rank"]);
    for one in &calls[..calls.len().min(SHOWN_MAX)] {
        let longest = quantity::time(one.time_ns.max as f64);
        let cells = [
            printable(&one.told()),
            one.function.clone(),
            quantity::whole(one.calls.sum),
            quantity::time(one.time_ns.mean),
            format!("{longest}@{}", one.time_ns.max_rank),
            quantity::bytes(one.bytes.sum as f64),
            one.ranks.to_string(),
        ];
        grid.row(cells.to_vec());
    }
    grid
}

impl Peers {
    /// Of rows whose events are peers, with the hosts of the rows of the events themselves.
    #[must_use]
    pub fn of(tallies: &RankRows, rows: &RankRows) -> Self {
        let hosts: BTreeMap<Rank, &str> =
            rows.profiles().iter().map(|one| (one.mpi_rank, one.host.as_str())).collect();
        let host = |rank| hosts.get(&rank).map_or("a host that is not watched", |host| *host);
        let mut folded: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
        let mut ranks = Vec::new();
        for profile in tallies.profiles() {
            for (key, counters) in &profile.events {
                let to =
                    Tally::parse(&key.name()).and_then(|peer| Rank::try_from(peer.address).ok());
                let (from, Some(to)) = (profile.mpi_rank, to) else { continue };
                let (messages, bytes) = (counters.count, counters.bytes);
                let sum = folded.entry((host(from), host(to))).or_default();
                *sum = (sum.0.saturating_add(messages), sum.1.saturating_add(bytes));
                ranks.push(Pair { from, to, messages, bytes });
            }
        }
        let pair = |((from, to), (messages, bytes)): ((&str, &str), _)| Pair {
            from: from.to_owned(),
            to: to.to_owned(),
            messages,
            bytes,
        };
        let mut hosts: Vec<_> = folded.into_iter().map(pair).collect();
        hosts.sort_by_key(|pair| Reverse(pair.bytes));
        ranks.sort_by_key(|pair| Reverse(pair.bytes));
        let ranks_left_out = ranks.len().saturating_sub(PAIRS_MAX);
        ranks.truncate(PAIRS_MAX);
        Self { hosts, ranks, ranks_left_out }
    }

    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    fn grid(&self) -> Grid {
        let mut grid = Grid::new(12);
        grid.column("from", Side::Left);
        grid.column("to", Side::Left);
        for name in ["messages", "bytes", "mean size"] {
            grid.column(name, Side::Right);
        }
        for pair in &self.hosts[..self.hosts.len().min(SHOWN_MAX)] {
            let cells = [
                printable(&pair.from),
                printable(&pair.to),
                quantity::whole(pair.messages.into()),
                quantity::bytes(pair.bytes as f64),
                quantity::bytes(pair.bytes as f64 / pair.messages.max(1) as f64),
            ];
            grid.row(cells.to_vec());
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, RankProfile};

    use super::*;

    #[test]
    fn call_sites_of_one_long_file_remain_different() {
        let event = |address: u64| Tally {
            function: 0,
            size_class: SizeClass::NONE,
            address,
            name: "/usr/lib/python3/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so".into(),
        };
        let mut profile = RankProfile::new(0, 1);
        for address in [0x12_3450, 0x12_3459] {
            let counters = Counters { count: 1, time_ns: 5, bytes: 0 };
            profile.events.insert(EventKey::Region(event(address).label()), counters);
        }
        let mut round = Round::new(1);
        round.add(&profile).expect("a new rank");
        let calls = Tallies::calls(&round, |_, _| String::new());
        let tallies = Tallies { call_sites: Some(calls), ..Tallies::default() };
        for width in [80, 120] {
            let text = tallies.text(width);
            assert!(text.contains("+0x123450 ") && text.contains("+0x123459 "), "{text}");
        }
    }

    #[test]
    fn pairs_of_ranks_are_folded_to_their_hosts() {
        let profile = |rank: Rank, peers: &[(u64, u64)]| {
            let counters = |bytes| Counters { count: 2, time_ns: 5, bytes };
            let label = |address| Tally {
                function: 0,
                size_class: SizeClass::NONE,
                address,
                name: String::new(),
            };
            let event = |&(to, bytes)| (EventKey::Region(label(to).label()), counters(bytes));
            let host = format!("node{}", rank / 2);
            RankProfile {
                events: peers.iter().map(event).collect(),
                host,
                ..RankProfile::new(rank, 4)
            }
        };
        let rows = vec![
            profile(0, &[(1, 10), (2, 100), (3, 1000)]),
            profile(1, &[(2, 7)]),
            profile(2, &[(0, 5)]),
            profile(3, &[]),
        ];
        let rows = RankRows::new(rows).expect("every rank once");
        let peers = Peers::of(&rows, &rows);
        let told: Vec<_> = peers
            .hosts
            .iter()
            .map(|pair| (pair.from.as_str(), pair.to.as_str(), pair.messages, pair.bytes))
            .collect();
        assert_eq!(
            told,
            [("node0", "node1", 6, 1107), ("node0", "node0", 2, 10), ("node1", "node0", 2, 5)]
        );
        assert_eq!((peers.ranks.len(), peers.ranks[0].to), (5, 3));
    }
}
