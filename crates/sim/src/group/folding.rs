//! What the hosts of a schedule reduce: the operations that they define, and what their values come
//! to. A member folds two values at a time, by the functions here; the oracle takes the values of
//! all hosts at once, by other formulas.

use alloc::vec::Vec;

use sapwood_group::{Definition, Element, FoldFailed, Operation, OperationId, Payload};

/// An operation that hosts define, in any order and element by element: `a + b + a b`.
pub const CIRCLE: &str = "circle";
/// An operation that hosts define, of whole values in the order of the virtual nodes: each element
/// is the offset of a line whose slope is the first one and 1; one line after the other.
pub const LINES: &str = "lines";

/// A host's value in a sum is one in a digit of its own, of this number of bits: one that counts
/// twice shows.
const DIGIT_BITS: usize = 2;

/// The value that a host gives to a sum.
pub(super) fn digit(host: usize) -> i64 {
    1 << (DIGIT_BITS * host)
}

/// What is done with the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folding {
    /// Sums, which are built in; each host has a digit of its own.
    Sum,
    /// [`CIRCLE`].
    Circle,
    /// [`LINES`].
    Lines,
}

/// A reduction of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduced {
    /// The host whose first virtual node is the root.
    pub(super) root: usize,
    pub(super) elements: usize,
    pub(super) to_all: bool,
    pub(super) folding: Folding,
}

impl Reduced {
    pub(super) fn operation(&self) -> Operation {
        match self.folding {
            Folding::Sum => Operation::Sum,
            Folding::Circle => Operation::Defined(OperationId::of_name(CIRCLE)),
            Folding::Lines => Operation::DefinedInOrder(OperationId::of_name(LINES)),
        }
    }

    /// What a host gives.
    pub(super) fn value_of(&self, host: usize) -> Payload {
        let elements = (0..self.elements).map(|index| self.element(host, index).to_le_bytes());
        Payload::from(elements.flatten().collect::<Vec<u8>>())
    }

    fn element(&self, host: usize, index: usize) -> i64 {
        match self.folding {
            Folding::Sum => digit(host),
            // One more is odd, so that no product loses what a factor had.
            Folding::Circle | Folding::Lines => {
                let own = (host as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let place = (index as u64 + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (((own ^ place).wrapping_mul(0x94d0_49bb_1331_11eb) >> 7) << 1).cast_signed()
            }
        }
    }

    /// Whether a value is that of hosts which a sum has, where each has one of its places in the
    /// order. Elements of one value may be of different sums, unless it is folded as a whole.
    pub(super) fn is_right(&self, value: &[u8], sums: &[i64], places: &[Vec<u32>]) -> bool {
        let (numbers, []) = value.as_chunks::<8>() else { return false };
        let numbers: Vec<i64> = numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        if numbers.len() != self.elements {
            return false;
        }
        if self.folding == Folding::Sum {
            return numbers.iter().all(|number| sums.contains(number));
        }
        let orders = sums.iter().flat_map(|sum| orders(*sum, places));
        let values: Vec<Vec<i64>> = orders.map(|hosts| self.folded(&hosts)).collect();
        if self.folding == Folding::Lines {
            return values.contains(&numbers);
        }
        let is_one = |index: usize| values.iter().any(|value| value[index] == numbers[index]);
        (0..self.elements).all(is_one)
    }

    /// The values of hosts in this order, folded.
    fn folded(&self, hosts: &[usize]) -> Vec<i64> {
        let of = |host: usize, index: usize| self.element(host, index);
        let slope = |host: usize| of(host, 0).wrapping_add(1);
        let element = |index: usize| match self.folding {
            Folding::Sum => hosts.iter().map(|host| of(*host, index)).sum::<i64>(),
            Folding::Circle => {
                let factors = hosts.iter().map(|host| of(*host, index).wrapping_add(1));
                factors.fold(1, i64::wrapping_mul).wrapping_sub(1)
            }
            // From the last line on: what comes after is known.
            Folding::Lines => hosts.iter().rev().fold(0, |after: i64, host| {
                of(*host, index).wrapping_add(slope(*host).wrapping_mul(after))
            }),
        };
        (0..self.elements).map(element).collect()
    }
}

/// The orders in which the hosts that a sum has may stand, by the virtual nodes of each.
fn orders(sum: i64, places: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let mut orders: Vec<Vec<(u32, usize)>> = Vec::from([Vec::new()]);
    for (host, names) in places.iter().enumerate() {
        if sum & digit(host) == 0 {
            continue;
        }
        let mut longer = Vec::new();
        for order in &orders {
            for name in names {
                let mut order = order.clone();
                order.push((*name, host));
                longer.push(order);
            }
        }
        orders = longer;
    }
    let mut hosts: Vec<Vec<usize>> = Vec::new();
    for mut order in orders {
        order.sort_unstable();
        hosts.push(order.into_iter().map(|(_, host)| host).collect());
    }
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// What hosts define.
pub(super) fn definitions() -> [(OperationId, Definition); 2] {
    [definition(CIRCLE, circle), definition(LINES, lines)]
}

fn definition(name: &str, fold: fn(&mut [i64], &[i64])) -> (OperationId, Definition) {
    let function = move |into: &mut [u8], next: &[u8]| -> Result<(), FoldFailed> {
        let mut numbers = numbers_of(into);
        fold(&mut numbers, &numbers_of(next));
        let bytes: Vec<u8> = numbers.into_iter().flat_map(i64::to_le_bytes).collect();
        into.copy_from_slice(&bytes);
        Ok(())
    };
    (OperationId::of_name(name), Definition::new(Element::I64, function))
}

fn numbers_of(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

fn circle(into: &mut [i64], next: &[i64]) {
    for (one, other) in into.iter_mut().zip(next) {
        *one = one.wrapping_add(*other).wrapping_add(one.wrapping_mul(*other));
    }
}

fn lines(into: &mut [i64], next: &[i64]) {
    let slope = into.first().map_or(1, |first| first.wrapping_add(1));
    for (offset, other) in into.iter_mut().zip(next) {
        *offset = offset.wrapping_add(slope.wrapping_mul(*other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(hosts: &[usize]) -> i64 {
        hosts.iter().map(|host| digit(*host)).sum()
    }

    fn reduced(folding: Folding) -> Reduced {
        Reduced { root: 0, elements: 3, to_all: false, folding }
    }

    fn add(into: &mut [i64], next: &[i64]) {
        into.iter_mut().zip(next).for_each(|(one, other)| *one += other);
    }

    fn folded(what: &Reduced, fold: fn(&mut [i64], &[i64]), hosts: &[usize]) -> Vec<u8> {
        let mut values = hosts.iter().map(|host| numbers_of(what.value_of(*host).as_slice()));
        let mut into = values.next().unwrap();
        values.for_each(|next| fold(&mut into, &next));
        into.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    #[test]
    fn what_members_fold_in_steps_is_what_the_oracle_takes_at_once() {
        let places = [Vec::from([0]), Vec::from([2, 3]), Vec::from([4]), Vec::from([6])];
        let sum = sum(&[0, 1, 3]);
        for (folding, fold) in [
            (Folding::Circle, circle as fn(&mut [i64], &[i64])),
            (Folding::Lines, lines as fn(&mut [i64], &[i64])),
        ] {
            let what = reduced(folding);
            assert!(what.is_right(&folded(&what, fold, &[0, 1, 3]), &[sum], &places));
            for wrong in [&[0, 1][..], &[0, 1, 3, 3], &[0, 1, 2]] {
                assert!(!what.is_right(&folded(&what, fold, wrong), &[sum], &places));
            }
            let other = folded(&what, fold, &[1, 3, 0]);
            assert_eq!(what.is_right(&other, &[sum], &places), folding == Folding::Circle);
        }
    }

    #[test]
    fn a_value_of_another_length_is_wrong() {
        let places = [Vec::from([0]), Vec::from([2])];
        let sum = sum(&[0, 1]);
        for (folding, fold) in [
            (Folding::Sum, add as fn(&mut [i64], &[i64])),
            (Folding::Circle, circle as fn(&mut [i64], &[i64])),
            (Folding::Lines, lines as fn(&mut [i64], &[i64])),
        ] {
            let what = reduced(folding);
            let whole = folded(&what, fold, &[0, 1]);
            assert!(what.is_right(&whole, &[sum], &places), "{folding:?}");
            let longer = [&whole[..], &whole[..8]].concat();
            for wrong in [&[][..], &whole[..8], &longer[..]] {
                assert!(!what.is_right(wrong, &[sum], &places), "{folding:?}: {wrong:?}");
            }
        }
    }

    #[test]
    fn a_host_that_has_got_the_names_of_another_may_stand_in_its_place() {
        // The host 1 may have been handed a virtual node that comes after those of the host 2.
        let places = [Vec::from([0]), Vec::from([2, 5]), Vec::from([4])];
        assert_eq!(orders(sum(&[1, 2]), &places), [[1, 2], [2, 1]]);
        assert_eq!(orders(sum(&[0, 1, 2]), &places), [[0, 1, 2], [0, 2, 1]]);
    }
}
