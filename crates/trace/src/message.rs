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
}

/// What else a call waits for that receives a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Beside {
    /// Other requests, of which each may be the last.
    #[default]
    Requests = 0,
    /// A message that it sends.
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

/// What is known of the way from one rank to another: how long messages took once both sides had
/// begun, the sender to send and the receiver to receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Messages.
    pub messages: u64,
    /// Nanoseconds of these together.
    pub transfer_ns: u64,
    /// Sum of the binary logarithms of these times, in 1/16: few long ones weigh little.
    pub log_sum: u64,
    /// Bytes of these together, each rounded to three quarters of the next power of two.
    pub bytes: u64,
    /// Those that a call received which sent another one.
    pub exchanges: u64,
}

impl Link {
    /// Adds others.
    pub const fn merge(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.transfer_ns = self.transfer_ns.saturating_add(other.transfer_ns);
        self.log_sum = self.log_sum.saturating_add(other.log_sum);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.exchanges = self.exchanges.saturating_add(other.exchanges);
    }

    /// Of one message, if the call that received it tells how long it took.
    #[must_use]
    pub fn of(sent: &Sent, awaited: &Awaited) -> Option<Self> {
        if awaited.members != 1 || awaited.beside == Beside::Requests {
            return None;
        }
        let Wait::Known(ns, _) = wait(&awaited.begin, awaited.span, &sent.begin) else {
            return None;
        };
        let transfer_ns = awaited.span.saturating_sub(ns);
        Some(Self {
            messages: 1,
            transfer_ns,
            log_sum: log_of(transfer_ns),
            bytes: bytes_of(sent.size_class),
            exchanges: u64::from(awaited.beside == Beside::Send),
        })
    }

    /// How long a message took as a rule, in nanoseconds: the geometric mean, within 1/16.
    #[must_use]
    pub fn typical_ns(&self) -> u64 {
        let log = self.log_sum / self.messages.max(1);
        let (bits, part) = (log / 16, log % 16);
        let whole = 1_u64.checked_shl(u32::try_from(bits).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        whole.saturating_add((whole / 16).saturating_mul(part))
    }
}

/// The binary logarithm of a time, in 1/16; linear between powers of two.
#[allow(clippy::cast_possible_truncation, reason = "from 16 to 31")]
fn log_of(ns: u64) -> u64 {
    let ns = ns.max(1);
    let bits = ns.ilog2();
    let part = ((u128::from(ns) << 4) >> bits) as u64 - 16;
    u64::from(bits) * 16 + part
}

/// The middle of the sizes of a class.
fn bytes_of(size_class: u8) -> u64 {
    match size_class.saturating_sub(1) {
        0 => 0,
        1 => 1,
        bits => 3_u64.checked_shl(u32::from(bits) - 2).unwrap_or(u64::MAX),
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

    #[test]
    fn few_long_times_weigh_little() {
        let of = |times: &[u64]| {
            let mut link = Link::default();
            for &ns in times {
                link.merge(&Link { messages: 1, log_sum: log_of(ns), ..Link::default() });
            }
            link.typical_ns()
        };
        for ns in [1, 2, 100, 54_000, 90_000_000] {
            assert!(of(&[ns; 5]).abs_diff(ns) <= ns / 16, "{ns}");
        }
        let mut times = [50_000; 20];
        times[3] = 50_000_000;
        assert!(of(&times) < 100_000);
    }
}
