//! Histograms, classes, outliers and values of ranks that were merged in trees, against what the
//! ranks' own profiles say when they are all in one place.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{busy, key, program, round};
use proptest::prelude::*;
use proptest::sample::Index;
use sapwood_filter::{Emitter, FilterError, Registry, WaveRef};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef};
use sapwood_profile::{
    Classification, Counts, Deviations, Extremes, HistogramSketches, Limits, Measure, Medians,
    Metric, Part, RANK_METRICS, RankProfile, RankValues, Round, Scheme, push_limits, push_medians,
    read_limits, read_medians, register,
};

/// Merges packets by one process's filter.
fn node<P: Part>(packets: &[Packet]) -> Result<Packet, FilterError> {
    let mut filter = register(Registry::empty()).make(P::FILTER, ValuesRef::default())?;
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, 1);
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &packets,
        contributors: contributors.as_ref(),
        rank: 1000,
        is_root: false,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out)?;
    let (emission, values) = out.emissions().next().expect("a wave becomes one packet");
    Ok(Packet::new(1, emission.tag, values.to_values()))
}

/// Merges what leaves of `per_leaf` ranks make, level by level in groups of `fan_out`.
fn in_tree<P: Part>(
    profiles: &[RankProfile],
    (per_leaf, fan_out): (usize, usize),
    leaf: impl Fn(&[RankProfile]) -> P,
) -> P {
    let encoded = |profiles: &[RankProfile]| Packet::new(1, 100, leaf(profiles).encode());
    let mut level: Vec<Packet> = profiles.chunks(per_leaf).map(encoded).collect();
    loop {
        let merge = |packets: &[Packet]| node::<P>(packets).expect("other ranks");
        if fan_out == 1 {
            // A chain of processes above the one that has all leaves.
            let root = merge(&level);
            return P::decode(merge(&[root]).values()).expect("the filter's own packet");
        }
        level = level.chunks(fan_out).map(merge).collect();
        if level.len() == 1 {
            return P::decode(level[0].values()).expect("the filter's own packet");
        }
    }
}

const FAN_OUTS: [usize; 3] = [1, 2, 8];

/// Every measure of every event of a program, and one that no rank has.
fn measures(profiles: &[RankProfile]) -> Vec<Measure> {
    let events: BTreeSet<_> = profiles.iter().flat_map(|profile| profile.events.keys()).collect();
    let mut measures: Vec<Measure> = events
        .into_iter()
        .flat_map(|event| Metric::ALL.map(|metric| Measure { event: event.clone(), metric }))
        .collect();
    let event = sapwood_profile::EventKey::Region("no rank has this".into());
    measures.push(Measure { event, metric: Metric::TimeNs });
    measures
}

fn values(profiles: &[RankProfile], measure: &Measure) -> Vec<(u32, u64)> {
    let value = |profile: &RankProfile| Some((profile.mpi_rank, measure.value(profile)?));
    profiles.iter().filter_map(value).collect()
}

/// The bin of a value, in exact arithmetic of another kind than the filter's.
fn bin(value: u64, low: u64, high: u64, bins: u32) -> usize {
    let edge = |bin: u32| u128::from(high - low) * u128::from(bin);
    let above = |bin: &u32| u128::from(value - low) * u128::from(bins) >= edge(*bin);
    if value == high { bins as usize - 1 } else { (1..bins).take_while(above).count() }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[(values.len() - 1) / 2]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn three_phases_give_the_histogram_of_the_ranks_own_values(
        profiles in program(1..24), per_leaf in 1_usize..5, bins in 1_u32..40,
    ) {
        let measures = measures(&profiles);
        let mut first = None;
        for fan_out in FAN_OUTS {
            let shape = (per_leaf, fan_out);
            let extremes = in_tree(&profiles, shape, |ranks| Extremes::of(ranks, &measures));
            let asked = push_limits(Values::new(), extremes.limits(|_| bins).iter());
            let limits = read_limits(asked.as_ref(), 0).expect("as they were sent");
            let counts = in_tree(&profiles, shape, |ranks| Counts::of(ranks, &limits, |_| 0));
            prop_assert_eq!(counts.histograms().count(), measures.len() - 1);
            for (limits, counts) in counts.histograms() {
                let values = values(&profiles, &limits.measure);
                let low = values.iter().map(|&(_, value)| value).min();
                let high = values.iter().map(|&(_, value)| value).max();
                prop_assert_eq!((Some(limits.low), Some(limits.high)), (low, high));
                let mut expected = vec![0; bins as usize];
                for (_, value) in values {
                    expected[bin(value, limits.low, limits.high, bins)] += 1;
                }
                prop_assert_eq!(&counts.bins, &expected);
                prop_assert_eq!((counts.under, counts.over), (0, 0));
            }
            let bytes = counts.encode().as_ref().body().to_vec();
            prop_assert_eq!(first.get_or_insert(bytes.clone()), &bytes, "the same in every tree");
        }
    }

    #[test]
    fn one_phase_counts_the_same_ranks_and_its_bins_hold_them(
        profiles in program(1..24), per_leaf in 1_usize..5,
    ) {
        let measures = measures(&profiles);
        for fan_out in FAN_OUTS {
            let merged = in_tree(&profiles, (per_leaf, fan_out), |ranks| {
                HistogramSketches::of(ranks, &measures)
            });
            prop_assert_eq!(&merged, &HistogramSketches::of(&profiles, &measures));
            for (measure, sketch) in merged.sketches() {
                let values = values(&profiles, measure);
                prop_assert_eq!(sketch.count(), values.len() as u64);
                for bin in sketch.bins() {
                    let inside = |&&(_, value): &&(u32, u64)| {
                        (bin.low..bin.high).contains(&(value as f64))
                    };
                    prop_assert_eq!(bin.count, values.iter().filter(inside).count() as u64);
                }
                // The three phases put as many ranks between the same two values.
                let extremes = Extremes::of(&profiles, std::slice::from_ref(measure));
                let limits = extremes.limits(|_| 1);
                let counts = Counts::of(&profiles, &limits, |_| 0);
                let three: u64 = counts.histograms().flat_map(|(_, one)| &one.bins).sum();
                prop_assert_eq!(three, sketch.count());
            }
        }
    }

    #[test]
    fn classes_hold_the_ranks_that_agree_and_their_statistics(
        profiles in program(1..24).prop_flat_map(busy), per_leaf in 1_usize..5, scheme in 0_usize..4,
    ) {
        let scheme = || match scheme {
            0 => Scheme::all(),
            1 => Scheme::mpi(),
            2 => Scheme::depth(1),
            _ => Scheme::by("short", |event| Some(event.name()).filter(|name| name.len() < 3)),
        };
        let chosen = |profile: &RankProfile| -> BTreeSet<String> {
            let names = profile.events.keys().filter(|event| {
                let is_region = matches!(event, sapwood_profile::EventKey::Region(_));
                match scheme().name() {
                    "all" => true,
                    "mpi" => !is_region,
                    "depth:1" => is_region,
                    _ => event.name().len() < 3,
                }
            });
            names.map(|event| event.name().into_owned()).collect()
        };
        let mut expected: BTreeMap<BTreeSet<String>, Vec<RankProfile>> = BTreeMap::new();
        for profile in &profiles {
            expected.entry(chosen(profile)).or_default().push(profile.clone());
        }
        for fan_out in FAN_OUTS {
            let merged = in_tree(&profiles, (per_leaf, fan_out), |ranks| {
                Classification::of(ranks, &scheme())
            });
            prop_assert_eq!(merged.classes().count(), expected.len());
            prop_assert_eq!((merged.left_out(), merged.left_out_ranks().len()), (0, 0));
            for (id, class) in merged.classes() {
                let names: BTreeSet<String> = class.names.iter().cloned().collect();
                let members = &expected[&names];
                prop_assert_eq!(&class.round, &round(members));
                for member in members {
                    prop_assert_eq!(scheme().class(member), id);
                }
            }
        }
    }

    #[test]
    fn counts_of_a_class_are_those_of_its_ranks_alone(
        profiles in program(1..24), per_leaf in 1_usize..5,
    ) {
        let scheme = Scheme::all();
        let classes = Classification::of(&profiles, &scheme);
        let limits: Vec<Limits> = classes.classes().flat_map(|(group, class)| {
            class.round.events().iter().map(move |(event, statistics)| Limits {
                group,
                measure: Measure { event: event.clone(), metric: Metric::TimeNs },
                low: statistics.time_ns.min(),
                high: statistics.time_ns.max(),
                bins: 4,
            })
        }).collect();
        let counts = in_tree(&profiles, (per_leaf, 2), |ranks| {
            Counts::of(ranks, &limits, |profile| scheme.class(profile))
        });
        for (limits, counts) in counts.histograms() {
            // A class is of names: one of its ranks may have a function for other sizes only.
            let has_event =
                |one: &&RankProfile| one.events.contains_key(&limits.measure.event);
            let members = profiles.iter().filter(|one| scheme.class(one) == limits.group);
            let members = members.filter(has_event).count();
            prop_assert_eq!(counts.bins.iter().sum::<u64>(), members as u64);
        }
    }

    #[test]
    fn outliers_are_the_furthest_from_the_median_and_hosts_have_their_sums(
        profiles in program(1..40), per_leaf in 1_usize..5, most in 1_usize..6,
    ) {
        // As doubles, so that what the sketches hold is what the ranks have.
        let mut profiles = profiles;
        for counters in profiles.iter_mut().flat_map(|profile| profile.events.values_mut()) {
            counters.time_ns &= (1 << 50) - 1;
        }
        let event = |measure: &Measure| measure.metric == Metric::TimeNs;
        let measures: Vec<Measure> = measures(&profiles).into_iter().filter(event).collect();
        for fan_out in FAN_OUTS {
            let shape = (per_leaf, fan_out);
            let medians = in_tree(&profiles, shape, |ranks| Medians::of(ranks, &measures, 1));
            let found: Vec<(Measure, u64)> =
                medians.medians().map(|(measure, median)| (measure.clone(), median)).collect();
            let asked = push_medians(Values::new(), &found, 3);
            prop_assert_eq!(read_medians(asked.as_ref(), 0), Ok((found.clone(), 3)));
            let deviations =
                in_tree(&profiles, shape, |ranks| Deviations::of(ranks, &found, most, 1));
            for (measure, spread) in deviations.spreads() {
                let values = values(&profiles, measure);
                let middle = median(values.iter().map(|&(_, value)| value).collect());
                prop_assert_eq!(spread.median, middle);
                let distances = values.iter().map(|&(_, value)| value.abs_diff(middle));
                prop_assert_eq!(spread.median_distance(), Some(median(distances.collect())));
                let mut ranks = values.clone();
                ranks.sort_by_key(|&(rank, value)| (u64::MAX - value.abs_diff(middle), rank));
                ranks.truncate(most);
                let came = spread.furthest().iter().map(|one| (one.rank, one.value));
                prop_assert_eq!(came.collect::<Vec<_>>(), ranks);

                let mut hosts: BTreeMap<&str, (u32, u128)> = BTreeMap::new();
                for profile in &profiles {
                    let Some(value) = measure.value(profile) else { continue };
                    let host = hosts.entry(&profile.host).or_default();
                    *host = (host.0 + 1, host.1 + u128::from(value));
                }
                let came = medians.hosts(measure).map(|(host, sum)| (host, (sum.ranks, sum.sum)));
                prop_assert_eq!(came.collect::<BTreeMap<_, _>>(), hosts);
            }
        }
    }

    #[test]
    fn values_of_ranks_are_theirs(
        profiles in program(1..24).prop_flat_map(busy), per_leaf in 1_usize..5,
    ) {
        for fan_out in FAN_OUTS {
            let merged = in_tree(&profiles, (per_leaf, fan_out), RankValues::of);
            prop_assert_eq!(merged.ranks_per_bin(), 1);
            for profile in &profiles {
                let mut alone = Round::new(profile.world_size);
                alone.add(profile).expect("a rank");
                let load = alone.load().map(|load| (load.mpi_ppm.max(), load.compute_ns.max()));
                let (ppm, compute) = load.unwrap_or((0, 0));
                let bytes = profile.events.values().fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
                for (metric, value) in [ppm, compute, bytes].into_iter().enumerate() {
                    let bins = merged.bins(metric, profile.world_size);
                    prop_assert_eq!(bins.len(), profiles.len());
                    let expected = Some((value as f64, value as f64));
                    prop_assert_eq!(bins[profile.mpi_rank as usize], expected, "{}", RANK_METRICS[metric]);
                }
            }
        }
    }

    #[test]
    fn a_rank_that_came_twice_fails_the_wave(profiles in program(1..4)) {
        let twice = |part: Values| {
            let packet = Packet::new(1, 100, part);
            [packet.clone(), packet]
        };
        prop_assert!(node::<Extremes>(&twice(Extremes::of(&profiles, &[]).encode())).is_err());
        prop_assert!(node::<Counts>(&twice(Counts::of(&profiles, &[], |_| 0).encode())).is_err());
        let classes = Classification::of(&profiles, &Scheme::all());
        prop_assert!(node::<Classification>(&twice(classes.encode())).is_err());
        prop_assert!(node::<Medians>(&twice(Medians::of(&profiles, &[], 0).encode())).is_err());
        prop_assert!(node::<RankValues>(&twice(RankValues::of(&profiles).encode())).is_err());
    }

    #[test]
    fn a_changed_byte_makes_no_reader_panic(
        profiles in program(1..4).prop_flat_map(busy),
        events in proptest::collection::vec(key(), 0..3),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
    ) {
        let mut measures = measures(&profiles);
        measures.extend(events.into_iter().map(|event| Measure { event, metric: Metric::Bytes }));
        let extremes = Extremes::of(&profiles, &measures);
        let limits = extremes.limits(|_| 3);
        let medians = Medians::of(&profiles, &measures, 0);
        let middles: Vec<_> =
            medians.medians().map(|(measure, median)| (measure.clone(), median)).collect();
        let all = [
            extremes.encode(),
            Counts::of(&profiles, &limits, |_| 0).encode(),
            HistogramSketches::of(&profiles, &measures).encode(),
            Classification::of(&profiles, &Scheme::all()).encode(),
            medians.encode(),
            Deviations::of(&profiles, &middles, 4, 0).encode(),
            RankValues::of(&profiles).encode(),
        ];
        for part in all {
            let (format, mut body) = part.into_parts();
            prop_assert!(read(ValuesRef::new(format.as_ref(), body.as_bytes())), "its own packet");
            for (at, byte) in &changes {
                *at.get_mut(body.as_mut_bytes()) = *byte;
            }
            if let Ok(values) = ValuesRef::parse(format.as_ref(), body.as_bytes()) {
                read(values);
            }
        }
    }
}

/// Whether values are one of the parts; what can be read can be sent, merged and asked about.
fn read(values: ValuesRef<'_>) -> bool {
    fn again<P: Part>(values: ValuesRef<'_>) -> bool {
        let Ok(part) = P::decode(values) else { return false };
        assert!(P::decode(part.encode().as_ref()).is_ok(), "what was read can be sent");
        let mut twice = P::decode(values).expect("as before");
        let _ = twice.absorb(part);
        true
    }
    if let Ok(deviations) = Deviations::decode(values) {
        for (_, spread) in deviations.spreads() {
            let _ = spread.score(u64::MAX);
        }
    }
    if let Ok(values) = RankValues::decode(values) {
        assert!(values.bins(0, u32::MAX).len() <= 512);
    }
    again::<Extremes>(values)
        || again::<Counts>(values)
        || again::<HistogramSketches>(values)
        || again::<Classification>(values)
        || again::<Medians>(values)
        || again::<Deviations>(values)
        || again::<RankValues>(values)
}
