//! Answers of the front-end: the members that they stand for, and those that are missing.

use crate::interface::{Answer, Delivery, Missing};
use crate::streams::stream::Stream;
use crate::transform::route::Route;
use crate::turn::Turn;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use sapwood_link::Assembled;
use sapwood_packet::{
    Body, Header, Packet, PacketRef, RankSet, Slab, Wave, answer_wave, question_of, stretch_of,
};
use sapwood_wire::Cause;

impl Stream {
    /// What has come to the front-end on a stream goes to the application.
    pub(crate) fn answer(&mut self, packet: PacketRef<'_>, shared: Option<Body>, turn: &mut Turn) {
        if packet.more_waves > 0 {
            for index in 0..=packet.more_waves {
                self.answer(packet.part_of_run(index, 1), None, turn);
            }
            return;
        }
        let mut header = packet.header;
        let body = match (packet.chunk, shared) {
            (None, Some(body)) => Some(body),
            (None, None) => Some(Body::from(Slab::copy_of(packet.body))),
            (Some(chunk), shared) => {
                let bytes = shared.as_ref().map_or(packet.body, Body::as_bytes);
                let key = (header.origin, header.wave);
                let contributors = packet.contributors.to_set();
                if chunk.offset == 0 {
                    self.assemblies.use_memory(turn.pool.take_used(chunk.total as usize));
                }
                match self.assemblies.add(key, chunk, &contributors, bytes, &turn.pool) {
                    Assembled::Partial => return,
                    Assembled::Whole(slab, _) => {
                        let body = Body::from(slab);
                        turn.pool.give_later(&body);
                        Some(body)
                    }
                    lost => {
                        self.dropped += 1;
                        if let Assembled::Lacking(lacking) = lost {
                            let cause = Cause::OutOfMemory;
                            self.tell_failure(header.wave, contributors, cause, &lacking, turn);
                        }
                        if !header.ends_wave {
                            return;
                        }
                        // The wave has its answer all the same, which says why it lacks a value.
                        header.void = true;
                        None
                    }
                }
            }
        };
        // A void answer keeps its contributors: the filter has seen their packets.
        let is_lost = body.is_none();
        let contributors = if is_lost { RankSet::new() } else { packet.contributors.to_set() };
        let packet = body.filter(|_| !header.void).map(|body| {
            let mut whole = Packet::from_parts(header, packet.format.to_format(), body);
            whole.contributors = packet.contributors.to_set();
            whole
        });
        self.deliver_answer(header, packet, contributors, turn);
    }

    fn deliver_answer(
        &mut self,
        header: Header,
        packet: Option<Packet>,
        contributors: RankSet,
        turn: &mut Turn,
    ) {
        if self.is_closing() {
            // No process asks for it any more; only packets on their way down are still to go.
            return;
        }
        let present = self.present_in(&header, &contributors);
        let missing = match present {
            Some(present) if present != self.members => self.missing(header.wave, &present, turn),
            // Nothing is waited for, but a filter that failed has a reason to give.
            None if header.void && !header.late => self.faults.take(header.wave),
            _ => Vec::new(),
        };
        if header.ends_wave && !header.is_last() {
            drop(self.faults.take(header.wave));
            // An orphan reports faults of answered waves again: they are forgotten.
            if !self.is_immediate() && !header.late {
                self.faults.forget_before(header.wave);
            }
        }
        if packet.is_none() && missing.is_empty() {
            return;
        }
        let answer = Answer {
            stream: self.id,
            wave: header.wave,
            packet,
            contributors,
            missing,
            is_late: header.late,
        };
        let delivery = Delivery::Answer(answer);
        self.unread += u64::from(delivery.cost());
        turn.deliveries.push_back(delivery);
    }

    /// Which members a wave lacks, grouped by why.
    fn missing(&self, wave: u64, contributors: &RankSet, turn: &Turn) -> Vec<Missing> {
        let mut left = self.members.difference(contributors.as_ref());
        let mut missing = Vec::new();
        let mut take = |left: &mut RankSet, ranks: &RankSet, cause: Cause, reason: &str| {
            let mut part = left.clone();
            part.intersect_with(ranks.as_ref());
            if !part.is_empty() {
                left.subtract(part.as_ref());
                missing.push(Missing::new(part, cause, reason));
            }
        };
        for fault in self.faults.of(wave) {
            take(&mut left, &fault.ranks, fault.cause, &fault.reason);
        }
        // A back-end may have been lost, come back and been lost again: the last loss explains this
        // wave.
        for lost in turn.losses.latest_first() {
            take(&mut left, &lost.ranks, lost.cause, &lost.reason);
        }
        let absent = format!("was not connected when {} was forwarded", name_of(wave));
        take(&mut left, &turn.losses.have_been_absent, Cause::Away, &absent);
        let rest = left.clone();
        let (cause, reason) = reason_of_rest(self, wave);
        take(&mut left, &rest, cause, &reason);
        missing
    }

    /// The members in the wave that an answer ends, or `None` if it names no missing ones: it is
    /// outside of the waves, or packets that pass one by one are still to come.
    fn present_in(&mut self, header: &Header, contributors: &RankSet) -> Option<RankSet> {
        if self.is_immediate() || header.is_direct() || header.late {
            return None;
        }
        if self.route != Route::Pass {
            return Some(contributors.clone());
        }
        self.passed_on.union_with(contributors.as_ref());
        header.ends_wave.then(|| core::mem::take(&mut self.passed_on))
    }
}

/// Why members that are alive are not in a wave.
fn reason_of_rest(stream: &Stream, wave: Wave) -> (Cause, String) {
    let name = name_of(wave);
    match stream.patience {
        Some(patience) => {
            let mut words = format!("no answer within {} ms", patience.as_millis());
            if stream.levels > 1 {
                // Processes below have given up sooner.
                words += &format!(", shared out among {} levels", stream.levels);
            }
            (Cause::Late, words)
        }
        None if stream.rule.is_some() => {
            (Cause::Late, format!("had not arrived when the stream's wave rule forwarded {name}"))
        }
        // It may have been given up and have come back below a process that was cut off itself.
        None if stream.resumed_until > 0 => {
            (Cause::Skipped, format!("is not in {name}: it skipped the wave, or was not connected"))
        }
        None => (Cause::Skipped, format!("sent nothing in {name}")),
    }
}

/// What people know a wave by.
fn name_of(wave: Wave) -> String {
    if let Some(question) = question_of(wave) {
        return format!("the answer to question {question}");
    }
    let behind = stretch_of(wave).and_then(|question| Some((question, answer_wave(question)?)));
    match behind {
        Some((question, answer)) => {
            format!("wave {} behind the answer to question {question}", wave - answer)
        }
        None => format!("wave {wave}"),
    }
}
