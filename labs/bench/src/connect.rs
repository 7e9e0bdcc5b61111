//! Very many back-ends on one machine: all of them attach by themselves and answer together.
//!
//! Owns the experiment: a tree of communication processes that keep ranks for back-ends, processes
//! that attach many of them each, waves of a sum over all, and what memory the tree's own
//! processes hold for each of them. Every element of every sum is compared with what it must be.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sapwood::Network;
use sapwood_floor::process;

use super::back_end_process::{
    ATTACHED_AT, BackEndProcesses, descriptors_of, machine_nanoseconds, raise_descriptor_limit,
};
use super::facts::{Bar, Facts, look};
use super::leaf::{ExpectedSum, Request, TAG};
use super::plan::Transport;
use super::processes::{anonymous_bytes, descendants, is_communication_process};
use super::progress::Progress;
use super::scale::DEADLINE;
use super::tree::builder;
use sapwood_command_line::exit::Failure;

/// What the figures are to reach.
const BYTES_PER_ENDPOINT: Bar = Bar::Most(8192.0);
const FIRST_WAVE_S: Bar = Bar::Most(3.0);

/// Elements of an answer: 64 bytes.
const ELEMENTS: u64 = 8;

/// Waves that are asked for ahead of the one that is received. What they bring fits into a window
/// many times, so that no back-end ever waits for room.
const WAVES_AHEAD: u64 = 8;

/// How often the processes are looked at while they attach.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// What the tree gets to come to rest before its memory is read.
const REST: Duration = Duration::from_millis(200);

/// What to connect.
pub(super) struct Plan {
    pub shape: sapwood::Shape,
    /// The shape as it was written.
    pub spec: String,
    pub per_process: u32,
    pub waves: u64,
    pub seed: u64,
    pub transport: Transport,
}

/// Private memory of the tree's own processes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    communication: u64,
    front_end: u64,
}

impl Memory {
    fn of(communication: &[u32]) -> Result<Self, Failure> {
        let mut memory = Self { front_end: anonymous_bytes(std::process::id())?, communication: 0 };
        for pid in communication {
            memory.communication += anonymous_bytes(*pid)?;
        }
        Ok(memory)
    }

    fn bytes(self) -> f64 {
        (self.communication + self.front_end) as f64
    }
}

/// Connects, asks, and says what it found.
pub(super) fn measure(
    plan: &Plan,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let limit = raise_descriptor_limit()?;
    if descriptors_of(plan.per_process as usize) as u64 > limit {
        return Err(Failure::usage(format!(
            "--per-process {}: takes more than the {limit} files that a process may open here",
            plan.per_process
        )));
    }
    let back_ends = plan.shape.back_end_count();
    progress.say("back-ends attach", 0, 1);
    let before = descendants()?;
    let begin = Instant::now();
    let mut network = builder(&plan.shape, plan.transport)?.open()?;
    let startup_s = begin.elapsed().as_secs_f64();
    let communication: Vec<u32> = descendants()?
        .into_iter()
        .filter(|pid| !before.contains(pid) && is_communication_process(*pid))
        .collect();
    let empty = Memory::of(&communication)?;
    let attaching_from = machine_nanoseconds();
    let folder = Folder::create()?;
    let (attach_file, key_file) = (folder.path.join("attach"), folder.path.join("key"));
    network.write_attach_file(&attach_file, &key_file)?;
    let mut processes =
        BackEndProcesses::start(&attach_file, back_ends, plan.per_process, plan.seed)?;
    wait_for_all(&mut network, &mut processes, back_ends)?;
    drop(folder);
    progress.say("waves over all back-ends", 0, 1);
    let waves = run_waves(&mut network, plan, back_ends, &communication)?;
    sleep(REST);
    let full = Memory::of(&communication)?;
    facts.heading(&format!(
        "{back_ends} back-ends in {} processes, {}",
        processes.len(),
        plan.spec
    ));
    facts.setting("topology", plan.spec.as_str());
    facts.setting("per_process", plan.per_process);
    facts.setting("seed", plan.seed);
    facts.number("startup_s", look("start of the nodes", "s", 3), startup_s, None);
    say(&waves, attaching_from, f64::from(back_ends), facts);
    say_memory(empty, full, f64::from(back_ends), facts);
    network.close()?;
    processes.wait_ended(DEADLINE);
    Ok(())
}

fn say(waves: &Waves, attaching_from: u64, endpoints: f64, facts: &mut Facts) {
    let seconds = |until: u64, from: u64| until.saturating_sub(from) as f64 / 1e9;
    let connect_s = seconds(waves.last_attached_at, attaching_from);
    let first_s = seconds(waves.first_at, waves.last_attached_at);
    let per_s = endpoints / connect_s;
    let cpu = look("CPU of all nodes, per back-end and wave", "ns", 0);
    facts.number("connected", look("connected back-ends", "", 0), endpoints, None);
    facts.number("connect_s", look("first process to last connect", "s", 3), connect_s, None);
    facts.number("connects_per_s", look("connects", "1/s", 0), per_s, None);
    let first = look("last connect to first whole wave", "s", 3);
    facts.number("first_wave_s", first, first_s, Some(FIRST_WAVE_S));
    facts.number("waves_per_s", look("waves", "1/s", 1), waves.per_s, None);
    facts.number("cpu_ns_per_packet", cpu, waves.cpu_ns_per_packet, None);
}

fn say_memory(empty: Memory, full: Memory, endpoints: f64, facts: &mut Facts) {
    let all = look("private memory of all nodes, per back-end", "bytes", 0);
    facts.number("bytes_per_endpoint", all, full.bytes() / endpoints, Some(BYTES_PER_ENDPOINT));
    let added = (full.bytes() - empty.bytes()) / endpoints;
    let more = look("  more than before they came", "bytes", 0);
    facts.number("bytes_added_per_endpoint", more, added, None);
    let nodes = look("  all communication processes together", "bytes", 0);
    facts.number("communication_bytes", nodes, full.communication as f64, None);
    facts.number("front_end_bytes", look("  front-end", "bytes", 0), full.front_end as f64, None);
}

/// Lets the network work until every back-end is there.
fn wait_for_all(
    network: &mut Network,
    processes: &mut BackEndProcesses,
    back_ends: u32,
) -> Result<(), Failure> {
    let until = Instant::now() + DEADLINE;
    loop {
        match network.wait_for_back_ends(back_ends.into(), LOOK_INTERVAL) {
            Ok(()) => return Ok(()),
            Err(sapwood::Error::Timeout { .. }) if Instant::now() < until => processes.check()?,
            Err(sapwood::Error::Timeout { .. }) => {
                let there = network.everyone().size();
                return Err(Failure::own(&format!(
                    "only {there} of {back_ends} back-ends are connected after {} s",
                    DEADLINE.as_secs()
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What the waves have shown.
struct Waves {
    last_attached_at: u64,
    /// When the first wave was there.
    first_at: u64,
    per_s: f64,
    /// CPU time of the tree's own processes for each back-end in each wave.
    cpu_ns_per_packet: f64,
}

fn run_waves(
    network: &mut Network,
    plan: &Plan,
    back_ends: u32,
    communication: &[u32],
) -> Result<Waves, Failure> {
    let everyone = network.everyone();
    let mut expected = ExpectedSum::new(back_ends as usize, ELEMENTS as usize);
    let mut stream = network.stream(&everyone).up("sum").open()?;
    let request = |wave| Request { elements: ELEMENTS, first_wave: wave, waves: 1 }.values();
    stream.broadcast(TAG, request(0))?;
    let answer = stream.recv_timeout(DEADLINE)?;
    let first_at = machine_nanoseconds();
    expected.check(&answer, 0)?;

    let mut last = network.stream(&everyone).up("max").open()?;
    last.broadcast(ATTACHED_AT, ())?;
    let last_attached_at = last.recv_timeout(DEADLINE)?.value()?.scalar::<u64>(0);
    let last_attached_at = last_attached_at.map_err(sapwood::Error::from)?;
    last.close()?;

    let cpu_before = cpu_nanoseconds(communication)?;
    let begin = Instant::now();
    let end = 1 + plan.waves;
    let mut asked = 1;
    for wave in 1..end {
        while asked < end && asked < wave + WAVES_AHEAD {
            stream.broadcast(TAG, request(asked))?;
            asked += 1;
        }
        expected.check(&stream.recv_timeout(DEADLINE)?, wave)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let cpu = cpu_nanoseconds(communication)?.saturating_sub(cpu_before) as f64;
    stream.close()?;
    Ok(Waves {
        last_attached_at,
        first_at,
        per_s: plan.waves as f64 / seconds,
        cpu_ns_per_packet: cpu / plan.waves as f64 / f64::from(back_ends),
    })
}

/// CPU time so far of the communication processes and the front-end.
fn cpu_nanoseconds(communication: &[u32]) -> Result<u64, Failure> {
    let mut sum = process::own_cpu_nanoseconds();
    for pid in communication {
        sum += process::cpu_nanoseconds(*pid).map_err(|error| {
            Failure::own(&format!("cannot read the CPU time of process {pid}: {error}"))
        })?;
    }
    Ok(sum)
}

/// A folder of this call's own, which goes with it.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn create() -> Result<Self, Failure> {
        let name = format!("sapwood-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::own(&format!("cannot make the folder {}: {error}", path.display()))
        })?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left in the folder for temporary files is wiped by the system in time.
        let _ = fs::remove_dir_all(&self.path);
    }
}
