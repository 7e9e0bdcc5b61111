//! Sapwood's tree in a benchmark: opening it, and the two experiments on it.
//!
//! Owns the counterpart of the floor's `Floor`: the same requests, the same sums, the same moments
//! at which a clock is read. Does not repeat, compare or condense runs; `pairs` does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use sapwood::{
    Answer, Hosts, Network, NetworkBuilder, Program, Recovery, Stream, Topology, TransportKind,
};
use sapwood_floor::statistics::median;
use sapwood_floor::{Shape, process};

use super::leaf::{BACK_END, ExpectedSum, Request, TAG};
use super::plan::Transport;
use super::processes::descendants;
use sapwood_command_line::exit::Failure;

/// Longest wait for an answer: that of the floor's sockets.
const ANSWER_DEADLINE: Duration = sapwood_floor::EXPERIMENT_DEADLINE;

/// What tree to open.
#[derive(Clone, Debug)]
pub(crate) struct TreePlan {
    /// Fan-out of each level.
    pub shape: Shape,
    /// What links are made of.
    pub transport: Transport,
    /// Whether links are encrypted.
    pub is_encrypted: bool,
    /// What happens when processes are gone; the network's own default if nothing is said.
    pub recovery: Option<Recovery>,
}

/// A running tree whose back-ends are this program.
pub(crate) struct Tree {
    // Before the network, which it needs when it is dropped.
    stream: Stream,
    network: Network,
    processes: Vec<u32>,
    leaves: usize,
    next_wave: u64,
    /// From before the first start to the whole tree's answer.
    pub(crate) startup: Duration,
}

/// A network of that shape, with the communication processes of the product.
pub(super) fn builder(
    shape: &sapwood::Shape,
    transport: Transport,
) -> Result<NetworkBuilder, Failure> {
    let topology = Topology::from_shape(shape, &Hosts::local());
    let transport = match transport {
        Transport::Unix => TransportKind::Unix,
        Transport::Tcp => TransportKind::Tcp,
        Transport::Shm => TransportKind::Shm,
    };
    Ok(Network::builder(topology).node_program(sapwood::node_program()?).transport(transport))
}

/// This program as a back-end of the benchmarks.
pub(super) fn leaf_program() -> Result<Program, Failure> {
    Ok(Program::new(own_program()?).argument(BACK_END).binds_itself())
}

/// The file of this very program.
pub(super) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::own(&format!("cannot find this program's file: {error}")))
}

/// One stream of waves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipelined {
    pub waves_per_s: f64,
    pub cpu_us_per_wave: f64,
}

impl Tree {
    /// Starts a tree and waits until it stands.
    pub(crate) fn open(plan: &TreePlan) -> Result<Self, Failure> {
        let fan_outs: Vec<u32> =
            plan.shape.fan_outs().iter().map(|fan_out| *fan_out as u32).collect();
        let shape = sapwood::Shape::levels(&fan_outs).map_err(Failure::usage)?;
        let mut builder = builder(&shape, plan.transport)?.encryption(plan.is_encrypted);
        if let Some(recovery) = plan.recovery {
            builder = builder.recovery(recovery);
        }
        Self::start(&shape, builder)
    }

    /// Starts a tree of any shape and waits until it stands.
    pub(super) fn start(shape: &sapwood::Shape, builder: NetworkBuilder) -> Result<Self, Failure> {
        let builder = builder.back_end(leaf_program()?);
        let before = descendants()?;
        let begin = Instant::now();
        let mut network = builder.open()?;
        let startup = begin.elapsed();
        // For `sapwood status`; of two trees at a time, the first is seen.
        let _ = network.publish(&format!("bench-{}", std::process::id()));
        crate::withdrawal::before_signals_end_us();
        let stream = network.stream(&network.everyone()).up("sum").open()?;
        let processes: Vec<u32> =
            descendants()?.into_iter().filter(|pid| !before.contains(pid)).collect();
        let expected = shape.node_count() as usize - 1;
        if processes.len() != expected {
            return Err(Failure::own(&format!(
                "the tree {shape} has {} processes below its root, not {expected}",
                processes.len()
            )));
        }
        let leaves = shape.back_end_count() as usize;
        Ok(Self { stream, network, processes, leaves, next_wave: 0, startup })
    }

    /// The processes below the front-end.
    pub(super) fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Closed loop, as the floor's: the median round, in microseconds.
    pub(crate) fn round_trip(
        &mut self,
        bytes: usize,
        rounds: usize,
        warmup: usize,
    ) -> Result<f64, Failure> {
        let elements = bytes / 8;
        let mut expected = ExpectedSum::new(self.leaves, elements);
        let mut samples = Vec::with_capacity(rounds);
        for round in 0..warmup + rounds {
            let wave = self.next_wave;
            self.next_wave += 1;
            let request = Request { elements: elements as u64, first_wave: wave, waves: 1 };
            let begin = Instant::now();
            self.stream.broadcast(TAG, request.values())?;
            let answer = self.stream.recv_timeout(ANSWER_DEADLINE)?;
            let elapsed = begin.elapsed();
            expected.check(&answer, wave)?;
            if round >= warmup {
                samples.push(elapsed.as_secs_f64() * 1e6);
            }
        }
        median(&samples).ok_or_else(|| Failure::own(&"no round trip was measured"))
    }

    /// Stream of waves, as the floor's: one request, then every leaf sends as fast as it may.
    pub(super) fn pipelined(&mut self, bytes: usize, waves: u64) -> Result<Pipelined, Failure> {
        let elements = bytes / 8;
        let mut expected = ExpectedSum::new(self.leaves, elements);
        let first_wave = self.next_wave;
        self.next_wave += waves;
        let cpu_before = self.cpu_nanoseconds()?;
        let begin = Instant::now();
        self.stream
            .broadcast(TAG, Request { elements: elements as u64, first_wave, waves }.values())?;
        for wave in first_wave..first_wave + waves {
            let answer: Answer = self.stream.recv_timeout(ANSWER_DEADLINE)?;
            expected.check(&answer, wave)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let cpu = self.cpu_nanoseconds()?.saturating_sub(cpu_before);
        Ok(Pipelined {
            waves_per_s: waves as f64 / seconds,
            cpu_us_per_wave: cpu as f64 / 1e3 / waves as f64,
        })
    }

    /// CPU time so far of all processes and the calling thread, which is the front-end's.
    fn cpu_nanoseconds(&self) -> Result<u64, Failure> {
        let mut sum = process::own_cpu_nanoseconds();
        for pid in &self.processes {
            sum += process::cpu_nanoseconds(*pid).map_err(|error| {
                Failure::own(&format!("cannot read the CPU time of process {pid}: {error}"))
            })?;
        }
        Ok(sum)
    }

    /// Ends the tree.
    pub(crate) fn close(self) -> Result<(), Failure> {
        self.stream.close()?;
        Ok(self.network.close()?)
    }
}
