//! A line that says how far something is, for people who wait.
//!
//! It goes to standard error, only on a terminal, each state in the place of the last, and is wiped
//! when what it tells of is over, so that neither a pipe nor a log ever sees it. What it says, and
//! how often, is with the command.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Goes to the beginning of the line and empties it.
const WIPE: &str = "\r\x1b[K";

/// The line.
#[derive(Debug)]
pub struct Line {
    is_shown: bool,
}

impl Line {
    /// `is_wanted` says whether there is to be one where a person sees it.
    pub fn new(is_wanted: bool) -> Self {
        Self { is_shown: is_wanted && std::io::stderr().is_terminal() }
    }

    /// Whether a person sees it.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Says this in the place of what was said before.
    pub fn say(&self, what: impl Display) {
        if self.is_shown {
            // Without the line nothing is missed.
            let _ = write!(std::io::stderr(), "{WIPE}{what}");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.say("");
    }
}
