//! `sapwood bench collectives`: collectives of peers on this host, Sapwood's groups beside Open MPI
//! and Gloo in the same run.
//!
//! Owns the command line, the order of what is measured and what comes of it. `members` is a group
//! of Sapwood, `ranks` are the processes of Open MPI or PyTorch that `ranks.c` and `ranks.py` are,
//! `rows` condenses times and prints them.
//!
//! For each number of processes all contenders stand at once and take turns; none uses a processor
//! outside of its turn.

mod members;
mod ranks;
mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::median;
use sapwood_group_tool::bytes;

use super::facts::Facts;
use super::pairs::turns;
use super::progress::Progress;
use members::Carrier;
use ranks::Library;
use rows::{Row, Rows};

/// What a turn takes about, in nanoseconds, where that is within the bounds of its rounds.
const TURN_NS: f64 = 1.5e8;
const ROUNDS: (f64, f64) = (3.0, 2_000.0);
/// Rounds before the first turn, which find how many fit.
const TRIAL_ROUNDS: u32 = 4;
/// The exit code where a value was wrong or a contender failed.
const WRONG: u8 = 1;

/// A collective that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Operation {
    /// From the root's begin until the last other process has the value.
    Broadcast,
    /// Sums of i64s, from the last process's begin until the last one has the result.
    Allreduce,
    /// The same without a value.
    Barrier,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Numbers of processes.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4,8,16",
          value_parser = clap::value_parser!(u32).range(2..=64))]
    processes: Vec<u32>,
    /// Lengths of values, multiples of 8.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8,1K,32K,1M,16M",
          value_parser = length)]
    bytes: Vec<usize>,
    /// Only these operations, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Operation>,
    /// Number of turns of each implementation in each case.
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u16).range(1..=1001))]
    turns: u16,
    /// The compiler of the MPI that is compared.
    #[arg(long, value_name = "PROGRAM", default_value = "mpicc")]
    mpicc: PathBuf,
    /// The launcher of that MPI, which also starts Gloo's ranks.
    #[arg(long, value_name = "PROGRAM", default_value = "mpirun")]
    mpirun: PathBuf,
    /// A Python with PyTorch.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/bin/python3")]
    python: PathBuf,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// One operation with one length of values, at as many processes.
#[derive(Clone, Copy, Debug)]
struct Case {
    operation: Operation,
    processes: u32,
    /// None of a barrier.
    bytes: usize,
}

/// What takes turns.
trait Contender {
    /// Carries out the operation as often; the nanoseconds of each round. Every process has checked
    /// every value.
    fn carry_out(&mut self, case: &Case, rounds: u32) -> Result<Vec<f64>, Failure>;

    /// Ends its processes.
    fn end(self: Box<Self>) -> Result<(), Failure>;
}

/// A contender's place in the table. One that has failed is not asked again.
struct Entry {
    name: &'static str,
    contender: Option<Box<dyn Contender>>,
}

/// Measures; the code says whether every value was right.
pub(super) fn measure(arguments: &Arguments) -> Result<(Facts, ExitCode), Failure> {
    let mut rows = Rows::new(arguments);
    let mut progress = Progress::new();
    for processes in &arguments.processes {
        let mut entries = start(arguments, *processes, &mut rows, &mut progress)?;
        for case in arguments.cases(*processes) {
            let row = compare(arguments, case, &mut entries, &mut rows, &mut progress);
            rows.add(row);
        }
        for entry in entries {
            if let Some(Err(failure)) = entry.contender.map(Contender::end) {
                rows.fault(entry.name, *processes, &failure);
            }
        }
    }
    drop(progress);
    let code = if rows.is_right() { ExitCode::SUCCESS } else { ExitCode::from(WRONG) };
    Ok((rows.into_facts(), code))
}

impl Arguments {
    fn wants(&self, operation: Operation) -> bool {
        self.only.is_empty() || self.only.contains(&operation)
    }

    fn cases(&self, processes: u32) -> Vec<Case> {
        let mut cases = Vec::new();
        for operation in [Operation::Broadcast, Operation::Allreduce] {
            if self.wants(operation) {
                cases.extend(self.bytes.iter().map(|&bytes| Case { operation, processes, bytes }));
            }
        }
        if self.wants(Operation::Barrier) {
            cases.push(Case { operation: Operation::Barrier, processes, bytes: 0 });
        }
        cases
    }
}

/// Starts all contenders with this number of processes.
fn start(
    arguments: &Arguments,
    processes: u32,
    rows: &mut Rows,
    progress: &mut Progress,
) -> Result<Vec<Entry>, Failure> {
    progress.say(&format!("{processes} processes of each kind start"), 0, 1);
    let mut entries = Vec::new();
    for carrier in Carrier::ALL {
        let group = members::Members::start(carrier, processes)?;
        entries.push(Entry { name: carrier.name(), contender: Some(Box::new(group)) });
    }
    for library in Library::ALL {
        let contender: Option<Box<dyn Contender>> =
            match ranks::Ranks::start(arguments, library, processes) {
                Ok(ranks) => Some(Box::new(ranks)),
                Err(failure) => {
                    rows.missing(library.name(), &failure);
                    None
                }
            };
        entries.push(Entry { name: library.name(), contender });
    }
    Ok(entries)
}

/// All turns of one case.
fn compare(
    arguments: &Arguments,
    case: Case,
    entries: &mut [Entry],
    rows: &mut Rows,
    progress: &mut Progress,
) -> Row {
    let mut row = Row::new(case, entries.iter().map(|entry| entry.name));
    let rounds: Vec<u32> = entries.iter_mut().map(|entry| rounds_of(&case, entry, rows)).collect();
    for turn in 0..arguments.turns.into() {
        progress.say(&case.name(), turn, arguments.turns.into());
        let mut seen = vec![None; entries.len()];
        for which in turns(turn, entries.len()) {
            let times = entries[which].carry_out(&case, rounds[which], rows);
            seen[which] = times.and_then(|times| median(&times));
        }
        row.note(&seen);
    }
    row
}

/// As many rounds as fit into a turn.
fn rounds_of(case: &Case, entry: &mut Entry, rows: &mut Rows) -> u32 {
    let times = entry.carry_out(case, TRIAL_ROUNDS, rows);
    let one = times.and_then(|times| median(&times)).unwrap_or(TURN_NS);
    (TURN_NS / one.max(1.0)).clamp(ROUNDS.0, ROUNDS.1) as u32
}

impl Entry {
    /// The times of a turn. A failure is noted, and ends the contender.
    fn carry_out(&mut self, case: &Case, rounds: u32, rows: &mut Rows) -> Option<Vec<f64>> {
        match self.contender.as_mut()?.carry_out(case, rounds) {
            Ok(times) => Some(times),
            Err(failure) => {
                rows.fault(self.name, case.processes, &failure);
                self.contender = None;
                None
            }
        }
    }
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Allreduce => "allreduce",
            Self::Barrier => "barrier",
        }
    }
}

impl Case {
    fn name(&self) -> String {
        let Self { operation, processes, bytes } = self;
        let name = operation.name();
        match operation {
            Operation::Barrier => format!("{name}, {processes} processes"),
            _ => format!("{name} of {bytes} bytes, {processes} processes"),
        }
    }
}

/// The length of a value of i64s.
fn length(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        0 => Err("give at least 8 bytes".to_string()),
        length if length % 8 != 0 => Err(format!("{length} is no multiple of 8")),
        length => Ok(length),
    }
}
