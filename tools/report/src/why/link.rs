//! Ways from one rank to another on which messages take long.

use std::cmp::Reverse;
use std::time::Duration;

use sapwood_trace::{Findings, Link, OTHERS};
use serde::{Deserialize, Serialize};

use crate::quantity;

/// Fewer messages say nothing.
const MESSAGES_MIN: u64 = 5;
/// Links among which one is slow, at least.
const LINKS_MIN: usize = 3;
/// A slow link's messages take this many times as long as those of others.
const TIMES_MIN: u128 = 4;
/// Smaller messages take as long as those of this size, in bytes.
const BYTES_MIN: u64 = 16 << 10;
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
    /// Their bytes on the mean, as far as the class of a size tells.
    pub mean_bytes: u64,
    /// How long one took as a rule, from when both sides had begun: the geometric mean.
    pub typical_s: f64,
    /// How long messages of this size take on the median of the links that are not slow.
    pub median_s: f64,
    /// All of them together.
    pub transfer_s: f64,
}

impl SlowLink {
    pub(super) fn line(&self) -> String {
        let time = |seconds: f64| quantity::time(seconds * 1e9);
        format!(
            "the link from rank {} to rank {} is slow: {} messages took {} each once both sides had \
             begun, other links take {} for this size",
            self.from,
            self.to,
            quantity::whole(self.messages.into()),
            time(self.typical_s),
            time(self.median_s),
        )
    }
}

/// How long a link takes for its bytes, of which small messages have a least number, in nanoseconds
/// for each 2^32 of them.
fn cost(link: &Link) -> u128 {
    let mean_bytes = (link.bytes / link.messages.max(1)).max(BYTES_MIN);
    (u128::from(link.typical_ns()) << 32) / u128::from(mean_bytes)
}

/// From which cost on links are slow, of all costs in order: four times the median, or where they
/// fall into two sets with a gap of as much, those above if they are not more than those below.
fn least_slow(costs: &[u128]) -> Option<u128> {
    if costs.len() < LINKS_MIN {
        return None;
    }
    let beyond_median = costs[costs.len() / 2].saturating_mul(TIMES_MIN);
    let half = costs.len().div_ceil(2).max(2);
    let gap = (half..costs.len())
        .find(|&at| costs[at] >= costs[at - 1].saturating_mul(TIMES_MIN) && costs[at] > 0);
    Some(gap.map_or(beyond_median, |at| costs[at].min(beyond_median)))
}

/// The slow links of a run, those that took most time first.
pub(super) fn links(findings: &Findings, elapsed: Duration) -> Vec<SlowLink> {
    let known: Vec<_> = findings
        .links
        .iter()
        .filter(|(ends, link)| ends.0 != OTHERS && link.messages >= MESSAGES_MIN)
        .collect();
    let mut costs: Vec<u128> = known.iter().map(|(_, link)| cost(link)).collect();
    costs.sort_unstable();
    let Some(least) = least_slow(&costs) else { return Vec::new() };
    let matters =
        |link: &Link| u128::from(link.transfer_ns) * 100 >= elapsed.as_nanos() * SHARE_PERCENT;
    let (slow, quick): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|(_, link)| cost(link) >= least.max(1));
    // Those that are not slow come first in this order.
    let median = costs[quick.len() / 2];
    let mut told: Vec<_> = slow.iter().filter(|(_, link)| matters(link)).collect();
    told.retain(|(ends, link)| !is_explained(**ends, link, &slow));
    told.sort_by_key(|(ends, link)| (Reverse(link.transfer_ns), **ends));
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    let told = told.into_iter().take(LINKS_MAX).map(|told| {
        let (&(from, to), link) = *told;
        let mean_bytes = link.bytes / link.messages;
        let usual_ns = (median * u128::from(mean_bytes.max(BYTES_MIN))) >> 32;
        SlowLink {
            from,
            to,
            messages: link.messages,
            mean_bytes,
            typical_s: seconds(link.typical_ns()),
            median_s: seconds(u64::try_from(usual_ns).unwrap_or(u64::MAX)),
            transfer_s: seconds(link.transfer_ns),
        }
    });
    told.collect()
}

/// Whether calls that both send and receive took long because of what they sent: the link to
/// another rank than the one that they received from is slow as well.
fn is_explained(ends: (u32, u32), link: &Link, slow: &[(&(u32, u32), &Link)]) -> bool {
    let is_by_exchange = link.exchanges * 2 > link.messages;
    let explains = |other: &(u32, u32), of: &Link| {
        other.0 == ends.1 && other.1 != ends.0 && of.typical_ns() * 2 >= link.typical_ns()
    };
    is_by_exchange && slow.iter().any(|(other, of)| explains(other, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links, each with a mean time and the bytes of a message.
    fn slow_of(all: &[((u32, u32), u64, u64)]) -> Vec<(u32, u32)> {
        let mut findings = Findings::default();
        for &(ends, mean_ns, bytes) in all {
            let messages = 100;
            let (transfer_ns, bytes) = (mean_ns * messages, bytes * messages);
            let log_sum = log(mean_ns) * messages;
            let link = Link { messages, transfer_ns, log_sum, bytes, exchanges: messages };
            findings.links.insert(ends, link);
        }
        let slow = links(&findings, Duration::from_secs(10));
        slow.iter().map(|one| (one.from, one.to)).collect()
    }

    /// In 1/16, as a link has it.
    fn log(ns: u64) -> u64 {
        ((ns.max(1) as f64).log2() * 16.0) as u64
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_link_is_slow_beside_the_others() {
        let of = |slow_ns| {
            let (quick, bytes) = (MS, 100);
            let ring = [((0, 1), quick, bytes), ((1, 2), quick, bytes), ((3, 0), quick, bytes)];
            slow_of(&[&ring[..], &[((2, 3), slow_ns, bytes)]].concat())
        };
        assert_eq!(of(90 * MS), [(2, 3)]);
        assert_eq!(of(MS * 3 / 2), [], "like the others");
    }

    #[test]
    fn both_ways_of_a_slow_pair_are_told() {
        let all = [((0, 1), MS, 1), ((1, 0), MS, 1), ((2, 3), 40 * MS, 1), ((3, 2), 50 * MS, 1)];
        assert_eq!(slow_of(&all), [(3, 2), (2, 3)]);
    }

    #[test]
    fn a_link_with_larger_messages_is_not_slow_for_that() {
        let large = 16 << 20;
        let all = [((0, 1), MS, 1 << 20), ((1, 0), MS, 1 << 20), ((2, 3), 16 * MS, large)];
        assert_eq!(slow_of(&all), []);
        let small = [((0, 1), MS, 8), ((1, 0), MS, 8), ((2, 3), 16 * MS, 8192)];
        assert_eq!(slow_of(&small), [(2, 3)], "what has few bytes costs the same");
    }

    #[test]
    fn an_exchange_is_not_told_for_what_it_sends() {
        let ring = [((0, 1), MS, 1), ((1, 2), 88 * MS, 1), ((2, 3), 90 * MS, 1), ((3, 0), MS, 1)];
        assert_eq!(slow_of(&ring), [(2, 3)]);
    }

    #[test]
    fn few_messages_or_little_time_say_nothing() {
        let mut findings = Findings::default();
        let of = |messages, mean_ns: u64| Link {
            messages,
            transfer_ns: mean_ns * messages,
            log_sum: log(mean_ns) * messages,
            ..Link::default()
        };
        findings.links.extend([((0, 1), of(100, 1000)), ((1, 2), of(100, 1000))]);
        findings.links.extend([((2, 3), of(2, 900 * MS)), ((3, 0), of(5, 5 * MS))]);
        assert_eq!(links(&findings, Duration::from_secs(10)), []);
    }

    #[test]
    fn two_ranks_have_no_link_to_compare_with() {
        let mut findings = Findings::default();
        let of = |transfer_ns| {
            let log_sum = log(transfer_ns / 100) * 100;
            Link { messages: 100, transfer_ns, log_sum, ..Link::default() }
        };
        findings.links.extend([((0, 1), of(9_000_000_000)), ((1, 0), of(1))]);
        assert_eq!(links(&findings, Duration::from_secs(10)), []);
    }
}
