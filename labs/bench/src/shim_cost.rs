//! What the monitor's shim costs a call of MPI: the same loop with and without it, in turn.
//!
//! Owns the program, which is compiled by the compiler of the MPI that is measured, and the figure:
//! for each function the median over pairs of the difference in nanoseconds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sapwood_floor::statistics::{Spread, median};
use serde_json::json;

use super::connect::Folder;
use super::facts::{Bar, Facts, look};
use super::progress::Progress;
use sapwood_command_line::exit::Failure;
use sapwood_monitor::shim::folders;

/// Nanoseconds of a call, calls in progress included.
const COST: Bar = Bar::Most(20.0);
/// The shim that is measured unless another is named.
const SHIM: &str = "libsapwood-mpi-openmpi.so";
const SOURCE: &str = include_str!("../../../bindings/mpi/tests/call_cost.c");
/// What the program times, in the order of its columns.
const FUNCTIONS: [&str; 2] = ["MPI_Comm_rank", "MPI_Allreduce"];
/// Calls of a batch, and batches of a process, of which the quickest counts: the others were
/// disturbed.
const CALLS: &str = "300000";
const BATCHES: &str = "5";

/// The command line.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// The compiler of the MPI whose calls are timed.
    #[arg(long, value_name = "PROGRAM", default_value = "mpicc")]
    pub(super) mpicc: PathBuf,
    /// The shim for that MPI; the one for Open MPI that `sapwood mpi` takes unless given.
    #[arg(long, value_name = "FILE")]
    shim: Option<PathBuf>,
    /// Pairs of a process with the shim and one without.
    #[arg(long, value_name = "N", default_value_t = 15,
          value_parser = clap::value_parser!(u16).range(1..=1001))]
    shim_pairs: u16,
}

/// Measures.
pub(super) fn measure(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let folder = Folder::create()?;
    let shim = shim(arguments.shim.as_deref())?;
    let program = compile(&arguments.mpicc, &folder.path, "call_cost", SOURCE)?;
    let mut costs: [Vec<f64>; 2] = Default::default();
    for pair in 0..arguments.shim_pairs {
        progress.say("shim", pair.into(), arguments.shim_pairs.into());
        let mut times = [[0.0; 2]; 2];
        for turn in 0..2 {
            let has_shim = (pair + turn) % 2 == 0;
            let shim = has_shim.then_some(&*shim);
            times[usize::from(has_shim)] = run(&program, shim, &folder.path)?;
        }
        for (column, costs) in costs.iter_mut().enumerate() {
            costs.push(times[1][column] - times[0][column]);
        }
    }
    facts.heading("what the shim adds to a call, in one process");
    let mut all = Vec::new();
    for (name, costs) in FUNCTIONS.iter().zip(&costs) {
        let spread = Spread::of(costs).ok_or_else(|| Failure::own(&"no pairs"))?;
        let label = if *name == FUNCTIONS[0] { "  MPI_Comm_rank" } else { "  MPI_Allreduce" };
        facts.spread(&format!("shim.{name}.ns"), look(label, "ns", 1), &spread, None);
        all.extend(median(costs));
    }
    let worst = all.iter().copied().fold(0.0, f64::max);
    facts.number("shim.ns_per_call", look("the dearer of both", "ns", 1), worst, Some(COST));
    facts.setting("shim.compiler", json!(arguments.mpicc.to_string_lossy()));
    Ok(())
}

/// The shim of that name, or the one that `sapwood mpi` takes for Open MPI.
pub(super) fn shim(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let found = || folders().into_iter().map(|folder| folder.join(SHIM)).find(|file| file.exists());
    let shim = named.map(Path::to_path_buf).or_else(found).filter(|file| file.exists());
    shim.ok_or_else(|| Failure::own(&"no shim: build it, or name it by --shim"))
}

/// Compiles a program of one file into a folder.
pub(super) fn compile(
    compiler: &Path,
    folder: &Path,
    name: &str,
    text: &str,
) -> Result<PathBuf, Failure> {
    compile_with(compiler, &[], folder, name, text)
}

/// The same with more options of the compiler.
pub(super) fn compile_with(
    compiler: &Path,
    options: &[&str],
    folder: &Path,
    name: &str,
    text: &str,
) -> Result<PathBuf, Failure> {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, text).map_err(|error| Failure::own(&error))?;
    let mut command = Command::new(compiler);
    let done = command.arg("-O2").args(options).arg(&source).arg("-o").arg(&program).output();
    let done = done.map_err(|error| {
        Failure::own(&format!("cannot run the compiler {}: {error}", compiler.display()))
    })?;
    if done.status.success() {
        return Ok(program);
    }
    Err(Failure::own(&String::from_utf8_lossy(&done.stderr).trim()))
}

/// Nanoseconds of a call of each function.
fn run(program: &Path, shim: Option<&Path>, folder: &Path) -> Result<[f64; 2], Failure> {
    let mut command = Command::new(program);
    command.args([CALLS, BATCHES]).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    if let Some(shim) = shim {
        command.env("LD_PRELOAD", shim).env("SAPWOOD_MPI_DUMP_DIR", folder);
    }
    let done = command.output().map_err(|error| Failure::own(&error))?;
    let output = String::from_utf8_lossy(&done.stdout);
    let rows: Vec<[f64; 2]> = output.lines().filter_map(row).collect();
    if !done.status.success() || rows.is_empty() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(Failure::own(&format!("the timed program: {}: {}", done.status, said.trim())));
    }
    let least = |column: usize| rows.iter().map(|row| row[column]).fold(f64::MAX, f64::min);
    Ok([least(0), least(1)])
}

fn row(line: &str) -> Option<[f64; 2]> {
    let mut numbers = line.split(' ').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}
