//! Exchanges: calls that send one message and receive another, as `MPI_Sendrecv`. Such a call waits
//! for two ranks: for one to send, and for the other one to take.

use sapwood_packet::Rank;

use crate::instance::Arrival;
use crate::link::{Link, bytes_of};
use crate::message::{Awaited, Sent, Wait, wait};

/// An exchange, as far as it is known how both its messages met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The message that it has received.
    pub received: Option<ExchangeReceived>,
    /// The message that it has sent.
    pub taken: Option<Taken>,
}

/// The half of a call that receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeReceived {
    /// When the message began to be sent.
    pub sender: Arrival,
    /// When the call began.
    pub begin: Arrival,
    /// Until it returned, in nanoseconds.
    pub span: u64,
    /// Function and size class of the communicator.
    pub event: u32,
    /// The class of the message's size.
    pub size_class: u8,
}

/// The half of a call that sends: how its message was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// When the call began that received the message.
    pub begin: Arrival,
    /// Whether that call was the receive itself. One that only completes a receive may have begun
    /// after the message was taken.
    pub is_blocking: bool,
}

/// For whom an exchange waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeWaits {
    /// The wait of the call.
    pub whole: Wait,
    /// Of it, until the message that it has received began to be sent, in nanoseconds.
    pub for_sender_ns: u64,
    /// The rest, until its own message began to be received.
    pub for_taker: Option<TakerWait>,
}

/// The wait for a rank to take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakerWait {
    /// The rank.
    pub rank: Rank,
    /// Nanoseconds.
    pub ns: u64,
}

impl ExchangeReceived {
    /// Of a message and the call that has received it.
    #[must_use]
    pub const fn of(sent: &Sent, awaited: &Awaited) -> Self {
        let Awaited { begin, span, event, .. } = *awaited;
        Self { sender: sent.begin, begin, span, event, size_class: sent.size_class }
    }

    /// How long the call waited for something that began elsewhere.
    fn wait_for(&self, other: &Arrival) -> Wait {
        wait(&self.begin, self.span, other)
    }

    /// Whether the call returned only after something had begun elsewhere.
    fn has_outlasted(&self, other: &Arrival) -> bool {
        let error = self.begin.error_to(other);
        other.time.saturating_add_unsigned(error)
            < self.begin.time.saturating_add_unsigned(self.span)
    }
}

impl Exchange {
    /// Takes in what else is known of the same call.
    pub fn merge(&mut self, other: &Self) {
        self.received = self.received.or(other.received);
        self.taken = self.taken.or(other.taken);
    }

    /// Whether both halves are known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.received.is_some() && self.taken.is_some()
    }

    /// For whom the call waited: first for its sender, then for the rank to which it sends, unless
    /// it returned before that began to receive, as calls with small messages mostly do. Nothing
    /// where it is not known what it has received.
    #[must_use]
    pub fn waits(&self) -> Option<ExchangeWaits> {
        let received = self.received?;
        let for_sender = received.wait_for(&received.sender);
        let for_sender_ns = match for_sender {
            Wait::Known(ns, _) => ns,
            Wait::Undecided => 0,
        };
        let alone = ExchangeWaits { whole: for_sender, for_sender_ns, for_taker: None };
        let is_awaited = |taken: &Taken| taken.is_blocking && received.has_outlasted(&taken.begin);
        let Some(taken) = self.taken.filter(is_awaited) else { return Some(alone) };
        let Wait::Known(whole_ns, error) = received.wait_for(&taken.begin) else {
            return Some(alone);
        };
        let ns = whole_ns.saturating_sub(for_sender_ns);
        if ns == 0 || ns <= received.sender.error_to(&taken.begin) {
            return Some(alone);
        }
        let for_taker = Some(TakerWait { rank: taken.begin.rank, ns });
        Some(ExchangeWaits { whole: Wait::Known(whole_ns, error), for_sender_ns, for_taker })
    }

    /// The message that was received, if it is known how long it took: from when both sides of
    /// both messages had begun. A call that returned before its own message was taken did not wait
    /// for that.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        let (received, taken) = (self.received?, self.taken?);
        let waited = |other| match received.wait_for(other) {
            Wait::Known(ns, _) => Some(ns),
            Wait::Undecided => None,
        };
        let returned = received.begin.time.saturating_add_unsigned(received.span);
        let has_waited = taken.begin.time < returned;
        if has_waited && !taken.is_blocking && taken.begin.time > received.begin.time {
            // It may have been taken at any time before.
            return None;
        }
        let for_taken_ns = if has_waited { waited(&taken.begin)? } else { 0 };
        let waited_ns = waited(&received.sender)?.max(for_taken_ns);
        let bytes = bytes_of(received.size_class);
        Some(Link::of_message(received.span.saturating_sub(waited_ns), bytes, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rank: Rank, time: i64) -> Arrival {
        Arrival { time, rank, ..Arrival::default() }
    }

    /// Of rank 0, from 100 ns on for 50,000 ns; it receives from rank 1 and sends to rank 2.
    fn exchange(sender: i64, taken: Option<i64>) -> Exchange {
        let sent = Sent { begin: at(1, sender), size_class: 15, ..Sent::default() };
        let awaited = Awaited { begin: at(0, 100), span: 50_000, ..Awaited::default() };
        let received = Some(ExchangeReceived::of(&sent, &awaited));
        let taken = taken.map(|time| Taken { begin: at(2, time), is_blocking: true });
        let mut one = Exchange { received, taken: None };
        one.merge(&Exchange { received: None, taken });
        one
    }

    #[test]
    fn the_time_of_a_message_counts_from_when_both_sides_of_both_messages_had_begun() {
        let link = exchange(2_100, Some(0)).link().expect("both are known");
        assert_eq!((link.transfer_ns, link.bytes, link.exchanges), (48_000, 12_288, 1));
        let held_up = exchange(2_100, Some(45_100)).link().expect("both are known");
        assert_eq!(held_up.transfer_ns, 5_000, "it waited for the one to which it sends");
        let buffered = exchange(2_100, Some(50_100)).link().expect("both are known");
        assert_eq!(buffered.transfer_ns, 48_000, "it returned before its message was taken");
        assert_eq!(exchange(2_100, None).link(), None);
    }

    #[test]
    fn an_exchange_waits_for_its_sender_and_then_for_the_rank_to_which_it_sends() {
        let of = |sender, taken| {
            let waits = exchange(sender, taken).waits().expect("what it received is known");
            (waits.whole, waits.for_sender_ns, waits.for_taker)
        };
        let sender_alone = (Wait::Known(2_000, 0), 2_000, None);
        assert_eq!(of(2_100, None), sender_alone, "the other half is not known");
        assert_eq!(of(2_100, Some(1_100)), sender_alone, "the sender was later");
        assert_eq!(of(2_100, Some(2_100)), sender_alone, "they came at once");
        assert_eq!(of(2_100, Some(50_100)), sender_alone, "it returned first");
        let taker = Some(TakerWait { rank: 2, ns: 3_000 });
        assert_eq!(of(2_100, Some(5_100)), (Wait::Known(5_000, 0), 2_000, taker));
        let taker = Some(TakerWait { rank: 2, ns: 5_000 });
        assert_eq!(of(50, Some(5_100)), (Wait::Known(5_000, 0), 0, taker));
        let nothing_received = Exchange { received: None, ..exchange(50, Some(5_100)) };
        assert_eq!(nothing_received.waits(), None);
    }

    #[test]
    fn a_rank_that_may_have_taken_a_message_before_is_not_waited_for() {
        let mut one = exchange(2_100, Some(5_100));
        one.taken = one.taken.map(|taken| Taken { is_blocking: false, ..taken });
        let waits = one.waits().expect("what it received is known");
        assert_eq!((waits.whole, waits.for_taker), (Wait::Known(2_000, 0), None));
        assert_eq!(one.link(), None, "nor is it known when its message was taken");
    }

    #[test]
    fn between_hosts_a_rank_is_waited_for_only_if_it_came_later_than_the_clocks_are_off() {
        let of = |taken| {
            let mut one = exchange(2_100, Some(taken));
            one.taken = one.taken.map(|mut taken| {
                (taken.begin.clock, taken.begin.error) = (2, 500);
                taken
            });
            one.waits().expect("what it received is known").for_taker
        };
        assert_eq!(of(2_600), None);
        assert_eq!(of(2_601), Some(TakerWait { rank: 2, ns: 501 }));
        assert_eq!(of(49_600), None, "it may have returned before");
    }
}
