//! What can go wrong with a group, with cause and cure.

use std::fmt;

use sapwood_group::limits::NAMES_MAX;
use sapwood_group::{GroupError, Reason, Refusal};
use sapwood_packet::RankSet;

/// A failure of one member; the others go on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupFailure {
    /// No member could be reached at the address. Cure: see the reason.
    NotJoined {
        /// What was observed.
        reason: String,
        /// Whether the connection was refused: no process listens at the address.
        is_refused: bool,
    },
    /// The group does not take this member in, or not any longer. Cure: other virtual nodes, or the
    /// group's name space.
    Refused(Refusal),
    /// A name space of another size than a group may have. Cure: 1 to
    /// [`GROUP_NAMES_MAX`](crate::GROUP_NAMES_MAX).
    Space {
        /// Its size in virtual nodes.
        space: u32,
    },
    /// Virtual nodes to carry or to take, of which some lie outside the name space. Cure: others,
    /// or the group's name space.
    Outside {
        /// The virtual nodes.
        names: RankSet,
        /// The size of the name space.
        space: u32,
    },
    /// A call that is wrong.
    Call(GroupError),
    /// The member is not in the group any more.
    Ended,
    /// The answer has no value; the missing virtual nodes say why.
    NoValue {
        /// The virtual nodes, with reasons.
        missing: Vec<(RankSet, Reason)>,
    },
    /// The value is longer than one call may carry. Cure: send it in parts.
    TooLong {
        /// Its length in bytes.
        bytes: u64,
        /// How many bytes are allowed.
        most: u64,
    },
    /// Only the root of a reduction or a gather waits where application bypass is asked for, so
    /// that the result can go to no other. Cure: `reduce` or `gather`, or [`start`] the operation.
    ///
    /// [`start`]: crate::GroupOperation::start
    NoBypass,
    /// This member has defined an operation of that name before. Cure: another name.
    Defined {
        /// The name.
        name: String,
    },
    /// The value is not made of whole elements of that type.
    NotNumbers {
        /// Its length in bytes.
        bytes: usize,
        /// The length of an element in bytes.
        element: usize,
    },
}

impl fmt::Display for GroupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJoined { reason, .. } => write!(f, "not joined: {reason}"),
            Self::Refused(refusal) => write!(f, "the group refuses this member: {refusal}"),
            Self::Space { space } => {
                write!(f, "a name space has 1 to {NAMES_MAX} virtual nodes, and not {space}")
            }
            Self::Outside { names, space } => {
                // In the words of a call with such virtual nodes.
                let (names, space) = (names.clone(), *space);
                write!(f, "{}", GroupError::Outside { names, space })
            }
            Self::Call(error) => write!(f, "{error}"),
            Self::Ended => f.write_str("this member has left the group, or was refused"),
            Self::NoValue { missing } => {
                f.write_str("the answer has no value")?;
                for (names, reason) in missing {
                    write!(f, "; {names}: {reason}")?;
                }
                Ok(())
            }
            Self::TooLong { bytes, most } => write!(
                f,
                "a value of {bytes} bytes, where at most {most} are allowed: send it in parts"
            ),
            Self::NoBypass => f.write_str(
                "only a reduction or a gather to one root can be left early: start other \
                 operations, and wait for them later",
            ),
            Self::Defined { name } => {
                write!(f, "this member has defined an operation '{name}' before: take another name")
            }
            Self::NotNumbers { bytes, element } => {
                write!(f, "a value of {bytes} bytes is not made of elements of {element} bytes")
            }
        }
    }
}

impl From<GroupFailure> for crate::Error {
    fn from(failure: GroupFailure) -> Self {
        Self::Group(failure)
    }
}
