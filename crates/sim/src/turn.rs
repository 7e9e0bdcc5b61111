//! A process's turn, in the order of the runtime's loop: notices, reads, timers, the program,
//! writes.

use alloc::string::String;

use sapwood_memory_network::{gather, receive};
use sapwood_node::{Event, Input, LinkId, Output, Role};

use crate::agenda::{Happening, MICROSECOND, MILLISECOND, Time};
use crate::oracle::Rule;
use crate::process::{Notice, Process, State};
use crate::world::{FRONT_END, LOWER, UPPER, World};

/// What a turn costs by itself.
const TURN_COST: Time = 2 * MICROSECOND;
/// How long a process whose network is over waits for its links to close.
const CLOSE_LIMIT: Time = 1000 * MILLISECOND;
/// Most links that one turn reads.
const READS_MAX: usize = 64;

impl World {
    /// One turn of a process.
    pub(crate) fn turn(&mut self, process: usize) {
        let now = self.now;
        let one = &mut self.processes[process];
        if one.turn_at != Some(now) || one.state != State::Running {
            return;
        }
        one.turn_at = None;
        if one.busy_until > now {
            return self.poke(process, now);
        }
        one.turns += 1;
        let mut inputs = 0;
        while let Some(notice) = self.processes[process].notices.pop_front() {
            self.learn(process, notice);
            inputs += 1;
        }
        for _ in 0..self.processes[process].readable.len().min(READS_MAX) {
            let Some(link) = self.processes[process].readable.pop_front() else { break };
            self.read(process, link);
            inputs += 1;
        }
        inputs += self.finish_jobs(process);
        let clock = self.processes[process].clock(now);
        if self.processes[process].wake.is_some_and(|at| at <= clock) {
            self.processes[process].wakes += 1;
            self.input(process, Input::Timeout);
            inputs += 1;
        }
        self.work(process);
        self.write_dirty(process);
        self.look_for_end(process);
        let one = &mut self.processes[process];
        let cost = TURN_COST + inputs * self.scenario.input_cost;
        one.busy_until = now + cost * one.slowness;
        self.delay(process);
        self.plan_next_turn(process);
    }

    fn plan_next_turn(&mut self, process: usize) {
        let one = &self.processes[process];
        if one.state != State::Running {
            return;
        }
        let wake = one.wake.map(|at| one.virtual_time(at));
        let is_ready = !one.readable.is_empty() || !one.notices.is_empty() || !one.dirty.is_empty();
        let limit = one.over_since.map(|since| since + CLOSE_LIMIT);
        let soon = is_ready.then_some(self.now);
        let job = one.jobs.iter().map(|&(due, _)| due).min();
        let next = [soon, wake, self.next_work(process), limit, job].into_iter().flatten().min();
        if let Some(at) = next {
            self.poke(process, at);
        }
    }

    /// One input, and its outputs.
    pub(crate) fn input(&mut self, process: usize, input: Input<'_>) {
        let one = &mut self.processes[process];
        let clock = one.clock(self.now);
        one.node.handle_input(clock, input);
        self.carry_out(process);
    }

    /// Does what a node has decided, and runs its filters.
    pub(crate) fn carry_out(&mut self, process: usize) {
        self.do_outputs(process);
        self.run_jobs(process);
    }

    pub(crate) fn do_outputs(&mut self, process: usize) {
        self.look_for_distrust(process);
        while let Some(output) = self.processes[process].node.poll_output() {
            match output {
                Output::Transmit(link) => self.arm(process, link),
                Output::Hangup(link) => self.hang_up(process, link),
                Output::Connect { address } => self.dial_address(process, &address),
                Output::Planned { rank, plan } => {
                    self.note(process, || alloc::format!("is rank {rank}"));
                    self.processes[process].rank = Some(rank);
                    self.taken_in(process);
                    let before = self.by_rank.insert(rank, process);
                    if before.is_some_and(|before| before != process) {
                        self.oracle.reborn(rank);
                    }
                    if !plan.is_empty() {
                        self.grow(process, rank);
                    }
                }
                Output::Event(event) => self.event(process, &event),
            }
        }
        self.processes[process].wake = self.processes[process].node.poll_timeout();
        if process == FRONT_END {
            self.check_list();
        }
    }

    /// All processes of a run keep the rules, so that no link is broken for what was said over it.
    fn look_for_distrust(&mut self, process: usize) {
        let one = &mut self.processes[process];
        if one.node.last_breach() == one.distrusted.as_deref() {
            return;
        }
        one.distrusted = one.node.last_breach().map(String::from);
        let why = one.distrusted.clone().unwrap_or_default();
        let text = alloc::format!("{} broke a link: its peer {why}", one.name());
        self.oracle.violate(self.now, Rule::Distrust, text);
    }

    fn event(&mut self, process: usize, event: &Event) {
        self.note(process, || alloc::format!("event: {event:?}"));
        if process == FRONT_END {
            self.fresh.told(event);
        }
        match event {
            Event::Ready { .. } => self.front_end.is_ready(self.now),
            Event::StreamOpened { stream } => self.leaf_opened(process, *stream),
            Event::StreamClosed { stream } => self.processes[process].leaf.closed(*stream),
            Event::Lost { back_ends, .. } => self.oracle.given_up(back_ends),
            Event::Reattached { .. } => self.taken_in(process),
            Event::Ended { .. } => self.processes[process].listens = false,
            _ => {}
        }
    }

    /// A process has been taken in. The new parent of an orphan must not have been connected to its
    /// former one when the orphan came: that one may still hold what the orphan has sent again,
    /// merged with others' packets.
    fn taken_in(&mut self, process: usize) {
        let one = &self.processes[process];
        let (parent, came_at) = (one.dialed, one.dialed_at);
        let upper = |wire: usize| self.wires[wire].ends[UPPER].process;
        let lower = one.ports.iter().flatten().filter(|port| port.side == LOWER);
        let Some(wire) = lower.map(|port| port.wire).filter(|&wire| upper(wire) == parent).max()
        else {
            return;
        };
        let former = one.parent_wire.map(|(wire, _)| upper(wire)).filter(|&one| one != parent);
        let fence = former.and_then(|former| self.processes[former].parent_wire);
        let has = |wire: usize| {
            let ports = &self.processes[parent].ports;
            ports.iter().flatten().any(|port| port.wire == wire && !port.is_leaving)
        };
        if let (Some(former), Some((fence, since))) = (former, fence)
            && since < came_at
            && has(fence)
        {
            let [orphan, parent, former] =
                [process, parent, former].map(|process| self.processes[process].name());
            let text =
                alloc::format!("{parent} takes {orphan} in, and is still connected to {former}");
            self.oracle.violate(self.now, Rule::Fence, text);
        }
        self.processes[process].parent_wire = Some((wire, self.now));
    }

    /// A link is to be closed when what it has to write is written.
    fn hang_up(&mut self, process: usize, link: LinkId) {
        if let Some(port) = self.processes[process].port(link) {
            port.is_leaving = true;
        }
        self.arm(process, link);
    }

    /// A link has something to write.
    fn arm(&mut self, process: usize, link: LinkId) {
        let one = &mut self.processes[process];
        let Some(port) = one.port(link) else { return };
        if !core::mem::replace(&mut port.is_armed, true) {
            one.dirty.push(link);
        }
    }

    /// Reads one link once.
    fn read(&mut self, process: usize, link: LinkId) {
        let Some(port) = self.processes[process].port(link) else { return };
        port.is_listed = false;
        let (wire, other) = (port.wire, 1 - port.side);
        let most = 1 + self.chance.below(self.scenario.cut_bytes as u64) as usize;
        let pipe = &mut self.wires[wire].ends[other].pipe;
        if !pipe.is_readable() {
            return;
        }
        let one = &mut self.processes[process];
        let clock = one.clock(self.now);
        receive(&mut one.node, clock, link, pipe, most, &mut self.buffer);
        self.carry_out(process);
        self.wake_writer(wire, other);
        let pipe = &self.wires[wire].ends[other].pipe;
        let (is_at_end, is_readable) = (pipe.is_at_end(), pipe.is_readable());
        if self.processes[process].port(link).is_none_or(|port| port.wire != wire) {
            return;
        }
        if is_at_end {
            self.release(process, link);
            self.note(process, || alloc::format!("link {} is down", link.0));
            let reason = String::from("connection closed");
            self.input(process, Input::LinkDown { link, reason });
        } else if is_readable {
            self.list(process, link);
        }
    }

    /// There is room again in a pipe that was full.
    fn wake_writer(&mut self, wire: usize, side: usize) {
        let end = &mut self.wires[wire].ends[side];
        if let (true, Some(link)) = (end.waits_for_room, end.link) {
            end.waits_for_room = false;
            let process = end.process;
            self.processes[process].dirty.push(link);
            // The news takes as long as anything else.
            let at = self.now + self.wires[wire].speed.latency;
            self.poke(process, at);
        }
    }

    fn write_dirty(&mut self, process: usize) {
        let count = self.processes[process].dirty.len();
        let dirty: alloc::vec::Vec<LinkId> = self.processes[process].dirty.drain(..count).collect();
        for link in dirty {
            self.write(process, link);
        }
    }

    /// Writes what a node has for a link, as far as there is room.
    fn write(&mut self, process: usize, link: LinkId) {
        let now = self.now;
        let one = &mut self.processes[process];
        let Some(port) = one.port(link) else { return };
        let (wire, side, is_leaving) = (port.wire, port.side, port.is_leaving);
        let speed = self.wires[wire].speed;
        let is_watched = self.log.is_on();
        // Bytes written to a broken link, or one that is closed at the other end, are lost.
        let is_heard = !self.wires[wire].ends[1 - side].is_closed
            && !self.wires[wire].ends[side].pipe.is_closed();
        let end = &mut self.wires[wire].ends[side];
        let room = speed.room_bytes.saturating_sub(end.pipe.len());
        let most = if is_heard { room.min(self.scenario.cut_bytes) } else { usize::MAX };
        let count = gather(&self.processes[process].node, link, most, |part| {
            if is_heard {
                end.pipe.extend(part);
                if is_watched {
                    end.unread_frame.extend(part);
                }
            }
        });
        if count > 0 {
            if is_heard {
                let extra = self.chance.below(speed.jitter + 1);
                let at = end.pipe.write(count, now, &speed, extra);
                self.agenda.put(at, Happening::Arrival { wire, from: side });
                self.tell_frames(wire, side);
            }
            self.input(process, Input::Transmitted { link, bytes: count });
        }
        let waits = self.processes[process].node.wants_write(link);
        let Some(port) = self.processes[process].port(link) else { return };
        if port.wire != wire {
            return;
        }
        if !waits {
            port.is_armed = false;
            if is_leaving {
                self.release(process, link);
            }
        } else if room > count {
            self.processes[process].dirty.push(link);
        } else {
            self.wires[wire].ends[side].waits_for_room = true;
        }
    }

    /// A process closes a link: its written bytes arrive, and then the end.
    pub(crate) fn release(&mut self, process: usize, link: LinkId) {
        let Some(slot) = self.processes[process].ports.get_mut(link.0 as usize) else { return };
        let Some(port) = slot.take() else { return };
        self.close_end(port.wire, port.side);
    }

    /// Closes one end of a wire.
    pub(crate) fn close_end(&mut self, wire: usize, side: usize) {
        let latency = self.wires[wire].speed.latency;
        let now = self.now;
        self.wires[wire].ends[1 - side].pipe.discard();
        let end = &mut self.wires[wire].ends[side];
        end.link = None;
        if !core::mem::replace(&mut end.is_closed, true) {
            let at = end.pipe.close(now, latency);
            self.agenda.put(at, Happening::Arrival { wire, from: side });
        }
        self.wake_writer(wire, 1 - side);
    }

    fn learn(&mut self, process: usize, notice: Notice) {
        match notice {
            Notice::ConnectionRequest { dialer, attempt } => self.admit(process, dialer, attempt),
            Notice::Up { attempt, wire } => self.dial_up(process, attempt, wire),
            Notice::Failed { attempt, is_refused } => {
                self.dial_failed(process, attempt, is_refused)
            }
            Notice::Exited { rank } => {
                let text = String::from("ended before it connected");
                self.input(process, Input::StartFailed { rank, text });
            }
            Notice::StartLimit => {
                for rank in self.processes[process].started.clone() {
                    let text = String::from("runs, but has not joined the network in time");
                    self.input(process, Input::StartFailed { rank, text });
                }
            }
            Notice::Leave => self.leave(process),
        }
    }

    /// A process leaves on purpose; the front-end ends the network by it.
    pub(crate) fn leave(&mut self, process: usize) {
        self.note(process, || String::from("leaves"));
        let now = self.now;
        let one = &mut self.processes[process];
        if one.node.has_ended() {
            return;
        }
        one.has_left = true;
        let clock = one.clock(now);
        one.node.application().shutdown(clock);
        self.carry_out(process);
    }

    /// A process whose network is over ends, once its links are closed or it has waited enough.
    fn look_for_end(&mut self, process: usize) {
        let now = self.now;
        let one = &mut self.processes[process];
        if one.state != State::Running || !one.node.has_ended() {
            return;
        }
        one.listens = false;
        let since = *one.over_since.get_or_insert(now);
        let has_waited = since + CLOSE_LIMIT <= now;
        // A front-end stays until the run ends, since its application still reads answers, until it
        // leaves.
        if one.role == Role::FrontEnd && !one.has_left {
            return;
        }
        if !one.is_linked() || has_waited {
            self.exit(process, State::Ended);
        }
    }

    /// A process ends: its links close, and its starter sees the exit.
    pub(crate) fn exit(&mut self, process: usize, state: State) {
        let one = &mut self.processes[process];
        one.state = state;
        one.listens = false;
        one.is_dialing = false;
        one.notices.clear();
        one.jobs.clear();
        let ports = core::mem::take(&mut one.ports);
        let (starter, rank) = (one.starter, one.rank);
        self.note(process, || alloc::format!("is no more ({state:?})"));
        for port in ports.into_iter().flatten() {
            self.close_end(port.wire, port.side);
        }
        if let (Some(starter), Some(rank)) = (starter, rank) {
            self.notify(starter, Notice::Exited { rank });
        }
        self.give_back_rank(process);
    }

    /// A process had come under the rank of one that was only cut off, and that came back first:
    /// the tree takes one of the two in, and refuses the other, which ends. What that one sent is
    /// lost like what is sent by a process that another has replaced.
    fn give_back_rank(&mut self, process: usize) {
        let Some(rank) = self.processes[process].rank else { return };
        let is_same = |one: &Process| one.is_alive() && one.rank == Some(rank);
        let Some(other) = self.processes.iter().position(is_same) else { return };
        if self.by_rank.get(&rank) == Some(&process) && self.processes[other].node.is_planned() {
            self.by_rank.insert(rank, other);
            self.oracle.reborn(rank);
        }
    }

    /// A process learns something in its next turn.
    pub(crate) fn notify(&mut self, process: usize, notice: Notice) {
        if self.processes[process].is_alive() {
            self.processes[process].notices.push_back(notice);
            self.poke(process, self.now);
        }
    }
}
