//! What a run leaves in its folder while it goes on: `rounds.ndjson`, a line for each round, and
//! the report as of a few seconds ago; the same `profile.json` in the file that `--json` names.
//!
//! Nothing here ends the program or changes its exit code: what cannot be written is said once, and
//! what was written before stays.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use sapwood_command_line::exit::{Failure, complain};
use sapwood_export::{Format, Run, openmetrics};
use sapwood_report::ends::Ends;
use sapwood_report::record::EventSums;
use sapwood_report::{Report, ReportError, RoundRecord, RoundsFile, is_descriptor};
use sapwood_transport::{Page, PageServer};

use super::Arguments;
use super::control::deaths::Deaths;
use super::events_folder::{self, EndsFile};
use super::folder::OutFolder;
use super::pace::Pace;
use super::running_exports::RunningExports;

/// The path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// Where the outputs of one run go.
pub(crate) struct Outputs {
    folder: Option<OutFolder>,
    /// The file that `--json` names.
    json: Option<PathBuf>,
    rounds: Option<RoundsFile>,
    /// Of the last round in that file.
    round_sums: Option<EventSums>,
    /// Of the last iteration.
    iteration_sums: Option<EventSums>,
    started: Option<SystemTime>,
    formats: Vec<Format>,
    running: RunningExports,
    series_max: usize,
    server: Option<PageServer>,
    /// The last record, while a scraper may ask for it.
    last: Option<RoundRecord>,
    /// Of the report.
    pace: Pace,
    /// How ranks end, where they keep files.
    ends: Option<EndsFile>,
    /// Whether it was said that something cannot be written.
    is_said: bool,
}

impl Outputs {
    /// Makes and tries everything before the program starts.
    ///
    /// # Errors
    /// [`Failure`] that names the folder or the address.
    pub(crate) fn prepare(arguments: &Arguments) -> Result<Self, Failure> {
        let kept = arguments.kept_folder().map(|folder| events_folder::prepare(&folder));
        let ends = kept.transpose().map_err(Failure::usage)?.map(EndsFile::new);
        let folder = arguments.out.as_deref().map(OutFolder::prepare).transpose();
        let folder = folder.map_err(Failure::usage)?;
        let server = arguments.listen.map(PageServer::bind).transpose().map_err(Failure::usage)?;
        if let Some(server) = &server {
            complain(format_args!("metrics at http://{}{METRICS_PATH}", server.address()));
        }
        Ok(Self {
            folder,
            json: arguments.json.clone(),
            rounds: None,
            round_sums: None,
            iteration_sums: None,
            started: None,
            formats: arguments.export.clone(),
            running: RunningExports::new(&arguments.export),
            series_max: arguments.series_max as usize,
            server,
            last: None,
            pace: Pace::default(),
            ends,
            is_said: false,
        })
    }

    /// Where ranks keep files.
    pub(crate) fn events_folder(&self) -> Option<&Path> {
        self.ends.as_ref().map(EndsFile::folder)
    }

    /// Where the metrics are served.
    pub(crate) fn server(&self) -> Option<&PageServer> {
        self.server.as_ref()
    }

    /// Begins the file of rounds; the program has started.
    pub(crate) fn begin(&mut self) {
        self.started = Some(SystemTime::now());
        let Some(folder) = &self.folder else { return };
        match RoundsFile::create(folder.path()) {
            Ok(file) => self.rounds = Some(file),
            Err(error) => self.trouble(&error),
        }
    }

    /// Keeps a round that has come while the program runs. `report` gives the report so far.
    pub(crate) fn keep(
        &mut self,
        record: &RoundRecord,
        elapsed: Duration,
        report: impl FnOnce() -> Report,
    ) {
        self.append(record, false);
        if self.server.is_some() {
            self.last = Some(record.clone());
        }
        let is_due = elapsed >= self.pace.due();
        let json = self.json.clone().filter(|file| is_due && is_replaceable(file));
        if !is_due || self.folder.is_none() && json.is_none() {
            return;
        }
        self.pace.note(elapsed);
        let report = self.completed(report());
        if let Err(error) = self.replace(record, &report) {
            self.trouble(&error);
        }
        let folder = self.folder.as_ref().map(OutFolder::path);
        if let Some(error) = folder.and_then(|folder| self.running.step(folder, elapsed)) {
            self.trouble(&error);
        }
        if let Some(file) = json {
            // Where this fails the file stays as it is: it is tried again, and said, at the end.
            let _ = sapwood_report::replace_named(&file, report.json().as_bytes());
        }
    }

    /// Puts the report so far in the place of the one before.
    fn replace(&self, record: &RoundRecord, report: &Report) -> Result<(), ReportError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        report.write_summary(folder.path())?;
        if self.formats.contains(&Format::OpenMetrics) {
            let text = openmetrics::text(Some(record), self.series_max);
            let file = folder.path().join(openmetrics::FILE);
            sapwood_report::write_whole(&file, text.as_bytes())?;
        }
        Ok(())
    }

    /// From when on it is to be left again how ranks have ended; none while no more of them have.
    pub(crate) fn ends_due(&self, deaths: &Deaths) -> Option<Duration> {
        self.ends.as_ref().and_then(|file| file.due(deaths.known()))
    }

    /// Leaves how ranks have ended beside the files that they keep, once more of them have and it
    /// is due.
    pub(crate) fn note_ends(
        &mut self,
        deaths: &Deaths,
        elapsed: Duration,
        ends: impl FnOnce() -> Ends,
    ) {
        if self.ends_due(deaths).is_some_and(|due| due <= elapsed) {
            self.finish_ends(deaths, elapsed, ends);
        }
    }

    /// The same at once, whether or not more have.
    pub(crate) fn finish_ends(
        &mut self,
        deaths: &Deaths,
        elapsed: Duration,
        ends: impl FnOnce() -> Ends,
    ) {
        let file = self.ends.as_mut();
        let left = file.map(|file| file.leave(&ends(), deaths.known(), elapsed));
        if let Some(Err(error)) = left {
            self.trouble(&error);
        }
    }

    /// Adds a record to the file of rounds, with what is new since the one before of its kind.
    pub(crate) fn append(&mut self, record: &RoundRecord, is_last: bool) {
        let Some(file) = &mut self.rounds else { return };
        let before = match record.iteration {
            Some(_) => &mut self.iteration_sums,
            None => &mut self.round_sums,
        };
        let mut record = record.clone();
        *before = Some(record.note_event_intervals(before.as_ref()));
        if let Err(error) = file.append(&record, is_last) {
            self.trouble(&error);
        }
    }

    /// Says the first trouble; those that follow have the same reason as a rule.
    fn trouble(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.is_said, true) {
            complain(format_args!("{error}; the program runs on, and earlier output is kept"));
        }
    }

    /// The report with what is known here.
    fn completed(&self, report: Report) -> Report {
        let rounds_file = self.rounds.as_ref().map(|file| file.facts().clone());
        Report { started: self.started, rounds_file, ..report }
    }

    /// Answers scrapers.
    pub(crate) fn serve(&mut self) {
        let Some(server) = &mut self.server else { return };
        let (last, series_max) = (self.last.as_ref(), self.series_max);
        let served = server.serve(Instant::now(), &mut |path| {
            (path == METRICS_PATH).then(|| Page {
                content_type: openmetrics::CONTENT_TYPE,
                body: openmetrics::text(last, series_max).into_bytes(),
            })
        });
        if let Err(error) = served {
            complain(format_args!("metrics are no longer served: {error}"));
            self.server = None;
        }
    }

    /// Leaves the last record, the report and the exports.
    pub(crate) fn finish(&mut self, record: &RoundRecord, report: &mut Report) {
        self.append(record, true);
        *report = self.completed(std::mem::take(report));
        self.running.finish();
        let Some(folder) = &self.folder else { return };
        let path = folder.path();
        if let Err(error) = report.write(path) {
            complain(error);
        }
        if self.formats.is_empty() {
            return;
        }
        if let Some(trouble) = export(path, &self.formats, self.series_max) {
            complain(trouble);
        }
    }

    /// Nothing will be left.
    pub(crate) fn abandon(&self) {
        if let Some(folder) = &self.folder {
            folder.abandon();
        }
    }
}

/// Writes the formats beside the files of a run; one line, if one cannot be written, or if rounds
/// are left out whose lines are not whole.
fn export(folder: &Path, formats: &[Format], series_max: usize) -> Option<String> {
    let exported =
        Run::read(folder).and_then(|run| run.export(formats, folder, series_max).map(|_| run));
    match exported {
        Ok(run) => run.partial_line(),
        Err(error) => Some(error),
    }
}

/// Whether a file can be replaced as a whole while the program runs: it is not there yet, or is a
/// regular one without another name. A pipe, a device or a descriptor takes the report once, at the
/// end.
fn is_replaceable(file: &Path) -> bool {
    match fs::metadata(file) {
        Ok(found) => found.is_file() && found.nlink() == 1 && !is_descriptor(file),
        // A link to what is not there yet is written through.
        Err(error) => error.kind() == ErrorKind::NotFound && fs::symlink_metadata(file).is_err(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use sapwood_report::ROUNDS_FILE;
    use sapwood_report::record::ROUND_SCHEMA;

    use super::*;

    #[test]
    fn an_export_at_the_end_of_a_run_tells_of_lines_that_are_not_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        Report::default().write(path).expect("a folder that may be written");
        let mut record = RoundRecord::default();
        record.schema = ROUND_SCHEMA.to_owned();
        let whole = record.line();
        let rounds = path.join(ROUNDS_FILE);
        let exported = || export(path, &[Format::Csv], openmetrics::SERIES_DEFAULT as usize);
        fs::write(&rounds, format!("{whole}\n")).expect("it may be written");
        assert_eq!(exported(), None);
        fs::write(&rounds, format!("{}\n{whole}\n", &whole[..20])).expect("it may be written");
        let line = exported().expect("a line is not whole");
        assert!(line.starts_with("1 line of '") && line.ends_with("left out"), "{line}");
        fs::remove_file(&rounds).expect("it is there");
        exported().expect("there are no rounds");
    }

    #[test]
    fn only_a_file_of_its_own_is_replaced_while_the_program_runs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("profile.json");
        assert!(is_replaceable(&file), "it is not there yet");
        let open = fs::File::create(&file).expect("the folder may be written");
        assert!(is_replaceable(&file));
        let descriptor = format!("/dev/fd/{}", open.as_raw_fd());
        for name in ["/dev/null", "/dev/full", descriptor.as_str()] {
            assert!(!is_replaceable(Path::new(name)), "{name}");
        }
        assert!(!is_replaceable(folder.path()), "a folder");
        fs::hard_link(&file, folder.path().join("other")).expect("another name");
        assert!(!is_replaceable(&file));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nothing"), &link).expect("a link");
        assert!(!is_replaceable(&link), "it leads to nothing yet");
    }
}
