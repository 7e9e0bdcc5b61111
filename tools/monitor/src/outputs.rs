//! What a run leaves in its folder while it goes on: `rounds.ndjson`, a line for each round, and
//! the report as of a few seconds ago; the same `profile.json` in the file that `--json` names.
//!
//! Nothing here ends the program or changes its exit code: what cannot be written is said once, and
//! what was written before stays.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use sapwood_command_line::exit::{Failure, complain};
use sapwood_export::{Format, Run, openmetrics};
use sapwood_report::ends::Ends;
use sapwood_report::record::EventSums;
use sapwood_report::{ROUNDS_FILE, Report, ReportError, RoundRecord, RoundsFile, is_descriptor};
use sapwood_transport::{Page, PageServer};

use super::Arguments;
use super::control::deaths::Deaths;
use super::events_folder::{self, EndsFile};
use super::folder::OutFolder;
use super::last_files::{ANSWER_WAIT, LastFiles, LeftFiles, unwritten_line};
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
    /// How long a file system may take for one of the last files.
    wait: Duration,
}

impl Outputs {
    /// Makes and tries everything before the program starts.
    ///
    /// # Errors
    /// [`Failure`] that names the folder or the address.
    pub(crate) fn prepare(arguments: &Arguments) -> Result<Self, Failure> {
        let kept = arguments.kept_folder().map(|folder| events_folder::prepare(&folder));
        let ends = kept.transpose().map_err(Failure::usage)?.map(EndsFile::new);
        let folder = arguments.out.as_deref();
        let folder = folder.map(|path| OutFolder::prepare(path, &arguments.export)).transpose();
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
            wait: ANSWER_WAIT,
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
        self.append(record);
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

    /// Adds a record to the file of rounds.
    pub(crate) fn append(&mut self, record: &RoundRecord) {
        if self.rounds.is_none() {
            return;
        }
        let record = self.noted(record);
        let Some(file) = &mut self.rounds else { return };
        if let Err(error) = file.append(&record) {
            self.trouble(&error);
        }
    }

    /// A record with what is new since the one before of its kind.
    fn noted(&mut self, record: &RoundRecord) -> RoundRecord {
        let before = match record.iteration {
            Some(_) => &mut self.iteration_sums,
            None => &mut self.round_sums,
        };
        let mut record = record.clone();
        *before = Some(record.note_event_intervals(before.as_ref()));
        record
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

    /// Leaves the last record, the report and the exports; gives the report with what is known
    /// here. What cannot be written is said, as is what was not when a file system gave no answer.
    pub(crate) fn finish(&mut self, record: &RoundRecord, report: Report) -> Arc<Report> {
        let last = self.finish_rounds(record);
        let report = Arc::new(self.completed(report));
        let files = self.last_files(&report);
        let mut unwritten = last.unwritten;
        // One that does not answer now will not do so for the next file.
        let left = match unwritten.is_empty() {
            true => files.write(self.wait),
            false => LeftFiles { state: None, lines: Vec::new(), unwritten: files.names() },
        };
        unwritten.extend(left.unwritten);
        last.lines.iter().chain(&left.lines).for_each(complain);
        unwritten_line(&unwritten, self.wait).iter().for_each(complain);
        if let Some(pipe) = left.state.flatten() {
            json(&pipe, &report).iter().for_each(complain);
        }
        report
    }

    /// Adds the last record to the file of rounds.
    fn finish_rounds(&mut self, record: &RoundRecord) -> LeftFiles<RoundsFile> {
        let none = LeftFiles { state: None, lines: Vec::new(), unwritten: Vec::new() };
        if self.rounds.is_none() {
            return none;
        }
        let record = self.noted(record);
        let Some(file) = self.rounds.take() else { return none };
        let is_said = self.is_said;
        let mut files = LastFiles::new(file);
        files.add(format!("the last record of '{ROUNDS_FILE}'"), move |file| {
            let failed = file.append_last(&record).err().filter(|_| !is_said);
            failed.map(|error| error.to_string())
        });
        let mut left = files.write(self.wait);
        self.rounds = left.state.take();
        left
    }

    /// What is written of the report. The state is the file that `--json` names if it is left to
    /// the caller: the reader of a pipe takes its time.
    fn last_files(&mut self, report: &Arc<Report>) -> LastFiles<Option<PathBuf>> {
        let mut files = LastFiles::new(None);
        if let Some(folder) = self.folder.as_ref().map(|folder| folder.path().to_path_buf()) {
            let (running, report) = (self.running.finish(), Arc::clone(report));
            let path = folder.clone();
            files.add(format!("the report in '{}'", folder.display()), move |_| {
                // Those that are made while the program runs would replace the last ones.
                running.wait();
                report.write(&path).err().map(|error| error.to_string())
            });
            let (formats, series_max) = (self.formats.clone(), self.series_max);
            if !formats.is_empty() {
                files.add(format!("the exports in '{}'", folder.display()), move |_| {
                    export(&folder, &formats, series_max)
                });
            }
        }
        if let Some(file) = self.json.clone() {
            let report = Arc::clone(report);
            files.add(format!("'{}'", file.display()), move |pipe| {
                if is_replaceable(&file) {
                    return json(&file, &report);
                }
                *pipe = Some(file);
                None
            });
        }
        files
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

/// Writes the report to the file that `--json` names; one line if that fails.
fn json(file: &Path, report: &Report) -> Option<String> {
    let written = sapwood_report::write_named(file, report.json().as_bytes());
    written.err().map(|error| format!("cannot write '{}': {error}", file.display()))
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
    use std::process::Command;

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
    fn a_file_system_that_does_not_answer_at_the_end_is_given_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let mut outputs = Outputs {
            folder: Some(OutFolder::prepare(path, &[]).expect("it may be written")),
            json: None,
            rounds: None,
            round_sums: None,
            iteration_sums: None,
            started: None,
            formats: vec![Format::Csv],
            running: RunningExports::new(&[]),
            series_max: 0,
            server: None,
            last: None,
            pace: Pace::default(),
            ends: None,
            is_said: false,
            wait: Duration::from_millis(1),
        };
        // A thread that reads it waits for a writer that does not come.
        let rounds = path.join(ROUNDS_FILE);
        assert!(Command::new("mkfifo").arg(&rounds).status().is_ok_and(|made| made.success()));
        let report = Report { rounds: 7, ..Report::default() };
        assert_eq!(outputs.finish(&RoundRecord::default(), report).rounds, 7);
        assert!(!path.join("rounds.csv").exists());
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
