//! Waiting for any of many descriptors: a thin, level-triggered epoll.
//!
//! Level-triggered, so that an event passed over is reported again; the price, that an unwanted
//! event must be switched off by [`Poller::modify`], is paid at the moment a queue fills.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll};
use rustix::io::Errno;

use crate::{Error, Link, Result};

/// How many events one wait brings at most; the next wait brings the others.
const EVENTS_PER_WAIT_MAX: usize = 256;

/// What to wait for on a descriptor. A hang-up or error is reported whatever the interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read, a connection to accept, or the peer's close.
    pub read: bool,
    /// Room to write.
    pub write: bool,
}

impl Interest {
    /// Nothing but hang-ups.
    pub const NONE: Self = Self { read: false, write: false };
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false };
    /// Writing only.
    pub const WRITE: Self = Self { read: false, write: true };
    /// Both.
    pub const BOTH: Self = Self { read: true, write: true };

    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.read);
        flags.set(epoll::EventFlags::OUT, self.write);
        flags
    }
}

/// What became possible, on which descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token given with the descriptor.
    pub token: u64,
    /// Reading will not block: there are bytes, or the end.
    pub readable: bool,
    /// Writing will not block.
    pub writable: bool,
    /// Both directions are closed. Read the rest and remove the descriptor: this is reported again
    /// at every wait, whatever the interest, until it is removed.
    pub hung_up: bool,
}

/// A set of descriptors to wait for.
pub struct Poller {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
    waker: Option<(u64, Waker)>,
}

// SAFETY: The events that the system writes hold a union, of which only the numbers given with the
// descriptors are used, never the pointer. All else in a poller may go to another thread.
unsafe impl Send for Poller {}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor is free.
    pub fn new() -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|cause| Error::io("make a poller", cause))?;
        Ok(Self { epoll, ready: Vec::with_capacity(EVENTS_PER_WAIT_MAX), waker: None })
    }

    /// Adds any pollable descriptor: link, listener, pipe, process descriptor. The caller removes
    /// it before closing it, since a duplicate elsewhere would keep it in the set.
    ///
    /// # Errors
    /// [`Error::Io`] if it is in the set already or cannot be waited for.
    pub fn add(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(token), interest.flags())
            .map_err(|cause| Error::io("add a descriptor to the poller", cause))
    }

    /// Adds a link: its socket, to be read, and the bell of a link in shared memory. What the bell
    /// tells is both readable and writable, since the peer has written or made room; it tells so
    /// only after [`Link::announce_wait`], or after a short write.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn add_link(&self, link: &Link, token: u64) -> Result<()> {
        self.add(link, token, Interest::READ)?;
        let Some(bell) = link.bell() else { return Ok(()) };
        // Edge-triggered, since what is rung is never read.
        let flags = Interest::BOTH.flags() | epoll::EventFlags::ET;
        epoll::add(&self.epoll, bell, epoll::EventData::new_u64(token), flags)
            .map_err(|cause| Error::io("add a link's bell to the poller", cause))
    }

    /// Takes a link out. One in shared memory stays in the set otherwise, as long as its peer
    /// lives.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not in the set.
    pub fn remove_link(&self, link: &Link) -> Result<()> {
        if let Some(bell) = link.bell() {
            self.remove(bell)?;
        }
        self.remove(link)
    }

    /// Changes token and interest.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not in the set.
    pub fn modify(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
        epoll::modify(&self.epoll, descriptor, epoll::EventData::new_u64(token), interest.flags())
            .map_err(|cause| Error::io("change a descriptor's interest", cause))
    }

    /// Takes a descriptor out.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not in the set.
    pub fn remove(&self, descriptor: impl AsFd) -> Result<()> {
        epoll::delete(&self.epoll, descriptor)
            .map_err(|cause| Error::io("remove a descriptor from the poller", cause))
    }

    /// Makes (once) a waker whose call shows up as a readable event with `token`. The poller
    /// itself consumes the wake-up.
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor is free; [`Error::ApiMisuse`] for a second waker.
    pub fn waker(&mut self, token: u64) -> Result<Waker> {
        if self.waker.is_some() {
            return Err(Error::ApiMisuse { rule: "a poller has one waker; clone it" });
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let counter =
            rustix::event::eventfd(0, flags).map_err(|cause| Error::io("make a waker", cause))?;
        let waker = Waker { counter: Arc::new(counter) };
        self.add(&waker, token, Interest::READ)?;
        self.waker = Some((token, waker.clone()));
        Ok(waker)
    }

    /// Waits and replaces the contents of `events`: at once if something is ready, else until
    /// something is or `timeout` has passed (`None`: for ever), rounded up to a millisecond.
    ///
    /// A signal ends the wait early with no event: the caller looks at its clock in any case.
    ///
    /// # Errors
    /// [`Error::Io`] only if the poller is broken.
    pub fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> Result<()> {
        events.clear();
        self.ready.clear();
        // rustix turns this into epoll_pwait's milliseconds, rounding up. Finer waits need
        // epoll_pwait2 and so Linux 5.11, which clusters in use do not have everywhere.
        let timeout = timeout.map(|wait| Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX).min(SECONDS_PER_WAIT_MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        });
        let spare = rustix::buffer::spare_capacity(&mut self.ready);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(cause) => return Err(Error::io("wait for descriptors", cause)),
        }
        for ready in &self.ready {
            let (token, flags) = (ready.data.u64(), ready.flags);
            let hung_up = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            events.push(Event {
                token,
                readable: flags.contains(epoll::EventFlags::IN),
                writable: flags.contains(epoll::EventFlags::OUT),
                hung_up,
            });
            if let Some((waker_token, waker)) = &self.waker
                && *waker_token == token
            {
                waker.consume();
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poller").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

/// A longer wait than this many seconds is cut; the caller waits again. About 23 days, the most
/// whose milliseconds fit in the kernel's `int`.
const SECONDS_PER_WAIT_MAX: i64 = 2_000_000;

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Ends another thread's [`Poller::wait`]. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Waker {
    counter: Arc<OwnedFd>,
}

impl Waker {
    /// Wakes the poller, now or at its next wait. Several calls may become one event.
    ///
    /// # Errors
    /// The operating system's, if the descriptor is broken.
    pub fn wake(&self) -> io::Result<()> {
        match rustix::io::write(&self.counter, &1_u64.to_ne_bytes()) {
            // A full counter is a wake-up that is still pending.
            Ok(_) | Err(Errno::WOULDBLOCK) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    fn consume(&self) {
        let mut count = [0_u8; 8];
        // An error can only be "nothing there", if a clone of this poller's waker raced us.
        let _ = rustix::io::read(&self.counter, &mut count);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn an_event_is_repeated_until_it_is_dealt_with_and_interest_masks_it() {
        let mut poller = Poller::new().unwrap();
        let (one, mut two) = std::os::unix::net::UnixStream::pair().unwrap();
        poller.add(&one, 7, Interest::READ).unwrap();
        let mut events = Vec::new();
        poller.wait(&mut events, AT_ONCE).unwrap();
        assert!(events.is_empty());
        two.write_all(b"x").unwrap();
        for _ in 0..2 {
            poller.wait(&mut events, None).unwrap();
            let expected = Event { token: 7, readable: true, writable: false, hung_up: false };
            assert_eq!(events, [expected]);
        }
        poller.modify(&one, 8, Interest::NONE).unwrap();
        poller.wait(&mut events, AT_ONCE).unwrap();
        assert!(events.is_empty());
        poller.modify(&one, 8, Interest::BOTH).unwrap();
        drop(two);
        poller.wait(&mut events, None).unwrap();
        assert!(events[0].token == 8 && events[0].hung_up && events[0].readable);
        poller.remove(&one).unwrap();
        poller.wait(&mut events, AT_ONCE).unwrap();
        assert!(events.is_empty());
        assert!(poller.remove(&one).is_err());
    }

    #[test]
    fn a_waker_wakes_from_another_thread_once() {
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker(u64::MAX).unwrap();
        assert!(poller.waker(1).is_err());
        let thread = std::thread::spawn(move || (waker.wake().unwrap(), waker.wake().unwrap()));
        thread.join().unwrap();
        let mut events = Vec::new();
        poller.wait(&mut events, None).unwrap();
        assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [u64::MAX]);
        poller.wait(&mut events, AT_ONCE).unwrap();
        assert!(events.is_empty());
    }

    #[test]
    fn the_end_of_a_process_is_an_event() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = rustix::process::Pid::from_child(&child);
        let flags = rustix::process::PidfdFlags::empty();
        let descriptor = rustix::process::pidfd_open(process, flags).unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&descriptor, 1, Interest::READ).unwrap();
        let mut events = Vec::new();
        poller.wait(&mut events, Some(Duration::from_secs(30))).unwrap();
        assert!(events[0].readable);
        child.wait().unwrap();
    }
}
