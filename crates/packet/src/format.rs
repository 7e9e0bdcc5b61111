//! Format strings in the manner of C formatted output: what the values of a packet are.
//!
//! A format is a sequence of directives, separated by spaces: `%d` is a scalar, `%ad` an array with
//! a 32-bit length, `%Ad` one with a 64-bit length. On the wire and in memory a directive is one
//! byte: its shape in the high four bits, its [`ElementType`] in the low four.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use smallvec::SmallVec;

use crate::{ElementType, PacketError};

/// How many values a packet may have.
pub const DIRECTIVES_MAX: usize = 64;

/// How many elements a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Shape {
    /// One element.
    Scalar = 0,
    /// Fewer than 2^32 elements.
    Array = 1,
    /// Any number of elements.
    LargeArray = 2,
}

/// One directive of a format string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Directive {
    /// What one element is.
    pub element: ElementType,
    /// How many there are.
    pub shape: Shape,
}

impl Directive {
    /// A directive of that element and shape.
    #[must_use]
    pub const fn new(element: ElementType, shape: Shape) -> Self {
        Self { element, shape }
    }

    /// Its byte in a packet.
    #[must_use]
    pub const fn code(self) -> u8 {
        ((self.shape as u8) << 4) | self.element as u8
    }

    /// The directive of a byte, if it is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        let shape = match code >> 4 {
            0 => Shape::Scalar,
            1 => Shape::Array,
            2 => Shape::LargeArray,
            _ => return None,
        };
        let element = *ElementType::ALL.get(usize::from(code & 15).checked_sub(1)?)?;
        Some(Self { element, shape })
    }

    /// Parses one directive with its `%`.
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('%')?;
        let (shape, letters) = match rest.as_bytes().first()? {
            b'a' => (Shape::Array, &rest[1..]),
            b'A' => (Shape::LargeArray, &rest[1..]),
            _ => (Shape::Scalar, rest),
        };
        let element = ElementType::ALL.into_iter().find(|element| element.letters() == letters)?;
        Some(Self { element, shape })
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.shape {
            Shape::Scalar => "",
            Shape::Array => "a",
            Shape::LargeArray => "A",
        };
        write!(f, "%{mark}{}", self.element.letters())
    }
}

/// A format that owns its directives.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Format {
    codes: SmallVec<[u8; 16]>,
}

impl Format {
    /// The format of a packet without values.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Lends it.
    #[must_use]
    pub fn as_ref(&self) -> FormatRef<'_> {
        FormatRef { codes: &self.codes }
    }

    /// Becomes a copy of another format, keeping the memory.
    #[inline]
    pub fn copy_from(&mut self, other: FormatRef<'_>) {
        self.codes.clear();
        self.codes.extend_from_slice(other.codes);
    }

    /// Forgets all directives.
    pub fn clear(&mut self) {
        self.codes.clear();
    }

    /// Adds a directive at the end. A format with more than [`DIRECTIVES_MAX`] directives is
    /// refused when the packet is sent.
    pub fn push(&mut self, directive: Directive) {
        self.codes.push(directive.code());
    }
}

impl FromIterator<Directive> for Format {
    fn from_iter<I: IntoIterator<Item = Directive>>(directives: I) -> Self {
        Self { codes: directives.into_iter().map(Directive::code).collect() }
    }
}

impl FromStr for Format {
    type Err = PacketError;

    fn from_str(text: &str) -> Result<Self, PacketError> {
        let mut format = Self::empty();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            let at = text.len() - rest.len();
            // A directive ends before white space, or before the `%` of one that follows at once.
            let ends = |&(place, c): &(usize, char)| place > 0 && (c.is_whitespace() || c == '%');
            let end = rest.char_indices().find(ends).map_or(rest.len(), |(place, _)| place);
            let directive = Directive::parse(&rest[..end])
                .ok_or_else(|| PacketError::Directive { text: String::from(&rest[..end]), at })?;
            format.push(directive);
            rest = &rest[end..];
        }
        if format.codes.len() > DIRECTIVES_MAX {
            return Err(PacketError::TooManyDirectives { count: format.codes.len() });
        }
        Ok(format)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// A format lent from a packet; every byte is known to be a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FormatRef<'a> {
    codes: &'a [u8],
}

impl<'a> FormatRef<'a> {
    /// Checks bytes that came from outside.
    #[must_use]
    #[inline]
    pub fn from_codes(codes: &'a [u8]) -> Option<Self> {
        let known = |code: &u8| (1..=11).contains(&(code & 15)) && code >> 4 <= 2;
        (codes.len() <= DIRECTIVES_MAX && codes.iter().all(known)).then_some(Self { codes })
    }

    /// The bytes, one per directive.
    #[must_use]
    pub fn codes(self) -> &'a [u8] {
        self.codes
    }

    /// How many values there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.codes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.codes.is_empty()
    }

    /// The directive of a value.
    #[must_use]
    #[inline]
    pub fn directive(self, index: usize) -> Option<Directive> {
        Directive::from_code(*self.codes.get(index)?)
    }

    /// All directives in order.
    pub fn directives(self) -> impl Iterator<Item = Directive> + 'a {
        self.codes.iter().filter_map(|&code| Directive::from_code(code))
    }

    /// A copy that owns its directives.
    #[must_use]
    pub fn to_format(self) -> Format {
        Format { codes: SmallVec::from_slice(self.codes) }
    }
}

impl fmt::Display for FormatRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, directive) in self.directives().enumerate() {
            let space = if index == 0 { "" } else { " " };
            f.write_str(space)?;
            f.write_str(&directive.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_of_the_language_is_read_and_written() {
        for element in ElementType::ALL {
            for shape in [Shape::Scalar, Shape::Array, Shape::LargeArray] {
                let directive = Directive::new(element, shape);
                let format: Format = directive.to_string().parse().expect("own spelling");
                assert_eq!(format.as_ref().directive(0), Some(directive));
                assert_eq!(Directive::from_code(directive.code()), Some(directive));
            }
        }
    }

    #[test]
    fn spaces_between_directives_may_be_left_out() {
        let format: Format = "%d%alf  %s".parse().expect("three directives");
        assert_eq!(format.to_string(), "%d %alf %s");
    }

    #[test]
    fn an_unknown_directive_is_quoted_with_its_place() {
        let error = "%d %q".parse::<Format>().expect_err("%q is none");
        assert_eq!(
            error.to_string(),
            "format string: '%q' at byte 3 is no directive; write one as in '%d %alf %s'"
        );
        for text in ["d", "%", "%%", "%a", "%lld", "%ä", "ä", "%d,"] {
            assert!(text.parse::<Format>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_format_has_a_limit() {
        let text = "%d ".repeat(DIRECTIVES_MAX + 1);
        assert!(matches!(text.parse::<Format>(), Err(PacketError::TooManyDirectives { .. })));
    }
}
