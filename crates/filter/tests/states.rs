//! Filters that keep something from wave to wave: what they give when, and what becomes of their
//! state when another instance takes it over.

use crate::harness::{TAG, leaf, make};
use proptest::prelude::*;
use sapwood_filter::{Chain, Emitter, Filter, FilterError, FilterSpec, Registry, State, WaveRef};
use sapwood_packet::{Packet, Rank, RankSet, Values, answer_wave};

/// The rank of the node that the filters of these stories run at.
const HERE: Rank = 1000;

fn accumulate(waves: u64) -> Box<dyn Filter> {
    let parameters = Values::new().scalar(waves);
    Registry::built_in().make("accumulate", parameters.as_ref()).expect("a number of waves")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    InnerNode,
    FrontEnd,
}

/// What a filter gives for a wave, at an inner node.
fn give(
    filter: &mut dyn Filter,
    wave: u64,
    packets: &[Packet],
) -> Result<Vec<Values>, FilterError> {
    give_at(Place::InnerNode, filter, wave, packets)
}

fn give_at(
    place: Place,
    filter: &mut dyn Filter,
    wave: u64,
    packets: &[Packet],
) -> Result<Vec<Values>, FilterError> {
    let mut contributors = RankSet::new();
    packets.iter().for_each(|packet| contributors.union_with(packet.contributors.as_ref()));
    let packets: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = contributors.as_ref();
    let wave = WaveRef {
        stream: 1,
        wave,
        packets: &packets,
        contributors,
        rank: HERE,
        is_root: place == Place::FrontEnd,
        children: 2,
        back_ends: 2,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out)?;
    assert!(out.emissions().all(|(emission, _)| emission.tag == TAG && !emission.is_reply));
    Ok(out.emissions().map(|(_, values)| values.to_values()).collect())
}

fn number(values: &Values) -> i64 {
    values.as_ref().scalar(0).expect("one number")
}

#[test]
fn accumulate_gives_the_sum_of_a_period_with_its_last_wave() {
    let mut filter = accumulate(3);
    assert_eq!(filter.state(), State::Composable);
    let mut given = Vec::new();
    for wave in 0..7 {
        let packets = [leaf(0, [wave as i64, 1]), leaf(1, [10_i64, 0])];
        for values in give(&mut *filter, wave, &packets).expect("numbers") {
            given.push((wave, values.as_ref().array::<i64>(0).expect("an array").to_vec()));
        }
    }
    assert_eq!(given, [(2, vec![33, 3]), (5, vec![42, 3])]);
    let rest = filter.save().expect("wave 6");
    assert_eq!(rest.as_ref().array::<i64>(0), Ok(&[16, 1][..]));
}

#[test]
fn a_period_whose_last_wave_does_not_come_ends_with_the_next() {
    let mut filter = accumulate(3);
    let mut given = Vec::new();
    for wave in [0, 1, 4, 5, 6, 8] {
        let values = give(&mut *filter, wave, &[leaf(0, 1_i64 << wave)]).expect("a number");
        given.extend(values.iter().map(|values| (wave, number(values))));
    }
    assert_eq!(given, [(4, 0b10011), (5, 0b10_0000), (8, 0b1_0100_0000)]);
    assert!(filter.save().is_none(), "nothing is left");
}

#[test]
fn answers_to_questions_are_counted_by_their_questions() {
    let mut filter = accumulate(3);
    let answer = |question| answer_wave(question).expect("a small number");
    let mut given = Vec::new();
    // One value is unasked, behind the answer to question 1.
    let waves = [answer(0), answer(1), answer(1) + 1, answer(2), answer(3), answer(5), answer(6)];
    for (at, wave) in waves.into_iter().enumerate() {
        let values = give(&mut *filter, wave, &[leaf(0, 1_i64 << at)]).expect("a number");
        given.extend(values.iter().map(|values| (at, number(values))));
    }
    assert_eq!(given, [(3, 0b1111), (5, 0b11_0000)]);
    assert!(filter.save().is_some(), "the answer to question 6 is in the period that goes on");
}

#[test]
fn accumulate_begins_anew_when_the_packets_change() {
    let mut filter = accumulate(8);
    give(&mut *filter, 0, &[leaf(0, 1_i64)]).expect("a number");
    let mixed = give(&mut *filter, 1, &[leaf(0, 2_i64), leaf(1, 0.5_f64)]);
    assert!(matches!(mixed, Err(FilterError::Mixed { .. })), "{mixed:?}");
    assert_eq!(filter.save().map(|sum| number(&sum)), Some(1), "one wave failed, and no more");
    let other = give(&mut *filter, 2, &[leaf(0, 0.5_f64)]).expect_err("doubles");
    assert_eq!(
        other.to_string(),
        "filter 'accumulate': the packets of a wave differ: '%ld' and '%lf'; \
         let all back-ends send the same"
    );
    give(&mut *filter, 3, &[leaf(0, 0.5_f64)]).expect("a new sum");
    let sum = filter.save().expect("a sum");
    assert_eq!(sum.as_ref().scalar(0), Ok(0.5_f64));
    let text = give(&mut *filter, 4, &[leaf(0, "bark")]);
    assert!(matches!(text, Err(FilterError::Format { .. })), "{text:?}");
}

#[test]
fn accumulate_takes_one_positive_integer() {
    let registry = Registry::built_in();
    let none = Values::new();
    let zero = Values::new().scalar(0_u32);
    let negative = Values::new().scalar(-1_i64);
    let two = Values::new().scalar(1_u32).scalar(1_u32);
    let array = Values::new().array(&[4_u32]);
    for wrong in [zero, negative, two, array] {
        let error = registry.make("accumulate", wrong.as_ref()).err().expect("refused");
        assert!(error.to_string().contains("one integer"), "{error}");
    }
    for right in [none, Values::new().scalar(4_i32), Values::new().scalar(4_u64)] {
        assert!(registry.make("accumulate", right.as_ref()).is_ok());
    }
}

#[test]
fn changes_lets_pass_what_has_changed() {
    let mut filter = make("changes");
    assert_eq!(filter.state(), State::Rebuildable);
    let mut from_below = leaf(2, "a");
    from_below.header.filtered = true;
    let waves: [&[Packet]; 8] = [
        &[leaf(0, "a"), leaf(1, "b")],
        &[leaf(0, "a"), leaf(1, "b")],
        &[leaf(0, "a"), leaf(1, "c")],
        &[leaf(0, "a")],
        &[leaf(1, "b"), leaf(0, "a")],
        &[leaf(0, "a"), leaf(0, "a")],
        // What has passed a node below has changed, though it may look the same here.
        &[from_below.clone()],
        &[from_below],
    ];
    let passed: Vec<usize> = (0..)
        .zip(waves)
        .map(|(wave, packets)| give(&mut *filter, wave, packets).expect("anything").len())
        .collect();
    assert_eq!(passed, [2, 0, 2, 0, 2, 2, 1, 1]);
    let mut late = leaf(0, "a");
    late.header.late = true;
    assert_eq!(give(&mut *filter, 3, &[late]).expect("anything").len(), 1);
}

#[test]
fn behind_another_filter_changes_holds_back_at_the_front_end_alone() {
    let specs = [FilterSpec::from("sum"), FilterSpec::from("changes")];
    let chain = || Chain::new(&Registry::built_in(), &specs).expect("built-in filters");
    let packets = [leaf(0, 1_i64), leaf(1, 2_i64)];
    for (place, expected) in [(Place::InnerNode, [1, 1]), (Place::FrontEnd, [1, 0])] {
        let mut chain = chain();
        assert_eq!((chain.state(), chain.composable()), (State::Rebuildable, &[][..]));
        let passed =
            [0, 1].map(|wave| give_at(place, &mut chain, wave, &packets).expect("sums").len());
        assert_eq!(passed, expected, "{place:?}");
    }
}

#[test]
fn a_chain_hands_over_the_state_of_each_filter_by_its_position() {
    let period = |waves: u32| FilterSpec {
        name: "accumulate".into(),
        parameters: Values::new().scalar(waves),
    };
    // What passes everything is no part of the chain.
    let specs = ["pass".into(), "sum".into(), period(2), "changes".into(), period(4)];
    let chain = || Chain::new(&Registry::built_in(), &specs).expect("built-in filters");
    let mut first = chain();
    assert_eq!((first.state(), first.composable()), (State::Composable, &[1, 3][..]));
    let mut released = Vec::new();
    for wave in 0..3 {
        let packets = [leaf(0, 1_i64), leaf(1, 2_i64 << wave)];
        assert!(give(&mut first, wave, &packets).expect("sums").is_empty());
        released.push(first.has_released());
    }
    assert_eq!(released, [false, true, false]);
    let saved = [1, 3].map(|index| first.save_filter(index).expect("a sum"));
    assert_eq!(saved.each_ref().map(number), [9, 8]);
    let mut second = chain();
    for (index, state) in [1, 3].into_iter().zip(&saved) {
        second.absorb_into(index, state.as_ref()).expect("a sum");
    }
    let given = give(&mut second, 3, &[leaf(0, 100_i64)]).expect("sums");
    assert_eq!(given.iter().map(number).collect::<Vec<_>>(), [117]);
    for index in [0, 2, 4] {
        assert!(second.absorb_into(index, saved[0].as_ref()).is_err(), "filter {index}");
    }
}

#[test]
fn filters_without_a_state_say_so() {
    for name in ["average", "concatenate", "count", "equivalence", "max", "statistics", "sum"] {
        let filter = make(name);
        assert_eq!(filter.state(), State::None, "{name}");
        assert!(filter.save().is_none(), "{name}");
    }
}

/// What is known of a filter that is given these waves, and of all before it that were given up.
#[derive(Default)]
struct Totals {
    given: Vec<i64>,
}

impl Totals {
    fn add(&mut self, values: &[Values]) {
        for values in values {
            let array = values.as_ref().array::<i64>(0).expect("an array");
            self.given.resize(array.len(), 0);
            self.given.iter_mut().zip(array).for_each(|(sum, &more)| *sum = sum.wrapping_add(more));
        }
    }
}

proptest! {
    /// However waves are split over instances, and whenever one of these absorbs another, the
    /// totals are those of one instance that is given all waves.
    #[test]
    fn totals_do_not_depend_on_who_has_accumulated(
        waves in proptest::collection::vec(
            (proptest::collection::vec(any::<i64>(), 3), 0_usize..4, any::<bool>()), 1..60),
        period in 1_u64..20,
    ) {
        let mut instances: Vec<_> = (0..4).map(|_| accumulate(period)).collect();
        let mut totals = Totals::default();
        let mut expected = vec![0_i64; 3];
        for (wave, (values, at, dies)) in (0..).zip(waves) {
            expected.iter_mut().zip(&values).for_each(|(sum, &more)| *sum = sum.wrapping_add(more));
            let given = give(&mut *instances[at], wave, &[leaf(0, values)]);
            totals.add(&given.expect("numbers"));
            if dies {
                // Another takes its place with what it has handed over.
                let state = instances[at].save();
                instances[at] = accumulate(period);
                let heir = &mut instances[(at + 1) % 4];
                if let Some(state) = state {
                    heir.absorb(state.as_ref()).expect("the same kind of sum");
                }
            }
        }
        for instance in &instances {
            totals.add(instance.save().as_slice());
        }
        prop_assert_eq!(totals.given, expected);
    }

    #[test]
    fn an_arbitrary_state_is_absorbed_or_refused(
        codes in proptest::collection::vec(0_u8..44, 0..3),
        words in proptest::collection::vec(prop_oneof![0_u64..4, any::<u64>()], 0..6),
    ) {
        use sapwood_packet::{FormatRef, ValuesRef};
        let Some(format) = FormatRef::from_codes(&codes) else { return Ok(()) };
        let body = crate::harness::aligned(&words);
        let Ok(state) = ValuesRef::parse(format, body.as_bytes()) else { return Ok(()) };
        let mut filter = accumulate(2);
        if filter.absorb(state).is_ok() {
            let saved = filter.save().expect("what was absorbed");
            prop_assert_eq!(saved.as_ref(), state);
        }
        let _ = give(&mut *filter, 0, &[leaf(0, 1_i64)]);
        let _ = give(&mut *filter, 1, &[leaf(0, 1_i64)]);
        prop_assert!(filter.save().is_none());
    }
}
