//! The bytes between processes: they move as a runtime would move them, cut anywhere.

use sapwood_memory_network::Side;
use sapwood_node::Input;

use super::World;

/// Bytes that may be on their way from one end to the other.
const PIPE_BYTES_MAX: usize = 32 << 10;

impl World {
    /// Whether more bytes may be put on their way from an end.
    pub fn has_room(&mut self, wire: usize, side: Side) -> bool {
        self.network.pipe(wire, side).len() < PIPE_BYTES_MAX
    }

    /// One end sees its link fail, whatever was on its way.
    pub fn cut(&mut self, wire: usize, side: Side) {
        if !self.network.is_open(wire, side) {
            return;
        }
        let link = self.network.link(wire, side);
        self.network.pipe(wire, side).discard();
        self.network.close(wire, side);
        if let Some(process) = self.network.process(wire, side) {
            self.change(process, Input::LinkDown { link, reason: "connection reset".into() });
        }
    }

    /// One end reads what the other has written, if there is anything to see.
    pub fn read(&mut self, wire: usize, side: Side, most: usize) -> bool {
        if !self.network.is_readable(wire, side) {
            return false;
        }
        let Some(process) = self.network.process(wire, side) else {
            self.network.skip(wire, side, most);
            return true;
        };
        if self.processes[process].is_stalled {
            return false;
        }
        let node = &mut self.processes[process].node;
        self.network.read(self.now, wire, side, most, node);
        self.drain(process);
        true
    }

    /// One end writes what its node has, as far as there is room.
    pub fn write(&mut self, wire: usize, side: Side, most: usize) -> bool {
        let process = self.network.process(wire, side);
        let Some(process) = process.filter(|_| self.network.is_armed(wire, side)) else {
            return false;
        };
        let node = &mut self.processes[process].node;
        let limits = (most, PIPE_BYTES_MAX);
        let written = self.network.write(self.now, wire, side, limits, node);
        if let Some(count @ 1..) = written {
            self.fingerprint.add(self.network.pipe(wire, side).newest(count));
        }
        self.drain(process);
        written.is_some()
    }
}
