//! The guard: our own program on a host that a parent has reached by ssh or the like, between that
//! session and the process that it starts there.
//!
//! It is there for two things that the process cannot do itself. **Nothing is left running:** it
//! holds the lifeline of everything of the tree that is started on this host below it, and lets go
//! of it when the session ends before the process has joined, or when the front-end is gone. **The
//! process outlives the session:** a session's end is no reason to end it, since the tree may have
//! repaired itself round the parent that held the session. Then, and when the process has ended and
//! others are left, the guard asks every second whether the front-end still takes connections. All
//! the time it asks now and then whether the front-end's host is there at all ([`Vigil`]).

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood_transport::{Address, Error, KEY_BYTES, Key, takes_connections};

use crate::script::{COPY_VARIABLE, GUARD_VARIABLE};
use crate::task::{Greeting, JOINED, TASK_BYTES_MAX, Task};
use crate::vigil::Vigil;
use crate::{
    Bond, Exit, LIFELINE_VARIABLE, LaunchError, Lifeline, Local, Order, Process, ignore_hangups,
};

/// How long the parent may take to say what is to be started. A copy of the program has come by
/// then.
const TASK_DEADLINE: Duration = Duration::from_secs(60);

/// How often the front-end is asked after, once nobody else tells.
const KNOCK_INTERVAL: Duration = Duration::from_secs(1);

/// How long one asking may take.
const KNOCK_DEADLINE: Duration = Duration::from_secs(2);

/// How long a front-end that cannot be reached at all counts as being on its way back.
const SILENCE: Duration = Duration::from_secs(8);

/// How long the guard tries to get rid of the last words when all has ended.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the session has not taken yet, in bytes; the oldest goes first beyond that.
const UNTOLD_BYTES_MAX: usize = 256 << 10;

/// Stands guard if this process was started for that, and answers how the process that it watched
/// over has ended; the caller is to end likewise. Nothing otherwise.
///
/// Call it first thing in the program's `node` command.
///
/// # Errors
/// [`LaunchError`] if it is told nothing, or what it is told cannot be started.
pub fn stand_guard() -> Result<Option<Exit>, LaunchError> {
    let asked = std::env::var_os(GUARD_VARIABLE).filter(|asked| !asked.is_empty());
    let Some(asked) = asked else { return Ok(None) };
    remove_copy();
    ignore_hangups();
    let (mut stdin, stderr) = (rustix::stdio::stdin(), rustix::stdio::stderr());
    for stream in [stdin, stderr] {
        let _ = rustix::io::ioctl_fionbio(stream, true);
    }
    let greeting = Greeting::of_this_process(&asked.to_string_lossy());
    let greeted = io::stdout().write_all(greeting.to_line().as_bytes());
    if greeted.and_then(|()| io::stdout().flush()).is_err() {
        return Err(LaunchError::StarterGone);
    }
    let (task, said) = hear(&mut stdin)?;
    let mut guard = Guard::begin(&task)?;
    guard.has_joined = said.contains(&JOINED);
    Ok(Some(guard.watch(stdin, stderr)))
}

/// Removes the copy that this program is, which runs on without a name.
fn remove_copy() {
    let Some(folder) = std::env::var_os(COPY_VARIABLE) else { return };
    let folder = PathBuf::from(folder);
    // Only what the script has made: one file in a folder of its own.
    let _ = std::fs::remove_file(folder.join("sapwood"));
    let _ = std::fs::remove_dir(&folder);
}

/// Waits for the task, and what is said behind it.
fn hear(stdin: &mut BorrowedFd<'_>) -> Result<(Task, Vec<u8>), LaunchError> {
    let begun = Instant::now();
    let mut heard = zeroize::Zeroizing::new(Vec::new());
    let mut is_open = true;
    loop {
        if let Some((task, length)) = Task::from_frame(&heard)? {
            // That the stream has ended since is seen again.
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

/// Appends what has come; false at the end of the stream.
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

struct Guard {
    process: Process,
    /// Dropping it ends all who hold it.
    lifeline: Option<Lifeline>,
    front_end: Vec<Address>,
    /// Over the host of the front-end.
    vigil: Vigil,
    patience: Duration,
    has_joined: bool,
    /// Whether the session is open.
    has_session: bool,
    exit: Option<Exit>,
    untold: Vec<u8>,
    /// When the front-end is asked after next.
    knock_at: Option<Instant>,
    /// Since when it could not be found.
    silent_since: Option<Instant>,
}

impl Guard {
    fn begin(task: &Task) -> Result<Self, LaunchError> {
        let mut order = Order::new(task.program.clone().unwrap_or_else(own_program));
        order.arguments = task.arguments.iter().map(Into::into).collect();
        for (name, value) in &task.environment {
            order.environment.push((name.into(), value.into()));
        }
        order.environment.push((GUARD_VARIABLE.into(), "".into()));
        order.directory = task.directory.clone().filter(|folder| folder.is_dir());
        order.capture_stdout = true;
        order.bond = Bond::BeforeExec;
        let refused = |cause| LaunchError::Refused { program: order.program.clone(), cause };
        let (lifeline, end) = Lifeline::new().map_err(refused)?;
        let secret = match &task.secret {
            Some((variable, bytes)) => Some((variable.clone(), memory_file(*bytes)?)),
            None => None,
        };
        order.inherit.push((LIFELINE_VARIABLE.to_owned(), end.as_fd()));
        if let Some((variable, file)) = &secret {
            order.inherit.push((variable.clone(), file.as_fd()));
        }
        let process = Local.start(&order)?;
        let front_end: Vec<Address> =
            task.front_end.iter().filter_map(|text| text.parse().ok()).collect();
        Ok(Self {
            process,
            lifeline: Some(lifeline),
            vigil: Vigil::over(&front_end, Instant::now()),
            front_end,
            patience: Duration::from_millis(task.patience_milliseconds.into()),
            has_joined: false,
            has_session: true,
            exit: None,
            untold: Vec::new(),
            knock_at: None,
            silent_since: None,
        })
    }

    /// Watches until nobody is left, or nobody is needed any more. What is left then ends with the
    /// lifeline.
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
            if self.is_abandoned() || self.vigil.is_over(self.patience, Instant::now()) {
                break;
            }
            self.sleep(stdin, stderr);
        }
        // Whoever holds the lifeline is killed by the kernel.
        self.lifeline = None;
        let _ = self.process.kill(crate::Signal::KILL);
        let exit = self.exit.or_else(|| self.process.wait(FAREWELL));
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL {
            self.pass_on(stderr);
            if self.untold.is_empty() || !self.has_session {
                break;
            }
            wait(&[(stderr, PollFlags::OUT)], FAREWELL.saturating_sub(begun.elapsed()));
        }
        exit.unwrap_or(Exit::Unknown)
    }

    /// Whether nobody else is left of what was started below this guard.
    fn is_alone(&self) -> bool {
        self.lifeline.as_ref().is_none_or(Lifeline::is_free)
    }

    /// What the parent says; false when the session has ended.
    fn listen(&mut self, stdin: BorrowedFd<'_>) -> bool {
        let mut said = Vec::new();
        self.has_session = take(&stdin, &mut said);
        self.has_joined |= said.contains(&JOINED);
        self.has_session
    }

    /// Passes on what the process writes, as far as the session takes it.
    fn pass_on(&mut self, stderr: BorrowedFd<'_>) {
        // What cannot be read has ended.
        let _ = self.process.take_stdout(&mut self.untold);
        let _ = self.process.take_stderr(&mut self.untold);
        while !self.untold.is_empty() {
            match rustix::io::write(stderr, &self.untold) {
                Ok(count) => drop(self.untold.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                // Nobody listens any more.
                Err(_) => self.untold.clear(),
            }
        }
        let surplus = self.untold.len().saturating_sub(UNTOLD_BYTES_MAX);
        self.untold.drain(..surplus);
    }

    /// Whether the front-end is gone, which is asked only where nobody else would tell.
    fn is_abandoned(&mut self) -> bool {
        if self.has_session && self.exit.is_none() {
            return false;
        }
        let now = Instant::now();
        if self.knock_at.is_some_and(|at| now < at) {
            return false;
        }
        self.knock_at = Some(now + KNOCK_INTERVAL);
        let answers: Vec<_> = self
            .front_end
            .iter()
            .map(|address| takes_connections(address, KNOCK_DEADLINE))
            .collect();
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
        } else if let Some(lifeline) = &self.lifeline {
            streams.push((lifeline.as_fd(), PollFlags::empty()));
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
        if !self.untold.is_empty() {
            streams.push((stderr, PollFlags::OUT));
        }
        let now = Instant::now();
        let is_alone = !self.has_session || self.exit.is_some();
        let until_knock =
            self.knock_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let limit = if is_alone { until_knock } else { Duration::from_secs(3600) };
        let until_asked = self.vigil.next().map(|next| next.saturating_duration_since(now));
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
