//! What a check has to say: one place, one sentence.

use std::fmt;

/// One broken rule, shown as `file:line: what is wrong and what to do`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path from the repository's root, or a crate's name.
    pub place: String,
    /// The line, from 1; 0 where the finding is about the whole place.
    pub line: usize,
    pub text: String,
}

impl Finding {
    pub fn new(place: impl Into<String>, line: usize, text: impl Into<String>) -> Finding {
        Finding { place: place.into(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.place, self.text),
            line => write!(formatter, "{}:{line}: {}", self.place, self.text),
        }
    }
}
