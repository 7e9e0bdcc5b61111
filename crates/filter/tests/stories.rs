//! What each filter makes of a wave.

use crate::harness::{TAG, leaf, make, node, transform};
use sapwood_filter::{
    Chain, EquivalenceClasses, Filter, FilterError, FilterSpec, Registry, Statistics, WaveRef,
};
use sapwood_packet::{Packet, RankSet, Values, ValuesRef};

#[test]
fn null_emits_every_packet_as_it_came() {
    for name in ["null", "pass"] {
        let mut filter = make(name);
        assert!(filter.is_pass());
        let packets = [leaf(0, "bark"), leaf(1, 7_i32), leaf(2, ())];
        let emitted = transform(&mut *filter, &packets, |emitted| {
            emitted.iter().map(|(_, values)| values.to_values()).collect::<Vec<_>>()
        });
        let emitted = emitted.expect("null takes anything");
        assert!(emitted.iter().map(Values::as_ref).eq(packets.iter().map(Packet::values)));
    }
}

#[test]
fn count_counts_back_ends_and_not_packets() {
    let left = node("count", &[leaf(0, "a"), leaf(1, 2_i32), leaf(2, ())]).expect("count");
    let all = node("count", &[left, leaf(3, 1.0_f64)]).expect("count");
    assert_eq!(all.values().scalar::<u64>(0), Ok(4));
}

#[test]
fn average_weighs_unequal_subtrees_by_their_back_ends() {
    let left = node("average", &[leaf(0, 1_i32), leaf(1, 2_i32), leaf(2, 6_i32)]).expect("ints");
    assert_eq!(left.values().scalar::<f64>(0), Ok(3.0));
    let all = node("average", &[left, leaf(3, 7_i32)]).expect("a mean beside an int");
    assert_eq!(all.values().scalar::<f64>(0), Ok(4.0));
}

#[test]
fn average_keeps_the_shape_of_several_values() {
    let send = |rank: u32| {
        let step = rank as u8;
        leaf(rank, Values::new().scalar(step).array(&[10_i16, 20]).large_array(&[0.5_f32]))
    };
    let all = node("average", &[send(1), send(2)]).expect("average");
    assert_eq!(all.format().to_string(), "%lf %alf %Alf");
    assert_eq!(all.values().scalar::<f64>(0), Ok(1.5));
    assert_eq!(all.values().array::<f64>(1), Ok(&[10.0, 20.0][..]));
    assert_eq!(all.values().array::<f64>(2), Ok(&[0.5][..]));
}

#[test]
fn average_refuses_strings_and_other_lengths() {
    let error = node("average", &[leaf(0, "x")]).expect_err("a string");
    assert_eq!(error.to_string(), "filter 'average' takes numbers and arrays of numbers, not '%s'");
    let error = node("average", &[leaf(0, [1_i32]), leaf(1, [1_i32, 2])]).expect_err("lengths");
    assert!(error.to_string().contains("'%ad[1]' and '%ad[2]'"), "{error}");
    assert!(node("average", &[leaf(0, 1_i32), leaf(1, (1_i32, 2_i32))]).is_err());
}

#[test]
fn concatenate_joins_in_rank_order() {
    let all = node("concatenate", &[leaf(2, [7_i32]), leaf(0, [1_i32, 2]), leaf(1, 5_i32)]);
    let all = all.expect("arrays and a scalar of one type");
    assert_eq!(all.format().to_string(), "%Ad %aud");
    assert_eq!(all.values().array::<i32>(0), Ok(&[1, 2, 5, 7][..]));
    assert_eq!(all.values().array::<u32>(1), Ok(&[2, 1, 1][..]));
}

#[test]
fn concatenate_merges_subtrees_whose_ranks_interleave() {
    let texts = |strings: &[&str]| Values::new().strings(strings);
    let even = [leaf(0, "bark"), leaf(2, texts(&["pith", "", "a longer one"])), leaf(4, "root")];
    let odd = [leaf(1, texts(&[])), leaf(3, "leaf")];
    let even = node("concatenate", &even).expect("strings");
    let odd = node("concatenate", &odd).expect("strings");
    let all = node("concatenate", &[odd, leaf(9, "last"), even]).expect("interleaved");
    let strings: Vec<_> = all.values().strings(0).expect("strings").collect();
    let expected = ["bark", "pith", "", "a longer one", "leaf", "root", "last"];
    assert!(strings.iter().copied().eq(expected.map(str::as_bytes)));
    assert_eq!(all.values().array::<u32>(1), Ok(&[1, 0, 3, 1, 1, 1][..]));
}

#[test]
fn concatenate_refuses_two_types_and_two_values() {
    let error = node("concatenate", &[leaf(0, 1_i32), leaf(1, 1_u32)]).expect_err("two types");
    assert!(matches!(error, FilterError::Mixed { .. }), "{error}");
    let error = node("concatenate", &[leaf(0, (1_i32, 2_i32))]).expect_err("two values");
    assert_eq!(error.to_string(), "filter 'concatenate' takes exactly one value, not '%d %d'");
    let error = node("concatenate", &[leaf(0, ())]).expect_err("no value");
    assert_eq!(error.to_string(), "filter 'concatenate' takes exactly one value, not 'no values'");
}

#[test]
fn concatenate_bounds_what_a_forged_contributor_set_costs() {
    let mut forged = leaf(0, 1_i32);
    forged.contributors = RankSet::range(0, u32::MAX);
    assert!(matches!(node("concatenate", &[forged]), Err(FilterError::Failed(_))));
}

#[test]
fn equivalence_tells_who_sent_what() {
    let left = [leaf(0, "linux 6.1"), leaf(1, "linux 5.4"), leaf(2, "linux 6.1")];
    let left = node("equivalence", &left).expect("classes");
    let all = [left, leaf(3, "linux 6.1"), leaf(4, 5_i32), leaf(5, "linux 5.4")];
    let all = node("equivalence", &all).expect("classes");
    let classes = EquivalenceClasses::read(all.values()).expect("own output");
    assert_eq!(
        classes.to_string(),
        "3 back-ends (0,2-3): '%s'\n2 back-ends (1,5): '%s'\n1 back-ends (4): '%d'"
    );
    assert_eq!(classes.classes()[0].values.as_ref().string(0), Ok("linux 6.1"));
    let odd_one = classes.class_of(4).expect("rank 4 sent something");
    assert_eq!(odd_one.values.as_ref().scalar::<i32>(0), Ok(5));
    assert!(classes.class_of(6).is_none());
}

#[test]
fn equivalence_takes_any_format_even_one_like_its_own() {
    let look_alike = Values::new().array(&[1_u32]).array(&[0_u32, 0]).strings(&["key"]);
    let all = node("equivalence", &[leaf(0, look_alike.clone()), leaf(1, ()), leaf(2, look_alike)]);
    let all = all.expect("a back-end's packet is never taken for classes");
    let classes = EquivalenceClasses::read(all.values()).expect("own output");
    assert_eq!(classes.classes()[0].ranks.to_string(), "0,2");
    assert!(classes.classes()[1].values.as_ref().is_empty());
}

#[test]
fn equivalence_is_read_from_its_own_output_only() {
    let error = EquivalenceClasses::read(leaf(0, 1_i32).values()).expect_err("an int");
    assert!(matches!(error, FilterError::Format { .. }), "{error}");
    let forged = Values::new().array(&[2_u32]).array(&[0_u32, 0]).strings(&["key"]);
    assert!(matches!(EquivalenceClasses::read(forged.as_ref()), Err(FilterError::Failed(_))));
}

#[test]
fn statistics_name_the_ranks_of_the_extremes() {
    let left = [leaf(0, [2.0_f64, 5.0]), leaf(1, [4.0_f64, 5.0]), leaf(2, [4.0_f64, 5.0])];
    let right = [leaf(3, [4.0_f64, 5.0]), leaf(4, [5.0_f64, 5.0]), leaf(5, [5.0_f64, 5.0])];
    let left = node("statistics", &left).expect("doubles");
    let right = node("statistics", &right).expect("doubles");
    let all = [right, left, leaf(6, [7.0_f64, 5.0]), leaf(7, [9.0_f64, 5.0])];
    let all = node("statistics", &all).expect("a mix of both");
    let statistics = Statistics::read(all.values()).expect("own output");
    let [first, second] = statistics.elements() else { panic!("two elements") };
    assert_eq!((first.count, first.mean), (8, 5.0));
    assert_eq!((first.min, first.min_rank, first.max, first.max_rank), (2.0, 0, 9.0, 7));
    assert!((first.standard_deviation() - 2.0).abs() < 1e-12);
    assert!((statistics.sample_standard_deviation(0).expect("8 values") - 2.138).abs() < 1e-3);
    assert_eq!((second.min_rank, second.max_rank), (0, 0), "the lowest rank of equal ones");
    assert_eq!(statistics.standard_deviation(1), Some(0.0));
    assert_eq!(statistics.standard_deviation(2), None);
}

#[test]
fn statistics_keep_their_digits_far_from_zero() {
    let leaves: Vec<_> = (0..8).map(|rank| leaf(rank, 1e9 + f64::from(rank))).collect();
    let left = node("statistics", &leaves[..3]).expect("doubles");
    let right = node("statistics", &leaves[3..]).expect("doubles");
    let all = node("statistics", &[left, right]).expect("moments");
    let statistics = Statistics::read(all.values()).expect("own output");
    assert!((statistics.elements()[0].m2 - 42.0).abs() < 1e-6);
}

#[test]
fn statistics_of_one_number_have_no_sample_deviation() {
    let one = node("statistics", &[leaf(3, -2_i8)]).expect("one number");
    let statistics = Statistics::read(one.values()).expect("own output");
    assert_eq!(statistics.standard_deviation(0), Some(0.0));
    assert_eq!(statistics.sample_standard_deviation(0), None);
}

#[test]
fn statistics_ignore_nan_among_the_extremes() {
    let all = node("statistics", &[leaf(0, f64::NAN), leaf(1, 3.0_f64), leaf(2, 3.0_f64)]);
    let statistics = Statistics::read(all.expect("doubles").values()).expect("own output");
    let moments = statistics.elements()[0];
    assert!(moments.mean.is_nan() && moments.standard_deviation().is_nan());
    assert_eq!((moments.min, moments.min_rank, moments.max_rank), (3.0, 1, 1));
}

#[test]
fn statistics_refuse_strings_two_values_and_other_lengths() {
    let takes = "filter 'statistics' takes one number or one array of numbers, not";
    let error = node("statistics", &[leaf(0, "x")]).expect_err("a string");
    assert_eq!(error.to_string(), format!("{takes} '%s'"));
    let error = node("statistics", &[leaf(0, (1_i32, 2_i32))]).expect_err("two values");
    assert_eq!(error.to_string(), format!("{takes} '%d %d'"));
    let error = node("statistics", &[leaf(0, [1_i32, 2]), leaf(1, [1_i32])]).expect_err("lengths");
    assert!(matches!(error, FilterError::Mixed { .. }), "{error}");
}

/// Answers every wave and lets through what is positive.
struct Positive;

impl Filter for Positive {
    fn transform(
        &mut self,
        wave: &WaveRef<'_>,
        out: &mut sapwood_filter::Emitter,
    ) -> Result<(), FilterError> {
        out.reply(7, "seen");
        for packet in wave.packets {
            let number = packet.values().scalar::<i32>(0)?;
            if number > 0 {
                out.emit(packet.header.tag, number);
            }
        }
        Ok(())
    }
}

fn chain(names: &[&str]) -> Chain {
    let registry = Registry::built_in().with("positive", |_: ValuesRef<'_>| Ok(Box::new(Positive)));
    let specs: Vec<_> = names.iter().map(|&name| FilterSpec::from(name)).collect();
    Chain::new(&registry, &specs).expect("known filters")
}

fn emitted(chain: &mut Chain, packets: &[Packet]) -> Vec<(bool, i32, String)> {
    let show = |emitted: Vec<(&sapwood_filter::Emission, ValuesRef<'_>)>| {
        let show = emitted.into_iter().map(|(emission, values)| {
            let text = match values.format().to_string().as_str() {
                "%d" => values.scalar::<i32>(0).expect("an int").to_string(),
                "%lf" => values.scalar::<f64>(0).expect("a double").to_string(),
                "%uld" => values.scalar::<u64>(0).expect("a count").to_string(),
                "%s" => values.string(0).expect("text").to_owned(),
                other => other.to_owned(),
            };
            (emission.is_reply, emission.tag, text)
        });
        show.collect()
    };
    transform(chain, packets, show).expect("a chain that runs")
}

#[test]
fn a_chain_hands_packets_from_filter_to_filter() {
    let wave = [leaf(0, 5_i32), leaf(1, -3_i32), leaf(2, 4_i32)];
    let on = |text: &str| (false, TAG, text.to_owned());
    let reply = (true, 7, "seen".to_owned());
    assert_eq!(emitted(&mut chain(&["positive", "sum"]), &wave), [reply.clone(), on("9")]);
    let four = &mut chain(&["positive", "sum", "positive", "count"]);
    let expected = [reply.clone(), reply.clone(), on("3")];
    assert_eq!(emitted(four, &wave), expected);
    assert_eq!(emitted(four, &wave), expected, "memory of a wave is used again");
    assert_eq!(emitted(&mut chain(&["sum", "average"]), &wave), [on("6")]);
}

#[test]
fn a_chain_ends_where_a_filter_emits_nothing() {
    let seen = (true, 7, "seen".to_owned());
    assert_eq!(emitted(&mut chain(&["positive", "sum", "count"]), &[leaf(0, -1_i32)]), [seen]);
}

#[test]
fn a_chain_without_work_passes_and_a_chain_of_one_fold_folds() {
    let wave = [leaf(0, 5_i32), leaf(1, 6_i32)];
    for names in [&[][..], &["null"], &["pass", "null"]] {
        let mut chain = chain(names);
        assert!(chain.is_pass() && chain.as_fold().is_none());
        assert_eq!(emitted(&mut chain, &wave).len(), 2);
    }
    assert!(chain(&["sum"]).as_fold().is_some());
    assert!(chain(&["null", "sum", "null"]).as_fold().is_some());
    assert!(chain(&["count"]).as_fold().is_none());
    assert!(chain(&["sum", "sum"]).as_fold().is_none());
}

#[test]
fn a_chain_names_a_filter_that_is_not_known() {
    let specs = [FilterSpec::from("sum"), FilterSpec::from("bogus")];
    let error = Chain::new(&Registry::built_in(), &specs).expect_err("no such filter");
    assert!(error.to_string().starts_with("filter 'bogus' is not known"), "{error}");
}
