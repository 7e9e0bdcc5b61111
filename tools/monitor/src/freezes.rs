//! Freezes the program while it runs: when another process asks, and once on the first trigger.

use std::time::Duration;

use sapwood_report::freeze::{Freeze, FreezeReason};
use sapwood_report::why::Stuck;

use super::collection::Collection;
use super::control::FreezeOrder;
use super::control::request::nanoseconds;
use super::freeze::{Asked, FreezeQuestion};
use super::waits::{Question, offsets};

impl Collection {
    /// Begins a freeze; its number is [`FreezeWatch::begun`](super::freeze::FreezeWatch::begun)
    /// then.
    pub(crate) fn begin_freeze(
        &mut self,
        order: &FreezeOrder,
        reason: FreezeReason,
        elapsed: Duration,
    ) {
        let is_spread = self.is_spread();
        let question = FreezeQuestion {
            clocks: Question {
                wave: self.freeze.wave(),
                world_size: self.world_size,
                is_spread,
                clock: self.waits.as_ref().and_then(|waits| waits.reference()),
                offsets: if is_spread { offsets(&mut self.network) } else { Vec::new() },
                settled: Vec::new(),
            },
            last_ns: nanoseconds(order.last),
            long_ns: nanoseconds(self.long),
            ranks: order.ranks.clone(),
        };
        let held = self.standing.as_ref().and_then(|watch| watch.held());
        let stuck = held.map(|held| Stuck::of(held.at, &held.verdict, &held.standing));
        let asked = Asked {
            order: order.clone(),
            program: self.program.clone(),
            elapsed,
            reason,
            statement: stuck.map(|stuck| stuck.statement).unwrap_or_default(),
        };
        self.freeze.ask(&self.network, &question, asked);
    }

    /// Freezes what was ordered for the first trigger, unless there was one.
    pub(crate) fn trigger_freeze(&mut self, reason: FreezeReason, elapsed: Duration) {
        let Some(order) = self.freeze.take_trigger() else { return };
        self.begin_freeze(&order, reason, elapsed);
        self.freeze.note_triggered();
    }

    /// Takes what has come; the document of the first trigger, once.
    pub(crate) fn take_freezes(&mut self) -> Option<Freeze> {
        self.freeze.take()
    }

    /// At the end: freezes if nothing has triggered that before, and waits for its document.
    pub(crate) fn last_freeze(&mut self, elapsed: Duration, wait: Duration) {
        self.trigger_freeze(FreezeReason::End, elapsed);
        self.result.freeze = self.freeze.wait(wait);
    }
}
