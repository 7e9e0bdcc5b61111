//! Events of waves and packets, noted while they are asked for.

use sapwood_packet::{PacketRef, Wave};

use crate::interface::LinkId;
use crate::interface::hops::{HopEvent, HopKind};
use crate::streams::stream::Stream;
use crate::turn::Turn;
use crate::turn::links::Peer;
use crate::waves::open_wave::{Arrived, OpenWave};

impl Stream {
    /// A child's part of a wave has come, or the last piece of one.
    #[cold]
    pub(crate) fn note_arrival(&self, link: LinkId, arrived: &Arrived<'_>, turn: &mut Turn) {
        let packet = &arrived.packet;
        let header = packet.header;
        let length = arrived.body().len() as u64;
        let is_whole = packet.chunk.is_none_or(|chunk| chunk.offset + length >= chunk.total);
        let is_part = header.ends_wave && !header.is_direct() && !header.is_last();
        let Some(Peer::Child(child)) = turn.links.link(link).map(|open| open.peer) else { return };
        if !is_part || !is_whole || self.is_immediate() {
            return;
        }
        let is_late = header.late || header.wave < self.ended;
        turn.hops.note(HopEvent {
            time: turn.now.0,
            wave: header.wave,
            stream: self.id,
            other: child,
            waves: packet.more_waves + 1,
            kind: if is_late { HopKind::Late } else { HopKind::Arrived },
        });
    }

    /// A wave has gone on, or a part of a large one.
    #[cold]
    pub(crate) fn note_wave_sent(&self, wave: &OpenWave, turn: &mut Turn) {
        if self.telemetry.is_some() || self.ended <= wave.position.wave {
            return;
        }
        let awaited = self.slots.iter().filter(|slot| slot.is_awaited()).count();
        turn.hops.note(HopEvent {
            time: turn.now.0,
            wave: wave.position.wave,
            stream: self.id,
            other: u32::try_from(awaited).unwrap_or(u32::MAX),
            waves: wave.more + 1,
            kind: HopKind::SentUp,
        });
    }

    /// The application of this back-end has sent a wave.
    #[cold]
    pub(crate) fn note_own_sent(&self, wave: Wave, turn: &mut Turn) {
        // A stream without waves has no wave that goes on anywhere else.
        if self.telemetry.is_some() || self.is_immediate() {
            return;
        }
        turn.hops.note(HopEvent {
            time: turn.now.0,
            wave,
            stream: self.id,
            other: 0,
            waves: 1,
            kind: HopKind::SentUp,
        });
    }
}

/// A packet of the front-end's has passed on its way down, or the last piece of one.
#[cold]
pub(crate) fn note_down(packet: &PacketRef<'_>, turn: &mut Turn) {
    let length = packet.body.len() as u64;
    let is_whole = packet.chunk.is_none_or(|chunk| chunk.offset + length >= chunk.total);
    if !is_whole || !packet.header.ends_wave || packet.header.is_direct() {
        return;
    }
    turn.hops.note(HopEvent {
        time: turn.now.0,
        wave: packet.header.wave,
        stream: packet.header.stream,
        other: 0,
        waves: 1,
        kind: HopKind::Down,
    });
}
