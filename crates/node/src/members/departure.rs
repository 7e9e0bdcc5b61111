//! Children and parents that go, for good or for a while, and the end of the network.

use alloc::string::String;
use core::cmp::Ordering;
use core::time::Duration;

use sapwood_link::END;
use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Control, ProbeId, Ranges};

use crate::interface::{Event, Instant, LinkId, Output, Role};
use crate::members::children::Children;
use crate::members::children::State;
use crate::members::membership::Membership;
use crate::members::vacancy::Manner;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// Why a process ends that was asked to.
pub(crate) const ENDED_ITSELF: &str = "this process ended its part";

/// Notices that a process passes on of each of its children.
pub(crate) const NOTICES_MAX: u32 = 1024;

/// How long a back-end that leaves waits for the acknowledgement of what it has sent, and a
/// communication process for its filters.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_millis(500);

impl Membership {
    /// A process that was to be started ended before it connected.
    pub(crate) fn start_failed(
        &mut self,
        rank: Rank,
        text: String,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        match self.children.get_mut(rank) {
            Some(child) if child.state == State::Awaited => child.state = State::Gone,
            Some(child) => {
                // No process will come back under its rank by itself.
                child.has_exited = true;
                return self.close_place_of(rank, streams, turn);
            }
            None => return,
        }
        turn.pass_on_failure(rank, text);
        self.report_if_ready(turn);
    }
}

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
    pub(crate) fn link_down(
        &mut self,
        link: LinkId,
        reason: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        self.link_gone(link, reason, false, streams, turn);
    }

    /// Nothing has been heard for too long over a link, though it is open: it is closed.
    pub(crate) fn link_silent(
        &mut self,
        link: LinkId,
        reason: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        turn.outputs.push_back(Output::Hangup(link));
        self.link_gone(link, reason, true, streams, turn);
    }

    fn link_gone(
        &mut self,
        link: LinkId,
        reason: &str,
        was_silent: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        if turn.parent == Some(link) {
            // The open run lies in the outbox, which is dropped with the link: it is copied to the
            // retransmit buffer first.
            streams.end_runs(turn);
        }
        let Some(open) = turn.links.close(link) else { return };
        // Its number is another link's before long.
        self.vacancies.applicants.retain(|applicant| applicant.link != link);
        match open.peer {
            Peer::Parent => self.parent_lost(reason, was_silent, streams, turn),
            Peer::Ancestor => self.ancestor_down(link, reason, streams, turn),
            Peer::Child(rank) => self.child_down(rank, link, reason, was_silent, streams, turn),
            Peer::Visitor => self.visitors.visitor_down(link),
            Peer::Stranger | Peer::Leaving => {}
        }
    }

    pub(crate) fn child_down(
        &mut self,
        rank: Rank,
        link: LinkId,
        reason: &str,
        was_silent: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(child) = self.children.get_mut(rank) else { return };
        child.link = None;
        let had_reported = child.state == State::Reported;
        child.state = State::Gone;
        // Counted as connected here, they would refuse the orphans that bring them back.
        let back_ends = core::mem::take(&mut child.connected);
        let is_back_end = child.expected == RankSet::range(rank, rank);
        let is_leaving = child.is_leaving;
        let is_orphan = child.is_orphan;
        let is_distrusted = child.authority.is_distrusted;
        let may_return = !is_back_end || !(is_leaving || child.has_exited || is_distrusted);
        let is_unheard = !had_reported && !is_orphan;
        // A silent process that is still starting its subtree may only be slow: it counts as not
        // started when its vacancy ends unfilled.
        let is_starting = is_unheard && was_silent && !is_back_end && turn.settings.recovery.is_on;
        let awaited = if is_starting { child.expected.clone() } else { back_ends.clone() };
        if turn.has_ended {
            return;
        }
        // Who leaves on purpose is no failure that status shows.
        turn.counted.gone += u32::from(!is_leaving);
        let kind = if is_back_end { "back-end" } else { "communication process" };
        let reason = match is_leaving {
            true => alloc::format!("{kind} {rank} has left"),
            false => alloc::format!("{kind} {rank} is gone: {reason}"),
        };
        if is_unheard && !is_starting {
            turn.pass_on_failure(rank, reason.clone());
        }
        streams.close_replicas(link, turn);
        let manner = Manner { is_back_end, was_silent, is_starting };
        if may_return && self.hold_open(rank, link, manner, &awaited, &reason, streams, turn) {
            self.report_if_ready(turn);
            return self.answer_applicants(streams, turn);
        }
        if is_starting {
            turn.pass_on_failure(rank, reason.clone());
        }
        // Before the waves go on, which name the reason.
        if !back_ends.is_empty() || !is_orphan {
            self.lost(rank, back_ends.clone(), reason, turn);
            self.no_longer_awaited(&back_ends, streams, turn);
        }
        for at in 0..streams.len() {
            if let Some(slot) = streams.at(at).slot_of(link) {
                streams.at(at).slots[slot].alive = false;
                streams.at(at).inherit(slot, rank, turn);
                streams.at(at).give_up(slot, turn);
            }
        }
        self.report_if_ready(turn);
        self.answer_applicants(streams, turn);
    }

    /// Back-ends are gone: remembered, told to the parent, or to the application.
    pub(crate) fn lost(&mut self, rank: Rank, back_ends: RankSet, reason: String, turn: &mut Turn) {
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
        if turn.settings.role == Role::FrontEnd {
            turn.outputs.push_back(Output::Event(Event::Lost { rank, back_ends, reason }));
        } else if let Some(parent) = turn.parent {
            let back_ends = Ranges::from(&back_ends);
            turn.send_control(parent, &Control::Lost { rank, back_ends, reason });
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

    /// A child tells of losses in its subtree.
    pub(crate) fn lost_below(
        &mut self,
        child: Rank,
        rank: Rank,
        back_ends: RankSet,
        why: String,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        // A child that was given up may report losses of back-ends that are connected through other
        // children by now: those are ignored.
        let back_ends = back_ends.difference(self.children.connected_but(child).as_ref());
        if back_ends.is_empty() {
            return;
        }
        if let Some(child) = self.children.get_mut(child) {
            child.connected.subtract(back_ends.as_ref());
        }
        self.lost(rank, back_ends.clone(), why, turn);
        self.no_longer_awaited(&back_ends, streams, turn);
    }

    /// The network ends for this process and all below it.
    pub(crate) fn end(
        &mut self,
        on_purpose: bool,
        reason: String,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        if turn.has_ended {
            return;
        }
        turn.has_ended = true;
        self.ancestry.end_search(turn);
        for at in 0..streams.len() {
            // Below there is no parent to grant credit any more.
            streams.at(at).force_down(turn);
        }
        let mut frame = sapwood_packet::Slab::default();
        let encoded = sapwood_wire::encode_control(&mut frame, &Control::Shutdown);
        debug_assert!(encoded.is_ok(), "a shutdown message is short");
        for link in self.children.links() {
            if let Some(outbox) = turn.links.outbox(link) {
                outbox.push_bytes(frame.as_bytes());
            }
            turn.outputs.push_back(Output::Hangup(link));
        }
        if let Some(parent) = turn.parent {
            turn.outputs.push_back(Output::Hangup(parent));
        }
        self.leave_links(streams, turn);
        turn.outputs.push_back(Output::Event(Event::Ended { on_purpose, reason }));
    }

    /// The node's links are left to the driver, which writes the queued bytes and closes them.
    ///
    /// Their numbers soon are those of other links, so no child and no stream may keep one.
    pub(crate) fn leave_links(&mut self, streams: &mut Streams, turn: &mut Turn) {
        let mut links = self.children.links();
        links.extend(turn.parent.take());
        for link in links {
            if let Some(open) = turn.links.link_mut(link) {
                open.peer = Peer::Leaving;
            }
        }
        self.children.iter_mut().for_each(|(_, child)| child.link = None);
        for at in 0..streams.len() {
            streams.at(at).slots.iter_mut().for_each(|slot| slot.alive = false);
        }
    }

    /// The parent has echoed a barrier: it knows of all losses if that was the last one.
    pub(crate) fn barrier_passed(&mut self, number: u64, turn: &mut Turn) {
        if number == self.loss_barrier {
            turn.losses.unreported.clear();
        }
    }

    /// Ends the network behind the packets that are at work.
    pub(crate) fn end_behind_packets(
        &mut self,
        reason: String,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        streams.end_behind_jobs(reason, turn);
        self.end_if_idle(streams, turn);
    }

    pub(crate) fn end_if_idle(&mut self, streams: &mut Streams, turn: &mut Turn) {
        if let Some(reason) = streams.take_end(turn) {
            self.end(true, reason, streams, turn);
        }
    }

    /// Ends this process's part now.
    pub(crate) fn leave(&mut self, now: Instant, streams: &mut Streams, turn: &mut Turn) {
        if let Some(parent) = turn.parent {
            streams.hand_over_rest(true, turn);
            for at in 0..streams.len() {
                let Turn { links, .. } = turn;
                if let Some(outbox) = links.outbox(parent) {
                    streams.at(at).sender.force(outbox);
                }
            }
            turn.send_control(parent, &Control::Leaving);
        }
        match turn.settings.role {
            Role::Communication if turn.settings.recovery.is_on => {
                self.step_down(String::from(ENDED_ITSELF), streams, turn);
            }
            // What it has sent is still its own until it is safe.
            Role::BackEnd => {
                turn.departs_until = Some(now + DRAIN_LIMIT);
                self.depart(streams, turn);
            }
            Role::FrontEnd => self.end_behind_packets(ENDED_ITSELF.into(), streams, turn),
            Role::Communication => self.end_part(streams, turn),
        }
    }

    fn end_part(&mut self, streams: &mut Streams, turn: &mut Turn) {
        self.end(true, String::from(ENDED_ITSELF), streams, turn);
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

impl Streams {
    /// Whether something that this process has sent is not safe yet.
    fn is_unsettled(&mut self, turn: &mut Turn) -> bool {
        self.end_runs(turn);
        !turn.has_ended && self.iter().any(|stream| !stream.sender.is_acknowledged())
    }
}

impl Stream {
    /// A child will send nothing more on a stream: its open waves do not wait for it.
    pub(crate) fn give_up(&mut self, slot: usize, turn: &mut Turn) {
        self.advance(slot, END);
        self.slots[slot].assemblies.clear();
        self.slots[slot].down.clear();
        self.emit_ready(turn);
        self.end_if_deserted(turn);
        // It may have been the slowest, for which others were made to wait: what it alone had not
        // read need not be kept any more.
        self.forget_down(turn);
    }
}

impl Membership {
    /// Ends a back-end that leaves, once what it has sent is safe; or a communication process, once
    /// its filters are not at work; or either when it has waited long enough.
    pub(crate) fn depart(&mut self, streams: &mut Streams, turn: &mut Turn) {
        let Some(until) = turn.departs_until else { return };
        let is_back_end = turn.settings.role == Role::BackEnd;
        let waits = if is_back_end { streams.is_unsettled(turn) } else { streams.has_work() };
        if until > turn.now && waits {
            return;
        }
        turn.departs_until = None;
        match is_back_end {
            true => self.end_part(streams, turn),
            false => self.leave(turn.now, streams, turn),
        }
    }
}
