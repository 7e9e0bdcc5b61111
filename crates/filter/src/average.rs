//! `average`: the mean over all back-ends, element by element, as `%lf` or `%alf`.
//!
//! A packet stands for as many back-ends as it has contributors, and its value weighs as much; so
//! the mean is right in trees whose subtrees differ in size. It is computed in doubles, whatever
//! numbers came: sum(n_i * v_i) / sum(n_i). Children may send different types of numbers (one a
//! back-end its integers, another a node its means), but all the same scalars and arrays of the
//! same lengths.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sapwood_packet::{
    Directive, ElementType, Numeric, PacketRef, Shape, Slab, ValuesRef, try_reserve,
};

use crate::number::{elements, numbers, with_number};
use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

const NAME: &str = "average";

/// Keeps the sums of the wave at hand, for their memory only.
#[derive(Default)]
struct Average {
    sums: Vec<f64>,
}

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(Average::default()))
}

impl Filter for Average {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        self.sums.clear();
        let mut weights = weight(first);
        for value in numbers(numeric(first)?) {
            let (directive, bytes) = value?;
            try_reserve(&mut self.sums, bytes.len() / directive.element.size())?;
            let scaled = |number: f64| weights * number;
            with_number!(directive.element, Number => {
                self.sums.extend(elements::<Number>(bytes).map(|n| scaled(n.to_f64())));
            }, ());
        }
        for other in others {
            self.add(first, other)?;
            weights += weight(other);
        }
        for sum in &mut self.sums {
            *sum /= weights;
        }
        let doubles = |directive: Directive| Directive::new(ElementType::Double, directive.shape);
        let format = first.format.directives().map(doubles).collect();
        let length = size_of_val(&self.sums[..]);
        out.emit_built(first.header.tag, format, length, |bytes| write(bytes, first, &self.sums))
    }
}

impl Average {
    /// Adds the numbers of a packet, which must be shaped as those of the first.
    fn add(&mut self, first: &PacketRef<'_>, other: &PacketRef<'_>) -> Result<(), FilterError> {
        let mixed = || FilterError::mixed(NAME, first.values(), other.values());
        if first.format.len() != other.format.len() {
            return Err(mixed());
        }
        let weight = weight(other);
        let mut sums = &mut self.sums[..];
        for (mine, theirs) in numbers(first.values()).zip(numbers(numeric(other)?)) {
            let ((mine, my_bytes), (theirs, bytes)) = (mine?, theirs?);
            let count = bytes.len() / theirs.element.size();
            if mine.shape != theirs.shape || my_bytes.len() / mine.element.size() != count {
                return Err(mixed());
            }
            let (here, rest) = sums.split_at_mut(count);
            sums = rest;
            with_number!(theirs.element, Number => {
                for (sum, number) in here.iter_mut().zip(elements::<Number>(bytes)) {
                    *sum += weight * number.to_f64();
                }
            }, ());
        }
        Ok(())
    }
}

/// How many back-ends a packet stands for. One that goes down has no contributors and counts as
/// one.
#[allow(clippy::cast_precision_loss)]
fn weight(packet: &PacketRef<'_>) -> f64 {
    packet.contributors.len().max(1) as f64
}

/// The values of a packet, if all are numbers.
fn numeric<'a>(packet: &PacketRef<'a>) -> Result<ValuesRef<'a>, FilterError> {
    if packet.format.directives().all(|directive| directive.element.is_numeric()) {
        Ok(packet.values())
    } else {
        Err(FilterError::format(NAME, "numbers and arrays of numbers", packet.format))
    }
}

/// Writes doubles in the shape of a packet's values.
fn write(bytes: &mut Slab, shape: &PacketRef<'_>, mut doubles: &[f64]) -> Result<(), FilterError> {
    for value in numbers(shape.values()) {
        let (directive, elements) = value?;
        let count = elements.len() / directive.element.size();
        if directive.shape != Shape::Scalar {
            bytes.extend_u64(count as u64);
        }
        let (here, rest) = doubles.split_at(count);
        bytes.extend(bytemuck::cast_slice(here));
        doubles = rest;
    }
    Ok(())
}
