//! The bound of a sketch holds against the exact answer, whatever the shape of the tree and the
//! process that made the sketch; and results that are independent of the shape are the same for all
//! shapes.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{leaf, regular, tree_of};
use proptest::prelude::*;
use sapwood_filter::{
    Distinct, FilterError, FilterSpec, HeavyHitters, Histogram, Item, ItemSet, Kll, PrefixTree,
    Quantiles, TopK, TopNumber,
};
use sapwood_packet::{IntoValues, Packet, Values, ValuesRef};

/// A filter with its parameters.
fn filter(name: &str, parameters: impl IntoValues) -> FilterSpec {
    FilterSpec { name: name.into(), parameters: parameters.into_values() }
}

/// Levels with groups of any size; some packets pass levels without a filter.
fn shapes() -> impl Strategy<Value = Vec<Vec<Vec<usize>>>> {
    let level = proptest::collection::vec(0_usize..9, 1..5);
    let ragged = proptest::collection::vec(level, 0..4);
    (ragged, 1_usize..24).prop_map(|(ragged, leaves)| {
        vec![vec![], regular(1, leaves), regular(2, leaves), regular(8, leaves), ragged]
    })
}

/// What each back-end has: some with nothing, some with much.
fn doubles() -> impl Strategy<Value = Vec<Vec<f64>>> {
    let number = prop_oneof![
        4 => -1e3..1e3_f64,
        2 => (-300_i32..300, any::<bool>()).prop_map(|(exponent, is_negative)| {
            let number = 10_f64.powi(exponent);
            if is_negative { -number } else { number }
        }),
        1 => Just(0.0),
    ];
    let of_one = prop_oneof![
        3 => proptest::collection::vec(number, 0..40),
        1 => proptest::collection::vec(1e-3..1e3_f64, 300..1200),
    ];
    proptest::collection::vec(of_one, 1..24)
}

/// Integers of which a few come often.
fn integers() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let number = prop_oneof![2 => 0_i64..5, 2 => -40_i64..40, 1 => any::<i64>()];
    proptest::collection::vec(proptest::collection::vec(number, 0..60), 1..24)
}

/// Packets of back-ends, of which every third made the sketch itself.
fn leaves<T, V: IntoValues>(
    of_ranks: &[T],
    raw: impl Fn(&T) -> V,
    sketch: impl Fn(&T, u32) -> Values,
) -> Vec<Packet> {
    let one = |(rank, of_rank): (u32, &T)| match rank % 3 {
        2 => leaf(rank, sketch(of_rank, rank)),
        _ => leaf(rank, raw(of_rank)),
    };
    (0..).zip(of_ranks).map(one).collect()
}

/// The front-end's sketch in trees of all shapes, the flat one first.
fn answers<S>(
    spec: &FilterSpec,
    leaves: &[Packet],
    shapes: &[Vec<Vec<usize>>],
    read: impl Fn(ValuesRef<'_>) -> Result<S, FilterError>,
) -> Vec<S> {
    let answer = |shape| tree_of(spec, leaves, shape).expect("an answer");
    let read_twice = |packet: Packet| read(packet.values()).expect("its own sketch");
    shapes.iter().map(|shape| read_twice(answer(shape))).collect()
}

/// The smallest and the largest number whose place among sorted ones is within the error of `q`.
fn around(sorted: &[f64], q: f64, error: f64) -> (f64, f64) {
    let last = sorted.len() as f64 - 1.0;
    let place = (q * last).floor();
    let at = |place: f64| sorted[place.clamp(0.0, last) as usize];
    (at((place - error).floor()), at((place + error).ceil()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn quantiles_keep_their_relative_error(
        numbers in doubles(), shapes in shapes(), bins in prop_oneof![Just(2048_u32), 16_u32..200],
    ) {
        let sketch = |numbers: &Vec<f64>, _| {
            let mut sketch = Quantiles::with_bins(0.01, bins).expect("parameters");
            numbers.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let spec = filter("quantiles", (0.01_f64, bins));
        let answers = answers(&spec, &leaves, &shapes, Quantiles::from_values);
        let mut sorted = numbers.concat();
        sorted.sort_by(f64::total_cmp);
        for answer in &answers {
            prop_assert_eq!(answer, &answers[0]);
            prop_assert_eq!(answer.count(), sorted.len() as u64);
        }
        let error = answers[0].relative_error() + 1e-12;
        prop_assert!(bins < 2048 || error < 0.011, "bins collapsed");
        for (place, &exact) in sorted.iter().enumerate() {
            let q = (place as f64 + 0.5) / (sorted.len() as f64 - 1.0).max(1.0);
            let found = answers[0].quantile(q).expect("numbers");
            prop_assert!((found - exact).abs() <= error * exact.abs(), "{found} for {exact}");
        }
    }

    #[test]
    fn kll_keeps_its_error_in_rank(
        numbers in doubles(), shapes in shapes(), k in prop_oneof![Just(200_u32), 8_u32..60],
    ) {
        let sketch = |numbers: &Vec<f64>, rank| {
            let mut sketch = Kll::new(k, u64::from(rank)).expect("parameters");
            numbers.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let spec = filter("kll", k);
        let mut sorted = numbers.concat();
        sorted.sort_by(f64::total_cmp);
        for answer in answers(&spec, &leaves, &shapes, Kll::from_values) {
            prop_assert_eq!(answer.count(), sorted.len() as u64);
            let share = sorted.len() as f64 / f64::from(k);
            let stated = (12.0 * (2.0_f64 / 0.01).ln()).sqrt() * share;
            prop_assert!(answer.rank_error(0.01) <= stated, "worse than stated for every tree");
            prop_assert_eq!(answer.rank_error(0.01) == 0.0, answer.rank_error(1e-9) == 0.0);
            let error = answer.rank_error(1e-9);
            for step in 0..=20 {
                let q = f64::from(step) / 20.0;
                let Some(found) = answer.quantile(q) else { break };
                let (low, high) = around(&sorted, q, error);
                prop_assert!((low..=high).contains(&found), "{q}: {found} of {low}..{high}");
                let rank = sorted.partition_point(|&number| number <= found) as f64;
                prop_assert!((answer.rank(found) as f64 - rank).abs() <= error + 1e-9);
            }
        }
    }

    #[test]
    fn distinct_counts_keep_five_standard_errors(
        numbers in integers(), shapes in shapes(), precision in 4_u32..15,
        many in proptest::option::of(1_i64..20_000),
    ) {
        let mut numbers = numbers;
        if let Some(many) = many {
            numbers.push((0..many).map(|number| number.wrapping_mul(-7_046_029_254_386_353_131)).collect());
        }
        let sketch = |numbers: &Vec<i64>, _| {
            let mut sketch = Distinct::new(precision).expect("parameters");
            numbers.iter().for_each(|&number| sketch.add_integer(number));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let spec = filter("distinct", precision);
        let exact = numbers.concat().into_iter().collect::<BTreeSet<_>>().len() as f64;
        let answers = answers(&spec, &leaves, &shapes, Distinct::from_values);
        for answer in &answers {
            prop_assert_eq!(answer, &answers[0]);
        }
        let found = answers[0].estimate();
        // With few registers the estimate is not distributed like a normal variable.
        let times = if precision < 8 { 12.0 } else { 5.0 };
        let error = times * answers[0].standard_error() * exact;
        prop_assert!((found - exact).abs() <= error, "{found} for {exact}");
    }

    #[test]
    fn heavy_hitters_keep_their_bounds(
        numbers in integers(), shapes in shapes(), k in 1_u32..40,
    ) {
        let sketch = |numbers: &Vec<i64>, _| {
            let mut sketch = HeavyHitters::new(k).expect("parameters");
            numbers.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let mut exact: BTreeMap<i128, u64> = BTreeMap::new();
        numbers.concat().into_iter().for_each(|n| *exact.entry(n.into()).or_default() += 1);
        let all: u64 = exact.values().sum();
        for answer in answers(&filter("heavy-hitters", k), &leaves, &shapes, HeavyHitters::from_values) {
            prop_assert_eq!(answer.count(), all);
            prop_assert!(answer.error() * u64::from(k + 1) <= all);
            prop_assert!(exact.len() > k as usize || answer.error() == 0);
            let mut rest = exact.clone();
            for hitter in answer.hitters() {
                let times = rest.remove(&hitter.item.integer().expect("integers"));
                let range = hitter.at_least..=hitter.at_most;
                prop_assert!(range.contains(&times.expect("was sent")));
            }
            for times in rest.values() {
                prop_assert!(*times <= answer.error(), "{times} times and not found");
            }
        }
    }

    #[test]
    fn the_largest_are_exact(numbers in integers(), shapes in shapes(), k in 1_u32..50) {
        let sketch = |numbers: &Vec<i64>, rank| {
            let mut sketch = TopK::new(k).expect("parameters");
            numbers.iter().for_each(|&number| sketch.add(number, rank).expect("integers"));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let mut exact: BTreeMap<i64, (u64, BTreeSet<u32>)> = BTreeMap::new();
        for (rank, numbers) in (0..).zip(&numbers) {
            for &number in numbers {
                let entry = exact.entry(number).or_default();
                entry.0 += 1;
                entry.1.insert(rank);
            }
        }
        for answer in answers(&filter("top", k), &leaves, &shapes, TopK::from_values) {
            let entries = answer.entries();
            prop_assert_eq!(entries.len(), exact.len().min(k as usize));
            for (entry, (number, (times, ranks))) in entries.iter().zip(exact.iter().rev()) {
                prop_assert_eq!(entry.number, TopNumber::Signed(*number));
                prop_assert_eq!(entry.count, *times);
                prop_assert!(entry.ranks.iter().eq(ranks.iter().copied()));
            }
        }
    }

    #[test]
    fn histograms_count_exactly(
        numbers in doubles(), shapes in shapes(), bins in 2_u32..100, is_fixed: bool,
    ) {
        let sketch = |numbers: &Vec<f64>, _| {
            let empty = match is_fixed {
                true => Histogram::fixed(-500.0, 1000.0 / 3.0, bins),
                false => Histogram::self_choosing(bins),
            };
            let mut sketch = empty.expect("parameters");
            numbers.iter().for_each(|&number| sketch.add(number));
            sketch.into_values()
        };
        let leaves = leaves(&numbers, |numbers| numbers.clone(), sketch);
        let spec = match is_fixed {
            true => filter("histogram", (-500.0_f64, 1000.0_f64 / 3.0, bins)),
            false => filter("histogram", bins),
        };
        let answers = answers(&spec, &leaves, &shapes, Histogram::from_values);
        for answer in &answers {
            prop_assert_eq!(answer, &answers[0]);
        }
        let numbers = numbers.concat();
        prop_assert_eq!(answers[0].count(), numbers.len() as u64);
        prop_assert!(answers[0].bins().len() <= bins as usize);
        for bin in answers[0].bins() {
            let inside = numbers.iter().filter(|&&n| bin.low <= n && n < bin.high).count();
            prop_assert_eq!(bin.count, inside as u64);
        }
    }

    #[test]
    fn unions_hold_the_first_of_all(
        texts in proptest::collection::vec(proptest::collection::vec("[a-c]{0,3}", 0..12), 1..24),
        shapes in shapes(), most in 1_u32..60,
    ) {
        let sketch = |texts: &Vec<String>, _| {
            let mut set = ItemSet::new(most).expect("parameters");
            texts.iter().for_each(|text| set.add(text));
            set.into_values()
        };
        let leaves = leaves(&texts, |texts| Values::new().strings(texts), sketch);
        let exact: BTreeSet<_> = texts.concat().into_iter().collect();
        for answer in answers(&filter("union", most), &leaves, &shapes, ItemSet::from_values) {
            let found = answer.iter().filter_map(Item::text);
            prop_assert!(found.eq(exact.iter().take(most as usize)));
            prop_assert_eq!(answer.is_complete(), exact.len() <= most as usize);
        }
    }

    #[test]
    fn prefix_trees_are_that_of_all_stacks(
        stacks in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec("[a-c]", 0..6), 1..3), 1..24),
        shapes in shapes(), most in prop_oneof![Just(4096_u32), 1_u32..30],
    ) {
        let one = |stacks: &Vec<Vec<String>>, rank| {
            let mut tree = PrefixTree::new(most).expect("parameters");
            stacks.iter().for_each(|stack| tree.add(stack, rank));
            tree.into_values()
        };
        let raw = |stacks: &Vec<Vec<String>>| {
            stacks.iter().fold(Values::new(), |values, stack| values.strings(stack))
        };
        let leaves = leaves(&stacks, raw, one);
        let mut all = PrefixTree::new(most).expect("parameters");
        for (rank, stacks) in (0..).zip(&stacks) {
            stacks.iter().for_each(|stack| all.add(stack, rank));
        }
        let all = all.into_values();
        let spec = filter("prefix-tree", most);
        for answer in answers(&spec, &leaves, &shapes, PrefixTree::from_values) {
            prop_assert!(answer.into_values().as_ref() == all.as_ref());
        }
        assert_nodes(&PrefixTree::from_values(all.as_ref()).expect("its own"), &stacks);
    }

    #[test]
    fn bits_are_those_of_all(
        words in (1_usize..24, 0_usize..9).prop_flat_map(|(leaves, length)| {
            proptest::collection::vec(proptest::collection::vec(any::<u16>(), length), leaves)
        }),
        shapes in shapes(),
    ) {
        let leaves: Vec<_> = (0..).zip(&words).map(|(rank, words)| leaf(rank, words.clone())).collect();
        let fold = |combine: fn(u16, u16) -> u16| {
            let both = |a: Vec<u16>, b: &Vec<u16>| {
                a.iter().zip(b).map(|(&a, &b)| combine(a, b)).collect::<Vec<_>>()
            };
            words.iter().skip(1).fold(words[0].clone(), both)
        };
        for (name, exact) in [("bit-and", fold(|a, b| a & b)), ("bit-or", fold(|a, b| a | b))] {
            for shape in &shapes {
                let answer = tree_of(&name.into(), &leaves, shape).expect("an answer");
                prop_assert_eq!(answer.values().array::<u16>(0), Ok(&exact[..]));
            }
        }
    }
}

/// Every node stands for exactly the stacks that begin with its path.
fn assert_nodes(tree: &PrefixTree, stacks: &[Vec<Vec<String>>]) {
    let mut path: Vec<&[u8]> = Vec::new();
    for node in tree.nodes() {
        path.truncate(node.depth);
        path.push(node.name);
        let begins = |stack: &&Vec<String>| {
            stack.len() >= path.len()
                && stack.iter().zip(&path).all(|(frame, name)| frame.as_bytes() == *name)
        };
        let of_rank = |stacks: &Vec<Vec<String>>| stacks.iter().filter(begins).count() as u64;
        let counts: Vec<u64> = stacks.iter().map(of_rank).collect();
        assert_eq!(node.stacks, counts.iter().sum::<u64>());
        let ranks = (0_u32..).zip(&counts).filter(|(_, count)| **count > 0).map(|(rank, _)| rank);
        assert!(node.ranks.iter().eq(ranks));
    }
}
