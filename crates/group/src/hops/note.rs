//! Which messages and calls a member notes.

use super::event::{GroupHop, GroupHopKind, GroupHopOperation};
use super::ring::{GroupHopQuestion, MemberHops};
use crate::identity::{CastId, FoldId, MemberId, Request};
use crate::member::{Event, Member};
use crate::message::{Message, Purpose};

impl Member {
    /// What it has noted; the question has it note more.
    pub fn hops(&mut self, now: u64, question: &GroupHopQuestion) -> MemberHops {
        self.now = self.now.max(now);
        self.hops.answer(self.me, question, self.now)
    }

    /// A message has come.
    #[inline]
    pub(crate) fn note_arrival(&mut self, from: MemberId, message: &Message) {
        if self.hops.is_on() {
            let kinds = Ways {
                part: GroupHopKind::Arrived(from),
                value: GroupHopKind::CameDown(from),
                acknowledgement: GroupHopKind::Acknowledged(from),
            };
            self.note_message(&kinds, message);
        }
    }

    /// A message leaves.
    #[inline]
    pub(crate) fn note_departure(&mut self, to: MemberId, message: &Message) {
        if self.hops.is_on() {
            let kinds = Ways {
                part: GroupHopKind::SentUp(to),
                value: GroupHopKind::SentDown(to),
                acknowledgement: GroupHopKind::SentAcknowledgement(to),
            };
            self.note_message(&kinds, message);
        }
    }

    /// The application has called for a transfer.
    #[inline]
    pub(crate) fn note_cast(&mut self, request: Request, cast: CastId) {
        if self.hops.is_on() {
            let kind = GroupHopKind::Entered { request, leaves_early: false };
            self.note_hop(Some(GroupHopOperation::Cast(cast)), kind);
        }
    }

    /// The application has called for a reduction.
    #[inline]
    pub(crate) fn note_fold(&mut self, request: Request, fold: FoldId, leaves_early: bool) {
        if self.hops.is_on() {
            let kind = GroupHopKind::Entered { request, leaves_early };
            self.note_hop(Some(GroupHopOperation::Fold(fold)), kind);
        }
    }

    /// The application learns something.
    #[inline]
    pub(crate) fn note_event(&mut self, event: &Event) {
        if !self.hops.is_on() {
            return;
        }
        match event {
            Event::Answered(request, _) | Event::Failed(request, _) => {
                self.note_hop(None, GroupHopKind::Exited { request: *request });
            }
            Event::Delivery { cast, offset, data, bytes, .. }
                if offset + data.len() as u64 == *bytes =>
            {
                self.note_hop(Some(GroupHopOperation::Cast(*cast)), GroupHopKind::Delivered);
            }
            _ => {}
        }
    }

    fn note_message(&mut self, ways: &Ways, message: &Message) {
        let (operation, kind) = match message {
            Message::Open { head, ask, .. } if !ask => {
                (operation_of(head.cast, &head.purpose), ways.value)
            }
            Message::Segment { cast, stripe, .. } => {
                (self.operation_of(*cast, *stripe), ways.value)
            }
            Message::Done { cast, stripe, .. } => {
                (self.operation_of(*cast, *stripe), ways.acknowledgement)
            }
            Message::Part { head, .. } => (GroupHopOperation::Fold(head.fold), ways.part),
            _ => return,
        };
        self.note_hop(Some(operation), kind);
    }

    fn note_hop(&mut self, operation: Option<GroupHopOperation>, kind: GroupHopKind) {
        self.hops.note(GroupHop { time: self.now, operation, kind });
    }

    fn operation_of(&self, cast: CastId, stripe: u8) -> GroupHopOperation {
        match self.lanes.get(&(cast, stripe)) {
            Some(lane) => operation_of(cast, &lane.head.purpose),
            None => GroupHopOperation::Cast(cast),
        }
    }
}

/// What is noted of each kind of message, in one direction.
struct Ways {
    part: GroupHopKind,
    value: GroupHopKind,
    acknowledgement: GroupHopKind,
}

fn operation_of(cast: CastId, purpose: &Purpose) -> GroupHopOperation {
    match purpose {
        Purpose::Result { fold, .. } | Purpose::Broken { fold, .. } => {
            GroupHopOperation::Fold(*fold)
        }
        _ => GroupHopOperation::Cast(cast),
    }
}
