//! Hosts that come back into a tree that stands.
//!
//! While hosts are missing, a thread finds out whether one of them answers again: it starts a tree
//! over some of them only, and ends it at once. If one has come, it starts the whole tree anew,
//! beside the one that stands, and offers it to the daemon. Owns when that is done ([`Schedule`])
//! and the thread that does it ([`Attempt`]); whether the new tree is taken, and what becomes of
//! the other one, is the daemon's. docs/decisions/0027-hosts-come-back.md says why it is so.

use std::io::{PipeReader, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use sapwood::{Network, PreparedName, RankSet, Topology};
use sapwood_topology::HostName;

use super::AGENT;
use super::message::Asking;
use crate::deploy::{Targets, builder};
use crate::launching::Launching;
use crate::tree::{self, Purpose, TreeTerms};
use sapwood_command_line::exit::Failure;

/// The longest pause between two attempts. A tree that was whole for as long begins with the
/// shortest one again, so that a host that comes and goes costs no more than one that is away.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How many missing hosts are asked in one attempt; others are in the next one.
const ASKED_MAX: usize = 32;

/// How a tree over the same hosts is started again.
pub(crate) struct Way {
    /// By rank.
    pub(crate) names: Vec<HostName>,
    pub(crate) launching: Launching,
    pub(crate) topology: Topology,
}

/// When missing hosts are asked.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The first pause; zero for no attempt.
    first: Duration,
    pause: Duration,
    due: Option<Instant>,
    whole_since: Option<Instant>,
    /// How many attempts there were.
    attempts: usize,
}

/// The hosts that a tree has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    All,
    /// Some are missing.
    Missing,
}

impl Schedule {
    /// With this first pause; zero for no attempt at all.
    pub(crate) fn new(first: Duration) -> Self {
        Self { first, pause: first, due: None, whole_since: None, attempts: 0 }
    }

    /// Whether an attempt is to begin, in a tree with these hosts.
    pub(crate) fn is_due(&mut self, now: Instant, hosts: Hosts) -> bool {
        if self.first.is_zero() {
            return false;
        }
        if hosts == Hosts::All {
            self.due = None;
            self.whole_since.get_or_insert(now);
            return false;
        }
        let whole_since = self.whole_since.take();
        if whole_since.is_some_and(|since| now.saturating_duration_since(since) >= PAUSE_MAX) {
            self.pause = self.first;
        }
        now >= *self.due.get_or_insert(now + self.pause)
    }

    /// An attempt begins: the next one has no time yet.
    pub(crate) fn begin(&mut self) {
        self.due = None;
    }

    /// When the next attempt is to begin, if one is.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// When hosts that are missing now are asked; nothing where none ever is.
    pub(crate) fn asking(&self, now: Instant) -> Option<Asking> {
        let next = self.due.map_or(self.pause, |due| due.saturating_duration_since(now));
        let asking = Asking { next, pause_max: self.pause_max() };
        (!self.first.is_zero()).then_some(asking)
    }

    fn pause_max(&self) -> Duration {
        PAUSE_MAX.max(self.first)
    }

    /// An attempt has ended, and the next one is farther off.
    pub(crate) fn put_off(&mut self) {
        self.due = None;
        self.attempts += 1;
        self.pause = (2 * self.pause).min(self.pause_max());
    }

    /// Which of the missing hosts are asked in this attempt.
    pub(crate) fn turn_of<H: Clone>(&self, missing: &[H]) -> Vec<H> {
        let first = self.attempts * ASKED_MAX % missing.len().max(1);
        let count = ASKED_MAX.min(missing.len());
        missing.iter().cycle().skip(first).take(count).cloned().collect()
    }
}

/// How far an attempt is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Running,
    /// There is a tree with these back-ends, which is to be taken or refused. Told once.
    Stands(RankSet),
    /// It has ended, and has left nothing.
    Over,
}

/// A thread that asks missing hosts. Its tree is taken over with a `C`; what becomes of it is told
/// with an `E` when the thread ends.
pub(crate) struct Attempt<C, E> {
    /// Readable when there is progress.
    bell: PipeReader,
    found: Receiver<Anew>,
    /// What makes its tree visible, once there is one.
    name: Option<PreparedName>,
    /// None when the tree was refused.
    offer: Option<Sender<C>>,
    is_cancelled: Arc<AtomicBool>,
    thread: JoinHandle<Option<E>>,
}

/// A tree that was started anew.
struct Anew {
    there: RankSet,
    /// None where the files could not be written.
    name: Option<PreparedName>,
}

/// The thread of an attempt whose tree is taken, and the way to it.
pub(crate) struct Heir<C, E> {
    /// What makes its tree visible in the place of the one that has it, if that could be prepared.
    pub(crate) name: Option<PreparedName>,
    pub(crate) offer: Sender<C>,
    pub(crate) thread: JoinHandle<Option<E>>,
}

impl<C: Send + 'static, E: Send + 'static> Attempt<C, E> {
    /// Asks these hosts; `keep` serves the whole tree once it is taken. It is to have this name.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn begin(
        name: String,
        way: Arc<Way>,
        asked: Vec<HostName>,
        keep: impl FnOnce(Network, C) -> E + Send + 'static,
    ) -> std::io::Result<Self> {
        let (bell, ringer) = std::io::pipe()?;
        let ((tell, found), (offer, taken)) = (channel(), channel());
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let search = Search { way, asked, is_cancelled: Arc::clone(&is_cancelled) };
        let work = move || {
            // Closed, and so rung, after all that is declared later: when nothing is left.
            let mut ringer = ringer;
            let mut network = search.tree()?;
            let there = network.everyone().ranks().clone();
            let anew = Anew { there, name: network.name().prepare(&name).ok() };
            ringer.write_all(b"!").ok()?;
            tell.send(anew).ok()?;
            let charge = taken.recv().ok()?;
            Some(keep(network, charge))
        };
        let thread = Builder::new().name("return".into()).spawn(work)?;
        Ok(Self { bell, found, name: None, offer: Some(offer), is_cancelled, thread })
    }

    /// What becomes readable when there is progress.
    pub(crate) fn bell(&self) -> &PipeReader {
        &self.bell
    }

    /// How far it is.
    pub(crate) fn progress(&mut self) -> Progress {
        if let Ok(Anew { there, name }) = self.found.try_recv() {
            self.name = name;
            // It was rung before.
            let _ = self.bell.read_exact(&mut [0]);
            return Progress::Stands(there);
        }
        if self.thread.is_finished() { Progress::Over } else { Progress::Running }
    }

    /// Does without its tree, which ends.
    pub(crate) fn refuse(&mut self) {
        (self.offer, self.name) = (None, None);
    }

    /// Takes its tree; nothing where it was refused.
    pub(crate) fn take(self) -> Option<Heir<C, E>> {
        let Self { name, offer, thread, .. } = self;
        Some(Heir { name, offer: offer?, thread })
    }

    /// Has it end wherever it is. The thread ends when it has left nothing.
    pub(crate) fn cancel(self) -> JoinHandle<Option<E>> {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.thread
    }
}

/// What the thread of an attempt does first.
struct Search {
    way: Arc<Way>,
    asked: Vec<HostName>,
    is_cancelled: Arc<AtomicBool>,
}

impl Search {
    /// The whole tree, if one of the hosts that were asked has answered.
    fn tree(&self) -> Option<Network> {
        let found = match self.has_answer() {
            Ok(false) => return None,
            Ok(true) => self.open(self.way.topology.clone()),
            Err(failure) => Err(failure),
        };
        // What is cancelled fails, too.
        if let Err(failure) = &found
            && !self.is_cancelled.load(Ordering::Relaxed)
        {
            tracing::warn!(target: "sapwood::member", "cannot look for missing hosts: {failure}");
        }
        found.ok()
    }

    /// Whether one of the hosts runs an agent when it is asked to. All are reached from here: what
    /// would reach others in the whole tree may be missing itself.
    fn has_answer(&self) -> Result<bool, Failure> {
        let targets = Targets::of(self.asked.iter().map(ToString::to_string).collect())?;
        let mut terms = TreeTerms::default();
        // With one child at most, each host would get a process of its own in front.
        terms.or_fan_out(|| targets.count().max(2));
        let chosen = tree::over(&targets, &terms, &self.way.launching, Purpose::Once)?;
        let network = self.open(chosen.topology)?;
        let has_answer = !network.everyone().ranks().is_empty();
        network.close()?;
        Ok(has_answer)
    }

    fn open(&self, topology: Topology) -> Result<Network, Failure> {
        let is_cancelled = Arc::clone(&self.is_cancelled);
        let builder = builder(topology, &self.way.launching, AGENT)?;
        Ok(builder.interrupt(move || is_cancelled.load(Ordering::Relaxed)).open()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(5);

    /// After which time, in seconds, the next attempt begins in a tree that is not whole.
    fn pause(schedule: &mut Schedule, now: &mut Instant) -> u64 {
        assert!(!schedule.is_due(*now, Hosts::Missing));
        let due = schedule.due().expect("an attempt is to begin");
        assert!(!schedule.is_due(due - Duration::from_millis(1), Hosts::Missing));
        assert!(schedule.is_due(due, Hosts::Missing));
        let pause = due - *now;
        *now = due;
        schedule.put_off();
        pause.as_secs()
    }

    #[test]
    fn pauses_grow_until_the_tree_was_whole_for_long() {
        let (mut schedule, mut now) = (Schedule::new(FIRST), Instant::now());
        let pauses = [(); 6].map(|()| pause(&mut schedule, &mut now));
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
        assert!(!schedule.is_due(now, Hosts::All));
        now += PAUSE_MAX / 2;
        assert_eq!(pause(&mut schedule, &mut now), 60, "it was whole for a moment only");
        assert!(!schedule.is_due(now, Hosts::All));
        assert_eq!(schedule.due(), None);
        now += PAUSE_MAX;
        assert_eq!(pause(&mut schedule, &mut now), 5);
    }

    #[test]
    fn no_pause_is_no_attempt() {
        let (mut schedule, now) = (Schedule::new(Duration::ZERO), Instant::now());
        assert!(
            !schedule.is_due(now, Hosts::Missing)
                && !schedule.is_due(now + PAUSE_MAX, Hosts::Missing)
        );
        assert_eq!((schedule.due(), schedule.asking(now)), (None, None));
    }

    #[test]
    fn it_is_told_when_missing_hosts_are_asked() {
        let (mut schedule, now) = (Schedule::new(FIRST), Instant::now());
        let next = |schedule: &Schedule, now| schedule.asking(now).map(|asking| asking.next);
        assert_eq!(next(&schedule, now), Some(FIRST), "it was not looked which are missing");
        assert!(!schedule.is_due(now, Hosts::Missing));
        assert_eq!(next(&schedule, now + FIRST / 5), Some(FIRST * 4 / 5));
        assert_eq!(next(&schedule, now + 2 * FIRST), Some(Duration::ZERO));
        schedule.put_off();
        let asking = Asking { next: 2 * FIRST, pause_max: PAUSE_MAX };
        assert_eq!(schedule.asking(now), Some(asking));
        let rare = Schedule::new(5 * PAUSE_MAX).asking(now);
        assert_eq!(rare.map(|asking| asking.pause_max), Some(5 * PAUSE_MAX));
    }

    #[test]
    fn all_missing_hosts_have_their_turn() {
        let mut schedule = Schedule::new(FIRST);
        let missing: Vec<usize> = (0..ASKED_MAX * 2 + 5).collect();
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let turn = schedule.turn_of(&missing);
            assert_eq!(turn.len(), ASKED_MAX);
            asked.extend(turn);
            schedule.put_off();
        }
        assert_eq!(asked.len(), missing.len());
        assert_eq!(schedule.turn_of(&[7]), [7]);
        assert!(schedule.turn_of::<u8>(&[]).is_empty());
    }
}
