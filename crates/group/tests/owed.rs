//! What a member acknowledges of a transfer, when, and to which member.

use sapwood_group::limits::TRANSFERS_MAX;
use sapwood_group::message::{Head, Life, Purpose, Ranges, Record, Route};
use sapwood_group::{CastId, Input, MemberId, Message, Reason, SECOND, TreeKind};

use crate::support::{Lonely, config, name, record};

const ME: MemberId = MemberId(1);
const ROOT: MemberId = MemberId(2);
const OTHER: MemberId = MemberId(3);
const CAST: CastId = CastId { root: ROOT, number: 1 };

/// A member that is to get a value of two segments of eight bytes from its root.
struct Receiver(Lonely);

impl Receiver {
    fn new() -> Self {
        Self(Lonely::among(config(ME), &[ROOT, OTHER]))
    }

    /// A stripe begins, with its first segment.
    fn open(&mut self, stripe: u8, stripes: u8) {
        self.open_of(stripe, stripes, 16);
    }

    /// The same of a value of another length.
    fn open_of(&mut self, stripe: u8, stripes: u8, bytes: u64) {
        self.open_cast(CAST, stripe, stripes, bytes);
    }

    fn open_cast(&mut self, cast: CastId, stripe: u8, stripes: u8, bytes: u64) {
        let head = Head {
            cast,
            stripe,
            stripes,
            floor: 1,
            tree: TreeKind::Adaptive,
            purpose: Purpose::Broadcast,
            bytes,
            segment_bytes: 8,
            tag: 0,
        };
        let targets = Ranges::from(&name(ME));
        let (route, data) = (Route::default(), vec![stripe; 8].into());
        let open = Message::Open { head, targets, route, ask: false, receipt: false, data };
        self.0.hear(ROOT, open);
    }

    fn segment(&mut self, stripe: u8, index: u32) {
        let data = vec![1_u8; 8].into();
        self.0.hear(ROOT, Message::Segment { cast: CAST, stripe, index, data });
    }

    /// News of the root.
    fn learn(&mut self, life: Life, incarnation: u32) {
        self.0.learn(OTHER, vec![Record { life, incarnation, ..record(ROOT) }]);
    }

    /// The stripes that were acknowledged to the root.
    fn acknowledged(&self) -> Vec<u8> {
        let stripe = |(to, message): &(MemberId, Message)| match message {
            Message::Done { cast: CAST, stripe, names, failed } if *to == ROOT => {
                assert_eq!((names.as_set().to_set(), failed.len()), (name(ME), 0));
                Some(*stripe)
            }
            _ => None,
        };
        self.0.sent.iter().filter_map(stripe).collect()
    }
}

/// While two members claim one virtual node, each of them may get a stripe.
#[test]
fn a_stripe_is_acknowledged_when_the_others_are_here_too() {
    let mut receiver = Receiver::new();
    receiver.open(1, 2);
    assert_eq!(receiver.acknowledged(), []);
    receiver.open(0, 2);
    let mut acknowledged = receiver.acknowledged();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged, [0, 1]);
}

/// What one parent sends may take much longer than what the other one does.
#[test]
fn the_last_stripe_is_acknowledged_however_long_ago_the_others_came() {
    let mut receiver = Receiver::new();
    receiver.open_of(0, 2, 48);
    [2, 4].into_iter().for_each(|index| receiver.segment(0, index));
    receiver.open_of(1, 2, 48);
    assert_eq!(receiver.acknowledged(), [], "the root takes one for all");
    // Records are kept for half a minute.
    receiver.0.now += 20 * SECOND;
    receiver.segment(1, 3);
    receiver.0.now += 20 * SECOND;
    receiver.0.give(Input::Wake);
    receiver.segment(1, 5);
    let mut acknowledged = receiver.acknowledged();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged, [0, 1]);
}

#[test]
fn a_member_that_lives_after_all_gets_what_it_is_owed() {
    let mut receiver = Receiver::new();
    receiver.open(0, 1);
    receiver.learn(Life::Dead, 0);
    receiver.segment(0, 1);
    assert_eq!(receiver.acknowledged(), [], "to a dead member");
    receiver.learn(Life::Alive, 1);
    assert_eq!(receiver.acknowledged(), [0]);
}

#[test]
fn a_member_that_has_left_is_owed_nothing() {
    let mut receiver = Receiver::new();
    receiver.open(0, 1);
    receiver.learn(Life::Left, 0);
    receiver.segment(0, 1);
    assert_eq!(receiver.acknowledged(), []);
}

#[test]
fn a_stripe_that_stays_alone_is_said_to_have_reached_no_virtual_node() {
    let mut receiver = Receiver::new();
    receiver.open(1, 2);
    receiver.0.now += 10 * SECOND;
    receiver.0.give(Input::Wake);
    let names = Ranges::default();
    let failed = vec![(Ranges::from(&name(ME)), Reason::Deadline)];
    let given_up = Message::Done { cast: CAST, stripe: 1, names, failed };
    assert!(receiver.0.sent.contains(&(ROOT, given_up)), "{:?}", receiver.0.sent);
}

/// One path may be far slower than the other. That all are there is known by the last one.
#[test]
fn a_stripe_that_comes_after_another_was_given_up_is_acknowledged() {
    let mut receiver = Receiver::new();
    receiver.open(1, 2);
    receiver.0.now += 10 * SECOND;
    receiver.0.give(Input::Wake);
    receiver.0.sent.clear();
    receiver.open(0, 2);
    assert_eq!(receiver.acknowledged(), [0]);
}

#[test]
fn what_finds_no_room_is_said_to_have_reached_no_virtual_node() {
    let mut receiver = Receiver::new();
    let most = TRANSFERS_MAX as u64;
    // The values are longer than what has come of them.
    let cast = |number| CastId { root: ROOT, number };
    (1..=most).for_each(|number| receiver.open_cast(cast(number), 0, 1, 16));
    receiver.0.sent.clear();
    receiver.open_cast(cast(most + 1), 0, 1, 16);
    let names = Ranges::default();
    let failed = vec![(Ranges::from(&name(ME)), Reason::Deadline)];
    let refused = Message::Done { cast: cast(most + 1), stripe: 0, names, failed };
    assert!(receiver.0.sent.contains(&(ROOT, refused)), "{:?}", receiver.0.sent);
}
