//! What each process asks of the system for one wave: calls, waits, preemptions, processor time.
//!
//! System calls are counted by `strace -c`, which slows the waves down but not their number; the
//! rest by the system, while `strace` is not there. Calls are left out where it is not installed.

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sapwood_command_line::exit::Failure;
use sapwood_floor::process::cpu_nanoseconds;
use serde_json::{Map, Value, json};

use super::{Cast, KINDS, Kind};
use crate::pairs::Contender;
use crate::plan::Plan;

/// Round trips under `strace`.
const TRACED_ROUNDS: usize = 500;
/// Round trips in whose time the rest is counted.
const ROUNDS: usize = 5_000;
/// How long `strace` may take to come, or to say what it has counted.
const STRACE_DEADLINE: Duration = Duration::from_secs(20);

/// For one process of a kind and one round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    calls: Option<f64>,
    waits: f64,
    preemptions: f64,
    page_faults: f64,
    user_us: f64,
    kernel_us: f64,
}

/// The costs of both kinds of processes, in the tree and in its floor.
pub(crate) struct Explanation {
    rows: Vec<(&'static str, Kind, Costs)>,
    /// Why system calls are not counted.
    calls_are_unknown: Option<String>,
}

/// Counts.
pub(crate) fn explain(
    plan: &Plan,
    [floor, tree]: [&mut dyn Contender; 2],
) -> Result<Explanation, Failure> {
    let mut rows = Vec::new();
    let mut calls_are_unknown = None;
    for (name, contender) in [("tree", tree), ("floor", floor)] {
        let cast = contender.cast();
        for kind in KINDS {
            if cast.of(kind).next().is_none() {
                continue;
            }
            let mut costs = count(contender, &cast, kind, plan.bytes)?;
            if calls_are_unknown.is_none() {
                match count_calls(contender, &cast, kind, plan.bytes)? {
                    Ok(calls) => costs.calls = Some(calls),
                    Err(why) => calls_are_unknown = Some(why),
                }
            }
            rows.push((name, kind, costs));
        }
    }
    Ok(Explanation { rows, calls_are_unknown })
}

/// What the system has counted for some processes so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    waits: f64,
    preemptions: f64,
    page_faults: f64,
    user_ticks: f64,
    kernel_ticks: f64,
    nanoseconds: f64,
}

fn counters(cast: &Cast, kind: Kind) -> Result<Counters, Failure> {
    let mut sum = Counters::default();
    for pid in cast.of(kind) {
        let read = |name: &str| {
            fs::read_to_string(format!("/proc/{pid}/{name}"))
                .map_err(|error| Failure::own(&format!("cannot read /proc/{pid}/{name}: {error}")))
        };
        let status = read("status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| text.trim().parse::<f64>().ok()).unwrap_or(0.0)
        };
        sum.waits += field("voluntary_ctxt_switches:");
        sum.preemptions += field("nonvoluntary_ctxt_switches:");
        let stat = read("stat")?;
        // After the name in brackets: state, and from there minflt is field 7, utime 11, stime 12.
        let words: Vec<f64> = stat
            .rsplit_once(") ")
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0.0))
            .collect();
        let word = |index: usize| words.get(index).copied().unwrap_or(0.0);
        sum.page_faults += word(7) + word(9);
        sum.user_ticks += word(11);
        sum.kernel_ticks += word(12);
        sum.nanoseconds += cpu_nanoseconds(pid)
            .map_err(|error| Failure::own(&format!("cannot read the CPU time of {pid}: {error}")))?
            as f64;
    }
    Ok(sum)
}

fn count(
    contender: &mut dyn Contender,
    cast: &Cast,
    kind: Kind,
    bytes: usize,
) -> Result<Costs, Failure> {
    let before = counters(cast, kind)?;
    contender.round_trip(bytes, ROUNDS)?;
    let after = counters(cast, kind)?;
    let share = (cast.of(kind).count() * (ROUNDS + crate::pairs::WARMUP_ROUNDS)) as f64;
    let user = after.user_ticks - before.user_ticks;
    let kernel = after.kernel_ticks - before.kernel_ticks;
    // Ticks are coarse: they only divide the exact sum.
    let us = (after.nanoseconds - before.nanoseconds) / 1e3 / share;
    let user_share = if user + kernel > 0.0 { user / (user + kernel) } else { 0.0 };
    Ok(Costs {
        calls: None,
        waits: (after.waits - before.waits) / share,
        preemptions: (after.preemptions - before.preemptions) / share,
        page_faults: (after.page_faults - before.page_faults) / share,
        user_us: us * user_share,
        kernel_us: us * (1.0 - user_share),
    })
}

/// System calls for one process and round trip, or why they cannot be counted.
fn count_calls(
    contender: &mut dyn Contender,
    cast: &Cast,
    kind: Kind,
    bytes: usize,
) -> Result<Result<f64, String>, Failure> {
    let strace = match attach(cast, kind) {
        Ok(strace) => strace,
        Err(why) => return Ok(Err(why)),
    };
    let rounds = contender.round_trip(bytes, TRACED_ROUNDS);
    if let Some(pid) = Pid::from_raw(strace.id() as i32) {
        let _ = kill_process(pid, Signal::INT);
    }
    let output = strace.wait_with_output();
    rounds?;
    let output = output.map_err(|error| Failure::own(&format!("strace has failed: {error}")))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let calls = total_calls(&text)
        .ok_or_else(|| Failure::own(&format!("strace has counted nothing: {}", text.trim())))?;
    let share = cast.of(kind).count() * (TRACED_ROUNDS + crate::pairs::WARMUP_ROUNDS);
    Ok(Ok(calls / share as f64))
}

/// Has `strace` count the calls of these processes from now on.
fn attach(cast: &Cast, kind: Kind) -> Result<Child, String> {
    let mut command = Command::new("strace");
    command.arg("-qc");
    for pid in cast.of(kind) {
        command.arg("-p").arg(pid.to_string());
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut strace = command.spawn().map_err(|error| format!("cannot start strace: {error}"))?;
    let until = Instant::now() + STRACE_DEADLINE;
    while !cast.of(kind).all(is_traced) {
        let has_ended = strace.try_wait().is_ok_and(|status| status.is_some());
        if has_ended || Instant::now() > until {
            let _ = strace.kill();
            let why = strace.wait_with_output().map(|output| output.stderr).unwrap_or_default();
            let why = String::from_utf8_lossy(&why).trim().to_string();
            return Err(format!("strace does not attach: {why}"));
        }
        std::thread::yield_now();
    }
    Ok(strace)
}

fn is_traced(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// The sum in the last line of the table that `strace -c` prints.
fn total_calls(text: &str) -> Option<f64> {
    let line = text.lines().rev().find(|line| line.trim_end().ends_with("total"))?;
    // 100.00    0.036250           9      4000       412 total
    line.split_whitespace().nth(3)?.parse().ok()
}

impl Explanation {
    /// A table with one line for each kind of process.
    pub(crate) fn to_table(&self) -> String {
        let mut text = String::from(
            "\nfor one process and one round trip\n\
             \x20                                  system           pre-    page \n\
             \x20                                   calls   waits emptions  faults  user us  \
             kernel us\n",
        );
        for (name, kind, costs) in &self.rows {
            // The name in the JSON object is older.
            let name = if *name == "floor" { "baseline" } else { *name };
            let calls = costs.calls.map_or_else(|| "-".into(), |calls| format!("{calls:.2}"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {:<31} {calls:>7} {:>7.2} {:>8.3} {:>7.3} {:>8.2} {:>10.2}",
                format!("{name}: {}", label(*kind)),
                costs.waits,
                costs.preemptions,
                costs.page_faults,
                costs.user_us,
                costs.kernel_us
            );
        }
        if let Some(why) = &self.calls_are_unknown {
            let _ = writeln!(text, "  system calls are not counted: {why}");
        }
        text
    }

    /// The same as an object: by contender, then by kind of process.
    pub(crate) fn to_json(&self) -> Value {
        let mut contenders = Map::new();
        for (name, kind, costs) in &self.rows {
            let kinds = contenders.entry((*name).to_string()).or_insert_with(|| json!({}));
            let mut figures = json!({
                "waits": costs.waits,
                "preemptions": costs.preemptions,
                "page_faults": costs.page_faults,
                "user_us": costs.user_us,
                "kernel_us": costs.kernel_us,
            });
            if let Some(calls) = costs.calls {
                figures["system_calls"] = json!(calls);
            }
            kinds[key(*kind)] = figures;
        }
        Value::Object(contenders)
    }
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Communication => "communication process",
        Kind::BackEnd => "back-end",
    }
}

fn key(kind: Kind) -> &'static str {
    match kind {
        Kind::Communication => "communication_process",
        Kind::BackEnd => "back_end",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_calls_is_read_from_the_last_line() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    60.00    0.021750           9      2400         0 recvfrom\n\
                    100.00    0.036250           9      4000       412 total\n";
        assert_eq!(total_calls(text), Some(4000.0));
        assert_eq!(total_calls("strace: attach: ptrace: Operation not permitted"), None);
    }
}
