//! Folding in place: the same bits however a body is cut, and no panic whatever the bytes.

use crate::harness::{aligned, make};
use proptest::prelude::*;
use sapwood_packet::{Directive, ElementType, Format, FormatRef, Shape, Slab};

const FOLDS: [&str; 5] = ["sum", "min", "max", "bit-and", "bit-or"];

/// The body of an array of `count` elements made of these bytes. NaNs are replaced, because a sum
/// may give either operand's payload.
fn body(directive: Directive, count: usize, bytes: &[u8]) -> Slab {
    let mut elements = bytes[..count * directive.element.size()].to_vec();
    match directive.element {
        ElementType::Float => elements.chunks_exact_mut(4).for_each(|chunk| {
            if f32::from_le_bytes((&*chunk).try_into().expect("4 bytes")).is_nan() {
                chunk.copy_from_slice(&1.5_f32.to_le_bytes());
            }
        }),
        ElementType::Double => elements.chunks_exact_mut(8).for_each(|chunk| {
            if f64::from_le_bytes((&*chunk).try_into().expect("8 bytes")).is_nan() {
                chunk.copy_from_slice(&1.5_f64.to_le_bytes());
            }
        }),
        _ => {}
    }
    let mut slab = Slab::default();
    slab.extend_u64(count as u64);
    slab.extend(&elements);
    slab.pad();
    slab
}

proptest! {
    #[test]
    fn chunks_give_the_bits_of_the_whole(
        element in 0_usize..10,
        is_large in any::<bool>(),
        count in 0_usize..200,
        mine in proptest::collection::vec(any::<u8>(), 1600),
        other in proptest::collection::vec(any::<u8>(), 1600),
        cuts in proptest::collection::vec(1_usize..40, 1..6),
    ) {
        let shape = if is_large { Shape::LargeArray } else { Shape::Array };
        let directive = Directive::new(ElementType::ALL[element], shape);
        let format: Format = [directive].into_iter().collect();
        let (mine, other) = (body(directive, count, &mine), body(directive, count, &other));
        for name in FOLDS {
            let filter = make(name);
            let fold = filter.as_fold().expect("a fold");
            if fold.check(format.as_ref()).is_err() {
                prop_assert!(name.starts_with("bit") && element >= 8, "{} of {}", name, directive);
                continue;
            }
            let mut whole = mine.clone();
            let folded = fold.fold(format.as_ref(), whole.as_mut_bytes(), other.as_bytes());
            prop_assert_eq!(folded, Ok(()));
            let mut cut = mine.clone();
            let mut at = 0;
            for words in cuts.iter().cycle() {
                if at == cut.len() {
                    break;
                }
                let end = (at + words * 8).min(cut.len());
                let (mine, other) = (&mut cut.as_mut_bytes()[at..end], &other.as_bytes()[at..end]);
                let folded = fold.fold_chunk(format.as_ref(), at as u64, mine, other);
                prop_assert_eq!(folded, Ok(()));
                at = end;
            }
            prop_assert_eq!(whole.as_bytes(), cut.as_bytes(), "{}", name);
        }
    }

    #[test]
    fn runs_give_the_bits_of_their_waves(
        element in 0_usize..10,
        shape in 0_usize..3,
        count in 0_usize..24,
        waves in 2_usize..65,
        mine in proptest::collection::vec(any::<u8>(), 192),
        other in proptest::collection::vec(any::<u8>(), 192),
    ) {
        let shape = [Shape::Scalar, Shape::Array, Shape::LargeArray][shape];
        let count = if shape == Shape::Scalar { 1 } else { count };
        let directive = Directive::new(ElementType::ALL[element], shape);
        let format: Format = [directive].into_iter().collect();
        let run = |bytes: &[u8]| {
            let mut run = Slab::default();
            for wave in 0..waves {
                let mut turned = bytes.to_vec();
                turned.rotate_left(wave * directive.element.size() % 192);
                let array = body(directive, count, &turned);
                let start = if shape == Shape::Scalar { 8 } else { 0 };
                run.extend(&array.as_bytes()[start..]);
            }
            run
        };
        let (mine, other) = (run(&mine), run(&other));
        let stride = mine.len() / waves;
        for name in FOLDS {
            let filter = make(name);
            let fold = filter.as_fold().expect("a fold");
            if fold.check(format.as_ref()).is_err() {
                prop_assert!(name.starts_with("bit") && element >= 8, "{} of {}", name, directive);
                continue;
            }
            let mut whole = mine.clone();
            let folded =
                fold.fold_run(format.as_ref(), stride, whole.as_mut_bytes(), other.as_bytes());
            prop_assert_eq!(folded, Ok(()));
            let mut alone = mine.clone();
            let bodies = alone.as_mut_bytes().chunks_exact_mut(stride);
            for (mine, other) in bodies.zip(other.as_bytes().chunks_exact(stride)) {
                prop_assert_eq!(fold.fold(format.as_ref(), mine, other), Ok(()));
            }
            prop_assert_eq!(whole.as_bytes(), alone.as_bytes(), "{}", name);
        }
    }

    #[test]
    fn a_run_with_one_other_count_is_refused_untouched(
        element in 0_usize..10,
        counts in proptest::collection::vec(0_usize..3, 2..20),
        odd in any::<prop::sample::Index>(),
        bytes in proptest::collection::vec(any::<u8>(), 40),
    ) {
        // Up to as many elements as fill one word: all arrays have the same length in bytes.
        let directive = Directive::new(ElementType::ALL[element], Shape::Array);
        let format: Format = [directive].into_iter().collect();
        let most = 8 / directive.element.size();
        let run = |odd: Option<usize>| {
            let mut run = Slab::default();
            for (wave, more) in counts.iter().enumerate() {
                let count = 1 + more % most;
                let forged = if odd == Some(wave) { most + 9 } else { count };
                run.extend_u64(forged as u64);
                run.extend(&body(directive, count, &bytes).as_bytes()[8..]);
            }
            run
        };
        let (mine, other) = (run(None), run(Some(odd.index(counts.len()))));
        for name in FOLDS {
            let filter = make(name);
            let fold = filter.as_fold().expect("a fold");
            let mut folded = mine.clone();
            let error = fold.fold_run(format.as_ref(), 16, folded.as_mut_bytes(), other.as_bytes());
            prop_assert!(error.is_err());
            prop_assert_eq!(folded.as_bytes(), mine.as_bytes(), "{}", name);
        }
    }

    #[test]
    fn arbitrary_runs_are_folded_or_refused(
        codes in proptest::collection::vec(0_u8..44, 0..3),
        stride in prop_oneof![0_usize..40, any::<usize>()],
        mine in proptest::collection::vec(prop_oneof![0_u64..6, any::<u64>()], 0..12),
        other in proptest::collection::vec(prop_oneof![0_u64..6, any::<u64>()], 0..12),
        cut in (0_usize..8, 0_usize..8),
    ) {
        let Some(format) = FormatRef::from_codes(&codes) else { return Ok(()) };
        let (mut mine, other) = (aligned(&mine), aligned(&other));
        let end = mine.len().saturating_sub(cut.0);
        let other = &other.as_bytes()[..other.len().saturating_sub(cut.1)];
        for name in FOLDS {
            let filter = make(name);
            let fold = filter.as_fold().expect("a fold");
            let accumulators = &mut mine.as_mut_bytes()[..end];
            let _ = fold.fold_run(format, stride, accumulators, other);
            let same = accumulators.to_vec();
            let _ = fold.fold_run(format, stride, accumulators, &same);
        }
    }

    #[test]
    fn arbitrary_bytes_are_folded_or_refused(
        codes in proptest::collection::vec(0_u8..44, 0..4),
        mine in proptest::collection::vec(prop_oneof![0_u64..6, any::<u64>()], 0..8),
        other in proptest::collection::vec(prop_oneof![0_u64..6, any::<u64>()], 0..8),
        cut in (0_usize..8, 0_usize..8, 0_usize..8),
        offset in prop_oneof![0_u64..20, any::<u64>()],
    ) {
        let Some(format) = FormatRef::from_codes(&codes) else { return Ok(()) };
        let (mut mine, other) = (aligned(&mine), aligned(&other));
        let start = cut.0.min(mine.len());
        let mine_end = mine.len().saturating_sub(cut.1).max(start);
        let other = &other.as_bytes()[..other.len().saturating_sub(cut.2)];
        for name in FOLDS {
            let filter = make(name);
            let fold = filter.as_fold().expect("a fold");
            let accumulator = &mut mine.as_mut_bytes()[start..mine_end];
            let _ = fold.fold(format, accumulator, other);
            let same = accumulator.to_vec();
            let _ = fold.fold(format, accumulator, &same);
            let _ = fold.fold_chunk(format, offset, accumulator, other);
            let _ = fold.fold_chunk(format, offset, accumulator, &same);
        }
    }
}

#[test]
fn lengths_that_differ_are_refused_with_both() {
    let format: Format = "%alf".parse().expect("format");
    let filter = make("sum");
    let fold = filter.as_fold().expect("a fold");
    let mut mine = aligned(&[2, 0, 0]);
    let other = aligned(&[1, 0, 0]);
    let error = fold
        .fold_chunk(format.as_ref(), 0, mine.as_mut_bytes(), other.as_bytes())
        .expect_err("counts differ");
    assert!(error.to_string().contains("'%alf[2]' and '%alf[1]'"), "{error}");
    assert!(fold.fold(format.as_ref(), mine.as_mut_bytes(), other.as_bytes()).is_err());
}

#[test]
fn a_fold_refuses_what_it_does_not_take_before_anything_is_folded() {
    let filter = make("max");
    let fold = filter.as_fold().expect("a fold");
    let format = |text: &str| text.parse::<Format>().expect("format");
    assert_eq!(fold.check(format("%d %alf").as_ref()), Ok(()));
    let error = fold.check(format("%d %s").as_ref()).expect_err("a string");
    assert_eq!(error.to_string(), "filter 'max' takes numbers and arrays of numbers, not '%d %s'");
}

#[test]
fn floating_point_numbers_have_no_bits_to_combine() {
    for name in ["bit-and", "bit-or"] {
        let filter = make(name);
        let fold = filter.as_fold().expect("a fold");
        for text in ["%lf", "%alf", "%Af", "%d %f"] {
            let format = text.parse::<Format>().expect("format");
            let error = fold.check(format.as_ref()).expect_err("no integers").to_string();
            let takes = "takes integers and arrays of integers, not";
            assert_eq!(error, format!("filter '{name}' {takes} '{text}'"));
            let (mut mine, other) = (aligned(&[1, 1]), aligned(&[1, 2]));
            let folded = fold.fold(format.as_ref(), mine.as_mut_bytes(), other.as_bytes());
            assert!(folded.is_err() && mine.as_bytes() == aligned(&[1, 1]).as_bytes());
        }
    }
}
