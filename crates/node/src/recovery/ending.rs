//! The end of this process's part: with the whole network, on purpose, or because others have
//! taken its place.

use alloc::string::String;
use core::time::Duration;

use sapwood_wire::Control;

use crate::interface::{Event, Instant, Output, Role};
use crate::recovery::change::TreeChange;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// Why a process ends that was asked to.
pub(crate) const ENDED_ITSELF: &str = "this process ended its part";

/// How long a back-end that leaves waits for the acknowledgement of what it has sent, and a
/// communication process for its filters.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_millis(500);

/// Why the network ends for this process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was asked to.
    OnPurpose,
    /// It has no way to the front-end.
    ByFault,
}

impl TreeChange<'_> {
    /// The network ends for this process and all below it, as it was asked to.
    pub(crate) fn end_on_purpose(&mut self, reason: String) {
        self.end(Ending::OnPurpose, reason);
    }

    /// The network ends for this process and all below it, because it has no way to the front-end.
    pub(crate) fn end_by_fault(&mut self, reason: String) {
        self.end(Ending::ByFault, reason);
    }

    fn end(&mut self, ending: Ending, reason: String) {
        if self.turn.has_ended {
            return;
        }
        self.turn.has_ended = true;
        // An ancestor that answers now would take in a process that is gone.
        self.members.ancestry.end_search(self.turn);
        for at in 0..self.streams.len() {
            // Below there is no parent to grant credit any more.
            self.streams.at(at).force_down(self.turn);
        }
        let mut frame = sapwood_packet::Slab::default();
        let encoded = sapwood_wire::encode_control(&mut frame, &Control::Shutdown);
        debug_assert!(encoded.is_ok(), "a shutdown message is short");
        for link in self.members.children.links() {
            if let Some(outbox) = self.turn.links.outbox(link) {
                outbox.push_bytes(frame.as_bytes());
            }
            self.turn.outputs.push_back(Output::Hangup(link));
        }
        if let Some(parent) = self.turn.parent {
            self.turn.outputs.push_back(Output::Hangup(parent));
        }
        self.leave_links();
        let on_purpose = ending == Ending::OnPurpose;
        self.turn.outputs.push_back(Output::Event(Event::Ended { on_purpose, reason }));
    }

    /// The node's links are left to the driver, which writes the queued bytes and closes them.
    ///
    /// Their numbers soon are those of other links, so no child and no stream may keep one.
    pub(crate) fn leave_links(&mut self) {
        let mut links = self.members.children.links();
        links.extend(self.turn.parent.take());
        for link in links {
            if let Some(open) = self.turn.links.link_mut(link) {
                open.peer = Peer::Leaving;
            }
        }
        self.members.children.iter_mut().for_each(|(_, child)| child.link = None);
        for at in 0..self.streams.len() {
            self.streams.at(at).slots.iter_mut().for_each(|slot| slot.alive = false);
        }
    }

    /// Ends the network behind the packets that are at work.
    pub(crate) fn end_behind_packets(&mut self, reason: String) {
        self.streams.end_behind_jobs(reason, self.turn);
        self.end_if_idle();
    }

    pub(crate) fn end_if_idle(&mut self) {
        if let Some(reason) = self.streams.take_end(self.turn) {
            self.end_on_purpose(reason);
        }
    }

    /// Ends this process's part now.
    pub(crate) fn leave(&mut self, now: Instant) {
        if let Some(parent) = self.turn.parent {
            self.streams.hand_over_before_leaving(self.turn);
            for at in 0..self.streams.len() {
                let Turn { links, .. } = &mut *self.turn;
                if let Some(outbox) = links.outbox(parent) {
                    self.streams.at(at).sender.force(outbox);
                }
            }
            self.turn.send_control(parent, &Control::Leaving);
        }
        match self.turn.settings.role {
            Role::Communication if self.turn.settings.recovery.is_on => {
                self.step_down(String::from(ENDED_ITSELF));
            }
            // What it has sent is still its own until it is safe.
            Role::BackEnd => {
                self.turn.departs_until = Some(now + DRAIN_LIMIT);
                self.depart();
            }
            Role::FrontEnd => self.end_behind_packets(ENDED_ITSELF.into()),
            Role::Communication => self.end_part(),
        }
    }

    fn end_part(&mut self) {
        self.end_on_purpose(String::from(ENDED_ITSELF));
    }

    /// Ends a back-end that leaves, once what it has sent is safe; or a communication process, once
    /// its filters are not at work; or either when it has waited long enough.
    pub(crate) fn depart(&mut self) {
        let Some(until) = self.turn.departs_until else { return };
        let is_back_end = self.turn.settings.role == Role::BackEnd;
        let waits = if is_back_end {
            self.streams.is_unsettled(self.turn)
        } else {
            self.streams.has_work()
        };
        if until > self.turn.now && waits {
            return;
        }
        self.turn.departs_until = None;
        match is_back_end {
            true => self.end_part(),
            false => self.leave(self.turn.now),
        }
    }

    /// This process ends, and its children turn to their ancestors.
    pub(crate) fn step_down(&mut self, reason: String) {
        if self.turn.has_ended {
            return;
        }
        self.turn.has_ended = true;
        self.members.has_stepped_down = true;
        self.members.ancestry.end_search(self.turn);
        for link in self.members.children.links() {
            self.turn.outputs.push_back(Output::Hangup(link));
        }
        if let Some(parent) = self.turn.parent {
            self.turn.outputs.push_back(Output::Hangup(parent));
        }
        self.leave_links();
        self.turn.outputs.push_back(Output::Event(Event::Ended { on_purpose: false, reason }));
    }
}

impl Streams {
    /// Whether something that this process has sent is not safe yet.
    fn is_unsettled(&mut self, turn: &mut Turn) -> bool {
        self.end_runs(turn);
        !turn.has_ended && self.iter().any(|stream| !stream.sender.is_acknowledged())
    }
}
