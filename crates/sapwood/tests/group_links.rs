//! By what members of one host are linked: shared memory where they may, sockets otherwise, and the
//! same results over all. One test, since what a process has mapped is counted.

use std::time::Duration;

use sapwood::{Group, GroupBuilder, Key, Reduction, TreeKind};

const DEADLINE: Duration = Duration::from_secs(20);
const MEMBERS: u32 = 4;

/// How many ends of links in shared memory this process has.
fn shared_ends() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("sapwood-link")).count()
}

/// This number of members with these settings, of which each sends to each.
fn group_of(count: u32, settings: impl Fn(GroupBuilder, u32) -> GroupBuilder) -> Vec<Group> {
    let key = Key::generate().unwrap();
    let builder = |name| settings(Group::builder(key.clone()).deadline(DEADLINE), name).name(name);
    let mut members = vec![builder(0).create().unwrap()];
    for name in 1..count {
        members.push(builder(name).join(&members[0].address()).unwrap());
    }
    for member in &members {
        member.wait_for(count.into(), DEADLINE).unwrap();
    }
    for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
        if from != to {
            members[from as usize].send(to, 1, vec![from as u8; 9]).wait().unwrap();
            let got = members[to as usize].receive(DEADLINE).unwrap();
            assert_eq!((got.bytes(), got.tag), (&[from as u8; 9][..], 1));
        }
    }
    members
}

fn group(settings: impl Fn(GroupBuilder, u32) -> GroupBuilder) -> Vec<Group> {
    group_of(MEMBERS, settings)
}

/// Longer than a ring in shared memory, so that each waits for room many times.
fn add_up(members: &[Group]) {
    for tree in [TreeKind::Flat, TreeKind::List, TreeKind::Adaptive] {
        let requests: Vec<_> = (1_i64..)
            .zip(members)
            .map(|(number, member)| {
                let numbers = vec![number; 200_000];
                member.allreduce(Reduction::Sum, &numbers).tree(tree).start().unwrap()
            })
            .collect();
        for request in requests {
            let answer = request.wait().unwrap();
            assert!(answer.numbers::<i64>().unwrap() == vec![10; 200_000], "{tree}");
            assert_eq!((answer.contributors.to_string().as_str(), answer.missing), ("0-3", vec![]));
        }
    }
}

fn leave(members: Vec<Group>) {
    for member in members {
        member.leave().unwrap();
    }
}

#[test]
fn members_of_one_host_share_memory_unless_they_are_told_not_to() {
    let unix = |name| format!("unix:@sapwood-test-links-{}-{name}", std::process::id());
    // Between two members is one link at least, with two ends.
    let least = (MEMBERS * (MEMBERS - 1)) as usize;
    let members = group(|builder, _| builder);
    assert!(members[0].address().starts_with("tcp:"));
    assert!(shared_ends() >= least, "{} ends", shared_ends());
    add_up(&members);
    leave(members);
    assert_eq!(shared_ends(), 0, "members that have left keep nothing");
    let members = group(|builder, name| builder.listen(&unix(name)));
    assert!(shared_ends() >= least, "{} ends", shared_ends());
    add_up(&members);
    leave(members);
    for settings in [
        (|builder, _| builder.shared_memory(false)) as fn(GroupBuilder, u32) -> GroupBuilder,
        |builder, _| builder.encryption(true),
        |builder, _| builder.encryption(false).shared_memory(false),
    ] {
        let members = group(settings);
        assert_eq!(shared_ends(), 0);
        add_up(&members);
        leave(members);
    }
    // Either end may want a socket.
    for wants in [0, 1] {
        let members = group_of(2, |builder, name| builder.shared_memory(name != wants));
        assert_eq!(shared_ends(), 0, "{wants} wants one");
        leave(members);
    }
    let members = group(|builder, name| builder.shared_memory(name != 2));
    let expected = ((MEMBERS - 1) * (MEMBERS - 2)) as usize;
    assert!(shared_ends() >= expected, "{} ends", shared_ends());
    add_up(&members);
    leave(members);
}
