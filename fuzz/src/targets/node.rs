//! Any sequence of inputs on one node: links come and go, neighbours send frames that are in
//! order, damaged, cut or nothing of the kind, time passes, the application asks for anything.
//!
//! Whatever comes: no panic, an end of outputs and of wake-ups, memory in proportion to what was
//! sent, and the same outputs for the same bytes.

use sapwood_filter::{FilterSpec, WaveRule};
use sapwood_node::{
    ChildPlan, Delivery, Input, Instant, LinkId, Policy, Recovery, Role, StreamSpec,
};
use sapwood_packet::{Rank, RankSet, Recipients, Slab, StreamId};
use sapwood_topology::{Hosts, Shape, Topology};

use super::packets::{frame, ranks, values};
use super::world::{self, SIDES, Side, World};
use crate::Target;
use crate::source::Source;

/// One node among strangers.
pub const TARGET: Target = Target { name: "node", run, repair: None };

const FILTERS: [&str; 6] = ["sum", "null", "count", "concatenate", "equivalence", "statistics"];
/// Input beyond this many acts is ignored.
const ACTS_MAX: usize = 300;
const WIRES_MAX: usize = 8;
/// How often one frame is sent in a row at most.
const REPEATS_MAX: usize = 64;
/// What waits in a node for each byte that came or was sent, over each of its links.
const BYTES_PER_BYTE_MAX: usize = 4;
const BYTES_MAX: usize = 256 << 10;
/// Times that are waited for at the end.
const LAST_WAKES: u32 = 50;

fn run(input: &[u8]) {
    let first = Run::of(input);
    assert_eq!(first, Run::of(input), "the same bytes have the same run");
}

struct Run {
    world: World,
    /// Bytes that have been sent to the node, or by its application.
    given_bytes: usize,
    streams: Vec<StreamId>,
}

impl Run {
    fn of(input: &[u8]) -> u64 {
        let mut source = Source::new(input);
        let shape: Shape = source.choose(&["2^2", "3", "2x1x2"]).parse().expect("it is a shape");
        let mut world = World::new(Topology::from_shape(&shape, &Hosts::local()));
        world.starts_children = false;
        let mut run = Self { world, given_bytes: 0, streams: Vec::new() };
        run.begin(source.below(3));
        for _ in 0..ACTS_MAX {
            if source.is_empty() {
                break;
            }
            run.act(&mut source);
            run.check_bounds();
        }
        run.finish();
        run.world.fingerprint()
    }

    /// The node, and neighbours that have identified themselves to each other.
    fn begin(&mut self, role: usize) {
        let front_end = self.world.topology.root().rank();
        match role {
            0 => {
                self.world.add_front_end();
                self.connect_children(front_end);
            }
            1 => {
                let inner = self.world.topology.children(front_end)[0];
                self.world.add(Role::Communication, Some(inner), true);
                let plan = vec![1];
                self.connect_parent(ChildPlan {
                    rank: inner,
                    back_ends: RankSet::range(0, 1),
                    plan,
                });
                self.connect_children(inner);
            }
            _ => {
                self.world.add(Role::BackEnd, Some(0), true);
                let plan = Vec::new();
                self.connect_parent(ChildPlan { rank: 0, back_ends: RankSet::range(0, 0), plan });
            }
        }
        self.world.settle();
    }

    fn connect_parent(&mut self, plan: ChildPlan) {
        let wire = self.world.connect(None, Some(0));
        let mut parent = world::node(Role::FrontEnd, Some(9), true, 1, Recovery::default());
        let hello = world::words(&self.world.processes[0].node, LinkId(0));
        parent.expect(vec![plan], RankSet::new(), 2, 2);
        parent.handle_input(Instant(0), Input::ChildUp { link: LinkId(0) });
        let hello = Slab::copy_of(&hello);
        parent.handle_input(Instant(0), Input::Bytes { link: LinkId(0), bytes: hello.as_bytes() });
        self.give(wire, Side::Upper, &world::words(&parent, LinkId(0)));
        self.world.settle();
    }

    fn connect_children(&mut self, rank: Rank) {
        for child in self.world.topology.children(rank).to_vec() {
            let wire = self.world.connect(Some(0), None);
            self.give(wire, Side::Lower, &hello_of(child, true));
        }
    }

    /// Sends bytes from the input's end.
    fn give(&mut self, wire: usize, side: Side, bytes: &[u8]) {
        self.given_bytes += bytes.len();
        if self.world.has_room(wire, side) {
            self.world.network.pipe(wire, side).put(bytes);
        }
    }

    /// A wire, and the input's end of it.
    fn wire(&mut self, source: &mut Source<'_>) -> Option<(usize, Side)> {
        let wire = source.below(self.world.network.wires());
        let network = &self.world.network;
        let is_input = |&side: &Side| network.process(wire, side).is_none();
        let side = SIDES.into_iter().find(|side| wire < network.wires() && is_input(side))?;
        Some((wire, side))
    }

    fn act(&mut self, source: &mut Source<'_>) {
        match source.below(32) {
            0..8 => self.send_frame(source, 0),
            8..10 => self.send_frame(source, 1),
            10 => {
                let repeats = source.below(REPEATS_MAX);
                self.send_frame_often(source, repeats);
            }
            11 => {
                if let Some((wire, side)) = self.wire(source) {
                    let count = source.byte().into();
                    let bytes = source.bytes(count);
                    self.give(wire, side, bytes);
                }
            }
            12..16 => self.move_bytes(source),
            16..19 => self.world.settle(),
            19 => self.world.pass_time(u64::from(source.byte()) * 1_000_000),
            20 => drop(self.world.pass_to_wake() && self.world.wake_one()),
            21 => self.link_down(source),
            22 if self.world.dial_one(source.flag()) => {}
            22 => self.link_up(source),
            23 => {
                let rank = source.below(10) as u32;
                self.world.change(0, Input::StartFailed { rank, text: source.text() });
            }
            24..27 => self.take(source),
            27 => self.open(source),
            28 => self.close(source),
            _ => self.send(source),
        }
    }

    fn send_frame(&mut self, source: &mut Source<'_>, damages: usize) {
        let Some((wire, side)) = self.wire(source) else { return };
        let frame = frame(source);
        let mut bytes = frame.as_bytes().to_vec();
        for _ in 0..damages {
            let at = source.below(bytes.len());
            match source.below(3) {
                0 => bytes.truncate(at / 8 * 8),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = source.byte()),
            }
        }
        self.give(wire, side, &bytes);
    }

    fn send_frame_often(&mut self, source: &mut Source<'_>, repeats: usize) {
        let Some((wire, side)) = self.wire(source) else { return };
        let frame = frame(source);
        for _ in 0..repeats {
            self.give(wire, side, frame.as_bytes());
            while self.world.read(wire, side.other(), usize::MAX) {}
        }
    }

    fn move_bytes(&mut self, source: &mut Source<'_>) {
        let Some((wire, side)) = self.wire(source) else { return };
        let what = source.byte();
        let most = 1 + usize::from(what >> 2) * 9;
        match what & 3 {
            0 => drop(self.world.read(wire, side.other(), most)),
            1 => drop(self.world.read(wire, side, most)),
            2 => drop(self.world.write(wire, side.other(), most)),
            _ => drop(self.world.write(wire, side.other(), usize::MAX)),
        }
    }

    fn link_down(&mut self, source: &mut Source<'_>) {
        let Some((wire, side)) = self.wire(source) else { return };
        match source.flag() {
            true => self.world.network.close(wire, side),
            false => {
                self.world.cut(wire, side.other());
                self.world.network.close(wire, side);
            }
        }
    }

    fn link_up(&mut self, source: &mut Source<'_>) {
        let what = source.byte();
        if self.world.network.wires() >= WIRES_MAX || self.world.processes[0].role == Role::BackEnd
        {
            return;
        }
        let wire = self.world.connect(Some(0), None);
        if what & 1 == 0 {
            self.give(wire, Side::Lower, &hello_of(u32::from(what >> 2), what & 2 == 0));
        }
    }

    fn take(&mut self, source: &mut Source<'_>) {
        let node = &mut self.world.processes[0].node;
        let Some(delivery) = node.application().poll_delivery() else { return };
        if let Delivery::Answer(answer) = &delivery
            && let Some(packet) = &answer.packet
        {
            super::values::read_everything(packet.values());
        }
        if source.byte() < 240 {
            node.application().consumed(delivery.stream(), delivery.cost());
        }
        self.world.note_delivery(&delivery);
        self.world.drain(0);
    }

    fn stream(&self, source: &mut Source<'_>) -> StreamId {
        // Numbers of streams that were never opened occur as well.
        let index = source.below(self.streams.len() + 2);
        self.streams.get(index).copied().unwrap_or(index as u32)
    }

    fn open(&mut self, source: &mut Source<'_>) {
        let members = match source.flag() {
            true => self.world.processes[0].node.back_ends(),
            false => ranks(source),
        };
        let filters = |source: &mut Source<'_>| {
            let count = source.below(3);
            (0..count).map(|_| FilterSpec::from(source.choose(&FILTERS))).collect::<Vec<_>>()
        };
        let wave = match source.below(3) {
            0 => WaveRule::All,
            1 => WaveRule::Timeout { milliseconds: source.number() as u32 },
            _ => WaveRule::Immediate,
        };
        let spec = StreamSpec {
            members,
            up: filters(source),
            down: filters(source),
            wave,
            rule: None,
            policy: if source.flag() { Policy::Block } else { Policy::DropOldest },
            window_bytes: source.flag().then(|| source.number() as u32),
            at_back_ends: source.flag(),
        };
        let opened = self.world.processes[0].node.application().open_stream(spec);
        self.world.note(&opened);
        self.streams.extend(opened.ok());
        self.world.drain(0);
    }

    fn close(&mut self, source: &mut Source<'_>) {
        let stream = self.stream(source);
        match source.byte() {
            255 => {
                let now = self.world.now;
                self.world.processes[0].node.application().shutdown(now);
            }
            _ => drop(self.world.processes[0].node.application().close_stream(stream)),
        }
        self.world.drain(0);
    }

    /// The application sends, up or down.
    fn send(&mut self, source: &mut Source<'_>) {
        let (stream, now) = (self.stream(source), self.world.now);
        let values = values(source);
        let bytes = values.as_ref().body().len();
        let node = &mut self.world.processes[0].node;
        if node.application().has_room(stream) != Ok(true) {
            return;
        }
        self.given_bytes += bytes + 256;
        if self.world.processes[0].role == Role::FrontEnd {
            let named = ranks(source);
            // The inputs that are kept state "all" as the empty set.
            let to = if named.is_empty() { Recipients::All } else { Recipients::Only(named) };
            let node = &mut self.world.processes[0].node;
            let sent = node.application().broadcast(now, stream, 3, values, &to);
            self.world.note(&sent);
        } else {
            let wave = source.flag().then(|| source.number());
            let sent = self.world.processes[0].node.application().send(stream, 3, values, wave);
            self.world.note(&sent);
        }
        self.world.drain(0);
    }

    fn check_bounds(&self) {
        let links = self.world.network.wires() + 1;
        let bound = BYTES_MAX + BYTES_PER_BYTE_MAX * links * self.given_bytes;
        let queued = self.world.processes[0].node.queued_bytes();
        assert!(queued <= bound, "{queued} bytes wait, {} were given", self.given_bytes);
    }

    /// All links go down; then the node has nothing left to do.
    fn finish(&mut self) {
        self.world.settle();
        self.world.check_written();
        for wire in 0..self.world.network.wires() {
            SIDES.into_iter().for_each(|side| self.world.cut(wire, side));
        }
        for _ in 0..LAST_WAKES {
            self.world.settle();
            if !self.world.pass_to_wake() {
                break;
            }
        }
        let has_hung_up = self.world.processes[0].hangups > 0;
        let node = &mut self.world.processes[0].node;
        // After the end and after hanging up there may be links that are down without a word.
        let is_excused = node.has_ended() || has_hung_up;
        assert!(is_excused || !node.has_unwritten(), "no link is left to write to");
        while node.application().poll_delivery().is_some() {}
    }
}

/// The hello of a process that connects.
fn hello_of(rank: Rank, is_started: bool) -> Vec<u8> {
    let mut child = world::node(Role::BackEnd, Some(rank), is_started, 2, Recovery::default());
    child.handle_input(Instant(0), Input::ParentUp { link: LinkId(0) });
    world::words(&child, LinkId(0))
}
