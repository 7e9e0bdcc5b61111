//! What is to be watched and how: the user's wishes, checked before anything starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Arguments;
use super::command_line::{JobCommand, JobProgram};
use super::leaves::{Leaves, Wishes};
use super::linkage::{Abi, Flavour, Linkage};
use super::shim;
use sapwood_command_line::exit::Failure;

/// A program that can be watched.
#[derive(Debug)]
pub(crate) struct Job {
    /// The command, word by word.
    pub(crate) command: Vec<OsString>,
    /// What is started: the launcher, or the program itself.
    pub(crate) starter: PathBuf,
    /// The program's name for people.
    pub(crate) program: String,
    /// The MPI for people, as `Open MPI 4.1.4`.
    pub(crate) mpi: String,
    /// The shim that is preloaded.
    pub(crate) shim: PathBuf,
    /// The leaves that will be asked.
    pub(crate) leaves: Leaves,
    /// How many ranks the program has, if the command says so. What `MPI_Init` says counts.
    pub(crate) ranks: Option<u32>,
}

impl Job {
    /// Checks everything that can be known before the program starts.
    ///
    /// # Errors
    /// [`Failure`] of bad input: missing program, wrong MPI, no MPI at all, no number of ranks.
    pub(crate) fn read(arguments: &Arguments) -> Result<Self, Failure> {
        let command = JobCommand::parse(&arguments.command).map_err(Failure::usage)?;
        if command.programs.is_empty() {
            return Err(Failure::usage(no_program(&command)));
        }
        let first = Path::new(&arguments.command[0]);
        let starter = sapwood_launch::locate(first).map_err(Failure::usage)?;
        let flavour = command.launcher.as_ref().and_then(|_| Flavour::of(&starter));
        let mut abi = arguments.mpi;
        if abi.is_none() {
            for program in &command.programs {
                abi = Some(abi_of(program, &command, flavour.as_ref(), abi)?);
            }
        }
        if let (None, None, Some(ranks @ 2..)) =
            (&command.launcher, arguments.mpi, arguments.ranks.map(u32::from))
        {
            return Err(Failure::usage(no_launcher(ranks, &arguments.command)));
        }
        let abi = abi.expect("a command without programs was refused");
        let shim = shim::find(abi).map_err(Failure::usage)?;
        let ranks = arguments.ranks.map(u32::from).or(command.ranks);
        let wishes = Wishes {
            ranks_per_leaf: arguments.ranks_per_leaf.map(u32::from),
            fan_out: arguments.fan_out.into(),
            topology: arguments.topology.as_ref(),
            is_guess: ranks.is_none(),
        };
        let version = flavour.filter(|known| known.abi == abi).map(|known| known.version);
        let mpi = format!("{} {}", abi.name(), version.unwrap_or_default());
        Ok(Self {
            starter,
            program: names(&command.programs),
            mpi: mpi.trim_end().to_string(),
            shim,
            leaves: Leaves::plan(ranks.unwrap_or_else(usual_ranks), &wishes)
                .map_err(Failure::usage)?,
            ranks,
            command: arguments.command.clone(),
        })
    }
}

/// The ABI of one program of the command, which must be that of the others and of the launcher.
fn abi_of(
    program: &JobProgram,
    command: &JobCommand,
    flavour: Option<&Flavour>,
    others: Option<Abi>,
) -> Result<Abi, Failure> {
    let path = locate(program, command)?;
    let shown = path.display();
    let launcher = flavour.map(|flavour| flavour.abi);
    let abi = match Linkage::of(&path).map_err(Failure::usage)? {
        Linkage::Mpi(abi) => abi,
        Linkage::Open => launcher.ok_or_else(|| {
            Failure::usage(format!(
                "whether '{shown}' runs on Open MPI or MPICH cannot be detected; name it with --mpi"
            ))
        })?,
        Linkage::Static => {
            return Err(Failure::usage(format!(
                "'{shown}' is statically linked and cannot be observed; link MPI dynamically"
            )));
        }
        Linkage::Without => {
            return Err(Failure::usage(format!(
                "'{shown}' is not an MPI program: it is linked to no MPI library; if it loads \
                 one while it runs, name it with --mpi"
            )));
        }
    };
    if let Some(launcher) = launcher.filter(|&launcher| launcher != abi) {
        let written = command.launcher.as_deref().unwrap_or(Path::new("")).display();
        return Err(Failure::usage(format!(
            "wrong MPI: '{shown}' is linked to {}, but '{written}' is {}'s; start it with \
             mpirun.{}",
            abi.name(),
            launcher.name(),
            abi.suffix()
        )));
    }
    match others.filter(|&other| other != abi) {
        None => Ok(abi),
        Some(other) => Err(Failure::usage(format!(
            "wrong MPI: '{shown}' is linked to {}, the program before it to {}",
            abi.name(),
            other.name()
        ))),
    }
}

/// The program's file: as the launcher will find it, in the folder that it enters.
fn locate(program: &JobProgram, command: &JobCommand) -> Result<PathBuf, Failure> {
    let inside = program.directory.as_ref().map(|folder| folder.join(&program.program));
    if let Some(found) = inside.and_then(|path| sapwood_launch::locate(&path).ok()) {
        return Ok(found);
    }
    sapwood_launch::locate(&program.program).map_err(|error| {
        let hint = command.unknown_option.as_ref();
        let hint = hint.map_or_else(String::new, |option| {
            format!("; or it is the argument of '-{option}', an option that is not known here")
        });
        Failure::usage(format!("{error}{hint}"))
    })
}

fn no_launcher(ranks: u32, command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let command = words.join(" ");
    format!(
        "'{}' starts without a launcher, as one rank; for {ranks}: sapwood mpi mpirun -n {ranks} \
         {command}",
        words[0]
    )
}

fn no_program(command: &JobCommand) -> String {
    let launcher = command.launcher.as_deref().unwrap_or(Path::new("")).display();
    format!("the command of '{launcher}' names no program")
}

/// How many ranks a launcher usually starts that is not told a number: those of the allocation, or
/// one for each processor. Only the number of leaves depends on it.
fn usual_ranks() -> u32 {
    let tasks = std::env::var("SLURM_NTASKS").ok().and_then(|tasks| tasks.parse().ok());
    let processors = || std::thread::available_parallelism().ok()?.get().try_into().ok();
    tasks.filter(|&tasks| tasks > 0).or_else(processors).unwrap_or(1)
}

/// The programs' file names, each once.
fn names(programs: &[JobProgram]) -> String {
    let mut names: Vec<String> = Vec::new();
    for JobProgram { program, .. } in programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
