//! The nodes of a tree, and what happens at each when something arrives.
//!
//! What arrives is handled at once and whole: the receiver's processor says when that is, the node
//! is given the bytes, and all that it wants to write then leaves in one message per link, as the
//! runtime's one write per peer and turn does. Because what follows can only arrive later, one
//! event per message is enough. Starting children and proving the key is done here, as nodes do no
//! I/O.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sapwood_filter::Registry;
use sapwood_node::{
    ChildPlan, Delivery, Event, Input, Instant, LinkId, Node, Output, Recovery, Role, Settings,
};
use sapwood_packet::{RankSet, StreamId, Tag};

use super::costs::{Exact, Picoseconds};
use super::processor::Processor;
use super::queue::{Arrival, MessageId, Queue};
use super::{ScaleError, Tree};

/// Bytes of either half of a proof: a point, a tag, a length.
const PROOF_BYTES: usize = 32 + 16 + 2;

/// The tag of all packets; it does not matter here.
pub(super) const TAG: Tag = 100;

/// Events that a process may have in one stage, per wave.
const EVENTS_MAX: u64 = 1000;

/// Picoseconds in a nanosecond, the unit of nodes.
const PER_NANOSECOND: Picoseconds = 1000;

/// What the front-end has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// When the whole tree was ready, and the back-ends that had started.
    pub(super) ready: Option<(Picoseconds, RankSet)>,
    /// How many back-ends have been told of the stream.
    pub(super) opened: u32,
    /// Answers: when the front-end had them, and the sum.
    pub(super) answers: Vec<(Picoseconds, u64)>,
    /// What should not have been.
    pub(super) fault: Option<String>,
}

/// What belongs to one process besides its node; as small as one line of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreeNode {
    pub(super) processor: Processor,
    /// Bytes over the link to its parent, downwards.
    pub(super) bytes_down: u32,
    /// The same upwards.
    pub(super) bytes_up: u32,
    /// When its node wants to be called, by the node's clock.
    wake: Option<Instant>,
    /// Waves that a back-end still has to send.
    to_send: u16,
    has_said_hello: bool,
}

/// The state of a parent with its children.
#[derive(Clone, Copy, Debug, Default)]
struct Nursery {
    started: u32,
    under_way: u32,
}

/// All nodes of a tree, by number.
pub(super) struct Forest<'a> {
    tree: &'a Tree,
    costs: Exact,
    queue: Queue,
    nodes: Vec<Node>,
    pub(super) processes: Vec<TreeNode>,
    /// Of the nodes that have children.
    nurseries: Vec<Nursery>,
    /// The stream, once the front-end has opened it.
    stream: StreamId,
    /// Links that one node wants to write to.
    ready: Vec<LinkId>,
    pub(super) seen: Seen,
}

impl<'a> Forest<'a> {
    /// The processes, of which none but the front-end runs yet.
    pub(super) fn new(tree: &'a Tree, costs: Exact, recovery: Recovery) -> Self {
        let processes = tree.processes() as usize;
        let inner = processes - tree.back_ends() as usize;
        let registry = Registry::built_in();
        let node = |number: u32| {
            let (role, registry) = match number {
                0 => (Role::FrontEnd, registry.clone()),
                _ if tree.is_back_end(number) => (Role::BackEnd, Registry::empty()),
                _ => (Role::Communication, registry.clone()),
            };
            Node::new(Settings {
                role,
                rank: Some(tree.rank(number)),
                is_started: true,
                pid: number,
                address: (role != Role::BackEnd).then(|| format!("sapwood-{number}")),
                registry,
                recovery,
            })
        };
        Self {
            tree,
            costs,
            queue: Queue::default(),
            nodes: (0..tree.processes()).map(node).collect(),
            processes: vec![TreeNode::default(); processes],
            nurseries: vec![Nursery::default(); inner],
            stream: 0,
            ready: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// The front-end, and from when on it has nothing to do.
    pub(super) fn front_end(&mut self) -> (&mut Node, Instant) {
        (&mut self.nodes[0], instant(self.processes[0].processor.free))
    }

    /// The front-end does nothing before all others have done what they have begun.
    pub(super) fn rest(&mut self) {
        let last = self.processes.iter().map(|process| process.processor.free).max().unwrap_or(0);
        self.processes[0].processor.free = last;
    }

    /// The stream that back-ends answer on.
    pub(super) fn set_stream(&mut self, stream: StreamId) {
        self.stream = stream;
    }

    /// The same.
    pub(super) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Lets the front-end carry out what its application has asked for.
    pub(super) fn wake_front_end(&mut self) {
        self.settle(0);
    }

    /// How many things have happened.
    pub(super) fn events(&self) -> u64 {
        self.queue.count
    }

    /// Has the front-end start its children.
    pub(super) fn begin(&mut self) {
        self.grow(0);
        self.settle(0);
    }

    /// Runs until `is_enough`. The number of events is limited, to a share of each process times
    /// `waves`: a tree that exchanges only heartbeats has come to rest, too.
    pub(super) fn run_until(
        &mut self,
        what: &str,
        waves: u16,
        is_enough: impl Fn(&Seen) -> bool,
    ) -> Result<(), ScaleError> {
        let share = EVENTS_MAX * (u64::from(waves) + 1);
        let last = self.queue.count + share * self.nodes.len() as u64;
        while !is_enough(&self.seen) {
            let event = self.queue.pop().filter(|_| self.queue.count < last);
            let Some(event) = event else {
                return Err(broken(format!("it came to rest before {what}")));
            };
            self.arrive(event.to, event.at, event.arrival);
            if let Some(fault) = self.seen.fault.take() {
                return Err(broken(fault));
            }
        }
        Ok(())
    }

    fn arrive(&mut self, to: u32, at: Picoseconds, arrival: Arrival) {
        let proof = self.costs.proof;
        match arrival {
            Arrival::Message { link, message } => return self.message(to, at, link, message),
            Arrival::Started => {
                self.processor(to).work(at, proof);
                let (parent, link) = self.other_end(to, LinkId(0));
                self.send(to, parent, PROOF_BYTES, Arrival::Proof { link: link.0 });
            }
            Arrival::Proof { link } => {
                self.take(to, at, PROOF_BYTES);
                self.processor(to).work(0, proof);
                self.input(to, Input::ChildUp { link: LinkId(link) });
                let (child, _) = self.other_end(to, LinkId(link));
                self.send(to, child, PROOF_BYTES, Arrival::Proved);
            }
            Arrival::Proved => {
                self.take(to, at, PROOF_BYTES);
                self.processor(to).work(0, proof);
                self.input(to, Input::ParentUp { link: LinkId(0) });
            }
            Arrival::Wake => {
                if self.processes[to as usize].wake != Some(instant(at)) {
                    return;
                }
                self.processes[to as usize].wake = None;
                self.processor(to).work(at, 0);
                self.input(to, Input::Timeout);
            }
        }
        self.settle(to);
    }

    /// The bytes of a message come to a node.
    fn message(&mut self, to: u32, at: Picoseconds, link: u32, message: MessageId) {
        let slab = self.queue.take(message);
        self.take(to, at, slab.len());
        self.input(to, Input::Bytes { link: LinkId(link), bytes: slab.as_bytes() });
        self.queue.give(message, slab);
        self.settle(to);
        let (from, _) = self.other_end(to, LinkId(link));
        if from > to && !self.processes[from as usize].has_said_hello {
            self.processes[from as usize].has_said_hello = true;
            self.nurseries[to as usize].under_way -= 1;
            self.start_children(to);
        }
    }

    /// What a node decides, and what its application does, until there is nothing more to do.
    fn settle(&mut self, number: u32) {
        loop {
            self.drain(number);
            let goes_on = match number {
                0 => self.take_answers(),
                _ if self.tree.is_back_end(number) => self.answer(number),
                _ => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    fn drain(&mut self, number: u32) {
        loop {
            while let Some(output) = self.nodes[number as usize].poll_output() {
                match output {
                    Output::Transmit(link) => self.ready.push(link),
                    Output::Planned { plan, .. } if !plan.is_empty() => self.grow(number),
                    Output::Planned { .. } => {}
                    Output::Event(event) => self.note(number, event),
                    other => self.fault(number, &format!("{other:?}")),
                }
            }
            if self.ready.is_empty() {
                return self.plan_wake(number);
            }
            // The node names them last first; they leave from left to right, as the runtime's do.
            while let Some(link) = self.ready.pop() {
                self.transmit(number, link);
            }
        }
    }

    /// The node is called again at the time that it asks for, unless it asks for another before.
    fn plan_wake(&mut self, number: u32) {
        let wake = self.nodes[number as usize].poll_timeout();
        let before = core::mem::replace(&mut self.processes[number as usize].wake, wake);
        if let Some(at) = wake.filter(|_| before != wake) {
            let at = at.0.saturating_mul(PER_NANOSECOND);
            self.queue.push(at, number, Arrival::Wake);
        }
    }

    /// Writes all that waits for a link.
    fn transmit(&mut self, number: u32, link: LinkId) {
        let (message, slab) = self.queue.message();
        self.nodes[number as usize].gather(link, |part| {
            slab.extend(part);
            true
        });
        let bytes = slab.len();
        if bytes == 0 {
            let slab = self.queue.take(message);
            return self.queue.give(message, slab);
        }
        self.input(number, Input::Transmitted { link, bytes });
        let (to, its_link) = self.other_end(number, link);
        self.send(number, to, bytes, Arrival::Message { link: its_link.0, message });
    }

    fn send(&mut self, from: u32, to: u32, bytes: usize, arrival: Arrival) {
        let costs = self.costs;
        let at = self.processor(from).send(&costs, bytes);
        let bytes = bytes as u32;
        match from > to {
            true => self.processes[from as usize].bytes_up += bytes,
            false => self.processes[to as usize].bytes_down += bytes,
        }
        self.queue.push(at, to, arrival);
    }

    fn take(&mut self, number: u32, at: Picoseconds, bytes: usize) {
        let costs = self.costs;
        self.processor(number).receive(&costs, at, bytes);
    }

    fn input(&mut self, number: u32, input: Input<'_>) {
        let now = instant(self.processor(number).free);
        self.nodes[number as usize].handle_input(now, input);
    }

    fn processor(&mut self, number: u32) -> &mut Processor {
        &mut self.processes[number as usize].processor
    }

    /// The peer of a node's link, and the peer's number for the link. A node's link to its parent
    /// is 0, those to its children follow from left to right.
    fn other_end(&self, number: u32, link: LinkId) -> (u32, LinkId) {
        let links_up = |number: u32| u32::from(number != 0);
        if number != 0 && link.0 == 0 {
            let parent = self.tree.parent(number);
            let first = self.tree.children(parent).start;
            return (parent, LinkId(number - first + links_up(parent)));
        }
        (self.tree.children(number).start + link.0 - links_up(number), LinkId(0))
    }

    /// A node that knows its place is told of its children, and starts the first of them.
    fn grow(&mut self, number: u32) {
        let tree = self.tree;
        let plan = |child: u32| ChildPlan {
            rank: tree.rank(child),
            back_ends: tree.back_ends_below(child),
            plan: match tree.is_back_end(child) {
                true => Vec::new(),
                false => vec![0; tree.plan_bytes(child)],
            },
        };
        let plans = tree.children(number).map(plan).collect();
        let node = &mut self.nodes[number as usize];
        node.expect(plans, RankSet::new(), tree.height(number), tree.back_ends());
        self.start_children(number);
    }

    fn start_children(&mut self, number: u32) {
        let (costs, children) = (self.costs, self.tree.children(number));
        let nursery = &mut self.nurseries[number as usize];
        let processor = &mut self.processes[number as usize].processor;
        while nursery.under_way < costs.at_a_time && nursery.started < children.len() as u32 {
            processor.work(0, costs.spawn);
            let child = children.start + nursery.started;
            self.queue.push(processor.free + costs.ready, child, Arrival::Started);
            nursery.started += 1;
            nursery.under_way += 1;
        }
    }

    fn note(&mut self, number: u32, event: Event) {
        match event {
            Event::Ready { back_ends, .. } => {
                self.seen.ready = Some((self.processor(number).free, back_ends));
            }
            Event::StreamOpened { .. } => self.seen.opened += 1,
            other => self.fault(number, &format!("{other:?}")),
        }
    }

    fn fault(&mut self, number: u32, what: &str) {
        self.seen.fault = Some(format!("{what} at rank {}", self.tree.rank(number)));
    }

    /// The front-end takes its answers. Whether there were any.
    fn take_answers(&mut self) -> bool {
        let mut has_taken = false;
        while let Some(delivery) = self.nodes[0].application().poll_delivery() {
            has_taken = true;
            self.nodes[0].application().consumed(delivery.stream(), delivery.cost());
            let Delivery::Answer(answer) = delivery else { continue };
            let back_ends = u64::from(self.tree.back_ends());
            let is_whole = answer.is_complete() && answer.contributors.len() == back_ends;
            let value = answer.packet.as_ref().and_then(|packet| packet.values().scalar(0).ok());
            match (is_whole, value) {
                (true, Some(sum)) => {
                    self.seen.answers.push((self.processes[0].processor.free, sum))
                }
                _ => self.fault(0, &format!("an answer that is not whole: {:?}", answer.missing)),
            }
        }
        has_taken
    }

    /// A back-end's program: a request asks for a number of waves, which it sends one by one while
    /// it has credit. Returns whether it did anything.
    fn answer(&mut self, number: u32) -> bool {
        let index = number as usize;
        let mut has_worked = false;
        while let Some(delivery) = self.nodes[index].application().poll_delivery() {
            has_worked = true;
            self.nodes[index].application().consumed(delivery.stream(), delivery.cost());
            let Delivery::Packet(packet) = delivery else { continue };
            match packet.values().scalar::<u64>(0) {
                Ok(waves) => self.processes[index].to_send += waves as u16,
                Err(error) => self.fault(number, &format!("{error}")),
            }
        }
        if self.processes[index].to_send > 0
            && self.nodes[index].application().has_room(self.stream) == Ok(true)
        {
            let value = value_of(self.tree.rank(number));
            if let Err(error) = self.nodes[index].application().send(self.stream, TAG, value, None)
            {
                self.fault(number, &format!("{error}"));
            }
            self.processes[index].to_send -= 1;
            return true;
        }
        has_worked
    }
}

/// What a back-end sends in each of its waves; different from every other's.
pub(super) fn value_of(rank: u32) -> u64 {
    u64::from(rank) + 1
}

fn instant(at: Picoseconds) -> Instant {
    Instant(at / PER_NANOSECOND)
}

fn broken(what: String) -> ScaleError {
    ScaleError::Broken { what }
}
