//! Links that close: which peer was at the other end, and what its end means for the waves that
//! wait.

use alloc::string::String;

use sapwood_packet::{Rank, RankSet};
use sapwood_wire::Cause;

use crate::interface::{LinkId, Output, Reason};
use crate::members::children::State;
use crate::members::vacancy::Manner;
use crate::recovery::change::TreeChange;
use crate::turn::links::Peer;

impl TreeChange<'_> {
    /// A process that was to be started ended before it connected.
    pub(crate) fn start_failed(&mut self, rank: Rank, text: String, cause: Cause) {
        match self.members.children.get_mut(rank) {
            Some(child) if child.state == State::Awaited => child.state = State::Gone,
            Some(child) => {
                // No process will come back under its rank by itself.
                child.ending = Some(cause);
                return self.close_place_ended(rank, cause);
            }
            None => return,
        }
        self.turn.pass_on_failure(rank, text);
        self.members.report_if_ready(self.turn);
    }

    pub(crate) fn link_down(&mut self, link: LinkId, reason: &str) {
        self.link_gone(link, reason, Cause::Died);
    }

    /// The peer has broken the rules: its link is closed.
    pub(crate) fn link_broken(&mut self, link: LinkId, reason: &str) {
        self.turn.outputs.push_back(Output::Hangup(link));
        self.link_gone(link, reason, Cause::Refused);
    }

    /// Nothing has been heard for too long over a link, though it is open: it is closed.
    pub(crate) fn link_silent(&mut self, link: LinkId, reason: &str) {
        self.turn.outputs.push_back(Output::Hangup(link));
        self.link_gone(link, reason, Cause::Silent);
    }

    fn link_gone(&mut self, link: LinkId, reason: &str, cause: Cause) {
        if self.turn.parent == Some(link) {
            // The open run lies in the outbox, which is dropped with the link: it is copied to the
            // retransmit buffer first.
            self.streams.end_runs(self.turn);
        }
        let Some(open) = self.turn.links.close(link) else { return };
        // Its number is another link's before long.
        self.members.vacancies.applicants.retain(|applicant| applicant.link != link);
        match open.peer {
            Peer::Parent => self.parent_lost(reason, cause == Cause::Silent),
            Peer::Ancestor => self.ancestor_down(link, reason),
            Peer::Child(rank) => self.child_down(rank, link, reason, cause),
            Peer::Visitor => self.members.visitors.visitor_down(link),
            Peer::Stranger | Peer::Leaving => {}
        }
    }

    pub(crate) fn child_down(&mut self, rank: Rank, link: LinkId, reason: &str, cause: Cause) {
        let was_silent = cause == Cause::Silent;
        let Some(child) = self.members.children.get_mut(rank) else { return };
        child.link = None;
        let had_reported = child.state == State::Reported;
        child.state = State::Gone;
        // Counted as connected here, they would refuse the orphans that bring them back.
        let back_ends = core::mem::take(&mut child.connected);
        let is_back_end = child.expected == RankSet::range(rank, rank);
        let (is_leaving, ending) = (child.is_leaving, child.ending);
        let is_orphan = child.is_orphan;
        let is_distrusted = child.authority.is_distrusted;
        let may_return = !is_back_end || !(is_leaving || ending.is_some() || is_distrusted);
        let is_unheard = !had_reported && !is_orphan;
        // A silent process that is still starting its subtree may only be slow: it counts as not
        // started when its vacancy ends unfilled.
        let is_starting =
            is_unheard && was_silent && !is_back_end && self.turn.settings.recovery.is_on;
        let awaited = if is_starting { child.expected.clone() } else { back_ends.clone() };
        if self.turn.has_ended {
            return;
        }
        // A member that leaves on purpose is no failure that status shows.
        self.turn.counted.gone += u32::from(!is_leaving);
        let kind = if is_back_end { "back-end" } else { "communication process" };
        let process = format_args!("{kind} {rank}");
        let reason = match is_leaving {
            true => Reason::left(process),
            false => Reason::gone(cause, process, reason).ended(ending.unwrap_or_default()),
        };
        if is_unheard && !is_starting {
            self.turn.pass_on_failure(rank, reason.words.clone());
        }
        self.streams.close_replicas(link, self.turn);
        let manner = Manner { is_back_end, was_silent, is_starting };
        if may_return && self.hold_open(rank, link, manner, &awaited, &reason) {
            self.members.report_if_ready(self.turn);
            return self.answer_applicants();
        }
        if is_starting {
            self.turn.pass_on_failure(rank, reason.words.clone());
        }
        // Before the waves go on, which name the reason.
        if !back_ends.is_empty() || !is_orphan {
            self.members.lost(rank, back_ends.clone(), reason, self.turn);
            self.no_longer_awaited(&back_ends);
        }
        for at in 0..self.streams.len() {
            if let Some(slot) = self.streams.at(at).slot_of(link) {
                self.streams.at(at).slots[slot].alive = false;
                self.streams.at(at).inherit(slot, rank, self.turn);
                self.streams.at(at).give_up_slot(slot, self.turn);
            }
        }
        self.members.report_if_ready(self.turn);
        self.answer_applicants();
    }

    /// A child tells of losses in its subtree.
    pub(crate) fn lost_below(&mut self, child: Rank, rank: Rank, back_ends: RankSet, why: Reason) {
        // A child that was given up may report losses of back-ends that are connected through other
        // children by now: those are ignored.
        let back_ends = back_ends.difference(self.members.children.connected_but(child).as_ref());
        if back_ends.is_empty() {
            return;
        }
        if let Some(child) = self.members.children.get_mut(child) {
            child.connected.subtract(back_ends.as_ref());
        }
        self.members.lost(rank, back_ends.clone(), why, self.turn);
        self.no_longer_awaited(&back_ends);
    }
}
