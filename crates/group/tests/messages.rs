//! Any message survives the way to bytes and back; harm to the bytes is refused or harmless, and a
//! short message never costs much memory.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use sapwood_group::limits::{
    EPOCH_MAX, ROUND_TRIP_MAX, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, STATED_TIME_MAX, STRIPES_MAX,
    VALUE_BYTES_MAX,
};
use sapwood_group::measure::{Costs, NearCosts};
use sapwood_group::message::{
    Gift, Head, Life, Message, PaperTree, PartHead, Position, Purpose, Ranges, Record, Route,
    Table, decode, encode, encoded_bytes,
};
use sapwood_group::{CastId, Element, FoldId, MemberId, Operation, Payload, Reason, TreeKind};
use sapwood_packet::RankSet;

fn any_ranges() -> impl Strategy<Value = Ranges> {
    vec(0_u32..500, 0..20).prop_map(|ranks| Ranges::from(&ranks.into_iter().collect::<RankSet>()))
}

fn any_payload() -> impl Strategy<Value = Payload> {
    vec(any::<u8>(), 0..100).prop_map(Payload::from)
}

fn any_record() -> impl Strategy<Value = Record> {
    let life = prop_oneof![Just(Life::Alive), Just(Life::Dead), Just(Life::Left)];
    (any::<u64>(), "[a-z0-9.:]{0,20}", any_ranges(), any::<u32>(), any::<u32>(), life).prop_map(
        |(id, address, names, site, incarnation, life)| Record {
            id: MemberId(id),
            address,
            names,
            site,
            incarnation,
            life,
            gone_ms: site,
            epoch: site % (1 << 30),
        },
    )
}

fn any_head() -> impl Strategy<Value = Head> {
    let tree = prop::sample::select(TreeKind::ALL.to_vec());
    let (bytes, segment_bytes) = (0..=VALUE_BYTES_MAX, SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX);
    (any::<u64>(), any::<u64>(), 0_u8..8, tree, bytes, segment_bytes).prop_map(
        |(root, number, stripe, tree, bytes, segment_bytes)| Head {
            cast: CastId { root: MemberId(root), number },
            stripe,
            stripes: 8,
            floor: number,
            tree,
            purpose: purpose_of(number),
            bytes,
            segment_bytes,
            tag: number ^ bytes,
        },
    )
}

fn any_position() -> impl Strategy<Value = Position> {
    (0..=ROUND_TRIP_MAX, any::<u64>(), any::<u32>(), vec(any::<u64>(), 0..9)).prop_map(
        |(distance, bandwidth, children, ids)| Position {
            distance,
            bandwidth,
            children,
            ancestors: ids.into_iter().map(MemberId).collect(),
        },
    )
}

fn purpose_of(number: u64) -> Purpose {
    let fold = FoldId { root: 3, number };
    let names = Ranges::from(&RankSet::range(2, 5));
    match number % 4 {
        0 => Purpose::Broadcast,
        1 => Purpose::Direct,
        2 => {
            let missing = vec![(names, Reason::Undefined)];
            Purpose::Result { fold, contributors: Ranges::default(), missing }
        }
        _ => Purpose::Broken { fold, names, reason: Reason::Undefined },
    }
}

fn any_probe_reply() -> impl Strategy<Value = Message> {
    (any_position(), any_position(), any::<bool>(), any::<u64>()).prop_map(
        |(one, other, bulk, number)| {
            let kind = PaperTree { root: MemberId(1), bulk }.kind();
            let positions = vec![(MemberId(1), one), (MemberId(2), other)];
            Message::ProbeReply { kind, number, positions }
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let open = (any_head(), any_ranges(), btree_set(any::<u64>(), 0..9), any_payload());
    let part = (any::<u32>(), 0..=VALUE_BYTES_MAX, any_ranges(), any_payload());
    prop_oneof![
        (any::<u32>(), any_record()).prop_map(|(space, record)| Message::Join { space, record }),
        (any_ranges(), vec(any_record(), 0..5))
            .prop_map(|(targets, records)| Message::Update { targets, records }),
        (any_ranges(), 0..=ROUND_TRIP_MAX).prop_map(|(targets, version)| Message::Clusters {
            table: Table {
                version,
                author: MemberId(7),
                labels: vec![(MemberId(7), targets.clone())],
                distances: vec![(0, 0, version)],
                costs: Costs {
                    near: Some(NearCosts { work: 40_000, byte_ps: 9_090 }),
                    far_ps: Some(33_000),
                },
            },
            targets,
        }),
        open.prop_map(|(head, targets, route, data)| Message::Open {
            head,
            targets,
            // A chain.
            route: Route(
                (0..route.len() as u32)
                    .rev()
                    .zip(route)
                    .map(|(below, id)| (MemberId(id), below))
                    .collect()
            ),
            ask: false,
            receipt: true,
            data,
        }),
        part.prop_map(|(root, number, names, data)| Message::Part {
            head: PartHead {
                fold: FoldId { root, number },
                segment: 1,
                segments: 2,
                operation: Operation::Max,
                element: Element::F64,
                bytes: number,
                direct: true,
            },
            names,
            data,
        }),
        (any_head(), any_ranges()).prop_map(|(head, names)| Message::Done {
            cast: head.cast,
            stripe: head.stripe,
            failed: vec![(names.clone(), Reason::Dead)],
            names,
        }),
        (any::<u32>(), any::<u64>(), any_ranges()).prop_map(|(root, number, names)| {
            let fold = FoldId { root, number };
            Message::Broken { fold, names, reason: Reason::FunctionFailed }
        }),
        any_probe_reply(),
        (any_head(), any_ranges(), 0..=EPOCH_MAX).prop_map(|(head, names, epoch)| Message::Give {
            gift: Gift {
                epoch,
                floors: vec![(head.cast.root, head.floor)],
                delivered: vec![(head.cast, names.clone())],
                begun: vec![(head.cast, names.clone())],
                folds: vec![(FoldId { root: 1, number: head.tag }, names.clone())],
                ended: vec![FoldId { root: 2, number: head.tag }],
                names,
            }
        }),
    ]
}

proptest! {
    #[test]
    fn any_message_is_read_as_it_was_written(message in any_message()) {
        let bytes = encode(&message).unwrap();
        prop_assert_eq!(bytes.len(), encoded_bytes(&message));
        prop_assert_eq!(decode(&bytes).unwrap(), message);
    }

    #[test]
    fn a_message_that_is_cut_or_longer_is_refused(message in any_message(), cut in 1_usize..50) {
        let mut bytes = encode(&message).unwrap();
        let short = bytes.len().saturating_sub(cut);
        prop_assert!(decode(&bytes[..short]).is_err());
        bytes.push(0);
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        if let Ok(message) = decode(&bytes) {
            prop_assert!(encode(&message).is_ok());
        }
    }
}

type Change = dyn Fn(&mut Head, &mut Route);

fn open(change: impl Fn(&mut Head, &mut Route)) -> Message {
    let mut head = Head {
        cast: CastId { root: MemberId(1), number: 1 },
        stripe: 0,
        stripes: 1,
        floor: 1,
        tree: TreeKind::Adaptive,
        purpose: Purpose::Broadcast,
        bytes: 100,
        segment_bytes: 100,
        tag: 0,
    };
    let mut route = Route([(2, 1), (3, 0), (4, 0)].map(|(id, below)| (MemberId(id), below)).into());
    change(&mut head, &mut route);
    let (targets, data) = (Ranges::from(&RankSet::range(0, 9)), Payload::default());
    Message::Open { head, targets, route, ask: false, receipt: false, data }
}

#[test]
fn transfers_that_no_value_has_are_refused() {
    let read = |change: &Change| decode(&encode(&open(change)).unwrap());
    assert!(read(&|_, _| {}).is_ok());
    let wrong: [&Change; 9] = [
        &|head, _| head.segment_bytes = 0,
        &|head, _| head.bytes = VALUE_BYTES_MAX + 1,
        &|head, _| (head.bytes, head.segment_bytes) = (VALUE_BYTES_MAX, 8),
        &|head, _| head.stripes = 0,
        &|head, _| head.stripe = 1,
        &|head, _| head.stripes = STRIPES_MAX + 1,
        // A member below itself, one below two others, and a subtree beyond its parent's end.
        &|_, route| route.0[1].0 = MemberId(2),
        &|_, route| route.0[2].0 = MemberId(3),
        &|_, route| route.0[1].1 = 1,
    ];
    for (at, change) in wrong.into_iter().enumerate() {
        assert!(read(change).is_err(), "number {at}");
    }
}

#[test]
fn parts_that_no_value_has_are_refused_and_round_trips_are_cut() {
    let part = |segment, segments, bytes| {
        let head = PartHead {
            fold: FoldId { root: 0, number: 1 },
            segment,
            segments,
            operation: Operation::Sum,
            element: Element::I32,
            bytes,
            direct: false,
        };
        let (names, data) = (Ranges::from(&RankSet::range(0, 0)), Payload::default());
        decode(&encode(&Message::Part { head, names, data }).unwrap())
    };
    assert!(part(1, 2, 8).is_ok());
    for (segment, segments, bytes) in
        [(2, 2, 8), (0, 0, 8), (0, u32::MAX, 8), (0, 1, VALUE_BYTES_MAX + 1)]
    {
        assert!(part(segment, segments, bytes).is_err(), "{segment} of {segments}, {bytes} bytes");
    }
    let report = |time| Message::Report { distances: vec![(MemberId(2), time)] };
    let read = |message: &Message| decode(&encode(message).unwrap());
    assert_eq!(read(&report(STATED_TIME_MAX)), Ok(report(ROUND_TRIP_MAX)));
    let tree = PaperTree { root: MemberId(2), bulk: false };
    let reply = |distance| Message::ProbeReply {
        kind: tree.kind(),
        number: 1,
        positions: vec![(tree.root, Position { distance, ..Position::default() })],
    };
    assert_eq!(read(&reply(STATED_TIME_MAX)), Ok(reply(ROUND_TRIP_MAX)));
    let above =
        |distance| Message::Above { tree, position: Position { distance, ..Position::default() } };
    let clusters = |time| Message::Clusters {
        targets: Ranges::default(),
        table: Table { distances: vec![(0, 0, time)], ..Table::default() },
    };
    for time in [STATED_TIME_MAX + 1, u64::MAX] {
        for message in [report(time), reply(time), above(time), clusters(time)] {
            let error = read(&message).unwrap_err().to_string();
            assert!(error.contains("which no network has"), "{message:?}: {error}");
        }
    }
}

#[test]
fn an_epoch_that_no_member_has_is_refused() {
    for (epoch, is_read) in [(EPOCH_MAX, true), (EPOCH_MAX + 1, false)] {
        let gift = Gift { epoch, ..Gift::default() };
        let record = Record { epoch, ..Record::new(MemberId(1), &RankSet::new()) };
        let targets = Ranges::default();
        for message in [
            Message::Give { gift: gift.clone() },
            Message::Join { space: 9, record: record.clone() },
            Message::Update { targets, records: vec![record.clone()] },
        ] {
            assert_eq!(decode(&encode(&message).unwrap()).is_ok(), is_read, "{message:?}");
        }
    }
}
