//! What the stories of these tests are told with: real trees of real processes.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../../../launch/tests/surroundings/mod.rs"]
mod surroundings;
pub mod tags;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sapwood::{
    Answer, Hosts, Network, NetworkBuilder, Program, RankSet, Stream, Topology, TransportKind, Wave,
};

#[allow(unused_imports, reason = "each test file uses its part")]
pub use surroundings::clean_command;

/// A wait that gets this far hangs.
pub const HANG: Duration = Duration::from_secs(60);
/// An ending that takes this long has left something behind.
pub const ENDING: Duration = Duration::from_secs(30);
/// Carries a trial's own mark in the environment of its processes.
pub const MARK_VARIABLE: &str = "SAPWOOD_TRIAL";

/// What the links of a tree are.
#[derive(Clone, Copy, Debug)]
pub enum Links {
    Unix,
    Tcp,
    EncryptedTcp,
    Shm,
}

/// The program `sapwood-node`, built from this very source.
pub fn sapwood() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built(&["-p", "sapwood-node-program"], "sapwood-node"))
}

/// The program of the tests' back-ends.
pub fn trial() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built(&["-p", "sapwood", "--examples"], "examples/trial"))
}

/// A tool of `examples/rust`.
pub fn example(name: &str) -> PathBuf {
    built(&["-p", "sapwood-examples", "--examples"], &format!("examples/{name}"))
}

/// The folder of the profile that this test was built in.
fn profile_folder() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(Path::parent).unwrap().to_path_buf()
}

/// Set where cargo has built the whole workspace before any test runs: to build a part of it again
/// would mean other features of its dependencies, and so most of these anew.
const BUILT_VARIABLE: &str = "SAPWOOD_TESTS_BUILT";

fn built(what: &[&str], path: &str) -> PathBuf {
    let folder = profile_folder();
    if std::env::var_os(BUILT_VARIABLE).is_some() && folder.join(path).exists() {
        return folder.join(path);
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--target-dir"]).arg(folder.parent().unwrap()).args(what);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let result = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    folder.join(path)
}

/// A mark that no other trial has.
pub fn new_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The tests' back-ends in one of their modes.
pub fn back_ends(mark: &str, mode: &[&str]) -> Program {
    let program = Program::new(trial()).variable(MARK_VARIABLE, mark).argument("back-end");
    mode.iter().fold(program, |program, word| program.argument(*word))
}

/// A tree on this machine.
pub fn topology(shape: &str) -> Topology {
    Topology::from_shape(&shape.parse().unwrap(), &Hosts::local())
}

/// A network that is about to be opened.
pub fn builder(shape: &str, links: Links) -> NetworkBuilder {
    let builder = Network::builder(topology(shape)).node_program(sapwood());
    match links {
        Links::Unix => builder.transport(TransportKind::Unix),
        Links::Tcp => builder.transport(TransportKind::Tcp).encryption(false),
        Links::EncryptedTcp => builder.transport(TransportKind::Tcp).encryption(true),
        Links::Shm => builder.transport(TransportKind::Shm),
    }
}

/// A network of obedient back-ends, and its mark.
pub fn network(shape: &str, links: Links) -> (Network, String) {
    let mark = new_mark();
    let network = builder(shape, links).back_end(back_ends(&mark, &["serve"])).open().unwrap();
    (network, mark)
}

/// A process of a tree, as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub pid: u32,
    /// When it started, which tells it from a later process of the same number.
    pub start: u64,
    pub parent: u32,
    pub rank: Option<u32>,
    /// Where its parent listens.
    pub address: Option<String>,
    pub mark: Option<String>,
}

impl Seen {
    /// Looks at a process; nothing if it has ended.
    pub fn look(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        if matches!(fields[0], "Z" | "X") {
            return None;
        }
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let variable = |name: &str| {
            environment.split(|&byte| byte == 0).find_map(|entry| {
                let entry = std::str::from_utf8(entry).ok()?;
                entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
            })
        };
        Some(Self {
            pid,
            start: fields[19].parse().ok()?,
            parent: fields[1].parse().ok()?,
            rank: variable("SAPWOOD_RANK").and_then(|rank| rank.parse().ok()),
            address: variable("SAPWOOD_PARENT"),
            mark: variable(MARK_VARIABLE),
        })
    }

    pub fn is_alive(&self) -> bool {
        Self::look(self.pid).is_some_and(|now| now.start == self.start)
    }

    /// A figure of `/proc/PID/status`, in KB.
    pub fn kilobytes(&self, what: &str) -> u64 {
        kilobytes(&self.pid.to_string(), what)
    }

    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count)
    }

    pub fn kill(&self) {
        assert!(self.is_alive());
        self.signal(Signal::KILL);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid.cast_signed()).unwrap(), signal).unwrap();
    }

    /// Stops it, and waits until it stands.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        wait_until("stop", HANG, || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
        });
    }
}

/// A figure of `/proc/PID/status`, in KB.
pub fn kilobytes(pid: &str, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// All processes of this machine that can be looked at.
fn all_processes() -> Vec<Seen> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Seen::look).collect()
}

/// The processes that carry a mark.
pub fn marked(mark: &str) -> Vec<Seen> {
    all_processes().into_iter().filter(|seen| seen.mark.as_deref() == Some(mark)).collect()
}

/// All processes of a tree whose front-end is this process: the marked back-ends, and the
/// communication processes above them, which carry no mark.
pub fn tree_below_us(mark: &str) -> Vec<Seen> {
    let own = std::process::id();
    let mut tree = BTreeSet::new();
    for back_end in marked(mark) {
        let mut parent = back_end.parent;
        tree.insert(back_end);
        while parent > 1
            && parent != own
            && let Some(seen) = Seen::look(parent)
        {
            parent = seen.parent;
            tree.insert(seen);
        }
    }
    tree.into_iter().collect()
}

/// The process of a rank.
pub fn of_rank(tree: &[Seen], rank: u32) -> &Seen {
    tree.iter().find(|seen| seen.rank == Some(rank)).unwrap()
}

/// Waits until something is so, and gives how long that took.
pub fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
    begin.elapsed()
}

/// Asks for ranks on a stream with a time limit until just these back-ends are missing, since on a
/// busy machine others may be late, too. Gives that answer; `next` is the number of its next wave.
pub fn ask_until_missing(stream: &mut Stream, next: &mut Wave, missing: &RankSet) -> Answer {
    let begin = Instant::now();
    loop {
        stream.broadcast(tags::RANK, ()).unwrap();
        let mut answer = stream.recv_timeout(HANG).unwrap();
        while answer.is_late {
            answer = stream.recv_timeout(HANG).unwrap();
        }
        assert_eq!(answer.wave, *next, "{answer:?}");
        *next += 1;
        let named = answer.missing.iter().fold(RankSet::new(), |mut all, missing| {
            all.union_with(missing.ranks.as_ref());
            all
        });
        if named == *missing {
            return answer;
        }
        assert!(begin.elapsed() < HANG, "{:?} instead of {missing}", answer.missing);
    }
}

/// The late part of one back-end for a wave that was answered without it.
pub fn late_part(stream: &mut Stream, wave: Wave, rank: u32) -> Answer {
    let begin = Instant::now();
    loop {
        let answer = stream.recv_timeout(HANG).unwrap();
        assert!(answer.is_late, "{answer:?}");
        if (answer.wave, &answer.contributors) == (wave, &RankSet::range(rank, rank)) {
            return answer;
        }
        assert!(begin.elapsed() < HANG, "the last one: {answer:?}");
    }
}

/// Waits until nothing is left of a tree: no process, no socket. Gives how long that took.
pub fn wait_until_gone(tree: &[Seen]) -> Duration {
    let took = wait_until("all processes gone", ENDING, || !tree.iter().any(Seen::is_alive));
    for address in tree.iter().filter_map(|seen| seen.address.as_deref()) {
        // A program that another test is just starting may hold a copy until it runs.
        wait_until(&format!("{address} gone"), ENDING, || is_free(address));
    }
    took
}

/// Whether no process listens or is connected at an address.
fn is_free(address: &str) -> bool {
    match address.strip_prefix("unix:") {
        Some(path) if path.starts_with('/') => !Path::new(path).exists(),
        Some(name) => !fs::read_to_string("/proc/net/unix").unwrap().contains(name),
        None => std::net::TcpStream::connect(&address["tcp:".len()..]).is_err(),
    }
}

/// Whether this test has its process for itself, as a test must that counts what belongs to a whole
/// process. If not, it is run in a child process and has passed there.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "SAPWOOD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    print!("{text}");
    assert!(child.status.success() && text.contains("1 passed"), "{text}{errors}");
    false
}
