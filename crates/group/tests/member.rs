//! What two and three members give each other, without any network.

use sapwood_group::limits::NAMES_MAX;
use sapwood_group::message::{Life, Ranges, Record, Table};
use sapwood_group::{
    Call, Config, Element, Event, FoldId, GroupError, Input, Member, MemberId, Message, Operation,
    Output, Payload, Reason, Refusal, SECOND, TreeKind,
};
use sapwood_packet::RankSet;

use crate::room::Room;
use crate::support::{self, Lonely, config, join};

fn sum(element: Element, value: &[u8]) -> Call {
    Call::Reduce {
        root: 0,
        number: 1,
        operation: Operation::Sum,
        element,
        value: Payload::from(value.to_vec()),
        to_all: true,
        leaves_early: false,
    }
}

#[test]
fn a_broadcast_names_its_contributors_and_what_is_assigned_to_no_member() {
    let mut room = Room::new(&["0", "1-2", "3"]);
    let targets = Some(RankSet::range(0, 4));
    room.call(1, 9, Call::Broadcast { targets, value: Payload::from(vec![5]), tag: 4 });
    let answer = room.events.iter().find_map(|(_, event)| match event {
        Event::Answered(9, answer) => Some(answer.clone()),
        _ => None,
    });
    let answer = answer.expect("an answer");
    assert_eq!(answer.contributors.to_string(), "0-3");
    assert_eq!(answer.missing, [(RankSet::range(4, 4), Reason::Unassigned)]);
}

#[test]
fn all_get_the_sum() {
    let mut room = Room::new(&["0", "1", "2"]);
    for index in 0..3 {
        room.call(index, 7, sum(Element::I32, &(index as i32 + 1).to_le_bytes()));
    }
    let results = room.events.iter().filter_map(|(_, event)| match event {
        Event::Answered(7, answer) => answer.value.clone(),
        _ => None,
    });
    let results: Vec<Payload> = results.collect();
    assert_eq!(results, vec![Payload::from(6_i32.to_le_bytes().to_vec()); 3]);
}

/// Members call in the order opposite to that of their virtual nodes, so that values come in that
/// order where the tree lets them.
#[test]
fn a_sum_in_order_has_the_same_bits_by_every_tree() {
    let values = [1e16_f64, 1.0, -1e16, 3.0, 0.1, 1e-9];
    let in_order = values.iter().skip(1).fold(values[0], |sum, value| sum + value);
    let reversed = values.iter().rev().skip(1).fold(values[5], |sum, value| sum + value);
    assert_ne!(in_order.to_bits(), reversed.to_bits(), "the order shows");
    let mut room = Room::new(&["0", "1", "2", "3", "4", "5"]);
    for (number, tree) in (1..).zip(TreeKind::ALL) {
        for index in (0..values.len()).rev() {
            let call = Call::Reduce {
                root: 0,
                number,
                operation: Operation::SumInOrder,
                element: Element::F64,
                value: Payload::from(values[index].to_le_bytes().to_vec()),
                to_all: true,
                leaves_early: false,
            };
            let deadline = room.now + SECOND;
            room.give(index, Input::Call { request: number, tree, deadline, call });
        }
        let results: Vec<Option<Payload>> = room
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Answered(request, answer) if *request == number => {
                    Some(answer.value.clone())
                }
                _ => None,
            })
            .collect();
        let right = Some(Payload::from(in_order.to_le_bytes().to_vec()));
        assert_eq!(results, vec![right; values.len()], "{tree}");
    }
}

#[test]
fn a_member_with_another_type_is_told_and_the_others_go_on() {
    let mut room = Room::new(&["0", "1", "2"]);
    room.call(0, 7, sum(Element::I64, &[1; 8]));
    room.call(1, 7, sum(Element::F64, &[1; 8]));
    room.call(2, 7, sum(Element::I64, &[1; 8]));
    let answer = |index: usize| {
        room.events.iter().find_map(|(at, event)| match event {
            Event::Answered(7, answer) if *at == index => Some(answer.clone()),
            _ => None,
        })
    };
    let wrong = answer(1).expect("an answer");
    assert_eq!(wrong.missing, [(RankSet::range(1, 1), Reason::Mismatch)]);
    assert_eq!(answer(0).expect("an answer").contributors.to_string(), "0,2");
    assert_eq!(answer(2).expect("an answer").value, Some(Payload::from(vec![2; 8])));
}

#[test]
fn overlap_of_names_is_refused_at_the_member_that_joins() {
    let room = Room::new(&["0-3", "2"]);
    assert!(room.events.contains(&(1, Event::Refused(Refusal::Overlap))));
    assert_eq!(room.members[0].view().len(), 1);
}

#[test]
fn the_last_member_leaves_and_nothing_is_kept() {
    let mut room = Room::new(&["0"]);
    room.give(0, Input::Leave);
    for _ in 0..60 {
        room.give(0, Input::Wake);
    }
    assert!(room.events.contains(&(0, Event::Ended)));
    assert_eq!(room.members[0].held(), 0);
}

/// Making a link takes several round trips and much work, which are no distance.
#[test]
fn a_distance_is_measured_over_a_link_that_is_up() {
    let mut member = Member::new(Config { id: MemberId(1), space: 100, ..Config::default() });
    let mut pings = 0;
    let mut give = |now: u64, input: Input| {
        member.handle_input(now, input);
        while let Some(output) = member.poll_output() {
            let is_ping = matches!(output, Output::Send { message: Message::Ping { .. }, .. });
            pings += usize::from(is_ping);
        }
        pings
    };
    give(0, Input::Create);
    let from = MemberId(2);
    give(1, Input::Message { from, message: join(from) });
    assert_eq!(give(SECOND / 4, Input::Wake), 0, "the link is being made");
    assert_eq!(give(SECOND / 4 + 1, Input::LinkUp { member: from, address: None }), 1);
}

#[test]
fn a_name_space_of_a_size_that_no_group_has_is_refused() {
    let refused = [Event::Refused(Refusal::NameSpace)];
    for (space, is_right) in [(0, false), (1, true), (NAMES_MAX, true), (NAMES_MAX + 1, false)] {
        let config = Config { space, names: RankSet::range(0, 0), ..config(MemberId(1)) };
        let mut member = Member::new(config.clone());
        member.handle_input(1, Input::Join { address: "2".into() });
        let first = member.poll_output();
        assert_eq!(matches!(first, Some(Output::Connect { .. })), is_right, "{space}: {first:?}");
        let lonely = Lonely::new(config);
        let is_there = lonely.events.contains(&Event::Joined);
        assert_eq!((is_there, lonely.events == refused), (is_right, !is_right), "{space}");
    }
}

#[test]
fn a_root_outside_the_name_space_is_said_to_be_there() {
    let mut lonely = Lonely::new(config(MemberId(1)));
    let fold = FoldId { root: 100, number: 1 };
    lonely.call(1, TreeKind::Flat, SECOND, support::sum(fold, &[5]));
    let outside = GroupError::Outside { names: RankSet::range(100, 100), space: 100 };
    assert_eq!(outside.to_string(), "the virtual nodes 100 are not all in the name space 0 to 99");
    assert!(lonely.events.contains(&Event::Failed(1, outside)), "{:?}", lonely.events);
}

/// The table is made anew seconds after a member has gone.
#[test]
fn clusters_of_a_status_have_no_members_that_are_gone() {
    let others = [MemberId(2), MemberId(3)];
    let mut lonely = Lonely::among(config(MemberId(1)), &others);
    let label = |first: u64, last: u32| {
        let names = RankSet::range(u32::try_from(first).unwrap(), last);
        (MemberId(first), Ranges::from(&names))
    };
    let labels = vec![label(1, 2), label(3, 3)];
    let table =
        Table { version: 9, author: MemberId(2), labels: labels.clone(), ..Table::default() };
    lonely.hear(MemberId(2), Message::Clusters { targets: Ranges::default(), table });
    let clusters = |lonely: &Lonely| lonely.member.status(TreeKind::Flat, None, 1).clusters;
    assert_eq!(clusters(&lonely), labels);
    let gone = |id| Record { life: Life::Left, ..support::record(id) };
    lonely.learn(MemberId(2), others.map(gone).to_vec());
    assert_eq!(clusters(&lonely), [label(1, 1), (MemberId(3), Ranges::default())]);
}
