//! Values are read back as they were built, and bytes from outside are never trusted.

use proptest::prelude::*;
use sapwood_packet::{
    Format, Header, Packet, PacketError, PacketRef, RankSet, Slab, Values, ValuesRef,
};

#[test]
fn every_kind_of_value_is_read_where_it_lies() {
    let packet = Packet::new(
        3,
        100,
        Values::new()
            .scalar(-1_i8)
            .array(&[1_u16, 2, 3])
            .large_array(&[0.5_f32])
            .string("bark")
            .strings(&["pith", "", "heartwood"])
            .scalar(2.5_f64),
    );
    let values = packet.values();
    assert_eq!(packet.format().to_string(), "%c %auhd %Af %s %as %lf");
    assert_eq!(values.scalar::<i8>(0), Ok(-1));
    assert_eq!(values.array::<u16>(1), Ok(&[1, 2, 3][..]));
    assert_eq!(values.array::<f32>(2), Ok(&[0.5][..]));
    assert_eq!(values.string(3), Ok("bark"));
    let strings: Vec<_> = values.strings(4).expect("strings").collect();
    assert_eq!(strings, [&b"pith"[..], b"", b"heartwood"]);
    assert_eq!(values.scalar::<f64>(5), Ok(2.5));
}

#[test]
fn reading_another_type_than_was_sent_names_both() {
    let packet = Packet::new(0, 100, 5_i32);
    let error = packet.values().scalar::<f64>(0).expect_err("an int is no double");
    assert_eq!(error.to_string(), "value 0 was read as %lf, but the packet's format is '%d'");
    assert_eq!(packet.values().scalar::<i32>(1), Err(PacketError::Index { index: 1, count: 1 }));
}

#[test]
fn a_forged_count_is_refused_without_allocating() {
    let format: Format = "%as".parse().expect("format");
    let body = [u64::MAX.to_le_bytes(), 0_u64.to_le_bytes()].concat();
    assert!(ValuesRef::parse(format.as_ref(), &body).is_err());
    let format: Format = "%Alf".parse().expect("format");
    assert!(ValuesRef::parse(format.as_ref(), &body).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        codes in proptest::collection::vec(0_u8..48, 0..6),
        words in proptest::collection::vec(prop_oneof![0_u64..40, any::<u64>()], 0..12),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Some(format) = sapwood_packet::FormatRef::from_codes(&codes)
            && let Ok(values) = ValuesRef::parse(format, &bytes)
        {
            for index in 0..values.len() {
                let (directive, encoded) = values.encoded(index).expect("parsed values are there");
                prop_assert!(encoded.len() % 8 == 0, "{directive}");
            }
        }
    }

    #[test]
    fn any_format_string_is_read_or_refused(text in "\\PC{0,20}|(%[aA]?(c|uc|hd|ud|lf|s) ?){0,9}") {
        if let Ok(format) = text.parse::<Format>() {
            prop_assert_eq!(format.to_string().parse::<Format>(), Ok(format));
        }
    }

    #[test]
    fn rank_sets_do_what_sets_of_numbers_do(
        left in proptest::collection::btree_set(0_u32..60, 0..30),
        right in proptest::collection::btree_set(0_u32..60, 0..30),
    ) {
        let mine: RankSet = left.iter().copied().rev().collect();
        let theirs: RankSet = right.iter().copied().collect();
        let mut union = mine.clone();
        union.union_with(theirs.as_ref());
        prop_assert!(union.iter().eq(left.union(&right).copied()));
        let mut common = mine.clone();
        common.intersect_with(theirs.as_ref());
        prop_assert!(common.iter().eq(left.intersection(&right).copied()));
        prop_assert!(mine.difference(theirs.as_ref()).iter().eq(left.difference(&right).copied()));
        prop_assert_eq!(mine.as_ref().intersects(theirs.as_ref()), !common.is_empty());
        prop_assert_eq!(mine.len(), left.len() as u64);
        prop_assert_eq!(mine.to_string().parse::<RankSet>(), Ok(mine));
    }
}

proptest! {
    #[test]
    fn parts_of_a_run_are_its_waves(
        waves in proptest::collection::vec(any::<[i16; 5]>(), 2..65),
        first in 0_u64..1000,
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let packets: Vec<Packet> = waves.iter().map(|wave| Packet::new(1, 100, *wave)).collect();
        let mut bodies = Slab::default();
        packets.iter().for_each(|packet| bodies.extend(packet.body().as_bytes()));
        let header = Header { wave: first, ..packets[0].header };
        let more_waves = waves.len() as u32 - 1;
        let run = PacketRef { header, more_waves, body: bodies.as_bytes(), ..packets[0].as_ref() };
        let (from, end) = (cut.0.index(waves.len()), 1 + cut.1.index(waves.len()));
        let (from, end) = (from.min(end - 1), end.max(from + 1));
        let part = run.part_of_run(from as u32, (end - from) as u32);
        prop_assert_eq!(part.header.wave, first + from as u64);
        prop_assert_eq!(part.more_waves as usize, end - from - 1);
        for (index, wave) in waves[from..end].iter().enumerate() {
            // A part of a part is a part of the whole.
            let alone = part.part_of_run(index as u32, 1);
            prop_assert_eq!(alone, run.part_of_run((from + index) as u32, 1));
            prop_assert_eq!(alone.values().array::<i16>(0), Ok(&wave[..]));
        }
    }
}
