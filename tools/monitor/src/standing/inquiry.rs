//! The front-end's side: asks the leaves, and keeps the latest answer.

use std::time::{Duration, Instant};

use sapwood::{Network, Policy, Stream, Values, Wave, WaveRule};
use sapwood_trace::{Standing, TRACE_STANDING};

use super::STANDING;

/// How long one level of the tree waits for others, once one has answered.
const LEVEL_MS: u32 = 500;
/// An answer that has not come by then is not waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// What is asked of the leaves, and what they have answered last.
pub(crate) struct StandingInquiry {
    stream: Stream,
    wave: Wave,
    /// When the question was asked that has no answer yet.
    asked: Option<Instant>,
    latest: Option<Standing>,
}

impl StandingInquiry {
    /// Opens the stream.
    ///
    /// # Errors
    /// When the tree is gone.
    pub(crate) fn open(network: &Network) -> Result<Self, sapwood::Error> {
        let everyone = network.everyone();
        let wave = WaveRule::Timeout { milliseconds: LEVEL_MS };
        let stream = network.stream(&everyone).up(TRACE_STANDING).wave(wave);
        let stream = stream.policy(Policy::DropOldest).open()?;
        Ok(Self { stream, wave: 0, asked: None, latest: None })
    }

    /// The number of the next question.
    pub(crate) fn wave(&self) -> Wave {
        self.wave
    }

    /// Asks, unless an answer is still under way.
    pub(crate) fn ask(&mut self, question: Values) {
        if self.asked.is_some_and(|asked| asked.elapsed() < ANSWER_TIMEOUT) {
            return;
        }
        if self.stream.broadcast(STANDING, question).is_ok() {
            self.asked = Some(Instant::now());
            self.wave += 1;
        }
    }

    /// The answer that has come since, if one has.
    pub(crate) fn take(&mut self) -> Option<&Standing> {
        let mut has_come = false;
        while let Ok(Some(answer)) = self.stream.try_recv() {
            has_come |= self.absorb(&answer);
        }
        self.latest.as_ref().filter(|_| has_come)
    }

    /// Asks for what is so from now on, and waits this long for the answer. Gives the latest one:
    /// if this answer does not come in time, one of a moment before, where there is any.
    pub(crate) fn ask_now(
        &mut self,
        question: impl FnOnce(Wave) -> Values,
        wait: Duration,
    ) -> Option<&Standing> {
        // An answer that is under way does not count: ranks may have died since.
        self.asked = None;
        self.ask(question(self.wave));
        self.wait(wait);
        self.latest.as_ref()
    }

    /// Waits for the answer to the last question, if it has not come.
    fn wait(&mut self, wait: Duration) {
        let deadline = Instant::now() + wait;
        let wanted = self.wave;
        while self.asked.is_some() && wanted == self.wave {
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.stream.recv_timeout(until) else { break };
            self.absorb(&answer);
        }
    }

    fn absorb(&mut self, answer: &sapwood::Answer) -> bool {
        if answer.wave + 1 == self.wave {
            self.asked = None;
        }
        let read = answer.value().ok().and_then(|values| Standing::decode(values).ok());
        let Some(mut standing) = read.filter(|_| !answer.is_late) else { return false };
        if let Some(before) = &self.latest {
            standing.note_since(before);
            // Of a communicator that was freed meanwhile the name is known.
            for (&identity, name) in &before.names {
                standing.names.entry(identity).or_insert_with(|| name.clone());
            }
        }
        self.latest = Some(standing);
        true
    }
}
