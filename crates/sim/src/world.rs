//! The world of a run: its processes, its wires and its clock, and the loop that lets things
//! happen.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_filter::Registry;
use sapwood_memory_network::{Pipe, Speed, transfer_buffer};
use sapwood_node::{LinkId, Node, Role, Settings};
use sapwood_packet::{Rank, RankSet, Slab, StreamId};
use sapwood_random::Random;
use sapwood_topology::{Hosts, Topology};

use crate::agenda::{Agenda, Happening, Time};
use crate::focus::Focus;
use crate::fresh::Fresh;
use crate::lag::Lags;
use crate::log::Log;
use crate::offload::{Slowness, register};
use crate::oracle::{Oracle, Rule};
use crate::process::{Process, State};
use crate::program::FrontEnd;
use crate::scenario::Scenario;
use crate::{Class, Options, chance};

/// The number of the front-end's process.
pub(crate) const FRONT_END: usize = 0;
/// The end of a wire at the process that was connected to, which becomes the parent.
pub(crate) const UPPER: usize = 0;
/// The end at the process that connected.
pub(crate) const LOWER: usize = 1;

/// How a process has come into the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Its parent has started it.
    Started,
    /// It has come by itself.
    Attached,
}

/// One end of a wire.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) process: usize,
    /// Its number there, while it is open.
    pub(crate) link: Option<LinkId>,
    /// Set once it will not be opened again.
    pub(crate) is_closed: bool,
    /// The bytes from here to the other end.
    pub(crate) pipe: Pipe,
    /// Whether the process has more to write than there was room for.
    pub(crate) waits_for_room: bool,
    /// The bytes written since the last whole frame, for the log.
    pub(crate) unread_frame: Vec<u8>,
}

/// A link between two processes.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) ends: [End; 2],
    pub(crate) speed: Speed,
}

/// A run under way.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    pub(crate) chance: Random,
    pub(crate) scenario: Scenario,
    pub(crate) topology: Topology,
    pub(crate) processes: Vec<Process>,
    pub(crate) by_rank: BTreeMap<Rank, usize>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) oracle: Oracle,
    pub(crate) log: Log,
    pub(crate) front_end: FrontEnd,
    /// The stream that is opened when nothing strikes any more.
    pub(crate) fresh: Fresh,
    /// Open streams, and which plan each follows.
    pub(crate) streams: BTreeMap<StreamId, usize>,
    /// How many faults of each class have struck.
    pub(crate) injected: [u64; Class::ALL.len()],
    /// Bytes from a process that a partition cuts off wait here.
    pub(crate) parked: Vec<Happening>,
    /// The process that was struck last.
    pub(crate) last_struck: Option<usize>,
    /// The faults that were injected, by number, with their victims.
    pub(crate) struck: Vec<(usize, usize)>,
    /// Back-ends that may have been lost to a fault.
    pub(crate) harmed: RankSet,
    /// Which back-ends come by themselves, by the number of their coming.
    pub(crate) joiners: Vec<Rank>,
    pub(crate) happenings: u64,
    /// Bytes for one read, as the runtime has them.
    pub(crate) buffer: Slab,
    pub(crate) options: Options,
    pub(crate) slowness: Slowness,
    pub(crate) lags: Lags,
}

impl World {
    /// A world with nothing but its front-end.
    pub(crate) fn new(seed: u64, options: &Options) -> Self {
        let mut chance = chance::of_seed(seed);
        let recovers = options.expect == crate::Expect::Recovery;
        let mut scenario = Scenario::draw(&mut chance, options.faults, recovers);
        Focus::of(seed).apply(seed, options.faults, &mut scenario);
        let lags = Lags::draw(seed, options.faults, scenario.duration);
        scenario.recovery = lags.terms(scenario.recovery);
        let topology = Topology::from_shape(&scenario.shape, &Hosts::local());
        let root = topology.root().rank();
        let mut world = Self {
            now: 0,
            agenda: Agenda::default(),
            chance,
            topology,
            processes: Vec::new(),
            by_rank: BTreeMap::new(),
            wires: Vec::new(),
            oracle: Oracle::new(options.expect, scenario.chunk_bytes),
            log: Log::new(options.log),
            front_end: FrontEnd::new(&scenario),
            fresh: Fresh::default(),
            streams: BTreeMap::new(),
            injected: [0; Class::ALL.len()],
            parked: Vec::new(),
            last_struck: None,
            struck: Vec::new(),
            harmed: RankSet::new(),
            joiners: Vec::new(),
            happenings: 0,
            buffer: transfer_buffer(),
            options: options.clone(),
            slowness: Slowness::draw(seed, &scenario),
            lags,
            scenario,
        };
        let front_end = world.add_process(Role::FrontEnd, Some(root), Origin::Started);
        world.by_rank.insert(root, front_end);
        for number in 0..world.scenario.strikes.len() {
            let at = world.scenario.strikes[number].at;
            world.agenda.put(at, Happening::Strike(number));
        }
        world.plan_lags();
        world
    }

    /// A process that knows its rank, or not.
    pub(crate) fn add_process(&mut self, role: Role, rank: Option<Rank>, origin: Origin) -> usize {
        let settings = Settings {
            role,
            rank,
            is_started: origin == Origin::Started,
            pid: self.processes.len() as u32 + 1,
            address: None,
            registry: register(
                self.options.registry.map_or_else(Registry::built_in, |make| make()),
            ),
            recovery: self.scenario.recovery,
        };
        let mut node = Node::new(settings);
        node.set_chunk_bytes(self.scenario.chunk_bytes);
        if let Some(prepare) = self.options.prepare {
            prepare(&mut node);
        }
        let mut process = Process::new(node, role, rank);
        process.clock_offset = self.chance.below(1 << 50);
        process.node.set_time(process.clock(self.now));
        self.processes.push(process);
        let process = self.processes.len() - 1;
        self.delay(process);
        process
    }

    /// Lets everything happen that is due until then.
    pub(crate) fn run_until(&mut self, until: Time) {
        while let Some(at) = self.agenda.next_time()
            && at <= until
            && self.happenings < HAPPENINGS_MAX
        {
            let Some((at, what)) = self.agenda.take() else { break };
            self.now = self.now.max(at);
            self.happenings += 1;
            self.happen(what);
        }
        if self.happenings == HAPPENINGS_MAX {
            self.happenings += 1;
            let text = alloc::format!("{HAPPENINGS_MAX} things have happened, and more are to");
            self.oracle.violate(self.now, Rule::Deadline, text);
        }
        self.now = self.now.max(until);
    }

    /// Whether the run has been given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.happenings > HAPPENINGS_MAX
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Turn(process) => self.turn(process),
            Happening::Arrival { wire, from } => self.arrival(wire, from),
            Happening::Start { parent, rank } => self.start(parent, rank),
            Happening::StartLimit(process) => {
                self.notify(process, crate::process::Notice::StartLimit);
            }
            Happening::ConnectionRequest { dialer, attempt, target } => {
                self.request_connection(dialer, attempt, target)
            }
            Happening::Answer { dialer, attempt, wire, is_refused } => {
                self.dial_answered(dialer, attempt, wire, is_refused);
            }
            Happening::DialLimit { dialer, attempt } => self.dial_limit(dialer, attempt),
            Happening::Strike(number) => self.strike(number),
            Happening::Mend(number) => self.mend(number),
            Happening::Join(number) => self.join(number),
            Happening::Lag(number) => self.begin_lag(number),
        }
    }

    /// Sees to it that a process has a turn no later than this, but not while it is busy.
    pub(crate) fn poke(&mut self, process: usize, at: Time) {
        let one = &mut self.processes[process];
        if one.state != State::Running {
            return;
        }
        let at = at.max(one.busy_until).max(self.now);
        if one.turn_at.is_none_or(|other| at < other) {
            one.turn_at = Some(at);
            self.agenda.put(at, Happening::Turn(process));
        }
    }

    /// Bytes have come out of a pipe, unless a partition holds them.
    fn arrival(&mut self, wire: usize, from: usize) {
        let to = 1 - from;
        let [upper, lower] = [&self.wires[wire].ends[UPPER], &self.wires[wire].ends[LOWER]];
        if self.is_cut(upper.process, lower.process) {
            self.parked.push(Happening::Arrival { wire, from });
            return;
        }
        let now = self.now;
        if !self.wires[wire].ends[from].pipe.arrive(now) {
            return;
        }
        let End { process, link, .. } = self.wires[wire].ends[to];
        if let Some(link) = link {
            self.list(process, link);
        }
    }

    /// A link has something to read.
    pub(crate) fn list(&mut self, process: usize, link: LinkId) {
        let one = &mut self.processes[process];
        let Some(port) = one.port(link) else { return };
        if !core::mem::replace(&mut port.is_listed, true) {
            one.readable.push_back(link);
        }
        self.poke(process, self.now);
    }

    /// Whether a partition lies between two processes.
    pub(crate) fn is_cut(&self, one: usize, other: usize) -> bool {
        self.processes[one].side_bits != self.processes[other].side_bits
    }

    /// The back-ends of the plan at or below a process.
    pub(crate) fn below(&self, rank: Rank) -> RankSet {
        let mut set = RankSet::new();
        if self.topology.node(rank).is_none() {
            return set;
        }
        for (first, last) in self.topology.back_end_ranges(rank) {
            set.insert_range(first, last);
        }
        if self.is_back_end(rank) {
            set.insert(rank);
        }
        set
    }

    /// Whether a rank of the plan is a back-end's.
    pub(crate) fn is_back_end(&self, rank: Rank) -> bool {
        self.topology.back_ends().contains(&rank)
    }

    /// Back-ends whose processes are there, and which are linked to the front-end by processes that
    /// are.
    pub(crate) fn connected(&self) -> RankSet {
        let mut set = RankSet::new();
        for (index, process) in self.processes.iter().enumerate() {
            if let (Role::BackEnd, Some(rank)) = (process.role, process.rank)
                && self.is_connected(index)
            {
                set.insert(rank);
            }
        }
        set
    }

    fn is_connected(&self, mut process: usize) -> bool {
        // No deeper than there are processes.
        for _ in 0..self.processes.len() {
            let one = &self.processes[process];
            if !one.is_alive() || one.node.has_ended() {
                return false;
            }
            if process == FRONT_END {
                return true;
            }
            // One that asks an ancestor has a link upwards, and no place yet.
            if one.node.is_orphan() {
                return false;
            }
            let upwards = one.ports.iter().flatten().find(|port| port.side == LOWER);
            let Some(port) = upwards else { return false };
            let upper = &self.wires[port.wire].ends[UPPER];
            if upper.link.is_none() || one.rank.is_none() {
                return false;
            }
            process = upper.process;
        }
        false
    }

    /// Writes a line about a process.
    pub(crate) fn note(&mut self, process: usize, text: impl FnOnce() -> String) {
        if self.log.is_on() {
            let name = self.processes[process].name();
            self.log.line(self.now, || alloc::format!("{name:<8} {}", text()));
        }
    }

    /// The address of a process.
    pub(crate) fn address_of(process: usize) -> String {
        alloc::format!("sim:{process}")
    }

    /// Which process has an address.
    pub(crate) fn process_at(&self, address: &str) -> Option<usize> {
        let number = address.strip_prefix("sim:")?.parse().ok()?;
        (number < self.processes.len()).then_some(number)
    }

    /// The shape of the run's tree as text.
    pub(crate) fn shape(&self) -> String {
        self.scenario.shape.to_string()
    }
}

/// A run in which more happens does not come to rest.
const HAPPENINGS_MAX: u64 = 8_000_000;
