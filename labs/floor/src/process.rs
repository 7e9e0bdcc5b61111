//! Processes of this machine: the core they run on, the CPU time they used, and their end.
//!
//! Owns placement ([`Pinned`]), the CPU time and memory of a running process ([`cpu_nanoseconds`],
//! [`memory_bytes`]) and the reaping of a child with its resource usage. Sapwood's own benchmark
//! uses all but the last for Sapwood's processes, so that both trees are placed and measured by the
//! same lines.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What one process used from its start to its end, by `wait4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time, microseconds. Includes the process's own start and end.
    pub cpu_us: u64,
    /// Most memory that was resident at once, bytes. Linux counts from the fork on, so this is at
    /// least the resident memory of the process that started it: good as a bound, not as the size
    /// of a small node. For that, ask [`resident`] while it runs.
    pub rss_bytes_max: u64,
}

/// Keeps the calling thread, and every process it starts meanwhile, on one core; the former
/// placement comes back when this is dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    /// Moves the calling thread to core `cpu`, numbered as in /proc/cpuinfo.
    pub fn to(cpu: usize) -> io::Result<Pinned> {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
        Ok(Pinned { before })
    }

    /// The first core on which the calling thread may run.
    pub fn first_allowed() -> io::Result<usize> {
        let allowed = sched_getaffinity(None)?;
        (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Fails only if the former cores have gone off line; then staying put is right.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// CPU time that a process has used so far, summed over its live threads, from the scheduler's own
/// count in /proc. Exact for a thread that sleeps; up to one tick old for one that runs. What an
/// ended thread used is lost: meant for processes whose threads live as long as they do.
pub fn cpu_nanoseconds(pid: u32) -> io::Result<u64> {
    let mut sum = None;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => text,
            // The thread ended between the listing and the reading.
            Err(error) if has_ended(&error) => continue,
            Err(error) => return Err(error),
        };
        let first = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let first = first.ok_or(io::Error::from(io::ErrorKind::InvalidData))?;
        sum = Some(sum.unwrap_or(0) + first);
    }
    sum.ok_or(io::ErrorKind::NotFound.into())
}

fn has_ended(error: &io::Error) -> bool {
    let gone = [rustix::io::Errno::NOENT, rustix::io::Errno::SRCH];
    gone.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Resident memory of a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Now, bytes.
    pub now_bytes: u64,
    /// At most since it executed its program, bytes.
    pub max_bytes: u64,
}

/// Resident memory of a running process, from /proc.
pub fn resident(pid: u32) -> io::Result<Resident> {
    let [now_bytes, max_bytes] = memory_bytes(pid, ["VmRSS", "VmHWM"])?;
    Ok(Resident { now_bytes, max_bytes })
}

/// Figures of memory of a running process, in bytes, by their names in its status in /proc.
pub fn memory_bytes<const N: usize>(pid: u32, names: [&str; N]) -> io::Result<[u64; N]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mut figures = [0; N];
    for (figure, name) in figures.iter_mut().zip(names) {
        let lacks = || io::Error::new(io::ErrorKind::InvalidData, format!("it has no {name}"));
        *figure = bytes_of(&status, name).ok_or_else(lacks)?;
    }
    Ok(figures)
}

/// The figure of this name in a process's status, which gives KiB.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let figure = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(figure.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// CPU time that the calling thread has used so far, nanoseconds.
pub fn own_cpu_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reaps a child that has ended; `None` where it still runs.
pub(crate) fn try_reap(pid: Pid) -> io::Result<Option<(ExitStatus, Usage)>> {
    system::wait4(pid, system::WNOHANG)
}

/// A child that has ended.
pub(crate) struct Reaped {
    pub(crate) status: ExitStatus,
    pub(crate) usage: Usage,
    /// Whether it did not end by itself.
    pub(crate) was_killed: bool,
}

/// Waits for a child until the deadline, kills it if it is still there, and reaps it.
pub(crate) fn reap(pid: Pid, until: Instant) -> io::Result<Reaped> {
    if let Some((status, usage)) = try_reap(pid)? {
        return Ok(Reaped { status, usage, was_killed: false });
    }
    let was_killed = !ends_until(pid, until)?;
    if was_killed {
        kill_process(pid, Signal::KILL)?;
    }
    match system::wait4(pid, 0)? {
        Some((status, usage)) => Ok(Reaped { status, usage, was_killed }),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Whether the child ends before the deadline.
fn ends_until(pid: Pid, until: Instant) -> io::Result<bool> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut watched, Some(&timespec(left))) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A duration as `poll` takes it.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}

/// How a process ended, in words.
pub(crate) fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_string(),
    }
}

/// The one call that neither std nor rustix offers: `wait4`, which reaps and tells the usage at
/// once.
mod system {
    use std::ffi::{c_int, c_long};
    use std::io;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use rustix::process::Pid;

    use super::Usage;

    /// Do not wait: answer 0 if the child still runs.
    pub(super) const WNOHANG: c_int = 1;

    /// `struct timeval` of Linux with 64-bit `long`.
    #[repr(C)]
    #[derive(Default)]
    struct TimeValue {
        seconds: c_long,
        microseconds: c_long,
    }

    /// `struct rusage` of Linux: two times, then fourteen numbers, of which the first is the
    /// largest resident set in KiB.
    #[repr(C)]
    #[derive(Default)]
    struct ResourceUsage {
        user: TimeValue,
        system: TimeValue,
        rss_kib_max: c_long,
        others: [c_long; 13],
    }

    unsafe extern "C" {
        #[link_name = "wait4"]
        fn c_wait4(
            pid: c_int,
            status: *mut c_int,
            options: c_int,
            usage: *mut ResourceUsage,
        ) -> c_int;
    }

    pub(super) fn wait4(pid: Pid, options: c_int) -> io::Result<Option<(ExitStatus, Usage)>> {
        let mut status = 0;
        let mut usage = ResourceUsage::default();
        loop {
            // SAFETY: both pointers are to live variables of the types that Linux writes there.
            match unsafe { c_wait4(pid.as_raw_nonzero().get(), &mut status, options, &mut usage) } {
                0 => return Ok(None),
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                _ => break,
            }
        }
        let us = |time: &TimeValue| time.seconds as u64 * 1_000_000 + time.microseconds as u64;
        let usage = Usage {
            cpu_us: us(&usage.user) + us(&usage.system),
            rss_bytes_max: usage.rss_kib_max as u64 * 1024,
        };
        Ok(Some((ExitStatus::from_raw(status), usage)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_time_and_memory() {
        let pid = std::process::id();
        let resident = resident(pid).unwrap();
        assert!(resident.now_bytes > 0 && resident.max_bytes >= resident.now_bytes);
        assert!(memory_bytes(pid, ["VmRSS", "VmNothing"]).is_err());
        assert!(own_cpu_nanoseconds() > 0);
        assert!(cpu_nanoseconds(pid).is_ok());
        assert!(cpu_nanoseconds(u32::MAX).is_err());
    }

    #[test]
    fn figures_of_memory_are_told_apart_by_their_whole_names() {
        let status = "RssAnonymous:\t 7 kB\nRssAnon:\t     300 kB\nRssFile:\t 200 kB\n";
        assert_eq!(bytes_of(status, "RssAnon"), Some(300 << 10));
        assert_eq!(bytes_of(status, "RssFile"), Some(200 << 10));
        assert_eq!(bytes_of(status, "Rss"), None);
    }
}
