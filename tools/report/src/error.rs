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
                "report: cannot make the folder '{}': {source}; {}",
                folder.display(),
                cure(source)
            ),
            Self::Write { file, source } => {
                write!(f, "report: cannot write '{}': {source}; {}", file.display(), cure(source))
            }
            Self::Rows { file, reason } => {
                write!(f, "report: cannot encode '{}': {reason}", file.display())
            }
        }
    }
}

/// What helps after this failure.
fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "make room, or name a folder on a disk with room",
        io::ErrorKind::QuotaExceeded => "make room in your quota, or name a folder on another disk",
        io::ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        _ => "name a folder that may be written",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cure_is_one_for_what_is_wrong() {
        let said = |kind: io::ErrorKind| {
            let (file, source) = (PathBuf::from("keep/report.txt"), io::Error::from(kind));
            let write = ReportError::Write { file, source }.to_string();
            let (folder, source) = (PathBuf::from("keep"), io::Error::from(kind));
            [write, ReportError::Folder { folder, source }.to_string()]
        };
        for (kind, cure) in [
            (io::ErrorKind::StorageFull, "on a disk with room"),
            (io::ErrorKind::QuotaExceeded, "make room in your quota"),
            (io::ErrorKind::FileTooLarge, "ulimit -f"),
            (io::ErrorKind::PermissionDenied, "name a folder that may be written"),
        ] {
            let told = said(kind);
            assert!(told.iter().all(|text| text.contains(cure)), "{told:?}");
            let advises_rights = told.iter().any(|text| text.contains("may be written"));
            assert_eq!(advises_rights, kind == io::ErrorKind::PermissionDenied, "{told:?}");
        }
    }
}
