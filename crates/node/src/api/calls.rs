//! What the application of this process asks for: streams and packets, at the front-end or a
//! back-end.

use core::time::Duration;

use sapwood_filter::WaveRule;
use sapwood_link::END;
use sapwood_packet::{
    ANSWERS_BEGIN, Header, IntoValues, Packet, QUESTIONS_MAX, RankSet, Recipients, Slab, StreamId,
    Tag, Wave, answer_wave,
};
use sapwood_wire::limits::{FILTERS_MAX, WINDOW_BYTES};
use sapwood_wire::{Control, Ranges, StreamRequest, WaitRule, encode_control};

use crate::api::application::Application;
use crate::interface::{Instant, NodeError, Role, StreamSpec};
use crate::outbound::sending::{check_count, check_length};
use crate::recovery::ending::DRAIN_LIMIT;
use crate::status::telemetry::Request;
use crate::streams::hops::note_down;
use crate::streams::stream::request_of;
use crate::transform::route::Route;

impl Application<'_> {
    /// Opens a stream (front-end).
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`], [`NodeError::NoStreamLeft`], [`NodeError::Members`] for ranks
    /// that are not connected,
    /// [`NodeError::Filter`] for an unknown filter or wrong parameters,
    /// [`NodeError::RequestTooLong`] for too many filters.
    pub fn open_stream(&mut self, spec: StreamSpec) -> Result<StreamId, NodeError> {
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        let (end, count) = self.node.streams.end;
        if self.node.streams.next >= end {
            return Err(NodeError::NoStreamLeft { count });
        }
        let strangers = spec.members.difference(self.node.membership.connected().as_ref());
        if spec.members.is_empty() || !strangers.is_empty() {
            return Err(NodeError::Members { ranks: strangers });
        }
        let wait = match spec.wave {
            WaveRule::All => WaitRule::All,
            WaveRule::Timeout { milliseconds } => WaitRule::Timeout { milliseconds },
            WaveRule::Immediate => WaitRule::Immediate,
        };
        let request = StreamRequest {
            stream: self.node.streams.next,
            members: Ranges::from(&spec.members),
            up: spec.up.into_iter().map(request_of).collect(),
            down: spec.down.into_iter().map(request_of).collect(),
            wait,
            policy: spec.policy,
            window_bytes: spec.window_bytes.unwrap_or(WINDOW_BYTES),
            height: self.node.membership.height,
            first_wave: 0,
            rule: spec.rule.map(request_of),
            at_back_ends: spec.at_back_ends,
        };
        check_request(&request)?;
        let mut stream = self.node.membership.new_stream(request, &self.node.turn)?;
        let id = stream.id;
        if self.node.turn.settings.recovery.is_on {
            stream.keep();
        }
        self.node.streams.next += 1;
        let at = self.node.streams.insert(stream);
        let stream = self.node.streams.at(at);
        self.node.membership.open_to_children(stream, &mut self.node.turn);
        Ok(id)
    }

    /// Closes a stream everywhere (front-end).
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`].
    pub fn close_stream(&mut self, stream: StreamId) -> Result<(), NodeError> {
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        self.node.streams.begin_close(stream, &mut self.node.turn);
        self.node.turn.deliveries.retain(|delivery| delivery.stream() != stream);
        Ok(())
    }

    /// The members of an open stream.
    #[must_use]
    pub fn members(&self, stream: StreamId) -> Option<&RankSet> {
        self.node.members(stream)
    }

    /// Whether a packet sent now would not have to wait behind a full window.
    ///
    /// # Errors
    /// [`NodeError::Stream`] when the stream is not open here.
    pub fn has_room(&self, stream: StreamId) -> Result<bool, NodeError> {
        self.has_room_to(stream, &Recipients::All)
    }

    /// The same of a packet for some members only, where it goes down: the windows of others do not
    /// matter.
    ///
    /// # Errors
    /// As [`Application::has_room`].
    pub fn has_room_to(&self, stream: StreamId, to: &Recipients) -> Result<bool, NodeError> {
        let open = self.node.streams.get(stream).ok_or(NodeError::Stream { stream })?;
        Ok(match self.node.turn.settings.role {
            Role::FrontEnd => to.is_none() || open.has_room_down(to.named()),
            // A run that has been begun is ended: it is short, and broken runs cost every node
            // above.
            _ => open.drops() || open.sender.is_open() || self.has_open_run(stream),
        })
    }

    /// Whether a stream of the front-end can bring no answer any more, since all of its back-ends
    /// are gone and what they sent has been delivered.
    #[must_use]
    pub fn is_deserted(&self, stream: StreamId) -> bool {
        let is_root = self.node.turn.settings.role == Role::FrontEnd;
        self.node.streams.get(stream).filter(|_| is_root).is_some_and(|stream| {
            stream.slots.iter().all(|slot| slot.next >= END) && stream.waves.is_empty()
        })
    }

    /// Packets that were dropped on a stream at this node.
    #[must_use]
    pub fn dropped(&self, stream: StreamId) -> u64 {
        self.node.dropped(stream)
    }

    /// Sends to all members of a stream, or to those named (front-end). A packet to no back-end is
    /// checked like any other and takes no wave.
    ///
    /// # Errors
    /// [`NodeError`] when the stream is not open, a destination is no member, the values are too
    /// long.
    pub fn broadcast(
        &mut self,
        now: Instant,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
        to: &Recipients,
    ) -> Result<(), NodeError> {
        self.node.turn.now = now;
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        let at = self.node.streams.find(stream).ok_or(NodeError::Stream { stream })?;
        let strangers = to.named().to_set().difference(self.node.streams.at(at).members.as_ref());
        if let Some(rank) = strangers.as_ref().first() {
            return Err(NodeError::NotMember { rank });
        }
        let values = self.node.turn.build(values);
        values.check_memory()?;
        let packet = Packet::new(stream, tag, values);
        check_length(packet.body())?;
        self.node.turn.retain_large(packet.body());
        check_count(packet.format().len())?;
        if to.is_none() {
            return Ok(());
        }
        let mut lent = packet.as_ref();
        lent.header.origin = self.node.turn.rank();
        let open = self.node.streams.at(at);
        let wave = open.next_down;
        lent.header.wave = wave;
        lent.header.ends_wave = true;
        open.next_down += 1;
        lent.destinations = to.named();
        if self.node.streams.at(at).passes_down {
            self.node.streams.at(at).send_down(lent, Some(packet.body()), &mut self.node.turn);
        } else {
            self.node.streams.at(at).transform_down(lent, &mut self.node.turn);
        }
        if self.node.streams.at(at).telemetry.is_none() {
            if self.node.turn.hops.is_on() {
                note_down(&lent, &mut self.node.turn);
            }
        } else {
            let node = &mut *self.node;
            node.streams.asked(stream, Request::of(&lent), &node.membership, &mut node.turn);
            self.node.streams.add_records(&self.node.membership, &mut self.node.turn);
        }
        Ok(())
    }

    /// The number that the next packet of a stream has as a question (front-end).
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`], [`NodeError::Stream`]; [`NodeError::NotAskable`] where a
    /// question has no single answer.
    pub fn next_question(&mut self, stream: StreamId) -> Result<u64, NodeError> {
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        let open = self.node.streams.get(stream).ok_or(NodeError::Stream { stream })?;
        let why = if open.is_immediate() {
            "it does not wait for its members; let its waves wait, or broadcast and receive"
        } else if open.route == Route::Pass && open.members.len() > 1 {
            "no filter makes one answer of its members'; add one, or broadcast and receive"
        } else if open.next_down >= QUESTIONS_MAX {
            "its numbers are used up; open another stream"
        } else {
            return Ok(open.next_down);
        };
        Err(NodeError::NotAskable { stream, why })
    }

    /// Whether the answers that the application has not taken fill a stream's window, so that no
    /// other is delivered (front-end).
    #[must_use]
    pub fn is_full_up(&self, stream: StreamId) -> bool {
        self.node.streams.get(stream).is_some_and(|open| !open.has_room_up(Role::FrontEnd))
    }

    /// Whether a wave has gone on here: once its deliveries are taken, nothing of it comes in time.
    #[must_use]
    pub fn has_gone_on(&self, stream: StreamId, wave: Wave) -> bool {
        self.node.streams.get(stream).is_some_and(|open| open.ended > wave)
    }

    /// Sends towards the front-end, in the next wave or in one that is named (back-end).
    ///
    /// Gives the length of the values in bytes.
    ///
    /// # Errors
    /// [`NodeError`] when the stream is not open, the wave has passed or answers a question, or the
    /// values are too long or too many.
    pub fn send(
        &mut self,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
        wave: Option<Wave>,
    ) -> Result<usize, NodeError> {
        if let Some(wave) = wave.filter(|wave| (ANSWERS_BEGIN..END.wave).contains(wave)) {
            return Err(NodeError::AnswerWave { wave });
        }
        self.node.streams.send_values(stream, tag, values, wave, &mut self.node.turn)
    }

    /// Answers a packet of the front-end's, in the wave that belongs to it (back-end).
    ///
    /// Gives the length of the values in bytes.
    ///
    /// # Errors
    /// As [`Application::send`]; [`NodeError::QuestionPassed`], [`NodeError::NoQuestion`].
    pub fn answer_packet(
        &mut self,
        question: &Packet,
        tag: Tag,
        values: impl IntoValues,
    ) -> Result<usize, NodeError> {
        let Header { stream, wave: number, .. } = question.header;
        let wave = answer_wave(number).filter(|_| !question.header.is_direct());
        let wave = Some(wave.ok_or(NodeError::NoQuestion)?);
        let sent = self.node.streams.send_values(stream, tag, values, wave, &mut self.node.turn);
        sent.map_err(|error| match error {
            NodeError::WavePassed { .. } => NodeError::QuestionPassed { question: number },
            error => error,
        })
    }

    /// Whether the last frame for the parent is a run of this stream that the next wave may join.
    #[must_use]
    pub fn has_open_run(&self, stream: StreamId) -> bool {
        let link = self.node.turn.parent.and_then(|parent| self.node.turn.links.link(parent));
        link.is_some_and(|link| link.outbox.has_open_run(stream))
    }

    /// The application has taken a delivery of that cost: the sender may send as much again.
    pub fn consumed(&mut self, stream: StreamId, cost: u32) {
        let Some(at) = self.node.streams.find(stream) else { return };
        let open = self.node.streams.at(at);
        open.unread = open.unread.saturating_sub(u64::from(cost));
        if self.node.turn.settings.role == Role::FrontEnd {
            self.node.streams.at(at).emit_ready(&mut self.node.turn);
            self.node.streams.add_records(&self.node.membership, &mut self.node.turn);
        } else {
            self.node.streams.at(at).grant_to_parent(&mut self.node.turn);
        }
    }

    /// Ends the network (front-end), or leaves it (any other process).
    pub fn shutdown(&mut self, now: Instant) {
        self.node.turn.now = now;
        if self.node.turn.settings.role == Role::Communication
            && self.node.turn.settings.recovery.is_on
        {
            self.node.streams.hand_over_before_leaving(&mut self.node.turn);
            if self.node.is_at_work() {
                self.node.turn.departs_until = Some(now + DRAIN_LIMIT);
                return;
            }
        }
        self.node.tree_change().leave(now);
    }

    /// How long a wave of a stream may wait at this node.
    #[must_use]
    pub fn patience(&self, stream: StreamId) -> Option<Duration> {
        self.node.streams.get(stream).and_then(|stream| stream.patience)
    }
}

/// Whether the tree can be told of a stream.
fn check_request(request: &StreamRequest) -> Result<(), NodeError> {
    let encoded = encode_control(&mut Slab::default(), &Control::Open(request.clone()));
    if encoded.is_err() || request.up.len().max(request.down.len()) > FILTERS_MAX {
        return Err(NodeError::RequestTooLong);
    }
    Ok(())
}
