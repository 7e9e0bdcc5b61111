//! Starting processes on this machine.
//!
//! There are two ways, and each order takes the cheaper one that keeps its promises. **Without a
//! fork** (`posix_spawn`, which borrows our memory until exec) nothing can be arranged between fork
//! and exec, so it serves only programs that request the death signal themselves or need none, and
//! only while no descriptor can slip through. **With a fork** everything can be arranged, and the
//! cost grows with the memory of this process.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::process::getpid;

use crate::captured::Captured;
use crate::death_signal::{STARTER_VARIABLE, bind_to};
use crate::descriptors::{Inheritance, Withheld, has_other_threads, keep_only, strays};
use crate::group_reaper::hold_own_group;
use crate::liveness_pipe::LIVENESS_PIPE_VARIABLE;
use crate::stderr::{STDERR_VARIABLE, variable};
use crate::{DeathSignal, LaunchError, Launcher, Order, Process, Reserve, locate, require_local};

/// Starts processes on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl Local {
    /// The launcher for this machine.
    pub fn new() -> Self {
        Self
    }

    /// Starts a process and returns once its program runs.
    ///
    /// # Errors
    /// Any [`LaunchError`] about programs, directories, descriptors and the system's limits.
    pub fn start(&self, order: &Order<'_>) -> Result<Process, LaunchError> {
        start(order, &mut None)
    }

    /// Starts several processes that are to connect to this one, and answers for each order in
    /// turn. Each leaves a descriptor free for its link: one for which there is none is not
    /// started. Cheaper than one start after another, since what they have in common is looked at
    /// only once.
    pub fn start_all(&self, orders: &[Order<'_>]) -> Vec<Result<Process, LaunchError>> {
        let mut alone = None;
        let mut links = Reserve::default();
        let linked = |order: &Order<'_>| {
            let refused = |cause| LaunchError::Refused { program: order.program.clone(), cause };
            links.hold_one().map_err(refused)?;
            start(order, &mut alone).inspect_err(|_| links.free_one())
        };
        orders.iter().map(linked).collect()
    }
}

/// A host is this machine, and a command is run by its shell.
impl Launcher for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn check_host(&self, host: &str) -> Result<(), LaunchError> {
        require_local(host)
    }

    fn client(&self, _host: &str, command: &str) -> Order<'static> {
        let mut order = Order::new("/bin/sh");
        order.arguments = vec!["-c".into(), command.into()];
        order
    }

    fn is_worth_retrying(&self, _words: &str) -> bool {
        false
    }
}

/// The stray descriptors that were found when this process had no other thread: nothing but a start
/// can change it until the starts are over, and they open everything close-on-exec.
struct Alone {
    strays: Vec<RawFd>,
}

fn start(order: &Order<'_>, alone: &mut Option<Alone>) -> Result<Process, LaunchError> {
    check_variables(order)?;
    let program = locate(&order.program)?;
    let inheritance = Inheritance::of(order)?;
    let mut command = command(order, &program, &inheritance);
    let refused = |cause| explain(order, &program, cause);

    let (stderr, writer) = io::pipe().map_err(refused)?;
    let mut stderr = Captured::new(stderr).map_err(refused)?;
    if order.inherit_stderr {
        // No process writes to this pipe. It is marked as ended at once: a process that another
        // thread is just starting may hold the other end for a moment.
        stderr.end();
    } else {
        if let Some(own) = inheritance.stderr() {
            command.env(STDERR_VARIABLE, variable(own, &writer).map_err(refused)?);
        }
        command.stderr(writer);
    }
    let stdin = if order.pipe_stdin {
        let (reader, writer) = io::pipe().map_err(refused)?;
        rustix::io::ioctl_fionbio(&writer, true).map_err(|cause| refused(cause.into()))?;
        command.stdin(reader);
        Some(writer)
    } else {
        None
    };
    let stdout = if order.capture_stdout {
        let (stdout, writer) = io::pipe().map_err(refused)?;
        command.stdout(writer);
        Some(Captured::new(stdout).map_err(refused)?)
    } else {
        None
    };

    let withheld =
        prepare(&mut command, order.death_signal, &inheritance, alone).map_err(refused)?;
    let child = command.spawn().map_err(refused)?;
    drop(withheld);
    // Our copies of the pipes' write ends go with the command: from here on the end of a
    // stream means that the process and its descendants closed it.
    drop(command);
    let mut process =
        Process::watch(child, program.clone(), stderr, stdout, order.own_group).map_err(refused)?;
    process.feed(stdin);
    Ok(process)
}

fn check_variables(order: &Order<'_>) -> Result<(), LaunchError> {
    let ordered = order.environment.iter().map(|(name, _)| name.as_os_str());
    let handed = order.inherit.iter().map(|(name, _)| OsStr::new(name));
    let is_damaged = |name: &OsStr| {
        name.is_empty() || name.as_bytes().iter().any(|byte| matches!(byte, b'=' | 0))
    };
    if ordered.chain(handed).any(is_damaged) {
        return Err(LaunchError::ApiMisuse {
            rule: "the name of a variable is not empty and has neither '=' nor a zero byte",
        });
    }
    Ok(())
}

fn command(order: &Order<'_>, program: &Path, inheritance: &Inheritance) -> Command {
    let mut command = Command::new(program);
    command.args(&order.arguments);
    if order.program.components().count() == 1 {
        // As a shell names it: some programs take their own full path for a wish, such as Open
        // MPI's mpirun, which then gives remote daemons other search paths.
        command.arg0(&order.program);
    }
    // The death signal is between one process and its starter; it is not passed on.
    if order.death_signal == DeathSignal::ByProgram {
        command.env(STARTER_VARIABLE, getpid().to_string());
    } else if std::env::var_os(STARTER_VARIABLE).is_some() {
        command.env_remove(STARTER_VARIABLE);
    }
    if inheritance.stderr().is_none() && std::env::var_os(STDERR_VARIABLE).is_some() {
        command.env_remove(STDERR_VARIABLE);
    }
    // Nor is the liveness pipe, unless it is among the inherited descriptors.
    if std::env::var_os(LIVENESS_PIPE_VARIABLE).is_some() {
        command.env_remove(LIVENESS_PIPE_VARIABLE);
    }
    for (name, value) in &order.environment {
        command.env(name, value);
    }
    for ((name, _), value) in order.inherit.iter().zip(inheritance.values()) {
        command.env(name, value);
    }
    if let Some(directory) = &order.directory {
        command.current_dir(directory);
    }
    if !order.inherit_stdin && !order.pipe_stdin {
        command.stdin(Stdio::null());
    }
    if order.own_group {
        command.process_group(0);
    }
    command
}

/// Chooses the way of starting. Without a fork the new process gets every descriptor that is not
/// close-on-exec, and so does any that another thread starts at that moment. So descriptors are
/// handed over and strays withheld that way only where there is no other thread.
fn prepare(
    command: &mut Command,
    death_signal: DeathSignal,
    inheritance: &Inheritance,
    alone: &mut Option<Alone>,
) -> io::Result<Option<Withheld>> {
    if death_signal != DeathSignal::BeforeExec && inheritance.reaper().is_none() {
        if alone.is_none() && !has_other_threads()? {
            *alone = Some(Alone { strays: strays()? });
        }
        if let Some(Alone { strays }) = alone {
            inheritance.open_to_all()?;
            return Withheld::new(strays.clone()).map(Some);
        }
        if inheritance.is_empty() && strays()?.is_empty() {
            return Ok(None);
        }
    }
    arrange_before_exec(command, death_signal, inheritance);
    Ok(None)
}

fn arrange_before_exec(
    command: &mut Command,
    death_signal: DeathSignal,
    inheritance: &Inheritance,
) {
    let starter = getpid();
    let inherited = inheritance.numbers();
    let reaper = inheritance.reaper().map(AsRawFd::as_raw_fd);
    let arrange = move || {
        // First: from here on the end of the starter ends this process, and no other is left yet.
        if death_signal != DeathSignal::Off && !bind_to(starter)? {
            return Err(Errno::SRCH.into());
        }
        if let Some(number) = reaper {
            // SAFETY: The duplicate is open until the start is over, and so is its copy here.
            let end = unsafe { BorrowedFd::borrow_raw(number) };
            // Where the kernel refuses it, the leader alone is bound to its starter.
            let _ = hold_own_group(end);
        }
        keep_only(&inherited)
    };
    // SAFETY: Between fork and exec only async-signal-safe functions may run, since another
    // thread may have held any lock at the fork. `arrange` makes system calls through rustix
    // (prctl, getppid, getpid, open, getdents, fcntl, close) and through fcntl itself, on stack
    // memory and on a list that was built before; it neither allocates nor locks, and its errors
    // are plain numbers. The descriptors that it marks close-on-exec stay open, so no owner in this
    // copy of the memory is affected.
    unsafe { command.pre_exec(arrange) };
}

/// Turns the system's reason into the error that names the guilty one: "no such file" alone does
/// not tell whether the program, its interpreter or the folder to run in is missing.
fn explain(order: &Order<'_>, program: &Path, cause: io::Error) -> LaunchError {
    if let Some(directory) = &order.directory
        && let Err(cause) = enter(directory)
    {
        return LaunchError::Directory {
            program: program.into(),
            directory: directory.clone(),
            cause,
        };
    }
    LaunchError::Refused { program: program.into(), cause }
}

fn enter(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}
