//! The folder for the report: made and tried before anything starts, so that a run of hours does
//! not end with nowhere to write.

use sapwood_command_line::exit::complain;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sapwood_export::Format;
use sapwood_report::{REPORT_FILES, ROUNDS_FILE};

/// The file of a report in which its form is named.
const PROFILE_FILE: &str = "profile.json";
/// A file of ours names its form within this many bytes from its begin.
const FORM_BYTES_MAX: u64 = 256;

/// A folder that was written to.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    is_new: bool,
    /// Held while the run goes on.
    lock: Option<File>,
}

impl OutFolder {
    /// Makes the folder if need be, and writes to it. The run will leave these formats there.
    ///
    /// # Errors
    /// One line that names it, or the files in it that no run has left and this one would replace.
    pub(crate) fn prepare(path: &Path, formats: &[Format]) -> Result<Self, String> {
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
        let earlier = EarlierFiles::in_folder(path);
        if let Some(line) = earlier.refusal(formats) {
            return Err(line);
        }
        let mut replaced = Vec::new();
        let cleared = earlier.clear(&mut replaced);
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

/// Files with the names of a report's that lie in the folder before the run.
struct EarlierFiles<'a> {
    folder: &'a Path,
    /// Whether a run has left its report there. If not, these files are the user's.
    is_of_run: bool,
}

impl<'a> EarlierFiles<'a> {
    fn in_folder(folder: &'a Path) -> Self {
        let is_of_run = names_form(&folder.join(PROFILE_FILE), "profile")
            || names_form(&folder.join(ROUNDS_FILE), "round")
            || is_empty_file(&folder.join(ROUNDS_FILE));
        Self { folder, is_of_run }
    }

    /// Whether an earlier run has left it: links, pipes and folders are the user's in any case.
    fn is_left(&self, file: &Path) -> bool {
        self.is_of_run && fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
    }

    /// Whether it is there, and the user's.
    fn is_users(&self, file: &Path) -> bool {
        fs::symlink_metadata(file).is_ok() && !self.is_left(file)
    }

    /// Why a run with these formats may not begin: it would replace what is the user's.
    fn refusal(&self, formats: &[Format]) -> Option<String> {
        let exported = formats.iter().filter_map(|format| format.file());
        let mut names: Vec<&str> = REPORT_FILES
            .into_iter()
            .chain(exported)
            .filter(|name| self.is_users(&self.folder.join(name)))
            .collect();
        let has_tau = formats.contains(&Format::Tau);
        if has_tau && self.tau_files().iter().any(|file| self.is_users(file)) {
            names.push("tau/profile.*");
        }
        (!names.is_empty()).then(|| {
            format!(
                "the output folder '{}' has files that no earlier run has left and this one would \
                 replace: {}; move them away, or name another folder by --out",
                self.folder.display(),
                names.join(", ")
            )
        })
    }

    /// Removes what an earlier run has left: a reader would take it for a part of this one. Adds
    /// the names of what it has removed, also where it fails.
    fn clear(&self, removed: &mut Vec<&'static str>) -> io::Result<()> {
        for name in REPORT_FILES.into_iter().chain(Format::FILES) {
            let file = self.folder.join(name);
            if self.is_left(&file) {
                fs::remove_file(file)?;
                removed.push(name);
            }
        }
        let before = removed.len();
        for file in self.tau_files().iter().filter(|file| self.is_left(file)) {
            fs::remove_file(file)?;
            removed.truncate(before);
            removed.push("tau/profile.*");
        }
        Ok(())
    }

    /// The profiles of ranks in the folder `tau`.
    fn tau_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.folder.join("tau")) else { return Vec::new() };
        let entries = entries.flatten();
        entries
            .filter(|entry| is_of_tau(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect()
    }
}

/// Whether a file names a form of ours, in any version, at its begin. Nothing but a file is opened:
/// a pipe would keep the command waiting.
fn names_form(file: &Path, form: &str) -> bool {
    let mut begin = Vec::new();
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
        && File::open(file)
            .and_then(|file| file.take(FORM_BYTES_MAX).read_to_end(&mut begin))
            .is_ok()
        && String::from_utf8_lossy(&begin).contains(&["sapwood.", form, "/"].concat())
}

/// Whether it is a file without content, as a run that was killed before its first round leaves
/// the file of rounds.
fn is_empty_file(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file() && found.len() == 0)
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
        let folder = OutFolder::prepare(&path, &[]).expect("it may be made");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 0);
        folder.abandon();
        assert!(!path.exists());
        OutFolder::prepare(above.path(), &[]).expect("it is there").abandon();
        assert!(above.path().exists());
    }

    fn put(folder: &Path, name: &str, content: &str) {
        fs::create_dir_all(folder.join("tau")).expect("it may be made");
        fs::write(folder.join(name), content).expect("it may be written");
    }

    #[test]
    fn what_an_earlier_run_has_left_is_gone_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        for name in ["report.txt", "rounds.csv", "notes.txt", "tau/profile.0.0.0"] {
            put(path, name, "old");
        }
        put(path, "tau/profile.1.0.0", "old");
        put(path, ROUNDS_FILE, "{\"schema\":\"sapwood.round/1\",\"number\":0}\n");
        let mut names = Vec::new();
        EarlierFiles::in_folder(path).clear(&mut names).expect("it may be written");
        assert_eq!(names, ["report.txt", "rounds.ndjson", "rounds.csv", "tau/profile.*"]);
        let line = told(Path::new("run1"), &names[..2]);
        assert_eq!(
            line,
            "the report of an earlier run in 'run1' is replaced: report.txt, rounds.ndjson"
        );
        fs::remove_dir(path.join("tau")).expect("nothing is left in it");
        // So does a run that was killed before its first round.
        fs::write(path.join(ROUNDS_FILE), "").expect("it may be written");
        let prepared = OutFolder::prepare(path, &[]).expect("it is there");
        let left = fs::read_dir(path).expect("it is there");
        let left: Vec<_> = left.map(|entry| entry.expect("readable").file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
        let error = OutFolder::prepare(path, &[]).expect_err("one run at a time");
        assert!(error.contains("another run that goes on"), "{error}");
        drop(prepared);
        OutFolder::prepare(path, &[]).expect("the run has ended");
    }

    #[test]
    fn what_no_run_has_left_is_neither_removed_nor_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        for name in ["report.txt", "rounds.csv", "profile.json", "tau/profile.0.0.0"] {
            put(path, name, "mine");
        }
        std::os::unix::fs::symlink("elsewhere", path.join(ROUNDS_FILE)).expect("a link");
        let named = |formats: &[Format]| {
            let error = OutFolder::prepare(path, formats).expect_err("these are the user's");
            let names = error.split(" would replace: ").nth(1).unwrap_or_default();
            names.split(';').next().unwrap_or_default().to_owned()
        };
        assert_eq!(named(&[]), "report.txt, profile.json, rounds.ndjson");
        let all = "report.txt, profile.json, rounds.ndjson, rounds.csv, tau/profile.*";
        assert_eq!(named(&[Format::Csv, Format::Tau]), all);
        for name in ["report.txt", "rounds.csv", "profile.json", "tau/profile.0.0.0"] {
            assert_eq!(fs::read_to_string(path.join(name)).expect("it is there"), "mine");
        }
        assert!(path.join(ROUNDS_FILE).is_symlink());
        // What this run does not write may lie beside its files.
        for name in ["report.txt", "profile.json", ROUNDS_FILE] {
            fs::remove_file(path.join(name)).expect("it is there");
        }
        OutFolder::prepare(path, &[]).expect("nothing is in the way");
        assert!(path.join("rounds.csv").exists() && path.join("tau/profile.0.0.0").exists());
    }

    #[test]
    fn a_link_beside_the_report_of_an_earlier_run_is_the_users() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        put(path, PROFILE_FILE, "{\n  \"schema\": \"sapwood.profile/1\"\n}\n");
        std::os::unix::fs::symlink("elsewhere", path.join("report.txt")).expect("a link");
        let error = OutFolder::prepare(path, &[]).expect_err("the link would be replaced");
        assert!(error.contains(" would replace: report.txt; "), "{error}");
        assert!(path.join("report.txt").is_symlink() && path.join(PROFILE_FILE).exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let file = above.path().join("file");
        fs::write(&file, "").expect("the folder may be written");
        let error = OutFolder::prepare(&file.join("out"), &[]).expect_err("a file is no folder");
        assert!(error.contains("file/out' cannot be written"), "{error}");
    }
}
