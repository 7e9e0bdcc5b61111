//! The folder of a run, finished or not, and what is written beside its files.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sapwood_report::record::RoundRecord;
use sapwood_report::{Profile, ROUNDS_FILE, RoundsReader, write_whole};

use crate::rank_rows::{self, RankRow};
use crate::{Format, caliper, csv_rows, html, openmetrics, parquet_rows, perfetto, tau};

/// One line: what cannot be read or written, and what to do.
pub type ExportError = String;

/// What a run has left in its folder.
#[derive(Clone, Debug)]
pub struct Run {
    folder: PathBuf,
    /// The report.
    pub profile: Profile,
    /// Lines of the file of rounds that are not whole, when it was read last.
    partial: Rc<Cell<u64>>,
    /// Whether no further file is to be written.
    is_over: Arc<AtomicBool>,
}

impl Run {
    /// Reads the report of a run's folder.
    ///
    /// # Errors
    /// [`ExportError`] that names the file.
    pub fn read(folder: &Path) -> Result<Self, ExportError> {
        let hint = "name a folder that 'sapwood mpi --out' has left";
        let profile = Profile::read(&folder.join("profile.json"));
        let profile = profile.map_err(|error| format!("{error}; {hint}"))?;
        let (partial, is_over) = (Rc::default(), Arc::default());
        Ok(Self { folder: folder.to_path_buf(), profile, partial, is_over })
    }

    /// The same until this is set, by another thread: from then on no file is replaced, and an
    /// export that goes on ends soon.
    #[must_use]
    pub fn until(self, is_over: Arc<AtomicBool>) -> Self {
        Self { is_over, ..self }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// One line, if rounds are left out of what was exported because their lines are not whole.
    #[must_use]
    pub fn partial_line(&self) -> Option<String> {
        let file = self.folder.join(ROUNDS_FILE);
        let (lines, are) = match self.partial.get() {
            0 => return None,
            1 => ("1 line".to_owned(), "is"),
            many => (format!("{many} lines"), "are"),
        };
        Some(format!("{lines} of '{}' {are} not whole and left out", file.display()))
    }

    /// The rounds and the iterations, one after another, without lines that are not whole.
    ///
    /// # Errors
    /// [`ExportError`] when there is no file of rounds.
    pub fn rounds(&self) -> Result<RoundsReader, ExportError> {
        let reader = RoundsReader::open(&self.folder)?;
        Ok(reader.without_partial_lines(Rc::clone(&self.partial)))
    }

    /// The rounds by time or on demand alone: the counts of an iteration are those at each rank's
    /// own mark, so that they are no interval of time beside these.
    ///
    /// # Errors
    /// [`ExportError`] when there is no file of rounds.
    pub fn timed_rounds(
        &self,
    ) -> Result<impl Iterator<Item = Result<RoundRecord, String>>, ExportError> {
        let is_timed = |record: &Result<RoundRecord, String>| {
            record.as_ref().map_or(true, |record| record.iteration.is_none())
        };
        Ok(self.rounds()?.filter(is_timed))
    }

    /// The profiles of the ranks.
    ///
    /// # Errors
    /// [`ExportError`] when there are none, as while the program runs.
    pub fn rows(&self) -> Result<Vec<RankRow>, ExportError> {
        let file = self.folder.join(rank_rows::FILE);
        if !file.exists() && !self.profile.is_final {
            return Err(format!(
                "'{}' is not there: the ranks' own profiles are written when the program ends",
                file.display()
            ));
        }
        rank_rows::read(&file)
    }

    /// The last round; none before the first.
    ///
    /// # Errors
    /// [`ExportError`] that names the file of rounds.
    pub fn last_round(&self) -> Result<Option<RoundRecord>, ExportError> {
        self.timed_rounds()?.last().transpose()
    }

    /// The rounds and the iterations until the run is over: what is made of them is not written
    /// then.
    fn wanted_rounds(
        &self,
    ) -> Result<impl Iterator<Item = Result<RoundRecord, String>>, ExportError> {
        Ok(self.rounds()?.take_while(|_| !self.is_over()))
    }

    /// Writes the formats into a folder, each whole or not at all; names the files.
    ///
    /// # Errors
    /// [`ExportError`] of the first that fails; those before it are then there.
    pub fn export(
        &self,
        formats: &[Format],
        to: &Path,
        series_max: usize,
    ) -> Result<Vec<PathBuf>, ExportError> {
        let failed = |error| format!("cannot make the folder '{}': {error}", to.display());
        std::fs::create_dir_all(to).map_err(failed)?;
        let mut files = Vec::new();
        for &format in formats {
            if self.is_over() {
                break;
            }
            if format == Format::Tau {
                files.extend(tau::write(&self.rows()?, &self.profile, to)?);
                continue;
            }
            let (name, content) = self.content(format, series_max)?;
            if self.is_over() {
                break;
            }
            let file = to.join(name);
            write_whole(&file, &content).map_err(|error| error.to_string())?;
            files.push(file);
        }
        Ok(files)
    }

    /// Name and content of a format that is one file.
    fn content(
        &self,
        format: Format,
        series_max: usize,
    ) -> Result<(&'static str, Vec<u8>), ExportError> {
        let in_rounds = |error: String| format!("{ROUNDS_FILE} as {}: {error}", format.name());
        Ok(match format {
            Format::OpenMetrics => {
                let last = self.last_round()?;
                (openmetrics::FILE, openmetrics::text(last.as_ref(), series_max).into_bytes())
            }
            Format::Parquet => {
                let rows = parquet_rows::encode(self.wanted_rounds()?).map_err(in_rounds)?;
                (parquet_rows::FILE, rows)
            }
            Format::Csv => {
                (csv_rows::FILE, csv_rows::encode(self.wanted_rounds()?).map_err(in_rounds)?)
            }
            Format::Caliper => (caliper::FILE, caliper::text(&self.rows()?, &self.profile).into()),
            Format::Perfetto => {
                let trace =
                    perfetto::encode(self.timed_rounds()?, &self.profile).map_err(in_rounds)?;
                (perfetto::FILE, trace)
            }
            #[cfg(feature = "otlp")]
            Format::Otlp => {
                let last = self.last_round()?.unwrap_or_default();
                (crate::otlp::FILE, crate::otlp::encode(&last, &self.profile))
            }
            #[cfg(not(feature = "otlp"))]
            Format::Otlp => return Err("this program was built without 'otlp'".into()),
            Format::Html => {
                (html::FILE, html::page(&self.profile, self.timed_rounds()?)?.into_bytes())
            }
            Format::Tau => return Err("a profile of TAU is many files".into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sapwood_profile::{Counters, EventKey, RankProfile, Round, TimeShare};
    use sapwood_report::{Report, RoundsFile};

    use super::*;

    /// A rank that has counted for this many tenths of a second, a third of it in MPI.
    fn round(tenths: u64) -> Round {
        let mut rank = RankProfile::new(0, 1);
        let time_ns = tenths * 33_300_000;
        rank.time = TimeShare { wall_ns: tenths * 100_000_000, mpi_ns: time_ns };
        let counters = Counters { count: tenths, time_ns, bytes: 0 };
        rank.events.insert(EventKey::Region("solve".into()), counters);
        let mut round = Round::new(1);
        round.add(&rank).expect("a new rank");
        round
    }

    /// A run with three rounds, and five iterations behind each of them.
    fn run_with_iterations(folder: &Path) -> Run {
        let mut file = RoundsFile::create(folder).expect("it is made");
        for number in 0..3 {
            let tenths = 10 * (number + 1);
            let record = |number, tenths: u64| {
                let elapsed = Duration::from_millis(100 * tenths);
                RoundRecord::new(number, elapsed, &round(tenths), &[])
            };
            file.append(&record(number, tenths)).expect("there is room");
            for mark in 5 * number..5 * number + 5 {
                let mut iteration = record(mark, tenths + 1 + mark % 5);
                iteration.iteration = Some(mark + 1);
                file.append(&iteration).expect("there is room");
            }
        }
        Report { round: round(30), ..Report::default() }.write_summary(folder).expect("written");
        Run::read(folder).expect("a run")
    }

    fn exported(format: Format) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = run_with_iterations(folder.path());
        let files = run.export(&[format], folder.path(), 1000).expect("it is written");
        String::from_utf8_lossy(&std::fs::read(&files[0]).expect("it is there")).into_owned()
    }

    #[test]
    fn rows_tell_rounds_and_iterations_apart() {
        let text = exported(Format::Csv);
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().expect("a header");
        let at = head.iter().position(|&name| name == "iteration").expect("a column");
        let rows: Vec<(&str, &str)> = lines.map(|line| (line[0], line[at])).collect();
        assert_eq!(rows[..3], [("0", ""), ("0", "1"), ("1", "2")]);
        assert_eq!(rows.len(), 18);
        assert!(exported(Format::Parquet).contains("iteration"));
    }

    #[test]
    fn rows_have_what_is_new_since_the_round_before() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let mut file = RoundsFile::create(path).expect("it is made");
        let mut sums = None;
        for (number, tenths) in [(0, 10), (1, 14), (2, 14), (3, 20)] {
            let elapsed = Duration::from_secs(number);
            let mut record = RoundRecord::new(number, elapsed, &round(tenths), &[]);
            sums = Some(record.note_event_intervals(sums.as_ref()));
            let appended = match number {
                3 => file.append_last(&record),
                _ => file.append(&record),
            };
            appended.expect("there is room");
        }
        Report { round: round(20), ..Report::default() }.write_summary(path).expect("written");
        let run = Run::read(path).expect("a run");
        let files = run.export(&[Format::Csv], path, 1000).expect("it is written");
        let text = std::fs::read_to_string(&files[0]).expect("it is there");
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().expect("a header");
        let at = |wanted: &str| head.iter().position(|&name| name == wanted).expect("a column");
        let members = ["calls", "time_ns", "bytes"];
        let places = members.map(|member| at(&format!("event_intervals.{member}")));
        let rows: Vec<[&str; 3]> = lines.map(|line| places.map(|place| line[place])).collect();
        let new = [["", "", ""], ["4", "133200000", "0"], ["0", "0", "0"], ["6", "199800000", "0"]];
        assert_eq!(rows, new);
    }

    #[test]
    fn a_line_that_is_not_whole_is_left_out_and_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = run_with_iterations(folder.path());
        assert_eq!(run.partial_line(), None);
        let file = folder.path().join(ROUNDS_FILE);
        let text = std::fs::read_to_string(&file).expect("it is there");
        let mut lines: Vec<&str> = text.lines().collect();
        // The round behind the first and its five iterations.
        lines[6] = &lines[6][..100];
        std::fs::write(&file, lines.join("\n") + "\n").expect("it may be written");
        let formats = [Format::Csv, Format::Parquet, Format::Html];
        run.export(&formats, folder.path(), 1000).expect("it is written");
        let told = run.partial_line().expect("a line is not whole");
        assert!(told.starts_with("1 line of '") && told.ends_with("' is not whole and left out"));
        let rows = std::fs::read_to_string(folder.path().join("rounds.csv")).expect("it is there");
        assert_eq!(rows.lines().count(), 1 + 17);
    }

    #[test]
    fn the_last_round_is_no_iteration() {
        let text = exported(Format::OpenMetrics);
        assert!(text.contains("sapwood_mpi_round_number 2\n"), "{text}");
        assert!(text.contains("sapwood_mpi_elapsed_seconds 3\n"), "{text}");
    }

    #[test]
    fn charts_have_a_point_for_each_round_and_none_for_iterations() {
        let text = exported(Format::Html);
        let (_, chart) = text.split_once("share of MPI and load balance").expect("a chart");
        let (_, path) = chart.split_once(" d=\"").expect("a line");
        let (path, _) = path.split_once('"').expect("its end");
        assert_eq!(path.matches(['M', 'L']).count(), 3, "{path}");
    }
}
