//! The folder for the report: made and tried before anything starts, so that a run of hours does
//! not end with nowhere to write.

use sapwood_command_line::exit::complain;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sapwood_export::Format;
use sapwood_report::REPORT_FILES;

use super::signs::{is_of_run, is_of_tau};

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
        let earlier = EarlierFiles { folder: path };
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
}

impl EarlierFiles<'_> {
    /// Whether it is there, and the user's.
    fn is_users(file: &Path) -> bool {
        fs::symlink_metadata(file).is_ok() && !is_of_run(file)
    }

    /// Why a run with these formats may not begin: it would replace what is the user's.
    fn refusal(&self, formats: &[Format]) -> Option<String> {
        let exported = formats.iter().filter_map(|format| format.file());
        let mut names: Vec<&str> = REPORT_FILES
            .into_iter()
            .chain(exported)
            .filter(|name| Self::is_users(&self.folder.join(name)))
            .collect();
        let has_tau = formats.contains(&Format::Tau);
        if has_tau && self.tau_files().iter().any(|file| Self::is_users(file)) {
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
            if is_of_run(&file) {
                fs::remove_file(file)?;
                removed.push(name);
            }
        }
        let before = removed.len();
        for file in self.tau_files().iter().filter(|file| is_of_run(file)) {
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

/// What is said of the report that stood in the folder.
fn told(path: &Path, replaced: &[&str]) -> String {
    let path = path.display();
    let names = replaced.join(", ");
    format!("the report of an earlier run in '{path}' is replaced: {names}")
}

#[cfg(test)]
mod tests {
    use sapwood_report::ROUNDS_FILE;

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

    /// The begin of files as a run leaves them.
    const LEFT: [(&str, &str); 4] = [
        ("report.txt", "\nTime by class, inclusive; a region holds what is called in it\n"),
        ("rounds.csv", "number,iteration,elapsed_s,world_size,covered\n"),
        ("tau/profile.0.0.0", TAU),
        ("tau/profile.1.0.0", TAU),
    ];
    const TAU: &str = "<value>TIME</value></attribute><attribute><name>Hostname</name>";

    fn put(folder: &Path, name: &str, content: &str) {
        fs::create_dir_all(folder.join("tau")).expect("it may be made");
        fs::write(folder.join(name), content).expect("it may be written");
    }

    #[test]
    fn what_an_earlier_run_has_left_is_gone_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        LEFT.iter().for_each(|(name, content)| put(path, name, content));
        put(path, "notes.txt", "mine");
        put(path, ROUNDS_FILE, "{\"schema\":\"sapwood.round/1\",\"number\":0}\n");
        let mut names = Vec::new();
        EarlierFiles { folder: path }.clear(&mut names).expect("it may be written");
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
    fn a_file_of_the_user_beside_the_report_of_a_run_is_neither_removed_nor_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        put(path, "profile.json", "{\n  \"schema\": \"sapwood.profile/1\"\n}\n");
        put(path, "report.html", "mine");
        let error = OutFolder::prepare(path, &[Format::Html]).expect_err("it would be replaced");
        assert!(error.contains(" would replace: report.html; "), "{error}");
        assert!(path.join("profile.json").exists(), "nothing is removed before");
        // Without this format it may lie there.
        OutFolder::prepare(path, &[]).expect("nothing is in the way");
        let left = fs::read_to_string(path.join("report.html")).expect("it is there");
        assert_eq!((left.as_str(), path.join("profile.json").exists()), ("mine", false));
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
        put(path, "profile.json", "{\n  \"schema\": \"sapwood.profile/1\"\n}\n");
        std::os::unix::fs::symlink("elsewhere", path.join("report.txt")).expect("a link");
        let error = OutFolder::prepare(path, &[]).expect_err("the link would be replaced");
        assert!(error.contains(" would replace: report.txt; "), "{error}");
        assert!(path.join("report.txt").is_symlink() && path.join("profile.json").exists());
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
