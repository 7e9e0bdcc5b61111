//! Any message survives the way to bytes and back; harm to the bytes is refused or harmless, and a
//! short message never costs much memory.

use proptest::collection::vec;
use proptest::prelude::*;
use sapwood_group::message::{
    Head, Life, Message, PartHead, Purpose, Ranges, Record, Route, Table, decode, encode,
    encoded_bytes,
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
        },
    )
}

fn any_head() -> impl Strategy<Value = Head> {
    let tree = prop::sample::select(TreeKind::ALL.to_vec());
    (any::<u64>(), any::<u64>(), 0_u8..8, tree, any::<u64>(), any::<u32>()).prop_map(
        |(root, number, stripe, tree, bytes, segment_bytes)| Head {
            cast: CastId { root: MemberId(root), number },
            stripe,
            stripes: 8,
            floor: number,
            tree,
            purpose: Purpose::Broadcast,
            bytes,
            segment_bytes,
            tag: number ^ bytes,
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let open = (any_head(), any_ranges(), vec((any::<u64>(), any::<u32>()), 0..9), any_payload());
    let part = (any::<u32>(), any::<u64>(), any_ranges(), any_payload());
    prop_oneof![
        (any::<u32>(), any_record()).prop_map(|(space, record)| Message::Join { space, record }),
        (any_ranges(), vec(any_record(), 0..5))
            .prop_map(|(targets, records)| Message::Update { targets, records }),
        (any_ranges(), any::<u64>()).prop_map(|(targets, version)| Message::Clusters {
            table: Table {
                version,
                author: MemberId(7),
                labels: vec![(MemberId(7), targets.clone())],
                distances: vec![(0, 0, version)],
            },
            targets,
        }),
        open.prop_map(|(head, targets, route, data)| Message::Open {
            head,
            targets,
            route: Route(route.into_iter().map(|(id, below)| (MemberId(id), below)).collect()),
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
