//! Filters that combine two packets of the same format into one of it, in place: what `sum`, `min`,
//! `max`, `bit-and` and `bit-or` have in common.
//!
//! An [`Operation`] combines two numbers; [`FoldFilter`] carries it over scalars, arrays and
//! packets of several values. Packets are folded in the order of the children, one after another,
//! so the same wave gives the same bits each time.

use alloc::boxed::Box;
use core::marker::PhantomData;

use sapwood_packet::{Directive, ElementType, FormatRef, Numeric, PacketError, Shape, ValuesRef};

use crate::number::{span_of, with_number};
use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, Fold, WaveRef};

/// How two numbers become one.
pub(crate) trait Operation: Send + 'static {
    /// The filter's name.
    const NAME: &'static str;
    /// What it works on.
    const TAKES: &'static str = "numbers and arrays of numbers";

    /// Whether it is defined on numbers of a type; on strings none is.
    fn is_defined_on(element: ElementType) -> bool {
        element.is_numeric()
    }

    /// Combines two numbers; `mine` comes from the earlier children.
    fn combine<T: Numeric>(mine: T, other: T) -> T;
}

/// The filter of an operation.
pub(crate) struct FoldFilter<O> {
    operation: PhantomData<fn() -> O>,
}

impl<O: Operation> FoldFilter<O> {
    /// The filter itself, to be used by another.
    pub(crate) fn new() -> Self {
        Self { operation: PhantomData }
    }

    /// Makes it; it takes no parameters.
    pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        no_parameters(O::NAME, parameters)?;
        Ok(Box::new(Self::new()))
    }

    /// The directive of a format that is exactly one array that the operation is defined on.
    #[inline]
    fn sole_array(format: FormatRef<'_>) -> Option<Directive> {
        let &[code] = format.codes() else { return None };
        let directive = Directive::from_code(code)?;
        let is_array = directive.shape != Shape::Scalar && O::is_defined_on(directive.element);
        is_array.then_some(directive)
    }

    /// Combines packed elements of one type; both runs are equally long.
    #[inline]
    fn combine_elements(element: ElementType, accumulator: &mut [u8], other: &[u8]) {
        with_number!(element, Number => {
            let others = other.chunks_exact(size_of::<Number>());
            for (mine, other) in accumulator.chunks_exact_mut(size_of::<Number>()).zip(others) {
                let combined = O::combine::<Number>(
                    bytemuck::pod_read_unaligned(mine),
                    bytemuck::pod_read_unaligned(other),
                );
                mine.copy_from_slice(bytemuck::bytes_of(&combined));
            }
        }, ());
    }

    /// Combines bodies that hold one array each, if they are whole and equally long.
    #[inline]
    fn combine_array(directive: Directive, accumulator: &mut [u8], other: &[u8]) -> Option<()> {
        let place = span_of(directive, accumulator, 0)?;
        let is_same = place.end == accumulator.len()
            && other.len() == accumulator.len()
            && other.first_chunk::<8>() == accumulator.first_chunk::<8>();
        if !is_same {
            return None;
        }
        let mine = accumulator.get_mut(place.elements.clone())?;
        Self::combine_elements(directive.element, mine, other.get(place.elements)?);
        Some(())
    }

    /// Combines bodies of a format of numbers, value by value.
    fn combine_values(
        format: FormatRef<'_>,
        accumulator: &mut [u8],
        other: &[u8],
    ) -> Result<(), FilterError> {
        let mut at = 0;
        for (index, directive) in format.directives().enumerate() {
            let cut = PacketError::Truncated { index };
            let mine = span_of(directive, accumulator, at).ok_or_else(|| cut.clone())?;
            let theirs = span_of(directive, other, at).ok_or(cut)?;
            if mine.elements != theirs.elements {
                return Err(Self::mixed(format, accumulator, other));
            }
            at = mine.end;
            let (mine, other) = (&mut accumulator[mine.elements], &other[theirs.elements]);
            Self::combine_elements(directive.element, mine, other);
        }
        match accumulator.len().max(other.len()) - at {
            0 => Ok(()),
            bytes => Err(PacketError::Excess { bytes }.into()),
        }
    }

    #[cold]
    fn mixed(format: FormatRef<'_>, accumulator: &[u8], other: &[u8]) -> FilterError {
        let (first, other) = (ValuesRef::new(format, accumulator), ValuesRef::new(format, other));
        FilterError::mixed(O::NAME, first, other)
    }
}

impl<O: Operation> Filter for FoldFilter<O> {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        self.check(first.format)?;
        out.emit_built(first.header.tag, first.format.to_format(), first.body.len(), |bytes| {
            let start = bytes.len();
            bytes.extend(first.body);
            let accumulator = &mut bytes.as_mut_bytes()[start..];
            for other in others {
                if other.format != first.format {
                    return Err(FilterError::mixed(O::NAME, first.values(), other.values()));
                }
                self.fold(first.format, accumulator, other.body)?;
            }
            Ok(())
        })
    }

    fn as_fold(&self) -> Option<&dyn Fold> {
        Some(self)
    }
}

impl<O: Operation> Fold for FoldFilter<O> {
    #[inline]
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn check(&self, format: FormatRef<'_>) -> Result<(), FilterError> {
        if format.directives().all(|directive| O::is_defined_on(directive.element)) {
            Ok(())
        } else {
            Err(FilterError::format(O::NAME, O::TAKES, format))
        }
    }

    #[inline]
    fn fold(
        &self,
        format: FormatRef<'_>,
        accumulator: &mut [u8],
        other: &[u8],
    ) -> Result<(), FilterError> {
        if let Some(directive) = Self::sole_array(format)
            && Self::combine_array(directive, accumulator, other).is_some()
        {
            return Ok(());
        }
        self.check(format)?;
        Self::combine_values(format, accumulator, other)
    }

    fn fold_run(
        &self,
        format: FormatRef<'_>,
        stride: usize,
        accumulators: &mut [u8],
        others: &[u8],
    ) -> Result<(), FilterError> {
        let Some(directive) = format.directive(0).filter(|_| format.len() == 1) else {
            return Err(FilterError::format(O::NAME, "one number or array in runs", format));
        };
        self.check(format)?;
        if accumulators.len() != others.len() {
            return Err(Self::mixed(format, accumulators, others));
        }
        if directive.shape == Shape::Scalar {
            // What fills a number's slot is zero, and stays zero under every operation.
            Self::combine_elements(directive.element, accumulators, others);
            return Ok(());
        }
        let cut = PacketError::Truncated { index: 0 };
        if stride < 8 {
            return Err(cut.into());
        }
        let bodies = accumulators.chunks_exact(stride).zip(others.chunks_exact(stride));
        for (mine, other) in bodies {
            if mine[..8] != other[..8] {
                return Err(Self::mixed(format, mine, other));
            }
        }
        let bodies = accumulators.chunks_exact_mut(stride).zip(others.chunks_exact(stride));
        for (mine, other) in bodies {
            Self::combine_elements(directive.element, &mut mine[8..], &other[8..]);
        }
        Ok(())
    }

    fn fold_chunk(
        &self,
        format: FormatRef<'_>,
        offset: u64,
        accumulator: &mut [u8],
        other: &[u8],
    ) -> Result<(), FilterError> {
        let Some(directive) = Self::sole_array(format) else {
            return Err(FilterError::format(O::NAME, "one array of numbers in chunks", format));
        };
        let cut = PacketError::Truncated { index: 0 };
        if accumulator.len() != other.len() {
            return Err(Self::mixed(format, accumulator, other));
        }
        if !offset.is_multiple_of(8) || !accumulator.len().is_multiple_of(8) {
            return Err(cut.into());
        }
        if offset != 0 {
            // The last chunk may end in padding. It is taken for elements: zero and zero combine to
            // zero under every operation, so it stays what it is.
            Self::combine_elements(directive.element, accumulator, other);
            return Ok(());
        }
        let (Some((count, mine)), Some((other_count, other))) =
            (accumulator.split_first_chunk_mut::<8>(), other.split_first_chunk::<8>())
        else {
            return Err(cut.into());
        };
        if count != other_count {
            let (first, other) = (u64::from_le_bytes(*count), u64::from_le_bytes(*other_count));
            return Err(Self::mixed_counts(directive, first, other));
        }
        Self::combine_elements(directive.element, mine, other);
        Ok(())
    }
}

impl<O: Operation> FoldFilter<O> {
    #[cold]
    fn mixed_counts(directive: Directive, first: u64, other: u64) -> FilterError {
        let text = |count| alloc::format!("{directive}[{count}]");
        FilterError::Mixed { name: O::NAME, first: text(first), other: text(other) }
    }
}

#[cfg(test)]
mod tests {
    use sapwood_packet::{Packet, Values};
    use std::string::ToString;

    use super::*;
    use crate::Registry;

    fn folded(name: &str, packets: &[Packet]) -> Result<Values, FilterError> {
        let mut filter = Registry::built_in().make(name, ValuesRef::default())?;
        let packets: std::vec::Vec<_> = packets.iter().map(Packet::as_ref).collect();
        let wave = WaveRef {
            stream: 1,
            wave: 0,
            packets: &packets,
            contributors: packets[0].contributors,
            rank: 9,
            is_root: true,
            children: 2,
            back_ends: 2,
        };
        let mut out = Emitter::new();
        filter.transform(&wave, &mut out)?;
        let values = out.emissions().next().map(|(_, values)| values.to_values());
        Ok(values.expect("a fold makes one packet"))
    }

    fn packet(values: Values) -> Packet {
        Packet::new(1, 100, values)
    }

    #[test]
    fn every_value_of_a_packet_is_folded_by_itself() {
        let child = |step: i32| {
            let small = [step as i8, -1, 7];
            packet(
                Values::new()
                    .scalar(step as u16)
                    .array(&small)
                    .scalar(f64::from(step))
                    .large_array(&[step; 5]),
            )
        };
        let children = [child(1), child(5), child(3)];
        let sum = folded("sum", &children).expect("sum");
        assert_eq!(sum.as_ref().scalar::<u16>(0), Ok(9));
        assert_eq!(sum.as_ref().array::<i8>(1), Ok(&[9, -3, 21][..]));
        assert_eq!(sum.as_ref().scalar::<f64>(2), Ok(9.0));
        assert_eq!(sum.as_ref().array::<i32>(3), Ok(&[9; 5][..]));
        let min = folded("min", &children).expect("min");
        assert_eq!(min.as_ref().array::<i8>(1), Ok(&[1, -1, 7][..]));
        let max = folded("max", &children).expect("max");
        assert_eq!(max.as_ref().array::<i8>(1), Ok(&[5, -1, 7][..]));
        assert_eq!(max.as_ref().scalar::<f64>(2), Ok(5.0));
    }

    #[test]
    fn integer_sums_wrap() {
        let sum =
            folded("sum", &[packet(Values::new().scalar(200_u8)), Packet::new(1, 100, 100_u8)]);
        assert_eq!(sum.expect("sum").as_ref().scalar::<u8>(0), Ok(44));
    }

    #[test]
    fn not_a_number_loses_against_every_number() {
        let children = [[f64::NAN, 1.0, f64::NAN], [2.0, f64::NAN, f64::NAN], [3.0, 0.5, f64::NAN]];
        let children = children.map(|values| Packet::new(1, 100, values));
        for (name, expected) in [("min", [2.0, 0.5]), ("max", [3.0, 1.0])] {
            let values = folded(name, &children).expect("numbers");
            let values = values.as_ref().array::<f64>(0).expect("doubles");
            assert_eq!(values[..2], expected, "{name}");
            assert!(values[2].is_nan(), "{name}");
        }
    }

    #[test]
    fn packets_that_differ_are_named() {
        let lengths = [Packet::new(1, 100, [1_i32, 2]), Packet::new(1, 100, [1_i32, 2, 3])];
        assert_eq!(
            folded("sum", &lengths).expect_err("lengths differ").to_string(),
            "filter 'sum': the packets of a wave differ: '%ad[2]' and '%ad[3]'; \
             let all back-ends send the same"
        );
        let formats = [Packet::new(1, 100, 1_i32), Packet::new(1, 100, 1.0_f64)];
        assert_eq!(
            folded("max", &formats).expect_err("formats differ").to_string(),
            "filter 'max': the packets of a wave differ: '%d' and '%lf'; \
             let all back-ends send the same"
        );
    }

    #[test]
    fn strings_have_no_sum_even_from_one_child() {
        let error = folded("sum", &[Packet::new(1, 100, "bark")]).expect_err("a string");
        assert_eq!(error.to_string(), "filter 'sum' takes numbers and arrays of numbers, not '%s'");
    }
}
