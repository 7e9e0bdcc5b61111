//! Losses below this process: remembered, and told to the parent or to the application.

use alloc::string::String;
use core::cmp::Ordering;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Control, ProbeId, Ranges};

use crate::interface::{Event, Output, Reason, Role};
use crate::members::children::Children;
use crate::members::membership::Membership;
use crate::turn::Turn;

/// Notices that a process passes on of each of its children.
pub(crate) const NOTICES_MAX: u32 = 1024;

impl Turn {
    /// Tells of a process that could not be started.
    pub(crate) fn pass_on_failure(&mut self, rank: Rank, text: String) {
        if self.settings.role == Role::FrontEnd {
            self.outputs.push_back(Output::Event(Event::StartFailed { rank, text }));
        } else if let Some(parent) = self.parent {
            self.send_control(parent, &Control::Failed { rank, text });
        }
    }
}

impl Membership {
    /// Back-ends are gone: remembered, told to the parent, or to the application.
    pub(crate) fn lost(&mut self, rank: Rank, back_ends: RankSet, reason: Reason, turn: &mut Turn) {
        let news = back_ends.difference(turn.losses.ranks().as_ref());
        // They are known as lost; but a process without back-ends is news by itself.
        if news.is_empty() && !back_ends.is_empty() {
            return;
        }
        turn.losses.add(back_ends.clone(), reason.clone());
        if turn.settings.role == Role::Communication && turn.settings.recovery.is_on {
            // The link to the parent may be broken already.
            turn.losses.add_unreported(back_ends.clone(), reason.clone());
        }
        let Reason { cause, words: reason } = reason;
        if turn.settings.role == Role::FrontEnd {
            turn.outputs.push_back(Output::Event(Event::Lost { rank, back_ends, reason, cause }));
        } else if let Some(parent) = turn.parent {
            let back_ends = Ranges::from(&back_ends);
            turn.send_control(parent, &Control::Lost { rank, back_ends, reason, cause });
            self.send_loss_barrier(turn);
        }
    }

    /// The parent is to echo a barrier behind the losses that it has been told of.
    pub(crate) fn send_loss_barrier(&mut self, turn: &mut Turn) {
        if turn.losses.unreported.is_empty() {
            return;
        }
        if let Some(parent) = turn.parent {
            self.loss_barrier += 1;
            // Control messages keep their order, so the echo shows that the parent has the losses
            // before it.
            let probe = ProbeId::Barrier(self.loss_barrier);
            turn.send_control(parent, &Control::Probe { probe });
        }
    }

    /// The parent has echoed a barrier: it knows of all losses if that was the last one.
    pub(crate) fn barrier_passed(&mut self, number: u64, turn: &mut Turn) {
        // An echo of an earlier barrier stands before losses that have been told since.
        if number == self.loss_barrier {
            turn.losses.unreported.clear();
        }
    }
}

impl Children {
    /// A child tells what a process of its subtree has noticed. Notices wait for no credit, so that
    /// their number is bounded.
    pub(crate) fn notice_below(&mut self, child: Rank, rank: Rank, text: String, turn: &mut Turn) {
        let Some(below) = self.get_mut(child) else { return };
        below.authority.notices = below.authority.notices.saturating_add(1);
        match below.authority.notices.cmp(&NOTICES_MAX) {
            Ordering::Less => turn.pass_on_notice(rank, text),
            Ordering::Equal => {
                let text = alloc::format!("further notices from below rank {child} are dropped");
                turn.pass_on_notice(turn.rank(), text);
            }
            Ordering::Greater => {}
        }
    }
}
