//! Tallies: calls of a rank by where they were made, with which rank, or on which communicator.
//!
//! They exist only where they were asked for. Up the tree they travel as the events of a
//! [`crate::Round`] or of [`crate::RankRows`] of their own, whose names are [`Tally::label`].

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::{EventKey, Function, FunctionId, REGION_NAME_BYTES_MAX, SizeClass};

/// What calls are distinguished by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TallyKind {
    /// The place in the program.
    CallSite = 1,
    /// The rank that they send to.
    Peer = 2,
    /// The communicator.
    Communicator = 3,
}

impl TallyKind {
    /// The kind of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::CallSite),
            2 => Some(Self::Peer),
            3 => Some(Self::Communicator),
            _ => None,
        }
    }
}

/// Calls of one function with one subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tally {
    /// The function; 0 for a peer.
    pub function: FunctionId,
    /// The size class of the communicator.
    pub size_class: SizeClass,
    /// A call site's address in its file, as linked, behind the call; a peer's rank; else 0.
    pub address: u64,
    /// A call site's file; a communicator's name and ranks.
    pub name: String,
}

impl Tally {
    /// The name of the event under which it travels: `FUNCTION:CLASS:ADDRESS:NAME`, of which the
    /// address is hexadecimal and of the name's begin as much is cut as does not fit.
    #[must_use]
    pub fn label(&self) -> String {
        let head = format!("{}:{}:{:x}:", self.function, self.size_class.code(), self.address);
        let room = REGION_NAME_BYTES_MAX - head.len();
        let cut = self.name.ceil_char_boundary(self.name.len().saturating_sub(room));
        head + &self.name[cut..]
    }

    /// Reads a label.
    #[must_use]
    pub fn parse(label: &str) -> Option<Self> {
        let mut parts = label.splitn(4, ':');
        let function = parts.next()?.parse().ok()?;
        let size_class = SizeClass::from_code(parts.next()?.parse().ok()?)?;
        let address = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { function, size_class, address, name: parts.next()?.to_owned() })
    }

    /// The event that its calls are a part of.
    #[must_use]
    pub const fn event(&self) -> EventKey {
        EventKey::Function { id: self.function, size_class: self.size_class }
    }

    /// The name of the function.
    #[must_use]
    pub fn function_name(&self) -> Option<&'static str> {
        Some(Function::of(self.function)?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_as_it_was_written() {
        let tally = Tally {
            function: 17,
            size_class: SizeClass::from_code(2).expect("a class"),
            address: 0x1_2345,
            name: "/opt/a:b/solver \u{e4}".into(),
        };
        assert_eq!(tally.label(), "17:2:12345:/opt/a:b/solver \u{e4}");
        assert_eq!(Tally::parse(&tally.label()), Some(tally));
        for wrong in ["", "17", "17:2:x:a", "17:99:1:a", "a:2:1:a", "17:2:1"] {
            assert_eq!(Tally::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn of_a_long_name_the_end_is_kept() {
        let name = "\u{e4}".repeat(200) + "solver";
        let size_class = SizeClass::NONE;
        let label = Tally { function: 1, size_class, address: 1, name }.label();
        assert!(label.len() <= REGION_NAME_BYTES_MAX && label.ends_with("\u{e4}solver"));
    }
}
