//! Ways from one rank to another on which messages take long, by their times, or by what the kernel
//! counts of TCP connections.

use std::time::Duration;

use sapwood_trace::{Findings, LINK_BYTES_MIN, Link, LinkFigures, OTHERS, SlowFlow, slow_flows};
use serde::{Deserialize, Serialize};

use crate::quantity;

/// Fewer messages say nothing.
const MESSAGES_MIN: u64 = 5;
/// Links among which one is slow, at least.
const LINKS_MIN: usize = 3;
/// A slow link's messages take this many times as long as those of others.
const TIMES_MIN: u128 = 4;
/// And this many times as long as those of the slowest link that is not slow.
const APART_MIN: u128 = 2;
/// Where ranks take turns on a processor, messages take longer by less than this.
const TURNS_NS: u128 = 20_000_000;
/// Or they take less than this many times as long as others.
const TURNS_TIMES: u128 = 16;
/// The part of the receiver's time that they take, at least, in per cent.
const SHARE_PERCENT: u128 = 2;
/// Links told, at most.
const LINKS_MAX: usize = 8;

/// A way from one rank to another on which messages took long, though both sides had begun, or
/// whose TCP connection is slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowLink {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Messages; 0 where only its TCP connection is known.
    pub messages: u64,
    /// Those that were compared with messages of other links: all of them, or where the link was
    /// slow only for a part of the time, those of its slowest stretch.
    pub slow_messages: u64,
    /// The bytes of these on the mean, as far as the class of a size tells.
    pub mean_bytes: u64,
    /// How long one of these took as a rule, from when both sides had begun: the geometric mean.
    pub typical_s: f64,
    /// How long messages of this size take on the median of the links that are not slow.
    pub median_s: f64,
    /// All of them together; of a link that is only known by its TCP connection, for how long that
    /// had data under way.
    pub transfer_s: f64,
    /// What the kernel counts of its TCP connection; null where that is not slow, or not known.
    #[serde(default)]
    pub tcp: Option<SlowTcp>,
}

/// A TCP connection that was busy for much of the time, and slow beside others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowTcp {
    /// The time that is looked at: until the end, but for seconds there in which it was idle, or
    /// the stretch in which it was busiest.
    pub elapsed_s: f64,
    /// The part of it in which data was under way for which the receiver had room.
    pub busy_share: f64,
    /// The bytes that were received in it.
    pub bytes: u64,
    /// These in a second in which data was under way.
    pub bytes_per_s: u64,
    /// The same of the median of the connections.
    pub median_bytes_per_s: u64,
}

impl SlowTcp {
    fn of(slow: &SlowFlow) -> Self {
        let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
        Self {
            elapsed_s: seconds(slow.flow.elapsed_ns),
            busy_share: f64::from(u32::try_from(slow.flow.sending_ppm()).unwrap_or(0)) / 1e6,
            bytes: slow.flow.bytes,
            bytes_per_s: slow.flow.bytes_per_s(),
            median_bytes_per_s: slow.usual_bytes_per_s,
        }
    }

    fn line(&self, from: u32, to: u32) -> String {
        let rate = |bytes: u64| {
            #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
            let bytes = quantity::bytes(bytes as f64);
            format!("{bytes}/s")
        };
        format!(
            "the link from rank {from} to rank {to} is slow: its TCP connection had data under way \
             in {} of {} and sent {}, other links send {}",
            quantity::percent(Some(self.busy_share)),
            quantity::time(self.elapsed_s * 1e9),
            rate(self.bytes_per_s),
            rate(self.median_bytes_per_s),
        )
    }
}

impl SlowLink {
    pub(super) fn line(&self) -> String {
        if let (0, Some(tcp)) = (self.messages, &self.tcp) {
            return tcp.line(self.from, self.to);
        }
        let time = |seconds: f64| quantity::time(seconds * 1e9);
        let messages = quantity::whole(self.messages.into());
        let messages = match self.slow_messages < self.messages {
            true => {
                let slow = quantity::whole(self.slow_messages.into());
                format!("{slow} of {messages} messages, one after another,")
            }
            false => format!("{messages} messages"),
        };
        format!(
            "the link from rank {} to rank {} is slow: {messages} took {} each once both sides had \
             begun, other links take {} for this size",
            self.from,
            self.to,
            time(self.typical_s),
            time(self.median_s),
        )
    }
}

/// From which cost on links are slow, of all costs in order: four times the median, or where they
/// fall into two sets with a gap of as much, those above if they are not more than those below.
/// Slow links stand apart, by twice the cost of the next one at least: where more ranks than
/// processors take turns, the costs of all links spread without a gap.
fn least_slow(costs: &[u128]) -> Option<u128> {
    if costs.len() < LINKS_MIN {
        return None;
    }
    let half = costs.len().div_ceil(2).max(2);
    let is_apart =
        |at: &usize, times| costs[*at] >= costs[at - 1].saturating_mul(times) && costs[*at] > 0;
    let gap = (half..costs.len()).find(|at| is_apart(at, TIMES_MIN));
    let beyond_median = costs[costs.len() / 2].saturating_mul(TIMES_MIN);
    let first = costs.partition_point(|cost| *cost < beyond_median).max(1);
    let apart = (first..costs.len()).find(|at| is_apart(at, APART_MIN));
    gap.into_iter().chain(apart).min().map(|at| costs[at])
}

/// A link with those of its messages by which it is compared with others.
#[derive(Clone, Copy)]
struct Compared<'a> {
    from: u32,
    to: u32,
    all: &'a Link,
    part: &'a Link,
}

/// The slow links of a run, those that took most time first.
pub(super) fn links(findings: &Findings, elapsed: Duration) -> Vec<SlowLink> {
    let mut slow = slow_by(findings, elapsed, |figures| &figures.all);
    let ends: Vec<_> = slow.iter().map(|one| (one.from, one.to)).collect();
    let changed = slow_by(findings, elapsed, |figures| &figures.slowest);
    slow.extend(changed.into_iter().filter(|one| !ends.contains(&(one.from, one.to))));
    add_slow_tcp(&mut slow, findings, elapsed);
    slow.sort_by(|one, other| other.transfer_s.total_cmp(&one.transfer_s));
    slow.truncate(LINKS_MAX);
    slow
}

/// Adds those whose TCP connections are slow: under collectives there are no messages by which to
/// compare.
fn add_slow_tcp(slow: &mut Vec<SlowLink>, findings: &Findings, elapsed: Duration) {
    for one in slow_flows(&findings.tcp) {
        let busy = Duration::from_micros(one.all.sending_us());
        if busy.as_nanos() * 100 < elapsed.as_nanos() * SHARE_PERCENT {
            continue;
        }
        let tcp = Some(SlowTcp::of(&one));
        match slow.iter_mut().find(|link| (link.from, link.to) == (one.from, one.to)) {
            Some(link) => link.tcp = tcp,
            None => slow.push(SlowLink {
                from: one.from,
                to: one.to,
                transfer_s: busy.as_secs_f64(),
                tcp,
                ..SlowLink::default()
            }),
        }
    }
}

/// Those that are slow by a part of their messages.
fn slow_by(
    findings: &Findings,
    elapsed: Duration,
    part: impl Fn(&LinkFigures) -> &Link,
) -> Vec<SlowLink> {
    let all = findings.links.iter().filter(|(ends, _)| ends.0 != OTHERS);
    let all = all.map(|(&(from, to), one)| Compared { from, to, all: &one.all, part: part(one) });
    let known: Vec<Compared<'_>> = all.filter(|one| one.part.messages >= MESSAGES_MIN).collect();
    let mut costs: Vec<u128> = known.iter().map(|one| one.part.cost()).collect();
    costs.sort_unstable();
    let Some(least) = least_slow(&costs) else { return Vec::new() };
    let matters =
        |link: &Link| u128::from(link.transfer_ns) * 100 >= elapsed.as_nanos() * SHARE_PERCENT;
    let (mut slow, quick): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|one| one.part.cost() >= least.max(1));
    // Those that are not slow come first in this order.
    let median = costs[quick.len() / 2];
    slow.retain(|one| is_beyond_turns(one.part, median));
    let mut told: Vec<_> = slow.iter().filter(|one| matters(one.all)).collect();
    told.retain(|one| !is_explained(one, &slow));
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    let told = told.into_iter().map(|one| {
        let mean_bytes = mean_bytes(one.part);
        let usual_ns = (median * u128::from(mean_bytes.max(LINK_BYTES_MIN))) >> 32;
        SlowLink {
            from: one.from,
            to: one.to,
            messages: one.all.messages,
            slow_messages: one.part.messages,
            mean_bytes,
            typical_s: seconds(one.part.typical_ns()),
            median_s: seconds(u64::try_from(usual_ns).unwrap_or(u64::MAX)),
            transfer_s: seconds(one.all.transfer_ns),
            tcp: None,
        }
    });
    told.collect()
}

/// Whether messages took longer than where the sender has to wait for its turn on a processor:
/// much longer than others in time, or beside them.
fn is_beyond_turns(link: &Link, usual: u128) -> bool {
    let usual_ns = (usual * u128::from(mean_bytes(link).max(LINK_BYTES_MIN))) >> 32;
    let excess_ns = u128::from(link.typical_ns()).saturating_sub(usual_ns);
    excess_ns >= TURNS_NS || link.cost() >= usual.saturating_mul(TURNS_TIMES)
}

fn mean_bytes(link: &Link) -> u64 {
    link.bytes / link.messages.max(1)
}

/// Whether calls that both send and receive took long because of what they sent: the link to
/// another rank than the one that they received from is slow as well.
fn is_explained(one: &Compared<'_>, slow: &[Compared<'_>]) -> bool {
    let is_by_exchange = one.part.exchanges * 2 > one.part.messages;
    let explains = |other: &Compared<'_>| {
        let is_another = other.from == one.to && other.to != one.from;
        is_another && other.part.typical_ns() * 2 >= one.part.typical_ns()
    };
    is_by_exchange && slow.iter().any(explains)
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{TcpFigures, TcpFlow};

    use super::super::{WHY_SCHEMA, Why};
    use super::*;

    /// A link on which messages took this long, gathered ten by ten.
    fn link(times_ns: impl Iterator<Item = u64>, bytes: u64) -> LinkFigures {
        let times_ns: Vec<u64> = times_ns.collect();
        let mut figures = LinkFigures::default();
        for round in times_ns.chunks(10) {
            let mut link = Link::default();
            round.iter().for_each(|&ns| link.merge(&Link::of_exchange(ns, bytes)));
            figures.add(&link);
        }
        figures
    }

    fn ends(findings: &Findings) -> Vec<(u32, u32)> {
        let slow = links(findings, Duration::from_secs(10));
        slow.iter().map(|one| (one.from, one.to)).collect()
    }

    /// Links, each with a time and the bytes of a message.
    fn slow_of(all: &[((u32, u32), u64, u64)]) -> Vec<(u32, u32)> {
        let mut findings = Findings::default();
        for &(ends, ns, bytes) in all {
            findings.links.insert(ends, link(std::iter::repeat_n(ns, 100), bytes));
        }
        ends(&findings)
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
    fn where_the_times_of_links_spread_none_is_slow() {
        let of = |last_us: u64| {
            let times_us = [300, 500, 700, 721, 900, 1300, 1800, last_us];
            let ends = (0..).map(|from| (from, (from + 1) % 8));
            let all: Vec<_> = ends.zip(times_us).map(|(ends, us)| (ends, us * 1000, 1)).collect();
            slow_of(&all)
        };
        assert_eq!(of(3_010), [], "more than four times the median");
        assert_eq!(of(7_340), [], "as where the sender waits for a processor");
        assert_eq!(of(12_000), [(7, 0)], "sixteen times as long");
    }

    /// Adds a ring of connections over some quarters of a second, in which that from rank 2 to
    /// rank 3 is busy all the time.
    fn add_ring(findings: &mut Findings, quarters: u32) {
        for from in 0..4 {
            let flow = TcpFlow {
                elapsed_ns: 250 * MS,
                called_ns: 200 * MS,
                busy_us: if from == 2 { 250_000 } else { 1_250 },
                bytes: 240_000,
                readings: 1,
                queued: u32::from(from == 2),
                ..TcpFlow::default()
            };
            let mut figures = TcpFigures::default();
            figures.is_within = true;
            (0..quarters).for_each(|_| figures.add(&flow));
            findings.tcp.insert((from, (from + 1) % 4), figures);
        }
    }

    #[test]
    fn a_link_that_is_slow_under_collectives_is_told_by_its_connection() {
        let mut findings = Findings::default();
        add_ring(&mut findings, 40);
        let [one] = &links(&findings, Duration::from_secs(10))[..] else { panic!("one link") };
        assert_eq!((one.from, one.to, one.messages, one.transfer_s), (2, 3, 0, 10.0));
        assert_eq!(
            one.line(),
            "the link from rank 2 to rank 3 is slow: its TCP connection had data under way in \
             100.0 % of 10.0 s and sent 960 KB/s, other links send 192 MB/s"
        );
        assert_eq!(links(&findings, Duration::from_secs(501)), [], "2 % of the time");
        let value = serde_json::to_value(Why { links: vec![one.clone()], ..why() }).expect("text");
        sapwood_schema::assert_fits("why-1", &value);
    }

    fn why() -> Why {
        Why { schema: WHY_SCHEMA.to_owned(), ..Why::default() }
    }

    #[test]
    fn a_link_that_is_slow_by_its_messages_is_told_once() {
        let mut findings = Findings::default();
        for (from, to, ms) in [(0, 1, 1), (1, 2, 1), (3, 0, 1), (2, 3, 90)] {
            findings.links.insert((from, to), link(std::iter::repeat_n(ms * MS, 100), 100));
        }
        add_ring(&mut findings, 40);
        let [one] = &links(&findings, Duration::from_secs(10))[..] else { panic!("one link") };
        assert_eq!((one.from, one.to, one.messages, one.tcp.is_some()), (2, 3, 100, true));
        assert!(one.line().contains("100 messages took"), "{}", one.line());
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
        let of = |messages, ns: u64| link(std::iter::repeat_n(ns, messages), 0);
        findings.links.extend([((0, 1), of(100, 1000)), ((1, 2), of(100, 1000))]);
        findings.links.extend([((2, 3), of(2, 900 * MS)), ((3, 0), of(5, 5 * MS))]);
        assert_eq!(links(&findings, Duration::from_secs(10)), []);
    }

    #[test]
    fn two_ranks_have_no_link_to_compare_with() {
        assert_eq!(slow_of(&[((0, 1), 90 * MS, 1), ((1, 0), 1, 1)]), []);
    }

    #[test]
    fn a_link_that_becomes_slow_late_is_told_with_its_slow_messages() {
        let of = |slow: usize, slow_ns: u64| {
            let mut findings = Findings::default();
            // The scheduler holds one of five messages up on all links.
            let noisy = |number: u64| if number.is_multiple_of(5) { 30 * MS } else { MS };
            for from in 0..8 {
                findings.links.insert((from, (from + 1) % 8), link((0..100).map(noisy), 1));
            }
            let late = std::iter::repeat_n(slow_ns, slow);
            let times = (0..100).map(noisy).chain(late).chain((0..100).map(noisy));
            findings.links.insert((3, 4), link(times, 1));
            links(&findings, Duration::from_secs(10))
        };
        let [one] = &of(25, 200 * MS)[..] else { panic!("one link") };
        assert_eq!((one.from, one.to, one.messages, one.slow_messages), (3, 4, 225, 10));
        assert!((0.187..0.21).contains(&one.typical_s), "{one:?}");
        assert!(
            one.line().contains("10 of 225 messages, one after another, took"),
            "{}",
            one.line()
        );
        assert_eq!(of(1, 900 * MS), [], "one that was stopped for a second");
        assert_eq!(of(4, 300 * MS), [], "or four times");
    }
}
