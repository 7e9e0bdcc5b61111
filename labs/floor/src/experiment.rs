//! What is measured on a running floor: a closed loop of round trips, and a stream of waves.
//!
//! Both broadcast a command of 64 payload bytes and gather sums of `bytes` payload bytes, and
//! compare every element of every sum with what it must be. Does not repeat, compare or condense
//! runs: that is the caller's (with [`crate::statistics`]), which alone knows what was interleaved
//! with what.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::node::Gather;
use crate::packet::{self, Command, ExpectedSum, HEADER_BYTES};
use crate::statistics::quantile;
use crate::tree::Floor;

/// Packets that a streaming leaf hands to one write unless told otherwise.
pub const PACKETS_PER_WRITE: usize = 64;

/// Most bytes that a streaming leaf hands to one write, unless one packet is larger.
pub const WRITE_BYTES_MAX: usize = 64 << 10;

/// Most round trips in one run: each leaves a sample in memory.
pub const ROUNDS_MAX: usize = 10_000_000;

/// One closed loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Time of each round, microseconds: from before the first write of the broadcast to the last
    /// addition at the root.
    pub samples_us: Vec<f64>,
    /// CPU time of all processes together, the root's thread included, per wave, microseconds.
    pub cpu_us_per_wave: f64,
}

impl RoundTrip {
    /// Fastest round, microseconds.
    pub fn min_us(&self) -> f64 {
        self.quantile(0.0)
    }

    /// Median round, microseconds.
    pub fn median_us(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The time that nine rounds of ten do not exceed, microseconds.
    pub fn p90_us(&self) -> f64 {
        self.quantile(0.9)
    }

    fn quantile(&self, fraction: f64) -> f64 {
        quantile(&self.samples_us, fraction).unwrap_or(f64::NAN)
    }
}

/// One stream of waves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pipelined {
    /// Waves summed at the root.
    pub waves: u64,
    /// From before the broadcast to the last sum, seconds.
    pub seconds: f64,
    /// Waves per second.
    pub waves_per_s: f64,
    /// CPU time of all processes together, the root's thread included, per wave, microseconds.
    pub cpu_us_per_wave: f64,
}

impl Floor {
    /// Closed loop: the root broadcasts a command (64 payload bytes), every leaf answers with one
    /// packet of `bytes` payload bytes, the root gets the sum and starts the next. The first
    /// `warmup` rounds are checked but not counted.
    pub fn round_trip(
        &mut self,
        bytes: usize,
        rounds: usize,
        warmup: usize,
    ) -> Result<RoundTrip, Error> {
        self.check_arguments(bytes)?;
        if rounds == 0 || rounds.saturating_add(warmup) > ROUNDS_MAX {
            return Err(Error::Argument("rounds and warm-up together are 1 to 10000000"));
        }
        let mut gather = Gather::new();
        let mut expected = ExpectedSum::new(self.leaves, bytes);
        let begin = Instant::now();
        for _ in 0..warmup {
            self.one_round(&mut gather, &mut expected, bytes)?;
            self.check_deadline("warm-up of the round trips", begin)?;
        }
        let mut samples_us = Vec::with_capacity(rounds);
        let cpu_before = self.cpu_nanoseconds()?;
        for _ in 0..rounds {
            let round = self.one_round(&mut gather, &mut expected, bytes)?;
            samples_us.push(round.as_secs_f64() * 1e6);
            self.check_deadline("round trips", begin)?;
        }
        let cpu = self.cpu_nanoseconds()?.saturating_sub(cpu_before);
        Ok(RoundTrip { samples_us, cpu_us_per_wave: cpu as f64 / 1e3 / rounds as f64 })
    }

    /// Stream: one broadcast asks for `waves` waves of `bytes` payload bytes, and the leaves send
    /// them as fast as the sockets take them, [`PACKETS_PER_WRITE`] packets to a write.
    pub fn pipelined(&mut self, bytes: usize, waves: u64) -> Result<Pipelined, Error> {
        self.pipelined_by(bytes, waves, PACKETS_PER_WRITE)
    }

    /// As [`Floor::pipelined`], with another number of packets to a leaf's write. Inner nodes read
    /// and write one packet per system call in any case.
    pub fn pipelined_by(
        &mut self,
        bytes: usize,
        waves: u64,
        packets_per_write: usize,
    ) -> Result<Pipelined, Error> {
        self.check_arguments(bytes)?;
        if waves == 0 || packets_per_write == 0 {
            return Err(Error::Argument("waves and packets per write are at least 1"));
        }
        let fitting = (WRITE_BYTES_MAX / (HEADER_BYTES + bytes)).max(1);
        let packets_per_write = packets_per_write.min(fitting);
        let mut gather = Gather::new();
        let mut expected = ExpectedSum::new(self.leaves, bytes);
        let cpu_before = self.cpu_nanoseconds()?;
        let begin = Instant::now();
        self.broadcast(Command::Stream { waves, bytes, packets_per_write })?;
        for wave in 0..waves {
            self.gather(&mut gather, &mut expected, wave, bytes)?;
            self.check_deadline("pipelined waves", begin)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let cpu = self.cpu_nanoseconds()?.saturating_sub(cpu_before);
        Ok(Pipelined {
            waves,
            seconds,
            waves_per_s: waves as f64 / seconds,
            cpu_us_per_wave: cpu as f64 / 1e3 / waves as f64,
        })
    }

    fn check_arguments(&self, bytes: usize) -> Result<(), Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        if !packet::bytes_are_valid(bytes) {
            return Err(Error::Argument("bytes is a multiple of 8 from 8 to 67108864"));
        }
        Ok(())
    }

    fn one_round(
        &mut self,
        gather: &mut Gather,
        expected: &mut ExpectedSum,
        bytes: usize,
    ) -> Result<Duration, Error> {
        let wave = self.next_wave;
        self.next_wave += 1;
        let begin = Instant::now();
        self.broadcast(Command::RoundTrip { wave, bytes })?;
        // The comparison is outside the time: it is the benchmark's work, not the tree's.
        let sum = gather.wave(&self.links, wave, bytes);
        let round = begin.elapsed();
        match sum {
            Ok(sum) => expected.check(&sum[HEADER_BYTES..], wave).map(|()| round),
            Err((child, source)) => Err(self.fail("a round trip", child, source)),
        }
    }

    fn gather(
        &mut self,
        gather: &mut Gather,
        expected: &mut ExpectedSum,
        wave: u64,
        bytes: usize,
    ) -> Result<(), Error> {
        match gather.wave(&self.links, wave, bytes) {
            Ok(sum) => expected.check(&sum[HEADER_BYTES..], wave),
            Err((child, source)) => Err(self.fail("a pipelined wave", child, source)),
        }
    }

    pub(crate) fn broadcast(&mut self, command: Command) -> Result<(), Error> {
        let packet = command.encode();
        for child in 0..self.links.len() {
            let written = self.links[child].write_all(&packet);
            written.map_err(|source| self.fail("a broadcast", child, source))?;
        }
        Ok(())
    }

    fn check_deadline(&mut self, what: &'static str, begin: Instant) -> Result<(), Error> {
        if begin.elapsed() <= self.deadline {
            return Ok(());
        }
        // Waves are still under way, so the tree cannot be asked anything else.
        Err(self.fail(what, 0, std::io::ErrorKind::TimedOut.into()))
    }
}
