//! Whether a daemon can still be found: its control socket lies in a folder that is removed when
//! its user logs out, and no command reaches it then.

use std::time::{Duration, Instant};

/// Between two looks, each one system call. A folder that is being replaced is there again at the
/// second one.
pub(crate) const LOOK_PERIOD: Duration = Duration::from_secs(5);
/// After how many looks without it the socket is gone for good.
const LOOKS_MAX: u32 = 2;

/// The looks for a daemon's socket.
#[derive(Debug)]
pub(crate) struct Place {
    looked_at: Instant,
    looks_without: u32,
}

impl Place {
    /// Of a socket that was just made.
    pub(crate) fn new(now: Instant) -> Self {
        Self { looked_at: now, looks_without: 0 }
    }

    /// Whether the socket has been gone, or another's has been in its place, at several looks. It
    /// looks at most once in [`LOOK_PERIOD`]; a look that finds out nothing counts for nothing.
    pub(crate) fn is_gone(&mut self, now: Instant, look: impl FnOnce() -> Option<bool>) -> bool {
        if now.saturating_duration_since(self.looked_at) >= LOOK_PERIOD {
            self.looked_at = now;
            match look() {
                Some(true) => self.looks_without = 0,
                Some(false) => self.looks_without += 1,
                None => {}
            }
        }
        self.looks_without >= LOOKS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_gone_when_two_looks_do_not_find_it() {
        let begin = Instant::now();
        let mut place = Place::new(begin);
        assert!(!place.is_gone(begin + LOOK_PERIOD / 2, || panic!("it was just made")));
        assert!(!place.is_gone(begin + LOOK_PERIOD, || Some(false)));
        assert!(!place.is_gone(begin + LOOK_PERIOD * 3 / 2, || panic!("it has just looked")));
        assert!(place.is_gone(begin + LOOK_PERIOD * 2, || Some(false)));
        assert!(place.is_gone(begin + LOOK_PERIOD * 2, || panic!("it has just looked")));
    }

    #[test]
    fn a_socket_that_comes_back_is_not_gone() {
        let begin = Instant::now();
        let mut place = Place::new(begin);
        for (look, found) in (1..).zip([Some(false), Some(true), Some(false), None]) {
            assert!(!place.is_gone(begin + LOOK_PERIOD * look, || found), "{look}");
        }
        assert!(place.is_gone(begin + LOOK_PERIOD * 5, || Some(false)));
    }
}
