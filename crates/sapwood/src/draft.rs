//! A file that takes its place as a whole: it is written beside it under another name and then
//! renamed, so that no reader ever sees a part of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sapwood_transport::check_file_limit;

/// The file under its other name; removed unless it was put in its place.
pub(crate) struct Draft {
    place: PathBuf,
    path: PathBuf,
    is_in_place: bool,
}

impl Draft {
    /// A draft for this place. That of an earlier process with this process number is removed.
    pub(crate) fn of(place: &Path) -> Self {
        let mut name = place.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let path = PathBuf::from(name);
        let _ = fs::remove_file(&path);
        Self { place: place.to_path_buf(), path, is_in_place: false }
    }

    /// Where the draft is written.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the text; the file is for a caller that waits for the disk.
    pub(crate) fn fill(&self, text: &str, mode: u32) -> io::Result<File> {
        write_new(&self.path, text, mode)
    }

    /// Puts it in its place; what stood there stays when this fails.
    pub(crate) fn put_in_place(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.place)?;
        self.is_in_place = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_in_place {
            // It may not have been written.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a file that is not there yet.
pub(crate) fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<File> {
    check_file_limit(text.len() as u64)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_replaces_what_stood_there_or_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("file");
        for text in ["one", "two"] {
            let draft = Draft::of(&place);
            draft.fill(text, 0o600).unwrap();
            draft.put_in_place().unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
        }
        Draft::of(&place).fill("three", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "two");
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        let draft = Draft::of(&place);
        draft.fill("four", 0o600).unwrap();
        assert!(draft.put_in_place().is_err(), "a folder is no file");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
