//! The folder in which ranks keep their events (`--events-folder`): made for a program that is
//! started, with how its ranks ended beside their files. What is in it afterwards is read by
//! `kept`.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use sapwood::RankSet;
use sapwood_report::ReportError;
use sapwood_report::ends::{ENDS_FILE, ENDS_SCHEMA, Ends};

use super::control::deaths::Deaths;
use super::pace::Pace;

/// The variable that has ranks keep their files in a folder.
pub(crate) const VARIABLE: &str = "SAPWOOD_MPI_EVENTS_DIR";
/// What the name of a table ends with.
pub(crate) const TABLE_END: &str = ".profile";
/// The same of events.
pub(crate) const EVENTS_END: &str = ".events";
/// What the names of both files of a rank begin with.
const BEGIN: &str = "rank-";
/// In a folder's mode, that all users may write there; those of its group are trusted.
const WRITTEN_BY_OTHERS: u32 = 0o002;

/// Makes the folder for a program that is started, for the user alone, unless it is there. Then it
/// must be the user's, not writable by all, and without files of an earlier run: those of two runs
/// cannot be distinguished for certain. Its absolute name: ranks may run elsewhere.
///
/// # Errors
/// One line that names it.
pub(crate) fn prepare(folder: &Path) -> Result<PathBuf, String> {
    let shown = folder.display();
    let failed = |error: io::Error| {
        format!("the folder '{shown}' cannot be used: {error}; name another by --events-folder")
    };
    if !folder.is_dir() {
        DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))?;
    let found = fs::metadata(folder).map_err(failed)?;
    if let Some(wrong) = owner_problem(&found, geteuid().as_raw()) {
        return Err(format!("the folder '{shown}' {wrong}; name another by --events-folder"));
    }
    if let Some(file) = kept_file(folder).map_err(failed)? {
        return Err(format!(
            "the folder '{shown}' holds files of an earlier run, such as '{file}'; name another by \
             --events-folder, or move these away"
        ));
    }
    std::path::absolute(folder).map_err(failed)
}

/// What is wrong with whose a folder is, if anything is for this user.
fn owner_problem(found: &Metadata, user: u32) -> Option<String> {
    if found.uid() != user {
        return Some(format!("belongs to user {}, and this is user {user}", found.uid()));
    }
    (found.mode() & WRITTEN_BY_OTHERS != 0).then(|| {
        let mode = found.mode() & 0o7777;
        format!("may be written by all users (mode {mode:o}), who could put files of theirs there")
    })
}

/// A file in a folder that an earlier run has left.
fn kept_file(folder: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(name) = name.to_str().filter(|name| *name == ENDS_FILE || stem(name).is_some())
        {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// The name of a rank's file without what it ends with; none of another file.
pub(crate) fn stem(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(TABLE_END).or_else(|| name.strip_suffix(EVENTS_END))?;
    stem.starts_with(BEGIN).then_some(stem)
}

/// The rank whose files have this name.
pub(crate) fn rank_of(stem: &str) -> Option<u32> {
    stem.strip_prefix(BEGIN)?.split('.').next()?.parse().ok()
}

/// How the ranks of a program have ended that runs.
pub(crate) fn ends_of(deaths: &Deaths, program: &str, ranks: u32, elapsed: Duration) -> Ends {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ends {
        schema: ENDS_SCHEMA.to_owned(),
        program: program.to_owned(),
        ranks,
        unix_s: now.as_secs(),
        elapsed_s: elapsed.as_secs_f64(),
        in_order: deaths.in_order().to_string(),
        before: deaths.ended_before(),
        deaths: deaths.section(),
        ..Ends::default()
    }
}

/// The file beside those of the ranks that says how these ended.
#[derive(Debug)]
pub(crate) struct EndsFile {
    folder: PathBuf,
    /// The ranks whose ends are in it.
    told: RankSet,
    pace: Pace,
}

impl EndsFile {
    /// The one in this folder, which is not there yet.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, told: RankSet::new(), pace: Pace::default() }
    }

    /// The folder, by its absolute name.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// From when on a new one is to take its place, as a time of the program; none while it tells
    /// of all of these ranks.
    pub(crate) fn due(&self, known: &RankSet) -> Option<Duration> {
        (self.told != *known).then(|| self.pace.due())
    }

    /// Puts a new one in its place, which tells of these ranks.
    ///
    /// # Errors
    /// [`ReportError::Write`], naming the file.
    pub(crate) fn leave(
        &mut self,
        ends: &Ends,
        known: &RankSet,
        elapsed: Duration,
    ) -> Result<(), ReportError> {
        // One that cannot be written now is tried again when more ranks end.
        self.told = known.clone();
        self.pace.note(elapsed);
        ends.write(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use sapwood_profile::{Cause, EndKind, RankReport};

    use super::*;
    use crate::pace::REPLACED_AFTER;

    #[test]
    fn the_folder_of_a_run_is_made_for_the_user_alone() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let folder = prepare(&above.path().join("new")).expect("it may be made");
        let mode = fs::metadata(&folder).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        prepare(&folder).expect("it is there");
        let error = prepare(&above.path().join("no/where")).expect_err("nothing is above it");
        assert!(error.contains("no/where' cannot be used"), "{error}");
        fs::write(above.path().join("file"), "").expect("it may be written");
        prepare(&above.path().join("file")).expect_err("it is no folder");
    }

    #[test]
    fn a_folder_of_another_user_or_that_others_may_write_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let found = fs::metadata(folder.path()).expect("it is there");
        let (own, other) = (found.uid(), found.uid() + 1);
        assert_eq!(owner_problem(&found, own), None);
        let wrong = owner_problem(&found, other).expect("another user's");
        assert_eq!(wrong, format!("belongs to user {own}, and this is user {other}"));
        let open = fs::Permissions::from_mode(0o757);
        fs::set_permissions(folder.path(), open).expect("its owner may");
        let error = prepare(folder.path()).expect_err("others may write there");
        assert!(error.contains("' may be written by all users (mode 757)"), "{error}");
    }

    #[test]
    fn a_folder_with_files_of_an_earlier_run_is_refused_and_any_other_file_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["notes.txt", "rank-1.notes", "my.profile"] {
            fs::write(folder.path().join(name), "").expect("it may be written");
        }
        prepare(folder.path()).expect("none of them is a rank's");
        for name in ["rank-1.a.7.profile", "rank-1.a.7.events", ENDS_FILE] {
            let file = folder.path().join(name);
            fs::write(&file, "").expect("it may be written");
            let error = prepare(folder.path()).expect_err("of an earlier run");
            assert!(error.contains(&format!("earlier run, such as '{name}'; name")), "{error}");
            fs::remove_file(&file).expect("it is there");
        }
    }

    #[test]
    fn a_name_tells_whose_file_it_is() {
        assert_eq!(stem("rank-12.node1.77.events").and_then(rank_of), Some(12));
        assert_eq!(stem("rank-12.node1.77.profile"), stem("rank-12.node1.77.events"));
        assert_eq!((stem("rank-12.node1.77"), rank_of("rank-x.a.1")), (None, None));
    }

    #[test]
    fn ends_are_left_once_more_ranks_have_ended_and_paced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut file = EndsFile::new(folder.path().to_path_buf());
        let mut deaths = Deaths::default();
        assert_eq!(file.due(deaths.known()), None);
        let kind = |cause| EndKind { cause, is_finalized: false, inside: String::new() };
        let mut report = RankReport::default();
        report.end(0, EndKind { is_finalized: true, ..kind(Cause::Code(0)) }, 500_000_000);
        report.end(1, kind(Cause::Abort(13)), 40_000_000);
        deaths.take(&report, Duration::from_secs(2));
        assert_eq!(file.due(deaths.known()), Some(Duration::ZERO), "the first at once");
        let elapsed = Duration::from_secs(2);
        let ends = ends_of(&deaths, "prog", 2, elapsed);
        file.leave(&ends, deaths.known(), elapsed).expect("it may be written");
        assert_eq!(file.due(deaths.known()), None);
        let more = RankSet::range(0, 2);
        assert_eq!(file.due(&more), Some(elapsed + REPLACED_AFTER), "many ends are few writes");
        let content = fs::read(folder.path().join(ENDS_FILE)).expect("it is there");
        let read = Ends::parse(&content).expect("it was just written");
        assert_eq!((read.in_order.as_str(), read.deaths[0].cause.as_str()), ("0", "MPI_Abort(13)"));
        assert_eq!((read.ranks, read.has_ended, read.code), (2, false, None));
    }
}
