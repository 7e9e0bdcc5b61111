//! The wires between processes: bytes move as a runtime would move them, cut anywhere.

use std::collections::VecDeque;

use sapwood_node::{Input, LinkId};

use super::World;

/// The buffer into which small frames are read: room for a tail, and for one read.
pub(super) const BUFFER_BYTES: usize = (16 << 10) + READ_BYTES;
const READ_BYTES: usize = 64 << 10;
/// Bytes that may be on their way from one end to the other.
const PIPE_BYTES_MAX: usize = 32 << 10;

/// Which end of a wire: that of the parent or that of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Upper,
    Lower,
}

/// Both.
pub const SIDES: [Side; 2] = [Side::Upper, Side::Lower];

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Upper => Self::Lower,
            Self::Lower => Self::Upper,
        }
    }
}

/// One process's end of a wire, or the input's.
struct End {
    process: Option<usize>,
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
pub struct Wire {
    ends: [End; 2],
}

impl Wire {
    pub fn between(ends: [(Option<usize>, LinkId); 2]) -> Self {
        let end = |(process, link)| End {
            process,
            link,
            bytes: VecDeque::new(),
            is_armed: false,
            is_leaving: false,
            is_open: true,
        };
        Self { ends: ends.map(end) }
    }

    /// Bytes on their way from one end, to be altered.
    pub fn bytes(&mut self, side: Side) -> &mut VecDeque<u8> {
        &mut self.ends[side as usize].bytes
    }

    pub fn is_open_both(&self) -> bool {
        self.ends.iter().all(|end| end.is_open)
    }

    pub fn is_input(&self, side: Side) -> bool {
        self.ends[side as usize].process.is_none()
    }

    pub fn has_room(&self, side: Side) -> bool {
        self.ends[side as usize].bytes.len() < PIPE_BYTES_MAX
    }

    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }
}

impl World {
    /// A link has something to write, or is to be closed when it is written.
    pub(super) fn arm(&mut self, process: usize, link: LinkId, is_leaving: bool) {
        if let Some(Some((wire, side))) = self.processes[process].links.get(link.0 as usize) {
            let end = self.wires[*wire].end(*side);
            end.is_armed = true;
            end.is_leaving |= is_leaving;
        }
    }

    /// One end is gone; the other reads what has been written.
    pub fn close(&mut self, wire: usize, side: Side) {
        let end = self.wires[wire].end(side);
        end.is_open = false;
        let (process, link) = (end.process, end.link);
        self.wires[wire].end(side.other()).bytes.clear();
        if let Some(slot) =
            process.and_then(|process| self.processes[process].links.get_mut(link.0 as usize))
            && *slot == Some((wire, side))
        {
            *slot = None;
        }
    }

    /// One end sees its link fail, whatever was on its way.
    pub fn cut(&mut self, wire: usize, side: Side) {
        let end = self.wires[wire].end(side);
        let (process, link, is_open) = (end.process, end.link, end.is_open);
        if !is_open {
            return;
        }
        self.wires[wire].end(side).bytes.clear();
        self.close(wire, side);
        if let Some(process) = process {
            self.change(process, Input::LinkDown { link, reason: "connection reset".into() });
        }
    }

    /// One end reads what the other has written, if there is anything to see.
    pub fn read(&mut self, wire: usize, side: Side, most: usize) -> bool {
        let End { process, link, is_open, .. } = *self.wires[wire].end(side);
        let other = self.wires[wire].end(side.other());
        let is_end = other.bytes.is_empty() && !other.is_open;
        if !is_open || (other.bytes.is_empty() && other.is_open) {
            return false;
        }
        let Some(process) = process else {
            // The input does not read: bytes to its end are dropped.
            let count = most.min(other.bytes.len());
            other.bytes.drain(..count);
            if is_end {
                self.close(wire, side);
            }
            return true;
        };
        if self.processes[process].is_stalled {
            return false;
        }
        if is_end {
            self.close(wire, side);
            self.change(process, Input::LinkDown { link, reason: "connection closed".into() });
            return true;
        }
        self.deliver(wire, side, (process, link), most);
        true
    }

    fn deliver(&mut self, wire: usize, side: Side, (process, link): (usize, LinkId), most: usize) {
        let node = &mut self.processes[process].node;
        let pipe = &mut self.wires[wire].end(side.other()).bytes;
        if let Some(memory) = node.lend(link) {
            let count = memory.len().min(most).min(pipe.len());
            assert!(!memory.is_empty(), "memory that is lent has room");
            move_out(pipe, &mut memory[..count]);
            self.change(process, Input::Filled { link, bytes: count });
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let memory = buffer.as_mut_bytes();
        let tail = node.begin_read(link, memory);
        assert!(tail < BUFFER_BYTES - READ_BYTES, "a tail is short");
        let count = READ_BYTES.min(most).min(pipe.len());
        move_out(pipe, &mut memory[tail..tail + count]);
        self.change(process, Input::Bytes { link, bytes: &memory[..tail + count] });
        self.buffer = buffer;
    }

    /// One end writes what its node has, as far as there is room.
    pub fn write(&mut self, wire: usize, side: Side, most: usize) -> bool {
        let End { process, link, is_open, is_armed, is_leaving, .. } = *self.wires[wire].end(side);
        let Some(process) = process.filter(|_| is_open && is_armed) else { return false };
        if !self.wires[wire].end(side.other()).is_open {
            // The other end is closed: the end of the link is seen by reading.
            self.wires[wire].end(side).is_armed = false;
            if is_leaving && !self.processes[process].node.wants_write(link) {
                self.close(wire, side);
            }
            return true;
        }
        let pipe = &mut self.wires[wire].ends[side as usize].bytes;
        let room = PIPE_BYTES_MAX.saturating_sub(pipe.len());
        let node = &self.processes[process].node;
        if node.wants_write(link) && room.min(most) == 0 {
            return false;
        }
        let (mut left, start) = (most.min(room), pipe.len());
        node.gather(link, |part| {
            let length = part.len().min(left);
            pipe.extend(&part[..length]);
            left -= length;
            left > 0
        });
        let count = pipe.len() - start;
        self.fingerprint.add(&pipe.make_contiguous()[start..]);
        if count > 0 {
            self.change(process, Input::Transmitted { link, bytes: count });
        }
        if !self.processes[process].node.wants_write(link) {
            self.wires[wire].end(side).is_armed = false;
            if is_leaving {
                self.close(wire, side);
            }
        }
        true
    }
}

/// The first bytes of a pipe, moved as a whole: a loop over them would be most of a run.
fn move_out(pipe: &mut VecDeque<u8>, memory: &mut [u8]) {
    memory.copy_from_slice(&pipe.make_contiguous()[..memory.len()]);
    pipe.drain(..memory.len());
}
