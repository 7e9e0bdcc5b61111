//! Links in shared memory, between two processes of one host and one user.
//!
//! Such a link begins as a Unix socket whose peer has proved the key. The side that connected then
//! makes a sealed memory file with a ring for each direction ([`memory`], [`ring`]) and an event
//! counter for each side ([`bell`]), and sends the three descriptors over the socket; the other
//! side checks them and says whether it took them. From then on all bytes go through the rings. The
//! socket stays open: its end tells of the peer's death.
//!
//! A side that is about to wait announces it in the ring from which it reads, or to which it
//! writes, and looks once more. Its peer makes a system call, which wakes it, only then.
//!
//! The peer is trusted with the bytes that it sends and with nothing else: `docs/security.md`.

mod bell;
mod memory;
mod ring;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::link::receive;
use crate::{Error, Result};
use bell::Bell;
use memory::{End, Memory};
use ring::{Consumer, Producer};

pub use memory::{RING_BYTES, SHARED_LINK_BYTES};

/// The byte with the descriptors, and the answer of the side that took them.
const YES: u8 = 1;
/// The same of a side that cannot: the link stays a socket.
const NO: u8 = 0;
/// The answer to an offer whose memory was taken.
pub(crate) const TAKEN: u8 = YES;
/// The answer to one that was not: the link stays a socket.
pub(crate) const REFUSED: u8 = NO;
/// The memory file and the bells of the side that connected and of the one that listened.
const DESCRIPTORS: usize = 3;
/// How many descriptors are looked at; the kernel itself closes any others.
const DESCRIPTORS_MAX: usize = 4;

/// One side of a link in shared memory, beside its socket.
#[derive(Debug)]
pub(crate) struct Channel {
    inbound: Consumer,
    outbound: Producer,
    own_bell: Bell,
    peer_bell: Bell,
}

/// What the side that connected sends.
pub(crate) struct Offer {
    descriptors: [OwnedFd; DESCRIPTORS],
}

/// What came in the place of an offer.
pub(crate) enum Received {
    /// Nothing yet.
    Nothing,
    /// The peer's descriptors.
    Offer(Offer),
    /// The link is to stay a socket: the peer cannot share memory, or its descriptors did not fit
    /// into this process; gives whether it waits for an answer.
    Socket { wants_answer: bool },
    /// The peer has closed.
    Closed,
    /// Something else.
    Invalid,
}

impl Channel {
    /// The side that connects: makes the memory and the bells.
    ///
    /// # Errors
    /// [`Error::Io`] where the system refuses.
    pub(crate) fn make() -> Result<(Self, Offer)> {
        let (memory, file) = Memory::create()?;
        let (own_bell, peer_bell) = (Bell::new()?, Bell::new()?);
        let descriptors = [file, own_bell.duplicate()?, peer_bell.duplicate()?];
        Ok((Self::new(memory, End::Maker, own_bell, peer_bell), Offer { descriptors }))
    }

    /// The side that listened: takes the other's memory and bells.
    ///
    /// # Errors
    /// [`Error::InvalidTable`] if they are not what they have to be; [`Error::Io`] where the system
    /// refuses.
    pub(crate) fn take(offer: Offer) -> Result<Self> {
        let [file, peer_bell, own_bell] = offer.descriptors;
        let memory = Memory::adopt(file)?;
        Ok(Self::new(memory, End::Taker, Bell::adopt(own_bell)?, Bell::adopt(peer_bell)?))
    }

    fn new(memory: Memory, end: End, own_bell: Bell, peer_bell: Bell) -> Self {
        let (own, peers) = memory.into_rings(end);
        let (inbound, outbound) = (Consumer::new(peers), Producer::new(own));
        Self { inbound, outbound, own_bell, peer_bell }
    }

    /// Reads what is there; 0 after the peer has closed or died and all of its bytes are read.
    #[inline]
    pub(crate) fn read(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.take_bytes(buffer)?;
        if bytes > 0 || buffer.is_empty() {
            return Ok(bytes);
        }
        self.read_end(socket, buffer)
    }

    /// Nothing is in the ring: asks the socket whether the peer is there.
    fn read_end(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.inbound.is_closed() {
            match receive(socket, &mut [0; 1]) {
                Ok(0) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Ok(_) => return Err(invalid("bytes came beside the shared memory")),
                Err(error) => return Err(error),
            }
        }
        // What was written before the end was seen.
        self.take_bytes(buffer)
    }

    #[inline]
    fn take_bytes(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inbound.read(buffer).map_err(invalid)?;
        if bytes > 0 && self.inbound.must_wake_writer() {
            self.peer_bell.ring();
        }
        Ok(bytes)
    }

    /// Writes what there is room for.
    #[inline]
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let bytes = self.outbound.write(slices).map_err(invalid)?;
        if bytes > 0 && self.outbound.must_wake_reader() {
            self.peer_bell.ring();
        }
        let is_refused = bytes == 0 && slices.iter().any(|slice| !slice.is_empty());
        if is_refused { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(bytes) }
    }

    /// Whether a read would find bytes, the end, or an error in the ring.
    #[inline]
    pub(crate) fn has_bytes(&self) -> bool {
        self.inbound.has_bytes()
    }

    /// Asks the peer to ring at its next write. True if bytes are there already: then read instead
    /// of waiting.
    #[inline]
    pub(crate) fn announce_wait(&self) -> bool {
        self.inbound.announce_wait()
    }

    /// Asks the peer not to ring. It may have begun to do so.
    #[inline]
    pub(crate) fn withdraw_wait(&self) {
        self.inbound.withdraw_wait();
    }

    /// Tells the reader at the other end that no byte follows.
    pub(crate) fn close_writing(&self) {
        self.outbound.close();
        self.peer_bell.ring();
    }

    /// Gives back the outbound ring's pages, if no byte went through it since the last call; gives
    /// whether there are some to be given back later.
    pub(crate) fn release_pages(&mut self) -> bool {
        self.outbound.release_pages()
    }

    /// What becomes readable when the peer rings.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.own_bell.as_fd()
    }
}

impl Offer {
    /// The descriptor of the memory file, for tests that write to it.
    pub(crate) fn memory_file(&self) -> Result<OwnedFd> {
        let file = self.descriptors[0].try_clone();
        file.map_err(|cause| Error::io("duplicate a link's memory file", cause))
    }
}

/// Sends an offer over a socket that has room, or the word that there is none.
pub(crate) fn send_offer(
    socket: impl AsFd,
    offer: Option<&Offer>,
) -> std::result::Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let borrowed = offer.map(|offer| offer.descriptors.each_ref().map(AsFd::as_fd));
    let word = match &borrowed {
        Some(descriptors) if control.push(SendAncillaryMessage::ScmRights(descriptors)) => [YES],
        _ => [NO],
    };
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(&word)], &mut control, flags) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Receives an offer, never blocking. Every descriptor that is not part of one is closed.
pub(crate) fn receive_offer(socket: impl AsFd) -> std::result::Result<Received, Errno> {
    let mut word = [NO];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let slices = &mut [io::IoSliceMut::new(&mut word)];
    let received = match rustix::net::recvmsg(socket, slices, &mut control, flags) {
        Ok(received) => received,
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(Received::Nothing),
        Err(cause) => return Err(cause),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
    Ok(match (received.bytes, word, <[OwnedFd; DESCRIPTORS]>::try_from(descriptors)) {
        (0, ..) => Received::Closed,
        (_, [YES], Ok(descriptors)) if !is_cut => Received::Offer(Offer { descriptors }),
        // This process may have no more descriptors.
        (_, [YES], _) if is_cut => Received::Socket { wants_answer: true },
        (_, [NO], Err(none)) if none.is_empty() => Received::Socket { wants_answer: false },
        _ => Received::Invalid,
    })
}

/// Whether this system can hold a link's memory without a surprise: where memory is counted
/// strictly, touching a page of a memory file can fail with a signal.
pub(crate) fn is_possible() -> bool {
    static POSSIBLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let rule = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
        rule.is_ok_and(|rule| matches!(rule.trim(), "0" | "1"))
    })
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
