//! Handles that keep a thread and a process: what C holds of a network, a stream or a back-end.
//!
//! The thing behind a handle is not shared between threads, and its sockets are not a forked
//! child's to write to. Both are checked here before anything else is touched, with words that
//! are read whole, so that the check is sound on a wrong thread too. What comes from one network
//! hangs together, so all of its handles share the word that names their thread.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sapwood::own_process_id;

use crate::error::{Failure, Result, sapwood_error_code_t as Code};

/// An opaque type of the header, and the Rust type behind it.
pub(crate) trait Handle {
    /// The Rust type behind it.
    type Thing;
    /// Its name in messages.
    const NAME: &'static str;
}

/// A thing with the thread and process that it belongs to.
struct Kept<T> {
    thread: Arc<AtomicU64>,
    process: u32,
    /// Nothing once the handle was closed: a copy of it still finds this, for a while.
    thing: Option<T>,
}

/// The remains of closed handles, the oldest first: their memory is reused only after
/// [`CLOSED_MAX`] further ones have been closed, so that the use of a copy of a closed handle is
/// detected.
static CLOSED: Mutex<VecDeque<Closed>> = Mutex::new(VecDeque::new());

/// How many handles are known for closed.
const CLOSED_MAX: usize = 1024;

/// A closed handle's memory, and how it is given back.
struct Closed {
    kept: *mut c_void,
    free: unsafe fn(*mut c_void),
}

// SAFETY: nothing is left in that memory that belongs to a thread.
unsafe impl Send for Closed {}

/// Keeps the memory of a handle that was closed, and gives back that of the oldest.
///
/// # Safety
/// `kept` was made by `Box::into_raw`, holds no thing any more, and comes here once.
unsafe fn retire<T>(kept: *mut Kept<T>) {
    // SAFETY: as the caller says, and it is called once, below.
    let free = |kept: *mut c_void| drop(unsafe { Box::from_raw(kept.cast::<Kept<T>>()) });
    let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    closed.push_back(Closed { kept: kept.cast(), free });
    if closed.len() > CLOSED_MAX
        && let Some(oldest) = closed.pop_front()
    {
        // SAFETY: each is in the queue once.
        unsafe { (oldest.free)(oldest.kept) };
    }
}

fn was_closed(name: &str) -> Failure {
    Failure::usage(format!("{name}: was closed; this is a copy of its handle"))
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
    if process != own_process_id() {
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
    // SAFETY: as the caller says.
    unsafe { give_beside(out, || Ok((Arc::new(AtomicU64::new(this_thread())), make()?))) }
}

/// As [`give`], for a thing that hangs together with what another handle holds: it keeps that
/// handle's thread, from [`thread_of`].
///
/// # Safety
/// As [`give`].
pub(crate) unsafe fn give_beside<H: Handle>(
    out: *mut *mut H,
    make: impl FnOnce() -> Result<(Arc<AtomicU64>, H::Thing)>,
) -> Result<()> {
    if out.is_null() {
        return Err(Failure::usage(format!("{}: no place to put the handle (NULL)", H::NAME)));
    }
    // SAFETY: not NULL, so the caller's variable.
    unsafe { out.write(std::ptr::null_mut()) };
    let (thread, thing) = make()?;
    let kept = Kept { thread, process: own_process_id(), thing: Some(thing) };
    // SAFETY: as above.
    unsafe { out.write(Box::into_raw(Box::new(kept)).cast()) };
    Ok(())
}

/// Gives C what was received, an answer or a packet, which is plain memory; NULL if nothing was.
///
/// # Safety
/// `out` is NULL or points to a handle's variable.
pub(crate) unsafe fn give_received<C>(
    out: *mut *mut C,
    name: &str,
    receive: impl FnOnce() -> Result<Option<C>>,
) -> Result<()> {
    if out.is_null() {
        return Err(Failure::usage(format!("{name}: no place to put the handle (NULL)")));
    }
    // SAFETY: not NULL, so the caller's variable.
    unsafe { out.write(std::ptr::null_mut()) };
    if let Some(received) = receive()? {
        // SAFETY: as above.
        unsafe { out.write(Box::into_raw(Box::new(received))) };
    }
    Ok(())
}

/// The thing behind a handle.
///
/// # Safety
/// `handle` is NULL or was given by [`give`], and is not so old that [`retire`] has forgotten it;
/// the result is dropped before the function of the header returns, so that there is never a second
/// one.
pub(crate) unsafe fn lend<'a, H: Handle>(handle: *const H) -> Result<&'a mut H::Thing> {
    let kept = handle.cast_mut().cast::<Kept<H::Thing>>();
    if kept.is_null() {
        return Err(Failure::usage(format!("{}: the handle is NULL; open it first", H::NAME)));
    }
    // SAFETY: the handle is alive; its thread and process can be read on any thread. The thing
    // itself is borrowed only on its own thread.
    unsafe {
        check(H::NAME, (*kept).thread.load(Ordering::Relaxed), (*kept).process)?;
        (*kept).thing.as_mut().ok_or_else(|| was_closed(H::NAME))
    }
}

/// The word that names the thread of a handle, for those that hang together with it.
///
/// # Safety
/// As [`lend`].
pub(crate) unsafe fn thread_of<H: Handle>(handle: *const H) -> Result<Arc<AtomicU64>> {
    // SAFETY: as the caller says.
    unsafe {
        lend(handle)?;
        Ok(Arc::clone(&(*handle.cast::<Kept<H::Thing>>()).thread))
    }
}

/// Makes this thread that of a handle, and of all that hang together with it.
///
/// # Safety
/// As [`lend`]; and no other thread uses any of those handles meanwhile, and what they did before
/// is seen by this one, as it is where a lock is held around every use.
pub(crate) unsafe fn bring<H: Handle>(handle: *const H) -> Result<()> {
    let kept = handle.cast::<Kept<H::Thing>>();
    if kept.is_null() {
        return Err(Failure::usage(format!("{}: the handle is NULL; open it first", H::NAME)));
    }
    // SAFETY: the handle is alive.
    unsafe {
        check(H::NAME, this_thread(), (*kept).process)?;
        (*kept).thread.store(this_thread(), Ordering::Relaxed);
    }
    Ok(())
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
    unsafe {
        check(H::NAME, (*kept).thread.load(Ordering::Relaxed), (*kept).process)?;
        let thing = (*kept).thing.take().ok_or_else(|| was_closed(H::NAME))?;
        handle.write(std::ptr::null_mut());
        retire(kept);
        Ok(Some(thing))
    }
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
    fn a_copy_of_a_closed_handle_is_known_for_one() {
        let mut bell: *mut Bell = std::ptr::null_mut();
        // SAFETY: one variable, used by this thread alone; its copies are young enough.
        unsafe {
            give(&raw mut bell, || Ok("ding".to_owned())).expect("made");
            let mut copy = bell;
            assert!(matches!(take(&raw mut bell), Ok(Some(_))));
            for _ in 0..2 {
                let lent = lend(copy).expect_err("gone");
                assert_eq!(lent.code, Code::SAPWOOD_ERROR_USAGE);
                assert!(lent.text.contains("was closed"), "{}", lent.text);
                assert!(take(&raw mut copy).is_err());
                for _ in 0..CLOSED_MAX / 4 {
                    give(&raw mut bell, || Ok("dong".to_owned())).expect("made");
                    assert!(matches!(take(&raw mut bell), Ok(Some(_))));
                }
            }
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
    fn what_hangs_together_is_brought_together() {
        let mut bell: *mut Bell = std::ptr::null_mut();
        let mut other = bell;
        // SAFETY: the other thread is joined before the variables are used again.
        unsafe {
            give(&raw mut bell, || Ok("ding".to_owned())).expect("made");
            let beside = || Ok((thread_of(bell)?, "dong".to_owned()));
            give_beside(&raw mut other, beside).expect("made");
            let places = (bell as usize, other as usize);
            let brought = std::thread::spawn(move || {
                let (bell, other) = (places.0 as *mut Bell, places.1 as *mut Bell);
                bring(bell).expect("alive");
                lend(other).map(|thing| thing.clone())
            });
            assert_eq!(brought.join().expect("no panic").expect("brought"), "dong");
            assert_eq!(lend(other).expect_err("gone").code, Code::SAPWOOD_ERROR_THREAD);
            bring(other).expect("alive");
            assert!(matches!((take(&raw mut bell), take(&raw mut other)), (Ok(_), Ok(_))));
        }
    }

    #[test]
    fn another_process_is_refused() {
        let here = own_process_id();
        assert!(check("bell", this_thread(), here).is_ok());
        let error = check("bell", this_thread(), here + 1).expect_err("another process");
        assert_eq!(error.code, Code::SAPWOOD_ERROR_FORKED);
    }
}
