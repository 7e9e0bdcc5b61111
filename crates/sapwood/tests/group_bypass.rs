//! What members tell of the parts of reductions, and calls that wait before they leave one early.

use std::time::Duration;

use sapwood::{Group, GroupOperation, Key, PartCount, ReduceCounts, Reduction, TreeKind};

use crate::group::group;
use crate::support::wait_until;

const DEADLINE: Duration = Duration::from_secs(20);

/// The call of a member to a sum in the chain 0, 1, 2.
fn sum(member: &Group, number: u64) -> GroupOperation<'_> {
    member.reduce(0, Reduction::Sum, &[1_i64]).tree(TreeKind::List).number(number)
}

fn leave(members: Vec<Group>) {
    for member in members {
        member.leave().unwrap();
    }
}

#[test]
fn parts_that_come_after_a_call_and_before_it_are_counted_with_their_copies() {
    let members = group(3);
    let counts = || members[1].reduce_counts().unwrap();
    let part = |copied: bool| {
        let (copied_parts, copied_bytes) = (u64::from(copied), if copied { 8 } else { 0 });
        PartCount { parts: 1, bytes: 8, copied_parts, copied_bytes }
    };
    let own = sum(&members[1], 1).start().unwrap();
    // The member's thread does one thing after the other: it has the call.
    assert_eq!(counts(), ReduceCounts::default());
    let below = sum(&members[2], 1).start().unwrap();
    wait_until("the part", DEADLINE, || counts().expected == part(false));
    let root = sum(&members[0], 1).wait().unwrap();
    assert_eq!((root.contributors.to_string().as_str(), root.missing), ("0-2", vec![]));
    let early = sum(&members[2], 2).start().unwrap();
    wait_until("the early part", DEADLINE, || counts().unexpected == part(true));
    let late = sum(&members[1], 2).start().unwrap();
    let root = sum(&members[0], 2).wait().unwrap();
    assert_eq!((root.contributors.to_string().as_str(), root.missing), ("0-2", vec![]));
    for request in [own, below, early, late] {
        assert_eq!(request.wait().unwrap().missing, []);
    }
    leave(members);
}

/// The values from below come soon after the calls, so that the calls begin to wait for them.
#[test]
fn calls_wait_before_they_leave_once_values_have_come_soon_and_all_results_are_right() {
    let key = Key::generate().unwrap();
    let builder = || {
        let builder = Group::builder(key.clone()).deadline(DEADLINE);
        builder.grace(Duration::from_millis(10))
    };
    let mut members = vec![builder().name(0).create().unwrap()];
    for name in 1..3 {
        members.push(builder().name(name).join(&members[0].address()).unwrap());
    }
    for member in &members {
        member.wait_for(3, DEADLINE).unwrap();
    }
    let mut number = 0;
    wait_until("a call that waits", DEADLINE, || {
        number += 1;
        for name in [1, 2] {
            assert_eq!(sum(&members[name], number).bypass().unwrap(), None);
        }
        let answer = sum(&members[0], number).bypass().unwrap().expect("the root's answer");
        assert_eq!(answer.numbers::<i64>().unwrap(), [3]);
        members[1].reduce_counts().unwrap().grace_waits > 0
    });
    assert_eq!(members[2].reduce_counts().unwrap().grace_waits, 0, "it has none below it");
    leave(members);
}
