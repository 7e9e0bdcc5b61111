//! How processes begin and find each other: starting, connecting, joining.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_memory_network::{Pipe, Speed};
use sapwood_node::{ChildPlan, Input, Role};
use sapwood_packet::{Rank, RankSet};

use crate::agenda::{Happening, MILLISECOND, SECOND, Time};
use crate::process::{Notice, State};
use crate::world::{End, FRONT_END, LOWER, Origin, UPPER, Wire, World};

/// How long a process waits for the children that it has started.
const START_LIMIT: Time = 5 * SECOND;
/// How long a process waits for the answer when it connects.
const DIAL_LIMIT: Time = 10 * SECOND;
/// The same of one that was started.
const STARTED_DIAL_LIMIT: Time = 30 * SECOND;
/// The time after which a back-end that attaches by itself tries again.
const JOIN_AGAIN: Time = 50 * MILLISECOND;

impl World {
    /// A process learns its place: it takes connections and starts its children.
    pub(crate) fn grow(&mut self, process: usize, rank: Rank) {
        let children: Vec<Rank> = self.topology.children(rank).to_vec();
        let is_attaching = self.topology.is_attaching();
        let mut plans = Vec::new();
        let mut kept = RankSet::new();
        for child in children {
            let is_leaf = self.is_back_end(child);
            if is_leaf && is_attaching {
                kept.insert(child);
                self.invite(child);
                continue;
            }
            let plan = if is_leaf { Vec::new() } else { alloc::vec![1] };
            plans.push(ChildPlan { rank: child, back_ends: self.below(child), plan });
            let at = self.now + self.chance.below(self.scenario.start_spread);
            self.agenda.put(at, Happening::Start { parent: process, rank: child });
        }
        self.agenda.put(self.now + START_LIMIT, Happening::StartLimit(process));
        let height = self.height(rank);
        let total = self.topology.back_end_count();
        let one = &mut self.processes[process];
        one.listens = true;
        one.started = plans.iter().map(|plan| plan.rank).collect();
        one.node.set_address(Self::address_of(process));
        one.node.expect(plans, kept, height, total);
        self.carry_out(process);
    }

    fn height(&self, rank: Rank) -> u32 {
        let children = self.topology.children(rank).iter();
        children.map(|&child| 1 + self.height(child)).max().unwrap_or(0)
    }

    /// Schedules a back-end that attaches by itself: soon, or late.
    fn invite(&mut self, rank: Rank) {
        let is_late = self.chance.below(8) < self.scenario.late_eighths;
        let spread = if is_late { self.scenario.duration } else { self.scenario.start_spread };
        let at = self.now + self.chance.below(spread);
        self.joiners.push(rank);
        self.agenda.put(at, Happening::Join(self.joiners.len() - 1));
    }

    /// A child that was to be started begins, and connects to its starter.
    pub(crate) fn start(&mut self, parent: usize, rank: Rank) {
        if !self.processes[parent].is_alive() {
            return;
        }
        let is_leaf = self.is_back_end(rank);
        let role = if is_leaf { Role::BackEnd } else { Role::Communication };
        let child = self.add_process(role, Some(rank), Origin::Started);
        self.processes[child].starter = Some(parent);
        // A process that is started on the machine of its starter is on the same side of a
        // partition.
        self.processes[child].side_bits = self.processes[parent].side_bits;
        self.by_rank.insert(rank, child);
        self.note(child, || String::from("starts"));
        self.dial(child, parent);
    }

    /// A back-end attaches by itself.
    pub(crate) fn join(&mut self, number: usize) {
        let rank = self.joiners[number];
        let parent = self.topology.parent(rank).map(|node| node.rank());
        let parent = parent.and_then(|parent| self.by_rank.get(&parent).copied());
        let Some(parent) = parent.filter(|&parent| self.processes[parent].listens) else { return };
        // One that does not ask for a rank is given any that is free.
        let asked = self.chance.one_in(2).then_some(rank);
        let child = self.add_process(Role::BackEnd, asked, Origin::Attached);
        self.injected[crate::Class::Join.index()] += 1;
        self.note(child, || alloc::format!("comes to {}", Self::address_of(parent)));
        self.dial(child, parent);
    }

    /// A node asks for a connection.
    pub(crate) fn dial_address(&mut self, process: usize, address: &str) {
        match self.process_at(address) {
            Some(target) => self.dial(process, target),
            None => {
                self.processes[process].attempt += 1;
                let attempt = self.processes[process].attempt;
                self.processes[process].is_dialing = true;
                self.notify(process, Notice::Failed { attempt, is_refused: true });
            }
        }
    }

    /// A process tries to connect to another one; an earlier attempt is given up.
    pub(crate) fn dial(&mut self, dialer: usize, target: usize) {
        let name = if self.log.is_on() { self.processes[target].name() } else { String::new() };
        self.note(dialer, || alloc::format!("connects to {name}"));
        let one = &mut self.processes[dialer];
        one.attempt += 1;
        one.is_dialing = true;
        one.dialed = target;
        one.dialed_at = self.now;
        let (attempt, one_is_started) = (one.attempt, one.starter.is_some());
        let at = self.now + self.latency();
        self.agenda.put(at, Happening::ConnectionRequest { dialer, attempt, target });
        let is_started = one_is_started && !self.has_been_welcomed(dialer);
        let limit = if is_started { STARTED_DIAL_LIMIT } else { DIAL_LIMIT };
        self.agenda.put(self.now + limit, Happening::DialLimit { dialer, attempt });
    }

    fn latency(&mut self) -> Time {
        let Speed { latency, jitter, .. } = self.scenario.speed;
        latency + self.chance.below(jitter + 1)
    }

    fn is_waiting(&self, dialer: usize, attempt: u64) -> bool {
        let one = &self.processes[dialer];
        one.is_alive() && one.is_dialing && one.attempt == attempt
    }

    /// A connection request reaches its target; it is refused if no process listens there.
    pub(crate) fn request_connection(&mut self, dialer: usize, attempt: u64, target: usize) {
        if !self.is_waiting(dialer, attempt) {
            return;
        }
        if self.is_cut(dialer, target) {
            self.parked.push(Happening::ConnectionRequest { dialer, attempt, target });
            return;
        }
        if self.processes[target].is_alive() && self.processes[target].listens {
            // It answers in its turn: one that is stopped does not.
            self.notify(target, Notice::ConnectionRequest { dialer, attempt });
            return;
        }
        let answer = Happening::Answer { dialer, attempt, wire: None, is_refused: true };
        let at = self.now + self.latency();
        self.agenda.put(at, answer);
    }

    /// A process takes a connection.
    pub(crate) fn admit(&mut self, target: usize, dialer: usize, attempt: u64) {
        let is_refused = !self.processes[target].listens;
        let at = self.now + self.latency();
        if is_refused || self.processes[dialer].state == State::Crashed {
            let answer = Happening::Answer { dialer, attempt, wire: None, is_refused };
            return self.agenda.put(at, answer);
        }
        let wire = self.wires.len();
        let link = self.processes[target].add_port(wire, UPPER);
        let end = |process| End {
            process,
            link: None,
            is_closed: false,
            pipe: Pipe::default(),
            waits_for_room: false,
            unread_frame: Vec::new(),
        };
        let mut speed = self.scenario.speed;
        speed.latency = speed.latency / 2 + self.chance.below(speed.latency + 1);
        self.wires.push(Wire { ends: [end(target), end(dialer)], speed });
        self.wires[wire].ends[UPPER].link = Some(link);
        self.agenda.put(at, Happening::Answer { dialer, attempt, wire: Some(wire), is_refused });
        let name = if self.log.is_on() { self.processes[dialer].name() } else { String::new() };
        self.note(target, || alloc::format!("takes {name} as link {}", link.0));
        self.input(target, Input::ChildUp { link });
    }

    /// The answer to a request is back.
    pub(crate) fn dial_answered(
        &mut self,
        dialer: usize,
        attempt: u64,
        wire: Option<usize>,
        is_refused: bool,
    ) {
        if let Some(wire) = wire {
            if self.is_cut(self.wires[wire].ends[UPPER].process, dialer) {
                self.parked.push(Happening::Answer {
                    dialer,
                    attempt,
                    wire: Some(wire),
                    is_refused,
                });
                return;
            }
            if !self.is_waiting(dialer, attempt) {
                return self.close_end(wire, LOWER);
            }
            return self.notify(dialer, Notice::Up { attempt, wire });
        }
        if self.is_waiting(dialer, attempt) {
            self.notify(dialer, Notice::Failed { attempt, is_refused });
        }
    }

    /// A process has waited long enough for an answer.
    pub(crate) fn dial_limit(&mut self, dialer: usize, attempt: u64) {
        if self.is_waiting(dialer, attempt) {
            self.notify(dialer, Notice::Failed { attempt, is_refused: false });
        }
    }

    /// A process learns that its connection is up.
    pub(crate) fn dial_up(&mut self, process: usize, attempt: u64, wire: usize) {
        if !self.is_waiting(process, attempt) || self.processes[process].node.has_ended() {
            return self.close_end(wire, LOWER);
        }
        self.processes[process].is_dialing = false;
        let link = self.processes[process].add_port(wire, LOWER);
        self.wires[wire].ends[LOWER].link = Some(link);
        self.note(process, || alloc::format!("is connected by link {}", link.0));
        self.input(process, Input::ParentUp { link });
        if self.wires[wire].ends[UPPER].pipe.is_readable() {
            self.list(process, link);
        }
    }

    /// A process learns that its connection attempt has failed.
    pub(crate) fn dial_failed(&mut self, process: usize, attempt: u64, is_refused: bool) {
        if !self.is_waiting(process, attempt) {
            return;
        }
        self.processes[process].is_dialing = false;
        self.note(process, || alloc::format!("is not connected, refused: {is_refused}"));
        if self.processes[process].node.rank().is_none() || !self.has_been_welcomed(process) {
            // A process that does not find its first parent ends, as its runtime has it.
            self.join_again(process);
            return self.exit(process, State::Ended);
        }
        let words = if is_refused { "connection refused" } else { "no answer" };
        self.input(process, Input::ConnectFailed { reason: words.into(), is_refused });
    }

    /// Whether a process has ever had a place in the tree.
    fn has_been_welcomed(&self, process: usize) -> bool {
        process == FRONT_END || self.processes[process].node.is_planned()
    }

    /// A process that failed to join tries again, a little later.
    fn join_again(&mut self, process: usize) {
        let one = &self.processes[process];
        if one.role != Role::BackEnd || one.starter.is_some() {
            return;
        }
        if let Some(number) = self.joiners.iter().position(|&rank| Some(rank) == one.rank) {
            self.agenda.put(self.now + JOIN_AGAIN, Happening::Join(number));
        }
    }
}
