//! What the threads of a rank do that have called MPI and are outside of it: one that computes may
//! go on to any call, so its rank does not wait, whatever its other threads are in.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use super::proc_stat::{self, STRETCH_MIN, TICK, USED_PARTS};

/// Threads of one process from look to look.
#[derive(Debug, Default)]
pub(crate) struct ThreadUse {
    threads: BTreeMap<u32, Look>,
}

/// What a thread had used at a moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    ticks: u64,
    /// Whether it ran, or could have.
    is_ready: bool,
    computes: bool,
}

impl ThreadUse {
    /// Whether one of these threads of a process of this host computes.
    pub(crate) fn any_computes(&mut self, process: i32, threads: &[u32]) -> bool {
        self.threads.retain(|thread, _| threads.contains(thread));
        let now = Instant::now();
        let mut any = false;
        for &thread in threads {
            let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
            let Some((is_ready, ticks)) = stat.ok().as_deref().and_then(read) else { continue };
            any |= self.computes(thread, Look { at: now, ticks, is_ready, computes: is_ready });
        }
        any
    }

    /// Whether a thread that looks like this computes: it has used a processor since the look
    /// before, or was ready for one at both. One that wakes for moments does not.
    fn computes(&mut self, thread: u32, look: Look) -> bool {
        let Some(before) = self.threads.get_mut(&thread) else {
            self.threads.insert(thread, look);
            return look.computes;
        };
        let stretch = look.at.saturating_duration_since(before.at);
        if stretch >= STRETCH_MIN {
            let used = u128::from(look.ticks.saturating_sub(before.ticks)) * TICK.as_nanos();
            let is_used = used * u128::from(USED_PARTS) > stretch.as_nanos();
            *before = Look { computes: is_used || (look.is_ready && before.is_ready), ..look };
        }
        before.computes
    }
}

/// Whether a thread is ready, and its ticks of processor time, out of its `stat`.
fn read(stat: &str) -> Option<(bool, u64)> {
    let fields = proc_stat::fields(stat)?;
    Some((fields.state()? == 'R', fields.user()?.saturating_add(fields.system()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_behind_any_name() {
        let stat = "7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 31 4 0";
        assert_eq!(read(stat), Some((false, 35)));
        assert_eq!(read("7 (a) R 1 2 3 4 5 6 7 8 9 10 0 4"), Some((true, 4)));
        assert_eq!(read("7 (a) R 1 2"), None);
    }

    #[test]
    fn a_thread_computes_that_uses_a_processor_or_wants_one_all_the_time() {
        let begin = Instant::now();
        let later = |ticks, was_ready, is_ready| {
            let mut threads = ThreadUse::default();
            let first = Look { at: begin, ticks: 100, is_ready: was_ready, computes: was_ready };
            assert_eq!(threads.computes(9, first), was_ready);
            let soon = Look { at: begin + STRETCH_MIN / 2, ticks: 150, ..first };
            assert_eq!(threads.computes(9, soon), was_ready, "too soon to say");
            let at = begin + STRETCH_MIN;
            threads.computes(9, Look { at, ticks, is_ready, computes: is_ready })
        };
        assert!(later(120, false, false), "all the time");
        assert!(later(103, false, false), "15 % of the time");
        assert!(!later(102, false, false), "a tenth");
        assert!(!later(100, false, true), "it wakes just now");
        assert!(later(100, true, true), "it gets no processor");
    }

    #[test]
    fn the_own_thread_computes() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(ThreadUse::default().any_computes(own, &[thread]));
        assert!(!ThreadUse::default().any_computes(own, &[]));
        assert!(!ThreadUse::default().any_computes(i32::MAX, &[thread]));
    }
}
