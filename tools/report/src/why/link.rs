//! Ways from one rank to another on which messages take long.

use std::cmp::Reverse;
use std::time::Duration;

use sapwood_trace::{Findings, Link, OTHERS};
use serde::{Deserialize, Serialize};

use crate::quantity;

/// Fewer messages say nothing.
const MESSAGES_MIN: u64 = 5;
/// Links of which the median is taken, at least.
const LINKS_MIN: usize = 3;
/// A slow link's messages take this many times as long as those of the median link.
const TIMES_MIN: u64 = 4;
/// The part of the receiver's time that they take, at least, in per cent.
const SHARE_PERCENT: u128 = 2;
/// Links told, at most.
const LINKS_MAX: usize = 8;

/// A way from one rank to another on which messages took long, though both sides had begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowLink {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// How long one took on the mean, from when both sides had begun.
    pub mean_s: f64,
    /// The same of the median link of the program.
    pub median_s: f64,
    /// All of them together.
    pub transfer_s: f64,
}

impl SlowLink {
    pub(super) fn line(&self) -> String {
        let time = |seconds: f64| quantity::time(seconds * 1e9);
        format!(
            "the link from rank {} to rank {} is slow: {} messages took {} each once both sides had \
             begun, on other links {}",
            self.from,
            self.to,
            quantity::whole(self.messages.into()),
            time(self.mean_s),
            time(self.median_s),
        )
    }
}

/// The slow links of a run, those that took most time first.
pub(super) fn links(findings: &Findings, elapsed: Duration) -> Vec<SlowLink> {
    let known: Vec<_> = findings
        .links
        .iter()
        .filter(|(ends, link)| ends.0 != OTHERS && link.messages >= MESSAGES_MIN)
        .collect();
    let mut means: Vec<u64> = known.iter().map(|(_, link)| link.mean_ns()).collect();
    means.sort_unstable();
    if means.len() < LINKS_MIN {
        return Vec::new();
    }
    let median_ns = means[means.len() / 2];
    let is_slow = |link: &Link| {
        link.mean_ns() >= median_ns.saturating_mul(TIMES_MIN)
            && u128::from(link.transfer_ns) * 100 >= elapsed.as_nanos() * SHARE_PERCENT
    };
    let mut slow: Vec<_> = known.into_iter().filter(|(_, link)| is_slow(link)).collect();
    slow.sort_by_key(|(ends, link)| (Reverse(link.transfer_ns), **ends));
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    let told = slow.into_iter().take(LINKS_MAX).map(|(&(from, to), link)| SlowLink {
        from,
        to,
        messages: link.messages,
        mean_s: seconds(link.mean_ns()),
        median_s: seconds(median_ns),
        transfer_s: seconds(link.transfer_ns),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow_of(of_slow_ns: u64, messages: u64) -> Vec<(u32, u32)> {
        let mut findings = Findings::default();
        for rank in 0..4 {
            let mean_ns = if rank == 2 { of_slow_ns } else { 1_000_000 };
            let link = Link { messages, transfer_ns: mean_ns * messages };
            findings.links.insert((rank, (rank + 1) % 4), link);
        }
        let slow = links(&findings, Duration::from_secs(10));
        slow.iter().map(|one| (one.from, one.to)).collect()
    }

    #[test]
    fn a_link_is_slow_beside_the_others() {
        assert_eq!(slow_of(90_000_000, 100), [(2, 3)]);
        assert_eq!(slow_of(1_500_000, 100), [], "like the others");
        assert_eq!(slow_of(90_000_000, 2), [], "seldom");
        assert_eq!(slow_of(5_000_000, 5), [], "next to nothing of the time");
    }

    #[test]
    fn two_ranks_have_no_link_to_compare_with() {
        let mut findings = Findings::default();
        let link = Link { messages: 100, transfer_ns: 9_000_000_000 };
        findings.links.extend([((0, 1), link), ((1, 0), Link { messages: 100, transfer_ns: 1 })]);
        assert_eq!(links(&findings, Duration::from_secs(10)), []);
    }
}
