//! What Python holds of a network or a back-end: one thing that one thread at a time may use, in
//! the process that made it.
//!
//! A network is one loop with everything that hangs on it. It may pass from thread to thread, but
//! two cannot run it at once: the second is refused, since it would wait for as long as the first
//! does, and perhaps for the interpreter, which the first needs to go on. While the thing is used
//! the interpreter is free for others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use sapwood::own_process_id;

use crate::error::{self, Failure};

/// A thing that Python holds.
pub(crate) trait Thing: Send {
    /// What it is called in messages.
    const NAME: &'static str;
    /// Lets go of what Python has dropped while the thing was in use.
    fn sweep(&mut self, dropped: Vec<u32>);
    /// Ends it.
    fn close(self) -> sapwood::Result<()>;
}

/// One thing, or nothing once it is closed.
pub(crate) struct Handle<T: Thing> {
    process: u32,
    thing: Mutex<Option<T>>,
    signals: Signals,
    /// What was dropped while another call used the thing, by number.
    dropped: Mutex<Vec<u32>>,
}

impl<T: Thing> Handle<T> {
    pub(crate) fn new(thing: T, signals: Signals) -> Self {
        let thing = Mutex::new(Some(thing));
        Self { process: own_process_id(), thing, signals, dropped: Mutex::default() }
    }

    /// Uses the thing while the interpreter is free for others.
    pub(crate) fn enter<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let mut guard = self.lock(py)?;
        let Some(thing) = guard.as_mut() else {
            return Err(Failure::closed(T::NAME).into_error(py));
        };
        let dropped = std::mem::take(&mut *relaxed(&self.dropped));
        let done = py.detach(move || {
            if !dropped.is_empty() {
                thing.sweep(dropped);
            }
            work(thing)
        });
        drop(guard);
        self.signals.raise(py, done)
    }

    /// Ends the thing; does nothing when it has ended already.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let thing = self.lock(py)?.take();
        let closed = py.detach(|| thing.map_or(Ok(()), Thing::close));
        self.signals.raise(py, closed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.thing.try_lock(), Ok(thing) if thing.is_none())
    }

    /// Something that hangs on the thing is not wanted any more; it goes when the thing is used
    /// next.
    pub(crate) fn drop_later(&self, number: u32) {
        relaxed(&self.dropped).push(number);
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<T>>> {
        if self.process != own_process_id() {
            let text = format!(
                "the {} belongs to process {}, which forked this one; open one after the fork",
                T::NAME,
                self.process
            );
            return Err(error::own(py, "ForkedError", &text));
        }
        match self.thing.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = format!(
                    "another call uses the {} or a stream of it just now; let one thread at a time \
                     use it",
                    T::NAME
                );
                Err(error::own(py, "ThreadError", &text))
            }
        }
    }
}

impl<T: Thing> Drop for Handle<T> {
    fn drop(&mut self) {
        let thing = self.thing.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thing) = thing else { return };
        if self.process != own_process_id() {
            // A forked child must neither end nor tell the network that its parent has.
            std::mem::forget(thing);
            return;
        }
        // Whoever wants to know how it went calls `close`.
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
    pub(crate) fn raise<R, E: Into<Failure>>(
        &self,
        py: Python<'_>,
        outcome: Result<R, E>,
    ) -> PyResult<R> {
        let raised = relaxed(&self.0).take();
        match (outcome.map_err(Into::into), raised) {
            (Ok(done), _) => Ok(done),
            (Err(Failure::Network(sapwood::Error::Interrupted { .. })), Some(raised)) => {
                Err(raised)
            }
            (Err(failure), _) => Err(failure.into_error(py)),
        }
    }
}

/// What a panic of another thread has left is still whole: nothing is changed in two steps.
fn relaxed<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
