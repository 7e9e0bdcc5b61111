//! Threads of a rank's process that wait for a lock, and which thread holds it.
//!
//! The kernel tells the system call in which a thread sleeps. The C library's mutexes wait in
//! `futex` for the value 2, with the number of the holder in the third word; condition variables,
//! semaphores and joins wait otherwise, so that idle threads of a pool are not taken for blocked
//! ones. Both need the right to trace the process; without it nothing is claimed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The number of `futex` among the system calls.
const FUTEX: u64 = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
/// The bits of an operation on a futex that say what it does.
const OPERATION: u64 = 0x7f;
const WAIT: u64 = 0;
/// What a waiter puts into a mutex of the C library.
const CONTENDED: u64 = 2;
/// Where the number of the holder stands in a mutex.
const OWNER_OFFSET: u64 = 8;
/// Threads that are looked at, at most.
const THREADS_MAX: usize = 1024;

/// A thread that waits for a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    /// The thread, by its number in the system.
    pub(crate) thread: u32,
    /// The thread that holds the mutex, as the process numbers it; none where that is not known.
    pub(crate) owner: Option<u32>,
}

/// The threads of a process of this host that wait for a mutex; none of one that may not be
/// looked at.
pub(crate) fn lock_waits(process: i32) -> Vec<LockWait> {
    let folder = Path::new("/proc").join(process.to_string());
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    numbers.take(THREADS_MAX).filter_map(|thread| of_thread(&folder, thread)).collect()
}

fn of_thread(folder: &Path, thread: u32) -> Option<LockWait> {
    let call = fs::read_to_string(folder.join(format!("task/{thread}/syscall"))).ok()?;
    let address = mutex_of(&call)?;
    let mut owner = [0; 4];
    let memory = File::open(folder.join("mem")).ok();
    let is_read = memory.is_some_and(|memory| {
        memory.read_exact_at(&mut owner, address.wrapping_add(OWNER_OFFSET)).is_ok()
    });
    let owner = Some(u32::from_le_bytes(owner)).filter(|&owner| is_read && owner != 0);
    Some(LockWait { thread, owner })
}

/// The address of the mutex for which a thread waits, out of `/proc/PID/task/TID/syscall`: the
/// number of the call in decimal and its arguments in hexadecimal.
fn mutex_of(call: &str) -> Option<u64> {
    let mut words = call.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (address, operation, value) = (argument()?, argument()?, argument()?);
    let is_mutex = number == FUTEX && operation & OPERATION == WAIT && value == CONTENDED;
    is_mutex.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_mutex_is_told_from_other_waits() {
        let futex = |operation: u64, value: u64| {
            mutex_of(&format!("{FUTEX} 0x7f00 {operation:#x} {value:#x} 0x0 0x0 0x0 0x1 0x2"))
        };
        assert_eq!(futex(0x80, 2), Some(0x7f00));
        assert_eq!(futex(0, 2), Some(0x7f00), "shared between processes");
        assert_eq!(futex(0x189, 0), None, "a condition variable");
        assert_eq!(futex(0x80, 1), None, "another value");
        assert_eq!(mutex_of("running"), None);
        assert_eq!(mutex_of("-1 0x7ffd 0x7f00"), None);
        assert_eq!(mutex_of("0 0x3 0x2 0x2 0x0 0x0 0x0 0x1 0x2"), None, "read");
    }

    #[test]
    fn a_process_that_may_not_be_looked_at_tells_nothing() {
        assert_eq!(lock_waits(i32::MAX), []);
    }
}
