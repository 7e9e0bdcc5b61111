//! Runs other programs: with a deadline, without standard input, and with nothing left behind.
//!
//! The principal function is [`measure`], which hands on a program's output as it comes; [`run`]
//! is the same for callers that need no measure. A program that outlives its deadline is ended with
//! all that it started; one that ends but leaves a process holding its output counts as failed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the output of an ended program may stay open: the last lines need a moment.
const OUTPUT_CLOSES_WITHIN: Duration = Duration::from_secs(5);
/// How long a program may take to go once it was killed: one that waits for a disk goes later.
const GOES_WITHIN: Duration = Duration::from_secs(10);

/// What came of a program.
pub struct Ran {
    /// Or one line that says why it counts as failed.
    pub result: Result<(), String>,
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// Processor time of it and of all below it whose parents have waited for them.
    pub processor: Duration,
}

/// Runs a program to its end, as [`measure`] does.
///
/// # Errors
/// One line that says why it counts as failed.
pub fn run(command: Command, deadline: Duration, take: &mut dyn FnMut(&str)) -> Result<(), String> {
    measure(command, deadline, take).result
}

/// Runs a program to its end; `take` gets each line of its output and of its standard error, in
/// the order in which they were written.
pub fn measure(mut command: Command, deadline: Duration, take: &mut dyn FnMut(&str)) -> Ran {
    let shown = shown(&command);
    let started = Instant::now();
    let (mut child, output) = match start(&mut command) {
        Ok(started) => started,
        Err(error) => {
            let result = Err(format!("{shown}: {error}"));
            return Ran { result, code: None, processor: Duration::ZERO };
        }
    };
    // Its copies of the pipe's write end would keep the output open.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || read(output, &sender));
    let mut ended = None;
    let mut closes_by = started + deadline + OUTPUT_CLOSES_WITHIN;
    let closed = loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(line) => take(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if ended.is_none() {
            ended = look(&mut child, started + deadline);
            closes_by = Instant::now() + OUTPUT_CLOSES_WITHIN;
        } else if Instant::now() >= closes_by {
            break false;
        }
    };
    // A program may close its output before it ends.
    let end = loop {
        match ended.take().or_else(|| look(&mut child, started + deadline)) {
            Some(end) => break end,
            None => thread::sleep(LOOK_EVERY),
        }
    };
    let code = match &end.how {
        Ended::WithStatus(status) => status.code(),
        Ended::AtDeadline | Ended::Unknown(_) => None,
    };
    let why = match end.how {
        Ended::Unknown(error) => Some(error.to_string()),
        Ended::AtDeadline => Some(format!("still running after {} s", deadline.as_secs())),
        Ended::WithStatus(_) if !closed => {
            Some("ended, but left a process that holds its output".to_owned())
        }
        Ended::WithStatus(status) => (!status.success()).then(|| status.to_string()),
    };
    let result = why.map_or(Ok(()), |why| Err(format!("{shown}: {why}")));
    Ran { result, code, processor: end.processor }
}

/// The end of a program, with its processor time.
struct End {
    how: Ended,
    processor: Duration,
}

/// How a program came to its end.
enum Ended {
    WithStatus(ExitStatus),
    AtDeadline,
    Unknown(io::Error),
}

/// Starts it, with one pipe for its output and its standard error.
fn start(command: &mut Command) -> io::Result<(Child, io::PipeReader)> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    Ok((command.spawn()?, reader))
}

/// Runs `program` and hands back its standard output.
pub fn output_of(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} {}: {}", arguments.join(" "), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{program} wrote no UTF-8"))
}

/// The program and its arguments, as one would type them.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn read(output: impl Read, lines: &mpsc::Sender<String>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        // The receiver leaves early only when this program has failed already.
        let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
    }
}

/// How the child has ended, if it has. At the deadline it is ended together with its descendants.
fn look(child: &mut Child, deadline: Instant) -> Option<End> {
    match has_ended(child) {
        Ok(true) => Some(reap(child)),
        Ok(false) if Instant::now() >= deadline => {
            end_with_descendants(child);
            // It cannot be measured before it has ended.
            let has_gone = ends_by(child, Instant::now() + GOES_WITHIN);
            let processor = if has_gone { reap(child).processor } else { Duration::ZERO };
            Some(End { how: Ended::AtDeadline, processor })
        }
        Ok(false) => None,
        Err(error) => Some(End { how: Ended::Unknown(error), processor: Duration::ZERO }),
    }
}

/// Whether it has ended; it is there to be measured until it is reaped.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some())
}

/// Waits until it has ended, or for this long; whether it has.
fn ends_by(child: &Child, deadline: Instant) -> bool {
    loop {
        match has_ended(child) {
            Ok(false) if Instant::now() < deadline => thread::sleep(LOOK_EVERY),
            ended => return ended.unwrap_or(false),
        }
    }
}

/// Takes the end of a child that has ended.
fn reap(child: &mut Child) -> End {
    let processor = processor_time(child.id()).unwrap_or_default();
    let how = child.wait().map_or_else(Ended::Unknown, Ended::WithStatus);
    End { how, processor }
}

fn end_with_descendants(child: &Child) {
    let processes = descendants(child.id(), &parents());
    let _ = Command::new("kill").arg("-KILL").args(processes.iter().map(u32::to_string)).status();
}

/// User and system time of an ended process and of all below it that were waited for.
fn processor_time(process: u32) -> Option<Duration> {
    // The fields utime, stime, cutime and cstime.
    let words = words_of_stat(Path::new(&format!("/proc/{process}")))?;
    let ticks: u64 = words.get(11..15)?.iter().filter_map(|word| word.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// The words of a process's `stat` behind its name, which may hold blanks: state, parent and so on.
fn words_of_stat(folder: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// The parent of every process, from `/proc`.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            Some((process, words_of_stat(&entry.path())?.get(1)?.parse().ok()?))
        })
        .collect()
}

/// `root` and every process below it.
fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut family = vec![root];
    let mut at = 0;
    while at < family.len() {
        let parent = family[at];
        family.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(process, _)| *process));
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, deadline: Duration) -> (Result<(), String>, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut lines = Vec::new();
        let result = run(command, deadline, &mut |line| lines.push(line.to_owned()));
        (result, lines)
    }

    #[test]
    fn output_and_errors_come_in_the_order_of_writing() {
        let (result, lines) = shell("echo a; echo b >&2; echo c", Duration::from_secs(60));
        assert_eq!((result, lines), (Ok(()), ["a", "b", "c"].map(String::from).to_vec()));
    }

    #[test]
    fn a_failing_program_fails_and_its_output_is_kept() {
        let (result, lines) = shell("echo said; exit 3", Duration::from_secs(60));
        let why = result.expect_err("the program exits with 3");
        assert!(why.contains("exit status: 3"), "{why}");
        assert_eq!(lines, ["said"]);
    }

    #[test]
    fn a_program_past_its_deadline_is_ended_with_its_children() {
        let (result, _) = shell("sleep 61.25 & sleep 61.25; true", Duration::from_millis(200));
        let why = result.expect_err("the program sleeps longer than its deadline");
        assert!(why.contains("still running"), "{why}");
    }

    #[test]
    fn a_program_that_does_not_go_is_waited_for_until_the_deadline_only() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep is there");
        assert!(!ends_by(&child, Instant::now()));
        end_with_descendants(&child);
        assert!(ends_by(&child, Instant::now() + GOES_WITHIN));
        child.wait().expect("it has ended");
    }

    #[test]
    fn the_code_of_a_program_that_ends_by_itself_is_told() {
        for (script, code) in [("exit 0", Some(0)), ("exit 3", Some(3)), ("kill -9 $$", None)] {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let ran = measure(command, Duration::from_secs(60), &mut |_| {});
            assert_eq!(ran.code, code, "{script}");
        }
    }

    #[test]
    fn a_program_that_closes_its_output_is_waited_for() {
        let (result, _) = shell(
            "exec >&- 2>&-; while [ -d /proc/$$/fd ] && sleep 0.2; do exit 4; done",
            Duration::from_secs(60),
        );
        let why = result.expect_err("the program exits with 4");
        assert!(why.contains("exit status: 4"), "{why}");
    }

    #[test]
    fn the_processor_time_of_a_child_that_was_waited_for_counts() {
        let mut command = Command::new("sh");
        // The kernel ends the inner shell after a second of its processor time, about.
        command.args(["-c", "(ulimit -t 1; while :; do :; done); true"]);
        let ran = measure(command, Duration::from_secs(300), &mut |_| {});
        assert_eq!(ran.result, Ok(()));
        assert!(ran.processor >= Duration::from_millis(500), "{:?}", ran.processor);
    }

    #[test]
    fn a_missing_program_is_named() {
        let why = run(Command::new("no-such-program"), Duration::from_secs(1), &mut |_| {})
            .expect_err("there is no such program");
        assert!(why.contains("no-such-program"), "{why}");
    }

    #[test]
    fn a_family_is_followed_to_its_last_grandchild() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (9, 8)]);
        assert_eq!(descendants(2, &parents), [2, 3, 4]);
    }
}
