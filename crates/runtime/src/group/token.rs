//! What each number stands for that the poller of a group's member is given with a descriptor.

const KIND_SHIFT: u32 = 32;

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupToken {
    Link(u32),
    Newcomer(u32),
    Dial(u32),
    /// One of the listeners.
    Door(u32),
    Waker,
}

impl GroupToken {
    pub(super) fn to_number(self) -> u64 {
        let (kind, index) = match self {
            Self::Link(index) => (0, index),
            Self::Newcomer(index) => (1, index),
            Self::Dial(index) => (2, index),
            Self::Door(index) => (3, index),
            Self::Waker => (4, 0),
        };
        kind << KIND_SHIFT | u64::from(index)
    }

    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn from_number(number: u64) -> Self {
        let index = number as u32;
        match number >> KIND_SHIFT {
            0 => Self::Link(index),
            1 => Self::Newcomer(index),
            2 => Self::Dial(index),
            3 => Self::Door(index),
            _ => Self::Waker,
        }
    }
}
