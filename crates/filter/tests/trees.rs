//! The answer does not depend on the shape of the tree.

use crate::harness::{leaf, node, regular, tree};
use proptest::prelude::*;
use sapwood_filter::{Moments, Statistics};
use sapwood_packet::{Directive, ElementType, Packet, Shape, Values};

/// Which numeric types occur.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Integers,
    /// Floating-point numbers too.
    All,
}

/// One value of any of these types per back-end; all of one format.
fn leaves_of_numbers(numbers: Numbers) -> impl Strategy<Value = Vec<Packet>> {
    let element = 0..if numbers == Numbers::Integers { 8_usize } else { 10 };
    let shape = prop_oneof![Just(Shape::Scalar), Just(Shape::Array), Just(Shape::LargeArray)];
    (element, shape, 0_usize..9, 1_usize..24).prop_flat_map(|(element, shape, length, leaves)| {
        let directive = Directive::new(ElementType::ALL[element], shape);
        let count = if shape == Shape::Scalar { 1 } else { length };
        let size = directive.element.size();
        let bytes = proptest::collection::vec(any::<u8>(), count * size);
        proptest::collection::vec(bytes, leaves).prop_map(move |elements| {
            let encode = |(rank, elements): (u32, Vec<u8>)| {
                let mut bytes = Vec::new();
                if shape != Shape::Scalar {
                    bytes.extend((count as u64).to_le_bytes());
                }
                bytes.extend(elements);
                let mut values = Values::new();
                values.push_encoded(directive, &bytes);
                leaf(rank, values)
            };
            (0..).zip(elements).map(encode).collect()
        })
    })
}

/// Doubles of moderate size, the same number from every back-end.
fn leaves_of_doubles() -> impl Strategy<Value = Vec<Packet>> {
    (0_usize..6, 1_usize..24).prop_flat_map(|(length, leaves)| {
        let doubles = proptest::collection::vec(-1e6..1e6_f64, length);
        proptest::collection::vec(doubles, leaves).prop_map(|doubles| {
            (0..).zip(doubles).map(|(rank, doubles)| leaf(rank, doubles)).collect()
        })
    })
}

/// Ranks that interleave between subtrees: neighbours in the tree are no neighbours in number.
fn scatter(leaves: &mut [Packet], order: &[u32]) {
    let mut ranks: Vec<_> = (0..leaves.len() as u32).collect();
    ranks.sort_by_key(|&rank| order.get(rank as usize).copied());
    for (packet, rank) in leaves.iter_mut().zip(ranks) {
        packet.contributors = [rank].into_iter().collect();
    }
}

/// Levels with groups of any size; some packets pass levels without a filter.
fn shapes() -> impl Strategy<Value = Vec<Vec<usize>>> {
    let level = proptest::collection::vec(0_usize..9, 1..5);
    proptest::collection::vec(level, 0..4)
}

fn all_shapes(leaves: usize, ragged: Vec<Vec<usize>>) -> Vec<Vec<Vec<usize>>> {
    let mut shapes: Vec<_> = [1, 2, 8].map(|fan_out| regular(fan_out, leaves)).into();
    shapes.push(ragged);
    shapes
}

fn assert_same(name: &str, leaves: &[Packet], ragged: Vec<Vec<usize>>) {
    let flat = node(name, leaves).expect("a flat tree");
    for shape in all_shapes(leaves.len(), ragged) {
        let deep = tree(name, leaves, &shape).expect("a deep tree");
        assert_eq!(deep, flat, "{name} over {shape:?}");
        assert_eq!(deep.format(), flat.format());
    }
}

fn assert_near(a: f64, b: f64, scale: f64) {
    assert!((a - b).abs() <= 1e-9 * scale, "{a} and {b}");
}

proptest! {
    #[test]
    fn sums_of_integers(leaves in leaves_of_numbers(Numbers::Integers), ragged in shapes()) {
        assert_same("sum", &leaves, ragged);
    }

    #[test]
    fn extremes_of_any_numbers(leaves in leaves_of_numbers(Numbers::All), ragged in shapes()) {
        assert_same("min", &leaves, ragged.clone());
        assert_same("max", &leaves, ragged);
    }

    #[test]
    fn counts(leaves in leaves_of_numbers(Numbers::All), ragged in shapes()) {
        assert_same("count", &leaves, ragged);
    }

    #[test]
    fn concatenations(
        mut leaves in leaves_of_numbers(Numbers::All),
        order in proptest::collection::vec(any::<u32>(), 24),
        ragged in shapes(),
    ) {
        assert_same("concatenate", &leaves, ragged.clone());
        scatter(&mut leaves, &order);
        assert_same("concatenate", &leaves, ragged);
    }

    #[test]
    fn concatenations_of_strings(
        texts in proptest::collection::vec(proptest::collection::vec("[a-z]{0,12}", 0..4), 1..20),
        order in proptest::collection::vec(any::<u32>(), 24),
        ragged in shapes(),
    ) {
        let leaves = texts.iter().map(|texts| leaf(0, &texts[..]));
        let mut leaves: Vec<_> = leaves.collect();
        scatter(&mut leaves, &order);
        assert_same("concatenate", &leaves, ragged);
        let mut by_rank: Vec<_> = leaves.iter().zip(&texts).collect();
        by_rank.sort_by_key(|(packet, _)| packet.contributors.as_ref().first());
        let all = node("concatenate", &leaves).expect("strings");
        let found: Vec<_> = all.values().strings(0).expect("strings").collect();
        let expected = by_rank.iter().flat_map(|(_, texts)| texts.iter().map(String::as_bytes));
        prop_assert!(found.into_iter().eq(expected));
    }

    #[test]
    fn equivalences(
        picks in proptest::collection::vec(0_i32..4, 1..24),
        order in proptest::collection::vec(any::<u32>(), 24),
        ragged in shapes(),
    ) {
        let send = |pick| match pick {
            0 => leaf(0, "pith"),
            1 => leaf(0, ()),
            other => leaf(0, (other, [0.5_f32, 1.0])),
        };
        let mut leaves: Vec<_> = picks.into_iter().map(send).collect();
        scatter(&mut leaves, &order);
        assert_same("equivalence", &leaves, ragged);
    }

    #[test]
    fn averages_to_rounding(leaves in leaves_of_doubles(), ragged in shapes()) {
        let flat = node("average", &leaves).expect("a flat tree");
        let flat = flat.values().array::<f64>(0).expect("doubles");
        for shape in all_shapes(leaves.len(), ragged) {
            let deep = tree("average", &leaves, &shape).expect("a deep tree");
            let deep = deep.values().array::<f64>(0).expect("doubles");
            prop_assert_eq!(deep.len(), flat.len());
            deep.iter().zip(flat).for_each(|(&a, &b)| assert_near(a, b, 1e6));
        }
    }

    #[test]
    fn statistics_to_rounding(
        mut leaves in leaves_of_doubles(),
        order in proptest::collection::vec(any::<u32>(), 24),
        ragged in shapes(),
    ) {
        scatter(&mut leaves, &order);
        let length = leaves[0].values().array::<f64>(0).expect("doubles").len();
        for shape in all_shapes(leaves.len(), ragged) {
            let deep = tree("statistics", &leaves, &shape).expect("a deep tree");
            let deep = Statistics::read(deep.values()).expect("own output");
            prop_assert_eq!(deep.elements().len(), length);
            for (index, moments) in deep.elements().iter().enumerate() {
                assert_moments(moments, &leaves, index);
            }
        }
    }
}

/// Compares with what the textbook's two passes over all values give.
fn assert_moments(moments: &Moments, leaves: &[Packet], index: usize) {
    let sent = |packet: &Packet| {
        let value = packet.values().array::<f64>(0).expect("doubles")[index];
        (value, packet.contributors.as_ref().first().expect("a rank"))
    };
    let sent: Vec<_> = leaves.iter().map(sent).collect();
    let count = sent.len() as f64;
    let mean = sent.iter().map(|(value, _)| value).sum::<f64>() / count;
    let m2: f64 = sent.iter().map(|(value, _)| (value - mean).powi(2)).sum();
    assert_eq!(moments.count, sent.len() as u64);
    assert_near(moments.mean, mean, 1e6);
    assert_near(moments.m2, m2, 1e12 * count);
    let order = |a: &&(f64, u32), b: &&(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let min = sent.iter().min_by(order).expect("values");
    let order = |a: &&(f64, u32), b: &&(f64, u32)| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1));
    let max = sent.iter().max_by(order).expect("values");
    assert_eq!((moments.min, moments.min_rank), *min);
    assert_eq!((moments.max, moments.max_rank), *max);
}
