//! What can go wrong below the I/O line.

use std::fmt;
use std::io;

use sapwood_launch::LaunchError;

/// A failure of a process's part of the network.
#[derive(Debug)]
#[non_exhaustive]
pub enum RuntimeError {
    /// A connection, key or address could not be used.
    Transport(sapwood_transport::Error),
    /// A process could not be started.
    Launch(LaunchError),
    /// The system refused something.
    System {
        /// The operation.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The environment does not say where to connect. Cure: let the network start this program, or
    /// give it an attach file.
    NotAttached {
        /// The variable that is missing or wrong.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The environment names an interface that is none. Cure: unset `SAPWOOD_INTERFACE`, or set it
    /// to a numeric address of this machine.
    Interface {
        /// Its value.
        text: String,
    },
    /// No address of this host is among those that were chosen for all hosts. Cure: name an
    /// interface or a network that every host has.
    NoInterface {
        /// The rule.
        rule: String,
    },
    /// What the parent said about this process's subtree cannot be read.
    Plan(String),
    /// No process of the network takes this one in. Cure: see the reason; the network must have
    /// been opened for dynamic members.
    NotTaken {
        /// What the last one said.
        reason: String,
    },
    /// A front-end that was visited did not answer in time: its application is busy and does not
    /// let its network run. Cure: ask again, or allow more time.
    NoReply {
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// A front-end that was visited does not answer. Cure: see the reason; ask with the release of
    /// Sapwood that the network runs.
    Visit {
        /// Its answer, or what was observed.
        reason: String,
    },
    /// A member of a group that was asked did not answer in time. Cure: continue its process if
    /// that is stopped, ask any other member, or allow more time.
    SilentMember {
        /// Its address.
        address: String,
        /// How long was waited.
        waited: std::time::Duration,
        /// Whether it had taken the connection.
        has_link: bool,
    },
    /// A member of a group that was asked does not answer. Cure: see the reason; ask with the
    /// release of Sapwood that the group runs.
    MemberVisit {
        /// Its address.
        address: String,
        /// Its answer, or what was observed.
        reason: String,
    },
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transport(error) => write!(f, "{error}"),
            Self::Launch(error) => write!(f, "{error}"),
            Self::System { what, source } => write!(f, "cannot {what}: {source}"),
            Self::NotAttached { variable, reason } => write!(
                f,
                "not part of a network: {variable} {reason}; let a network start this program, \
                 or name the front-end's join file in SAPWOOD_JOIN"
            ),
            Self::Interface { text } => write!(
                f,
                "{} holds '{text}', which is no numeric address: unset it or name one of this \
                 machine's",
                crate::INTERFACE_VARIABLE
            ),
            Self::NoInterface { rule } => write!(
                f,
                "no interface of this host is one of '{rule}': choose one that every host has"
            ),
            Self::NoReply { waited } => write!(
                f,
                "no answer from the front-end within {} ms: its application is busy",
                waited.as_millis()
            ),
            Self::Visit { reason } => write!(f, "the front-end does not answer: {reason}"),
            Self::SilentMember { address, waited, has_link } => write!(
                f,
                "no answer from the member at {address} within {} ms: it is stopped or busy{}; \
                 continue it, ask any other member, or allow more time",
                waited.as_millis(),
                if *has_link { "" } else { ", or cannot be reached" }
            ),
            Self::MemberVisit { address, reason } => {
                write!(f, "the member at {address} does not answer: {reason}")
            }
            Self::NotTaken { reason } => {
                write!(f, "no process of the network adopts this one: {reason}")
            }
            Self::Plan(reason) => write!(
                f,
                "the parent's plan cannot be read; install the same release on all hosts: {reason}"
            ),
        }
    }
}

impl std::error::Error for RuntimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transport(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<sapwood_transport::Error> for RuntimeError {
    fn from(error: sapwood_transport::Error) -> Self {
        Self::Transport(error)
    }
}

impl From<LaunchError> for RuntimeError {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}
