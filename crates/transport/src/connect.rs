//! Connecting and proving the key in one blocking call, for a process that has nothing else to do
//! until it has its link.
//!
//! All addresses of a host name are tried side by side; the first whose peer proves the key wins
//! and the others are closed before their handshake is complete, so that the listener never serves
//! them.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::dial::more_telling;
use crate::{Address, Dial, Error, Interest, Key, Link, LinkTerms, Progress, Result};

/// The first and the longest pause between attempts when no process listens yet.
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LONGEST: Duration = Duration::from_millis(100);

/// What to do when no process listens at the address.
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
/// [`Error::UnresolvableHost`] and those of [`crate::Handshake::advance`]. Of several addresses'
/// errors it is the one that says most.
pub fn connect(
    address: &Address,
    key: &Key,
    terms: impl Into<LinkTerms>,
    deadline: Duration,
    when_refused: WhenRefused,
) -> Result<Link> {
    let attempt = Attempt { address, key, terms: terms.into(), started: Instant::now(), deadline };
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
    terms: LinkTerms,
    started: Instant,
    deadline: Duration,
}

impl Attempt<'_> {
    /// Drives all dials until one has its link, all have failed or time is up.
    fn run(&self) -> Result<Link> {
        let (mut dials, mut failure) = Dial::start_each(self.address, self.key, self.terms)?;
        let mut ready = vec![true; dials.len()];
        while !dials.is_empty() {
            let mut waiting = Vec::with_capacity(dials.len());
            for (mut dial, ready) in dials.into_iter().zip(ready) {
                match if ready { dial.advance() } else { Ok(Progress::WantRead) } {
                    Ok(Progress::Done(link)) => return Ok(link),
                    Ok(_) => waiting.push(dial),
                    Err(error) => failure = more_telling(failure, error),
                }
            }
            dials = waiting;
            ready = self.wait(&dials)?;
        }
        Err(failure.unwrap_or_else(|| Error::Refused { address: self.address.clone() }))
    }

    /// Which dials can go on.
    fn wait(&self, dials: &[Dial]) -> Result<Vec<bool>> {
        let wants = |dial: &Dial| match dial.interest() {
            Interest::READ => PollFlags::IN,
            _ => PollFlags::OUT,
        };
        let mut polled: Vec<PollFd<'_>> =
            dials.iter().map(|dial| PollFd::new(dial, wants(dial))).collect();
        while !polled.is_empty() {
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
                Ok(_) => break,
                Err(cause) => {
                    return Err(Error::io(format!("connect to {}", self.address), cause));
                }
            }
        }
        Ok(polled.iter().map(|one| !one.revents().is_empty()).collect())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.started.elapsed())
    }

    fn timed_out(&self) -> Error {
        let after_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Error::TimedOut { address: self.address.clone(), after_ms }
    }
}
