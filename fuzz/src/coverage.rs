//! What the compiler's instrumentation reports: how often each edge of the code was taken, and the
//! two sides of comparisons that were made.
//!
//! `-Cpasses=sancov-module` puts a counter on every edge and calls the functions below, whose names
//! and arguments are LLVM's (SanitizerCoverage). This crate is instrumented as well, so a hook that
//! compared anything would call itself for ever: they only store. Without instrumentation they are
//! not called and there are no edges.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How many comparisons are remembered; a power of two.
const COMPARISONS: usize = 256;

static COUNTERS_START: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static COUNTERS_END: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static COMPARED: [[AtomicU64; 2]; COMPARISONS] =
    [const { [const { AtomicU64::new(0) }; 2] }; COMPARISONS];
static COMPARED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many edges the program has; 0 when it was built without instrumentation.
#[must_use]
pub fn edges() -> usize {
    let start = COUNTERS_START.load(Relaxed);
    if start.is_null() { 0 } else { COUNTERS_END.load(Relaxed) as usize - start as usize }
}

/// Forgets all counts.
pub fn clear() {
    // SAFETY: the runtime handed over this range for the life of the program, and only this thread
    // runs instrumented code while an input is tried.
    unsafe { COUNTERS_START.load(Relaxed).write_bytes(0, edges()) };
}

/// Adds what the last run has reached; each bit of `seen[edge]` is a class of counts. True if it
/// was new: an edge, or as well a class of counts where `counts_matter`.
pub fn collect(seen: &mut Vec<u8>, counts_matter: bool) -> bool {
    // Copied first: this function's own edges are counted as well while it looks.
    let mut counts = vec![0_u8; edges()];
    // SAFETY: as in `clear`.
    unsafe {
        counts.as_mut_ptr().copy_from_nonoverlapping(COUNTERS_START.load(Relaxed), counts.len());
    }
    seen.resize(counts.len(), 0);
    let mut new = false;
    for (counts, seen) in counts.chunks(8).zip(seen.chunks_mut(8)) {
        // Most edges are not taken by one input.
        if counts.iter().fold(0, |any, count| any | count) != 0 {
            for (count, seen) in counts.iter().zip(seen) {
                let class = class_of(*count);
                new |=
                    if counts_matter { *seen & class != class } else { *seen == 0 && class != 0 };
                *seen |= class;
            }
        }
    }
    new
}

/// One bit for counts that are much alike.
fn class_of(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}

/// One of the comparisons that were made of late.
#[must_use]
pub fn comparison(choice: u64) -> [u64; 2] {
    let count = COMPARED_COUNT.load(Relaxed).clamp(1, COMPARISONS) as u64;
    let [left, right] = &COMPARED[(choice % count) as usize];
    [left.load(Relaxed), right.load(Relaxed)]
}

#[inline(always)]
fn remember(left: u64, right: u64) {
    // One thread makes the comparisons that matter: an atomic addition would cost more than many
    // targets.
    let count = COMPARED_COUNT.load(Relaxed);
    COMPARED_COUNT.store(count.wrapping_add(1), Relaxed);
    let at = count & (COMPARISONS - 1);
    // SAFETY: the mask keeps the place inside the array. A checked index would be a comparison.
    let slot = unsafe { COMPARED.get_unchecked(at) };
    let [first, second] = slot;
    first.store(left, Relaxed);
    second.store(right, Relaxed);
}

/// LLVM's hook: where the counters lie. Called once for each object before `main`.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    COUNTERS_START.store(start, Relaxed);
    COUNTERS_END.store(end, Relaxed);
}

/// LLVM's hook: where the edges' code lies, which is not used here.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_pcs_init(_start: *const c_void, _end: *const c_void) {}

/// LLVM's hook: an indirect call, which is not used here.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_trace_pc_indir(_callee: u64) {}

/// LLVM's hook: a `match` on a number, which is not used here.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_trace_switch(_value: u64, _cases: *const u64) {}

macro_rules! comparison_hooks {
    ($($name:ident $type:ty;)*) => {$(
        /// LLVM's hook: a comparison of two numbers of this width.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(left: $type, right: $type) {
            remember(left as u64, right as u64);
        }
    )*};
}

comparison_hooks! {
    __sanitizer_cov_trace_cmp1 u8;
    __sanitizer_cov_trace_cmp2 u16;
    __sanitizer_cov_trace_cmp4 u32;
    __sanitizer_cov_trace_cmp8 u64;
    __sanitizer_cov_trace_const_cmp1 u8;
    __sanitizer_cov_trace_const_cmp2 u16;
    __sanitizer_cov_trace_const_cmp4 u32;
    __sanitizer_cov_trace_const_cmp8 u64;
}
