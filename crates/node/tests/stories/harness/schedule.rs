//! Chance that can be repeated: a small xorshift generator, and stories told for many seeds.

/// What decides which link moves next, and how far.
pub struct Schedule {
    state: u64,
    /// Most bytes that one read or write moves.
    pub cut_bytes: usize,
    /// Bytes that a pipe holds.
    pub pipe_bytes: usize,
}

impl Schedule {
    pub fn new(seed: u64) -> Self {
        let state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut schedule = Self { state, cut_bytes: 0, pipe_bytes: 0 };
        schedule.next();
        schedule.cut_bytes = [7, 64, 300, 4096, 70_000][schedule.below(5)];
        schedule.pipe_bytes = [50, 512, 8192, 200_000][schedule.below(4)];
        schedule
    }

    /// The next random number.
    pub fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A random number below another, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Large cuts and pipes, for stories of megabytes.
    pub fn widen(&mut self) {
        self.cut_bytes = [5000, 40_000, 300_000][self.below(3)];
        self.pipe_bytes = [9000, 100_000, 1 << 20][self.below(3)];
    }
}

/// Says which seed failed, and how to repeat it.
struct Told {
    story: &'static str,
    seed: u64,
}

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {seed} failed; repeat it with: \
                 SAPWOOD_SEED={seed} cargo test -p sapwood-node {story}",
                seed = self.seed,
                story = self.story,
            );
        }
    }
}

/// Tells a story once for each of this many seeds, or for the one in `SAPWOOD_SEED`.
pub fn each_seed(story: &'static str, count: u64, tell: impl Fn(u64)) {
    let named = std::env::var("SAPWOOD_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = named.map_or(0..count, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let told = Told { story, seed };
        tell(seed);
        drop(told);
    }
}
