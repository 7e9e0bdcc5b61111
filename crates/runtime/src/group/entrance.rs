//! Where other processes connect: the listener, and connections that have still to prove the key.

use std::collections::BTreeMap;

use sapwood_transport::{
    Accepted, Admission, Handshake, Interest, Key, Link, LinkTerms, Listener, Pending, Poller,
    Progress,
};

use super::token::GroupToken;
use crate::error::RuntimeError;

/// The listener of one member.
pub(super) struct Entrance {
    listener: Listener,
    key: Key,
    terms: LinkTerms,
    newcomers: BTreeMap<u32, Handshake>,
    next: u32,
    pending: Pending,
    /// When it is asked again, after the system ran out of descriptors or too many were at it.
    paused: Option<u64>,
}

impl Entrance {
    pub(super) fn open(
        listener: Listener,
        key: Key,
        terms: LinkTerms,
        poller: &Poller,
    ) -> Result<Self, RuntimeError> {
        poller.add(&listener, GroupToken::Listener.to_number(), Interest::READ)?;
        let newcomers = BTreeMap::new();
        Ok(Self { listener, key, terms, newcomers, next: 0, pending: Pending::new(), paused: None })
    }

    /// Takes one connection; the poller reports further ones again.
    pub(super) fn accept(
        &mut self,
        poller: &Poller,
        now: u64,
    ) -> Result<Option<Link>, RuntimeError> {
        if !self.pending.has_room(now) {
            let until = self.pending.next_change().unwrap_or(now);
            self.pause(poller, until)?;
            return Ok(None);
        }
        let incoming = match self.listener.accept()? {
            Accepted::Incoming(incoming) => incoming,
            Accepted::Empty | Accepted::ForeignUser(_) => return Ok(None),
            Accepted::Pause(pause) => {
                let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
                self.pause(poller, now.saturating_add(pause))?;
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
        let handshake = Handshake::responder(incoming, &self.key, self.terms);
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

    /// Ends handshakes that take too long, and the pause of the listener.
    pub(super) fn tick(&mut self, poller: &Poller, now: u64) -> Result<(), RuntimeError> {
        while let Some(index) = self.pending.expire(now) {
            self.newcomers.retain(|known, _| u64::from(*known) != index);
        }
        if self.paused.is_some_and(|until| until <= now) {
            self.paused = None;
            poller.add(&self.listener, GroupToken::Listener.to_number(), Interest::READ)?;
        }
        Ok(())
    }

    /// When to call [`Entrance::tick`].
    pub(super) fn next_tick(&self) -> Option<u64> {
        [self.pending.deadline(), self.paused].into_iter().flatten().min()
    }

    fn pause(&mut self, poller: &Poller, until: u64) -> Result<(), RuntimeError> {
        poller.remove(&self.listener)?;
        self.paused = Some(until);
        Ok(())
    }
}
