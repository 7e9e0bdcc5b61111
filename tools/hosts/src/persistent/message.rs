//! What the daemon of a tree and a command that borrows it say to each other.
//!
//! Each message is one frame over a socket between processes of one user:
//!
//! ```text
//! length   4 bytes, little-endian, at most FRAME_BYTES_MAX
//! message  postcard
//! ```
//!
//! The daemon speaks first ([`Reply::Description`]). Sets of ranks are written as text (`0-3,7`),
//! values of a packet as their format and body, which the reader checks.

use std::io::IoSlice;
use std::time::Duration;

use sapwood::{Answer, Error, Packet, RankSet, StreamId, Tag, Values, Wave};
use sapwood_packet::{FormatRef, Slab, ValuesRef};
use sapwood_transport::Link;
use serde::{Deserialize, Serialize};

use crate::absence::Absence;

/// Which messages these are, and which agents the tree has: processes of another version do
/// without each other. To be raised with every change of either.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/6");

/// Longest message, in bytes: room for a packet with an outcome of every host.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Most bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What a command asks of the daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Opens the streams of a command to these members. The answer is [`Reply::Begun`] or
    /// [`Reply::Refused`].
    Begin { members: String, has_input: bool },
    /// Sends a packet to the members named, or to all where it is none.
    Send { stream: StreamId, to: Option<String>, packet: Part },
    /// Closes the streams of the command with this control stream.
    End { control: StreamId },
    /// The hosts that are silent in a command, and those heard in it.
    Silence { silent: String, heard: String },
    /// Ends the tree.
    Stop,
}

/// What the daemon says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// First of all, and again between two commands when another tree takes the place of this one:
    /// which tree this is.
    Description(Description),
    /// The streams of a command.
    Begun { control: StreamId, live: StreamId, input: Option<StreamId> },
    /// Why there are none.
    Refused { reason: String },
    /// This number of bytes of standard input is on their way: as many more may come.
    Sent { stream: StreamId, bytes: usize },
    /// An answer on a stream.
    Answer {
        stream: StreamId,
        wave: Wave,
        contributors: String,
        is_late: bool,
        packet: Option<Part>,
    },
    /// Back-ends are gone.
    Lost { ranks: String, reason: String },
}

/// A tree that is kept up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Description {
    pub version: String,
    pub name: String,
    /// How the hosts were reached: see `Reach::terms`.
    pub terms: String,
    /// All hosts, folded; back-end r is the host at place r.
    pub hosts: String,
    pub pid: u32,
    /// How many commands are running.
    pub commands: usize,
    /// Which of the hosts are not there, and why.
    pub absent: Vec<(String, String)>,
    /// Which of those that are there were silent in the last command.
    pub suspects: String,
    /// Which hosts have come back, and when, one line for each time.
    pub returned: Vec<String>,
    /// When those that are not there are asked again; nothing where they are not.
    pub asking: Option<Asking>,
    /// The options of `sapwood up` by which the tree was started, with its hosts.
    pub options: Vec<String>,
}

/// When hosts that are missing are asked whether they answer again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// After which time next; zero where they are being asked.
    pub next: Duration,
    /// The longest pause between two attempts.
    pub pause_max: Duration,
}

/// Tag and values of a packet.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    pub tag: Tag,
    format: Vec<u8>,
    body: Vec<u8>,
}

impl Part {
    pub fn new(tag: Tag, values: ValuesRef<'_>) -> Self {
        Self { tag, format: values.format().codes().to_vec(), body: values.body().to_vec() }
    }

    /// How long its values are, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// The values, if they are sound.
    pub fn values(&self) -> Option<Values> {
        let format = FormatRef::from_codes(&self.format)?;
        // In memory of its own, so that it is aligned.
        let body = Slab::copy_of(&self.body);
        ValuesRef::parse(format, body.as_bytes()).ok().map(ValuesRef::to_values)
    }
}

impl Reply {
    pub fn answer(answer: &Answer) -> Self {
        let packet = answer.packet.as_ref().map(|packet| Part::new(packet.tag(), packet.values()));
        Self::Answer {
            stream: answer.stream,
            wave: answer.wave,
            contributors: answer.contributors.to_string(),
            is_late: answer.is_late,
            packet,
        }
    }
}

/// The answer that was told, if it is sound.
pub fn to_answer(
    stream: StreamId,
    wave: Wave,
    contributors: &str,
    is_late: bool,
    packet: Option<&Part>,
) -> Option<Answer> {
    let packet = match packet {
        Some(part) => Some(Packet::new(stream, part.tag, part.values()?)),
        None => None,
    };
    let contributors = contributors.parse().ok()?;
    Some(Answer { stream, wave, packet, contributors, missing: Vec::new(), is_late })
}

pub fn absence_as_text(absence: &Absence) -> Vec<(String, String)> {
    absence.iter().map(|(ranks, reason)| (ranks.to_string(), reason.clone())).collect()
}

pub fn absence_of_text(text: &[(String, String)]) -> Option<Absence> {
    let read = |(ranks, reason): &(String, String)| Some((ranks.parse().ok()?, reason.clone()));
    text.iter().map(read).collect()
}

/// The end of a connection.
pub fn gone(what: &str) -> Error {
    Error::Ended { reason: what.to_string() }
}

/// A socket and the bytes on their way through it.
pub struct Line {
    link: Link,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    written: usize,
}

impl Line {
    pub fn new(link: Link) -> Self {
        Self { link, incoming: Vec::new(), outgoing: Vec::new(), written: 0 }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Appends a message to what is to leave.
    pub fn push(&mut self, message: &impl Serialize) {
        let body = postcard::to_allocvec(message).expect("messages hold numbers, texts and lists");
        self.outgoing.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.outgoing.extend(body);
    }

    /// How many bytes wait to leave.
    pub fn unwritten(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// Writes as much as goes; false when the other end is gone.
    pub fn write(&mut self) -> bool {
        while self.unwritten() > 0 {
            match self.link.write_vectored(&[IoSlice::new(&self.outgoing[self.written..])]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.forget_written();
                    return true;
                }
                Err(_) => return false,
            }
        }
        self.forget_written();
        true
    }

    /// Gives back what has left, also where something always waits for a slow reader. Each byte is
    /// moved once at most for each that has left.
    fn forget_written(&mut self) {
        if self.written >= self.unwritten() {
            self.outgoing.drain(..self.written);
            self.written = 0;
        }
    }

    /// Reads a piece of what is there; false when the other end is gone.
    pub fn read(&mut self) -> bool {
        let begin = self.incoming.len();
        self.incoming.resize(begin + READ_BYTES, 0);
        let read = self.link.read(&mut self.incoming[begin..]);
        self.incoming.truncate(begin + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(bytes) => bytes > 0,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    /// The next message that has come whole.
    ///
    /// # Errors
    /// [`Error::Ended`] for bytes that are none.
    pub fn next<'a, M: Deserialize<'a>>(&'a self, from: &mut usize) -> Result<Option<M>, Error> {
        let nonsense = || {
            gone(
                "the other end of the control socket is not a daemon of this release of sapwood; \
                 end it with the release that started it",
            )
        };
        let rest = &self.incoming[*from..];
        let Some(length) = rest.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
        else {
            return Ok(None);
        };
        if length > FRAME_BYTES_MAX {
            return Err(nonsense());
        }
        let Some(body) = rest[4..].get(..length) else { return Ok(None) };
        *from += 4 + length;
        postcard::from_bytes(body).map(Some).map_err(|_| nonsense())
    }

    /// All messages that have come whole.
    ///
    /// # Errors
    /// As [`Line::next`].
    pub fn messages<M: for<'a> Deserialize<'a>>(&mut self) -> Result<Vec<M>, Error> {
        let (mut messages, mut from) = (Vec::new(), 0);
        while let Some(message) = self.next(&mut from)? {
            messages.push(message);
        }
        self.incoming.drain(..from);
        Ok(messages)
    }
}

/// A set of ranks as it was written.
pub fn ranks(text: &str) -> Option<RankSet> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let (one, other) = Link::pair().unwrap();
        let (mut one, mut other) = (Line::new(one), Line::new(other));
        let values = Values::new().string("text").scalar(7_i32);
        let packet = Part::new(100, values.as_ref());
        one.push(&Request::Send { stream: 9, to: Some("1-2".into()), packet });
        one.push(&Request::Stop);
        let all = std::mem::take(&mut one.outgoing);
        for piece in all.chunks(3) {
            one.outgoing = piece.to_vec();
            one.written = 0;
            assert!(one.write());
            assert!(other.read());
        }
        let messages: Vec<Request> = other.messages().unwrap();
        let [Request::Send { stream: 9, to: Some(to), packet }, Request::Stop] = &messages[..]
        else {
            panic!("{messages:?}");
        };
        assert_eq!((ranks(to), packet.tag), (Some(RankSet::range(1, 2)), 100));
        assert_eq!(packet.values().unwrap().as_ref(), values.as_ref());
        drop(one);
        assert!(!other.read());
    }

    #[test]
    fn a_reader_that_never_catches_up_costs_no_memory() {
        let (one, other) = Link::pair().unwrap();
        let (mut one, mut other) = (Line::new(one), Line::new(other));
        let reason = "x".repeat(64 << 10);
        let (mut pushed, mut read, mut largest) = (0, 0, 0);
        while pushed < 64 << 20 {
            // As the daemon does it: there is always something that waits.
            while one.unwritten() < 1 << 20 {
                one.push(&Reply::Refused { reason: reason.clone() });
                pushed += reason.len();
            }
            assert!(one.write() && other.read());
            let messages: Vec<Reply> = other.messages().unwrap();
            read += messages.len() * reason.len();
            largest = largest.max(one.outgoing.len());
        }
        assert!(read > 32 << 20, "{read}");
        assert!(largest < 4 << 20, "{largest} bytes are kept");
    }

    #[test]
    fn nonsense_is_refused() {
        let (one, other) = Link::pair().unwrap();
        let (mut one, mut other) = (Line::new(one), Line::new(other));
        one.outgoing = vec![0xff; 12];
        assert!(one.write() && other.read());
        assert!(other.messages::<Request>().is_err());
        let damaged = Part { tag: 1, format: vec![0xee], body: Vec::new() };
        assert!(damaged.values().is_none());
        let values = Values::new().string("text");
        let mut cut = Part::new(1, values.as_ref());
        cut.body.truncate(9);
        assert!(cut.values().is_none());
    }
}
