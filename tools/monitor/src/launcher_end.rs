//! A launcher that was told to end and stays, although no process of its program is left.
//!
//! Open MPI's `mpirun` can wait for itself without end when it is interrupted while a rank is in
//! `MPI_Finalize`: it has ended the ranks by then.

use std::time::{Duration, Instant};

use super::proc_stat;

/// How long a launcher may stay after the last process that it has started.
pub(crate) const LAUNCHER_GRACE: Duration = Duration::from_secs(10);
/// Between two looks at the processes of the host.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Watches one launcher.
#[derive(Debug, Default)]
pub(crate) struct LauncherEnd {
    is_told: bool,
    looked_at: Option<Instant>,
    alone_since: Option<Instant>,
}

impl LauncherEnd {
    /// Notes that it was told to end.
    pub(crate) fn tell(&mut self) {
        self.is_told = true;
    }

    /// How long may be waited until the next look, at most `wait`.
    pub(crate) fn wait(&self, wait: Duration) -> Duration {
        if self.is_told { wait.min(LOOK_PERIOD) } else { wait }
    }

    /// Whether it has been alone for too long; once. `has_children` says whether it is not, and is
    /// asked once in a while: it looks at all processes of the host.
    pub(crate) fn is_overdue(&mut self, now: Instant, has_children: impl FnOnce() -> bool) -> bool {
        let is_due = self.looked_at.is_none_or(|before| now >= before + LOOK_PERIOD);
        if !self.is_told || !is_due {
            return false;
        }
        self.looked_at = Some(now);
        if has_children() {
            self.alone_since = None;
            return false;
        }
        let since = *self.alone_since.get_or_insert(now);
        let is_overdue = now.saturating_duration_since(since) >= LAUNCHER_GRACE;
        if is_overdue {
            *self = Self::default();
        }
        is_overdue
    }
}

/// Whether a process has children that have not ended; also if the system does not say so.
pub(crate) fn has_children(pid: u32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|name| std::fs::read_to_string(format!("/proc/{name}/stat")).ok())
        .any(|stat| is_living_child(&stat, pid))
}

fn is_living_child(stat: &str, parent: u32) -> bool {
    proc_stat::fields(stat).is_some_and(|fields| {
        !matches!(fields.state(), Some('Z' | 'X')) && fields.parent() == Some(parent.into())
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_launcher_is_overdue_once_it_was_told_and_has_been_alone_for_long() {
        let begin = Instant::now();
        let mut end = LauncherEnd::default();
        assert!(!end.is_overdue(begin + LAUNCHER_GRACE, || false), "nothing has told it to end");
        assert_eq!(end.wait(LAUNCHER_GRACE), LAUNCHER_GRACE);
        end.tell();
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
