//! The front-end's side: asks the leaves, and keeps what was found.

use std::time::{Duration, Instant};

use sapwood::{Network, Policy, Stream, Wave, WaveRule};
use sapwood_trace::{FileClock, Findings, Gathered, Ledger, TRACE_WAITS};

use super::question::{Offset, Question, WAITS, WaitsQuestion};
use crate::effort::{UNLIMITED, WaitsEffort};

/// How long one level of the tree waits for others, once one has answered.
const LEVEL_MS: u32 = 1_000;
/// Ends of collectives that are told with one question, at most.
const SETTLED_MAX: usize = 1 << 15;
/// An answer that has not come by then is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two measurements of the clocks of several hosts.
const CLOCKS_INTERVAL: Duration = Duration::from_secs(10);
/// What a measurement may take.
const CLOCKS_TIMEOUT: Duration = Duration::from_millis(500);
/// The first measurement has as many samples of every link.
const CLOCKS_SAMPLES: u32 = 5;
/// Questions at the end, at most.
const LAST_QUESTIONS_MAX: u32 = 256;
/// Answers in turn that bring nothing new.
const QUIET_ANSWERS: u32 = 2;

/// What is asked of the leaves, and what was found.
pub(crate) struct WaitsInquiry {
    stream: Stream,
    ledger: Ledger,
    wave: Wave,
    /// When the question was asked that has no answer yet.
    asked: Option<Instant>,
    /// When the last question was asked.
    last: Instant,
    effort: WaitsEffort,
    is_spread: bool,
    offsets: Vec<Offset>,
    measured: Option<Instant>,
}

/// What answers have brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitsNews {
    /// None has come.
    None,
    /// One has come, with nothing new: what was found is known until a later time.
    Answer,
    /// One has come with something new.
    Findings,
}

impl WaitsInquiry {
    /// Opens the stream.
    ///
    /// # Errors
    /// When the tree is gone.
    pub(crate) fn open(
        network: &Network,
        is_spread: bool,
        effort: WaitsEffort,
    ) -> Result<Self, sapwood::Error> {
        let everyone = network.everyone();
        let wave = WaveRule::Timeout { milliseconds: LEVEL_MS };
        // What one answer has is in no other.
        let stream = network.stream(&everyone).up(TRACE_WAITS).wave(wave);
        Ok(Self {
            stream: stream.policy(Policy::Block).open()?,
            ledger: Ledger::default(),
            wave: 0,
            asked: None,
            last: Instant::now(),
            effort,
            is_spread,
            offsets: Vec::new(),
            measured: None,
        })
    }

    /// What was found so far.
    pub(crate) fn findings(&self) -> &Findings {
        self.ledger.findings()
    }

    /// Asks, unless an answer is still under way. A tree of which nothing is left is not asked.
    pub(crate) fn ask(&mut self, network: &mut Network, world_size: u32) {
        if self.asked.is_some_and(|asked| asked.elapsed() < ANSWER_TIMEOUT) {
            return;
        }
        self.measure(network);
        let question = Question {
            wave: self.wave,
            world_size,
            is_spread: self.is_spread,
            clock: self.reference(),
            offsets: self.offsets.clone(),
            settled: self.ledger.take_settled(SETTLED_MAX),
        };
        let now = Instant::now();
        let cpu_ns = self.effort.cpu_ns(now - self.last);
        let question = WaitsQuestion { question, when: self.effort.when(), cpu_ns };
        if self.stream.broadcast(WAITS, question.encode()).is_ok() {
            self.asked = Some(now);
            self.last = now;
            self.wave += 1;
        }
    }

    /// The offsets of the leaves' clocks, where they run on several hosts.
    fn measure(&mut self, network: &mut Network) {
        let is_due = self.measured.is_none_or(|before| before.elapsed() >= CLOCKS_INTERVAL);
        if !self.is_spread || !is_due {
            return;
        }
        let samples = if self.measured.is_none() { CLOCKS_SAMPLES } else { 1 };
        self.measured = Some(Instant::now());
        // Those that are not known claim nothing against others.
        if let Some(offsets) = measured(network, samples) {
            self.offsets = offsets;
        }
    }

    /// The clock by which all files of one host are read, once it is known.
    pub(crate) fn reference(&self) -> Option<FileClock> {
        self.ledger.reference().map(|(_, clock)| clock)
    }

    /// Takes the answers that have come.
    pub(crate) fn take(&mut self) -> WaitsNews {
        let mut news = WaitsNews::None;
        while let Ok(Some(answer)) = self.stream.try_recv() {
            let is_new = self.absorb(&answer);
            news = news.max(if is_new { WaitsNews::Findings } else { WaitsNews::Answer });
        }
        news
    }

    fn absorb(&mut self, answer: &sapwood::Answer) -> bool {
        // A late part has what no other has.
        if !answer.is_late && answer.wave + 1 == self.wave {
            self.asked = None;
        }
        let gathered = answer.value().ok().and_then(|values| Gathered::decode(values).ok());
        gathered.is_some_and(|gathered| self.ledger.absorb(gathered))
    }

    /// Asks until nothing new comes, within a time.
    pub(crate) fn finish(
        mut self,
        network: &mut Network,
        world_size: u32,
        wait: Duration,
    ) -> Findings {
        let deadline = Instant::now() + wait;
        self.effort = UNLIMITED;
        let mut quiet = 0;
        for _ in 0..LAST_QUESTIONS_MAX {
            if quiet == QUIET_ANSWERS || Instant::now() >= deadline {
                break;
            }
            // An answer may be under way.
            if self.asked.is_none() {
                self.ask(network, world_size);
            }
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.stream.recv_timeout(until) else { break };
            let is_new = self.absorb(&answer) || self.ledger.has_settled();
            quiet = if is_new { 0 } else { quiet + 1 };
        }
        self.ledger.close()
    }
}

/// The offsets of the leaves' clocks, as they are now; those that are not known are left out.
pub(crate) fn offsets(network: &mut Network) -> Vec<Offset> {
    measured(network, CLOCKS_SAMPLES).unwrap_or_default()
}

fn measured(network: &mut Network, samples: u32) -> Option<Vec<Offset>> {
    let clocks = network.clocks(samples, CLOCKS_TIMEOUT).ok()?;
    let leaf = |clock: &sapwood::Clock| Offset {
        leaf: clock.rank,
        ahead: clock.ahead,
        error: clock.error,
    };
    Some(clocks.known.iter().map(leaf).collect())
}
