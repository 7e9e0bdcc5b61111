//! A launcher that was told to end and stays, although no process of its program is left; and what
//! is below a launcher that is to end at once, and may be deaf.
//!
//! Open MPI's `mpirun` can wait for itself without end when it is interrupted while a rank is in
//! `MPI_Finalize`: it has ended the ranks by then.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use sapwood_launch::{Signal, has_ended};

use super::proc_stat;
use super::told_signals::EndWish;

/// How long a launcher may stay after the last process that it has started.
const LAUNCHER_GRACE: Duration = Duration::from_secs(10);
/// The same once it was told to end again: it may have files to remove.
const URGED_GRACE: Duration = Duration::from_secs(2);
/// Between two looks at the processes of the host.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Between two looks whether all descendants have ended.
const ENDED_PAUSE: Duration = Duration::from_millis(10);

/// Watches one launcher.
#[derive(Debug, Default)]
pub(crate) struct LauncherEnd {
    told: EndWish,
    looked_at: Option<Instant>,
    alone_since: Option<Instant>,
}

impl LauncherEnd {
    /// Notes that it was told to end.
    pub(crate) fn tell(&mut self, now: Instant) {
        self.told.note(now);
    }

    /// How long it may stay alone.
    pub(crate) fn grace(&self) -> Duration {
        if self.told.is_urged() { URGED_GRACE } else { LAUNCHER_GRACE }
    }

    /// How long may be waited until the next look, at most `wait`.
    pub(crate) fn wait(&self, wait: Duration) -> Duration {
        if self.told.is_told() { wait.min(LOOK_PERIOD) } else { wait }
    }

    /// Whether it has been alone for too long; once. `has_children` says whether it is not, and is
    /// asked once in a while: it looks at all processes of the host.
    pub(crate) fn is_overdue(&mut self, now: Instant, has_children: impl FnOnce() -> bool) -> bool {
        let is_due = self.looked_at.is_none_or(|before| now >= before + LOOK_PERIOD);
        if !self.told.is_told() || !is_due {
            return false;
        }
        self.looked_at = Some(now);
        if has_children() {
            self.alone_since = None;
            return false;
        }
        let since = *self.alone_since.get_or_insert(now);
        let is_overdue = now.saturating_duration_since(since) >= self.grace();
        if is_overdue {
            *self = Self::default();
        }
        is_overdue
    }
}

/// Whether a process has children that have not ended; also if the system does not say so.
pub(crate) fn has_children(pid: u32) -> bool {
    let Some(mut stats) = stats() else { return true };
    stats.any(|(_, stat)| is_living_child(&stat, pid))
}

/// The processes below a launcher at one moment, each held so that its number becomes no other's.
pub(crate) struct Descendants(Vec<OwnedFd>);

impl Descendants {
    /// Those of a process; what the system does not tell is left out.
    pub(crate) fn of(pid: u32) -> Self {
        let mut children = BTreeMap::<u64, Vec<u32>>::new();
        for (child, stat) in stats().into_iter().flatten() {
            if let Some(parent) = living_parent(&stat) {
                children.entry(parent).or_default().push(child);
            }
        }
        let (mut held, mut left) = (Vec::new(), vec![pid]);
        while let Some(parent) = left.pop() {
            for child in children.remove(&u64::from(parent)).unwrap_or_default() {
                left.push(child);
                held.extend(hold(child, parent));
            }
        }
        Self(held)
    }

    /// Sends a signal to each that has not ended.
    pub(crate) fn signal(&self, signal: Signal) {
        for process in &self.0 {
            // One that has changed its user hears nothing.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Waits until all have ended, at most until a time.
    pub(crate) fn wait(&self, until: Instant) {
        while !self.0.iter().all(|process| has_ended(process.as_fd())) && Instant::now() < until {
            std::thread::sleep(ENDED_PAUSE);
        }
    }
}

/// A child; none if it has ended, and another process may have its number.
fn hold(child: u32, parent: u32) -> Option<OwnedFd> {
    let number = Pid::from_raw(i32::try_from(child).ok()?)?;
    let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
    is_living_child(&stat, parent).then_some(process)
}

/// All processes of this host, and what the system says of each; none if it does not say so.
fn stats() -> Option<impl Iterator<Item = (u32, String)>> {
    let processes = fs::read_dir("/proc").ok()?;
    Some(processes.flatten().filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_to_string(entry.path().join("stat")).ok()?))
    }))
}

fn is_living_child(stat: &str, parent: u32) -> bool {
    living_parent(stat) == Some(parent.into())
}

/// The parent of a process that has not ended.
fn living_parent(stat: &str) -> Option<u64> {
    let fields = proc_stat::fields(stat)?;
    let is_over = matches!(fields.state(), Some('Z' | 'X'));
    if is_over { None } else { fields.parent() }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::super::told_signals::SAME_SIGNAL;
    use super::*;

    #[test]
    fn a_launcher_is_overdue_once_it_was_told_and_has_been_alone_for_long() {
        let begin = Instant::now();
        let mut end = LauncherEnd::default();
        assert!(!end.is_overdue(begin + LAUNCHER_GRACE, || false), "nothing has told it to end");
        assert_eq!(end.wait(LAUNCHER_GRACE), LAUNCHER_GRACE);
        end.tell(begin);
        end.tell(begin + SAME_SIGNAL / 2);
        assert_eq!(end.wait(LAUNCHER_GRACE), LOOK_PERIOD);
        assert!(!end.is_overdue(begin, || false));
        assert!(!end.is_overdue(begin + LOOK_PERIOD / 2, || panic!("it was just looked at")));
        assert!(!end.is_overdue(begin + LAUNCHER_GRACE, || true), "it has started one more");
        let alone = begin + LAUNCHER_GRACE * 2;
        assert!(!end.is_overdue(alone, || false));
        assert!(!end.is_overdue(alone + LAUNCHER_GRACE / 2, || false));
        assert!(end.is_overdue(alone + LAUNCHER_GRACE, || false));
        assert!(!end.is_overdue(alone + LAUNCHER_GRACE * 3, || false), "said once");
    }

    #[test]
    fn a_launcher_that_is_told_to_end_again_may_not_stay_alone_for_long() {
        let begin = Instant::now();
        let mut end = LauncherEnd::default();
        end.tell(begin);
        assert!(!end.is_overdue(begin, || false));
        end.tell(begin + LOOK_PERIOD);
        assert!(!end.is_overdue(begin + LOOK_PERIOD, || true), "it is not alone");
        assert!(!end.is_overdue(begin + LOOK_PERIOD * 2, || false));
        assert!(end.is_overdue(begin + LOOK_PERIOD * 2 + URGED_GRACE, || false));
    }

    #[test]
    fn all_descendants_of_a_process_are_ended() {
        // A line says that both the shell within and its sleep are there.
        let steps = "(sleep 600 & echo; wait) & wait";
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", steps]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        let below = Descendants::of(shell.id());
        assert_eq!(below.0.len(), 2);
        below.signal(Signal::KILL);
        below.wait(Instant::now() + LAUNCHER_GRACE);
        assert!(below.0.iter().all(|process| has_ended(process.as_fd())));
        assert!(!has_children(shell.id()));
        shell.wait().unwrap();
    }

    #[test]
    fn a_child_that_has_ended_is_none() {
        // The children of a shell, as other tests of this process have children, too. Each line
        // that it writes says that a step is done; each that it reads lets it go on.
        let steps = "sleep 600 & echo; read line; kill $!; wait; echo; read line";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", steps]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let (mut stdin, stdout) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let mut lines = BufReader::new(stdout).lines();
        lines.next().unwrap().unwrap();
        assert!(has_children(shell.id()));
        stdin.write_all(b"\n").unwrap();
        lines.next().unwrap().unwrap();
        assert!(!has_children(shell.id()));
        drop(stdin);
        shell.wait().unwrap();
    }

    #[test]
    fn state_and_parent_are_read_behind_any_name() {
        assert!(is_living_child("12 (a) b (c) S 7 12 0", 7));
        assert!(!is_living_child("12 (a) b (c) S 77 12 0", 7));
        assert!(!is_living_child("12 (sh) Z 7 12 0", 7));
        assert!(!is_living_child("", 7));
    }
}
