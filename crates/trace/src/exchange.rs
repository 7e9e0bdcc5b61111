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

/// The wait of an exchange for the rank to which it sends, beyond that for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakerWait {
    /// The rank.
    pub rank: Rank,
    /// Nanoseconds that are sure but for the clocks' errors.
    pub ns: u64,
    /// By how much these may be off: by the whole wait where the clocks do not tell whether the
    /// call had returned before its message was taken.
    pub error_ns: u64,
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

    /// How long the call waited at most for something that began elsewhere, whatever the clocks'
    /// errors are.
    fn longest_wait_for(&self, other: &Arrival) -> u64 {
        let until = other.time.saturating_add_unsigned(self.begin.error_to(other));
        u64::try_from(until.saturating_sub(self.begin.time)).unwrap_or(0).min(self.span)
    }

    /// How long the call waited until the message was sent that it has received.
    #[must_use]
    pub fn wait_for_sender(&self) -> Wait {
        self.wait_for(&self.sender)
    }

    /// How long the call waited until its own message was taken: not at all if it returned before,
    /// as calls with small messages mostly do. Undecided where the message may have been taken
    /// before the call that completed its receive, or where the clocks do not tell.
    fn wait_for_taker(&self, taken: &Taken) -> Wait {
        let waited = self.wait_for(&taken.begin);
        if matches!(waited, Wait::Known(0, _) | Wait::Undecided) {
            return waited;
        }
        if !taken.is_blocking {
            return Wait::Undecided;
        }
        let returned = self.begin.time.saturating_add_unsigned(self.span);
        let error = self.begin.error_to(&taken.begin);
        if taken.begin.time.saturating_sub_unsigned(error) >= returned {
            return Wait::Known(0, 0);
        }
        let has_outlasted = taken.begin.time.saturating_add_unsigned(error) < returned;
        if has_outlasted { waited } else { Wait::Undecided }
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

    /// How long the call waited for the rank to which it sends: from when its sender had begun, or
    /// from its own begin if that was later. `None` if it is known not to have waited, or if the
    /// message may have been taken before the call that completed its receive.
    #[must_use]
    pub fn taker_wait(&self) -> Option<TakerWait> {
        let (received, taken) = (self.received?, self.taken?);
        let rank = taken.begin.rank;
        let for_sender_ns = match received.wait_for_sender() {
            Wait::Known(ns, _) => ns,
            Wait::Undecided => 0,
        };
        let later = taken.begin.time.saturating_sub(received.sender.time);
        // Of two that came at once as far as the clocks tell, none is claimed to be the later one.
        let is_later =
            later > received.sender.error_to(&taken.begin).try_into().unwrap_or(i64::MAX);
        match received.wait_for_taker(&taken) {
            Wait::Known(0, _) => None,
            Wait::Known(ns, error_ns) if is_later && ns > for_sender_ns => {
                Some(TakerWait { rank, ns: ns - for_sender_ns, error_ns })
            }
            _ => {
                let longest_ns = received.longest_wait_for(&taken.begin);
                let error_ns = longest_ns.saturating_sub(for_sender_ns);
                let may_have_waited = taken.is_blocking && error_ns > 0;
                may_have_waited.then_some(TakerWait { rank, ns: 0, error_ns })
            }
        }
    }

    /// The message that was received, if it is known how long it took: from when both sides of
    /// both messages had begun. A call that returned before its own message was taken did not wait
    /// for that.
    #[must_use]
    pub fn link(&self) -> Option<Link> {
        let (received, taken) = (self.received?, self.taken?);
        let Wait::Known(for_taker_ns, _) = received.wait_for_taker(&taken) else { return None };
        let Wait::Known(for_sender_ns, _) = received.wait_for_sender() else { return None };
        let waited_ns = for_sender_ns.max(for_taker_ns);
        let bytes = bytes_of(received.size_class);
        Some(Link::of_exchange(received.span.saturating_sub(waited_ns), bytes))
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

    /// The rank to which it sends, for which it waited, and how long.
    fn taker_of(one: &Exchange) -> Option<(Rank, u64)> {
        one.taker_wait().filter(|wait| wait.ns > 0).map(|wait| (wait.rank, wait.ns))
    }

    #[test]
    fn an_exchange_waits_for_its_sender_and_then_for_the_rank_to_which_it_sends() {
        let of = |sender, taken| {
            let one = exchange(sender, taken);
            (one.received.expect("it is known").wait_for_sender(), taker_of(&one))
        };
        let sender_alone = (Wait::Known(2_000, 0), None);
        assert_eq!(of(2_100, None), sender_alone, "the other half is not known");
        assert_eq!(of(2_100, Some(1_100)), sender_alone, "the sender was later");
        assert_eq!(of(2_100, Some(2_100)), sender_alone, "they came at once");
        assert_eq!(of(2_100, Some(50_100)), sender_alone, "it returned first");
        assert_eq!(of(2_100, Some(5_100)), (Wait::Known(2_000, 0), Some((2, 3_000))));
        assert_eq!(of(50, Some(5_100)), (Wait::Known(0, 0), Some((2, 5_000))));
        let nothing_received = Exchange { received: None, ..exchange(50, Some(5_100)) };
        assert_eq!(nothing_received.taker_wait(), None);
    }

    #[test]
    fn of_a_rank_that_may_have_taken_a_message_before_nothing_is_claimed() {
        // The first completes its receive while the call waits, the second once it has returned.
        for taken in [5_100, 50_200] {
            let mut one = exchange(2_100, Some(taken));
            one.taken = one.taken.map(|taken| Taken { is_blocking: false, ..taken });
            assert_eq!((one.taker_wait(), one.link()), (None, None), "{taken}");
        }
        let mut ready = exchange(2_100, Some(50));
        ready.taken = ready.taken.map(|taken| Taken { is_blocking: false, ..taken });
        assert_eq!(ready.link().map(|link| link.transfer_ns), Some(48_000));
    }

    /// The same between hosts whose clocks are off by 500 ns.
    fn between_hosts(sender: i64, taken: i64) -> Exchange {
        let mut one = exchange(sender, Some(taken));
        one.taken = one.taken.map(|mut taken| {
            (taken.begin.clock, taken.begin.error) = (2, 500);
            taken
        });
        one
    }

    #[test]
    fn between_hosts_a_rank_is_waited_for_only_if_it_came_later_than_the_clocks_are_off() {
        assert_eq!(taker_of(&between_hosts(2_100, 2_600)), None);
        assert_eq!(taker_of(&between_hosts(2_100, 2_601)), Some((2, 501)));
        assert_eq!(taker_of(&between_hosts(2_100, 49_600)), None, "it may have returned before");
        let may_be_off =
            |taken| between_hosts(2_100, taken).taker_wait().map(|wait| (wait.ns, wait.error_ns));
        assert_eq!(may_be_off(2_600), Some((0, 500 + 500)), "it may have come with the sender");
        assert_eq!(may_be_off(2_000), Some((0, 400)), "it may have come after the sender");
        assert_eq!(may_be_off(1_600), None, "it came before the sender");
        assert_eq!(may_be_off(49_599), Some((47_499, 500)));
        assert_eq!(may_be_off(49_600), Some((0, 48_000)), "it may have waited until its end");
        assert_eq!(may_be_off(50_600), None, "it has returned before");
        let returned = |taken| between_hosts(2_100, taken).link().map(|link| link.transfer_ns);
        assert_eq!((returned(50_599), returned(50_600)), (None, Some(48_000)));
    }

    #[test]
    fn the_wait_for_a_rank_of_the_own_host_is_exact_whatever_the_clock_of_the_sender() {
        let mut one = exchange(-1_000_000, Some(500));
        one.received = one.received.map(|mut received| {
            (received.sender.clock, received.sender.error) = (3, 500);
            received
        });
        assert_eq!(one.taker_wait(), Some(TakerWait { rank: 2, ns: 400, error_ns: 0 }));
    }
}
