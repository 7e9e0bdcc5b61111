//! Choices made by an input: numbers, pieces of bytes, and values of any type.
//!
//! [`Source::typed`] makes a value of a type from the type's own description, the one that the
//! decoder uses. A message that gets a new variant or field is thus made with it at once, without
//! being named here.

use std::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

/// Longest list that is made, in elements.
const ELEMENTS_MAX: usize = 6;
/// Bytes from this one on say that a number follows in full.
const SMALL_NUMBERS: u8 = 240;
/// Bytes from this one on make a long text of one repeated piece.
const SHORT_TEXTS: u8 = 40;

/// An input that is used up from its front; behind its end everything is zero.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    /// All choices of an input.
    #[must_use]
    pub fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// Whether everything has been used up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// One of up to 256 choices; 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::from(self.byte()) % end }
    }

    /// One of some things; there must be one.
    pub fn choose<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number: mostly small, sometimes one of full width or the largest.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small if small < SMALL_NUMBERS => small.into(),
            255 => u64::MAX,
            254 => u64::MAX - 1,
            253 => u64::from(u32::MAX),
            252 => 1 << 63,
            _ => {
                let mut bytes = [0; 8];
                let given = self.bytes(8);
                bytes[..given.len()].copy_from_slice(given);
                u64::from_le_bytes(bytes)
            }
        }
    }

    /// At most this many of the next bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (piece, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        piece
    }

    /// What is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A text, sometimes a long one.
    pub fn text(&mut self) -> String {
        match self.byte() {
            short if short < SHORT_TEXTS => {
                String::from_utf8_lossy(self.bytes(short.into())).into_owned()
            }
            long => "lang \u{e9}".repeat(usize::from(long) * 8),
        }
    }

    /// A value of any type, or none when the type refuses what was made for it.
    pub fn typed<T: DeserializeOwned>(&mut self) -> Option<T> {
        T::deserialize(self).ok()
    }
}

/// Why a type did not take a value; it is not read.
#[derive(Debug)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type refuses this value")
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            visitor.$visit(self.number() as $type)
        }
    )*};
}

macro_rules! same_as {
    ($($method:ident $other:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.$other(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Source<'_> {
    type Error = Refused;

    numbers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_f32 visit_f32 f32;
        deserialize_f64 visit_f64 f64;
    }

    same_as! {
        deserialize_any deserialize_u64;
        deserialize_ignored_any deserialize_u64;
        deserialize_identifier deserialize_u64;
        deserialize_str deserialize_string;
        deserialize_bytes deserialize_byte_buf;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bool(self.flag())
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_char(self.byte().into())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_string(self.text())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let length = self.byte().into();
        visitor.visit_byte_buf(self.bytes(length).to_vec())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if self.flag() { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let left = self.below(ELEMENTS_MAX + 1);
        visitor.visit_seq(Elements { source: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements { source: self, left })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        left: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements { source: self, left })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let left = self.below(ELEMENTS_MAX + 1);
        visitor.visit_map(Elements { source: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements { source: self, left: fields.len() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let variant = self.below(variants.len()) as u32;
        visitor.visit_enum(Chosen { source: self, variant })
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a list, or the fields of a struct.
struct Elements<'s, 'a> {
    source: &'s mut Source<'a>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refused> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.source).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, '_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(&mut *self.source)
    }
}

/// One variant of an enum.
struct Chosen<'s, 'a> {
    source: &'s mut Source<'a>,
    variant: u32,
}

impl<'de> EnumAccess<'de> for Chosen<'_, '_> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Refused> {
        let value =
            seed.deserialize(IntoDeserializer::<Refused>::into_deserializer(self.variant))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen<'_, '_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        seed.deserialize(self.source)
    }

    fn tuple_variant<V: Visitor<'de>>(self, left: usize, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements { source: self.source, left })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements { source: self.source, left: fields.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_wire::Control;
    use std::collections::BTreeSet;

    #[test]
    fn every_variant_of_a_message_is_made() {
        let kinds: BTreeSet<String> = (0..=255)
            .filter_map(|first| Source::new(&[first, 1, 1, 1, 1]).typed::<Control>())
            .map(|message| format!("{:?}", std::mem::discriminant(&message)))
            .collect();
        assert!(kinds.len() >= 15, "{kinds:?}");
    }

    #[test]
    fn an_empty_input_makes_the_first_of_everything() {
        let mut source = Source::new(&[]);
        assert_eq!((source.number(), source.text()), (0, String::new()));
        assert!(source.typed::<Control>().is_some());
    }
}
