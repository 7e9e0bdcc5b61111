//! The ring in which a process notes events of waves and packets while a session asks for them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_packet::Rank;
use sapwood_ring::Ring;

use crate::interface::Instant;
use crate::interface::hop_waves::{ArrivalSums, HopWaves};
use crate::interface::hops::{
    HOP_EVENTS_MAX, HopEvent, HopForm, HopKind, HopQuestion, ProcessHops,
};

/// The longest time that a session lasts without a further question.
const LEASE_MAX: Duration = Duration::from_secs(3600);

/// Sessions at one time.
const SESSIONS_MAX: usize = 8;

/// What a process notes, if anything.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    recording: Option<Box<Recording>>,
}

#[derive(Debug)]
struct Recording {
    ring: Ring<HopEvent>,
    /// When the last session ends.
    until: Instant,
    sessions: Vec<Session>,
}

/// A reader.
#[derive(Debug)]
struct Session {
    number: u64,
    until: Instant,
    began: u64,
    read: u64,
    lost: u64,
    waves: HopWaves,
}

impl Hops {
    /// Whether events are noted.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.recording.is_some()
    }

    /// Notes an event.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(&mut self, event: HopEvent) {
        let Some(recording) = &mut self.recording else { return };
        if event.time > recording.until.0 {
            // The reader has gone without a word.
            self.recording = None;
            return;
        }
        recording.ring.note(event);
    }

    /// What a question is told by a process of this rank and number of links; it begins, prolongs
    /// or ends its session.
    pub(crate) fn answer(
        &mut self,
        rank: Rank,
        links: usize,
        question: &HopQuestion,
        now: Instant,
    ) -> ProcessHops {
        let most = (links as u64 + 1).saturating_mul(question.most.into());
        let recording = self.recording.get_or_insert_with(|| {
            let room = question.room.clamp(1, HOP_EVENTS_MAX) as usize;
            let ring = Ring::new(room);
            Box::new(Recording { ring, until: now, sessions: Vec::new() })
        });
        let told = recording.answer(rank, most, question, now);
        if recording.sessions.is_empty() {
            self.recording = None;
        }
        told
    }
}

impl Recording {
    fn answer(
        &mut self,
        rank: Rank,
        most: u64,
        question: &HopQuestion,
        now: Instant,
    ) -> ProcessHops {
        self.sessions.retain(|session| session.until >= now || session.number == question.session);
        let known = self.sessions.iter().position(|one| one.number == question.session);
        let is_new = known.is_none();
        let at = match known {
            Some(at) => at,
            None if self.sessions.len() >= SESSIONS_MAX => {
                return ProcessHops { rank, is_refused: true, ..ProcessHops::default() };
            }
            None => {
                self.sessions.push(Session {
                    number: question.session,
                    until: now,
                    began: self.ring.end(),
                    read: self.ring.end(),
                    lost: 0,
                    waves: HopWaves::default(),
                });
                self.sessions.len() - 1
            }
        };
        let told = ProcessHops { rank, is_new, ..self.read(at, most, question) };
        self.sessions[at].until = now + question.lease.min(LEASE_MAX);
        if question.lease.is_zero() {
            self.sessions.swap_remove(at);
        }
        self.until = self.sessions.iter().map(|one| one.until).max().unwrap_or(now);
        told
    }

    fn read(&mut self, at: usize, most: u64, question: &HopQuestion) -> ProcessHops {
        let session = &mut self.sessions[at];
        let (oldest, end) = (self.ring.oldest(), self.ring.end());
        let from = session.read.max(oldest);
        session.lost += from - session.read;
        let until = end.min(from.saturating_add(most));
        session.read = until;
        let mut told = ProcessHops {
            noted: end - session.began,
            lost: session.lost,
            unread: end - until,
            ..ProcessHops::default()
        };
        let wanted = |event: &&HopEvent| question.stream.is_none_or(|only| only == event.stream);
        let events = self.ring.range(from, until).filter(wanted);
        if question.form == HopForm::Events {
            told.events = events.copied().collect();
            return told;
        }
        let mut sums = ArrivalSums::default();
        for event in events {
            if event.kind == HopKind::Late {
                sums.add_late(event);
            }
            session.waves.add(event, |wave| sums.add_wave(&wave));
        }
        told.streams = sums.streams();
        told.children = sums.children();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_an_hour_at_most() {
        const HOUR: u64 = 3_600_000_000_000;
        let mut hops = Hops::default();
        let mut is_new = |session, now| {
            let question = HopQuestion {
                session,
                lease: Duration::MAX,
                room: 16,
                most: 16,
                stream: None,
                form: HopForm::Events,
            };
            hops.answer(0, 1, &question, Instant(now)).is_new
        };
        assert!(is_new(1, 0));
        assert!(!is_new(1, HOUR), "it is prolonged");
        assert!(is_new(2, 2 * HOUR) && !is_new(1, 2 * HOUR));
        assert!(is_new(3, 4 * HOUR));
        assert!(is_new(1, 4 * HOUR), "it was over after three hours");
    }
}
