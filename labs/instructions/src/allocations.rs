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

/// Calls of each step, and allocations in them.
#[derive(Default)]
pub struct Tally {
    steps: BTreeMap<&'static str, (u64, u64)>,
}

impl Tally {
    /// Runs a step and counts its allocations.
    pub fn step<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let result = step();
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        let (calls, all) = self.steps.entry(name).or_default();
        *calls += 1;
        *all += made;
        result
    }

    /// Allocations in one call of each step, an average to a tenth: a buffer that grows for good
    /// is not a cost of each message.
    pub fn averages(&self) -> BTreeMap<&'static str, f64> {
        let average =
            |(calls, all): &(u64, u64)| (*all as f64 * 10.0 / *calls as f64).round() / 10.0;
        self.steps.iter().map(|(name, counts)| (*name, average(counts))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_its_own_allocations_on_average() {
        // Other tests of this program run in other threads, and allocate: so the least of some.
        let least = (0..20).map(|_| {
            let mut tally = Tally::default();
            for _ in 0..2 {
                drop(tally.step("boxes", || (Box::new(1), Box::new(2))));
            }
            tally.step("nothing", || ());
            let averages = tally.averages();
            (averages["boxes"], averages["nothing"])
        });
        let (boxes, nothing): (Vec<_>, Vec<_>) = least.unzip();
        assert!(boxes.contains(&2.0) && nothing.contains(&0.0));
    }
}
