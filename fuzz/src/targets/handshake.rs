//! Handshakes with a stranger, and with an attacker in the middle of two ends that know the key.
//!
//! Sockets are pairs within this process. What each side sends goes into a list of bytes, and the
//! input says what becomes of it on its way: passed on in pieces, flipped, cut out, repeated,
//! replaced by anything. Keys are drawn anew in every process, so inputs are not the same bytes on
//! the sockets when they are tried again, but the same changes at the same places.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use sapwood_transport::{
    Encryption, HANDSHAKE_FRAME_BYTES_MAX, Handshake, Incoming, Key, Link, Progress,
};

use crate::source::Source;
use crate::{Target, memory};

/// Handshakes.
pub const TARGET: Target = Target { name: "handshake", run, repair: None };

/// What a side may allocate for a stranger's bytes: its cryptographic state, an error's text.
const STRANGER_BYTES_MAX: usize = 64 << 10;
/// Rounds in which bytes that are left over are passed on unchanged.
const LAST_ROUNDS: usize = 6;

fn run(input: &[u8]) {
    let mut source = Source::new(input);
    let kind = source.byte();
    let own = if kind & 8 == 0 { Encryption::Off } else { Encryption::On };
    match kind % 4 {
        0 => meet_stranger(Side::responder(own), &mut source),
        1 => meet_stranger(Side::initiator(own, false), &mut source),
        _ => {
            let other = if kind & 16 == 0 { own } else { Encryption::On };
            Middle {
                left: Side::initiator(own, kind & 32 != 0 && kind & 64 != 0),
                right: Side::responder(other),
                is_touched: false,
                is_honest: kind & 128 != 0,
            }
            .carry(&mut source, own == other && !(kind & 32 != 0 && kind & 64 != 0));
        }
    }
}

/// Two keys, drawn once.
fn keys() -> &'static [Key; 2] {
    static KEYS: OnceLock<[Key; 2]> = OnceLock::new();
    KEYS.get_or_init(|| {
        let key = || Key::generate().expect("the system has randomness");
        [key(), key()]
    })
}

enum State {
    Shaking(Box<Handshake>),
    Done(Link),
    Failed,
}

/// One side, with the other end of its socket.
struct Side {
    state: State,
    wire: OwnedFd,
    /// Everything that it has sent, and that was given to it.
    sent: Vec<u8>,
    given: Vec<u8>,
    /// How much of `sent` has been passed on.
    passed: usize,
    /// How much had been sent when it was done.
    sent_in_handshake: Option<usize>,
}

impl Side {
    fn new(make: impl FnOnce(OwnedFd) -> Handshake) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (own, wire) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .expect("there are descriptors left");
        let state = State::Shaking(Box::new(make(own)));
        let (sent, given) = (Vec::new(), Vec::new());
        Self { state, wire, sent, given, passed: 0, sent_in_handshake: None }
    }

    fn initiator(encryption: Encryption, has_other_key: bool) -> Self {
        let key = &keys()[usize::from(has_other_key)];
        Self::new(|socket| {
            Handshake::initiator(socket, key, encryption).expect("the socket is connected")
        })
    }

    fn responder(encryption: Encryption) -> Self {
        Self::new(|socket| {
            let incoming = Incoming::from_socket(socket).expect("the socket is connected");
            Handshake::responder(incoming, &keys()[0], encryption)
        })
    }

    /// Goes as far as it can, and takes what it has sent off the socket.
    fn advance(&mut self) {
        if let State::Shaking(handshake) = &mut self.state {
            match handshake.advance() {
                Ok(Progress::WantRead | Progress::WantWrite) => {}
                Ok(Progress::Done(link)) => self.state = State::Done(link),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    self.state = State::Failed;
                }
            }
        }
        let mut buffer = [0; 4096];
        while let Ok((_, count)) = rustix::net::recv(&self.wire, &mut buffer, RecvFlags::DONTWAIT)
            && count > 0
        {
            self.sent.extend_from_slice(&buffer[..count]);
        }
        if matches!(self.state, State::Done(_)) && self.sent_in_handshake.is_none() {
            self.sent_in_handshake = Some(self.sent.len());
        }
    }

    fn give(&mut self, bytes: &[u8]) {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if let Ok(count) = rustix::net::send(&self.wire, bytes, flags) {
            self.given.extend_from_slice(&bytes[..count]);
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }
}

/// A peer without the key is not served, and costs little memory.
fn meet_stranger(mut side: Side, source: &mut Source<'_>) {
    // The first call makes the keys and the messages of the Noise library's own.
    side.advance();
    while !source.is_empty() {
        let count = 1 + source.below(HANDSHAKE_FRAME_BYTES_MAX + 4);
        let bytes = source.bytes(count);
        side.give(bytes);
        memory::within(STRANGER_BYTES_MAX, || side.advance());
        assert!(!side.is_done(), "a stranger was served");
    }
    let longest = 2 * HANDSHAKE_FRAME_BYTES_MAX;
    assert!(side.sent.len() <= longest, "a stranger was told {} bytes", side.sent.len());
}

struct Middle {
    left: Side,
    right: Side,
    /// Whether any byte has been changed.
    is_touched: bool,
    /// Whether the handshake is left alone, and only what follows is altered.
    is_honest: bool,
}

impl Middle {
    fn carry(&mut self, source: &mut Source<'_>, can_agree: bool) {
        self.advance();
        while !source.is_empty() && !self.is_honest {
            self.pass(source);
            self.advance();
        }
        for _ in 0..LAST_ROUNDS {
            for is_left in [true, false] {
                let (from, to) = self.sides(is_left);
                to.give(&from.sent[from.passed..]);
                from.passed = from.sent.len();
            }
            self.advance();
        }
        if self.left.is_done() || self.right.is_done() {
            assert!(can_agree, "two that have other keys or choices were joined");
        }
        if can_agree && !self.is_touched {
            assert!(self.left.is_done() && self.right.is_done(), "no byte was altered");
            self.exchange(source);
        }
    }

    fn sides(&mut self, is_left: bool) -> (&mut Side, &mut Side) {
        let Self { left, right, .. } = self;
        if is_left { (left, right) } else { (right, left) }
    }

    fn advance(&mut self) {
        self.left.advance();
        self.right.advance();
        for is_left in [true, false] {
            let (from, to) = self.sides(is_left);
            // A side that is done has seen exactly what the other said, and the other it.
            if let (true, Some(count)) = (to.is_done(), from.sent_in_handshake) {
                assert!(to.given.len() >= count, "a peer was served without a proof");
                assert!(to.given[..count] == from.sent[..count], "altered bytes were believed");
            }
        }
        if self.right.is_done() {
            assert!(self.left.is_done(), "the proof is the initiator's last word");
        }
    }

    /// Some bytes of one side go to the other, as they are or not.
    fn pass(&mut self, source: &mut Source<'_>) {
        let (what, count) = (source.byte(), usize::from(source.byte()));
        let (from, to) = self.sides(what & 1 == 0);
        let end = (from.passed + count).min(from.sent.len());
        let mut bytes = from.sent[from.passed..end].to_vec();
        let before = bytes.clone();
        let is_passed = match what >> 1 & 15 {
            0 => {
                let at = source.below(bytes.len());
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (what >> 5));
                true
            }
            1 => {
                let at = source.below(bytes.len());
                bytes.truncate(at);
                true
            }
            2 => {
                bytes = source.bytes(count).to_vec();
                false
            }
            3 => {
                // Something of before once more, from either side.
                let earlier = if what & 32 == 0 { &from.sent } else { &to.sent };
                let start = source.below(earlier.len());
                bytes = earlier[start..(start + count).min(earlier.len())].to_vec();
                false
            }
            4 => {
                bytes.clear();
                true
            }
            _ => true,
        };
        if is_passed {
            from.passed = end;
        }
        to.give(&bytes);
        self.is_touched |= if is_passed { bytes != before } else { !bytes.is_empty() };
    }

    /// What one end writes the other reads; altered bytes of an encrypted link are not delivered.
    fn exchange(&mut self, source: &mut Source<'_>) {
        let (from, to) = self.sides(true);
        let State::Done(writer) = &mut from.state else { return };
        let text = b"twelve bytes and some more".repeat(8);
        for piece in text.chunks(50) {
            let count = writer.write_vectored(&[IoSlice::new(piece)]);
            assert_eq!(count.ok(), Some(piece.len()), "a short text can be written");
            writer.flush().expect("the socket has room");
        }
        let mut buffer = [0; 4096];
        let Ok((_, count)) = rustix::net::recv(&from.wire, &mut buffer, RecvFlags::DONTWAIT) else {
            panic!("something was written");
        };
        let mut bytes = buffer[..count].to_vec();
        while !source.is_empty() && !bytes.is_empty() {
            alter(&mut bytes, source);
        }
        let is_altered = bytes != buffer[..count];
        // A plain link carries what comes; a peer that can alter it is believed.
        let expected = if writer.encryption() == Encryption::On { &text } else { &bytes };
        to.give(&bytes);
        let read = read_all(to);
        let is_honest = expected.starts_with(&read) && (is_altered || read == text);
        assert!(is_honest, "what was altered on its way was believed");
    }
}

fn alter(bytes: &mut Vec<u8>, source: &mut Source<'_>) {
    let (what, at) = (source.byte(), source.byte() as usize + 256 * source.below(2));
    let at = at % bytes.len();
    match what % 4 {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << (what >> 5),
        2 => drop(bytes.splice(at..at, source.bytes(40).iter().copied())),
        _ => {
            let again = bytes[at..(at + 80).min(bytes.len())].to_vec();
            bytes.splice(at..at, again);
        }
    }
    bytes.truncate(4096);
}

fn read_all(side: &mut Side) -> Vec<u8> {
    let State::Done(reader) = &mut side.state else { return Vec::new() };
    let (mut read, mut piece) = (Vec::new(), [0; 100]);
    while let Ok(count) = reader.read(&mut piece)
        && count > 0
    {
        read.extend_from_slice(&piece[..count]);
    }
    read
}
