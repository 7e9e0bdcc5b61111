//! A trial: small trees on this machine, over each kind of link, with a few waves through them.
//!
//! This is the check that none of the others replaces: processes are started, prove the key, build
//! a tree and add numbers. The trees are those by which `sapwood topology` measures, too.

use super::Check;
use sapwood_command_line::exit::Failure;
use sapwood_topology_tool::measured;
use sapwood_topology_tool::trial::{TrialLinks, TrialTree};

/// Two levels: the smallest tree with communication processes that have several children.
const FAN_OUTS: [u32; 2] = [2, 2];

/// Waves that are looked at, after some that are not.
const ROUNDS: usize = 20;
const WARMUP_ROUNDS: usize = 5;

/// A tree over each kind of link.
pub(super) fn checks() -> Vec<Check> {
    vec![
        check("tree over unix", TrialLinks::Unix),
        check("tree over TCP", TrialLinks::EncryptedTcp),
    ]
}

/// What a message costs on this machine, as `sapwood topology` takes it.
pub(super) fn cost_of_a_message() -> Check {
    let name = "cost of a message";
    match measured::loggp() {
        Ok(model) => Check::fine(
            name,
            format!(
                "latency {:.1} us, overhead {:.1} us, {:.0} MB/s: --loggp {}",
                model.latency_us(),
                model.overhead_us(),
                1.0 / model.gap_per_byte_us().max(1e-6),
                measured::as_option(&model)
            ),
        ),
        Err(failure) => Check::failed(name, failure.to_string(), "see the lines above"),
    }
}

fn check(name: &'static str, links: TrialLinks) -> Check {
    match wave(links) {
        Ok((startup_ms, round_trip_us)) => Check::fine(
            name,
            format!(
                "2x2 started in {startup_ms:.0} ms, sums correct, {round_trip_us:.0} us per round trip"
            ),
        ),
        Err(failure) => Check::failed(
            name,
            failure.to_string(),
            "fix the warnings above; if there are none, report this line",
        ),
    }
}

/// Start-up in milliseconds and the median round trip in microseconds.
fn wave(links: TrialLinks) -> Result<(f64, f64), Failure> {
    let mut tree = TrialTree::open(&FAN_OUTS, links)?;
    let round_trip_us = tree.round_trip(64, ROUNDS, WARMUP_ROUNDS)?;
    let startup_ms = tree.startup.as_secs_f64() * 1e3;
    tree.close()?;
    Ok((startup_ms, round_trip_us))
}
