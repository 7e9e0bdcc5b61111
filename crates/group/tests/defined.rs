//! Operations that members define.

use sapwood_group::message::{Head, Purpose, Ranges, Route};
use sapwood_group::{
    Call, CastId, Config, Definition, Element, Event, FoldFailed, FoldId, GroupError, Input,
    MemberId, Message, Operation, OperationId, Payload, Reason, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::room::Room;
use crate::support::{self, Lonely, bytes, config, part_head};

/// What no function here folds.
const REFUSED: i64 = -13;

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect()
}

/// A function of whole values, which refuses those that begin with [`REFUSED`].
fn definition(fold: fn(&[i64], &[i64]) -> Vec<i64>) -> Definition {
    Definition::new(Element::I64, move |into, value| {
        let (one, other) = (numbers(into), numbers(value));
        if [&one, &other].iter().any(|numbers| numbers.first() == Some(&REFUSED)) {
            return Err(FoldFailed);
        }
        into.copy_from_slice(&bytes(&fold(&one, &other)));
        Ok(())
    })
}

fn divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one.abs() } else { divisor(other, one % other) }
}

/// The greatest common divisors, which no built-in operation gives.
fn divisors() -> Definition {
    definition(|one, other| one.iter().zip(other).map(|(a, b)| divisor(*a, *b)).collect())
}

/// One line after the other: the values are the slope and the offset.
fn lines() -> Definition {
    definition(|one, other| vec![one[0] * other[0], one[0] * other[1] + one[1]])
}

fn id() -> OperationId {
    OperationId::of_name("an operation")
}

fn define(room: &mut Room, index: usize, definition: Definition) {
    room.give(index, Input::Define { operation: id(), definition });
}

fn reduce(number: u64, operation: Operation, value: &[i64]) -> Call {
    Call::Reduce {
        root: 0,
        number,
        operation,
        element: Element::I64,
        value: Payload::from(bytes(value)),
        to_all: true,
        leaves_early: false,
    }
}

#[test]
fn a_function_folds_values_in_every_tree_whole_and_in_segments() {
    let config = Config {
        bulk_bytes: 256,
        segment_bytes: Some(128),
        stripe_bytes: 400,
        ..Config::default()
    };
    let mut room = Room::with(&["0", "1", "2", "3", "4", "5"], &config);
    (0..6).for_each(|index| define(&mut room, index, divisors()));
    let mut number = 0;
    for tree in TreeKind::ALL {
        for count in [0, 1, 200] {
            number += 1;
            for index in 0..6 {
                let own = |at| (at + 1) * 2_i64.pow(6 + index as u32) * [3, 5][index % 2];
                let value: Vec<i64> = (0..count).map(own).collect();
                let call = reduce(number, Operation::Defined(id()), &value);
                room.call_by(tree, index, number, call);
            }
            let right: Vec<i64> = (0..count).map(|at| (at + 1) * 64).collect();
            for index in 0..6 {
                let answer = room.answer(index, number).expect("an answer");
                let value = answer.value.as_ref().expect("a value");
                assert_eq!(numbers(value.as_slice()), right, "{tree}, {count} at {index}");
                assert_eq!(answer.contributors.to_string(), "0-5");
            }
        }
    }
}

/// Members call in the order opposite to that of their virtual nodes.
#[test]
fn a_function_that_does_not_commute_folds_in_the_order_of_the_virtual_nodes() {
    let mut room = Room::new(&["0", "1", "2", "3", "4", "5"]);
    (0..6).for_each(|index| define(&mut room, index, lines()));
    let line = |index: usize| [index as i64 + 2, 10 - index as i64];
    let right = (1..6)
        .map(line)
        .fold(line(0), |[slope, offset], [more, next]| [slope * more, slope * next + offset]);
    for (number, tree) in (1..).zip(TreeKind::ALL) {
        for index in (0..6).rev() {
            let call = reduce(number, Operation::DefinedInOrder(id()), &line(index));
            room.call_by(tree, index, number, call);
        }
        for index in 0..6 {
            let value = room.answer(index, number).and_then(|answer| answer.value.as_ref());
            assert_eq!(
                value.map(|value| numbers(value.as_slice())),
                Some(right.to_vec()),
                "{tree}"
            );
        }
    }
}

/// A member that has not called yet gets the values of two others, and has no function for them.
#[test]
fn what_a_member_cannot_fold_goes_on_to_the_root_unfolded() {
    let root = MemberId(4);
    let others = [MemberId(2), MemberId(3), root];
    let mut member = Lonely::among(config(MemberId(1)), &others);
    let fold = FoldId { root: 4, number: 7 };
    let operation = Operation::Defined(id());
    let head = part_head(fold, operation, 8);
    for (from, value) in [(2, 12), (3, 18)] {
        let names = Ranges::from(&RankSet::range(from, from));
        let data = Payload::from(bytes(&[value]));
        member.hear(MemberId(from.into()), Message::Part { head: head.clone(), names, data });
    }
    let sent = |member: &Lonely| -> Vec<(String, Vec<i64>)> {
        let part = |(to, message): &(MemberId, Message)| match message {
            Message::Part { names, data, .. } if *to == root => {
                Some((names.as_set().to_set().to_string(), numbers(data.as_slice())))
            }
            _ => None,
        };
        member.sent.iter().filter_map(part).collect()
    };
    assert_eq!(sent(&member), [("3".into(), vec![18])]);
    member.give(Input::Define { operation: id(), definition: divisors() });
    member.call(9, TreeKind::Flat, SECOND, support::reduce(fold, operation, &[8]));
    assert_eq!(sent(&member), [("3".into(), vec![18]), ("1-2".into(), vec![4])]);
}

/// Whichever of the members lacks the definition, and in whatever order they call.
#[test]
fn a_call_of_what_is_not_defined_ends_the_reduction_at_all() {
    let other_type = Definition::new(Element::F64, |_, _| Ok(()));
    for lacking in 0..3 {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let mut room = Room::new(&["0", "1", "2"]);
            for index in 0..3 {
                let is_lacking = index == lacking;
                define(&mut room, index, if is_lacking { other_type.clone() } else { divisors() });
            }
            for index in order {
                room.call(index, 5, reduce(1, Operation::Defined(id()), &[6]));
            }
            let name = lacking as u32;
            let missing = [(RankSet::range(name, name), Reason::Undefined)];
            for index in (0..3).filter(|index| *index != lacking) {
                let answer = room.answer(index, 5).expect("an answer");
                assert_eq!(
                    (&answer.value, &answer.missing[..]),
                    (&None, &missing[..]),
                    "{order:?}"
                );
            }
            let failed = Event::Failed(5, GroupError::Undefined { operation: id() });
            assert!(room.events.contains(&(lacking, failed)), "{order:?}");
            // What is built in goes on.
            for index in 0..3 {
                room.call(index, 6, reduce(2, Operation::Sum, &[1]));
            }
            let sum = room.answer(lacking, 6).and_then(|answer| answer.value.clone());
            assert_eq!(sum, Some(Payload::from(bytes(&[3]))));
        }
    }
}

#[test]
fn a_function_that_fails_ends_the_reduction_at_all() {
    let mut room = Room::new(&["0", "1", "2"]);
    (0..3).for_each(|index| define(&mut room, index, divisors()));
    let mut number = 0;
    for operation in [Operation::Defined(id()), Operation::DefinedInOrder(id())] {
        for (tree, refused) in [(TreeKind::Flat, 2), (TreeKind::List, 2), (TreeKind::List, 0)] {
            for order in [[0, 1, 2], [2, 1, 0]] {
                number += 1;
                for index in order {
                    let value = if index == refused { REFUSED } else { 4 };
                    room.call_by(tree, index, number, reduce(number, operation, &[value]));
                }
                let answers: Vec<_> =
                    (0..3).map(|index| room.answer(index, number).expect("an answer")).collect();
                let (names, reason) = &answers[0].missing[0];
                assert_eq!((*reason, names.len()), (Reason::FunctionFailed, 1));
                for answer in answers {
                    assert_eq!(answer.value, None, "{tree}, {order:?}");
                    assert_eq!(answer.missing, [(names.clone(), *reason)], "{tree}, {order:?}");
                }
            }
        }
        number += 1;
        for index in 0..3 {
            room.call(index, number, reduce(number, operation, &[12, 18]));
        }
        let value = room.answer(1, number).and_then(|answer| answer.value.clone());
        assert_eq!(value, Some(Payload::from(bytes(&[12, 18]))));
    }
}

#[test]
fn a_call_of_another_operation_is_told_and_the_others_go_on() {
    let mut room = Room::new(&["0", "1", "2"]);
    let other = OperationId::of_name("another operation");
    for index in 0..3 {
        define(&mut room, index, divisors());
        room.give(index, Input::Define { operation: other, definition: divisors() });
    }
    for index in 0..3 {
        let operation = Operation::Defined(if index == 1 { other } else { id() });
        room.call(index, 5, reduce(1, operation, &[12 + 6 * index as i64]));
    }
    let missing = [(RankSet::range(1, 1), Reason::Mismatch)];
    for (index, value) in [(0, Some(12)), (1, None), (2, Some(12))] {
        let answer = room.answer(index, 5).expect("an answer");
        assert_eq!(answer.missing, missing);
        assert_eq!(answer.value, value.map(|value| Payload::from(bytes(&[value]))));
    }
}

/// It is said by itself that there is no result, not by what a result lacks.
#[test]
fn a_result_of_no_contributor_is_a_result() {
    let (root, third) = (MemberId(2), RankSet::range(3, 3));
    let mut lonely = Lonely::among(config(MemberId(1)), &[root, MemberId(3)]);
    let fold = FoldId { root: 2, number: 1 };
    let call = Call::Reduce {
        root: fold.root,
        number: fold.number,
        operation: Operation::Sum,
        element: Element::I64,
        value: Payload::from(bytes(&[5])),
        to_all: true,
        leaves_early: false,
    };
    lonely.call(1, TreeKind::Flat, SECOND, call);
    let missing = vec![(Ranges::from(&third), Reason::Undefined)];
    let purpose = Purpose::Result { fold, contributors: Ranges::default(), missing };
    let head = Head {
        cast: CastId { root, number: 1 },
        stripe: 0,
        stripes: 1,
        floor: 1,
        tree: TreeKind::Flat,
        purpose,
        bytes: 8,
        segment_bytes: 8,
        tag: 0,
    };
    let (targets, data) = (Ranges::from(&RankSet::range(1, 1)), Payload::from(bytes(&[0])));
    let (route, ask, receipt) = (Route::default(), false, false);
    lonely.hear(root, Message::Open { head, targets, route, ask, receipt, data });
    let answer = lonely.answer(1).expect("an answer");
    assert_eq!(answer.value.as_ref().map(|value| numbers(value.as_slice())), Some(vec![0]));
    assert_eq!(answer.missing, [(third, Reason::Undefined)]);
}
