//! Where other processes connect: the listeners, and connections that have still to prove the key.

use std::collections::BTreeMap;

use sapwood_packet::nanoseconds;
use sapwood_transport::{
    Accepted, Admission, Handshake, Interest, Key, Link, LinkTerms, Listener, Pending, Poller,
    Progress,
};

use super::token::GroupToken;
use crate::error::RuntimeError;

/// The listeners of one member.
pub(super) struct Entrance {
    doors: Vec<Door>,
    key: Key,
    newcomers: BTreeMap<u32, Handshake>,
    next: u32,
    pending: Pending,
}

/// One listener, and on which terms links are made at it.
struct Door {
    listener: Listener,
    terms: LinkTerms,
    /// When it is asked again, after the system ran out of descriptors or too many were at it.
    paused: Option<u64>,
}

impl Entrance {
    /// No listener yet.
    pub(super) fn new(key: Key) -> Self {
        let (newcomers, pending) = (BTreeMap::new(), Pending::new());
        Self { doors: Vec::new(), key, newcomers, next: 0, pending }
    }

    /// Takes connections at a further listener.
    pub(super) fn open(
        &mut self,
        listener: Listener,
        terms: LinkTerms,
        poller: &Poller,
    ) -> Result<(), RuntimeError> {
        poller.add(&listener, token_of(self.doors.len()), Interest::READ)?;
        self.doors.push(Door { listener, terms, paused: None });
        Ok(())
    }

    /// Takes one connection at a listener; the poller reports further ones again.
    pub(super) fn accept(
        &mut self,
        door: u32,
        poller: &Poller,
        now: u64,
    ) -> Result<Option<Link>, RuntimeError> {
        let at = door as usize;
        if !self.pending.has_room(now) {
            let until = self.pending.next_change().unwrap_or(now);
            self.pause(at, poller, until)?;
            return Ok(None);
        }
        let Some(Door { listener, terms, .. }) = self.doors.get_mut(at) else { return Ok(None) };
        let terms = *terms;
        let incoming = match listener.accept()? {
            Accepted::Incoming(incoming) => incoming,
            Accepted::Empty | Accepted::ForeignUser(_) => return Ok(None),
            Accepted::Pause(pause) => {
                self.pause(at, poller, now.saturating_add(nanoseconds(pause)))?;
                return Ok(None);
            }
        };
        let index = self.next;
        self.next = self.next.wrapping_add(1);
        if let Admission::InPlaceOf(oldest) =
            self.pending.admit(u64::from(index), &incoming.peer(), now)
        {
            self.newcomers.retain(|known, _| u64::from(*known) != oldest);
        }
        let handshake = Handshake::responder(incoming, &self.key, terms);
        poller.add(&handshake, GroupToken::Newcomer(index).to_number(), Interest::READ)?;
        self.newcomers.insert(index, handshake);
        self.advance(index, poller)
    }

    /// Goes on with a handshake; gives the link once the key is proved.
    pub(super) fn advance(
        &mut self,
        index: u32,
        poller: &Poller,
    ) -> Result<Option<Link>, RuntimeError> {
        let Some(handshake) = self.newcomers.get_mut(&index) else { return Ok(None) };
        let token = GroupToken::Newcomer(index).to_number();
        let progress = handshake.advance();
        if handshake.has_first_message() {
            self.pending.note_message(u64::from(index));
        }
        match progress {
            Ok(Progress::WantRead) => poller.modify(&*handshake, token, Interest::READ)?,
            Ok(Progress::WantWrite) => poller.modify(&*handshake, token, Interest::WRITE)?,
            Ok(Progress::Done(link)) => {
                poller.remove(&link)?;
                self.forget(index);
                return Ok(Some(link));
            }
            // A stranger, or a process with another key, which has been told so.
            Err(_) => self.forget(index),
        }
        Ok(None)
    }

    fn forget(&mut self, index: u32) {
        self.newcomers.remove(&index);
        self.pending.remove(u64::from(index));
    }

    /// Ends handshakes that take too long, and the pauses of listeners.
    pub(super) fn tick(&mut self, poller: &Poller, now: u64) -> Result<(), RuntimeError> {
        while let Some(index) = self.pending.expire(now) {
            self.newcomers.retain(|known, _| u64::from(*known) != index);
        }
        for (at, door) in self.doors.iter_mut().enumerate() {
            if door.paused.take_if(|until| *until <= now).is_some() {
                poller.add(&door.listener, token_of(at), Interest::READ)?;
            }
        }
        Ok(())
    }

    /// When to call [`Entrance::tick`].
    pub(super) fn next_tick(&self) -> Option<u64> {
        let pauses = self.doors.iter().filter_map(|door| door.paused);
        pauses.chain(self.pending.deadline()).min()
    }

    fn pause(&mut self, at: usize, poller: &Poller, until: u64) -> Result<(), RuntimeError> {
        if let Some(door) = self.doors.get_mut(at) {
            poller.remove(&door.listener)?;
            door.paused = Some(until);
        }
        Ok(())
    }
}

fn token_of(door: usize) -> u64 {
    GroupToken::Door(u32::try_from(door).unwrap_or(u32::MAX)).to_number()
}
