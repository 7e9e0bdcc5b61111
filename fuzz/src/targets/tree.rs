//! Any sequence of operations on a small tree of real nodes, all of which keep the rules.
//!
//! Back-ends send, streams open and close, bytes move in any order and in pieces, time passes,
//! processes stop, leave, die and are cut off. Whatever happens: every answer is the sum of what
//! its contributors sent, no member is in one wave twice, memory stays within the windows, the same
//! bytes have the same run, and in the end everything comes to rest and every process ends.

mod oracle;

use sapwood_filter::{FilterSpec, WaveRule};
use sapwood_node::{Delivery, Policy, Role, StreamSpec};
use sapwood_packet::{RankSet, StreamId};
use sapwood_topology::{Hosts, Shape, Topology};

use super::world::{SIDES, World};
use crate::Target;
use crate::source::Source;
use oracle::Oracle;

/// Small trees of nodes.
pub const TARGET: Target = Target { name: "tree", run, repair: None };

const SHAPES: [&str; 8] = ["1", "3", "2^2", "1^3", "3x2", "1x3", "2x1x2", "4"];
const FILTERS: [&str; 6] = ["sum", "sum", "sum", "null", "count", "concatenate"];
const WINDOWS: [u32; 4] = [200, 2000, 30_000, 256 << 10];
/// Input beyond this many acts is ignored.
const ACTS_MAX: usize = 300;
const STREAMS_MAX: usize = 4;
/// Longest packet that is sent, in bytes of its values.
const PACKET_BYTES: usize = 20_008;
/// Times that are waited for at the end.
const LAST_WAKES: u32 = 200;

fn run(input: &[u8]) {
    let first = Run::of(input);
    assert_eq!(first, Run::of(input), "the same bytes have the same run");
}

/// A tree, what is open in it, and what has been seen.
struct Run {
    world: World,
    oracle: Oracle,
    streams: Vec<StreamId>,
    /// Whether anything has happened that a network must survive, but not unharmed.
    is_faulty: bool,
}

impl Run {
    /// Everything that an input says. Gives the run's fingerprint.
    fn of(input: &[u8]) -> u64 {
        let mut source = Source::new(input);
        let shape: Shape = source.choose(&SHAPES).parse().expect("the list has only shapes");
        let is_attaching = source.below(8) == 7;
        let hosts = Hosts::local();
        let topology = match is_attaching {
            true => Topology::attach(&shape, &hosts),
            false => Topology::from_shape(&shape, &hosts),
        };
        let mut run = Self {
            world: World::new(topology),
            oracle: Oracle::default(),
            streams: Vec::new(),
            is_faulty: false,
        };
        run.world.recovery.is_on = source.below(4) != 0;
        run.world.add_front_end();
        if source.below(4) != 0 {
            // Most of what happens, happens to a tree that has started.
            run.world.settle();
        }
        for _ in 0..ACTS_MAX {
            if source.is_empty() {
                break;
            }
            run.act(&mut source);
        }
        run.check_bounds();
        run.finish();
        run.world.no_process_is_distrusted();
        run.world.fingerprint()
    }

    fn act(&mut self, source: &mut Source<'_>) {
        match source.below(24) {
            0..6 => self.move_bytes(source),
            6..11 => self.send(source),
            11 => self.open(source),
            12 => self.broadcast(source),
            13 => self.take(source),
            14 => self.take_all(),
            15 => self.world.settle(),
            16 if source.flag() => self.check_bounds(),
            16 => self.world.pass_time(u64::from(source.byte()) * 1_000_000),
            17 => drop(self.world.wake_one() || self.world.pass_to_wake()),
            18 => {
                let fails = source.below(4) == 3;
                self.is_faulty |= self.world.start_one(fails) && fails;
            }
            19 => self.close(source),
            20 if self.world.dial_one(false) => {}
            20 => self.attach(source),
            _ => self.disturb(source),
        }
    }

    /// Bytes move over one link in one direction.
    fn move_bytes(&mut self, source: &mut Source<'_>) {
        let (wire, what) = (source.below(self.world.network.wires()), source.byte());
        if self.world.network.wires() == 0 {
            return;
        }
        let side = SIDES[usize::from(what & 1)];
        let most = match what >> 2 {
            63 => usize::MAX,
            count => 1 + usize::from(count) * 7,
        };
        let _ = if what & 2 == 0 {
            self.world.read(wire, side, most)
        } else {
            self.world.write(wire, side, most)
        };
    }

    fn stream(&self, source: &mut Source<'_>) -> Option<StreamId> {
        self.streams.get(source.below(self.streams.len())).copied()
    }

    fn process(&self, source: &mut Source<'_>) -> Option<usize> {
        let index = source.below(self.world.processes.len());
        Some(index).filter(|&index| self.world.processes[index].is_alive)
    }

    fn open(&mut self, source: &mut Source<'_>) {
        let chosen = source.byte();
        let there = self.world.processes[0].node.back_ends();
        // Mostly all.
        let is_chosen = |rank: &u32| chosen < 128 || chosen >> (rank % 7) & 1 == 1;
        let members: RankSet =
            there.iter().filter(is_chosen).collect::<Vec<_>>().into_iter().collect();
        let up = FilterSpec::from(source.choose(&FILTERS));
        let wave = match source.below(4) {
            0 => WaveRule::Timeout { milliseconds: u32::from(source.byte()) },
            1 => WaveRule::Immediate,
            _ => WaveRule::All,
        };
        let policy = if source.below(4) == 3 { Policy::DropOldest } else { Policy::Block };
        let window_bytes = Some(source.choose(&WINDOWS));
        if self.streams.len() == STREAMS_MAX || !self.world.processes[0].is_ready {
            return;
        }
        let spec =
            StreamSpec { members, up: vec![up], wave, policy, window_bytes, ..Default::default() };
        let front_end = &mut self.world.processes[0].node;
        if let Ok(stream) = front_end.application().open_stream(spec.clone()) {
            self.oracle.opened(stream, &spec);
            self.streams.push(stream);
        }
        self.world.drain(0);
    }

    fn close(&mut self, source: &mut Source<'_>) {
        let Some(stream) = self.stream(source) else { return };
        self.streams.retain(|&other| other != stream);
        self.oracle.closed(stream);
        let closed = self.world.processes[0].node.application().close_stream(stream);
        assert_eq!(closed, Ok(()));
        self.world.drain(0);
    }

    /// A back-end sends in its next waves, as its window allows.
    fn send(&mut self, source: &mut Source<'_>) {
        let (Some(process), Some(stream)) = (self.process(source), self.stream(source)) else {
            return;
        };
        let what = source.byte();
        let is_long = what >> 6 == 3;
        let count = if what & 7 == 7 && !is_long { 40 } else { 1 };
        for _ in 0..count {
            let sender = &mut self.world.processes[process];
            let Some(rank) = sender.rank.filter(|_| sender.role == Role::BackEnd) else { return };
            if sender.node.application().has_room(stream) != Ok(true) {
                return;
            }
            let wave = self.oracle.next_wave(stream, rank) + u64::from(what & 56 == 56);
            let value = (wave as i64 + 1) * 1000 + i64::from(rank);
            let sent = if is_long {
                sender.node.application().send(stream, 1, vec![value; PACKET_BYTES / 8], Some(wave))
            } else {
                sender.node.application().send(stream, 1, value, Some(wave))
            };
            if sent.is_ok() {
                self.oracle.sent(stream, wave, rank, value, is_long);
            }
            self.world.note(&sent);
            self.world.drain(process);
        }
    }

    fn broadcast(&mut self, source: &mut Source<'_>) {
        let Some(stream) = self.stream(source) else { return };
        let now = self.world.now;
        let front_end = &mut self.world.processes[0].node;
        if front_end.application().has_room(stream) != Ok(true) {
            return;
        }
        let values = vec![7_i64; if source.byte() == 255 { PACKET_BYTES / 8 } else { 3 }];
        let sent = front_end.application().broadcast(
            now,
            stream,
            2,
            values,
            &sapwood_packet::Recipients::All,
        );
        self.world.note(&sent);
        self.world.drain(0);
    }

    /// An application takes one thing that has come.
    fn take(&mut self, source: &mut Source<'_>) {
        if let Some(process) = self.process(source) {
            self.take_one(process);
        }
    }

    fn take_one(&mut self, process: usize) -> bool {
        let node = &mut self.world.processes[process].node;
        let Some(delivery) = node.application().poll_delivery() else { return false };
        node.application().consumed(delivery.stream(), delivery.cost());
        self.world.note_delivery(&delivery);
        match &delivery {
            Delivery::Answer(answer) => {
                assert_eq!(process, 0, "answers come to the front-end");
                self.oracle.check(answer);
            }
            Delivery::Packet(packet) => assert_eq!(packet.tag(), 2, "it was sent as this"),
        }
        self.world.drain(process);
        true
    }

    fn take_all(&mut self) {
        for process in 0..self.world.processes.len() {
            while self.world.processes[process].is_alive && self.take_one(process) {}
        }
    }

    /// A back-end comes by itself.
    fn attach(&mut self, source: &mut Source<'_>) {
        let (parent, what) = (self.process(source), source.byte());
        if let Some(parent) = parent
            && self.world.processes[parent].role != Role::BackEnd
            && self.world.processes.len() < 20
        {
            let rank = (what & 16 != 0).then_some(u32::from(what & 15));
            let child = self.world.add(Role::BackEnd, rank, false);
            self.world.connect(Some(parent), Some(child));
            self.is_faulty = true;
        }
    }

    fn disturb(&mut self, source: &mut Source<'_>) {
        let what = source.byte();
        let Some(process) = self.process(source) else { return };
        match what % 8 {
            0..=2 => {
                let process = &mut self.world.processes[process];
                process.is_stalled = !process.is_stalled;
            }
            3 | 4 if process != 0 => self.world.kill(process),
            5 | 6 if self.world.network.wires() > 0 => {
                let wire = usize::from(what) % self.world.network.wires();
                SIDES.into_iter().for_each(|side| self.world.cut(wire, side));
            }
            7 if process != 0 || what == 255 => {
                let now = self.world.now;
                self.world.processes[process].node.application().shutdown(now);
                self.world.drain(process);
            }
            _ => return,
        }
        self.is_faulty |= what % 8 > 2;
    }

    /// What waits is at most a few windows per stream and link, and a packet where whole ones are
    /// needed.
    fn check_bounds(&self) {
        let links = self.world.topology.node_count() as usize + 20;
        let bound = self.oracle.window_bytes(PACKET_BYTES) * links + (64 << 10) * links;
        for process in self.world.processes.iter().filter(|process| process.is_alive) {
            let queued = process.node.queued_bytes();
            assert!(queued <= bound, "{queued} bytes wait in one node, at most {bound} may");
        }
    }

    /// Everything that was held back goes on; then the network ends.
    fn finish(&mut self) {
        // Bytes that have not been moved meanwhile are silence.
        self.is_faulty |= self.world.may_be_silent();
        self.world.processes.iter_mut().for_each(|process| process.is_stalled = false);
        self.come_to_rest();
        if !self.is_faulty {
            self.oracle.check_complete(&self.streams);
            let hangups: u32 = self.world.processes.iter().map(|process| process.hangups).sum();
            assert_eq!(hangups, 0, "no process has broken a rule");
        }
        let now = self.world.now;
        self.world.processes[0].node.application().shutdown(now);
        self.world.drain(0);
        self.come_to_rest();
        self.world.check_written();
        for process in self.world.processes.iter().filter(|process| process.is_alive) {
            let was_there = process.node.is_planned() || process.role == Role::BackEnd;
            assert!(process.node.has_ended() || !was_there, "{:?} does not end", process.rank);
        }
    }

    fn come_to_rest(&mut self) {
        for _ in 0..LAST_WAKES {
            self.world.settle();
            let mut has_taken = false;
            for process in 0..self.world.processes.len() {
                while self.world.processes[process].is_alive && self.take_one(process) {
                    has_taken = true;
                }
            }
            if !has_taken && !self.world.pass_to_wake() {
                return;
            }
        }
    }
}
