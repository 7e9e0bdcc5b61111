//! How often this program allocates memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, and a count of its calls that give memory.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: Every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: As the caller promises.
        unsafe { System.realloc(memory, layout, bytes) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: As the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The least allocations of a call of each step: neither a buffer that grows for good nor what is
/// due by the clock is a cost of each message.
#[derive(Default)]
pub struct Tally {
    least: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Runs a step and counts its allocations.
    pub fn step<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let result = step();
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        self.least.entry(name).and_modify(|least| *least = made.min(*least)).or_insert(made);
        result
    }

    /// By the steps' names.
    pub fn least(&self) -> &BTreeMap<&'static str, u64> {
        &self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_the_least_of_its_own_allocations() {
        // Other tests of this program run in other threads, and allocate: the least of some calls.
        let mut tally = Tally::default();
        for calls in 0..20 {
            drop(tally.step("boxes", || (Box::new(1), Box::new(2))));
            tally.step("nothing", || ());
            drop(tally.step("grows", || (calls == 0).then(|| Box::new(3))));
        }
        let least = tally.least();
        assert_eq!((least["boxes"], least["nothing"], least["grows"]), (2, 0, 0));
    }
}
