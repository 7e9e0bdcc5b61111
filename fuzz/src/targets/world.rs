//! Real nodes in one process, with pipes between them whose bytes the input moves, cuts and alters.
//!
//! An end of a wire belongs to a node or to the input, which chooses the bytes that come from its
//! ends. The world does what a node decides, as a runtime would, writes a fingerprint of all that
//! it has decided, and holds it to what is true of every node: outputs come to an end, and so do
//! wake-ups while the clock stands still.

mod pipes;

use std::fmt::{self, Debug, Write};

use sapwood_filter::Registry;
use sapwood_memory_network::Network;
use sapwood_node::{
    ChildPlan, Delivery, Event, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings,
};
use sapwood_packet::{Rank, RankSet};
use sapwood_topology::Topology;

pub(super) use sapwood_memory_network::{SIDES, Side};

/// More outputs than one change of a node may have.
const OUTPUTS_MAX: u32 = 20_000;
/// More wake-ups than a node may have while the clock stands still.
const WAKES_MAX: u32 = 100;
/// More rounds than a world may need until nothing moves.
const ROUNDS_MAX: u32 = 20_000;

/// The time at which a world begins.
const START: Instant = Instant(1_000_000_000);

/// One process.
pub(super) struct Process {
    pub node: Node,
    pub role: Role,
    pub rank: Option<Rank>,
    pub is_alive: bool,
    /// Whether it reads nothing, as a process that is stopped.
    pub is_stalled: bool,
    /// Whether the front-end has said that everything below has started.
    pub is_ready: bool,
    /// How many links it has given up.
    pub hangups: u32,
    /// The address that it wants to connect to.
    dials: Option<String>,
    wake: Option<Instant>,
    wakes: u32,
}

/// All processes, and the wires between them.
pub(super) struct World {
    pub processes: Vec<Process>,
    pub network: Network,
    pub topology: Topology,
    /// Whether children that a node wants to start are started.
    pub starts_children: bool,
    /// What all nodes that are added do about processes that are gone.
    pub recovery: Recovery,
    pub now: Instant,
    /// Processes that are about to be started: the parent and the rank.
    starting: Vec<(usize, Rank)>,
    fingerprint: Fingerprint,
}

impl World {
    pub fn new(topology: Topology) -> Self {
        Self {
            processes: Vec::new(),
            network: Network::default(),
            topology,
            starts_children: true,
            recovery: Recovery::default(),
            now: START,
            starting: Vec::new(),
            fingerprint: Fingerprint(0xcbf2_9ce4_8422_2325),
        }
    }

    /// The front-end of the topology, with everything below about to start.
    pub fn add_front_end(&mut self) {
        let rank = self.topology.root().rank();
        self.add(Role::FrontEnd, Some(rank), true);
        self.grow(0, rank);
    }

    pub fn add(&mut self, role: Role, rank: Option<Rank>, is_started: bool) -> usize {
        let index = self.processes.len();
        self.processes.push(Process {
            node: node(role, rank, is_started, index, self.recovery),
            role,
            rank,
            is_alive: true,
            is_stalled: false,
            is_ready: false,
            hangups: 0,
            dials: None,
            wake: None,
            wakes: 0,
        });
        index
    }

    /// Joins two processes; `None` is an end of the input.
    pub fn connect(&mut self, parent: Option<usize>, child: Option<usize>) -> usize {
        let wire = self.network.join(parent, child);
        let [upper, lower] = SIDES.map(|side| self.network.link(wire, side));
        if let Some(parent) = parent {
            self.change(parent, Input::ChildUp { link: upper });
        }
        if let Some(child) = child {
            self.change(child, Input::ParentUp { link: lower });
        }
        wire
    }

    /// One input, and what comes of it.
    pub fn change(&mut self, process: usize, input: Input<'_>) {
        self.processes[process].node.handle_input(self.now, input);
        self.drain(process);
    }

    /// Carries out what a node has decided.
    pub fn drain(&mut self, process: usize) {
        for count in 0.. {
            assert!(count < OUTPUTS_MAX, "the outputs of one change do not end");
            let Some(output) = self.processes[process].node.poll_output() else { break };
            self.note(&(process, &output));
            match output {
                Output::Transmit(link) => self.network.arm(process, link),
                Output::Hangup(link) => {
                    self.processes[process].hangups += 1;
                    self.network.hang_up(process, link);
                }
                Output::Planned { rank, plan } => {
                    self.processes[process].rank = Some(rank);
                    if !plan.is_empty() {
                        self.grow(process, rank);
                    }
                }
                Output::Connect { address } => self.processes[process].dials = Some(address),
                Output::Event(Event::Ready { .. }) => self.processes[process].is_ready = true,
                Output::Event(_) => {}
            }
        }
        self.processes[process].wake = self.processes[process].node.poll_timeout();
    }

    /// All processes of a tree keep the rules: no link was broken for what was said over it.
    pub fn no_process_is_distrusted(&self) {
        for process in &self.processes {
            let last_breach = process.node.last_breach();
            assert!(last_breach.is_none(), "an honest process was broken off: {last_breach:?}");
        }
    }

    /// Tells a process its children, and has them started.
    fn grow(&mut self, process: usize, rank: Rank) {
        let Some(node) = self.topology.node(rank) else { return };
        let mut plans = Vec::new();
        let mut kept = RankSet::new();
        for &child in node.children() {
            let leaf = self.topology.children(child).is_empty();
            if self.topology.is_attaching() && leaf {
                kept.insert(child);
                continue;
            }
            let mut back_ends = RankSet::new();
            for (first, last) in self.topology.back_end_ranges(child) {
                back_ends.insert_range(first, last);
            }
            if leaf {
                back_ends.insert(child);
            }
            let plan = if leaf { Vec::new() } else { vec![1] };
            plans.push(ChildPlan { rank: child, back_ends, plan });
            if self.starts_children {
                self.starting.push((process, child));
            }
        }
        let height = self.topology.depth().saturating_sub(node.depth());
        let total = self.topology.back_end_count();
        self.processes[process].node.expect(plans, kept, height, total);
        self.drain(process);
    }

    /// One process that was to be started comes up, or fails.
    pub fn start_one(&mut self, fails: bool) -> bool {
        let Some((parent, rank)) = self.starting.pop() else { return false };
        if !self.processes[parent].is_alive {
            return true;
        }
        if fails {
            self.change(parent, Input::StartFailed { rank, text: "it is not there".into() });
            return true;
        }
        let is_leaf = self.topology.children(rank).is_empty();
        let role = if is_leaf { Role::BackEnd } else { Role::Communication };
        let child = self.add(role, Some(rank), true);
        self.connect(Some(parent), Some(child));
        true
    }

    /// One process that wants to connect reaches its target, or not; the input's end when
    /// `meets_input`.
    pub fn dial_one(&mut self, meets_input: bool) -> bool {
        let wants = |process: &Process| process.is_alive && process.dials.is_some();
        let Some(child) = self.processes.iter().position(wants) else { return false };
        let address = self.processes[child].dials.take().unwrap_or_default();
        let number = address.strip_prefix("pipe:").and_then(|number| number.parse().ok());
        let there = number.and_then(|number: usize| self.processes.get(number));
        match there.filter(|parent| parent.is_alive && parent.role != Role::BackEnd) {
            _ if meets_input => drop(self.connect(None, Some(child))),
            Some(parent) if !parent.is_stalled && number != Some(child) => {
                self.connect(number, Some(child));
            }
            parent => {
                let is_refused = parent.is_none();
                let reason = "no process answers".into();
                self.change(child, Input::ConnectFailed { reason, is_refused });
            }
        }
        true
    }

    /// Whether the clock has run for long enough that a process may be judged by its silence.
    pub fn may_be_silent(&self) -> bool {
        self.now.since(START) >= self.recovery.silence
    }

    /// Lets the clock run.
    pub fn pass_time(&mut self, nanoseconds: u64) {
        self.now = Instant(self.now.0.saturating_add(nanoseconds));
        self.processes.iter_mut().for_each(|process| process.wakes = 0);
    }

    /// Lets the clock run to the next time that a node waits for, if there is one.
    pub fn pass_to_wake(&mut self) -> bool {
        let alive = self.processes.iter().filter(|process| process.is_alive);
        let Some(at) = alive.filter_map(|process| process.wake).min() else { return false };
        self.pass_time(at.0.saturating_sub(self.now.0));
        true
    }

    /// Wakes one node whose time has come.
    pub fn wake_one(&mut self) -> bool {
        let now = self.now;
        let is_due =
            |process: &Process| process.is_alive && process.wake.is_some_and(|at| at <= now);
        let Some(index) = self.processes.iter().position(is_due) else { return false };
        let process = &mut self.processes[index];
        process.wakes += 1;
        assert!(process.wakes < WAKES_MAX, "wake-ups repeat without end");
        self.change(index, Input::Timeout);
        true
    }

    /// Moves everything until nothing can move.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut has_moved = self.wake_one() | self.start_one(false) | self.dial_one(false);
            for wire in 0..self.network.wires() {
                for side in SIDES {
                    has_moved |= self.write(wire, side, usize::MAX);
                    has_moved |= self.read(wire, side, usize::MAX);
                }
            }
            if !has_moved {
                return;
            }
        }
        panic!("the nodes do not come to rest");
    }

    /// Ends a process as if by a signal: what it has written may still be read.
    pub fn kill(&mut self, process: usize) {
        self.processes[process].is_alive = false;
        self.network.close_all(process);
    }

    /// Makes something part of the run's fingerprint.
    pub fn note(&mut self, what: &impl Debug) {
        let _ = write!(self.fingerprint, "{what:?}");
    }

    /// As [`World::note`], of what the application got; its values may be long.
    pub fn note_delivery(&mut self, delivery: &Delivery) {
        let packet = match delivery {
            Delivery::Answer(answer) => {
                self.note(&(answer.wave, &answer.contributors, &answer.missing, answer.is_late));
                answer.packet.as_ref()
            }
            Delivery::Packet(packet) => Some(packet),
        };
        if let Some(packet) = packet {
            self.note(&packet.header);
            self.fingerprint.add(packet.body().as_bytes());
        }
    }

    /// What all nodes have decided and written, as one number.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.0
    }

    /// Holds every process to the end of the network: nothing is left to write on an open link.
    pub fn check_written(&mut self) {
        for process in 0..self.processes.len() {
            if !self.processes[process].is_alive {
                continue;
            }
            let links: Vec<_> = self.network.links_of(process).collect();
            for (link, wire, side) in links {
                let is_whole = SIDES.iter().all(|&side| self.network.is_open(wire, side));
                let is_read = is_whole && self.has_room(wire, side);
                let waits = self.processes[process].node.wants_write(link);
                assert!(!(is_read && waits), "something is left to write");
            }
        }
    }
}

/// A node as every world has it.
pub(super) fn node(
    role: Role,
    rank: Option<Rank>,
    is_started: bool,
    index: usize,
    recovery: Recovery,
) -> Node {
    Node::new(Settings {
        role,
        rank,
        is_started,
        pid: 1,
        address: (role != Role::BackEnd).then(|| format!("pipe:{index}")),
        registry: Registry::built_in(),
        recovery,
    })
}

/// What a node has to say over a link.
pub(super) fn words(node: &Node, link: LinkId) -> Vec<u8> {
    let mut bytes = Vec::new();
    node.gather(link, |part| {
        bytes.extend_from_slice(part);
        true
    });
    bytes
}

/// A number that is another one after other words (after FNV-1a).
struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.0 = (self.0 ^ u64::from_le_bytes(*word)).wrapping_mul(0x100_0000_01b3);
            self.0 ^= self.0 >> 29;
        }
        for &byte in rest {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}
