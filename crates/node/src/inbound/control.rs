//! Control messages that have come.

use alloc::string::String;

use sapwood_link::Position;
use sapwood_packet::{RankSet, StreamId, Wave};
use sapwood_wire::{Control, ProbeId, Ranges, WireError};

use crate::inbound::Inbound;
use crate::interface::{AffectedWaves, AttachPoint, LinkId, Output, Reason, Role};
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

impl Inbound<'_> {
    pub(crate) fn control(&mut self, link: LinkId, peer: Peer, control: Control) {
        if let Err(breach) = self.members.validate(link, peer, &control, self.streams, self.turn) {
            return self.close_for_breach(link, &breach);
        }
        let result = match peer {
            Peer::Parent => self.control_from_parent(link, control),
            Peer::Child(rank) => self.control_from_child(link, rank, control),
            Peer::Stranger => match control {
                Control::Hello { version, claim, pid, address } => {
                    self.hello(link, version, claim, pid, address.is_some());
                    Ok(())
                }
                other => Err(WireError::Unexpected { what: other.name() }),
            },
            Peer::Ancestor => self.control_from_ancestor(link, control),
            Peer::Visitor => self.members.visitors.control_from_visitor(link, control, self.turn),
            Peer::Leaving => Ok(()),
        };
        if let Err(error) = result {
            self.close_malformed(link, &error);
        }
    }

    fn control_from_parent(&mut self, link: LinkId, control: Control) -> Result<(), WireError> {
        match control {
            Control::Welcome { rank, plan, back_ends, ancestors, terms, is_responsive, .. } => {
                self.turn.rank = Some(rank);
                self.members.ancestry.learn(ancestors, terms, is_responsive, self.turn);
                self.welcomed(link, back_ends);
                self.turn.outputs.push_back(Output::Planned { rank, plan });
            }
            Control::Refused { reason } => {
                let reason = alloc::format!("the parent refused this process: {reason}");
                self.tree_change().end_by_fault(reason);
            }
            Control::Open(request) => self.open(request),
            Control::Close { stream } => self.streams.begin_close(stream, self.turn),
            part @ Control::File { .. } => return self.members.file_part(part, self.turn),
            Control::Credit { stream, bytes } => {
                self.streams.credit_from_parent(link, stream, bytes, self.turn)
            }
            Control::Acknowledge { stream, wave, offset, singles } => {
                let single = singles as u32;
                self.streams.acknowledged_by_parent(
                    link,
                    stream,
                    Position { wave, offset },
                    single,
                    self.turn,
                );
                self.tree_change().depart();
            }
            Control::Ancestry { ancestors, repairs } => {
                self.members.ancestry.processes = ancestors;
                self.members.ancestry.has_recovery = repairs;
                self.members.tell_ancestry(self.turn);
            }
            Control::Dissolve => {
                self.tree_change()
                    .step_down(String::from("others have taken the place of this process"));
            }
            Control::Shutdown => {
                self.tree_change()
                    .end_behind_packets(String::from("the front-end ended the network"));
            }
            Control::Probe { probe } => {
                self.members.heartbeats.is_asked = true;
                self.turn.answer_probe(link, probe);
            }
            Control::Echo { probe: Some(ProbeId::Barrier(number)), .. } => {
                self.members.barrier_passed(number, self.turn);
            }
            Control::Echo { probe, clock } => self.turn.echoed(link, probe, clock),
            other => return Err(WireError::Unexpected { what: other.name() }),
        }
        Ok(())
    }

    /// The parent has taken this process in.
    fn welcomed(&mut self, link: LinkId, back_ends: u32) {
        self.members.begin_heartbeats(self.turn);
        // For every role: what waited for the welcome is written.
        let outbox = self.turn.links.outbox(link);
        if self.turn.settings.role != Role::BackEnd {
            return;
        }
        if let Some(outbox) = outbox.filter(|_| self.turn.settings.recovery.is_on) {
            outbox.record_runs();
        }
        self.members.await_children(
            alloc::vec::Vec::new(),
            RankSet::new(),
            0,
            back_ends,
            self.turn,
        );
    }

    fn control_from_ancestor(&mut self, link: LinkId, control: Control) -> Result<(), WireError> {
        match control {
            Control::Welcome { parent, ancestors, terms, is_responsive, .. } => {
                self.members.ancestry.learn(ancestors, terms, is_responsive, self.turn);
                self.tree_change().adopted(link, parent);
                self.members.begin_heartbeats(self.turn);
            }
            Control::Refused { reason } => {
                self.turn.outputs.push_back(Output::Hangup(link));
                self.tree_change().link_down(link, &reason);
            }
            Control::Referred { rank, reason } => self.tree_change().referred(link, rank, &reason),
            Control::Shutdown => {
                self.tree_change().end_on_purpose(String::from("the front-end ended the network"))
            }
            Control::Probe { probe } => self.turn.answer_probe(link, probe),
            other => return Err(WireError::Unexpected { what: other.name() }),
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
                self.tree_change().reached(child, set(&back_ends)?, points);
            }
            Control::Failed { rank, text } => self.turn.pass_on_failure(rank, text),
            Control::Notice { rank, text } => {
                self.members.children.notice_below(child, rank, text, self.turn)
            }
            Control::Lost { rank, back_ends, reason, cause } => {
                let why = Reason::new(cause, reason);
                self.tree_change().lost_below(child, rank, set(&back_ends)?, why);
            }
            Control::Fault { stream, wave, rank, back_ends, reason, cause } => {
                let (ranks, reason) = (set(&back_ends)?, Reason::new(cause, reason));
                if self.turn.settings.role == Role::FrontEnd {
                    self.streams.fault_below(stream, wave, ranks, reason, self.turn);
                } else {
                    self.streams.pass_on_fault(stream, wave, rank, ranks, reason, self.turn);
                }
            }
            Control::Credit { stream, bytes } => {
                self.streams.credit_from_child(link, stream, bytes, self.turn)
            }
            Control::Acknowledge { stream, wave, offset, .. } => {
                self.streams.acknowledged_by_child(
                    link,
                    stream,
                    Position { wave, offset },
                    self.turn,
                );
            }
            Control::Rejoin { back_ends, covers, former, files } => {
                let former = set(&former)?;
                self.tree_change().rejoin(link, child, set(&back_ends)?, set(&covers)?, &former);
                if self.members.children.link_of(child) == Some(link) {
                    self.members.send_files(link, &files, self.turn);
                }
            }
            Control::Superseded { ranks } => {
                let ranks = set(&ranks)?;
                self.tree_change().supersede_for(child, &ranks);
            }
            Control::Resume { stream, up, down } => {
                let position = |(wave, offset)| Position { wave, offset };
                self.tree_change().resume(link, child, stream, position(up), position(down));
            }
            Control::Resumed => self.tree_change().resumed(link, child),
            Control::Broken { rank, back_ends, reason, cause } => {
                let why = Reason::new(cause, reason);
                self.turn.tell_broken(rank, set(&back_ends)?, why);
            }
            Control::Repaired { rank, adopter, orphans, back_ends, waves } => {
                let waves = waves.into_iter();
                let waves = waves.map(|(stream, first, end)| AffectedWaves { stream, first, end });
                let back_ends = set(&back_ends)?;
                self.turn.tell_repaired(rank, adopter, orphans, back_ends, waves.collect());
            }
            Control::Leaving => self.members.children.leaving(child),
            state @ Control::State { .. } => return self.tree_change().keep_replica(link, state),
            Control::Probe { probe } => self.turn.answer_probe(link, probe),
            Control::Echo { probe, clock } => self.turn.echoed(link, probe, clock),
            other => return Err(WireError::Unexpected { what: other.name() }),
        }
        Ok(())
    }
}

impl Streams {
    /// A process below tells of a fault (front-end): one that costs these back-ends a wave, or one
    /// that costs nothing now.
    fn fault_below(
        &mut self,
        stream: StreamId,
        wave: Option<Wave>,
        ranks: RankSet,
        reason: Reason,
        turn: &mut Turn,
    ) {
        if ranks.is_empty() {
            turn.report_fault(stream, reason.words);
        } else if let Some(stream) = self.get_mut(stream) {
            stream.faults.add(wave, ranks, reason);
        }
    }
}
