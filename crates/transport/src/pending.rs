//! Bookkeeping of connections that have not proved the key yet.
//!
//! Pure: it holds no socket and reads no clock, so the caller owns both. It answers three
//! questions: may one more be admitted, which one has run out of time, and when to look again.

use std::collections::VecDeque;

use crate::HANDSHAKE_DEADLINE_MS;

/// The most connections that may be in a handshake at once.
pub const PENDING_HANDSHAKES_MAX: usize = 512;

/// The age, in milliseconds, from which a handshake gives way to a newcomer when the table is
/// full. An honest one takes a few milliseconds, so a flood of silent connections delays honest
/// ones by at most this long, while a burst of honest ones displaces none of them.
pub const DISPLACE_AFTER_MS: u64 = 1_000;

const NANOSECONDS_PER_MS: u64 = 1_000_000;

/// The table of handshakes under way, oldest first. The caller names each by a token of its own.
#[derive(Debug, Default)]
pub struct Pending {
    /// Token and time of admission, in nanoseconds of the caller's clock.
    entries: VecDeque<(u64, u64)>,
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

impl Pending {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a place for `token` at time `now` (nanoseconds, never going back).
    pub fn admit(&mut self, token: u64, now: u64) -> Admission {
        if self.entries.len() < PENDING_HANDSHAKES_MAX {
            self.entries.push_back((token, now));
            return Admission::Admitted;
        }
        if !self.has_room(now) {
            return Admission::Full;
        }
        let displaced = self.entries.pop_front();
        self.entries.push_back((token, now));
        displaced.map_or(Admission::Admitted, |(oldest, _)| Admission::InPlaceOf(oldest))
    }

    /// Whether [`Self::admit`] would find a place now; ask before accepting.
    #[must_use]
    pub fn has_room(&self, now: u64) -> bool {
        self.entries.len() < PENDING_HANDSHAKES_MAX
            || self.oldest_reaches(DISPLACE_AFTER_MS).is_some_and(|at| at <= now)
    }

    /// Takes one token that has outlived [`HANDSHAKE_DEADLINE_MS`]; call until `None` and close
    /// each connection.
    pub fn expire(&mut self, now: u64) -> Option<u64> {
        if self.oldest_reaches(HANDSHAKE_DEADLINE_MS)? > now {
            return None;
        }
        self.entries.pop_front().map(|(token, _)| token)
    }

    /// Forgets a token whose handshake ended by itself; returns whether it was known.
    pub fn remove(&mut self, token: u64) -> bool {
        let place = self.entries.iter().position(|(entry, _)| *entry == token);
        place.is_some_and(|index| self.entries.remove(index).is_some())
    }

    /// When to call [`Self::expire`] or to try [`Self::admit`] again, in the caller's nanoseconds.
    #[must_use]
    pub fn next_change(&self) -> Option<u64> {
        let full = self.entries.len() >= PENDING_HANDSHAKES_MAX;
        self.oldest_reaches(if full { DISPLACE_AFTER_MS } else { HANDSHAKE_DEADLINE_MS })
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

    /// When the oldest entry reaches an age.
    fn oldest_reaches(&self, age_ms: u64) -> Option<u64> {
        let (_, admitted) = self.entries.front()?;
        Some(admitted.saturating_add(age_ms * NANOSECONDS_PER_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = NANOSECONDS_PER_MS;

    #[test]
    fn a_silent_connection_expires_at_its_deadline_and_not_before() {
        let mut pending = Pending::new();
        assert_eq!(pending.admit(7, 5), Admission::Admitted);
        let deadline = 5 + HANDSHAKE_DEADLINE_MS * MS;
        assert_eq!(pending.next_change(), Some(deadline));
        assert_eq!(pending.expire(deadline - 1), None);
        assert_eq!(pending.expire(deadline), Some(7));
        assert_eq!(pending.expire(deadline), None);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_flood_is_bounded_and_gives_way_to_newcomers_after_a_second() {
        let mut pending = Pending::new();
        for token in 0..PENDING_HANDSHAKES_MAX as u64 {
            assert_eq!(pending.admit(token, 0), Admission::Admitted);
        }
        assert_eq!(pending.admit(9_999, DISPLACE_AFTER_MS * MS - 1), Admission::Full);
        assert_eq!(pending.next_change(), Some(DISPLACE_AFTER_MS * MS));
        assert_eq!(pending.admit(9_999, DISPLACE_AFTER_MS * MS), Admission::InPlaceOf(0));
        assert_eq!(pending.len(), PENDING_HANDSHAKES_MAX);
    }

    #[test]
    fn a_finished_handshake_leaves_its_place() {
        let mut pending = Pending::new();
        pending.admit(1, 0);
        pending.admit(2, 0);
        assert!(pending.remove(1));
        assert!(!pending.remove(1));
        assert_eq!(pending.expire(u64::MAX), Some(2));
    }
}
