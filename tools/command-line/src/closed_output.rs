//! A standard output that the caller has closed (`sapwood ... >&-`): what is written to it fails.
//!
//! Rust's start-up code opens `/dev/null` in the place of a standard stream that is closed, so that
//! everything written there would be lost in silence, with exit code 0. Only what runs before that
//! code sees the difference; by then a file that takes nothing can take its place.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};

/// A file that refuses every write.
const FULL: &str = "/dev/full";

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: what the loader calls from this section takes no arguments that it must read, and this
// function needs nothing of Rust's start-up code: it makes one system call and sets one flag.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let found = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    WAS_CLOSED.store(found.is_err(), Ordering::Relaxed);
}

/// Whether it was closed when this program was started.
pub(crate) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

/// Has writes to it fail if it was closed. Where the system has no such file they are lost.
pub(crate) fn refuse_writes() {
    if was_closed()
        && let Ok(full) = open(FULL, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
    {
        let _ = rustix::stdio::dup2_stdout(&full);
    }
}
