//! Control messages that have come.

use alloc::string::String;

use sapwood_link::{END, Position};
use sapwood_packet::{RankSet, StreamId};
use sapwood_wire::{Control, Ranges, StreamRequest, WireError};

use crate::interface::{AffectedWaves, AttachPoint, Event, LinkId, NodeError, Output, Role};
use crate::node::Node;
use crate::streams::asked::Asked;
use crate::streams::stream::Stream;
use crate::transform::back_end::OwnFilters;
use crate::turn::Turn;
use crate::turn::links::Peer;

impl Node {
    pub(crate) fn control(&mut self, link: LinkId, peer: Peer, control: Control) {
        if let Err(breach) = self.validate(link, peer, &control) {
            return self.break_off(link, &breach);
        }
        let result = match peer {
            Peer::Parent => self.control_from_parent(link, control),
            Peer::Child(rank) => self.control_from_child(link, rank, control),
            Peer::Stranger => match control {
                Control::Hello { version, claim, pid, address } => {
                    self.hello(link, version, claim, pid, address.is_some());
                    Ok(())
                }
                _ => Err(WireError::Control),
            },
            Peer::Ancestor => self.control_from_ancestor(link, control),
            Peer::Visitor => self.control_from_visitor(link, control),
            Peer::Leaving => Ok(()),
        };
        if let Err(error) = result {
            self.break_link(link, &error);
        }
    }

    fn control_from_parent(&mut self, link: LinkId, control: Control) -> Result<(), WireError> {
        match control {
            Control::Welcome { rank, plan, back_ends, ancestors, terms, keeps_time, .. } => {
                self.turn.rank = Some(rank);
                self.learn_ancestry(ancestors, terms, keeps_time);
                self.begin_heartbeats();
                if let Some(outbox) = self.turn.links.outbox(link)
                    && self.turn.settings.role == Role::BackEnd
                    && self.turn.settings.recovery.is_on
                {
                    outbox.record_runs();
                }
                if self.turn.settings.role == Role::BackEnd {
                    self.await_children(alloc::vec::Vec::new(), RankSet::new(), 0, back_ends);
                }
                self.turn.outputs.push_back(Output::Planned { rank, plan });
            }
            Control::Refused { reason } => {
                self.end(false, alloc::format!("the parent refused this process: {reason}"));
            }
            Control::Open(request) => self.open(request),
            Control::Close { stream } => self.close(stream),
            part @ Control::File { .. } => return self.file_part(part),
            Control::Credit { stream, bytes } => self.credit_from_parent(link, stream, bytes),
            Control::Acknowledge { stream, wave, offset, singles } => {
                let single = singles as u32;
                self.acknowledged_by_parent(link, stream, Position { wave, offset }, single);
                self.depart();
            }
            Control::Ancestry { ancestors, repairs } => {
                self.membership.ancestors = ancestors;
                self.membership.repairs = repairs;
                self.tell_ancestry();
            }
            Control::Dissolve => {
                self.step_down(String::from("others have taken the place of this process"));
            }
            Control::Shutdown => {
                self.end_behind_packets(String::from("the front-end ended the network"));
            }
            Control::Probe { number } => {
                self.membership.is_asked = true;
                self.turn.answer_probe(link, number);
            }
            Control::Echo { number, clock } => {
                self.membership.loss_echoed(number, &mut self.turn);
                self.turn.probe_answered(link, number, clock);
            }
            _ => return Err(WireError::Control),
        }
        Ok(())
    }

    fn control_from_ancestor(&mut self, link: LinkId, control: Control) -> Result<(), WireError> {
        match control {
            Control::Welcome { parent, ancestors, terms, keeps_time, .. } => {
                self.learn_ancestry(ancestors, terms, keeps_time);
                self.adopted(link, parent);
                self.begin_heartbeats();
            }
            Control::Refused { reason } => {
                self.turn.outputs.push_back(Output::Hangup(link));
                self.link_down(link, &reason);
            }
            Control::Referred { rank, reason } => self.referred(link, rank, &reason),
            Control::Shutdown => self.end(true, String::from("the front-end ended the network")),
            Control::Probe { number } => self.turn.answer_probe(link, number),
            _ => return Err(WireError::Control),
        }
        Ok(())
    }

    fn control_from_child(
        &mut self,
        link: LinkId,
        child: u32,
        control: Control,
    ) -> Result<(), WireError> {
        let set = |ranges: &Ranges| ranges.to_set().map_err(WireError::from);
        match control {
            Control::Reached { back_ends, attach_points } => {
                let mut points = alloc::vec::Vec::new();
                for (parent, address, ranks) in attach_points {
                    points.push(AttachPoint { parent, address, ranks: set(&ranks)? });
                }
                self.reached(child, set(&back_ends)?, points);
            }
            Control::Failed { rank, text } => self.pass_on_failure(rank, text),
            Control::Lost { rank, back_ends, reason } => {
                self.lost_below(child, rank, set(&back_ends)?, reason);
            }
            Control::Fault { stream, wave, rank, back_ends, reason } => {
                let ranks = set(&back_ends)?;
                if self.turn.settings.role == Role::FrontEnd {
                    if ranks.is_empty() {
                        self.turn.report_fault(stream, reason);
                    } else if let Some(stream) = self.streams.get_mut(stream) {
                        stream.add_fault(wave, ranks, reason);
                    }
                } else {
                    self.pass_on_fault(stream, wave, rank, ranks, reason);
                }
            }
            Control::Credit { stream, bytes } => self.credit_from_child(link, stream, bytes),
            Control::Acknowledge { stream, wave, offset, .. } => {
                self.acknowledged_by_child(link, stream, Position { wave, offset });
            }
            Control::Rejoin { back_ends, covers, former, files } => {
                let former = set(&former)?;
                self.rejoin(link, child, set(&back_ends)?, set(&covers)?, &former);
                if self.membership.link_of(child) == Some(link) {
                    self.send_files(link, &files);
                }
            }
            Control::Superseded { ranks } => {
                let ranks = set(&ranks)?;
                self.supersede_for(child, &ranks);
            }
            Control::Resume { stream, up, down } => {
                let position = |(wave, offset)| Position { wave, offset };
                self.resume(link, child, stream, position(up), position(down));
            }
            Control::Resumed => self.resumed(link, child),
            Control::Broken { rank, back_ends, reason } => {
                self.turn.tell_broken(rank, set(&back_ends)?, reason);
            }
            Control::Repaired { rank, adopter, orphans, back_ends, waves } => {
                let waves = waves.into_iter();
                let waves = waves.map(|(stream, first, end)| AffectedWaves { stream, first, end });
                let back_ends = set(&back_ends)?;
                self.turn.tell_repaired(rank, adopter, orphans, back_ends, waves.collect());
            }
            Control::Leaving => self.membership.leaving(child),
            state @ Control::State { .. } => return self.keep_replica(link, state),
            Control::Probe { number } => self.turn.answer_probe(link, number),
            Control::Echo { number, clock } => self.turn.probe_answered(link, number, clock),
            _ => return Err(WireError::Control),
        }
        Ok(())
    }

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
        let stream = match self.new_stream(local) {
            Ok(stream) => stream,
            Err(error) => return self.cannot_open(request, &alloc::format!("{error}")),
        };
        let own =
            if is_back_end { OwnFilters::of(&self.turn.settings.registry, &request) } else { None };
        if let Some(before) = self.streams.find(id) {
            self.retire_filters(before);
        }
        let at = self.streams.insert(stream);
        let stream = self.streams.at(at);
        stream.telemetry = Asked::on(&request);
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
            self.open_to_children(at);
            // Its members here may have died while the message was on its way.
            return self.end_if_deserted(at);
        }
        if let Some(error) = self.streams.at(at).refusal().cloned() {
            let rank = self.turn.rank_or_max();
            self.tell_unmade(id, &RankSet::range(rank, rank), &alloc::format!("{error}"));
            self.end_if_deserted(at);
        }
        if self.streams.at(at).telemetry.is_none() {
            self.turn.outputs.push_back(Output::Event(Event::StreamOpened { stream: id }));
        }
    }

    /// A stream as its request says, at this node.
    pub(crate) fn new_stream(&self, request: StreamRequest) -> Result<Stream, NodeError> {
        let mut stream =
            Stream::new(request, &self.turn.settings.registry, self.membership.height)?;
        stream.chunk_bytes = self.turn.chunk_bytes;
        stream.mutation = self.turn.mutation;
        Ok(stream)
    }

    /// A filter cannot be made here: the front-end is told why no wave will have what lies below,
    /// and the stream is open without children, so that nobody waits for it.
    fn cannot_open(&mut self, request: StreamRequest, reason: &str) {
        let below = self.membership.connected();
        self.tell_unmade(request.stream, &below, reason);
        let bare = StreamRequest {
            members: Ranges::default(),
            up: alloc::vec::Vec::new(),
            down: alloc::vec::Vec::new(),
            rule: None,
            ..request
        };
        if let Ok(stream) = self.new_stream(bare) {
            let at = self.streams.insert(stream);
            self.end_if_deserted(at);
        }
    }

    /// Tells why no wave of a stream will have these back-ends.
    fn tell_unmade(&mut self, stream: StreamId, ranks: &RankSet, reason: &str) {
        let rank = self.turn.rank_or_max();
        if let Some(parent) = self.turn.parent {
            let fault = Control::Fault {
                stream,
                wave: END.wave,
                rank,
                back_ends: Ranges::from(ranks),
                reason: alloc::format!("{reason} (at rank {rank}{})", self.host_phrase()),
            };
            self.turn.send_control(parent, &fault);
        }
    }

    /// Its host, as a part of a reason.
    fn host_phrase(&self) -> String {
        if self.turn.host.is_empty() {
            String::new()
        } else {
            alloc::format!(" on {}", self.turn.host)
        }
    }

    pub(crate) fn open_to_children(&mut self, at: usize) {
        self.await_orphans(at);
        for (link, back_ends) in self.children_with_links() {
            if let Some(request) = self.streams.at(at).request_for(link, &back_ends) {
                self.tell_open(link, request);
            }
        }
    }

    /// A stream closes: what waits on it goes first, then the message, then it is forgotten.
    pub(crate) fn close(&mut self, id: StreamId) {
        let Some(at) = self.streams.find(id) else { return };
        if !self.closes_later(at) {
            self.close_now(id);
        }
    }

    fn credit_from_parent(&mut self, link: LinkId, stream: StreamId, bytes: u32) {
        let Some(at) = self.streams.find(stream) else { return };
        let Self { turn: Turn { links, .. }, streams, .. } = self;
        if let Some(outbox) = links.outbox(link) {
            streams.at(at).sender.grant(bytes, outbox);
        }
        self.emit_ready(at);
        self.end_if_deserted(at);
    }

    fn credit_from_child(&mut self, link: LinkId, stream: StreamId, bytes: u32) {
        let Some(at) = self.streams.find(stream) else { return };
        let Self { turn: Turn { links, .. }, streams, .. } = self;
        let stream = streams.at(at);
        let Some(slot) = stream.slot_of(link) else { return };
        if let Some(outbox) = links.outbox(link) {
            stream.slots[slot].down.grant(bytes, outbox);
        }
        if !stream.replies.is_empty() {
            self.emit_ready(at);
        }
        self.grant_to_parent(at);
    }
}
