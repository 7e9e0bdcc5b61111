//! Any sequence of inputs on one member of a group: other members hold the key and say anything
//! that messages may say, in any order, damaged or repeated; links come and go, time passes, and
//! the application starts operations.
//!
//! Whatever comes: no panic, an end of outputs, messages that can be sent, memory in proportion to
//! what has come, an end of each operation by its deadline, and the same outputs for the same
//! bytes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use sapwood_group::message::{FRAME_PREFIX_BYTES, Inbox, Life, PaperTree, Record, decode, encode};
use sapwood_group::{
    Call, Config, Element, Event, Input, MILLISECOND, Member, MemberId, Message, Operation, Output,
    Payload, Request, SECOND, Time, TreeKind,
};
use sapwood_packet::RankSet;

use crate::source::Source;
use crate::{Target, memory};

/// One member of a group whose other members say anything.
pub const TARGET: Target = Target { name: "group", run, repair: None };

/// Virtual nodes of the group.
const SPACE: u32 = 32;
/// Each member carries as many.
const NAMES: u32 = 8;
/// The member that is tried, those that have joined it, and one that has not.
const MEMBER: MemberId = MemberId(1);
const OTHERS: [MemberId; 3] = [MemberId(2), MemberId(3), MemberId(4)];
const JOINED: usize = 2;
/// Input beyond this many acts is ignored.
const ACTS_MAX: usize = 200;
/// Outputs of one act.
const OUTPUTS_MAX: usize = 10_000;
/// Messages of the member that may come back to it.
const KEPT_MAX: usize = 64;
/// Longest value of an operation that the application starts.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// What an act allocates beside what has come until then: records of members, trees, and probes.
const BYTES_MAX: usize = 16 << 20;
const BYTES_PER_BYTE_MAX: usize = 64;
/// How long the application waits for an answer, in nanoseconds.
const DEADLINE: Time = SECOND;
/// Times that are waited for until then.
const LAST_WAKES: usize = 20_000;

fn run(input: &[u8]) {
    let first = Run::of(input);
    assert_eq!(first, Run::of(input), "the same bytes have the same run");
}

struct Run {
    member: Member,
    now: Time,
    wake: Option<Time>,
    given_bytes: usize,
    /// Operations that have not ended, with their deadlines.
    awaited: BTreeMap<Request, Time>,
    has_ended: bool,
    /// The last messages that it has sent.
    sent: Vec<Message>,
    fingerprint: DefaultHasher,
}

impl Run {
    fn of(input: &[u8]) -> u64 {
        let mut source = Source::new(input);
        let names = RankSet::range(0, NAMES - 1);
        let config = Config { id: MEMBER, names, space: SPACE, ..Config::default() };
        let mut run = Self {
            member: Member::new(config),
            now: 1,
            wake: None,
            given_bytes: 0,
            awaited: BTreeMap::new(),
            has_ended: false,
            sent: Vec::new(),
            fingerprint: DefaultHasher::new(),
        };
        run.begin();
        for request in 0..ACTS_MAX {
            if source.is_empty() {
                break;
            }
            run.act(&mut source, request as Request);
        }
        run.finish();
        run.fingerprint.finish()
    }

    /// A group of three.
    fn begin(&mut self) {
        self.give(Input::Create);
        for (at, id) in (1..).zip(OTHERS).take(JOINED) {
            let names = RankSet::range(at * NAMES, (at + 1) * NAMES - 1);
            let (address, life) = (format!("member-{at}"), Life::Alive);
            let names = (&names).into();
            let record =
                Record { id, address, names, site: at, incarnation: 1, life, gone_ms: 0, epoch: 0 };
            self.give(Input::LinkUp { member: id, address: None });
            self.give_message(id, Message::Join { space: SPACE, record });
        }
        let known = OTHERS[..JOINED].iter().all(|&id| self.member.view().record(id).is_some());
        assert!(known, "they have joined");
    }

    fn act(&mut self, source: &mut Source<'_>, request: Request) {
        let from = source.choose(&OTHERS);
        match source.below(16) {
            0..5 => {
                if let Some(message) = source.typed::<Message>() {
                    self.give_message(from, message);
                }
            }
            5 => self.give_bytes(from, source),
            6 => self.give_back(from, source, false),
            7 => self.give_back(from, source, true),
            8 => self.give(Input::LinkDown { member: from }),
            9 => self.give(Input::LinkUp { member: from, address: None }),
            10 => self.give(Input::ConnectFailed { member: Some(from) }),
            11 => self.pass(Time::from(source.byte()) * MILLISECOND),
            12 => self.wake(),
            13 if source.byte() == 0 => self.give(Input::Leave),
            13 => self.give(Input::Track { tree: PaperTree { root: from, bulk: source.flag() } }),
            _ => self.call(source, request),
        }
    }

    fn call(&mut self, source: &mut Source<'_>, request: Request) {
        let deadline = self.now + DEADLINE;
        let value = Payload::from(vec![source.byte(); source.number() as usize % VALUE_BYTES_MAX]);
        let (number, to) = (source.number(), source.below(SPACE as usize) as u32);
        let call = match source.below(4) {
            0 => Call::Broadcast { targets: None, value, tag: number },
            1 => Call::Direct { to, value, tag: number },
            2 => Call::Scatter { values: vec![(to, value.clone()), (to / 2, value)], tag: number },
            _ => Call::Reduce {
                root: to,
                number,
                operation: source.typed().unwrap_or(Operation::Sum),
                element: source.typed().unwrap_or(Element::I32),
                value,
                to_all: source.flag(),
                leaves_early: source.flag(),
            },
        };
        let tree = source.choose(&TreeKind::ALL);
        self.awaited.insert(request, deadline);
        self.give(Input::Call { request, tree, deadline, call });
    }

    /// Frames of any content, as they come from a link.
    fn give_bytes(&mut self, from: MemberId, source: &mut Source<'_>) {
        let mut inbox = Inbox::default();
        let count = source.byte().into();
        inbox.extend(source.bytes(count));
        while let Ok(Some(frame)) = inbox.next_frame(count) {
            if let Ok(message) = decode(frame) {
                self.give_message(from, message);
            }
        }
    }

    /// One of its own messages, also with one byte changed.
    fn give_back(&mut self, from: MemberId, source: &mut Source<'_>, is_changed: bool) {
        if self.sent.is_empty() {
            return;
        }
        let message = &self.sent[source.below(self.sent.len())];
        let mut bytes = encode(message).expect("it was sent");
        if is_changed {
            let at = source.below(bytes.len().min(256));
            bytes[at] ^= source.byte();
        }
        if let Ok(message) = decode(&bytes) {
            self.give_message(from, message);
        }
    }

    fn give_message(&mut self, from: MemberId, message: Message) {
        let Ok(bytes) = encode(&message) else { return };
        let Ok(message) = decode(&bytes) else { return };
        let again = encode(&message).expect("what was read can be written");
        assert_eq!(decode(&again).as_ref(), Ok(&message), "what was written is read");
        self.given_bytes += bytes.len() + FRAME_PREFIX_BYTES;
        self.give(Input::Message { from, message });
    }

    fn wake(&mut self) {
        let time = self.wake.unwrap_or(self.now).saturating_sub(self.now);
        self.pass(time);
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        self.give(Input::Wake);
    }

    /// Gives an input, and follows what comes of it.
    fn give(&mut self, input: Input) {
        if let Input::Call { call: Call::Broadcast { value, .. }, .. } = &input {
            self.given_bytes += value.len();
        }
        let most = BYTES_MAX + BYTES_PER_BYTE_MAX * self.given_bytes;
        let (member, now) = (&mut self.member, self.now);
        memory::within(most, || member.handle_input(now, input));
        for count in 0.. {
            assert!(count < OUTPUTS_MAX, "there is no end of outputs");
            let Some(output) = self.member.poll_output() else { break };
            self.follow(output);
        }
    }

    fn follow(&mut self, output: Output) {
        match output {
            Output::Connect { member, address } => {
                (member, address).hash(&mut self.fingerprint);
            }
            Output::Send { to, message } => {
                assert_ne!(to, MEMBER, "it sends to itself: {message:?}");
                let bytes = encode(&message).expect("a message that can be sent");
                assert_eq!(decode(&bytes).as_ref(), Ok(&message), "others take what it sends");
                (to, bytes).hash(&mut self.fingerprint);
                if self.sent.len() == KEPT_MAX {
                    self.sent.remove(0);
                }
                self.sent.push(message);
            }
            Output::Wake(time) => {
                time.hash(&mut self.fingerprint);
                self.wake = Some(time);
            }
            Output::Event(event) => self.note(&event),
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Answered(request, answer) => {
                assert!(self.awaited.remove(request).is_some(), "{request} is answered twice");
                let missing = answer.missing.iter().map(|(names, _)| names);
                let twice = missing.clone().any(|names| !disjoint(names, &answer.contributors));
                assert!(!twice, "missing and contributor: {answer:?}");
                answer.contributors.to_string().hash(&mut self.fingerprint);
            }
            Event::Failed(request, error) => {
                assert!(self.awaited.remove(request).is_some(), "{request} has failed twice");
                assert!(!error.to_string().is_empty());
            }
            Event::Ended | Event::Refused(_) => self.has_ended = true,
            Event::Delivery { cast, offset, data, bytes, .. } => {
                assert!(offset + data.len() as u64 <= *bytes, "a part beyond the value");
                (cast.number, offset, data.as_slice()).hash(&mut self.fingerprint);
            }
            Event::MayLeave(request) => {
                assert!(self.awaited.contains_key(request), "{request} may leave after its end");
            }
            Event::Joined
            | Event::MemberJoined(_)
            | Event::MemberGone(..)
            | Event::GraceDelay(_)
            | Event::NamesMoved { .. } => {}
        }
    }

    /// All operations end by their deadlines, whatever the others do not say any more.
    fn finish(&mut self) {
        let last = self.awaited.values().max().copied().unwrap_or(self.now);
        for _ in 0..LAST_WAKES {
            if self.has_ended || self.now > last {
                break;
            }
            // A wake for a time that has passed is one for now.
            self.now = self.wake.unwrap_or(last + 1).max(self.now + 1);
            self.give(Input::Wake);
        }
        assert!(self.has_ended || self.now > last, "it wakes again and again");
        let open = || self.awaited.keys().collect::<Vec<_>>();
        assert!(self.has_ended || self.awaited.is_empty(), "without an end: {:?}", open());
    }
}

fn disjoint(one: &RankSet, other: &RankSet) -> bool {
    one.difference(other.as_ref()).len() == one.len()
}
