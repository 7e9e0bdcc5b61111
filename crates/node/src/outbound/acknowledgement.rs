//! What is safe and need not be kept any more: told down for what went up, up for what went down.
//!
//! What went up is safe when the front-end has taken it. It says so lazily, since no process waits
//! for it but memory, and a message by itself would wake a process: with the next credit or packet
//! for the same child, or after many bytes or a while. Every process below passes it on in the same
//! way.
//!
//! What went down is safe when it has reached the back-ends. They say so with the credit that they
//! grant. **No process above may withhold much of that**: a sender waits when it keeps
//! [`KEPT_BYTES`], and what each level withholds adds up on the way to it. So a level tells at once
//! what is worth a message, and all of them together withhold less than a quarter of those bytes.
//! The rest is told after a while.

use core::time::Duration;

use sapwood_link::{END, Outbox, Position};
use sapwood_packet::StreamId;
use sapwood_wire::Control;
use sapwood_wire::limits::{ANCESTORS_MAX, KEPT_BYTES};

use crate::interface::{Mutation, Role};
use crate::streams::straggler::Stragglers;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::waves::open_wave::OpenWave;
use crate::waves::slot::{Slot, UNANNOUNCED_PACKETS};
use crate::waves::table::WaveKind;

/// How long the front-end waits for a message that an acknowledgement can travel with.
const ROOT_ACK_DELAY: Duration = Duration::from_millis(50);
/// How long those below wait, so that it comes to all levels of a tree in time.
const INNER_ACK_DELAY: Duration = Duration::from_millis(10);
/// Without heartbeats, a back-end acknowledges fewer than `SMALL_ACK_BYTES` after this time.
const SMALL_ACK_DELAY: Duration = Duration::from_secs(1);

/// Acknowledgement threshold of a back-end, in bytes; beyond it an acknowledgement is sent without
/// a grant: the application does not take them, or the window is large.
const BACK_END_ACK_BYTES: usize = KEPT_BYTES / 4;
/// After this many bytes that went down have become safe, a process that others are below says so
/// at once. What back-ends have told goes through, since they tell more than this in one message.
const INNER_ACK_BYTES: usize = KEPT_BYTES / 4 / ANCESTORS_MAX;
/// This many bytes are worth a message of a back-end's before long. Fewer wait for its next probe.
const SMALL_ACK_BYTES: usize = 4 << 10;

impl Slot {
    /// What to tell this child, if there is anything: what lies before a place is safe, and single
    /// packets up to a number.
    pub(crate) fn acknowledgement(
        &mut self,
        stream: StreamId,
        (safe, single): (Position, u32),
        stragglers: &mut Stragglers,
    ) -> Option<Control> {
        let held = stragglers.first_of(&self.members, single);
        let (Position { wave, offset }, number) = self.settle(safe, single, held)?;
        Some(Control::Acknowledge { stream, wave, offset, singles: u64::from(number) })
    }
}

impl Stream {
    /// Ends the run at the end of the outbox to the parent, and keeps what has ended of this
    /// stream's: before what is sent next. Those of other streams stay until these send, or until
    /// they are about to leave.
    #[inline]
    pub(crate) fn record_own_runs(&mut self, turn: &mut Turn) {
        if let Some(outbox) = turn.parent.and_then(|parent| turn.links.outbox(parent)) {
            self.keep_ended_runs(outbox);
        }
    }

    /// As [`Stream::record_own_runs`], with the outbox at hand.
    #[inline]
    pub(crate) fn keep_ended_runs(&mut self, outbox: &mut Outbox) {
        // A run that grows on after it was copied would be kept without its end.
        outbox.end_run();
        outbox.take_ended_runs_of(self.id, |run, bytes| self.sender.record_run(run, bytes));
    }

    /// A wave or single packet has gone on from here.
    pub(crate) fn note_emitted(&mut self, wave: &OpenWave, kind: WaveKind, turn: &mut Turn) {
        let is_root = turn.settings.role == Role::FrontEnd;
        if !kind.is_single() {
            return self.record_absences(wave);
        }
        // At the front-end nothing is passed on, so that it is safe at once.
        let own = if is_root { 0 } else { self.sender.last_single() };
        if wave.is_late_part {
            self.stragglers.note_gone(wave.position.wave, own);
        }
        let Some(&(slot, _)) = wave.charges.first() else { return };
        let Some(slot) = self.slots.get_mut(usize::from(slot)) else { return };
        slot.note_single(own, wave.header.order.single_number());
    }

    /// Something more is safe: the children are told before long.
    pub(crate) fn defer_acknowledgement(&mut self, turn: &mut Turn) {
        if self.keeps {
            let is_root = turn.settings.role == Role::FrontEnd;
            turn.pay_within(if is_root { ROOT_ACK_DELAY } else { INNER_ACK_DELAY });
        }
    }

    /// Tells one child what it need not keep.
    pub(crate) fn acknowledge_to_child(&mut self, slot: usize, turn: &mut Turn) {
        if !self.keeps {
            return;
        }
        let safe = self.safe_up(turn.settings.role);
        let slot = &mut self.slots[slot];
        let Some(link) = slot.link else { return };
        if let Some(message) = slot.acknowledgement(self.id, safe, &mut self.stragglers) {
            turn.send_control(link, &message);
        }
    }

    /// Tells the children what they need not keep.
    pub(crate) fn acknowledge_to_children(&mut self, turn: &mut Turn) {
        for slot in 0..self.slots.len() {
            self.acknowledge_to_child(slot, turn);
        }
    }

    /// Forgets what has reached all processes below.
    pub(crate) fn forget_down(&mut self, turn: &mut Turn) {
        let Turn { pool, .. } = turn;
        let safe = self.down_safe();
        let before = self.down_retransmit.bytes();
        self.down_retransmit.forget_before(safe, pool);
        self.down_unannounced += before - self.down_retransmit.bytes();
        self.down_reached = safe;
        // Bytes beyond `KEPT_BYTES` were not granted while they were kept here.
        self.grant_to_parent(turn);
        if self.down_unannounced >= self.down_announce_bytes {
            self.acknowledge_to_parent_later(turn);
        }
    }

    /// Tells the parent, at once or before long, how much of what went down has become safe.
    #[cold]
    pub(crate) fn acknowledge_to_parent_later(&mut self, turn: &mut Turn) {
        let is_probed = turn.heartbeat_due.is_some();
        let is_back_end = turn.settings.role == Role::BackEnd;
        let most = if is_back_end { BACK_END_ACK_BYTES } else { INNER_ACK_BYTES };
        let unannounced = self.down_unannounced;
        if unannounced == 0 || turn.parent.is_none() {
            // A new parent is told all.
            self.down_unannounced = 0;
            return;
        }
        if unannounced >= most {
            return self.acknowledge_to_parent(turn);
        }
        let is_little = unannounced < SMALL_ACK_BYTES && is_back_end;
        self.down_announce_bytes = if is_little { SMALL_ACK_BYTES } else { most };
        match is_little {
            // The next heartbeat is soon enough, and costs no message of its own.
            true if is_probed => {}
            true => turn.pay_within(SMALL_ACK_DELAY),
            false if is_back_end => turn.pay_within(ROOT_ACK_DELAY),
            // The back-ends have waited.
            false => turn.pay_within(INNER_ACK_DELAY),
        }
    }

    /// Something goes to the parent: what has reached the back-ends is told with it.
    #[inline]
    pub(crate) fn acknowledge_beside(&mut self, turn: &mut Turn) {
        let is_leaf = self.slots.is_empty();
        let reached = if is_leaf { self.down_next } else { self.down_reached };
        let unannounced = reached.min(self.down_next).wave.saturating_sub(self.down_announced.wave);
        if unannounced >= UNANNOUNCED_PACKETS {
            self.acknowledge_to_parent(turn);
        }
    }

    /// Tells the parent what has reached the back-ends below.
    pub(crate) fn acknowledge_to_parent(&mut self, turn: &mut Turn) {
        let mut safe = self.down_safe().min(self.down_next);
        // A packet that a job works on has reached no child.
        if let Some(first) = self.down_offload.as_ref().and_then(|offload| offload.first()) {
            safe = safe.min(first);
        }
        if !self.keeps || safe <= self.down_announced || safe >= END {
            return;
        }
        self.down_announced = safe;
        (self.down_unannounced, self.down_announce_bytes) = (0, 1);
        let (id, Position { wave, offset }) = (self.id, safe);
        if let Some(parent) = turn.parent {
            let message = Control::Acknowledge { stream: id, wave, offset, singles: 0 };
            turn.send_control(parent, &message);
        }
    }

    /// What may be told to the children: the place before which everything is safe, taken by the
    /// front-end or acknowledged by the parent, and the number up to which single packets are.
    #[inline]
    pub(crate) fn safe_up(&self, role: Role) -> (Position, u32) {
        let is_early = self.breaks(Mutation::AcknowledgeEarly);
        let is_taken = role == Role::FrontEnd || is_early;
        let mut safe = if is_taken { self.gone_on() } else { self.sender.acknowledged };
        safe.wave += u64::from(self.breaks(Mutation::AcknowledgeTooFar));
        (safe, self.sender.acknowledged_single)
    }

    /// Remembers the members that were absent from a wave that has gone on. If no packet came for
    /// earlier waves, all members were absent from them.
    fn record_absences(&mut self, wave: &OpenWave) {
        let until = wave.until().wave;
        if until <= self.ended && until > self.recorded {
            self.record_absence(wave);
        }
    }

    /// The same for a wave that a job works on: packets for it are stragglers already.
    pub(crate) fn record_absence(&mut self, wave: &OpenWave) {
        let (first, until) = (wave.position.wave, wave.until().wave);
        if first > self.recorded {
            // Waves that were skipped had no packet at all.
            self.absences.record(self.recorded, first, self.below.clone());
        }
        if wave.contributors != self.below && !self.breaks(Mutation::ForgetAbsences) {
            let absent = self.below.difference(wave.contributors.as_ref());
            self.absences.record(first, until, absent);
        }
        self.recorded = until;
    }
}

impl Turn {
    /// What is owed is told after this time at the latest.
    fn pay_within(&mut self, delay: Duration) {
        let until = self.now + delay;
        if self.acknowledgement_due.is_none_or(|due| until < due) {
            self.acknowledgement_due = Some(until);
        }
    }
}

impl Streams {
    /// Tells all that is owed, when its time has come.
    pub(crate) fn send_due_acknowledgements(&mut self, turn: &mut Turn) {
        if turn.acknowledgement_due.take_if(|due| *due <= turn.now).is_some() {
            for at in 0..self.len() {
                self.at(at).acknowledge_to_children(turn);
                let stream = self.at(at);
                if stream.down_unannounced > 0 {
                    stream.down_announce_bytes = 1;
                    self.at(at).acknowledge_to_parent(turn);
                }
            }
        }
    }

    /// The run at the end of what waits for the parent has ended: its stream keeps it.
    #[inline]
    pub(crate) fn end_runs(&mut self, turn: &mut Turn) {
        let Turn { links, parent, .. } = turn;
        let link = parent.and_then(|parent| links.link_mut(parent));
        if let Some(link) = link {
            self.record_runs(&mut link.outbox);
        }
    }
}
