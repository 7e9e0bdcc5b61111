//! `equivalence`: which back-ends sent the same.
//!
//! Two packets are the same when their formats and their encoded values are, byte for byte (so -0.0
//! is not 0.0, and a NaN equals itself). The filter gives one packet of three values, the classes
//! in the order of their smallest rank:
//!
//! ```text
//! %aud   per class: how many ranges of ranks it has
//! %aud   first and last rank of every range, class after class
//! %as    per class, its key: | number of directives, 1 byte | their codes | encoded values |
//! ```
//!
//! [`EquivalenceClasses`] reads them. What the filter gives it also takes, so that it works at
//! every node of a tree.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use sapwood_packet::{
    Directive, ElementType, FormatRef, PacketRef, RankSet, RankSetRef, Shape, Values, ValuesRef,
    try_reserve,
};

use crate::rank_columns::{self, EncodedSets, write_strings};
use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

const NAME: &str = "equivalence";

/// The values that the filter gives.
const LAYOUT: [Directive; 3] = [
    Directive::new(ElementType::Uint32, Shape::Array),
    Directive::new(ElementType::Uint32, Shape::Array),
    Directive::new(ElementType::String, Shape::Array),
];

struct Equivalence;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(Equivalence))
}

impl Filter for Equivalence {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut classes = BTreeMap::new();
        for packet in wave.packets {
            if packet.header.filtered && is_layout(packet.format) {
                for class in encoded_classes(packet.values())? {
                    let (key, ranks) = class?;
                    add(&mut classes, Cow::Borrowed(key), ranks);
                }
            } else {
                add(&mut classes, Cow::Owned(key_of(packet)?), packet.contributors);
            }
        }
        let mut classes: Vec<_> = classes.into_iter().collect();
        // Stable: the order of the keys decides between classes that share their smallest rank.
        classes.sort_by_key(|(_, ranks)| ranks.as_ref().first());
        let length = wave.packets.iter().map(|packet| packet.body.len()).sum();
        out.emit_built(first.header.tag, LAYOUT.into_iter().collect(), length, |bytes| {
            rank_columns::write(classes.iter().map(|(_, ranks)| ranks.as_ref()), bytes);
            write_strings(classes.iter().map(|(key, _)| &key[..]), bytes);
            Ok(())
        })
    }
}

fn add<'a>(
    classes: &mut BTreeMap<Cow<'a, [u8]>, RankSet>,
    key: Cow<'a, [u8]>,
    ranks: RankSetRef<'_>,
) {
    classes.entry(key).or_default().union_with(ranks);
}

/// The key of a back-end's own packet. A format has at most 64 directives.
fn key_of(packet: &PacketRef<'_>) -> Result<Vec<u8>, FilterError> {
    let codes = packet.format.codes();
    let mut key = Vec::new();
    try_reserve(&mut key, 1 + codes.len() + packet.body.len())?;
    key.push(codes.len() as u8);
    key.extend_from_slice(codes);
    key.extend_from_slice(packet.body);
    Ok(key)
}

fn is_layout(format: FormatRef<'_>) -> bool {
    format.directives().eq(LAYOUT)
}

/// A class as it lies in a packet: its key and its ranks.
type EncodedRanks<'a> = Result<(&'a [u8], RankSetRef<'a>), FilterError>;

/// The classes of a packet that the filter has made.
fn encoded_classes<'a>(
    values: ValuesRef<'a>,
) -> Result<impl Iterator<Item = EncodedRanks<'a>>, FilterError> {
    let keys = values.strings(2)?;
    let mut sets = EncodedSets::read(values, 0, keys.len(), forged)?;
    Ok(keys.map(move |key| Ok((key, sets.next()?))))
}

/// The values behind a key.
fn values_of(key: &[u8]) -> Result<Values, FilterError> {
    let no_format = || forged("a key without format");
    let (&count, rest) = key.split_first().ok_or_else(no_format)?;
    let (codes, body) = rest.split_at_checked(usize::from(count)).ok_or_else(no_format)?;
    let format = FormatRef::from_codes(codes).ok_or_else(no_format)?;
    Ok(ValuesRef::parse(format, body)?.to_values())
}

#[cold]
fn forged(what: &str) -> FilterError {
    FilterError::Failed(alloc::format!(
        "filter '{NAME}': a packet of classes has {what}; it was not made by this filter"
    ))
}

/// Back-ends that sent the same.
#[derive(Clone, Debug)]
pub struct EquivalenceClass {
    /// The values that they sent.
    pub values: Values,
    /// Their ranks; never empty, unless the packets had no contributors.
    pub ranks: RankSet,
}

/// The classes that the filter `equivalence` found.
#[derive(Clone, Debug, Default)]
pub struct EquivalenceClasses {
    classes: Vec<EquivalenceClass>,
}

impl EquivalenceClasses {
    /// Reads the values of a packet that the filter has made.
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn read(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        if !is_layout(values.format()) {
            let takes = "its own output '%aud %aud %as' to be read";
            return Err(FilterError::format(NAME, takes, values.format()));
        }
        let mut classes = Vec::new();
        for class in encoded_classes(values)? {
            let (key, ranks) = class?;
            classes.push(EquivalenceClass { values: values_of(key)?, ranks: ranks.to_set() });
        }
        // Stable: of classes of one size, the one with the smallest rank comes first.
        classes.sort_by_key(|class| Reverse(class.ranks.len()));
        Ok(Self { classes })
    }

    /// The classes, the largest first; of equally large ones, that with the smallest rank first.
    #[must_use]
    pub fn classes(&self) -> &[EquivalenceClass] {
        &self.classes
    }

    /// The class that a back-end is in.
    #[must_use]
    pub fn class_of(&self, rank: sapwood_packet::Rank) -> Option<&EquivalenceClass> {
        self.classes.iter().find(|class| class.ranks.contains(rank))
    }
}

impl core::fmt::Display for EquivalenceClasses {
    /// One line per class: its size, its ranks, its format.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let lines = self.classes.iter().map(|class| {
            let format = class.values.as_ref().format();
            alloc::format!("{} back-ends ({}): '{format}'", class.ranks.len(), class.ranks)
        });
        let lines: Vec<String> = lines.collect();
        f.write_str(&lines.join("\n"))
    }
}
