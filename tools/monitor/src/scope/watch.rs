//! The front-end's side: a stream for each scope, which is asked as often as the scope says.

use std::time::{Duration, Instant};

use sapwood::{Network, Policy, Stream, Values, Wave, WaveRule};
use sapwood_trace::{Coscheduling, ScopeFigures, TRACE_SCOPE};

use super::{NamedScope, SCOPE, ScopeQuestion};
use crate::effort::cpu_ns;

/// How long one level of the tree waits for others, once one has answered.
const LEVEL_MS: u32 = 1_000;
/// An answer that has not come by then is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A scope that is gathered at the end only may use what one may that is gathered as often as this.
const ONCE: Duration = Duration::from_secs(10);
/// An answer may have at least this number of bytes.
const BYTES_MIN: u64 = 4_096;

/// One scope of a run.
pub(crate) struct ScopeWatch {
    pub(crate) named: NamedScope,
    number: u32,
    stream: Stream,
    wave: Wave,
    /// When the question was asked that has no answer yet.
    asked: Option<Instant>,
    /// When the next one is due; none for the end.
    due: Option<Instant>,
}

/// An answer, with the number of leaves that are not in it.
pub(crate) struct Gathering {
    pub(crate) figures: ScopeFigures,
    pub(crate) missing_leaves: u64,
}

impl ScopeWatch {
    /// Opens the stream.
    ///
    /// # Errors
    /// When the tree is gone.
    pub(crate) fn open(
        network: &Network,
        number: u32,
        named: NamedScope,
    ) -> Result<Self, sapwood::Error> {
        let everyone = network.everyone();
        let parameters = Values::new().scalar(bytes_max(&named));
        let parameters = parameters.scalar(named.scope.part_groups_max().unwrap_or(0));
        let stream = network
            .stream(&everyone)
            .up((TRACE_SCOPE, parameters))
            .wave(WaveRule::Timeout { milliseconds: LEVEL_MS });
        // What one answer has is in no other.
        let stream = stream.policy(Policy::Block).open()?;
        let due = named.every.map(|every| Instant::now() + every);
        Ok(Self { named, number, stream, wave: 0, asked: None, due })
    }

    /// When it is to be asked next.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Asks if it is time, unless an answer is under way.
    pub(crate) fn ask_if_due(&mut self, world_size: u32) {
        let (Some(due), Some(every)) = (self.due, self.named.every) else { return };
        let now = Instant::now();
        if now < due || self.asked.is_some_and(|asked| asked.elapsed() < ANSWER_TIMEOUT) {
            return;
        }
        // A gathering that was missed is not made up for.
        self.due = Some((due + every).max(now));
        self.ask(world_size);
    }

    /// Asks now. A tree of which nothing is left is not asked.
    pub(crate) fn ask(&mut self, world_size: u32) -> bool {
        let time = self.named.every.unwrap_or(ONCE);
        let question = ScopeQuestion {
            number: self.number,
            wave: self.wave,
            world_size,
            cpu_ns: cpu_ns(self.named.scope.cpu_ppm, time),
            bytes_max: bytes_max(&self.named),
            scope: self.named.scope.clone(),
        };
        let is_asked = self.stream.broadcast(SCOPE, question.encode()).is_ok();
        if is_asked {
            self.asked = Some(Instant::now());
            self.wave += 1;
        }
        is_asked
    }

    /// An answer that has come.
    pub(crate) fn take(&mut self) -> Option<Gathering> {
        let answer = self.stream.try_recv().ok()??;
        self.read(&answer)
    }

    /// At the end: takes what is under way, and asks once more.
    pub(crate) fn finish(&mut self, world_size: u32, wait: Duration) -> Vec<Gathering> {
        let deadline = Instant::now() + wait;
        let mut all = Vec::new();
        if self.asked.is_some() {
            all.extend(self.wait(deadline));
        }
        // The program has ended: nothing that is read disturbs it.
        self.named.scope.cpu_ppm = u32::MAX;
        self.named.scope.when = Coscheduling::Any;
        if self.ask(world_size) {
            all.extend(self.wait(deadline));
        }
        all
    }

    fn wait(&mut self, deadline: Instant) -> Option<Gathering> {
        let until = deadline.saturating_duration_since(Instant::now());
        let answer = self.stream.recv_timeout(until).ok()?;
        self.read(&answer)
    }

    fn read(&mut self, answer: &sapwood::Answer) -> Option<Gathering> {
        // A late part has what no other has.
        if !answer.is_late && answer.wave + 1 == self.wave {
            self.asked = None;
        }
        let figures = answer.value().ok().and_then(|values| ScopeFigures::decode(values).ok());
        let mut figures = figures?;
        if let Some(groups) = self.named.scope.reduction.groups_max() {
            figures.keep_largest(groups);
        }
        let missing_leaves = answer.missing.iter().map(|missing| missing.ranks.len()).sum();
        Some(Gathering { figures, missing_leaves })
    }
}

/// Bytes of one answer.
fn bytes_max(named: &NamedScope) -> u64 {
    let seconds = named.every.unwrap_or(ONCE).as_millis();
    let bytes = u128::from(named.scope.bytes_per_s) * seconds / 1_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(BYTES_MIN)
}
