//! What each number stands for that the poller is given with a descriptor.

use sapwood_node::LinkId;

const KIND_SHIFT: u32 = 32;

/// What a token of the poller stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Link(LinkId),
    Listener,
    Newcomer(u32),
    /// A process has ended.
    Exit(u32),
    /// A process has written to its standard error.
    ChildStderr(u32),
    /// A client that reaches a host has answered.
    AgentStdout(u32),
    /// A client that reaches a host takes more.
    AgentStdin(u32),
    /// The attempt to reach an ancestor.
    Attempt,
    /// The last process has closed the liveness pipe.
    LivenessPipe,
    /// A filter that is offloaded is done.
    Work,
    /// A descriptor of the application's.
    Foreign,
}

impl Token {
    pub(crate) fn to_number(self) -> u64 {
        let (kind, index) = match self {
            Self::Link(link) => (0, link.0),
            Self::Listener => (1, 0),
            Self::Newcomer(index) => (2, index),
            Self::Exit(index) => (3, index),
            Self::ChildStderr(index) => (4, index),
            Self::Attempt => (5, 0),
            Self::LivenessPipe => (6, 0),
            Self::Foreign => (7, 0),
            Self::Work => (8, 0),
            Self::AgentStdout(index) => (9, index),
            Self::AgentStdin(index) => (10, index),
        };
        kind << KIND_SHIFT | u64::from(index)
    }

    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn from_number(number: u64) -> Self {
        let index = number as u32;
        match number >> KIND_SHIFT {
            0 => Self::Link(LinkId(index)),
            1 => Self::Listener,
            2 => Self::Newcomer(index),
            3 => Self::Exit(index),
            4 => Self::ChildStderr(index),
            5 => Self::Attempt,
            6 => Self::LivenessPipe,
            8 => Self::Work,
            9 => Self::AgentStdout(index),
            10 => Self::AgentStdin(index),
            _ => Self::Foreign,
        }
    }
}
