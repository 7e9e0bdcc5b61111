//! What the monitor costs a real program: the same run with and without it, in turn.
//!
//! Owns the programs (LAMMPS, HPCC, and a loop of small reductions, on two ranks), how long they
//! run, and how they are timed, which is stated beside each figure: LAMMPS by the loop time that it
//! prints, HPCC as a whole process under `mpirun`, reductions by the median of a call. A pair is
//! one run of each, one right after the other; the figure is the median of the pairs' ratios with
//! the interval that holds the median with 95 % confidence.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use sapwood_floor::statistics::{MedianInterval, median_interval};
use serde_json::{Value, json};

use super::connect::Folder;
use super::facts::{Facts, named, verdict};
use super::processes::ended_within;
use super::progress::Progress;
use super::shim_cost::compile;
use super::tree::own_program;
use sapwood_command_line::exit::Failure;

/// Slower by at most this, with rounds by time and at every iteration.
const RATIO_MAX: f64 = 1.01;
/// The same of the median time of a small reduction.
const REDUCTION_RATIO_MAX: f64 = 1.03;
/// Steps of the run by which the length of the others is chosen.
const CALIBRATION_STEPS: u32 = 200;
/// A run may take this many times as long as it should, and a minute.
const PATIENCE_TIMES: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(60);
/// How long `mpirun` may take to end its ranks when it is told to.
const END_PATIENCE: Duration = Duration::from_secs(10);
/// The input of LAMMPS and of HPCC.
const LAMMPS_INPUT: &str = include_str!("../../../demo/in.melt");
const HPCC_INPUT: &str = include_str!("../../../bindings/mpi/tests/hpccinf.txt");
const REDUCTIONS: &str = include_str!("reductions.c");
/// Rows of HPCC's linear system in that input, and its grid of four ranks. With fewer ranks than
/// the grid has, HPCC takes an input of its own instead.
const HPCC_ROWS: &str = "64         rows";
const HPCC_GRID: &str = "2          rows of the grid\n2          columns of the grid";
/// LAMMPS calls this once in each step of this input.
const STEP_FUNCTION: &str = "MPI_Allreduce";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    /// `lmp`, a melting crystal.
    Lammps,
    /// `hpcc`, all of its parts.
    Hpcc,
    /// `MPI_Allreduce` of 8 bytes, again and again. Not with a round at each of them.
    Allreduce,
}

impl Program {
    /// What a run is timed by.
    fn timed(self) -> &'static str {
        match self {
            Self::Lammps => "loop",
            Self::Hpcc => "whole process",
            Self::Allreduce => "median call",
        }
    }

    fn ratio_max(self) -> f64 {
        match self {
            Self::Lammps | Self::Hpcc => RATIO_MAX,
            Self::Allreduce => REDUCTION_RATIO_MAX,
        }
    }

    /// What a run of this length, with this output, is timed as.
    fn figure(self, seconds: f64, output: &str) -> Option<f64> {
        match self {
            Self::Hpcc => Some(seconds),
            Self::Lammps => loop_seconds(output),
            Self::Allreduce => median_call(output),
        }
    }
}

/// When rounds are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    PerSecond,
    PerIteration,
}

impl Mode {
    const ALL: [Self; 2] = [Self::PerSecond, Self::PerIteration];

    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per_second",
            Self::PerIteration => "per_iteration",
        }
    }

    /// A round at each call of a program that does nothing else is none at an iteration.
    fn suits(self, program: Program) -> bool {
        self == Self::PerSecond || program != Program::Allreduce
    }

    fn arguments(self) -> Vec<String> {
        match self {
            Self::PerSecond => vec!["--interval".into(), "1s".into()],
            Self::PerIteration => vec!["--every".into(), format!("1:{STEP_FUNCTION}")],
        }
    }
}

/// The command line.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Programs to run with and without the monitor, separated by commas.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "lammps,hpcc,allreduce"
    )]
    perturbation_programs: Vec<Program>,
    /// How long one run of LAMMPS, and of the reductions, takes.
    #[arg(long, value_name = "S", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=3600))]
    perturbation_seconds: u32,
    /// Pairs of a run with and a run without the monitor.
    #[arg(long, value_name = "N", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=1001))]
    perturbation_pairs: u16,
    /// Ranks of the programs.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    perturbation_ranks: u16,
    /// Rows of HPCC's linear system; its time grows with their third power.
    #[arg(long, value_name = "N", default_value_t = 3000,
          value_parser = clap::value_parser!(u32).range(64..=100_000))]
    hpcc_rows: u32,
    /// Open MPI's launcher.
    #[arg(long, value_name = "PROGRAM", default_value = "mpirun")]
    mpirun: PathBuf,
}

/// Measures each program in the modes that suit it.
pub(super) fn measure(
    arguments: &Arguments,
    compiler: &Path,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    facts.heading("with the monitor over without it, time of the program itself");
    let folder = Folder::create()?;
    for mode in Mode::ALL {
        let mut rows = Vec::new();
        let programs = arguments.perturbation_programs.iter().copied();
        for program in programs.filter(|&program| mode.suits(program)) {
            let runs = Runs::prepare(program, arguments, compiler, &folder.path)?;
            let interval = runs.compare(mode, arguments.perturbation_pairs, progress)?;
            facts.heading(&line(program, mode, &interval, &runs));
            rows.push(row(program, &interval, &runs));
        }
        facts.setting(&format!("perturbation.{}", mode.name()), rows);
    }
    Ok(())
}

fn line(program: Program, mode: Mode, interval: &MedianInterval, runs: &Runs) -> String {
    let MedianInterval { median, low, high, samples } = *interval;
    let most = program.ratio_max();
    let verdict = verdict(interval, most);
    format!(
        "  {:<9} {:<14} {median:.4} ({low:.4} to {high:.4}, {samples} pairs, {} of {:.1} s), at \
         most {most}: {verdict}",
        named(program),
        mode.name(),
        program.timed(),
        runs.seconds,
    )
}

fn row(program: Program, interval: &MedianInterval, runs: &Runs) -> Value {
    let MedianInterval { median, low, high, samples } = *interval;
    json!({
        "program": named(program),
        "ratio": median,
        "low": low,
        "high": high,
        "pairs": samples,
        "timed": program.timed(),
        "seconds": runs.seconds,
    })
}

/// Runs of one program.
struct Runs {
    /// The launcher and the program.
    command: Vec<String>,
    sapwood: PathBuf,
    folder: PathBuf,
    program: Program,
    /// How long a run without the monitor took at first.
    seconds: f64,
}

impl Runs {
    fn prepare(
        program: Program,
        arguments: &Arguments,
        compiler: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let launcher = [text(&arguments.mpirun), "-np".into()];
        let mut command = launcher.to_vec();
        command.push(arguments.perturbation_ranks.to_string());
        let sapwood = own_program()?.with_file_name("sapwood");
        let folder = folder.to_path_buf();
        let mut runs = Self { command, sapwood, folder, program, seconds: 0.0 };
        match program {
            Program::Lammps => {
                runs.write("in.melt", LAMMPS_INPUT)?;
                let words = ["lmp", "-in", "in.melt", "-log", "none", "-var", "steps"];
                runs.command.extend(words.map(str::to_owned));
                runs.command.push(CALIBRATION_STEPS.to_string());
                let limit = PATIENCE_TIMES * PATIENCE;
                let each = runs.time(&[], limit)? / f64::from(CALIBRATION_STEPS);
                runs.command.pop();
                let steps = f64::from(arguments.perturbation_seconds) / each;
                runs.command.push(format!("{:.0}", steps.max(1.0)));
            }
            Program::Hpcc => {
                let input = hpcc_input(arguments.hpcc_rows, arguments.perturbation_ranks);
                runs.write("hpccinf.txt", &input)?;
                runs.command.push("hpcc".to_owned());
            }
            Program::Allreduce => {
                let compiled = compile(compiler, &runs.folder, "reductions", REDUCTIONS)?;
                let seconds = arguments.perturbation_seconds;
                runs.command.extend([text(&compiled), seconds.to_string()]);
                runs.seconds = f64::from(seconds);
                return Ok(runs);
            }
        }
        runs.seconds = runs.time(&[], PATIENCE_TIMES * PATIENCE)?;
        Ok(runs)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        std::fs::write(self.folder.join(name), text)
            .map_err(|error| Failure::own(&format!("cannot write {name}: {error}")))
    }

    /// The ratios of pairs, condensed.
    fn compare(
        &self,
        mode: Mode,
        pairs: u16,
        progress: &mut Progress,
    ) -> Result<MedianInterval, Failure> {
        let limit = PATIENCE + PATIENCE_TIMES * Duration::from_secs_f64(self.seconds);
        let words = ["mpi", "--quiet", "--out", "report"].map(str::to_owned);
        let monitor: Vec<String> =
            words.into_iter().chain(mode.arguments()).chain(["--".to_owned()]).collect();
        let mut ratios = Vec::new();
        for pair in 0..pairs {
            let what = format!("{} {}", named(self.program), mode.name());
            progress.say(&what, pair.into(), pairs.into());
            let (with, without);
            if pair % 2 == 0 {
                without = self.time(&[], limit)?;
                with = self.time(&monitor, limit)?;
            } else {
                with = self.time(&monitor, limit)?;
                without = self.time(&[], limit)?;
            }
            ratios.push(with / without);
        }
        median_interval(&ratios).ok_or_else(|| Failure::own(&"no pairs"))
    }

    /// The figure of one run, with what stands before the launcher.
    fn time(&self, monitor: &[String], limit: Duration) -> Result<f64, Failure> {
        let mut words = monitor.iter().chain(&self.command);
        let first = if monitor.is_empty() {
            PathBuf::from(words.next().map_or("mpirun", String::as_str))
        } else {
            self.sapwood.clone()
        };
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Failure::own(&format!("{}: {what}: {error}", self.command.join(" ")))
        };
        let output = self.folder.join("output");
        let file = File::create(&output).map_err(|error| failed("output", &error))?;
        let errors = self.folder.join("errors");
        let error_file = File::create(&errors).map_err(|error| failed("errors", &error))?;
        let begin = Instant::now();
        let mut command = Command::new(first);
        command.args(words).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(file).stderr(error_file);
        let child = command.spawn().map_err(|error| failed("cannot start", &error))?;
        let status = wait(child, limit).map_err(|error| failed("cannot wait", &error))?;
        let seconds = begin.elapsed().as_secs_f64();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        match status {
            None => return Err(failed("no end", &format!("within {} s", limit.as_secs()))),
            Some(status) if !status.success() => {
                let said = read(&errors);
                return Err(failed(&status.to_string(), &said.lines().next().unwrap_or("")));
            }
            Some(_) => {}
        }
        let figure = self.program.figure(seconds, &read(&output));
        figure.ok_or_else(|| failed("output", &"no line with its time"))
    }
}

/// Waits for a run; nothing if it took too long and was ended.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    if let Some(status) = ended_within(&mut child, limit)? {
        return Ok(Some(status));
    }
    // A launcher that is killed outright leaves its ranks behind.
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    if ended_within(&mut child, END_PATIENCE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}

/// What LAMMPS says of the time of its loop.
fn loop_seconds(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("Loop time of "))?;
    line.split(' ').next()?.parse().ok()
}

/// HPCC's input for these rows and ranks.
fn hpcc_input(rows: u32, ranks: u16) -> String {
    let grid = format!("{:<10} rows of the grid\n{ranks:<10} columns of the grid", 1);
    HPCC_INPUT.replace(HPCC_ROWS, &format!("{rows:<10} rows")).replace(HPCC_GRID, &grid)
}

/// What the loop of reductions says of the median of its calls, in nanoseconds.
fn median_call(output: &str) -> Option<f64> {
    output.lines().find_map(|line| line.strip_prefix("median call of ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lammps_says_how_long_its_loop_took() {
        let output = "Setting up\nLoop time of 12.5 on 2 procs for 100 steps with 4000 atoms\n";
        assert_eq!(loop_seconds(output), Some(12.5));
        assert_eq!(loop_seconds("ERROR: no potential\n"), None);
    }

    #[test]
    fn reductions_say_their_median_and_have_no_rounds_of_their_own() {
        assert_eq!(median_call("a warning of MPI\nmedian call of 812.25\n"), Some(812.25));
        assert_eq!(median_call("median call of nothing\n"), None);
        assert!(REDUCTIONS.contains("median call of "));
        assert!(Mode::PerSecond.suits(Program::Allreduce));
        assert!(!Mode::PerIteration.suits(Program::Allreduce));
        assert!(Mode::PerIteration.suits(Program::Hpcc));
    }

    #[test]
    fn the_input_of_hpcc_has_its_rows_and_a_grid_of_all_ranks() {
        let input = hpcc_input(3000, 2);
        let lines: Vec<&str> = input.lines().collect();
        for line in
            ["3000       rows", "1          rows of the grid", "2          columns of the grid"]
        {
            assert!(lines.contains(&line), "{input}");
        }
        assert_eq!(lines.len(), HPCC_INPUT.lines().count());
    }
}
