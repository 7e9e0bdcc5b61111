//! Why a file of filters, or a filter in it, cannot be used.

use std::fmt;

use sapwood_filter::FilterError;

use crate::INTERFACE_VERSION;

/// An error of a file of filters. It reaches streams as a [`FilterError::Failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtensionError {
    /// No such file where it was looked for. Cure: install it on that host, name its folder in
    /// `SAPWOOD_FILTER_PATH`, or ship it.
    NotFound {
        /// The file.
        file: String,
        /// The folders that were looked in.
        searched: String,
    },
    /// The file cannot be read.
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// The file is longer than one that travels may be.
    TooLong {
        /// The file.
        file: String,
        /// Its length in bytes.
        bytes: u64,
    },
    /// The file is neither a shared object nor WebAssembly.
    Kind {
        /// The file.
        file: String,
    },
    /// The file cannot be loaded: it is no shared object, or none for this machine.
    Load {
        /// The file.
        file: String,
        /// The loader's reason.
        reason: String,
    },
    /// The file has no `sapwood_filter_v1`. Cure: build it against `sapwood_filter.h`.
    Symbol {
        /// The file.
        file: String,
    },
    /// The file has another interface version. Cure: build it against this release's header.
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The file says something of itself that cannot be.
    Library {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The file has no filter of that name, or several and none was named.
    NoFilter {
        /// The file.
        file: String,
        /// The name that was asked for.
        name: String,
        /// The names in the file, separated by spaces.
        known: String,
    },
    /// A stream uses a file that was not shipped. Cure: ship it before the stream opens.
    NotShipped {
        /// The file.
        file: String,
    },
    /// A shipped file was damaged on the way: its checksum differs.
    Digest {
        /// The file.
        file: String,
    },
    /// There is no memory to hold a shipped file.
    Held {
        /// The file.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// The filter's own reason, or what the limits of its kind say.
    Filter {
        /// The filter.
        name: String,
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for ExtensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { file, searched } => {
                write!(f, "no file of filters '{file}' in {searched}; install it there or ship it")
            }
            Self::Read { file, reason } => write!(f, "filters '{file}' cannot be read: {reason}"),
            Self::TooLong { file, bytes } => write!(
                f,
                "filters '{file}' have {bytes} bytes; a file that is shipped may have {}",
                crate::FILE_BYTES_MAX
            ),
            Self::Kind { file } => {
                write!(f, "filters '{file}' are neither a shared object nor WebAssembly")
            }
            Self::Load { file, reason } => {
                write!(f, "filters '{file}' cannot be loaded: {reason}")
            }
            Self::Symbol { file } => write!(
                f,
                "'{file}' exports no sapwood_filter_v1: it has no filters, or of another interface \
                 version than {INTERFACE_VERSION}"
            ),
            Self::Version { file, version } => write!(
                f,
                "filters '{file}' have interface version {version}, not {INTERFACE_VERSION}; build \
                 them against the sapwood_filter.h of this release"
            ),
            Self::Library { file, reason } => write!(f, "filters '{file}': {reason}"),
            Self::NoFilter { file, name, known } if name.is_empty() => {
                write!(f, "'{file}' has several filters; name one with #: {known}")
            }
            Self::NoFilter { file, name, known } => {
                write!(f, "'{file}' has no filter '{name}'; it has: {known}")
            }
            Self::NotShipped { file } => {
                write!(f, "filters '{file}' have not been shipped to this process")
            }
            Self::Digest { file } => {
                write!(f, "filters '{file}' arrived damaged: their checksum differs")
            }
            Self::Held { file, reason } => {
                write!(f, "filters '{file}' cannot be held in memory: {reason}")
            }
            Self::Filter { name, reason } => write!(f, "filter '{name}': {reason}"),
        }
    }
}

impl std::error::Error for ExtensionError {}

impl From<ExtensionError> for FilterError {
    fn from(error: ExtensionError) -> Self {
        Self::Failed(error.to_string())
    }
}
