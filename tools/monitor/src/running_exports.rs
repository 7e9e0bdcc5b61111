//! The rows of rounds as other formats, while the program runs: `rounds.parquet` and `rounds.csv`
//! are made anew from `rounds.ndjson` now and then, and replaced as a whole.
//!
//! That file may be long, so a thread reads it and the loop of the tree goes on meanwhile.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sapwood_export::{ExportError, Format, Run};

use super::pace::REPLACED_AFTER;

/// The formats that are the rows of `rounds.ndjson` and nothing else.
const FORMATS: [Format; 2] = [Format::Parquet, Format::Csv];
/// Files are made no sooner than this many times as long as it took the last time: what that takes
/// is taken from the ranks of this host.
const PAUSE_TIMES: u32 = 100;

/// What a thread has made.
struct Made {
    result: Result<(), ExportError>,
    took: Duration,
}

/// What was being made when the run ended.
pub(crate) struct EndingExports(Option<JoinHandle<Made>>);

impl EndingExports {
    /// Waits for its end: what is written after that is not replaced.
    pub(crate) fn wait(self) {
        // A thread that has panicked has left the files as they were.
        let _ = self.0.map(JoinHandle::join);
    }
}

/// Formats that are wanted while the program runs, and the thread that makes them.
pub(crate) struct RunningExports {
    formats: Vec<Format>,
    making: Option<JoinHandle<Made>>,
    /// Whether what is being made is not wanted any more.
    is_over: Arc<AtomicBool>,
    /// When they were begun last, and from when on they may be made again, as times of the program.
    begun: Duration,
    due: Duration,
}

impl RunningExports {
    /// Of all formats that a user wants, those that can be made meanwhile.
    pub(crate) fn new(wanted: &[Format]) -> Self {
        let is_wanted = |format: &Format| wanted.contains(format);
        let formats = FORMATS.into_iter().filter(is_wanted).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        Self { formats, making: None, is_over, begun: Duration::ZERO, due: Duration::ZERO }
    }

    /// Begins to make the files in the folder of a run, if it is time; gives what has failed.
    pub(crate) fn step(&mut self, folder: &Path, elapsed: Duration) -> Option<ExportError> {
        if self.making.as_ref().is_some_and(|making| !making.is_finished()) {
            return None;
        }
        let failure = self.take().and_then(|made| {
            self.due = self.due.max(self.begun + made.took * PAUSE_TIMES);
            made.result.err()
        });
        if failure.is_some() || self.formats.is_empty() || elapsed < self.due {
            return failure;
        }
        (self.begun, self.due) = (elapsed, elapsed + REPLACED_AFTER);
        match self.begin(folder) {
            Ok(making) => self.making = Some(making),
            Err(error) => return Some(format!("no thread for exports can be started: {error}")),
        }
        None
    }

    fn begin(&self, folder: &Path) -> io::Result<JoinHandle<Made>> {
        let (folder, formats) = (folder.to_path_buf(), self.formats.clone());
        let is_over = Arc::clone(&self.is_over);
        let make = move || {
            let began = Instant::now();
            let result: Result<(), ExportError> = Run::read(&folder).and_then(|run| {
                // No series: that is a limit of another format.
                run.until(is_over).export(&formats, &folder, 0).map(|_| ())
            });
            Made { result, took: began.elapsed() }
        };
        thread::Builder::new().name("exports".to_owned()).spawn(make)
    }

    /// Has what is being made end soon, before it replaces a file, without waiting for that: a file
    /// system may not answer. The same formats are to be made of the whole run then, once it has
    /// ended.
    pub(crate) fn finish(&mut self) -> EndingExports {
        self.is_over.store(true, Ordering::Relaxed);
        EndingExports(self.making.take())
    }

    fn take(&mut self) -> Option<Made> {
        // A thread that has panicked has left the files as they were.
        self.making.take()?.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use sapwood_profile::{Counters, EventKey, RankProfile, Round};
    use sapwood_report::{Report, RoundRecord, RoundsFile};

    use super::*;

    /// A round in which one rank has ended a region this often.
    fn record(number: u64) -> RoundRecord {
        let mut rank = RankProfile::new(0, 1);
        let counters = Counters { count: number + 1, time_ns: 5, bytes: 0 };
        rank.events.insert(EventKey::Region("solve".into()), counters);
        let mut round = Round::new(1);
        round.add(&rank).expect("a new rank");
        RoundRecord::new(number, Duration::from_secs(number), &round, &[])
    }

    fn wait_until_made(exports: &RunningExports) {
        let until = Instant::now() + Duration::from_secs(120);
        while exports.making.as_ref().is_some_and(|making| !making.is_finished()) {
            assert!(Instant::now() < until, "the thread does not end");
            thread::yield_now();
        }
    }

    /// The rows of `rounds.csv`, without its header.
    fn rows(folder: &Path) -> Option<usize> {
        let text = fs::read_to_string(folder.join("rounds.csv")).ok()?;
        Some(text.lines().count() - 1)
    }

    #[test]
    fn rows_of_rounds_are_there_while_the_program_runs_and_replaced_after_a_pause() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let mut file = RoundsFile::create(path).expect("it is made");
        Report::default().write_summary(path).expect("it is written");
        let mut exports = RunningExports::new(&[Format::Html, Format::Csv, Format::Parquet]);
        let mut step = |elapsed: Duration| {
            let trouble = exports.step(path, elapsed);
            exports.take();
            trouble
        };
        file.append(&record(0)).expect("there is room");
        assert_eq!((step(Duration::ZERO), rows(path)), (None, Some(1)));
        assert!(path.join("rounds.parquet").exists());
        assert!(!path.join("report.html").exists(), "it is made at the end");
        file.append(&record(1)).expect("there is room");
        assert_eq!((step(REPLACED_AFTER / 2), rows(path)), (None, Some(1)), "it is too soon");
        assert_eq!((step(REPLACED_AFTER), rows(path)), (None, Some(2)));
    }

    #[test]
    fn a_step_that_finds_files_made_begins_the_next_ones_where_they_are_due() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let mut file = RoundsFile::create(path).expect("it is made");
        Report::default().write_summary(path).expect("it is written");
        let mut exports = RunningExports::new(&[Format::Csv]);
        for number in 0..3 {
            file.append(&record(number)).expect("there is room");
            // Later than any pause.
            let elapsed = Duration::from_secs(number * 1_000_000);
            assert_eq!(exports.step(path, elapsed), None);
            assert!(exports.making.is_some(), "begun at step {number}");
            wait_until_made(&exports);
        }
        assert_eq!(rows(path), Some(3));
    }

    #[test]
    fn at_the_end_of_a_run_no_further_format_is_made() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let mut file = RoundsFile::create(path).expect("it is made");
        Report::default().write_summary(path).expect("it is written");
        file.append(&record(0)).expect("there is room");
        let mut exports = RunningExports::new(&[Format::Csv, Format::Parquet]);
        exports.finish().wait();
        assert_eq!(exports.step(path, Duration::ZERO), None);
        let made = exports.take().expect("a thread has begun");
        assert!(made.result.is_ok());
        assert!(!path.join("rounds.parquet").exists() && rows(path).is_none());
    }

    #[test]
    fn the_end_of_a_run_waits_for_no_file_and_what_was_being_made_replaces_none_later() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        Report::default().write_summary(path).expect("it is written");
        // A thread that reads it waits, as on a file system that does not answer.
        let rounds = path.join(sapwood_report::ROUNDS_FILE);
        assert!(Command::new("mkfifo").arg(&rounds).status().is_ok_and(|made| made.success()));
        let mut exports = RunningExports::new(&[Format::Csv, Format::Parquet]);
        assert_eq!(exports.step(path, Duration::ZERO), None);
        // It is there once the thread has opened it.
        let writer = fs::OpenOptions::new().write(true).open(&rounds).expect("a pipe");
        let ending = exports.finish();
        fs::write(path.join("rounds.csv"), "the last\n").expect("it may be written");
        drop(writer);
        ending.wait();
        let last = fs::read_to_string(path.join("rounds.csv")).expect("it is there");
        assert_eq!(last, "the last\n");
        assert!(!path.join("rounds.parquet").exists());
    }

    #[test]
    fn what_cannot_be_made_is_told_and_nothing_is_made_that_is_not_wanted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut none = RunningExports::new(&[Format::Html]);
        assert_eq!(none.step(folder.path(), Duration::ZERO), None);
        assert!(none.making.is_none());
        let mut exports = RunningExports::new(&[Format::Parquet]);
        assert_eq!(exports.step(folder.path(), Duration::ZERO), None);
        wait_until_made(&exports);
        let told = exports.step(folder.path(), Duration::from_secs(1)).expect("there is no run");
        assert!(told.contains("profile.json"), "{told}");
    }
}
