//! Starting and ending the processes of the floor's tree.
//!
//! The root is the calling process; every other node is a process of its own that executes one
//! program (by default the calling one) with hidden arguments and inherits its sockets by
//! descriptor number. The calling process starts all of them itself: start-up of *this* tree is not
//! what is measured, see [`crate::startup`].
//!
//! Nothing outlives a [`Floor`]. Each end of an edge is open in exactly one process, so when the
//! root closes its sockets, end of file runs down the tree and every node ends; when any node dies,
//! end of file reaches its neighbours and so the root. Beside that, the kernel kills every node
//! when the thread that started it ends, and a node that does not end by itself is killed.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::link::{Edges, Link, Transport};
use crate::node::NODE_ARGUMENT;
use crate::packet;
use crate::process::{self, Pinned, Usage};
use crate::shape::Shape;

/// How long one experiment may take unless the plan says otherwise.
pub const EXPERIMENT_DEADLINE: Duration = Duration::from_secs(60);

/// How long the processes have to end by themselves before they are killed.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// What to start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Fan-out of each level.
    pub shape: Shape,
    /// Kind of socket of every edge.
    pub transport: Transport,
    /// The one core for the whole tree, the calling thread included; `None` leaves it free.
    pub cpu: Option<usize>,
    /// The program whose `main` begins with [`crate::run_hidden`].
    pub program: PathBuf,
    /// Longest wait for any packet, and longest experiment.
    pub deadline: Duration,
}

impl Plan {
    /// A tree of the calling program, unpinned.
    pub fn new(shape: Shape, transport: Transport) -> Result<Plan, Error> {
        let program = std::env::current_exe().map_err(Error::system("find the running program"))?;
        Ok(Plan { shape, transport, cpu: None, program, deadline: EXPERIMENT_DEADLINE })
    }
}

/// Place of a process in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Has children.
    Inner,
    /// Has none.
    Leaf,
}

/// What one process of a tree used from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUsage {
    /// Inner node or leaf.
    pub place: Place,
    /// CPU and memory.
    #[serde(flatten)]
    pub usage: Usage,
}

/// A running tree. Stays on the thread that started it: placement and the death signal of its
/// processes belong to that thread.
pub struct Floor {
    pub(crate) links: Vec<Link>,
    pub(crate) leaves: usize,
    pub(crate) deadline: Duration,
    pub(crate) broken: bool,
    /// Number of the next wave; every wave of a tree has its own.
    pub(crate) next_wave: u64,
    processes: Vec<(Pid, Place)>,
    _pinned: Option<Pinned>,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl Floor {
    /// Starts a tree of the calling program: one fan-out per level, and the one core that it is to
    /// stay on. The calling program's `main` must begin with [`crate::run_hidden`].
    pub fn start(
        fan_outs: &[usize],
        transport: Transport,
        cpu: Option<usize>,
    ) -> Result<Floor, Error> {
        let mut plan = Plan::new(Shape::new(fan_outs)?, transport)?;
        plan.cpu = cpu;
        Floor::start_plan(&plan)
    }

    /// Starts a tree as planned; returns when one wave has gone through all of it.
    pub fn start_plan(plan: &Plan) -> Result<Floor, Error> {
        let pinned = plan.cpu.map(Pinned::to).transpose();
        let mut floor = Floor {
            links: Vec::new(),
            leaves: plan.shape.leaves(),
            deadline: plan.deadline,
            broken: false,
            next_wave: 0,
            processes: Vec::new(),
            _pinned: pinned.map_err(Error::system("keep the tree on that core"))?,
            _stays_on_its_thread: PhantomData,
        };
        let edges = Edges::open(plan.transport).map_err(Error::system("listen on loopback"))?;
        let mut launcher = Launcher { plan, edges, processes: &mut floor.processes, next_rank: 0 };
        let (&fan_out, below) = plan.shape.fan_outs().split_first().unwrap_or((&0, &[]));
        for _ in 0..fan_out {
            // One edge at a time: a flat tree of 512 needs 512 descriptors here, not 1024.
            let (own, child) = launcher.edges.pair().map_err(Error::system("make a socket"))?;
            own.limit_waits(plan.deadline).map_err(Error::system("set a deadline"))?;
            floor.links.push(own);
            launcher.start(child, below)?;
        }
        floor.round_trip(size_of::<f64>(), 1, 0)?;
        Ok(floor)
    }

    /// Has each wait of this process, of a tree that stands, end after a time.
    pub fn limit_waits(&mut self, deadline: Duration) -> Result<(), Error> {
        for link in &self.links {
            link.limit_waits(deadline).map_err(Error::system("set a deadline"))?;
        }
        self.deadline = deadline;
        Ok(())
    }

    /// Process numbers of all nodes but the root, parents before their children.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(|(pid, _)| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// The same with the place of each.
    pub fn processes(&self) -> impl Iterator<Item = (u32, Place)> {
        let number = |pid: &Pid| pid.as_raw_nonzero().get().unsigned_abs();
        self.processes.iter().map(move |(pid, place)| (number(pid), *place))
    }

    /// CPU time used so far by all processes of the tree and the calling thread, nanoseconds.
    pub fn cpu_nanoseconds(&self) -> Result<u64, Error> {
        let mut sum = process::own_cpu_nanoseconds();
        for pid in self.process_ids() {
            sum += process::cpu_nanoseconds(pid).map_err(Error::system("read /proc/PID/task"))?;
        }
        Ok(sum)
    }

    /// Ends the tree and tells what each process used. An error if one did not end by itself, well.
    pub fn finish(mut self) -> Result<Vec<NodeUsage>, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let stop = packet::Command::Stop.encode();
        for child in 0..self.links.len() {
            let written = self.links[child].write_all(&stop);
            written.map_err(|source| self.fail("end the tree", child, source))?;
        }
        let (ended, trouble) = self.end();
        if trouble.is_empty() { Ok(ended) } else { Err(Error::EndedBadly(trouble)) }
    }

    /// Ends a tree that lost a link, and names the processes that were killed from outside.
    pub(crate) fn fail(&mut self, what: &'static str, child: usize, source: io::Error) -> Error {
        self.broken = true;
        let timed_out =
            matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let (_, trouble) = self.end();
        if timed_out {
            return Error::DeadlinePassed { what, after: self.deadline };
        }
        let dead = if trouble.is_empty() { "no process ended badly".to_string() } else { trouble };
        Error::Link { child, source, dead }
    }

    /// Closes the root's sockets and reaps every process. The text names those that were ended by a
    /// signal; failing that, those with an exit code other than 0.
    fn end(&mut self) -> (Vec<NodeUsage>, String) {
        self.links.clear();
        let until = Instant::now() + END_DEADLINE;
        let (mut signalled, mut failed) = (String::new(), String::new());
        let mut ended = Vec::new();
        for (pid, place) in self.processes.drain(..) {
            match process::reap(pid, until) {
                Ok(process::Reaped { status, usage, was_killed }) => {
                    ended.push(NodeUsage { place, usage });
                    let text = if status.signal().is_some() { &mut signalled } else { &mut failed };
                    let how = match was_killed {
                        true => "did not end and was killed".to_string(),
                        false => process::ending(status),
                    };
                    if !status.success() {
                        let _ = write!(text, "{}process {pid} {how}", separator(text));
                    }
                }
                Err(error) => {
                    let _ = write!(failed, "{}process {pid}: {error}", separator(&failed));
                }
            }
        }
        (ended, if signalled.is_empty() { failed } else { signalled })
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.end();
    }
}

fn separator(text: &str) -> &'static str {
    if text.is_empty() { "" } else { ", " }
}

struct Launcher<'a> {
    plan: &'a Plan,
    edges: Edges,
    processes: &'a mut Vec<(Pid, Place)>,
    next_rank: usize,
}

impl Launcher<'_> {
    /// Starts the process at the lower end of `parent`, then everything below it, left to right.
    fn start(&mut self, parent: Link, below: &[usize]) -> Result<(), Error> {
        let Some((&fan_out, below)) = below.split_first() else {
            let rank = self.next_rank;
            self.next_rank += 1;
            return self.execute(&[&parent], "leaf", rank.to_string());
        };
        let mut lower = Vec::with_capacity(fan_out);
        {
            let mut upper = Vec::with_capacity(fan_out);
            for _ in 0..fan_out {
                let (own, child) = self.edges.pair().map_err(Error::system("make a socket"))?;
                upper.push(own);
                lower.push(child);
            }
            let numbers: Vec<String> =
                upper.iter().map(|link| link.as_fd().as_raw_fd().to_string()).collect();
            let inherited: Vec<&Link> = std::iter::once(&parent).chain(&upper).collect();
            self.execute(&inherited, "inner", numbers.join(","))?;
            // The upper ends close here and live on in the child alone.
        }
        drop(parent);
        for child in lower {
            self.start(child, below)?;
        }
        Ok(())
    }

    /// Executes one node. The first of the inherited links is the one to its parent.
    fn execute(&mut self, inherited: &[&Link], role: &str, last: String) -> Result<(), Error> {
        let numbers: Vec<RawFd> = inherited.iter().map(|link| link.as_fd().as_raw_fd()).collect();
        let parent = numbers[0].to_string();
        let hidden = [NODE_ARGUMENT, role, &parent, &last].map(OsString::from);
        let mut command = Command::new(&self.plan.program);
        command.args(hidden).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let prepare = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            for &number in &numbers {
                // SAFETY: the links outlive `spawn`, in whose child this runs.
                let socket = unsafe { BorrowedFd::borrow_raw(number) };
                rustix::io::fcntl_setfd(socket, FdFlags::empty())?;
            }
            Ok(())
        };
        // Only the child lifts close-on-exec, and only from its own sockets: a process that another
        // thread starts at the same time inherits none of them.
        // SAFETY: the closure makes system calls only; it takes no lock and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        let program = || self.plan.program.clone();
        let child =
            command.spawn().map_err(|source| Error::Spawn { program: program(), source })?;
        let pid = Pid::from_child(&child);
        self.processes.push((pid, if role == "leaf" { Place::Leaf } else { Place::Inner }));
        Ok(())
    }
}
