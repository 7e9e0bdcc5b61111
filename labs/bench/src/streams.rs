//! Very many streams at once on one tree.
//!
//! Owns the experiment: a tree is measured with one stream open, then with all of them, and every
//! one of these carries waves, each of which is compared with the sum that it must be.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::facts::{Facts, look};
use super::plan::Transport;
use super::processes::{anonymous_bytes, descendants, is_communication_process};
use super::progress::Progress;
use super::steady::{SteadyStream, nothing};
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::Failure;

/// Most streams that are asked for.
pub(super) const STREAMS_MAX: u32 = 100_000;

/// The tree: sixteen back-ends below four communication processes.
const FAN_OUTS: [u32; 2] = [4, 4];

/// Elements of an answer: 64 bytes.
const ELEMENTS: usize = 8;

/// How often all streams carry a wave.
const ROUNDS: u64 = 10;

/// Round trips on one stream, with and without the others.
const ROUND_TRIPS: u64 = 500;

/// What the tree gets to come to rest before its memory is read.
const REST: Duration = Duration::from_millis(200);

/// Streams whose waves are under way together. More would make the front-end's broadcasts wait for
/// no other, but pile up answers that it has not asked for yet.
const STREAMS_AT_ONCE: usize = 1_000;

/// Measures the tree with one stream and with all.
pub(super) fn measure(
    count: u32,
    transport: Transport,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    progress.say("streams", 0, 1);
    let shape = sapwood::Shape::levels(&FAN_OUTS).map_err(Failure::usage)?;
    let before = descendants()?;
    let network = builder(&shape, transport)?.back_end(leaf_program()?).open()?;
    let processes: Vec<u32> =
        descendants()?.into_iter().filter(|pid| !before.contains(pid)).collect();
    let everyone = network.everyone();
    let mut open = vec![SteadyStream::open(&network, &everyone, ELEMENTS)?];
    let alone_us = open[0].round_trips(ROUND_TRIPS, nothing)?;
    sleep(REST);
    let memory_alone = Memory::of(&processes)?;

    let begin = Instant::now();
    for _ in 1..count {
        open.push(SteadyStream::open(&network, &everyone, ELEMENTS)?);
    }
    let opened_s = begin.elapsed().as_secs_f64();
    let last = open.len() - 1;
    open[last].round_trips(1, nothing)?;
    let whole_s = begin.elapsed().as_secs_f64();
    let among_us = open[0].round_trips(ROUND_TRIPS, nothing)?;

    let begin = Instant::now();
    for _ in 0..ROUNDS {
        for some in open.chunks_mut(STREAMS_AT_ONCE) {
            for waves in some.iter_mut() {
                waves.ask(1)?;
            }
            for waves in some.iter_mut() {
                waves.check_next()?;
            }
        }
    }
    let per_s = (ROUNDS * u64::from(count)) as f64 / begin.elapsed().as_secs_f64();
    sleep(REST);
    let memory = Memory::of(&processes)?.since(&memory_alone, f64::from(count - 1).max(1.0));
    for waves in open {
        waves.close()?;
    }
    network.close()?;
    facts.heading(&format!("{count} streams at once on a tree of 4x4"));
    let times = [opened_s * 1e3, whole_s * 1e3, per_s, alone_us, among_us];
    say(count, times, &memory, facts);
    Ok(())
}

/// Opens this number of streams on a tree that stands, and has one wave over each, all under way
/// together: from before the first is opened to the last answer.
pub(super) fn created_and_used(
    shape: &sapwood::Shape,
    transport: Transport,
    count: u32,
) -> Result<Duration, Failure> {
    let network = builder(shape, transport)?.back_end(leaf_program()?).open()?;
    let everyone = network.everyone();
    let mut open = Vec::with_capacity(count as usize);
    let begin = Instant::now();
    for _ in 0..count {
        let mut waves = SteadyStream::open(&network, &everyone, ELEMENTS)?;
        waves.ask(1)?;
        open.push(waves);
    }
    for waves in &mut open {
        waves.check_next()?;
    }
    let time = begin.elapsed();
    for waves in open {
        waves.close()?;
    }
    network.close()?;
    Ok(time)
}

fn say(
    count: u32,
    [open_ms, whole_ms, per_s, alone_us, among_us]: [f64; 5],
    memory: &Memory,
    facts: &mut Facts,
) {
    let mut add = |figure: &str, label, unit, digits, value| {
        facts.number(&format!("streams.{figure}"), look(label, unit, digits), value, None);
    };
    add("streams", "streams open at once", "", 0, f64::from(count));
    add("open_ms", "opening them at the front-end", "ms", 1, open_ms);
    add("whole_ms", "until the last one has answered", "ms", 1, whole_ms);
    add("waves_per_s", "waves over all streams in turn", "1/s", 0, per_s);
    add("round_trip_alone_us", "round trip of one stream, alone", "us", 1, alone_us);
    add("round_trip_us", "the same with all others open", "us", 1, among_us);
    let (front_end, back_end) = (memory.front_end, memory.back_end);
    let node = "memory of a communication process, each";
    add("bytes_per_stream", node, "bytes", 0, memory.communication);
    add("front_end_bytes_per_stream", "memory of the front-end, each", "bytes", 0, front_end);
    add("back_end_bytes_per_stream", "memory of a back-end, each", "bytes", 0, back_end);
}

/// Private memory, in bytes: of the front-end, and of one process of each other kind.
struct Memory {
    front_end: f64,
    communication: f64,
    back_end: f64,
}

impl Memory {
    fn of(processes: &[u32]) -> Result<Self, Failure> {
        let mean = |is_communication: bool| -> Result<f64, Failure> {
            let (mut sum, mut count) = (0.0, 0.0);
            for pid in processes {
                if is_communication_process(*pid) == is_communication {
                    sum += anonymous_bytes(*pid)? as f64;
                    count += 1.0;
                }
            }
            Ok(sum / f64::max(count, 1.0))
        };
        let front_end = anonymous_bytes(std::process::id())? as f64;
        Ok(Self { front_end, communication: mean(true)?, back_end: mean(false)? })
    }

    /// What has come since then, divided by `count`.
    fn since(&self, before: &Self, count: f64) -> Self {
        Self {
            front_end: (self.front_end - before.front_end) / count,
            communication: (self.communication - before.communication) / count,
            back_end: (self.back_end - before.back_end) / count,
        }
    }
}
