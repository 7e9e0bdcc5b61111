//! The fault injector: a thread that faults processes of a network, one after another, at random
//! from a seed, and undoes what can be undone.
//!
//! Owns the choice of faults and processes and their timing. Signals go to processes, what concerns
//! the network goes to a host of the test bed, through its script. The same thread watches over the
//! front-end: if that hangs, it ends the storm, since no other process could.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sapwood::Rank;
use sapwood_launch::{Local, Order};
use sapwood_random::Random;

use super::chance::{one_of, time};
use super::members::Member;
use sapwood_command_line::exit::{Failure, OWN_FAILURE};

/// Time between two faults, in milliseconds.
const PAUSE_MS: (f64, f64) = (50.0, 1500.0);

/// How long a process is stopped or a host cut off, in milliseconds: from less than a heartbeat to
/// far more than what makes its neighbours give it up.
const OUTAGE_MS: (f64, f64) = (30.0, 2500.0);

/// The share of communication processes, and of back-ends, that is left alive.
const COMMUNICATION_LEFT: f64 = 0.25;
const BACK_ENDS_LEFT: f64 = 0.7;

/// How long the test bed's script may take.
const SCRIPT_DEADLINE: Duration = Duration::from_secs(10);

/// A front-end that has done nothing for this time hangs.
const HANG_LIMIT: Duration = Duration::from_secs(60);

/// What is done to a process or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Fault {
    /// A communication process is killed at once.
    Kill,
    /// A communication process is stopped, and resumed later.
    Stop,
    /// The host of a communication process is cut off, and healed later. Needs a test bed.
    Cut,
    /// All connections of the host of a communication process are reset. Needs a test bed.
    Reset,
    /// A back-end is killed.
    KillBackEnd,
    /// A back-end is stopped, and resumed later.
    StopBackEnd,
    /// A host of back-ends is cut off, and healed later. Needs a test bed.
    CutBackEnd,
}

impl Fault {
    /// How often it is chosen, in relation to the others.
    fn weight(self) -> usize {
        match self {
            Self::Kill | Self::Cut | Self::Stop => 5,
            Self::Reset => 3,
            Self::StopBackEnd | Self::CutBackEnd => 2,
            Self::KillBackEnd => 1,
        }
    }

    fn needs_host(self) -> bool {
        matches!(self, Self::Cut | Self::Reset | Self::CutBackEnd)
    }

    fn is_of_back_ends(self) -> bool {
        matches!(self, Self::KillBackEnd | Self::StopBackEnd | Self::CutBackEnd)
    }

    /// Whether the process ends of it.
    pub(super) fn is_kill(self) -> bool {
        matches!(self, Self::Kill | Self::KillBackEnd)
    }
}

/// What was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Injected {
    pub fault: Fault,
    pub rank: Rank,
    /// How long it lasts, if it is undone.
    pub outage: Option<Duration>,
}

/// What the injector may do.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub faults: Vec<Fault>,
    /// The test bed's script, if the network lives on its hosts.
    pub testbed: Option<PathBuf>,
    pub seed: u64,
    /// Ranks from this one on are communication processes.
    pub first_communication: Rank,
}

/// The running thread.
pub(super) struct FaultInjector {
    stop: Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
    /// What was done, as it is done.
    pub injected: Receiver<Injected>,
    beat: Arc<AtomicU64>,
}

impl FaultInjector {
    /// Begins on these processes.
    pub(super) fn begin(members: Arc<Vec<Member>>, limits: Limits) -> Self {
        let (stop, stopped) = channel();
        let (tell, injected) = channel();
        let beat = Arc::new(AtomicU64::new(0));
        let heard = Arc::clone(&beat);
        let thread = std::thread::spawn(move || {
            let watch = Watch { beat: heard, last: 0, since: Instant::now() };
            let random = Random::new(limits.seed);
            let (outages, gone) = (BTreeMap::new(), Vec::new());
            Loop { members, limits, random, outages, gone, tell, watch }.run(&stopped)
        });
        Self { stop, thread, injected, beat }
    }

    /// The front-end is alive.
    pub(super) fn beat(&self) {
        self.beat.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it has done what it may: too few are left.
    pub(super) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it; everything that can be undone is undone then. Gives the last injected.
    pub(super) fn end(self) -> Result<Vec<Injected>, Failure> {
        // A thread that has ended by itself needs no telling.
        let _ = self.stop.send(());
        let result = self.thread.join();
        result.map_err(|_| Failure::own(&"the storm's injector has failed"))??;
        Ok(self.injected.try_iter().collect())
    }
}

/// Sees whether the front-end goes on.
struct Watch {
    beat: Arc<AtomicU64>,
    last: u64,
    since: Instant,
}

impl Watch {
    fn hangs(&mut self) -> bool {
        let beat = self.beat.load(Ordering::Relaxed);
        if beat != self.last {
            self.last = beat;
            self.since = Instant::now();
        }
        self.since.elapsed() > HANG_LIMIT
    }
}

struct Loop {
    members: Arc<Vec<Member>>,
    limits: Limits,
    random: Random,
    /// The processes that are stopped or cut off, until when.
    outages: BTreeMap<Rank, (Instant, Fault)>,
    /// The processes that have been killed.
    gone: Vec<Rank>,
    tell: Sender<Injected>,
    watch: Watch,
}

impl Loop {
    fn run(&mut self, stopped: &Receiver<()>) -> Result<(), Failure> {
        let result = self.inject_until_stopped(stopped);
        for (rank, (_, fault)) in std::mem::take(&mut self.outages) {
            self.undo(rank, fault)?;
        }
        result
    }

    /// Until it is told to stop or too few are left.
    fn inject_until_stopped(&mut self, stopped: &Receiver<()>) -> Result<(), Failure> {
        let mut next = Instant::now() + time(&mut self.random, PAUSE_MS.0, PAUSE_MS.1);
        loop {
            let undoing = self.outages.values().map(|(until, _)| *until).min();
            let wake = undoing.map_or(next, |undoing| undoing.min(next));
            match stopped.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return Ok(()),
            }
            if self.watch.hangs() {
                self.end_all();
            }
            let now = Instant::now();
            let due = |(rank, (until, fault)): (&Rank, &(Instant, Fault))| {
                (*until <= now).then_some((*rank, *fault))
            };
            for (rank, fault) in self.outages.iter().filter_map(due).collect::<Vec<_>>() {
                self.outages.remove(&rank);
                self.undo(rank, fault)?;
            }
            if next <= now {
                if !self.do_something()? {
                    return Ok(());
                }
                next = Instant::now() + time(&mut self.random, PAUSE_MS.0, PAUSE_MS.1);
            }
        }
    }

    /// One fault; says whether enough are left for another.
    fn do_something(&mut self) -> Result<bool, Failure> {
        let weighted: Vec<Fault> = self
            .limits
            .faults
            .iter()
            .flat_map(|fault| std::iter::repeat_n(*fault, fault.weight()))
            .filter(|fault| !fault.needs_host() || self.limits.testbed.is_some())
            .collect();
        let Some(fault) = one_of(&mut self.random, &weighted).copied() else { return Ok(true) };
        let (all, free) = self.candidates(fault.is_of_back_ends());
        let least = if fault.is_of_back_ends() { BACK_ENDS_LEFT } else { COMMUNICATION_LEFT };
        let alive = self.alive(fault.is_of_back_ends());
        if fault.is_kill() && (alive as f64) <= all as f64 * least {
            return Ok(false);
        }
        let Some(rank) = one_of(&mut self.random, &free).copied() else { return Ok(true) };
        let outage = match fault {
            Fault::Stop | Fault::Cut | Fault::StopBackEnd | Fault::CutBackEnd => {
                Some(time(&mut self.random, OUTAGE_MS.0, OUTAGE_MS.1))
            }
            _ => None,
        };
        self.inflict(rank, fault)?;
        if let Some(outage) = outage {
            self.outages.insert(rank, (Instant::now() + outage, fault));
        }
        if fault.is_kill() {
            self.gone.push(rank);
        }
        // A process that listens no more has no interest in it.
        let _ = self.tell.send(Injected { fault, rank, outage });
        Ok(true)
    }

    fn is_back_end(&self, rank: Rank) -> bool {
        rank < self.limits.first_communication
    }

    /// How many there were of that role, and those that live and are left alone now.
    fn candidates(&self, back_ends: bool) -> (usize, Vec<Rank>) {
        let of_role = || self.members.iter().filter(|m| self.is_back_end(m.rank) == back_ends);
        let is_free = |member: &&Member| {
            let rank = member.rank;
            !self.outages.contains_key(&rank) && !self.gone.contains(&rank) && member.is_alive()
        };
        (of_role().count(), of_role().filter(is_free).map(|member| member.rank).collect())
    }

    fn alive(&self, back_ends: bool) -> usize {
        let of_role = self.members.iter().filter(|m| self.is_back_end(m.rank) == back_ends);
        of_role.filter(|member| member.is_alive()).count()
    }

    fn inflict(&self, rank: Rank, fault: Fault) -> Result<(), Failure> {
        let Some(member) = self.member(rank) else { return Ok(()) };
        match fault {
            Fault::Kill | Fault::KillBackEnd => _ = member.signal(Signal::KILL),
            Fault::Stop | Fault::StopBackEnd => _ = member.signal(Signal::STOP),
            Fault::Cut | Fault::CutBackEnd => self.at_host(member, "cut")?,
            Fault::Reset => self.at_host(member, "reset")?,
        }
        Ok(())
    }

    fn undo(&self, rank: Rank, fault: Fault) -> Result<(), Failure> {
        let Some(member) = self.member(rank) else { return Ok(()) };
        match fault {
            Fault::Stop | Fault::StopBackEnd => _ = member.signal(Signal::CONT),
            Fault::Cut | Fault::CutBackEnd => self.at_host(member, "heal")?,
            Fault::Kill | Fault::KillBackEnd | Fault::Reset => {}
        }
        Ok(())
    }

    fn member(&self, rank: Rank) -> Option<&Member> {
        self.members.iter().find(|member| member.rank == rank)
    }

    fn at_host(&self, member: &Member, verb: &str) -> Result<(), Failure> {
        match (&self.limits.testbed, &member.host) {
            (Some(testbed), Some(host)) => run_script(testbed, &[verb, host]),
            _ => Ok(()),
        }
    }

    /// The front-end hangs: nothing is left running, and the command fails.
    fn end_all(&self) -> ! {
        for member in self.members.iter() {
            member.signal(Signal::CONT);
            member.signal(Signal::KILL);
        }
        for (rank, (_, fault)) in &self.outages {
            // It is over in any case.
            let _ = self.undo(*rank, *fault);
        }
        eprintln!("sapwood: the front-end has not moved for {} s", HANG_LIMIT.as_secs());
        std::process::exit(OWN_FAILURE.into())
    }
}

/// Runs the test bed's script to its end.
fn run_script(script: &Path, words: &[&str]) -> Result<(), Failure> {
    let failed =
        |why: &str| Failure::own(&format!("{} {}: {why}", script.display(), words.join(" ")));
    let mut order = Order::new(script);
    order.arguments = words.iter().map(Into::into).collect();
    let mut process = Local.start(&order).map_err(|error| failed(&error.to_string()))?;
    match process.wait(SCRIPT_DEADLINE) {
        Some(exit) if exit.is_success() => Ok(()),
        _ => Err(failed(&process.exit_report())),
    }
}
