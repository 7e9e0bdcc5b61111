//! A line that says what is being measured, for people who wait.
//!
//! It goes to standard error, only on a terminal, and is wiped when the measuring is over, so that
//! neither a pipe nor a log ever sees it.

use std::io::{IsTerminal, Write};

/// The line.
pub(super) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal() }
    }

    /// Says that run `run` of `runs` of something begins.
    pub(super) fn say(&mut self, what: &str, run: usize, runs: usize) {
        if self.is_shown {
            // Whoever does not see the line misses nothing.
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}: run {} of {runs}", run + 1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
