//! What every stage does with the turn alone: control messages over a link, events, memory.

use alloc::string::String;

use sapwood_link::SHARED_BODY_BYTES;
use sapwood_packet::{Body, IntoValues, Rank, RankSet, StreamId, Values, Wave};
use sapwood_wire::{Control, ProbeId, Ranges};

use crate::interface::{Event, Instant, LinkId, Mutation, Output, Reason, Role};
use crate::turn::Turn;
use crate::turn::counted::nanoseconds;
use crate::turn::links::Peer;

/// A round-trip time counts for one part in eight of the smoothed one (RFC 6298, section 2).
const SMOOTHING: u64 = 8;

impl Turn {
    /// Sends a control message over one link.
    pub(crate) fn send_control(&mut self, link: LinkId, control: &Control) {
        if let Some(outbox) = self.links.outbox(link) {
            // A message that is too long is a bug of ours; it is shown by the peer's silence.
            let pushed = outbox.push_control(control);
            debug_assert!(pushed.is_ok(), "control message too long");
        }
    }

    /// A peer is told why it is not wanted, and nothing more of it is read.
    pub(crate) fn reject(&mut self, link: LinkId, why: &Control) {
        self.send_control(link, why);
        if let Some(open) = self.links.link_mut(link) {
            open.peer = Peer::Leaving;
        }
        self.outputs.push_back(Output::Hangup(link));
    }

    pub(crate) fn refuse(&mut self, link: LinkId, reason: String) {
        self.reject(link, &Control::Refused { reason });
    }

    /// Answers a probe.
    pub(crate) fn answer_probe(&mut self, link: LinkId, probe: ProbeId) {
        self.send_control(link, &Control::Echo { probe: Some(probe), clock: self.now.0 });
    }

    /// A probe of this process has come back: the echo of a heartbeat gives the round-trip time.
    pub(crate) fn echoed(&mut self, link: LinkId, probe: Option<ProbeId>, clock: u64) {
        let Some(ProbeId::Heartbeat(sent)) = probe else { return };
        let (now, sent) = (self.now, Instant(sent));
        let Some(open) = self.links.link_mut(link).filter(|_| sent <= now) else { return };
        let measured = nanoseconds(now, sent).max(1);
        open.round_trip = match open.round_trip {
            0 => measured,
            smoothed => (smoothed * (SMOOTHING - 1) + measured) / SMOOTHING,
        };
        open.skew.sample(sent, clock, now);
    }

    /// Tells the parent, if there is one, that a filter failed.
    pub(crate) fn send_fault(
        &mut self,
        stream: StreamId,
        wave: Option<Wave>,
        rank: Rank,
        ranks: &RankSet,
        reason: Reason,
    ) {
        if let Some(parent) = self.parent {
            let back_ends = Ranges::from(ranks);
            let Reason { cause, words: reason } = reason;
            let fault = Control::Fault { stream, wave, rank, back_ends, reason, cause };
            self.send_control(parent, &fault);
        }
    }

    /// Tells the front-end's application what a process has noticed.
    pub(crate) fn pass_on_notice(&mut self, rank: Rank, text: String) {
        if self.settings.role == Role::FrontEnd {
            self.outputs.push_back(Output::Event(Event::Notice { rank, text }));
        } else if let Some(parent) = self.parent {
            self.send_control(parent, &Control::Notice { rank, text });
        }
    }

    /// Tells the application of something about a stream that costs no wave anything.
    pub(crate) fn report_fault(&mut self, stream: StreamId, reason: String) {
        self.outputs.push_back(Output::Event(Event::FilterFailed { stream, reason }));
    }

    #[inline]
    pub(crate) fn breaks(&self, rule: Mutation) -> bool {
        cfg!(feature = "mutations") && self.mutation == Some(rule)
    }

    /// Builds values, in memory that the last packet has left if that fits.
    pub(crate) fn build(&mut self, values: impl IntoValues) -> Values {
        if self.large_bytes > 0 {
            // It may lie in the processor's cache.
            let length = core::mem::take(&mut self.large_bytes);
            if let Some(slab) = self.pool.take_used(length) {
                self.built = Values::in_memory(slab);
            }
        }
        self.built.clear();
        values.append_to(core::mem::take(&mut self.built))
    }

    /// Remembers a large packet's memory for the next one.
    pub(crate) fn retain_large(&mut self, body: &Body) {
        if body.len() >= SHARED_BODY_BYTES {
            self.large_bytes = body.len();
            self.pool.give_later(body);
        }
    }
}
