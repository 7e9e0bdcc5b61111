//! The node's links as the system knows them: reading, gathered writing, and newcomers that still
//! have to prove the network's key.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use sapwood_node::{GATHER_PARTS_MAX, Input, Instant, LinkId, Node};
use sapwood_packet::Slab;
use sapwood_transport::{
    Accepted, Address, Admission, Encryption, Handshake, Interest, Key, Link, LinkTerms, Listener,
    Pending, Poller, Progress, Reader,
};
use smallvec::SmallVec;

use crate::clock::clock;
use crate::error::RuntimeError;
use crate::journal;
use crate::release::PageRelease;
use crate::spin::SPIN_LINKS_MAX;
use crate::token::Token;

/// Bytes read from one link before the next one has its turn.
const READ_BYTES: usize = 64 << 10;
/// Room in front of them for the cut-off frame of the last read.
const TAIL_BYTES: usize = 16 << 10;
/// Bytes given to one write.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Acknowledgements of the peers' hosts are checked this many times within the silence limit.
const CHECKS_PER_SILENCE: u32 = 8;

thread_local! {
    /// Where links are read to. One for all drivers of a thread, since they read one after another
    /// and a process can have thousands of them.
    static BUFFER: Cell<Option<Slab>> = const { Cell::new(None) };
}

/// The thread's buffer, to be put back after use; a new one where there is none, as at the first
/// read and while a thread ends.
#[inline]
fn take_buffer() -> Slab {
    let kept = BUFFER.try_with(Cell::take).ok().flatten();
    kept.unwrap_or_else(|| Slab::of_length(TAIL_BYTES + READ_BYTES))
}

#[inline]
fn put_back(buffer: Slab) {
    // A thread that is ending keeps nothing.
    let _ = BUFFER.try_with(|kept| kept.set(Some(buffer)));
}

struct OpenLink {
    link: Link,
    interest: Interest,
    /// How long a read that waits may take, in milliseconds; 0 for ever.
    wait_limit: u64,
    /// Closed as soon as all queued bytes are written.
    is_leaving: bool,
    /// Whether the system watches for silence on the network's terms.
    is_watched: bool,
    /// Whether the socket took less than it was offered, and was not reported writable since.
    is_full: bool,
    /// Whether it is among the links in shared memory that have been read since the last wait.
    is_awake: bool,
}

impl OpenLink {
    /// Whether nothing is left to be done about this link once everything is written.
    #[inline]
    fn is_settled(&self) -> bool {
        let is_idle = !self.is_full && !self.is_leaving && !self.link.wants_write();
        is_idle && self.is_watched && self.interest == READ
    }

    /// Has TCP end the link when the peer's host is cut off.
    fn watch_silence(&mut self, id: LinkId, node: &Node) {
        let terms = node.recovery();
        let silence = if terms.is_on { terms.silence } else { Duration::ZERO };
        let reader = if node.is_responsive(id) { Reader::Prompt } else { Reader::Busy };
        // Where the system does not support this, the node's heartbeats remain.
        let _ = self.link.set_silence(silence, reader);
        self.is_watched = true;
    }
}

struct Newcomer {
    handshake: Handshake,
}

/// All sockets of one process.
pub(crate) struct SocketTable {
    links: Vec<Option<OpenLink>>,
    /// Numbers of links that have closed since the node's outputs were carried out. They are not
    /// given to new links before, because pending outputs still name the closed ones.
    freed: Vec<usize>,
    listener: Option<Listener>,
    /// The address at which other processes reach it.
    listen_address: Option<Address>,
    /// When the listener may be asked again after the system ran out of descriptors.
    listener_paused: Option<u64>,
    newcomers: BTreeMap<u32, Newcomer>,
    next_newcomer: u32,
    pending: Pending,
    key: Key,
    terms: LinkTerms,
    /// Links with bytes in their buffer or ring, which do not make a descriptor readable.
    again: Vec<LinkId>,
    /// Links in shared memory whose peers have to be notified of the next wait.
    awake: Vec<LinkId>,
    /// How many links are in shared memory.
    shared: usize,
    /// Those that are closed and still in the poller.
    closed: Vec<Link>,
    /// When quiet links in shared memory are looked for.
    release: PageRelease,
    /// The end of the last measurement of filters' time.
    measured: Instant,
    /// The time of the last check which hosts acknowledge.
    listened: Instant,
}

impl SocketTable {
    pub(crate) fn new(key: Key, encryption: Encryption) -> Self {
        Self {
            links: Vec::new(),
            freed: Vec::new(),
            listener: None,
            listen_address: None,
            listener_paused: None,
            newcomers: BTreeMap::new(),
            next_newcomer: 0,
            pending: Pending::new(),
            key,
            terms: encryption.into(),
            again: Vec::new(),
            awake: Vec::new(),
            shared: 0,
            closed: Vec::new(),
            release: PageRelease::default(),
            measured: Instant::default(),
            listened: Instant::default(),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn encryption(&self) -> Encryption {
        self.terms.encryption
    }

    /// Newcomers of this host are offered links in shared memory.
    pub(crate) fn share_memory(&mut self) {
        self.terms.shares_memory = true;
    }

    /// Takes connections from now on.
    pub(crate) fn listen(
        &mut self,
        listener: Listener,
        listen_address: Address,
        poller: &Poller,
    ) -> Result<(), RuntimeError> {
        poller.add(&listener, Token::Listener.to_number(), READ)?;
        self.listener = Some(listener);
        self.listen_address = Some(listen_address);
        Ok(())
    }

    /// Where connections are taken, if they are.
    pub(crate) fn address(&self) -> Option<&Address> {
        self.listen_address.as_ref().filter(|_| self.listener.is_some())
    }

    /// The two ends of a TCP link, for display: they show by which interface it goes.
    pub(crate) fn path_of(&self, id: LinkId) -> Option<String> {
        let link = &self.links.get(id.0 as usize)?.as_ref()?.link;
        let own = link.local_address()?.ip().to_canonical();
        let sapwood_transport::Peer::Tcp(peer) = link.peer() else { return None };
        Some(format!("from {own} to {}", peer.ip().to_canonical()))
    }

    /// Adds a link that has proved the key; returns its number.
    pub(crate) fn add(&mut self, link: Link, poller: &Poller) -> Result<LinkId, RuntimeError> {
        // A number in `freed` is not used yet: outputs that are still pending name the closed link.
        let is_open = |index: &usize| self.links.get(*index).is_some_and(Option::is_some);
        let is_taken = |index: &usize| is_open(index) || self.freed.contains(index);
        let index = (0..).find(|index| !is_taken(index)).unwrap_or(self.links.len());
        let id = LinkId(u32::try_from(index).unwrap_or(u32::MAX));
        poller.add_link(&link, Token::Link(id).to_number())?;
        if link.announce_wait() || link.has_buffered() {
            self.again.push(id);
        }
        self.shared += usize::from(link.is_shared());
        journal::up(id, &link);
        let open = OpenLink {
            link,
            interest: READ,
            wait_limit: 0,
            is_leaving: false,
            is_watched: false,
            is_full: false,
            is_awake: false,
        };
        if index >= self.links.len() {
            self.links.resize_with(index + 1, || None);
        }
        self.links[index] = Some(open);
        Ok(id)
    }

    /// The node's outputs on closed links have been carried out: their numbers may be used again.
    #[inline]
    pub(crate) fn free_numbers(&mut self, poller: &Poller) {
        if !self.freed.is_empty() {
            for link in self.closed.drain(..) {
                let _ = poller.remove_link(&link);
            }
            self.freed.clear();
        }
    }

    /// Before a wait, also of a program that waits for the poller itself: has the peers of links in
    /// shared memory wake this process. What they have written already is read in the next turn.
    #[inline]
    pub(crate) fn announce_waits(&mut self) {
        while let Some(id) = self.awake.pop() {
            let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { continue };
            open.is_awake = false;
            if open.link.announce_wait() {
                self.again.push(id);
            }
        }
    }

    /// Whether there are links in shared memory, and not too many to look at all of them.
    #[inline]
    pub(crate) fn can_spin(&self) -> bool {
        (1..=SPIN_LINKS_MAX).contains(&self.shared)
    }

    /// Looks at the links in shared memory until one has bytes; false at `end`. Their peers make no
    /// system call to wake this process meanwhile.
    pub(crate) fn spin(&mut self, end: Instant) -> bool {
        for (number, open) in (0..).map(LinkId).zip(&mut self.links) {
            if let Some(open) = open.as_mut().filter(|open| open.link.is_shared() && !open.is_awake)
            {
                open.link.withdraw_wait();
                open.is_awake = true;
                self.awake.push(number);
            }
        }
        let is_met = |sockets: &Self| {
            let mut links = sockets.links.iter().flatten();
            links.any(|open| open.link.is_shared() && open.link.has_buffered())
        };
        while !is_met(self) && clock() < end {
            std::hint::spin_loop();
        }
        self.announce_waits();
        self.must_not_wait()
    }

    /// Takes the links with bytes that the poller does not report.
    pub(crate) fn take_again(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.again)
    }

    /// Whether some link has bytes that the poller does not report.
    pub(crate) fn must_not_wait(&self) -> bool {
        !self.again.is_empty()
    }

    /// The only link of a process that takes no connections, if it is one that can be waited on in
    /// the read itself: plain, and with nothing left to write.
    #[inline]
    pub(crate) fn only_link(&self) -> Option<LinkId> {
        // A new parent after an adoption may have the second number.
        let [before @ .., Some(open)] = &self.links[..] else { return None };
        let is_only = before.iter().all(Option::is_none);
        // A Unix socket wakes its reader also when the peer takes what this end has written: a read
        // that waits for an answer to what was just sent costs two switches of processes more than
        // the poller does, which asks for bytes only.
        let is_tcp = matches!(open.link.peer(), sapwood_transport::Peer::Tcp(_));
        let is_plain = is_tcp && open.link.encryption() == Encryption::Off;
        let is_quiet = open.interest == READ && is_plain;
        let number = u32::try_from(before.len()).ok()?;
        (is_only && is_quiet && self.listener.is_none() && self.newcomers.is_empty())
            .then_some(LinkId(number))
    }

    /// Limits a waiting read: it ends not later than `patience`, and not much sooner. The limit is
    /// changed rarely, since that takes a system call. False if the wait is too short for the read.
    #[inline]
    pub(crate) fn limit_wait(&mut self, id: LinkId, patience: Option<Duration>) -> bool {
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return false };
        let Some(patience) = patience else {
            return open.wait_limit == 0 || set_wait_limit(open, 0);
        };
        let left = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let limit = open.wait_limit;
        if limit != 0 && limit <= left && left / 8 < limit {
            return true;
        }
        // The largest power of two that fits, so that the same limit serves many waits.
        left >= WAIT_MS_MIN && set_wait_limit(open, (1 << left.ilog2()).min(WAIT_MS_MAX))
    }

    /// Reads one link once, and passes the bytes to the node with the time after the read: the echo
    /// of a probe must not show a time before the probe's arrival.
    #[inline]
    pub(crate) fn read(&mut self, id: LinkId, node: &mut Node) -> Instant {
        self.read_by(id, node, |link, memory| (link.read(memory), clock()))
    }

    /// As [`SocketTable::read`], but waits for bytes; returns the time at which the wait was over,
    /// and whether it ended at its limit.
    #[inline]
    pub(crate) fn read_waiting(&mut self, id: LinkId, node: &mut Node) -> (Instant, bool) {
        let mut is_limit = false;
        let now = self.read_by(id, node, |link, memory| {
            let result = link.read_waiting(memory);
            is_limit =
                result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
            (result, clock())
        });
        (now, is_limit)
    }

    #[inline]
    fn read_by(
        &mut self,
        id: LinkId,
        node: &mut Node,
        read: impl FnOnce(&mut Link, &mut [u8]) -> (io::Result<usize>, Instant),
    ) -> Instant {
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return clock() };
        let (result, now) = if let Some(memory) = node.lend(id) {
            // The memory of a large packet in progress: its bytes are read in place, without a
            // copy.
            let (result, now) = read(&mut open.link, memory);
            if let Ok(bytes @ 1..) = result {
                node.handle_input(now, Input::Filled { link: id, bytes });
            }
            (result, now)
        } else {
            let mut slab = take_buffer();
            let buffer = slab.as_mut_bytes();
            // The start of a frame that the last read has cut goes in front, so that the node sees
            // the frame in one piece.
            let tail = node.begin_read(id, buffer);
            let (result, now) = read(&mut open.link, &mut buffer[tail..tail + READ_BYTES]);
            let bytes = tail + *result.as_ref().unwrap_or(&0);
            if bytes > 0 {
                node.handle_input(now, Input::Bytes { link: id, bytes: &buffer[..bytes] });
            }
            put_back(slab);
            (result, now)
        };
        self.measure(node, now);
        match result {
            Ok(0) => self.down(id, node, now, "connection closed"),
            Ok(_) => self.look_again(id),
            Err(error) if is_transient(&error) => self.look_again(id),
            Err(error) => self.down(id, node, now, &error.to_string()),
        }
        now
    }

    /// After a read: the link may have more than was read.
    #[inline]
    fn look_again(&mut self, id: LinkId) {
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return };
        if open.link.has_buffered() {
            self.again.push(id);
        } else if open.link.is_shared() && !open.is_awake {
            open.is_awake = true;
            self.awake.push(id);
        }
    }

    /// Reports to the node how long filters have run since `from` or the previous report, if any
    /// has.
    #[inline]
    pub(crate) fn measure(&mut self, node: &mut Node, from: Instant) {
        if let Some(stream) = node.take_transformed() {
            let from = from.max(self.measured);
            self.measured = clock();
            node.spent(stream, self.measured, self.measured.since(from));
        }
    }

    fn down(&mut self, id: LinkId, node: &mut Node, now: Instant, reason: &str) {
        journal::down(id, reason);
        self.close(id);
        node.handle_input(now, Input::LinkDown { link: id, reason: reason.to_string() });
    }

    fn close(&mut self, id: LinkId) {
        let open = self.links[id.0 as usize].take();
        // The peer has the bell as well, so that the poller does not forget it by itself.
        let shared = open.map(|open| open.link).filter(Link::is_shared);
        self.shared -= usize::from(shared.is_some());
        self.closed.extend(shared);
        self.freed.push(id.0 as usize);
        // So that `only_link` and the loops over all links see no trailing gaps.
        while let Some(None) = self.links.last() {
            self.links.pop();
        }
    }

    /// The poller has reported the link writable; gives whether it was waited for. An event on a
    /// link in shared memory reports both directions, so it counts only after a short write.
    #[inline]
    pub(crate) fn note_writable(&mut self, id: LinkId) -> bool {
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return false };
        std::mem::take(&mut open.is_full) || !open.link.is_shared()
    }

    /// Writes the node's frames for one link, as far as the socket takes them. After a short write
    /// no bytes are offered before the poller reports the link writable, which saves a system call
    /// that would fail.
    #[inline]
    pub(crate) fn write(&mut self, id: LinkId, node: &mut Node, poller: &Poller, now: Instant) {
        loop {
            let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return };
            if open.is_full {
                return self.after_write(id, node, poller);
            }
            let written = if open.link.wants_write() {
                open.link.flush().map(|()| None)
            } else {
                write_once(&mut open.link, id, node).map(Some)
            };
            match written {
                Ok(Some((0, _))) => return self.after_write(id, node, poller),
                Ok(Some((bytes, offered))) => {
                    // An encrypted link may take less although its socket has room, so a short
                    // write means nothing.
                    let is_plain = open.link.encryption() == Encryption::Off;
                    open.is_full = is_plain && bytes < offered;
                    let is_settled = open.is_settled();
                    self.release.note(&open.link, now.0);
                    node.handle_input(now, Input::Transmitted { link: id, bytes });
                    if is_settled && !node.wants_write(id) {
                        return;
                    }
                }
                Ok(None) => {}
                Err(error) => return self.write_failed(id, &error, node, poller, now),
            }
            if !node.wants_write(id) && !self.has_unwritten(id) {
                return self.after_write(id, node, poller);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn write_failed(
        &mut self,
        id: LinkId,
        error: &io::Error,
        node: &mut Node,
        poller: &Poller,
        now: Instant,
    ) {
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return };
        if is_transient(error) {
            open.is_full |= error.kind() == io::ErrorKind::WouldBlock;
            return self.after_write(id, node, poller);
        }
        // Bytes of the peer may still wait to be read; the read sees the end of the link after
        // them.
        open.is_leaving = true;
        if error.kind() == io::ErrorKind::BrokenPipe {
            set_interest(poller, id, open, READ);
        } else {
            self.down(id, node, now, &error.to_string());
        }
    }

    fn has_unwritten(&self, id: LinkId) -> bool {
        matches!(self.links.get(id.0 as usize), Some(Some(open)) if open.link.wants_write())
    }

    /// Waits for room, closes, or begins to watch the link, whatever is due.
    #[inline(never)]
    fn after_write(&mut self, id: LinkId, node: &Node, poller: &Poller) {
        let waits = node.wants_write(id) || self.has_unwritten(id);
        let Some(Some(open)) = self.links.get_mut(id.0 as usize) else { return };
        if open.is_leaving && !waits {
            // Half-closed, so that the peer reads what was written before it sees the end.
            let _ = open.link.close_writing();
            journal::down(id, "closed by this process");
            self.close(id);
            return;
        }
        if !open.is_watched && node.is_planned() {
            open.watch_silence(id, node);
        }
        set_interest(poller, id, open, if waits { READ_AND_WRITE } else { READ });
    }

    /// Closes a link once the node's frames for it are written.
    pub(crate) fn hang_up(&mut self, id: LinkId, node: &mut Node, poller: &Poller, now: Instant) {
        if let Some(Some(open)) = self.links.get_mut(id.0 as usize) {
            open.is_leaving = true;
            self.write(id, node, poller, now);
        }
    }

    /// Called when the terms of the network arrive, or the parent has changed.
    pub(crate) fn watch_silence(&mut self, node: &Node) {
        for (number, open) in self.links.iter_mut().enumerate() {
            if let (Some(open), Ok(number)) = (open, u32::try_from(number)) {
                open.watch_silence(LinkId(number), node);
            }
        }
    }

    /// Closes links with bytes under way to hosts that are cut off. On links to responsive
    /// processes TCP detects this itself; for a process that may be stopped, the acknowledgements
    /// of its host are the only sign.
    pub(crate) fn close_unacknowledged(&mut self, node: &mut Node, now: Instant) {
        let terms = node.recovery();
        let period = terms.silence / CHECKS_PER_SILENCE;
        if !terms.is_on || terms.silence.is_zero() || now < self.listened + period {
            return;
        }
        self.listened = now;
        let is_cut_off = |id: LinkId, open: &OpenLink| {
            open.is_watched
                && !node.is_responsive(id)
                && open.link.is_unacknowledged_for(terms.silence)
        };
        let numbered = (0..).map(LinkId).zip(&self.links);
        let open = numbered.filter_map(|(id, open)| Some((id, open.as_ref()?)));
        let cut_off: Vec<LinkId> =
            open.filter(|(id, open)| is_cut_off(*id, open)).map(|(id, _)| id).collect();
        for id in cut_off {
            let reason = format!("host acknowledged nothing for {} ms", terms.silence.as_millis());
            self.down(id, node, now, &reason);
        }
    }

    /// Links that are still open.
    pub(crate) fn open_count(&self) -> usize {
        self.links.iter().flatten().count()
    }

    /// Takes the connections that wait at the listener.
    pub(crate) fn accept(&mut self, poller: &Poller, now: Instant) -> Result<(), RuntimeError> {
        loop {
            let Some(listener) = &mut self.listener else { return Ok(()) };
            // The poller is level-triggered: with a full table it would report the listener again
            // and again.
            if !self.pending.has_room(now.0) {
                // Those that wait at the listener are not lost: it is asked again when one is done.
                poller.remove(listener)?;
                self.listener_paused = Some(self.pending.next_change().unwrap_or(now.0));
                return Ok(());
            }
            match listener.accept()? {
                Accepted::Incoming(incoming) => {
                    let index = self.next_newcomer;
                    self.next_newcomer = self.next_newcomer.wrapping_add(1);
                    match self.pending.admit(u64::from(index), &incoming.peer(), now.0) {
                        Admission::Admitted => {}
                        Admission::InPlaceOf(old) => self.forget_newcomer(old, poller),
                        Admission::Full => continue,
                    }
                    let handshake = Handshake::responder(incoming, &self.key, self.terms);
                    poller.add(&handshake, Token::Newcomer(index).to_number(), READ)?;
                    self.newcomers.insert(index, Newcomer { handshake });
                }
                Accepted::ForeignUser(_) => {}
                Accepted::Pause(wait) => {
                    poller.remove(listener)?;
                    self.listener_paused = Some((now + wait).0);
                    return Ok(());
                }
                Accepted::Empty => return Ok(()),
            }
        }
    }

    fn forget_newcomer(&mut self, token: u64, poller: &Poller) {
        let Ok(index) = u32::try_from(token) else { return };
        if let Some(newcomer) = self.newcomers.remove(&index) {
            let _ = poller.remove(&newcomer.handshake);
        }
    }

    /// A newcomer has said something.
    pub(crate) fn advance(&mut self, index: u32, node: &mut Node, poller: &Poller, now: Instant) {
        let Some(newcomer) = self.newcomers.get_mut(&index) else { return };
        let token = Token::Newcomer(index).to_number();
        let progress = newcomer.handshake.advance();
        if newcomer.handshake.has_first_message() {
            self.pending.note_message(u64::from(index));
        }
        match progress {
            Ok(Progress::WantRead) => {
                let _ = poller.modify(&newcomer.handshake, token, READ);
            }
            Ok(Progress::WantWrite) => {
                let _ = poller.modify(&newcomer.handshake, token, READ_AND_WRITE);
            }
            Ok(Progress::Done(link)) => {
                // The link gets another token, and in shared memory a second descriptor.
                let _ = poller.remove(&link);
                self.pending.remove(u64::from(index));
                self.newcomers.remove(&index);
                self.resume(poller);
                if let Ok(id) = self.add(link, poller) {
                    node.handle_input(now, Input::ChildUp { link: id });
                }
            }
            Err(error) => {
                journal::refused(&error);
                self.pending.remove(u64::from(index));
                self.forget_newcomer(u64::from(index), poller);
                self.resume(poller);
            }
        }
    }

    /// Lets go of newcomers that have been silent for too long, and asks the listener again.
    pub(crate) fn tick(&mut self, poller: &Poller, now: Instant) {
        while let Some(token) = self.pending.expire(now.0) {
            self.forget_newcomer(token, poller);
        }
        if self.listener_paused.is_some_and(|at| at <= now.0) {
            self.resume(poller);
        }
        let links = self.links.iter_mut().flatten().map(|open| &mut open.link);
        self.release.carry_out(links, now.0);
    }

    /// Asks a listener again that has been left alone.
    fn resume(&mut self, poller: &Poller) {
        if self.listener_paused.take().is_some()
            && let Some(listener) = &self.listener
        {
            let _ = poller.add(listener, Token::Listener.to_number(), READ);
        }
    }

    /// Stops listening, and closes connections whose handshake is not complete.
    pub(crate) fn stop_listening(&mut self) {
        self.listener = None;
        self.listener_paused = None;
        self.newcomers.clear();
        self.pending = Pending::new();
    }

    /// When [`SocketTable::tick`] has something to do, in nanoseconds of the node's clock.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        [self.pending.deadline(), self.listener_paused, self.release.deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The limits of a read that waits, in milliseconds: the system's clock for it ticks every few
/// milliseconds.
const WAIT_MS_MIN: u64 = 8;
const WAIT_MS_MAX: u64 = 1 << 20;

/// Limits a link's reads that wait; whether the system has done it.
fn set_wait_limit(open: &mut OpenLink, milliseconds: u64) -> bool {
    let is_set = open.link.set_wait_limit(Duration::from_millis(milliseconds)).is_ok();
    if is_set {
        open.wait_limit = milliseconds;
    }
    is_set
}

const READ: Interest = Interest::READ;
const READ_AND_WRITE: Interest = Interest::BOTH;

fn set_interest(poller: &Poller, id: LinkId, open: &mut OpenLink, interest: Interest) {
    // The peer of a link in shared memory rings when there is room.
    if open.interest != interest
        && !open.link.is_shared()
        && poller.modify(open.link.as_fd(), Token::Link(id).to_number(), interest).is_ok()
    {
        open.interest = interest;
    }
}

/// One gathered write of what the node has for a link: how many bytes were taken, and offered.
fn write_once(link: &mut Link, id: LinkId, node: &Node) -> io::Result<(usize, usize)> {
    // Most writes have one or two parts: only more of them ask for memory.
    let mut slices: SmallVec<[IoSlice<'_>; 4]> = SmallVec::new();
    let mut bytes = 0;
    node.gather(id, |part| {
        slices.push(IoSlice::new(part));
        bytes += part.len();
        slices.len() < GATHER_PARTS_MAX && bytes < WRITE_BYTES_MAX
    });
    let taken = if slices.is_empty() { 0 } else { link.write_vectored(&slices)? };
    Ok((taken, bytes))
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: LinkId = LinkId(0);

    /// A table with this many links, and their other ends.
    fn table_of(links: usize) -> (SocketTable, Poller, Vec<Link>) {
        let mut table = SocketTable::new(Key::generate().unwrap(), Encryption::Off);
        let poller = Poller::new().unwrap();
        let mut others = Vec::new();
        for _ in 0..links {
            let (link, other) = Link::tcp_pair().unwrap();
            table.add(link, &poller).unwrap();
            others.push(other);
        }
        (table, poller, others)
    }

    #[test]
    fn a_parent_in_the_place_of_another_is_the_only_link_again() {
        let (mut table, poller, _others) = table_of(1);
        assert_eq!(table.only_link(), Some(ALONE));
        let (next, _other) = Link::tcp_pair().unwrap();
        assert_eq!(table.add(next, &poller).unwrap(), LinkId(1));
        assert_eq!(table.only_link(), None);
        table.close(ALONE);
        assert_eq!(table.only_link(), Some(LinkId(1)));
        table.close(LinkId(1));
        assert_eq!((table.only_link(), table.open_count()), (None, 0));
        assert!(!table.limit_wait(LinkId(1), None), "it is gone");
    }

    #[test]
    fn a_unix_link_is_waited_on_in_the_poller() {
        let (mut table, poller, _others) = table_of(0);
        let (link, _other) = Link::pair().unwrap();
        table.add(link, &poller).unwrap();
        assert_eq!(table.only_link(), None, "its peer's reads would wake this process, too");
    }

    #[test]
    fn a_number_is_given_to_another_link_when_all_that_was_said_of_it_is_carried_out() {
        let (mut table, poller, _others) = table_of(3);
        let added = |table: &mut SocketTable| table.add(Link::tcp_pair().unwrap().0, &poller);
        table.close(LinkId(1));
        assert_eq!(added(&mut table).unwrap(), LinkId(3), "it may be hung up yet");
        table.close(LinkId(3));
        assert_eq!(added(&mut table).unwrap(), LinkId(4));
        table.free_numbers(&poller);
        assert_eq!(added(&mut table).unwrap(), LinkId(1));
        assert_eq!(added(&mut table).unwrap(), LinkId(3));
    }

    #[test]
    fn a_wait_is_limited_in_few_steps() {
        let (mut table, _poller, _others) = table_of(1);
        let mut limit_for = |milliseconds| {
            let patience = Some(Duration::from_millis(milliseconds));
            table.limit_wait(ALONE, patience).then(|| table.links[0].as_ref().unwrap().wait_limit)
        };
        assert_eq!(limit_for(50), Some(32));
        assert_eq!(limit_for(33), Some(32), "one limit serves many waits");
        assert_eq!(limit_for(31), Some(16));
        assert_eq!(limit_for(7), None, "that is not for the read");
        assert_eq!(limit_for(100), Some(16));
        assert_eq!(limit_for(5_000), Some(4_096), "it would end far too often");
        assert_eq!(limit_for(u64::MAX), Some(WAIT_MS_MAX));
        assert!(table.limit_wait(ALONE, None));
        assert_eq!(table.links[0].as_ref().unwrap().wait_limit, 0);
    }
}
