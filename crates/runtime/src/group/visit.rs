//! Asking a member from outside: how its group is, and what it notes of operations.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use sapwood_group::limits::MESSAGE_BYTES_MAX;
use sapwood_group::message::{GROUP_VERSION, Greeting, Inbox, frame_of};
use sapwood_group::status::Status;
use sapwood_group::{GroupHopQuestion, MemberHops, TreeKind};
use sapwood_transport::{
    Address, Encryption, Error as TransportError, Key, Link, WhenRefused, connect,
};

use super::ways::Manners;
use crate::clock::clock;
use crate::error::RuntimeError;

/// Which tree is to be explained.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupQuestion {
    /// By which rule.
    pub tree: TreeKind,
    /// From which virtual node; that of the member that is asked if none is named.
    pub root: Option<u32>,
    /// For a value of how many bytes.
    pub bytes: u64,
}

/// What one member has noted, and its clock beside this process's.
#[derive(Clone, Debug)]
pub struct TracedMember {
    /// The events.
    pub hops: MemberHops,
    /// By how much the member's clock is ahead, in nanoseconds.
    pub ahead: i64,
    /// By how much that may be wrong, either way: half of the round trip of the question; none
    /// where the member is on this host by its address.
    pub error: u64,
}

/// The status of a group, as the member at an address sees it.
///
/// # Errors
/// [`RuntimeError`] if it cannot be reached, has another key, or does not answer in time.
pub fn ask_group(
    address: &Address,
    key: &Key,
    encryption: Option<Encryption>,
    question: GroupQuestion,
    deadline: Duration,
) -> Result<Status, RuntimeError> {
    let GroupQuestion { tree, root, bytes } = question;
    let greeting = Greeting::Visitor { version: GROUP_VERSION, tree, root, bytes };
    let asked = Visit { address, key, encryption, deadline }.ask(greeting)?;
    Status::decode(&asked.answer).map_err(|error| wrong(address, &error))
}

/// What the member at an address has noted of operations; the question has it note more.
///
/// # Errors
/// As [`ask_group`].
pub fn trace_member(
    address: &Address,
    key: &Key,
    encryption: Option<Encryption>,
    question: GroupHopQuestion,
    deadline: Duration,
) -> Result<TracedMember, RuntimeError> {
    let greeting = Greeting::Tracer { version: GROUP_VERSION, question };
    let Asked { answer, sent, received } =
        Visit { address, key, encryption, deadline }.ask(greeting)?;
    let hops = MemberHops::decode(&answer).map_err(|error| wrong(address, &error))?;
    let has_own_clock = !address.is_unix()
        && !address.resolve().is_ok_and(|all| all.iter().all(|place| place.ip().is_loopback()));
    let between = sent / 2 + received / 2;
    let ahead = if has_own_clock { difference(hops.now, between) } else { 0 };
    let error = if has_own_clock { (received - sent).div_ceil(2) } else { 0 };
    Ok(TracedMember { hops, ahead, error })
}

/// One clock less another.
fn difference(one: u64, other: u64) -> i64 {
    i64::try_from(i128::from(one) - i128::from(other)).unwrap_or(i64::MAX)
}

fn wrong(address: &Address, reason: &dyn std::fmt::Display) -> RuntimeError {
    RuntimeError::MemberVisit { address: address.to_string(), reason: reason.to_string() }
}

/// One question to one member.
struct Visit<'a> {
    address: &'a Address,
    key: &'a Key,
    encryption: Option<Encryption>,
    deadline: Duration,
}

/// What came back.
struct Asked {
    answer: Vec<u8>,
    /// When the question left and the answer was there, by this process's clock.
    sent: u64,
    received: u64,
}

impl Visit<'_> {
    fn ask(&self, greeting: Greeting) -> Result<Asked, RuntimeError> {
        let Self { address, key, encryption, deadline } = *self;
        let begun = Instant::now();
        let terms = Manners { encryption, shares_memory: false }.terms(address);
        let silent = |has_link| {
            let address = address.to_string();
            RuntimeError::SilentMember { address, waited: deadline, has_link }
        };
        let link = connect(address, key, terms, deadline, WhenRefused::Fail);
        let mut link = link.map_err(|error| match error {
            TransportError::TimedOut { .. } => silent(false),
            error => error.into(),
        })?;
        let wrong = |reason: &dyn std::fmt::Display| wrong(address, reason);
        let frame = greeting.encode().and_then(|bytes| frame_of(&bytes));
        let frame = frame.map_err(|error| wrong(&error))?;
        let left = || deadline.saturating_sub(begun.elapsed());
        let sent = clock().0;
        write(&mut link, &frame.head, left).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => silent(true),
            _ => wrong(&error),
        })?;
        let mut inbox = Inbox::default();
        let mut buffer = vec![0; 64 << 10];
        let mut frames = 0;
        loop {
            while let Some(frame) =
                inbox.next_frame(MESSAGE_BYTES_MAX).map_err(|error| wrong(&error))?
            {
                frames += 1;
                // The first one is the member's own greeting.
                if frames == 1 {
                    Greeting::decode(frame).map_err(|error| wrong(&error))?;
                } else {
                    return Ok(Asked { answer: frame.to_vec(), sent, received: clock().0 });
                }
            }
            match link.read(&mut buffer) {
                Ok(0) => return Err(wrong(&"the member has closed the connection")),
                Ok(count) => inbox.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if left().is_zero() {
                        return Err(silent(true));
                    }
                    wait(&link, PollFlags::IN, left());
                }
                Err(error) => return Err(wrong(&error)),
            }
        }
    }
}

fn write(link: &mut Link, mut bytes: &[u8], left: impl Fn() -> Duration) -> io::Result<()> {
    while !bytes.is_empty() || link.wants_write() {
        let result = match bytes {
            [] => link.flush().map(|()| 0),
            bytes => link.write_vectored(&[IoSlice::new(bytes)]),
        };
        match result {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !left().is_zero() => {
                wait(link, PollFlags::OUT, left());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(link: &Link, flags: PollFlags, left: Duration) {
    let time = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    // Whatever the outcome, the caller looks at the link and at the time again.
    let _ = rustix::event::poll(&mut [PollFd::new(link, flags)], Some(&time));
}
