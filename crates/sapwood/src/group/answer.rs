//! What an operation has given.

use std::ops::Range;

use sapwood_group::operations::contributions;
use sapwood_group::{Answer, Payload, Reason};
use sapwood_packet::RankSet;

use super::failure::GroupFailure;
use super::value::{Number, numbers_of};
use crate::Result;

/// The end of an operation: its value where it gives one to this member, which members took part,
/// and which did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupAnswer {
    value: Option<Payload>,
    /// The virtual nodes that have taken part.
    pub contributors: RankSet,
    /// Those that have not, and why.
    pub missing: Vec<(RankSet, Reason)>,
}

impl GroupAnswer {
    pub(super) fn new(
        value: Option<Payload>,
        contributors: RankSet,
        missing: Vec<(RankSet, Reason)>,
    ) -> Self {
        Self { value, contributors, missing }
    }

    /// Whether it has a value.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// The value.
    ///
    /// # Errors
    /// [`GroupFailure::NoValue`] if there is none: the operation gives one to others only, or
    /// [`GroupAnswer::missing`] says why.
    pub fn bytes(&self) -> Result<&[u8]> {
        let none = || GroupFailure::NoValue { missing: self.missing.clone() };
        Ok(self.value.as_ref().ok_or_else(none)?.as_slice())
    }

    /// The value as numbers.
    ///
    /// # Errors
    /// As [`GroupAnswer::bytes`]; [`GroupFailure::NotNumbers`] if it is not made of them.
    pub fn numbers<T: Number>(&self) -> Result<Vec<T>> {
        let bytes = self.bytes()?;
        let element = T::ELEMENT.bytes();
        let uneven = GroupFailure::NotNumbers { bytes: bytes.len(), element };
        Ok(numbers_of(bytes).ok_or(uneven)?)
    }

    /// The values of a gather, all-gather, scatter or all-to-all, each with its virtual node.
    ///
    /// # Errors
    /// As [`GroupAnswer::bytes`].
    pub fn parts(&self) -> Result<Vec<(u32, &[u8])>> {
        Ok(contributions(self.bytes()?))
    }

    pub(super) fn without_value(mut self) -> Self {
        self.value = None;
        self
    }

    /// One part shares the memory of the value.
    pub(super) fn with_blocks(mut self, blocks: &[Range<usize>]) -> Self {
        self.value = self.value.map(|value| match blocks {
            [block] => value.part(block.start, block.len()),
            _ => {
                let of_each = blocks.iter().filter_map(|block| value.as_slice().get(block.clone()));
                Payload::from(of_each.collect::<Vec<&[u8]>>().concat())
            }
        });
        self
    }
}

impl From<Answer> for GroupAnswer {
    fn from(answer: Answer) -> Self {
        let Answer { value, contributors, missing } = answer;
        Self { value, contributors, missing }
    }
}
