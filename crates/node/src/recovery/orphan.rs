//! A process whose parent is gone: it turns to its ancestors, nearest first, until one takes it in.
//!
//! Everything that it needs it holds already: the list of its ancestors, and what it has kept of
//! its streams. No other process decides anything for it.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_link::Position;
use sapwood_packet::{Rank, RankSet};
use sapwood_wire::{Claim, Control, Ranges, WIRE_VERSION};

use crate::interface::{Event, LinkId, Missing, Mutation, Output, Role};
use crate::members::ancestry::Ancestry;
use crate::members::search::{Search, Step};
use crate::recovery::change::TreeChange;
use crate::streams::stream::Stream;
use crate::turn::Turn;
use crate::turn::links::Peer;

/// How long one ancestor may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_millis(1000);
/// How long it may take to answer a hello, beside the time that it needs to judge which process is
/// gone.
const ANSWER_LIMIT: Duration = Duration::from_millis(1000);
/// The wait before the ancestors are tried again, at first; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest such wait.
const PAUSE_MAX: Duration = Duration::from_millis(500);

impl TreeChange<'_> {
    /// The link to the parent is gone, or the parent was silent for too long.
    pub(crate) fn parent_lost(&mut self, reason: &str, was_silent: bool) {
        self.turn.parent = None;
        // The network has ended on purpose, and only waits for its last jobs.
        if self.turn.has_ended || self.streams.jobs.is_ending() {
            return;
        }
        let is_planned = self.members.is_planned && self.turn.rank.is_some();
        if !self.members.ancestry.repairs(self.turn)
            || !is_planned
            || self.members.ancestry.processes.is_empty()
        {
            return self.end_by_fault(alloc::format!("the link to the parent is gone: {reason}"));
        }
        if let Some(&(rank, _)) = self.members.ancestry.processes.first() {
            // If it lives, it must not forward what this process sends again.
            self.members.ancestry.former.insert(rank);
        }
        self.members.ancestry.search = Some(Search {
            since: self.turn.now,
            step: Step::Pausing,
            until: self.turn.now,
            pause: PAUSE_MIN,
            reason: reason.to_string(),
            between: RankSet::new(),
            is_root_gone: false,
            nearest: None,
        });
        // A parent that was silent is asked last: it may be stopped.
        self.turn_to(usize::from(was_silent));
    }

    /// Connects to the ancestor at a position; behind the last, waits and begins anew. Ends this
    /// process when the search has taken too long.
    fn turn_to(&mut self, index: usize) {
        let now = self.turn.now;
        let limit = self.turn.settings.recovery.search_limit(self.turn.settings.role);
        let Some(search) = &mut self.members.ancestry.search else { return };
        if now.since(search.since) >= limit {
            let waited = limit.as_millis();
            let why = &search.reason;
            let reason =
                alloc::format!("no ancestor adopted this process within {waited} ms: {why}");
            // Where the front-end was gone, those below would find no ancestor either.
            return match search.is_root_gone {
                true => self.end_by_fault(reason),
                false => self.step_down(reason),
            };
        }
        let Some((_, address)) = self.members.ancestry.processes.get(index) else {
            search.step = Step::Pausing;
            search.until = now + search.pause;
            // Thousands of orphans of one process must not keep its ancestors busy with refusals.
            search.pause = (search.pause * 2).min(PAUSE_MAX);
            return;
        };
        search.step = Step::Connecting { index };
        // A host that is down answers nothing at all; the next ancestor must not wait for the
        // system's own limit, which is minutes.
        search.until = now + CONNECT_LIMIT;
        self.turn.outputs.push_back(Output::Connect { address: address.clone() });
    }

    /// An ancestor could not be reached.
    pub(crate) fn connect_failed(&mut self, reason: &str, is_refused: bool) {
        let Some(search) = &mut self.members.ancestry.search else { return };
        let Step::Connecting { index } = search.step else { return };
        let is_root = index + 1 == self.members.ancestry.processes.len();
        // A refusal shows that its host is up and no process listens; silence shows neither.
        if is_root && is_refused {
            return self.front_end_gone(reason);
        }
        self.turn_to(index + 1);
    }

    /// No process takes connections where the front-end was.
    fn front_end_gone(&mut self, reason: &str) {
        let wait = self.turn.settings.recovery.front_end_wait;
        let Some(search) = &mut self.members.ancestry.search else { return };
        if wait.is_zero() || self.turn.now.since(search.since) >= wait {
            let why = search.reason.clone();
            return self.end_by_fault(alloc::format!("the front-end is gone: {why}; {reason}"));
        }
        // The next front-end does not know the streams of this one.
        search.is_root_gone = true;
        self.streams.close_all_streams(self.turn);
        self.turn_to(usize::MAX);
    }

    /// The link to an ancestor that was asked is gone, or it has refused.
    pub(crate) fn ancestor_down(&mut self, link: LinkId, reason: &str) {
        let Some(search) = &mut self.members.ancestry.search else { return };
        let Step::Asking { index, link: asked } = search.step else { return };
        if asked == link {
            search.reason = reason.to_string();
            self.turn_to(index + 1);
        }
    }

    /// The ancestor that was asked hears of a process between, which is to be asked instead.
    ///
    /// Each time that such a process is nearer than those before, the search begins anew: the tree
    /// above is whole again as far as there. There are as many ancestors as that can happen.
    pub(crate) fn referred(&mut self, link: LinkId, rank: Rank, reason: &str) {
        self.turn.links.close(link);
        self.turn.outputs.push_back(Output::Hangup(link));
        let now = self.turn.now;
        let Some(search) = &mut self.members.ancestry.search else { return };
        let Step::Asking { index, link: asked } = search.step else { return };
        if asked != link {
            return;
        }
        search.reason = reason.to_string();
        let between = self.members.ancestry.processes[..index].iter();
        let position = between.map(|&(rank, _)| rank).position(|other| other == rank);
        if let Some(position) = position
            && search.nearest.is_none_or(|nearest| position < nearest)
        {
            search.nearest = Some(position);
            // The tree above is whole as far as there: the time limit begins anew.
            search.since = now;
        }
        self.turn_to(position.unwrap_or(index + 1));
    }

    /// Goes on with the search when an attempt has taken too long, or a pause is over.
    pub(crate) fn continue_search(&mut self) {
        let now = self.turn.now;
        let Some(search) = &mut self.members.ancestry.search else { return };
        if search.until > now {
            return;
        }
        // Time in which this process did not run does not count as search time.
        search.since = search.since + now.since(search.until);
        match search.step {
            Step::Pausing => self.turn_to(0),
            Step::Connecting { index } => self.turn_to(index + 1),
            Step::Asking { index, link } => {
                self.turn.links.close(link);
                self.turn.outputs.push_back(Output::Hangup(link));
                self.turn_to(index + 1);
            }
        }
    }

    /// An ancestor has taken this process in: it is told what comes with it.
    pub(crate) fn adopted(&mut self, link: LinkId, parent: Rank) {
        if let Some(search) = self.members.ancestry.search.take() {
            // A skipped ancestor may still be alive and have been adopted elsewhere with packets
            // that contain this process's. It is reported as a former parent, so that a process
            // that finds it dissolves it.
            self.members.ancestry.former.union_with(search.between.as_ref());
        }
        self.turn.parent = Some(link);
        if let Some(open) = self.turn.links.link_mut(link) {
            open.peer = Peer::Parent;
        }
        let back_ends = match (self.turn.settings.role, self.turn.rank) {
            (Role::BackEnd, Some(rank)) => RankSet::range(rank, rank),
            _ => self.members.connected(),
        };
        let covers = self.covered();
        // It is the parent now, and no longer one that must not come back.
        self.members.ancestry.former.subtract(RankSet::range(parent, parent).as_ref());
        let mut former = self.members.ancestry.former.clone();
        former.union_with(self.members.superseded.ranks.as_ref());
        let rejoin = Control::Rejoin {
            back_ends: Ranges::from(&back_ends),
            covers: Ranges::from(&covers),
            former: Ranges::from(&former),
            files: self.members.files.whole(),
        };
        // In this order: the adopter takes nothing before Rejoin, needs the reasons before the
        // waves that lack members, and every stream's positions before its packets.
        self.turn.send_control(link, &rejoin);
        self.tell_losses(link);
        for at in 0..self.streams.len() {
            self.streams.at(at).resume_stream(link, self.turn);
        }
        self.turn.send_control(link, &Control::Resumed);
        let is_leaving = self.turn.departs_until.is_some();
        if is_leaving && self.turn.settings.role == Role::BackEnd {
            // The new parent, or the old one over a new link, knows nothing of that.
            self.turn.send_control(link, &Control::Leaving);
        }
        self.streams.hand_over_all(self.turn);
        for at in 0..self.streams.len() {
            let Turn { links, .. } = &mut *self.turn;
            if let Some(outbox) = links.outbox(link) {
                self.streams.at(at).sender.pump(outbox);
            }
            self.streams.at(at).say_end_again(self.turn);
            self.streams.at(at).emit_ready(self.turn);
            self.streams.at(at).acknowledge_to_parent(self.turn);
        }
        if self.turn.settings.role == Role::BackEnd
            && let Some(outbox) = self.turn.links.outbox(link)
        {
            outbox.record_runs();
        }
        self.members.tell_ancestry(self.turn);
        self.turn.outputs.push_back(Output::Event(Event::Reattached { parent }));
    }

    /// Tells a new parent of all back-ends that are gone: the old one may not have passed it on.
    fn tell_losses(&mut self, link: LinkId) {
        let mut losses = self.turn.losses.unreported.clone();
        let mut back = RankSet::new();
        losses.iter().for_each(|lost| back.union_with(lost.ranks.as_ref()));
        back.intersect_with(self.members.connected().as_ref());
        losses.extend(self.turn.losses.latest_first().cloned());
        for Missing { ranks, reason, cause } in losses {
            let rank = ranks.as_ref().first().unwrap_or_default();
            let back_ends = Ranges::from(&ranks);
            self.turn.send_control(link, &Control::Lost { rank, back_ends, reason, cause });
        }
        if !back.is_empty() {
            // They were given up, and have come back since.
            let (back_ends, attach_points) = (Ranges::from(&back), Vec::new());
            self.turn.send_control(link, &Control::Reached { back_ends, attach_points });
        }
        self.members.send_loss_barrier(self.turn);
    }

    /// The back-ends whose packets this process may have kept, or that it waits for.
    fn covered(&self) -> RankSet {
        let mut covers = self.members.connected();
        if let (Role::BackEnd, Some(rank)) = (self.turn.settings.role, self.turn.rank) {
            covers.insert(rank);
        }
        for stream in self.streams.iter() {
            if !stream.sender.is_acknowledged() || stream.waves.has_lent() {
                // Members that are gone count too: their packets may be among those that were kept.
                covers.union_with(stream.below.as_ref());
            }
        }
        covers
    }
}

impl Ancestry {
    /// An ancestor has accepted the connection: the hello names this process.
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
        for (wave, Missing { ranks, reason, cause }) in self.faults.all() {
            let (stream, cause) = (self.id, *cause);
            let (back_ends, reason) = (Ranges::from(ranks), reason.clone());
            let fault = Control::Fault { stream, wave, rank, back_ends, reason, cause };
            turn.send_control(link, &fault);
        }
    }
}
