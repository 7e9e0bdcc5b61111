//! `rounds.ndjson`: one line of JSON for each round, on disk as soon as the round has come.
//!
//! [`RoundsFile`] writes it and keeps it within [`ROUNDS_BYTES_MAX`]: before it would grow longer,
//! each second of its rounds is left out, and from then on only rounds whose number is a multiple
//! of the *stride*, 2, 4, 8 and so on. Counters are cumulative, so that what is kept loses
//! resolution and nothing else. A line is written by one call; where a part of it was (a full
//! disk), that part is cut off again. [`RoundsReader`] passes over a last line without end, which a
//! writer that was killed may leave, and on request over others that are not whole.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::atomic::Beside;
use crate::{ReportError, RoundRecord};

/// The file's name in the folder of a report.
pub const ROUNDS_FILE: &str = "rounds.ndjson";
/// The file becomes no longer than this, in bytes.
pub const ROUNDS_BYTES_MAX: u64 = 64 << 20;
/// After a thinning that failed, this many rounds are lost before it is tried again: each try reads
/// the whole file.
const PAUSE_ROUNDS: u64 = 64;

/// What the file of rounds holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundsFacts {
    /// Rounds in it, by time or on demand.
    pub kept: u64,
    /// Iterations in it, which the program has marked.
    #[serde(default)]
    pub iterations: u64,
    /// Rounds and iterations whose number is a multiple of this are in it, and the last round.
    pub stride: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// It becomes no longer than this, in bytes.
    pub bytes_max: u64,
    /// Rounds and iterations that could not be written, as on a full disk.
    pub lost: u64,
}

/// The file of rounds while it is written.
#[derive(Debug)]
pub struct RoundsFile {
    path: PathBuf,
    file: File,
    facts: RoundsFacts,
    /// Rounds that are lost before the next try to thin.
    pause: u64,
}

impl RoundsFile {
    /// Begins the file in a folder; one that is there is emptied.
    ///
    /// # Errors
    /// [`ReportError::Write`], naming the file.
    pub fn create(folder: &Path) -> Result<Self, ReportError> {
        Self::with_bytes_max(folder, ROUNDS_BYTES_MAX)
    }

    /// The same with a bound of its own.
    ///
    /// # Errors
    /// As [`RoundsFile::create`].
    pub fn with_bytes_max(folder: &Path, bytes_max: u64) -> Result<Self, ReportError> {
        let path = folder.join(ROUNDS_FILE);
        let opened = OpenOptions::new().create(true).write(true).truncate(true).open(&path);
        let file = opened.map_err(|source| ReportError::Write { file: path.clone(), source })?;
        let facts = RoundsFacts { stride: 1, bytes_max, ..RoundsFacts::default() };
        Ok(Self { path, file, facts, pause: 0 })
    }

    /// What is in it.
    #[must_use]
    pub fn facts(&self) -> &RoundsFacts {
        &self.facts
    }

    /// Adds a round if its number is a multiple of the stride.
    ///
    /// # Errors
    /// [`ReportError::Write`] if it could not be; the file is then as before.
    pub fn append(&mut self, record: &RoundRecord) -> Result<(), ReportError> {
        if !record.number.is_multiple_of(self.facts.stride) {
            return Ok(());
        }
        self.append_last(record)
    }

    /// Adds the last round, whatever its number.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_last(&mut self, record: &RoundRecord) -> Result<(), ReportError> {
        let line = record.line() + "\n";
        let is_iteration = record.iteration.is_some();
        let added =
            self.make_room(line.len() as u64).and_then(|()| self.write_line(&line, is_iteration));
        added.map_err(|source| {
            self.facts.lost += 1;
            ReportError::Write { file: self.path.clone(), source }
        })
    }

    fn write_line(&mut self, line: &str, is_iteration: bool) -> io::Result<()> {
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => {
                self.facts.bytes += line.len() as u64;
                self.facts.kept += u64::from(!is_iteration);
                self.facts.iterations += u64::from(is_iteration);
                Ok(())
            }
            Err(error) => {
                self.cut_off()?;
                Err(error)
            }
        }
    }

    /// Takes away what is behind the last whole line.
    fn cut_off(&mut self) -> io::Result<()> {
        self.file.set_len(self.facts.bytes)?;
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.facts.bytes)).map(|_| ())
    }

    fn make_room(&mut self, more: u64) -> io::Result<()> {
        let is_full = |facts: &RoundsFacts| facts.bytes + more > facts.bytes_max;
        if more > self.facts.bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if is_full(&self.facts) && self.pause > 0 {
            self.pause -= 1;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        while is_full(&self.facts) {
            let lines = |facts: &RoundsFacts| facts.kept + facts.iterations;
            let before = lines(&self.facts);
            if let Err(error) = self.thin() {
                self.pause = PAUSE_ROUNDS;
                return Err(error);
            }
            if lines(&self.facts) == before {
                // What is left is a few rounds that are very large.
                self.pause = PAUSE_ROUNDS;
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(())
    }

    /// Leaves out the rounds between twice the stride.
    fn thin(&mut self) -> io::Result<()> {
        let stride = 2 * self.facts.stride;
        let beside = Beside::new(&self.path)?;
        let to = beside.create(0o666)?;
        let (file, [kept, iterations], bytes) = copy_thinned(&self.path, to, stride)?;
        beside.rename_to(&self.path)?;
        self.file = file;
        let before = self.facts.clone();
        self.facts = RoundsFacts { stride, kept, iterations, bytes, ..before };
        Ok(())
    }
}

/// Copies the records whose numbers are multiples of the stride; gives the file, its rounds and
/// iterations, and its bytes.
fn copy_thinned(from: &Path, to: File, stride: u64) -> io::Result<(File, [u64; 2], u64)> {
    let mut reader = BufReader::new(File::open(from)?);
    let mut writer = BufWriter::new(to);
    let (mut kept, mut bytes) = ([0, 0], 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let record: Numbered = serde_json::from_slice(&line).map_err(io::Error::other)?;
        if record.number.is_multiple_of(stride) {
            writer.write_all(&line)?;
            kept[usize::from(record.iteration.is_some())] += 1;
            bytes += line.len() as u64;
        }
        line.clear();
    }
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok((file, kept, bytes))
}

/// The members of a record by which it is kept or not, and counted.
#[derive(Deserialize)]
struct Numbered {
    number: u64,
    #[serde(default)]
    iteration: Option<u64>,
}

/// Reads the records of a file, one after another.
#[derive(Debug)]
pub struct RoundsReader {
    path: PathBuf,
    reader: BufReader<File>,
    line: u64,
    /// Counts lines that are passed over; none where these are errors.
    partial: Option<Rc<Cell<u64>>>,
}

impl RoundsReader {
    /// Opens the file in the folder of a report.
    ///
    /// # Errors
    /// One line that names it.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join(ROUNDS_FILE);
        let file = File::open(&path).map_err(|error| format!("'{}': {error}", path.display()))?;
        Ok(Self { path, reader: BufReader::new(file), line: 0, partial: None })
    }

    /// Passes over lines that are no JSON, as a write that was cut short or a copy that lacks a
    /// part may leave in the middle of a file, and counts them. JSON that is no record stays an
    /// error.
    #[must_use]
    pub fn without_partial_lines(mut self, count: Rc<Cell<u64>>) -> Self {
        count.set(0);
        self.partial = Some(count);
        self
    }

    fn next_record(&mut self) -> Result<Option<RoundRecord>, String> {
        while let Some(line) = self.next_line()? {
            match (read_record(&line), &self.partial) {
                (Err(_), Some(count)) if !is_json(&line) => count.set(count.get() + 1),
                (record, _) => return record.map(Some),
            }
        }
        Ok(None)
    }

    /// A line without its end.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut line = Vec::new();
        // No writer makes a longer line.
        let mut limited = (&mut self.reader).take(ROUNDS_BYTES_MAX);
        limited.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if line.pop() != Some(b'\n') {
            // The end, or the beginning of a line that its writer could not end.
            return Ok(None);
        }
        self.line += 1;
        Ok(Some(line))
    }
}

fn read_record(line: &[u8]) -> Result<RoundRecord, String> {
    let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    RoundRecord::parse(line)
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

impl Iterator for RoundsReader {
    type Item = Result<RoundRecord, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.next_record();
        let told = |error| format!("'{}', line {}: {error}", self.path.display(), self.line);
        read.map_err(told).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> RoundRecord {
        RoundRecord { schema: crate::record::ROUND_SCHEMA.into(), number, ..RoundRecord::default() }
    }

    fn numbers(folder: &Path) -> Vec<u64> {
        let reader = RoundsReader::open(folder).expect("the file is there");
        reader.map(|record| record.expect("a record").number).collect()
    }

    #[test]
    fn a_file_that_would_grow_too_long_is_thinned() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bytes_max = 10 * (record(0).line().len() as u64 + 8);
        let mut file = RoundsFile::with_bytes_max(folder.path(), bytes_max).expect("it is made");
        for number in 0..100 {
            let appended = match number {
                99 => file.append_last(&record(number)),
                _ => file.append(&record(number)),
            };
            appended.expect("there is room");
            let length = std::fs::metadata(folder.path().join(ROUNDS_FILE)).expect("there").len();
            assert!(length <= bytes_max && length == file.facts().bytes, "{length}");
        }
        assert_eq!(file.facts().stride, 16);
        assert_eq!(numbers(folder.path()), [0, 16, 32, 48, 64, 80, 96, 99]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
        assert_eq!(file.facts().lost, 0);
    }

    #[test]
    fn iterations_are_counted_apart_from_rounds() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut iteration = record(0);
        iteration.iteration = Some(1);
        let bytes_max = 40 * (iteration.line().len() as u64 + 8);
        let mut file = RoundsFile::with_bytes_max(folder.path(), bytes_max).expect("it is made");
        for number in 0..50 {
            (iteration.number, iteration.iteration) = (number, Some(number + 1));
            file.append(&iteration).expect("there is room");
            let appended = match number {
                0..3 => file.append(&record(number)),
                3 => file.append_last(&record(number)),
                _ => Ok(()),
            };
            appended.expect("there is room");
        }
        // Of 54 records that would not fit, those of even numbers: also 2 of the 4 rounds.
        assert_eq!((file.facts().kept, file.facts().iterations, file.facts().stride), (2, 25, 2));
    }

    #[test]
    fn a_round_that_has_no_room_at_all_is_counted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut file = RoundsFile::with_bytes_max(folder.path(), 10).expect("it is made");
        for number in 0..3 {
            assert!(file.append(&record(number)).is_err());
        }
        assert_eq!((file.facts().lost, file.facts().kept, file.facts().stride), (3, 0, 1));
        assert!(numbers(folder.path()).is_empty());
    }

    #[test]
    fn a_torn_last_line_is_passed_over_and_a_wrong_one_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(ROUNDS_FILE);
        let whole = record(3).line();
        std::fs::write(&path, format!("{whole}\n{}", &whole[..20])).expect("it may be written");
        assert_eq!(numbers(folder.path()), [3]);
        std::fs::write(&path, format!("{whole}\nno\n{whole}\n")).expect("it may be written");
        let read: Vec<_> = RoundsReader::open(folder.path()).expect("it is there").collect();
        assert!(read[1].as_ref().unwrap_err().contains("rounds.ndjson', line 2: "), "{read:?}");
        assert_eq!(read.len(), 3);
    }

    #[test]
    fn partial_lines_are_passed_over_and_counted_where_that_is_wanted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(ROUNDS_FILE);
        let whole = |number| record(number).line();
        let cut = whole(1);
        let cut = &cut[..20];
        let mut text = format!("{}\n{cut}{}\n{}\n", whole(0), whole(2), whole(3)).into_bytes();
        // A letter that is cut in the middle.
        text.extend_from_slice(b"\"\xc3\n");
        text.extend_from_slice(whole(4).as_bytes());
        text.extend_from_slice(b"\n{}\n");
        std::fs::write(&path, text).expect("it may be written");
        let count = Rc::new(Cell::new(7));
        let reader = RoundsReader::open(folder.path()).expect("it is there");
        let read: Vec<_> = reader.without_partial_lines(count.clone()).collect();
        let numbers: Vec<u64> = read.iter().flatten().map(|record| record.number).collect();
        assert_eq!((numbers, count.get()), (vec![0, 3, 4], 2));
        assert!(read[3].as_ref().unwrap_err().contains("line 6: "), "whole, and no record");
    }
}
