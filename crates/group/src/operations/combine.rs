//! Operations on arrays of numbers, and the list of contributions.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::defined::{Definition, FoldFailed, OperationId};

/// The type of the elements of a value, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Element {
    /// Bytes without a type.
    Byte,
    /// 32-bit signed integers; sums wrap.
    I32,
    /// 64-bit signed integers; sums wrap.
    I64,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

impl Element {
    /// The length of one, in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// What is done with two values; all are associative and commutative, floating-point sums nearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// The sums of the elements.
    Sum,
    /// Their products.
    Product,
    /// The smaller ones.
    Min,
    /// The larger ones.
    Max,
    /// The bits that both have.
    And,
    /// The bits that one has.
    Or,
    /// All values, as a list by virtual node.
    Gather,
    /// The sums in the order of the virtual nodes, whatever the tree: the values are gathered, and
    /// the root adds them up.
    SumInOrder,
    /// What members have defined ([`Input::Define`](crate::Input::Define)), element by element in
    /// any order.
    Defined(OperationId),
    /// The same, of whole values in the order of the virtual nodes: the values are gathered, and
    /// the root folds them.
    DefinedInOrder(OperationId),
}

impl Operation {
    /// Whether values are kept apart on their way.
    #[must_use]
    pub fn keeps_apart(self) -> bool {
        self == Self::Gather || self.is_in_order()
    }

    /// Whether the root folds the values, in the order of the virtual nodes.
    pub(super) fn is_in_order(self) -> bool {
        matches!(self, Self::SumInOrder | Self::DefinedInOrder(_))
    }

    /// Which of the operations that members define.
    pub(super) fn defined(self) -> Option<OperationId> {
        match self {
            Self::Defined(operation) | Self::DefinedInOrder(operation) => Some(operation),
            _ => None,
        }
    }

    /// Folds one value of a type into another of the same length, or adds it to those that are
    /// kept apart.
    ///
    /// # Errors
    /// [`FoldFailed`] of an operation that members define: its function has failed, or there is
    /// none here.
    pub(super) fn fold(
        self,
        element: Element,
        definition: Option<&Definition>,
        into: &mut Vec<u8>,
        value: &[u8],
    ) -> Result<(), FoldFailed> {
        if self.keeps_apart() {
            into.extend_from_slice(value);
            return Ok(());
        }
        if self.defined().is_some() {
            return definition.ok_or(FoldFailed)?.fold(into, value);
        }
        self.fold_built_in(element, into, value);
        Ok(())
    }

    fn fold_built_in(self, element: Element, into: &mut [u8], value: &[u8]) {
        match element {
            Element::Byte => pairs::<1>(into, value, |a, b| [self.byte(a[0], b[0])]),
            Element::I32 => pairs(into, value, |a, b| {
                let (a, b) = (i32::from_le_bytes(a), i32::from_le_bytes(b));
                self.integer(a, b, i32::wrapping_add, i32::wrapping_mul).to_le_bytes()
            }),
            Element::I64 => pairs(into, value, |a, b| {
                let (a, b) = (i64::from_le_bytes(a), i64::from_le_bytes(b));
                self.integer(a, b, i64::wrapping_add, i64::wrapping_mul).to_le_bytes()
            }),
            Element::F32 => pairs(into, value, |a, b| {
                let (a, b) = (f32::from_le_bytes(a), f32::from_le_bytes(b));
                (self.float(f64::from(a), f64::from(b)) as f32).to_le_bytes()
            }),
            Element::F64 => pairs(into, value, |a, b| {
                self.float(f64::from_le_bytes(a), f64::from_le_bytes(b)).to_le_bytes()
            }),
        }
    }

    fn byte(self, a: u8, b: u8) -> u8 {
        self.integer(a, b, u8::wrapping_add, u8::wrapping_mul)
    }

    fn integer<T>(self, a: T, b: T, add: fn(T, T) -> T, multiply: fn(T, T) -> T) -> T
    where
        T: Ord + core::ops::BitAnd<Output = T> + core::ops::BitOr<Output = T>,
    {
        match self {
            Self::Product => multiply(a, b),
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::And => a & b,
            Self::Or => a | b,
            _ => add(a, b),
        }
    }

    fn float(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Product => a * b,
            Self::Min => a.min(b),
            Self::Max => a.max(b),
            Self::And => f64::from_bits(a.to_bits() & b.to_bits()),
            Self::Or => f64::from_bits(a.to_bits() | b.to_bits()),
            _ => a + b,
        }
    }
}

fn pairs<const N: usize>(
    into: &mut [u8],
    value: &[u8],
    fold: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    for (a, b) in into.as_chunks_mut::<N>().0.iter_mut().zip(value.as_chunks::<N>().0) {
        *a = fold(*a, *b);
    }
}

/// One entry of a list of contributions: 4 bytes of virtual node, 4 of length, then the value.
pub(crate) fn entry(name: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + value.len());
    bytes.extend_from_slice(&name.to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// The contributions of a gather, by virtual node; what is cut off at the end is left out.
#[must_use]
pub fn contributions(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut entries = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(8) {
        let name = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some((value, rest)) = rest.split_at_checked(length) else { break };
        entries.push((name, value));
        bytes = rest;
    }
    entries.sort_by_key(|entry| entry.0);
    entries
}

/// Contributions folded in the order of the virtual nodes: added, or by what members have defined.
///
/// # Errors
/// [`FoldFailed`] of an operation that members define: its function has failed, or there is none
/// here.
pub(super) fn fold_in_order(
    operation: Operation,
    element: Element,
    definition: Option<&Definition>,
    gathered: &[u8],
) -> Result<Vec<u8>, FoldFailed> {
    let mut entries = contributions(gathered).into_iter();
    let mut folded = entries.next().map(|entry| entry.1.to_vec()).unwrap_or_default();
    for (_, value) in entries {
        match operation.defined() {
            Some(_) => definition.ok_or(FoldFailed)?.fold(&mut folded, value)?,
            None => Operation::Sum.fold_built_in(element, &mut folded, value),
        }
    }
    Ok(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_extremes_are_by_element() {
        let mut sum = [1_i64, -5].map(i64::to_le_bytes).concat();
        let more = [2_i64, 7].map(i64::to_le_bytes).concat();
        Operation::Sum.fold_built_in(Element::I64, &mut sum, &more);
        assert_eq!(sum, [3_i64, 2].map(i64::to_le_bytes).concat());
        let mut least = 2.5_f64.to_le_bytes().to_vec();
        Operation::Min.fold_built_in(Element::F64, &mut least, &(-1.0_f64).to_le_bytes());
        assert_eq!(least, (-1.0_f64).to_le_bytes());
    }

    #[test]
    fn contributions_are_listed_in_order_and_summed_in_order() {
        let mut list = entry(7, &0.25_f64.to_le_bytes());
        list.extend(entry(2, &1.0_f64.to_le_bytes()));
        assert_eq!(contributions(&list).iter().map(|one| one.0).collect::<Vec<_>>(), [2, 7]);
        let fold = |operation| fold_in_order(operation, Element::F64, None, &list);
        assert_eq!(fold(Operation::SumInOrder), Ok(1.25_f64.to_le_bytes().to_vec()));
        let undefined = Operation::DefinedInOrder(OperationId::of_name("of no member"));
        assert_eq!(fold(undefined), Err(FoldFailed), "it is no sum");
        assert!(contributions(&list[..5]).is_empty());
    }
}
