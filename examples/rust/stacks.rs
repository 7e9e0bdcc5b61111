//! Where is each process? `stacks TOPOLOGY PID...` draws the stacks of many processes as one tree.
//!
//! Each back-end looks at one process, thread by thread, as the kernel sees it (`/proc/PID/stack`,
//! which root may read; for others the name of the call in which the thread waits). The tree merges
//! stacks that begin alike, so that the answer is as long as the ways in which processes differ,
//! not as the processes are many.
//!
//! ```text
//! stacks 2x2 4101 4102 4103 4104
//! lmp: 0-3
//!   do_syscall_64: 0-2
//!     do_epoll_wait: 0-2
//!   (running): 3
//! ```

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, Network, PrefixTree, Program, Shape, Tag};

const STACKS: Tag = sapwood::FIRST_TAG;
const NODES_MAX: u32 = 4096;
const DEADLINE: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((role, pids)) if role == "back-end" => back_end(pids),
        Some((topology, pids)) if !pids.is_empty() => front_end(topology, pids),
        _ => Err("usage: stacks TOPOLOGY PID..., with one PID for each back-end".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stacks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn front_end(topology: &str, pids: &[String]) -> Result<()> {
    let shape: Shape = topology.parse()?;
    if shape.back_end_count() as usize != pids.len() {
        let back_ends = shape.back_end_count();
        return Err(format!("{back_ends} back-ends cannot look at {} processes", pids.len()).into());
    }
    let program = Program::new(std::env::current_exe()?).argument("back-end");
    let program = pids.iter().fold(program, |program, pid| program.argument(pid));
    let network = Network::open(shape, program)?;
    let mut stacks = network.stream(&network.everyone()).up(("prefix-tree", NODES_MAX)).open()?;

    stacks.broadcast(STACKS, ())?;
    let answer = stacks.recv_timeout(DEADLINE)?;
    print!("{}", PrefixTree::from_values(answer.value()?)?);
    for missing in &answer.missing {
        println!("no answer from {}: {}", missing.ranks, missing.reason);
    }
    Ok(network.close()?)
}

fn back_end(pids: &[String]) -> Result<()> {
    let mut back_end = BackEnd::attach()?;
    let rank = back_end.rank();
    loop {
        let request = match back_end.recv() {
            Ok(request) => request,
            Err(sapwood::Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut tree = PrefixTree::new(NODES_MAX)?;
        for stack in stacks_of(&pids[rank as usize]) {
            tree.add(&stack, rank);
        }
        back_end.send(request.stream, STACKS, tree)?;
    }
}

/// The stacks of a process's threads, the outermost frame first; never none.
fn stacks_of(pid: &str) -> Vec<Vec<String>> {
    let mut stacks = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let mut stack = vec![read("comm").trim_end().to_string()];
        let frames = read("stack");
        // One frame a line, the innermost first: "[<0>] do_epoll_wait+0x60/0x1b0".
        stack.extend(frames.lines().rev().filter_map(|line| {
            let name = line.split_whitespace().nth(1)?;
            Some(name.split('+').next()?.to_string())
        }));
        if stack.len() == 1 {
            let waits_in = read("wchan");
            let is_running = waits_in.is_empty() || waits_in == "0";
            stack.push(if is_running { "(running)".into() } else { waits_in });
        }
        stacks.push(stack);
    }
    if stacks.is_empty() {
        stacks.push(vec!["(no such process)".into()]);
    }
    stacks
}
