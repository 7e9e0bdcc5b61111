//! Processes that hold a group's key and lie about sizes, virtual nodes and distances, over real
//! sockets: each is refused and its link closed, what was wrong is said, and the members go on.

use std::io::{ErrorKind, IoSlice};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sapwood::{Group, Key, RankSet, Reduction, Refusal};
use sapwood_group::limits::{EPOCH_MAX, MESSAGE_BYTES_MAX, VALUE_BYTES_MAX};
use sapwood_group::message::{
    Frame, GROUP_VERSION, Greeting, Head, Inbox, PartHead, Purpose, Ranges, Record, Route, decode,
    encode_frame, frame_of,
};
use sapwood_group::{CastId, Element, FoldId, MemberId, Message, Operation, Payload, TreeKind};
use sapwood_transport::{Address, Encryption, Link, WhenRefused, connect};

use crate::group::{all, leave};
use crate::support::{HANG, wait_until};

const DEADLINE: Duration = HANG;
const LIAR: MemberId = MemberId(u64::MAX);
const MEMBERS: u32 = 3;

/// Three members over encrypted TCP, of one virtual node each.
fn members(key: &Key) -> Vec<Group> {
    let builder = |name| {
        let builder = Group::builder(key.clone()).deadline(DEADLINE).join_deadline(DEADLINE);
        builder.shared_memory(false).name(name)
    };
    let mut members = vec![builder(0).create().unwrap()];
    for name in 1..MEMBERS {
        members.push(builder(name).join(&members[0].address()).unwrap());
    }
    for member in &members {
        member.wait_for(MEMBERS.into(), DEADLINE).unwrap();
    }
    members
}

/// A broadcast of several segments and a sum, of which all get what they are to have.
fn go_on(members: &[Group]) {
    let value = vec![7_u8; 400_000];
    let answers = all(members, |name, member| {
        let own = (name == 0).then(|| value.clone());
        member.broadcast(0, own).start()
    });
    for answer in answers {
        let answer = answer.unwrap();
        assert!(answer.bytes().unwrap() == value);
        assert_eq!(answer.missing, []);
    }
    let answers = all(members, |name, member| {
        member.reduce(0, Reduction::Sum, &[1_i64 << (8 * name)]).start()
    });
    let sum = answers[0].as_ref().unwrap();
    assert_eq!(sum.numbers::<i64>().unwrap(), [0x01_01_01]);
    assert_eq!((sum.contributors.to_string().as_str(), &sum.missing[..]), ("0-2", &[][..]));
}

/// A process that has proved the key and greeted.
struct Liar {
    link: Link,
    inbox: Inbox,
}

impl Liar {
    fn meet(member: &Group, key: &Key) -> Self {
        Self::greet(member, key, LIAR).0
    }

    /// One that greets with this identity, and the identity with which the member greets it.
    fn greet(member: &Group, key: &Key, id: MemberId) -> (Self, MemberId) {
        let address: Address = member.address().parse().unwrap();
        let encryption = Encryption::default_for(&address);
        let link = connect(&address, key, encryption, HANG, WhenRefused::Fail).unwrap();
        let mut liar = Self { link, inbox: Inbox::default() };
        let greeting = Greeting::Member { version: GROUP_VERSION, id, group: None };
        liar.say(&frame_of(&greeting.encode().unwrap()).unwrap());
        let first = liar.next_frame().expect("the member greets, too");
        let Ok(Greeting::Member { id, .. }) = Greeting::decode(&first) else { panic!("{first:?}") };
        (liar, id)
    }

    fn say(&mut self, frame: &Frame) {
        let bytes = bytes_of(frame);
        let mut rest = &bytes[..];
        while !rest.is_empty() || self.link.wants_write() {
            let written = if rest.is_empty() {
                self.link.flush().map(|()| 0)
            } else {
                self.link.write_vectored(&[IoSlice::new(rest)])
            };
            match written {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT),
                Err(error) => panic!("the link does not take the lie: {error}"),
            }
        }
    }

    /// The next frame; none once the link is closed.
    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let begun = Instant::now();
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = self.inbox.next_frame(MESSAGE_BYTES_MAX).unwrap() {
                return Some(frame.to_vec());
            }
            assert!(begun.elapsed() < HANG, "the liar is let be");
            match self.link.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.inbox.extend(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::IN),
                Err(_) => return None,
            }
        }
    }

    fn wait(&self, flags: PollFlags) {
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        // Whatever the outcome, the caller looks at the link and at the time again.
        let _ = poll(&mut [PollFd::new(&self.link, flags)], Some(&limit));
    }

    /// What it is told before its link is closed.
    fn verdict(mut self) -> Option<Refusal> {
        let mut told = None;
        while let Some(frame) = self.next_frame() {
            if let Ok(Message::Refused { refusal }) = decode(&frame) {
                told = Some(refusal);
            }
        }
        told
    }
}

fn bytes_of(frame: &Frame) -> Vec<u8> {
    [frame.head.as_slice(), frame.data.as_slice()].concat()
}

fn head(bytes: u64) -> Head {
    Head {
        cast: CastId { root: LIAR, number: 1 },
        stripe: 0,
        stripes: 1,
        floor: 1,
        tree: TreeKind::Flat,
        purpose: Purpose::Broadcast,
        bytes,
        segment_bytes: 64 << 10,
        tag: 0,
    }
}

fn targets() -> Ranges {
    Ranges::from(&RankSet::range(0, 2))
}

fn record(names: &str) -> Record {
    let names: RankSet = names.parse().unwrap();
    Record { address: "tcp:127.0.0.1:1".to_string(), ..Record::new(LIAR, &names) }
}

fn message(message: Message) -> Frame {
    encode_frame(message).unwrap()
}

/// Frames that no right member sends, each with what the member that gets it says of it.
fn broken() -> Vec<(Frame, &'static str)> {
    let long = Message::Open {
        head: head(VALUE_BYTES_MAX + 1),
        targets: targets(),
        route: Route::default(),
        ask: false,
        receipt: false,
        data: Payload::from(vec![1; 10]),
    };
    let part = Message::Part {
        head: PartHead {
            fold: FoldId { root: 0, number: 1 },
            segment: 0,
            segments: 1,
            operation: Operation::Sum,
            element: Element::I64,
            bytes: VALUE_BYTES_MAX + 1,
            direct: false,
        },
        names: targets(),
        data: Payload::from(vec![1; 8]),
    };
    let claim = Record { epoch: EPOCH_MAX + 1, ..record("0-2") };
    let claim = Message::Update { targets: targets(), records: vec![claim] };
    let far = Message::Report { distances: vec![(LIAR, u64::MAX)] };
    let frame = Frame { head: u32::MAX.to_le_bytes().to_vec(), data: Payload::default() };
    vec![
        (frame, "a frame of 4294967295 bytes, where at most"),
        (message(long), "a transfer of a length, stripe or segment that no value has"),
        (message(part), "a part of a length, stripe or segment that no value has"),
        (message(claim), "an epoch that no member has"),
        (message(far), "a distance of 18446744073709551615 ns, which no network has"),
    ]
}

fn wait_for_notice(member: &Group, wanted: &str) {
    wait_until(wanted, HANG, || member.notices().iter().any(|notice| notice.contains(wanted)));
}

#[test]
fn liars_about_sizes_claims_and_distances_are_refused_and_the_members_go_on() {
    let key = Key::generate().unwrap();
    let members = members(&key);
    for (frame, reason) in broken() {
        let mut liar = Liar::meet(&members[0], &key);
        liar.say(&frame);
        assert_eq!(liar.verdict(), Some(Refusal::Format), "{reason}");
        wait_for_notice(&members[0], reason);
        go_on(&members);
    }
    leave(members);
}

#[test]
fn who_asks_for_virtual_nodes_of_others_is_refused_and_the_members_go_on() {
    let key = Key::generate().unwrap();
    let members = members(&key);
    let space = members[0].space();
    let outside = format!("{space}-{}", space + 7);
    let joins = [
        ("1", Refusal::Overlap),
        ("2-9", Refusal::Overlap),
        (outside.as_str(), Refusal::NameSpace),
    ];
    for (names, expected) in joins {
        let mut liar = Liar::meet(&members[0], &key);
        liar.say(&message(Message::Join { space, record: record(names) }));
        assert_eq!(liar.verdict(), Some(expected), "{names}");
        go_on(&members);
        assert_eq!(members[0].everyone(), RankSet::range(0, 2));
    }
    leave(members);
}

#[test]
fn who_greets_as_a_member_and_may_not_join_loses_its_own_link_and_not_that_of_the_member() {
    let key = Key::generate().unwrap();
    let members = members(&key);
    let (_, id) = Liar::greet(&members[1], &key, LIAR);
    let (mut liar, _) = Liar::greet(&members[0], &key, id);
    let space = members[0].space();
    let record = Record { id, ..record(&space.to_string()) };
    liar.say(&message(Message::Join { space, record }));
    assert_eq!(liar.verdict(), Some(Refusal::NameSpace));
    go_on(&members);
    assert_eq!(members[0].everyone(), RankSet::range(0, 2));
    leave(members);
}

#[test]
fn a_member_that_others_do_not_listen_to_any_more_says_so_once_and_ends_the_link() {
    let key = Key::generate().unwrap();
    let members = members(&key);
    let mut liar = Liar::meet(&members[1], &key);
    let [full, format] =
        [Refusal::Full, Refusal::Format].map(|refusal| message(Message::Refused { refusal }));
    // A refusal to join says nothing to a member.
    liar.say(&full);
    // Both come at once, as repeated ones would.
    liar.say(&Frame { head: bytes_of(&format).repeat(2), data: Payload::default() });
    assert_eq!(liar.verdict(), None);
    let mut told = Vec::new();
    let notice = "does not listen to this member any more";
    wait_until(notice, HANG, || {
        let new = members[1].notices().into_iter().filter(|one| one.contains(notice));
        told.extend(new);
        !told.is_empty()
    });
    go_on(&members);
    told.extend(members[1].notices().into_iter().filter(|one| one.contains(notice)));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(": the message breaks the format"), "{told:?}");
    leave(members);
}
