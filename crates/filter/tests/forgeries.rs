//! No packet makes a filter or a reader panic, whatever its bytes.

use crate::harness::{aligned, make};
use proptest::prelude::*;
use sapwood_filter::{
    AnySketch, Distinct, Emitter, EquivalenceClasses, HeavyHitters, Histogram, ItemSet, Kll,
    PrefixTree, Quantiles, Registry, Statistics, TopK, WaveRef,
};
use sapwood_packet::{
    Format, FormatRef, Header, IntoValues, PacketRef, RankSet, Slab, Values, ValuesRef,
};

fn codes() -> impl Strategy<Value = Vec<u8>> {
    let own_output = |format: &str| {
        let format: Format = format.parse().expect("format");
        Just(format.as_ref().codes().to_vec())
    };
    prop_oneof![
        own_output("%aud %aud %as"),
        own_output("%aud %aud %as %as"),
        own_output("%auld %alf %alf %alf %aud %alf %aud"),
        own_output("%Alf %aud"),
        own_output("%As %aud"),
        own_output("%alf"),
        own_output("%lf %ud %ud %uld %uld %lf %lf %ad %auld %ad %auld"),
        own_output("%ud %uld %uld %lf %uld %lf %lf %aud %alf"),
        own_output("%ud %auld %auc"),
        own_output("%ud %uld %uld %ald %auld %as %auld"),
        own_output("%ud %uld %ald %auld %aud %aud"),
        own_output("%ud %lf %lf %d %ld %uld %uld %uld %auld"),
        own_output("%ud %uc %ald %auld %as"),
        own_output("%ud %uc %as %aud %aud %auld %aud %aud"),
        proptest::collection::vec(0_u8..44, 0..4),
    ]
}

fn body() -> impl Strategy<Value = Slab> {
    let word = prop_oneof![0_u64..4, Just(1 << 32), any::<u64>()];
    proptest::collection::vec(word, 0..24).prop_map(|words| aligned(&words))
}

/// Real sketches of every kind: of little, and of enough to have more levels, registers and bins.
fn sketches(size: u32) -> [Values; 9] {
    let mut quantiles = Quantiles::with_bins(0.01, 20).expect("parameters");
    let mut kll = Kll::new(8, 1).expect("parameters");
    let mut distinct = Distinct::new(4 + size % 3).expect("parameters");
    let mut hitters = HeavyHitters::new(64).expect("parameters");
    let mut top = TopK::new(10).expect("parameters");
    let mut fixed = Histogram::fixed(0.0, 9.0, 4).expect("parameters");
    let mut chosen = Histogram::self_choosing(64).expect("parameters");
    let mut set = ItemSet::new(65536).expect("parameters");
    let mut tree = PrefixTree::new(4096).expect("parameters");
    for step in 0..size {
        let number = f64::from(step * 7 % 23) * 0.7 - 4.0;
        quantiles.add(number);
        kll.add(number);
        distinct.add_double(number);
        hitters.add(i64::from(step % 7) - 3);
        hitters.add("leaf");
        top.add(number, step % 5).expect("doubles");
        fixed.add(number);
        chosen.add(number);
        set.add(i64::from(step % 7) - 3);
        set.add(format!("leaf {}", step % 4));
        tree.add([format!("f{}", step % 3), format!("g{}", step % 4)], step);
    }
    [
        quantiles.into_values(),
        kll.into_values(),
        distinct.into_values(),
        hitters.into_values(),
        top.into_values(),
        fixed.into_values(),
        chosen.into_values(),
        set.into_values(),
        tree.into_values(),
    ]
}

/// Reads values as the sketch that they are, asks it everything, and gives it written again.
fn read_sketches(values: ValuesRef<'_>) -> Option<Values> {
    let questions = [0.0, 0.5, 1.0, -1.0, f64::NAN];
    Some(match AnySketch::from_values(values).ok()? {
        AnySketch::Quantiles(sketch) => {
            let asked = questions.map(|q| sketch.quantile(q));
            let _ = (asked, sketch.count(), sketch.min(), sketch.max(), sketch.relative_error());
            sketch.into_values()
        }
        AnySketch::Kll(sketch) => {
            let asked =
                questions.map(|q| (sketch.quantile(q), sketch.rank(q), sketch.rank_error(q)));
            let _ = (asked, sketch.min(), sketch.max());
            sketch.into_values()
        }
        AnySketch::Distinct(sketch) => {
            assert!(sketch.estimate() >= 0.0);
            sketch.into_values()
        }
        AnySketch::HeavyHitters(sketch) => {
            let _ = (sketch.hitters(), sketch.error());
            sketch.into_values()
        }
        AnySketch::Top(sketch) => {
            let _ = sketch.entries();
            sketch.into_values()
        }
        AnySketch::Histogram(sketch) => {
            let _ = (sketch.bins().count(), sketch.count());
            sketch.into_values()
        }
        AnySketch::Union(set) => set.into_values(),
        AnySketch::PrefixTree(tree) => {
            let _ = tree.to_string();
            tree.into_values()
        }
        _ => return None,
    })
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
        let _ = read_sketches(values);
    }

    #[test]
    fn sketches_are_written_as_they_were_read(size in 0_u32..200) {
        for values in sketches(size) {
            let again = read_sketches(values.as_ref()).expect("a sketch");
            prop_assert!(again.as_ref() == values.as_ref());
        }
    }

    #[test]
    fn sketches_with_words_changed_are_filtered_or_refused(
        sizes in (0_u32..60, 0_u32..60),
        changes in proptest::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![
                0_u64..4, 0_u64..100, any::<u64>(), Just(1 << 32), Just(u64::MAX), Just(1 << 63),
                any::<f64>().prop_map(f64::to_bits),
            ]), 0..4),
    ) {
        let ranks = RankSet::range(0, 2);
        for (forged, sound) in sketches(sizes.0).iter().zip(&sketches(sizes.1)) {
            let mut body = Slab::copy_of(forged.as_ref().body());
            for (place, word) in &changes {
                let at = 8 * place.index(body.len() / 8);
                body.as_mut_bytes()[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            let format = forged.as_ref().format();
            let forged = ValuesRef::new(format, body.as_bytes());
            if let Some(written) = read_sketches(forged) {
                prop_assert!(read_sketches(written.as_ref()).is_some(), "what is read is written");
            }
            let of = |values: ValuesRef<'_>| values.body().to_vec();
            let bodies = [of(sound.as_ref()), of(forged), of(sound.as_ref())].map(|b| Slab::copy_of(&b));
            let packets = bodies.each_ref().map(|body| PacketRef {
                format,
                contributors: ranks.as_ref(),
                body: body.as_bytes(),
                ..PacketRef::default()
            });
            let wave = WaveRef {
                stream: 1,
                wave: 0,
                packets: &packets,
                contributors: ranks.as_ref(),
                rank: 9,
                is_root: false,
                children: 3,
                back_ends: 3,
            };
            let mut out = Emitter::new();
            for name in Registry::built_in().known().split(' ') {
                out.clear();
                if make(name).transform(&wave, &mut out).is_ok() {
                    for (_, values) in out.emissions() {
                        let _ = read_sketches(values);
                    }
                }
            }
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
