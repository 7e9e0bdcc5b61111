//! Ranks of Open MPI, or of PyTorch over Gloo, as a contender.
//!
//! Each rank reads its orders from a named pipe, so that it sleeps between its turns: ranks that
//! wait inside of MPI would use the processors of the others. The pipes and the program lie in a
//! folder that is removed once all ranks are there.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sapwood_command_line::exit::Failure;

use super::super::asker::{Asker, Program, Words};
use super::super::connect::Folder;
use super::super::shim_cost::compile;
use super::{Arguments, Case, Contender};

const C_SOURCE: &str = include_str!("ranks.c");
const PYTHON_SOURCE: &str = include_str!("ranks.py");
/// What has ranks yield their processor while they wait, start as root, and keep to one thread.
const VARIABLES: [(&str, &str); 5] = [
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("GLOO_SOCKET_IFNAME", "lo"),
];

/// Whose collectives they call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    OpenMpi,
    Gloo,
}

/// The ranks of one job.
pub(super) struct Ranks {
    // Before the launcher, which ends when the ranks do: these end with their orders.
    orders: Vec<File>,
    launcher: Program,
}

impl Library {
    pub(super) const ALL: [Self; 2] = [Self::OpenMpi, Self::Gloo];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Gloo => "gloo",
        }
    }
}

impl Ranks {
    /// Starts the ranks, and waits until all are there.
    pub(super) fn start(
        arguments: &Arguments,
        library: Library,
        processes: u32,
    ) -> Result<Self, Failure> {
        let folder = Folder::create()?;
        let program = match library {
            Library::OpenMpi => {
                vec![compile(&arguments.mpicc, &folder.path, "ranks", C_SOURCE)?]
            }
            Library::Gloo => {
                let script = folder.path.join("ranks.py");
                std::fs::write(&script, PYTHON_SOURCE).map_err(|error| Failure::own(&error))?;
                vec![arguments.python.clone(), script]
            }
        };
        let orders: Result<Vec<File>, Failure> =
            (0..processes).map(|rank| pipe(&folder.path.join(rank.to_string()))).collect();
        let mut ranks =
            Self { orders: orders?, launcher: launch(arguments, processes, program, &folder)? };
        ranks.launcher.numbers()?;
        Ok(ranks)
    }
}

impl Contender for Ranks {
    fn carry_out(&mut self, case: &Case, rounds: u32) -> Result<Vec<f64>, Failure> {
        let line = format!("{} {} {rounds}\n", case.operation.name(), case.bytes);
        // A rank that has ended shows by the launcher's end.
        let written = self.orders.iter_mut().all(|order| order.write_all(line.as_bytes()).is_ok());
        self.launcher.answer(written)
    }

    fn end(self: Box<Self>) -> Result<(), Failure> {
        let Self { mut orders, launcher } = *self;
        // Ranks that do not get it end by the end of the pipe.
        orders.iter_mut().for_each(|order| {
            let _ = order.write_all(b"end\n");
        });
        drop(orders);
        Box::new(launcher).close()
    }
}

/// A named pipe, open for writing. It is open for reading as well, so that it can be opened before
/// a rank is there.
fn pipe(path: &Path) -> Result<File, Failure> {
    let failed =
        |error: std::io::Error| Failure::own(&format!("cannot make {}: {error}", path.display()));
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .map_err(|error| failed(error.into()))?;
    OpenOptions::new().read(true).write(true).open(path).map_err(failed)
}

fn launch(
    arguments: &Arguments,
    processes: u32,
    program: Vec<PathBuf>,
    folder: &Folder,
) -> Result<Program, Failure> {
    let mut words: Vec<_> = ["--oversubscribe", "--bind-to", "none", "-np"].map(Into::into).into();
    words.push(processes.to_string().into());
    words.extend(program.into_iter().map(Into::into));
    words.push(folder.path.clone().into());
    let variables = VARIABLES.map(|(name, value)| (name, value.into())).into();
    Program::start(&Words { program: arguments.mpirun.clone(), arguments: words, variables })
}
