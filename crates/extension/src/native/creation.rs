//! The state of an instance, which may take any time to make: it is made on a thread of its own,
//! and the opening of a stream waits for it only briefly.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sapwood_filter::{Emitter, FilterError};
use sapwood_packet::{Values, ValuesRef};

use super::emission::Emission;
use super::filter::failed;
use super::interface::RawFilter;
use super::library::Library;
use super::view::push_values;

/// How long the opening of a stream waits. What takes longer is waited for by the call that needs
/// the state first, apart from the process's loop and within its limits.
const PROMPT: Duration = Duration::from_millis(100);

/// Most threads of a process on which states are being made, those included that never end.
const THREADS_MAX: usize = 16;

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A state that was made. It is destroyed with this, on whatever thread that is.
struct Made {
    state: *mut c_void,
    functions: RawFilter,
    /// The functions are in it.
    _library: Arc<Library>,
}

// SAFETY: the header demands that an instance can be used by one thread after another.
unsafe impl Send for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(destroy) = self.functions.destroy {
            // SAFETY: the state is what create gave, and no reference to it is left.
            unsafe { destroy(self.state) };
        }
    }
}

/// A state that is there, or will be, or could not be made.
pub(super) struct Creation(Stage);

enum Stage {
    Made(Made),
    /// A thread is making it, and its result was not received yet.
    UnderWay(Receiver<Result<Made, FilterError>>),
    Failed(FilterError),
}

impl Creation {
    /// Has a state made out of parameters, and waits for it briefly.
    pub(super) fn begin(
        library: Arc<Library>,
        name: &str,
        functions: RawFilter,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        if functions.create.is_none() {
            if !parameters.format().is_empty() {
                return Err(failed(name, "takes no parameters"));
            }
            let made = Made { state: ptr::null_mut(), functions, _library: library };
            return Ok(Self(Stage::Made(made)));
        }
        let (sender, receiver) = sync_channel(1);
        start_thread(name, library, parameters.to_values(), sender)?;
        match receiver.recv_timeout(PROMPT) {
            Ok(made) => made.map(|made| Self(Stage::Made(made))),
            Err(RecvTimeoutError::Timeout) => Ok(Self(Stage::UnderWay(receiver))),
            Err(RecvTimeoutError::Disconnected) => Err(unmade(name)),
        }
    }

    /// The state, once it is made. The caller waits for it, at most as long as a filter may run.
    #[inline]
    pub(super) fn state(&mut self, name: &str) -> Result<*mut c_void, FilterError> {
        match &self.0 {
            Stage::Made(made) => Ok(made.state),
            _ => self.wait(name),
        }
    }

    #[cold]
    fn wait(&mut self, name: &str) -> Result<*mut c_void, FilterError> {
        if let Stage::UnderWay(receiver) = &self.0 {
            let made = receiver.recv().unwrap_or_else(|_| Err(unmade(name)));
            self.0 = made.map_or_else(Stage::Failed, Stage::Made);
        }
        match &self.0 {
            Stage::Made(made) => Ok(made.state),
            Stage::Failed(error) => Err(error.clone()),
            Stage::UnderWay(_) => Err(unmade(name)),
        }
    }

    /// The state, if it is there already.
    pub(super) fn made(&self) -> Option<*mut c_void> {
        match &self.0 {
            Stage::Made(made) => Some(made.state),
            _ => None,
        }
    }
}

#[cold]
fn unmade(name: &str) -> FilterError {
    failed(name, "was not made")
}

/// Has a thread make a state. If the receiver is dropped before, the thread destroys the state.
fn start_thread(
    name: &str,
    library: Arc<Library>,
    parameters: Values,
    sender: SyncSender<Result<Made, FilterError>>,
) -> Result<(), FilterError> {
    if THREADS.fetch_add(1, Ordering::Relaxed) >= THREADS_MAX {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        let reason = format!("cannot be made: {THREADS_MAX} other calls have not returned");
        return Err(failed(name, &reason));
    }
    let own = name.to_string();
    let work = move || {
        // The receiver may have been dropped.
        let _ = sender.send(make(&own, library, &parameters));
        THREADS.fetch_sub(1, Ordering::Relaxed);
    };
    let started = thread::Builder::new().name(String::from("sapwood-create")).spawn(work);
    started.map(drop).map_err(|error| {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        failed(name, &format!("cannot be made: no thread can be started: {error}"))
    })
}

fn make(name: &str, library: Arc<Library>, parameters: &Values) -> Result<Made, FilterError> {
    let (_, functions) = library.find(name)?;
    let Some(create) = functions.create else { return Err(unmade(name)) };
    let mut values = Vec::new();
    push_values(&mut values, parameters.as_ref())?;
    let mut state = ptr::null_mut();
    let mut emitter = Emitter::new();
    let mut out = Emission::into(&mut emitter);
    // SAFETY: the header's contract; the values live until the call returns.
    let code =
        unsafe { create(values.as_ptr(), values.len() as u32, &raw mut state, out.as_raw()) };
    // A library that fails must free what it has allocated: destroy is not called for it.
    out.outcome(name, code)?;
    Ok(Made { state, functions, _library: library })
}
