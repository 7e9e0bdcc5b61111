//! Back-ends that are there, for the first time or again: they take part in their streams.

use alloc::vec::Vec;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Control, Ranges};

use crate::interface::{AttachPoint, Event, Output, Role};
use crate::members::children::State;
use crate::recovery::change::TreeChange;

impl TreeChange<'_> {
    /// A child's subtree has started, or more back-ends have come to it.
    pub(crate) fn reached(&mut self, rank: Rank, back_ends: RankSet, points: Vec<AttachPoint>) {
        let Some(child) = self.members.children.get_mut(rank) else { return };
        child.connected.union_with(back_ends.as_ref());
        child.state = State::Reported;
        self.close_place_of_slow(rank, &back_ends);
        let Some(child) = self.members.children.get_mut(rank) else { return };
        if !child.is_resuming {
            self.admit_members(rank, &back_ends);
        }
        self.turn.losses.forget(&back_ends);
        if !self.members.has_reported {
            self.members.attach_points.extend(points);
            return self.members.report_if_ready(self.turn);
        }
        if self.turn.settings.role == Role::FrontEnd {
            if !back_ends.is_empty() {
                self.turn.outputs.push_back(Output::Event(Event::Joined { back_ends }));
            }
            if !points.is_empty() {
                self.turn
                    .outputs
                    .push_back(Output::Event(Event::Offered { attach_points: points }));
            }
        } else if let Some(parent) = self.turn.parent {
            let attach_points = crate::members::dynamic::to_wire(points);
            let back_ends = Ranges::from(&back_ends);
            self.turn.send_control(parent, &Control::Reached { back_ends, attach_points });
        }
    }

    /// The back-ends below an orphan are there again. The parent is told of back-ends that had been
    /// reported as lost.
    pub(crate) fn returned(&mut self, rank: Rank, back_ends: RankSet) {
        // Another of the places that were held for them may have been given up.
        let known = self.members.vacancies.awaited().difference(self.turn.losses.ranks().as_ref());
        let Some(child) = self.members.children.get_mut(rank) else { return };
        child.connected = back_ends.clone();
        child.state = State::Reported;
        let news = back_ends.difference(known.as_ref());
        if !news.is_empty() || !self.members.has_reported {
            self.reached(rank, news, Vec::new());
        }
    }

    /// Back-ends have come to a child: it takes part in the streams that they are members of.
    pub(crate) fn admit_members(&mut self, rank: Rank, back_ends: &RankSet) {
        let Some(link) = self.members.children.link_of(rank) else { return };
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at);
            let members = stream.members_in(back_ends);
            if members.is_empty() {
                continue;
            }
            if let Some(slot) = stream.slot_of(link) {
                stream.slots[slot].members.union_with(members.as_ref());
                stream.gain(&members);
            } else if let Some(request) = stream.request_for(link, back_ends) {
                self.members.tell_open(link, request, self.turn);
                self.streams.at(at).withdraw_end(self.turn);
            }
        }
    }
}
