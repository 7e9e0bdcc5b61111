//! A filter of a program's own that never comes back.

use std::time::Duration;

use sapwood::{Emitter, Filter, FilterError, Registry, WaveRef};

/// Its name.
pub const SLEEPER: &str = "trial-sleeper";

struct Sleeper;

impl Filter for Sleeper {
    fn transform(&mut self, wave: &WaveRef<'_>, _: &mut Emitter) -> Result<(), FilterError> {
        // The front-end, beside which the test runs, is spared.
        if wave.is_root {
            return Ok(());
        }
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

/// The built-in filters, and this one.
pub fn filters() -> Registry {
    Registry::built_in().with(SLEEPER, |_| Ok(Box::new(Sleeper)))
}
