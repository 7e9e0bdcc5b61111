//! The hosts, the messages under way and the clock.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sapwood_group::message::{decode, encode, encoded_bytes};
use sapwood_group::trees::TreeKind;
use sapwood_group::{
    Call, Config, Event, Input, Member, MemberId, Message, Output, Reason, Request, Time,
};

use super::connection::{Connection, Connections};
use super::layout::Network;
use super::queue::{Departure, Overfull, Queues};
use super::wire::{Freight, Wires};

/// What an application was told, and when.
#[derive(Clone, Debug)]
pub struct ObservedEvent {
    /// The time.
    pub time: Time,
    /// The host.
    pub host: usize,
    /// What.
    pub event: Event,
}

#[derive(Debug)]
enum GroupInput {
    Input(usize, u64, Option<Connection>, Input),
    Arrival {
        to: usize,
        generation: u64,
        connection: Connection,
        bytes: usize,
        slowest: Time,
        from: MemberId,
        message: Message,
    },
    Departure(Departure),
    Wake(usize),
}

#[derive(Debug, Default)]
struct Host {
    member: Option<Member>,
    /// Counts the processes that have run here.
    generation: u64,
    /// What its member lets wait on one link, in bytes.
    link_bytes: usize,
    is_hung: bool,
    /// Hosts of different sides do not reach each other.
    side: u32,
    wake: Option<Time>,
    /// Until when it gets a processor only once in a span.
    slow: Option<(Time, Time)>,
    links: BTreeSet<usize>,
    /// What has come while it was hung or cut off.
    held: Vec<(u64, Input)>,
}

/// What was sent to a host on the other side of a cut.
#[derive(Debug)]
struct HeldInput {
    from: usize,
    to: usize,
    input: Input,
}

/// A group on a modelled network.
#[derive(Debug)]
pub struct GroupWorld {
    /// The network.
    pub network: Network,
    wires: Wires,
    hosts: Vec<Host>,
    agenda: BTreeMap<(Time, u64), GroupInput>,
    cut: Vec<HeldInput>,
    connections: Connections,
    queues: Queues,
    count: u64,
    now: Time,
    /// What applications were told; taken out by the caller.
    pub seen: Vec<ObservedEvent>,
    /// How many messages were sent.
    pub messages: u64,
    seed: u64,
}

const GENERATION: u64 = 1 << 20;
/// Longest message that is read back, in bytes.
const TRIED_BYTES_MAX: usize = 64 << 10;

impl GroupWorld {
    /// Hosts without members.
    #[must_use]
    pub fn new(network: Network, seed: u64) -> Self {
        let count = network.hosts();
        Self {
            wires: Wires::new(count, seed),
            hosts: (0..count).map(|_| Host::default()).collect(),
            network,
            agenda: BTreeMap::new(),
            cut: Vec::new(),
            connections: Connections::default(),
            queues: Queues::default(),
            count: 0,
            now: 0,
            seen: Vec::new(),
            messages: 0,
            seed,
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The member on a host.
    #[must_use]
    pub fn member(&self, host: usize) -> Option<&Member> {
        self.hosts[host].member.as_ref()
    }

    /// Whether a host's member runs and answers.
    #[must_use]
    pub fn is_up(&self, host: usize) -> bool {
        self.hosts[host].member.is_some() && !self.hosts[host].is_hung
    }

    /// The identity of the process on a host.
    #[must_use]
    pub fn id_of(&self, host: usize) -> MemberId {
        MemberId(self.hosts[host].generation * GENERATION + host as u64 + 1)
    }

    pub(super) fn host_of(&self, id: MemberId) -> Option<usize> {
        let host = (id.0.checked_sub(1)? % GENERATION) as usize;
        (host < self.hosts.len() && self.id_of(host) == id && self.hosts[host].member.is_some())
            .then_some(host)
    }

    /// The length of all messages that have left their senders and are not handled yet.
    #[must_use]
    pub fn bytes_under_way(&self) -> usize {
        let bytes = |input: &GroupInput| match input {
            GroupInput::Arrival { bytes, .. } => *bytes,
            GroupInput::Input(_, _, _, Input::Message { message, .. }) => encoded_bytes(message),
            GroupInput::Input(..) | GroupInput::Departure(_) | GroupInput::Wake(_) => 0,
        };
        self.agenda.values().map(bytes).sum()
    }

    /// The most bytes of segments and parts that have waited on one link.
    #[must_use]
    pub fn fullest_link(&self) -> usize {
        self.queues.fullest
    }

    /// Where a member has sent such a message on a link that had no room.
    #[must_use]
    pub fn overfull(&self) -> &[Overfull] {
        &self.queues.overfull
    }

    /// Starts a process that creates a group, or joins by the member on another host.
    pub fn start(
        &mut self,
        host: usize,
        by: Option<usize>,
        config: Config,
        prepare: impl FnOnce(&mut Member),
    ) {
        self.hosts[host].generation += 1;
        let seed = self.seed ^ (self.id_of(host).0).wrapping_mul(0x9e37_79b9);
        let config = Config {
            id: self.id_of(host),
            address: host.to_string(),
            site: self.network.cluster(host) as u32,
            seed,
            overhead: self.network.overhead,
            ..config
        };
        self.hosts[host].link_bytes = config.link_bytes;
        let mut member = Member::new(config);
        prepare(&mut member);
        let place = &mut self.hosts[host];
        (place.member, place.wake, place.is_hung) = (Some(member), None, false);
        place.links.clear();
        place.held.clear();
        let input = by.map_or(Input::Create, |by| Input::Join { address: by.to_string() });
        self.give(host, input);
    }

    /// The application on a host starts an operation.
    pub fn call(
        &mut self,
        host: usize,
        request: Request,
        tree: TreeKind,
        deadline: Time,
        call: Call,
    ) {
        self.give(host, Input::Call { request, tree, deadline, call });
    }

    /// Gives a member an input now, unless it hangs.
    pub fn give(&mut self, host: usize, input: Input) {
        let now = self.now;
        let place = &mut self.hosts[host];
        if place.is_hung {
            place.held.push((place.generation, input));
            return;
        }
        if let Input::LinkDown { member } = input {
            self.lose_queue(host, member);
            self.connections.note_told(host, member);
        }
        let place = &mut self.hosts[host];
        let Some(member) = place.member.as_mut() else { return };
        member.handle_input(now, input);
        let mut outputs = Vec::new();
        while let Some(output) = member.poll_output() {
            outputs.push(output);
        }
        for output in outputs {
            self.carry_out(host, output);
        }
    }

    /// Runs until a time.
    pub fn run_until(&mut self, end: Time) {
        while let Some((&(time, count), _)) = self.agenda.first_key_value() {
            if time > end {
                break;
            }
            self.now = time;
            let Some(happening) = self.agenda.remove(&(time, count)) else { break };
            match happening {
                GroupInput::Wake(host) => {
                    if self.hosts[host].wake == Some(time) {
                        self.hosts[host].wake = None;
                        self.give(host, Input::Wake);
                    }
                }
                GroupInput::Departure(departure) => self.depart(departure),
                GroupInput::Arrival {
                    to,
                    generation,
                    connection,
                    bytes,
                    slowest,
                    from,
                    message,
                } => {
                    let freight = freight(&message, bytes);
                    let time = self.wires.take(&self.network, time, to, freight, slowest);
                    let time = self.turn(to, time);
                    let input = Input::Message { from, message };
                    self.count += 1;
                    let input = GroupInput::Input(to, generation, Some(connection), input);
                    self.agenda.insert((time, self.count), input);
                }
                GroupInput::Input(host, generation, connection, input) => {
                    let is_whole = connection.is_none_or(|one| self.connections.is_whole(one));
                    let is_of_process = self.hosts[host].generation == generation;
                    if is_of_process && is_whole && !self.is_past(host, &input) {
                        self.give(host, input);
                    }
                }
            }
        }
        self.now = end;
    }

    /// Ends the process on a host at once; its peers see their links close.
    pub fn crash(&mut self, host: usize) {
        self.hosts[host].member = None;
        self.hosts[host].held.clear();
        self.connections.forget(host);
        self.queues.forget(host);
        let member = self.id_of(host);
        for peer in core::mem::take(&mut self.hosts[host].links) {
            self.hosts[peer].links.remove(&host);
            let time = self.now + self.network.latency(host, peer);
            self.later(time, host, peer, Input::LinkDown { member });
        }
    }

    /// The process on a host stops, and its links stay open.
    pub fn hang(&mut self, host: usize) {
        self.hosts[host].is_hung = true;
    }

    /// It goes on.
    pub fn resume(&mut self, host: usize) {
        self.hosts[host].is_hung = false;
        let generation = self.hosts[host].generation;
        for (of, input) in core::mem::take(&mut self.hosts[host].held) {
            if of == generation {
                self.give(host, input);
            }
        }
        self.give(host, Input::Wake);
        self.try_stalled();
    }

    /// Has a host get a processor only once in a span, until a time.
    pub fn slow_down(&mut self, host: usize, period: Time, until: Time) {
        self.hosts[host].slow = Some((period, until));
    }

    /// When a host that has something to do does it.
    fn turn(&self, host: usize, time: Time) -> Time {
        let time = self.network.turn(host, time);
        let slow = self.hosts[host].slow.filter(|(_, until)| time < *until);
        slow.map_or(time, |(period, _)| time.next_multiple_of(period))
    }

    /// Breaks the connection between two hosts, whose processes live on: what is under way is lost,
    /// and both see it. Dials of either to the other fail until a time.
    pub fn break_link(&mut self, one: usize, other: usize, refused_until: Time) {
        if self.hosts[one].side != self.hosts[other].side || !self.hosts[one].links.remove(&other) {
            return;
        }
        self.hosts[other].links.remove(&one);
        self.connections.break_between(one, other);
        for (host, peer) in [(one, other), (other, one)] {
            self.connections.refuse(host, peer, refused_until);
            self.connections.lose(host, self.id_of(peer));
        }
        for (host, peer) in [(one, other), (other, one)] {
            let member = self.id_of(peer);
            self.give(host, Input::LinkDown { member });
        }
    }

    /// The other side of a failed connection has made one meanwhile.
    fn is_past(&self, host: usize, input: &Input) -> bool {
        let Input::ConnectFailed { member: Some(member) } = input else { return false };
        self.host_of(*member).is_some_and(|peer| self.hosts[host].links.contains(&peer))
    }

    /// Cuts these hosts off from the others; what is sent meanwhile arrives after the cut.
    pub fn cut_off(&mut self, hosts: &[usize]) {
        for &host in hosts {
            self.hosts[host].side = 1;
        }
    }

    /// Ends the cut.
    pub fn heal(&mut self) {
        for host in &mut self.hosts {
            host.side = 0;
        }
        for HeldInput { from, to, input } in core::mem::take(&mut self.cut) {
            let time = self.now + self.network.latency(from, to);
            self.later(time, from, to, input);
        }
        self.try_stalled();
    }

    /// A message has left its sender, unless that does not run or the receiver takes nothing: then
    /// it goes on waiting.
    fn depart(&mut self, departure: Departure) {
        let (from, to) = departure.pair;
        let is_hung = self.hosts[from].is_hung || self.hosts[to].is_hung;
        if is_hung || self.hosts[from].side != self.hosts[to].side {
            self.queues.stall(departure);
            return;
        }
        let bound = self.hosts[from].link_bytes;
        if let Some(queued_bytes) = self.queues.leave(departure, bound) {
            self.give(from, Input::Drained { member: self.id_of(to), queued_bytes });
        }
    }

    /// What a member has waiting for another does not wait any more.
    fn lose_queue(&mut self, host: usize, member: MemberId) {
        if let Some(peer) = self.host_of(member) {
            self.queues.lose((host, peer));
        }
    }

    fn try_stalled(&mut self) {
        for departure in self.queues.take_stalled() {
            self.depart(departure);
        }
    }

    fn later(&mut self, time: Time, from: usize, to: usize, input: Input) {
        if self.hosts[from].side != self.hosts[to].side {
            self.cut.push(HeldInput { from, to, input });
            return;
        }
        self.count += 1;
        let generation = self.hosts[to].generation;
        let carrier = self.connections.carrier(from, to, &input);
        self.agenda.insert((time, self.count), GroupInput::Input(to, generation, carrier, input));
    }

    fn carry_out(&mut self, host: usize, output: Output) {
        match output {
            Output::Connect { member, address } => self.connect(host, member, &address),
            Output::Send { to, message } => self.send(host, to, message),
            Output::Wake(time) => {
                let time = self.turn(host, time.max(self.now));
                self.hosts[host].wake = Some(time);
                self.count += 1;
                self.agenda.insert((time, self.count), GroupInput::Wake(host));
            }
            Output::Event(event) => {
                if let Event::MemberGone(member, Reason::Dead) = event {
                    self.connections.take(host, member);
                    self.lose_queue(host, member);
                }
                self.seen.push(ObservedEvent { time: self.now, host, event });
            }
        }
    }

    /// A connection costs no time of its own: figures are of links that are up.
    fn connect(&mut self, host: usize, member: Option<MemberId>, address: &str) {
        let named = member.and_then(|member| self.host_of(member));
        let dialled = address.parse().ok().filter(|peer: &usize| *peer < self.hosts.len());
        let peer = if member.is_some() { named } else { dialled };
        let far = dialled.unwrap_or(host);
        let trip = self.now + 2 * self.network.latency(host, far) + 4 * self.network.overhead;
        let is_refused = member.is_some() && self.connections.is_refused(host, far, self.now);
        let runs = |peer: &usize| self.hosts[*peer].member.is_some();
        let Some(peer) = peer.filter(|peer| runs(peer) && !is_refused) else {
            self.later(trip, far, host, Input::ConnectFailed { member });
            return;
        };
        self.hosts[host].links.insert(peer);
        self.hosts[peer].links.insert(host);
        let (mine, theirs) = (self.id_of(host), self.id_of(peer));
        let address = member.is_none().then(|| String::from(address));
        let now = self.now;
        self.later(now, host, host, Input::LinkUp { member: theirs, address });
        let time = now + self.network.latency(host, peer);
        self.later(time, host, peer, Input::LinkUp { member: mine, address: None });
        for (from, to) in [(host, theirs), (peer, mine)] {
            for message in self.connections.take(from, to) {
                self.send(from, to, message);
            }
        }
    }

    fn send(&mut self, host: usize, to: MemberId, message: Message) {
        self.messages += 1;
        let Some(peer) = self.host_of(to) else { return };
        if self.connections.is_lost(host, to) {
            return;
        }
        if !self.hosts[host].links.contains(&peer) {
            self.connections.keep(host, to, message);
            return;
        }
        let bytes = encoded_bytes(&message);
        debug_assert!(is_taken(&message, bytes), "the receiver refuses {message:?}");
        let ends = (host, peer);
        let freight = freight(&message, bytes);
        let passage = self.wires.carry(&self.network, self.now, ends, freight);
        self.queue(ends, message.bulk_bytes(), passage.departure);
        let from = self.id_of(host);
        if self.hosts[host].side != self.hosts[peer].side {
            let input = Input::Message { from, message };
            self.cut.push(HeldInput { from: host, to: peer, input });
            return;
        }
        let generation = self.hosts[peer].generation;
        let connection = self.connections.between(host, peer);
        let slowest = passage.slowest;
        let arrival =
            GroupInput::Arrival { to: peer, generation, connection, bytes, slowest, from, message };
        self.count += 1;
        self.agenda.insert((passage.arrival, self.count), arrival);
    }

    /// A segment or part waits on its link until it has left.
    fn queue(&mut self, pair: (usize, usize), bytes: usize, departure: Time) {
        if bytes > 0 {
            let waiting = self.queues.add(pair, bytes, self.hosts[pair.0].link_bytes);
            self.count += 1;
            self.agenda.insert((departure, self.count), GroupInput::Departure(waiting));
        }
    }
}

/// Whether a receiver takes a message as it was sent. Long ones differ from shorter ones of their
/// kind by what they carry only.
fn is_taken(message: &Message, bytes: usize) -> bool {
    let read = || encode(message).and_then(|bytes| decode(&bytes));
    bytes > TRIED_BYTES_MAX || read().as_ref() == Ok(message)
}

/// What a message of this length is to the wires.
fn freight(message: &Message, bytes: usize) -> Freight {
    Freight {
        bytes,
        is_probe: matches!(message, Message::Ping { .. } | Message::Pong { .. }),
        is_noisy: matches!(message, Message::Pong { .. } | Message::ProbeReply { .. }),
    }
}
