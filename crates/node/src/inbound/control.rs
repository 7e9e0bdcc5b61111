//! Control messages that have come.

use alloc::string::String;

use sapwood_link::Position;
use sapwood_packet::{RankSet, StreamId, Wave};
use sapwood_wire::{Control, ProbeId, Ranges, StreamRequest, WireError};

use crate::interface::{AffectedWaves, AttachPoint, Event, LinkId, NodeError, Output, Role};
use crate::members::membership::Membership;
use crate::streams::asked::Asked;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::back_end_filters::BackEndFilters;
use crate::turn::Turn;
use crate::turn::links::Peer;

impl Membership {
    pub(crate) fn control(
        &mut self,
        link: LinkId,
        peer: Peer,
        control: Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        if let Err(breach) = self.validate(link, peer, &control, streams, turn) {
            return self.close_for_breach(link, &breach, streams, turn);
        }
        let result = match peer {
            Peer::Parent => self.control_from_parent(link, control, streams, turn),
            Peer::Child(rank) => self.control_from_child(link, rank, control, streams, turn),
            Peer::Stranger => match control {
                Control::Hello { version, claim, pid, address } => {
                    self.hello(link, version, claim, pid, address.is_some(), streams, turn);
                    Ok(())
                }
                other => Err(WireError::Unexpected { what: other.name() }),
            },
            Peer::Ancestor => self.control_from_ancestor(link, control, streams, turn),
            Peer::Visitor => self.visitors.control_from_visitor(link, control, turn),
            Peer::Leaving => Ok(()),
        };
        if let Err(error) = result {
            self.close_malformed(link, &error, streams, turn);
        }
    }

    fn control_from_parent(
        &mut self,
        link: LinkId,
        control: Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), WireError> {
        match control {
            Control::Welcome { rank, plan, back_ends, ancestors, terms, keeps_time, .. } => {
                turn.rank = Some(rank);
                self.ancestry.learn(ancestors, terms, keeps_time, turn);
                self.welcomed(link, back_ends, turn);
                turn.outputs.push_back(Output::Planned { rank, plan });
            }
            Control::Refused { reason } => {
                let reason = alloc::format!("the parent refused this process: {reason}");
                self.end(false, reason, streams, turn);
            }
            Control::Open(request) => self.open(request, streams, turn),
            Control::Close { stream } => streams.close(stream, turn),
            part @ Control::File { .. } => return self.file_part(part, turn),
            Control::Credit { stream, bytes } => {
                streams.credit_from_parent(link, stream, bytes, turn)
            }
            Control::Acknowledge { stream, wave, offset, singles } => {
                let single = singles as u32;
                streams.acknowledged_by_parent(
                    link,
                    stream,
                    Position { wave, offset },
                    single,
                    turn,
                );
                self.depart(streams, turn);
            }
            Control::Ancestry { ancestors, repairs } => {
                self.ancestry.processes = ancestors;
                self.ancestry.has_recovery = repairs;
                self.tell_ancestry(turn);
            }
            Control::Dissolve => {
                self.step_down(
                    String::from("others have taken the place of this process"),
                    streams,
                    turn,
                );
            }
            Control::Shutdown => {
                self.end_behind_packets(
                    String::from("the front-end ended the network"),
                    streams,
                    turn,
                );
            }
            Control::Probe { probe } => {
                self.heartbeats.is_asked = true;
                turn.answer_probe(link, probe);
            }
            Control::Echo { probe: Some(ProbeId::Barrier(number)), .. } => {
                self.barrier_passed(number, turn);
            }
            Control::Echo { probe, clock } => turn.echoed(link, probe, clock),
            other => return Err(WireError::Unexpected { what: other.name() }),
        }
        Ok(())
    }

    /// The parent has taken this process in.
    fn welcomed(&mut self, link: LinkId, back_ends: u32, turn: &mut Turn) {
        self.begin_heartbeats(turn);
        // For every role: what waited for the welcome is written.
        let outbox = turn.links.outbox(link);
        if turn.settings.role != Role::BackEnd {
            return;
        }
        if let Some(outbox) = outbox.filter(|_| turn.settings.recovery.is_on) {
            outbox.record_runs();
        }
        self.await_children(alloc::vec::Vec::new(), RankSet::new(), 0, back_ends, turn);
    }

    fn control_from_ancestor(
        &mut self,
        link: LinkId,
        control: Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), WireError> {
        match control {
            Control::Welcome { parent, ancestors, terms, keeps_time, .. } => {
                self.ancestry.learn(ancestors, terms, keeps_time, turn);
                self.adopted(link, parent, streams, turn);
                self.begin_heartbeats(turn);
            }
            Control::Refused { reason } => {
                turn.outputs.push_back(Output::Hangup(link));
                self.link_down(link, &reason, streams, turn);
            }
            Control::Referred { rank, reason } => self.referred(link, rank, &reason, streams, turn),
            Control::Shutdown => {
                self.end(true, String::from("the front-end ended the network"), streams, turn)
            }
            Control::Probe { probe } => turn.answer_probe(link, probe),
            other => return Err(WireError::Unexpected { what: other.name() }),
        }
        Ok(())
    }

    fn control_from_child(
        &mut self,
        link: LinkId,
        child: u32,
        control: Control,
        streams: &mut Streams,
        turn: &mut Turn,
    ) -> Result<(), WireError> {
        let set = |ranges: &Ranges| ranges.to_set().map_err(WireError::from);
        match control {
            Control::Reached { back_ends, attach_points } => {
                let mut points = alloc::vec::Vec::new();
                for (parent, address, ranks) in attach_points {
                    points.push(AttachPoint { parent, address, ranks: set(&ranks)? });
                }
                self.reached(child, set(&back_ends)?, points, streams, turn);
            }
            Control::Failed { rank, text } => turn.pass_on_failure(rank, text),
            Control::Notice { rank, text } => self.children.notice_below(child, rank, text, turn),
            Control::Lost { rank, back_ends, reason } => {
                self.lost_below(child, rank, set(&back_ends)?, reason, streams, turn);
            }
            Control::Fault { stream, wave, rank, back_ends, reason } => {
                let ranks = set(&back_ends)?;
                if turn.settings.role == Role::FrontEnd {
                    streams.fault_below(stream, wave, ranks, reason, turn);
                } else {
                    streams.pass_on_fault(stream, wave, rank, ranks, reason, turn);
                }
            }
            Control::Credit { stream, bytes } => {
                streams.credit_from_child(link, stream, bytes, turn)
            }
            Control::Acknowledge { stream, wave, offset, .. } => {
                streams.acknowledged_by_child(link, stream, Position { wave, offset }, turn);
            }
            Control::Rejoin { back_ends, covers, former, files } => {
                let former = set(&former)?;
                self.rejoin(link, child, set(&back_ends)?, set(&covers)?, &former, streams, turn);
                if self.children.link_of(child) == Some(link) {
                    self.send_files(link, &files, turn);
                }
            }
            Control::Superseded { ranks } => {
                let ranks = set(&ranks)?;
                self.supersede_for(child, &ranks, turn);
            }
            Control::Resume { stream, up, down } => {
                let position = |(wave, offset)| Position { wave, offset };
                self.resume(link, child, stream, position(up), position(down), streams, turn);
            }
            Control::Resumed => self.resumed(link, child, streams, turn),
            Control::Broken { rank, back_ends, reason } => {
                turn.tell_broken(rank, set(&back_ends)?, reason);
            }
            Control::Repaired { rank, adopter, orphans, back_ends, waves } => {
                let waves = waves.into_iter();
                let waves = waves.map(|(stream, first, end)| AffectedWaves { stream, first, end });
                let back_ends = set(&back_ends)?;
                turn.tell_repaired(rank, adopter, orphans, back_ends, waves.collect());
            }
            Control::Leaving => self.children.leaving(child),
            state @ Control::State { .. } => return self.keep_replica(link, state, streams, turn),
            Control::Probe { probe } => turn.answer_probe(link, probe),
            Control::Echo { probe, clock } => turn.echoed(link, probe, clock),
            other => return Err(WireError::Unexpected { what: other.name() }),
        }
        Ok(())
    }

    /// A stream opens: here, and at the children that lead to its members.
    pub(crate) fn open(&mut self, request: StreamRequest, streams: &mut Streams, turn: &mut Turn) {
        let id = request.stream;
        let is_back_end = turn.settings.role == Role::BackEnd;
        let mut local = request.clone();
        if is_back_end {
            // Filters run at inner nodes; a back-end has its own, or none.
            local.up.clear();
            local.down.clear();
            local.rule = None;
        }
        let stream = match self.new_stream(local, turn) {
            Ok(stream) => stream,
            Err(error) => {
                return self.cannot_open(request, &alloc::format!("{error}"), streams, turn);
            }
        };
        let own =
            if is_back_end { BackEndFilters::of(&turn.settings.registry, &request) } else { None };
        if let Some((before, jobs)) = streams.with_jobs(id) {
            before.retire_filters(jobs);
        }
        let at = streams.insert(stream);
        let stream = streams.at(at);
        stream.telemetry = Asked::on(&request);
        stream.own = own;
        stream.request = request;
        if is_back_end {
            stream.request.up = alloc::vec::Vec::new();
            stream.request.down = alloc::vec::Vec::new();
        }
        if turn.settings.recovery.is_on {
            stream.keep();
        }
        if !is_back_end {
            self.open_to_children(streams.at(at), turn);
            // Its members here may have died while the message was on its way.
            return streams.at(at).end_if_deserted(turn);
        }
        if let Some(error) = streams.at(at).refusal().cloned() {
            let rank = turn.rank();
            turn.tell_unmade(id, &RankSet::range(rank, rank), &alloc::format!("{error}"));
            streams.at(at).end_if_deserted(turn);
        }
        if streams.at(at).telemetry.is_none() {
            turn.outputs.push_back(Output::Event(Event::StreamOpened { stream: id }));
        }
    }

    /// A stream as its request says, at this node.
    pub(crate) fn new_stream(
        &self,
        request: StreamRequest,
        turn: &Turn,
    ) -> Result<Stream, NodeError> {
        let mut stream = Stream::new(request, &turn.settings.registry, self.height)?;
        stream.chunk_bytes = turn.chunk_bytes;
        stream.mutation = turn.mutation;
        Ok(stream)
    }

    /// A filter cannot be made here: the front-end is told why no wave will have what lies below,
    /// and the stream is open without children, so that no wave waits for it.
    fn cannot_open(
        &mut self,
        request: StreamRequest,
        reason: &str,
        streams: &mut Streams,
        turn: &mut Turn,
    ) {
        let below = self.connected();
        turn.tell_unmade(request.stream, &below, reason);
        let bare = StreamRequest {
            members: Ranges::default(),
            up: alloc::vec::Vec::new(),
            down: alloc::vec::Vec::new(),
            rule: None,
            ..request
        };
        if let Ok(stream) = self.new_stream(bare, turn) {
            let at = streams.insert(stream);
            streams.at(at).end_if_deserted(turn);
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
            };
            self.send_control(parent, &fault);
        }
    }

    /// Its host, as a part of a reason.
    fn host_phrase(&self) -> String {
        if self.host.is_empty() { String::new() } else { alloc::format!(" on {}", self.host) }
    }
}

impl Membership {
    pub(crate) fn open_to_children(&mut self, stream: &mut Stream, turn: &mut Turn) {
        self.vacancies.await_orphans(stream);
        for (link, back_ends) in self.children.links_with_back_ends() {
            if let Some(request) = stream.request_for(link, &back_ends) {
                self.tell_open(link, request, turn);
            }
        }
    }
}

impl Streams {
    /// A stream closes: what waits on it goes first, then the message, then it is forgotten.
    pub(crate) fn close(&mut self, id: StreamId, turn: &mut Turn) {
        let Some(at) = self.find(id) else { return };
        if !self.at(at).closes_later() {
            self.close_now(id, turn);
        }
    }

    fn credit_from_parent(&mut self, link: LinkId, stream: StreamId, bytes: u32, turn: &mut Turn) {
        let Some(at) = self.find(stream) else { return };
        let Turn { links, .. } = turn;
        if let Some(outbox) = links.outbox(link) {
            self.at(at).sender.grant(bytes, outbox);
        }
        self.at(at).emit_ready(turn);
        self.at(at).end_if_deserted(turn);
    }

    fn credit_from_child(&mut self, link: LinkId, stream: StreamId, bytes: u32, turn: &mut Turn) {
        let Some(at) = self.find(stream) else { return };
        let Turn { links, .. } = turn;
        let stream = self.at(at);
        let Some(slot) = stream.slot_of(link) else { return };
        if let Some(outbox) = links.outbox(link) {
            stream.slots[slot].down.grant(bytes, outbox);
        }
        if !stream.replies.is_empty() {
            self.at(at).emit_ready(turn);
        }
        self.at(at).grant_to_parent(turn);
    }

    /// A process below tells of a fault (front-end): one that costs these back-ends a wave, or one
    /// that costs nothing now.
    fn fault_below(
        &mut self,
        stream: StreamId,
        wave: Option<Wave>,
        ranks: RankSet,
        reason: String,
        turn: &mut Turn,
    ) {
        if ranks.is_empty() {
            turn.report_fault(stream, reason);
        } else if let Some(stream) = self.get_mut(stream) {
            stream.faults.add(wave, ranks, reason);
        }
    }
}
