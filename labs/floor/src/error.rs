//! What can go wrong with the floor, each with its cause and its cure.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why the floor gave no figure.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The topology is not a balanced tree that the floor can start. Cure: `64`, `4x4x4` or `4^3`.
    Shape {
        /// What was given.
        text: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// An argument of an experiment is out of range. Cure: the text names the range.
    Argument(&'static str),
    /// A process could not be started. Cause: no such program, or the limit of processes or
    /// descriptors is reached. Cure: see the source; `ulimit -n` and `ulimit -u`.
    Spawn {
        /// The program that was to run.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A system call failed. Cause: most often the limit of open descriptors (`ulimit -n`).
    System {
        /// What was being done.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The connection to a child of the root failed: some process below it died. Cure: look at
    /// `dead` for the one that was killed (out of memory, a signal).
    Link {
        /// Which child of the root, from 0.
        child: usize,
        /// The system's reason.
        source: io::Error,
        /// Processes found ended, with the reason of each.
        dead: String,
    },
    /// Nothing came within the deadline. Cause: a stopped process, or an experiment longer than the
    /// deadline. Cure: fewer waves, or a longer `Plan::deadline`.
    DeadlinePassed {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// A packet reached the root whose header is not the one of this wave. Cause: a fault in the
    /// floor.
    WrongPacket {
        /// The wave that was gathered.
        wave: u64,
    },
    /// A sum at the root is wrong. Cause: a fault in the floor; no figure of it may be used.
    WrongSum {
        /// The wave that was gathered.
        wave: u64,
        /// The element of the array.
        element: usize,
        /// The sum over all leaves as computed without the tree.
        expected: f64,
        /// What the tree gave.
        found: f64,
    },
    /// The tree failed in an earlier experiment. Cure: start another one.
    Broken,
    /// A process of the start-up experiment ended before it connected. Cure: run the program by
    /// hand.
    NotConnected {
        /// The program that was run.
        program: PathBuf,
        /// How it ended.
        ended: String,
    },
    /// A process did not end well after the last experiment. Cure: see the text.
    EndedBadly(String),
}

impl Error {
    /// Names a failed system call, for `map_err`.
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { text, reason } => write!(formatter, "topology {text}: {reason}"),
            Error::Argument(rule) => write!(formatter, "{rule}"),
            Error::Spawn { program, source } => {
                write!(formatter, "cannot start {}: {source}", program.display())
            }
            Error::System { what, source } => write!(formatter, "cannot {what}: {source}"),
            Error::Link { child, source, dead } => {
                write!(formatter, "lost child {child} of the floor's root: {source}; {dead}")
            }
            Error::DeadlinePassed { what, after } => {
                write!(formatter, "{what}: nothing within {} ms", after.as_millis())
            }
            Error::WrongPacket { wave } => {
                write!(formatter, "wave {wave}: the root got a packet of another wave or size")
            }
            Error::WrongSum { wave, element, expected, found } => write!(
                formatter,
                "wave {wave}: element {element} is {found}, the sum over the leaves is {expected}"
            ),
            Error::Broken => {
                write!(formatter, "this floor failed before; start another one")
            }
            Error::NotConnected { program, ended } => write!(
                formatter,
                "{} did not connect: {ended}; run it by hand to see why",
                program.display()
            ),
            Error::EndedBadly(how) => write!(formatter, "after the last experiment: {how}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Spawn { source, .. }
            | Error::System { source, .. }
            | Error::Link { source, .. } => Some(source),
            _ => None,
        }
    }
}
