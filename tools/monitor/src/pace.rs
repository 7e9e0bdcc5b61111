//! How often what a run leaves is replaced while it goes on: each time waits for the disk.

use std::time::Duration;

/// An output is replaced no sooner than this after the time before.
pub(crate) const REPLACED_AFTER: Duration = Duration::from_secs(5);

/// When an output may be replaced; the first time is due at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// When it was last, as a time of the program.
    replaced: Option<Duration>,
}

impl Pace {
    /// From when on it may be replaced, as a time of the program.
    pub(crate) fn due(self) -> Duration {
        self.replaced.map_or(Duration::ZERO, |before| before + REPLACED_AFTER)
    }

    /// Notes that it is replaced at this time of the program.
    pub(crate) fn note(&mut self, elapsed: Duration) {
        self.replaced = Some(elapsed);
    }
}
