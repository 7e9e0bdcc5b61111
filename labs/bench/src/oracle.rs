//! Answers that tell exactly which back-ends are in them, how often, and for which wave.
//!
//! Owns both ends: what a back-end sends in each wave of a flow ([`Flow`]), and what the front-end
//! makes of the sums ([`Oracle`]). Each back-end has a byte of its own that it sets to one, so that
//! the sum counts every back-end separately; a last word mixes rank and wave. The oracle believes
//! nothing that the answer says of itself: it compares that with the count.

use std::collections::BTreeMap;

use sapwood::{Answer, BackEnd, Error, Rank, Received, Tag, Wave};

use super::leaf::TAG;
use sapwood_command_line::exit::Failure;

/// Asks for waves on the stream that it comes on, without end: one number, how many back-ends the
/// network has.
pub(super) const FLOW: Tag = TAG + 5;

/// Back-ends that one word counts, a byte each.
const COUNTED_PER_WORD: usize = 8;

/// The last word repeats after this number of waves, so that sums over many back-ends cannot
/// overflow.
const WAVE_PERIOD: u64 = 1 << 32;

/// Waves that may be missing at once before a network counts as broken.
const OPEN_WAVES_MAX: usize = 1 << 20;

/// What a back-end sends in a wave.
struct Flow {
    words: Vec<u64>,
    rank: Rank,
}

impl Flow {
    fn new(rank: Rank, back_ends: usize) -> Self {
        let mut words = vec![0; back_ends.div_ceil(COUNTED_PER_WORD) + 1];
        let at = rank as usize;
        if let Some(word) = words.get_mut(at / COUNTED_PER_WORD) {
            *word = 1 << (8 * (at % COUNTED_PER_WORD));
        }
        Self { words, rank }
    }

    fn in_wave(&mut self, wave: Wave) -> &[u64] {
        if let Some(last) = self.words.last_mut() {
            *last = mark(self.rank, wave);
        }
        &self.words
    }
}

fn mark(rank: Rank, wave: Wave) -> u64 {
    (u64::from(rank) + 1) * (wave % WAVE_PERIOD + 1)
}

/// Sends wave after wave until the stream closes or the network ends.
pub(super) fn flow(back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
    let back_ends = received.values().scalar::<u64>(0)?;
    let mut flow = Flow::new(back_end.rank(), usize::try_from(back_ends).unwrap_or(0));
    for wave in 0.. {
        back_end.send_in_wave(received.stream, wave, TAG, flow.in_wave(wave))?;
    }
    Ok(())
}

/// What became of waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fates {
    /// In which every back-end was exactly once, in one answer or in several.
    pub whole: u64,
    /// Waves that lacked a back-end to the end.
    pub lost: u64,
    /// Waves that counted a back-end more than once.
    pub doubled: u64,
    /// Answers that stand for others than they say, or whose values are of another wave.
    pub wrong: u64,
}

impl Fates {
    pub(super) fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.wrong += other.wrong;
    }
}

/// Follows every wave of one flow.
pub(super) struct Oracle {
    back_ends: usize,
    /// All waves below this one are whole, or open.
    seen_until: Wave,
    /// Waves that lack a back-end so far: how often each back-end was there.
    open: BTreeMap<Wave, Vec<u8>>,
    fates: Fates,
}

impl Oracle {
    /// For a flow that has just begun.
    pub(super) fn new(back_ends: usize) -> Self {
        Self { back_ends, seen_until: 0, open: BTreeMap::new(), fates: Fates::default() }
    }

    /// Looks at an answer; gives whether every back-end is in this one.
    pub(super) fn look(&mut self, answer: &Answer) -> Result<bool, Failure> {
        let counts = self.counts(answer)?;
        while self.seen_until <= answer.wave {
            if self.open.len() == OPEN_WAVES_MAX {
                return Err(Failure::own(&format!(
                    "after wave {} comes wave {}: this network has lost its place",
                    self.seen_until, answer.wave
                )));
            }
            self.open.insert(self.seen_until, vec![0; self.back_ends]);
            self.seen_until += 1;
        }
        let is_complete = counts.iter().all(|count| *count == 1);
        let Some(so_far) = self.open.get_mut(&answer.wave) else {
            // It was whole before.
            self.fates.doubled += u64::from(counts.iter().any(|count| *count > 0));
            return Ok(false);
        };
        let mut is_doubled = false;
        for (sum, count) in so_far.iter_mut().zip(&counts) {
            is_doubled |= *count > 0 && *sum + *count > 1;
            *sum = sum.saturating_add(*count).min(1);
        }
        self.fates.doubled += u64::from(is_doubled);
        if so_far.iter().all(|sum| *sum == 1) {
            self.open.remove(&answer.wave);
            self.fates.whole += 1;
        }
        Ok(is_complete)
    }

    /// Whether some wave is not whole so far.
    pub(super) fn has_open_waves(&self) -> bool {
        !self.open.is_empty()
    }

    /// The account when nothing more can come: waves that are still open are lost.
    pub(super) fn end(self) -> Fates {
        Fates { lost: self.open.len() as u64, ..self.fates }
    }

    /// How often each back-end is in an answer, by its values alone.
    fn counts(&mut self, answer: &Answer) -> Result<Vec<u8>, Failure> {
        let mut counts = vec![0; self.back_ends];
        let Some(packet) = &answer.packet else {
            self.fates.wrong += u64::from(!answer.contributors.is_empty());
            return Ok(counts);
        };
        let values = packet.values();
        let words = values.array::<u64>(0).map_err(sapwood::Error::from)?;
        let Some((last, words)) = words.split_last() else {
            self.fates.wrong += 1;
            return Ok(counts);
        };
        for (count, byte) in counts.iter_mut().zip(words.iter().flat_map(|word| word.to_le_bytes()))
        {
            *count = byte;
        }
        let contributors = &answer.contributors;
        let is_said =
            |(rank, count): (usize, &u8)| u8::from(contributors.contains(rank as Rank)) == *count;
        let marks: u64 = contributors.iter().map(|rank| mark(rank, answer.wave)).sum();
        if !counts.iter().enumerate().all(is_said) || marks != *last {
            self.fates.wrong += 1;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{Packet, RankSet, Values};

    use super::*;

    /// The sum over these back-ends of three.
    fn answer(wave: Wave, ranks: &[Rank]) -> Answer {
        let mut sum = vec![0; 2];
        for rank in ranks {
            for (word, more) in sum.iter_mut().zip(Flow::new(*rank, 3).in_wave(wave)) {
                *word += more;
            }
        }
        Answer {
            stream: 1,
            wave,
            packet: Some(Packet::new(1, TAG, Values::new().array(&sum))),
            contributors: ranks.iter().copied().collect::<RankSet>(),
            missing: Vec::new(),
            is_late: false,
        }
    }

    #[test]
    fn whole_waves_and_late_parts_are_counted_once() {
        let mut oracle = Oracle::new(3);
        assert!(oracle.look(&answer(0, &[0, 1, 2])).unwrap());
        assert!(!oracle.look(&answer(1, &[0, 2])).unwrap());
        assert!(oracle.look(&answer(2, &[0, 1, 2])).unwrap());
        assert!(oracle.has_open_waves());
        assert!(!oracle.look(&answer(1, &[1])).unwrap());
        assert_eq!(oracle.end(), Fates { whole: 3, ..Fates::default() });
    }

    #[test]
    fn a_back_end_that_is_in_a_wave_twice_is_seen() {
        let mut oracle = Oracle::new(3);
        oracle.look(&answer(0, &[0, 1, 2])).unwrap();
        oracle.look(&answer(0, &[1])).unwrap();
        oracle.look(&answer(1, &[0, 1, 1])).unwrap();
        oracle.look(&answer(1, &[2])).unwrap();
        let fates = oracle.end();
        assert_eq!((fates.whole, fates.doubled, fates.lost), (2, 2, 0));
        // The second one also says that it stands for rank 1 once.
        assert_eq!(fates.wrong, 1);
    }

    #[test]
    fn a_wave_that_never_came_and_one_that_stayed_in_part_are_lost() {
        let mut oracle = Oracle::new(3);
        oracle.look(&answer(1, &[0, 1])).unwrap();
        assert_eq!(oracle.end(), Fates { lost: 2, ..Fates::default() });
    }

    #[test]
    fn an_answer_that_says_more_than_it_holds_is_wrong() {
        let mut oracle = Oracle::new(3);
        let mut claims = answer(0, &[0, 1]);
        claims.contributors = RankSet::range(0, 2);
        assert!(!oracle.look(&claims).unwrap());
        let mut stale = answer(0, &[2]);
        stale.wave = 1;
        oracle.look(&stale).unwrap();
        assert_eq!(oracle.end().wrong, 2);
    }
}
