//! What messages and log-ins cost between hosts, from waves through the tree over them.
//!
//! Owns the experiment: a small question to one host and to all, a long one to one host, and the
//! times in which a tree with one host and one with several stand. What LogGP's overhead must be is
//! solved from that and the shape of the very tree, since the model says what it means for it.

use std::time::{Duration, Instant};

use sapwood::{Error, Network, Stream, Tag, Topology, Values};
use sapwood_topology::{LogGp, NodeSet};

use sapwood_command_line::exit::Failure;
use sapwood_hosts::measured::{LogIn, Measurement, now};

/// Asks for the number 1, for what was sent, and for the number 1 as often as is said.
pub(super) const PING: Tag = sapwood::FIRST_TAG + 1;
pub(super) const ECHO: Tag = sapwood::FIRST_TAG + 2;
pub(super) const FLOW: Tag = sapwood::FIRST_TAG + 3;

const SMALL_BYTES: u64 = 8;
const LONG_BYTES: usize = 1 << 20;

/// Waves whose median counts, after some that do not.
const SMALL_ROUNDS: usize = 100;
const LONG_ROUNDS: usize = 7;
const WARMUP_ROUNDS: usize = 5;

/// Waves that flow, after one that does not count: twice as many each time, until they take long
/// enough to be told from what lay in sockets and windows already.
const FLOWING: u32 = 2000;
const FLOWING_MAX: u32 = 1 << 22;
const FLOW_TIME: Duration = Duration::from_millis(200);

/// How long one wave may take.
const WAVE_LIMIT: Duration = Duration::from_secs(10);

/// Steps of halving by which a parameter is found: to a millionth of its bound.
const STEPS: usize = 20;

/// What was seen.
pub(super) struct Seen<'a> {
    pub(super) names: &'a [String],
    pub(super) launch_method: &'a str,
    pub(super) starts: Starts,
    /// On how many machines the hosts are, and the processors of each.
    pub(super) machines: u32,
    pub(super) processors: u32,
}

/// How long hosts took to start.
pub(super) struct Starts {
    /// One host.
    pub(super) one: Duration,
    /// `hosts` of them, which one process reaches side by side.
    pub(super) several: Duration,
    pub(super) hosts: usize,
}

impl Starts {
    /// What a log-in costs. It delays the next one for whatever reason: clients that share
    /// processors, or an agent that signs for one after another.
    fn log_in(&self) -> LogIn {
        let alone_us = self.one.as_secs_f64() * 1e6;
        let more_us = self.several.as_secs_f64() * 1e6 - alone_us;
        let gap_us = match self.hosts {
            // One host says nothing of others beside it.
            0 | 1 => LogIn::guess().gap_us,
            hosts => more_us / (hosts - 1) as f64,
        };
        LogIn { alone_us, gap_us: gap_us.clamp(0.0, alone_us) }
    }
}

/// What was measured.
pub(super) struct Found {
    /// What it says of links.
    pub(super) links: Measurement,
    /// Median time of a small question to one host, and to all.
    pub(super) one_us: f64,
    pub(super) all_us: f64,
    /// Waves of small sums that flow from all hosts.
    pub(super) waves_per_s: f64,
}

/// Measures a network all of whose hosts have answered, one back-end on each.
///
/// # Errors
/// What a wave can fail with.
pub(super) fn measure(network: &mut Network, seen: &Seen<'_>) -> Result<Found, Failure> {
    let topology = network.topology().clone();
    // The last host is as deep below the front-end as any, and shares no host with a parent.
    let last = topology.back_end_count().saturating_sub(1);
    let depth = depth_of(&topology, last);
    let alone = network.communicator([last]);
    let mut one = network.stream(&alone).up("sum").open()?;
    let single_us = median(SMALL_ROUNDS, || ping(&mut one))?;
    let mut all = network.stream(&network.everyone()).up("sum").open()?;
    let all_us = median(SMALL_ROUNDS, || ping(&mut all))?;
    let waves_per_s = flow(&mut all)?;
    let mut long = network.stream(&alone).open()?;
    let text = "x".repeat(LONG_BYTES);
    let long_us = median(LONG_ROUNDS, || echo(&mut long, &text))?;

    let per_byte_us = ((long_us - single_us) / (2 * LONG_BYTES) as f64).max(0.0);
    let hop_us = single_us / (2 * depth.max(1)) as f64;
    let message = |overhead_us: f64| {
        LogGp::new((hop_us - 2.0 * overhead_us).max(0.0), overhead_us, overhead_us, per_byte_us)
    };
    let overhead_us = solve(hop_us / 2.0, all_us, |overhead_us| {
        message(overhead_us).map_or(0.0, |m| m.round_trip_us(&topology, SMALL_BYTES, SMALL_BYTES))
    });
    let links = Measurement {
        hosts: seen.names.iter().cloned().collect::<NodeSet>(),
        launch_method: seen.launch_method.to_owned(),
        message: message(overhead_us).map_err(Failure::usage)?,
        log_in: seen.starts.log_in(),
        machines: seen.machines,
        processors: seen.processors,
        date: now(),
    };
    Ok(Found { links, one_us: single_us, all_us, waves_per_s })
}

/// Waves in a second, while they flow.
fn flow(stream: &mut Stream) -> Result<f64, Failure> {
    let mut waves = FLOWING;
    loop {
        stream.broadcast(FLOW, waves + 1)?;
        stream.recv_timeout(WAVE_LIMIT)?;
        let begun = Instant::now();
        for _ in 0..waves {
            stream.recv_timeout(WAVE_LIMIT)?;
        }
        let taken = begun.elapsed();
        if taken >= FLOW_TIME || waves >= FLOWING_MAX {
            return Ok(f64::from(waves) / taken.as_secs_f64());
        }
        waves *= 2;
    }
}

/// The value up to `bound` with which something that grows with it comes to `wanted`; the nearest
/// bound if it never does.
fn solve(bound: f64, wanted: f64, grows: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, bound);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        match grows(middle) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

fn depth_of(topology: &Topology, rank: u32) -> u32 {
    topology.node(rank).map_or(1, |node| node.depth())
}

fn ping(stream: &mut Stream) -> Result<(), Error> {
    stream.broadcast(PING, ())?;
    stream.recv_timeout(WAVE_LIMIT).map(drop)
}

fn echo(stream: &mut Stream, text: &str) -> Result<(), Error> {
    stream.broadcast(ECHO, Values::new().string(text))?;
    stream.recv_timeout(WAVE_LIMIT).map(drop)
}

/// The median time of a wave, in microseconds.
fn median(rounds: usize, mut wave: impl FnMut() -> Result<(), Error>) -> Result<f64, Failure> {
    for _ in 0..WARMUP_ROUNDS {
        wave()?;
    }
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begun = Instant::now();
        wave()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[rounds / 2].as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use sapwood::Hosts;

    use super::*;

    #[test]
    fn the_parameters_of_a_known_network_are_found() {
        let model = LogGp::new(40.0, 7.0, 7.0, 0.0).unwrap();
        for spec in ["4", "16", "4x4", "64"] {
            let topology = Topology::from_shape(&spec.parse().unwrap(), &Hosts::local());
            let all_us = model.round_trip_us(&topology, 8, 8);
            let hop_us = 40.0 + 2.0 * 7.0;
            let found = solve(hop_us / 2.0, all_us, |overhead| {
                let model = LogGp::new(hop_us - 2.0 * overhead, overhead, overhead, 0.0).unwrap();
                model.round_trip_us(&topology, 8, 8)
            });
            assert!((found - 7.0).abs() < 0.01, "{spec}: {found}");
        }
    }

    #[test]
    fn a_log_in_delays_the_next_by_what_several_take_longer() {
        let gap_ms = |several, hosts| {
            let milliseconds = Duration::from_millis;
            let starts =
                Starts { one: milliseconds(200), several: milliseconds(several), hosts }.log_in();
            assert_eq!(starts.alone_us, 200_000.0);
            (starts.gap_us / 1e3).round()
        };
        assert_eq!(gap_ms(480, 8), 40.0);
        assert_eq!(gap_ms(190, 8), 0.0, "hosts with processors enough");
        assert_eq!(gap_ms(9000, 8), 200.0, "one has no more than its whole time");
        assert_eq!(gap_ms(200, 1), 10.0, "a guess");
    }

    #[test]
    fn what_no_parameter_explains_takes_the_nearest() {
        assert!(solve(10.0, 1000.0, |value| value) > 9.9);
        assert!(solve(10.0, -1.0, |value| value) < 0.1);
    }
}
