//! What to measure: the arguments of `sapwood bench tree`, checked once.
//!
//! Owns the limits of a benchmark and the choice of what is the main figure where encryption is not
//! named. A [`Plan`] that exists can be carried out as far as this machine allows.

use std::time::Duration;

use sapwood_floor::process::Pinned;
use sapwood_floor::{ANSWER_PAYLOAD_BYTES_MAX, ROUNDS_MAX, Shape};

use super::tree::TreePlan;
use sapwood_command_line::exit::Failure;

/// How long one run of round trips or of streamed waves lasts, unless their number is given.
pub(super) const RUN_TARGET: Duration = Duration::from_millis(300);

/// Most runs of one experiment.
const RUNS_MAX: usize = 1001;

/// Bytes of one element of an answer.
const ELEMENT_BYTES: usize = 8;

/// What links are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    Unix,
    Tcp,
    Shm,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
            Self::Shm => "shm",
        })
    }
}

/// Whether links are encrypted after they have proved the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Encryption {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Experiment {
    #[value(name = "round_trip")]
    RoundTrip,
    Pipelined,
    Startup,
    Node,
    Pages,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Fan-out of each level: 64, 4x4x4 or 4^3.
    #[arg(long, value_name = "SHAPE", default_value = "4x4")]
    topology: Shape,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Whether links are encrypted; unless given, it is off, and for TCP the encrypted tree is
    /// measured beside the plain one.
    #[arg(long, value_name = "ON_OFF")]
    encryption: Option<Encryption>,
    /// Payload of an answer in bytes, a multiple of 8: it consists of f64s.
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,
    /// Keep all processes on one core.
    #[arg(long)]
    pin: bool,
    /// Number of pairs of runs, of Sapwood and of the baseline, for each figure.
    #[arg(long, value_name = "N", default_value_t = 11)]
    runs: usize,
    /// Only these experiments, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Round trips of one run; as many as take about 0.3 s unless given.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Streamed waves of one run; as many as take about 0.3 s unless given.
    #[arg(long, value_name = "N")]
    waves: Option<u64>,
    /// Also print the system calls of each process per round trip, beside the baseline's.
    #[arg(long)]
    explain: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// What is asked of each contender, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repetition {
    /// Payload of an answer.
    pub bytes: usize,
    /// Runs of each contender.
    pub runs: usize,
    /// Round trips of a run, if given.
    pub rounds: Option<usize>,
    /// Streamed waves of a run, if given.
    pub waves: Option<u64>,
}

/// What to measure.
pub(super) struct Plan {
    /// Sapwood's tree that the main figures are of.
    pub tree: TreePlan,
    /// Whether the same tree is also measured with encrypted links.
    pub also_encrypted: bool,
    /// Payload of an answer.
    pub bytes: usize,
    /// The core that all processes stay on.
    pub cpu: Option<usize>,
    /// Pairs of each experiment.
    pub runs: usize,
    /// Round trips of a run, if given.
    pub rounds: Option<usize>,
    /// Streamed waves of a run, if given.
    pub waves: Option<u64>,
    /// Whether the costs of a round trip are counted.
    pub explains: bool,
    only: Vec<Experiment>,
}

impl Repetition {
    /// Refuses what no contender could do.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let bytes = self.bytes;
        if bytes == 0 || !bytes.is_multiple_of(ELEMENT_BYTES) || bytes > ANSWER_PAYLOAD_BYTES_MAX {
            return Err(Failure::usage(format!(
                "--bytes {bytes}: give a multiple of 8 from 8 to {ANSWER_PAYLOAD_BYTES_MAX}"
            )));
        }
        within("--runs", self.runs as u64, RUNS_MAX as u64)?;
        // The floor warms up on top of what it counts.
        within("--rounds", self.rounds.unwrap_or(1) as u64, ROUNDS_MAX as u64 / 2)?;
        within("--waves", self.waves.unwrap_or(1), u64::from(u32::MAX))
    }
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let Arguments { bytes, runs, rounds, waves, .. } = *arguments;
        let repetition = Repetition { bytes, runs, rounds, waves };
        repetition.check()?;
        let cpu = arguments.pin.then(Pinned::first_allowed).transpose();
        let tree = TreePlan {
            shape: arguments.topology.clone(),
            transport: arguments.transport,
            is_encrypted: arguments.encryption == Some(Encryption::On),
            recovery: None,
        };
        Ok(Self {
            also_encrypted: arguments.encryption.is_none() && tree.transport == Transport::Tcp,
            tree,
            bytes,
            cpu: cpu.map_err(|error| Failure::own(&format!("cannot find a core: {error}")))?,
            runs,
            rounds,
            waves,
            explains: arguments.explain,
            only: arguments.only.clone(),
        })
    }

    pub(super) fn repetition(&self) -> Repetition {
        let Self { bytes, runs, rounds, waves, .. } = *self;
        Repetition { bytes, runs, rounds, waves }
    }

    pub(super) fn wants(&self, experiment: Experiment) -> bool {
        self.only.is_empty() || self.only.contains(&experiment)
    }
}

fn within(name: &str, value: u64, most: u64) -> Result<(), Failure> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} {value}: give a number from 1 to {most}")))
}
