//! The front-end's side: asks the leaves, and makes a document of what comes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood::{Network, Policy, RankSet, Stream, Wave, WaveRule};
use sapwood_report::freeze::{Freeze, FreezeParts, FreezeReason};
use sapwood_report::nanoseconds;
use sapwood_trace::{Frozen, TRACE_FREEZE};

use super::{FREEZE, FreezeQuestion};
use crate::control::FreezeOrder;

/// How long one level of the tree waits for others, once one has answered.
const LEVEL_MS: u32 = 2_000;
/// Freezes that are under way, and documents that are kept, at most.
const KEPT_MAX: usize = 4;

/// A freeze whose answer has not come.
pub(crate) struct Asked {
    pub(crate) order: FreezeOrder,
    pub(crate) program: String,
    pub(crate) elapsed: Duration,
    pub(crate) reason: FreezeReason,
    pub(crate) statement: String,
}

/// Freezes by their numbers, from 1.
#[derive(Default)]
pub(crate) struct FreezeWatch {
    stream: Option<Stream>,
    begun: u64,
    asked: BTreeMap<u64, Asked>,
    done: BTreeMap<u64, Freeze>,
    /// What is to be frozen once, by the first trigger.
    trigger: Option<FreezeOrder>,
    /// The number of that freeze.
    triggered: Option<u64>,
}

impl FreezeWatch {
    /// With what the first trigger freezes; none for nothing.
    pub(crate) fn new(trigger: Option<FreezeOrder>) -> Self {
        Self { trigger, ..Self::default() }
    }

    /// Freezes that were begun, which is the number of the last one.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// The wave of the next one.
    pub(crate) fn wave(&self) -> Wave {
        self.begun
    }

    /// A document that has come and is kept.
    pub(crate) fn document(&self, number: u64) -> Option<&Freeze> {
        self.done.get(&number)
    }

    /// From when on a rank that comes late to a collective is a trigger, in nanoseconds.
    pub(crate) fn late_ns(&self) -> Option<u64> {
        self.trigger.as_ref()?.late.map(nanoseconds)
    }

    /// What the first trigger freezes, once.
    pub(crate) fn take_trigger(&mut self) -> Option<FreezeOrder> {
        self.trigger.take()
    }

    /// The freeze that was begun last is that of the first trigger.
    pub(crate) fn note_triggered(&mut self) {
        self.triggered = Some(self.begun);
    }

    /// Begins a freeze. A tree of which nothing is left is not asked.
    pub(crate) fn ask(&mut self, network: &Network, question: &FreezeQuestion, asked: Asked) {
        let Some(stream) = self.stream(network) else { return };
        if stream.broadcast(FREEZE, question.encode()).is_err() {
            return;
        }
        self.begun += 1;
        self.asked.insert(self.begun, asked);
        while self.asked.len() > KEPT_MAX {
            self.asked.pop_first();
        }
    }

    /// The stream, opened when it is needed first.
    fn stream(&mut self, network: &Network) -> Option<&mut Stream> {
        if self.stream.is_none() {
            let everyone = network.everyone();
            let wave = WaveRule::Timeout { milliseconds: LEVEL_MS };
            let stream = network.stream(&everyone).up(TRACE_FREEZE).wave(wave);
            self.stream = stream.policy(Policy::Block).open().ok();
        }
        self.stream.as_mut()
    }

    /// Takes the answers that have come; the document of the first trigger, once.
    pub(crate) fn take(&mut self) -> Option<Freeze> {
        while let Some(stream) = &mut self.stream {
            let Ok(Some(answer)) = stream.try_recv() else { break };
            self.note(&answer);
        }
        let triggered = self.triggered?;
        let document = self.done.remove(&triggered)?;
        self.triggered = None;
        Some(document)
    }

    /// Waits for the document of the first trigger.
    pub(crate) fn wait(&mut self, wait: Duration) -> Option<Freeze> {
        let deadline = Instant::now() + wait;
        while let (Some(number), Some(stream)) = (self.triggered, &mut self.stream) {
            if !self.asked.contains_key(&number) {
                break;
            }
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = stream.recv_timeout(until) else { break };
            self.note(&answer);
        }
        self.take()
    }

    fn note(&mut self, answer: &sapwood::Answer) {
        let number = answer.wave + 1;
        let read = answer.value().ok().and_then(|values| Frozen::decode(values).ok());
        let Some(frozen) = read.filter(|_| !answer.is_late) else { return };
        let Some(asked) = self.asked.remove(&number) else { return };
        let seen: RankSet = frozen.ranks.keys().copied().collect();
        let all = match (asked.order.ranks.is_empty(), frozen.world_size.checked_sub(1)) {
            (false, _) => asked.order.ranks.clone(),
            (true, Some(last)) => RankSet::range(0, last),
            (true, None) => RankSet::new(),
        };
        let parts = FreezeParts {
            program: &asked.program,
            elapsed: asked.elapsed,
            reason: asked.reason,
            statement: &asked.statement,
            last: asked.order.last,
            missing: &all.difference(seen.as_ref()),
        };
        self.done.insert(number, Freeze::of(frozen, &parts));
        while self.done.len() > KEPT_MAX {
            self.done.pop_first();
        }
    }
}
