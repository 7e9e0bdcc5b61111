//! What is being measured, for people who wait.

use sapwood_command_line::progress::Line;

/// The line that says so.
pub(super) struct Progress {
    line: Line,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { line: Line::new(true) }
    }

    /// Says that run `run` of `runs` of something begins.
    pub(super) fn say(&mut self, what: &str, run: usize, runs: usize) {
        self.line.say(format_args!("{what}: run {} of {runs}", run + 1));
    }
}
