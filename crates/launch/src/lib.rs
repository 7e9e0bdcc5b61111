//! Starts processes: the only fork and exec.
//!
//! This crate lies below the I/O line. It turns an [`Order`] into a [`Process`], says why one
//! could not start or ended early, and leaves nothing running. It knows nothing of trees, links
//! or packets, starts no thread, installs no signal handler and reads no clock but the bounded
//! wait of a drop.
//!
//! A process goes through these types, in this order:
//!
//! 1. [`locate`] finds the program and [`is_local`] the host, before anything is started.
//! 2. An [`Order`] says what to run, with which descriptors, and whether it is killed when its
//!    starter ends ([`DeathSignal`]). [`Local`] carries it out on this machine.
//! 3. A [`Process`] has two descriptors for the caller's poll loop: one becomes readable when it
//!    ends, the other carries its standard error. [`Process::exit_report`] explains its end.
//! 4. An [`Ending`] says when to terminate and when to kill.
//! 5. A [`Family`] does all of this for processes of this machine.
//!
//! On other hosts the same is done by a [`Session`]: a [`Launcher`] such as [`Ssh`] or [`Slurm`]
//! says how a host is reached, and our own program there, the launch agent ([`run_launch_agent`]),
//! starts what its [`Task`] says and leaves nothing running. Processes that another manager starts
//! come by themselves ([`Attach`]); [`rank_by_manager`] says which of them one is.
//!
//! ```
//! use std::time::Duration;
//! use sapwood_launch::{Family, Local, Manner, Order, locate};
//!
//! let shell = locate("sh".as_ref())?;
//! let mut order = Order::new(shell);
//! order.arguments = vec!["-c".into(), "echo no such file >&2; exit 3".into()];
//!
//! let mut family = Family::new();
//! family.start(7, &order)?;
//! let departed = family.wait_ended(Duration::from_secs(10));
//! assert!(departed[0].exit_report.contains("exited with status 3"));
//! assert!(departed[0].exit_report.contains("no such file"));
//! # Ok::<(), sapwood_launch::LaunchError>(())
//! ```
//!
//! **Start children from a thread that lives as long as they should.** The kernel ends a bound
//! child when the *thread* that started it ends, not only when the process does.

#![deny(missing_docs)]

mod attach;
mod captured;
mod death_signal;
mod descriptors;
mod ending;
mod error;
mod exit;
mod family;
mod group_reaper;
mod hangup;
mod host;
mod launch_agent;
mod launcher;
mod liveness_pipe;
mod local;
mod locate;
mod order;
mod own_id;
mod process;
mod replace;
mod reserve;
mod script;
mod session;
mod slurm;
mod ssh;
mod stderr;
mod task;
mod watchdog;

pub use attach::{Attach, JOIN_TIMEOUT_VARIABLE, JOIN_VARIABLE, rank_by_manager};
pub use captured::{ERROR_TEXT_BYTES_MAX, LINE_BYTES_MAX, READ_BYTES_MAX};
pub use death_signal::{STARTER_VARIABLE, arrange_death_signal};
pub use ending::{Ending, EndingStep, Manner};
pub use error::LaunchError;
pub use exit::Exit;
pub use family::{Departed, FAMILY_MEMBERS_MAX, Family};
pub use group_reaper::GroupReaper;
pub use hangup::{ignore_hangups, ignore_terminations, survive_file_limit};
pub use host::{is_local, is_own_name, own_host_name, require_local};
pub use launch_agent::run_launch_agent;
pub use launcher::Launcher;
pub use liveness_pipe::{LIVENESS_PIPE_VARIABLE, LivenessPipe, hold_liveness_pipe};
pub use local::Local;
pub use locate::{locate, locate_in};
pub use order::{DeathSignal, INHERITED_MAX, Order};
pub use own_id::own_process_id;
pub use process::{DROP_WAIT_MS_MAX, GroupEnd, Process, Work, has_ended};
pub use replace::replace_process;
pub use reserve::Reserve;
pub use script::{COPY_VARIABLE, LAUNCH_AGENT_VARIABLE, quoted};
pub use session::{LaunchAgentProgram, Session, command_line};
pub use slurm::{SLURM_JOB_VARIABLE, Slurm};
pub use ssh::{REMOTE_SHELL_VARIABLE, Ssh};
pub use stderr::{STDERR_VARIABLE, take_over_stderr};
pub use task::{Greeting, Task};

/// What signals are named with, as the system's interfaces take them.
pub use rustix::process::Signal;
