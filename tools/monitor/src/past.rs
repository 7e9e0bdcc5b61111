//! What is done with runs that were watched before: `sapwood mpi export` and `sapwood mpi diff`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sapwood_command_line::exit::{Failure, OWN_FAILURE, complain, print};
use sapwood_export::difference::Difference;
use sapwood_export::{Format, Run, openmetrics};
use sapwood_report::Profile;

/// Commands that do not watch a program.
#[derive(Clone, clap::Subcommand)]
pub(crate) enum Past {
    /// Show a finished run again, round by round, in a browser or in the terminal.
    Replay(super::replay::ReplayArguments),
    /// Write the data of a run in the formats of other tools.
    Export(Export),
    /// Print what changed between two runs.
    Diff(Diff),
}

/// The arguments of `sapwood mpi export`.
#[derive(Clone, clap::Args)]
pub(crate) struct Export {
    /// The folder that --out named; the run may still be going on.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Formats, separated by commas: openmetrics, parquet, csv, caliper (or hatchet), perfetto,
    /// otlp, html, tau.
    #[arg(long, value_name = "FORMATS", required = true, value_delimiter = ',',
          value_parser = Format::named)]
    to: Vec<Format>,
    /// Write to this folder instead of the run's own.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write at most N series as OpenMetrics.
    #[arg(long, value_name = "N", default_value_t = openmetrics::SERIES_DEFAULT,
          value_parser = clap::value_parser!(u32).range(i64::from(openmetrics::SERIES_MIN)..=10_000_000))]
    series_max: u32,
}

/// The arguments of `sapwood mpi diff`.
#[derive(Clone, clap::Args)]
pub(crate) struct Diff {
    /// Folder of the earlier run, or its profile.json.
    #[arg(value_name = "RUN1")]
    before: PathBuf,
    /// Folder of the later run, or its profile.json.
    #[arg(value_name = "RUN2")]
    after: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Past {
    /// Does it.
    ///
    /// # Errors
    /// [`Failure`] that names the file.
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Replay(replay) => super::replay::run(replay),
            Self::Export(export) => export.run(),
            Self::Diff(diff) => diff.run().map(|()| ExitCode::SUCCESS),
        }
    }
}

impl Export {
    /// Rounds that cannot be read are left out; the exit code says so.
    fn run(&self) -> Result<ExitCode, Failure> {
        let run = Run::read(&self.folder).map_err(Failure::usage)?;
        let to = self.out.as_ref().unwrap_or(&self.folder);
        let files = run.export(&self.to, to, self.series_max as usize);
        let mut text = String::new();
        for file in files.map_err(|error| Failure::own(&error))? {
            text += &format!("{}\n", file.display());
        }
        print(&text)?;
        let Some(partial) = run.partial_line() else { return Ok(ExitCode::SUCCESS) };
        complain(partial);
        Ok(ExitCode::from(OWN_FAILURE))
    }
}

impl Diff {
    fn run(&self) -> Result<(), Failure> {
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let (one, two) = (self.before.to_string_lossy(), self.after.to_string_lossy());
        let difference = Difference::between((&one, &before), (&two, &after));
        print(&if self.json { difference.json() } else { difference.text() })
    }
}

fn read(path: &Path) -> Result<Profile, Failure> {
    if path.is_file() {
        return Profile::read(path).map_err(Failure::usage);
    }
    Run::read(path).map(|run| run.profile).map_err(Failure::usage)
}
