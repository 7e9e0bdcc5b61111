//! The encrypted bytes of a link: Noise transport messages over a socket.
//!
//! ```text
//! frame   length u16 LE (17 ..= 65535) | ciphertext, length - 16 bytes | tag 16
//! ```
//!
//! Frames are decrypted straight into the reader's memory when they fit there. Memory is taken
//! when bytes come and given back when they have gone; only a bulk transfer keeps its buffers
//! from one frame to the next. One frame of ciphertext at most waits for the socket, so memory
//! is bounded by three frames and one read.

use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::SendFlags;
use snow::TransportState;

const LENGTH_BYTES: usize = 2;
const TAG_BYTES: usize = 16;
/// The longest plaintext of one frame (Noise, section 3: messages of 65535 bytes at most).
pub(crate) const PLAINTEXT_BYTES_MAX: usize = 65_535 - TAG_BYTES;

/// Room for the first read of a quiet link, and up to which size buffers are not kept.
const SMALL_BYTES: usize = 4 << 10;
/// The size of a read during a bulk transfer.
const READ_BYTES_MAX: usize = 128 << 10;
/// Frames are sealed until this many bytes are ready to be sent at once.
const SEND_BYTES: usize = 64 << 10;
/// A slice of at least this many bytes is sealed in place, in a frame of its own: one more frame
/// costs less than to copy it behind what stands before it.
const LARGE_BYTES: usize = 8 << 10;

pub(crate) struct Cipher {
    transport: TransportState,
    /// Ciphertext as it came, from `inbound_start` on not yet decrypted.
    inbound: Vec<u8>,
    inbound_start: usize,
    /// The size of the next read; grows while reads return full.
    read_bytes: usize,
    /// A decrypted frame that was too long for the reader, from `plain_start` on not yet given.
    plain: Vec<u8>,
    plain_start: usize,
    /// Sealed frames, from `outbound_start` to `outbound_end` not yet sent; behind that is room.
    outbound: Vec<u8>,
    outbound_start: usize,
    outbound_end: usize,
    /// Small slices gathered into one plaintext.
    gathered: Vec<u8>,
    /// Whether altered bytes were received; nothing later is trusted then.
    tampered: bool,
}

impl Cipher {
    pub(crate) fn new(transport: TransportState) -> Self {
        Self {
            transport,
            inbound: Vec::new(),
            inbound_start: 0,
            read_bytes: SMALL_BYTES,
            plain: Vec::new(),
            plain_start: 0,
            outbound: Vec::new(),
            outbound_start: 0,
            outbound_end: 0,
            gathered: Vec::new(),
            tampered: false,
        }
    }

    /// See [`crate::Link::read`].
    pub(crate) fn read(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let given = self.give(buffer);
            if given > 0 || buffer.is_empty() {
                return Ok(given);
            }
            // Behind all that was read before the alteration, which is genuine and is still given
            // out.
            if self.tampered {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the encrypted bytes were altered on the way",
                ));
            }
            if self.receive(socket)? == 0 {
                // An end between two records is the peer's; one inside of a record is a cut by
                // anyone.
                return if self.inbound.is_empty() {
                    Ok(0)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    pub(crate) fn has_buffered(&self) -> bool {
        self.tampered || self.plain_start < self.plain.len() || self.next_frame() != Next::Partial
    }

    /// See [`crate::Link::write_vectored`].
    pub(crate) fn write(
        &mut self,
        socket: BorrowedFd<'_>,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.flush(socket)?;
        let mut taken = 0;
        let mut rest = Rest { slices, offset: 0 };
        loop {
            let before = taken;
            while self.outbound_end < SEND_BYTES {
                match self.seal_next(&mut rest)? {
                    0 => break,
                    count => taken += count,
                }
            }
            if taken == before {
                break;
            }
            match self.flush(socket) {
                Ok(()) => {}
                // What is sealed counts as taken, written or not: sealed again it would have
                // another nonce, and the peer would find a gap.
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => break,
                Err(cause) => return Err(cause),
            }
        }
        if self.gathered.capacity() > 0 && taken <= SMALL_BYTES {
            self.gathered = Vec::new();
        }
        Ok(taken)
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.outbound_start < self.outbound_end
    }

    /// See [`crate::Link::flush`].
    pub(crate) fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        while self.wants_write() {
            let rest = &self.outbound[self.outbound_start..self.outbound_end];
            match rustix::net::send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.outbound_start += count,
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        (self.outbound_start, self.outbound_end) = (0, 0);
        if self.outbound.len() <= SMALL_BYTES {
            self.outbound = Vec::new();
        }
        Ok(())
    }

    /// Gives back every buffer that holds nothing.
    pub(crate) fn release_buffers(&mut self) {
        self.gathered = Vec::new();
        if !self.wants_write() {
            self.outbound = Vec::new();
        }
        if self.plain_start == self.plain.len() {
            (self.plain, self.plain_start) = (Vec::new(), 0);
        }
        if self.inbound_start == self.inbound.len() {
            (self.inbound, self.inbound_start) = (Vec::new(), 0);
            self.read_bytes = SMALL_BYTES;
        }
    }

    /// Fills `buffer` from decrypted bytes that are already there.
    fn give(&mut self, buffer: &mut [u8]) -> usize {
        let mut given = self.give_plain(buffer);
        while given < buffer.len() && !self.tampered {
            let frame = match self.next_frame() {
                Next::Whole(frame) => frame,
                Next::Partial => break,
                Next::Malformed => {
                    self.tampered = true;
                    break;
                }
            };
            let plain_bytes = frame.len() - TAG_BYTES;
            let fits = plain_bytes <= buffer.len() - given;
            if !fits && given > 0 {
                break;
            }
            let end = frame.end;
            // With room for the tag, too, frames are opened in place; else by way of a copy.
            let opened = if fits {
                let room_end = (given + frame.len()).min(buffer.len());
                let room = &mut buffer[given..room_end];
                self.transport.read_message(&self.inbound[frame], room)
            } else {
                self.plain.resize(frame.len(), 0);
                self.transport.read_message(&self.inbound[frame], &mut self.plain)
            };
            if opened.is_err() {
                self.plain.clear();
                self.tampered = true;
                break;
            }
            self.plain.truncate(if fits { 0 } else { plain_bytes });
            self.inbound_start = end;
            given += if fits { plain_bytes } else { self.give_plain(&mut buffer[given..]) };
        }
        if self.inbound_start == self.inbound.len() {
            self.inbound_start = 0;
            self.inbound.clear();
            if self.read_bytes == SMALL_BYTES {
                self.inbound = Vec::new();
            }
        }
        given
    }

    fn give_plain(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.plain[self.plain_start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.plain_start += count;
        if self.plain_start == self.plain.len() {
            self.plain_start = 0;
            self.plain.clear();
            if self.read_bytes == SMALL_BYTES {
                self.plain = Vec::new();
            }
        }
        count
    }

    /// Where the next frame's ciphertext and tag lie.
    fn next_frame(&self) -> Next {
        let waiting = &self.inbound[self.inbound_start..];
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_BYTES>() else {
            return Next::Partial;
        };
        let length = usize::from(u16::from_le_bytes(*length));
        if length <= TAG_BYTES {
            return Next::Malformed;
        }
        if rest.len() < length {
            return Next::Partial;
        }
        let start = self.inbound_start + LENGTH_BYTES;
        Next::Whole(start..start + length)
    }

    /// One read of ciphertext, with room for at least what the frame under way lacks.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.inbound.drain(..self.inbound_start);
        self.inbound_start = 0;
        let frame_bytes = self
            .inbound
            .first_chunk()
            .map_or(0, |length| LENGTH_BYTES + usize::from(u16::from_le_bytes(*length)));
        let wanted = self.read_bytes.max(frame_bytes.saturating_sub(self.inbound.len()));
        self.inbound.reserve_exact(wanted);
        let room = self.inbound.capacity() - self.inbound.len();
        let outcome = loop {
            match rustix::io::read(socket, rustix::buffer::spare_capacity(&mut self.inbound)) {
                Err(Errno::INTR) => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Ok(count) => {
                if count == room {
                    self.read_bytes = (4 * self.read_bytes).min(READ_BYTES_MAX);
                } else if count < SMALL_BYTES / 2 {
                    self.read_bytes = SMALL_BYTES;
                }
                Ok(count)
            }
            Err(cause) => {
                if self.inbound.is_empty() {
                    self.inbound = Vec::new();
                    self.read_bytes = SMALL_BYTES;
                }
                Err(cause.into())
            }
        }
    }

    /// Seals the next frame's worth of the slices; how many bytes that took, 0 at their end.
    fn seal_next(&mut self, rest: &mut Rest<'_>) -> io::Result<usize> {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.clear();
        let plaintext = rest.next_plaintext(&mut gathered);
        let count = plaintext.len();
        let outcome = if count == 0 { Ok(()) } else { self.seal(plaintext) };
        self.gathered = gathered;
        outcome.map(|()| count)
    }

    fn seal(&mut self, plaintext: &[u8]) -> io::Result<()> {
        let length = plaintext.len() + TAG_BYTES;
        let start = self.outbound_end;
        let end = start + LENGTH_BYTES + length;
        if self.outbound.len() < end {
            self.outbound.resize(end, 0);
        }
        let (head, frame) = self.outbound[start..end].split_at_mut(LENGTH_BYTES);
        head.copy_from_slice(&(length as u16).to_le_bytes());
        let sealed = self.transport.write_message(plaintext, frame);
        sealed.map_err(|cause| io::Error::other(cause.to_string()))?;
        self.outbound_end = end;
        Ok(())
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cipher").field("tampered", &self.tampered).finish_non_exhaustive()
    }
}

/// What lies at the front of the ciphertext.
#[derive(PartialEq)]
enum Next {
    Whole(Range<usize>),
    Partial,
    Malformed,
}

/// The part of a gather list that has not been sealed yet.
struct Rest<'a> {
    slices: &'a [IoSlice<'a>],
    /// How much of the first slice is done.
    offset: usize,
}

impl<'a> Rest<'a> {
    /// The next plaintext: a piece of a slice where it lies if that is large or all there is, else
    /// small pieces gathered in `gathered`. Empty at the end.
    fn next_plaintext<'g>(&mut self, gathered: &'g mut Vec<u8>) -> &'g [u8]
    where
        'a: 'g,
    {
        let first = self.next_piece(PLAINTEXT_BYTES_MAX);
        if first.len() >= LARGE_BYTES || self.slices.is_empty() {
            return first;
        }
        gathered.extend_from_slice(first);
        while gathered.len() < PLAINTEXT_BYTES_MAX && !self.is_large_next() {
            let piece = self.next_piece(PLAINTEXT_BYTES_MAX - gathered.len());
            if piece.is_empty() {
                break;
            }
            gathered.extend_from_slice(piece);
        }
        gathered
    }

    fn is_large_next(&self) -> bool {
        self.slices.first().is_some_and(|next| next.len() - self.offset >= LARGE_BYTES)
    }

    /// Takes up to `bytes_max` contiguous bytes; none only at the end.
    fn next_piece(&mut self, bytes_max: usize) -> &'a [u8] {
        while let Some((first, later)) = self.slices.split_first() {
            let waiting = &first[self.offset..];
            if waiting.len() > bytes_max {
                self.offset += bytes_max;
                return &waiting[..bytes_max];
            }
            self.slices = later;
            self.offset = 0;
            if !waiting.is_empty() {
                return waiting;
            }
        }
        &[]
    }
}
