//! Messages on a link, one frame each, and frames out of bytes that come in any portions.
//!
//! ```text
//! frame     length u32 LE | that many bytes: a message as `encode` gives it
//! ```
//!
//! The payload of a transfer is the last field of its message, so that it is handed to the system
//! from where it lies, for each child the same bytes.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::Message;
use crate::error::GroupError;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::payload::Payload;

/// The length in front of a frame, in bytes.
pub const FRAME_PREFIX_BYTES: usize = 4;

/// A message as bytes: those of `head`, then those of `data`.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The prefix, and the message up to its payload.
    pub head: Vec<u8>,
    /// The payload.
    pub data: Payload,
}

impl Frame {
    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.data.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }
}

/// The frame of a message.
///
/// # Errors
/// [`GroupError::Message`] beyond [`MESSAGE_BYTES_MAX`].
pub fn encode_frame(mut message: Message) -> Result<Frame, GroupError> {
    let data = payload(&mut message).map(core::mem::take);
    let mut head = Vec::from([0; FRAME_PREFIX_BYTES]);
    head = postcard::to_extend(&message, head)
        .map_err(|error| GroupError::Message(error.to_string()))?;
    let data = data.unwrap_or_default();
    if !data.is_empty() {
        // In the place of the length of an empty payload, which is one byte.
        head.pop();
        push_number(&mut head, data.len());
    }
    close(Frame { head, data })
}

/// The frame of bytes that are no [`Message`]: a greeting, or what follows it.
///
/// # Errors
/// [`GroupError::Message`] beyond [`MESSAGE_BYTES_MAX`].
pub fn frame_of(bytes: &[u8]) -> Result<Frame, GroupError> {
    let mut head = Vec::from([0; FRAME_PREFIX_BYTES]);
    head.extend_from_slice(bytes);
    close(Frame { head, data: Payload::default() })
}

/// Bytes that have come and are not taken yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    /// Adds bytes that have come.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The content of the next frame, if it has come as a whole; `most` is the length that it may
    /// have.
    ///
    /// # Errors
    /// [`GroupError::Message`] for a longer one: the link is of no use any more.
    pub fn next_frame(&mut self, most: usize) -> Result<Option<&[u8]>, GroupError> {
        let Some((prefix, rest)) =
            self.bytes[self.start..].split_first_chunk::<FRAME_PREFIX_BYTES>()
        else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length > most {
            return Err(GroupError::Message(alloc::format!(
                "a frame of {length} bytes, where at most {most} are allowed"
            )));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.start + FRAME_PREFIX_BYTES;
        self.start = begin + length;
        Ok(Some(&self.bytes[begin..begin + length]))
    }
}

fn close(mut frame: Frame) -> Result<Frame, GroupError> {
    let length = frame.len() - FRAME_PREFIX_BYTES;
    if length > MESSAGE_BYTES_MAX {
        return Err(GroupError::Message(alloc::format!(
            "{length} bytes are longer than a message may be, which is {MESSAGE_BYTES_MAX}"
        )));
    }
    frame.head[..FRAME_PREFIX_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// The last field of messages that carry bytes.
fn payload(message: &mut Message) -> Option<&mut Payload> {
    match message {
        Message::Open { data, .. } | Message::Segment { data, .. } | Message::Part { data, .. } => {
            Some(data)
        }
        Message::Ping { padding, .. } | Message::Probe { padding, .. } => Some(padding),
        _ => None,
    }
}

/// A number of 7 bits a byte, the lowest first.
fn push_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{CastId, MemberId};
    use crate::message::{decode, encode};

    fn segment(length: usize) -> Message {
        let cast = CastId { root: MemberId(7), number: 9 };
        let data = Payload::from(alloc::vec![5; length]);
        Message::Segment { cast, stripe: 1, index: 300, data }
    }

    #[test]
    fn a_frame_is_the_message_behind_its_length() {
        for length in [0, 1, 127, 128, 300_000] {
            let frame = encode_frame(segment(length)).unwrap();
            let mut bytes = frame.head.clone();
            bytes.extend_from_slice(frame.data.as_slice());
            assert_eq!(bytes[FRAME_PREFIX_BYTES..], encode(&segment(length)).unwrap());
            assert_eq!(decode(&bytes[FRAME_PREFIX_BYTES..]).unwrap(), segment(length));
        }
    }

    #[test]
    fn frames_come_out_of_any_portions() {
        let mut bytes = Vec::new();
        for length in [3, 0, 200] {
            let frame = encode_frame(segment(length)).unwrap();
            bytes.extend_from_slice(&frame.head);
            bytes.extend_from_slice(frame.data.as_slice());
        }
        for portion in [1, 7, 1000] {
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            for part in bytes.chunks(portion) {
                inbox.extend(part);
                while let Some(frame) = inbox.next_frame(1000).unwrap() {
                    found.push(decode(frame).unwrap());
                }
            }
            assert_eq!(found, [segment(3), segment(0), segment(200)]);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_length_alone() {
        let mut inbox = Inbox::default();
        inbox.extend(&1001_u32.to_le_bytes());
        let error = inbox.next_frame(1000).unwrap_err().to_string();
        assert!(error.contains("1001") && error.contains("1000"), "{error}");
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused_before_it_is_sent() {
        assert!(encode_frame(segment(MESSAGE_BYTES_MAX)).is_err());
    }
}
