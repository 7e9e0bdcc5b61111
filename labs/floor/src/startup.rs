//! The floor of start-up: how long it takes to start processes that each connect once.
//!
//! One process (the calling one) starts them all directly, with as many threads as it may use
//! cores, through `posix_spawn` as std does it; each connects to one abstract Unix socket and waits
//! there. The time runs from before the first start to the last connection, with all processes
//! alive: that is what a tree must do at least to be up. There is no tree here and no exchange of
//! anything.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::num::NonZeroI32;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::process;
use crate::shape::TREE_PROCESSES_MAX;

/// First hidden argument of a process of this experiment; the abstract name follows it.
pub const CONNECT_ARGUMENT: &str = "floor-connect";

/// How long all processes together have to connect, and a process waits to be released.
pub const STARTUP_DEADLINE: Duration = Duration::from_secs(60);

/// How long the released processes have to end before they are killed.
const END_DEADLINE: Duration = Duration::from_secs(5);

/// How often the wait for a connection looks whether a process has ended without one.
const LOOK: Duration = Duration::from_millis(100);

/// What to start how often.
#[derive(Clone, Debug)]
pub struct StartupPlan {
    /// The program.
    pub program: PathBuf,
    /// Its arguments; the abstract name (without the leading zero byte) is added as the last one.
    pub arguments: Vec<OsString>,
    /// How many processes.
    pub processes: usize,
    /// Threads that start them at the same time.
    pub threads: usize,
    /// How long they may take to connect.
    pub deadline: Duration,
}

impl StartupPlan {
    /// The calling program, with [`CONNECT_ARGUMENT`], from one thread per core it may use.
    pub fn new(processes: usize) -> Result<StartupPlan, Error> {
        Ok(StartupPlan {
            program: std::env::current_exe().map_err(Error::system("find the running program"))?,
            arguments: vec![CONNECT_ARGUMENT.into()],
            processes,
            threads: thread::available_parallelism().map_or(1, usize::from),
            deadline: STARTUP_DEADLINE,
        })
    }
}

/// One start of all processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Startup {
    /// Processes started.
    pub processes: usize,
    /// From before the first start to the last connection, milliseconds.
    pub ms: f64,
    /// CPU time that the processes used from their start to their end, milliseconds.
    pub cpu_ms: f64,
}

/// Starts all processes, waits until each has connected, releases and reaps them.
pub fn run(plan: &StartupPlan) -> Result<Startup, Error> {
    if plan.processes == 0 || plan.processes > TREE_PROCESSES_MAX {
        return Err(Error::Argument("start-up takes 1 to 4096 processes"));
    }
    let name = fresh_name();
    let address = SocketAddr::from_abstract_name(&name).map_err(Error::system("name a socket"))?;
    let listener = UnixListener::bind_addr(&address).map_err(Error::system("listen"))?;
    listener.set_nonblocking(true).map_err(Error::system("listen"))?;
    let mut fleet = StartedProcesses { processes: BTreeMap::new(), connections: Vec::new() };
    let begin = Instant::now();
    let until = begin + plan.deadline;
    let (taken, given_up) = (AtomicUsize::new(0), AtomicBool::new(false));
    let connected = thread::scope(|scope| {
        let (started, starts) = mpsc::channel();
        let (taken, given_up, name) = (&taken, &given_up, name.as_str());
        for _ in 0..plan.threads.clamp(1, plan.processes) {
            let started = started.clone();
            scope.spawn(move || start_share(plan, name, taken, given_up, &started));
        }
        drop(started);
        let connected = fleet.connect(&listener, plan, &starts, until);
        given_up.store(true, Ordering::Relaxed);
        // Whatever was started after an error is known as well before anything is ended.
        fleet.processes.extend(starts.iter().flatten().map(numbered));
        connected
    });
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    // After an error no process is waited for: those that never connected would not end.
    let patience = if connected.is_ok() { END_DEADLINE } else { Duration::ZERO };
    let ended = fleet.end(patience);
    connected?;
    Ok(Startup { processes: plan.processes, ms, cpu_ms: ended?.as_secs_f64() * 1e3 })
}

/// Runs a process of this experiment: connects to the abstract name, waits until the other end is
/// closed, ends.
pub(crate) fn connect(arguments: &[OsString]) -> ExitCode {
    let [name] = arguments else {
        eprintln!("floor-connect takes one abstract socket name");
        return ExitCode::from(2);
    };
    match wait_for_release(name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor-connect: cannot connect: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wait_for_release(name: &OsStr) -> io::Result<()> {
    let address = SocketAddr::from_abstract_name(name.as_bytes())?;
    let mut connection = UnixStream::connect_addr(&address)?;
    connection.set_read_timeout(Some(STARTUP_DEADLINE))?;
    // End of file is the release; it comes also when the starting process dies.
    connection.read_exact(&mut [0]).or_else(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Ok(()),
        _ => Err(error),
    })
}

type Started = Result<Pid, Error>;

/// Processes by their number.
type Processes = BTreeMap<NonZeroI32, Pid>;

fn numbered(pid: Pid) -> (NonZeroI32, Pid) {
    (pid.as_raw_nonzero(), pid)
}

/// One thread's share of the starts: takes the next number until all are taken.
fn start_share(
    plan: &StartupPlan,
    name: &str,
    taken: &AtomicUsize,
    given_up: &AtomicBool,
    started: &mpsc::Sender<Started>,
) {
    while !given_up.load(Ordering::Relaxed)
        && taken.fetch_add(1, Ordering::Relaxed) < plan.processes
    {
        let mut command = Command::new(&plan.program);
        command.args(&plan.arguments).arg(name).stdin(Stdio::null()).stdout(Stdio::null());
        let spawned = match command.spawn() {
            Ok(child) => Ok(Pid::from_child(&child)),
            Err(source) => Err(Error::Spawn { program: plan.program.clone(), source }),
        };
        // The receiver lives until every sender is gone.
        let _ = started.send(spawned);
    }
}

/// The processes started so far and the connections that they made.
struct StartedProcesses {
    processes: Processes,
    connections: Vec<UnixStream>,
}

impl StartedProcesses {
    /// Accepts until every process has connected.
    fn connect(
        &mut self,
        listener: &UnixListener,
        plan: &StartupPlan,
        starts: &mpsc::Receiver<Started>,
        until: Instant,
    ) -> Result<(), Error> {
        let mut connected = Processes::new();
        while connected.len() < plan.processes {
            while let Ok(started) = starts.try_recv() {
                self.processes.extend([numbered(started?)]);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what = "connections of the started processes";
                return Err(Error::DeadlinePassed { what, after: plan.deadline });
            }
            if !wait_readable(listener, left.min(LOOK)).map_err(Error::system("wait"))? {
                self.find_ended(plan, &connected)?;
                continue;
            }
            let (connection, _) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(Error::system("accept a connection")(error)),
            };
            let peer = socket_peercred(&connection)
                .map_err(|error| Error::system("name a connection's process")(error.into()))?;
            // A process may connect before its start is reported, so whose it is is settled below.
            if connected.insert(peer.pid.as_raw_nonzero(), peer.pid).is_none() {
                self.connections.push(connection);
            }
        }
        while let Ok(started) = starts.recv() {
            self.processes.extend([numbered(started?)]);
        }
        match connected == self.processes {
            true => Ok(()),
            false => Err(Error::NotConnected {
                program: plan.program.clone(),
                ended: "another process connected in its place".to_string(),
            }),
        }
    }

    /// An error if a process that never connected has ended.
    fn find_ended(&mut self, plan: &StartupPlan, connected: &Processes) -> Result<(), Error> {
        let waiting = |(number, _): &(&NonZeroI32, &Pid)| !connected.contains_key(*number);
        for (number, pid) in self.processes.clone().iter().filter(waiting) {
            let (number, pid) = (*number, *pid);
            if let Some((status, _)) = process::try_reap(pid).map_err(Error::system("reap"))? {
                self.processes.remove(&number);
                let ended = process::ending(status);
                return Err(Error::NotConnected { program: plan.program.clone(), ended });
            }
        }
        Ok(())
    }

    /// Releases and reaps all; the CPU time that they used.
    fn end(&mut self, patience: Duration) -> Result<Duration, Error> {
        self.connections.clear();
        let until = Instant::now() + patience;
        let mut cpu_us = 0;
        let mut trouble = None;
        for &pid in self.processes.values() {
            match process::reap(pid, until) {
                Ok(process::Reaped { status, usage, .. }) => {
                    cpu_us += usage.cpu_us;
                    if !status.success() {
                        trouble = Some(format!("process {pid} {}", process::ending(status)));
                    }
                }
                Err(error) => trouble = Some(format!("process {pid}: {error}")),
            }
        }
        match trouble {
            None => Ok(Duration::from_micros(cpu_us)),
            Some(trouble) => Err(Error::EndedBadly(trouble)),
        }
    }
}

fn wait_readable(listener: &UnixListener, patience: Duration) -> io::Result<bool> {
    let mut watched = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    match poll(&mut watched, Some(&process::timespec(patience))) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An abstract name that no other experiment uses: process, time and a count.
fn fresh_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("sapwood-floor-{}-{}-{count}", std::process::id(), now.as_nanos())
}
