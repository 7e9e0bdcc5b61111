//! The loop: wait, read, let the member decide, write.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use sapwood_group::message::{GROUP_VERSION, Greeting, frame_of};
use sapwood_group::{
    Config, Event, GroupError, GroupHopQuestion, GroupId, Input, Member, MemberHops, MemberId,
    Message, Output, Reason, Refusal,
};
use sapwood_packet::nanoseconds;
use sapwood_transport::{Address, Encryption, Key, Link, Listener, Poller, Waker, interfaces};

use super::dials::{Dialled, Dials, FailedDial};
use super::entrance::Entrance;
use super::peers::{Arrival, Drained, Outgoing, Peers};
use super::token::GroupToken;
use super::ways::Manners;
use crate::clock::clock;
use crate::error::RuntimeError;
use crate::failure::Failure;

/// How long the process at the other end may take to greet, in nanoseconds.
const GREETING_DEADLINE: u64 = 10_000_000_000;

/// How one member is to be.
#[derive(Clone, Debug)]
pub struct GroupOptions {
    /// The key that all members have.
    pub key: Key,
    /// Where the member takes connections.
    pub listen: Address,
    /// Whether bytes are encrypted; by default over TCP. All members have to say the same.
    pub encryption: Option<Encryption>,
    /// Whether links to members of this host and user go through shared memory, which is not
    /// encrypted; not so where `encryption` says that all is to be.
    pub shares_memory: bool,
    /// How long a connection may take to be made.
    pub connect_deadline: Duration,
    /// How long joining may take.
    pub join_deadline: Duration,
    /// The settings of the member, except its identity, address and seed.
    pub config: Config,
}

/// What the application learns.
#[derive(Debug)]
pub enum GroupEvent {
    /// Of the member.
    Member(Event),
    /// The member did not become one of the group.
    NotJoined {
        /// Why.
        reason: String,
        /// Whether the connection was refused: no process listens at the address.
        is_refused: bool,
    },
    /// A link could not be used; the group goes on.
    Notice(String),
}

/// One member with everything that it needs to run in this process.
pub struct GroupDriver {
    member: Member,
    group: Option<GroupId>,
    options: GroupOptions,
    entrance: Entrance,
    dials: Dials,
    peers: Peers,
    /// Frames for members that are being dialled.
    waiting: BTreeMap<MemberId, Vec<Outgoing>>,
    inputs: VecDeque<Input>,
    /// What has come from others before this member was one of the group.
    early: Vec<Input>,
    /// The link on which a process has asked to join, while the member decides.
    asking: Option<u32>,
    joining: Option<Joining>,
    events: VecDeque<GroupEvent>,
    poller: Poller,
    ready: Vec<sapwood_transport::Event>,
    waker: Waker,
    wake: Option<u64>,
    is_joined: bool,
    has_ended: bool,
    now: u64,
}

/// The member by which this one joins.
struct Joining {
    address: String,
    until: u64,
    sponsor: Option<MemberId>,
}

impl GroupOptions {
    fn manners(&self) -> Manners {
        Manners { encryption: self.encryption, shares_memory: self.shares_memory }
    }
}

impl GroupDriver {
    /// Listens. The member is in no group yet.
    ///
    /// # Errors
    /// [`RuntimeError`] when this process cannot listen there.
    pub fn new(options: GroupOptions) -> Result<Self, RuntimeError> {
        let mut poller = Poller::new()?;
        let waker = poller.waker(GroupToken::Waker.to_number())?;
        let listener = Listener::bind(&options.listen)?;
        let address = reachable(listener.address())?;
        let manners = options.manners();
        let mut entrance = Entrance::new(options.key.clone());
        entrance.open(listener, manners.terms(&address), &poller)?;
        // Where another process has taken the name, links to members of this host are sockets.
        if let Some(way) = manners.beside(&address)
            && let Ok(listener) = Listener::bind(&way.address)
        {
            entrance.open(listener, way.terms, &poller)?;
        }
        let dials = Dials::new(options.key.clone(), nanoseconds(options.connect_deadline));
        let [id, seed] = random_numbers()?;
        let mut config = options.config.clone();
        let link_bytes = config.link_bytes;
        (config.id, config.seed, config.address) = (MemberId(id), seed, address.to_string());
        Ok(Self {
            member: Member::new(config),
            group: None,
            options,
            entrance,
            dials,
            peers: Peers::new(link_bytes),
            waiting: BTreeMap::new(),
            inputs: VecDeque::new(),
            early: Vec::new(),
            asking: None,
            joining: None,
            events: VecDeque::new(),
            poller,
            ready: Vec::new(),
            waker,
            wake: None,
            is_joined: false,
            has_ended: false,
            now: clock().0,
        })
    }

    /// Begins a new group.
    ///
    /// # Errors
    /// [`RuntimeError`] if the system has no randomness to give.
    pub fn create(&mut self) -> Result<(), RuntimeError> {
        self.group = Some(GroupId(random_numbers()?[0]));
        self.give(Input::Create);
        Ok(())
    }

    /// Joins the group of the member at an address. Ends in [`Event::Joined`], [`Event::Refused`]
    /// or [`GroupEvent::NotJoined`].
    pub fn join(&mut self, address: &str) {
        self.now = clock().0;
        let until = self.now.saturating_add(nanoseconds(self.options.join_deadline));
        if address == self.member.address() {
            let reason = format!("{address} is this member's own address: name another one's");
            self.not_joined(Failure::other(reason));
            return;
        }
        self.joining = Some(Joining { address: address.to_string(), until, sponsor: None });
        self.give(Input::Join { address: address.to_string() });
    }

    /// Where others dial this member.
    #[must_use]
    pub fn address(&self) -> &str {
        self.member.address()
    }

    /// The member.
    #[must_use]
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// What the member has noted of operations; the question has it note more.
    pub fn hops(&mut self, question: &GroupHopQuestion) -> MemberHops {
        self.member.hops(clock().0, question)
    }

    /// Which group it is in.
    #[must_use]
    pub fn group(&self) -> Option<GroupId> {
        self.group
    }

    /// How many links are up.
    #[must_use]
    pub fn links(&self) -> usize {
        self.peers.len()
    }

    /// Ends the wait of [`GroupDriver::turn`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// A descriptor that is readable when [`GroupDriver::turn`] has something to do that the turn
    /// before has not left to it.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    /// Whether the member has left, and nothing is to be done any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Bytes that wait to leave.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.peers.queued_bytes()
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<GroupEvent> {
        self.events.pop_front()
    }

    /// Gives the member an input, and carries out what it decides.
    pub fn give(&mut self, input: Input) {
        self.now = clock().0;
        self.inputs.push_back(input);
        self.run();
        self.flush();
    }

    /// One turn of the loop: waits for an event or `until`, in nanoseconds of [`clock`], and
    /// handles it.
    ///
    /// # Errors
    /// [`RuntimeError`] when the system fails this process; the member is at an end then.
    pub fn turn(&mut self, until: Option<u64>) -> Result<(), RuntimeError> {
        self.peers.announce_waits();
        let timeout = self.timeout(until);
        self.poller.wait(&mut self.ready, timeout)?;
        self.now = clock().0;
        for index in self.peers.take_again() {
            self.read(index);
        }
        for index in 0..self.ready.len() {
            let event = self.ready[index];
            match GroupToken::from_number(event.token) {
                GroupToken::Link(link) => {
                    if event.readable || event.hung_up {
                        self.read(link);
                    }
                    if event.writable {
                        self.peers.note_writable(link);
                    }
                }
                GroupToken::Door(door) => {
                    let link = self.entrance.accept(door, &self.poller, self.now)?;
                    self.admit(link)?;
                }
                GroupToken::Newcomer(newcomer) => {
                    let link = self.entrance.advance(newcomer, &self.poller)?;
                    self.admit(link)?;
                }
                GroupToken::Dial(dial) => self.advance_dial(dial)?,
                GroupToken::Waker => {}
            }
        }
        self.tick()?;
        self.flush();
        Ok(())
    }

    fn timeout(&self, until: Option<u64>) -> Option<Duration> {
        if self.peers.must_not_wait() || !self.events.is_empty() {
            return Some(Duration::ZERO);
        }
        let joining = self.joining.as_ref().map(|joining| joining.until);
        let ticks = [self.entrance.next_tick(), self.dials.next_tick(), self.peers.next_tick()];
        let times = [until, self.wake, joining].into_iter().chain(ticks).flatten();
        times.min().map(|time| Duration::from_nanos(time.saturating_sub(clock().0)))
    }

    /// What is due by the clock.
    fn tick(&mut self) -> Result<(), RuntimeError> {
        let now = self.now;
        self.entrance.tick(&self.poller, now)?;
        self.peers.release(now);
        for failed in self.dials.expire(&self.poller, now) {
            self.dial_failed(failed);
        }
        for index in self.peers.silent(now) {
            self.link_ended(index, "the process there sends nothing");
        }
        if self.joining.as_ref().is_some_and(|joining| joining.until <= now) {
            let address = self.joining.as_ref().map(|joining| joining.address.clone());
            let waited = self.options.join_deadline.as_millis();
            let address = address.unwrap_or_default();
            let reason = format!("no welcome from {address} within {waited} ms");
            self.not_joined(Failure::other(reason));
        }
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
            self.inputs.push_back(Input::Wake);
        }
        self.run();
        Ok(())
    }

    /// Gives the member all inputs that wait.
    fn run(&mut self) {
        while let Some(input) = self.inputs.pop_front() {
            self.member.handle_input(self.now, input);
            while let Some(output) = self.member.poll_output() {
                self.carry_out(output);
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Connect { member, address } => self.connect(member, address),
            Output::Send { to, message } => self.send(to, message),
            Output::Wake(time) => self.wake = Some(time),
            Output::Event(event) => {
                self.note(&event);
                self.events.push_back(GroupEvent::Member(event));
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Joined => {
                self.is_joined = true;
                self.joining = None;
                self.inputs.extend(std::mem::take(&mut self.early));
            }
            Event::Refused(_) if !self.is_joined => {
                self.joining = None;
                self.has_ended = true;
            }
            Event::Ended => self.has_ended = true,
            // What waits for a member that is cut off or stopped is of no use any more.
            Event::MemberGone(member, Reason::Dead) => {
                self.waiting.remove(member);
                for index in self.peers.of(*member) {
                    self.link_ended(index, "the member is taken for dead");
                }
            }
            _ => {}
        }
    }

    fn connect(&mut self, member: Option<MemberId>, address: String) {
        if let Some(member) = member.filter(|member| self.peers.primary(*member).is_some()) {
            self.inputs.push_back(Input::LinkUp { member, address: None });
            return;
        }
        let dialled = Dialled { member, address };
        let begun = match dialled.address.parse::<Address>() {
            Ok(address) => {
                let ways = self.options.manners().ways(address);
                self.dials.begin(dialled, ways, &self.poller, self.now)
            }
            Err(error) => Err(FailedDial { dialled, failure: error.into() }),
        };
        if let Err(failed) = begun {
            self.dial_failed(failed);
        }
    }

    fn send(&mut self, to: MemberId, message: Message) {
        let is_refusal = matches!(message, Message::Refused { .. });
        let outgoing = match Outgoing::of(message) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                self.events.push_back(GroupEvent::Notice(error.to_string()));
                return;
            }
        };
        if is_refusal {
            return self.refuse_to_join(to, outgoing);
        }
        match self.peers.primary(to) {
            Some(index) => {
                if !self.peers.send(index, outgoing) {
                    self.link_ended(index, "too many bytes wait to be sent to the member");
                }
            }
            None => self.waiting.entry(to).or_default().push(outgoing),
        }
    }

    /// A process that cannot become a member has nothing more to say: its link is closed. Only the
    /// link on which it has asked, since it may have greeted with the identity of a member.
    fn refuse_to_join(&mut self, to: MemberId, outgoing: Outgoing) {
        let is_member = self.member.view().is_alive(to);
        let index = self.asking.or_else(|| self.peers.primary(to).filter(|_| !is_member));
        let Some(index) = index else { return };
        self.peers.send(index, outgoing);
        self.close_when_sent(index);
    }

    fn advance_dial(&mut self, index: u32) -> Result<(), RuntimeError> {
        match self.dials.advance(index, &self.poller) {
            Some(Ok((link, dialled))) => self.add(link, Some(dialled)).map(drop),
            Some(Err(failed)) => {
                self.dial_failed(failed);
                self.run();
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn dial_failed(&mut self, failed: FailedDial) {
        match failed.dialled.member {
            None => self.not_joined(failed.failure),
            // The member itself has made a connection meanwhile.
            Some(member) if self.peers.primary(member).is_some() => {}
            Some(member) => self.connect_failed(member),
        }
    }

    /// What waits for a member is kept while that is believed to live, since it is dialled again.
    fn connect_failed(&mut self, member: MemberId) {
        if !self.member.view().is_alive(member) {
            self.waiting.remove(&member);
        }
        self.inputs.push_back(Input::ConnectFailed { member: Some(member) });
    }

    fn not_joined(&mut self, failure: Failure) {
        if !self.is_joined && !self.has_ended {
            self.joining = None;
            self.has_ended = true;
            let Failure { reason, is_refused } = failure;
            self.events.push_back(GroupEvent::NotJoined { reason, is_refused });
        }
    }

    fn admit(&mut self, link: Option<Link>) -> Result<(), RuntimeError> {
        link.map_or(Ok(()), |link| self.add(link, None))
    }

    /// A link has proved the key: this side greets.
    fn add(&mut self, link: Link, dialled: Option<Dialled>) -> Result<(), RuntimeError> {
        let until = self.now.saturating_add(GREETING_DEADLINE);
        let index = self.peers.add(link, dialled, until, &self.poller)?;
        let greeting =
            Greeting::Member { version: GROUP_VERSION, id: self.member.id(), group: self.group };
        if let Ok(frame) = greeting.encode().and_then(|bytes| frame_of(&bytes)) {
            self.peers.send(index, Outgoing::urgent(frame));
        }
        Ok(())
    }

    fn read(&mut self, index: u32) {
        let is_up = self.peers.read(index);
        while let Some(arrival) = self.peers.next(index) {
            match arrival {
                Arrival::Greeting(bytes) => self.greeted(index, &bytes),
                Arrival::Message(from, Message::Refused { refusal }) if self.is_joined => {
                    // All other refusals are of processes that ask to join.
                    if refusal == Refusal::Format {
                        self.broken_off_by(index, from);
                    }
                }
                Arrival::Message(from, message) => {
                    self.asking = matches!(message, Message::Join { .. }).then_some(index);
                    self.take(Input::Message { from, message });
                    self.asking = None;
                }
                Arrival::Breach(reason) => self.break_off(index, &reason),
            }
        }
        if !is_up {
            self.link_ended(index, "the connection was closed");
        }
        self.run();
    }

    /// A peer breaks the format: it is told so, and its link is closed.
    fn break_off(&mut self, index: u32, reason: &str) {
        let member = self.peers.get_mut(index).and_then(|peer| peer.member);
        let notice = format!("{} is not listened to any more: {reason}", self.place_of(member));
        if let Ok(outgoing) = Outgoing::of(Message::Refused { refusal: Refusal::Format }) {
            self.peers.say_last(index, outgoing);
        }
        self.link_ended(index, reason);
        self.events.push_back(GroupEvent::Notice(notice));
    }

    /// Another member has broken a link of this one off, and sends nothing more on it.
    fn broken_off_by(&mut self, index: u32, from: MemberId) {
        let (place, refusal) = (self.place_of(Some(from)), Refusal::Format);
        let notice = format!("{place} does not listen to this member any more: {refusal}");
        self.link_ended(index, "the process there does not listen any more");
        self.events.push_back(GroupEvent::Notice(notice));
    }

    /// A process at the other end of a link, in words.
    fn place_of(&self, member: Option<MemberId>) -> String {
        let record = member.and_then(|member| self.member.view().record(member));
        record.map_or_else(
            || "a process that has connected".to_string(),
            |record| format!("the member at {}", record.address),
        )
    }

    /// A message goes to the member, unless it has still to be welcomed: only the sponsor has
    /// something to say to it before.
    fn take(&mut self, input: Input) {
        let sponsor = self.joining.as_ref().and_then(|joining| joining.sponsor);
        let is_early = matches!(&input, Input::Message { from, message }
            if self.joining.is_some()
                && !(Some(*from) == sponsor && answers_join(message)));
        if is_early {
            self.early.push(input);
        } else {
            self.inputs.push_back(input);
        }
        self.run();
    }

    /// A link ends, whatever the reason.
    fn link_ended(&mut self, index: u32, reason: &str) {
        let (peer, was_primary) = self.peers.close(index, &self.poller);
        let Some(peer) = peer else { return };
        match (peer.member, peer.dialled) {
            (Some(member), _) if was_primary => {
                let sponsor = self.joining.as_ref().and_then(|joining| joining.sponsor);
                if sponsor == Some(member) {
                    let address = self.joining.as_ref().map(|joining| joining.address.clone());
                    let address = address.unwrap_or_default();
                    let reason = format!("the member at {address} has gone meanwhile");
                    self.not_joined(Failure::other(reason));
                }
                self.inputs.push_back(Input::LinkDown { member });
            }
            (None, Some(dialled)) => {
                let reason = format!("{}: {reason}", dialled.address);
                self.dial_failed(FailedDial { dialled, failure: Failure::other(reason) });
            }
            _ => {}
        }
    }

    /// The first frame of a link.
    fn greeted(&mut self, index: u32, bytes: &[u8]) {
        match Greeting::decode(bytes) {
            Ok(Greeting::Member { id, group, .. }) => match self.objection(index, id, group) {
                Some(reason) => {
                    self.events.push_back(GroupEvent::Notice(reason.clone()));
                    self.refuse(index, &reason);
                }
                None => self.welcome_link(index, id, group),
            },
            Ok(Greeting::Visitor { tree, root, bytes, .. }) => {
                let status = self.member.status(tree, root, bytes);
                self.answer_visitor(index, status.encode());
            }
            Ok(Greeting::Tracer { question, .. }) => {
                let hops = self.member.hops(clock().0, &question);
                self.answer_visitor(index, hops.encode());
            }
            Err(error) => self.refuse(index, &error.to_string()),
        }
    }

    /// Answers a process from outside, and closes its link.
    fn answer_visitor(&mut self, index: u32, answer: Result<Vec<u8>, GroupError>) {
        if let Ok(frame) = answer.and_then(|bytes| frame_of(&bytes)) {
            self.peers.send(index, Outgoing::urgent(frame));
        }
        self.close_when_sent(index);
    }

    /// Closes a link once all that waits on it has left.
    fn close_when_sent(&mut self, index: u32) {
        if let Some(peer) = self.peers.get_mut(index) {
            peer.is_leaving = true;
        }
    }

    /// Closes a link whose peer is no member of this group, when the own greeting has left.
    fn refuse(&mut self, index: u32, reason: &str) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        peer.is_leaving = true;
        if let Some(dialled) = peer.dialled.take() {
            let failure = Failure::other(reason.to_string());
            self.dial_failed(FailedDial { dialled, failure });
        }
    }

    /// Why a process is no peer of this member, if it is none.
    fn objection(&mut self, index: u32, id: MemberId, group: Option<GroupId>) -> Option<String> {
        let dialled = self.peers.get_mut(index).and_then(|peer| peer.dialled.clone());
        let place = match &dialled {
            Some(dialled) => format!("the process at {}", dialled.address),
            None => "a process that has connected".to_string(),
        };
        if id == self.member.id() {
            return Some(format!("{place} is this member itself: name another one's address"));
        }
        match (self.group, group) {
            (Some(own), Some(other)) if own != other => Some(format!(
                "{place} has the same key and belongs to another group: give each group a key"
            )),
            (_, None) if dialled.is_some() => {
                Some(format!("{place} is in no group yet: try again when it is"))
            }
            _ => None,
        }
    }

    fn welcome_link(&mut self, index: u32, id: MemberId, group: Option<GroupId>) {
        let dialled = self.peers.get_mut(index).and_then(|peer| peer.dialled.clone());
        let is_first = self.peers.greeted(index, id);
        if is_first {
            for outgoing in self.waiting.remove(&id).unwrap_or_default() {
                self.peers.send(index, outgoing);
            }
        }
        match dialled {
            Some(Dialled { member: None, address }) => {
                self.group = self.group.or(group);
                if let Some(joining) = &mut self.joining {
                    joining.sponsor = Some(id);
                }
                self.inputs.push_back(Input::LinkUp { member: id, address: Some(address) });
            }
            Some(Dialled { member: Some(expected), .. }) if expected != id => {
                // Another process of the group has the port of one that is gone.
                self.connect_failed(expected);
                self.inputs.push_back(Input::LinkUp { member: id, address: None });
            }
            _ if is_first => self.inputs.push_back(Input::LinkUp { member: id, address: None }),
            _ => {}
        }
        self.run();
    }

    /// Writes what links take. What the member sends as soon as that has left is written in the
    /// next turn, which does not wait: so a peer that reads fast does not keep the others waiting.
    fn flush(&mut self) {
        for index in self.peers.flush(&self.poller, self.now) {
            self.link_ended(index, "closed");
        }
        self.run();
        while let Some(Drained { member, queued_bytes }) = self.peers.next_drained() {
            self.inputs.push_back(Input::Drained { member, queued_bytes });
            self.run();
        }
    }
}

/// Whether a message may come before the welcome.
fn answers_join(message: &Message) -> bool {
    matches!(message, Message::Welcome { .. } | Message::Refused { .. })
}

/// Two numbers from the system's randomness.
fn random_numbers() -> Result<[u64; 2], RuntimeError> {
    let bytes = Key::generate()?.to_bytes();
    let number = |part: &[u8]| part.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Ok([number(&bytes[..8]), number(&bytes[8..16])])
}

/// Where others dial a listener: that of all interfaces is named by their addresses.
fn reachable(address: &Address) -> Result<Address, RuntimeError> {
    let places = address.resolve()?;
    let is_any = places.iter().any(|place| place.ip().is_unspecified());
    let Some(port) = address.port().filter(|_| is_any) else { return Ok(address.clone()) };
    let all: Vec<_> = interfaces()?
        .into_iter()
        .map(|interface| interface.address)
        .filter(|address| !address.is_loopback())
        .collect();
    if all.is_empty() {
        return Ok(Address::at_each(&[std::net::Ipv4Addr::LOCALHOST.into()], port));
    }
    Ok(Address::at_each(&all, port))
}

#[cfg(test)]
mod tests {
    use sapwood_group::limits::{LINK_BYTES, SEGMENT_BYTES_MAX};
    use sapwood_group::{Call, TreeKind};
    use sapwood_packet::RankSet;

    use super::*;

    /// How long anything may take that the test waits for, in nanoseconds.
    const LIMIT: u64 = 60_000_000_000;

    fn driver(key: &Key, name: u32) -> GroupDriver {
        let options = GroupOptions {
            key: key.clone(),
            listen: "tcp:127.0.0.1:0".parse().unwrap(),
            encryption: None,
            shares_memory: false,
            connect_deadline: Duration::from_secs(5),
            join_deadline: Duration::from_secs(20),
            // The other one does not run for a while, and is not to be taken for dead.
            config: Config {
                names: RankSet::range(name, name),
                ping_timeout: LIMIT,
                ..Config::default()
            },
        };
        GroupDriver::new(options).unwrap()
    }

    fn turn(drivers: &mut [&mut GroupDriver]) -> Vec<Event> {
        let mut events = Vec::new();
        for driver in drivers {
            driver.turn(Some(clock().0 + 1_000_000)).unwrap();
            while let Some(event) = driver.next_event() {
                match event {
                    GroupEvent::Member(event) => events.push(event),
                    GroupEvent::NotJoined { reason, .. } => panic!("{reason}"),
                    GroupEvent::Notice(notice) => panic!("{notice}"),
                }
            }
        }
        events
    }

    #[test]
    fn what_waits_for_a_member_that_reads_nothing_is_bounded_and_comes_when_it_reads() {
        const BYTES: usize = 48 << 20;
        let key = Key::generate().unwrap();
        let (mut root, mut other) = (driver(&key, 0), driver(&key, 1));
        root.create().unwrap();
        other.join(root.address());
        let until = clock().0 + LIMIT;
        while root.member().view().len() < 2 || other.member().view().len() < 2 {
            assert!(clock().0 < until, "both are members");
            turn(&mut [&mut root, &mut other]);
        }
        let call = Call::Broadcast { targets: None, value: vec![7; BYTES].into(), tag: 0 };
        let deadline = clock().0 + LIMIT;
        root.give(Input::Call { request: 1, tree: TreeKind::Flat, deadline, call });
        let bound = LINK_BYTES + 2 * SEGMENT_BYTES_MAX as usize;
        for _ in 0..50 {
            turn(&mut [&mut root]);
            assert!(root.queued_bytes() <= bound, "{} bytes wait", root.queued_bytes());
        }
        assert!(root.queued_bytes() >= LINK_BYTES / 2, "{} bytes wait", root.queued_bytes());
        let mut got = 0;
        let mut is_answered = false;
        while got < BYTES || !is_answered {
            assert!(clock().0 < until, "{got} bytes have come");
            for event in turn(&mut [&mut root, &mut other]) {
                match event {
                    Event::Delivery { data, .. } => got += data.len(),
                    Event::Answered(1, answer) => {
                        is_answered = true;
                        assert_eq!(answer.missing, []);
                    }
                    _ => {}
                }
            }
            assert!(root.queued_bytes() <= bound, "{} bytes wait", root.queued_bytes());
        }
        assert_eq!(got, BYTES);
    }
}
