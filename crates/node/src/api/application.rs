//! The application's handle of its node: what is delivered to it, and what it may know and set.
//! Streams and packets are in `calls`, files in `files`.

use core::time::Duration;

use sapwood_packet::{OutOfMemory, Rank, RankSet, StreamId, Values};
use sapwood_wire::Control;
use sapwood_wire::limits::REPLY_BYTES_MAX;

use crate::interface::hops::HopQuestion;
use crate::interface::record::Records;
use crate::interface::{Delivery, Instant, NodeError, Recovery, Role};
use crate::node::Node;
use crate::status::telemetry::TELEMETRY_TAG;
use crate::streams::telemetry_wave::TelemetryWave;

/// A node as the application of its process sees it, lent by [`Node::application`] between two
/// inputs. What a call causes comes out of [`Node::poll_output`].
#[derive(Debug)]
pub struct Application<'a> {
    pub(crate) node: &'a mut Node,
}

impl Node {
    /// The application's handle.
    pub fn application(&mut self) -> Application<'_> {
        Application { node: self }
    }
}

impl Application<'_> {
    /// The rank of this process, once it has one.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.node.rank()
    }

    /// Whether this process has been told its place in the tree.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.node.is_planned()
    }

    /// The terms on which the network deals with processes that are gone.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.node.recovery()
    }

    /// The back-ends of the network that are connected below this node.
    #[must_use]
    pub fn back_ends(&self) -> RankSet {
        self.node.back_ends()
    }

    /// Where this process takes connections, if it does.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.node.turn.settings.address.as_deref()
    }

    /// The next thing for the application.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.node.turn.deliveries.pop_front()
    }

    /// Whether a packet from the front-end was lost since there was no memory for it (back-end).
    pub fn take_undelivered(&mut self) -> Option<OutOfMemory> {
        self.node.turn.undelivered.take()
    }

    /// How long offloaded filters may take for one wave; zero for ever. At first it is
    /// [`FILTER_LIMIT`](crate::FILTER_LIMIT).
    pub fn set_filter_limit(&mut self, limit: Duration) {
        self.node.streams.jobs.limit = limit;
    }

    /// Answers a visitor's question. One that has gone is not missed.
    pub fn reply(&mut self, visitor: u64, answer: &[u8]) {
        let here = &self.node.membership.visitors.here;
        let link = here.iter().find(|(_, other)| *other == visitor).map(|&(link, _)| link);
        let Some(link) = link else { return };
        let mut parts = answer.chunks(REPLY_BYTES_MAX).peekable();
        loop {
            let bytes = parts.next().unwrap_or_default().to_vec();
            let is_last = parts.peek().is_none();
            self.node.turn.send_control(link, &Control::Reply { is_last, bytes });
            if is_last {
                return;
            }
        }
    }

    /// Has the tree repair itself from now on, or not (front-end): without, what is below a
    /// process that dies is lost, as with [`Recovery::off`](crate::Recovery::off). What is sent is
    /// kept either way, so that it can be switched on again.
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`]; [`NodeError::NotRecovering`] when it is to be on and the network
    /// has begun without.
    pub fn switch_recovery(&mut self, is_on: bool) -> Result<(), NodeError> {
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        if !self.node.turn.settings.recovery.is_on {
            return if is_on { Err(NodeError::NotRecovering) } else { Ok(()) };
        }
        if self.node.membership.ancestry.has_recovery != is_on {
            self.node.membership.ancestry.has_recovery = is_on;
            self.node.membership.tell_ancestry(&mut self.node.turn);
        }
        Ok(())
    }

    /// Has this front-end number its streams from here on; before it opens one. Gives whether it
    /// could be done: a number must not have been given already.
    pub fn begin_streams_at(&mut self, first: StreamId) -> bool {
        let is_free = first >= self.node.streams.next;
        if is_free {
            self.node.streams.next = first;
        }
        is_free
    }

    /// Has this front-end open no more streams than these, from that number on: those behind are of
    /// the front-end that replaces it. In the tree they would be taken for old ones.
    pub fn limit_streams(&mut self, first: StreamId, count: u32) {
        self.node.streams.end = (first.saturating_add(count), count);
    }

    /// Asks all processes that lead to a telemetry stream's members (front-end), also for their
    /// events if a question says so. The answer comes on that stream; [`Records::from_values`]
    /// reads it.
    ///
    /// # Errors
    /// As [`Application::broadcast`].
    pub fn ask_everyone(
        &mut self,
        now: Instant,
        stream: StreamId,
        question: Option<&HopQuestion>,
    ) -> Result<(), NodeError> {
        let values = question.copied().map_or_else(Values::new, HopQuestion::to_values);
        self.broadcast(now, stream, TELEMETRY_TAG, values, &sapwood_packet::Recipients::All)
    }

    /// What this process tells of itself, its links and, if a question says so, its events,
    /// outside of any wave.
    pub fn own_records(&mut self, question: Option<&HopQuestion>) -> Records {
        let node = &mut *self.node;
        let question = question.copied();
        let asked = TelemetryWave { since: node.turn.now, question, ..TelemetryWave::default() };
        node.streams.records(&asked, &node.membership, &mut node.turn)
    }
}
