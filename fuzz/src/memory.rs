//! Counts what a piece of code allocates, so that a target can hold a decoder to "a length is
//! checked before anything is allocated".

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATED_BYTES.fetch_add(bytes.saturating_sub(layout.size()), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs it, and panics when it has allocated more than `bytes_max` bytes in all, freed or not.
pub fn within<T>(bytes_max: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATED_BYTES.load(Relaxed);
    let outcome = work();
    let bytes = ALLOCATED_BYTES.load(Relaxed) - before;
    assert!(bytes <= bytes_max, "{bytes} bytes were allocated, at most {bytes_max} are allowed");
    outcome
}
