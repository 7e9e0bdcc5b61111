//! A stream opens: here, and at the children that lead to its members.

use alloc::string::String;

use sapwood_packet::{RankSet, StreamId};
use sapwood_wire::{Cause, Control, Ranges, StreamRequest};

use crate::inbound::Inbound;
use crate::interface::{Event, Output, Role};
use crate::streams::telemetry_wave::TelemetryWave;
use crate::transform::back_end_filters::BackEndFilters;
use crate::turn::Turn;

impl Inbound<'_> {
    /// A stream opens: here, and at the children that lead to its members.
    pub(crate) fn open(&mut self, request: StreamRequest) {
        let id = request.stream;
        let is_back_end = self.turn.settings.role == Role::BackEnd;
        let mut local = request.clone();
        if is_back_end {
            // Filters run at inner nodes; a back-end has its own, or none.
            local.up.clear();
            local.down.clear();
            local.rule = None;
        }
        let stream = match self.members.new_stream(local, self.turn) {
            Ok(stream) => stream,
            Err(error) => {
                return self.cannot_open(request, &alloc::format!("{error}"));
            }
        };
        let own = if is_back_end {
            BackEndFilters::of(&self.turn.settings.registry, &request)
        } else {
            None
        };
        if let Some((before, jobs)) = self.streams.with_jobs(id) {
            before.retire_filters(jobs);
        }
        let at = self.streams.insert(stream);
        let stream = self.streams.at(at);
        stream.telemetry = TelemetryWave::on(&request);
        stream.own = own;
        stream.request = request;
        if is_back_end {
            stream.request.up = alloc::vec::Vec::new();
            stream.request.down = alloc::vec::Vec::new();
        }
        if self.turn.settings.recovery.is_on {
            stream.keep();
        }
        if !is_back_end {
            self.members.open_to_children(self.streams.at(at), self.turn);
            // Its members here may have died while the message was on its way.
            return self.streams.at(at).end_if_deserted(self.turn);
        }
        if let Some(error) = self.streams.at(at).refusal().cloned() {
            let rank = self.turn.rank();
            self.turn.tell_unmade(id, &RankSet::range(rank, rank), &alloc::format!("{error}"));
            self.streams.at(at).end_if_deserted(self.turn);
        }
        if self.streams.at(at).telemetry.is_none() {
            self.turn.outputs.push_back(Output::Event(Event::StreamOpened { stream: id }));
        }
    }

    /// A filter cannot be made here: the front-end is told why no wave will have what lies below,
    /// and the stream is open without children, so that no wave waits for it.
    fn cannot_open(&mut self, request: StreamRequest, reason: &str) {
        let below = self.members.connected();
        self.turn.tell_unmade(request.stream, &below, reason);
        let bare = StreamRequest {
            members: Ranges::default(),
            up: alloc::vec::Vec::new(),
            down: alloc::vec::Vec::new(),
            rule: None,
            ..request
        };
        if let Ok(stream) = self.members.new_stream(bare, self.turn) {
            let at = self.streams.insert(stream);
            self.streams.at(at).end_if_deserted(self.turn);
        }
    }
}

impl Turn {
    /// Tells why no wave of a stream will have these back-ends.
    fn tell_unmade(&mut self, stream: StreamId, ranks: &RankSet, reason: &str) {
        let rank = self.rank();
        if let Some(parent) = self.parent {
            let fault = Control::Fault {
                stream,
                wave: None,
                rank,
                back_ends: Ranges::from(ranks),
                reason: alloc::format!("{reason} (at rank {rank}{})", self.host_phrase()),
                cause: Cause::FilterFailed,
            };
            self.send_control(parent, &fault);
        }
    }

    /// Its host, as a part of a reason.
    fn host_phrase(&self) -> String {
        if self.host.is_empty() { String::new() } else { alloc::format!(" on {}", self.host) }
    }
}
