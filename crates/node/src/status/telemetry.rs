//! The telemetry stream: every process that its wave passes adds what it tells of itself.
//!
//! A stream whose only upward filter is [`TELEMETRY`] is one. The front-end sends a packet down,
//! and the wave of the same number comes back. A back-end answers here, without its application's
//! help, as soon as that lets it run; a communication process opens the wave when the request
//! passes, so that it answers in time even if no process below it does. Beside that stream nothing
//! is done for all this but counting.

use alloc::vec::Vec;

use sapwood_link::Position;
use sapwood_packet::{PacketRef, RankSet, StreamId, Tag, Wave};
use sapwood_wire::{Control, ProbeId};

use crate::interface::hops::HopQuestion;
use crate::interface::record::{LinkRecord, NodeRecord, Records};
use crate::interface::{LinkId, Role};
use crate::members::membership::Membership;
use crate::streams::table::Streams;
use crate::streams::telemetry_wave::TelemetryWave;
use crate::turn::Turn;
use crate::turn::counted::nanoseconds;
use crate::waves::table::Entry;

/// The tag of what goes up and down on such a stream.
pub(crate) const TELEMETRY_TAG: Tag = 1;

/// What a request on such a stream asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Its number, which is that of the wave of answers.
    pub(crate) wave: Wave,
    /// What it asks of events.
    pub(crate) question: Option<HopQuestion>,
}

impl Request {
    /// The request that a packet on its way down is.
    pub(crate) fn of(packet: &PacketRef<'_>) -> Self {
        let question = HopQuestion::from_values(packet.values());
        Self { wave: packet.header.wave, question }
    }
}

impl Streams {
    /// A request has passed: the wave of its number is open from here on.
    pub(crate) fn asked(
        &mut self,
        id: StreamId,
        request: Request,
        members: &Membership,
        turn: &mut Turn,
    ) {
        let Request { wave, question } = request;
        let now = turn.now;
        if turn.settings.role == Role::BackEnd {
            let asked = TelemetryWave { since: now, question, ..TelemetryWave::default() };
            let values = self.records(&asked, members, turn).to_values();
            let counted = turn.counted;
            // A wave that has passed is one that this process was not counted in.
            let _ = self.send_values(id, TELEMETRY_TAG, values, Some(wave), turn);
            turn.counted = counted;
            return;
        }
        let Some(stream) = self.get_mut(id) else { return };
        let Some(asked) = &mut stream.telemetry else { return };
        **asked = TelemetryWave { since: now, question, ..TelemetryWave::default() };
        let mut links: Vec<LinkId> =
            stream.slots.iter().filter(|slot| slot.alive).filter_map(|slot| slot.link).collect();
        let position = Position::start_of(wave);
        if position >= stream.gone_until && wave >= stream.ended {
            let Entry { index, wave: open, .. } =
                stream.waves.at(position, &stream.slots, u64::MAX);
            open.header.tag = TELEMETRY_TAG;
            stream.waves.begin(index, now, stream.patience);
        }
        links.extend(turn.parent);
        for link in links {
            turn.send_control(link, &Control::Probe { probe: ProbeId::Heartbeat(now.0) });
        }
        stream.emit_ready(turn);
    }

    /// Adds this process's own part to the waves of telemetry streams that are complete.
    #[inline]
    pub(crate) fn add_records(&mut self, members: &Membership, turn: &mut Turn) {
        if !turn.records_wanted.is_empty() {
            self.add_wanted_records(members, turn);
        }
    }

    #[cold]
    fn add_wanted_records(&mut self, members: &Membership, turn: &mut Turn) {
        while let Some(id) = turn.records_wanted.pop() {
            let Some(at) = self.find(id) else { continue };
            let Some(asked) = self.at(at).telemetry.as_mut() else { continue };
            let asked = core::mem::take(&mut **asked);
            let values = self.records(&asked, members, turn).to_values();
            // Put back: `emit_with_record` reads it there.
            if let Some(place) = &mut self.at(at).telemetry {
                **place = asked;
            }
            self.at(at).emit_with_record(values, turn);
        }
    }

    pub(crate) fn records(
        &mut self,
        asked: &TelemetryWave,
        members: &Membership,
        turn: &mut Turn,
    ) -> Records {
        let now = turn.now;
        let [waves, packets, bytes, interval] = turn.counted.report(now);
        let parent = turn.parent.filter(|_| turn.settings.role != Role::FrontEnd);
        let round_trip = parent.and_then(|link| turn.links.link(link)).map_or(0, |l| l.round_trip);
        let census = members.census(turn.losses.ranks());
        let is_leaf = turn.settings.role == Role::BackEnd;
        let others = || self.iter().filter(|stream| stream.telemetry.is_none());
        let count = |set: &RankSet| u32::try_from(set.len()).unwrap_or(u32::MAX);
        let node = NodeRecord {
            rank: turn.rank(),
            parent: parent.and_then(|_| members.ancestry.processes.first()).map(|(rank, _)| *rank),
            role: turn.settings.role,
            pid: turn.settings.pid,
            expected: if is_leaf { 1 } else { count(&census.expected) },
            connected: if is_leaf { 1 } else { count(&census.connected) },
            lost: count(&census.lost),
            awaited: count(&census.awaited),
            round_trip,
            queued_bytes: self.queued(turn) as u64,
            window_bytes: others().map(|stream| stream.windows(parent.is_some())).sum(),
            fill: others().map(crate::streams::stream::Stream::fill).max().unwrap_or(0),
            kept_bytes: others().map(crate::streams::stream::Stream::kept_bytes).sum(),
            dropped: others().map(|stream| stream.dropped).sum(),
            waves,
            packets,
            bytes,
            interval,
            adopted: turn.counted.adopted,
            gone: turn.counted.gone,
            held: nanoseconds(now, asked.since),
            streams: u32::try_from(others().count()).unwrap_or(u32::MAX),
            wall: turn.wall,
            host: turn.host.clone(),
        };
        let rank = node.rank;
        let mut links = Vec::new();
        for (child, link, back_ends) in members.children.linked() {
            let Some(open) = turn.links.link(link) else { continue };
            links.push(LinkRecord {
                parent: rank,
                child,
                connected: count(back_ends),
                round_trip: open.round_trip,
                unwritten: open.outbox.bytes() as u64,
                arrived: asked.arrival_of(link),
                skew: open.skew.estimate(now),
            });
        }
        let own_links = links.len() + usize::from(parent.is_some());
        let hops = asked.question.map(|question| turn.hops.answer(rank, own_links, &question, now));
        Records { nodes: alloc::vec![node], links, hops: hops.into_iter().collect() }
    }
}

impl crate::streams::stream::Stream {
    /// The windows over all of its links.
    fn windows(&self, has_parent: bool) -> u64 {
        let links = self.slots.iter().filter(|slot| slot.alive).count() + usize::from(has_parent);
        links as u64 * u64::from(self.request.window_bytes)
    }

    /// The fullest of its queues, in thousandths of the window.
    fn fill(&self) -> u32 {
        let alive = self.slots.iter().filter(|slot| slot.alive).count().max(1);
        let down = self.slots.iter().map(|slot| slot.down.waiting_bytes()).max().unwrap_or(0);
        let from_below = self.waves.charged_bytes() / alive;
        let unread = usize::try_from(self.unread).unwrap_or(usize::MAX);
        let fullest = self.sender.waiting_bytes().max(down).max(from_below).max(unread) as u64;
        let window = u64::from(self.request.window_bytes).max(1);
        u32::try_from(fullest.saturating_mul(1000) / window).unwrap_or(u32::MAX)
    }

    fn kept_bytes(&self) -> u64 {
        (self.sender.unacknowledged_bytes() + self.down_retransmit.bytes()) as u64
    }
}
