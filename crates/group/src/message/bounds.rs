//! Bounds of lists, texts and numbers in messages, so that a short message never costs much memory,
//! and that sums of what members say do not overflow.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::{Message, Record};
use crate::error::GroupError;
use crate::identity::Time;
use crate::limits::{EPOCH_MAX, ROUND_TRIP_MAX, STATED_TIME_MAX};

/// Reads a list of at most `MOST` elements; a count above that is refused before any is read.
pub(crate) fn at_most<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Bounded::<T, MOST>(PhantomData))
}

/// Cuts round trips and distances to [`ROUND_TRIP_MAX`], and what messages and bytes cost to their
/// limits.
///
/// # Errors
/// [`GroupError::Message`] for a length, stripe or segment that no value has, for a route that is
/// no tree, for an epoch that no member has, and for a distance that no network has.
pub(super) fn bound_numbers(message: &mut Message) -> Result<(), GroupError> {
    if epochs(message).any(|epoch| epoch > EPOCH_MAX) {
        return Err(GroupError::Message("an epoch that no member has".to_string()));
    }
    match message {
        Message::Welcome { table, .. } | Message::Clusters { table, .. } => {
            table.distances.iter_mut().try_for_each(|(_, _, time)| cut(time))?;
            table.costs.bound();
        }
        Message::Costs { costs } => costs.bound(),
        Message::Report { distances } => {
            distances.iter_mut().try_for_each(|(_, time)| cut(time))?;
        }
        Message::ProbeReply { positions, .. } => {
            positions.iter_mut().try_for_each(|(_, position)| cut(&mut position.distance))?;
        }
        Message::Above { position, .. } => cut(&mut position.distance)?,
        Message::Open { head, .. } if !head.is_sound() => return Err(unsound("a transfer")),
        Message::Part { head, .. } if !head.is_sound() => return Err(unsound("a part")),
        Message::Open { route, .. } if !route.is_pre_order() => {
            return Err(GroupError::Message("a route that is no tree".to_string()));
        }
        _ => {}
    }
    Ok(())
}

/// A member that was stopped meanwhile may have measured more than counts, but no more than it may
/// state.
fn cut(time: &mut Time) -> Result<(), GroupError> {
    if *time > STATED_TIME_MAX {
        return Err(GroupError::Message(format!("a distance of {time} ns, which no network has")));
    }
    *time = (*time).min(ROUND_TRIP_MAX);
    Ok(())
}

/// The epochs that a message names.
fn epochs(message: &Message) -> impl Iterator<Item = u32> + '_ {
    let (records, single): (&[Record], Option<u32>) = match message {
        Message::Welcome { records, .. } | Message::Update { records, .. } => (records, None),
        Message::Join { record, .. } => (&[], Some(record.epoch)),
        Message::Give { gift } => (&[], Some(gift.epoch)),
        _ => (&[], None),
    };
    records.iter().map(|record| record.epoch).chain(single)
}

fn unsound(what: &str) -> GroupError {
    GroupError::Message(format!("{what} of a length, stripe or segment that no value has"))
}

/// Reads a text of at most `MOST` bytes.
pub(super) fn short<'de, D: Deserializer<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() > MOST {
        return Err(D::Error::invalid_length(text.len(), &"a shorter text"));
    }
    Ok(text)
}

struct Bounded<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Bounded<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let count = list.size_hint().unwrap_or_default();
        if count > MOST {
            return Err(A::Error::invalid_length(count, &self));
        }
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            if elements.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            elements.try_reserve(1).map_err(|_| A::Error::custom("out of memory"))?;
            elements.push(element);
        }
        Ok(elements)
    }
}
