//! Why a report could not be left.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error of a report. The program that was watched is not concerned by it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder could not be made. Cure: name one that may be written.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be written; what stood there before is untouched. Cure: name a folder on a
    /// disk with room that may be written.
    Write {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The rows could not be put into a Parquet file.
    Rows {
        /// The file.
        file: PathBuf,
        /// What the encoder said.
        reason: String,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { folder, source } => write!(
                f,
                "report: cannot make the folder '{}': {source}; name one that may be written",
                folder.display()
            ),
            Self::Write { file, source } => write!(
                f,
                "report: cannot write '{}': {source}; name a folder that may be written",
                file.display()
            ),
            Self::Rows { file, reason } => {
                write!(f, "report: cannot encode '{}': {reason}", file.display())
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Folder { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Rows { .. } => None,
        }
    }
}
