//! Filter failures of a stream: which back-ends lack in which waves, and why.
//!
//! At the front-end they are held until the wave's answer is delivered, elsewhere until the wave is
//! safe, so that a new parent can be told again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{RankSet, Wave};

use crate::interface::{Missing, Reason};

/// Waves whose failures are held at a time; those of the earliest are dropped.
const WAVES_MAX: usize = 1024;

/// The failures that are held.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    of_waves: BTreeMap<Wave, Vec<Missing>>,
    /// Of every wave: filters that could not be made.
    lasting: Vec<Missing>,
}

impl Faults {
    /// A filter has failed one wave, or, where it is none, all of them.
    pub(crate) fn add(&mut self, wave: Option<Wave>, ranks: RankSet, reason: Reason) {
        let known = match wave {
            Some(wave) => self.of_waves.entry(wave).or_default(),
            None => &mut self.lasting,
        };
        let mut news = ranks.clone();
        known.iter().for_each(|known| news.subtract(known.ranks.as_ref()));
        // What explains no further back-end is not kept, however often it is said.
        if known.is_empty() || !news.is_empty() {
            known.push(reason.of(ranks));
        }
        while self.of_waves.len() > WAVES_MAX {
            self.of_waves.pop_first();
        }
    }

    /// Those that a wave lacks back-ends by.
    pub(crate) fn of(&self, wave: Wave) -> impl Iterator<Item = &Missing> {
        self.of_waves.get(&wave).into_iter().flatten().chain(&self.lasting)
    }

    /// All, each with its wave; none for those of every wave.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<Wave>, &Missing)> {
        let of_waves = self.of_waves.iter();
        let of_waves = of_waves.flat_map(|(&wave, of)| of.iter().map(move |of| (Some(wave), of)));
        of_waves.chain(self.lasting.iter().map(|of| (None, of)))
    }

    /// Takes out those of one wave.
    pub(crate) fn take(&mut self, wave: Wave) -> Vec<Missing> {
        self.of_waves.remove(&wave).unwrap_or_default()
    }

    /// Drops those of all waves before one.
    pub(crate) fn forget_before(&mut self, wave: Wave) {
        while self.of_waves.first_key_value().is_some_and(|(&first, _)| first < wave) {
            self.of_waves.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_wire::Cause;

    use super::*;

    fn failed(words: &str) -> Reason {
        Reason::new(Cause::FilterFailed, words)
    }

    #[test]
    fn a_filter_that_could_not_be_made_fails_every_wave() {
        let mut faults = Faults::default();
        faults.add(None, RankSet::range(0, 1), failed("no such file"));
        faults.add(Some(4), RankSet::range(2, 2), failed("division by zero"));
        let reasons = |faults: &Faults, wave| {
            faults.of(wave).map(|fault| fault.reason.clone()).collect::<Vec<_>>()
        };
        assert_eq!(reasons(&faults, 4), ["division by zero", "no such file"]);
        assert_eq!(reasons(&faults, 5), ["no such file"]);
        faults.forget_before(5);
        assert_eq!(faults.all().map(|(wave, _)| wave).collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn what_explains_no_further_back_end_is_dropped() {
        let mut faults = Faults::default();
        faults.add(Some(1), RankSet::range(0, 3), failed("failed"));
        faults.add(Some(1), RankSet::range(2, 3), failed("failed again"));
        assert_eq!(faults.take(1).len(), 1);
        assert!(faults.take(1).is_empty());
    }
}
