//! What is to be watched and how: the user's wishes, checked before anything starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Arguments;
use super::command_line::{JobCommand, JobProgram};
use super::forward::{
    Forwarded, forwarded, hands_on_environment, hides_shim, preloading, withholds_preload,
};
use super::in_world::{InWorld, ToolRanks};
use super::launcher::Launcher;
use super::leaves::{Leaves, Wishes};
use super::linkage::{Abi, Flavour, Linkage};
use super::placement::{JobHosts, Placement};
use super::shim;
use sapwood_command_line::exit::{Failure, complain};

/// A program that can be watched.
#[derive(Debug)]
pub(crate) struct Job {
    /// The command, word by word.
    pub(crate) command: Vec<OsString>,
    /// What is started, as it was written: the launcher, what wraps it, or the program itself.
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
    /// The tree's own ranks, if it lives inside the job.
    pub(crate) in_world: Option<InWorld>,
    /// Where these run.
    pub(crate) placement: Placement,
    /// Further words for the leaves of a job that runs already: which processes they attach to.
    pub(crate) adopt: Vec<String>,
    parsed: JobCommand,
    launcher_of: Option<Abi>,
}

/// What carries out commands of others.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh"];

/// What batch systems set that start an `mpirun`'s daemons, which are then no children of it.
const BATCH_VARIABLES: [&str; 2] = ["PBS_NODEFILE", "LSB_HOSTS"];

impl Job {
    /// A job that runs already on this host; `adopt` tells the leaves where its ranks are.
    pub(crate) fn running(leaves: Leaves, adopt: [String; 3]) -> Self {
        Self {
            command: Vec::new(),
            starter: PathBuf::new(),
            program: String::new(),
            mpi: String::new(),
            shim: PathBuf::new(),
            leaves,
            ranks: None,
            in_world: None,
            placement: Placement::Here(None),
            adopt: adopt.to_vec(),
            parsed: JobCommand::default(),
            launcher_of: None,
        }
    }

    /// Checks everything that can be known before the program starts.
    ///
    /// # Errors
    /// [`Failure`] of bad input: missing program, wrong MPI, no MPI at all, no number of ranks.
    pub(crate) fn read(arguments: &Arguments) -> Result<Self, Failure> {
        let command = JobCommand::parse(&arguments.command).map_err(Failure::usage)?;
        if command.programs.is_empty() {
            return Err(Failure::usage(no_program(&command)));
        }
        let starter = PathBuf::from(&arguments.command[0]);
        sapwood_launch::locate(&starter).map_err(Failure::usage)?;
        let launcher = command.launcher.as_deref().map(sapwood_launch::locate);
        let launcher = launcher.transpose().map_err(Failure::usage)?;
        let is_torchrun = command.kind == Some(Launcher::Torchrun);
        let flavour = launcher.as_deref().filter(|_| !is_torchrun).and_then(Flavour::of);
        // Of processes that need not use MPI: whichever is here.
        let mut abi = arguments.mpi.or_else(|| is_torchrun.then(shim::any));
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
        let placement = Placement::of(&command, &arguments.reaching)?;
        let slots = match &placement {
            Placement::Here(slots) => *slots,
            Placement::Hosts(hosts) => hosts.slots,
            Placement::Later => None,
        };
        let ranks = arguments.ranks.map(u32::from).or(command.ranks);
        let in_world = inside(arguments.in_world, abi, ranks, &shim, &placement)?;
        let tools = in_world.as_ref().map_or(0, InWorld::tools);
        let ranks = ranks.map(|ranks| ranks - tools);
        let planned = ranks.or(slots).unwrap_or_else(usual_ranks);
        let wishes = Wishes {
            ranks_per_leaf: arguments.ranks_per_leaf.map(u32::from),
            fan_out: arguments.fan_out.into(),
            topology: arguments.topology.as_ref(),
            is_guess: ranks.is_none(),
        };
        let leaves = match &in_world {
            Some(in_world) => in_world.leaves(&placement, planned, wishes.fan_out),
            None => leaves_beside(&placement, planned, &wishes),
        };
        warn_of_untested(&command);
        let launcher_of = flavour.as_ref().map(|known| known.abi);
        warn_of_env(&arguments.command, &command, launcher_of);
        let mpi = described(abi, flavour.as_ref());
        Ok(Self {
            starter,
            program: names(&command.programs),
            mpi: if is_torchrun { "PyTorch".to_owned() } else { mpi },
            shim,
            leaves: leaves.map_err(Failure::usage)?,
            ranks,
            in_world,
            placement,
            adopt: Vec::new(),
            parsed: command,
            launcher_of,
            command: arguments.command.clone(),
        })
    }

    /// Whether it is started by a launcher whose children are the ranks or what starts them, on
    /// other hosts as well: an `mpirun`, unless a batch system starts its daemons.
    pub(crate) fn has_all_ranks_below_it(&self) -> bool {
        let is_in_batch = BATCH_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
        self.parsed.kind == Some(Launcher::Mpirun) && !is_in_batch
    }

    /// What is started, so that the ranks have these variables wherever they run.
    pub(crate) fn start_with(
        &self,
        variables: &[(OsString, OsString)],
        comment: Option<&str>,
    ) -> Forwarded {
        let is_here = matches!(self.placement, Placement::Here(_));
        let words = preloading(&self.command, &self.parsed, variables);
        if is_here && hands_on_environment(&self.command, &self.parsed) {
            return Forwarded { words, environment: variables.to_vec() };
        }
        forwarded(&words, &self.parsed, self.launcher_of, variables, comment)
    }

    /// The remote shell that the launcher is told to use, with its arguments.
    pub(crate) fn remote_shell(&self) -> Option<String> {
        let of_hydra = self.parsed.options("launcher-exec bootstrap-exec").next();
        let of_open_mpi = self.parsed.options("mca").find(|option| {
            matches!(option.value(), "plm_rsh_agent" | "pls_rsh_agent" | "orte_rsh_agent")
        });
        let by_variable = std::env::var("OMPI_MCA_plm_rsh_agent").ok();
        let named = of_hydra.map(|option| option.value().to_owned());
        let named = named.or_else(|| of_open_mpi.and_then(|option| option.values.get(1).cloned()));
        // Of several agents between colons, the first that exists is used.
        named
            .or(by_variable)
            .map(|agent| agent.split(':').next().unwrap_or("ssh").trim().to_owned())
    }

    /// Takes over the hosts that the launcher has got.
    ///
    /// # Errors
    /// As [`Leaves::on_hosts`].
    pub(crate) fn settle(&mut self, hosts: JobHosts, fan_out: u32) -> Result<(), String> {
        let wishes = Wishes { fan_out, ..Wishes::default() };
        self.leaves = leaves_on(&hosts, self.leaves.world_size, &wishes)?;
        self.placement = Placement::Hosts(hosts);
        Ok(())
    }
}

/// The leaves of a tree beside the job.
fn leaves_beside(placement: &Placement, ranks: u32, wishes: &Wishes<'_>) -> Result<Leaves, String> {
    match placement {
        Placement::Hosts(hosts) => leaves_on(hosts, ranks, wishes),
        Placement::Here(_) => Leaves::plan(ranks, wishes),
        // The hosts are not known yet; each will have one.
        Placement::Later => {
            Leaves::plan(1, &Wishes { fan_out: wishes.fan_out, ..Wishes::default() })
        }
    }
}

fn leaves_on(hosts: &JobHosts, ranks: u32, wishes: &Wishes<'_>) -> Result<Leaves, String> {
    let count = u32::try_from(hosts.names.len()).unwrap_or(u32::MAX).max(1);
    let ranks_max = hosts.slots_max.unwrap_or(ranks.div_ceil(count));
    Leaves::on_hosts(&hosts.names, Some(ranks_max), ranks, wishes)
}

fn warn_of_untested(command: &JobCommand) {
    let Some(launcher) = command.kind.filter(|launcher| launcher.is_untested()) else { return };
    let name = if launcher == Launcher::Prun { "prun" } else { "flux run" };
    complain(format_args!(
        "'{name}' is supported but untested; if ranks are missing, name their hosts by --hosts"
    ));
}

fn warn_of_env(words: &[OsString], command: &JobCommand, launcher_of: Option<Abi>) {
    if let Some(hiding) = hides_shim(words, command, launcher_of) {
        complain(format_args!(
            "'{hiding}' in the command removes the variables by which ranks load the shim: those \
             that it starts are not watched; leave it out, or put it before 'sapwood mpi'"
        ));
    }
    if let Some(option) = withholds_preload(words, command, launcher_of) {
        complain(format_args!(
            "'{option}' keeps from the ranks what 'env' preloads before the launcher; name \
             LD_PRELOAD in that option, or put 'env' before the program"
        ));
    }
}

/// The tree inside of the job, if the user wants one.
fn inside(
    tools: Option<ToolRanks>,
    abi: Abi,
    ranks: Option<u32>,
    shim: &Path,
    placement: &Placement,
) -> Result<Option<InWorld>, Failure> {
    if tools.is_some() && abi == Abi::Standard {
        return Err(Failure::usage(
            "--in-world is for programs of Open MPI and MPICH only, and not of the MPI ABI; \
             leave it out",
        ));
    }
    let in_world = tools.map(|tools| InWorld::new(tools, ranks, shim, placement));
    in_world.transpose().map_err(Failure::usage)
}

/// The program's MPI, with its version where the launcher says it.
fn described(abi: Abi, flavour: Option<&Flavour>) -> String {
    let name = abi.name();
    let text = match flavour {
        Some(known) if known.abi == abi => format!("{name} {}", known.version),
        // Any MPI may have that ABI: the launcher's own is the likely one.
        Some(known) if abi == Abi::Standard => {
            format!("{name}, {} {}", known.abi.name(), known.version)
        }
        _ => name.to_owned(),
    };
    text.trim_end().to_owned()
}

/// The ABI of one program of the command, which must be that of the others and of the launcher;
/// that of the standard may be any launcher's.
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
    let is_of_either = abi == Abi::Standard;
    if let Some(launcher) = launcher.filter(|&launcher| launcher != abi && !is_of_either) {
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
            format!("; or it is the argument of '-{option}', an option that sapwood does not know")
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

/// Whether a command's program is a shell, which starts what the ranks are.
pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
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
