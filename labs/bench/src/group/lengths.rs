//! The rate of broadcasts by their length, and the time of sums by theirs.

use std::time::Duration;

use sapwood::TreeKind;
use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::Spread;

use super::super::progress::Progress;
use super::race::{Race, Raced};
use super::scene::Scene;

/// The trees that are compared: `list` and `static` are what others are held against.
pub(super) const LENGTH_TREES: [TreeKind; 4] =
    [TreeKind::Static, TreeKind::List, TreeKind::PaperBandwidth, TreeKind::Adaptive];
/// The trees by which sums are compared: `static` is what others are held against.
pub(super) const SUM_TREES: [TreeKind; 4] =
    [TreeKind::Static, TreeKind::Binomial, TreeKind::PaperLatency, TreeKind::Adaptive];
const BROADCASTS: Ladder = Ladder { shortest: 32 << 10, step: 4 };
/// From one number on.
const SUMS: Ladder = Ladder { shortest: 8, step: 8 };
/// From this length on there are at most [`FEW_ROUNDS`].
const FEW_FROM: usize = 8 << 20;
const FEW_ROUNDS: usize = 3;

/// The shortest length in bytes, and how many times as long the next one is.
struct Ladder {
    shortest: usize,
    step: usize,
}

/// What came of one length.
pub(super) struct RacedLength {
    pub(super) bytes: usize,
    pub(super) rounds: usize,
    raced: Raced,
}

/// Broadcasts from virtual node 0 of all lengths.
///
/// # Errors
/// [`Failure`] where a member has ended or does not answer.
pub(super) fn run(
    scene: &mut Scene<'_>,
    longest: usize,
    rounds: usize,
    progress: &mut Progress,
) -> Result<Vec<RacedLength>, Failure> {
    let race = |bytes| Race::broadcast(0, bytes, &LENGTH_TREES);
    BROADCASTS.run(longest, race, rounds, scene, progress)
}

/// Sums at virtual node 0 of all lengths, among members that are as far apart.
///
/// # Errors
/// [`Failure`] where a member has ended or does not answer.
pub(super) fn run_sums(
    scene: &mut Scene<'_>,
    longest: usize,
    far_time: Duration,
    rounds: usize,
    progress: &mut Progress,
) -> Result<Vec<RacedLength>, Failure> {
    let race = |bytes| Race::sum(bytes, far_time, &SUM_TREES);
    SUMS.run(longest, race, rounds, scene, progress)
}

fn rounds_of(bytes: usize, rounds: usize) -> usize {
    if bytes >= FEW_FROM { rounds.min(FEW_ROUNDS) } else { rounds }
}

impl Ladder {
    fn up_to(&self, longest: usize) -> Vec<usize> {
        let longer = |bytes: &usize| bytes.checked_mul(self.step);
        let mut lengths: Vec<usize> = std::iter::successors(Some(self.shortest), longer)
            .take_while(|bytes| *bytes < longest)
            .collect();
        lengths.push(longest);
        lengths
    }

    /// Races of all lengths.
    fn run(
        &self,
        longest: usize,
        race: impl Fn(usize) -> Race<'static>,
        rounds: usize,
        scene: &mut Scene<'_>,
        progress: &mut Progress,
    ) -> Result<Vec<RacedLength>, Failure> {
        let mut all = Vec::new();
        for bytes in self.up_to(longest) {
            let rounds = rounds_of(bytes, rounds);
            let raced = race(bytes).run(scene, rounds, progress)?;
            all.push(RacedLength { bytes, rounds, raced });
        }
        Ok(all)
    }
}

impl RacedLength {
    /// MB/s until the last member has it; none where in each round a value was wrong or missing.
    pub(super) fn rate(&self, tree: TreeKind) -> Option<Spread> {
        let Spread { min, median, max, runs } = self.raced.spread(tree)?;
        let rate = |seconds: f64| self.bytes as f64 / 1e6 / seconds;
        Some(Spread { min: rate(max), median: rate(median), max: rate(min), runs })
    }

    /// Beside that of `list` in the same rounds.
    pub(super) fn rate_to_list(&self, tree: TreeKind) -> Option<Spread> {
        self.raced.ratio(TreeKind::List, tree)
    }

    /// Milliseconds until it is over.
    pub(super) fn milliseconds(&self, tree: TreeKind) -> Option<Spread> {
        let Spread { min, median, max, runs } = self.raced.spread(tree)?;
        Some(Spread { min: min * 1e3, median: median * 1e3, max: max * 1e3, runs })
    }

    /// The time beside that of `static` in the same rounds.
    pub(super) fn time_to_static(&self, tree: TreeKind) -> Option<Spread> {
        self.raced.ratio(tree, TreeKind::Static)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_go_up_to_the_longest() {
        let kib = |lengths: Vec<usize>| lengths.iter().map(|bytes| bytes >> 10).collect::<Vec<_>>();
        let broadcasts = |longest| BROADCASTS.up_to(longest);
        assert_eq!(kib(broadcasts(64 << 20)), [32, 128, 512, 2048, 8192, 32_768, 65_536]);
        assert_eq!(kib(broadcasts(128 << 10)), [32, 128]);
        assert_eq!(broadcasts(5), [5]);
        let sums = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 8 << 20];
        assert_eq!(SUMS.up_to(8 << 20), sums);
        assert_eq!(SUMS.up_to(8), [8]);
    }
}
