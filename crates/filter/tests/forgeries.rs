//! No packet makes a filter or a reader panic, whatever its bytes.

mod harness;

use harness::{aligned, make};
use proptest::prelude::*;
use sapwood_filter::{Emitter, EquivalenceClasses, Registry, Statistics, WaveRef};
use sapwood_packet::{Format, FormatRef, Header, PacketRef, RankSet, Slab, Values, ValuesRef};

fn codes() -> impl Strategy<Value = Vec<u8>> {
    let own_output = |format: &str| {
        let format: Format = format.parse().expect("format");
        Just(format.as_ref().codes().to_vec())
    };
    prop_oneof![
        own_output("%aud %aud %as"),
        own_output("%auld %alf %alf %alf %aud %alf %aud"),
        own_output("%Alf %aud"),
        own_output("%As %aud"),
        own_output("%alf"),
        proptest::collection::vec(0_u8..44, 0..4),
    ]
}

fn body() -> impl Strategy<Value = Slab> {
    let word = prop_oneof![0_u64..4, Just(1 << 32), any::<u64>()];
    proptest::collection::vec(word, 0..24).prop_map(|words| aligned(&words))
}

fn packet() -> impl Strategy<Value = (Vec<u8>, Slab, bool, RankSet)> {
    let ranks = prop_oneof![
        proptest::collection::btree_set(0_u32..5, 0..4)
            .prop_map(|ranks| ranks.into_iter().collect()),
        Just(RankSet::range(0, u32::MAX)),
    ];
    (codes(), body(), any::<bool>(), ranks)
}

proptest! {
    #[test]
    fn arbitrary_packets_are_filtered_or_refused(
        sent in proptest::collection::vec(packet(), 1..4),
    ) {
        let mut packets = Vec::new();
        let mut contributors = RankSet::new();
        for (codes, body, filtered, ranks) in &sent {
            let Some(format) = FormatRef::from_codes(codes) else { return Ok(()) };
            let header = Header { filtered: *filtered, ..Header::default() };
            let (contributors, body) = (ranks.as_ref(), body.as_bytes());
            packets.push(PacketRef { header, format, contributors, body, ..PacketRef::default() });
        }
        for packet in &packets {
            contributors.union_with(packet.contributors);
        }
        let wave = WaveRef {
            stream: 1,
            wave: 0,
            packets: &packets,
            contributors: contributors.as_ref(),
            rank: 9,
            is_root: false,
            children: 2,
            back_ends: 2,
        };
        let mut out = Emitter::new();
        for name in Registry::built_in().known().split(' ') {
            out.clear();
            if make(name).transform(&wave, &mut out).is_err() {
                prop_assert!(out.is_empty(), "{} emitted and failed", name);
            }
        }
    }

    #[test]
    fn arbitrary_values_are_read_or_refused(codes in codes(), body in body()) {
        let Some(format) = FormatRef::from_codes(&codes) else { return Ok(()) };
        let values = ValuesRef::new(format, body.as_bytes());
        if let Ok(statistics) = Statistics::read(values) {
            for index in 0..=statistics.elements().len() {
                let _ = statistics.standard_deviation(index);
                let _ = statistics.sample_standard_deviation(index);
            }
        }
        if let Ok(classes) = EquivalenceClasses::read(values) {
            let _ = classes.to_string();
        }
    }

    #[test]
    fn classes_with_arbitrary_keys_are_read_or_refused(
        counts in proptest::collection::vec(0_u32..3, 0..4),
        ranges in proptest::collection::vec(0_u32..12, 0..8),
        keys in proptest::collection::vec(proptest::collection::vec(0_u8..12, 0..20), 0..4),
    ) {
        let values = Values::new().array(&counts).array(&ranges).strings(&keys);
        if let Ok(classes) = EquivalenceClasses::read(values.as_ref()) {
            prop_assert_eq!(classes.classes().len(), counts.len());
        }
    }
}
