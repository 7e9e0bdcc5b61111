//! The way from other threads of this process into the loop that watches the program.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::ControlRequest;
use sapwood_command_line::exit::Failure;

/// Where a thread asks; cheap to clone.
#[derive(Clone, Debug)]
pub struct ControlChannel {
    requests: Sender<Waiting>,
    waker: Arc<Mutex<PipeWriter>>,
}

/// A request and where its answer goes.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) request: ControlRequest,
    pub(crate) answer: Sender<String>,
}

/// The end of the channel in the loop.
#[derive(Debug)]
pub(crate) struct ControlQueue {
    requests: Receiver<Waiting>,
    wakes: PipeReader,
}

impl ControlChannel {
    /// A channel and its queue.
    ///
    /// # Errors
    /// When the system gives no pipe.
    pub(crate) fn open() -> Result<(Self, ControlQueue), Failure> {
        let (wakes, waker) = std::io::pipe().map_err(|error| Failure::own(&error))?;
        let (sender, requests) = channel();
        let waker = Arc::new(Mutex::new(waker));
        Ok((Self { requests: sender, waker }, ControlQueue { requests, wakes }))
    }

    /// Asks, and waits for the answer, which is JSON as `sapwood mpi control --json` prints it;
    /// none if the run has ended.
    #[must_use]
    pub fn ask(&self, request: ControlRequest) -> Option<String> {
        let (answer, answers) = channel();
        self.requests.send(Waiting { request, answer }).ok()?;
        let mut waker = self.waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waker.write_all(b"c").ok()?;
        drop(waker);
        answers.recv().ok()
    }
}

impl ControlQueue {
    /// The next request. For each there is one byte in the pipe, which is there already.
    pub(crate) fn next(&mut self) -> Option<Waiting> {
        let waiting = self.requests.try_recv().ok()?;
        let mut byte = [0];
        // The writer is at its byte.
        let _ = self.wakes.read_exact(&mut byte);
        Some(waiting)
    }
}

impl AsFd for ControlQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_asks_and_the_loop_answers() {
        let (channel, mut queue) = ControlChannel::open().expect("a pipe");
        assert!(queue.next().is_none());
        let asking = std::thread::spawn(move || {
            channel.ask(ControlRequest { flush: true, ..ControlRequest::default() })
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let waiting = loop {
            assert!(std::time::Instant::now() < deadline, "no request came");
            if let Some(waiting) = queue.next() {
                break waiting;
            }
            std::thread::yield_now();
        };
        assert!(waiting.request.flush);
        waiting.answer.send("{}".to_string()).expect("it waits");
        assert_eq!(asking.join().expect("it ends"), Some("{}".to_string()));
    }

    #[test]
    fn who_asks_a_run_that_has_ended_is_told() {
        let (channel, queue) = ControlChannel::open().expect("a pipe");
        drop(queue);
        assert_eq!(channel.ask(ControlRequest::default()), None);
    }
}
