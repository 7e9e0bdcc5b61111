//! One started process: watching it, hearing it, ending it.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};

use crate::Exit;
use crate::captured::Captured;

/// How long dropping a [`Process`] waits for the kernel to end it, in milliseconds. Only a
/// process that hangs in a device or a dead file server takes that long.
pub const DROP_WAIT_MS_MAX: u64 = 2000;

/// What a process does with processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Whether it computes now, or waits for nothing but a processor.
    pub is_computing: bool,
    /// Processor time that it has had.
    pub taken: Duration,
    /// How long it could have computed and had no processor. Zero on a kernel that does not count
    /// this.
    pub delayed: Duration,
}

impl Work {
    /// How long it computed or could have computed. The rest of its life it waited for others.
    pub fn busy(&self) -> Duration {
        self.taken + self.delayed
    }
}

/// A process that we started. Dropping it kills it and leaves no zombie, unless it was
/// [released](Self::release).
///
/// Its standard error is a pipe, which the caller must drain by [`take_stderr`](Self::take_stderr)
/// or [`forward_stderr`](Self::forward_stderr) whenever [`stderr`](Self::stderr) is readable; else
/// the process stops once the pipe is full.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    program: PathBuf,
    exit_descriptor: OwnedFd,
    stderr: Captured,
    stdout: Option<Captured>,
    stdin: Option<PipeWriter>,
    own_group: bool,
    group_end: GroupEnd,
    exit: Option<Exit>,
    is_released: bool,
}

/// What becomes of the other processes of a started process's own group when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupEnd {
    /// They are killed.
    #[default]
    Killed,
    /// They go on, as those that a command in a shell leaves in the background.
    LeftAlone,
}

/// Whether the process has ended whose [exit descriptor](Process::exit_descriptor), or a copy of
/// it, this is. It need not be waited for here.
#[must_use]
pub fn has_ended(exit_descriptor: impl AsFd) -> bool {
    let mut ended = [PollFd::new(&exit_descriptor, PollFlags::IN)];
    poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

impl Process {
    /// Takes charge of a process that was just started.
    pub(crate) fn watch(
        mut child: Child,
        program: PathBuf,
        stderr: Captured,
        stdout: Option<Captured>,
        own_group: bool,
    ) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(exit_descriptor) => Ok(Self {
                child,
                pid,
                program,
                exit_descriptor,
                stderr,
                stdout,
                stdin: None,
                own_group,
                group_end: GroupEnd::default(),
                exit: None,
                is_released: false,
            }),
            // The process was reaped by other code in this process that waits for all children.
            Err(Errno::SRCH) => Err(Errno::CHILD.into()),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Its standard input is this pipe's other end.
    pub(crate) fn feed(&mut self, stdin: Option<PipeWriter>) {
        self.stdin = stdin;
    }

    /// The non-blocking pipe to its standard input, if it was ordered and has not been closed.
    pub fn stdin(&self) -> Option<&PipeWriter> {
        self.stdin.as_ref()
    }

    /// Closes its standard input: it reads the end of it.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it computes just now, or would if a processor were free, and how much processor
    /// time it has had; nothing once it has ended.
    pub fn work(&self) -> Option<Work> {
        let read = |file| std::fs::read_to_string(format!("/proc/{}/{file}", self.pid())).ok();
        // The state follows the program's name, which may have any characters in it.
        let is_computing = read("stat")?.rsplit_once(") ")?.1.starts_with('R');
        let counters = read("schedstat")?;
        let mut counters = counters.split_whitespace().map(str::parse);
        let mut duration = || Some(Duration::from_nanos(counters.next()?.ok()?));
        Some(Work { is_computing, taken: duration()?, delayed: duration()? })
    }

    /// The full path of its program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A descriptor for the poll loop: readable once the process has ended.
    pub fn exit_descriptor(&self) -> BorrowedFd<'_> {
        self.exit_descriptor.as_fd()
    }

    /// A descriptor for the poll loop: readable when standard error has something or has ended.
    /// Take it out of the loop once [`stderr_ended`](Self::stderr_ended).
    pub fn stderr(&self) -> BorrowedFd<'_> {
        self.stderr.descriptor()
    }

    /// Whether standard error was read to its end and has no writer any more.
    pub fn stderr_ended(&self) -> bool {
        self.stderr.has_ended()
    }

    /// The same as [`stderr`](Self::stderr) for standard output, if it is captured.
    pub fn stdout(&self) -> Option<BorrowedFd<'_>> {
        self.stdout.as_ref().map(Captured::descriptor)
    }

    /// Whether all of standard output was read, or it is not captured.
    pub fn stdout_ended(&self) -> bool {
        self.stdout.as_ref().is_none_or(Captured::has_ended)
    }

    /// Appends what came on standard error, at most [`READ_BYTES_MAX`](crate::READ_BYTES_MAX)
    /// bytes, and answers how much that was. Never blocks; 0 means nothing for now.
    ///
    /// # Errors
    /// The system's, after which the stream counts as ended.
    pub fn take_stderr(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.stderr.take(into)
    }

    /// The same as [`take_stderr`](Self::take_stderr) for standard output; 0 if not captured.
    ///
    /// # Errors
    /// As for standard error.
    pub fn take_stdout(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        self.stdout.as_mut().map_or(Ok(0), |stdout| stdout.take(into))
    }

    /// Writes the complete lines that came on standard error to our own, each after `prefix`,
    /// and answers how many bytes were taken. An unfinished line waits for its end.
    ///
    /// Blocks only if our own standard error does.
    ///
    /// # Errors
    /// The system's, from either stream.
    pub fn forward_stderr(&mut self, prefix: &str) -> io::Result<usize> {
        self.forward_stderr_without(prefix, |_| false)
    }

    /// The same without some lines.
    ///
    /// # Errors
    /// The system's, from either stream.
    pub fn forward_stderr_without(
        &mut self,
        prefix: &str,
        is_left_out: impl Fn(&str) -> bool,
    ) -> io::Result<usize> {
        self.stderr.forward(prefix, is_left_out, &mut io::stderr().lock())
    }

    /// What the process was and how it ended, in a line; then the end of its standard error, as
    /// further lines with two spaces before each. Takes what is left on standard error.
    pub fn exit_report(&mut self) -> String {
        let exit = self.try_wait();
        self.stderr.drain();
        let fate = exit.map_or_else(|| "is still running".to_owned(), |exit| exit.to_string());
        let mut text = format!("'{}' (process {}) {fate}", self.program.display(), self.pid());
        let words = self.stderr.stderr_tail();
        if words.trim().is_empty() {
            text.push_str("; it wrote nothing to stderr");
            return text;
        }
        text.push_str("; the end of its stderr:");
        for line in words.lines().filter(|line| !line.trim().is_empty()) {
            text.push_str("\n  ");
            text.push_str(line.trim_end());
        }
        text
    }

    /// The end of what it wrote to standard error, at most
    /// [`ERROR_TEXT_BYTES_MAX`](crate::ERROR_TEXT_BYTES_MAX) bytes, as lines without control
    /// characters. Takes what is left there.
    pub fn stderr_tail(&mut self) -> String {
        self.stderr.drain();
        self.stderr.stderr_tail()
    }

    /// Says what becomes of the rest of its group when it has ended. Takes effect until
    /// [`try_wait`](Self::try_wait) has seen that it has.
    pub fn set_group_end(&mut self, group_end: GroupEnd) {
        self.group_end = group_end;
    }

    /// What becomes of the rest of its group when it has ended.
    pub fn group_end(&self) -> GroupEnd {
        self.group_end
    }

    /// How it ended, if it has. The first call that returns an exit reaps it, and kills what is
    /// left in its process group if it had one of its own and [`GroupEnd`] does not say otherwise.
    pub fn try_wait(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            self.exit = self.reap_if_ended();
        }
        self.exit
    }

    /// Waits until it has ended, at most for `limit`. Blocks the caller, and does not drain its
    /// output: see [`Family::wait_ended`](crate::Family::wait_ended) for that.
    pub fn wait(&mut self, limit: Duration) -> Option<Exit> {
        let deadline = Instant::now().checked_add(limit);
        loop {
            if let Some(exit) = self.try_wait() {
                return Some(exit);
            }
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => limit,
            };
            if left.is_zero() {
                return None;
            }
            let timeout = Timespec::try_from(left).ok();
            let mut ended = [PollFd::new(&self.exit_descriptor, PollFlags::IN)];
            match poll(&mut ended, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.try_wait(),
            }
        }
    }

    /// Sends a signal to it, or to its whole process group if it has one of its own. Does
    /// nothing to a process that has ended.
    ///
    /// # Errors
    /// The system's, such as for a process that has changed its user.
    pub fn kill(&mut self, signal: Signal) -> io::Result<()> {
        if self.try_wait().is_some() {
            return Ok(());
        }
        let sent = if self.own_group {
            kill_process_group(self.pid, signal)
        } else {
            pidfd_send_signal(&self.exit_descriptor, signal)
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets it go on without us. Once it ends it stays a zombie until this process ends, too.
    pub fn release(mut self) {
        self.is_released = true;
    }

    /// Reads its captured streams and keeps only the end of standard error.
    pub(crate) fn drain(&mut self) {
        self.stderr.drain();
        if let Some(stdout) = &mut self.stdout {
            stdout.drain();
        }
    }

    /// Reaps it if it has ended. Until it is reaped its number is its own, so this is the last
    /// moment at which its group can be signalled without a risk for others.
    fn reap_if_ended(&mut self) -> Option<Exit> {
        let id = WaitId::PidFd(self.exit_descriptor.as_fd());
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(id, options) {
            Ok(Some(_)) => {}
            Err(Errno::CHILD) => return Some(Exit::Unknown),
            Ok(None) | Err(_) => return None,
        }
        if self.own_group && self.group_end == GroupEnd::Killed {
            // Most often the ended process was the last one of its group.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        Some(self.child.wait().map_or(Exit::Unknown, Exit::from))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        if self.try_wait().is_none() && self.kill(Signal::KILL).is_ok() {
            self.wait(Duration::from_millis(DROP_WAIT_MS_MAX));
        }
    }
}
