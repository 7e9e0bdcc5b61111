//! One command on this host: its process, its output, its input, its end.
//!
//! The command leads a process group of its own. What it leaves of that group when it ends by
//! itself goes on, as under ssh; when its time is over, it is interrupted or the front-end is gone,
//! the whole group is killed. The job never waits: it is given turns.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sapwood::{BackEnd, Error, StreamId, Values, Wave};
use sapwood_launch::{Exit, GroupEnd, GroupReaper, LaunchError, Local, Process, Signal, locate_in};
use sapwood_topology::NodeSet;

use super::lines::{Lines, Source};
use super::protocol::{
    CONTENT, ERRORS, INLINE_BYTES_MAX, OUTPUT, Order, Outcome, PART_BYTES_MAX, RUN, State,
};
use super::spool::{Content, Spool};
use sapwood_hosts::substitution::substitute;

/// How long a command whose time is over may take to end itself. After a signal of the user's the
/// front-end decides that.
const TERMINATION_TIME: Duration = Duration::from_secs(2);

/// How long output is waited for that processes hold open which the command has left behind.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// The size of the pipe to the command's standard input.
const INPUT_PIPE_BYTES: usize = 1 << 20;

/// How often standard input that is not read is tried again.
const INPUT_PAUSE: Duration = Duration::from_millis(5);

/// The status of a command that could not be started.
const NOT_STARTED: i32 = 126;

/// The status of a command whose program is not there.
const NOT_FOUND: i32 = 127;

/// What the attaching to the tree needs, and no command.
const UNSET: &str = "unset SAPWOOD_PARENT SAPWOOD_KEY SAPWOOD_ENCRYPTION SAPWOOD_STARTED; ";

/// A command that was ordered.
pub(super) struct Job {
    control: StreamId,
    live: StreamId,
    pub(super) input: Option<StreamId>,
    is_live: bool,
    process: Option<Process>,
    /// Ends the command's group, should this process be killed while the command runs.
    reaper: Option<GroupReaper>,
    outputs: [Output; 2],
    stdin: Option<OwnedFd>,
    unwritten: Vec<u8>,
    input_has_ended: bool,
    deadline: Option<Instant>,
    /// When a command whose time is over is killed.
    kill_at: Option<Instant>,
    timed_out: bool,
    ended: Option<(State, Instant)>,
    is_told: bool,
    /// The wave that waits for an answer, and until when it is held.
    asked: Option<(Wave, Instant)>,
    fetched: Option<(usize, u64)>,
    is_watched: [bool; 3],
}

/// One output of the command: 0 is standard output, 1 standard error.
struct Output {
    spool: Spool,
    lines: Lines,
}

impl Job {
    /// Starts what was ordered.
    pub(super) fn start(control: StreamId, rank: u32, order: &Order, now: Instant) -> Self {
        let content = if order.is_folded { Content::Kept } else { Content::Hashed };
        let output = || Output { spool: Spool::new(content), lines: Lines::default() };
        let mut job = Self {
            control,
            live: order.live,
            input: (order.input != control).then_some(order.input),
            is_live: order.is_live,
            process: None,
            reaper: None,
            outputs: [output(), output()],
            stdin: None,
            unwritten: Vec::new(),
            input_has_ended: false,
            deadline: (!order.time_limit.is_zero()).then(|| now + order.time_limit),
            kill_at: None,
            timed_out: false,
            ended: None,
            is_told: false,
            asked: Some((0, now + order.hold)),
            fetched: None,
            is_watched: [false; 3],
        };
        match start_command(rank, order, job.input.is_some()) {
            Ok(started) => {
                (job.process, job.stdin) = (Some(started.process), started.stdin);
                job.reaper = Some(started.reaper);
            }
            Err(text) => {
                job.outputs[1].spool.add(format!("{text}\n").as_bytes());
                if job.is_live {
                    job.outputs[1].lines.add(format!("{text}\n").as_bytes());
                }
                job.ended = Some((State::NotStarted(NOT_STARTED), now));
            }
        }
        job
    }

    /// The front-end asks how it is.
    ///
    /// # Errors
    /// As [`BackEnd::send`].
    pub(super) fn poll(
        &mut self,
        back_end: &mut BackEnd,
        wave: Wave,
        hold: Duration,
        now: Instant,
    ) -> Result<(), Error> {
        if let Some((earlier, _)) = self.asked.take() {
            self.answer(back_end, earlier, Outcome::bare(State::Running), &[])?;
        }
        self.asked = Some((wave, now + hold));
        Ok(())
    }

    /// The front-end asks for the content of an output, from 1.
    pub(super) fn fetch(&mut self, output: u32) {
        self.fetched = Some((output.saturating_sub(1).min(1) as usize, 0));
    }

    /// A signal for the command.
    pub(super) fn signal(&mut self, number: i32) {
        let Some(process) = &mut self.process else { return };
        let signal = match number {
            1 => Signal::HUP,
            2 => Signal::INT,
            9 => Signal::KILL,
            10 => Signal::USR1,
            12 => Signal::USR2,
            _ => Signal::TERM,
        };
        // What a program does of its own at a signal that it chose does not end it.
        if !matches!(signal, Signal::USR1 | Signal::USR2) {
            process.set_group_end(GroupEnd::Killed);
        }
        // A process that has changed its user cannot be signalled; the tree's end says so.
        let _ = process.kill(signal);
    }

    /// Whether a part of standard input can be taken.
    pub(super) fn takes_input(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// A part of standard input; an empty one ends it.
    pub(super) fn take_input(&mut self, part: &[u8]) {
        if part.is_empty() {
            self.input_has_ended = true;
        } else if self.stdin.is_some() {
            self.unwritten = part.to_vec();
        }
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// As [`BackEnd::send`].
    pub(super) fn turn(&mut self, back_end: &mut BackEnd, now: Instant) -> Result<(), Error> {
        self.write_input();
        self.take_output(back_end)?;
        self.end_in_time(now);
        self.notice_end(back_end, now)?;
        self.send_content(back_end)?;
        if let Some((wave, until)) = self.asked {
            if self.is_told {
                self.asked = None;
                self.answer(back_end, wave, Outcome::bare(State::Told), &[])?;
            } else if let Some(state) = self.final_state() {
                self.asked = None;
                self.is_told = true;
                self.tell(back_end, wave, state)?;
            } else if now >= until {
                self.asked = None;
                self.answer(back_end, wave, Outcome::bare(State::Running), &[])?;
            }
        }
        self.watch(back_end)
    }

    /// When it wants another turn at the latest.
    pub(super) fn next_turn(&self, now: Instant) -> Option<Instant> {
        let pause = (!self.unwritten.is_empty()).then(|| now + INPUT_PAUSE);
        let drained = match &self.ended {
            Some((_, at)) if self.process.is_some() => Some(*at + DRAIN_TIME),
            _ => None,
        };
        let asked = self.asked.map(|(_, until)| until);
        let is_running = self.ended.is_none();
        let deadline = self.deadline.filter(|_| is_running && !self.timed_out);
        let kill = self.kill_at.filter(|_| is_running);
        [pause, drained, asked, deadline, kill].into_iter().flatten().min()
    }

    /// Ends the command and all of its group, unless it has ended by itself.
    pub(super) fn kill(&mut self, back_end: &mut BackEnd) {
        self.unwatch(back_end);
        if let Some(process) = self.process.as_mut().filter(|_| self.ended.is_none()) {
            process.set_group_end(GroupEnd::Killed);
        }
        self.process = None;
        self.reaper = None;
    }

    /// How the command ended, once all of its output was taken.
    fn final_state(&self) -> Option<State> {
        let (state, _) = self.ended.filter(|_| self.process.is_none())?;
        let is_empty = self.outputs.iter().all(|output| output.lines.waiting() == 0);
        is_empty.then_some(state)
    }

    fn write_input(&mut self) {
        while !self.unwritten.is_empty() {
            let Some(stdin) = &self.stdin else {
                self.unwritten.clear();
                return;
            };
            match rustix::io::write(stdin, &self.unwritten) {
                Ok(count) => {
                    self.unwritten.drain(..count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The command reads no more.
                Err(_) => self.stdin = None,
            }
        }
        if self.input_has_ended {
            self.stdin = None;
        }
    }

    /// Takes output while the live stream has room for it.
    fn take_output(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        for which in 0..2 {
            loop {
                self.send_lines(back_end, which)?;
                if self.outputs[which].lines.waiting() >= PART_BYTES_MAX {
                    break;
                }
                let Some(process) = &mut self.process else { break };
                let mut bytes = Vec::new();
                let taken = match which {
                    0 => process.take_stdout(&mut bytes),
                    _ => process.take_stderr(&mut bytes),
                };
                // A stream that fails has ended.
                if taken.unwrap_or(0) == 0 {
                    break;
                }
                let output = &mut self.outputs[which];
                output.spool.add(&bytes);
                if self.is_live {
                    output.lines.add(&bytes);
                } else {
                    // One noisy command does not keep the others of this process waiting.
                    break;
                }
            }
        }
        Ok(())
    }

    fn send_lines(&mut self, back_end: &mut BackEnd, which: usize) -> Result<(), Error> {
        let source = if self.ended.is_some() { Source::Ended } else { Source::Open };
        let tag = [OUTPUT, ERRORS][which];
        while self.outputs[which].lines.waiting() > 0 && back_end.has_room(self.live)? {
            let Some(part) = self.outputs[which].lines.next(source) else { break };
            back_end.send(self.live, tag, Values::new().string(part))?;
        }
        Ok(())
    }

    fn end_in_time(&mut self, now: Instant) {
        let is_over = self.deadline.is_some_and(|deadline| now >= deadline);
        if is_over && self.ended.is_none() && !self.timed_out {
            self.timed_out = true;
            self.kill_at = Some(now + TERMINATION_TIME);
            self.signal(15);
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill_at = None;
            self.signal(9);
        }
    }

    fn notice_end(&mut self, back_end: &mut BackEnd, now: Instant) -> Result<(), Error> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if self.ended.is_none() {
            let Some(exit) = process.try_wait() else { return Ok(()) };
            let state = match exit {
                _ if self.timed_out => State::TimedOut,
                Exit::Status(status) => State::Exited(status),
                Exit::Signal(number) => State::Killed(number),
                Exit::Unknown => State::Exited(NOT_STARTED),
            };
            self.ended = Some((state, now));
            self.stdin = None;
            if process.group_end() == GroupEnd::LeftAlone
                && let Some(reaper) = self.reaper.take()
            {
                // Where the kernel refuses it, what is left is killed, as before it was released.
                let _ = reaper.release();
            }
            self.take_output(back_end)?;
        }
        let Some(process) = &self.process else { return Ok(()) };
        let has_drained = process.stdout_ended() && process.stderr_ended();
        let is_late = self.ended.is_some_and(|(_, at)| now >= at + DRAIN_TIME);
        let is_full = self.outputs.iter().any(|output| output.lines.waiting() >= PART_BYTES_MAX);
        if has_drained || is_late && !is_full {
            self.kill(back_end);
            self.send_lines(back_end, 0)?;
            self.send_lines(back_end, 1)?;
        }
        Ok(())
    }

    /// Tells how the command ended, with its output if that is short.
    fn tell(&mut self, back_end: &mut BackEnd, wave: Wave, state: State) -> Result<(), Error> {
        let [output, errors] = self.outputs.each_ref().map(|output| output.spool.digest());
        let outcome = Outcome { state, output, errors };
        let mut content = Vec::new();
        let parts = self.outputs.each_ref().map(|output| output.spool.in_memory());
        if let [Some(output), Some(errors)] = parts
            && output.len() + errors.len() <= INLINE_BYTES_MAX
        {
            content = [output, errors].concat();
        }
        self.answer(back_end, wave, outcome, &content)
    }

    fn answer(
        &self,
        back_end: &mut BackEnd,
        wave: Wave,
        outcome: Outcome,
        content: &[u8],
    ) -> Result<(), Error> {
        let values = Values::new().string(outcome.encode()).string(content);
        back_end.send_in_wave(self.control, wave, RUN, values)
    }

    fn send_content(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        while let Some((which, from)) = self.fetched {
            if !back_end.has_room(self.live)? {
                return Ok(());
            }
            let part = self.outputs[which].spool.read(from, PART_BYTES_MAX);
            self.fetched = (!part.is_empty()).then_some((which, from + part.len() as u64));
            back_end.send(self.live, CONTENT, Values::new().string(part))?;
        }
        Ok(())
    }

    /// Watches what can be taken now.
    fn watch(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        let Some(process) = &self.process else { return Ok(()) };
        let wanted = [
            !process.stdout_ended() && self.outputs[0].lines.waiting() < PART_BYTES_MAX,
            !process.stderr_ended() && self.outputs[1].lines.waiting() < PART_BYTES_MAX,
            self.ended.is_none(),
        ];
        for (at, wanted) in wanted.into_iter().enumerate() {
            if wanted == self.is_watched[at] {
                continue;
            }
            let descriptor = match at {
                0 => process.stdout(),
                1 => Some(process.stderr()),
                _ => Some(process.exit_descriptor()),
            };
            let Some(descriptor) = descriptor else { continue };
            if wanted {
                back_end.watch(descriptor)?
            } else {
                back_end.unwatch(descriptor)?
            }
            self.is_watched[at] = wanted;
        }
        Ok(())
    }

    fn unwatch(&mut self, back_end: &mut BackEnd) {
        let Some(process) = &self.process else { return };
        let exit = Some(process.exit_descriptor());
        for (at, descriptor) in
            [process.stdout(), Some(process.stderr()), exit].into_iter().enumerate()
        {
            if let (true, Some(descriptor)) = (self.is_watched[at], descriptor) {
                // What is not watched any more needs no taking out.
                let _ = back_end.unwatch(descriptor);
            }
            self.is_watched[at] = false;
        }
    }
}

/// A command that runs.
struct Started {
    process: Process,
    reaper: GroupReaper,
    /// The writing end of its standard input, if it has one.
    stdin: Option<OwnedFd>,
}

fn start_command(rank: u32, order: &Order, has_input: bool) -> Result<Started, String> {
    let hosts: NodeSet = order.hosts.parse().map_err(|error| format!("{error}"))?;
    let place = order.place_of(rank);
    let host = hosts.iter().nth(place).unwrap_or_default();
    let replaced = |text: &String| match order.substitutes {
        true => substitute(text, &host, place),
        false => text.clone(),
    };
    let reaper = GroupReaper::new()
        .map_err(|error| format!("cannot create a pipe for the command: {error}"))?;
    let mut command = sapwood_launch::Order::new("/bin/sh");
    command.group_reaper = Some(&reaper);
    for variable in &order.environment {
        if let Some((name, value)) = variable.split_once('=') {
            command.environment.push((name.into(), replaced(&value.to_string()).into()));
        }
    }
    command.environment.push(("SAPWOOD_HOST".into(), host.clone().into()));
    command.environment.push(("SAPWOOD_RANK".into(), place.to_string().into()));
    command.directory = directory(order, &replaced(&order.directory));
    let words: Vec<String> = order.words.iter().map(replaced).collect();
    command.arguments = match order.is_shell {
        true => vec!["-c".into(), format!("{UNSET}{}", words.join(" ")).into()],
        false => without_shell(words, &command),
    };
    command.capture_stdout = true;
    let mut writer = None;
    if has_input {
        writer = Some(
            input_pipe()
                .map_err(|error| format!("cannot create a pipe for standard input: {error}"))?,
        );
        command.inherit_stdin = true;
    }
    let started = Local::new().start(&command);
    if has_input {
        // The pipe's reading end is the command's alone from here on.
        let null = rustix::fs::open(
            "/dev/null",
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        );
        let _ = null.and_then(|null| rustix::stdio::dup2_stdin(&null));
    }
    drop(command);
    let mut process = started.map_err(|error| error.to_string())?;
    process.set_group_end(GroupEnd::LeftAlone);
    Ok(Started { process, reaper, stdin: writer })
}

/// The arguments with which a shell gives way to a program, or says why it cannot be run: in the
/// words of the shell itself a user would not find the program.
fn without_shell(words: Vec<String>, command: &sapwood_launch::Order<'_>) -> Vec<OsString> {
    let program = words.first().map_or("", String::as_str);
    let (script, words) = match hindrance(program, command) {
        None => (format!("{UNSET}exec \"$@\""), words),
        Some((status, text)) => (format!("printf '%s\\n' \"$1\" >&2; exit {status}"), vec![text]),
    };
    let begin: [OsString; 3] = ["-c".into(), script.into(), "sapwood".into()];
    begin.into_iter().chain(words.into_iter().map(OsString::from)).collect()
}

/// Why this program cannot be run, with the status that a shell gives then; nothing where that is
/// not certain.
fn hindrance(program: &str, command: &sapwood_launch::Order<'_>) -> Option<(i32, String)> {
    let is_path = program.contains('/');
    let ordered = command.environment.iter().rev().find(|(name, _)| name == "PATH");
    let search = ordered.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"));
    let is_whole = |search: &OsString| std::env::split_paths(search).all(|one| one.is_absolute());
    if !is_path && !search.as_ref().is_some_and(is_whole) {
        return None;
    }
    let place = match &command.directory {
        Some(directory) if is_path => directory.join(program),
        _ => PathBuf::from(program),
    };
    let error = locate_in(&place, search.as_deref()).err()?;
    let is_there = matches!(error, LaunchError::NotExecutable { .. });
    Some((if is_there { NOT_STARTED } else { NOT_FOUND }, error.to_string()))
}

/// Where the command runs: the folder that it is told, as seen from where its caller is, if there
/// is such a place here.
fn directory(order: &Order, told: &str) -> Option<PathBuf> {
    let caller = Some(PathBuf::from(&order.caller_directory)).filter(|folder| folder.is_dir());
    match (caller, told.is_empty()) {
        (caller, true) => caller,
        (Some(caller), false) => Some(caller.join(told)),
        (None, false) => Some(PathBuf::from(told)),
    }
}

/// A pipe whose reading end is this process's standard input, for the command to inherit.
fn input_pipe() -> std::io::Result<OwnedFd> {
    let (reader, writer) = std::io::pipe()?;
    rustix::stdio::dup2_stdin(reader.as_fd())?;
    let writer = OwnedFd::from(writer);
    rustix::io::ioctl_fionbio(&writer, true)?;
    // A larger pipe is tried less often; a small one does, too.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, INPUT_PIPE_BYTES);
    Ok(writer)
}
