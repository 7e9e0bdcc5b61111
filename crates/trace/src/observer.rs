//! The leaf's side: events of its ranks become what travels up, and the ranks' own waits are
//! reported once it is known for which ranks they waited.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sapwood_packet::Rank;

use crate::clock::HostClock;
use crate::event::{Event, EventKind};
use crate::file::Space;
use crate::gathered::{Counter, Gathered, Made};
use crate::instance::{Arrival, Instance, InstanceKey, Pattern};
use crate::message::{Awaited, Beside, MessageKey, Sent, Wait, wait};
use crate::mixture::Called;
use crate::place::PlaceWaits;
use crate::words::{halves, pair};

/// Instances whose end is awaited, at most; those that are awaited longest are given up.
const AWAITED_MAX: usize = 1 << 18;
/// Calls of one rank that have sent a message and may receive another: its threads have one each.
const SENDING_MAX: usize = 16;
/// Keys of instances that have ended and are kept in the order of all, at most, beside as many as
/// are awaited.
const ENDED_MAX: usize = 1 << 12;
/// Words of a [`Settled`].
pub const SETTLED_WORDS: usize = 6;

const HAS_CULPRIT: u64 = 1;

/// How an instance has ended: for which ranks its processes waited, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The instance.
    pub key: InstanceKey,
    /// Which ranks waited for which.
    pub pattern: Pattern,
    /// The one that others waited for; none where nothing is claimed.
    pub culprit: Option<Arrival>,
}

impl Settled {
    /// As words of a packet.
    #[must_use]
    pub fn words(&self) -> [u64; SETTLED_WORDS] {
        let one = self.culprit.unwrap_or_default();
        let flags =
            (u64::from(self.culprit.is_some()) * HAS_CULPRIT) | ((self.pattern as u64) << 8);
        let time = one.time.cast_unsigned();
        [self.key.0, self.key.1.into(), flags, time, pair(one.rank, one.clock), one.error]
    }

    /// Reads these words.
    #[must_use]
    pub fn read(words: [u64; SETTLED_WORDS]) -> Option<Self> {
        let [identity, sequence, flags, time, whom, error] = words;
        let (rank, clock) = halves(whom);
        let arrival = Arrival { time: time.cast_signed(), rank, clock, error };
        Some(Self {
            key: (identity, u32::try_from(sequence).ok()?),
            pattern: Pattern::from_code(flags >> 8)?,
            culprit: (flags & HAS_CULPRIT != 0).then_some(arrival),
        })
    }
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
struct WaitingCall {
    event: u32,
    /// When it has begun.
    time: i64,
    span: u64,
}

/// One rank's part in an instance.
#[derive(Clone, Debug)]
struct Part {
    rank: Rank,
    is_root: bool,
    /// The procedure by which it came.
    function: u32,
    /// None of a collective that was started and not completed.
    call: Option<WaitingCall>,
    /// How it has ended, if it was not completed then.
    settled: Option<Box<Settled>>,
}

/// What a leaf knows of an event beside the event.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// The rank.
    pub rank: Rank,
    /// The communicator.
    pub space: Space,
    /// Function and size class, as the events of a profile have them.
    pub event: u32,
    /// The function, of a collective that of its form for counts of type int: these are one call.
    pub procedure: u32,
    /// Which ranks wait for which, if the function is a collective.
    pub pattern: Pattern,
    /// What else the function waits for, if it receives.
    pub beside: Beside,
}

/// The events of one leaf's ranks.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    parts: BTreeMap<InstanceKey, Vec<Part>>,
    /// The keys of these, the oldest first.
    order: VecDeque<InstanceKey>,
    /// By rank, the begins of its calls that have sent a message and receive another, until that
    /// has been observed, too; the send is recorded first.
    sending: BTreeMap<Rank, VecDeque<u64>>,
    gathered: Gathered,
    /// Whether all instances are for the ledger, those that are whole here, too.
    settles_nothing: bool,
}

impl Observer {
    /// One that leaves all instances to the ledger. What is found is the same.
    #[must_use]
    pub fn settling_nothing() -> Self {
        Self { settles_nothing: true, ..Self::default() }
    }

    /// What has been gathered since the time before.
    pub fn take(&mut self) -> Gathered {
        core::mem::take(&mut self.gathered)
    }

    /// What has been gathered so far.
    pub const fn gathered(&mut self) -> &mut Gathered {
        &mut self.gathered
    }

    /// Takes an event of a rank.
    pub fn observe(&mut self, event: &Event, about: &Circumstances, clock: &HostClock) {
        self.gathered.count(Counter::Events, 1);
        let begin = Arrival {
            time: clock.time(event.time),
            rank: about.rank,
            clock: clock.number,
            error: clock.error,
        };
        let span = clock.span(event.span);
        match event.kind {
            EventKind::Collective => self.arrive(event, about, begin, Some(span), clock),
            EventKind::CollectiveStarted => self.arrive(event, about, begin, None, clock),
            EventKind::CollectiveCompleted => self.complete(event, about, begin, span, clock),
            EventKind::Send | EventKind::SendStarted => {
                let span = if event.kind == EventKind::Send { span } else { 0 };
                let Ok(destination) = u32::try_from(event.peer) else { return };
                let key = message(event, about.space, about.space.rank, destination);
                let size_class = event.members;
                let is_exchange = about.beside == Beside::Send;
                if is_exchange {
                    self.note_sending(about.rank, event.time);
                }
                let sent = Sent { begin, span, event: about.event, size_class, is_exchange };
                self.gathered.add_send(key, sent);
            }
            EventKind::Receive | EventKind::ReceiveCompleted => {
                let Ok(source) = u32::try_from(event.peer) else { return };
                let key = message(event, about.space, source, about.space.rank);
                let awaited = Awaited {
                    begin,
                    span,
                    event: about.event,
                    members: event.members.into(),
                    is_blocking: event.kind == EventKind::Receive,
                    beside: self.beside(event, about),
                };
                self.gathered.add_receive(key, awaited);
            }
        }
    }

    /// Notes a call that has sent a message and receives another. Of one that receives from
    /// `MPI_PROC_NULL` nothing else is observed, so that the one noted first is forgotten: its
    /// receive would stand beside it in its ring.
    fn note_sending(&mut self, rank: Rank, time: u64) {
        let sending = self.sending.entry(rank).or_default();
        sending.push_back(time);
        if sending.len() > SENDING_MAX {
            sending.pop_front();
        }
    }

    /// What else a call waits for that has received a message. One that should have sent one, of
    /// which none is known, is taken to have sent to `MPI_PROC_NULL`, and waits for nothing else.
    fn beside(&mut self, event: &Event, about: &Circumstances) -> Beside {
        if about.beside != Beside::Send {
            return about.beside;
        }
        let Some(sending) = self.sending.get_mut(&about.rank) else { return Beside::Nothing };
        let Some(place) = sending.iter().position(|&time| time == event.time) else {
            return Beside::Nothing;
        };
        sending.remove(place);
        Beside::Send
    }

    /// A rank has come to a collective.
    fn arrive(
        &mut self,
        event: &Event,
        about: &Circumstances,
        begin: Arrival,
        span: Option<u64>,
        clock: &HostClock,
    ) {
        let Space { identity, size, rank, is_between, .. } = about.space;
        // A process alone waits for none.
        if size < 2 {
            return;
        }
        // Of two groups each waits for the other, and its processes only call the same.
        let pattern = if is_between { Pattern::Unknown } else { about.pattern };
        let key = (identity, event.sequence);
        let is_root = event.peer == rank.cast_signed();
        let called = Called { function: about.procedure, root: event.peer };
        let one = if is_root {
            Instance::of_root(called, pattern, size, begin)
        } else {
            Instance::of(called, pattern, size, begin)
        };
        self.gathered.add_instance(key, &one.with_amount(event.amount()));
        if pattern == Pattern::Unknown {
            return;
        }
        let call = span.map(|span| WaitingCall { event: about.event, time: begin.time, span });
        let (rank, function) = (about.rank, about.procedure);
        let part = Part { rank, is_root, function, call, settled: None };
        self.await_end(key, part);
        if !self.settles_nothing
            && let Some(settled) = self.gathered.conclude_plain(key)
        {
            self.settle(&settled, clock);
        }
    }

    /// Keeps a rank's part until it is known how the instance has ended.
    fn await_end(&mut self, key: InstanceKey, part: Part) {
        let parts = self.parts.entry(key).or_default();
        if parts.is_empty() {
            self.order.push_back(key);
        }
        parts.push(part);
        while self.parts.len() > AWAITED_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.parts.remove(&oldest);
        }
        // Keys of those that have ended.
        if self.order.len() > 2 * self.parts.len() + ENDED_MAX {
            let parts = &self.parts;
            self.order.retain(|key| parts.contains_key(key));
            self.order.shrink_to(self.parts.len() + ENDED_MAX);
        }
        while self.order.len() > 2 * AWAITED_MAX {
            self.order.pop_front();
        }
    }

    /// A rank has completed a collective that it started before.
    fn complete(
        &mut self,
        event: &Event,
        about: &Circumstances,
        begin: Arrival,
        span: u64,
        clock: &HostClock,
    ) {
        let key = (about.space.identity, event.sequence);
        let Some(parts) = self.parts.get_mut(&key) else { return };
        let is_it = |part: &Part| part.rank == about.rank && part.call.is_none();
        let Some(place) = parts.iter().position(is_it) else { return };
        parts[place].call = Some(WaitingCall { event: about.event, time: begin.time, span });
        if let Some(settled) = parts[place].settled.take() {
            let part = parts.swap_remove(place);
            if parts.is_empty() {
                self.parts.remove(&key);
            }
            self.tell(&part, &settled, clock);
        }
    }

    /// It has received how an instance has ended.
    pub fn settle(&mut self, settled: &Settled, clock: &HostClock) {
        let Some(parts) = self.parts.remove(&settled.key) else { return };
        let mut left = Vec::new();
        for part in parts {
            if part.call.is_some() {
                self.tell(&part, settled, clock);
            } else {
                left.push(Part { settled: Some(Box::new(*settled)), ..part });
            }
        }
        if !left.is_empty() {
            self.parts.insert(settled.key, left);
        }
    }

    /// How long a rank has waited in an instance that has ended.
    fn tell(&mut self, part: &Part, settled: &Settled, clock: &HostClock) {
        let (Some(call), Some(culprit)) = (part.call, settled.culprit) else { return };
        let WaitingCall { event, time, span } = call;
        let waits =
            part.rank != culprit.rank && (settled.pattern != Pattern::ToRoot || part.is_root);
        let begin = Arrival { time, rank: part.rank, clock: clock.number, error: clock.error };
        let waited = if waits { wait(&begin, span, &culprit) } else { Wait::Known(0, 0) };
        self.gathered.credit(part.rank, event, waited);
        if let Wait::Known(ns @ 1.., _) = waited {
            self.gathered.blame(culprit.rank, &Made { collective_ns: ns, ..Made::default() });
            let place = (settled.key.0, part.function);
            let one = PlaceWaits { calls: 1, wait_ns: ns };
            self.gathered.add_placed(place, culprit.rank, part.rank, &one);
        }
    }
}

fn message(event: &Event, space: Space, source: u32, destination: u32) -> MessageKey {
    let (communicator, number) = (space.identity, event.sequence);
    MessageKey { communicator, source, destination, tag: event.tag, number }
}
