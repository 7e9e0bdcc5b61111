//! A run from beginning to end: the tree starts, works, is struck, comes to rest, and ends.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_node::Role;
use sapwood_packet::{Rank, RankSet, StreamId};

use crate::agenda::{MILLISECOND, SECOND, Time};
use crate::dropped::{Dropped, DroppedBy};
use crate::oracle::Rule;
use crate::process::{Notice, Process, State};
use crate::scenario::{ENDING_MAX, SETTLE_MAX};
use crate::world::{FRONT_END, World};
use crate::{Class, Expect, Options, Violation};

/// How long is waited between two looks at whether the tree is at rest.
const LOOK: Time = 50 * MILLISECOND;
/// How long nothing may arrive once the tree is at rest.
const QUIET: Time = 500 * MILLISECOND;
/// The start gives up processes that have not joined by then; see the limit in `dial`.
const START_MAX: Time = 60 * SECOND;
/// Most wake-ups of one process in a second of virtual time.
const WAKES_MAX: u32 = 2000;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// The shape of its tree.
    pub shape: String,
    /// Virtual nanoseconds that it took.
    pub nanoseconds: u64,
    /// Turns of processes, arrivals and so on.
    pub happenings: u64,
    /// Faults that struck, by [`Class::index`].
    pub injected: [u64; Class::ALL.len()],
    /// Answers that were checked.
    pub answers: u64,
    /// Contributions in them.
    pub contributions: u64,
    /// Downward packets that were received.
    pub received: u64,
    /// Rules that were broken, in order of time.
    pub violations: Vec<Violation>,
    /// One line per event, if they were asked for.
    pub log: Vec<String>,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64, options: &Options) -> Outcome {
    let mut world = World::new(seed, options);
    world.begin();
    world.play();
    if world.is_leading() && world.front_end.has_begun() {
        world.ask_everyone();
    }
    let there = world.settle();
    world.finish(&there);
    Outcome {
        seed,
        shape: world.shape(),
        nanoseconds: world.now,
        happenings: world.happenings,
        injected: world.injected,
        answers: world.oracle.answers,
        contributions: world.oracle.contributions,
        received: world.oracle.received,
        violations: world.oracle.into_violations(),
        log: world.log.into_lines(),
    }
}

impl World {
    /// The front-end starts its children.
    fn begin(&mut self) {
        let root = self.topology.root().rank();
        let shape = self.shape();
        let plan = format!("{:?}", self.scenario.speed);
        self.note(FRONT_END, || format!("starts a tree {shape} with {plan}"));
        self.grow(FRONT_END, root);
        self.poke(FRONT_END, 0);
    }

    /// Lets the tree start and work, while faults strike.
    fn play(&mut self) {
        let mut until = LOOK;
        while until < START_MAX && !self.front_end.has_begun() && self.is_leading() {
            self.pass(until);
            until += LOOK;
        }
        if self.is_leading() && !self.front_end.has_begun() {
            let text = String::from("the tree has not started in time");
            self.oracle.violate(self.now, Rule::Deadline, text);
        }
        let end = self.now + self.scenario.duration;
        let last = self.scenario.strikes.iter().map(|strike| strike.at + strike.lasts).max();
        let end = end.max(last.unwrap_or(0)).max(self.lags.end());
        while self.now < end && !self.is_given_up() {
            self.pass((self.now + SECOND).min(end));
        }
        self.mend_all();
    }

    /// Whether there is a front-end whose network is not over.
    fn is_leading(&self) -> bool {
        let front_end = &self.processes[FRONT_END];
        front_end.is_alive() && !front_end.node.has_ended()
    }

    /// Lets time pass, and looks at what must not grow with it.
    fn pass(&mut self, until: Time) {
        let from = self.now;
        self.run_until(until);
        let seconds = (until - from) / SECOND + 1;
        for process in 0..self.processes.len() {
            let wakes = core::mem::take(&mut self.processes[process].wakes);
            if u64::from(wakes) > u64::from(WAKES_MAX) * seconds {
                let name = self.processes[process].name();
                let text = format!("{name} was woken {wakes} times in {seconds} s");
                self.oracle.violate(self.now, Rule::Wakes, text);
            }
        }
        for process in 0..self.processes.len() {
            self.check_bound(process);
        }
    }

    /// Runs until nothing is missing any more, or the limit is over. Returns the present back-ends.
    fn settle(&mut self) -> RankSet {
        let limit = self.now + SETTLE_MAX;
        loop {
            let mut is_quiet = false;
            while self.now < limit && !is_quiet && !self.is_given_up() {
                self.pass(self.now + if self.now + 10 * SECOND < limit { LOOK } else { SECOND });
                is_quiet = self.is_at_rest();
            }
            self.pass(self.now + QUIET);
            // A process that comes back when the tree seems at rest may still list a child that has
            // died while both were cut off, and notice that only when it has been silent for long
            // enough.
            if self.now >= limit || self.is_given_up() || self.is_at_rest() {
                break;
            }
        }
        let there = self.connected();
        if !self.is_leading() || self.is_given_up() {
            return there;
        }
        self.note_dropped();
        let demanded = self.demanded(&there);
        if !self.front_end.is_done() {
            let text = String::from("the front-end's program waits for room for ever");
            self.oracle.violate(self.now, Rule::Deadline, text);
        }
        self.check_programs();
        self.check_view(&there);
        self.check_fresh(&there);
        let dropped = self.dropped();
        self.oracle.demand_complete(self.now, &demanded, &dropped);
        there
    }

    /// The back-ends whose packets must all have arrived: the present ones, and those that left on
    /// purpose undisturbed.
    fn demanded(&self, there: &RankSet) -> RankSet {
        let mut demanded = there.clone();
        if self.options.expect == Expect::Losses {
            demanded.subtract(self.harmed.as_ref());
        }
        demanded
    }

    fn is_at_rest(&mut self) -> bool {
        if !self.is_leading() {
            return true;
        }
        if self.waits_for_answer() {
            return false;
        }
        let there = self.connected();
        let demanded = self.demanded(&there);
        let dropped = self.dropped();
        let leaves = |one: &Process| one.role == Role::BackEnd && one.has_left && one.is_alive();
        self.front_end.is_done()
            && !self.processes.iter().any(leaves)
            && self.processes.iter().all(|one| one.jobs.is_empty())
            && demanded.iter().all(|rank| self.unfinished(rank).is_none())
            && self.oracle.is_complete(&demanded, &dropped)
            && self.is_healed(&there)
    }

    /// What the program of a back-end has still to do.
    fn unfinished(&self, rank: Rank) -> Option<String> {
        let one = self.by_rank.get(&rank).map(|&process| &self.processes[process])?;
        if one.role != Role::BackEnd || !one.is_alive() {
            return None;
        }
        if !one.leaf.is_done() {
            return Some(format!("the program of rank {rank} waits for room for ever"));
        }
        let node = &self.processes[FRONT_END].node;
        let is_member =
            |&stream: &StreamId| node.members(stream).is_some_and(|members| members.contains(rank));
        let unknown = self.front_end.open_streams().filter(is_member);
        let unknown = unknown.into_iter().find(|&stream| !one.leaf.knows(stream))?;
        Some(format!("rank {rank} is never told of stream {unknown}"))
    }

    /// Whether all processes that must be adopted are.
    fn is_healed(&self, there: &RankSet) -> bool {
        match self.options.expect {
            Expect::Losses => true,
            Expect::Recovery => {
                let view = self.processes[FRONT_END].node.back_ends();
                view == *there
                    && self.processes.iter().all(|one| {
                        one.role != Role::BackEnd
                            || one.state != State::Running
                            || one.node.has_ended()
                            || one.rank.is_none_or(|rank| there.contains(rank))
                    })
            }
        }
    }

    /// Programs that are still there have sent all that they were to send.
    fn check_programs(&mut self) {
        for rank in self.demanded(&self.connected()).iter() {
            if let Some(text) = self.unfinished(rank) {
                self.oracle.violate(self.now, Rule::Deadline, text);
            }
        }
    }

    /// Checks the front-end's list of members.
    fn check_view(&mut self, there: &RankSet) {
        let view = self.processes[FRONT_END].node.back_ends();
        if view != *there {
            let text = format!("the front-end knows of '{view}', there are '{there}'");
            self.oracle.violate(self.now, Rule::View, text);
        }
        if let Some(text) = self.missing_for_good(there) {
            self.oracle.violate(self.now, Rule::View, text);
        }
        if self.options.expect == Expect::Recovery {
            self.check_survivors(there);
        }
    }

    /// Each back-end that was not struck itself is still a member.
    fn check_survivors(&mut self, there: &RankSet) {
        for process in 0..self.processes.len() {
            let one = &self.processes[process];
            let Some(rank) = one.rank.filter(|_| one.role == Role::BackEnd) else { continue };
            let was_welcomed = one.node.is_planned();
            // An orphan that finds no ancestor within its limit may give up.
            let may_end = one.state == State::Ended && self.tries_patience();
            let is_gone = one.state == State::Crashed || one.has_left || may_end;
            if was_welcomed && !is_gone && !there.contains(rank) {
                let state = one.state;
                let text = format!("rank {rank} is alive ({state:?}) and has lost the tree");
                self.oracle.violate(self.now, Rule::View, text);
            }
        }
    }

    /// Whether processes were silent for long enough that orphans may have given up.
    fn tries_patience(&self) -> bool {
        let limit = self.scenario.recovery.orphan_limit.as_nanos() / 4;
        let is_silent = |class| matches!(class, Class::Stop | Class::Partition | Class::Slow);
        let is_late = self.injected[Class::Lag.index()] > 0 && !self.was_only_late();
        let strikes = self.scenario.strikes.iter();
        is_late
            || strikes
                .clone()
                .filter(|one| is_silent(one.class))
                .any(|one| u128::from(one.lasts) > limit)
    }

    /// Writes down what back-ends have dropped.
    fn note_dropped(&mut self) {
        for &DroppedBy { rank, stream, count } in self.dropped().by_back_ends() {
            if let Some(&process) = self.by_rank.get(&rank) {
                self.note(process, || format!("has dropped {count} on stream {stream}"));
            }
        }
    }

    fn dropped(&self) -> Dropped {
        Dropped::of(&self.processes, self.streams.keys())
    }

    /// The front-end ends the network, and all processes must end.
    fn finish(&mut self, _there: &RankSet) {
        if self.processes[FRONT_END].is_alive() {
            self.notify(FRONT_END, Notice::Leave);
        }
        let limit = self.now + ENDING_MAX;
        while self.now < limit && self.someone().is_some() && !self.is_given_up() {
            self.pass(self.now + LOOK);
        }
        if self.is_given_up() {
            return;
        }
        while let Some(process) = self.someone() {
            let name = self.processes[process].name();
            let text = format!("{name} is still there, long after the network has ended");
            self.oracle.violate(self.now, Rule::Ending, text);
            self.exit(process, State::Crashed);
        }
    }

    /// A process that is still there.
    fn someone(&self) -> Option<usize> {
        self.processes.iter().position(Process::is_alive)
    }

    /// No process holds more than its links and streams allow.
    fn check_bound(&mut self, process: usize) {
        let one = &self.processes[process];
        if !one.is_alive() {
            return;
        }
        let queued = one.node.queued_bytes();
        if queued <= FREE_BYTES {
            return;
        }
        let links = one.ports.iter().flatten().count();
        let most = self.bytes_max(links);
        if queued > most {
            let name = one.name();
            let text = format!("{name} holds {queued} bytes; {links} links allow {most}");
            self.oracle.violate(self.now, Rule::Bound, text);
        }
    }

    /// A few windows and packets for each link and stream.
    fn bytes_max(&self, links: usize) -> usize {
        let back_ends = self.topology.back_end_count() as usize;
        let kept = match self.options.expect {
            Expect::Losses => 0,
            Expect::Recovery => 2 * sapwood_wire::limits::KEPT_BYTES,
        };
        let of_stream = |plan: &crate::scenario::StreamPlan| {
            let grows = matches!(
                plan.kind,
                crate::scenario::Kind::Concatenate
                    | crate::scenario::Kind::None
                    | crate::scenario::Kind::Equivalence
            );
            let packets = if grows { back_ends } else { 1 };
            let packet = (plan.packet_bytes() + HEAD_BYTES) * packets;
            let window = plan.window_bytes.unwrap_or(sapwood_wire::limits::WINDOW_BYTES) as usize;
            (links + 2) * 3 * (window + packet) + kept
        };
        let streams: usize = self.scenario.streams.iter().map(of_stream).sum();
        streams + FREE_BYTES
    }
}

/// So much a process may hold whatever its streams are.
const FREE_BYTES: usize = 256 << 10;
/// What a packet takes besides its values, at most.
const HEAD_BYTES: usize = 300;

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for line in &self.log {
            writeln!(f, "{line}")?;
        }
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        Ok(())
    }
}
