//! One stream of the analysis at the front-end: questions down, merged parts up.

use std::collections::VecDeque;
use std::marker::PhantomData;

use sapwood::{Network, Policy, Result, Stream, Wave, WaveRule};
use sapwood_profile::Part;

use super::question::{Head, Question};

/// How long one level of the tree waits for the others, once one has answered.
const WAVE_MS: u32 = 2_000;

/// A stream whose answers are merged parts.
pub struct Line<P> {
    stream: Stream,
    asked: Wave,
    /// Waves that are not answered yet, and the moments that they ask about.
    open: VecDeque<(Wave, u64)>,
    part: PhantomData<fn() -> P>,
}

/// An answer.
pub struct Came<P> {
    /// The moment that it is of.
    pub round: u64,
    /// What came; nothing when no leaf has answered, or the packet cannot be read.
    pub part: Option<P>,
    /// Bytes of the packet.
    pub bytes: u64,
}

impl<P: Part> Line<P> {
    /// Opens the stream to all leaves.
    ///
    /// # Errors
    /// When the network has ended.
    pub fn open(network: &Network) -> Result<Self> {
        let stream = network.stream(&network.everyone()).up(P::FILTER);
        let rule = WaveRule::Timeout { milliseconds: WAVE_MS };
        let stream = stream.wave(rule).policy(Policy::DropOldest).open()?;
        Ok(Self { stream, asked: 0, open: VecDeque::new(), part: PhantomData })
    }

    /// Asks all leaves. A tree of which nothing is left is not asked.
    pub fn ask(&mut self, head: Head, question: &Question) {
        let values = question.encode(head, self.asked);
        if self.stream.broadcast(question.tag(), values).is_ok() {
            self.open.push_back((self.asked, head.round));
            self.asked += 1;
        }
    }

    /// Takes the answers that have come. A part that came after its wave was answered is passed
    /// over.
    pub fn take(&mut self) -> Vec<Came<P>> {
        let mut all = Vec::new();
        while !self.open.is_empty() {
            let answer = match self.stream.try_recv() {
                Ok(Some(answer)) if answer.is_late => continue,
                Ok(Some(answer)) => answer,
                Ok(None) => break,
                Err(_) => {
                    // No leaf is left: none of the waves will be answered.
                    self.open.clear();
                    break;
                }
            };
            let Some(at) = self.open.iter().position(|(wave, _)| *wave == answer.wave) else {
                continue;
            };
            let round = self.open.remove(at).map_or(0, |(_, round)| round);
            let values = answer.value().ok();
            let bytes = values.map_or(0, |values| values.body().len() as u64);
            all.push(Came { round, part: values.and_then(|one| P::decode(one).ok()), bytes });
        }
        all
    }

    /// The moments that are asked about and not answered.
    pub fn open_rounds(&self) -> impl Iterator<Item = u64> {
        self.open.iter().map(|&(_, round)| round)
    }
}
