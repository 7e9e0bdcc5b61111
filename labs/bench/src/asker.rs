//! The tool that asks in `sapwood bench bindings`: a tool in Rust, in this process, or a program in
//! another language that takes turns with it.
//!
//! Owns the line protocol of those programs: a number goes to their standard input, and that
//! number of times in nanoseconds come back in one line of their standard output; they end with
//! their input. Does not know which there are; `bindings` does.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sapwood::{Network, Stream, Tag};
use sapwood_floor::statistics::median;

use super::leaf::TAG;
use super::plan::Transport;
use super::processes::ended_within;
use super::scale::DEADLINE;
use super::tree::{builder, leaf_program};
use sapwood_command_line::exit::{Failure, one_line};

/// The back-ends of the benchmarks, and those of the programs in other languages, send such a
/// packet, with one int32, back as it is.
pub(super) const ECHO: Tag = TAG + 30;

/// The same back-ends send the numbers from 0 up to a packet's one int32, with a flush after each.
pub(super) const FLUSHED: Tag = TAG + 31;

/// The same, as many in one write as fit.
pub(super) const QUEUED: Tag = TAG + 32;

/// How long a program may take to end once its input has.
const END_DEADLINE: Duration = Duration::from_secs(10);
/// How long more of its words are waited for then.
const WORDS_DEADLINE: Duration = Duration::from_millis(200);

/// Numbers that are sent, before they begin again: their sums fit an int32.
const NUMBERS: i32 = 1 << 20;

/// A program or tree that is timed, turn by turn.
pub(super) trait Asker {
    /// Asks this number of times; the nanoseconds that each took, or one figure for all.
    fn turn(&mut self, times: u32) -> Result<Vec<f64>, Failure>;

    /// Ends it.
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

/// The median of one turn, in nanoseconds.
pub(super) fn median_of(asker: &mut dyn Asker, times: u32) -> Result<f64, Failure> {
    median(&asker.turn(times)?).ok_or_else(|| Failure::own(&"a turn without any time"))
}

/// A tool in Rust, with back-ends in Rust.
pub(super) struct RustTool {
    // Before the network, which it needs when it is dropped.
    stream: Stream,
    network: Network,
    back_ends: i32,
    number: i32,
}

impl RustTool {
    pub(super) fn open(shape: &sapwood::Shape) -> Result<Self, Failure> {
        let network = builder(shape, Transport::Shm)?.back_end(leaf_program()?).open()?;
        let stream = network.stream(&network.everyone()).up("sum").open()?;
        let back_ends = i32::try_from(shape.back_end_count()).map_err(Failure::usage)?;
        Ok(Self { stream, network, back_ends, number: 0 })
    }
}

impl Asker for RustTool {
    fn turn(&mut self, times: u32) -> Result<Vec<f64>, Failure> {
        let mut took = Vec::with_capacity(times as usize);
        for _ in 0..times {
            let begin = Instant::now();
            self.stream.broadcast(ECHO, self.number)?;
            let answer = self.stream.recv_timeout(DEADLINE)?;
            let sum = answer.value()?.scalar::<i32>(0).map_err(sapwood::Error::from)?;
            took.push(begin.elapsed().as_nanos() as f64);
            if sum != self.number * self.back_ends {
                let (number, back_ends) = (self.number, self.back_ends);
                let text = format!("{number}: {sum} is no sum of {back_ends} back-ends");
                return Err(Failure::own(&text));
            }
            self.number = (self.number + 1) % NUMBERS;
        }
        Ok(took)
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        self.stream.close()?;
        Ok(self.network.close()?)
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub(super) struct Words {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(&'static str, OsString)>,
}

/// A program that takes turns.
pub(super) struct Program {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Program {
    /// Starts it; the first turn shows whether it works.
    pub(super) fn start(words: &Words) -> Result<Self, Failure> {
        let name = words.program.display().to_string();
        let mut command = Command::new(&words.program);
        command.args(&words.arguments).envs(words.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::own(&format!("cannot start {name}: {error}")))?;
        let input = child.stdin.take();
        let (lines, errors) = (lines_of(child.stdout.take()), lines_of(child.stderr.take()));
        Ok(Self { name, child, input, lines, errors })
    }

    /// Why it has ended, in its own last words.
    fn stderr_tail(&mut self) -> Failure {
        let status = self.ended();
        let mut words = Vec::new();
        // Its own processes may outlive it, and hold its output.
        while let Ok(line) = self.errors.recv_timeout(WORDS_DEADLINE) {
            words.push(line);
        }
        let name = &self.name;
        let last = one_line(words.last().map_or("", String::as_str));
        Failure::own(&match status {
            Some(status) => format!("{name} has ended with {status}: {last}"),
            None => format!("{name} has closed its output but does not end"),
        })
    }

    /// Waits for its end; kills it if it does not come.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.input = None;
        if let Ok(Some(status)) = ended_within(&mut self.child, END_DEADLINE) {
            return Some(status);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        None
    }
}

/// The lines that come out of a program, as they come, until the other end of either channel is
/// gone.
fn lines_of(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
            if line.map_or(true, |line| sender.send(line).is_err()) {
                return;
            }
        }
    });
    lines
}

impl Program {
    /// The numbers of its answer to a line.
    pub(super) fn ask(&mut self, line: &str) -> Result<Vec<f64>, Failure> {
        let written = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        self.answer(matches!(written, Some(Ok(()))))
    }

    /// The numbers of its next line.
    pub(super) fn numbers(&mut self) -> Result<Vec<f64>, Failure> {
        self.answer(true)
    }

    /// The same, if it was asked for them.
    pub(super) fn answer(&mut self, is_asked: bool) -> Result<Vec<f64>, Failure> {
        let line = match self.lines.recv_timeout(DEADLINE) {
            Ok(line) if is_asked => line,
            Err(RecvTimeoutError::Timeout) => {
                let seconds = DEADLINE.as_secs();
                let text = format!("{} has said nothing for {seconds} s", self.name);
                return Err(Failure::own(&text));
            }
            _ => return Err(self.stderr_tail()),
        };
        let took: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        took.map_err(|_| Failure::own(&format!("{} has said '{line}', no times", self.name)))
    }
}

impl Asker for Program {
    fn turn(&mut self, times: u32) -> Result<Vec<f64>, Failure> {
        self.ask(&times.to_string())
    }

    fn close(mut self: Box<Self>) -> Result<(), Failure> {
        match self.ended() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Failure::own(&format!("{} has ended with {status}", self.name))),
            None => Err(Failure::own(&format!("{} did not end", self.name))),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After `close` this finds it ended.
        self.ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let arguments = vec!["-c".into(), script.into()];
        let words = Words { program: "sh".into(), arguments, variables: Vec::new() };
        Program::start(&words).unwrap()
    }

    #[test]
    fn a_program_takes_turns_until_its_input_ends() {
        let mut echo = shell("while read times; do echo $times 30 10; done");
        assert_eq!(echo.turn(20).unwrap(), [20.0, 30.0, 10.0]);
        assert_eq!(median_of(&mut echo, 25).unwrap(), 25.0);
        Box::new(echo).close().unwrap();
    }

    #[test]
    fn a_program_that_ends_is_quoted() {
        let mut failing = shell("read times; echo first >&2; echo no tree here >&2; exit 3");
        let text = failing.turn(1).unwrap_err().to_string();
        assert!(text.contains("exit status: 3") && text.contains("no tree here"), "{text}");
        assert!(shell("read times; echo soon").turn(1).is_err());
    }
}
