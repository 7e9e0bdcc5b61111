//! The bytes between processes: they move as a runtime would move them, cut anywhere.

use sapwood_memory_network::{SIDES, Side};
use sapwood_node::{Input, Role};
use sapwood_packet::Rank;

use super::Tree;

impl Tree {
    /// Moves bytes over one link in one direction, chosen by chance among those that can.
    pub(super) fn move_bytes(&mut self) -> bool {
        let moves = self.network.wires() * 4;
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
        let Some(process) = self.network.process(wire, side) else { return false };
        if !self.network.is_readable(wire, side) || self.processes[process].is_stalled {
            return false;
        }
        let most = 1 + self.schedule.below(self.schedule.cut_bytes);
        let node = &mut self.processes[process].node;
        self.network.read(self.now, wire, side, most, node);
        self.drain(process);
        true
    }

    /// One end writes what its node has, as far as there is room.
    fn write(&mut self, wire: usize, side: Side) -> bool {
        let Some(process) = self.network.process(wire, side) else { return false };
        if !self.network.is_armed(wire, side) {
            return false;
        }
        let limits = (1 + self.schedule.below(self.schedule.cut_bytes), self.schedule.pipe_bytes);
        let node = &mut self.processes[process].node;
        let written = self.network.write(self.now, wire, side, limits, node);
        self.drain(process);
        written.is_some()
    }

    /// The link of a process to its parent breaks. One end knows it at once; the other reads what
    /// is still on its way.
    pub fn cut(&mut self, rank: Rank) {
        let lower = self.by_rank[&rank];
        let is_whole = |&wire: &usize| SIDES.iter().all(|&side| self.network.is_open(wire, side));
        let links = self.network.links_of(lower).filter(|&(_, _, side)| side == Side::Lower);
        let Some(wire) = links.map(|(_, wire, _)| wire).find(is_whole) else { return };
        let side = SIDES[self.schedule.below(2)];
        let link = self.network.link(wire, side);
        self.network.close(wire, side);
        let Some(process) = self.network.process(wire, side) else { return };
        self.change(process, Input::LinkDown { link, reason: String::from("connection reset") });
    }

    /// A tree at rest has nothing left to write but where a pipe is full or no process reads.
    pub(super) fn check_rest(&self) {
        for (wire, side) in
            (0..self.network.wires()).flat_map(|wire| SIDES.map(|side| (wire, side)))
        {
            let Some(index) = self.network.process(wire, side) else { continue };
            let process = &self.processes[index];
            let is_whole = SIDES.iter().all(|&side| self.network.is_open(wire, side));
            let link = self.network.link(wire, side);
            let waits = is_whole && process.is_alive && process.node.wants_write(link);
            assert!(
                !waits
                    || self.network.is_armed(wire, side)
                    || process.role == Role::FrontEnd && process.node.has_ended(),
                "rank {:?} has something to write and did not say so",
                process.rank
            );
        }
    }
}
