//! How a process ended that is not our child: its exit code or signal, as far as the system says.
//!
//! A pidfd that was opened while the process lived gives them since Linux 6.15 even after the
//! process was waited for. Before that there is only `/proc/PID/stat`, from the process's end until
//! its parent waits for it, which is a race that may be lost.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags};

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// By `exit` or the return of `main`, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Departure {
    /// Of a status as `wait` gives it.
    fn of(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code(status >> 8 & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

/// A process of this machine that is watched for its end.
#[derive(Debug)]
pub struct Departing {
    pid: i32,
    descriptor: Option<OwnedFd>,
}

/// `struct pidfd_info` of the kernel's `linux/pidfd.h` in its first form.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// Whether the exit code is asked for, and there.
const INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xff, 11, struct pidfd_info)`.
const GET_INFO: libc::Ioctl = (3 << 30 | 64 << 16 | 0xff << 8 | 11) as libc::Ioctl;

impl Departing {
    /// Watches a process that lives.
    #[must_use]
    pub fn new(pid: i32) -> Self {
        let known = Pid::from_raw(pid);
        let open = |pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { pid, descriptor: known.and_then(open) }
    }

    /// How it ended; none if the system does not say so, or not yet.
    #[must_use]
    pub fn look(&self) -> Option<Departure> {
        self.by_descriptor().or_else(|| by_stat(self.pid))
    }

    fn by_descriptor(&self) -> Option<Departure> {
        let descriptor = self.descriptor.as_ref()?;
        let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
        // SAFETY: The kernel writes at most the 64 bytes that the request names, which is the
        // length of the structure, and the descriptor is open. Older kernels refuse the request.
        let got = unsafe { libc::ioctl(descriptor.as_raw_fd(), GET_INFO, &raw mut info) };
        (got == 0 && info.mask & INFO_EXIT != 0).then(|| Departure::of(info.exit_code))
    }
}

/// The last field of `/proc/PID/stat`, which others than the user and root see as 0.
fn by_stat(pid: i32) -> Option<Departure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split_whitespace();
    let is_over = matches!(fields.next()?, "Z" | "X");
    // The state is field 3 of proc(5), the exit code field 52.
    let status: i32 = fields.nth(48)?.parse().ok()?;
    (is_over && status != 0).then(|| Departure::of(status))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn end_of(script: &str) -> Option<Departure> {
        let mut child = Command::new("sh")
            .args(["-c", &format!("read line; {script}")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let departing = Departing::new(child.id().cast_signed());
        assert_eq!(departing.look(), None, "it lives");
        drop(child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut departure = None;
        // Before it is waited for, it is there for sure, with or without a pidfd.
        while departure.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            departure = departing.look();
        }
        child.wait().unwrap();
        departure
    }

    #[test]
    fn a_process_that_is_not_waited_for_tells_its_end() {
        assert_eq!(end_of("exit 7"), Some(Departure::Code(7)));
        assert_eq!(end_of("kill -9 $$"), Some(Departure::Signal(9)));
    }

    #[test]
    fn statuses_are_read_as_wait_gives_them() {
        assert_eq!(Departure::of(0x0d00), Departure::Code(13));
        assert_eq!(Departure::of(0x8b), Departure::Signal(11));
    }
}
