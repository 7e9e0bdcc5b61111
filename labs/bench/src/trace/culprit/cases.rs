//! The programs, the kinds of faults, and how a fault comes into a program.
//!
//! Owns [`FaultKind`], [`Target`] and the command line of a program with its fault. The signals
//! come from outside; all other faults are in the program itself (`solver.py`, `training.py`), and
//! in front of the MPI library of LAMMPS, which is as the distribution has it (`fault.c`).

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use sapwood_command_line::exit::Failure;
use sapwood_random::{Random, mix};

use super::super::super::shim_cost::compile_with;

const MELT: &str = include_str!("melt.in");
const SOLVER: &str = include_str!("solver.py");
const TRAINING: &str = include_str!("training.py");
const FAULT: &str = include_str!("fault.c");

/// Runs LAMMPS with the library of the fault in front of all that is preloaded already.
const IN_FRONT: &str = r#"LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}" exec "$@""#;
/// Messages over the sockets that a slow link delays.
const OVER_TCP: [&str; 6] = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"];
/// The steps, or for LAMMPS the calls of `MPI_Allreduce`, of which one has the fault.
const STEPS: (u64, u64) = (40, 80);
/// A signal comes this long after the step at most, in milliseconds.
const SIGNAL_DELAY_MS_MAX: u64 = 200;

/// What goes wrong in one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// It computes longer than the others in each step.
    SlowCompute,
    /// What it sends over its sockets leaves slowly.
    SlowLink,
    /// SIGSTOP.
    Stopped,
    /// SIGKILL.
    Killed,
    /// It calls another collective than the others, once.
    OtherOperation,
    /// It gives another root than the others, once.
    OtherRoot,
    /// It computes without end.
    EndlessLoop,
    /// It tests or probes without end for a message that is never sent.
    PollingLoop,
    /// It gives one element more than the others to a reduction, so that MPI ends the program.
    OtherCount,
}

/// When the answer to a kind of fault is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// At the deadline after the fault, in a verdict.
    Verdict,
    /// At the end of the program, which the fault brings.
    Death,
    /// When the program is ended, after it was watched for some seconds.
    End,
}

impl FaultKind {
    pub(super) fn due(self) -> Due {
        match self {
            Self::SlowCompute | Self::SlowLink => Due::End,
            Self::Killed | Self::OtherCount => Due::Death,
            _ => Due::Verdict,
        }
    }
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Target {
    /// A melting crystal by LAMMPS, unmodified.
    Lammps,
    /// A Jacobi solver over mpi4py.
    Solver,
    /// A model that is trained by torch.distributed over gloo.
    Training,
}

impl Target {
    /// Why a kind of fault is not put into it.
    pub(super) fn excludes(self, kind: FaultKind) -> Option<&'static str> {
        match (self, kind) {
            (Self::Lammps, FaultKind::OtherRoot) => {
                Some("LAMMPS calls no collective with a root while it computes")
            }
            (Self::Training, FaultKind::OtherCount) => {
                Some("sapwood.torch does not record how much data is given")
            }
            _ => None,
        }
    }
}

/// One run: of a program with a fault, or without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) program: Target,
    pub(super) kind: Option<FaultKind>,
    /// The rank that has the fault.
    pub(super) rank: u32,
    /// In which step, or call of LAMMPS.
    pub(super) step: u32,
    /// How long after it a signal comes.
    pub(super) delay_ms: u64,
    /// Whether MPI's messages go over sockets.
    pub(super) is_over_tcp: bool,
}

impl Case {
    /// The trial of this number; rank and moment are drawn from the seed.
    pub(super) fn faulty(program: Target, kind: FaultKind, draw: &Draw) -> Self {
        let place = ((program as u64) << 40) | ((kind as u64) << 32) | u64::from(draw.trial);
        let mut random = Random::new(mix(draw.seed) ^ mix(place));
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            program,
            kind: Some(kind),
            rank: number(random.below(u64::from(draw.ranks))),
            step: number(random.between(STEPS.0, STEPS.1)),
            delay_ms: random.below(SIGNAL_DELAY_MS_MAX),
            is_over_tcp: kind == FaultKind::SlowLink,
        }
    }

    /// A run without a fault; each second one has its messages over sockets.
    pub(super) fn clean(program: Target, number: u32) -> Self {
        let step = STEPS.0 as u32;
        let is_over_tcp = number % 2 == 1;
        Self { program, kind: None, rank: 0, step, delay_ms: 0, is_over_tcp }
    }
}

/// Of what the rank and the moment of a fault are drawn.
pub(super) struct Draw {
    pub(super) seed: u64,
    pub(super) ranks: u16,
    pub(super) trial: u32,
}

/// The programs as files of a folder, and what runs them.
pub(super) struct Targets<'a> {
    pub(super) mpirun: &'a Path,
    pub(super) python: &'a Path,
    pub(super) lammps: &'a Path,
    pub(super) ranks: u16,
    /// Where the files are.
    pub(super) folder: &'a Path,
}

impl Targets<'_> {
    /// Writes the files.
    pub(super) fn write(&self, mpicc: &Path) -> Result<(), Failure> {
        for (name, text) in [("melt.in", MELT), ("solver.py", SOLVER), ("training.py", TRAINING)] {
            std::fs::write(self.folder.join(name), text).map_err(|error| Failure::own(&error))?;
        }
        compile_with(mpicc, &["-shared", "-fPIC"], self.folder, "fault", FAULT)?;
        Ok(())
    }

    /// Why a program cannot be run here.
    pub(super) fn lacks(&self, program: Target) -> Option<String> {
        let (file, words): (&Path, &[&str]) = match program {
            Target::Lammps => (self.lammps, &["-h"]),
            Target::Solver => (self.python, &["-c", "import numpy, mpi4py"]),
            Target::Training => (self.python, &["-c", "import torch, sapwood.torch"]),
        };
        let mut command = Command::new(file);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        match command.output() {
            Ok(done) if done.status.success() => None,
            Ok(done) => {
                let errors = String::from_utf8_lossy(&done.stderr);
                let last = errors.lines().last().unwrap_or("it fails");
                Some(format!("{}: {last}", file.display()))
            }
            Err(error) => Some(format!("{}: {error}", file.display())),
        }
    }

    /// The words that start the program of a case, whose files are in a folder of its own.
    pub(super) fn command(&self, case: &Case, own: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.mpirun.into(), "--oversubscribe".into()];
        words.extend(["-np".into(), self.ranks.to_string().into()]);
        if case.is_over_tcp {
            words.extend(OVER_TCP.map(OsString::from));
        }
        let file = |name: &str| self.folder.join(name).into_os_string();
        match case.program {
            Target::Lammps => {
                if inside(case).is_some() {
                    words.extend(["sh", "-c", IN_FRONT].map(OsString::from));
                    words.push(file("fault"));
                }
                words.extend([self.lammps.into(), "-in".into(), file("melt.in")]);
                words.extend(["-log".into(), own.join("steps").into()]);
                return words;
            }
            Target::Solver => words.extend([self.python.into(), file("solver.py")]),
            Target::Training => {
                let module = ["-m", "sapwood.torch"].map(OsString::from);
                words.push(self.python.into());
                words.extend(module);
                words.push(file("training.py"));
            }
        }
        words.push(own.into());
        if let Some(kind) = inside(case) {
            let numbers = [case.rank, case.step].map(|number| number.to_string().into());
            words.push(kind.into());
            words.extend(numbers);
        }
        words
    }

    /// What `fault.c` reads.
    pub(super) fn settings(&self, case: &Case, own: &Path) -> Vec<(&'static str, OsString)> {
        let Some(kind) = inside(case) else { return Vec::new() };
        vec![
            ("FAULT_KIND", kind.into()),
            ("FAULT_RANK", case.rank.to_string().into()),
            ("FAULT_CALL", case.step.to_string().into()),
            ("FAULT_FOLDER", own.into()),
        ]
    }
}

/// The name of a fault that comes from inside the program.
pub(super) fn inside(case: &Case) -> Option<String> {
    let kind = case.kind.filter(|kind| !matches!(kind, FaultKind::Stopped | FaultKind::Killed))?;
    Some(super::super::super::facts::named(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_rank_and_moment_again() {
        let of = |seed, trial| {
            let draw = Draw { seed, ranks: 8, trial };
            let case = Case::faulty(Target::Solver, FaultKind::Stopped, &draw);
            (case.rank, case.step, case.delay_ms)
        };
        assert_eq!(of(1, 0), of(1, 0));
        let all: std::collections::BTreeSet<u32> = (0..100).map(|trial| of(1, trial).0).collect();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        assert!((0..100).any(|trial| of(1, trial) != of(2, trial)));
    }
}
