//! Writes a file as a whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use crate::ReportError;

/// Puts a file in its place: it is written beside it under another name and then renamed, so that
/// no reader ever sees a part of it, and what stood there stays when this fails.
///
/// # Errors
/// [`ReportError::Write`], naming the file.
pub fn write(file: &Path, content: &[u8]) -> Result<(), ReportError> {
    write_with(file, content, 0o666)
}

/// The same for the user alone.
pub(crate) fn write_private(file: &Path, content: &[u8]) -> Result<(), ReportError> {
    write_with(file, content, 0o600)
}

fn write_with(file: &Path, content: &[u8], mode: u32) -> Result<(), ReportError> {
    let failed = |source| ReportError::Write { file: file.to_path_buf(), source };
    let beside = Beside::new(file).map_err(failed)?;
    beside.fill(content, mode).and_then(|()| beside.rename_to(file)).map_err(failed)
}

/// Writes a file that a user has named: one that is not there yet, or a regular one, as [`write()`]
/// does. A device or a pipe takes the content. What a descriptor of this process leads to is
/// appended to: it may be the program's own output.
///
/// # Errors
/// The system's.
pub fn write_named(file: &Path, content: &[u8]) -> io::Result<()> {
    let found = match fs::metadata(file) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if leads_to_descriptor(file, found.as_ref()) {
        return OpenOptions::new().append(true).open(file)?.write_all(content);
    }
    let is_link = fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
    let (place, found) = match found {
        Some(found) if found.is_file() && found.nlink() == 1 => {
            (fs::canonicalize(file)?, Some(found))
        }
        None if !is_link => (file.to_path_buf(), None),
        // A device, a pipe, a link to what is not there yet, or a file with another name.
        _ => return fs::write(file, content),
    };
    let Some(found) = found else { return make(&place, content) };
    match replace(&place, &found, content) {
        Err(error) if !is_full(&error) => fs::write(file, content),
        replaced => replaced,
    }
}

/// Writes a regular file that a user has named, and that has no other name, or makes one that is
/// not there yet: as a whole or not at all, also where [`write_named`] would write into the file
/// itself, because nothing can be put in its place.
///
/// # Errors
/// The system's; what stood there stays.
pub fn replace_named(file: &Path, content: &[u8]) -> io::Result<()> {
    match fs::metadata(file) {
        Ok(found) => replace(&fs::canonicalize(file)?, &found, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(file, content),
        Err(error) => Err(error),
    }
}

/// Puts a file where none is.
fn make(place: &Path, content: &[u8]) -> io::Result<()> {
    let beside = Beside::new(place)?;
    beside.fill(content, 0o666).and_then(|()| beside.rename_to(place))
}

/// Puts a file in the place of another one, with its owner and mode.
fn replace(place: &Path, found: &Metadata, content: &[u8]) -> io::Result<()> {
    // One that may not be written is not replaced either.
    drop(OpenOptions::new().append(true).open(place)?);
    let beside = Beside::new(place)?;
    beside
        .fill(content, 0o600)
        .and_then(|()| beside.has_owner_of(found))
        .and_then(|()| fs::set_permissions(&beside.path, found.permissions()))
        .and_then(|()| beside.rename_to(place))
}

/// Whether there is no room for the content. After another failure the file itself may be written
/// though nothing can be put in its place: its folder may be another user's, or it a mount point.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether a name stands for a descriptor of this process, or for the file of its standard output
/// or standard error: what is there is its program's, too, and is appended to.
#[must_use]
pub fn is_descriptor(file: &Path) -> bool {
    leads_to_descriptor(file, fs::metadata(file).ok().as_ref())
}

/// The same of a file of which this was found.
fn leads_to_descriptor(file: &Path, found: Option<&Metadata>) -> bool {
    let place = |found: &Metadata| (found.dev(), found.ino());
    let is_stream = |name: &str| {
        let stream = fs::metadata(name).ok();
        stream.is_some_and(|stream| found.is_some_and(|found| place(found) == place(&stream)))
    };
    is_descriptor_name(file) || ["/proc/self/fd/1", "/proc/self/fd/2"].into_iter().any(is_stream)
}

/// Whether a name itself is that of a descriptor of this process, whatever it leads to.
#[must_use]
pub fn is_descriptor_name(file: &Path) -> bool {
    let streams = ["/dev/stdin", "/dev/stdout", "/dev/stderr"].map(Path::new);
    file.starts_with("/dev/fd") || file.starts_with("/proc/self/fd") || streams.contains(&file)
}

/// The file under its other name; removed unless it was renamed.
pub(crate) struct Beside {
    path: PathBuf,
    is_renamed: bool,
}

impl Beside {
    pub(crate) fn new(file: &Path) -> io::Result<Self> {
        let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let name = format!(".{}.{}", name.to_string_lossy(), process::id());
        Ok(Self { path: file.with_file_name(name), is_renamed: false })
    }

    /// Opens it for writing.
    pub(crate) fn create(&self, mode: u32) -> io::Result<File> {
        // Left by an earlier process of this number. What another user has put there is not opened.
        let _ = fs::remove_file(&self.path);
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&self.path)
    }

    fn fill(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let mut file = self.create(mode)?;
        file.write_all(content)?;
        file.sync_all()
    }

    /// That it belongs to the user and the group of another file, in whose place it is to be put.
    fn has_owner_of(&self, other: &Metadata) -> io::Result<()> {
        let own = fs::metadata(&self.path)?;
        match (own.uid(), own.gid()) == (other.uid(), other.gid()) {
            true => Ok(()),
            false => Err(io::Error::other("the file is another user's or group's")),
        }
    }

    pub(crate) fn rename_to(mut self, file: &Path) -> io::Result<()> {
        fs::rename(&self.path, file)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_renamed {
            // It is not there, or of no use.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

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

    #[test]
    fn a_named_file_is_replaced_behind_its_links_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, link) = (folder.path().join("why.json"), folder.path().join("last.json"));
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_named(&link, b"one").expect("a link to what is not there yet");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
        let before = File::open(&file).expect("a reader of the old file");
        write_named(&link, b"two").expect("it is replaced");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "two");
        assert!(fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()));
        assert_eq!(fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
        assert_eq!(io::read_to_string(before).expect("whole"), "one");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("profile.json");
        replace_named(&file, b"one").expect("it is made");
        let before = File::open(&file).expect("a reader of the old file");
        replace_named(&file, b"two").expect("it is replaced");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "two");
        assert_eq!(io::read_to_string(before).expect("whole"), "one");
        let nowhere = folder.path().join("nowhere").join("profile.json");
        let error = replace_named(&nowhere, b"one").expect_err("no such folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_file_with_another_name_keeps_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, other) = (folder.path().join("why.json"), folder.path().join("kept.json"));
        fs::write(&file, "one").expect("a file");
        fs::hard_link(&file, &other).expect("another name");
        write_named(&file, b"two").expect("it is written");
        assert_eq!(fs::read_to_string(&other).expect("it is there"), "two");
    }

    #[test]
    fn a_file_in_a_folder_of_a_group_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        if std::os::unix::fs::chown(folder.path(), None, Some(12346)).is_err() {
            // Only root, and members of a group, may give folders to it.
            return;
        }
        // Files that are made in it belong to its group.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o2755)).expect("ours");
        let file = folder.path().join("why.json");
        write_named(&file, b"one").expect("it is made");
        let before = File::open(&file).expect("a reader of the old file");
        write_named(&file, b"two").expect("it is replaced");
        assert_eq!(io::read_to_string(before).expect("whole"), "one");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "two");
    }

    #[test]
    fn a_file_of_another_user_stays_theirs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("why.json");
        fs::write(&file, "one").expect("a file");
        if std::os::unix::fs::chown(&file, Some(12345), Some(12346)).is_err() {
            // Only root may give files away.
            return;
        }
        replace_named(&file, b"two").expect_err("it cannot be put in its place");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "one");
        write_named(&file, b"two").expect("it is written");
        let found = fs::metadata(&file).expect("it is there");
        assert_eq!((found.uid(), found.gid()), (12345, 12346));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "two");
    }

    #[test]
    fn a_descriptor_is_known_by_its_name_alone() {
        for name in ["/dev/fd/3", "/proc/self/fd/1", "/dev/stdout"] {
            assert!(is_descriptor_name(Path::new(name)), "{name}");
        }
        // Each may be the file of standard output.
        for name in ["/dev/null", "/dev/pts/3", "/dev/fdx", "output"] {
            assert!(!is_descriptor_name(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn devices_and_descriptors_are_written_and_stay() {
        write_named(Path::new("/dev/null"), b"one").expect("a device");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("output");
        let mut output = File::create(&file).expect("a file");
        output.write_all(b"the program's own; ").expect("it may be written");
        let name = format!("/proc/self/fd/{}", output.as_raw_fd());
        write_named(Path::new(&name), b"one").expect("a descriptor");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "the program's own; one");
    }
}
