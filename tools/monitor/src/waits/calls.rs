//! How long a rank was in its calls: in collectives, and where it waited for messages.

use sapwood_trace::{Event, EventKind, HostClock};

/// How long a rank was in calls that have ended, as far as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeInCalls {
    /// Nanoseconds of collectives, of all threads.
    pub(crate) called_ns: u64,
    /// The same of calls in which it waited for messages.
    pub(crate) waited_ns: u64,
    /// Non-blocking collectives that were started and have not completed.
    pub(crate) open_collectives: u64,
    /// How often calls may be missing here: records of them are lost, or still to be read.
    pub(crate) gaps: u64,
}

/// Adds up the calls of a rank. A call leaves a record of each message or collective that it has
/// completed, one behind another in the ring of its thread.
#[derive(Debug, Default)]
pub(super) struct CountedCalls {
    time: TimeInCalls,
    /// By ring.
    last: Vec<LastCalls>,
}

/// When the calls of a thread began that were counted last.
#[derive(Clone, Copy, Debug, Default)]
struct LastCalls {
    collective: Option<u64>,
    wait: Option<u64>,
}

impl CountedCalls {
    /// Of a rank with as many rings.
    pub(super) fn of_rings(rings: usize) -> Self {
        Self { last: vec![LastCalls::default(); rings], ..Self::default() }
    }

    /// All that was counted.
    pub(super) const fn time(&self) -> TimeInCalls {
        self.time
    }

    /// Notes that calls may be missing.
    pub(super) const fn note_gap(&mut self) {
        self.time.gaps = self.time.gaps.saturating_add(1);
    }

    /// Counts the call of a record, if no other record of it was before.
    pub(super) fn note(&mut self, ring: usize, event: &Event, clock: &HostClock) {
        let Some(last) = self.last.get_mut(ring) else { return };
        let time = &mut self.time;
        let (begun, sum_ns) = match event.kind {
            EventKind::SendStarted => return,
            EventKind::CollectiveStarted => {
                time.open_collectives = time.open_collectives.saturating_add(1);
                return;
            }
            EventKind::CollectiveCompleted => {
                time.open_collectives = time.open_collectives.saturating_sub(1);
                (&mut last.collective, &mut time.called_ns)
            }
            EventKind::Collective => (&mut last.collective, &mut time.called_ns),
            EventKind::Send | EventKind::Receive | EventKind::ReceiveCompleted => {
                (&mut last.wait, &mut time.waited_ns)
            }
        };
        if begun.replace(event.time) != Some(event.time) {
            *sum_ns = sum_ns.saturating_add(clock.span(event.span));
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::FileClock;

    use super::*;

    /// What is counted of records, each with its ring, kind, begin and span.
    fn counted(records: &[(usize, EventKind, u64, u64)]) -> TimeInCalls {
        let file_clock = FileClock { ticks: 0, ns: 0, scale: 1 << 32, is_cycles: true };
        let clock = HostClock::shared(file_clock);
        let mut calls = CountedCalls::of_rings(2);
        for &(ring, kind, time, span) in records {
            let (function, space, members, sequence, peer, tag) = (3, 0, 1, 1, -1, 0);
            let event = Event { time, span, function, space, kind, members, sequence, peer, tag };
            calls.note(ring, &event, &clock);
        }
        calls.time()
    }

    #[test]
    fn a_call_is_counted_once_also_where_those_of_two_threads_are_read_in_turns() {
        let (received, ended) = (EventKind::ReceiveCompleted, EventKind::CollectiveCompleted);
        let time = counted(&[
            (0, received, 1_000, 500),
            (1, received, 1_200, 70),
            (0, received, 1_000, 500),
            (1, received, 1_200, 70),
            (1, ended, 1_200, 70),
            (0, ended, 1_700, 8),
            (1, ended, 1_200, 70),
            (0, EventKind::Send, 1_800, 2_000),
        ]);
        assert_eq!((time.waited_ns, time.called_ns), (2_570, 78));
        // Two threads may begin at one moment.
        let both = counted(&[(0, received, 1_000, 5), (1, received, 1_000, 7)]);
        assert_eq!(both.waited_ns, 12);
    }

    #[test]
    fn a_collective_is_open_from_its_start_until_it_has_completed() {
        let (started, ended) = (EventKind::CollectiveStarted, EventKind::CollectiveCompleted);
        let open = |records: &[_]| counted(records).open_collectives;
        assert_eq!(open(&[(0, started, 10, 1), (1, started, 20, 1)]), 2);
        assert_eq!(open(&[(0, started, 10, 1), (0, ended, 20, 5), (0, ended, 30, 5)]), 0);
        assert_eq!(open(&[(0, EventKind::Collective, 10, 1)]), 0);
    }
}
