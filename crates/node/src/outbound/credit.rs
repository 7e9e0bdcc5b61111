//! Credit that this process grants: to a child for what its packets took, to the parent for what
//! came down. What is granted to this process is in `inbound`.

use sapwood_wire::Control;

use crate::interface::{Mutation, Role};
use crate::streams::stream::Stream;
use crate::turn::Turn;

impl Stream {
    /// Bytes of a child have been dealt with: its credit grows, now or later.
    pub(crate) fn grant_to_child(&mut self, slot: usize, bytes: u32, turn: &mut Turn) {
        let is_root = turn.settings.role == Role::FrontEnd;
        let window = self.request.window_bytes;
        let halves = self.breaks(Mutation::HalveCredit);
        let Some(child) = self.slots.get_mut(slot) else { return };
        let grant = child.release(bytes, window);
        // Only the front-end knows by itself what is safe; a process below tells what it was told.
        let is_much = is_root && self.keeps && child.has_unannounced(bytes as usize);
        if !child.alive || grant.is_none() && !is_much {
            return;
        }
        if let (Some(mut bytes), Some(link)) = (grant, child.link) {
            if halves {
                bytes /= 2;
            }
            let stream = self.id;
            turn.send_control(link, &Control::Credit { stream, bytes });
        }
        // It travels with the credit, so that it wakes no process by itself.
        self.acknowledge_to_child(slot, turn);
    }

    /// Tells the parent that bytes which came down have been dealt with.
    pub(crate) fn grant_to_parent(&mut self, turn: &mut Turn) {
        if let Some(bytes) = self.take_grant_to_parent() {
            let id = self.id;
            if let Some(parent) = turn.parent {
                turn.send_control(parent, &Control::Credit { stream: id, bytes });
                self.acknowledge_to_parent(turn);
            }
        }
    }
}
