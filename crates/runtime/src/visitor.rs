//! A visitor: a process that is no part of the tree and asks the front-end something.
//!
//! It does nothing else meanwhile, so that every call waits, within its deadline.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use sapwood_packet::Slab;
use sapwood_transport::{
    Address, Encryption, Error, Interest, Key, Link, Poller, WhenRefused, connect,
};
use sapwood_wire::{Claim, Control, Frame, WIRE_VERSION, decode, encode_control, frame_length};

use crate::RuntimeError;

/// Longest answer, in bytes, all of its parts together.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A visit at a front-end.
pub struct Visitor {
    link: Link,
    poller: Poller,
    received: Slab,
}

impl Visitor {
    /// Connects to a front-end, proves its network's key and says what this process is.
    ///
    /// # Errors
    /// [`RuntimeError::Transport`] when no process listens or the key is another one,
    /// [`RuntimeError::NoReply`] when the front-end does not let itself be visited in time.
    pub fn connect(
        address: &Address,
        key: &Key,
        encryption: Encryption,
        deadline: Duration,
    ) -> Result<Self, RuntimeError> {
        let link = connect(address, key, encryption, deadline, WhenRefused::Fail);
        let link = link.map_err(|error| match error {
            Error::TimedOut { .. } => RuntimeError::NoReply { waited: deadline },
            other => other.into(),
        })?;
        let poller = Poller::new()?;
        poller.add(&link, 0, Interest::READ)?;
        let mut visitor = Self { link, poller, received: Slab::default() };
        let pid = std::process::id();
        let hello =
            Control::Hello { version: WIRE_VERSION, claim: Claim::Visitor, pid, address: None };
        visitor.send(&hello, Instant::now() + deadline, deadline)?;
        Ok(visitor)
    }

    /// Asks, and waits for the whole answer.
    ///
    /// # Errors
    /// [`RuntimeError::NoReply`] when there is no answer in time, [`RuntimeError::Visit`] when the
    /// front-end refuses, ends, or breaks the format.
    pub fn ask(&mut self, question: &[u8], deadline: Duration) -> Result<Vec<u8>, RuntimeError> {
        let until = Instant::now() + deadline;
        self.send(&Control::Question { bytes: question.to_vec() }, until, deadline)?;
        let mut answer = Vec::new();
        loop {
            match self.receive(until, deadline)? {
                // Before the bytes are added: knowledge of the key gives no claim to this process's
                // memory.
                Control::Reply { bytes, .. } if answer.len() + bytes.len() > ANSWER_BYTES_MAX => {
                    return Err(visit("its answer is longer than 256 MiB"));
                }
                Control::Reply { is_last, bytes } => {
                    answer.extend(bytes);
                    if is_last {
                        return Ok(answer);
                    }
                }
                Control::Refused { reason } => return Err(visit(reason)),
                Control::Shutdown => return Err(visit("it has ended")),
                _ => return Err(visit("it sent a message that is not an answer to a query")),
            }
        }
    }

    fn send(
        &mut self,
        message: &Control,
        until: Instant,
        waited: Duration,
    ) -> Result<(), RuntimeError> {
        let mut frame = Slab::default();
        encode_control(&mut frame, message).map_err(|error| visit(error.to_string()))?;
        let mut rest = frame.as_bytes();
        // An encrypted link takes bytes before it has written them.
        while !rest.is_empty() || self.link.wants_write() {
            let written = match rest.is_empty() {
                true => self.link.flush().map(|()| 0),
                false => self.link.write_vectored(&[IoSlice::new(rest)]),
            };
            match written {
                Ok(bytes) => rest = &rest[bytes..],
                Err(error) if is_transient(&error) => self.wait(Interest::BOTH, until, waited)?,
                Err(error) => return Err(visit(error.to_string())),
            }
        }
        Ok(())
    }

    /// The next message.
    fn receive(&mut self, until: Instant, waited: Duration) -> Result<Control, RuntimeError> {
        loop {
            let length = frame_length(self.received.as_bytes());
            if let Some(length) = length.map_err(|error| visit(error.to_string()))?
                && length <= self.received.len()
            {
                let control = match decode(&self.received.as_bytes()[..length]) {
                    Ok(Frame::Control(control)) => control,
                    Ok(Frame::Packet(_)) => return Err(visit("it sent a packet to a visitor")),
                    Err(error) => return Err(visit(error.to_string())),
                };
                self.received = Slab::copy_of(&self.received.as_bytes()[length..]);
                return Ok(control);
            }
            let mut buffer = [0; READ_BYTES];
            match self.link.read(&mut buffer) {
                Ok(0) => return Err(visit("it has ended")),
                Ok(bytes) => self.received.extend(&buffer[..bytes]),
                Err(error) if is_transient(&error) => self.wait(Interest::READ, until, waited)?,
                Err(error) => return Err(visit(error.to_string())),
            }
        }
    }

    fn wait(
        &mut self,
        interest: Interest,
        until: Instant,
        waited: Duration,
    ) -> Result<(), RuntimeError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RuntimeError::NoReply { waited });
        }
        self.poller.modify(&self.link, 0, interest)?;
        Ok(self.poller.wait(&mut Vec::new(), Some(left))?)
    }
}

/// The name of this host, for people.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn visit(reason: impl Into<String>) -> RuntimeError {
    RuntimeError::Visit { reason: reason.into() }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
