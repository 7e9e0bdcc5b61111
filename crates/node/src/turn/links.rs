//! What a node keeps of each of its links.

use alloc::vec::Vec;

use sapwood_link::{Inbox, Outbox};
use sapwood_packet::Rank;

use crate::interface::{Instant, LinkId};
use crate::turn::clock_skew::Skew;

/// The peer at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Parent,
    /// Connected, but its hello has not come.
    Stranger,
    Child(Rank),
    /// Asked by this process, which is an orphan, to take it in.
    Ancestor,
    /// No part of the tree.
    Visitor,
    /// Told to go; only its outbox is still of interest.
    Leaving,
}

/// One link: bytes on their way in and out.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) peer: Peer,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    /// When bytes came last.
    pub(crate) heard: Instant,
    /// Smoothed round-trip time, in nanoseconds; 0 if none has been measured.
    pub(crate) round_trip: u64,
    /// How far the clock at the other end is ahead.
    pub(crate) skew: Skew,
    /// Bytes of answers to what its peer has asked that may not have been written yet.
    pub(crate) owed_bytes: usize,
    /// Whether an output that asks for transmission is waiting to be taken.
    pub(crate) transmit_asked: bool,
}

impl Link {
    fn new(peer: Peer, now: Instant) -> Self {
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        Self {
            peer,
            inbox,
            outbox,
            heard: now,
            round_trip: 0,
            skew: Skew::default(),
            owed_bytes: 0,
            transmit_asked: false,
        }
    }
}

/// All links of a node, by number.
#[derive(Debug, Default)]
pub(crate) struct Links {
    slots: Vec<Option<Link>>,
    /// Links whose outbox has grown since the last drain.
    pub(crate) ready: Vec<LinkId>,
}

impl Links {
    pub(crate) fn open(&mut self, id: LinkId, peer: Peer, now: Instant) {
        if self.slots.is_empty() && id.index() == 0 {
            // Most back-ends have one link, and a tree may have a million of them.
            self.slots.reserve_exact(1);
        }
        if self.slots.len() <= id.index() {
            self.slots.resize_with(id.index() + 1, || None);
        }
        self.slots[id.index()] = Some(Link::new(peer, now));
    }

    /// Reserves memory for this number of links.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.slots.reserve_exact(count.saturating_sub(self.slots.len()));
    }

    pub(crate) fn close(&mut self, id: LinkId) -> Option<Link> {
        self.slots.get_mut(id.index())?.take()
    }

    #[inline]
    pub(crate) fn link(&self, id: LinkId) -> Option<&Link> {
        self.slots.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// The outbox of a link, which will be asked to transmit at the next drain.
    #[inline]
    pub(crate) fn outbox(&mut self, id: LinkId) -> Option<&mut Outbox> {
        let link = self.slots.get_mut(id.index())?.as_mut()?;
        if !link.transmit_asked {
            link.transmit_asked = true;
            self.ready.push(id);
        }
        Some(&mut link.outbox)
    }

    /// All open links, to be changed.
    pub(crate) fn open_links(&mut self) -> impl Iterator<Item = &mut Link> {
        self.slots.iter_mut().flatten()
    }

    /// The numbers of all open links.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LinkId> + '_ {
        let id = |(index, link): (usize, &Option<Link>)| {
            link.as_ref().map(|_| LinkId(u32::try_from(index).unwrap_or(u32::MAX)))
        };
        self.slots.iter().enumerate().filter_map(id)
    }
}
