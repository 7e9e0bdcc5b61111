//! The folder for the report: made and tried before anything starts, so that a run of hours does
//! not end with nowhere to write.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// A folder that was written to.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    is_new: bool,
}

impl OutFolder {
    /// Makes the folder if need be, and writes to it.
    ///
    /// # Errors
    /// One line that names it.
    pub(crate) fn prepare(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| {
            let path = path.display();
            format!("the output folder '{path}' cannot be written: {error}; name another by --out")
        };
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(failed)?;
        let folder = Self { path: path.to_path_buf(), is_new };
        let trial = path.join(format!(".sapwood-{}", std::process::id()));
        let tried = OpenOptions::new().write(true).create_new(true).open(&trial);
        let tried = tried.and_then(|_| fs::remove_file(&trial));
        if let Err(error) = tried {
            folder.abandon();
            return Err(failed(error));
        }
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Nothing will be written: removes the folder if it was made here.
    pub(crate) fn abandon(&self) {
        if self.is_new {
            // A folder into which others have written meanwhile stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_tried_and_abandoned_without_trace() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let path = above.path().join("new");
        let folder = OutFolder::prepare(&path).expect("it may be made");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
        folder.abandon();
        assert!(!path.exists());
        OutFolder::prepare(above.path()).expect("it is there").abandon();
        assert!(above.path().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let file = above.path().join("file");
        fs::write(&file, "").expect("the folder may be written");
        let error = OutFolder::prepare(&file.join("out")).expect_err("a file is no folder");
        assert!(error.contains("file/out' cannot be written"), "{error}");
    }
}
