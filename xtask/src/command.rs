//! Runs other programs: with a deadline, without standard input, and with nothing left behind.
//!
//! The principal function is [`run`], which shows a program's output as it comes and adds up the
//! test counts in it. A program that outlives its deadline is ended together with all that it
//! started; one that ends but leaves a process holding its output counts as failed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How often a running program is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the output of an ended program may stay open: the last lines need a moment.
const OUTPUT_CLOSES_WITHIN: Duration = Duration::from_secs(5);

/// What a finished program said about tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Reads `12 passed; 1 failed` or `12 passed, 1 failed` anywhere in a line.
    fn of_line(line: &str) -> Option<Counts> {
        let before = |word: &str| -> Option<u64> {
            line.split(word)
                .next()
                .filter(|start| start.len() < line.len())?
                .split(' ')
                .next_back()?
                .parse()
                .ok()
        };
        Some(Counts { passed: before(" passed")?, failed: before(" failed")? })
    }
}

/// Runs `program` to its end, showing its output.
///
/// # Errors
/// One line that says why it counts as failed, with the counts seen so far.
pub fn run(mut command: Command, deadline: Duration) -> Result<Counts, (String, Counts)> {
    let shown = shown(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let started = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Err((format!("{shown}: {error}"), Counts::default())),
    };
    let output = child.stdout.take().expect("the output was just asked to be piped");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || show(output, &sender));
    let ended = wait(&mut child, started + deadline);
    let mut counts = Counts::default();
    let closed = loop {
        match receiver.recv_timeout(OUTPUT_CLOSES_WITHIN) {
            Ok(more) => counts.add(more),
            Err(mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(mpsc::RecvTimeoutError::Timeout) => break false,
        }
    };
    match ended {
        Err(error) => Err((format!("{shown}: {error}"), counts)),
        Ok(None) => Err((format!("{shown}: still running after {} s", deadline.as_secs()), counts)),
        Ok(Some(_)) if !closed => {
            Err((format!("{shown}: ended, but left a process that holds its output"), counts))
        }
        Ok(Some(status)) if !status.success() => Err((format!("{shown}: {status}"), counts)),
        Ok(Some(_)) => Ok(counts),
    }
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

fn show(output: impl Read, counts: &mpsc::Sender<Counts>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let Some(found) = Counts::of_line(&line) {
            // The receiver leaves early only when this program has failed already.
            let _ = counts.send(found);
        }
    }
}

/// Waits until the child ends or the deadline passes, which ends the child and its descendants.
fn wait(child: &mut Child, deadline: Instant) -> Result<Option<std::process::ExitStatus>, String> {
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            end_with_descendants(child);
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn end_with_descendants(child: &mut Child) {
    let processes = descendants(child.id(), &parents());
    let _ = Command::new("kill").arg("-KILL").args(processes.iter().map(u32::to_string)).status();
    let _ = child.wait();
}

/// The parent of every process, from `/proc`.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name, in parentheses, may hold blanks; state and parent follow it.
            let parent = status.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((process, parent))
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

    fn shell(script: &str, deadline: Duration) -> Result<Counts, (String, Counts)> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, deadline)
    }

    #[test]
    fn counts_are_read_in_both_spellings() {
        let cargo = "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Counts::of_line(cargo), Some(Counts { passed: 12, failed: 1 }));
        assert_eq!(Counts::of_line("3 passed, 0 failed"), Some(Counts { passed: 3, failed: 0 }));
        assert_eq!(Counts::of_line("all passed, none failed"), None);
        assert_eq!(Counts::of_line("3 passed"), None);
    }

    #[test]
    fn counts_add_up_over_a_program() {
        let counts =
            shell("echo 2 passed, 0 failed; echo 3 passed, 0 failed", Duration::from_secs(60));
        assert_eq!(counts, Ok(Counts { passed: 5, failed: 0 }));
    }

    #[test]
    fn a_failing_program_fails_and_keeps_its_counts() {
        let (why, counts) = shell("echo 2 passed, 1 failed; exit 3", Duration::from_secs(60))
            .expect_err("the program exits with 3");
        assert!(why.contains("exit status: 3"), "{why}");
        assert_eq!(counts, Counts { passed: 2, failed: 1 });
    }

    #[test]
    fn a_program_past_its_deadline_is_ended_with_its_children() {
        let (why, _) = shell("sleep 61.25 & sleep 61.25; true", Duration::from_millis(200))
            .expect_err("the program sleeps longer than its deadline");
        assert!(why.contains("still running"), "{why}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let (why, _) = run(Command::new("no-such-program"), Duration::from_secs(1))
            .expect_err("there is no such program");
        assert!(why.contains("no-such-program"), "{why}");
    }

    #[test]
    fn a_family_is_followed_to_its_last_grandchild() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (9, 8)]);
        assert_eq!(descendants(2, &parents), [2, 3, 4]);
    }
}
