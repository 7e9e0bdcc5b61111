//! The errors of this crate, with cause and cure.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sapwood_filter::FilterError;
use sapwood_launch::LaunchError;
use sapwood_node::{Missing, NodeError};
use sapwood_packet::{FIRST_TAG, OutOfMemory, PacketError, Rank, RankSet, StreamId, Tag};
use sapwood_runtime::RuntimeError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A process that did not start, with its error text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Its planned rank.
    pub rank: Rank,
    /// What it wrote to standard error, or the system's error.
    pub text: String,
}

/// An error of a network. Its `Debug` is its text, which is what a `main` prints that returns it.
#[non_exhaustive]
pub enum Error {
    /// A topology cannot be read. Cure: see the message for what and where.
    Topology(sapwood_topology::Error),
    /// A call that is wrong in the present state: closed stream, unknown filter, unknown ranks.
    Misuse(NodeError),
    /// Values could not be read or built.
    Packet(PacketError),
    /// This process has no memory for a packet: an outgoing one is not sent, an incoming one is
    /// lost. Small packets go on. Cure: send less at once, or give the process more.
    Memory(OutOfMemory),
    /// The system, a connection or a process failed.
    Runtime(RuntimeError),
    /// Processes of the tree did not start. Nothing is left running.
    Start(Vec<StartFailure>),
    /// The deadline passed.
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        waited: Duration,
    },
    /// The application interrupted the wait: see
    /// [`NetworkBuilder::interrupt`](crate::NetworkBuilder::interrupt) and
    /// [`AddressFile::join`](crate::AddressFile::join).
    Interrupted {
        /// What was waited for.
        what: &'static str,
    },
    /// Nothing was sent, since the stream's window is full: a receiver has not read earlier
    /// packets. Cure: try again later, or send to the others.
    WouldWait {
        /// The stream's number.
        stream: StreamId,
    },
    /// A question was asked while answers that have not been received fill the stream's window, so
    /// that its answer cannot come. Cure: receive them first.
    Unreceived {
        /// The stream's number.
        stream: StreamId,
        /// How many answers.
        answers: usize,
    },
    /// All back-ends of the stream are lost: no answer can arrive.
    NoMemberLeft {
        /// The missing back-ends, with reasons.
        missing: Vec<Missing>,
    },
    /// An answer without a value; `missing` says why.
    NoValue {
        /// The missing back-ends, with reasons.
        missing: Vec<Missing>,
    },
    /// The network has ended for this process.
    Ended {
        /// What was observed.
        reason: String,
    },
    /// The program for communication processes was not found. Cure: put `sapwood-node` on the path
    /// or name it in `SAPWOOD_NODE`.
    NodeProgram,
    /// A group, or this member of it.
    Group(crate::GroupFailure),
    /// No member of a group has written its address to the file in time.
    NoAddress {
        /// The file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// A file of the user's could not be used.
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// Whether the deadline passed without what was waited for, or without an answer of the
    /// process that was asked.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. }
                | Self::NoAddress { .. }
                | Self::Runtime(RuntimeError::NoReply { .. } | RuntimeError::SilentMember { .. })
        )
    }

    /// Whether the program of a process does not exist, or is in no folder of `PATH`.
    #[must_use]
    pub const fn is_missing_program(&self) -> bool {
        matches!(
            self,
            Self::NodeProgram
                | Self::Runtime(RuntimeError::Launch(LaunchError::MissingProgram { .. }))
        )
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(error) => write!(f, "{error}"),
            Self::Misuse(error) => write!(f, "{error}"),
            Self::Packet(error) => write!(f, "{error}"),
            Self::Memory(error) => write!(f, "{error}"),
            Self::Runtime(error) => write!(f, "{error}"),
            Self::Start(failures) => {
                let Some((first, others)) = failures.split_first() else {
                    return f.write_str("the tree did not start");
                };
                let others: RankSet = others.iter().map(|failure| failure.rank).collect();
                write!(f, "rank {} did not start", first.rank)?;
                if !others.is_empty() {
                    write!(f, " (nor did {others})")?;
                }
                write!(f, ": {}", first.text.trim_end())
            }
            Self::Timeout { what, waited } => {
                write!(f, "no {what} within {} ms", waited.as_millis())
            }
            Self::Interrupted { what } => write!(f, "the wait for the {what} was interrupted"),
            Self::WouldWait { stream } => {
                write!(f, "stream {stream} has no room: earlier packets have not been read")
            }
            Self::Unreceived { stream, answers } => write!(
                f,
                "stream {stream} is full of {answers} answers that have not been received; receive \
                 them before its questions are answered"
            ),
            Self::NoMemberLeft { missing } => {
                write!(f, "no member is left to answer")?;
                write_missing(f, missing)
            }
            Self::NoValue { missing } => {
                write!(f, "the answer has no value")?;
                write_missing(f, missing)
            }
            Self::Ended { reason } => write!(f, "the network has ended: {reason}"),
            Self::NodeProgram => f.write_str(
                "the program 'sapwood-node' was not found; put it on the path or name it in \
                 SAPWOOD_NODE",
            ),
            Self::Group(failure) => write!(f, "{failure}"),
            Self::NoAddress { path, waited } => {
                write!(f, "no address was written to '{}' within {waited:?}", path.display())
            }
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

/// Why a file of the user's could not be used.
pub(crate) fn file_error(path: &Path, reason: String) -> Error {
    Error::File { path: path.to_path_buf(), reason }
}

/// Refuses the tags that are the network's own.
pub(crate) fn check_tag(tag: Tag) -> Result<()> {
    if tag < FIRST_TAG {
        return Err(NodeError::Tag { tag }.into());
    }
    Ok(())
}

fn write_missing(f: &mut fmt::Formatter<'_>, missing: &[Missing]) -> fmt::Result {
    for part in Missing::fold(missing) {
        write!(f, "; {}: {}", part.ranks, part.reason)?;
    }
    Ok(())
}

impl std::error::Error for Error {}

impl From<NodeError> for Error {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Memory(error) => Self::Memory(error),
            error => Self::Misuse(error),
        }
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    sapwood_topology::Error => Topology,
    OutOfMemory => Memory,
    PacketError => Packet,
    RuntimeError => Runtime,
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        Self::Misuse(NodeError::Filter(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_asked_and_gives_no_answer_is_a_timeout_whichever_it_is() {
        let waited = Duration::from_millis(1);
        let address = "tcp:127.0.0.1:1".to_owned();
        let member = RuntimeError::SilentMember { address, waited, has_link: true };
        let front_end = RuntimeError::NoReply { waited };
        for error in [Error::Timeout { what: "answer", waited }, member.into(), front_end.into()] {
            assert!(error.is_timeout(), "{error}");
        }
        assert!(!Error::NodeProgram.is_timeout());
    }

    #[test]
    fn a_main_that_returns_an_error_prints_its_text() {
        let error = Error::Timeout { what: "answer", waited: Duration::from_millis(1500) };
        assert_eq!(format!("{error:?}"), "no answer within 1500 ms");
        let error = Error::from(NodeError::Members { ranks: RankSet::range(8, 9) });
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(error.to_string().starts_with("ranks 8-9 are not connected back-ends"), "{error}");
    }
}
