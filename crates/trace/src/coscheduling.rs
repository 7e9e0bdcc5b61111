//! When a leaf reads events: at any time, or only when its ranks have no use for their processors.
//!
//! The two strategies are EventSpace's (Bongo, Anshus, Bjorndalen, "Collective communication
//! performance analysis within the communication system", section on coscheduling): analysis runs
//! while a rank waits for the result of a collective, or after all of them were released from one.

use alloc::format;
use alloc::string::String;
use core::str::FromStr;

/// When events are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Coscheduling {
    /// At any time.
    #[default]
    Any = 0,
    /// While a rank waits in a collective: its part has gone up.
    Waiting = 1,
    /// After the ranks were released from a collective.
    Released = 2,
}

impl Coscheduling {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Any, Self::Waiting, Self::Released];

    /// The word that names it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Waiting => "waiting",
            Self::Released => "released",
        }
    }

    /// The one of a code; any time for another one.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Waiting,
            2 => Self::Released,
            _ => Self::Any,
        }
    }
}

impl FromStr for Coscheduling {
    type Err = String;

    /// The one of a word; the error names all words.
    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.word() == word).ok_or_else(|| {
            let words = Self::ALL.map(Self::word).join(", ");
            format!("'{word}' is none of {words}")
        })
    }
}
