//! A run of `sapwood trace why`: what it prints and when, where its program is, and its end.
//!
//! Owns [`WatchedRun`]. All times are nanoseconds of CLOCK_MONOTONIC, by which the programs say
//! when their fault begins.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sapwood_command_line::exit::Failure;
use sapwood_report::nanoseconds;

use super::super::super::back_end_process::machine_nanoseconds;
use super::super::super::processes::{children, is_alive};

/// How often a run is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// What a program that is told to end may take before its ranks are killed: those inside of a
/// library that heeds no signal do not end otherwise.
const HEED_TIME: Duration = Duration::from_secs(2);
/// What a run may take to end after that.
const END_TIME: Duration = Duration::from_secs(60);
/// How a verdict begins.
const VERDICT: &str = "sapwood: stuck for ";
/// By which Open MPI's launcher tells each process its rank.
const RANK_VARIABLE: &str = "OMPI_COMM_WORLD_RANK";

/// A line of standard error, and when it came.
struct Line {
    at_ns: u64,
    text: String,
}

/// When a program had ended, and the command that has watched it.
pub(super) struct Ends {
    pub(super) program_ns: u64,
    pub(super) run_ns: u64,
}

/// The process of a rank.
#[derive(Clone, Copy, Debug)]
struct RankProcess {
    pid: u32,
    rank: u32,
}

/// A run that was started.
pub(super) struct WatchedRun {
    child: Child,
    incoming: Receiver<Line>,
    lines: Vec<Line>,
    /// The process whose children the ranks are, once they have been seen.
    launcher: Option<u32>,
    /// Where the files of the run are.
    folder: PathBuf,
}

impl WatchedRun {
    /// Starts the command; its standard output and the files of its program go to a folder.
    pub(super) fn start(
        words: &[OsString],
        settings: &[(&str, OsString)],
        folder: &Path,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::own(&format!("cannot start it: {error}"));
        let output = std::fs::File::create(folder.join("output")).map_err(failed)?;
        let [program, arguments @ ..] = words else {
            return Err(Failure::own(&"there is no command"));
        };
        let mut command = Command::new(program);
        for variable in ["LD_PRELOAD", "SAPWOOD_MPI_WAITS", "SAPWOOD_MPI_DUMP_DIR"] {
            command.env_remove(variable);
        }
        // By this variable ranks are told from their launcher.
        command.env_remove(RANK_VARIABLE);
        command.args(arguments).envs(settings.iter().cloned()).current_dir(folder);
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (sender, incoming) = channel();
        if let Some(errors) = child.stderr.take() {
            std::thread::spawn(move || pass_lines(errors, |line| sender.send(line).is_ok()));
        }
        Ok(Self {
            child,
            incoming,
            lines: Vec::new(),
            launcher: None,
            folder: folder.to_path_buf(),
        })
    }

    /// Waits until the program has begun a step, by the file in which it counts them.
    pub(super) fn wait_for_step(&mut self, step: u32, limit: Duration) -> Result<(), Failure> {
        let file = self.folder.join("steps");
        let is_there = |_: &mut Self| {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            last_step(&text).is_some_and(|last| last >= step).then_some(())
        };
        self.wait(&format!("step {step}"), limit, is_there)
    }

    /// Waits until the program says that its fault begins; when that was.
    pub(super) fn wait_for_fault(&mut self, limit: Duration) -> Result<u64, Failure> {
        let file = self.folder.join("fault");
        let is_there = |_: &mut Self| std::fs::read_to_string(&file).ok()?.trim().parse().ok();
        self.wait("the fault", limit, is_there)
    }

    /// Waits for something that a run that goes on brings about.
    fn wait<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut is_there: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, Failure> {
        let until = machine_nanoseconds() + nanoseconds(limit);
        loop {
            if let Some(found) = is_there(self) {
                return Ok(found);
            }
            let has_ended = self.has_ended()?;
            if has_ended || machine_nanoseconds() >= until {
                let said = self.told();
                let last = said.lines().last().unwrap_or("nothing").to_owned();
                let why = if has_ended { "ended" } else { "took too long" };
                return Err(Failure::own(&format!("the program {why} before {what}: {last}")));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Lets the run go on until a time, or until this holds or the run has ended.
    pub(super) fn watch_until(
        &mut self,
        until_ns: u64,
        mut is_enough: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), Failure> {
        while machine_nanoseconds() < until_ns && !is_enough(self) && !self.has_ended()? {
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    fn has_ended(&mut self) -> Result<bool, Failure> {
        Ok(self.child.try_wait().map_err(|error| Failure::own(&error))?.is_some())
    }

    fn take_lines(&mut self) {
        self.lines.extend(self.incoming.try_iter());
    }

    /// When each verdict was printed so far.
    pub(super) fn verdicts(&mut self) -> Vec<u64> {
        self.take_lines();
        let told = self.lines.iter().filter(|line| line.text.starts_with(VERDICT));
        told.map(|line| line.at_ns).collect()
    }

    /// All that was printed so far.
    pub(super) fn told(&mut self) -> String {
        self.take_lines();
        self.lines.iter().map(|line| format!("{}\n", line.text)).collect()
    }

    /// Sends a signal to a rank; when.
    pub(super) fn signal_rank(&mut self, rank: u32, signal: Signal) -> Result<u64, Failure> {
        let pids = self.ranks()?;
        let found = pids.iter().find(|one| one.rank == rank);
        let pid = found.and_then(|one| Pid::from_raw(one.pid.cast_signed()));
        let pid = pid.ok_or_else(|| Failure::own(&format!("rank {rank} has no process")))?;
        let at_ns = machine_nanoseconds();
        kill_process(pid, signal).map_err(|error| Failure::own(&error))?;
        Ok(at_ns)
    }

    /// The processes of the ranks, with their numbers.
    fn ranks(&mut self) -> Result<Vec<RankProcess>, Failure> {
        let (mut found, mut open) = (Vec::new(), vec![self.child.id()]);
        while let Some(pid) = open.pop() {
            for child in children(pid)? {
                match rank_of(child) {
                    Some(rank) => {
                        found.push(RankProcess { pid: child, rank });
                        self.launcher = Some(pid);
                    }
                    None => open.push(child),
                }
            }
        }
        Ok(found)
    }

    /// Tells the program to end, and kills its ranks if it does not.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        let ranks = self.ranks()?;
        self.signal(Signal::TERM);
        if !self.program_ends_within(HEED_TIME)? {
            kill(&ranks);
        }
        Ok(())
    }

    /// Waits for the end of the program, and of the run after it; when they were.
    pub(super) fn wait_for_end(&mut self) -> Result<Ends, Failure> {
        let ranks = self.ranks()?;
        self.program_ends_within(END_TIME)?;
        let program_ns = machine_nanoseconds();
        let has_ended = self.ends_within(END_TIME)?;
        let run_ns = machine_nanoseconds();
        kill(&ranks);
        if has_ended {
            return Ok(Ends { program_ns, run_ns });
        }
        Err(Failure::own(&format!("'sapwood trace why' did not end in {} s", END_TIME.as_secs())))
    }

    fn program_ends_within(&mut self, limit: Duration) -> Result<bool, Failure> {
        let launcher = self.launcher;
        let has_ended = move || launcher.is_none_or(|launcher| !is_alive(launcher));
        self.watch_until(machine_nanoseconds() + nanoseconds(limit), |_| has_ended())?;
        Ok(has_ended())
    }

    fn ends_within(&mut self, limit: Duration) -> Result<bool, Failure> {
        self.watch_until(machine_nanoseconds() + nanoseconds(limit), |_| false)?;
        self.has_ended()
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // One that has ended meanwhile needs none.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        let ranks = self.ranks().unwrap_or_default();
        if matches!(self.has_ended(), Ok(true)) {
            return;
        }
        self.signal(Signal::TERM);
        kill(&ranks);
        if !matches!(self.ends_within(END_TIME), Ok(true)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn pass_lines(errors: ChildStderr, mut pass: impl FnMut(Line) -> bool) {
    for text in BufReader::new(errors).lines().map_while(Result::ok) {
        if !pass(Line { at_ns: machine_nanoseconds(), text }) {
            return;
        }
    }
}

/// Kills those of these ranks that are still there.
fn kill(ranks: &[RankProcess]) {
    for &RankProcess { pid, rank } in ranks {
        // A number that is of another process by now has not this rank.
        if is_alive(pid)
            && rank_of(pid) == Some(rank)
            && let Some(pid) = Pid::from_raw(pid.cast_signed())
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The rank as which Open MPI's launcher has started a process.
fn rank_of(pid: u32) -> Option<u32> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let rank = variables
        .find_map(|variable| variable.strip_prefix(RANK_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// The number with which the last whole line that begins with one does.
fn last_step(text: &str) -> Option<u32> {
    let whole = text.rsplit_once('\n')?.0;
    whole.lines().rev().find_map(|line| line.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_of_a_whole_line_that_begins_with_a_number() {
        assert_eq!(last_step("Step Temp\n  0   2.4\n  5  1.2\n 1"), Some(5));
        assert_eq!(last_step("Step Temp\n  0 2.4\nLoop time\n"), Some(0));
        assert_eq!((last_step(""), last_step("12")), (None, None));
    }
}
