//! The analysis of the monitor in trees of real processes, at fan-outs 1, 2 and 8, against what the
//! synthetic ranks must have; with leaves that come late, die or hang between the phases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sapwood::{Hosts, Network, Program, RankSet, Registry, Topology, TransportKind};
use sapwood_bench::PROFILE_LEAF;
use sapwood_bench::synthetic::{profile, role};
use sapwood_monitor::analysis::{Head, HistogramWish, Inquiry, Selection, Wishes};
use sapwood_profile::{Classification, EventKey, Metric, Part, RankProfile, Round, Scheme};
use sapwood_report::Analysis;
use sapwood_report::record::Histogram;

/// A wait that gets this far hangs.
const HANG: Duration = Duration::from_secs(120);
const WORLD: u32 = 70;
const EVENTS: u32 = 20;
/// Of two bins and of twelve, of a function and of a region.
const WISHES: [&str; 2] = ["phase1/kernel8:time_ns,bins=12", "phase4/kernel4:calls,bins=2"];

/// One leaf below a chain, a binary tree of eight, a flat tree below each of two.
const SHAPES: [(u32, &str, u32); 3] = [(1, "1x1x1", 70), (2, "2^3", 9), (8, "8x2", 5)];

fn network(shape: &str, per_leaf: u32, faults: &[&str]) -> Network {
    let program = env!("CARGO_BIN_EXE_sapwood-bench");
    let numbers = [WORLD, per_leaf, EVENTS].map(|number| number.to_string());
    let mut leaf = Program::new(program).argument(PROFILE_LEAF);
    for word in numbers.iter().map(String::as_str).chain(faults.iter().copied()) {
        leaf = leaf.argument(word);
    }
    let topology = Topology::from_shape(&shape.parse().expect("a shape"), &Hosts::local());
    let filters = sapwood_profile::register(Registry::built_in());
    let builder = Network::builder(topology).node_program(program).registry(filters);
    builder.transport(TransportKind::Unix).back_end(leaf).open().expect("a tree")
}

fn inquiry(network: &Network) -> Inquiry {
    let wishes = WISHES.map(|wish| HistogramWish::read(wish).expect("a wish")).to_vec();
    let schemes = ["all", "mpi", "depth:1", "regex:^(io|edge)/"].map(str::to_owned).to_vec();
    let selection = Selection::of(wishes);
    Inquiry::open(network, Wishes { selection, schemes, outliers: 2 }).expect("streams")
}

fn profiles(round: u64) -> Vec<RankProfile> {
    (0..WORLD).map(|rank| profile(rank, WORLD, EVENTS, round)).collect()
}

fn begin(inquiry: &mut Inquiry, number: u64) {
    let mut round = Round::new(WORLD);
    profiles(number).iter().for_each(|profile| round.add(profile).expect("every rank once"));
    inquiry.begin(Head { world_size: WORLD, round: number, long_ns: u64::MAX }, &round);
}

/// Lets the tree work until all that was asked is answered, or named as missing.
fn until_done(network: &mut Network, inquiry: &mut Inquiry) -> Analysis {
    let deadline = Instant::now() + HANG;
    while inquiry.is_waiting() {
        assert!(Instant::now() < deadline, "a moment is never over: {:?}", inquiry.result());
        network.turn(Duration::from_millis(10)).expect("the tree goes on");
        inquiry.take();
    }
    inquiry.result().clone()
}

/// What a name has on the ranks that are there, by rank.
fn values(ranks: &[RankProfile], event: &str, metric: &str) -> Vec<(u32, u64)> {
    let metric = Metric::ALL.into_iter().find(|one| one.name() == metric).expect("a metric");
    let value = |profile: &RankProfile| {
        let mut events = profile.events.iter();
        let (_, counters) = events.find(|(key, _)| key.name() == event)?;
        Some((profile.mpi_rank, counters.metric(metric)))
    };
    ranks.iter().filter_map(value).collect()
}

fn check_histogram(histogram: &Histogram, ranks: &[RankProfile]) {
    let values = values(ranks, &histogram.event, &histogram.metric);
    let bins = &histogram.bins;
    let (low, high) = (bins.low, bins.high);
    let count = bins.counts.len();
    let mut expected = vec![0; count];
    for &(_, value) in &values {
        let place = if histogram.method == "sketch" {
            // The width is a power of two, so that nothing is rounded.
            ((value as f64 - low) / ((high - low) / count as f64)) as usize
        } else if low == high {
            count
        } else {
            (value - low as u64) as usize * count / (high - low) as usize
        };
        expected[place.min(count - 1)] += 1;
    }
    assert_eq!(bins.counts, expected, "{histogram:?}");
    let extremes = values.iter().map(|&(_, value)| value as f64);
    if histogram.method == "three-phase" {
        assert_eq!(Some(low), extremes.clone().reduce(f64::min), "{histogram:?}");
        assert_eq!(Some(high), extremes.reduce(f64::max), "{histogram:?}");
    } else {
        assert!(extremes.clone().all(|value| low <= value && value < high), "{histogram:?}");
    }
}

/// By what the ranks of a class are alike, under each scheme.
fn likeness(scheme: &str, profile: &RankProfile) -> BTreeSet<String> {
    let names = profile.events.keys().map(|event| event.name().into_owned());
    match scheme {
        "all" => names.collect(),
        "mpi" => names.filter(|name| name.starts_with("MPI_")).collect(),
        "depth:1" => {
            let regions = names.filter(|name| !name.starts_with("MPI_"));
            regions.map(|name| name.split('/').next().unwrap_or("").to_owned()).collect()
        }
        _ => names.filter(|name| name.starts_with("io/") || name.starts_with("edge/")).collect(),
    }
}

fn check_classes(analysis: &Analysis, ranks: &[RankProfile]) {
    assert_eq!(analysis.classifications.len(), 4);
    for section in &analysis.classifications {
        let mut expected: BTreeMap<BTreeSet<String>, Vec<RankProfile>> = BTreeMap::new();
        for profile in ranks {
            let key = likeness(&section.scheme, profile);
            expected.entry(key).or_default().push(profile.clone());
        }
        assert_eq!(section.classes.len(), expected.len(), "{}", section.scheme);
        assert_eq!((section.left_out, section.left_out_ranks.as_str()), (0, ""));
        for class in &section.classes {
            let members = &expected[&class.names.iter().cloned().collect()];
            let set: RankSet = members.iter().map(|profile| profile.mpi_rank).collect();
            assert_eq!(class.ranks, set.to_string(), "{}", section.scheme);
            let mut round = Round::new(WORLD);
            members.iter().for_each(|profile| round.add(profile).expect("every rank once"));
            assert_eq!(class.events.len(), round.events().len());
            for (event, (_, statistics)) in class.events.iter().zip(round.events()) {
                assert_eq!(event.time_ns.sum, statistics.time_ns.sum());
                assert_eq!(event.calls.max_rank, statistics.count.max_rank());
            }
            assert!(!class.histograms.is_empty(), "{}", section.scheme);
            class.histograms.iter().for_each(|histogram| check_histogram(histogram, members));
        }
        let name = section.scheme.as_str();
        assert_eq!((name, section.reduction_factor), (name, ratio(carried(name, ranks))));
    }
}

/// The scheme of this name, whose expression is that of `inquiry`.
fn scheme_of(name: &str) -> Scheme {
    match name {
        "all" => Scheme::all(),
        "mpi" => Scheme::mpi(),
        "depth:1" => Scheme::depth(1),
        _ => Scheme::by(name, |event| {
            let name = event.name();
            let is_chosen = name.starts_with("io/") || name.starts_with("edge/");
            is_chosen.then_some(name)
        }),
    }
}

/// The bytes of the ranks' rows (28 for an event, and the names of regions), and those of the
/// packet of their classes, made without a tree.
fn carried(scheme: &str, ranks: &[RankProfile]) -> [u64; 2] {
    let events = ranks.iter().flat_map(|profile| profile.events.keys());
    let row = |event: &EventKey| match event {
        EventKey::Region(name) => 28 + name.len() as u64,
        EventKey::Function { .. } => 28,
    };
    let classes = Classification::of(ranks, &scheme_of(scheme)).encode();
    [events.map(row).sum(), classes.as_ref().body().len() as u64]
}

fn ratio([rows, classes]: [u64; 2]) -> f64 {
    rows as f64 / classes as f64
}

/// The cumulated factor is that of all bytes of these moments, which are all that there were.
fn check_cumulated(analysis: &Analysis, moments: &[u64]) {
    for section in &analysis.classifications {
        let name = section.scheme.as_str();
        let mut sum = [0, 0];
        for &moment in moments {
            let [rows, classes] = carried(name, &profiles(moment));
            sum = [sum[0] + rows, sum[1] + classes];
        }
        assert_eq!((name, section.cumulated_factor), (name, ratio(sum)), "{moments:?}");
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

fn check_outliers(analysis: &Analysis, ranks: &[RankProfile]) {
    for wish in ["phase1/kernel8", "phase4/kernel4"] {
        let metric = if wish == "phase1/kernel8" { "time_ns" } else { "calls" };
        let values = values(ranks, wish, metric);
        let middle = median(values.iter().map(|&(_, value)| value).collect());
        let distances = values.iter().map(|&(_, value)| value.abs_diff(middle));
        let deviation = 1.4826 * median(distances.collect()) as f64;
        let mut far = values;
        far.sort_by_key(|&(rank, value)| (u64::MAX - value.abs_diff(middle), rank));
        let named = analysis.outliers.iter().filter(|one| one.event == wish && one.rank.is_some());
        let named: Vec<_> = named.collect();
        assert_eq!(named.len(), 2);
        for (one, &(rank, value)) in named.iter().zip(&far) {
            assert_eq!(
                (one.rank, one.value, one.median),
                (Some(rank), value as f64, middle as f64)
            );
            let score = (value as f64 - middle as f64) / deviation;
            assert!((one.score - score).abs() < 1e-9 * score.abs(), "{one:?}");
            assert_eq!(one.host, format!("node{}", rank / 64));
        }
    }
}

fn check_rank_values(analysis: &Analysis, ranks: &[RankProfile]) {
    let section = |name: &str| {
        let mut sections = analysis.rank_values.iter();
        sections.find(|section| section.metric == name).expect("a section")
    };
    let [ppm, compute, bytes] = ["mpi_ppm", "compute_ns", "bytes"].map(section);
    assert_eq!((ppm.ranks_per_bin, ppm.mean.len()), (1, WORLD as usize));
    for rank in 0..WORLD {
        let at = rank as usize;
        let profile = ranks.iter().find(|profile| profile.mpi_rank == rank);
        let expected = profile.map(|profile| {
            let share = profile.time;
            let moved: u64 = profile.events.values().map(|counters| counters.bytes).sum();
            [share.mpi_ns * 1_000_000 / share.wall_ns, share.wall_ns - share.mpi_ns, moved]
        });
        for (number, section) in [ppm, compute, bytes].into_iter().enumerate() {
            let value = expected.map(|numbers| numbers[number] as f64);
            assert_eq!((section.mean[at], section.max[at]), (value, value), "rank {rank}");
        }
    }
}

/// Compares all sections with the profiles of the ranks that are in them.
fn check(analysis: &Analysis, ranks: &[RankProfile]) {
    assert_eq!(analysis.histograms.len(), 4, "two measures, two methods");
    analysis.histograms.iter().for_each(|histogram| {
        check_histogram(histogram, ranks);
        assert_eq!((histogram.under, histogram.over), (0, 0));
    });
    check_classes(analysis, ranks);
    check_outliers(analysis, ranks);
    check_rank_values(analysis, ranks);
}

/// The profiles without those of one leaf.
fn without(leaf: u32, per_leaf: u32, round: u64) -> Vec<RankProfile> {
    let profiles = profiles(round).into_iter();
    profiles.filter(|profile| profile.mpi_rank / per_leaf != leaf).collect()
}

fn ranks_of(leaf: u32, per_leaf: u32) -> String {
    RankSet::range(leaf * per_leaf, (leaf + 1) * per_leaf - 1).to_string()
}

#[test]
fn moments_that_are_under_way_together_give_the_truth_at_every_fan_out() {
    let mut ids = BTreeSet::new();
    for (fan_out, shape, per_leaf) in SHAPES {
        let mut network = network(shape, per_leaf, &[]);
        let mut inquiry = inquiry(&network);
        // All first phases are asked for before one is answered: what follows from each is asked
        // while the others are under way.
        (1..=3).for_each(|round| begin(&mut inquiry, round));
        let analysis = until_done(&mut network, &mut inquiry);
        assert_eq!((analysis.round, inquiry.skipped), (Some(3), 0), "fan-out {fan_out}");
        assert_eq!(analysis.missing, BTreeMap::new(), "fan-out {fan_out}");
        check(&analysis, &profiles(3));
        check_cumulated(&analysis, &[1, 2, 3]);
        let classes = analysis.classifications.iter().flat_map(|section| &section.classes);
        ids.insert(classes.map(|class| class.id).collect::<Vec<_>>());
        // One moment alone, later.
        begin(&mut inquiry, 9);
        let analysis = until_done(&mut network, &mut inquiry);
        check(&analysis, &profiles(9));
        check_cumulated(&analysis, &[1, 2, 3, 9]);
        drop(inquiry);
        network.close().expect("an end in order");
    }
    assert_eq!(ids.len(), 1, "classes have the same numbers in every tree");
    assert!(["coordinator", "io", "edge", "interior"].contains(&role(3)));
}

#[test]
fn no_more_moments_are_begun_than_a_leaf_keeps() {
    let mut network = network("2", 35, &[]);
    let mut inquiry = inquiry(&network);
    (1..=6).for_each(|round| begin(&mut inquiry, round));
    assert_eq!(inquiry.skipped, 2);
    assert_eq!(until_done(&mut network, &mut inquiry).round, Some(4));
    check(inquiry.result(), &profiles(4));
    drop(inquiry);
    network.close().expect("an end in order");
}

#[test]
fn a_leaf_that_dies_between_the_phases_is_named_and_the_others_are_counted() {
    for (fan_out, shape, per_leaf) in &SHAPES[1..] {
        let mut network = network(shape, *per_leaf, &["die:2:1:second"]);
        let mut inquiry = inquiry(&network);
        begin(&mut inquiry, 1);
        let analysis = until_done(&mut network, &mut inquiry);
        let lost = ranks_of(2, *per_leaf);
        assert_eq!(analysis.missing.get("histograms"), Some(&lost), "fan-out {fan_out}");
        let exact = analysis.histograms.iter().filter(|one| one.method == "three-phase");
        let wanted = exact.filter(|one| one.event == "phase1/kernel8");
        let counted: u64 = wanted.flat_map(|one| &one.bins.counts).sum();
        assert_eq!(counted, u64::from(WORLD - per_leaf), "fan-out {fan_out}");
        // From the next moment on it is missing everywhere.
        begin(&mut inquiry, 2);
        let analysis = until_done(&mut network, &mut inquiry);
        check(&analysis, &without(2, *per_leaf, 2));
        assert_eq!(analysis.missing.len(), 8, "{:?}", analysis.missing);
        assert!(analysis.missing.values().all(|ranks| *ranks == lost));
        drop(inquiry);
        network.close().expect("an end in order");
    }
}

#[test]
fn a_leaf_that_hangs_is_named_and_no_moment_waits_for_it_without_a_bound() {
    for (fan_out, shape, per_leaf) in &SHAPES[1..] {
        let mut network = network(shape, *per_leaf, &["hang:1:2:first"]);
        let mut inquiry = inquiry(&network);
        begin(&mut inquiry, 1);
        check(&until_done(&mut network, &mut inquiry), &profiles(1));
        (2..=3).for_each(|round| begin(&mut inquiry, round));
        let analysis = until_done(&mut network, &mut inquiry);
        let hung = ranks_of(1, *per_leaf);
        assert!(analysis.missing.values().all(|ranks| *ranks == hung), "fan-out {fan_out}");
        assert_eq!(analysis.missing.len(), 8, "fan-out {fan_out}: {:?}", analysis.missing);
        check(&analysis, &without(1, *per_leaf, 3));
        drop(inquiry);
        network.close().expect("the hung leaf is ended");
    }
}

#[test]
fn ranks_that_come_late_are_named_until_they_are_there() {
    for (fan_out, shape, per_leaf) in &SHAPES[1..] {
        let mut network = network(shape, *per_leaf, &["late:3:2:first"]);
        let mut inquiry = inquiry(&network);
        begin(&mut inquiry, 1);
        let analysis = until_done(&mut network, &mut inquiry);
        let late = ranks_of(3, *per_leaf);
        assert!(analysis.missing.values().all(|ranks| *ranks == late), "fan-out {fan_out}");
        check(&analysis, &without(3, *per_leaf, 1));
        begin(&mut inquiry, 2);
        let analysis = until_done(&mut network, &mut inquiry);
        assert_eq!(analysis.missing, BTreeMap::new(), "fan-out {fan_out}");
        check(&analysis, &profiles(2));
        drop(inquiry);
        network.close().expect("an end in order");
    }
}
