//! The handshake: both ends prove the network's key before any other byte is served.
//!
//! The proof is Noise's NNpsk0 pattern (The Noise Protocol Framework, revision 34, sections 7 and
//! 9) with the key as pre-shared key, then one message more. Noise's two messages alone would let a
//! replayed first message look like a peer; the third can only be made with the fresh secret of
//! *this* connection, and the responder serves nothing before it.
//!
//! ```text
//! every frame       length u16 LE | that many bytes, of which each step allows one number
//! 1  initiator ->   64 | ephemeral key 32 | choice 16, encrypted under the key | tag 16
//! 2  <- responder   64 | ephemeral key 32 | choice 16, encrypted | tag 16
//!    or, if 1 was made with another key:   1 | reason 1 (the value 1)
//! 3  initiator ->   32 | zeros 16, encrypted under the connection's keys | tag 16
//! choice            encryption u8 (0 off, 1 on) | shared memory u8 (0 no, 1 yes) | zeros 14
//! ```
//!
//! Shared memory is for two ends of one user on one host without encryption. The side that
//! connected says whether it is able to; the other says yes only to a yes. Then two messages
//! follow the third, in plain text:
//!
//! ```text
//! 4  initiator ->   1, with the descriptors of the memory and of both bells; or 0 without any
//! 5  <- responder   1, or 0 if it did not take them; no answer to 0
//! ```
//!
//! Where one says 0 the link stays a socket.
//!
//! The first byte that differs from this ends the connection. Until a whole first message has
//! come, a connection costs its descriptor and the fixed buffer in [`Handshake`]; before the key
//! is proved, no public-key arithmetic is done for it.
//!
//! The refusal is not authenticated: an attacker that can alter traffic can forge it, but could
//! also cut the connection as well. It exists so that a wrong key has a clear error at both ends.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags};
use snow::{HandshakeState, TransportState};

use crate::listener::tcp_peer;
use crate::shm::{self, Channel, Received};
use crate::{Address, Error, Incoming, Key, Link, Peer, PeerCredentials, Result, socket};

/// How long a handshake may take before the accepting side closes it, in milliseconds. Long,
/// since at start-up hundreds of processes share a few cores; [`crate::Pending`] bounds how many
/// silent connections that leaves open.
pub const HANDSHAKE_DEADLINE_MS: u64 = 10_000;

/// The longest handshake frame with its length, in bytes: all that a stranger can make us hold.
pub const HANDSHAKE_FRAME_BYTES_MAX: usize = LENGTH_BYTES + HELLO_BYTES;

const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";
const PROLOGUE: &[u8] = b"sapwood/1";
const LENGTH_BYTES: usize = 2;
const CHOICE_BYTES: usize = 16;
const HELLO_BYTES: usize = 32 + CHOICE_BYTES + 16;
const PROOF_BYTES: usize = CHOICE_BYTES + 16;
const REFUSAL: [u8; 3] = [1, 0, 1];
const REFUSAL_BYTES: usize = 1;

/// Whether bytes after the handshake are encrypted and authenticated. Both ends must agree; each
/// learns the other's choice in the handshake, and a difference is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Every byte is encrypted and authenticated.
    On,
    /// Bytes go plain over the socket.
    Off,
}

impl Encryption {
    /// On for TCP, off for Unix sockets, which do not leave this machine's kernel.
    #[must_use]
    pub fn default_for(address: &Address) -> Self {
        if address.is_unix() { Self::Off } else { Self::On }
    }
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

/// What a side wants of a link. An [`Encryption`] alone stands for a link over a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTerms {
    /// Whether bytes are encrypted; both sides have to say the same.
    pub encryption: Encryption,
    /// Whether bytes may go through shared memory: they do if both sides say so, encryption is
    /// off, and both are processes of one user on one host whose system is able to.
    pub shares_memory: bool,
}

impl From<Encryption> for LinkTerms {
    fn from(encryption: Encryption) -> Self {
        Self { encryption, shares_memory: false }
    }
}

impl LinkTerms {
    /// What remains of them towards this peer.
    fn towards(self, peer: &Peer) -> Self {
        let is_same_user =
            matches!(peer, Peer::Local(who) if who.user == rustix::process::geteuid().as_raw());
        let is_plain = self.encryption == Encryption::Off;
        let shares_memory = self.shares_memory && is_plain && is_same_user && shm::is_possible();
        Self { shares_memory, ..self }
    }
}

/// One side of a handshake under way. It never blocks; the caller waits for what
/// [`Self::advance`] wants, for as long as its own clock allows, and drops it to give up.
#[derive(Debug)]
pub struct Handshake {
    /// Gone once it has become a link.
    socket: Option<OwnedFd>,
    peer: Peer,
    key: Key,
    terms: LinkTerms,
    /// Whether both sides have said that they share memory.
    is_sharing: bool,
    /// What the initiator has made for it.
    channel: Option<Box<Channel>>,
    step: HandshakeStep,
    noise: Noise,
    /// The frame being sent or received, and how far it is.
    frame: [u8; HANDSHAKE_FRAME_BYTES_MAX],
    frame_bytes: usize,
    done_bytes: usize,
}

/// What a handshake, or a [`crate::Dial`], needs next.
#[derive(Debug)]
pub enum Progress {
    /// Call again when the descriptor is readable.
    WantRead,
    /// Call again when the descriptor is writable.
    WantWrite,
    /// The peer knows the key.
    Done(Link),
}

#[derive(Clone, Copy, Debug)]
enum HandshakeStep {
    Sending(Then),
    Awaiting(Message),
    /// The initiator offers memory.
    Offering,
    /// The responder waits for that.
    AwaitingOffer,
    /// The initiator waits for the answer.
    AwaitingAnswer,
    Finished,
}

/// The next state after the frame is sent.
#[derive(Clone, Copy, Debug)]
enum Then {
    Await(Message),
    Offer,
    Serve,
    FailForKey,
    FailForEncryption,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Message {
    First,
    Second,
    Third,
}

/// The cryptographic state: none before the first message, boxed since it is large.
enum Noise {
    None,
    Shaking(Box<HandshakeState>),
    Agreed(Box<TransportState>),
}

impl fmt::Debug for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Noise(..)")
    }
}

impl Handshake {
    /// The side that connected. Takes any connected stream socket and makes it non-blocking.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not connected; [`Error::ForeignUser`] if a Unix socket's listener
    /// belongs to another user.
    pub fn initiator(socket: OwnedFd, key: &Key, terms: impl Into<LinkTerms>) -> Result<Self> {
        let Incoming { socket, peer } = Incoming::from_socket(socket)?;
        let mut handshake = Self::new(socket, peer, key, terms.into());
        handshake.is_sharing = handshake.terms.shares_memory;
        let mut noise = builder(key)?.build_initiator().map_err(broken)?;
        handshake.stage_hello(&mut noise)?;
        handshake.noise = Noise::Shaking(Box::new(noise));
        handshake.step = HandshakeStep::Sending(Then::Await(Message::Second));
        Ok(handshake)
    }

    /// The side that accepted.
    #[must_use]
    pub fn responder(incoming: Incoming, key: &Key, terms: impl Into<LinkTerms>) -> Self {
        Self::new(incoming.socket, incoming.peer, key, terms.into())
    }

    /// Goes as far as the socket allows. After an error or [`Progress::Done`] drop it.
    ///
    /// # Errors
    /// [`Error::WrongKey`], [`Error::EncryptionMismatch`], [`Error::ClosedDuringHandshake`],
    /// [`Error::PeerMisbehaved`] for bytes that are no handshake, [`Error::Io`].
    pub fn advance(&mut self) -> Result<Progress> {
        loop {
            match self.step {
                HandshakeStep::Sending(then) => {
                    if !self.send()? {
                        return Ok(Progress::WantWrite);
                    }
                    match then {
                        Then::Await(message) => self.step = HandshakeStep::Awaiting(message),
                        Then::Offer => self.step = HandshakeStep::Offering,
                        Then::Serve => return self.serve(),
                        Then::FailForKey => return Err(self.wrong_key()),
                        Then::FailForEncryption => return Err(self.encryption_mismatch()),
                    }
                    self.done_bytes = 0;
                }
                HandshakeStep::Awaiting(message) => {
                    if !self.receive(message)? {
                        return Ok(Progress::WantRead);
                    }
                    match message {
                        Message::First => self.answer_first()?,
                        Message::Second => self.answer_second()?,
                        Message::Third => {
                            self.check_third()?;
                            if !self.is_sharing {
                                return self.serve();
                            }
                            self.step = HandshakeStep::AwaitingOffer;
                        }
                    }
                    self.done_bytes = 0;
                }
                HandshakeStep::Offering => {
                    if !self.offer()? {
                        return Ok(Progress::WantWrite);
                    }
                    if self.channel.is_none() {
                        return self.serve();
                    }
                    self.step = HandshakeStep::AwaitingAnswer;
                }
                HandshakeStep::AwaitingOffer => {
                    if !self.take_offer()? {
                        return Ok(Progress::WantRead);
                    }
                }
                HandshakeStep::AwaitingAnswer => {
                    if !self.take_answer()? {
                        return Ok(Progress::WantRead);
                    }
                    return self.serve();
                }
                HandshakeStep::Finished => {
                    return Err(Error::ApiMisuse { rule: "a handshake ends once" });
                }
            }
        }
    }

    /// The peer at the other end.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether the peer's first message has come, of one that has connected: only a process that
    /// knows the key makes one, though others may say again what they have seen.
    #[must_use]
    pub fn has_first_message(&self) -> bool {
        !matches!(self.step, HandshakeStep::Awaiting(Message::First))
    }

    fn new(socket: OwnedFd, peer: Peer, key: &Key, terms: LinkTerms) -> Self {
        Self {
            terms: terms.towards(&peer),
            is_sharing: false,
            channel: None,
            socket: Some(socket),
            peer,
            key: key.clone(),
            step: HandshakeStep::Awaiting(Message::First),
            noise: Noise::None,
            frame: [0; HANDSHAKE_FRAME_BYTES_MAX],
            frame_bytes: 0,
            done_bytes: 0,
        }
    }

    /// Makes message 1 or 2 the frame to be sent.
    fn stage_hello(&mut self, noise: &mut HandshakeState) -> Result<()> {
        let mut choice = [0; CHOICE_BYTES];
        choice[0] = u8::from(self.terms.encryption == Encryption::On);
        choice[1] = u8::from(self.is_sharing);
        noise.write_message(&choice, &mut self.frame[LENGTH_BYTES..]).map_err(broken)?;
        self.stage(HELLO_BYTES);
        Ok(())
    }

    /// Marks the frame, whose body is in place, as to be sent.
    fn stage(&mut self, body_bytes: usize) {
        self.frame[..LENGTH_BYTES].copy_from_slice(&(body_bytes as u16).to_le_bytes());
        self.frame_bytes = LENGTH_BYTES + body_bytes;
        self.done_bytes = 0;
    }

    /// Reads the peer's message 1 or 2. `None` if it was not made with our key.
    fn open_hello(&self, noise: &mut HandshakeState) -> Result<Option<LinkTerms>> {
        let mut choice = [0; HELLO_BYTES];
        let hello = &self.frame[LENGTH_BYTES..LENGTH_BYTES + HELLO_BYTES];
        match noise.read_message(hello, &mut choice) {
            Ok(CHOICE_BYTES) => {}
            Err(snow::Error::Decrypt) => return Ok(None),
            Ok(_) | Err(_) => return Err(self.misbehaved("its ephemeral key is unusable")),
        }
        // The reserved bytes must be zero, so that a later version can give them a meaning.
        let encryption = match choice[0] {
            0 => Encryption::Off,
            1 => Encryption::On,
            _ => return Err(self.misbehaved(UNKNOWN_CHOICE)),
        };
        let shares_memory = match choice[1] {
            0 => false,
            1 => true,
            _ => return Err(self.misbehaved(UNKNOWN_CHOICE)),
        };
        match choice[2..CHOICE_BYTES].iter().all(|byte| *byte == 0) {
            true => Ok(Some(LinkTerms { encryption, shares_memory })),
            false => Err(self.misbehaved(UNKNOWN_CHOICE)),
        }
    }

    fn answer_first(&mut self) -> Result<()> {
        let mut noise = builder(&self.key)?.build_responder().map_err(broken)?;
        let Some(theirs) = self.open_hello(&mut noise)? else {
            // In plain text, since there is no common key to authenticate it with.
            self.frame[..REFUSAL.len()].copy_from_slice(&REFUSAL);
            self.stage(REFUSAL_BYTES);
            self.step = HandshakeStep::Sending(Then::FailForKey);
            return Ok(());
        };
        // The peer learns of a difference from our authenticated answer, as we from its message.
        self.is_sharing = self.terms.shares_memory && theirs.shares_memory;
        self.stage_hello(&mut noise)?;
        self.noise = Noise::Shaking(Box::new(noise));
        self.step = HandshakeStep::Sending(if theirs.encryption == self.terms.encryption {
            Then::Await(Message::Third)
        } else {
            Then::FailForEncryption
        });
        Ok(())
    }

    fn answer_second(&mut self) -> Result<()> {
        if self.done_bytes == REFUSAL.len() {
            return Err(self.wrong_key());
        }
        let Noise::Shaking(mut noise) = std::mem::replace(&mut self.noise, Noise::None) else {
            return Err(Error::ApiMisuse { rule: "an initiator awaits message 2 after message 1" });
        };
        match self.open_hello(&mut noise)? {
            None => return Err(self.wrong_key()),
            Some(theirs) if theirs.encryption != self.terms.encryption => {
                return Err(self.encryption_mismatch());
            }
            Some(theirs) if theirs.shares_memory && !self.is_sharing => {
                return Err(self.misbehaved("it shares memory with a peer that does not"));
            }
            Some(theirs) => self.is_sharing = theirs.shares_memory,
        }
        let mut agreed = noise.into_transport_mode().map_err(broken)?;
        agreed
            .write_message(&[0; CHOICE_BYTES], &mut self.frame[LENGTH_BYTES..])
            .map_err(broken)?;
        self.stage(PROOF_BYTES);
        self.noise = Noise::Agreed(Box::new(agreed));
        let then = if self.is_sharing { Then::Offer } else { Then::Serve };
        self.step = HandshakeStep::Sending(then);
        Ok(())
    }

    fn check_third(&mut self) -> Result<()> {
        let Noise::Shaking(noise) = std::mem::replace(&mut self.noise, Noise::None) else {
            return Err(Error::ApiMisuse { rule: "a responder awaits message 3 after message 2" });
        };
        let mut agreed = noise.into_transport_mode().map_err(broken)?;
        let mut zeros = [0; PROOF_BYTES];
        let proof = &self.frame[LENGTH_BYTES..LENGTH_BYTES + PROOF_BYTES];
        // Only the holder of this connection's ephemeral secret can make it: a replayed message 1
        // gets no further than this.
        if agreed.read_message(proof, &mut zeros).is_err() {
            return Err(self.misbehaved("its proof was made for another connection (a replay?)"));
        }
        self.noise = Noise::Agreed(Box::new(agreed));
        Ok(())
    }

    /// Turns the proved connection into a link.
    fn serve(&mut self) -> Result<Progress> {
        self.step = HandshakeStep::Finished;
        let noise = std::mem::replace(&mut self.noise, Noise::None);
        let (Some(socket), Noise::Agreed(agreed)) = (self.socket.take(), noise) else {
            return Err(Error::ApiMisuse { rule: "a handshake ends once" });
        };
        // Without encryption the keys have served their purpose, the proof, and are dropped.
        let agreed = (self.terms.encryption == Encryption::On).then_some(*agreed);
        if let Some(channel) = self.channel.take() {
            return Ok(Progress::Done(Link::shared(socket, self.peer, *channel)));
        }
        Ok(Progress::Done(Link::new(socket, self.peer, agreed)))
    }

    /// The initiator sends memory, or that it has none; returns whether that is sent.
    fn offer(&mut self) -> Result<bool> {
        // What the system refuses costs the memory and not the link.
        let made = Channel::make().ok();
        let sent = shm::send_offer(self.socket()?, made.as_ref().map(|(_, offer)| offer));
        match sent {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(false),
            // The system bounds the descriptors under way.
            Err(Errno::TOOMANYREFS) => {
                let word = shm::send_offer(self.socket()?, None);
                return word.map(|()| true).map_err(|cause| self.failed(cause));
            }
            Err(cause) => return Err(self.failed(cause)),
        }
        self.channel = made.map(|(channel, _)| Box::new(channel));
        Ok(true)
    }

    /// The responder takes the memory and says so; returns whether the offer has come.
    fn take_offer(&mut self) -> Result<bool> {
        let received = shm::receive_offer(self.socket()?);
        let channel = match received.map_err(|cause| self.failed(cause))? {
            Received::Nothing => return Ok(false),
            Received::Closed => return Err(Error::ClosedDuringHandshake { peer: self.peer }),
            Received::Invalid => return Err(self.misbehaved("it sent no memory to be shared")),
            Received::Socket { wants_answer: false } => {
                self.step = HandshakeStep::Sending(Then::Serve);
                self.frame_bytes = 0;
                return Ok(true);
            }
            Received::Socket { wants_answer: true } => None,
            Received::Offer(offer) => Channel::take(offer).ok(),
        };
        self.frame[0] = if channel.is_some() { shm::TAKEN } else { shm::REFUSED };
        (self.frame_bytes, self.done_bytes) = (1, 0);
        self.channel = channel.map(Box::new);
        self.step = HandshakeStep::Sending(Then::Serve);
        Ok(true)
    }

    /// The initiator learns whether its memory was taken; returns whether the answer has come.
    fn take_answer(&mut self) -> Result<bool> {
        let mut word = [0];
        match rustix::net::recv(self.socket()?, &mut word, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(Error::ClosedDuringHandshake { peer: self.peer }),
            Ok(_) => {}
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(cause) => return Err(self.failed(cause)),
        }
        match word[0] {
            shm::TAKEN => {}
            shm::REFUSED => self.channel = None,
            _ => return Err(self.misbehaved("it does not say whether it shares memory")),
        }
        Ok(true)
    }

    /// Sends the rest of the frame; returns whether all of it is sent.
    fn send(&mut self) -> Result<bool> {
        while self.done_bytes < self.frame_bytes {
            let rest = &self.frame[self.done_bytes..self.frame_bytes];
            match rustix::net::send(self.socket()?, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.done_bytes += count,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(cause) => return Err(self.failed(cause)),
            }
        }
        Ok(true)
    }

    /// Receives the rest of a message, never a byte beyond it; returns whether it is complete.
    fn receive(&mut self, message: Message) -> Result<bool> {
        // Bytes beyond the message belong to the reader of the link, so they stay in the socket.
        let longest = LENGTH_BYTES + message.body_bytes();
        loop {
            let socket = self.socket.as_ref().ok_or(FINISHED)?;
            let room = &mut self.frame[self.done_bytes..longest];
            match rustix::net::recv(socket, room, RecvFlags::empty()) {
                Ok((_, 0)) => return Err(Error::ClosedDuringHandshake { peer: self.peer }),
                Ok((_, count)) => self.done_bytes += count,
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(cause) => return Err(self.failed(cause)),
            }
            // Each piece is checked at once: bytes of another protocol are refused at the first
            // wrong one instead of holding the connection until its deadline.
            let received = &self.frame[..self.done_bytes];
            let refused = message == Message::Second && REFUSAL.starts_with(received);
            let length = message.length();
            let begins = received.iter().zip(&length).all(|(byte, expected)| byte == expected);
            if !refused && !begins {
                return Err(self.misbehaved("it sent something else than a handshake message"));
            }
            if received.len() == if refused { REFUSAL.len() } else { longest } {
                return Ok(true);
            }
        }
    }

    fn socket(&self) -> Result<&OwnedFd> {
        self.socket.as_ref().ok_or(FINISHED)
    }

    fn wrong_key(&self) -> Error {
        Error::WrongKey { peer: self.peer }
    }

    fn encryption_mismatch(&self) -> Error {
        Error::EncryptionMismatch { peer: self.peer, own: self.terms.encryption }
    }

    fn misbehaved(&self, problem: &'static str) -> Error {
        Error::PeerMisbehaved { peer: self.peer, problem }
    }

    fn failed(&self, cause: Errno) -> Error {
        match cause {
            Errno::CONNRESET | Errno::PIPE => Error::ClosedDuringHandshake { peer: self.peer },
            cause => Error::io(format!("shake hands with {}", self.peer), cause),
        }
    }
}

/// Waits on the socket while the handshake lasts.
impl AsFd for Handshake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a handshake that became a link is dropped, not polled").as_fd()
    }
}

impl Incoming {
    /// Takes a connected stream socket from elsewhere, such as an inherited one, with the same
    /// checks and settings as [`crate::Listener::accept`].
    ///
    /// # Errors
    /// [`Error::ForeignUser`]; [`Error::Io`] if it is no connected Unix or TCP socket.
    pub fn from_socket(socket: OwnedFd) -> Result<Self> {
        let failed = |cause| Error::io("take over a connected socket", cause);
        rustix::io::ioctl_fionbio(&socket, true).map_err(failed)?;
        let family = rustix::net::sockopt::socket_domain(&socket).map_err(failed)?;
        let peer = if family == AddressFamily::UNIX {
            Peer::Local(PeerCredentials::check(&socket)?)
        } else {
            socket::send_at_once(&socket)?;
            Peer::Tcp(tcp_peer(&socket).ok_or(failed(Errno::NOTCONN))?)
        };
        Ok(Self { socket, peer })
    }
}

impl Message {
    fn body_bytes(self) -> usize {
        match self {
            Self::First | Self::Second => HELLO_BYTES,
            Self::Third => PROOF_BYTES,
        }
    }

    fn length(self) -> [u8; LENGTH_BYTES] {
        (self.body_bytes() as u16).to_le_bytes()
    }
}

const UNKNOWN_CHOICE: &str = "it asks for something unknown; is it another version?";
const FINISHED: Error = Error::ApiMisuse { rule: "a handshake ends once" };

fn builder(key: &Key) -> Result<snow::Builder<'_>> {
    let parameters = PATTERN.parse().map_err(broken)?;
    snow::Builder::new(parameters)
        .prologue(PROLOGUE)
        .and_then(|builder| builder.psk(0, key.bytes()))
        .map_err(broken)
}

/// An error of the Noise library that no peer can cause, such as missing randomness.
fn broken(cause: snow::Error) -> Error {
    Error::io("run the handshake's cryptography", io::Error::other(cause.to_string()))
}
