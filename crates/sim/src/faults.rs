//! Classes of faults, and sets of them as people name them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A kind of misfortune.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A process ends at once, as by a signal or with its machine.
    Crash,
    /// A process stops for a while, and then goes on as if nothing had been.
    Stop,
    /// A connection breaks; bytes that were under way are lost in both directions.
    Reset,
    /// Two sets of processes cannot reach each other, and no link reports it.
    Partition,
    /// A process takes milliseconds for what takes others microseconds.
    Slow,
    /// Back-ends join late, or leave on purpose.
    Join,
    /// The front-end's application takes no answers for a while.
    Deaf,
    /// All processes run late by themselves for a while.
    Lag,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 8] = [
        Self::Crash,
        Self::Stop,
        Self::Reset,
        Self::Partition,
        Self::Slow,
        Self::Join,
        Self::Deaf,
        Self::Lag,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Stop => "stop",
            Self::Reset => "reset",
            Self::Partition => "partition",
            Self::Slow => "slow",
            Self::Join => "join",
            Self::Deaf => "deaf",
            Self::Lag => "lag",
        }
    }

    /// Its place in [`Class::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A set of classes; read from and written as `crash,stop`, `all` or `none`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    bits: u16,
}

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self { bits: 0 };
    /// Everything may.
    pub const ALL: Self = Self { bits: (1 << Class::ALL.len()) - 1 };

    /// The set with one more class.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self { bits: self.bits | 1 << class.index() }
    }

    /// Whether a class is in it.
    #[must_use]
    pub fn has(self, class: Class) -> bool {
        self.bits & 1 << class.index() != 0
    }

    /// Its classes.
    pub fn classes(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |&class| self.has(class))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        let names: Vec<&str> = self.classes().map(Class::name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

/// A word that names no class of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClass {
    word: String,
}

impl fmt::Display for UnknownClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Class::ALL.into_iter().map(Class::name).collect();
        write!(
            f,
            "'{}' is no class of faults; use all, none, or some of {}",
            self.word,
            names.join(",")
        )
    }
}

impl core::error::Error for UnknownClass {}

impl FromStr for Faults {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        let mut faults = Self::NONE;
        for word in text.split(',') {
            match (word, Class::ALL.into_iter().find(|class| class.name() == word)) {
                ("all", _) => faults = Self::ALL,
                ("none", _) => {}
                (_, Some(class)) => faults = faults.with(class),
                (_, None) => return Err(UnknownClass { word: word.to_string() }),
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_back_what_they_print() {
        for text in ["all", "none", "crash", "crash,stop", "reset,partition,deaf", "lag"] {
            let faults: Faults = text.parse().expect("a list of classes");
            assert_eq!(faults.to_string(), text);
        }
        let error = "crash,flood".parse::<Faults>().expect_err("no such class");
        assert!(error.to_string().starts_with("'flood' is no class of faults; use all"), "{error}");
    }
}
