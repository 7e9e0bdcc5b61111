//! Connecting and proving the key without ever blocking, for a process that has other things to do
//! meanwhile.
//!
//! A [`Dial`] is one attempt. The addresses of a host are tried one after another; the errors of
//! those that failed are weighed at the end. How long an attempt may take is the caller's matter:
//! it drops the dial to give up.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::listener::tcp_peer;
use crate::{Address, Error, Handshake, Interest, Key, LinkTerms, Progress, Result, socket};

/// The first and the longest pause while a Unix listener's backlog is full: the kernel has no event
/// for its end.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LONGEST: Duration = Duration::from_millis(32);

/// An attempt to get a link, under way.
///
/// Wait for [`Dial::interest`] on its descriptor, then call [`Dial::advance`]. **The descriptor may
/// be another one after each call**: take it out of a poller before the call and put it back after.
#[derive(Debug)]
pub struct Dial {
    address: Address,
    key: Key,
    terms: LinkTerms,
    started: Instant,
    step: DialStep,
    /// The host's further addresses.
    rest: VecDeque<SocketAddr>,
    /// The most telling error so far.
    failure: Option<Error>,
}

#[derive(Debug)]
enum DialStep {
    /// The listener's backlog is full; the timer says when to ask again.
    Pausing {
        unix: SocketAddrUnix,
        timer: OwnedFd,
        pause: Duration,
    },
    /// TCP's own handshake is under way.
    Connecting(OwnedFd),
    Shaking(Box<Handshake>, Interest),
    Over,
}

impl Dial {
    /// Begins. Numeric addresses are used as they are; a host name is resolved first, which takes
    /// as long as the system's resolver allows.
    ///
    /// # Errors
    /// [`Error::Refused`] if that is known at once, [`Error::UnresolvableHost`],
    /// [`Error::ForeignUser`], [`Error::Io`].
    pub fn start(address: &Address, key: &Key, terms: impl Into<LinkTerms>) -> Result<Self> {
        let mut dial = Self::new(address, key, terms.into());
        match socket::unix_address(address)? {
            Some(unix) => dial.step = dial.connect_unix(unix, PAUSE_FIRST)?,
            None => {
                dial.rest = address.resolve()?.into();
                dial.try_next()?;
            }
        }
        Ok(dial)
    }

    /// Begins with all addresses of a host side by side: the first whose peer proves the key is to
    /// be kept. Of those that fail at once the error of one is given; where that is all of them,
    /// there is no dial.
    ///
    /// # Errors
    /// [`Error::UnresolvableHost`]; for a Unix address those of [`Dial::start`].
    pub fn start_each(
        address: &Address,
        key: &Key,
        terms: impl Into<LinkTerms>,
    ) -> Result<(Vec<Self>, Option<Error>)> {
        let terms = terms.into();
        if address.is_unix() {
            return Ok((vec![Self::start(address, key, terms)?], None));
        }
        let (mut dials, mut failure) = (Vec::new(), None);
        for place in address.resolve()? {
            let mut dial = Self::new(address, key, terms);
            dial.rest.push_back(place);
            match dial.try_next() {
                Ok(()) => dials.push(dial),
                Err(error) => failure = more_telling(failure, error),
            }
        }
        Ok((dials, failure))
    }

    fn new(address: &Address, key: &Key, terms: LinkTerms) -> Self {
        Self {
            address: address.clone(),
            key: key.clone(),
            terms,
            started: Instant::now(),
            step: DialStep::Over,
            rest: VecDeque::new(),
            failure: None,
        }
    }

    /// Where it goes.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What to wait for on the descriptor.
    #[must_use]
    pub fn interest(&self) -> Interest {
        match &self.step {
            DialStep::Connecting(_) => Interest::WRITE,
            DialStep::Shaking(_, interest) => *interest,
            DialStep::Pausing { .. } | DialStep::Over => Interest::READ,
        }
    }

    /// Goes as far as it can without waiting. A call before the time does no harm. After an error
    /// or [`Progress::Done`] drop it.
    ///
    /// # Errors
    /// [`Error::Refused`] if no process listens; [`Error::TimedOut`] if the system gave up;
    /// [`Error::WrongKey`], [`Error::EncryptionMismatch`] and the others of [`Handshake::advance`].
    /// Of several addresses' errors it is the one that says most.
    pub fn advance(&mut self) -> Result<Progress> {
        loop {
            match self.advance_one() {
                Ok(Some(progress)) => return Ok(progress),
                Ok(None) => {}
                Err(error) => {
                    self.failure = more_telling(self.failure.take(), error);
                    self.try_next()?;
                }
            }
        }
    }

    /// One step with the address being tried; `None` if the next step can follow at once.
    fn advance_one(&mut self) -> Result<Option<Progress>> {
        match std::mem::replace(&mut self.step, DialStep::Over) {
            DialStep::Pausing { unix, pause, .. } => {
                self.step = self.connect_unix(unix, (2 * pause).min(PAUSE_LONGEST))?;
                let waits = matches!(self.step, DialStep::Pausing { .. });
                Ok(waits.then_some(Progress::WantRead))
            }
            DialStep::Connecting(socket) => {
                rustix::net::sockopt::socket_error(&socket)
                    .and_then(|outcome| outcome)
                    .map_err(|cause| self.explain(cause))?;
                let Some(peer) = tcp_peer(&socket) else {
                    self.step = DialStep::Connecting(socket);
                    return Ok(Some(Progress::WantWrite));
                };
                if is_own_address(&socket, peer) {
                    return Err(self.refused());
                }
                self.step = self.shake(socket)?;
                Ok(None)
            }
            DialStep::Shaking(mut handshake, _) => {
                let progress = handshake.advance()?;
                let interest = match progress {
                    Progress::Done(_) => return Ok(Some(progress)),
                    Progress::WantRead => Interest::READ,
                    Progress::WantWrite => Interest::WRITE,
                };
                self.step = DialStep::Shaking(handshake, interest);
                Ok(Some(progress))
            }
            DialStep::Over => Err(Error::ApiMisuse { rule: "a dial ends once" }),
        }
    }

    /// Turns to the host's next address; an error if there is none any more.
    fn try_next(&mut self) -> Result<()> {
        while let Some(place) = self.rest.pop_front() {
            match start_tcp(&place) {
                Ok(socket) => {
                    self.step = DialStep::Connecting(socket);
                    return Ok(());
                }
                Err(cause) => {
                    self.failure = more_telling(self.failure.take(), self.explain(cause));
                }
            }
        }
        Err(self.failure.take().unwrap_or_else(|| self.refused()))
    }

    /// A Unix socket is connected at once, or not at all.
    fn connect_unix(&self, unix: SocketAddrUnix, pause: Duration) -> Result<DialStep> {
        let failed = |cause| self.explain(cause);
        let socket = socket::stream(AddressFamily::UNIX).map_err(failed)?;
        loop {
            match rustix::net::connect(&socket, &unix) {
                Ok(()) => return self.shake(socket),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let timer = timer_after(pause).map_err(failed)?;
                    return Ok(DialStep::Pausing { unix, timer, pause });
                }
                Err(cause) => return Err(failed(cause)),
            }
        }
    }

    fn shake(&self, socket: OwnedFd) -> Result<DialStep> {
        let handshake = Handshake::initiator(socket, &self.key, self.terms)?;
        Ok(DialStep::Shaking(Box::new(handshake), Interest::WRITE))
    }

    fn explain(&self, cause: Errno) -> Error {
        match cause {
            // A path socket that does not exist yet is refused like one without a listener.
            Errno::CONNREFUSED | Errno::NOENT => self.refused(),
            Errno::TIMEDOUT => {
                let waited = self.started.elapsed().as_millis();
                let after_ms = u64::try_from(waited).unwrap_or(u64::MAX);
                Error::TimedOut { address: self.address.clone(), after_ms }
            }
            cause => Error::io(format!("connect to {}", self.address), cause),
        }
    }

    fn refused(&self) -> Error {
        Error::Refused { address: self.address.clone() }
    }
}

impl AsFd for Dial {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.step {
            DialStep::Pausing { timer, .. } => timer.as_fd(),
            DialStep::Connecting(socket) => socket.as_fd(),
            DialStep::Shaking(handshake, _) => handshake.as_fd(),
            DialStep::Over => panic!("a dial that has ended is dropped, not polled"),
        }
    }
}

pub(crate) fn start_tcp(address: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket::stream(family)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(cause) => Err(cause),
    }
}

fn timer_after(pause: Duration) -> rustix::io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
    let once = Itimerspec { it_interval: never, it_value: value };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(timer)
}

/// TCP can connect a socket to itself: when the port asked for on this machine is free and the
/// kernel happens to choose it as the local one. It means that no process listens.
fn is_own_address(socket: &OwnedFd, peer: SocketAddr) -> bool {
    let own = rustix::net::getsockname(socket).ok().and_then(|own| own.try_into().ok());
    own == Some(peer)
}

/// The more informative of two errors.
pub(crate) fn more_telling(one: Option<Error>, other: Error) -> Option<Error> {
    match one {
        Some(one) if telling(&one) >= telling(&other) => Some(one),
        _ => Some(other),
    }
}

/// How informative an error is, when several addresses failed in different ways: an answer of a
/// Sapwood process first, then a refused connection, then an unreachable host.
fn telling(error: &Error) -> u8 {
    match error {
        Error::WrongKey { .. } | Error::EncryptionMismatch { .. } => 4,
        Error::PeerMisbehaved { .. } | Error::ClosedDuringHandshake { .. } => 3,
        Error::Refused { .. } => 2,
        _ => 1,
    }
}
