//! The synchronisation rule of a stream: a user's, which decides when a wave goes on that somebody
//! has not given a part to yet. It is asked about the first open wave alone, when another child has
//! given its part, and when the time is up that the rule has named.

use alloc::boxed::Box;
use core::fmt;

use sapwood_filter::{Arrivals, Synchronisation, Verdict};

use crate::Instant;
use crate::lane::Place;
use crate::membership::END;
use crate::stream::Stream;

/// A rule, and what it was asked last.
pub(crate) struct Decider {
    rule: Box<dyn Synchronisation>,
    /// Which wave, and how many children it still waited for.
    asked: Option<(Place, u32)>,
    /// When it wants to be asked again.
    due: Option<Instant>,
}

impl Decider {
    pub(crate) fn new(rule: Box<dyn Synchronisation>) -> Self {
        Self { rule, asked: None, due: None }
    }
}

impl Stream {
    /// Asks the rule, if there is one and something is new. A wave that it lets go is ready.
    #[inline]
    pub(crate) fn consult_rule(&mut self, rank: u32, is_root: bool, now: Instant) {
        if self.rule.is_some() {
            self.consult(rank, is_root, now);
        }
    }

    fn consult(&mut self, rank: u32, is_root: bool, now: Instant) {
        let Self { rule, waves, slots, below, id, .. } = self;
        let Some(decider) = rule else { return };
        let Some(wave) = waves.open.front_mut() else {
            decider.due = None;
            return;
        };
        let news = Some((wave.place, wave.waiting));
        let is_due = decider.due.is_some_and(|due| due <= now);
        let is_ready = wave.waiting == 0 || wave.deadline.is_some_and(|deadline| deadline <= now);
        if is_ready || !wave.has_values() || decider.asked == news && !is_due {
            return;
        }
        decider.asked = news;
        decider.due = None;
        let place = wave.place;
        let arrived = slots.iter().filter(|slot| slot.next > place && slot.next < END).count();
        let arrived = arrived as u32;
        let arrivals = Arrivals {
            stream: *id,
            wave: place.wave,
            rank,
            is_root,
            arrived,
            expected: arrived + wave.waiting,
            contributors: wave.contributors.as_ref(),
            back_ends: below.len() as u32,
            elapsed: now.since(wave.begun),
        };
        match decider.rule.decide(&arrivals) {
            Ok(Verdict::Go) => wave.deadline = Some(now),
            Ok(Verdict::Wait) => {}
            Ok(Verdict::WaitFor(time)) => decider.due = Some(now + time),
            Err(error) => {
                wave.fault = Some(error);
                wave.deadline = Some(now);
            }
        }
    }

    /// Whether the clock may let its waves go on.
    pub(crate) fn is_timed(&self) -> bool {
        self.patience.is_some() || self.rule.is_some()
    }

    /// When the first wave may go on, or its rule wants to be asked.
    pub(crate) fn wave_due(&self) -> Option<Instant> {
        let due = self.rule.as_ref().and_then(|decider| decider.due);
        self.waves.deadline().into_iter().chain(due).min()
    }
}

impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decider({:?}, {:?})", self.asked, self.due)
    }
}
