//! Bounds of lists and texts in control messages, so that a short message never costs much memory,
//! and the order of rank sets, so that no forged one gets any further.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use sapwood_packet::{RankRange, RankSetRef};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::limits::{FILE_NAME_BYTES_MAX, RANGES_MAX};

/// Reads a list of at most `MOST` elements; a count above that is refused before any is read.
pub(crate) fn at_most<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Bounded::<T, MOST>(PhantomData))
}

/// Reads the ranges of a rank set: no more than allowed, and those of a set.
pub(crate) fn in_order<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<RankRange>, D::Error> {
    let ranges: Vec<RankRange> = at_most::<_, _, RANGES_MAX>(deserializer)?;
    RankSetRef::from_ranges(&ranges).map_err(D::Error::custom)?;
    Ok(ranges)
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

/// Texts for people: cut to [`TEXT_BYTES_MAX`] where they are written, refused beyond it.
///
/// [`TEXT_BYTES_MAX`]: crate::limits::TEXT_BYTES_MAX
pub(crate) mod text {
    use super::{Deserialize, Deserializer, Error, String};
    use crate::limits::TEXT_BYTES_MAX;
    use serde::Serializer;

    pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
        serializer.serialize_str(&text[..end])
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > TEXT_BYTES_MAX {
            return Err(D::Error::invalid_length(text.len(), &"a text of at most 4096 bytes"));
        }
        Ok(text)
    }
}

/// Reads the name of a file, which is short.
pub(crate) fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.len() > FILE_NAME_BYTES_MAX {
        return Err(D::Error::invalid_length(name.len(), &"a name of at most 255 bytes"));
    }
    Ok(name)
}

/// The part of a file: its bytes are written and read in one piece. In JSON it is a list.
pub(crate) mod part {
    use super::{Deserializer, Error, SeqAccess, Vec, Visitor, fmt};
    use crate::limits::FILE_PART_BYTES_MAX;
    use serde::Serializer;

    pub(crate) fn serialize<S: Serializer>(part: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(part)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_bytes(Part)
    }

    struct Part;

    impl<'de> Visitor<'de> for Part {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at least 1 and at most {FILE_PART_BYTES_MAX} bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            match bytes.len() {
                1..=FILE_PART_BYTES_MAX => Ok(bytes.to_vec()),
                length => Err(E::invalid_length(length, &self)),
            }
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = list.next_element()? {
                bytes.push(byte);
            }
            self.visit_bytes(&bytes)
        }
    }
}
