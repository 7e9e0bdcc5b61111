//! Asking a member how its group is, from outside.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use sapwood_group::TreeKind;
use sapwood_group::limits::MESSAGE_BYTES_MAX;
use sapwood_group::message::{GROUP_VERSION, Greeting, Inbox, frame_of};
use sapwood_group::status::Status;
use sapwood_transport::{Address, Encryption, Key, Link, WhenRefused, connect};

use super::ways::Manners;
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
    let begun = Instant::now();
    let terms = Manners { encryption, shares_memory: false }.terms(address);
    let mut link = connect(address, key, terms, deadline, WhenRefused::Fail)?;
    let GroupQuestion { tree, root, bytes } = question;
    let greeting = Greeting::Visitor { version: GROUP_VERSION, tree, root, bytes };
    let wrong = |reason: String| RuntimeError::Visit { reason: format!("{address}: {reason}") };
    let frame = greeting
        .encode()
        .and_then(|bytes| frame_of(&bytes))
        .map_err(|error| wrong(error.to_string()))?;
    let left = || deadline.saturating_sub(begun.elapsed());
    write(&mut link, &frame.head, left).map_err(|error| wrong(error.to_string()))?;
    let mut inbox = Inbox::default();
    let mut buffer = vec![0; 64 << 10];
    let mut frames = 0;
    loop {
        while let Some(frame) =
            inbox.next_frame(MESSAGE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?
        {
            frames += 1;
            // The first one is the member's own greeting.
            if frames == 1 {
                Greeting::decode(frame).map_err(|error| wrong(error.to_string()))?;
            } else {
                return Status::decode(frame).map_err(|error| wrong(error.to_string()));
            }
        }
        match link.read(&mut buffer) {
            Ok(0) => return Err(wrong("the member has closed the connection".to_string())),
            Ok(count) => inbox.extend(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if left().is_zero() {
                    return Err(RuntimeError::NoReply { waited: deadline });
                }
                wait(&link, PollFlags::IN, left());
            }
            Err(error) => return Err(wrong(error.to_string())),
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
