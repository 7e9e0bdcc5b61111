//! `classes`: which back-ends sent the same key, and the content of each key once.
//!
//! A back-end sends `%s %s`, a key and a content. Back-ends with one key are one class; their
//! contents are taken to be the same, so that the first that comes is kept. The filter gives
//!
//! ```text
//! %aud   per class: how many ranges of ranks it has
//! %aud   first and last rank of every range, class after class
//! %as    per class, its key
//! %as    per class, its content
//! ```
//!
//! with the classes in the order of their smallest rank, and takes what it gives. [`Classes`] reads
//! it.
//!
//! Contents are bounded: where those of a wave have more than [`CLASS_CONTENT_BYTES_MAX`] together,
//! the longest are left out, and come out empty. Let a key say how long its content is, or give its
//! hash, and ask one member of the class for it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{
    Directive, ElementType, FormatRef, RankSet, RankSetRef, Shape, Slab, ValuesRef,
};

use crate::rank_columns::{self, EncodedSets, write_strings};
use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

const NAME: &str = "classes";

/// Most bytes of contents in one packet that the filter gives.
pub const CLASS_CONTENT_BYTES_MAX: usize = 1 << 20;

const STRING: Directive = Directive::new(ElementType::String, Shape::Scalar);

/// The values that the filter gives.
const LAYOUT: [Directive; 4] = [
    Directive::new(ElementType::Uint32, Shape::Array),
    Directive::new(ElementType::Uint32, Shape::Array),
    Directive::new(ElementType::String, Shape::Array),
    Directive::new(ElementType::String, Shape::Array),
];

struct ClassesFilter;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters(NAME, parameters)?;
    Ok(Box::new(ClassesFilter))
}

/// The state of a class while a wave is folded.
struct Gathered<'a> {
    ranks: RankSet,
    content: &'a [u8],
}

impl Filter for ClassesFilter {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut classes: BTreeMap<Cow<'_, [u8]>, Gathered<'_>> = BTreeMap::new();
        let mut add = |key, content, ranks: RankSetRef<'_>| {
            let none = || Gathered { ranks: RankSet::new(), content: &[] };
            let class = classes.entry(Cow::Borrowed(key)).or_insert_with(none);
            class.ranks.union_with(ranks);
            if class.content.is_empty() {
                class.content = content;
            }
        };
        for packet in wave.packets {
            let values = packet.values();
            if is_layout(packet.format) {
                for class in encoded_classes(values)? {
                    let (key, content, ranks) = class?;
                    add(key, content, ranks);
                }
            } else if packet.format.directives().eq([STRING; 2]) {
                add(values.string_bytes(0)?, values.string_bytes(1)?, packet.contributors);
            } else {
                return Err(FilterError::format(
                    NAME,
                    "'%s %s', a key and a content",
                    packet.format,
                ));
            }
        }
        let mut classes: Vec<_> = classes.into_iter().collect();
        // Stable: the order of the keys decides between classes that share their smallest rank.
        classes.sort_by_key(|(_, class)| class.ranks.as_ref().first());
        leave_out_longest(&mut classes);
        let length = wave.packets.iter().map(|packet| packet.body.len()).sum();
        out.emit_built(first.header.tag, LAYOUT.into_iter().collect(), length, |bytes| {
            write(&classes, bytes);
            Ok(())
        })
    }
}

/// Leaves the longest contents out until the others fit.
fn leave_out_longest(classes: &mut [(Cow<'_, [u8]>, Gathered<'_>)]) {
    let mut total: usize = classes.iter().map(|(_, class)| class.content.len()).sum();
    if total <= CLASS_CONTENT_BYTES_MAX {
        return;
    }
    let mut longest: Vec<&mut Gathered<'_>> = classes.iter_mut().map(|(_, class)| class).collect();
    longest.sort_by_key(|class| core::cmp::Reverse(class.content.len()));
    for class in longest {
        if total <= CLASS_CONTENT_BYTES_MAX {
            return;
        }
        total -= class.content.len();
        class.content = &[];
    }
}

fn write(classes: &[(Cow<'_, [u8]>, Gathered<'_>)], bytes: &mut Slab) {
    rank_columns::write(classes.iter().map(|(_, class)| class.ranks.as_ref()), bytes);
    write_strings(classes.iter().map(|(key, _)| &key[..]), bytes);
    write_strings(classes.iter().map(|(_, class)| class.content), bytes);
}

fn is_layout(format: FormatRef<'_>) -> bool {
    format.directives().eq(LAYOUT)
}

/// A class as it lies in a packet: its key, its content and its ranks.
type EncodedClass<'a> = Result<(&'a [u8], &'a [u8], RankSetRef<'a>), FilterError>;

/// The classes of a packet that the filter has made.
fn encoded_classes<'a>(
    values: ValuesRef<'a>,
) -> Result<impl Iterator<Item = EncodedClass<'a>>, FilterError> {
    let (keys, contents) = (values.strings(2)?, values.strings(3)?);
    if keys.len() != contents.len() {
        return Err(forged("other numbers of keys and contents"));
    }
    let mut sets = EncodedSets::read(values, 0, keys.len(), forged)?;
    Ok(keys.zip(contents).map(move |(key, content)| Ok((key, content, sets.next()?))))
}

#[cold]
fn forged(what: &str) -> FilterError {
    FilterError::Failed(alloc::format!("filter '{NAME}': a packet has {what}"))
}

/// Back-ends with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The key.
    pub key: Vec<u8>,
    /// The content; empty where it was left out.
    pub content: Vec<u8>,
    /// The ranks that sent it.
    pub ranks: RankSet,
}

/// The classes that the filter `classes` found.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    classes: Vec<Class>,
}

impl Classes {
    /// Reads the values of a packet that the filter has made.
    ///
    /// # Errors
    /// [`FilterError::Format`] when the format is another, [`FilterError::Values`] or
    /// [`FilterError::Failed`] when the values do not fit together.
    pub fn read(values: ValuesRef<'_>) -> Result<Self, FilterError> {
        if !is_layout(values.format()) {
            let takes = "its own output '%aud %aud %as %as' to be read";
            return Err(FilterError::format(NAME, takes, values.format()));
        }
        let mut classes = Vec::new();
        for class in encoded_classes(values)? {
            let (key, content, ranks) = class?;
            let (key, content) = (key.to_vec(), content.to_vec());
            classes.push(Class { key, content, ranks: ranks.to_set() });
        }
        Ok(Self { classes })
    }

    /// The classes, in the order of their smallest rank.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The classes themselves.
    #[must_use]
    pub fn into_classes(self) -> Vec<Class> {
        self.classes
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sapwood_packet::{Packet, Rank, Values};

    use super::*;

    fn sent(rank: Rank, key: &str, content: &[u8]) -> Packet {
        let mut packet = Packet::new(1, 100, Values::new().string(key).string(content));
        packet.contributors = RankSet::range(rank, rank);
        packet
    }

    fn folded(packets: &[Packet]) -> Packet {
        let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
        let mut contributors = RankSet::new();
        packets.iter().for_each(|packet| contributors.union_with(packet.contributors.as_ref()));
        let wave = WaveRef {
            stream: 1,
            wave: 0,
            packets: &lent,
            contributors: contributors.as_ref(),
            rank: 9,
            is_root: false,
            children: 2,
            back_ends: 4,
        };
        let mut out = Emitter::new();
        ClassesFilter.transform(&wave, &mut out).expect("a wave of its own packets");
        let (_, values) = out.emissions().next().expect("one packet");
        let mut packet = Packet::new(1, 100, values.to_values());
        packet.contributors = contributors;
        packet
    }

    fn read(packet: &Packet) -> Vec<Class> {
        Classes::read(packet.values()).expect("its own output").into_classes()
    }

    #[test]
    fn back_ends_with_one_key_are_one_class_however_deep_the_tree() {
        let left = folded(&[sent(0, "ok", b"yes"), sent(1, "bad", b"no")]);
        let right = folded(&[sent(2, "ok", b"yes"), sent(3, "ok", b"yes")]);
        let classes = read(&folded(&[left, right]));
        let seen: Vec<_> =
            classes.iter().map(|c| (&c.key[..], &c.content[..], c.ranks.clone())).collect();
        let ok: RankSet = [0, 2, 3].into_iter().collect();
        let bad = RankSet::range(1, 1);
        assert_eq!(seen, [(&b"ok"[..], &b"yes"[..], ok), (&b"bad"[..], &b"no"[..], bad)]);
    }

    #[test]
    fn the_longest_contents_are_left_out_where_there_is_no_room() {
        let long = vec![b'x'; CLASS_CONTENT_BYTES_MAX];
        let packets = [sent(0, "long", &long), sent(1, "short", b"s"), sent(2, "none", b"")];
        let classes = read(&folded(&packets));
        let lengths: Vec<_> = classes.iter().map(|class| class.content.len()).collect();
        assert_eq!(lengths, [0, 1, 0]);
        assert_eq!(read(&folded(&packets[..1]))[0].content.len(), CLASS_CONTENT_BYTES_MAX);
    }

    #[test]
    fn a_content_that_one_child_left_out_is_taken_from_another() {
        let without = folded(&[sent(0, "a", b"")]);
        let classes = read(&folded(&[without, sent(1, "a", b"content")]));
        assert_eq!(classes[0].content, b"content");
    }
}
