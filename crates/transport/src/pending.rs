//! Bookkeeping of connections that have not proved the key yet.
//!
//! It holds no socket and reads no clock, so the caller owns both. It answers three questions: may
//! one more be admitted, which one has run out of time, and when to look again.
//!
//! Strangers can connect as fast as they like. Three rules keep honest processes from waiting
//! behind them: a connection that has said nothing gives way soon, of those that give way it is one
//! of the address that holds most places, and all of them together hold no more than a part of the
//! process's descriptors.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use rustix::process::{Resource, getrlimit};

use crate::{HANDSHAKE_DEADLINE_MS, Peer};

/// The most connections that may be in a handshake at once.
pub const PENDING_HANDSHAKES_MAX: usize = 512;

/// The part of the process's descriptors that these may hold; the others are for members.
const DESCRIPTORS_PART: u64 = 4;

/// The age, in milliseconds, from which a handshake gives way to a newcomer when the table is
/// full. An honest one takes a few milliseconds, so a burst of honest ones displaces none of them.
pub const DISPLACE_AFTER_MS: u64 = 1_000;

/// The same of a connection on which no first message has come, for which one needs the key: an
/// honest process sends it as soon as it is connected. Silent connections delay honest ones by at
/// most this long.
pub const DISPLACE_SILENT_AFTER_MS: u64 = 250;

const NANOSECONDS_PER_MS: u64 = 1_000_000;

/// The table of handshakes under way, oldest first. The caller names each by a token of its own.
#[derive(Debug)]
pub struct Pending {
    entries: VecDeque<Entry>,
    entries_max: usize,
}

#[derive(Debug)]
struct Entry {
    token: u64,
    /// When it was admitted, in nanoseconds of the caller's clock.
    admitted: u64,
    /// Where it comes from; none for a process of this host.
    address: Option<IpAddr>,
    /// Whether the first message has come.
    has_spoken: bool,
}

impl Entry {
    /// When it gives way to a newcomer.
    fn gives_way_at(&self) -> u64 {
        let age_ms = if self.has_spoken { DISPLACE_AFTER_MS } else { DISPLACE_SILENT_AFTER_MS };
        self.admitted.saturating_add(age_ms * NANOSECONDS_PER_MS)
    }
}

/// What became of a request for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The newcomer has a place.
    Admitted,
    /// The new connection replaces this token's, which is to be closed.
    InPlaceOf(u64),
    /// No place. Stop accepting until [`Pending::next_change`].
    Full,
}

impl Default for Pending {
    fn default() -> Self {
        Self::new()
    }
}

impl Pending {
    /// An empty table, of at most [`PENDING_HANDSHAKES_MAX`] connections and a quarter of the
    /// descriptors that this process may open.
    #[must_use]
    pub fn new() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let part = usize::try_from(descriptors / DESCRIPTORS_PART).unwrap_or(usize::MAX);
        Self::of_at_most(part.clamp(1, PENDING_HANDSHAKES_MAX))
    }

    /// An empty table of another size.
    #[must_use]
    pub fn of_at_most(entries_max: usize) -> Self {
        Self { entries: VecDeque::new(), entries_max }
    }

    /// Asks for a place for `token` at time `now` (nanoseconds, never going back).
    pub fn admit(&mut self, token: u64, peer: &Peer, now: u64) -> Admission {
        let admission = match self.is_full() {
            false => Admission::Admitted,
            true => match self.give_way(now) {
                Some(place) => Admission::InPlaceOf(place),
                None => return Admission::Full,
            },
        };
        let address = match peer {
            Peer::Tcp(address) => Some(address.ip()),
            Peer::Local(_) => None,
        };
        self.entries.push_back(Entry { token, admitted: now, address, has_spoken: false });
        admission
    }

    /// Whether [`Self::admit`] would find a place now; ask before accepting.
    #[must_use]
    pub fn has_room(&self, now: u64) -> bool {
        !self.is_full() || self.entries.iter().any(|entry| entry.gives_way_at() <= now)
    }

    /// Notes that the first message of a handshake has come on a connection.
    pub fn note_message(&mut self, token: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.token == token) {
            entry.has_spoken = true;
        }
    }

    /// Takes one token that has outlived [`HANDSHAKE_DEADLINE_MS`]; call until `None` and close
    /// each connection.
    pub fn expire(&mut self, now: u64) -> Option<u64> {
        if self.deadline()? > now {
            return None;
        }
        self.entries.pop_front().map(|entry| entry.token)
    }

    /// Forgets a token whose handshake ended by itself; returns whether it was known.
    pub fn remove(&mut self, token: u64) -> bool {
        let place = self.entries.iter().position(|entry| entry.token == token);
        place.is_some_and(|index| self.entries.remove(index).is_some())
    }

    /// When to try [`Self::admit`] again after [`Admission::Full`], in the caller's nanoseconds.
    #[must_use]
    pub fn next_change(&self) -> Option<u64> {
        if self.is_full() {
            return self.entries.iter().map(Entry::gives_way_at).min();
        }
        self.deadline()
    }

    /// How many handshakes are under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no handshake is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max
    }

    /// When to call [`Self::expire`], in the caller's nanoseconds: when the oldest one runs out of
    /// time.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let oldest = self.entries.front()?;
        Some(oldest.admitted.saturating_add(HANDSHAKE_DEADLINE_MS * NANOSECONDS_PER_MS))
    }

    /// Takes out the oldest that may give way, of the address that holds most places.
    fn give_way(&mut self, now: u64) -> Option<u64> {
        let mut places: BTreeMap<Option<IpAddr>, usize> = BTreeMap::new();
        for entry in &self.entries {
            *places.entry(entry.address).or_default() += 1;
        }
        let those =
            self.entries.iter().enumerate().filter(|(_, entry)| entry.gives_way_at() <= now);
        // Of equal ones the last in this order is taken, which is the oldest.
        let (at, _) = those.rev().max_by_key(|(_, entry)| places.get(&entry.address).copied())?;
        self.entries.remove(at).map(|entry| entry.token)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const MS: u64 = NANOSECONDS_PER_MS;

    fn peer(host: u8, port: u16) -> Peer {
        Peer::Tcp(SocketAddr::from(([192, 0, 2, host], port)))
    }

    #[test]
    fn a_silent_connection_expires_at_its_deadline_and_not_before() {
        let mut pending = Pending::new();
        assert_eq!(pending.admit(7, &peer(1, 1), 5), Admission::Admitted);
        let deadline = 5 + HANDSHAKE_DEADLINE_MS * MS;
        assert_eq!(pending.next_change(), Some(deadline));
        assert_eq!(pending.expire(deadline - 1), None);
        assert_eq!(pending.expire(deadline), Some(7));
        assert_eq!(pending.expire(deadline), None);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_flood_is_bounded_and_what_is_silent_gives_way_soon() {
        let mut pending = Pending::of_at_most(PENDING_HANDSHAKES_MAX);
        for token in 0..PENDING_HANDSHAKES_MAX as u64 {
            assert_eq!(pending.admit(token, &peer(1, 1), 0), Admission::Admitted);
        }
        pending.note_message(0);
        let silent = DISPLACE_SILENT_AFTER_MS * MS;
        assert!(!pending.has_room(silent - 1));
        assert_eq!(pending.admit(9_999, &peer(1, 1), silent - 1), Admission::Full);
        assert_eq!(pending.next_change(), Some(silent));
        // Until then there is nothing to expire: a place that may be taken is no work.
        assert_eq!(pending.deadline(), Some(HANDSHAKE_DEADLINE_MS * MS));
        assert_eq!(pending.admit(9_999, &peer(1, 1), silent), Admission::InPlaceOf(1));
        assert_eq!(pending.len(), PENDING_HANDSHAKES_MAX);
    }

    #[test]
    fn what_has_spoken_gives_way_late() {
        let mut pending = Pending::of_at_most(1);
        pending.admit(1, &peer(1, 1), 0);
        pending.note_message(1);
        assert_eq!(pending.next_change(), Some(DISPLACE_AFTER_MS * MS));
        assert_eq!(pending.admit(2, &peer(1, 1), DISPLACE_AFTER_MS * MS - 1), Admission::Full);
        assert_eq!(pending.admit(2, &peer(1, 1), DISPLACE_AFTER_MS * MS), Admission::InPlaceOf(1));
    }

    #[test]
    fn the_address_that_holds_most_places_loses_one() {
        let mut pending = Pending::of_at_most(4);
        pending.admit(0, &peer(1, 1), 0);
        for token in 1..4 {
            pending.admit(token, &peer(2, token as u16), 1);
        }
        let later = 1 + DISPLACE_SILENT_AFTER_MS * MS;
        assert_eq!(pending.admit(4, &peer(3, 1), later), Admission::InPlaceOf(1));
        assert_eq!(pending.admit(5, &peer(3, 2), later), Admission::InPlaceOf(2));
        // Now none of that address has more than the oldest one's.
        assert_eq!(pending.admit(6, &peer(4, 1), later), Admission::InPlaceOf(0));
    }

    #[test]
    fn a_finished_handshake_leaves_its_place() {
        let mut pending = Pending::new();
        pending.admit(1, &peer(1, 1), 0);
        pending.admit(2, &peer(1, 2), 0);
        assert!(pending.remove(1));
        assert!(!pending.remove(1));
        assert_eq!(pending.expire(u64::MAX), Some(2));
    }
}
