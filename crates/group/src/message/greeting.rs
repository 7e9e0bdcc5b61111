//! The first frame of each end of a link: which group, which member, or a question from outside.

use alloc::string::ToString;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::GroupError;
use crate::hops::GroupHopQuestion;
use crate::identity::MemberId;
use crate::trees::TreeKind;

/// The version of the messages of a group; both ends of a link must have the same.
pub const GROUP_VERSION: u16 = 10;

/// Longest greeting, in bytes.
pub const GREETING_BYTES_MAX: usize = 256;

/// A group. Its first member draws it at random, so that groups with one key are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub u64);

/// What an end of a link says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Greeting {
    /// A member, or a process that wants to become one.
    Member {
        /// [`GROUP_VERSION`].
        version: u16,
        /// The member.
        id: MemberId,
        /// Its group, unless it has still to join.
        group: Option<GroupId>,
    },
    /// A process that asks how the group is; answered with one frame, a
    /// [`Status`](crate::status::Status).
    Visitor {
        /// [`GROUP_VERSION`].
        version: u16,
        /// For which tree parents are to be explained.
        tree: TreeKind,
        /// From which virtual node; that of the member that is asked if none is named.
        root: Option<u32>,
        /// For a value of how many bytes.
        bytes: u64,
    },
    /// A process that asks for what the member notes of operations; answered with one frame,
    /// [`MemberHops`](crate::MemberHops).
    Tracer {
        /// [`GROUP_VERSION`].
        version: u16,
        /// What it asks.
        question: GroupHopQuestion,
    },
}

impl Greeting {
    /// As bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] if there is no memory.
    pub fn encode(&self) -> Result<Vec<u8>, GroupError> {
        postcard::to_allocvec(self).map_err(|error| GroupError::Message(error.to_string()))
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`GroupError::Message`] for what is no greeting of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, GroupError> {
        let greeting: Self =
            postcard::from_bytes(bytes).map_err(|error| GroupError::Message(error.to_string()))?;
        let (Self::Member { version, .. }
        | Self::Visitor { version, .. }
        | Self::Tracer { version, .. }) = greeting;
        if version == GROUP_VERSION {
            return Ok(greeting);
        }
        Err(GroupError::Message(alloc::format!(
            "the peer speaks version {version} of groups and this process {GROUP_VERSION}: install \
             the same release"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_named() {
        let group = Some(GroupId(3));
        let greeting = |version| Greeting::Member { version, id: MemberId(5), group };
        let own = greeting(GROUP_VERSION);
        assert_eq!(Greeting::decode(&own.encode().unwrap()), Ok(own));
        let error = Greeting::decode(&greeting(77).encode().unwrap()).unwrap_err();
        assert!(error.to_string().contains("77"), "{error}");
        assert!(Greeting::decode(&[9, 9, 9]).is_err());
    }
}
