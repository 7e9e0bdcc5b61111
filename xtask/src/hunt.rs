//! Looks for faults that no gate knows: schedules, inputs and storms that no run has seen.
//!
//! Each finding is printed with the command that repeats it; nothing is added to the repository.
//! With its mending a finding becomes a fixed test: a seed of the simulator's regressions, or an
//! input of a corpus.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::steps::prepare;
use crate::{command, fuzz, target};

/// Schedules of one call of the simulator.
const SCHEDULES: u64 = 500;
/// The kinds of schedules of groups, as options of the simulator: members that come, go and die;
/// members that take virtual nodes from others, too; members that define operations.
const KINDS_OF_GROUPS: [&str; 3] = ["", " --taking", " --defining"];
/// Crates with property tests above the I/O line.
const PROPERTIES: &str = "-p sapwood-packet -p sapwood-wire -p sapwood-filter -p sapwood-profile \
    -p sapwood-trace -p sapwood-topology";
/// Seconds of one storm.
const STORM_SECONDS: u64 = 60;
/// How long a program may go on beyond its share.
const BEYOND: Duration = Duration::from_secs(600);
/// Of a finding's output.
const LAST_LINES: usize = 30;

/// What `cargo xtask hunt` is asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub minutes: u64,
    /// The first seed; from the clock if there is none.
    pub seed: Option<u64>,
}

impl Request {
    /// Reads `[--minutes N] [--seed N]`.
    ///
    /// # Errors
    /// One line that says what is wrong with the words.
    pub fn read(words: &[&str]) -> Result<Request, String> {
        let mut request = Request { minutes: 30, seed: None };
        for pair in words.chunks(2) {
            let [option, text] = pair else {
                return Err(format!("{} wants a number", pair[0]));
            };
            let number: Option<u64> = text.parse().ok();
            match (*option, number) {
                ("--minutes", Some(minutes @ 1..)) => request.minutes = minutes,
                ("--seed", Some(seed)) => request.seed = Some(seed),
                ("--minutes" | "--seed", _) => {
                    return Err(format!("{option} wants a number, not '{text}'"));
                }
                _ => return Err(format!("no option is called {option}")),
            }
        }
        Ok(request)
    }
}

/// Hunts; true if nothing was found.
///
/// # Errors
/// One line, where the programs cannot be built.
pub fn run(root: &Path, request: &Request) -> Result<bool, String> {
    build(root)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    // Far from the seeds of the gate, with room for the next ones.
    let seed = request.seed.unwrap_or(now << 20);
    let whole = Duration::from_secs(60 * request.minutes);
    println!("hunt: {} min, seed {seed}", request.minutes);
    let mut findings = schedules(root, seed, whole * 3 / 10);
    findings += properties(root, seed, whole / 10);
    findings += group_schedules(root, seed, whole * 2 / 10);
    findings += storms(root, seed, whole / 10);
    findings += group_storms(root, seed, whole / 10);
    findings += match fuzz::search_all(root, whole * 2 / 10, seed) {
        Ok(line) => {
            println!("hunt: {line}");
            0
        }
        Err(found) => {
            found.iter().for_each(|finding| println!("hunt: found: {finding}"));
            found.len()
        }
    };
    println!("hunt: {findings} findings");
    Ok(findings == 0)
}

fn build(root: &Path) -> Result<(), String> {
    let line = "cargo build -p sapwood-sim-program -p sapwood-storm";
    command::run(prepare(root, line), BEYOND, &mut |_| {})
}

/// Trees under faults of every class.
fn schedules(root: &Path, seed: u64, share: Duration) -> usize {
    series("schedules of trees", share, seed, SCHEDULES, |first| {
        let program = format!("{}/debug/sapwood-sim", target());
        Try { line: format!("{program} --first {first} --seeds {SCHEDULES} --faults all"), root }
    })
}

/// Property tests of the crates whose packets and merging they try.
fn properties(root: &Path, seed: u64, share: Duration) -> usize {
    let variable = crate::environment::PROPERTY_SEED.0;
    series("seeds of property tests", share, seed, 1, |seed| {
        let tests = "cargo test --quiet --no-fail-fast";
        let line = format!("env {variable}={seed} {tests} {PROPERTIES}");
        Try { line, root }
    })
}

/// Groups, one kind of schedules after another.
fn group_schedules(root: &Path, seed: u64, share: Duration) -> usize {
    let try_of = |first| Try { line: line_of_groups(seed, first), root };
    series("schedules of groups", share, seed, SCHEDULES, try_of)
}

/// What runs the schedules of groups from this seed on, in a hunt that began with `seed`.
fn line_of_groups(seed: u64, first: u64) -> String {
    let turn = (first - seed) / SCHEDULES;
    let kind = KINDS_OF_GROUPS[(turn % KINDS_OF_GROUPS.len() as u64) as usize];
    let program = format!("{}/debug/sapwood-sim", target());
    format!("{program} group --first {first} --schedules {SCHEDULES}{kind}")
}

/// Networks of real processes under random faults.
fn storms(root: &Path, seed: u64, share: Duration) -> usize {
    series("storms", share, seed, 1, |seed| {
        let program = format!("{}/debug/sapwood-storm", target());
        Try { line: format!("testbed/storm {program} {STORM_SECONDS} --seed {seed}"), root }
    })
}

/// Groups of real members that are killed, stopped and replaced.
fn group_storms(root: &Path, seed: u64, share: Duration) -> usize {
    series("storms of groups", share, seed, 1, |seed| {
        let program = format!("{}/debug/sapwood-storm", target());
        Try { line: format!("{program} group --seconds {STORM_SECONDS} --seed {seed}"), root }
    })
}

/// One command of a series.
struct Try<'a> {
    line: String,
    root: &'a Path,
}

impl Try<'_> {
    fn command(&self) -> Command {
        prepare(self.root, &self.line)
    }
}

/// Runs one command after another until the share of time is over, and prints each that has failed;
/// gives how many these are.
fn series<'a>(
    name: &str,
    share: Duration,
    first: u64,
    step: u64,
    make: impl Fn(u64) -> Try<'a>,
) -> usize {
    let began = Instant::now();
    let mut seed = first;
    let mut findings = 0;
    loop {
        let one = make(seed);
        let mut last = Vec::new();
        let result = command::run(one.command(), share + BEYOND, &mut |line| {
            last.push(line.to_owned());
        });
        if let Err(why) = result {
            println!("{}", finding(&one.line, &last, &why));
            findings += 1;
        }
        seed += step;
        if began.elapsed() >= share {
            break;
        }
    }
    println!("hunt: {name}: {} in {:.0} s", seed - first, began.elapsed().as_secs_f64());
    findings
}

/// What is printed of a command that has failed: itself, to be pasted into a shell, its last lines,
/// and why it counts as failed.
fn finding(line: &str, output: &[String], why: &str) -> String {
    let mut text = format!("hunt: found by\n    {line}");
    for line in &output[output.len().saturating_sub(LAST_LINES)..] {
        text += &format!("\n    | {line}");
    }
    text + &format!("\n    | {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_wrong_words_are_named() {
        let read = Request::read(&["--minutes", "5", "--seed", "7"]);
        assert_eq!(read, Ok(Request { minutes: 5, seed: Some(7) }));
        assert_eq!(Request::read(&[]), Ok(Request { minutes: 30, seed: None }));
        for words in [&["--minutes"][..], &["--minutes", "0"], &["--seed", "x"], &["--often", "3"]]
        {
            assert!(Request::read(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_series_counts_what_fails_and_goes_on() {
        let root = std::env::temp_dir();
        let one = |seed| Try { line: format!("test {seed} = 5"), root: &root };
        assert_eq!(series("sample", Duration::ZERO, 5, 1, one), 0);
        assert_eq!(series("sample", Duration::ZERO, 6, 1, one), 1);
    }

    #[test]
    fn a_finding_shows_the_command_that_repeats_it() {
        let root = std::env::temp_dir();
        let one = Try { line: "seq 7 50 nothing".to_owned(), root: &root };
        let why = command::run(one.command(), BEYOND, &mut |_| {}).unwrap_err();
        let text = finding(&one.line, &[], &why);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["hunt: found by", "    seq 7 50 nothing"]);
        assert!(lines.last().unwrap().ends_with("seq 7 50 nothing: exit status: 1"), "{text}");
        // A shell runs it as it stands there, to the same end.
        let mut shell = Command::new("sh");
        shell.args(["-c", lines[1].trim_start()]);
        assert_eq!(command::measure(shell, BEYOND, &mut |_| {}).code, Some(1));
    }

    #[test]
    fn of_a_finding_s_output_the_last_lines_are_shown() {
        let output: Vec<String> = (1..=LAST_LINES + 2).map(|number| number.to_string()).collect();
        let text = finding("the command", &output, "why");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..3], ["    the command", "    | 3"]);
        let last = format!("    | {}", LAST_LINES + 2);
        assert_eq!(lines[lines.len() - 2..], [last.as_str(), "    | why"]);
    }

    #[test]
    fn schedules_of_groups_are_of_each_kind_in_turns_and_no_seed_comes_twice() {
        let lines: Vec<String> =
            (0..4).map(|turn| line_of_groups(7, 7 + turn * SCHEDULES)).collect();
        let expected = [
            "group --first 7 --schedules 500",
            "group --first 507 --schedules 500 --taking",
            "group --first 1007 --schedules 500 --defining",
            "group --first 1507 --schedules 500",
        ];
        for (line, expected) in lines.iter().zip(expected) {
            assert_eq!(line.split_once("/debug/sapwood-sim ").unwrap().1, expected);
        }
    }
}
