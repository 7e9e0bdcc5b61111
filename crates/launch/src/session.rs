//! One process on another host, seen from its parent: a client such as `ssh`, and the launch agent
//! at the other end of it.
//!
//! The launch agent is our own program. It identifies itself; it receives a task, with the key; and
//! it watches the processes that it has started, also when this session has ended. The output of
//! the process comes back by the client's standard error.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use zeroize::Zeroizing;

use crate::script::{COPY_REQUEST, Copy, command};
use crate::task::JOINED;
use crate::{Exit, Greeting, LaunchError, Launcher, Local, Process, Task, Work};

/// The longest line of a client that is looked at, in bytes.
const LINE_BYTES_MAX: usize = 4096;

/// How ssh ends when it has not reached the host (ssh(1), exit status).
const CLIENT_FAILED: Exit = Exit::Status(255);

/// How many lines of a client are reported.
const LINES_TOLD: usize = 3;

/// The program that launch agents run, and that is copied to hosts that lack it.
#[derive(Clone, Debug)]
pub struct LaunchAgentProgram {
    path: String,
    arguments: Vec<String>,
    copy: Option<Copy>,
    source: PathBuf,
    /// Its contents, once a host has asked for them.
    contents: Arc<OnceLock<Option<Arc<Vec<u8>>>>>,
}

impl LaunchAgentProgram {
    /// A program at this path on every host, called with these arguments. `source` is copied where
    /// the path leads nowhere; none if it cannot be copied, as an interpreter.
    ///
    /// # Errors
    /// [`LaunchError::Refused`] if the source is not there, [`LaunchError::ApiMisuse`] if the path
    /// is no text.
    pub fn new(
        path: &Path,
        arguments: Vec<String>,
        source: Option<&Path>,
    ) -> Result<Self, LaunchError> {
        let rule = "a program that is run on other hosts has a path that is text (UTF-8)";
        let path = path.to_str().ok_or(LaunchError::ApiMisuse { rule })?.to_owned();
        let copy = source.map(|source| {
            let found = std::fs::metadata(source);
            let found =
                found.map_err(|cause| LaunchError::Refused { program: source.into(), cause })?;
            Ok(Copy { bytes: found.len(), mark: env!("CARGO_PKG_VERSION").to_owned() })
        });
        let source = source.map(Path::to_path_buf).unwrap_or_default();
        Ok(Self { path, arguments, copy: copy.transpose()?, source, contents: Arc::default() })
    }

    /// The command for the shell on a host.
    fn command(&self, host: &str) -> String {
        command(host, &self.path, &self.arguments, self.copy.as_ref())
    }

    /// The bytes of the copy; read once. None if the file is not there any more: the host then
    /// waits until its time is over.
    fn contents(&self) -> Option<Arc<Vec<u8>>> {
        let read = || self.copy.as_ref().and(std::fs::read(&self.source).ok()).map(Arc::new);
        self.contents.get_or_init(read).clone()
    }
}

/// The command line that [`Session::start`] calls, as a shell would read it.
pub fn command_line(launcher: &dyn Launcher, host: &str, program: &LaunchAgentProgram) -> String {
    let order = launcher.client(host, &program.command(host));
    let words = std::iter::once(order.program.as_os_str())
        .chain(order.arguments.iter().map(|word| word.as_os_str()));
    words.map(|word| crate::quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A process on another host.
#[derive(Debug)]
pub struct Session {
    client: Process,
    /// What waits to be written, and how much of the first of it has been.
    outgoing: VecDeque<Piece>,
    written: usize,
    line: Vec<u8>,
    /// Whether anything has come on the stream of answers.
    has_said_something: bool,
    program: Option<LaunchAgentProgram>,
    is_copying: bool,
    task: Option<Zeroizing<Vec<u8>>>,
}

/// A part of the bytes for the other end.
#[derive(Debug)]
enum Piece {
    Program(Arc<Vec<u8>>),
    Own(Zeroizing<Vec<u8>>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Program(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

impl Session {
    /// Starts the client. The task is sent to the launch agent once it has identified itself and
    /// [`Session::accept`] was called.
    ///
    /// # Errors
    /// As [`Local::start`]: the client could not be started.
    pub fn start(
        launcher: &dyn Launcher,
        host: &str,
        program: &LaunchAgentProgram,
        task: &Task,
    ) -> Result<Self, LaunchError> {
        let mut order = launcher.client(host, &program.command(host));
        order.pipe_stdin = true;
        order.capture_stdout = true;
        let client = Local.start(&order)?;
        Ok(Self {
            client,
            outgoing: VecDeque::new(),
            written: 0,
            line: Vec::new(),
            has_said_something: false,
            program: Some(program.clone()),
            is_copying: false,
            task: Some(task.to_frame()),
        })
    }

    /// The client on this machine: its end, and its standard error, are watched as any process's.
    pub fn client(&mut self) -> &mut Process {
        &mut self.client
    }

    /// What the client does with processors, as for [`Process::work`].
    pub fn work(&self) -> Option<Work> {
        self.client.work()
    }

    /// The stream of answers, for the poll loop, until [`Session::answers_ended`].
    ///
    /// # Panics
    /// Never: a client's standard output is captured.
    pub fn answers(&self) -> BorrowedFd<'_> {
        self.client.stdout().expect("a client's standard output is captured")
    }

    /// Whether that stream has ended.
    pub fn answers_ended(&self) -> bool {
        self.client.stdout_ended()
    }

    /// Where to write, for the poll loop, if something waits to be written.
    pub fn wants_write(&self) -> Option<BorrowedFd<'_>> {
        let stdin = self.client.stdin()?;
        (!self.outgoing.is_empty()).then(|| stdin.as_fd())
    }

    /// Reads the bytes that are there, never blocking; returns the launch agent's greeting once it
    /// is complete.
    pub fn read(&mut self) -> Option<Greeting> {
        let mut taken = Vec::new();
        // What cannot be read has ended.
        let _ = self.client.take_stdout(&mut taken);
        self.has_said_something |= !taken.is_empty();
        let mut greeting = None;
        for byte in taken {
            if byte != b'\n' {
                // A log-in script may print without end: the rest of a long line is dropped.
                if self.line.len() < LINE_BYTES_MAX {
                    self.line.push(byte);
                }
                continue;
            }
            let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
            if line == COPY_REQUEST {
                let contents = self.program.take().and_then(|program| program.contents());
                self.outgoing.extend(contents.map(Piece::Program));
                self.is_copying = true;
            }
            greeting = greeting.or_else(|| Greeting::from_line(&line));
        }
        greeting
    }

    /// Whether the host has asked for a copy of the program, which takes its time.
    pub fn is_copying(&self) -> bool {
        self.is_copying
    }

    /// Sends the task to the launch agent.
    pub fn accept(&mut self) {
        // No copy is sent from here on, so its bytes can be freed.
        self.program = None;
        self.outgoing.extend(self.task.take().map(Piece::Own));
    }

    /// The process has joined: it goes on when this session ends.
    pub fn joined(&mut self) {
        self.outgoing.push_back(Piece::Own(Zeroizing::new(vec![JOINED])));
    }

    /// Writes what waits, as far as the pipe takes it, and gives how many bytes that were. An end
    /// of it is seen by the client's end.
    pub fn write(&mut self) -> usize {
        let mut moved = 0;
        while let (Some(piece), Some(mut stdin)) = (self.outgoing.front(), self.client.stdin()) {
            let bytes = piece.bytes();
            match stdin.write(&bytes[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    moved += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // The client has closed its input; its exit tells the reason.
                    self.outgoing.clear();
                    break;
                }
            }
            if self.written >= bytes.len() {
                self.outgoing.pop_front();
                self.written = 0;
            }
        }
        moved
    }

    /// Why the client has ended, in one line: its last output, or else its exit.
    pub fn reason(&mut self) -> String {
        let exit = self.client.try_wait();
        // A client that failed itself says in its last line why.
        let told = if exit == Some(CLIENT_FAILED) { 1 } else { LINES_TOLD };
        let last = last_lines(&self.client.stderr_tail(), told);
        let mut rest = Vec::new();
        let _ = self.client.take_stdout(&mut rest);
        self.has_said_something |= !rest.is_empty();
        let has_answered = self.is_copying || self.task.is_none();
        let name = self.client.program().file_name().unwrap_or_default().to_string_lossy();
        match (last.is_empty(), exit) {
            (false, _) => last,
            (true, Some(Exit::Status(127))) => format!("{name} found no program there"),
            (true, Some(exit)) if self.has_said_something && !has_answered => format!(
                "{name} {exit}; what it wrote to standard output is no answer of sapwood-node, and \
                 it wrote nothing to standard error"
            ),
            (true, Some(exit)) => format!("{name} {exit} and wrote nothing"),
            (true, None) => format!("{name} is still running"),
        }
    }

    /// The last lines that the client has written to standard error, in one line; empty if there
    /// are none.
    pub fn last_words(&mut self) -> String {
        last_lines(&self.client.stderr_tail(), LINES_TOLD)
    }
}

/// The last different lines, this number of them, in one line: they say most, and a banner before
/// them may be long. A line that is only begun is left out where an earlier one begins so: of
/// clients that write the same without end, each is at another place in it.
fn last_lines(words: &str, count: usize) -> String {
    let lines: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut whole = &lines[..];
    if let [before @ .., last] = whole
        && !words.ends_with('\n')
        && before.iter().any(|line| line.starts_with(last))
    {
        whole = before;
    }
    let mut told: Vec<&str> = Vec::new();
    for line in whole.iter().rev() {
        if told.len() == count {
            break;
        }
        if !told.contains(line) {
            told.push(line);
        }
    }
    told.reverse();
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_once_wherever_a_client_is_in_them() {
        let table = [
            ("", ""),
            ("banner\none\n\n two\nthree\n", "one; two; three"),
            ("banner\nPassword: ", "banner; Password:"),
            ("noise\nnoise\nnoise\n", "noise"),
            ("noise\nnoise\nnoi", "noise"),
            ("a\nb\na\nb\n", "a; b"),
        ];
        for (words, told) in table {
            assert_eq!(last_lines(words, LINES_TOLD), told, "{words:?}");
        }
        assert_eq!(last_lines("one\ntwo\n", 1), "two");
    }
}
