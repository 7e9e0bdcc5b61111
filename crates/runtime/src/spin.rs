//! How long a process looks at its rings in shared memory before it sleeps.
//!
//! To wake a process costs microseconds at both ends, so a wait of that length is cheaper to spin
//! through. A process learns from each spin: one that met nothing is followed by ever more waits
//! without, so that a process whose messages are rare hardly spins. Where more processes want to
//! run than there are processors none spins, since that delays the process that would write.

use std::time::Duration;

use sapwood_node::Instant;

/// The longest spin. A wake-up of a process on an idle core takes between 5 and 50 us.
pub(crate) const SPIN_TIME: Duration = Duration::from_micros(25);
/// A process with more links in shared memory sleeps: a look at all rings takes too long.
pub(crate) const SPIN_LINKS_MAX: usize = 16;
/// The most waits without a spin, as a power of two, after spins that met nothing.
const PENALTY_MAX: u32 = 10;
/// How long a low load of the machine is believed in, and a high one. What runs for a moment only
/// is seen by few looks, so that one of them counts for longer.
const LOW_LOAD_HOLDS: Duration = Duration::from_millis(2);
const HIGH_LOAD_HOLDS: Duration = Duration::from_millis(100);

/// What one process has learnt of its waits.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Waits that are still to pass without a spin.
    waits: u32,
    /// How many spins in succession have met nothing, up to a limit.
    penalty: u32,
    load: Load,
}

/// The processes of the machine that want to run, and what they can run on.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    looked: Option<Instant>,
    is_high: bool,
}

impl Spin {
    /// Before a wait: whether to spin.
    #[inline]
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        if self.waits > 0 {
            self.waits -= 1;
            return false;
        }
        !self.load.is_high(now)
    }

    /// After a spin in which something came.
    #[inline]
    pub(crate) fn note_met(&mut self) {
        self.penalty = 0;
    }

    /// After a spin in which nothing came.
    #[inline]
    pub(crate) fn note_missed(&mut self) {
        self.waits = 1 << self.penalty;
        self.penalty = (self.penalty + 1).min(PENALTY_MAX);
    }
}

impl Load {
    /// Whether more processes want to run than this one has processors; so also without `/proc`.
    fn is_high(&mut self, now: Instant) -> bool {
        let holds = if self.is_high { HIGH_LOAD_HOLDS } else { LOW_LOAD_HOLDS };
        let is_fresh = self.looked.is_some_and(|looked| now.since(looked) < holds);
        if !is_fresh {
            self.looked = Some(now);
            self.is_high = look().is_none_or(|(running, processors)| running > processors);
        }
        self.is_high
    }
}

/// How many processes run or want to, and on how many processors this one may run.
fn look() -> Option<(u32, u32)> {
    let running = running(&std::fs::read_to_string("/proc/loadavg").ok()?)?;
    Some((running, rustix::thread::sched_getaffinity(None).ok()?.count()))
}

/// The processes that run or want to, from a line such as `0.20 0.18 0.12 1/80 11206`. This process
/// is one of them.
fn running(line: &str) -> Option<u32> {
    line.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(microseconds: u64) -> Instant {
        Instant(microseconds * 1000)
    }

    /// A spin on a machine without other work.
    fn idle() -> Spin {
        Spin { load: Load { looked: Some(at(0)), is_high: false }, ..Spin::default() }
    }

    /// How many waits pass until a spin is due.
    fn waits_until_due(spin: &mut Spin) -> usize {
        (0..).find(|_| spin.is_due(at(1))).unwrap()
    }

    #[test]
    fn spins_that_meet_nothing_become_rare_and_one_that_does_makes_them_usual() {
        let mut spin = idle();
        assert_eq!(waits_until_due(&mut spin), 0);
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            spin.note_missed();
            assert_eq!(waits_until_due(&mut spin), expected);
        }
        spin.note_met();
        assert_eq!(waits_until_due(&mut spin), 0);
        spin.note_missed();
        assert_eq!(waits_until_due(&mut spin), 1);
    }

    #[test]
    fn the_load_is_read_from_the_system() {
        assert_eq!(running("0.20 0.18 0.12 1/80 11206\n"), Some(1));
        assert_eq!(running("0.20 0.18 0.12 31/4080 11206\n"), Some(31));
        assert_eq!(running(""), None);
        let (running, processors) = look().unwrap();
        assert!(running >= 1 && processors >= 1);
    }

    #[test]
    fn under_a_high_load_no_process_spins_for_a_while() {
        let mut load = Load { looked: Some(at(0)), is_high: true };
        let mut spin = Spin { load, ..Spin::default() };
        assert!(!spin.is_due(at(99_000)));
        let _ = load.is_high(at(100_000));
        assert_eq!(load.looked, Some(at(100_000)), "it was read again");
        load.is_high = false;
        let _ = load.is_high(at(102_000));
        assert_eq!(load.looked, Some(at(102_000)), "a low load is read more often");
    }
}
