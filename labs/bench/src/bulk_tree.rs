//! Sapwood's tree in `sapwood bench bulk`: a stream for each kind of transfer, and what one costs.
//!
//! Owns the front-end's side of the transfers and the reading of clocks and memory. Which there are
//! and what is said of them is with `bulk`; the back-ends' side is `bulk_leaf`.

use std::fs;
use std::time::Instant;

use sapwood::{Network, Stream, Values, WaveRule};
use sapwood_floor::process::{cpu_nanoseconds, own_cpu_nanoseconds, resident};
use sapwood_floor::{Load, Shape};

use super::bulk::Case;
use super::bulk_leaf::{Array, DOWN, LAST_DOWN, PREPARE, PREPARE_SUM, UP, check};
use super::leaf::ExpectedSum;
use super::plan::Transport;
use super::processes::{descendants, is_communication_process};
use super::scale::DEADLINE;
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::Failure;

/// What may be under way on a stream per link: a stream for bulk asks for more than the default,
/// since every half of a window costs a message back.
pub(super) const WINDOW_BYTES: u32 = 1 << 20;

/// What one transfer took.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub seconds: f64,
    pub cpu_nanoseconds: f64,
}

/// Sapwood's tree, with a stream for each kind of transfer.
pub(super) struct BulkTree {
    // Before the network, which they need when they are dropped.
    sums: Stream,
    pass: Stream,
    network: Network,
    processes: Vec<u32>,
    leaves: usize,
    next_wave: u64,
}

impl BulkTree {
    pub(super) fn open(shape: &Shape, transport: Transport) -> Result<Self, Failure> {
        let levels = levels_of(shape)?;
        let before = descendants()?;
        let builder = builder(&levels, transport)?.encryption(false);
        let network = builder.back_end(leaf_program()?).open()?;
        let processes: Vec<u32> =
            descendants()?.into_iter().filter(|pid| !before.contains(pid)).collect();
        let everyone = network.everyone();
        let sums = network.stream(&everyone).up("sum").window_bytes(WINDOW_BYTES).open()?;
        // Each packet goes on by itself: a wave of all would be held at every process until the
        // last child's packet has come whole.
        let pass = network.stream(&everyone).wave(WaveRule::Immediate);
        let pass = pass.window_bytes(WINDOW_BYTES).open()?;
        let leaves = shape.leaves();
        Ok(Self { sums, pass, network, processes, leaves, next_wave: 0 })
    }

    pub(super) fn transfer(&mut self, case: Case, bytes: usize) -> Result<Cost, Failure> {
        let load = case.load(bytes);
        match case {
            Case::Broadcast | Case::BroadcastPackets => self.down(load),
            Case::Gather | Case::GatherPackets => self.up(load),
            Case::Reduce | Case::Streams => self.reduce(bytes / size_of::<f64>()),
        }
    }

    fn down(&mut self, load: Load) -> Result<Cost, Failure> {
        let mut array = Array::new(0, load.packet_bytes);
        let whole = (load.packets == 1).then(|| Values::new().large_array(array.numbered(0)));
        let clock = Clock::start(&self.processes)?;
        if let Some(values) = whole {
            self.sums.broadcast(LAST_DOWN, values)?;
        } else {
            for number in 0..load.packets {
                let tag = if number + 1 == load.packets { LAST_DOWN } else { DOWN };
                self.sums.broadcast(tag, array.numbered(number))?;
            }
        }
        self.all_have_answered()?;
        clock.stop(&self.processes)
    }

    fn all_have_answered(&mut self) -> Result<(), Failure> {
        let answer = self.sums.recv_timeout(DEADLINE)?;
        self.next_wave += 1;
        let count = answer.value()?.scalar::<u64>(0).map_err(sapwood::Error::from)?;
        if count == self.leaves as u64 && answer.is_complete() {
            return Ok(());
        }
        Err(Failure::own(&format!("{count} of {} back-ends have answered", self.leaves)))
    }

    fn up(&mut self, load: Load) -> Result<Cost, Failure> {
        let words = [load.packet_bytes as u64, load.packets];
        self.sums.broadcast(PREPARE, words)?;
        self.all_have_answered()?;
        let mut next = vec![0; self.leaves];
        let clock = Clock::start(&self.processes)?;
        self.pass.broadcast(UP, ())?;
        for _ in 0..load.packets * self.leaves as u64 {
            let answer = self.pass.recv_timeout(DEADLINE)?;
            let values = answer.value()?;
            let Some(rank) = answer.contributors.as_ref().first() else { continue };
            let number = &mut next[rank as usize];
            check(values, rank, *number, load.packet_bytes)?;
            *number += 1;
        }
        clock.stop(&self.processes)
    }

    fn reduce(&mut self, elements: usize) -> Result<Cost, Failure> {
        let mut expected = ExpectedSum::new(self.leaves, elements);
        let wave = self.next_wave + 1;
        self.sums.broadcast(PREPARE_SUM, [elements as u64, wave])?;
        self.all_have_answered()?;
        self.next_wave += 1;
        let clock = Clock::start(&self.processes)?;
        self.sums.broadcast(UP, ())?;
        let answer = self.sums.recv_timeout(DEADLINE)?;
        let cost = clock.stop(&self.processes)?;
        expected.check(&answer, wave)?;
        Ok(cost)
    }

    fn communication_processes(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().copied().filter(|pid| is_communication_process(*pid))
    }

    /// Has the system forget the communication processes' peaks of memory until now. Where that
    /// cannot be, they stay what they were, which is no smaller.
    pub(super) fn forget_peaks(&self) {
        for pid in self.communication_processes() {
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }

    /// The most memory that a communication process had.
    pub(super) fn peak_bytes(&self) -> Result<f64, Failure> {
        let mut most = 0.0_f64;
        for pid in self.communication_processes() {
            let memory = resident(pid).map_err(|error| {
                Failure::own(&format!("cannot read the memory of process {pid}: {error}"))
            })?;
            most = most.max(memory.max_bytes as f64);
        }
        Ok(most)
    }

    pub(super) fn close(self) -> Result<(), Failure> {
        self.sums.close()?;
        self.pass.close()?;
        Ok(self.network.close()?)
    }
}

/// The time and the CPU time of one transfer.
struct Clock {
    begin: Instant,
    cpu_before: u64,
}

impl Clock {
    fn start(processes: &[u32]) -> Result<Self, Failure> {
        Ok(Self { cpu_before: cpu_of(processes)?, begin: Instant::now() })
    }

    fn stop(self, processes: &[u32]) -> Result<Cost, Failure> {
        let seconds = self.begin.elapsed().as_secs_f64();
        let cpu = cpu_of(processes)?.saturating_sub(self.cpu_before);
        Ok(Cost { seconds, cpu_nanoseconds: cpu as f64 })
    }
}

/// CPU time so far of all processes of a tree and of the calling thread.
fn cpu_of(processes: &[u32]) -> Result<u64, Failure> {
    let mut sum = own_cpu_nanoseconds();
    for pid in processes {
        sum += cpu_nanoseconds(*pid).map_err(|error| {
            Failure::own(&format!("cannot read the CPU time of process {pid}: {error}"))
        })?;
    }
    Ok(sum)
}

/// The same shape, as the topology knows it.
pub(super) fn levels_of(shape: &Shape) -> Result<sapwood::Shape, Failure> {
    let fan_outs: Vec<u32> = shape.fan_outs().iter().map(|fan_out| *fan_out as u32).collect();
    sapwood::Shape::levels(&fan_outs).map_err(Failure::usage)
}
