//! The pipes between processes: bytes move as a runtime would move them, cut anywhere.

use std::collections::VecDeque;

use sapwood_node::{Input, LinkId, Role};
use sapwood_packet::Rank;

use super::Tree;

/// The buffer into which small frames are read: room for a tail, and for one read.
pub const BUFFER_BYTES: usize = (16 << 10) + READ_BYTES;
const READ_BYTES: usize = 64 << 10;

/// Which end of a wire: that of the parent or that of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Upper,
    Lower,
}

const SIDES: [Side; 2] = [Side::Upper, Side::Lower];

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
        }
    }
}

/// One process's end of a wire.
#[derive(Debug)]
struct End {
    process: usize,
    link: LinkId,
    /// Bytes on their way from here to the other end.
    bytes: VecDeque<u8>,
    /// Whether the node has asked for transmission and not all has been written.
    is_armed: bool,
    /// Whether it closes when all is written.
    is_leaving: bool,
    is_open: bool,
}

/// A link, with its two pipes.
#[derive(Debug)]
pub struct Wire {
    ends: [End; 2],
}

impl Wire {
    pub fn between(upper: (usize, LinkId), lower: (usize, LinkId)) -> Self {
        let end = |(process, link)| End {
            process,
            link,
            bytes: VecDeque::new(),
            is_armed: false,
            is_leaving: false,
            is_open: true,
        };
        Self { ends: [end(upper), end(lower)] }
    }

    pub fn close(&mut self, side: Side) {
        self.end(side).is_open = false;
        self.end(side.other()).bytes.clear();
    }

    pub fn bytes(&self) -> usize {
        self.ends.iter().map(|end| end.bytes.len()).sum()
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }
}

impl Tree {
    pub(super) fn arm(&mut self, process: usize, link: LinkId) {
        if let Some(Some((wire, side))) = self.processes[process].links.get(link.0 as usize) {
            self.wires[*wire].end(*side).is_armed = true;
        }
    }

    pub(super) fn hang_up(&mut self, process: usize, link: LinkId) {
        if let Some(Some((wire, side))) = self.processes[process].links.get(link.0 as usize) {
            let (wire, side) = (*wire, *side);
            self.wires[wire].end(side).is_leaving = true;
            self.wires[wire].end(side).is_armed = true;
        }
    }

    /// Moves bytes over one link in one direction, chosen by chance among those that can.
    pub(super) fn move_bytes(&mut self) -> bool {
        let moves = self.wires.len() * 4;
        if moves == 0 {
            return false;
        }
        let first = self.schedule.below(moves);
        for at in 0..moves {
            let chosen = (first + at) % moves;
            let (wire, side) = (chosen / 4, SIDES[chosen % 2]);
            let has_moved =
                if chosen % 4 < 2 { self.read(wire, side) } else { self.write(wire, side) };
            if has_moved {
                return true;
            }
        }
        false
    }

    /// One end reads what the other has written, if there is anything to see.
    fn read(&mut self, wire: usize, side: Side) -> bool {
        let End { process, link, is_open, .. } = *self.wires[wire].end(side);
        let other = self.wires[wire].end(side.other());
        let is_end = other.bytes.is_empty() && !other.is_open;
        let nothing = other.bytes.is_empty() && other.is_open;
        if !is_open || nothing || self.processes[process].is_stalled {
            return false;
        }
        let most = 1 + self.schedule.below(self.schedule.cut_bytes);
        let node = &mut self.processes[process].node;
        let pipe = &mut self.wires[wire].end(side.other()).bytes;
        if let Some(memory) = node.lend(link) {
            let count = memory.len().min(most).min(pipe.len());
            memory.iter_mut().zip(pipe.drain(..count)).for_each(|(to, from)| *to = from);
            if count > 0 {
                self.change(process, Input::Filled { link, bytes: count });
            }
        } else {
            let mut buffer = std::mem::take(&mut self.buffer);
            let memory = buffer.as_mut_bytes();
            let tail = node.begin_read(link, memory);
            let count = READ_BYTES.min(most).min(pipe.len());
            let room = memory[tail..].iter_mut();
            room.zip(pipe.drain(..count)).for_each(|(to, from)| *to = from);
            if tail + count > 0 {
                self.change(process, Input::Bytes { link, bytes: &memory[..tail + count] });
            }
            self.buffer = buffer;
        }
        if is_end {
            self.forget(process, link);
            self.wires[wire].close(side);
            let reason = String::from("connection closed");
            self.change(process, Input::LinkDown { link, reason });
        }
        true
    }

    fn forget(&mut self, process: usize, link: LinkId) {
        if let Some(slot) = self.processes[process].links.get_mut(link.0 as usize) {
            *slot = None;
        }
    }

    /// One end writes what its node has, as far as there is room.
    fn write(&mut self, wire: usize, side: Side) -> bool {
        let End { process, link, is_open, is_armed, is_leaving, .. } = *self.wires[wire].end(side);
        if !is_open || !is_armed {
            return false;
        }
        if !self.wires[wire].end(side.other()).is_open {
            // No process reads: the end of the link is seen by reading.
            self.wires[wire].end(side).is_armed = false;
            if is_leaving {
                self.forget(process, link);
                self.wires[wire].close(side);
            }
            return true;
        }
        let most = 1 + self.schedule.below(self.schedule.cut_bytes);
        let room = self.schedule.pipe_bytes.saturating_sub(self.wires[wire].end(side).bytes.len());
        let node = &self.processes[process].node;
        if node.wants_write(link) && room == 0 {
            return false;
        }
        let pipe = &mut self.wires[wire].ends[side as usize].bytes;
        let mut left = most.min(room);
        let mut count = 0;
        node.gather(link, |part| {
            let length = part.len().min(left);
            pipe.extend(&part[..length]);
            count += length;
            left -= length;
            left > 0
        });
        if count > 0 {
            self.change(process, Input::Transmitted { link, bytes: count });
        }
        if !self.processes[process].node.wants_write(link) {
            self.wires[wire].end(side).is_armed = false;
            if is_leaving {
                self.forget(process, link);
                self.wires[wire].close(side);
            }
        }
        true
    }

    /// The link of a process to its parent breaks. One end knows it at once; the other reads what
    /// is still on its way.
    pub fn cut(&mut self, rank: Rank) {
        let lower = self.by_rank[&rank];
        let is_link = |wire: &Wire| {
            wire.ends[Side::Lower as usize].process == lower
                && wire.ends.iter().all(|end| end.is_open)
        };
        let Some(wire) = self.wires.iter().position(is_link) else { return };
        let side = SIDES[self.schedule.below(2)];
        let End { process, link, .. } = *self.wires[wire].end(side);
        self.forget(process, link);
        self.wires[wire].close(side);
        let reason = String::from("connection reset");
        self.change(process, Input::LinkDown { link, reason });
    }

    /// A tree at rest has nothing left to write but where a pipe is full or no process reads.
    pub(super) fn check_rest(&self) {
        for end in self.wires.iter().flat_map(|wire| &wire.ends) {
            let process = &self.processes[end.process];
            let waits = end.is_open && process.is_alive && process.node.wants_write(end.link);
            assert!(
                !waits
                    || end.is_armed
                    || process.role == Role::FrontEnd && process.node.has_ended()
                    || self.other_is_closed(end),
                "rank {:?} has something to write and did not say so",
                process.rank
            );
        }
    }

    fn other_is_closed(&self, end: &End) -> bool {
        let is_end = |other: &End| other.process == end.process && other.link == end.link;
        self.wires
            .iter()
            .filter(|wire| wire.ends.iter().any(|other| is_end(other) && other.is_open))
            .any(|wire| wire.ends.iter().any(|other| !other.is_open))
    }
}
