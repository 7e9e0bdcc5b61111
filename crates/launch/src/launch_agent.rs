//! The launch agent: our own program on a host that a parent has reached by ssh or the like,
//! between that session and the process that it starts there.
//!
//! It does two things that the process cannot do itself. **Nothing is left running:** it holds the
//! liveness pipe of all processes of the tree that are started below it on this host, and closes
//! the pipe when the session ends before the process has joined, or when the front-end has ended.
//! **The process outlives the session:** a session's end is no reason to end it, since the tree may
//! have repaired itself round the parent that held the session. Then, and when the process has
//! ended and others are left, the launch agent probes the front-end's port every second. A
//! [`Watchdog`] probes the front-end's host all the time.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood_transport::{Address, Error, KEY_BYTES, Key, probe_port};

use crate::script::{COPY_VARIABLE, LAUNCH_AGENT_VARIABLE};
use crate::task::{Greeting, JOINED, TASK_BYTES_MAX, Task};
use crate::watchdog::Watchdog;
use crate::{
    DeathSignal, Exit, LIVENESS_PIPE_VARIABLE, LaunchError, LivenessPipe, Local, Order, Process,
    ignore_hangups, ignore_terminations,
};

/// How long the parent may take to send the task. A copy of the program has arrived by then.
const TASK_DEADLINE: Duration = Duration::from_secs(60);

/// Between two probes of the front-end's port, once no session or process reports its end.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// How long one probe may take.
const PROBE_DEADLINE: Duration = Duration::from_secs(2);

/// How long a front-end that cannot be reached counts as restarting.
const SILENCE: Duration = Duration::from_secs(8);

/// How long the launch agent tries to write the remaining output when all processes have ended.
const FAREWELL: Duration = Duration::from_secs(1);

/// Output that the session has not taken yet, in bytes; beyond that the oldest is dropped.
const UNWRITTEN_BYTES_MAX: usize = 256 << 10;

/// Runs as a launch agent if this process was started as one, and returns the exit of the process
/// that it watched; the caller is to end in the same way. Returns nothing otherwise.
///
/// Call it first thing in the program's `node` command.
///
/// # Errors
/// [`LaunchError`] if no task arrives, or if its program cannot be started.
pub fn run_launch_agent() -> Result<Option<Exit>, LaunchError> {
    let asked = std::env::var_os(LAUNCH_AGENT_VARIABLE).filter(|asked| !asked.is_empty());
    let Some(asked) = asked else { return Ok(None) };
    // At once, since an end by a signal would leave the copy on the host for good.
    remove_copy();
    ignore_hangups();
    // It ends when its process has, which answers the signal as it likes.
    ignore_terminations();
    let (mut stdin, stderr) = (rustix::stdio::stdin(), rustix::stdio::stderr());
    for stream in [stdin, stderr] {
        // The session is watched beside the process: neither may hold this one up.
        let _ = rustix::io::ioctl_fionbio(stream, true);
    }
    let greeting = Greeting::of_this_process(&asked.to_string_lossy());
    let greeted = io::stdout().write_all(greeting.to_line().as_bytes());
    if greeted.and_then(|()| io::stdout().flush()).is_err() {
        return Err(LaunchError::StarterGone);
    }
    let (task, said) = hear(&mut stdin)?;
    let mut agent = LaunchAgent::begin(&task)?;
    agent.has_joined = said.contains(&JOINED);
    Ok(Some(agent.watch(stdin, stderr)))
}

/// Removes the copied program file of this process, which goes on running without it.
fn remove_copy() {
    let Some(folder) = std::env::var_os(COPY_VARIABLE) else { return };
    let folder = PathBuf::from(folder);
    // Exactly what the script has made: one file in a folder of its own.
    let _ = std::fs::remove_file(folder.join("sapwood"));
    let _ = std::fs::remove_dir(&folder);
}

/// Waits for the task; returns it with the bytes that follow it.
fn hear(stdin: &mut BorrowedFd<'_>) -> Result<(Task, Vec<u8>), LaunchError> {
    let begun = Instant::now();
    let mut heard = zeroize::Zeroizing::new(Vec::new());
    let mut is_open = true;
    loop {
        if let Some((task, length)) = Task::from_frame(&heard)? {
            // An end of the stream is seen again at the next read.
            return Ok((task, heard.split_off(length)));
        }
        let left = TASK_DEADLINE.saturating_sub(begun.elapsed());
        if !is_open || left.is_zero() || heard.len() > TASK_BYTES_MAX + 64 {
            return Err(LaunchError::StarterGone);
        }
        wait(&[(*stdin, PollFlags::IN)], left);
        is_open = take(stdin, &mut heard);
    }
}

/// Appends the bytes that are there; false at the end of the stream.
fn take(stream: &BorrowedFd<'_>, into: &mut Vec<u8>) -> bool {
    let mut piece = [0_u8; 8192];
    loop {
        match rustix::io::read(stream, &mut piece) {
            Ok(0) => return false,
            Ok(count) => into.extend_from_slice(&piece[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

/// Waits until one of them is ready, or the time is over; an error counts as ready.
fn wait(streams: &[(BorrowedFd<'_>, PollFlags)], limit: Duration) {
    let mut polled: Vec<PollFd<'_>> =
        streams.iter().map(|(stream, flags)| PollFd::from_borrowed_fd(*stream, *flags)).collect();
    let _ = poll(&mut polled, Timespec::try_from(limit).ok().as_ref());
}

struct LaunchAgent {
    process: Process,
    /// Dropping it kills all processes that hold it.
    liveness_pipe: Option<LivenessPipe>,
    front_end: Vec<Address>,
    /// Of the front-end's host.
    watchdog: Watchdog,
    patience: Duration,
    has_joined: bool,
    /// Whether the session is open.
    has_session: bool,
    exit: Option<Exit>,
    unwritten: Vec<u8>,
    /// When the front-end's port is probed next.
    probe_at: Option<Instant>,
    /// Since when no probe was answered.
    silent_since: Option<Instant>,
}

impl LaunchAgent {
    fn begin(task: &Task) -> Result<Self, LaunchError> {
        let mut order = Order::new(task.program.clone().unwrap_or_else(own_program));
        order.arguments = task.arguments.iter().map(Into::into).collect();
        for (name, value) in &task.environment {
            order.environment.push((name.into(), value.into()));
        }
        // Emptied, or the program, which may be this same file, would begin as an agent again.
        order.environment.push((LAUNCH_AGENT_VARIABLE.into(), "".into()));
        order.directory = task.directory.clone().filter(|folder| folder.is_dir());
        order.capture_stdout = true;
        // The program may be any, and cannot be relied on to ask for the signal itself.
        order.death_signal = DeathSignal::BeforeExec;
        let refused = |cause| LaunchError::Refused { program: order.program.clone(), cause };
        let (liveness_pipe, end) = LivenessPipe::new().map_err(refused)?;
        let secret = match &task.secret {
            // A file in memory: the secret lies in no file system and on no command line.
            Some((variable, bytes)) => Some((variable.clone(), memory_file(*bytes)?)),
            None => None,
        };
        order.inherit.push((LIVENESS_PIPE_VARIABLE.to_owned(), end.as_fd()));
        if let Some((variable, file)) = &secret {
            order.inherit.push((variable.clone(), file.as_fd()));
        }
        let process = Local.start(&order)?;
        let front_end: Vec<Address> =
            task.front_end.iter().filter_map(|text| text.parse().ok()).collect();
        Ok(Self {
            process,
            liveness_pipe: Some(liveness_pipe),
            watchdog: Watchdog::over(&front_end, Instant::now()),
            front_end,
            patience: Duration::from_millis(task.patience_milliseconds.into()),
            has_joined: false,
            has_session: true,
            exit: None,
            unwritten: Vec::new(),
            probe_at: None,
            silent_since: None,
        })
    }

    /// Watches until all processes have ended or none is needed any more. The kernel then kills the
    /// remaining ones by the liveness pipe.
    fn watch(mut self, stdin: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> Exit {
        loop {
            self.exit = self.process.try_wait();
            self.pass_on(stderr);
            if self.exit.is_some() && (!self.has_joined || self.is_alone()) {
                break;
            }
            if self.has_session && !self.listen(stdin) && !self.has_joined {
                break;
            }
            if self.is_abandoned() || self.watchdog.is_over(self.patience, Instant::now()) {
                break;
            }
            self.sleep(stdin, stderr);
        }
        // The kernel kills the processes that hold the liveness pipe.
        self.liveness_pipe = None;
        let _ = self.process.kill(crate::Signal::KILL);
        let exit = self.exit.or_else(|| self.process.wait(FAREWELL));
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL {
            self.pass_on(stderr);
            if self.unwritten.is_empty() || !self.has_session {
                break;
            }
            wait(&[(stderr, PollFlags::OUT)], FAREWELL.saturating_sub(begun.elapsed()));
        }
        exit.unwrap_or(Exit::Unknown)
    }

    /// Whether all processes that were started below this launch agent have ended.
    fn is_alone(&self) -> bool {
        self.liveness_pipe.as_ref().is_none_or(LivenessPipe::is_free)
    }

    /// Reads what the parent sends; false when the session has ended.
    fn listen(&mut self, stdin: BorrowedFd<'_>) -> bool {
        let mut said = Vec::new();
        self.has_session = take(&stdin, &mut said);
        self.has_joined |= said.contains(&JOINED);
        self.has_session
    }

    /// Forwards the output of the process, as far as the session takes it.
    fn pass_on(&mut self, stderr: BorrowedFd<'_>) {
        // A stream that cannot be read has ended.
        let _ = self.process.take_stdout(&mut self.unwritten);
        let _ = self.process.take_stderr(&mut self.unwritten);
        while !self.unwritten.is_empty() {
            match rustix::io::write(stderr, &self.unwritten) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                // The session has closed: nothing reads the output any more.
                Err(_) => self.unwritten.clear(),
            }
        }
        let surplus = self.unwritten.len().saturating_sub(UNWRITTEN_BYTES_MAX);
        self.unwritten.drain(..surplus);
    }

    /// Whether the front-end has ended. It is probed only while no session or process would report
    /// that.
    fn is_abandoned(&mut self) -> bool {
        if self.has_session && self.exit.is_none() {
            return false;
        }
        let now = Instant::now();
        if self.probe_at.is_some_and(|at| now < at) {
            return false;
        }
        self.probe_at = Some(now + PROBE_INTERVAL);
        let answers: Vec<_> =
            self.front_end.iter().map(|address| probe_port(address, PROBE_DEADLINE)).collect();
        if answers.iter().any(Result::is_ok) {
            self.silent_since = None;
            return false;
        }
        let is_refused = |answer: &Result<(), Error>| matches!(answer, Err(Error::Refused { .. }));
        let since = *self.silent_since.get_or_insert(now);
        let has_ended = answers.iter().any(is_refused) && self.patience.is_zero();
        has_ended || now.duration_since(since) >= self.patience.max(SILENCE)
    }

    fn sleep(&self, stdin: BorrowedFd<'_>, stderr: BorrowedFd<'_>) {
        let mut streams = Vec::with_capacity(6);
        if self.exit.is_none() {
            streams.push((self.process.exit_descriptor(), PollFlags::IN));
        } else if let Some(liveness_pipe) = &self.liveness_pipe {
            streams.push((liveness_pipe.as_fd(), PollFlags::empty()));
        }
        if !self.process.stderr_ended() {
            streams.push((self.process.stderr(), PollFlags::IN));
        }
        if let Some(stdout) = self.process.stdout().filter(|_| !self.process.stdout_ended()) {
            streams.push((stdout, PollFlags::IN));
        }
        if self.has_session {
            streams.push((stdin, PollFlags::IN));
        }
        if !self.unwritten.is_empty() {
            streams.push((stderr, PollFlags::OUT));
        }
        let now = Instant::now();
        let is_alone = !self.has_session || self.exit.is_some();
        let until_probe =
            self.probe_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let limit = if is_alone { until_probe } else { Duration::from_secs(3600) };
        let until_asked = self.watchdog.next().map(|next| next.saturating_duration_since(now));
        wait(&streams, until_asked.map_or(limit, |asked| limit.min(asked)));
    }
}

/// The program that this process runs: its file, or where that is gone what the kernel has of it.
fn own_program() -> PathBuf {
    let file = std::env::current_exe().ok().filter(|file| file.is_file());
    file.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// A sealed memory file with the network's key.
fn memory_file(secret: [u8; KEY_BYTES]) -> Result<OwnedFd, LaunchError> {
    Key::from_bytes(secret).to_descriptor().map_err(|error| LaunchError::Refused {
        program: "the process with its key".into(),
        cause: io::Error::other(error.to_string()),
    })
}
