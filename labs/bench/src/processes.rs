//! Processes of a tree, as /proc shows them: which they are and what memory they hold.
//!
//! CPU time and resident memory are read by the floor's own lines (`sapwood_floor::process`), so
//! that both trees are measured alike; here is only what the floor does not need.

use std::collections::BTreeSet;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};
use std::{fs, io};

use sapwood_command_line::exit::Failure;
use sapwood_floor::process::memory_bytes;

/// How often a child is checked for its end.
const END_POLL: Duration = Duration::from_millis(5);

/// The status of a child that ends within a time.
pub(super) fn ended_within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(END_POLL);
    }
    Ok(None)
}

/// All living processes below this one.
pub fn descendants() -> Result<BTreeSet<u32>, Failure> {
    let mut found = BTreeSet::new();
    let mut open = vec![std::process::id()];
    while let Some(pid) = open.pop() {
        for child in children(pid)? {
            if found.insert(child) {
                open.push(child);
            }
        }
    }
    Ok(found)
}

/// The living children of a process; none if it has ended.
pub(crate) fn children(pid: u32) -> Result<Vec<u32>, Failure> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Ok(Vec::new()) };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let list = match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => list,
            Err(_) if !thread.path().exists() => continue,
            Err(error) => {
                return Err(Failure::own(&format!(
                    "cannot list the children of process {pid} in /proc: {error}; the benchmark \
                     needs a /proc with 'children'"
                )));
            }
        };
        children.extend(list.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(children)
}

/// Whether a process is a communication process: `sapwood node`.
pub(super) fn is_communication_process(pid: u32) -> bool {
    has_first_argument(pid, "node")
}

/// Whether this is the word behind the program in a process's command line.
pub(super) fn has_first_argument(pid: u32, word: &str) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(word.as_bytes())
}

/// The rank under which a tree has started a process.
pub(super) fn rank_of(pid: u32) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let rank = variables.find_map(|variable| variable.strip_prefix(b"SAPWOOD_RANK="))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// Whether a process runs; one that has ended and was not reaped yet does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Has the system forget what this process's peak of memory was until now. Where that cannot be,
/// the peak stays what it was, which is no smaller.
pub(super) fn forget_own_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Resident memory of a process that no file backs: what it has written to itself, in bytes.
pub(super) fn anonymous_bytes(pid: u32) -> Result<u64, Failure> {
    let failed = |error: io::Error| {
        Failure::own(&format!("cannot read the memory of process {pid}: {error}"))
    };
    let [bytes] = memory_bytes(pid, ["RssAnon"]).map_err(failed)?;
    Ok(bytes)
}
