//! Messages: a send and a receive that belong together, and the receives of one call.

use sapwood_packet::Rank;

use crate::instance::Arrival;

/// Which message: communicator, sender and receiver in it, tag, and its number among these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageKey {
    /// The identity of the communicator.
    pub communicator: u64,
    /// The sender in it.
    pub source: u32,
    /// The receiver in it.
    pub destination: u32,
    /// The tag.
    pub tag: i32,
    /// From 1.
    pub number: u32,
}

/// A call that sends a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Its begin.
    pub begin: Arrival,
    /// Until its return, in nanoseconds; 0 if it does not wait for its receiver.
    pub span: u64,
    /// Function and size class of the communicator.
    pub event: u32,
    /// The class of its size: the number of bits of its bytes, and 1; 0 where that is not known.
    pub size_class: u8,
    /// Whether the same call receives another message.
    pub is_exchange: bool,
}

/// What else a call waits for that receives a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Beside {
    /// Other requests, of which each may be the last.
    #[default]
    Requests = 0,
    /// That the message is taken which it sends.
    Send = 1,
    /// Nothing: it ends with its message.
    Nothing = 2,
}

/// A call that receives a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Its begin.
    pub begin: Arrival,
    /// Until its return, in nanoseconds.
    pub span: u64,
    /// Function and size class.
    pub event: u32,
    /// Receives that the same call has completed; 0 if nothing is claimed of it.
    pub members: u32,
    /// Whether the receive was posted by this call.
    pub is_blocking: bool,
    /// What else the call waits for.
    pub beside: Beside,
}

impl Awaited {
    /// Whether it is a call that receives this message and sends another one.
    #[must_use]
    pub const fn is_exchange(&self) -> bool {
        self.members == 1 && matches!(self.beside, Beside::Send)
    }
}

/// Which call of which rank: it began then.
pub type CallKey = (Rank, i64);

/// A call that completes receives, as far as their senders are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivingCall {
    /// The call.
    pub call: Awaited,
    /// Receives whose sender is known.
    pub known: u32,
    /// The latest of these senders' begins.
    pub last: Arrival,
}

impl ReceivingCall {
    /// Of the first receive whose sender is known.
    #[must_use]
    pub const fn of(call: Awaited, sent: &Sent) -> Self {
        Self { call, known: 1, last: sent.begin }
    }

    /// Takes in other receives of the same call.
    pub fn merge(&mut self, other: &Self) {
        self.known = self.known.saturating_add(other.known);
        let later = |one: &Arrival| (one.time, core::cmp::Reverse(one.rank));
        if later(&other.last) > later(&self.last) {
            self.last = other.last;
        }
    }

    /// Whether all senders are known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.known >= self.call.members
    }
}

/// The part of a call from its begin until another one began elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As many nanoseconds, and by how much that may be off.
    Known(u64, u64),
    /// The clocks do not say whether there was one.
    Undecided,
}

/// How long a call waited for another one.
#[must_use]
pub fn wait(begin: &Arrival, span: u64, other: &Arrival) -> Wait {
    let error = begin.error_to(other);
    let later = other.time.saturating_sub(begin.time);
    if later.unsigned_abs() <= error && error > 0 {
        return Wait::Undecided;
    }
    let waited = u64::try_from(later).unwrap_or(0).min(span);
    Wait::Known(waited, if waited > 0 { error } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: i64, clock: u32) -> Arrival {
        Arrival { time, rank: clock, clock, error: 10 }
    }

    #[test]
    fn a_wait_ends_when_the_other_begins_or_the_call_returns() {
        assert_eq!(wait(&at(100, 0), 50, &at(130, 0)), Wait::Known(30, 0));
        assert_eq!(wait(&at(100, 0), 20, &at(130, 0)), Wait::Known(20, 0));
        assert_eq!(wait(&at(100, 0), 50, &at(90, 0)), Wait::Known(0, 0));
        assert_eq!(wait(&at(100, 0), 50, &at(100, 0)), Wait::Known(0, 0));
    }

    #[test]
    fn between_two_clocks_nothing_is_claimed_inside_of_their_errors() {
        assert_eq!(wait(&at(100, 0), 50, &at(120, 1)), Wait::Undecided);
        assert_eq!(wait(&at(100, 0), 50, &at(80, 1)), Wait::Undecided);
        assert_eq!(wait(&at(100, 0), 50, &at(121, 1)), Wait::Known(21, 20));
        assert_eq!(wait(&at(100, 0), 50, &at(79, 1)), Wait::Known(0, 0));
    }

    #[test]
    fn a_call_waits_for_the_last_of_its_senders() {
        let call = Awaited { members: 2, span: 100, ..Awaited::default() };
        let sent = |time, rank| Sent {
            begin: Arrival { time, rank, ..Arrival::default() },
            ..Sent::default()
        };
        let mut one = ReceivingCall::of(call, &sent(30, 1));
        assert!(!one.is_whole());
        one.merge(&ReceivingCall::of(call, &sent(20, 2)));
        assert_eq!((one.is_whole(), one.last.rank), (true, 1));
    }
}
