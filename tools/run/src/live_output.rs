//! How much of the live output of each host has come, and what is said where that is not all:
//! [`LiveOutput`].

use std::collections::BTreeMap;

use sapwood::{Rank, RankSet};

use super::fetched::{FetchEnd, Fetched};
use super::results::Results;

/// Live output as far as it has come.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    /// Bytes of each host, of both outputs together.
    bytes: BTreeMap<Rank, u64>,
}

/// A host that has told its outcome, and of whose output something has not come.
struct Lacking {
    rank: Rank,
    /// What has come.
    bytes: u64,
    /// What it wrote.
    length: u64,
}

impl LiveOutput {
    /// Notes a part that has come.
    pub(super) fn note(&mut self, rank: Rank, part: &[u8]) {
        *self.bytes.entry(rank).or_default() += part.len() as u64;
    }

    /// Whether something has not come that one of these hosts wrote.
    pub(super) fn lacks(&self, results: &Results, connected: &RankSet) -> bool {
        self.lacking(results).any(|one| connected.contains(one.rank))
    }

    /// Lines on what has not come, of hosts that are lost and of those that are there.
    pub(super) fn lines(&self, results: &Results, connected: &RankSet) -> Vec<String> {
        let line = |end: FetchEnd| {
            let is_there = end == FetchEnd::Silent;
            let (mut ranks, mut bytes, mut length) = (RankSet::new(), 0_u64, 0_u64);
            let those = self.lacking(results);
            for one in those.filter(|one| connected.contains(one.rank) == is_there) {
                ranks.insert(one.rank);
                bytes = bytes.saturating_add(one.bytes);
                length = length.saturating_add(one.length);
            }
            Fetched { bytes, end }.lack(&results.nodes(&ranks).to_string(), length)
        };
        [FetchEnd::Lost, FetchEnd::Silent].into_iter().filter_map(line).collect()
    }

    fn lacking(&self, results: &Results) -> impl Iterator<Item = Lacking> {
        results.written().filter_map(move |(rank, length)| {
            let bytes = self.bytes.get(&rank).copied().unwrap_or(0);
            (bytes < length).then_some(Lacking { rank, bytes, length })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::results::tests::{answer, exited, hosts};

    #[test]
    fn what_has_not_come_is_told_of_lost_and_of_silent_hosts() {
        let now = Instant::now();
        let mut results = Results::new(hosts(5), now);
        let three = (exited(0, b"123456"), &b""[..], RankSet::range(0, 2));
        let other = (exited(1, b"12"), &b""[..], RankSet::range(3, 3));
        results.take(&answer(&[three, other]), now).unwrap();
        let mut live = LiveOutput::default();
        live.note(0, b"123456");
        live.note(1, b"123");
        let all = RankSet::range(0, 4);
        assert!(live.lacks(&results, &all));
        let silent = "n[1-3]: output cut: 3 of 14 bytes came; its hosts are silent";
        assert_eq!(live.lines(&results, &all), [silent]);
        assert_eq!(
            live.lines(&results, &RankSet::range(0, 2)),
            [
                "n3: the output (2 bytes) was lost with its hosts",
                "n[1-2]: output cut: 3 of 12 bytes came; its hosts are silent",
            ]
        );
        let none = RankSet::new();
        assert!(!live.lacks(&results, &none), "nothing more will come");
        let lost = "n[1-3]: output cut: 3 of 14 bytes came before its hosts were lost";
        assert_eq!(live.lines(&results, &none), [lost]);
        for (rank, rest) in [(1, &b"456"[..]), (2, b"123456"), (3, b"12")] {
            live.note(rank, rest);
        }
        assert!(!live.lacks(&results, &all));
        assert_eq!(live.lines(&results, &none), [""; 0]);
    }
}
