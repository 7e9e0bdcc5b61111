//! An event that is counted: an MPI function on communicators of one size, or a region of the
//! program.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use core::fmt;

use crate::{Class, Function, FunctionId};

/// The longest name of a region, in bytes; what is longer is not an event.
pub const REGION_NAME_BYTES_MAX: usize = 255;

/// The size of a communicator's local group, rounded up to a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeClass(u8);

impl SizeClass {
    /// Of functions that take no communicator, and of calls that returned an error.
    pub const NONE: Self = Self(255);
    /// MPI counts ranks in a C `int`.
    const LARGEST: u8 = 31;

    /// The size class of a code: `ceil(log2(size))`, or 255 for none.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code <= Self::LARGEST || code == Self::NONE.0 { Some(Self(code)) } else { None }
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The smallest and the largest size in it; nothing for [`SizeClass::NONE`].
    #[must_use]
    pub const fn sizes(self) -> Option<(u32, u32)> {
        match self.0 {
            255 => None,
            0 => Some((1, 1)),
            code => Some(((1 << (code - 1)) + 1, 1 << code)),
        }
    }
}

impl fmt::Display for SizeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sizes() {
            None => f.pad(""),
            Some((first, last)) if first == last => f.pad(&format!("{first}")),
            Some((first, last)) => f.pad(&format!("{first}-{last}")),
        }
    }
}

/// Names an event, in the same way on every rank. Functions come before regions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKey {
    /// An MPI function on communicators of one size class.
    Function {
        /// Its number, from 1; [`Function::of`] may not know it when the shim is newer.
        id: FunctionId,
        /// The size class of the communicator.
        size_class: SizeClass,
    },
    /// A part of the program between a begin and an end, by its name.
    Region(String),
}

impl EventKey {
    /// The name of the function or region.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Function { id, .. } => match Function::of(*id) {
                Some(function) => Cow::Borrowed(function.name),
                None => Cow::Owned(format!("MPI function {id}")),
            },
            Self::Region(name) => Cow::Borrowed(name),
        }
    }

    /// Its function class; [`Class::Other`] for functions that this release does not know.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Function { id, .. } => {
                Function::of(*id).map_or(Class::Other, |known| known.class)
            }
            Self::Region(_) => Class::Region,
        }
    }

    /// The size class of its communicator, [`SizeClass::NONE`] for regions.
    #[must_use]
    pub const fn size_class(&self) -> SizeClass {
        match self {
            Self::Function { size_class, .. } => *size_class,
            Self::Region(_) => SizeClass::NONE,
        }
    }

    /// The key of a function out of its word, `id << 8 | size class`; bit 31 is free for others.
    #[must_use]
    pub fn from_word(word: u32) -> Option<Self> {
        let [code, ..] = word.to_le_bytes();
        let (id, size_class) = (word >> 8, SizeClass::from_code(code)?);
        (id != 0 && word >> 31 == 0).then_some(Self::Function { id, size_class })
    }

    /// The word of a function's key.
    pub(crate) const fn to_word(id: FunctionId, size_class: SizeClass) -> u32 {
        (id << 8) | size_class.0 as u32
    }

    /// The key of a region, if its name is one.
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        let fits = !name.is_empty() && name.len() <= REGION_NAME_BYTES_MAX;
        let name = core::str::from_utf8(name).ok().filter(|_| fits)?;
        Some(Self::Region(String::from(name)))
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size_class() {
            SizeClass::NONE => f.pad(&self.name()),
            size_class => f.pad(&format!("{} ({size_class})", self.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_size_class_says_which_sizes_it_holds() {
        let text = |code| SizeClass::from_code(code).map(|class| class.to_string());
        assert_eq!(text(0).as_deref(), Some("1"));
        assert_eq!(text(1).as_deref(), Some("2"));
        assert_eq!(text(2).as_deref(), Some("3-4"));
        assert_eq!(text(3).as_deref(), Some("5-8"));
        assert_eq!(text(31).as_deref(), Some("1073741825-2147483648"));
        assert_eq!(text(255).as_deref(), Some(""));
        assert_eq!(text(32), None);
    }

    #[test]
    fn an_event_is_shown_with_the_size_of_its_communicator() {
        let id = Function::named("MPI_Bcast").expect("every MPI has it").id;
        let size_class = SizeClass::from_code(3).expect("a class");
        assert_eq!(EventKey::Function { id, size_class }.to_string(), "MPI_Bcast (5-8)");
        let size_class = SizeClass::NONE;
        assert_eq!(EventKey::Function { id, size_class }.to_string(), "MPI_Bcast");
        assert_eq!(EventKey::Function { id: 99_999, size_class }.to_string(), "MPI function 99999");
        assert_eq!(EventKey::Region("solve".to_string()).to_string(), "solve");
    }

    #[test]
    fn words_that_are_no_key_are_refused() {
        assert_eq!(EventKey::from_word(3), None, "no function has the number 0");
        assert_eq!(EventKey::from_word(1 << 8 | 77), None, "no such size class");
        assert_eq!(
            EventKey::from_word(1 << 31 | 1 << 8),
            None,
            "the highest bit is not part of it"
        );
        assert!(EventKey::from_word(1 << 8 | 255).is_some());
        assert_eq!(EventKey::from_name(b""), None);
        assert_eq!(EventKey::from_name(&[0xff]), None);
        assert_eq!(EventKey::from_name(&[b'x'; REGION_NAME_BYTES_MAX + 1]), None);
    }
}
