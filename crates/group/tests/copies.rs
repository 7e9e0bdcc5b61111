//! Which parts of reductions a member copies: those that come before its own call, mostly.

use sapwood_group::message::Ranges;
use sapwood_group::status::Status;
use sapwood_group::{
    Call, FoldId, Input, MemberId, Message, Operation, PartCount, Payload, Reason, ReduceCounts,
    SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::support::{Lonely, bytes, config, part_head, reduce, sum};

const ROOT: MemberId = MemberId(1);
const CHILD: MemberId = MemberId(3);

/// The second of a chain of four members with these numbers. The others exist in its view only.
fn inner() -> Lonely {
    Lonely::among(config(MemberId(2)), &[ROOT, CHILD, MemberId(4)])
}

fn fold(number: u64) -> FoldId {
    FoldId { root: 1, number }
}

/// A part for some virtual nodes, of a value whose parts have a length.
fn part(number: u64, operation: Operation, length: u64, names: &str, data: Vec<u8>) -> Message {
    let head = part_head(fold(number), operation, length);
    let names = Ranges::from(&names.parse::<RankSet>().expect("a set"));
    Message::Part { head, names, data: Payload::from(data) }
}

fn sum_part(number: u64, names: &str, value: &[i64]) -> Message {
    part(number, Operation::Sum, 8 * value.len() as u64, names, bytes(value))
}

fn call_sum(lonely: &mut Lonely, number: u64, value: &[i64]) {
    lonely.call(number, TreeKind::List, SECOND, sum(fold(number), value));
}

/// The value that went up last.
fn sent_up(lonely: &Lonely) -> Option<Vec<u8>> {
    lonely.sent.iter().rev().find_map(|(to, message)| match message {
        Message::Part { data, .. } if *to == ROOT => Some(data.as_slice().to_vec()),
        _ => None,
    })
}

fn count(parts: u64, bytes: u64, copied_parts: u64, copied_bytes: u64) -> PartCount {
    PartCount { parts, bytes, copied_parts, copied_bytes }
}

fn counts(expected: PartCount, unexpected: PartCount) -> ReduceCounts {
    ReduceCounts { expected, unexpected, ..ReduceCounts::default() }
}

#[test]
fn a_part_is_copied_if_it_is_the_first_of_its_reduction_and_folded_in_place_otherwise() {
    let mut inner = inner();
    call_sum(&mut inner, 1, &[5, 6]);
    inner.hear(CHILD, sum_part(1, "3-4", &[1, 2]));
    assert_eq!(sent_up(&inner), Some(bytes(&[6, 8])));
    let expected = count(1, 16, 0, 0);
    assert_eq!(inner.member.reduce_counts(), counts(expected, count(0, 0, 0, 0)));
    inner.hear(CHILD, sum_part(2, "3-4", &[1, 2]));
    assert_eq!(inner.member.reduce_counts(), counts(expected, count(1, 16, 1, 16)));
    call_sum(&mut inner, 2, &[7, 7]);
    assert_eq!(sent_up(&inner), Some(bytes(&[8, 9])));
    inner.hear(CHILD, sum_part(3, "3", &[1, 2]));
    inner.hear(CHILD, sum_part(3, "4", &[10, 20]));
    call_sum(&mut inner, 3, &[5, 5]);
    assert_eq!(sent_up(&inner), Some(bytes(&[16, 27])));
    assert_eq!(inner.member.reduce_counts(), counts(expected, count(3, 48, 2, 32)));
}

/// The call of a sum whose result all get; at its deadline.
fn missing_at_the_deadline(inner: &mut Lonely, number: u64) -> Vec<(RankSet, Reason)> {
    let mut call = sum(fold(number), &[5]);
    let Call::Reduce { to_all, .. } = &mut call else { panic!("a sum is a reduction") };
    *to_all = true;
    inner.call(number, TreeKind::List, SECOND / 20, call);
    assert_eq!(inner.answer(number), None, "the result has not come");
    let end = inner.now + SECOND / 10;
    while inner.answer(number).is_none() && inner.now < end {
        inner.now = inner.now.max(inner.wake);
        inner.give(Input::Wake);
    }
    let answer = inner.answer(number).expect("an answer at the deadline");
    assert!(answer.value.is_none() && answer.contributors.is_empty(), "{answer:?}");
    answer.missing.clone()
}

#[test]
fn a_member_names_the_root_at_the_deadline_once_its_own_value_has_gone_up() {
    let mut inner = inner();
    inner.hear(CHILD, sum_part(1, "3-4", &[1]));
    let root: RankSet = "1".parse().expect("a set");
    assert_eq!(missing_at_the_deadline(&mut inner, 1), [(root, Reason::Deadline)]);
    assert_eq!(sent_up(&inner), Some(bytes(&[6])));
    // The values from below have not come: its own has not gone up either.
    inner.sent.clear();
    let own: RankSet = "2".parse().expect("a set");
    assert_eq!(missing_at_the_deadline(&mut inner, 2), [(own, Reason::Deadline)]);
    assert_eq!(sent_up(&inner), None);
}

#[test]
fn a_part_that_goes_on_by_itself_is_not_copied() {
    let mut inner = inner();
    call_sum(&mut inner, 1, &[5]);
    inner.hear(CHILD, sum_part(1, "3-4", &[1]));
    inner.hear(CHILD, sum_part(1, "4", &[2]));
    assert_eq!(sent_up(&inner), Some(bytes(&[2])), "it is late, and the root judges it");
    assert_eq!(inner.member.reduce_counts(), counts(count(2, 16, 0, 0), PartCount::default()));
}

#[test]
fn what_is_gathered_is_copied_in_any_case_and_what_is_empty_never() {
    let mut inner = inner();
    let gathered = || part(1, Operation::Gather, 0, "3-4", vec![0; 12]);
    inner.call(1, TreeKind::List, SECOND, reduce(fold(1), Operation::Gather, &[9]));
    inner.hear(CHILD, gathered());
    let expected = count(1, 12, 1, 12);
    assert_eq!(inner.member.reduce_counts(), counts(expected, PartCount::default()));
    inner.hear(CHILD, sum_part(2, "3-4", &[]));
    call_sum(&mut inner, 2, &[]);
    assert_eq!(sent_up(&inner), Some(Vec::new()));
    assert_eq!(inner.member.reduce_counts(), counts(expected, count(1, 0, 0, 0)));
}

/// It keeps them as they are, and folds them into its own value.
#[test]
fn the_root_copies_no_part_of_a_sum_whenever_it_calls() {
    let mut root = Lonely::among(config(ROOT), &[MemberId(2), CHILD]);
    root.hear(MemberId(2), sum_part(1, "2", &[1, 2]));
    root.hear(CHILD, sum_part(1, "3", &[10, 20]));
    assert_eq!(root.member.reduce_counts(), counts(PartCount::default(), count(2, 32, 0, 0)));
    call_sum(&mut root, 1, &[100, 200]);
    let answer = root.answer(1).expect("all have come");
    assert_eq!(answer.value, Some(Payload::from(bytes(&[111, 222]))));
    call_sum(&mut root, 2, &[1, 1]);
    root.hear(CHILD, sum_part(2, "2-3", &[1, 1]));
    assert_eq!(root.member.reduce_counts(), counts(count(1, 16, 0, 0), count(2, 32, 0, 0)));
}

#[test]
fn a_status_has_the_counts() {
    let mut inner = inner();
    inner.hear(CHILD, sum_part(1, "3-4", &[1, 2]));
    let status = inner.member.status(TreeKind::Flat, None, 1);
    assert_eq!(status.reductions, counts(PartCount::default(), count(1, 16, 1, 16)));
    assert_eq!(Status::decode(&status.encode().expect("memory")), Ok(status));
}
