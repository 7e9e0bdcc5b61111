//! What members note of operations, read through the interface and from outside.

use std::collections::BTreeMap;
use std::time::Duration;

use sapwood::{
    Group, GroupHop, GroupHopCursor, GroupHopKind, GroupHopOperation, GroupHopQuestion, Key,
    MemberHops, MemberId, Reduction, TreeKind, trace_member,
};

const DEADLINE: Duration = Duration::from_secs(20);
const LEASE: u64 = 60_000_000_000;

fn group(key: &Key, count: u32) -> Vec<Group> {
    let builder = || Group::builder(key.clone()).deadline(DEADLINE);
    let mut members = vec![builder().name(0).create().unwrap()];
    for name in 1..count {
        members.push(builder().name(name).join(&members[0].address()).unwrap());
    }
    for member in &members {
        member.wait_for(u64::from(count), DEADLINE).unwrap();
    }
    members
}

fn leave(members: Vec<Group>) {
    for member in members {
        member.leave().unwrap();
    }
}

fn question(cursor: Option<GroupHopCursor>) -> GroupHopQuestion {
    GroupHopQuestion { cursor, lease: LEASE, room: 1000, most: 1000 }
}

/// The identity of each member by its virtual node.
fn identities(member: &Group) -> BTreeMap<u32, MemberId> {
    let members = member.members();
    members.iter().map(|one| (one.names.as_ref().first().unwrap(), one.id)).collect()
}

/// The events of reductions with this number.
fn of_fold(told: &MemberHops, number: u64) -> Vec<GroupHop> {
    let is_of = |hop: &&GroupHop| matches!(hop.operation, Some(GroupHopOperation::Fold(fold)) if fold.number == number);
    told.hops.iter().filter(is_of).copied().collect()
}

#[test]
fn nothing_is_noted_before_a_question() {
    let key = Key::generate().unwrap();
    let members = group(&key, 2);
    let other = members[1].barrier().start().unwrap();
    members[0].barrier().wait().unwrap();
    other.wait().unwrap();
    // A cursor of no ring that is there asks for all that a ring has.
    let everything = Some(GroupHopCursor { since: 0, next: 0 });
    let told = members[0].hops(question(everything)).unwrap();
    assert_eq!((told.hops.len(), told.lost, told.has_lapsed), (0, 0, true));
    let other = members[1].barrier().start().unwrap();
    members[0].barrier().wait().unwrap();
    other.wait().unwrap();
    let told = members[0].hops(question(everything)).unwrap();
    assert!(!told.hops.is_empty() && told.has_lapsed, "now it notes");
    leave(members);
}

/// A chain 0, 1, 2, 3 with the root 0: 1 leaves before 2 and 3 have called. What comes to it from 2
/// is late; the part of 3 is at 2 before 2 calls.
#[test]
fn a_reduction_that_is_left_shows_what_was_there_and_what_came_late() {
    let key = Key::generate().unwrap();
    let members = group(&key, 4);
    let names = identities(&members[0]);
    let cursors: Vec<Option<GroupHopCursor>> =
        members.iter().map(|member| Some(member.hops(question(None)).unwrap().cursor)).collect();
    let number = 9;
    let call = |name: usize| {
        let call = members[name].reduce(0, Reduction::Sum, &[1_i64]);
        call.tree(TreeKind::List).number(number).bypass().unwrap()
    };
    assert_eq!(call(1), None);
    assert_eq!(call(3), None);
    // The part of 3 is at 2 before 2 calls, since links keep the order.
    members[3].send(2, 1, b"after the part".to_vec()).wait().unwrap();
    assert_eq!(members[2].receive(DEADLINE).unwrap().bytes(), b"after the part");
    assert_eq!(call(2), None);
    let answer = call(0).expect("the root gets the answer");
    assert_eq!(answer.numbers::<i64>().unwrap(), [4]);
    let told: Vec<Vec<GroupHop>> = members
        .iter()
        .zip(cursors)
        .map(|(member, cursor)| {
            let told = member.hops(question(cursor)).unwrap();
            assert_eq!((told.lost, told.unread, told.has_lapsed), (0, 0, false));
            of_fold(&told, number | 1 << 62)
        })
        .collect();
    let at = |name: usize, is_it: &dyn Fn(&GroupHopKind) -> bool| {
        told[name].iter().position(|hop| is_it(&hop.kind))
    };
    let entered = |name: usize| {
        let place = at(name, &|kind| matches!(kind, GroupHopKind::Entered { .. }));
        place.unwrap_or_else(|| panic!("no call of {name}: {:?}", told[name]))
    };
    let arrived = |name: usize, from: u32| {
        let place = at(name, &|kind| *kind == GroupHopKind::Arrived(names[&from]));
        place.unwrap_or_else(|| panic!("no part of {from} at {name}: {:?}", told[name]))
    };
    assert!(entered(1) < arrived(1, 2), "late: {:?}", told[1]);
    assert!(arrived(2, 3) < entered(2), "there at the call: {:?}", told[2]);
    arrived(0, 1);
    for name in 1..4 {
        let up = GroupHopKind::SentUp(names[&(name - 1)]);
        assert!(at(name as usize, &|kind| *kind == up).is_some(), "{:?}", told[name as usize]);
        let kind = told[name as usize][entered(name as usize)].kind;
        assert!(matches!(kind, GroupHopKind::Entered { leaves_early: true, .. }), "{kind:?}");
    }
    leave(members);
}

#[test]
fn a_broadcast_is_followed_from_outside_on_each_link_down_and_back() {
    let key = Key::generate().unwrap();
    let members = group(&key, 3);
    let names = identities(&members[0]);
    let ask = |member: &Group, cursor| {
        trace_member(&member.address(), &key, None, question(cursor), DEADLINE).unwrap()
    };
    let cursors: Vec<_> = members.iter().map(|member| ask(member, None).hops.cursor).collect();
    let others: Vec<_> = members[1..]
        .iter()
        .map(|member| member.broadcast(0, None).tree(TreeKind::List).start().unwrap())
        .collect();
    let value = vec![7; 100_000];
    members[0].broadcast(0, Some(value.clone())).tree(TreeKind::List).wait().unwrap();
    for other in others {
        assert!(other.wait().unwrap().bytes().unwrap() == value);
    }
    let told: Vec<_> =
        members.iter().zip(cursors).map(|(member, cursor)| ask(member, Some(cursor))).collect();
    let kinds = |name: usize| -> Vec<GroupHopKind> {
        told[name].hops.hops.iter().map(|hop| hop.kind).collect()
    };
    for (parent, child) in [(0_u32, 1_u32), (1, 2)] {
        let (above, below) = (kinds(parent as usize), kinds(child as usize));
        let (parent, child) = (names[&parent], names[&child]);
        assert!(above.contains(&GroupHopKind::SentDown(child)), "{above:?}");
        assert!(below.contains(&GroupHopKind::CameDown(parent)), "{below:?}");
        assert!(below.contains(&GroupHopKind::SentAcknowledgement(parent)), "{below:?}");
        assert!(above.contains(&GroupHopKind::Acknowledged(child)), "{above:?}");
        assert!(below.contains(&GroupHopKind::Delivered), "{below:?}");
    }
    let root = kinds(0);
    assert!(matches!(root[0], GroupHopKind::Entered { leaves_early: false, .. }), "{root:?}");
    assert!(matches!(root[root.len() - 1], GroupHopKind::Exited { .. }), "{root:?}");
    // All run on this process's clock.
    assert!(told.iter().all(|one| (one.ahead, one.error) == (0, 0)));
    leave(members);
}

#[test]
fn events_that_are_not_read_are_overwritten_and_counted() {
    let key = Key::generate().unwrap();
    let members = group(&key, 1);
    let few = |cursor| GroupHopQuestion { cursor, lease: LEASE, room: 16, most: 10 };
    let cursor = members[0].hops(few(None)).unwrap().cursor;
    for _ in 0..100 {
        members[0].barrier().wait().unwrap();
    }
    let told = members[0].hops(few(Some(cursor))).unwrap();
    assert!(told.lost > 0, "{told:?}");
    assert_eq!((told.hops.len(), told.unread), (10, 6));
    let rest = members[0].hops(few(Some(told.cursor))).unwrap();
    assert_eq!((rest.hops.len(), rest.lost, rest.unread), (6, 0, 0));
    leave(members);
}
