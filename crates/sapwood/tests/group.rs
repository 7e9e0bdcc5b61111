//! Members of a group over real sockets: every operation, every tree, every root, and bad input.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use sapwood::{
    Error, GROUP_NAMES_MAX, Group, GroupAnswer, GroupFailure, GroupRequest, Key, RankSet, Reason,
    Reduction, Refusal, Result, TreeKind,
};

use crate::support::wait_until;

const DEADLINE: Duration = Duration::from_secs(20);

/// By which way members reach one another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Shared memory.
    Memory,
    /// Encrypted TCP.
    Tcp,
}

/// A group of `count` members, each with one virtual node, which share memory.
pub(crate) fn group(count: u32) -> Vec<Group> {
    group_over(Way::Memory, count)
}

/// The same over one of the ways.
fn group_over(way: Way, count: u32) -> Vec<Group> {
    let shares_memory = way == Way::Memory;
    let key = Key::generate().unwrap();
    let builder = || Group::builder(key.clone()).deadline(DEADLINE).shared_memory(shares_memory);
    let mut members = vec![builder().name(0).create().unwrap()];
    for name in 1..count {
        let at = members[name as usize / 2].address();
        members.push(builder().name(name).site(name % 3).join(&at).unwrap());
    }
    for member in &members {
        member.wait_for(u64::from(count), DEADLINE).unwrap();
    }
    members
}

/// Starts an operation at each member, then waits for all.
pub(crate) fn all(
    members: &[Group],
    start: impl Fn(u32, &Group) -> Result<GroupRequest>,
) -> Vec<Result<GroupAnswer>> {
    let requests: Vec<Result<GroupRequest>> =
        (0..).zip(members).map(|(name, member)| start(name, member)).collect();
    requests.into_iter().map(|request| request?.wait()).collect()
}

#[test]
fn who_leaves_hands_its_virtual_nodes_to_the_member_that_is_named() {
    let mut members = group(4);
    let leaver = members.remove(3);
    let from_before = members[2].publish(7, b"before".to_vec()).start().unwrap();
    leaver.leave_to(1).unwrap();
    let answer = from_before.wait().unwrap();
    assert_eq!((answer.contributors.to_string(), answer.missing.len()), ("0-3".to_string(), 0));
    // All four virtual nodes are carried, by three members.
    let answer = members[2].send(3, 8, b"to the heir".to_vec()).wait().unwrap();
    assert_eq!(answer.missing, []);
    let mut got = Vec::new();
    while got.last() != Some(&b"to the heir".to_vec()) {
        got.push(members[1].receive(DEADLINE).unwrap().bytes().to_vec());
    }
    let answers = all(&members, |_, member| member.allreduce(Reduction::Sum, &[1_i64]).start());
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.contributors.to_string(), "0-3");
        assert_eq!(answer.numbers::<i64>().unwrap(), [3]);
    }
    leave(members);
}

#[test]
fn who_joins_takes_virtual_nodes_from_a_member_that_stays() {
    let key = Key::generate().unwrap();
    let names = |text: &str| text.parse::<RankSet>().unwrap();
    let first = Group::builder(key.clone()).names(names("0-3")).create().unwrap();
    let taking = |text: &str| Group::builder(key.clone()).take(names(text)).join(&first.address());
    let second = taking("2-3").unwrap();
    assert_eq!(second.names().to_string(), "2-3");
    // The newcomer may have them before the giver's own thread is told.
    wait_until("the giver to be without them", DEADLINE, || first.names() == names("0-1"));
    first.send(3, 8, b"to the second".to_vec()).wait().unwrap();
    assert_eq!(second.receive(DEADLINE).unwrap().bytes(), b"to the second");
    let one = first.allreduce(Reduction::Sum, &[1_i64]).start().unwrap();
    let two = second.allreduce(Reduction::Sum, &[2_i64]).wait().unwrap();
    assert_eq!(
        (two.numbers::<i64>().unwrap(), two.contributors.to_string()),
        (vec![3], "0-3".into())
    );
    one.wait().unwrap();
    // All of a member's, some of two members', and what none carries.
    for text in ["2-3", "1-2", "9"] {
        let refused = taking(text).unwrap_err();
        assert!(
            matches!(refused, Error::Group(GroupFailure::Refused(Refusal::NotGiven))),
            "{text}: {refused}"
        );
    }
    leave(vec![first, second]);
}

pub(crate) fn leave(members: Vec<Group>) {
    for member in members {
        member.leave().unwrap();
    }
}

#[test]
fn every_tree_and_every_root_broadcasts_and_reduces() {
    for way in [Way::Memory, Way::Tcp] {
        let members = group_over(way, 6);
        broadcast_and_reduce(&members);
        leave(members);
    }
}

fn broadcast_and_reduce(members: &[Group]) {
    for tree in TreeKind::ALL {
        for root in 0..6 {
            for bytes in [0, 1, 5000, 400_000] {
                let value = vec![root as u8 + 1; bytes];
                let answers = all(members, |name, member| {
                    let own = (name == root).then(|| value.clone());
                    member.broadcast(root, own).tree(tree).start()
                });
                for answer in answers {
                    let answer = answer.unwrap();
                    assert!(answer.bytes().unwrap() == value, "{tree} from {root}, {bytes}");
                    assert_eq!(answer.missing, []);
                }
                let answers = all(members, |name, member| {
                    let numbers = vec![1_i64 << (8 * name); bytes / 8];
                    member.reduce(root, Reduction::Sum, &numbers).tree(tree).start()
                });
                for (name, answer) in (0..).zip(answers) {
                    let answer = answer.unwrap();
                    if name == root {
                        assert_eq!(answer.contributors.to_string(), "0-5", "{tree} to {root}");
                        assert_eq!(answer.missing, []);
                        let sum = answer.numbers::<i64>().unwrap();
                        assert!(sum == vec![0x01_01_01_01_01_01; bytes / 8], "{tree} to {root}");
                    }
                }
            }
        }
    }
}

#[test]
fn each_operation_gives_each_member_what_it_is_to_have() {
    let members = group(4);
    let names = "0-3";
    for answer in all(&members, |_, member| member.barrier().start()) {
        assert_eq!(answer.unwrap().contributors.to_string(), names);
    }
    for answer in all(&members, |name, member| {
        member.allreduce(Reduction::Max, &[f64::from(name), -f64::from(name)]).start()
    }) {
        assert_eq!(answer.unwrap().numbers::<f64>().unwrap(), [3.0, 0.0]);
    }
    let gathered = [(0, &b"0"[..]), (1, b"11"), (2, b"222"), (3, b"3333")];
    let own = |name: u32| name.to_string().repeat(name as usize + 1).into_bytes();
    let answers = all(&members, |name, member| member.gather(2, own(name)).start());
    assert_eq!(answers[2].as_ref().unwrap().parts().unwrap(), gathered);
    for answer in all(&members, |name, member| member.allgather(own(name)).start()) {
        assert_eq!(answer.unwrap().parts().unwrap(), gathered);
    }
    let answers = all(&members, |name, member| {
        let values = (name == 1).then(|| (0..4).map(|to| (to, own(to))).collect());
        member.scatter(1, values).start()
    });
    for (name, answer) in (0..).zip(answers) {
        assert_eq!(answer.unwrap().parts().unwrap(), [gathered[name as usize]]);
    }
    let answers = all(&members, |name, member| {
        let values = (0..4).map(|to| (to, vec![name as u8, to as u8])).collect();
        member.all_to_all(values).start()
    });
    for (name, answer) in (0_u8..).zip(answers) {
        let answer = answer.unwrap();
        let expected: Vec<(u32, Vec<u8>)> =
            (0..4_u8).map(|from| (u32::from(from), vec![from, name])).collect();
        let parts = answer.parts().unwrap();
        let parts: Vec<(u32, Vec<u8>)> = parts.iter().map(|p| (p.0, p.1.to_vec())).collect();
        assert_eq!(parts, expected);
        assert_eq!(
            (answer.contributors.to_string().as_str(), &answer.missing[..]),
            (names, &[][..])
        );
    }
    let counts = [(0, 1), (1, 0), (2, 2), (3, 1)];
    let answers = all(&members, |name, member| {
        let numbers = [1, 10, 100, 1000].map(|number| number * (i32::try_from(name).unwrap() + 1));
        member.reduce_scatter(Reduction::Sum, &numbers, &counts)?.start()
    });
    let blocks: Vec<Vec<i32>> =
        answers.into_iter().map(|answer| answer.unwrap().numbers().unwrap()).collect();
    assert_eq!(blocks, [vec![10], vec![], vec![100, 1000], vec![10_000]]);
    leave(members);
}

#[test]
fn reduce_scatter_gives_a_member_the_block_of_each_of_its_virtual_nodes() {
    let key = Key::generate().unwrap();
    let builder = || Group::builder(key.clone()).deadline(DEADLINE);
    let first = builder().names([0, 2].into_iter().collect()).create().unwrap();
    let second = builder().name(1).join(&first.address()).unwrap();
    let members = vec![first, second];
    for member in &members {
        member.wait_for(3, DEADLINE).unwrap();
    }
    let counts = [(0, 1), (1, 1), (2, 2)];
    let numbers = [1, 10, 100, 1000];
    let answers = all(&members, |_, member| {
        member.reduce_scatter(Reduction::Sum, &numbers, &counts)?.root(1).start()
    });
    let blocks: Vec<Vec<i32>> =
        answers.into_iter().map(|answer| answer.unwrap().numbers().unwrap()).collect();
    assert_eq!(blocks, [vec![2, 200, 2000], vec![20]]);
    // A root that no member carries may still join, so that there is no result until the deadline.
    let answers = all(&members, |_, member| {
        let operation = member.reduce_scatter(Reduction::Sum, &numbers, &counts)?.root(7);
        operation.deadline(Duration::from_millis(100)).start()
    });
    assert!(answers.into_iter().all(|answer| !answer.unwrap().has_value()));
    leave(members);
}

#[test]
fn values_between_members_come_with_their_tag_and_sender() {
    let members = group(3);
    let answer = members[0].send(2, 7, b"to one".to_vec()).wait().unwrap();
    assert_eq!(answer.contributors.to_string(), "2");
    let got = members[2].receive(DEADLINE).unwrap();
    assert_eq!((got.tag, got.bytes()), (7, &b"to one"[..]));
    assert_eq!(got.sender_names.to_string(), "0");
    members[1].publish(9, b"to all".to_vec()).wait().unwrap();
    for index in [0, 2] {
        let got = members[index].receive(DEADLINE).unwrap();
        assert_eq!((got.tag, got.bytes()), (9, &b"to all"[..]));
    }
    let none = members[0].receive(Duration::from_millis(1));
    assert!(matches!(none, Err(Error::Timeout { .. })), "{none:?}");
    let unknown = members[0].send(50, 1, Vec::new()).wait().unwrap();
    assert_eq!(unknown.missing, [("50".parse().unwrap(), Reason::Unassigned)]);
    leave(members);
}

#[test]
fn a_request_is_tested_and_its_descriptor_tells_of_the_end() {
    let members = group(2);
    members[1].clear();
    let mut request = members[1].barrier().start().unwrap();
    assert!(request.test().unwrap().is_none());
    members[0].barrier().wait().unwrap();
    let mut answer = None;
    while answer.is_none() {
        let mut ready = [rustix::event::PollFd::from_borrowed_fd(
            request.descriptor(),
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut ready, Some(&limit)), Ok(1), "no news");
        members[1].clear();
        answer = request.test().unwrap();
    }
    assert_eq!(answer.unwrap().contributors.to_string(), "0-1");
    leave(members);
}

#[test]
fn at_the_deadline_an_answer_names_those_who_have_not_called() {
    let members = group(3);
    // The root ends somewhat before; long enough for both values on a busy machine.
    let soon = Duration::from_secs(10);
    let answers = all(&members[..2], |name, member| {
        member.allreduce(Reduction::Sum, &[name + 1].map(|n| n as i32)).deadline(soon).start()
    });
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.numbers::<i32>().unwrap(), [3]);
        assert_eq!(answer.contributors.to_string(), "0-1");
        assert_eq!(answer.missing, [("2".parse().unwrap(), Reason::Deadline)]);
    }
    let soon = Duration::from_secs(1);
    let lonely = members[2].broadcast(0, None).number(77).deadline(soon).wait().unwrap();
    assert_eq!(lonely.missing, [("0".parse().unwrap(), Reason::Deadline)]);
    assert!(lonely.bytes().unwrap_err().to_string().contains("the deadline passed"));
    leave(members);
}

#[test]
fn a_member_whose_numbers_differ_is_told_and_the_others_go_on() {
    let members = group(4);
    for to_all in [false, true] {
        let reduction = Reduction::Sum;
        let answers = all(&members, |name, member| match (name, to_all) {
            (2, true) => member.allreduce(reduction, &[1.5_f64, 2.5]).start(),
            (2, false) => member.reduce(0, reduction, &[1_i64, 2, 3]).start(),
            (_, true) => member.allreduce(reduction, &[1_i64, 2]).start(),
            (_, false) => member.reduce(0, reduction, &[1_i64, 2]).start(),
        });
        let answer = answers[0].as_ref().unwrap();
        assert_eq!(answer.numbers::<i64>().unwrap(), [3, 6]);
        assert_eq!(answer.missing, [("2".parse().unwrap(), Reason::Mismatch)]);
        if to_all {
            let wrong = answers[2].as_ref().unwrap();
            assert_eq!(wrong.missing, [("2".parse().unwrap(), Reason::Mismatch)]);
            assert_eq!(answers[3].as_ref().unwrap().numbers::<i64>().unwrap(), [3, 6]);
        }
    }
    leave(members);
}

#[test]
fn the_root_says_what_fits_whoever_calls_first() {
    let members = group(4);
    let orders = [[2, 3, 1, 0], [3, 2, 1, 0], [1, 3, 2, 0], [3, 0, 2, 1], [2, 0, 1, 3]];
    for order in orders.into_iter().cycle().take(200) {
        let mut answers = BTreeMap::new();
        for name in order {
            let numbers = if name == 2 { &[1_i64, 2, 3][..] } else { &[1, 2] };
            let call = members[name].allreduce(Reduction::Sum, numbers).root(0);
            answers.insert(name, call.start().unwrap());
        }
        for (name, started) in answers {
            let answer = started.wait().unwrap();
            assert_eq!(answer.missing, [("2".parse().unwrap(), Reason::Mismatch)], "{order:?}");
            if name != 2 {
                assert_eq!(answer.numbers::<i64>().unwrap(), [3, 6], "{order:?}");
            }
        }
    }
    leave(members);
}

fn refusal(result: Result<Group>) -> String {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, Error::Group(_)), "{error:?}");
    error.to_string()
}

#[test]
fn who_cannot_join_is_told_why_and_the_group_goes_on() {
    let key = Key::generate().unwrap();
    let builder = |key: &Key| Group::builder(key.clone()).space(100).deadline(DEADLINE);
    let first = builder(&key).name(0).create().unwrap();
    let at = first.address();
    let other = Key::generate().unwrap();
    assert!(refusal(builder(&other).name(1).join(&at)).contains("key"));
    let overlap = builder(&key).name(0).join(&at).map(drop).unwrap_err();
    assert!(
        matches!(overlap, Error::Group(GroupFailure::Refused(Refusal::Overlap))),
        "{overlap:?}"
    );
    assert!(refusal(builder(&key).space(50).name(1).join(&at)).contains("name space"));
    for space in [0, GROUP_NAMES_MAX + 1] {
        let refused = builder(&key).space(space).create().map(drop).unwrap_err();
        assert!(
            matches!(refused, Error::Group(GroupFailure::Space { space: of }) if of == space),
            "{refused:?}"
        );
    }
    for outside in [builder(&key).name(100), builder(&key).take(RankSet::range(99, 100))] {
        let refused = outside.join(&at).map(drop).unwrap_err();
        let is_told = matches!(
            &refused,
            Error::Group(GroupFailure::Outside { names, space: 100 }) if names.contains(100)
        );
        assert!(is_told && refused.to_string().contains("name space 0 to 99"), "{refused:?}");
    }
    assert!(refusal(builder(&key).name(1).join("tcp:127.0.0.1:1")).contains("127.0.0.1:1"));
    assert!(refusal(builder(&key).name(1).join("nowhere")).contains("nowhere"));
    let second = builder(&key).join(&at).unwrap();
    assert_eq!(second.names().to_string(), "1", "the smallest free one");
    let barrier = first.barrier().start().unwrap();
    assert_eq!(second.barrier().wait().unwrap().contributors.to_string(), "0-1");
    assert!(barrier.wait().unwrap().missing.is_empty());
    leave(vec![second, first]);
}

/// Two members carry all virtual nodes of the largest name space, of which none has an entry of its
/// own: values of one segment and of several, to all and to the last one, and sums.
#[test]
fn members_carry_millions_of_virtual_nodes() {
    let key = Key::generate().unwrap();
    let builder = |first, last| {
        let names = RankSet::range(first, last);
        Group::builder(key.clone()).space(GROUP_NAMES_MAX).names(names).deadline(DEADLINE)
    };
    let (half, last) = (GROUP_NAMES_MAX / 2, GROUP_NAMES_MAX - 1);
    let one = builder(0, half - 1).create().unwrap();
    let members = vec![builder(half, last).join(&one.address()).unwrap(), one];
    for member in &members {
        member.wait_for(u64::from(GROUP_NAMES_MAX), DEADLINE).unwrap();
    }
    let everyone = format!("0-{last}");
    for bytes in [10, 600_000] {
        let value = vec![7; bytes];
        let start = |_: u32, member: &Group| {
            let own = member.names().contains(last).then(|| value.clone());
            member.broadcast(last, own).start()
        };
        for answer in all(&members, start) {
            assert!(answer.unwrap().bytes().unwrap() == value, "{bytes} bytes");
        }
        let sums = vec![3_i64; bytes];
        for answer in all(&members, |_, member| member.allreduce(Reduction::Sum, &sums).start()) {
            let answer = answer.unwrap();
            assert_eq!(answer.contributors.to_string(), everyone);
            assert!(answer.numbers::<i64>().unwrap() == vec![6; bytes], "{bytes} numbers");
        }
        let sent = members[1].send(last, 5, value.clone()).wait().unwrap();
        assert_eq!(sent.contributors.to_string(), last.to_string());
        let come = members[0].receive(DEADLINE).unwrap();
        assert_eq!(come.names.to_string(), last.to_string());
        assert!(come.bytes() == value, "{bytes} bytes");
    }
    leave(members);
}

/// A port scan, processes that speak something else, and one that says nothing.
#[test]
fn strangers_at_a_listener_change_nothing() {
    let members = group_over(Way::Tcp, 3);
    let address = members[0].address();
    let place = address.strip_prefix("tcp:").expect("members listen by TCP");
    let silent = TcpStream::connect(place).unwrap();
    for said in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096], &[0; 3]] {
        for _ in 0..50 {
            let mut stranger = TcpStream::connect(place).unwrap();
            // It may be closed already.
            let _ = stranger.write_all(said);
        }
    }
    let answers = all(&members, |_, member| member.allreduce(Reduction::Sum, &[1_i64]).start());
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.numbers::<i64>().unwrap(), [3]);
        assert_eq!(answer.contributors.to_string(), "0-2");
    }
    assert!(members.iter().all(|member| member.wait_for(3, DEADLINE).is_ok()));
    drop(silent);
    leave(members);
}

#[test]
fn what_is_too_long_is_refused_at_the_caller() {
    let members = group(2);
    let long = vec![0; (8 << 20) + 1];
    let error = members[0].gather(0, long).wait().unwrap_err().to_string();
    assert!(error.contains("8388609") && error.contains("8388608"), "{error}");
    let error = members[1].broadcast(1, None).wait().unwrap_err();
    assert!(matches!(error, Error::Group(GroupFailure::Call(_))), "{error:?}");
    leave(members);
}

#[test]
fn a_gather_that_is_longer_than_a_message_comes_whole() {
    for way in [Way::Memory, Way::Tcp] {
        let members = group_over(way, 4);
        let own = |name: u32| vec![name as u8; 7 << 20];
        let answers =
            all(&members, |name, member| member.gather(0, own(name)).tree(TreeKind::List).start());
        let answer = answers[0].as_ref().unwrap();
        let parts = answer.parts().unwrap();
        assert_eq!(answer.contributors.to_string(), "0-3", "{:?}", answer.missing);
        assert!((0..4).all(|name| parts[name as usize] == (name, &own(name)[..])));
        leave(members);
    }
}

#[test]
fn one_member_alone_is_a_group_and_may_leave_it() {
    let only = Group::builder(Key::generate().unwrap()).create().unwrap();
    assert_eq!(only.broadcast(0, Some(b"x".to_vec())).wait().unwrap().bytes().unwrap(), b"x");
    assert_eq!(
        only.allreduce(Reduction::Sum, &[4_i32]).wait().unwrap().numbers::<i32>().unwrap(),
        [4]
    );
    only.leave().unwrap();
}

/// A chain 0, 1, 2, 3 with the root 0: the call of 1 and 2 returns though 3 has not called, and the
/// root gets all once it has.
#[test]
fn an_inner_member_leaves_a_reduction_before_those_below_it_have_come() {
    let members = group(4);
    let call = |member: &Group, round: u64, value: i64| {
        let numbers = [value, value * 10];
        member.reduce(0, Reduction::Sum, &numbers).tree(TreeKind::List).number(round).bypass()
    };
    for round in 1..=20 {
        // All but the last member and the root; none of these calls may wait for it.
        for name in [1, 2] {
            assert_eq!(call(&members[name], round, 1 << name).unwrap(), None);
        }
        let open = members[1].bypassed();
        assert_eq!(open.open as u64 + open.passed_on, round);
    }
    let root = &members[0];
    for round in 1..=20 {
        assert_eq!(call(&members[3], round, 8).unwrap(), None);
        let answer = call(root, round, 1).unwrap().expect("the root gets the answer");
        assert_eq!(answer.numbers::<i64>().unwrap(), [15, 150]);
        assert_eq!((answer.contributors.to_string().as_str(), answer.missing), ("0-3", vec![]));
    }
    // What the root has got was passed on by all.
    let begun = std::time::Instant::now();
    while members[1..].iter().any(|member| member.bypassed().open > 0) {
        assert!(begun.elapsed() < DEADLINE, "{:?}", members[1].bypassed());
        std::thread::yield_now();
    }
    for member in &members[1..] {
        let count = member.bypassed();
        assert_eq!((count.passed_on, count.failed), (20, 0));
    }
    leave(members);
}

#[test]
fn an_operation_whose_result_all_get_cannot_be_left() {
    let members = group(2);
    let refused = members[1].allreduce(Reduction::Sum, &[1_i64]).bypass().unwrap_err();
    assert!(matches!(refused, Error::Group(GroupFailure::NoBypass)), "{refused}");
    assert!(members[1].barrier().bypass().is_err());
    leave(members);
}

/// The root does not come: the reductions that were left end at their deadline, and make room.
#[test]
fn reductions_that_were_left_are_bounded_and_end_without_their_root() {
    let members = group(3);
    let value = vec![1_i64; 1 << 17];
    // 80 values of 1 MiB, of which 64 may be open.
    for round in 1..=80 {
        let call = members[2].reduce(0, Reduction::Sum, &value).number(round);
        let left = call.deadline(Duration::from_secs(2)).bypass();
        assert_eq!(left.unwrap(), None);
        assert!(members[2].bypassed().open <= 64);
    }
    leave(members);
}
