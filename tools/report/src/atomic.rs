//! Writes a file as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use crate::ReportError;

/// Puts a file in its place: it is written beside it under another name and then renamed, so that
/// no reader ever sees a part of it, and what stood there stays when this fails.
///
/// # Errors
/// [`ReportError::Write`], naming the file.
pub fn write(file: &Path, content: &[u8]) -> Result<(), ReportError> {
    let failed = |source| ReportError::Write { file: file.to_path_buf(), source };
    let beside = Beside::new(file).map_err(failed)?;
    beside.fill(content).and_then(|()| beside.rename_to(file)).map_err(failed)
}

/// The file under its other name; removed unless it was renamed.
struct Beside {
    path: PathBuf,
}

impl Beside {
    fn new(file: &Path) -> io::Result<Self> {
        let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = format!(".{}.{}", name.to_string_lossy(), process::id());
        Ok(Self { path: file.with_file_name(name) })
    }

    fn fill(&self, content: &[u8]) -> io::Result<()> {
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?;
        file.write_all(content)?;
        file.sync_all()
    }

    fn rename_to(&self, file: &Path) -> io::Result<()> {
        fs::rename(&self.path, file)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the rename there is nothing of that name; before it, what is there is of no use.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_replaces_the_one_before_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("report.txt");
        for content in ["one", "two"] {
            write(&file, content.as_bytes()).expect("a folder that may be written");
            assert_eq!(fs::read_to_string(&file).expect("it was written"), content);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("report.txt");
        fs::create_dir(&file).expect("a folder in the file's place");
        let error = write(&file, b"one").expect_err("a folder is no file").to_string();
        assert!(error.contains("report.txt'"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

        let nowhere = folder.path().join("nowhere").join("report.txt");
        let error = write(&nowhere, b"one").expect_err("no such folder").to_string();
        assert!(error.contains("nowhere"), "{error}");
    }
}
