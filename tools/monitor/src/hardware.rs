//! Counters of the hardware for a rank's first thread, where the system allows them: opened by the
//! leaf on the rank's process, so that the rank does nothing for them.

use std::collections::BTreeMap;

use perf_event::events::{Event, Hardware as Kind};
use perf_event::{Builder, Counter};
use sapwood_profile::Figure;

/// What is counted, if the machine has it.
const COUNTED: [(Figure, Kind); 3] = [
    (Figure::Instructions, Kind::INSTRUCTIONS),
    (Figure::Cycles, Kind::CPU_CYCLES),
    (Figure::CacheMisses, Kind::CACHE_MISSES),
];

/// The counters of one rank; none where they are not there or not allowed.
#[derive(Default)]
pub(crate) struct Hardware {
    counters: Vec<(Figure, Counter)>,
}

impl Hardware {
    /// Counts from now on what the process's first thread does.
    pub(crate) fn of(process: i32) -> Self {
        Self::counting(process, COUNTED)
    }

    fn counting<E: Event + Clone, const N: usize>(process: i32, events: [(Figure, E); N]) -> Self {
        let open = |(figure, event): (Figure, E)| {
            let mut builder = Builder::new(event);
            // Without the system's part, as a user may.
            let builder = builder.observe_pid(process).exclude_kernel(true).exclude_hv(true);
            let mut counter = builder.build().ok()?;
            counter.enable().ok()?;
            Some((figure, counter))
        };
        Self { counters: events.into_iter().filter_map(open).collect() }
    }

    /// The counts so far.
    pub(crate) fn read(&mut self) -> BTreeMap<Figure, u64> {
        let read =
            |(figure, counter): &mut (Figure, Counter)| Some((*figure, counter.read().ok()?));
        self.counters.iter_mut().filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use perf_event::events::Software;

    use super::*;

    #[test]
    fn a_counter_that_every_machine_has_counts() {
        let own = i32::try_from(std::process::id()).expect("a process number");
        // The way is that of the hardware's counters; those are not on every machine.
        let mut counters = Hardware::counting(own, [(Figure::Cycles, Software::TASK_CLOCK)]);
        let mut same = Builder::new(Software::TASK_CLOCK);
        let is_allowed = same.observe_self().exclude_kernel(true).exclude_hv(true).build().is_ok();
        assert_eq!(counters.read().contains_key(&Figure::Cycles), is_allowed);
        assert!(Hardware::of(i32::MAX).read().is_empty());
    }
}
