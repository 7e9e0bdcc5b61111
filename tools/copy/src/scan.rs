//! Finding out what a source consists of: files with their holes, folders, links.
//!
//! It goes on in small steps, so that the caller can do other things meanwhile.
//! Special files are named and left out; what cannot be read is a complaint.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, FileType, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{SeekFrom, seek};

use super::manifest::{Content, EXTENTS_MAX, Entry, Extent, Kind, Manifest, PATH_BYTES_MAX};
use super::protocol::Complaints;
use super::store;

/// By which it is noticed that a file is another one, or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    /// When anything about it changed; not for folders, in which a reader may change it.
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            place: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A folder that is being read: the names that are left, the last one first.
struct Open {
    path: Vec<u8>,
    names: Vec<OsString>,
}

/// A scan of sources, which goes on step by step.
pub(super) struct Scan {
    roots: Vec<PathBuf>,
    next_root: usize,
    open: Vec<Open>,
    /// Files with several names, by file system and number.
    linked: HashMap<(u64, u64), u64>,
    pub(super) found: Found,
}

/// What has been found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) roots: Vec<PathBuf>,
    pub(super) manifest: Manifest,
    /// One for each entry.
    pub(super) stamps: Vec<Stamp>,
    /// What cannot be read, and special files.
    pub(super) complaints: Complaints,
}

impl Found {
    /// Where an entry is.
    pub(super) fn path_of(&self, entry: &Entry) -> PathBuf {
        let root = &self.roots[entry.root as usize];
        match entry.path.is_empty() {
            true => root.clone(),
            false => root.join(OsString::from_vec(entry.path.clone())),
        }
    }
}

impl Scan {
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        let found = Found { roots: roots.clone(), ..Found::default() };
        Self { roots, next_root: 0, open: Vec::new(), linked: HashMap::new(), found }
    }

    /// Looks at one more file or folder. Gives whether there may be more.
    pub(super) fn step(&mut self) -> bool {
        let Some(open) = self.open.last_mut() else {
            let Some(root) = self.roots.get(self.next_root).cloned() else { return false };
            self.next_root += 1;
            // What the user names may be a link to what is meant.
            let metadata = std::fs::metadata(&root);
            self.take(&root, Vec::new(), metadata);
            return true;
        };
        let Some(name) = open.names.pop() else {
            self.open.pop();
            return true;
        };
        if store::is_temporary(&name) {
            let whole = self.roots[self.next_root - 1]
                .join(OsString::from_vec(open.path.clone()))
                .join(&name);
            let whole = whole.display();
            self.found.complaints.leave_out(format!("{whole}: is part of a copy, left out"));
            return true;
        }
        let mut path = open.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(name.as_bytes());
        let whole = self.roots[self.next_root - 1].join(OsString::from_vec(path.clone()));
        let metadata = std::fs::symlink_metadata(&whole);
        self.take(&whole, path, metadata);
        true
    }

    fn take(&mut self, whole: &Path, path: Vec<u8>, metadata: std::io::Result<Metadata>) {
        let taken = metadata.map_err(|error| words(&error)).and_then(|metadata| {
            if path.len() > PATH_BYTES_MAX {
                return Err(format!("its path is longer than {PATH_BYTES_MAX} bytes"));
            }
            self.add(whole, path, &metadata)
        });
        if let Err(reason) = taken {
            self.found.complaints.add(whole.display().to_string(), reason);
        }
    }

    fn add(&mut self, whole: &Path, path: Vec<u8>, metadata: &Metadata) -> Result<(), String> {
        let kind = metadata.file_type();
        let kind = if kind.is_dir() {
            Kind::Folder
        } else if kind.is_symlink() {
            let target = std::fs::read_link(whole).map_err(|error| words(&error))?;
            Kind::Symlink(target.into_os_string().into_vec())
        } else if kind.is_file() {
            self.file(whole, metadata)?
        } else {
            let what = special(kind);
            self.found.complaints.leave_out(format!("{}: is {what}, left out", whole.display()));
            return Ok(());
        };
        let is_folder = kind == Kind::Folder;
        // A folder that cannot be read is not begun.
        let names =
            if is_folder { names_in(whole).map_err(|error| words(&error))? } else { Vec::new() };
        let entry = Entry {
            root: (self.next_root - 1) as u32,
            path: path.clone(),
            kind,
            mode: metadata.mode() & 0o7777,
            changed: (metadata.mtime(), metadata.mtime_nsec().clamp(0, 999_999_999) as u32),
            owner: (metadata.uid(), metadata.gid()),
        };
        self.found.manifest.add(entry)?;
        self.found.stamps.push(Stamp::of(metadata));
        if is_folder {
            self.open.push(Open { path, names });
        }
        Ok(())
    }

    fn file(&mut self, whole: &Path, metadata: &Metadata) -> Result<Kind, String> {
        let place = (metadata.dev(), metadata.ino());
        if metadata.nlink() > 1 {
            if let Some(&first) = self.linked.get(&place) {
                return Ok(Kind::HardLink(first));
            }
            self.linked.insert(place, self.found.manifest.len());
        }
        let is_sparse = metadata.blocks().saturating_mul(512) < metadata.len();
        if !is_sparse {
            return Ok(Kind::File(Content::dense(metadata.len())));
        }
        let file = File::open(whole).map_err(|error| words(&error))?;
        let extents = extents(&file, metadata.len())
            .unwrap_or_else(|_| Content::dense(metadata.len()).extents);
        Ok(Kind::File(Content { size: metadata.len(), extents }))
    }
}

/// The names in a folder, the last one first.
fn names_in(path: &Path) -> std::io::Result<Vec<OsString>> {
    let names = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}

/// Where data stands, as the file system says.
fn extents(file: &File, size: u64) -> rustix::io::Result<Vec<Extent>> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut at = 0;
    while at < size {
        let offset = match seek(file, SeekFrom::Data(at)) {
            Err(rustix::io::Errno::NXIO) => break,
            offset => offset?,
        };
        if offset >= size {
            break;
        }
        let is_last = extents.len() + 1 == EXTENTS_MAX;
        let end = if is_last { size } else { seek(file, SeekFrom::Hole(offset))?.min(size) };
        if end <= offset {
            break;
        }
        extents.push(Extent { offset, length: end - offset });
        at = end;
    }
    Ok(extents)
}

fn special(kind: FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "no file, folder or link",
    }
}

/// What the system says, without its number.
pub(super) fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_an_interrupted_copy_left_is_named_and_not_copied() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("file"), b"text").unwrap();
        // It has the name under which the other one is going to be written.
        std::fs::write(root.join(".file.sapwood-part"), b"te").unwrap();
        std::fs::write(root.join("sapwood-part"), b"text").unwrap();
        let mut scan = Scan::new(vec![root]);
        while scan.step() {}
        let entries = scan.found.manifest.entries();
        let paths: Vec<&[u8]> = entries.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths, [&b""[..], b"file", b"sapwood-part"]);
        let complaints = scan.found.complaints;
        assert!(complaints.is_empty() && complaints.left_out.len() == 1);
        assert!(
            complaints.left_out[0]
                .ends_with("tree/.file.sapwood-part: is part of a copy, left out")
        );
    }

    #[test]
    fn a_folder_is_found_with_its_links_and_holes_and_without_special_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/file"), b"text").unwrap();
        std::fs::hard_link(root.join("a/file"), root.join("again")).unwrap();
        std::os::unix::fs::symlink("a/file", root.join("link")).unwrap();
        let sparse = File::create(root.join("sparse")).unwrap();
        sparse.write_all_at(b"end", 8 << 20).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let mut scan = Scan::new(vec![root, folder.path().join("absent")]);
        while scan.step() {}
        let found = scan.found;
        let kinds: Vec<(String, Kind)> = found.manifest.entries()[..]
            .iter()
            .map(|entry| (String::from_utf8_lossy(&entry.path).into(), entry.kind.clone()))
            .collect();
        let paths: Vec<&str> = kinds.iter().map(|(path, _)| &**path).collect();
        assert_eq!(paths, ["", "a", "a/file", "again", "link", "sparse"]);
        assert_eq!(kinds[3].1, Kind::HardLink(2));
        assert_eq!(kinds[4].1, Kind::Symlink(b"a/file".into()));
        let Kind::File(content) = &kinds[5].1 else { panic!("a file") };
        assert_eq!(content.size, (8 << 20) + 3);
        assert!(content.data_bytes() < 1 << 20, "{content:?}");
        assert!(found.complaints.left_out[0].ends_with("socket: is a socket, left out"));
        assert_eq!(found.complaints.count, 1);
        assert!(found.complaints.first[0].path.ends_with("absent"));
    }
}
