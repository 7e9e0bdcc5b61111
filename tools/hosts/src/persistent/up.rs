//! `sapwood up`: starting the daemon of a tree, here or in the background.
//!
//! In the background the daemon is this program again, called `sapwood daemon` with the same
//! arguments: it says one line on its standard output once it serves, and lets go of everything of
//! ours then.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use sapwood::{Launcher, RankSet};
use sapwood_launch::{DeathSignal, Exit, Local, Order, Process, Signal};
use sapwood_transport::{Interest, Poller};

use super::DEFAULT_NAME;
use super::again;
use super::claim::Claim;
use super::daemon::{Daemon, Terms};
use super::down::end;
use super::returning::Way;
use crate::absence::line;
use crate::deploy::{Opened, Plan, Targets, open, plan, stopped};
use crate::selection::{Reach, Selection};
use crate::signals::Signals;
use crate::tree::Purpose;
use crate::tree_access::{Owned, Tree};
use sapwood_command_line::exit::{
    self, Failure, OWN_FAILURE, UNREACHED, by_signal, complain, complain_all, print,
};
use sapwood_command_line::times::time;

/// How long a daemon that has failed, or is to end, may take for it.
const END_TIME: Duration = Duration::from_secs(10);

/// What `sapwood up` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reach: Reach,
    /// Name of the tree.
    #[arg(long = "network", visible_aliases = ["tree", "name"], value_name = "NAME",
          default_value = DEFAULT_NAME)]
    name: String,
    /// End the tree after this time without a command; 0 for never.
    #[arg(long, value_name = "SECONDS", default_value = "1800", value_parser = time)]
    idle: Duration,
    /// Try to reach missing hosts again after this time, and then at intervals that grow to a
    /// minute; hosts that answer come back into the tree. 0 for never.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = time)]
    return_after: Duration,
    /// End the tree of this name that is up, and start this one in its place.
    #[arg(long)]
    replace: bool,
    /// Keep the tree in this process instead of a daemon, for a service manager.
    #[arg(long)]
    foreground: bool,
}

/// Starts a tree that stays.
///
/// # Errors
/// [`Failure`] for bad input, or where nothing can be started.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.foreground {
        return serve_here(arguments, Keeping::Foreground);
    }
    let failed = |error| Failure::own(&format!("cannot start the daemon of the tree: {error}"));
    let mut order = Order::new(std::env::current_exe().map_err(failed)?);
    order.arguments.push(OsString::from("daemon"));
    order.arguments.extend(std::env::args_os().skip(2));
    order.death_signal = DeathSignal::Off;
    order.own_group = false;
    order.capture_stdout = true;
    order.inherit_stderr = true;
    // A file of hosts may be read from it.
    order.inherit_stdin = true;
    let mut signals = Signals::take_over().map_err(failed)?;
    let started = Local::new().start(&order);
    let mut daemon = started.map_err(|error| Failure::own(&error))?;
    let (said, signal) = hear(&mut daemon, &mut signals)?;
    if !said.is_empty() {
        return match print(&said) {
            Ok(()) => {
                daemon.release();
                Ok(ExitCode::SUCCESS)
            }
            Err(failure) => {
                // A command that fails leaves no tree behind of which its user does not know.
                let _ = daemon.kill(Signal::TERM);
                let _ = daemon.wait(END_TIME);
                complain("the tree is ended again: it could not be said that it is up");
                Err(failure)
            }
        };
    }
    let code = match (daemon.wait(END_TIME), signal) {
        (_, Some(signal)) => by_signal(signal),
        (Some(Exit::Status(code)), None) => u8::try_from(code).unwrap_or(OWN_FAILURE),
        _ => OWN_FAILURE,
    };
    Ok(ExitCode::from(code))
}

/// What the daemon says before it lets go of us, and the signal that has ended it, if one has.
fn hear(daemon: &mut Process, signals: &mut Signals) -> Result<(String, Option<Signal>), Failure> {
    let failed = |error| Failure::own(&format!("cannot wait for the daemon: {error}"));
    let mut poller = Poller::new().map_err(failed)?;
    if let Some(stdout) = daemon.stdout() {
        poller.add(stdout, 0, Interest::READ).map_err(failed)?;
    }
    for descriptor in signals.descriptors() {
        poller.add(descriptor, 1, Interest::READ).map_err(failed)?;
    }
    let (mut said, mut ended_by) = (Vec::new(), None);
    // Until a signal comes the daemon's own deadlines hold.
    let mut until: Option<Instant> = None;
    while !daemon.stdout_ended() {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            // It is stopped, or hangs. Its tree ends with it.
            let _ = daemon.kill(Signal::KILL);
            break;
        }
        poller.wait(&mut Vec::new(), left).map_err(failed)?;
        if let Some(signal) = signals.take().pop() {
            ended_by = Some(signal);
            until.get_or_insert(Instant::now() + END_TIME);
            // It takes its tree with it; one that has ended already needs no signal.
            let _ = daemon.kill(Signal::TERM);
        }
        // A stream that fails has ended.
        let _ = daemon.take_stdout(&mut said);
    }
    Ok((String::from_utf8_lossy(&said).into_owned(), ended_by))
}

/// Is the daemon in the background.
///
/// # Errors
/// As [`run`].
pub fn daemon(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // The terminal's signals are not for us. It fails for a process that leads a group already.
    let _ = rustix::process::setsid();
    serve_here(arguments, Keeping::Background)
}

/// Where the process that keeps the tree runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    /// Its caller waits for its end.
    Foreground,
    /// Its caller goes on as soon as the tree stands.
    Background,
}

fn serve_here(arguments: &Arguments, keeping: Keeping) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    // Before it is looked whether there is one: until then another process may have started it.
    let claim = Claim::of(&sapwood::runtime_folder()?, name)?;
    let there = super::standing(name)?;
    if there.is_some() && !arguments.replace {
        return Err(Failure::usage(format!(
            "a tree '{name}' is up already; end it by 'sapwood down {name}', replace it \
             with --replace, or give it another --network"
        )));
    }
    // Why the one before is not there any more.
    complain_all(&super::ended(|known, _| known == name.as_str()));
    let targets = Targets::of(arguments.selection.resolve()?)?;
    let plan = plan(&targets, &arguments.reach, Purpose::Kept, super::AGENT)?;
    // What could not be started anyhow costs no tree that is there.
    if let Some(tree) = there {
        end(tree)?;
    }
    plan.launching.announce(&plan.builder);
    leave_folder();
    let failed = |error| Failure::own(&format!("cannot keep the standard streams: {error}"));
    let mut caller = Caller::of_this_process().map_err(failed)?;
    if keeping == Keeping::Background {
        caller.leave().map_err(failed)?;
    }
    let begun = begin(arguments, &targets, plan, claim, &mut caller);
    if keeping == Keeping::Background && !matches!(begun, Ok(Begun::Serves(_))) {
        // What is said of it belongs to the caller.
        caller.come_back().map_err(failed)?;
    }
    drop(caller);
    match begun? {
        Begun::Serves(daemon) => daemon.serve().map(|()| ExitCode::SUCCESS),
        Begun::Stopped(signal) => Ok(stopped(signal)),
        Begun::NoHost => Ok(ExitCode::from(UNREACHED)),
    }
}

/// What became of a tree that was to stay.
enum Begun {
    Serves(Box<Daemon>),
    /// A signal came before it stood.
    Stopped(Signal),
    /// No host could be reached.
    NoHost,
}

fn begin(
    arguments: &Arguments,
    targets: &Targets,
    plan: Plan,
    claim: Option<Claim>,
    caller: &mut Caller,
) -> Result<Begun, Failure> {
    let Arguments { name, idle, reach, return_after, .. } = arguments;
    let Plan { builder, launching, .. } = plan;
    let refused = |error| Failure::own(&format!("cannot handle signals: {error}"));
    let signals = Signals::take_over().map_err(refused)?;
    let (network, signals) = match open(builder.visible(&**name), signals)? {
        Opened::Tree(network, signals) => (network, signals),
        Opened::Stopped(signal) => return Ok(Begun::Stopped(signal)),
    };
    let tree = Owned::new(*network, &targets.names);
    caller.complain(&absent(&tree, targets));
    let there = tree.connected().len();
    if there == 0 {
        tree.close()?;
        return Ok(Begun::NoHost);
    }
    let hosts = targets.set.to_string();
    let end = match idle.as_secs_f64() {
        0.0 => "until 'sapwood down'".to_string(),
        seconds => format!("until 'sapwood down', or {seconds} s without a command"),
    };
    let line =
        format!("tree '{name}' is up: {there} of {} hosts, {hosts}; {end}\n", targets.count());
    let options = again::options(std::env::args_os().skip(2), &arguments.selection, &hosts);
    // Processes that another manager starts come again by themselves.
    let is_attached = launching.launcher() == Launcher::Attach;
    let (names, topology) = (targets.names.clone(), tree.topology().clone());
    let terms = Terms {
        name: name.clone(),
        reach: reach.terms(),
        hosts,
        options,
        idle: *idle,
        return_after: if is_attached { Duration::ZERO } else { *return_after },
        way: Arc::new(Way { names, launching, topology }),
    };
    let daemon = Daemon::new(tree, terms, signals)?;
    // A user who reads that the tree is up may replace it at once.
    drop(claim);
    // Without a caller no user would know of the tree, and it ends.
    caller.say(&line)?;
    Ok(Begun::Serves(Box::new(daemon)))
}

/// The standard streams of the caller. The tree's processes, which inherit those of this
/// process, are not to hold them: a process may wait for their end.
struct Caller {
    output: File,
    errors: File,
}

impl Caller {
    fn of_this_process() -> std::io::Result<Self> {
        let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
        let errors = File::from(std::io::stderr().as_fd().try_clone_to_owned()?);
        Ok(Self { output, errors })
    }

    /// Puts nothing in the place of the standard streams.
    fn leave(&self) -> std::io::Result<()> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(null.as_fd())?;
        rustix::stdio::dup2_stdout(null.as_fd())?;
        Ok(rustix::stdio::dup2_stderr(null.as_fd())?)
    }

    fn come_back(&self) -> std::io::Result<()> {
        rustix::stdio::dup2_stdout(self.output.as_fd())?;
        Ok(rustix::stdio::dup2_stderr(self.errors.as_fd())?)
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.output.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    fn complain(&mut self, text: &str) {
        // As for every command, a standard error that takes no more is no reason to end.
        let _ = self.errors.write_all(text.as_bytes());
    }
}

/// Commands begin in their caller's folder; one where the caller's is not there begins where a
/// log-in would. No file system is held.
fn leave_folder() {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let is_there = home.is_some_and(|home| std::env::set_current_dir(home).is_ok());
    if !is_there {
        let _ = std::env::set_current_dir("/");
    }
}

/// A line for each reason why hosts are missing.
fn absent(tree: &Owned, targets: &Targets) -> String {
    let told =
        |(ranks, reason): &(RankSet, String)| exit::complaint(line(&targets.nodes(ranks), reason));
    tree.absent().iter().map(told).collect()
}
