//! What happened in a run, one readable line per event. Costs nothing when it is off.

use alloc::string::String;
use alloc::vec::Vec;

use crate::agenda::{MILLISECOND, Time};

/// Most lines that are kept; a run that makes more is cut off here.
const LINES_MAX: usize = 1_000_000;

/// The lines of a run, if they are wanted.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Option<Vec<String>>,
}

impl Log {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { lines: is_on.then(Vec::new) }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    /// Writes a line, which is made only when it is wanted.
    pub(crate) fn line(&mut self, now: Time, text: impl FnOnce() -> String) {
        let Some(lines) = &mut self.lines else { return };
        if lines.len() < LINES_MAX {
            let (whole, part) = (now / MILLISECOND, now % MILLISECOND);
            lines.push(alloc::format!("{whole:>6}.{part:06} ms  {}", text()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
