//! The parameters of LogGP on this machine, from waves through real trees.
//!
//! Owns the experiment: what a small answer takes through one link, through a front-end with
//! several children, and what a long one takes. What is measured is all that a message of Sapwood
//! costs, with its checks and the processes' wake-ups, not only the socket's part.

use sapwood_topology::LogGp;

use crate::trial::{TrialLinks, TrialTree};
use sapwood_command_line::exit::Failure;

/// Children of the front-end by which one more message is told from a wave's other costs.
const CHILDREN: u32 = 8;

const SMALL_BYTES: usize = 64;
const LONG_BYTES: usize = 1 << 20;

/// Waves whose median counts, after some that do not.
const SMALL_ROUNDS: usize = 400;
const LONG_ROUNDS: usize = 40;
const WARMUP_ROUNDS: usize = 20;

/// Measures this machine; takes less than a second.
///
/// A wave through one link is `2 (L + 2 o)`; each further child costs the front-end one send and
/// one receive more. The gap between messages cannot be told from the overhead this way, and is
/// given as the same.
///
/// # Errors
/// What a tree of this machine can fail with.
pub fn loggp() -> Result<LogGp, Failure> {
    let mut one = open(1)?;
    let single_us = one.round_trip(SMALL_BYTES, SMALL_ROUNDS, WARMUP_ROUNDS)?;
    let long_us = one.round_trip(LONG_BYTES, LONG_ROUNDS, WARMUP_ROUNDS)?;
    one.close()?;
    let mut many = open(CHILDREN)?;
    let many_us = many.round_trip(SMALL_BYTES, SMALL_ROUNDS, WARMUP_ROUNDS)?;
    many.close()?;
    let overhead_us = ((many_us - single_us) / (2 * (CHILDREN - 1)) as f64).max(0.0);
    let latency_us = (single_us / 2.0 - 2.0 * overhead_us).max(0.0);
    let per_byte_us = ((long_us - single_us) / (LONG_BYTES - SMALL_BYTES) as f64).max(0.0);
    LogGp::new(latency_us, overhead_us, overhead_us, per_byte_us).map_err(Failure::usage)
}

fn open(children: u32) -> Result<TrialTree, Failure> {
    TrialTree::open(&[children], TrialLinks::Unix)
}

/// As `--loggp` takes it.
pub fn as_option(model: &LogGp) -> String {
    format!(
        "{:.1},{:.1},{:.1},{:.5}",
        model.latency_us(),
        model.overhead_us(),
        model.gap_us(),
        model.gap_per_byte_us()
    )
}
