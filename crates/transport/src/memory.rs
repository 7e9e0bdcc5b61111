//! Advice to the kernel on the memory in which large packets are assembled.

use std::mem::MaybeUninit;

use rustix::mm::Advice;

/// From how many bytes on it is worth a system call: some pages.
const WORTHWHILE_BYTES: usize = 32 << 10;
const PAGE_BYTES: usize = 4 << 10;

/// Populates the pages of memory that is about to be written in one call. Page faults one by one
/// make the copy two thirds slower. Nothing else changes, and a system that does not do this is no
/// error.
///
/// Huge pages would cost a third of that where many of them are free, and twice as much where the
/// system has to make them first.
pub fn back_with_pages(memory: &mut [MaybeUninit<u64>]) {
    let bytes = size_of_val(memory);
    if bytes < WORTHWHILE_BYTES {
        return;
    }
    // With the pages at both ends, of which a part is there.
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.addr() % PAGE_BYTES;
    let first = start.wrapping_sub(before).cast();
    let length = (before + bytes).next_multiple_of(PAGE_BYTES);
    // SAFETY: These are the pages that the caller's slice lies in, and no contents change.
    let _ = unsafe { rustix::mm::madvise(first, length, Advice::LinuxPopulateWrite) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often this thread had to wait for a page so far.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1;
        fields.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn memory_with_pages_behind_it_is_written_without_waiting_for_any() {
        const WORDS: usize = (64 << 20) / 8;
        let mut memory: Vec<u64> = Vec::with_capacity(WORDS);
        back_with_pages(memory.spare_capacity_mut());
        let before = faults();
        memory.resize(WORDS, 7);
        let waited = faults() - before;
        // Older kernels do not know the advice; then every page is faulted in at its first use.
        let pages = (WORDS * 8 / PAGE_BYTES) as u64;
        assert!(waited < pages / 8 || waited >= pages, "{waited} of {pages}");
        assert!(memory.iter().all(|word| *word == 7));
    }

    #[test]
    fn a_little_memory_is_left_alone() {
        let mut memory: Vec<u64> = Vec::with_capacity(16);
        back_with_pages(memory.spare_capacity_mut());
        back_with_pages(&mut []);
        memory.resize(16, 1);
        assert_eq!(memory.iter().sum::<u64>(), 16);
    }
}
