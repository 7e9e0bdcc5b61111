//! Sketches over real trees: some back-ends send raw values and some their own sketches, and the
//! front-end's answer keeps its bound against all values at fan-outs 1, 2 and 8.

#[path = "support/samples.rs"]
mod samples;
use std::collections::BTreeMap;

use crate::support::{HANG, Links, network, tags};
use sapwood::{
    Answer, Distinct, FilterSpec, HeavyHitters, Histogram, IntoValues, Item, ItemSet, Kll, Network,
    PrefixTree, Quantiles, Rank, TopK, TopNumber, Values,
};

/// Eight back-ends each: below a chain, below pairs, and below the front-end alone.
const SHAPES: [&str; 3] = ["1x1x8", "2^3", "8"];
const RANKS: std::ops::Range<Rank> = 0..8;

fn ask(network: &Network, name: &str, parameters: Values) -> Answer {
    let filter = FilterSpec { name: name.into(), parameters };
    let mut stream = network.stream(&network.everyone()).up(filter).open().unwrap();
    stream.broadcast(tags::SAMPLE, name).unwrap();
    let answer = stream.recv_timeout(HANG).unwrap();
    assert!(answer.is_complete(), "{name}: {answer:?}");
    stream.close().unwrap();
    answer
}

fn on_all_shapes(story: impl Fn(&Network)) {
    for shape in SHAPES {
        let (network, _) = network(shape, Links::Unix);
        story(&network);
        network.close().unwrap();
    }
}

fn all_doubles() -> Vec<f64> {
    let mut doubles: Vec<f64> = RANKS.flat_map(samples::doubles).collect();
    doubles.sort_by(f64::total_cmp);
    doubles
}

fn all_lines() -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    RANKS.flat_map(samples::lines).for_each(|line| *lines.entry(line).or_default() += 1);
    lines
}

#[test]
fn quantiles_of_all_back_ends_keep_their_bounds() {
    let sorted = all_doubles();
    let last = sorted.len() - 1;
    on_all_shapes(|network| {
        let answer = ask(network, "quantiles", Values::new());
        let quantiles = Quantiles::from_values(answer.value().unwrap()).unwrap();
        let answer = ask(network, "kll", 200.into_values());
        let kll = Kll::from_values(answer.value().unwrap()).unwrap();
        assert_eq!((quantiles.count(), kll.count()), (2400, 2400));
        assert!(kll.rank_error(0.01) < 0.04 * 2400.0, "{}", kll.rank_error(0.01));
        let error = kll.rank_error(1e-9) as usize + 1;
        for percent in 0..=100 {
            let q = f64::from(percent) / 100.0;
            let place = (q * last as f64) as usize;
            let found = quantiles.quantile(q).unwrap();
            assert!((found / sorted[place] - 1.0).abs() <= 0.01 + 1e-12, "{percent} %: {found}");
            let range = sorted[place.saturating_sub(error)]..=sorted[(place + error).min(last)];
            let found = kll.quantile(q).unwrap();
            assert!(range.contains(&found), "{percent} %: {found} of {range:?}");
        }
    });
}

#[test]
fn a_wave_of_kll_is_the_same_again_over_the_same_tree() {
    let (first, _) = network("2^3", Links::Unix);
    let (second, _) = network("2^3", Links::Unix);
    let answers = [&first, &second].map(|network| ask(network, "kll", 200.into_values()));
    let [first_values, second_values] = answers.each_ref().map(|answer| answer.value().unwrap());
    assert_eq!(first_values, second_values);
    first.close().unwrap();
    second.close().unwrap();
}

#[test]
fn lines_are_counted_and_told_apart() {
    let lines = all_lines();
    on_all_shapes(|network| {
        let answer = ask(network, "distinct", Values::new());
        let distinct = Distinct::from_values(answer.value().unwrap()).unwrap();
        assert_eq!(distinct.estimate(), lines.len() as f64);
        let answer = ask(network, "heavy-hitters", 20.into_values());
        let hitters = HeavyHitters::from_values(answer.value().unwrap()).unwrap();
        assert_eq!(hitters.count(), 480);
        assert!(hitters.error() <= 480 / 21);
        let first = &hitters.hitters()[0];
        assert_eq!(first.item.text(), Some("disk full"));
        assert!((first.at_least..=first.at_most).contains(&lines["disk full"]), "{first:?}");
        let answer = ask(network, "union", 1000.into_values());
        let set = ItemSet::from_values(answer.value().unwrap()).unwrap();
        assert!(set.is_complete());
        assert!(set.iter().filter_map(Item::text).eq(lines.keys().map(String::as_str)));
    });
}

#[test]
fn the_largest_numbers_are_named_with_their_ranks_and_all_are_in_bins() {
    let sorted = all_doubles();
    on_all_shapes(|network| {
        let answer = ask(network, "top", 3.into_values());
        let top = TopK::from_values(answer.value().unwrap()).unwrap().entries();
        assert_eq!(top.len(), 3);
        for (entry, &exact) in top.iter().zip(sorted.iter().rev()) {
            assert_eq!(entry.number, TopNumber::Double(exact));
            assert!(entry.ranks.iter().all(|rank| samples::doubles(rank).contains(&exact)));
        }
        let answer = ask(network, "histogram", 32.into_values());
        let histogram = Histogram::from_values(answer.value().unwrap()).unwrap();
        assert_eq!(histogram.count(), 2400);
        for bin in histogram.bins() {
            let inside = sorted.iter().filter(|&&n| bin.low <= n && n < bin.high).count();
            assert_eq!(bin.count, inside as u64, "{bin:?}");
        }
    });
}

#[test]
fn everybody_is_found_where_he_stands() {
    on_all_shapes(|network| {
        let answer = ask(network, "prefix-tree", Values::new());
        let tree = PrefixTree::from_values(answer.value().unwrap()).unwrap();
        assert_eq!(
            tree.to_string(),
            "main: 0-7\n  solve: 0-7\n    send: 1,3,5,7\n      pack: 1,3,5,7\n    \
             wait: 0,2,4,6\nthread: 0-7\n  poll: 0-7\n"
        );
        assert_eq!(tree.stacks(), 16);
    });
}

#[test]
fn bits_of_large_arrays_are_combined() {
    on_all_shapes(|network| {
        for (filter, word) in [("bit-and", 0xFF00), ("bit-or", 0xFFFF)] {
            let answer = ask(network, filter, Values::new());
            let words = answer.value().unwrap().array::<u64>(0).unwrap();
            assert_eq!(words.len(), 300_000);
            assert!(words.iter().all(|&found| found == word), "{filter}");
        }
    });
}

#[test]
fn a_sketch_of_other_parameters_fails_the_wave_with_a_reason() {
    let (network, _) = network("2^3", Links::Unix);
    let filter = FilterSpec { name: "top".into(), parameters: 4.into_values() };
    let mut stream = network.stream(&network.everyone()).up(filter).open().unwrap();
    stream.broadcast(tags::SAMPLE, "top").unwrap();
    let answer = stream.recv_timeout(HANG);
    let text = match &answer {
        Ok(answer) => format!("{:?} {:?}", answer.value().err(), answer.missing),
        Err(error) => error.to_string(),
    };
    assert!(text.contains("k = 3 for 4"), "{text}");
    network.close().unwrap();
}
