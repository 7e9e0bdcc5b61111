//! A tree of real nodes in one process: bytes travel through bounded pipes, the clock is a number,
//! and a seed decides which link moves next and where the bytes are cut.
//!
//! A story builds a [`Tree`], opens streams, lets back-ends send, and asks for answers. Every
//! answer passes the [`oracle`] on its way to the story.
#![allow(dead_code, unused_imports, reason = "every story uses its own part of the harness")]

pub mod oracle;
mod pipes;
mod schedule;
mod sending;
mod stories;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_memory_network::{Network, SIDES};
use sapwood_node::{
    Answer, ChildPlan, DYNAMIC_RANKS_BEGIN, Delivery, Event, Input, Instant, Job, LinkId, Node,
    Output, Recovery, Role, Settings, StreamSpec,
};
use sapwood_packet::{IntoValues, Packet, Rank, RankSet, Recipients, StreamId};
use sapwood_topology::{Hosts, Shape, Topology};

use oracle::Oracle;
pub use schedule::{Schedule, each_seed};
pub use stories::*;

/// The tag of everything that is sent where the tag does not matter.
pub const TAG: i32 = 100;

/// More moves than any story needs: one that makes more does not come to rest.
const MOVES_MAX: u64 = 20_000_000;

/// More wake-ups than a node may have without the clock moving.
const WAKES_MAX: u32 = 1000;

/// What a communication process is told that joins.
const PLAN_OF_JOINED: [u8; 1] = [2];

/// One process of the tree.
pub struct Process {
    pub node: Node,
    pub role: Role,
    pub is_alive: bool,
    /// Whether it reads nothing, as a process that is stopped.
    pub is_stalled: bool,
    /// The rank that its parent gave it.
    pub rank: Option<Rank>,
    pub events: Vec<Event>,
    /// Packets that this back-end has received.
    pub received: Vec<Packet>,
    /// Whether deliveries stay in the node.
    pub is_deaf: bool,
    /// Whether its program is at work: what comes meanwhile is taken when it is done.
    is_at_work: bool,
    wake: Option<Instant>,
    wakes: u32,
}

/// What a back-end sends when a packet has come: values, and the stream that the packet came on.
pub type Program = Box<dyn FnMut(Rank, &Packet) -> Option<i64>>;

/// A tree of nodes with the pipes between them.
pub struct Tree {
    pub topology: Topology,
    pub processes: Vec<Process>,
    pub oracle: Oracle,
    pub schedule: Schedule,
    /// Events of the front-end.
    pub events: Vec<Event>,
    /// Ranks whose processes cannot be started, and their last words.
    pub unable: BTreeMap<Rank, String>,
    /// Ranks that reach no process when they connect.
    pub cut_off: RankSet,
    /// The most bytes that have been under way at once: in pipes and nodes.
    pub most_queued: usize,
    pub measures: bool,
    now: Instant,
    registry: Registry,
    by_rank: BTreeMap<Rank, usize>,
    network: Network,
    /// Processes that are about to be started: the parent and the rank.
    starting: Vec<(usize, Rank)>,
    program: Option<Program>,
    is_attaching: bool,
    recovery: Recovery,
    takes_dynamic_members: bool,
    /// Jobs of offloaded filters, which are out.
    pub jobs: Vec<(usize, Job)>,
    /// Whether jobs are given back some moves later, rather than at once.
    pub delays_jobs: bool,
    /// Whether they are not given back at all.
    pub holds_jobs: bool,
    /// Whether some process breaks the protocol on purpose.
    pub has_liars: bool,
    /// Orphans that connect to an address.
    connecting: Vec<(usize, String)>,
}

/// How a process has come into the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its parent has started it.
    Started,
    /// It has come by itself.
    Attached,
}

impl Tree {
    /// A tree of this shape, started.
    pub fn of(spec: &str, seed: u64) -> Self {
        Self::with_filters(spec, seed, Registry::built_in())
    }

    /// A started tree whose processes know these filters.
    pub fn with_filters(spec: &str, seed: u64, registry: Registry) -> Self {
        let mut tree = Self::planned(spec, seed, registry);
        tree.start();
        let everyone = tree.everyone();
        let is_ready = |event: &Event| matches!(event, Event::Ready { back_ends, .. } if *back_ends == everyone);
        assert!(tree.events.iter().any(is_ready), "all of {spec} is ready: {:?}", tree.events);
        tree
    }

    /// A started tree that repairs itself on these terms.
    pub fn recovering(spec: &str, seed: u64, recovery: Recovery) -> Self {
        Self::recovering_with(spec, seed, recovery, Registry::built_in())
    }

    /// The same, whose processes know these filters.
    pub fn recovering_with(spec: &str, seed: u64, recovery: Recovery, registry: Registry) -> Self {
        let mut tree = Self::planned_on(spec, seed, registry, recovery);
        tree.start();
        tree
    }

    /// A started tree that repairs itself, and takes members that were not planned.
    pub fn open_to_dynamic_members(spec: &str, seed: u64, recovery: Recovery) -> Self {
        Self::open_to_dynamic_members_with(spec, seed, recovery, Registry::built_in())
    }

    /// The same, whose processes know these filters.
    pub fn open_to_dynamic_members_with(
        spec: &str,
        seed: u64,
        recovery: Recovery,
        registry: Registry,
    ) -> Self {
        let mut tree = Self::planned_on(spec, seed, registry, recovery);
        tree.takes_dynamic_members = true;
        tree.start();
        tree
    }

    /// A tree whose back-ends attach by themselves; its communication processes are started.
    pub fn attaching(spec: &str, seed: u64) -> Self {
        let mut tree = Self::planned(spec, seed, Registry::built_in());
        tree.is_attaching = true;
        tree.start();
        tree
    }

    /// A tree of which no process but the front-end is there.
    pub fn planned(spec: &str, seed: u64, registry: Registry) -> Self {
        Self::planned_on(spec, seed, registry, Recovery::off())
    }

    /// The same, which will repair itself on these terms.
    pub fn planned_to_recover(spec: &str, seed: u64, recovery: Recovery) -> Self {
        Self::planned_on(spec, seed, Registry::built_in(), recovery)
    }

    fn planned_on(spec: &str, seed: u64, registry: Registry, recovery: Recovery) -> Self {
        let shape: Shape = spec.parse().expect("the story names a shape");
        let topology = Topology::from_shape(&shape, &Hosts::local());
        let mut tree = Self {
            topology,
            processes: Vec::new(),
            oracle: Oracle::default(),
            schedule: Schedule::new(seed),
            events: Vec::new(),
            unable: BTreeMap::new(),
            cut_off: RankSet::new(),
            most_queued: 0,
            measures: false,
            now: Instant(1_000_000_000),
            registry,
            by_rank: BTreeMap::new(),
            network: Network::default(),
            starting: Vec::new(),
            program: None,
            is_attaching: false,
            recovery,
            takes_dynamic_members: false,
            jobs: Vec::new(),
            delays_jobs: false,
            holds_jobs: false,
            has_liars: false,
            connecting: Vec::new(),
        };
        let root = tree.topology.root().rank();
        let front_end = tree.add_process(Role::FrontEnd, Some(root), Origin::Started);
        tree.by_rank.insert(root, front_end);
        tree
    }

    /// Starts the front-end's children and everything below, until it is quiet.
    pub fn start(&mut self) {
        self.begin();
        self.run();
    }

    /// Has the front-end start its children.
    pub fn begin(&mut self) {
        let root = self.topology.root().rank();
        self.grow(0, root);
    }

    /// Puts a front-end in the place of this one which knows one filter more than all others: only
    /// possible by starting anew.
    pub fn teach_front_end(&mut self, name: &'static str, maker: sapwood_filter::Maker) {
        let spec = self.topology.clone();
        let fresh = Self {
            topology: spec,
            processes: Vec::new(),
            oracle: Oracle::default(),
            schedule: Schedule::new(self.schedule.next()),
            events: Vec::new(),
            unable: BTreeMap::new(),
            cut_off: RankSet::new(),
            most_queued: 0,
            measures: false,
            now: self.now,
            registry: Registry::built_in().with(name, maker),
            by_rank: BTreeMap::new(),
            network: Network::default(),
            starting: Vec::new(),
            program: None,
            is_attaching: false,
            recovery: Recovery::off(),
            takes_dynamic_members: false,
            jobs: Vec::new(),
            delays_jobs: false,
            holds_jobs: false,
            has_liars: false,
            connecting: Vec::new(),
        };
        *self = fresh;
        let root = self.topology.root().rank();
        let front_end = self.add_process(Role::FrontEnd, Some(root), Origin::Started);
        self.by_rank.insert(root, front_end);
        self.registry = Registry::built_in();
        self.start();
    }

    /// A process leaves on purpose; the front-end ends the network by it.
    pub fn shutdown(&mut self, rank: Rank) {
        let (index, now) = (self.by_rank[&rank], self.now);
        self.processes[index].node.application().shutdown(now);
        self.drain(index);
        if rank != self.topology.root().rank() {
            self.oracle.killed(rank, &RankSet::range(rank, rank));
        }
    }

    /// The front-end has the tree repair itself from now on, or not. Nothing has moved yet.
    pub fn switch_recovery(&mut self, is_on: bool) {
        self.front_end()
            .application()
            .switch_recovery(is_on)
            .expect("the network began with recovery");
        self.drain(0);
    }

    /// All back-ends.
    pub fn everyone(&self) -> RankSet {
        self.topology.back_ends().collect()
    }

    /// The front-end's node.
    pub fn front_end(&mut self) -> &mut Node {
        &mut self.processes[0].node
    }

    pub fn process(&mut self, rank: Rank) -> &mut Process {
        let index = self.by_rank[&rank];
        &mut self.processes[index]
    }

    pub fn is_alive(&self, rank: Rank) -> bool {
        self.by_rank.get(&rank).is_some_and(|&index| self.processes[index].is_alive)
    }

    /// The communication processes, breadth first.
    pub fn communication_ranks(&self) -> Vec<Rank> {
        let root = self.topology.root().rank();
        let ranks = self.topology.breadth_first().into_iter();
        ranks.filter(|&rank| rank != root && !self.topology.children(rank).is_empty()).collect()
    }

    /// The back-ends below a process.
    pub fn below(&self, rank: Rank) -> RankSet {
        let mut set = RankSet::new();
        for (first, last) in self.topology.back_end_ranges(rank) {
            set.insert_range(first, last);
        }
        if set.is_empty() && self.topology.children(rank).is_empty() {
            set.insert(rank);
        }
        set
    }

    fn height(&self, rank: Rank) -> u32 {
        let children = self.topology.children(rank).iter();
        children.map(|&child| 1 + self.height(child)).max().unwrap_or(0)
    }

    pub(crate) fn add_process(&mut self, role: Role, rank: Option<Rank>, origin: Origin) -> usize {
        let settings = Settings {
            role,
            rank,
            is_started: origin == Origin::Started,
            pid: 1,
            address: (role != Role::BackEnd).then(|| format!("pipe:{}", self.processes.len())),
            registry: self.registry.clone(),
            recovery: self.recovery,
        };
        let mut node = Node::new(settings);
        node.set_time(self.now);
        self.processes.push(Process {
            node,
            role,
            is_alive: true,
            is_stalled: false,
            rank,
            events: Vec::new(),
            received: Vec::new(),
            is_deaf: false,
            is_at_work: false,
            wake: None,
            wakes: 0,
        });
        self.processes.len() - 1
    }

    /// Tells a process its children, and has them started.
    fn grow(&mut self, index: usize, rank: Rank) {
        let children: Vec<Rank> = self.topology.children(rank).to_vec();
        let is_leaf = |tree: &Self, rank: Rank| tree.topology.children(rank).is_empty();
        let mut plans = Vec::new();
        let mut kept = RankSet::new();
        for child in children {
            if is_leaf(self, child) && self.is_attaching {
                kept.insert(child);
                continue;
            }
            let plan = if is_leaf(self, child) { Vec::new() } else { vec![1] };
            plans.push(ChildPlan { rank: child, back_ends: self.below(child), plan });
            self.starting.push((index, child));
        }
        let (height, total) = (self.height(rank), self.topology.back_end_count());
        if self.takes_dynamic_members {
            self.processes[index].node.accept_dynamic_members(PLAN_OF_JOINED.to_vec());
        }
        self.processes[index].node.expect(plans, kept, height, total);
        self.drain(index);
    }

    /// One process that was to be started comes up, or fails.
    fn start_one(&mut self, (parent, rank): (usize, Rank)) {
        if !self.processes[parent].is_alive {
            return;
        }
        if let Some(text) = self.unable.get(&rank).cloned() {
            return self.change(parent, Input::StartFailed { rank, text });
        }
        let is_leaf = self.topology.children(rank).is_empty();
        let role = if is_leaf { Role::BackEnd } else { Role::Communication };
        let child = self.add_process(role, Some(rank), Origin::Started);
        self.by_rank.insert(rank, child);
        self.connect(parent, child);
    }

    /// A process that was to be started comes after all.
    pub fn start_late(&mut self, rank: Rank) {
        self.unable.remove(&rank);
        let parent = self.topology.parent(rank).map(|node| node.rank());
        let parent = self.by_rank[&parent.expect("the front-end is not started")];
        self.start_one((parent, rank));
    }

    /// Whether a process has been told its place.
    pub fn is_welcomed(&self, rank: Rank) -> bool {
        self.by_rank.get(&rank).is_some_and(|&index| self.processes[index].node.is_planned())
    }

    /// The front-end sends a file with filters. Nothing has moved yet.
    pub fn ship(&mut self, file: &sapwood_filter::ShippedFile<'_>) {
        self.processes[0].node.application().ship(file).expect("a short file");
        self.drain(0);
    }

    /// A back-end comes by itself, to a process that takes it or not. Gives its process.
    pub fn attach(&mut self, parent: Rank, rank: Option<Rank>) -> usize {
        let child = self.add_process(Role::BackEnd, rank, Origin::Attached);
        let parent = self.by_rank[&parent];
        self.connect(parent, child);
        self.run();
        if self.processes[child].is_alive
            && let Some(rank) = self.processes[child].rank
            && self.processes[child].node.rank() == Some(rank)
            && !self.processes[child].node.has_ended()
        {
            self.by_rank.insert(rank, child);
        }
        child
    }

    /// A back-end or a communication process that was not planned comes to a process. Nothing has
    /// moved yet.
    pub fn join_unplanned(&mut self, parent: Rank, role: Role) -> usize {
        let child = self.add_process(role, None, Origin::Attached);
        if role == Role::Communication {
            self.processes[child].node.join();
        }
        let parent = self.by_rank[&parent];
        self.connect(parent, child);
        child
    }

    /// Whether any link of a process is open.
    pub fn is_linked(&self, process: usize) -> bool {
        self.network.links_of(process).next().is_some()
    }

    pub fn connect(&mut self, parent: usize, child: usize) {
        let wire = self.network.join(Some(parent), Some(child));
        let [upper, lower] = SIDES.map(|side| self.network.link(wire, side));
        self.change(parent, Input::ChildUp { link: upper });
        self.change(child, Input::ParentUp { link: lower });
    }

    /// One input, and what comes of it.
    fn change(&mut self, process: usize, input: Input<'_>) {
        self.processes[process].node.handle_input(self.now, input);
        self.drain(process);
    }

    /// Carries out what a node has decided, and runs its filters.
    fn drain(&mut self, process: usize) {
        self.carry_out(process);
        let last_breach = self.processes[process].node.last_breach();
        assert!(self.has_liars || last_breach.is_none(), "no process lies here: {last_breach:?}");
        while self.processes[process].node.has_job() {
            let job = self.processes[process].node.take_job(self.now);
            self.carry_out(process);
            self.jobs.extend(job.map(|job| (process, job)));
            if !self.delays_jobs && !self.holds_jobs {
                self.finish_job();
            }
        }
        if self.processes[process].role == Role::BackEnd {
            self.let_program_work(process);
        }
        if self.measures {
            self.most_queued = self.most_queued.max(self.queued_bytes());
        }
    }

    /// Does one of the jobs that are out, and gives it back.
    pub fn finish_job(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let at = self.schedule.below(self.jobs.len());
        let (process, mut job) = self.jobs.swap_remove(at);
        job.run();
        if self.processes[process].is_alive {
            self.processes[process].node.finish_job(self.now, job, Duration::ZERO);
            self.drain(process);
        }
    }

    /// Gives back all of them, and those that follow.
    pub fn finish_jobs(&mut self) {
        self.holds_jobs = false;
        while !self.jobs.is_empty() {
            self.finish_job();
        }
    }

    fn carry_out(&mut self, process: usize) {
        while let Some(output) = self.processes[process].node.poll_output() {
            match output {
                Output::Transmit(link) => self.network.arm(process, link),
                Output::Hangup(link) => self.network.hang_up(process, link),
                Output::Connect { address } => self.connecting.push((process, address)),
                Output::Planned { rank, plan } => {
                    self.processes[process].rank = Some(rank);
                    if rank >= DYNAMIC_RANKS_BEGIN {
                        self.by_rank.insert(rank, process);
                    }
                    if plan == PLAN_OF_JOINED {
                        self.processes[process].node.accept_dynamic_members(plan);
                        let total = self.topology.back_end_count();
                        self.processes[process].node.expect(vec![], RankSet::new(), 1, total);
                    } else if !plan.is_empty() {
                        self.grow(process, rank);
                    }
                }
                Output::Event(event) if process == 0 => self.events.push(event),
                Output::Event(event) => self.processes[process].events.push(event),
            }
        }
        self.processes[process].wake = self.processes[process].node.poll_timeout();
    }

    /// Bytes in all pipes and nodes.
    pub fn queued_bytes(&self) -> usize {
        let alive = self.processes.iter().filter(|process| process.is_alive);
        let nodes: usize = alive.map(|process| process.node.queued_bytes()).sum();
        nodes + self.network.bytes()
    }

    fn let_program_work(&mut self, process: usize) {
        let one = &mut self.processes[process];
        if one.is_deaf || !one.is_alive || std::mem::replace(&mut one.is_at_work, true) {
            return;
        }
        while let Some(delivery) = self.processes[process].node.application().poll_delivery() {
            let (stream, cost) = (delivery.stream(), delivery.cost());
            self.processes[process].node.application().consumed(stream, cost);
            let Delivery::Packet(packet) = delivery else { panic!("a back-end got an answer") };
            let rank = self.processes[process].rank.expect("a back-end that receives has a rank");
            let mut program = self.program.take();
            let value = program.as_mut().and_then(|program| program(rank, &packet));
            self.program = program;
            self.processes[process].received.push(packet);
            if let Some(value) = value {
                self.send(rank, stream, value).expect("the program sends on an open stream");
            }
            self.drain(process);
        }
        self.processes[process].is_at_work = false;
    }

    /// What every back-end does with a packet: the value that it sends back on the same stream.
    pub fn program(&mut self, program: impl FnMut(Rank, &Packet) -> Option<i64> + 'static) {
        self.program = Some(Box::new(program));
    }

    /// Opens a stream; its answers are checked as sums when its filter is `sum`.
    pub fn open(&mut self, spec: StreamSpec) -> StreamId {
        let stream =
            self.front_end().application().open_stream(spec.clone()).expect("the stream opens");
        self.oracle.opened(stream, &spec);
        self.drain(0);
        stream
    }

    pub fn close(&mut self, stream: StreamId) {
        self.front_end().application().close_stream(stream).expect("the front-end closes streams");
        self.drain(0);
    }

    /// The front-end sends to some members, or to all where no rank is named.
    pub fn broadcast(&mut self, stream: StreamId, ranks: &RankSet, values: impl IntoValues) {
        let now = self.now;
        let to = if ranks.is_empty() { Recipients::All } else { ranks.into() };
        let sent = self.front_end().application().broadcast(now, stream, TAG, values, &to);
        sent.expect("the stream is open");
        self.drain(0);
    }

    /// Ends a process as if by a signal: what it has written may still be read.
    pub fn kill(&mut self, rank: Rank) {
        let process = self.by_rank[&rank];
        self.processes[process].is_alive = false;
        self.network.close_all(process);
        let is_leaf = self.topology.children(rank).is_empty();
        if is_leaf || !self.recovery.is_on {
            let lost = self.below(rank);
            self.oracle.killed(rank, &lost);
        }
        let parent = self.topology.parent(rank).map(|node| node.rank());
        if let Some(&parent) = parent.and_then(|parent| self.by_rank.get(&parent))
            && self.processes[parent].is_alive
        {
            // The process that has started it sees it end, which counts when it has not connected.
            let text = String::from("ended before it connected");
            self.change(parent, Input::StartFailed { rank, text });
        }
    }

    /// All answers that have come, checked.
    pub fn answers(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            self.run();
            let Some(delivery) = self.front_end().application().poll_delivery() else {
                return answers;
            };
            let (stream, cost) = (delivery.stream(), delivery.cost());
            self.front_end().application().consumed(stream, cost);
            self.drain(0);
            let Delivery::Answer(answer) = delivery else { panic!("the front-end got a packet") };
            self.oracle.check(&answer);
            answers.push(answer);
        }
    }

    /// Lets the clock run, with everything that falls due on the way.
    pub fn advance(&mut self, milliseconds: u64) {
        let until = Instant(self.now.0 + milliseconds * 1_000_000);
        self.run();
        while let Some(at) = self.next_wake().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.processes.iter_mut().for_each(|process| process.wakes = 0);
            self.run();
        }
        self.now = until;
        self.run();
    }

    /// Lets the clock go on, while bytes are still on their way.
    pub fn tick(&mut self, milliseconds: u64) {
        self.now = Instant(self.now.0 + milliseconds * 1_000_000);
        self.processes.iter_mut().for_each(|process| process.wakes = 0);
    }

    /// An orphan's connection to an ancestor comes about, or does not.
    fn connect_one(&mut self, (orphan, address): (usize, String)) {
        if !self.processes[orphan].is_alive {
            return;
        }
        let is_cut_off = |rank| self.cut_off.contains(rank);
        if self.processes[orphan].rank.is_some_and(is_cut_off) {
            let reason = String::from("no answer");
            return self.change(orphan, Input::ConnectFailed { reason, is_refused: false });
        }
        let index = address.strip_prefix("pipe:").and_then(|text| text.parse().ok());
        let ancestor: usize = index.expect("an address of the harness");
        if self.processes[ancestor].is_alive {
            return self.connect(ancestor, orphan);
        }
        let reason = String::from("no process listens");
        self.change(orphan, Input::ConnectFailed { reason, is_refused: true });
    }

    fn next_wake(&self) -> Option<Instant> {
        let alive = self.processes.iter().filter(|process| process.is_alive);
        alive.filter_map(|process| process.wake).min()
    }

    /// Makes moves until nothing can move.
    pub fn run(&mut self) {
        for _ in 0..MOVES_MAX {
            if !self.step() {
                return self.check_rest();
            }
        }
        panic!("the tree does not come to rest");
    }

    /// Makes this many moves, or fewer when the tree comes to rest before.
    pub fn run_some(&mut self, moves: u64) {
        for _ in 0..moves {
            if !self.step() {
                return;
            }
        }
    }

    /// One move, if there is one to make.
    pub fn step(&mut self) -> bool {
        for index in 0..self.processes.len() {
            let process = &mut self.processes[index];
            if process.is_alive && process.wake.is_some_and(|at| at <= self.now) {
                process.wakes += 1;
                assert!(process.wakes < WAKES_MAX, "rank {:?} spins on its clock", process.rank);
                self.change(index, Input::Timeout);
                return true;
            }
        }
        let gives_back = !self.holds_jobs && !self.jobs.is_empty();
        if gives_back && self.schedule.one_in(6) {
            self.finish_job();
            return true;
        }
        if !self.starting.is_empty() && self.schedule.one_in(4) {
            let at = self.schedule.below(self.starting.len());
            let starting = self.starting.swap_remove(at);
            self.start_one(starting);
            return true;
        }
        if !self.connecting.is_empty() && self.schedule.one_in(4) {
            let at = self.schedule.below(self.connecting.len());
            let connecting = self.connecting.swap_remove(at);
            self.connect_one(connecting);
            return true;
        }
        if self.move_bytes() {
            return true;
        }
        if let Some(connecting) = self.connecting.pop() {
            self.connect_one(connecting);
            return true;
        }
        if gives_back {
            self.finish_job();
            return true;
        }
        match self.starting.pop() {
            Some(starting) => {
                self.start_one(starting);
                true
            }
            None => false,
        }
    }

    /// Ranks of back-ends that are alive and can be reached.
    pub fn reachable(&self) -> BTreeSet<Rank> {
        if self.recovery.is_on {
            return self.topology.back_ends().filter(|&rank| self.is_alive(rank)).collect();
        }
        let is_reached = |&rank: &Rank| {
            self.is_alive(rank)
                && self.topology.ancestors(rank).all(|node| self.is_alive(node.rank()))
        };
        self.topology.back_ends().filter(is_reached).collect()
    }
}
