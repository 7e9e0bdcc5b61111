//! The folder in which ranks keep their events (`--events-folder`): made for a program that is
//! started. What is in it afterwards is read by `kept`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The variable that has ranks keep their files in a folder.
pub(crate) const VARIABLE: &str = "SAPWOOD_MPI_EVENTS_DIR";

/// Makes the folder for a program that is started, for the user alone, unless it is there. Its
/// absolute name: ranks may run elsewhere.
///
/// # Errors
/// One line that names it.
pub(crate) fn prepare(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error: std::io::Error| {
        let folder = folder.display();
        format!("the folder '{folder}' cannot be used: {error}; name another by --events-folder")
    };
    if !folder.is_dir() {
        DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))?;
    std::path::absolute(folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_folder_of_a_run_is_made_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

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
}
