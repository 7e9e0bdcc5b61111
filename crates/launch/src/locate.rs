//! Finding a program before anything is started.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::LaunchError;

/// Finds a program as a shell would, and answers its full path.
///
/// A name without a slash is looked up in the folders of `PATH`; any other is taken as a path
/// from the current folder. Links are not followed, since some programs act by the name under
/// which they are called.
///
/// # Errors
/// [`LaunchError::MissingProgram`] and [`LaunchError::NotExecutable`].
pub fn locate(program: &Path) -> Result<PathBuf, LaunchError> {
    locate_in(program, std::env::var_os("PATH").as_deref())
}

/// The same with these folders in the place of those of `PATH`; with none, those of most systems.
///
/// # Errors
/// As [`locate`].
pub fn locate_in(program: &Path, search: Option<&OsStr>) -> Result<PathBuf, LaunchError> {
    let name = program.as_os_str().as_bytes();
    if name.is_empty() {
        return Err(LaunchError::ApiMisuse { rule: "a program has a name" });
    }
    if name.contains(&0) {
        return Err(LaunchError::ApiMisuse { rule: "the name of a program has no zero byte" });
    }
    if name.contains(&b'/') {
        return match obstacle(program) {
            None => std::path::absolute(program)
                .map_err(|cause| LaunchError::Refused { program: program.into(), cause }),
            Some(Obstacle::Missing) => {
                Err(LaunchError::MissingProgram { program: program.into(), searched_path: false })
            }
            Some(Obstacle::NotExecutable(problem)) => {
                Err(LaunchError::NotExecutable { program: program.into(), problem })
            }
        };
    }
    search_folders(program, search.unwrap_or(OsStr::new("/usr/bin:/bin")))
}

/// The first folder with an executable file wins. A file that cannot be executed is remembered:
/// "it is there, but" says more than "it is nowhere".
fn search_folders(program: &Path, search: &OsStr) -> Result<PathBuf, LaunchError> {
    let mut unusable = None;
    for folder in std::env::split_paths(search) {
        // An empty folder in PATH means the current one, by an old rule of shells.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let candidate = folder.join(program);
        match obstacle(&candidate) {
            None => {
                return std::path::absolute(&candidate)
                    .map_err(|cause| LaunchError::Refused { program: candidate, cause });
            }
            Some(Obstacle::Missing) => {}
            Some(Obstacle::NotExecutable(problem)) => {
                unusable.get_or_insert(LaunchError::NotExecutable { program: candidate, problem });
            }
        }
    }
    Err(unusable
        .unwrap_or(LaunchError::MissingProgram { program: program.into(), searched_path: true }))
}

/// The reason why a file cannot be executed, if any.
enum Obstacle {
    Missing,
    NotExecutable(&'static str),
}

fn obstacle(program: &Path) -> Option<Obstacle> {
    let metadata = match std::fs::metadata(program) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Some(Obstacle::NotExecutable(
                "one of its folders may not be entered: check their rights",
            ));
        }
        Err(_) => return Some(Obstacle::Missing),
    };
    match unsuitable_kind(&metadata) {
        Some(problem) => Some(Obstacle::NotExecutable(problem)),
        // The effective user counts, since that is what exec checks.
        None => {
            rustix::fs::accessat(CWD, program, Access::EXEC_OK, AtFlags::EACCESS).err().map(|_| {
                Obstacle::NotExecutable("the file is not executable by this user: try chmod +x")
            })
        }
    }
}

fn unsuitable_kind(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_dir() {
        return Some("it is a folder: name a file in it");
    }
    (!metadata.is_file()).then_some("it is no ordinary file: name a program")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(path: &Path, mode: u32) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_bare_name_is_found_in_path_and_an_unusable_file_is_passed_over() {
        let folders = tempfile::tempdir().unwrap();
        let (first, second) = (folders.path().join("first"), folders.path().join("second"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        file(&first.join("back-end"), 0o644);
        file(&second.join("back-end"), 0o755);
        let search = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(
            locate_in(Path::new("back-end"), Some(&search)).unwrap(),
            second.join("back-end")
        );
        let error = locate_in(Path::new("back-end"), Some(first.as_os_str())).unwrap_err();
        assert!(error.to_string().contains("chmod +x"), "{error}");
        let error = locate_in(Path::new("no-back-end"), Some(&search)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "program 'no-back-end' is in no folder of PATH: install it or give its full path"
        );
    }

    #[test]
    fn a_path_is_taken_as_it_is_and_each_fault_has_its_own_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        let text = |path: &Path| locate(path).unwrap_err().to_string();
        assert!(text(&path).contains("does not exist"));
        file(&path, 0o600);
        assert!(text(&path).contains("chmod +x"));
        file(&path, 0o700);
        assert_eq!(locate(&path).unwrap(), path);
        assert!(text(folder.path()).contains("it is a folder"));
        assert!(text(Path::new("/dev/null")).contains("no ordinary file"));
        assert!(text(Path::new("")).contains("has a name"));
    }
}
