//! Connecting and proving the key in one blocking call, for a process that has nothing else to do
//! until it has its link.
//!
//! All addresses of a host name are tried side by side; the first whose peer proves the key wins
//! and the others are closed before their handshake is complete, so that nobody serves them.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::{Address, Encryption, Error, Handshake, Key, Link, Progress, Result, socket};

/// The first and the longest pause between attempts when nobody listens yet.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LONGEST: Duration = Duration::from_millis(100);

/// What to do when nobody listens at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenRefused {
    /// Answer [`Error::Refused`] at once.
    Fail,
    /// Try again until the deadline: the listener is still starting.
    Retry,
}

/// Connects to `address`, proves `key` and answers the link, all within `deadline`. Host names
/// are resolved first, which takes as long as the system's resolver allows.
///
/// # Errors
/// [`Error::Refused`], [`Error::TimedOut`], [`Error::WrongKey`], [`Error::EncryptionMismatch`],
/// [`Error::UnresolvableHost`] and those of [`Handshake::advance`]. Of several addresses' errors
/// it is the one that says most.
pub fn connect(
    address: &Address,
    key: &Key,
    encryption: Encryption,
    deadline: Duration,
    when_refused: WhenRefused,
) -> Result<Link> {
    let attempt = Attempt { address, key, encryption, started: Instant::now(), deadline };
    let mut pause = PAUSE_FIRST;
    loop {
        match attempt.run() {
            Err(Error::Refused { .. })
                if when_refused == WhenRefused::Retry && attempt.left() > pause =>
            {
                std::thread::sleep(pause);
                pause = (2 * pause).min(PAUSE_LONGEST);
            }
            outcome => return outcome,
        }
    }
}

/// What stays the same from one try to the next.
struct Attempt<'a> {
    address: &'a Address,
    key: &'a Key,
    encryption: Encryption,
    started: Instant,
    deadline: Duration,
}

/// One of the addresses being tried.
enum Candidate {
    Connecting(OwnedFd),
    Shaking(Handshake, PollFlags),
}

impl Attempt<'_> {
    fn run(&self) -> Result<Link> {
        match socket::unix_address(self.address)? {
            Some(unix) => {
                let mut handshake = self.begin(self.connect_unix(&unix)?)?;
                match handshake.advance()? {
                    Progress::Done(link) => Ok(link),
                    progress => self.race(vec![shaking(handshake, &progress)], Vec::new()),
                }
            }
            None => {
                let (mut candidates, mut failures) = (Vec::new(), Vec::new());
                for address in self.address.resolve()? {
                    match start_tcp(&address) {
                        Ok(socket) => candidates.push(Candidate::Connecting(socket)),
                        Err(cause) => failures.push(self.failure(cause)),
                    }
                }
                self.race(candidates, failures)
            }
        }
    }

    /// Connects a Unix socket, which blocks only while the listener's backlog is full.
    fn connect_unix(&self, unix: &SocketAddrUnix) -> Result<OwnedFd> {
        let failed = |cause| self.failure(cause);
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket =
            rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed)?;
        loop {
            let left = self.left();
            if left.is_zero() {
                return Err(self.timed_out());
            }
            let side = rustix::net::sockopt::Timeout::Send;
            rustix::net::sockopt::set_socket_timeout(&socket, side, Some(left)).map_err(failed)?;
            match rustix::net::connect(&socket, unix) {
                Ok(()) => return Ok(socket),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
    }

    /// Drives all candidates until one has its link, all have failed or time is up.
    fn race(&self, mut candidates: Vec<Candidate>, mut failures: Vec<Error>) -> Result<Link> {
        while !candidates.is_empty() {
            let ready = self.wait(&candidates)?;
            let mut waiting = Vec::with_capacity(candidates.len());
            for (candidate, ready) in candidates.into_iter().zip(ready) {
                if !ready {
                    waiting.push(candidate);
                    continue;
                }
                match self.advance(candidate) {
                    Ok(Progressed::Link(link)) => return Ok(link),
                    Ok(Progressed::Candidate(candidate)) => waiting.push(candidate),
                    Err(failure) => failures.push(failure),
                }
            }
            candidates = waiting;
        }
        Err(failures.into_iter().max_by_key(telling).unwrap_or_else(|| self.refused()))
    }

    /// Which candidates can go on.
    fn wait(&self, candidates: &[Candidate]) -> Result<Vec<bool>> {
        let mut polled: Vec<PollFd<'_>> = candidates
            .iter()
            .map(|candidate| PollFd::from_borrowed_fd(candidate.socket(), candidate.wants()))
            .collect();
        loop {
            let left = self.left();
            if left.is_zero() {
                return Err(self.timed_out());
            }
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            match rustix::event::poll(&mut polled, Some(&left)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(polled.iter().map(|one| !one.revents().is_empty()).collect()),
                Err(cause) => return Err(self.failure(cause)),
            }
        }
    }

    fn advance(&self, candidate: Candidate) -> Result<Progressed> {
        let mut handshake = match candidate {
            Candidate::Connecting(socket) => {
                rustix::net::sockopt::socket_error(&socket)
                    .and_then(|outcome| outcome)
                    .map_err(|cause| self.failure(cause))?;
                if is_connected_to_itself(&socket) {
                    return Err(self.refused());
                }
                self.begin(socket)?
            }
            Candidate::Shaking(handshake, _) => handshake,
        };
        Ok(match handshake.advance()? {
            Progress::Done(link) => Progressed::Link(link),
            progress => Progressed::Candidate(shaking(handshake, &progress)),
        })
    }

    fn begin(&self, socket: OwnedFd) -> Result<Handshake> {
        Handshake::initiator(socket, self.key, self.encryption)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.started.elapsed())
    }

    fn failure(&self, cause: Errno) -> Error {
        match cause {
            // A path socket that nobody has made yet is refused like one that nobody serves.
            Errno::CONNREFUSED | Errno::NOENT => self.refused(),
            Errno::TIMEDOUT => self.timed_out(),
            cause => Error::io(format!("connect to {}", self.address), cause),
        }
    }

    fn refused(&self) -> Error {
        Error::Refused { address: self.address.clone() }
    }

    fn timed_out(&self) -> Error {
        let after_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Error::TimedOut { address: self.address.clone(), after_ms }
    }
}

enum Progressed {
    Link(Link),
    Candidate(Candidate),
}

impl Candidate {
    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Connecting(socket) => socket.as_fd(),
            Self::Shaking(handshake, _) => handshake.as_fd(),
        }
    }

    fn wants(&self) -> PollFlags {
        match self {
            Self::Connecting(_) => PollFlags::OUT,
            Self::Shaking(_, wants) => *wants,
        }
    }
}

fn shaking(handshake: Handshake, progress: &Progress) -> Candidate {
    let reads = matches!(progress, Progress::WantRead);
    Candidate::Shaking(handshake, if reads { PollFlags::IN } else { PollFlags::OUT })
}

fn start_tcp(address: &SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket::stream(family)?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(cause) => Err(cause),
    }
}

/// TCP can connect a socket to itself: when the port asked for on this machine is free and the
/// kernel happens to choose it as the local one. It means that nobody listens.
fn is_connected_to_itself(socket: &OwnedFd) -> bool {
    let own: Option<SocketAddr> =
        rustix::net::getsockname(socket).ok().and_then(|own| own.try_into().ok());
    own.is_some() && own == crate::listener::tcp_peer(socket)
}

/// How much an error tells, when several addresses failed in different ways: what a process of
/// ours said, then that nobody is there, then that the way there is closed.
fn telling(error: &Error) -> u8 {
    match error {
        Error::WrongKey { .. } | Error::EncryptionMismatch { .. } => 4,
        Error::PeerMisbehaved { .. } | Error::ClosedDuringHandshake { .. } => 3,
        Error::Refused { .. } => 2,
        _ => 1,
    }
}
