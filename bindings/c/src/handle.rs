//! Handles that keep a thread and a process: what C holds of a network, a stream or a back-end.
//!
//! The thing behind a handle is not shared between threads, and its sockets are not a forked
//! child's to write to. Both are checked here before anything else is touched, with words that
//! never change after the handle was made, so that the check is sound on a wrong thread too.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Failure, Result, sapwood_error_code_t as Code};

/// An opaque type of the header, and what stands behind it.
pub(crate) trait Handle {
    /// What stands behind it.
    type Thing;
    /// What it is called in messages.
    const NAME: &'static str;
}

/// A thing with the thread and process that it belongs to.
struct Kept<T> {
    thread: u64,
    process: u32,
    thing: T,
}

/// This thread's number; never used again for another thread, unlike the system's.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Without a destructor, so that the library can be unloaded while threads live on.
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Whether the caller may use what keeps this thread and process.
fn check(name: &str, thread: u64, process: u32) -> Result<()> {
    if process != std::process::id() {
        let text = format!("{name}: belongs to process {process}, which forked this one");
        return Err(Failure::new(Code::SAPWOOD_ERROR_FORKED, text));
    }
    if thread != this_thread() {
        let text = format!("{name}: belongs to another thread; use it where it was made");
        return Err(Failure::new(Code::SAPWOOD_ERROR_THREAD, text));
    }
    Ok(())
}

/// Makes a thing and gives it to the caller under a handle; `out` is NULL if that fails.
///
/// # Safety
/// `out` is NULL or points to a handle's variable.
pub(crate) unsafe fn give<H: Handle>(
    out: *mut *mut H,
    make: impl FnOnce() -> Result<H::Thing>,
) -> Result<()> {
    if out.is_null() {
        return Err(Failure::usage(format!("{}: no place to put the handle (NULL)", H::NAME)));
    }
    // SAFETY: not NULL, so the caller's variable.
    unsafe { out.write(std::ptr::null_mut()) };
    let thing = make()?;
    let kept = Kept { thread: this_thread(), process: std::process::id(), thing };
    // SAFETY: as above.
    unsafe { out.write(Box::into_raw(Box::new(kept)).cast()) };
    Ok(())
}

/// The thing behind a handle.
///
/// # Safety
/// `handle` is NULL or was given by [`give`] and not taken back; the result is dropped before the
/// function of the header returns, so that there is never a second one.
pub(crate) unsafe fn lend<'a, H: Handle>(handle: *const H) -> Result<&'a mut H::Thing> {
    let kept = handle.cast_mut().cast::<Kept<H::Thing>>();
    if kept.is_null() {
        return Err(Failure::usage(format!("{}: the handle is NULL; open it first", H::NAME)));
    }
    // SAFETY: the handle is alive; its thread and process never change, so they can be read on any
    // thread. The thing itself is borrowed only on its own thread.
    unsafe {
        check(H::NAME, (*kept).thread, (*kept).process)?;
        Ok(&mut (*kept).thing)
    }
}

/// Takes the thing back and sets the caller's handle to NULL; nothing when it is NULL already.
///
/// # Safety
/// `handle` is NULL or points to a handle's variable, which [`lend`]'s conditions hold for.
pub(crate) unsafe fn take<H: Handle>(handle: *mut *mut H) -> Result<Option<H::Thing>> {
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so the caller's variable.
    let kept = unsafe { handle.read() }.cast::<Kept<H::Thing>>();
    if kept.is_null() {
        return Ok(None);
    }
    // SAFETY: as in `lend`; on its own thread the thing is the caller's to give back.
    let kept = unsafe {
        check(H::NAME, (*kept).thread, (*kept).process)?;
        handle.write(std::ptr::null_mut());
        Box::from_raw(kept)
    };
    Ok(Some(kept.thing))
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Bell {}

    impl Handle for Bell {
        type Thing = String;
        const NAME: &'static str = "bell";
    }

    #[test]
    fn a_handle_is_given_lent_and_taken_once() {
        let mut bell: *mut Bell = std::ptr::null_mut();
        // SAFETY: one variable, used by this thread alone.
        unsafe {
            give(&raw mut bell, || Ok("ding".to_owned())).expect("made");
            assert_eq!(lend(bell).expect("alive"), "ding");
            assert_eq!(take(&raw mut bell).expect("ours").as_deref(), Some("ding"));
            assert!(bell.is_null());
            assert!(matches!(take(&raw mut bell), Ok(None)));
            assert_eq!(lend(bell).expect_err("gone").code, Code::SAPWOOD_ERROR_USAGE);
        }
    }

    #[test]
    fn another_thread_is_refused_and_takes_nothing() {
        let mut bell: *mut Bell = std::ptr::null_mut();
        // SAFETY: the other thread is joined before the variable is used again.
        unsafe {
            give(&raw mut bell, || Ok("ding".to_owned())).expect("made");
            let place = bell as usize;
            let refused = std::thread::spawn(move || {
                let mut bell = place as *mut Bell;
                let lent = lend(bell).expect_err("not ours").code;
                let taken = take(&raw mut bell).expect_err("not ours").code;
                (lent, taken, bell.is_null())
            });
            let wrong = Code::SAPWOOD_ERROR_THREAD;
            assert_eq!(refused.join().expect("no panic"), (wrong, wrong, false));
            assert!(matches!(take(&raw mut bell), Ok(Some(_))));
        }
    }

    #[test]
    fn another_process_is_refused() {
        let here = std::process::id();
        assert!(check("bell", this_thread(), here).is_ok());
        let error = check("bell", this_thread(), here + 1).expect_err("another process");
        assert_eq!(error.code, Code::SAPWOOD_ERROR_FORKED);
    }
}
