//! The processes of a network, from outside: found once when the tree stands, then signalled and
//! watched until the last has ended.
//!
//! A process is held by a descriptor of its own (a pidfd), so that a signal never meets another
//! process that has been given its number. Which host of the test bed a process lives on is read
//! from its network namespace.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sapwood::Rank;

use sapwood_command_line::exit::Failure;

/// Where network namespaces have names.
const NAMESPACES: &str = "/run/netns";

/// What the names of the hosts of a test bed begin with there.
const HOST_PREFIX: &str = "testbed-";

/// One process of a network below the front-end.
#[derive(Debug)]
pub(super) struct Member {
    pub rank: Rank,
    pub pid: u32,
    /// The host of the test bed, if it lives on one.
    pub host: Option<String>,
    descriptor: OwnedFd,
}

impl Member {
    /// Sends a signal; says whether the process was there to get it.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.descriptor, signal).is_ok()
    }

    /// Whether it runs, or is stopped; a process that has ended and was not reaped does not.
    pub(super) fn is_alive(&self) -> bool {
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut watched, Some(&Timespec::default())), Ok(0))
    }

    fn new(pid: u32, hosts: &BTreeMap<u64, String>) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let descriptor = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let rank = rank_of(pid)?;
        let namespace = fs::metadata(format!("/proc/{pid}/ns/net")).ok();
        let host = namespace.and_then(|namespace| hosts.get(&namespace.ino()).cloned());
        Some(Self { rank, pid, host, descriptor })
    }
}

/// All processes below this one that have a rank, in order of their ranks.
pub(super) fn find() -> Result<Vec<Member>, Failure> {
    let hosts = hosts();
    let descendants = sapwood_bench::descendants()?;
    let mut members: Vec<Member> =
        descendants.into_iter().filter_map(|pid| Member::new(pid, &hosts)).collect();
    members.sort_by_key(|member| member.rank);
    Ok(members)
}

/// Waits until all have ended, at most that long; gives those that have not.
pub(super) fn wait_for_end(members: &[Member], limit: Duration) -> Vec<&Member> {
    let until = Instant::now() + limit;
    loop {
        let left: Vec<&Member> = members.iter().filter(|member| member.is_alive()).collect();
        let time = until.saturating_duration_since(Instant::now());
        let Some(first) = left.first().filter(|_| !time.is_zero()) else { return left };
        let mut watched = [PollFd::new(&first.descriptor, PollFlags::IN)];
        // An interruption only means that all are looked at sooner.
        let _ = poll(&mut watched, Timespec::try_from(time).ok().as_ref());
    }
}

/// The rank that the tree has given to a process.
fn rank_of(pid: u32) -> Option<Rank> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let entries = environment.split(|byte| *byte == 0);
    let text = entries.filter_map(|entry| entry.strip_prefix(b"SAPWOOD_RANK=")).next()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The hosts of the test bed, by the number of their namespaces.
fn hosts() -> BTreeMap<u64, String> {
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name();
        let host = name.to_str()?.strip_prefix(HOST_PREFIX)?;
        let number = fs::metadata(entry.path()).ok()?.ino();
        Some((number, host.to_string()))
    });
    named.collect()
}
