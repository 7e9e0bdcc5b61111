//! A process whose parent is gone: it turns to its ancestors, nearest first, until one takes it in.
//!
//! Everything that it needs it holds already: the list of its ancestors, and what it has kept of
//! its streams. No other process decides anything for it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_link::Position;
use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Claim, Control, Ranges, WIRE_VERSION};

use crate::interface::{Event, LinkId, Missing, Mutation, Output, Role};
use crate::members::ancestry::Ancestry;
use crate::members::membership::Membership;
use crate::members::search::{Search, Step};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// How long one ancestor may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_millis(1000);
/// How long it may take to answer a hello, beside the time that it needs to judge who is gone.
const ANSWER_LIMIT: Duration = Duration::from_millis(1000);
/// The wait before the ancestors are tried again, at first; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest such wait.
const PAUSE_MAX: Duration = Duration::from_millis(500);

impl Membership {
    /// The link to the parent is gone, or the parent was silent for too long.
    pub(crate) fn parent_lost(
        &mut self,
        reason: &str,
        was_silent: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        turn.parent = None;
        // The network has ended on purpose, and only waits for its last jobs.
        if turn.has_ended || streams.jobs.is_ending() {
            return;
        }
        let is_planned = self.is_planned && turn.rank.is_some();
        if !self.ancestry.repairs(turn) || !is_planned || self.ancestry.processes.is_empty() {
            return self.end(
                false,
                alloc::format!("the link to the parent is gone: {reason}"),
                streams,
                turn,
            );
        }
        if let Some(&(rank, _)) = self.ancestry.processes.first() {
            // If it lives, it must not forward what this process sends again.
            self.ancestry.former.insert(rank);
        }
        self.ancestry.search = Some(Search {
            since: turn.now,
            step: Step::Pausing,
            until: turn.now,
            pause: PAUSE_MIN,
            reason: reason.to_string(),
            between: RankSet::new(),
            is_root_gone: false,
            nearest: None,
        });
        // A parent that was silent is asked last: it may be stopped.
        self.turn_to(usize::from(was_silent), streams, turn);
    }

    /// Connects to the ancestor at a position; behind the last, waits and begins anew. Ends this
    /// process when the search has taken too long.
    fn turn_to(&mut self, index: usize, streams: &mut Streams, turn: &mut Turn) {
        let now = turn.now;
        let limit = turn.settings.recovery.search_limit(turn.settings.role);
        let Some(search) = &mut self.ancestry.search else { return };
        if now.since(search.since) >= limit {
            let waited = limit.as_millis();
            let why = &search.reason;
            let reason =
                alloc::format!("no ancestor took this process in within {waited} ms: {why}");
            // Where the front-end was gone, those below would find no ancestor either.
            return match search.is_root_gone {
                true => self.end(false, reason, streams, turn),
                false => self.step_down(reason, streams, turn),
            };
        }
        let Some((_, address)) = self.ancestry.processes.get(index) else {
            search.step = Step::Pausing;
            search.until = now + search.pause;
            // Thousands of orphans of one process must not keep its ancestors busy with refusals.
            search.pause = (search.pause * 2).min(PAUSE_MAX);
            return;
        };
        search.step = Step::Connecting { index };
        search.until = now + CONNECT_LIMIT;
        turn.outputs.push_back(Output::Connect { address: address.clone() });
    }

    /// An ancestor could not be reached.
    pub(crate) fn connect_failed(
        &mut self,
        reason: &str,
        is_refused: bool,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(search) = &mut self.ancestry.search else { return };
        let Step::Connecting { index } = search.step else { return };
        let is_root = index + 1 == self.ancestry.processes.len();
        // A refusal shows that its host is up and no process listens; silence shows neither.
        if is_root && is_refused {
            return self.front_end_gone(reason, streams, turn);
        }
        self.turn_to(index + 1, streams, turn);
    }

    /// No process takes connections where the front-end was.
    fn front_end_gone(&mut self, reason: &str, streams: &mut Streams, turn: &mut Turn) {
        let wait = turn.settings.recovery.front_end_wait;
        let Some(search) = &mut self.ancestry.search else { return };
        if wait.is_zero() || turn.now.since(search.since) >= wait {
            let why = search.reason.clone();
            return self.end(
                false,
                alloc::format!("the front-end is gone: {why}; {reason}"),
                streams,
                turn,
            );
        }
        // The next front-end does not know the streams of this one.
        search.is_root_gone = true;
        streams.close_all_streams(turn);
        self.turn_to(usize::MAX, streams, turn);
    }

    /// The link to an ancestor that was asked is gone, or it has refused.
    pub(crate) fn ancestor_down(
        &mut self,
        link: LinkId,
        reason: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let Some(search) = &mut self.ancestry.search else { return };
        let Step::Asking { index, link: asked } = search.step else { return };
        if asked == link {
            search.reason = reason.to_string();
            self.turn_to(index + 1, streams, turn);
        }
    }

    /// The ancestor that was asked hears of a process between, which is to be asked instead.
    ///
    /// Each time that such a process is nearer than those before, the search begins anew: the tree
    /// above is whole again as far as there. There are as many ancestors as that can happen.
    pub(crate) fn referred(
        &mut self,
        link: LinkId,
        rank: Rank,
        reason: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        turn.links.close(link);
        turn.outputs.push_back(Output::Hangup(link));
        let Turn { now, .. } = turn;
        let Some(search) = &mut self.ancestry.search else { return };
        let Step::Asking { index, link: asked } = search.step else { return };
        if asked != link {
            return;
        }
        search.reason = reason.to_string();
        let between = self.ancestry.processes[..index].iter();
        let position = between.map(|&(rank, _)| rank).position(|other| other == rank);
        if let Some(position) = position
            && search.nearest.is_none_or(|nearest| position < nearest)
        {
            search.nearest = Some(position);
            // The tree above is whole as far as there: the time limit begins anew.
            search.since = *now;
        }
        self.turn_to(position.unwrap_or(index + 1), streams, turn);
    }

    /// Goes on with the search when an attempt has taken too long, or a pause is over.
    pub(crate) fn continue_search(&mut self, streams: &mut Streams, turn: &mut Turn) {
        let now = turn.now;
        let Some(search) = &mut self.ancestry.search else { return };
        if search.until > now {
            return;
        }
        // Time in which this process did not run does not count as search time.
        search.since = search.since + now.since(search.until);
        match search.step {
            Step::Pausing => self.turn_to(0, streams, turn),
            Step::Connecting { index } => self.turn_to(index + 1, streams, turn),
            Step::Asking { index, link } => {
                turn.links.close(link);
                turn.outputs.push_back(Output::Hangup(link));
                self.turn_to(index + 1, streams, turn);
            }
        }
    }

    /// An ancestor has taken this process in: it is told what comes with it.
    pub(crate) fn adopted(
        &mut self,
        link: LinkId,
        parent: Rank,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        if let Some(search) = self.ancestry.search.take() {
            // A skipped ancestor may still be alive and have been adopted elsewhere with packets
            // that contain this process's. It is reported as a former parent, so that a process
            // that finds it dissolves it.
            self.ancestry.former.union_with(search.between.as_ref());
        }
        turn.parent = Some(link);
        if let Some(open) = turn.links.link_mut(link) {
            open.peer = Peer::Parent;
        }
        let back_ends = match (turn.settings.role, turn.rank) {
            (Role::BackEnd, Some(rank)) => RankSet::range(rank, rank),
            _ => self.connected(),
        };
        let covers = self.covered(streams, turn);
        self.ancestry.former.subtract(RankSet::range(parent, parent).as_ref());
        let mut former = self.ancestry.former.clone();
        former.union_with(self.superseded.ranks.as_ref());
        let rejoin = Control::Rejoin {
            back_ends: Ranges::from(&back_ends),
            covers: Ranges::from(&covers),
            former: Ranges::from(&former),
            files: self.files.whole(),
        };
        // In this order: the adopter takes nothing before Rejoin, needs the reasons before the
        // waves that lack members, and every stream's positions before its packets.
        turn.send_control(link, &rejoin);
        self.tell_losses(link, turn);
        for at in 0..streams.len() {
            streams.at(at).resume_stream(link, turn);
        }
        turn.send_control(link, &Control::Resumed);
        let is_leaving = turn.departs_until.is_some();
        if is_leaving && turn.settings.role == Role::BackEnd {
            // The new parent, or the old one over a new link, knows nothing of that.
            turn.send_control(link, &Control::Leaving);
        }
        streams.hand_over_all(turn);
        for at in 0..streams.len() {
            let Turn { links, .. } = turn;
            if let Some(outbox) = links.outbox(link) {
                streams.at(at).sender.pump(outbox);
            }
            streams.at(at).say_end_again(turn);
            streams.at(at).emit_ready(turn);
            streams.at(at).acknowledge_to_parent(turn);
        }
        if turn.settings.role == Role::BackEnd
            && let Some(outbox) = turn.links.outbox(link)
        {
            outbox.record_runs();
        }
        self.tell_ancestry(turn);
        turn.outputs.push_back(Output::Event(Event::Reattached { parent }));
    }

    /// Tells a new parent of all back-ends that are gone: the old one may not have passed it on.
    fn tell_losses(&mut self, link: LinkId, turn: &mut Turn) {
        let mut losses = turn.losses.unreported.clone();
        let mut back = RankSet::new();
        losses.iter().for_each(|lost| back.union_with(lost.ranks.as_ref()));
        back.intersect_with(self.connected().as_ref());
        losses.extend(turn.losses.latest_first().cloned());
        for Missing { ranks, reason } in losses {
            let rank = ranks.as_ref().first().unwrap_or_default();
            let back_ends = Ranges::from(&ranks);
            turn.send_control(link, &Control::Lost { rank, back_ends, reason });
        }
        if !back.is_empty() {
            // They were given up, and have come back since.
            let (back_ends, attach_points) = (Ranges::from(&back), Vec::new());
            turn.send_control(link, &Control::Reached { back_ends, attach_points });
        }
        self.send_loss_barrier(turn);
    }
}

impl Ancestry {
    /// An ancestor has accepted the connection: it is told who comes.
    pub(crate) fn ancestor_up(&mut self, link: LinkId, turn: &mut Turn) {
        let now = turn.now;
        // An ancestor may wait for the silence of a suspected child, and as long again for its own
        // delay, before it answers.
        let patience = ANSWER_LIMIT + turn.settings.recovery.silence * 2;
        let Some(rank) = turn.rank else { return };
        let Some(search) = &mut self.search else { return };
        let Step::Connecting { index } = search.step else {
            turn.outputs.push_back(Output::Hangup(link));
            return;
        };
        search.step = Step::Asking { index, link };
        search.until = now + patience;
        turn.links.open(link, Peer::Ancestor, now);
        let between: Vec<Rank> = self.processes[..index].iter().map(|&(rank, _)| rank).collect();
        search.between = between.iter().copied().collect();
        let hello = Control::Hello {
            version: WIRE_VERSION,
            claim: Claim::Orphan { rank, between },
            pid: turn.settings.pid,
            address: turn.settings.address.clone(),
        };
        turn.send_control(link, &hello);
    }
}

impl Membership {
    /// The back-ends whose packets this process may have kept, or that it waits for.
    fn covered(&self, streams: &Streams, turn: &Turn) -> RankSet {
        let mut covers = self.connected();
        if let (Role::BackEnd, Some(rank)) = (turn.settings.role, turn.rank) {
            covers.insert(rank);
        }
        for stream in streams.iter() {
            if !stream.sender.is_acknowledged() || stream.waves.has_lent() {
                covers.union_with(stream.below.as_ref());
            }
        }
        covers
    }

    /// Tells the children that the tree above has changed.
    pub(crate) fn tell_ancestry(&mut self, turn: &mut Turn) {
        let ancestors = self.ancestry.of_children(turn);
        for link in self.children.links() {
            let ancestors = ancestors.clone();
            let repairs = self.ancestry.has_recovery;
            turn.send_control(link, &Control::Ancestry { ancestors, repairs });
        }
    }

    /// This process ends, and its children turn to their ancestors.
    pub(crate) fn step_down(&mut self, reason: String, streams: &mut Streams, turn: &mut Turn) {
        if turn.has_ended {
            return;
        }
        turn.has_ended = true;
        self.has_stepped_down = true;
        self.ancestry.end_search(turn);
        for link in self.children.links() {
            turn.outputs.push_back(Output::Hangup(link));
        }
        if let Some(parent) = turn.parent {
            turn.outputs.push_back(Output::Hangup(parent));
        }
        self.leave_links(streams, turn);
        turn.outputs.push_back(Output::Event(Event::Ended { on_purpose: false, reason }));
    }
}

impl Stream {
    /// A stream whose children are all gone says so to a new parent, too.
    fn say_end_again(&mut self, turn: &mut Turn) {
        if core::mem::take(&mut self.has_said_end) {
            self.end_if_deserted(turn);
        }
    }

    /// Tells the new parent how far a stream has come, and makes ready what goes again.
    fn resume_stream(&mut self, link: LinkId, turn: &mut Turn) {
        if !self.request.down.is_empty() {
            // What a filter made of a packet elsewhere does not fit to what has come of it.
            self.assemblies.clear();
            self.down_next = self.down_next.start_of_packet();
        }
        self.down_received = 0;
        self.down_granted = 0;
        self.down_announced = Position::default();
        let window = self.request.window_bytes;
        if self.breaks(Mutation::ForgetKept) {
            self.sender.forget();
        }
        if self.breaks(Mutation::RepeatDownwards) {
            self.down_next = Position::default();
        }
        if self.breaks(Mutation::SkipFirstKept) {
            self.sender.forget_first();
        }
        self.sender.restart(window);
        let mut up = self.sender.acknowledged;
        up.wave += u64::from(self.breaks(Mutation::ResumeTooFar));
        let down = self.down_next;
        let resume = Control::Resume {
            stream: self.id,
            up: (up.wave, up.offset),
            down: (down.wave, down.offset),
        };
        turn.send_control(link, &resume);
        self.tell_faults(link, turn);
    }

    /// Tells a new parent why waves that are not safe lack back-ends: the old one may not have
    /// passed it on.
    fn tell_faults(&mut self, link: LinkId, turn: &mut Turn) {
        let rank = turn.rank();
        for (wave, Missing { ranks, reason }) in self.faults.all() {
            let (back_ends, reason) = (Ranges::from(ranks), reason.clone());
            let fault = Control::Fault { stream: self.id, wave, rank, back_ends, reason };
            turn.send_control(link, &fault);
        }
    }
}
