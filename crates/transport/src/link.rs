//! An authenticated connection that carries bytes.
//!
//! A plain link costs nothing over its socket: each read or write is one system call on the
//! caller's own memory. An encrypted link holds its key state and, only while bytes are under
//! way, buffers; see `cipher.rs`. Writes never raise `SIGPIPE`, whatever the host program does
//! about it: plain gathered writes go through `sendmsg`, which is `writev` with that flag. A link
//! in shared memory makes a system call only to wake its peer; see `shm/mod.rs`.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use snow::TransportState;

use crate::cipher::Cipher;
use crate::hearing::is_unacknowledged_for;
use crate::shm::Channel;
use crate::{Encryption, Error, Peer, PeerCredentials, Result};

/// The most slices that one plain write takes (`UIO_MAXIOV`); further ones wait for the next.
pub const GATHER_SLICES_MAX: usize = 1024;

/// What the system may keep of bytes on their way to a local peer, of which it allows the double.
/// With less, as it is by default, both ends take turns in large transfers: a socket that is full
/// takes more only when three quarters are empty again. TCP finds its own.
const LOCAL_BUFFER_BYTES: usize = 512 << 10;

/// How often the system asks a silent TCP peer's host whether it is there. Its clock for this
/// counts whole seconds.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// What the system takes for the wait before the first probe, in seconds, and for their count.
const IDLE_SECONDS_MAX: u64 = 32_767;
const PROBES_MAX: u32 = 127;

/// How the peer of a link reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It is never too busy to read for as long as the silence that is allowed.
    Prompt,
    /// It may be too busy to read, or stopped.
    Busy,
}

/// An authenticated, non-blocking byte connection. Dropping it closes the socket and forgets
/// ciphertext that waits; see [`Self::flush`].
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
    peer: Peer,
    carrier: Carrier,
}

/// How bytes go over the link. Boxed, so that a plain link stays small.
#[derive(Debug)]
enum Carrier {
    /// As they are over the socket.
    Plain,
    /// Encrypted over the socket.
    Encrypted(Box<Cipher>),
    /// Beside the socket.
    Shared(Box<Channel>),
}

impl Link {
    pub(crate) fn new(socket: OwnedFd, peer: Peer, agreed: Option<TransportState>) -> Self {
        // Every call says whether it may wait, so that a process with one link can wait in the read
        // itself. Where the system refuses this, the socket stays as it is and nothing waits there.
        if agreed.is_none() {
            let _ = rustix::io::ioctl_fionbio(&socket, false);
        }
        if matches!(peer, Peer::Local(_)) {
            // The system may bound it, or leave it as it is.
            let _ = sockopt::set_socket_send_buffer_size(&socket, LOCAL_BUFFER_BYTES);
        }
        let carrier = match agreed {
            None => Carrier::Plain,
            Some(state) => Carrier::Encrypted(Box::new(Cipher::new(state))),
        };
        Self { socket, peer, carrier }
    }

    /// A link whose bytes go through shared memory; the socket tells of the peer's end.
    pub(crate) fn shared(socket: OwnedFd, peer: Peer, channel: Channel) -> Self {
        Self { socket, peer, carrier: Carrier::Shared(Box::new(channel)) }
    }

    /// Two plain links joined within this process, for tests and for a node that is its own
    /// neighbour. No key is involved.
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor is free.
    pub fn pair() -> Result<(Self, Self)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, two) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .map_err(|cause| Error::io("make a pair of links", cause))?;
        let peer = Peer::Local(PeerCredentials::of(&one)?);
        Ok((Self::new(one, peer, None), Self::new(two, peer, None)))
    }

    /// Two plain links joined over TCP within this process, as [`Self::pair`].
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor or port is free.
    pub fn tcp_pair() -> Result<(Self, Self)> {
        let make = || -> io::Result<[(std::net::TcpStream, std::net::SocketAddr); 2]> {
            let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
            let one = std::net::TcpStream::connect(listener.local_addr()?)?;
            let (two, peer_of_two) = listener.accept()?;
            one.set_nonblocking(true)?;
            two.set_nonblocking(true)?;
            let peer_of_one = one.peer_addr()?;
            Ok([(one, peer_of_one), (two, peer_of_two)])
        };
        let ends = make().map_err(|cause| Error::io("make a pair of links", cause))?;
        let [one, two] = ends.map(|(stream, peer)| Self::new(stream.into(), Peer::Tcp(peer), None));
        Ok((one, two))
    }

    /// Two links in shared memory within this process, as [`Self::pair`], and the file that is
    /// their memory: tests write to it what a peer could write.
    ///
    /// # Errors
    /// [`Error::Io`] if the system refuses memory or descriptors.
    pub fn shared_pair() -> Result<(Self, Self, OwnedFd)> {
        let (one, two) = Self::pair()?;
        let (channel, offer) = Channel::make()?;
        let file = offer.memory_file()?;
        let other = Channel::take(offer)?;
        let (one, two) = (one.into_shared(channel), two.into_shared(other));
        Ok((one, two, file))
    }

    fn into_shared(self, channel: Channel) -> Self {
        Self { carrier: Carrier::Shared(Box::new(channel)), ..self }
    }

    /// Reads into `buffer`: the count of bytes, or 0 if the peer has closed.
    ///
    /// An encrypted link, or one in shared memory, may have more than it gave: while
    /// [`Self::has_buffered`], read again before waiting, since the poller does not know of it.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; `InvalidData` if the encrypted bytes were altered or the
    /// peer has broken the rules of the shared memory, and `UnexpectedEof` if encrypted bytes end
    /// within a frame; else the socket's.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Plain => receive(self.socket.as_fd(), buffer),
            Carrier::Shared(channel) => channel.read(self.socket.as_fd(), buffer),
            Carrier::Encrypted(cipher) => cipher.read(self.socket.as_fd(), buffer),
        }
    }

    /// As [`Self::read`], but waits until something is there. Only for a process that has nothing
    /// else to wait for; a link that is encrypted or in shared memory does not wait.
    ///
    /// # Errors
    /// As [`Self::read`]; `Interrupted` when a signal came, `WouldBlock` when the time of
    /// [`Self::set_wait_limit`] is over.
    #[inline]
    pub fn read_waiting(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !matches!(self.carrier, Carrier::Plain) {
            return self.read(buffer);
        }
        match rustix::net::recv(&self.socket, buffer, RecvFlags::empty()) {
            Ok((bytes, _)) => Ok(bytes),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Writes slices one after another and answers how many of their bytes were taken, which may
    /// be fewer than offered.
    ///
    /// An encrypted link may have taken bytes that have not left yet: while
    /// [`Self::wants_write`], wait for writability and call [`Self::flush`]. A link in shared
    /// memory that has taken less than it was offered is reported writable when there is room.
    ///
    /// # Errors
    /// `WouldBlock` if nothing was taken; `BrokenPipe` or `ConnectionReset` if the peer is gone,
    /// which a link in shared memory learns only when it reads; `InvalidData` if its peer has
    /// broken the rules of the shared memory.
    #[inline]
    pub fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.carrier {
            Carrier::Plain => send_gathered(self.socket.as_fd(), slices),
            Carrier::Shared(channel) => channel.write(slices),
            Carrier::Encrypted(cipher) => cipher.write(self.socket.as_fd(), slices),
        }
    }

    /// Whether [`Self::read`] would give bytes (or an error) without asking the socket.
    #[must_use]
    #[inline]
    pub fn has_buffered(&self) -> bool {
        match &self.carrier {
            Carrier::Plain => false,
            Carrier::Shared(channel) => channel.has_bytes(),
            Carrier::Encrypted(cipher) => cipher.has_buffered(),
        }
    }

    /// Before a wait for a link in shared memory: has the peer wake this process when it writes.
    /// True if something is there already; then read, and do not wait. Always false for others.
    #[must_use]
    #[inline]
    pub fn announce_wait(&self) -> bool {
        matches!(&self.carrier, Carrier::Shared(channel) if channel.announce_wait())
    }

    /// Takes back what [`Link::announce_wait`] said, until it is said again.
    #[inline]
    pub fn withdraw_wait(&self) {
        if let Carrier::Shared(channel) = &self.carrier {
            channel.withdraw_wait();
        }
    }

    /// Whether ciphertext waits to leave. Never so for a link that is not encrypted.
    #[must_use]
    #[inline]
    pub fn wants_write(&self) -> bool {
        matches!(&self.carrier, Carrier::Encrypted(cipher) if cipher.wants_write())
    }

    /// Sends waiting ciphertext.
    ///
    /// # Errors
    /// `WouldBlock` if some still waits; else the socket's.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.carrier {
            Carrier::Plain | Carrier::Shared(_) => Ok(()),
            Carrier::Encrypted(cipher) => cipher.flush(self.socket.as_fd()),
        }
    }

    /// Shuts down the sending side: the peer's read ends with 0 after those sent before. Reading
    /// goes on. Flush first.
    ///
    /// # Errors
    /// The socket's, if the peer is gone.
    pub fn close_writing(&mut self) -> io::Result<()> {
        if let Carrier::Shared(channel) = &self.carrier {
            channel.close_writing();
        }
        Ok(rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write)?)
    }

    /// Gives back what buffers an encrypted link kept from its last bulk transfer, and the pages
    /// of a link in shared memory through which few bytes have gone since the last call. They come
    /// back by themselves; call it for links that have been quiet for a while. Gives whether
    /// another call can give something back.
    pub fn release_buffers(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::Plain => false,
            Carrier::Shared(channel) => channel.release_pages(),
            Carrier::Encrypted(cipher) => {
                cipher.release_buffers();
                false
            }
        }
    }

    /// Whether this link encrypts.
    #[must_use]
    pub fn encryption(&self) -> Encryption {
        match &self.carrier {
            Carrier::Encrypted(_) => Encryption::On,
            Carrier::Plain | Carrier::Shared(_) => Encryption::Off,
        }
    }

    /// Whether bytes go through shared memory.
    #[must_use]
    #[inline]
    pub fn is_shared(&self) -> bool {
        matches!(self.carrier, Carrier::Shared(_))
    }

    /// What the peer of a link in shared memory rings.
    pub(crate) fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.carrier {
            Carrier::Shared(channel) => Some(channel.bell()),
            Carrier::Plain | Carrier::Encrypted(_) => None,
        }
    }

    /// Has the system end a TCP link whose peer's host has not answered for about this long, to the
    /// second and two at least; zero for never. A stopped process on a host that answers is not
    /// silent. Does nothing for Unix sockets, whose other end cannot be cut off.
    ///
    /// Bytes under way to a prompt reader are watched as well. Of any other the system cannot say
    /// whether its host is cut off or it does not read, and watches only while nothing is under
    /// way: [`Self::is_unacknowledged_for`] is to be asked meanwhile.
    ///
    /// # Errors
    /// The socket's.
    pub fn set_silence(&self, silence: Duration, reader: Reader) -> io::Result<()> {
        if matches!(self.peer, Peer::Local(_)) {
            return Ok(());
        }
        sockopt::set_socket_keepalive(&self.socket, !silence.is_zero())?;
        // The user timeout also ends a link whose peer does not read (zero window). It is left at
        // the system's default where the peer may be stopped.
        let watched = if reader == Reader::Prompt { silence } else { Duration::ZERO };
        let milliseconds = i32::try_from(watched.as_millis()).unwrap_or(i32::MAX);
        sockopt::set_tcp_user_timeout(&self.socket, milliseconds.unsigned_abs())?;
        if !silence.is_zero() {
            // Half of the time without received bytes, the other half for probes without an answer.
            let (idle, probes) = (silence.as_secs() / 2, silence.as_secs().div_ceil(2));
            let idle = idle.clamp(1, IDLE_SECONDS_MAX);
            sockopt::set_tcp_keepidle(&self.socket, Duration::from_secs(idle))?;
            sockopt::set_tcp_keepintvl(&self.socket, PROBE_INTERVAL)?;
            let probes = u32::try_from(probes).unwrap_or(u32::MAX);
            sockopt::set_tcp_keepcnt(&self.socket, probes.clamp(1, PROBES_MAX))?;
        }
        Ok(())
    }

    /// Whether bytes are under way of which the peer's host has acknowledged nothing for this long,
    /// and two seconds at least, although some were retransmitted. A host acknowledges for a
    /// process that is stopped. Never so for Unix sockets.
    #[must_use]
    pub fn is_unacknowledged_for(&self, silence: Duration) -> bool {
        !matches!(self.peer, Peer::Local(_)) && is_unacknowledged_for(&self.socket, silence)
    }

    /// How long [`Self::read_waiting`] waits at most, to a few milliseconds; zero for no limit.
    ///
    /// # Errors
    /// The socket's.
    pub fn set_wait_limit(&self, limit: Duration) -> io::Result<()> {
        let limit = (!limit.is_zero()).then_some(limit);
        Ok(sockopt::set_socket_timeout(&self.socket, Timeout::Recv, limit)?)
    }

    /// The peer at the other end.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// This end's address, if it is of TCP.
    #[must_use]
    pub fn local_address(&self) -> Option<std::net::SocketAddr> {
        rustix::net::getsockname(&self.socket).ok()?.try_into().ok()
    }

    /// The peer at the other end, for display.
    #[must_use]
    pub fn peer_description(&self) -> String {
        self.peer.to_string()
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// One read from a socket.
#[inline]
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => {}
            other => return Ok(other?.0),
        }
    }
}

/// One gathered write to a socket.
#[inline]
fn send_gathered(socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(GATHER_SLICES_MAX)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if let [one] = slices {
        // The usual case, and cheaper for the system than a list of one.
        loop {
            match rustix::net::send(socket, one, flags) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
    loop {
        match rustix::net::sendmsg(socket, slices, &mut Default::default(), flags) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_carries_bytes_both_ways_and_tells_of_the_end() {
        let (mut one, mut two) = Link::pair().unwrap();
        let mut buffer = [0; 16];
        assert_eq!(two.read(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let slices = [IoSlice::new(b"up"), IoSlice::new(b""), IoSlice::new(b"ward")];
        assert_eq!(one.write_vectored(&slices).unwrap(), 6);
        assert_eq!(two.read(&mut buffer).unwrap(), 6);
        assert_eq!(&buffer[..6], b"upward");
        assert!(!one.wants_write() && !two.has_buffered());
        one.close_writing().unwrap();
        assert_eq!(two.read(&mut buffer).unwrap(), 0);
        assert!(two.peer_description().contains(&std::process::id().to_string()));
        drop(one);
        assert_eq!(
            two.write_vectored(&[IoSlice::new(b"x")]).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn a_read_that_waits_can_be_limited() {
        let (mut one, mut two) = Link::pair().unwrap();
        two.set_wait_limit(Duration::from_millis(1)).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(two.read_waiting(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        two.set_wait_limit(Duration::ZERO).unwrap();
        assert_eq!(one.write_vectored(&[IoSlice::new(b"x")]).unwrap(), 1);
        assert_eq!(two.read_waiting(&mut buffer).unwrap(), 1);
    }

    #[test]
    fn silence_is_watched_on_tcp_links_only() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let socket = OwnedFd::from(std::net::TcpStream::connect(place).unwrap());
        let link = Link::new(socket, Peer::Tcp(place), None);
        let settings = |link: &Link| {
            let keepalive = sockopt::socket_keepalive(link).unwrap();
            (keepalive, sockopt::tcp_user_timeout(link).unwrap())
        };
        assert_eq!(settings(&link), (false, 0));
        for (reader, expected) in [(Reader::Prompt, (true, 5_000)), (Reader::Busy, (true, 0))] {
            link.set_silence(Duration::from_secs(5), reader).unwrap();
            assert_eq!(settings(&link), expected);
            let idle = sockopt::tcp_keepidle(&link).unwrap();
            let probes = sockopt::tcp_keepcnt(&link).unwrap();
            assert_eq!(idle + PROBE_INTERVAL * probes, Duration::from_secs(5));
        }
        for extreme in [Duration::from_millis(1), Duration::MAX] {
            link.set_silence(extreme, Reader::Prompt).unwrap();
        }
        link.set_silence(Duration::ZERO, Reader::Prompt).unwrap();
        assert_eq!(settings(&link), (false, 0));
        let (local, _other) = Link::pair().unwrap();
        local.set_silence(Duration::from_secs(5), Reader::Prompt).unwrap();
        assert!(!sockopt::socket_keepalive(&local).unwrap());
    }

    #[test]
    fn more_slices_than_the_kernel_takes_are_taken_in_part() {
        let (mut one, _two) = Link::pair().unwrap();
        let slices = vec![IoSlice::new(b"x"); GATHER_SLICES_MAX + 5];
        assert_eq!(one.write_vectored(&slices).unwrap(), GATHER_SLICES_MAX);
    }

    #[test]
    fn an_idle_plain_link_is_small() {
        assert!(size_of::<Link>() <= 64, "{}", size_of::<Link>());
    }
}
