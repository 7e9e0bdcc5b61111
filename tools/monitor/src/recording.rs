//! The records of a finished run, read from its file one by one.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sapwood_command_line::exit::{Failure, complain};
use sapwood_report::RoundRecord;

/// The file of a run's records.
const ROUNDS_FILE: &str = "rounds.ndjson";
/// A longer line is not one of ours.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// The records of a file, in their order.
pub(crate) struct Recording {
    path: PathBuf,
    lines: BufReader<File>,
    line: u64,
}

impl Recording {
    /// Opens the file in a folder, or the file itself.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let path = if path.is_dir() { path.join(ROUNDS_FILE) } else { path.to_path_buf() };
        let file = File::open(&path).map_err(|error| {
            Failure::usage(format!(
                "'{}' cannot be read: {error}; 'sapwood mpi --out DIR' leaves one in DIR",
                path.display()
            ))
        })?;
        Ok(Self { path, lines: BufReader::new(file), line: 0 })
    }

    /// Finds where each round begins, so that any of them can be read at any time. Iterations are
    /// another series with numbers of its own: they are passed over, unless there is nothing else.
    ///
    /// # Errors
    /// [`Failure`] where the file holds no round, or cannot be read.
    pub(crate) fn index(mut self) -> Result<Index, Failure> {
        let failed = |path: &Path, error: std::io::Error| {
            Failure::usage(format!("'{}' cannot be read: {error}", path.display()))
        };
        let (mut rounds, mut iterations) = (Vec::new(), Vec::new());
        let (mut begin, mut line) = (0, 0);
        let mut text = Vec::new();
        loop {
            text.clear();
            match self.lines.read_until(b'\n', &mut text) {
                Ok(0) => break,
                Ok(count) => {
                    // A line that is no record is named when it is read.
                    let kind = serde_json::from_slice::<Kind>(&text).unwrap_or_default();
                    let is_round = kind.iteration.is_none();
                    if is_round { &mut rounds } else { &mut iterations }.push((begin, line));
                    begin += count as u64;
                    line += 1;
                }
                Err(error) => return Err(failed(&self.path, error)),
            }
        }
        let places = if rounds.is_empty() { iterations } else { rounds };
        let mut index = Index { recording: self, places };
        // The last line may be cut short.
        if let Some(&last) = index.places.last()
            && index.seek(last).is_none()
        {
            index.places.pop();
        }
        if index.places.is_empty() { Err(index.recording.is_empty()) } else { Ok(index) }
    }

    /// The command of the run, if its report is there; else the name of the file.
    pub(crate) fn command(&self) -> String {
        let report = self.path.with_file_name("profile.json");
        let report = std::fs::read(report).unwrap_or_default();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap_or_default();
        let words = report["command"].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(serde_json::Value::as_str).collect();
        if words.is_empty() { self.path.display().to_string() } else { words.join(" ") }
    }

    pub(crate) fn is_empty(&self) -> Failure {
        Failure::usage(format!(
            "'{}' holds no round: the run ended before one",
            self.path.display()
        ))
    }

    /// The next record. The last line may be cut short, where the run was ended by force.
    fn read(&mut self) -> Option<Result<RoundRecord, Failure>> {
        let mut text = Vec::new();
        let mut bounded = (&mut self.lines).take(LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut text);
        self.line += 1;
        let wrong = |why: &str| {
            let (path, line) = (self.path.display(), self.line);
            Some(Err(Failure::usage(format!("'{path}', line {line}: this is no round: {why}"))))
        };
        match read {
            Err(error) => return wrong(&error.to_string()),
            Ok(0) => return None,
            Ok(_) => {}
        }
        let is_whole = text.last() == Some(&b'\n');
        match std::str::from_utf8(&text)
            .map_err(|error| error.to_string())
            .and_then(RoundRecord::parse)
        {
            Ok(record) => Some(Ok(record)),
            Err(_) if !is_whole && (text.len() as u64) < LINE_BYTES_MAX => {
                complain(format_args!(
                    "the last line of '{}' is cut short and left out",
                    self.path.display()
                ));
                None
            }
            Err(why) => wrong(&why),
        }
    }
}

/// The one member of a record that tells rounds and iterations apart.
#[derive(Default, serde::Deserialize)]
struct Kind {
    #[serde(default)]
    iteration: Option<u64>,
}

/// The places of rounds in a file: where each begins, and how many lines are before it.
pub(crate) struct Index {
    recording: Recording,
    places: Vec<(u64, u64)>,
}

impl Index {
    /// How many rounds there are; at least one.
    pub(crate) fn rounds(&self) -> usize {
        self.places.len()
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// [`Failure`] that names the line.
    pub(crate) fn read(&mut self, round: usize) -> Result<RoundRecord, Failure> {
        self.seek(self.places[round]).unwrap_or_else(|| Err(self.recording.is_empty()))
    }

    fn seek(&mut self, (begin, line): (u64, u64)) -> Option<Result<RoundRecord, Failure>> {
        self.recording.line = line;
        if let Err(error) = self.recording.lines.seek(SeekFrom::Start(begin)) {
            return Some(Err(Failure::usage(error)));
        }
        self.recording.read()
    }
}

impl Iterator for Recording {
    type Item = Result<RoundRecord, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_report::RoundRecord;

    use super::*;

    fn recording(text: &str) -> (tempfile::TempDir, Result<Vec<u64>, String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(ROUNDS_FILE), text).expect("it may be written");
        let recording = Recording::open(folder.path()).expect("the file is there");
        let numbers: Result<Vec<u64>, Failure> =
            recording.map(|record| record.map(|record| record.number)).collect();
        (folder, numbers.map_err(|failure| failure.to_string()))
    }

    fn line(number: u64) -> String {
        let round = sapwood_profile::Round::new(2);
        RoundRecord::new(number, Duration::from_secs(number), &round, &[]).line() + "\n"
    }

    #[test]
    fn rounds_are_read_in_their_order_and_a_cut_last_line_is_left_out() {
        assert_eq!(recording(&(line(0) + &line(1))).1, Ok(vec![0, 1]));
        let second = line(1);
        assert_eq!(recording(&(line(0) + &second[..second.len() / 2])).1, Ok(vec![0]));
    }

    #[test]
    fn iterations_are_no_rounds_of_the_index_unless_there_is_nothing_else() {
        let iteration = |number: u64| {
            let round = sapwood_profile::Round::new(2);
            let mut record = RoundRecord::new(number, Duration::ZERO, &round, &[]);
            record.iteration = Some(number + 1);
            record.line() + "\n"
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(ROUNDS_FILE);
        let read = |text: String| {
            std::fs::write(&file, text).expect("it may be written");
            let mut index = Recording::open(&file).expect("it is there").index().expect("records");
            let all = (0..index.rounds()).map(|at| index.read(at).expect("a record"));
            all.map(|record| (record.number, record.iteration)).collect::<Vec<_>>()
        };
        let mixed = iteration(0) + &line(0) + &iteration(1) + &line(1) + &iteration(2);
        assert_eq!(read(mixed), [(0, None), (1, None)]);
        assert_eq!(read(iteration(0)), [(0, Some(1))]);
        std::fs::write(&file, iteration(0) + &line(0) + "{}\n").expect("it may be written");
        let error = Recording::open(&file).expect("it is there").index().and_then(|mut index| {
            let last = index.rounds() - 1;
            index.read(last)
        });
        let error = error.expect_err("it is no record").to_string();
        assert!(error.contains("line 3: this is no round"), "{error}");
    }

    #[test]
    fn a_line_that_is_no_round_is_named() {
        let error = recording(&(line(0) + "{}\n" + &line(1))).1.unwrap_err();
        assert!(error.contains("rounds.ndjson', line 2: this is no round"), "{error}");
        let other = line(0).replace("sapwood.round/1", "sapwood.test/1");
        let error = recording(&other).1.unwrap_err();
        assert!(error.contains("line 1") && error.contains("sapwood.test/1"), "{error}");
    }

    #[test]
    fn a_folder_without_rounds_says_how_to_get_some() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = Recording::open(folder.path()).err().expect("there is no such file");
        assert!(error.to_string().contains("--out DIR"), "{error}");
    }
}
