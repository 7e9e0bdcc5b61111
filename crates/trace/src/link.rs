//! Links: how long messages take from one rank to another, once both sides have begun.

use crate::message::{Awaited, Beside, Sent, Wait, wait};

/// Smaller messages cost as much as those of this size, in bytes.
pub const LINK_BYTES_MIN: u64 = 16 << 10;
/// Messages of a stretch, at least.
pub const STRETCH_MESSAGES: u64 = 10;

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

    /// Of one message, if the call that received it waited for nothing else.
    #[must_use]
    pub fn of(sent: &Sent, awaited: &Awaited) -> Option<Self> {
        if awaited.members != 1 || awaited.beside != Beside::Nothing {
            return None;
        }
        let Wait::Known(ns, _) = wait(&awaited.begin, awaited.span, &sent.begin) else {
            return None;
        };
        Some(Self::of_message(awaited.span.saturating_sub(ns), bytes_of(sent.size_class)))
    }

    /// Of one message that took this long, whose call has sent no other one.
    #[must_use]
    pub fn of_message(transfer_ns: u64, bytes: u64) -> Self {
        Self { messages: 1, transfer_ns, log_sum: log_of(transfer_ns), bytes, exchanges: 0 }
    }

    /// Of one message that took this long, whose call has sent another one.
    #[must_use]
    pub fn of_exchange(transfer_ns: u64, bytes: u64) -> Self {
        Self { exchanges: 1, ..Self::of_message(transfer_ns, bytes) }
    }

    /// How long a message took as a rule, in nanoseconds: the geometric mean, within 1/16.
    #[must_use]
    pub fn typical_ns(&self) -> u64 {
        let log = self.log_sum / self.messages.max(1);
        let (bits, part) = (log / 16, log % 16);
        let whole = 1_u64.checked_shl(u32::try_from(bits).unwrap_or(u32::MAX)).unwrap_or(u64::MAX);
        whole.saturating_add((whole / 16).saturating_mul(part))
    }

    /// How long a message takes as a rule for its bytes, in nanoseconds for each 2^32 of them.
    #[must_use]
    pub fn cost(&self) -> u128 {
        let mean_bytes = (self.bytes / self.messages.max(1)).max(LINK_BYTES_MIN);
        (u128::from(self.typical_ns()) << 32) / u128::from(mean_bytes)
    }
}

/// A link over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// All messages.
    pub all: Link,
    /// Of all stretches of at least [`STRETCH_MESSAGES`] messages, gathered one after another, the
    /// one with the highest cost: a link that becomes slow while the program runs is slow in all
    /// messages of a stretch, and one on whose messages the scheduler intervenes, in some.
    pub slowest: Link,
    /// The stretch that is being gathered.
    stretch: Link,
}

impl LinkFigures {
    /// Adds messages that were gathered since the time before.
    pub fn add(&mut self, link: &Link) {
        self.all.merge(link);
        self.stretch.merge(link);
        if self.stretch.messages >= STRETCH_MESSAGES {
            let stretch = core::mem::take(&mut self.stretch);
            if self.slowest.messages == 0 || stretch.cost() > self.slowest.cost() {
                self.slowest = stretch;
            }
        }
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
pub(crate) fn bytes_of(size_class: u8) -> u64 {
    match size_class.saturating_sub(1) {
        0 => 0,
        1 => 1,
        bits => 3_u64.checked_shl(u32::from(bits) - 2).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_becomes_slow_has_a_slow_stretch() {
        let message = |ms| Link::of_message(ms * 1_000_000, 8_192);
        let of = |rounds: &[&[u64]]| {
            let mut figures = LinkFigures::default();
            for round in rounds {
                let mut gathered = Link::default();
                round.iter().for_each(|&ms| gathered.merge(&message(ms)));
                figures.add(&gathered);
            }
            let LinkFigures { all, slowest, .. } = figures;
            (all.messages, slowest.messages, slowest.typical_ns() / 1_000_000)
        };
        let noisy = [1, 1, 1, 1, 1, 1, 90, 1, 1, 1, 1, 1];
        let (all, stretch, ms) = of(&[&noisy, &noisy, &noisy]);
        assert_eq!((all, stretch), (36, 12));
        assert!(ms < 2, "{ms}");
        let slow = [200; 6];
        let (all, stretch, ms) = of(&[&noisy, &slow, &slow, &noisy]);
        assert_eq!((all, stretch), (36, 12));
        assert!(ms.abs_diff(200) < 13, "{ms}");
        assert_eq!(of(&[&[200; 9]]), (9, 0, 0), "too few");
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
