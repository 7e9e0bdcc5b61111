//! What to run, and under which conditions.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use crate::GroupReaper;

/// How many descriptors one process can be handed beside its standard streams.
pub const INHERITED_MAX: usize = 16;

/// Whether the kernel kills a process when the thread that has started it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DeathSignal {
    /// The kernel kills the process when its starter ends. It is arranged between fork and exec,
    /// so it holds for any program, and it costs a fork: a copy of the starter's page tables.
    ///
    /// A program that changes its user when executed loses the setting.
    #[default]
    BeforeExec,
    /// The same, but arranged by the program, which first thing in its `main` calls
    /// [`arrange_death_signal`](crate::arrange_death_signal). For our own binary only. It can be
    /// started without a fork, which takes a third less time from a small process, and a tenth from
    /// one of 200 MB.
    ByProgram,
    /// The process outlives its starter, unless its [`Process`](crate::Process) is dropped rather
    /// than [released](crate::Process::release), or it holds a
    /// [`LivenessPipe`](crate::LivenessPipe).
    Off,
}

/// What to run: a program with its arguments, environment, descriptors and directory.
///
/// The fields are public, to be filled in after [`Order::new`]. Every descriptor other than the
/// standard streams and those in `inherit` is closed in the new process, also those that other
/// code of this process opened without close-on-exec.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The program: a path, or a bare name that is looked up as by [`locate`](crate::locate).
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub arguments: Vec<OsString>,
    /// Variables to set on top of this process's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Descriptors that stay open in the new process. The variable named first is set to
    /// `fd:N`, with the number that the descriptor has there. At most [`INHERITED_MAX`].
    ///
    /// The new process shares the open file: two children that `read` one inherited file share
    /// its position.
    pub inherit: Vec<(String, BorrowedFd<'a>)>,
    /// Where to run it; this process's directory if none.
    pub directory: Option<PathBuf>,
    /// Whether standard output is captured like standard error; else it is this process's own.
    pub capture_stdout: bool,
    /// Whether standard input is this process's own; else it is `/dev/null`.
    pub inherit_stdin: bool,
    /// Whether standard input is a pipe from this process: see
    /// [`Process::stdin`](crate::Process::stdin).
    pub pipe_stdin: bool,
    /// Whether standard error is this process's own; else it is captured. Set for a program that
    /// the user runs through us and that may look whether it writes to a terminal.
    pub inherit_stderr: bool,
    /// Whether captured standard error can be exchanged for this process's own: the new process
    /// does so when it calls [`take_over_stderr`](crate::take_over_stderr). Set for a process that
    /// is to outlive this one: its pipe would have no reader then.
    pub hand_stderr: bool,
    /// Whether the process leads a process group of its own.
    ///
    /// Set for nodes of a tree: the terminal's Ctrl-C then reaches the front-end alone, which
    /// ends the tree in order. Clear for a program that the user runs through us, such as
    /// `mpirun`, which expects the Ctrl-C itself. The group ends with its leader: whatever else
    /// is left in it is killed.
    pub own_group: bool,
    /// What kills the whole group when its holder ends or drops it, from before the program runs.
    /// Only for a process that leads a group, and one order for each; it costs a fork. Where the
    /// kernel does not do this, `death_signal` alone ends the leader.
    pub group_reaper: Option<&'a GroupReaper>,
    /// Whether it is killed when its starter ends.
    pub death_signal: DeathSignal,
}

impl Order<'_> {
    /// An order for a program in a process group of its own, with no arguments and no input.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherit: Vec::new(),
            directory: None,
            capture_stdout: false,
            inherit_stdin: false,
            pipe_stdin: false,
            inherit_stderr: false,
            hand_stderr: false,
            own_group: true,
            group_reaper: None,
            death_signal: DeathSignal::default(),
        }
    }
}
