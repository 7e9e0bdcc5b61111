//! A limit on the address space (`ulimit -v`) that leaves too little for a command.
//!
//! Rust ends a program in which an ordinary allocation fails, by `SIGABRT` and without a word on
//! the limit. So it is looked at before the command begins. What a command needs for much data it
//! asks for where a refusal is an error of its own, and that is left to the places where it does.

use std::fs::File;
use std::io::Read as _;

use rustix::process::{Resource, getrlimit};

/// What a command needs beside its program, in bytes.
const ROOM_BYTES_MIN: u64 = 4 << 20;

/// The first field of this file is the size of the process in pages.
const SIZES: &str = "/proc/self/statm";

/// More than its fields have, in bytes.
const SIZES_BYTES_MAX: usize = 256;

/// Why the limit is too small for this process, if it is.
pub(crate) fn lacking() -> Option<String> {
    let limit = getrlimit(Resource::As).current?;
    lacking_of(limit, used()?)
}

fn lacking_of(limit: u64, used: u64) -> Option<String> {
    let room = limit.saturating_sub(used);
    (room < ROOM_BYTES_MIN).then(|| {
        format!(
            "the limit on the address space (ulimit -v {}) is too small; it must be at least {}",
            limit / 1024,
            (used + ROOM_BYTES_MIN).div_ceil(1024)
        )
    })
}

/// The address space that this process has, in bytes.
fn used() -> Option<u64> {
    // In place, as there may be no room for more.
    let mut text = [0; SIZES_BYTES_MAX];
    let length = File::open(SIZES).ok()?.read(&mut text).ok()?;
    let pages = std::str::from_utf8(&text[..length]).ok()?.split_whitespace().next()?;
    pages.parse::<u64>().ok()?.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_small_a_limit_is_told_with_what_is_needed() {
        assert_eq!(lacking_of(20 << 20, 16 << 20), None);
        assert_eq!(
            lacking_of((20 << 20) - 1024, 16 << 20).as_deref(),
            Some(
                "the limit on the address space (ulimit -v 20479) is too small; it must be at \
                 least 20480"
            )
        );
        assert!(lacking_of(1 << 20, 16 << 20).is_some(), "a limit that was set afterwards");
    }

    #[test]
    fn a_process_knows_its_size() {
        assert!(used().is_some_and(|bytes| bytes > 1 << 20));
    }
}
