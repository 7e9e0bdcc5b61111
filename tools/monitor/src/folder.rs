//! The folder for the report: made and tried before anything starts, so that a run of hours does
//! not end with nowhere to write.

use sapwood_command_line::exit::complain;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sapwood_export::Format;
use sapwood_report::REPORT_FILES;

/// A folder that was written to.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    is_new: bool,
    /// Held while the run goes on.
    lock: Option<File>,
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
        let mut folder = Self { path: path.to_path_buf(), is_new, lock: None };
        let trial = path.join(format!(".sapwood-{}", std::process::id()));
        let tried = OpenOptions::new().write(true).create_new(true).open(&trial);
        let tried = tried.and_then(|_| fs::remove_file(&trial));
        if let Err(error) = tried.and_then(|()| folder.lock()) {
            folder.abandon();
            return Err(failed(error));
        }
        let mut replaced = Vec::new();
        let cleared = folder.clear(&mut replaced);
        if !replaced.is_empty() {
            complain(format_args!("{}", told(path, &replaced)));
        }
        cleared.map_err(failed)?;
        Ok(folder)
    }

    /// Two runs at a time would mix their records. The lock ends with this process.
    fn lock(&mut self) -> io::Result<()> {
        let folder = File::open(&self.path)?;
        match folder.try_lock() {
            Ok(()) => self.lock = Some(folder),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another run that goes on leaves its report there"));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        Ok(())
    }

    /// Removes what an earlier run has left: a reader would take it for a part of this one. Adds
    /// the names of what it has removed, also where it fails.
    fn clear(&self, removed: &mut Vec<&'static str>) -> io::Result<()> {
        for name in REPORT_FILES.into_iter().chain(Format::FILES) {
            match fs::remove_file(self.path.join(name)) {
                Ok(()) => removed.push(name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let Ok(old) = fs::read_dir(self.path.join("tau")) else { return Ok(()) };
        let before = removed.len();
        for file in old.flatten().filter(|file| is_of_tau(&file.file_name().to_string_lossy())) {
            fs::remove_file(file.path())?;
            removed.truncate(before);
            removed.push("tau/profile.*");
        }
        Ok(())
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

/// What is said of the report that stood in the folder.
fn told(path: &Path, replaced: &[&str]) -> String {
    let path = path.display();
    let names = replaced.join(", ");
    format!("the report of an earlier run in '{path}' is replaced: {names}")
}

/// Whether a file has the name of a rank's profile as TAU leaves it, `profile.3.0.0`.
fn is_of_tau(name: &str) -> bool {
    let rank = name.strip_prefix("profile.").and_then(|rest| rest.strip_suffix(".0.0"));
    rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
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
    fn what_an_earlier_run_has_left_is_gone_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["report.txt", "rounds.ndjson", "rounds.csv", "notes.txt"] {
            fs::write(folder.path().join(name), "old").expect("it may be written");
        }
        fs::create_dir(folder.path().join("tau")).expect("it may be made");
        for name in ["profile.0.0.0", "profile.1.0.0"] {
            fs::write(folder.path().join("tau").join(name), "old").expect("it may be written");
        }
        let old = OutFolder { path: folder.path().to_path_buf(), is_new: false, lock: None };
        let mut names = Vec::new();
        old.clear(&mut names).expect("it may be written");
        assert_eq!(names, ["report.txt", "rounds.ndjson", "rounds.csv", "tau/profile.*"]);
        let line = told(Path::new("run1"), &names[..2]);
        assert_eq!(
            line,
            "the report of an earlier run in 'run1' is replaced: report.txt, rounds.ndjson"
        );
        fs::remove_dir(folder.path().join("tau")).expect("nothing is left in it");
        fs::write(folder.path().join("report.txt"), "old").expect("it may be written");
        let prepared = OutFolder::prepare(folder.path()).expect("it is there");
        let left = fs::read_dir(folder.path()).expect("it is there");
        let left: Vec<_> = left.map(|entry| entry.expect("readable").file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
        let error = OutFolder::prepare(folder.path()).expect_err("one run at a time");
        assert!(error.contains("another run that goes on"), "{error}");
        drop(prepared);
        OutFolder::prepare(folder.path()).expect("the run has ended");
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
