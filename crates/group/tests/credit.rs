//! A member gives a link no more segments and parts than may wait there.

use std::collections::BTreeMap;

use sapwood_group::limits::LATE_PARTS_MAX;
use sapwood_group::message::{PartHead, Ranges};
use sapwood_group::{
    Call, CastId, Config, FoldId, Input, MemberId, Message, Operation, Payload, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{Lonely, config, part_head, sum};

const SEGMENT_BYTES: usize = 1 << 10;
const LINK_BYTES: usize = 8 * SEGMENT_BYTES;
const VALUE_BYTES: usize = 64 * SEGMENT_BYTES;
const QUICK: MemberId = MemberId(2);
const SLOW: MemberId = MemberId(3);

/// A member, and two others that exist in its view only.
struct Hub(Lonely);

impl Hub {
    /// The member carries the virtual node of its number.
    fn new(id: u64) -> Self {
        let config = Config {
            segment_bytes: Some(SEGMENT_BYTES as u32),
            link_bytes: LINK_BYTES,
            ..config(MemberId(id))
        };
        Self(Lonely::among(config, &[QUICK, SLOW]))
    }

    fn drain(&mut self, member: MemberId, queued_bytes: usize) {
        self.0.give(Input::Drained { member, queued_bytes });
    }

    fn broadcast(&mut self, request: u64) {
        let value = Payload::from(vec![5; VALUE_BYTES]);
        let call = Call::Broadcast { targets: None, value, tag: 0 };
        self.0.call(request, TreeKind::Flat, SECOND, call);
    }

    /// Bytes of segments and parts for a member that were sent since the last look.
    fn bulk_bytes(&mut self, member: MemberId) -> usize {
        let (looked, kept) =
            std::mem::take(&mut self.0.sent).into_iter().partition(|(to, _)| *to == member);
        self.0.sent = kept;
        let looked: Vec<(MemberId, Message)> = looked;
        looked.iter().map(|(_, message)| message.bulk_bytes()).sum()
    }
}

/// How often each segment of each transfer was sent to a member.
fn segments(sent: &[(MemberId, Message)], member: MemberId) -> BTreeMap<(u64, u32), usize> {
    let mut counts = BTreeMap::new();
    for (to, message) in sent {
        match message {
            Message::Open { head, ask: false, .. } if *to == member => {
                *counts.entry((head.cast.number, 0)).or_default() += 1;
            }
            Message::Segment { cast, index, .. } if *to == member => {
                *counts.entry((cast.number, *index)).or_default() += 1;
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn a_child_whose_link_does_not_drain_stops_its_own_segments_only() {
    let mut hub = Hub::new(1);
    hub.broadcast(7);
    assert_eq!(hub.bulk_bytes(SLOW), LINK_BYTES);
    let mut quick = hub.bulk_bytes(QUICK);
    assert_eq!(quick, LINK_BYTES);
    while quick < VALUE_BYTES - SEGMENT_BYTES {
        hub.drain(QUICK, LINK_BYTES / 2);
        let more = hub.bulk_bytes(QUICK);
        assert!((1..=LINK_BYTES / 2).contains(&more), "{more} bytes more after {quick}");
        quick += more;
    }
    assert_eq!(quick, VALUE_BYTES - SEGMENT_BYTES, "the first goes with the opening");
    assert_eq!(hub.bulk_bytes(SLOW), 0);
    assert_eq!(hub.0.member.queued_bytes(SLOW), LINK_BYTES);
}

#[test]
fn two_transfers_have_turns_on_a_link_and_each_segment_goes_once() {
    let mut hub = Hub::new(1);
    hub.broadcast(7);
    hub.broadcast(8);
    let mut uneven = 0;
    for _ in 0..2 * VALUE_BYTES / LINK_BYTES {
        let before = hub.0.sent.len();
        hub.drain(SLOW, 0);
        let counts = segments(&hub.0.sent[before..], SLOW);
        let of = |number: u64| counts.keys().filter(|key| key.0 == number).count();
        let is_whole = counts.len() == LINK_BYTES / SEGMENT_BYTES;
        uneven += usize::from(is_whole && of(1).abs_diff(of(2)) > 1);
        if before < 40 {
            assert_eq!((of(1), of(2)), (4, 4), "in turn");
        }
    }
    // The first had filled the link before the second began, and ends before it.
    assert!(uneven <= 2, "{uneven} windows were not shared");
    let counts = segments(&hub.0.sent, SLOW);
    assert_eq!(counts.len(), 2 * VALUE_BYTES / SEGMENT_BYTES);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// What waits on a link is lost with it: the child says what it has, and gets all the rest once.
#[test]
fn a_child_gets_what_it_lacks_after_its_link_was_broken() {
    let mut hub = Hub::new(1);
    hub.broadcast(7);
    hub.drain(SLOW, LINK_BYTES / 2);
    hub.0.sent.clear();
    hub.0.give(Input::LinkDown { member: SLOW });
    hub.0.give(Input::LinkUp { member: SLOW, address: None });
    assert_eq!(hub.bulk_bytes(SLOW), 0, "it has not said what it has");
    let mut has = RankSet::range(0, 4);
    has.insert(9);
    let cast = CastId { root: MemberId(1), number: 1 };
    let message = Message::Have { cast, stripe: 0, segments: (&has).into() };
    hub.0.give(Input::Message { from: SLOW, message });
    for _ in 0..VALUE_BYTES / LINK_BYTES {
        hub.drain(SLOW, 0);
    }
    let counts = segments(&hub.0.sent, SLOW);
    let sent: Vec<u32> = counts.keys().map(|key| key.1).collect();
    let lacked: Vec<u32> = (0..64).filter(|index| !has.contains(*index)).collect();
    assert_eq!(sent, lacked);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// The smallest member is no root here: virtual node 2 is.
#[test]
fn parts_of_a_reduction_wait_for_the_link_to_the_parent() {
    let mut hub = Hub::new(4);
    let fold = FoldId { root: QUICK.0 as u32, number: 1 };
    let call = sum(fold, &[0; VALUE_BYTES / 8]);
    hub.0.call(7, TreeKind::Flat, SECOND, call);
    let mut sent = hub.bulk_bytes(QUICK);
    assert_eq!(sent, LINK_BYTES);
    while sent < VALUE_BYTES {
        hub.drain(QUICK, 0);
        let more = hub.bulk_bytes(QUICK);
        assert!((1..=LINK_BYTES).contains(&more), "{more} bytes more after {sent}");
        sent += more;
    }
    assert_eq!(sent, VALUE_BYTES);
    hub.drain(QUICK, 0);
    assert_eq!(hub.bulk_bytes(QUICK), 0);
}

/// Parts that are folded nowhere wait in the member itself: as many again as on the link. The root
/// asks for the others.
#[test]
fn parts_that_go_past_a_full_link_have_a_bound_and_the_own_value_can_be_asked_for_again() {
    let mut hub = Hub::new(4);
    let fold = FoldId { root: QUICK.0 as u32, number: 1 };
    let head = PartHead { direct: true, ..part_head(fold, Operation::Sum, SEGMENT_BYTES as u64) };
    let data = Payload::from(vec![0; SEGMENT_BYTES]);
    let names = Ranges::from(&RankSet::range(SLOW.0 as u32, SLOW.0 as u32));
    for _ in 0..64 {
        let (head, names, data) = (head.clone(), names.clone(), data.clone());
        hub.0.hear(SLOW, Message::Part { head, names, data });
    }
    let mut sent = hub.bulk_bytes(QUICK);
    assert_eq!(sent, LINK_BYTES);
    hub.drain(QUICK, 0);
    sent += hub.bulk_bytes(QUICK);
    assert_eq!(sent, 2 * LINK_BYTES);
    hub.drain(QUICK, 0);
    assert_eq!(hub.bulk_bytes(QUICK), 0, "the rest was dropped");
    hub.0.call(7, TreeKind::Flat, SECOND, sum(fold, &[0; SEGMENT_BYTES / 8]));
    assert_eq!(hub.bulk_bytes(QUICK), SEGMENT_BYTES);
    let names = Ranges::from(&RankSet::range(4, 4));
    let pull = Message::Pull { fold, names, segments: Ranges::default() };
    for _ in 0..64 {
        hub.0.hear(QUICK, pull.clone());
    }
    hub.drain(QUICK, 0);
    assert_eq!(hub.bulk_bytes(QUICK), 2 * LINK_BYTES - SEGMENT_BYTES);
    hub.drain(QUICK, 0);
    hub.0.hear(QUICK, pull);
    assert_eq!(hub.bulk_bytes(QUICK), SEGMENT_BYTES);
}

/// Those of a barrier have no bytes, and still cost memory while they wait.
#[test]
fn parts_without_a_value_that_wait_for_a_full_link_have_a_bound() {
    let mut hub = Hub::new(4);
    let part = |number: u64, bytes: usize| {
        let fold = FoldId { root: QUICK.0 as u32, number };
        let head = PartHead { direct: true, ..part_head(fold, Operation::Sum, bytes as u64) };
        let names = Ranges::from(&RankSet::range(SLOW.0 as u32, SLOW.0 as u32));
        Message::Part { head, names, data: Payload::from(vec![0; bytes]) }
    };
    hub.0.hear(SLOW, part(1, LINK_BYTES));
    assert_eq!(hub.bulk_bytes(QUICK), LINK_BYTES);
    for _ in 0..LATE_PARTS_MAX + 9 {
        hub.0.hear(SLOW, part(2, 0));
    }
    hub.drain(QUICK, 0);
    let parts = hub.0.sent.iter().filter(|sent| matches!(sent.1, Message::Part { .. })).count();
    assert_eq!(parts, LATE_PARTS_MAX);
}
