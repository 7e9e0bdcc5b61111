//! The errors of a group: what a caller did wrong, and why names are missing from an answer.

use alloc::string::String;
use core::fmt;

use sapwood_packet::RankSet;
use serde::{Deserialize, Serialize};

use crate::operations::OperationId;

/// Why virtual nodes are missing from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// No member carries them.
    Unassigned,
    /// The member that carried them crashed, hung or was cut off.
    Dead,
    /// The member that carried them left.
    Left,
    /// The deadline of the request passed first.
    Deadline,
    /// The member's call has another operation, type or count than the root's, or the values of all
    /// together are longer than a value may be.
    Mismatch,
    /// The root of the operation is gone, and with it the result.
    RootLost,
    /// The member has called an operation that it has not defined for values of that type; no
    /// member gets a result.
    Undefined,
    /// The function that defines the operation has failed at the member; no member gets a result.
    FunctionFailed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unassigned => "no member carries this virtual node",
            Self::Dead => "the member is dead or cut off",
            Self::Left => "the member has left",
            Self::Deadline => "the deadline passed",
            Self::Mismatch => {
                "operation, element type or count differs from the root's, or the whole result is \
                 too long"
            }
            Self::RootLost => "the root of the operation is gone",
            Self::Undefined => "the member has not defined the operation for elements of this type",
            Self::FunctionFailed => "the function of the operation has failed at the member",
        })
    }
}

/// Why a member is not, or no longer, part of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Another member carries some of the virtual nodes: take others.
    Overlap,
    /// The name space has another size, or none that is allowed, or a name lies outside it: use the
    /// group's size.
    NameSpace,
    /// The group has as many members as it may have.
    Full,
    /// The message breaks the format.
    Format,
    /// The virtual nodes to take are not those of one living member that carries others too, or it
    /// has not given them in time: a reduction with a root among them goes on for too long.
    NotGiven,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overlap => "another member carries some of these virtual nodes",
            Self::NameSpace => "the virtual nodes lie outside the group's name space",
            Self::Full => "the group has as many members as it may have",
            Self::Format => "the message breaks the format",
            Self::NotGiven => {
                "the virtual nodes to take are not those of one member that keeps others, or a \
                 reduction with a root among them has not ended in time"
            }
        })
    }
}

/// What a caller did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupError {
    /// The member has not joined yet, or has left: wait for [`crate::Event::Joined`], and for
    /// [`crate::Event::NamesMoved`] where it takes virtual nodes over.
    NotJoined,
    /// A virtual node that the caller does not carry.
    Name {
        /// The virtual nodes.
        names: RankSet,
    },
    /// Virtual nodes of which some lie outside the name space: no member can carry these.
    Outside {
        /// The virtual nodes.
        names: RankSet,
        /// The size of the name space.
        space: u32,
    },
    /// The value is longer than [`crate::limits::VALUE_BYTES_MAX`], or not whole elements.
    Value {
        /// Its length in bytes.
        bytes: u64,
    },
    /// Too many operations are under way: wait for one to end.
    Busy,
    /// The number was used for another operation: count up.
    Number {
        /// The number.
        number: u64,
    },
    /// An operation that is not defined at this member for the type of the value: define it before
    /// the call.
    Undefined {
        /// The operation.
        operation: OperationId,
    },
    /// A message could not be read; its link must be closed.
    Message(String),
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJoined => f.write_str("not a member of the group: join first"),
            Self::Name { names } => write!(f, "virtual nodes {names} are not the caller's"),
            Self::Outside { names, space } => write!(
                f,
                "the virtual nodes {names} are not all in the name space 0 to {}",
                space.saturating_sub(1)
            ),
            Self::Value { bytes } => write!(f, "a value of {bytes} bytes does not fit"),
            Self::Busy => f.write_str("too many operations under way: wait for one"),
            Self::Number { number } => write!(f, "operation {number} exists already: count up"),
            Self::Undefined { operation } => write!(
                f,
                "operation {operation} is not defined at this member for elements of this type: \
                 define it before the call"
            ),
            Self::Message(text) => write!(f, "a message that cannot be read: {text}"),
        }
    }
}

impl core::error::Error for GroupError {}
