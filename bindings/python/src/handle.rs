//! What Python holds of a network or a back-end: one thing that one thread at a time may use, in
//! the process that made it.
//!
//! A network is one loop with everything that hangs on it. It may pass from thread to thread, but
//! two cannot run it at once: the second is refused, since it would wait for as long as the first
//! does, and perhaps for the interpreter, which the first needs to go on. While the thing is used
//! the interpreter is free for others.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use sapwood::own_process_id;

use crate::error::{self, Failure};

/// A thing that Python holds.
pub(crate) trait Thing: Send {
    /// Its name in messages.
    const NAME: &'static str;
    /// Lets go of what Python has dropped while the thing was in use.
    fn sweep(&mut self, dropped: Vec<u32>);
    /// Ends it.
    fn close(self) -> sapwood::Result<()>;
}

/// One thing, or nothing once it is closed.
pub(crate) struct Handle<T: Thing> {
    process: u32,
    /// Whether a call is using the thing: the call that has set it may.
    is_used: AtomicBool,
    thing: UnsafeCell<Option<T>>,
    is_closed: AtomicBool,
    signals: Signals,
    has_dropped: AtomicBool,
    /// What was dropped while another call used the thing, by number.
    dropped: Mutex<Vec<u32>>,
}

// SAFETY: a `Use` alone reaches the thing, and there is at most one; the thing may go from thread
// to thread.
unsafe impl<T: Thing> Sync for Handle<T> {}

/// The right to use a handle's thing, until this is dropped.
struct Use<'a, T: Thing>(&'a Handle<T>);

impl<T: Thing> Use<'_, T> {
    fn thing(&mut self) -> &mut Option<T> {
        // SAFETY: there is no other `Use`, and this one is borrowed as long as the result.
        unsafe { &mut *self.0.thing.get() }
    }
}

impl<T: Thing> Drop for Use<'_, T> {
    fn drop(&mut self) {
        self.0.is_used.store(false, Ordering::Release);
    }
}

impl<T: Thing> Handle<T> {
    pub(crate) fn new(thing: T, signals: Signals) -> Self {
        Self {
            process: own_process_id(),
            is_used: AtomicBool::new(false),
            thing: UnsafeCell::new(Some(thing)),
            is_closed: AtomicBool::new(false),
            signals,
            has_dropped: AtomicBool::new(false),
            dropped: Mutex::default(),
        }
    }

    /// Uses the thing while the interpreter is free for others.
    #[inline]
    pub(crate) fn enter<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let mut used = self.begin(py)?;
        let Some(thing) = used.thing() else { return Err(closed::<T>(py)) };
        let done = py.detach(move || work(thing));
        drop(used);
        self.signals.raise(py, done)
    }

    /// Uses the thing for something short that never waits, and keeps the interpreter: giving it
    /// away and taking it back costs more.
    #[inline]
    pub(crate) fn touch<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> PyResult<R> {
        let mut used = self.begin(py)?;
        let Some(thing) = used.thing() else { return Err(closed::<T>(py)) };
        let done = work(thing);
        drop(used);
        done.map_err(|failure| failure.into_error(py))
    }

    /// Ends the thing; does nothing when it has ended already.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut used = self.lock(py)?;
        let thing = used.thing().take();
        self.is_closed.store(true, Ordering::Relaxed);
        drop(used);
        let closed = py.detach(|| thing.map_or(Ok(()), Thing::close));
        self.signals.raise(py, closed)
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Something that hangs on the thing is not wanted any more; it goes when the thing is used
    /// next.
    pub(crate) fn drop_later(&self, number: u32) {
        relaxed(&self.dropped).push(number);
        self.has_dropped.store(true, Ordering::Release);
    }

    /// The right to use the thing, which has let go of what was dropped.
    #[inline]
    fn begin(&self, py: Python<'_>) -> PyResult<Use<'_, T>> {
        let mut used = self.lock(py)?;
        if self.has_dropped.load(Ordering::Relaxed) {
            self.sweep(py, used.thing());
        }
        Ok(used)
    }

    #[cold]
    fn sweep(&self, py: Python<'_>, thing: &mut Option<T>) {
        self.has_dropped.store(false, Ordering::Relaxed);
        let dropped = std::mem::take(&mut *relaxed(&self.dropped));
        if let Some(thing) = thing {
            py.detach(|| thing.sweep(dropped));
        }
    }

    #[inline]
    fn lock(&self, py: Python<'_>) -> PyResult<Use<'_, T>> {
        if self.process != own_process_id() {
            return Err(forked::<T>(py, self.process));
        }
        if self.is_used.swap(true, Ordering::Acquire) {
            return Err(in_use::<T>(py));
        }
        Ok(Use(self))
    }
}

#[cold]
fn closed<T: Thing>(py: Python<'_>) -> PyErr {
    Failure::closed(T::NAME).into_error(py)
}

#[cold]
fn forked<T: Thing>(py: Python<'_>, process: u32) -> PyErr {
    let text = format!(
        "the {} belongs to process {process}, which forked this one; open one after the fork",
        T::NAME,
    );
    error::own(py, "ForkedError", &text)
}

#[cold]
fn in_use<T: Thing>(py: Python<'_>) -> PyErr {
    let text = format!(
        "another call uses the {} or a stream of it just now; let one thread at a time use it",
        T::NAME
    );
    error::own(py, "ThreadError", &text)
}

impl<T: Thing> Drop for Handle<T> {
    fn drop(&mut self) {
        let thing = self.thing.get_mut().take();
        let Some(thing) = thing else { return };
        if self.process != own_process_id() {
            // A forked child must neither end nor tell the network that its parent has.
            std::mem::forget(thing);
            return;
        }
        // A drop cannot report an error; `close` does.
        let mut left = Some(thing);
        let mut close = || left.take().map(Thing::close);
        if Python::try_attach(|py| py.detach(&mut close)).is_none() {
            close();
        }
    }
}

/// Python's signals, asked for while a call waits: an exception that a handler raises ends the
/// wait.
#[derive(Clone, Default)]
pub(crate) struct Signals(Arc<Mutex<Option<PyErr>>>);

impl Signals {
    /// What the network is to ask while it waits.
    pub(crate) fn hook(&self) -> impl FnMut() -> bool + Send + 'static {
        let slot = Arc::clone(&self.0);
        move || {
            let checked = Python::try_attach(|py| py.check_signals());
            match checked {
                Some(Ok(())) => false,
                Some(Err(raised)) => {
                    *relaxed(&slot) = Some(raised);
                    true
                }
                // The interpreter is about to end.
                None => true,
            }
        }
    }

    /// The exception that ended a wait, in the place of the news that it ended; else the outcome.
    #[inline]
    pub(crate) fn raise<R, E: Into<Failure>>(
        &self,
        py: Python<'_>,
        outcome: Result<R, E>,
    ) -> PyResult<R> {
        outcome.map_err(|failure| self.error_of(py, failure.into()))
    }

    #[cold]
    fn error_of(&self, py: Python<'_>, failure: Failure) -> PyErr {
        match (failure, relaxed(&self.0).take()) {
            (Failure::Network(sapwood::Error::Interrupted { .. }), Some(raised)) => raised,
            (failure, _) => failure.into_error(py),
        }
    }
}

/// What a panic of another thread has left is still whole: nothing is changed in two steps.
pub(crate) fn relaxed<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
