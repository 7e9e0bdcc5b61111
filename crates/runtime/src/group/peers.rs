//! The links of one member: what has come, what waits to leave, and which member is at the other
//! end.
//!
//! Two members that dial each other at the same time have two links. Each sends on the one that it
//! greeted first, and reads both.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};

use sapwood_group::limits::{DRAINED_PART, MESSAGE_BYTES_MAX};
use sapwood_group::message::{Frame, GREETING_BYTES_MAX, Inbox, decode, encode_frame};
use sapwood_group::{GroupError, MemberId, Message};
use sapwood_transport::{Interest, Link, Poller};

use super::dials::Dialled;
use super::token::GroupToken;
use crate::error::RuntimeError;
use crate::release::PageRelease;

/// Bytes read from one link before the next one has its turn.
const READ_BYTES: usize = 256 << 10;
/// Bytes given to one write, and the parts that they may be in.
const WRITE_BYTES_MAX: usize = 1 << 20;
const WRITE_PARTS_MAX: usize = 128;
/// What may wait for one peer, in bytes; a link with more is closed, and its peer asked again.
pub(super) const QUEUE_BYTES_MAX: usize = 2 << 30;

/// One link.
pub(super) struct Peer {
    link: Link,
    /// The member at the other end, once it has greeted.
    pub(super) member: Option<MemberId>,
    /// If this side made the connection, the member at its other end.
    pub(super) dialled: Option<Dialled>,
    /// By when it must have greeted.
    pub(super) greet_until: Option<u64>,
    /// Closed as soon as all is written.
    pub(super) is_leaving: bool,
    inbox: Inbox,
    /// The frame that is partly written, and how far.
    current: Option<(Outgoing, usize)>,
    /// Signs of life, which go before all others: a peer with much to read is not dead.
    urgent: VecDeque<Outgoing>,
    queue: VecDeque<Outgoing>,
    queued_bytes: usize,
    /// Those of them that belong to segments and parts.
    bulk_bytes: usize,
    /// How many of these the member takes to wait: what it was last informed of, and what it has
    /// sent since.
    told_bytes: usize,
    interest: Interest,
}

/// A frame that waits to leave.
pub(super) struct Outgoing {
    frame: Frame,
    is_urgent: bool,
    /// The bytes of a segment or part in it.
    bulk_bytes: usize,
}

impl Outgoing {
    /// The frame of a message.
    pub(super) fn of(message: Message) -> Result<Self, GroupError> {
        let is_urgent = matches!(message, Message::Ping { .. } | Message::Pong { .. });
        let bulk_bytes = message.bulk_bytes();
        Ok(Self { frame: encode_frame(message)?, is_urgent, bulk_bytes })
    }

    /// A frame that goes before all others.
    pub(super) fn urgent(frame: Frame) -> Self {
        Self { frame, is_urgent: true, bulk_bytes: 0 }
    }
}

/// Segments and parts have left.
pub(super) struct Drained {
    pub(super) member: MemberId,
    /// How many bytes of them wait still.
    pub(super) queued_bytes: usize,
}

/// What has come on a link.
pub(super) enum Arrival {
    /// The first frame.
    Greeting(Vec<u8>),
    /// A message of a member.
    Message(MemberId, Message),
    /// Bytes that are neither, with what is wrong: the link is of no use any more.
    Breach(String),
}

/// All links of one member.
#[derive(Default)]
pub(super) struct Peers {
    links: BTreeMap<u32, Peer>,
    next: u32,
    /// On which link each member is sent to.
    primary: BTreeMap<MemberId, u32>,
    /// Links with bytes that the poller does not report.
    again: Vec<u32>,
    /// Links in shared memory that were read since the last wait.
    awake: Vec<u32>,
    /// Links with something to write.
    dirty: Vec<u32>,
    /// Links whose members are to be notified of what has left.
    drained: Vec<u32>,
    /// A member is notified when this much less waits than it takes to wait.
    drained_bytes: usize,
    buffer: Vec<u8>,
    /// When quiet links in shared memory are looked for.
    release: PageRelease,
}

impl Peers {
    /// The links of a member that lets `link_bytes` of segments and parts wait on each.
    pub(super) fn new(link_bytes: usize) -> Self {
        Self { drained_bytes: link_bytes.div_ceil(DRAINED_PART), ..Self::default() }
    }

    /// Adds a link that has proved the key.
    pub(super) fn add(
        &mut self,
        link: Link,
        dialled: Option<Dialled>,
        greet_until: u64,
        poller: &Poller,
    ) -> Result<u32, RuntimeError> {
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        poller.add_link(&link, GroupToken::Link(index).to_number())?;
        if link.has_buffered() || link.is_shared() {
            self.again.push(index);
        }
        let peer = Peer {
            link,
            member: None,
            dialled,
            greet_until: Some(greet_until),
            is_leaving: false,
            inbox: Inbox::default(),
            current: None,
            urgent: VecDeque::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            bulk_bytes: 0,
            told_bytes: 0,
            interest: Interest::READ,
        };
        self.links.insert(index, peer);
        Ok(index)
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Peer> {
        self.links.get_mut(&index)
    }

    /// The link on which a member is sent to.
    pub(super) fn primary(&self, member: MemberId) -> Option<u32> {
        self.primary.get(&member).copied()
    }

    /// A link's peer has said which member it is. True if it is the first link of that member.
    pub(super) fn greeted(&mut self, index: u32, member: MemberId) -> bool {
        if let Some(peer) = self.links.get_mut(&index) {
            peer.member = Some(member);
            peer.greet_until = None;
        }
        if self.primary.contains_key(&member) {
            return false;
        }
        self.primary.insert(member, index);
        true
    }

    /// Closes a link. Gives its member if it was the one on which it is sent to; another link of
    /// that member takes its place.
    pub(super) fn close(&mut self, index: u32, poller: &Poller) -> (Option<Peer>, bool) {
        let Some(peer) = self.links.remove(&index) else { return (None, false) };
        let _ = poller.remove_link(&peer.link);
        let Some(member) = peer.member else { return (Some(peer), false) };
        let was_primary = self.primary.get(&member) == Some(&index);
        if was_primary {
            self.primary.remove(&member);
            let other = self.links.iter().find(|(_, other)| other.member == Some(member));
            if let Some((&other, _)) = other {
                self.primary.insert(member, other);
            }
        }
        (Some(peer), was_primary)
    }

    /// The links to a member.
    pub(super) fn of(&self, member: MemberId) -> Vec<u32> {
        let of_member = self.links.iter().filter(|(_, peer)| peer.member == Some(member));
        of_member.map(|(index, _)| *index).collect()
    }

    /// Queues a frame. False if too much waits already.
    pub(super) fn send(&mut self, index: u32, outgoing: Outgoing) -> bool {
        let Some(peer) = self.links.get_mut(&index) else { return true };
        let bytes = outgoing.frame.len();
        if peer.queued_bytes + bytes > QUEUE_BYTES_MAX {
            return false;
        }
        peer.queued_bytes += bytes;
        peer.bulk_bytes += outgoing.bulk_bytes;
        peer.told_bytes += outgoing.bulk_bytes;
        if outgoing.is_urgent {
            peer.urgent.push_back(outgoing);
        } else {
            peer.queue.push_back(outgoing);
        }
        self.dirty.push(index);
        true
    }

    /// Writes a last frame as far as the link takes it at once, before it is closed. What waits
    /// before it is not sent any more.
    pub(super) fn say_last(&mut self, index: u32, outgoing: Outgoing) {
        if let Some(peer) = self.links.get_mut(&index) {
            peer.keep_begun();
        }
        if self.send(index, outgoing)
            && let Some(peer) = self.links.get_mut(&index)
        {
            // It is closed whether or not the peer reads what is said.
            let _ = peer.write();
        }
    }

    /// Reads a link once; false if it has ended. Then take what has come by [`Peers::next`].
    pub(super) fn read(&mut self, index: u32) -> bool {
        let Some(peer) = self.links.get_mut(&index) else { return true };
        self.buffer.resize(READ_BYTES, 0);
        match peer.link.read(&mut self.buffer) {
            Ok(0) => return false,
            Ok(count) => peer.inbox.extend(&self.buffer[..count]),
            Err(error) if is_transient(&error) => {}
            Err(_) => return false,
        }
        if peer.link.has_buffered() {
            self.again.push(index);
        } else if peer.link.is_shared() {
            self.awake.push(index);
        }
        true
    }

    /// What has come next on a link.
    pub(super) fn next(&mut self, index: u32) -> Option<Arrival> {
        let peer = self.links.get_mut(&index)?;
        let most = if peer.member.is_some() { MESSAGE_BYTES_MAX } else { GREETING_BYTES_MAX };
        let frame = match peer.inbox.next_frame(most) {
            Ok(frame) => frame?,
            Err(error) => return Some(Arrival::Breach(error.to_string())),
        };
        let Some(member) = peer.member else { return Some(Arrival::Greeting(frame.to_vec())) };
        Some(match decode(frame) {
            Ok(message) => Arrival::Message(member, message),
            Err(error) => Arrival::Breach(error.to_string()),
        })
    }

    /// Links with bytes that the poller does not report.
    pub(super) fn take_again(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.again)
    }

    /// Before a wait: peers of links in shared memory wake this process from now on.
    pub(super) fn announce_waits(&mut self) {
        for index in std::mem::take(&mut self.awake) {
            if self.links.get(&index).is_some_and(|peer| peer.link.announce_wait()) {
                self.again.push(index);
            }
        }
    }

    /// Whether a link has bytes to read or to write that the poller does not report.
    pub(super) fn must_not_wait(&self) -> bool {
        !self.again.is_empty() || !self.dirty.is_empty()
    }

    /// The poller has reported a link writable.
    pub(super) fn note_writable(&mut self, index: u32) {
        self.dirty.push(index);
    }

    /// Writes what waits, as far as links take it. Gives the links that have ended.
    pub(super) fn flush(&mut self, poller: &Poller, now: u64) -> Vec<u32> {
        let mut ended = Vec::new();
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for index in dirty.drain(..) {
            let Some(peer) = self.links.get_mut(&index) else { continue };
            let is_done = peer.write();
            let wanted = match is_done {
                Ok(true) if peer.is_leaving => {
                    ended.push(index);
                    continue;
                }
                Ok(true) => Interest::READ,
                Ok(false) => Interest::BOTH,
                // What the peer has written before its end is read first.
                Err(_) => Interest::READ,
            };
            if is_done.is_err() {
                peer.drop_queue();
                self.again.push(index);
            } else if peer.told_bytes - peer.bulk_bytes >= self.drained_bytes {
                self.drained.push(index);
            }
            if peer.link.is_shared() {
                // Its peer rings when there is room.
                self.release.note(&peer.link, now);
                continue;
            }
            let token = GroupToken::Link(index).to_number();
            if peer.interest != wanted && poller.modify(&peer.link, token, wanted).is_ok() {
                peer.interest = wanted;
            }
        }
        self.dirty = dirty;
        ended
    }

    /// The next notice to the member of its links, all of whose messages have been queued.
    pub(super) fn next_drained(&mut self) -> Option<Drained> {
        while let Some(index) = self.drained.pop() {
            let Some(peer) = self.links.get_mut(&index) else { continue };
            peer.told_bytes = peer.bulk_bytes;
            if let Some(member) = peer.member {
                return Some(Drained { member, queued_bytes: peer.bulk_bytes });
            }
        }
        None
    }

    /// Links in shared memory through which few bytes have gone give their pages back.
    pub(super) fn release(&mut self, now: u64) {
        self.release.carry_out(self.links.values_mut().map(|peer| &mut peer.link), now);
    }

    /// The links whose peers have not greeted in time.
    pub(super) fn silent(&self, now: u64) -> Vec<u32> {
        let is_late = |peer: &Peer| peer.greet_until.is_some_and(|until| until <= now);
        self.links.iter().filter(|(_, peer)| is_late(peer)).map(|(index, _)| *index).collect()
    }

    /// When [`Peers::silent`] may give another one, or pages may be given back.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let greetings = self.links.values().filter_map(|peer| peer.greet_until);
        greetings.chain(self.release.deadline()).min()
    }

    /// Bytes that wait to leave.
    pub(super) fn queued_bytes(&self) -> usize {
        self.links.values().map(|peer| peer.queued_bytes).sum()
    }

    /// How many links are up.
    pub(super) fn len(&self) -> usize {
        self.links.len()
    }
}

impl Peer {
    /// Writes as much as the link takes; whether that was all.
    fn write(&mut self) -> io::Result<bool> {
        loop {
            if self.link.wants_write() {
                match self.link.flush() {
                    Ok(()) => {}
                    Err(error) if is_transient(&error) => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
            match self.write_once() {
                Ok(Some(count)) => self.written(count),
                Ok(None) => return Ok(!self.link.wants_write()),
                Err(error) if is_transient(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the next bytes in order, once; none if nothing waits.
    fn write_once(&mut self) -> io::Result<Option<usize>> {
        let begun = self.current.as_ref().map(|(one, done)| (&one.frame, *done));
        let whole = self.urgent.iter().chain(&self.queue).map(|one| (&one.frame, 0));
        let mut parts: Vec<IoSlice<'_>> = Vec::new();
        let mut bytes = 0;
        for (frame, done) in begun.into_iter().chain(whole) {
            if bytes >= WRITE_BYTES_MAX || parts.len() + 2 > WRITE_PARTS_MAX {
                break;
            }
            bytes += frame.len() - done;
            let head = &frame.head[done.min(frame.head.len())..];
            let data = &frame.data.as_slice()[done.saturating_sub(frame.head.len())..];
            let both = [head, data].into_iter().filter(|part| !part.is_empty());
            parts.extend(both.map(IoSlice::new));
        }
        if parts.is_empty() {
            return Ok(None);
        }
        self.link.write_vectored(&parts).map(Some)
    }

    /// Takes what was written out of the queues.
    fn written(&mut self, mut count: usize) {
        while count > 0 {
            if self.current.is_none() {
                let next = self.urgent.pop_front().or_else(|| self.queue.pop_front());
                self.current = next.map(|outgoing| (outgoing, 0));
            }
            let Some((outgoing, done)) = &mut self.current else { return };
            let length = outgoing.frame.len();
            let part = count.min(length - *done);
            *done += part;
            count -= part;
            self.queued_bytes -= part;
            if *done == length {
                self.bulk_bytes -= outgoing.bulk_bytes;
                self.current = None;
            }
        }
    }

    fn drop_queue(&mut self) {
        self.current = None;
        self.keep_begun();
    }

    /// Drops all frames but the one that is partly written.
    fn keep_begun(&mut self) {
        self.urgent.clear();
        self.queue.clear();
        (self.queued_bytes, self.bulk_bytes) = match &self.current {
            Some((outgoing, done)) => (outgoing.frame.len() - done, outgoing.bulk_bytes),
            None => (0, 0),
        };
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use sapwood_group::{CastId, Payload, Refusal};

    use super::*;

    #[test]
    fn a_last_frame_goes_before_all_that_waits_but_for_the_frame_that_is_begun() {
        const BYTES: usize = 64 << 10;
        const SEGMENTS: u32 = 256;
        let poller = Poller::new().unwrap();
        let (here, mut there) = Link::pair().unwrap();
        let mut peers = Peers::new(BYTES);
        let link = peers.add(here, None, u64::MAX, &poller).unwrap();
        let cast = CastId { root: MemberId(1), number: 1 };
        for index in 0..SEGMENTS {
            let data = Payload::from(vec![7; BYTES]);
            let segment = Message::Segment { cast, stripe: 0, index, data };
            assert!(peers.send(link, Outgoing::of(segment).unwrap()));
        }
        assert!(peers.flush(&poller, 0).is_empty());
        assert!(peers.queued_bytes() > 2 * BYTES, "the socket takes all");
        let refused = || Message::Refused { refusal: Refusal::Format };
        peers.say_last(link, Outgoing::of(refused()).unwrap());
        assert!(peers.queued_bytes() < 2 * BYTES, "{} bytes wait", peers.queued_bytes());
        let (mut inbox, mut buffer) = (Inbox::default(), vec![0; BYTES]);
        let (mut last, mut count) = (None, 0);
        loop {
            peers.note_writable(link);
            assert!(peers.flush(&poller, 0).is_empty());
            match there.read(&mut buffer) {
                Ok(bytes) => inbox.extend(&buffer[..bytes]),
                Err(error) => {
                    assert!(is_transient(&error) && peers.queued_bytes() == 0, "{error}");
                    break;
                }
            }
            while let Some(frame) = inbox.next_frame(MESSAGE_BYTES_MAX).unwrap() {
                last = Some(decode(frame).unwrap());
                count += 1;
            }
        }
        assert!(last == Some(refused()) && count <= SEGMENTS, "{count} frames, at last {last:?}");
    }
}
