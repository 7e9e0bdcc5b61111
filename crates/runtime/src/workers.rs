//! Threads that run filters apart from the loop.
//!
//! The node says which ([`sapwood_node::Job`]); a thread runs one job at a time and wakes the loop
//! when it is done. Threads are started when none is idle, and end when they have been idle for a
//! while. A thread whose job never returns cannot be ended: neither the loop nor the end of the
//! process waits for it, and another thread takes its place.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use sapwood_node::Job;
use sapwood_transport::Waker;

/// Jobs that the node waits for at a time; more wait at the node.
pub(crate) const JOBS_MAX: usize = 16;
/// The most threads, including those whose job never returns: beyond that, jobs fail.
const THREADS_MAX: usize = 256;
/// How long a thread waits for another job.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// The threads of one process.
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    has_job: Condvar,
    waker: Waker,
}

#[derive(Default)]
struct State {
    /// Jobs that no thread has begun.
    jobs: VecDeque<Job>,
    /// Jobs that are done, and how long they took.
    done: Vec<(Job, Duration)>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl Workers {
    /// No threads yet; `waker` is called when a job is done.
    pub(crate) fn new(waker: Waker) -> Self {
        let state = Mutex::new(State::default());
        Self(Arc::new(Shared { state, has_job: Condvar::new(), waker }))
    }

    /// Has a job run.
    pub(crate) fn begin(&self, job: Job) {
        let mut state = self.0.lock();
        if state.idle > state.jobs.len() {
            state.jobs.push_back(job);
            drop(state);
            return self.0.has_job.notify_one();
        }
        state.jobs.push_back(job);
        let Err(reason) = self.start_thread(&mut state) else { return };
        if let Some(mut job) = state.jobs.pop_back() {
            job.give_up(reason);
            state.done.push((job, Duration::ZERO));
        }
        drop(state);
        self.0.wake();
    }

    /// Starts a thread for the last job; gives why that cannot be.
    fn start_thread(&self, state: &mut State) -> Result<(), String> {
        if state.threads == THREADS_MAX {
            return Err(format!(
                "cannot be run: {THREADS_MAX} threads run filters that have not returned"
            ));
        }
        let shared = Arc::clone(&self.0);
        let started = thread::Builder::new()
            .name(String::from("sapwood-filter"))
            .spawn(move || shared.work());
        match started {
            Ok(_) => {
                state.threads += 1;
                Ok(())
            }
            Err(error) => Err(format!("cannot be run: no thread can be started: {error}")),
        }
    }

    /// Jobs that are done, and how long each took.
    pub(crate) fn take_done(&self) -> Vec<(Job, Duration)> {
        std::mem::take(&mut self.0.lock().done)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // A busy thread ends when its job returns, if ever.
        self.0.lock().is_over = true;
        self.0.has_job.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No filter runs while it is locked, and nothing else of it panics.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wake(&self) {
        // This fails only if the descriptor is closed, and then no loop waits on it.
        let _ = self.waker.wake();
    }

    /// What a thread does from its beginning to its end.
    fn work(&self) {
        while let Some(mut job) = self.next() {
            let begun = Instant::now();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.run())) {
                job.give_up(format!("has panicked: {}", text_of(&*panic)));
            }
            let mut state = self.lock();
            if state.is_over {
                break;
            }
            state.done.push((job, begun.elapsed()));
            drop(state);
            self.wake();
        }
        self.lock().threads -= 1;
    }

    /// Waits for a job; none when the thread is to end.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let waited = self.has_job.wait_timeout(state, IDLE_TIME);
            let is_late;
            (state, is_late) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            state.idle -= 1;
            // A job may have been queued between the end of the wait and the lock.
            if is_late.timed_out() && state.jobs.is_empty() {
                return None;
            }
        }
    }
}

/// What a panic said, where it said something.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a reason")
}
