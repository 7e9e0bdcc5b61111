//! A leaf's reader of call stacks: the program `sapwood-stacks` beside it, which stops the ranks
//! for a moment and copies where they are.
//!
//! It is a process of its own, so that rounds go on while it reads, and so that whatever happens to
//! it neither the leaf nor a rank notices: the kernel lets go what a tracer leaves behind. It is
//! started when stacks are wanted first, and once more when it has ended.

use std::io::Write;
use std::path::PathBuf;

use sapwood::{BackEnd, Error, StreamId, Tag, Values, Wave};
use sapwood_launch::{LaunchError, Local, Order, Process, locate};
use sapwood_report::stacks::{MergedStacks, Sample, Wish};

/// The program that reads stacks, and the argument with which it serves a leaf.
const PROGRAM: &str = "sapwood-stacks";
const READER: &str = "reader";
/// An answer that is longer is not believed.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The reader and what was asked of it.
#[derive(Default)]
pub(crate) struct StackReader {
    process: Option<Process>,
    /// What has come of the answer.
    answer: Vec<u8>,
    wish: Option<Asked>,
}

/// A wish that has not been answered.
struct Asked {
    stream: StreamId,
    wave: Wave,
    tag: Tag,
    processes: Vec<(u32, i32)>,
    merged: MergedStacks,
}

/// The values of a wish: `%uld` wave to answer in, `%uc` whether all threads are wanted.
pub(crate) fn question(wave: Wave, all_threads: bool) -> Values {
    Values::new().scalar(wave).scalar(u8::from(all_threads))
}

impl StackReader {
    /// Has the stacks of these ranks read; those without a process have ended. An answer that the
    /// reader still owes is given up.
    pub(crate) fn ask(
        &mut self,
        back_end: &mut BackEnd,
        received: &sapwood::Received,
        ranks: Vec<(u32, Option<i32>)>,
    ) -> Result<(), Error> {
        let wave = received.values().scalar::<Wave>(0)?;
        let all_threads = received.values().scalar::<u8>(1)? != 0;
        let ended = ranks.iter().filter(|rank| rank.1.is_none()).map(|rank| rank.0);
        let mut merged = MergedStacks::default();
        merged.miss(ended, "its process has ended");
        let processes: Vec<_> =
            ranks.iter().filter_map(|&(rank, process)| Some((rank, process?))).collect();
        let (stream, tag) = (received.stream, received.tag());
        if self.wish.take().is_some() {
            // What it would answer now is of the wish before.
            self.process = None;
        }
        let wish = Wish { processes: processes.clone(), all_threads };
        self.wish = Some(Asked { stream, wave, tag, processes, merged });
        match self.send(back_end, &wish) {
            Ok(()) => Ok(()),
            Err(reason) => self.fail(back_end, &reason),
        }
    }

    /// Starts the reader if need be, and gives it a wish.
    fn send(&mut self, back_end: &mut BackEnd, wish: &Wish) -> Result<(), String> {
        if self.process.is_none() {
            self.answer.clear();
            let process = start()?;
            let watched = process.stdout().map(|output| back_end.watch(output));
            watched.transpose().map_err(|error| error.to_string())?;
            back_end.watch(process.stderr()).map_err(|error| error.to_string())?;
            self.process = Some(process);
        }
        let input = self.process.as_ref().and_then(Process::stdin);
        let mut input = input.ok_or("the reader of stacks takes no input")?;
        let line = serde_json::to_string(wish).map_err(|error| error.to_string())?;
        let written = input.write_all((line + "\n").as_bytes());
        written.map_err(|error| format!("cannot write to the reader of stacks: {error}"))
    }

    /// Sends what the reader has answered, if it has.
    pub(crate) fn look(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        let Some(process) = &mut self.process else { return Ok(()) };
        while process.take_stdout(&mut self.answer).is_ok_and(|bytes| bytes > 0) {}
        let mut ignored = Vec::new();
        while process.take_stderr(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
        if let Some(end) = self.answer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.answer.drain(..=end).collect();
            return self.answered(back_end, &line);
        }
        if process.stdout_ended() || self.answer.len() > ANSWER_BYTES_MAX {
            let exit =
                process.try_wait().map_or_else(|| "failed".to_owned(), |exit| exit.to_string());
            for descriptor in [process.stdout(), Some(process.stderr())].into_iter().flatten() {
                let _ = back_end.unwatch(descriptor);
            }
            self.process = None;
            return self.fail(back_end, &format!("the reader of stacks {exit}; ask again"));
        }
        Ok(())
    }

    fn answered(&mut self, back_end: &mut BackEnd, line: &[u8]) -> Result<(), Error> {
        let samples: Vec<Sample> = match serde_json::from_slice(line) {
            Ok(samples) => samples,
            Err(error) => return self.fail(back_end, &format!("the reader of stacks: {error}")),
        };
        let Some(mut asked) = self.wish.take() else { return Ok(()) };
        samples.iter().for_each(|sample| asked.merged.add(sample));
        asked.answer(back_end)
    }

    /// Nothing is known of the ranks that were asked for.
    fn fail(&mut self, back_end: &mut BackEnd, reason: &str) -> Result<(), Error> {
        let Some(mut asked) = self.wish.take() else { return Ok(()) };
        asked.merged.miss(asked.processes.iter().map(|process| process.0), reason);
        asked.answer(back_end)
    }
}

impl Asked {
    fn answer(self, back_end: &mut BackEnd) -> Result<(), Error> {
        match back_end.send_in_wave(self.stream, self.wave, self.tag, self.merged.into_values()) {
            // It comes too late.
            Ok(()) | Err(Error::Misuse(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The program that reads call stacks: that beside this one, or the one that is found as commands
/// are.
///
/// # Errors
/// Where there is none, or it may not be executed.
pub fn stack_reader_program() -> Result<PathBuf, LaunchError> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    locate(&beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM)))
}

/// Starts the reader.
fn start() -> Result<Process, String> {
    let failed = |error: LaunchError| {
        format!("the program {PROGRAM} is neither beside sapwood-node nor on PATH: {error}")
    };
    let mut order = Order::new(stack_reader_program().map_err(failed)?);
    order.arguments = vec![READER.into()];
    order.pipe_stdin = true;
    order.capture_stdout = true;
    Local.start(&order).map_err(failed)
}
