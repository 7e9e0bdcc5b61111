//! What the applications do: back-ends send their waves, the front-end opens streams, sends down
//! and takes answers.

use alloc::vec::Vec;

use sapwood_node::{Answer, Delivery, NodeError, Role, StreamSpec};
use sapwood_packet::{RankSet, Recipients, StreamId, Values};

use crate::agenda::{MILLISECOND, Time};
use crate::payload::TAG;
use crate::scenario::{Members, Scenario};
use crate::world::{FRONT_END, World};

/// The program of a back-end: the streams that it sends on.
#[derive(Debug, Default)]
pub(crate) struct Leaf {
    streams: Vec<LeafStream>,
}

#[derive(Debug)]
struct LeafStream {
    id: StreamId,
    /// The next wave.
    wave: u64,
    /// The wave behind the last.
    end: u64,
    due: Time,
    /// Whether the window was full.
    is_blocked: bool,
}

impl Leaf {
    pub(crate) fn closed(&mut self, stream: StreamId) {
        self.streams.retain(|other| other.id != stream);
    }

    /// Whether it has sent all that it is to send on the streams that it knows.
    pub(crate) fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.wave >= stream.end)
    }

    /// Whether it has been told of a stream.
    pub(crate) fn knows(&self, stream: StreamId) -> bool {
        self.streams.iter().any(|other| other.id == stream)
    }
}

/// What the front-end's application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Open,
    Broadcast { to_some: bool },
    Close,
}

/// What the front-end does, and when.
#[derive(Clone, Copy, Debug)]
struct ScriptLine {
    at: Time,
    /// The plan of its stream.
    index: usize,
    action: Action,
}

/// The program of the front-end.
#[derive(Debug)]
pub(crate) struct FrontEnd {
    /// The actions by time, counted from when the tree is ready; the next one is last.
    script: Vec<ScriptLine>,
    ready_at: Option<Time>,
    /// The stream that each plan has become.
    streams: Vec<Option<StreamId>>,
    /// How many faults keep it from taking answers.
    pub(crate) deafness: u32,
}

impl FrontEnd {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut script = Vec::new();
        for (index, plan) in scenario.streams.iter().enumerate() {
            script.push(ScriptLine { at: plan.opens, index, action: Action::Open });
            for &(at, to_some) in &plan.broadcasts {
                let action = Action::Broadcast { to_some };
                script.push(ScriptLine { at: plan.opens + at, index, action });
            }
            if let Some(at) = plan.closes {
                script.push(ScriptLine { at, index, action: Action::Close });
            }
        }
        // Stable, and turned round: a stream opens before anything else is done with it.
        script.sort_by_key(|line| line.at);
        script.reverse();
        let streams = scenario.streams.iter().map(|_| None).collect();
        Self { script, ready_at: None, streams, deafness: 0 }
    }

    /// There is one stream more in the plan, which the script does not open.
    pub(crate) fn add_stream(&mut self) {
        self.streams.push(None);
    }

    pub(crate) fn is_ready(&mut self, now: Time) {
        self.ready_at.get_or_insert(now);
    }

    /// Whether the tree has started.
    pub(crate) fn has_begun(&self) -> bool {
        self.ready_at.is_some()
    }

    /// Whether everything has been done.
    pub(crate) fn is_done(&self) -> bool {
        self.script.is_empty()
    }

    /// The streams that are open.
    pub(crate) fn open_streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.streams.iter().copied().flatten()
    }

    fn due(&self) -> Option<Time> {
        let line = self.script.last()?;
        Some(self.ready_at? + line.at)
    }
}

/// How soon a front-end tries again to send down where there was no room.
const AGAIN: Time = MILLISECOND;

impl World {
    /// When a process's program has something to do.
    pub(crate) fn next_work(&self, process: usize) -> Option<Time> {
        let one = &self.processes[process];
        if process == FRONT_END {
            return self.front_end.due().map(|due| due.max(self.now + AGAIN / 10));
        }
        let streams = one.leaf.streams.iter();
        let waiting = streams.filter(|stream| stream.wave < stream.end && !stream.is_blocked);
        waiting.map(|stream| stream.due).min()
    }

    /// A process's program has its turn.
    pub(crate) fn work(&mut self, process: usize) {
        match self.processes[process].role {
            Role::FrontEnd => self.lead(),
            Role::BackEnd => self.serve(process),
            Role::Communication => {}
        }
    }

    /// A stream has opened at a back-end.
    pub(crate) fn leaf_opened(&mut self, process: usize, stream: StreamId) {
        let Some(&plan) = self.streams.get(&stream) else { return };
        let plan = &self.scenario.streams[plan];
        let due = self.now + self.chance.below(plan.period + 1);
        let opened = LeafStream { id: stream, wave: 0, end: plan.waves, due, is_blocked: false };
        let leaf = &mut self.processes[process].leaf;
        // A parent that has adopted this process opens its streams again; it continues at its
        // position.
        if !leaf.streams.iter().any(|other| other.id == stream) {
            leaf.streams.push(opened);
        }
    }

    fn serve(&mut self, process: usize) {
        self.receive(process);
        if self.processes[process].node.has_ended() {
            self.processes[process].leaf.streams.clear();
            return;
        }
        for index in 0..self.processes[process].leaf.streams.len() {
            self.send_due(process, index);
        }
    }

    /// Receives packets that went down.
    fn receive(&mut self, process: usize) {
        let now = self.now;
        while let Some(delivery) = self.processes[process].node.application().poll_delivery() {
            let (stream, cost) = (delivery.stream(), delivery.cost());
            self.processes[process].node.application().consumed(stream, cost);
            self.carry_out(process);
            if let (Delivery::Packet(packet), Some(rank)) = (delivery, self.processes[process].rank)
            {
                let number = packet.values().scalar::<u64>(0).unwrap_or(u64::MAX);
                self.note(process, || alloc::format!("receives {number} on stream {stream}"));
                self.oracle.received(now, stream, (process, rank), number);
            }
        }
    }

    /// Sends the packets that are due on one stream.
    fn send_due(&mut self, process: usize, index: usize) {
        let now = self.now;
        let Some(rank) = self.processes[process].rank else { return };
        // A turn ends at some time.
        for _ in 0..SENDS_MAX {
            let stream = &self.processes[process].leaf.streams[index];
            if stream.wave >= stream.end || stream.due > now {
                return;
            }
            let (id, wave, end) = (stream.id, stream.wave, stream.end);
            let Some(plan) = self.streams.get(&id).map(|&plan| &self.scenario.streams[plan]) else {
                return;
            };
            let has_room = self.processes[process].node.application().has_room(id).unwrap_or(true);
            self.processes[process].leaf.streams[index].is_blocked = !has_room;
            if !has_room {
                return;
            }
            let (period, skips) = (plan.period, plan.skips);
            let Some(recipe) = self.oracle.recipe(id) else { return };
            let values = recipe.values(rank, wave);
            let sent = self.processes[process].node.application().send(id, TAG, values, Some(wave));
            let next = match sent {
                Ok(_) => {
                    self.oracle.sent(id, rank, wave);
                    wave + 1
                }
                // It came later than these waves.
                Err(NodeError::WavePassed { next, .. }) => next,
                Err(_) => end,
            };
            let left_out = if skips { self.chance.below(3) } else { 0 };
            let wait = self.chance.below(period + 1);
            let stream = &mut self.processes[process].leaf.streams[index];
            // The last wave is sent by all, so that none is left open.
            stream.wave = if next < end { (next + left_out).min(end - 1) } else { end };
            stream.due = now + wait;
            self.carry_out(process);
        }
    }

    fn lead(&mut self) {
        self.take_answers();
        while let Some(due) = self.front_end.due()
            && due <= self.now
        {
            let Some(&line) = self.front_end.script.last() else { return };
            let ScriptLine { index, action, .. } = line;
            let is_done = match action {
                Action::Open => self.open(index),
                Action::Broadcast { to_some } => self.broadcast(index, to_some),
                Action::Close => self.close(index),
            };
            if !is_done {
                return;
            }
            self.front_end.script.pop();
        }
    }

    fn take_answers(&mut self) {
        if self.front_end.deafness > 0 {
            return;
        }
        for _ in 0..self.scenario.taken_at_once {
            let front_end = &mut self.processes[FRONT_END].node;
            let Some(delivery) = front_end.application().poll_delivery() else { return };
            let (stream, cost) = (delivery.stream(), delivery.cost());
            front_end.application().consumed(stream, cost);
            self.carry_out(FRONT_END);
            if let Delivery::Answer(answer) = delivery {
                self.note(FRONT_END, || describe(&answer));
                self.oracle.answer(self.now, &answer);
                self.fresh.answered(self.now, &answer);
            }
        }
        // There may be more.
        self.poke(FRONT_END, self.now + 1);
    }

    pub(crate) fn open(&mut self, index: usize) -> bool {
        let plan = self.scenario.streams[index].clone();
        let members = self.choose(plan.members);
        if members.is_empty() || self.processes[FRONT_END].node.has_ended() {
            return true;
        }
        let spec = StreamSpec {
            members: members.clone(),
            up: self.slowness.filter(plan.kind).into_iter().collect(),
            down: Vec::new(),
            wave: plan.wave,
            rule: None,
            policy: plan.policy,
            window_bytes: plan.window_bytes,
            at_back_ends: false,
        };
        match self.processes[FRONT_END].node.application().open_stream(spec) {
            Ok(stream) => {
                self.note(FRONT_END, || {
                    alloc::format!("opens stream {stream} for '{members}': {plan:?}")
                });
                self.oracle.opened(stream, &plan, members);
                self.streams.insert(stream, index);
                self.front_end.streams[index] = Some(stream);
            }
            Err(error) => {
                let text = alloc::format!("a stream does not open: {error}");
                self.oracle.violate(self.now, crate::Rule::View, text);
            }
        }
        self.carry_out(FRONT_END);
        true
    }

    /// Chooses the members of a new stream from the present back-ends.
    fn choose(&mut self, members: Members) -> RankSet {
        let there = self.processes[FRONT_END].node.application().back_ends();
        let mut chosen = RankSet::new();
        for (place, rank) in there.iter().enumerate() {
            let eighth = place as u64 * 8 / there.len();
            let is_in = match members {
                Members::Everyone => true,
                Members::Some => self.chance.one_in(2),
                Members::Part(first, last) => (first..last).contains(&eighth),
            };
            if is_in {
                chosen.insert(rank);
            }
        }
        if chosen.is_empty() { there } else { chosen }
    }

    /// Sends down; whether there was room.
    fn broadcast(&mut self, index: usize, to_some: bool) -> bool {
        let Some(stream) = self.front_end.streams[index] else { return true };
        let node = &mut self.processes[FRONT_END].node;
        match node.application().has_room(stream) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(_) => return true,
        }
        if node.has_ended() {
            return true;
        }
        let members = node.members(stream).cloned().unwrap_or_default();
        let mut destinations = RankSet::new();
        if to_some {
            for rank in members.iter() {
                if self.chance.one_in(2) {
                    destinations.insert(rank);
                }
            }
        }
        let length = self.scenario.streams[index].length.min(4000);
        let clock = self.processes[FRONT_END].clock(self.now);
        let (all, to) = match destinations.is_empty() {
            true => (members, Recipients::All),
            false => (destinations.clone(), Recipients::Only(destinations.clone())),
        };
        let number = self.oracle.broadcast(stream, all);
        let values = Values::new().scalar(number).array(&alloc::vec![number; length]);
        self.note(FRONT_END, || {
            alloc::format!("sends {number} down on stream {stream} to '{destinations}'")
        });
        let node = &mut self.processes[FRONT_END].node;
        let sent = node.application().broadcast(clock, stream, TAG, values, &to);
        debug_assert!(sent.is_ok(), "the stream is open and these are its members");
        self.carry_out(FRONT_END);
        true
    }

    fn close(&mut self, index: usize) -> bool {
        let Some(stream) = self.front_end.streams[index].take() else { return true };
        self.note(FRONT_END, || alloc::format!("closes stream {stream}"));
        self.oracle.closed(stream);
        let closed = self.processes[FRONT_END].node.application().close_stream(stream);
        debug_assert!(closed.is_ok(), "a front-end closes streams");
        self.carry_out(FRONT_END);
        true
    }
}

/// Most packets that a back-end sends in one turn on one stream.
const SENDS_MAX: usize = 64;

fn describe(answer: &Answer) -> alloc::string::String {
    let Answer { stream, wave, packet, contributors, missing, is_late } = answer;
    let late = if *is_late { " (late)" } else { "" };
    let value = if packet.is_some() { "a value" } else { "nothing" };
    let mut text =
        alloc::format!("answer{late}: stream {stream} wave {wave}: {value} of '{contributors}'");
    for part in missing {
        text.push_str(&alloc::format!(", without '{}' ({})", part.ranks, part.reason));
    }
    text
}
