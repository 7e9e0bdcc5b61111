//! Freezes the program while it runs: when another process asks, and once on the first trigger.

use std::time::Duration;

use sapwood_profile::Function;
use sapwood_report::freeze::{Freeze, FreezeReason};
use sapwood_report::{nanoseconds, printable, quantity};

use super::collection::Collection;
use super::control::FreezeOrder;
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
        let asked = Asked {
            order: order.clone(),
            program: self.result.program.clone(),
            elapsed,
            reason,
            statement: self.statement(reason),
        };
        self.freeze.ask(&self.network, &question, asked);
    }

    /// Freezes what was ordered for the first trigger, unless there was one.
    pub(crate) fn trigger_freeze(&mut self, reason: FreezeReason, elapsed: Duration) {
        let Some(order) = self.freeze.take_trigger() else { return };
        self.begin_freeze(&order, reason, elapsed);
        self.freeze.note_triggered();
    }

    /// What is known of the ranks, in a sentence; empty for nothing.
    fn statement(&self, reason: FreezeReason) -> String {
        let outlier = self.result.waits.as_ref().and_then(|waits| waits.outlier);
        if let Some(outlier) = outlier.filter(|_| reason == FreezeReason::Outlier) {
            let function = Function::of(outlier.function).map_or("a collective", |one| one.name);
            let names = self.standing.as_ref().and_then(|watch| watch.latest());
            let name = names.and_then(|standing| standing.names.get(&outlier.key.0));
            let name = name.map_or(String::new(), |name| format!(" on {}", printable(name)));
            let late = quantity::time(outlier.late_ns as f64);
            let (rank, number) = (outlier.rank, outlier.key.1);
            return format!("rank {rank} arrived {late} late at {function} number {number}{name}");
        }
        let held = self.standing.as_ref().and_then(|watch| watch.held());
        held.map(|held| held.stuck(None).statement).unwrap_or_default()
    }

    /// Looks whether a rank has come later to a collective than it may.
    fn look_for_outlier(&mut self, elapsed: Duration) {
        let outlier = self.result.waits.as_ref().and_then(|waits| waits.outlier);
        if let (Some(outlier), Some(most)) = (outlier, self.freeze.late_ns())
            && outlier.late_ns > most
        {
            self.trigger_freeze(FreezeReason::Outlier, elapsed);
        }
    }

    /// Takes what has come; the document of the first trigger, once.
    pub(crate) fn take_freezes(&mut self, elapsed: Duration) -> Option<Freeze> {
        self.look_for_outlier(elapsed);
        self.freeze.take()
    }

    /// At the end: freezes if nothing has triggered that before, and waits for its document.
    pub(crate) fn last_freeze(&mut self, elapsed: Duration, wait: Duration) {
        self.trigger_freeze(FreezeReason::End, elapsed);
        self.result.freeze = self.freeze.wait(wait);
    }
}
