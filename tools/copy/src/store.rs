//! Where copies are put: temporary names, permissions, times, links, and the moment at which
//! something gets its name.
//!
//! A file is written under a name of its own, `.NAME.sapwood-part`, in the folder that it is for,
//! and renamed when it is whole. A folder that is not there yet is built under such a name as a
//! whole. The process that writes one has a lock on it. Everything below a source is reached from
//! that source's folder, name by name, and no symbolic link is followed on the way.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps,
    UTIME_OMIT, Uid, chownat, fchmod, fchown, flock, fstat, ftruncate, futimens, linkat, mkdirat,
    openat, renameat, renameat_with, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::held::Held;
use super::manifest::{Entry, Kind};
use super::protocol::Terms;

/// What the temporary names end with.
const MARK: &str = ".sapwood-part";

/// Longest name in a folder, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Why something could not be put in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) reason: String,
    /// Whether nothing else can be written on this host either.
    pub(super) is_fatal: bool,
    /// Whether it is room that is lacking.
    pub(super) is_full: bool,
}

impl Trouble {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_fatal: false, is_full: false }
    }
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Self {
        let is_full = matches!(error, Errno::NOSPC | Errno::DQUOT);
        let is_fatal = is_full || matches!(error, Errno::IO | Errno::ROFS);
        let reason = super::scan::words(&std::io::Error::from(error));
        Self { reason, is_fatal, is_full }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(number) => number.into(),
            None => Self::new(error.to_string()),
        }
    }
}

type Result<T> = std::result::Result<T, Trouble>;

/// The place of one source.
struct Site {
    parent: Rc<OwnedFd>,
    whole: PathBuf,
    name: OsString,
    /// The folder that the source is, once it has been begun.
    tree: Option<Rc<OwnedFd>>,
    /// Whether that has a temporary name.
    is_new: bool,
    /// Whether nothing can be in it yet.
    is_fresh: bool,
}

impl Drop for Site {
    /// Unlocks a folder that was begun, even where a process that is being started has a copy of
    /// the descriptor for a moment.
    fn drop(&mut self) {
        if let Some(tree) = self.tree.as_ref().filter(|_| self.is_new) {
            // The file system may know no locks.
            let _ = flock(&**tree, FlockOperation::Unlock);
        }
    }
}

/// A file that is there already, wholly or in part.
pub(super) struct Present {
    pub(super) file: Held,
    /// Bytes of data that it has.
    pub(super) length: u64,
    /// Whether it has its name.
    pub(super) is_final: bool,
}

/// A folder below a source.
struct Reached {
    /// The source.
    root: u32,
    /// The way from there.
    path: Vec<u8>,
    folder: Rc<OwnedFd>,
}

/// The places of all sources.
pub(super) struct Store {
    sites: Vec<Site>,
    terms: Terms,
    /// The folder below a source that was reached last.
    reached: Option<Reached>,
}

impl Store {
    /// Finds the places for sources of these names.
    ///
    /// # Errors
    /// The path, and why nothing can be put there.
    pub(super) fn locate(
        destination: &Path,
        names: &[Vec<u8>],
        terms: Terms,
    ) -> std::result::Result<Self, (PathBuf, Trouble)> {
        let refused = |path: &Path, trouble: Trouble| (path.to_path_buf(), trouble);
        if terms.keeps_owner && !rustix::process::geteuid().is_root() {
            let trouble = Trouble::new("only root can keep owners; omit --owner");
            return Err(refused(destination, trouble));
        }
        let is_folder = destination.is_dir();
        if terms.is_into && !is_folder {
            let made = std::fs::create_dir(destination);
            made.map_err(|error| refused(destination, error.into()))?;
        }
        let mut sites = Vec::new();
        for name in names {
            let is_name = !matches!(&**name, b"" | b"." | b"..") && !name.contains(&b'/');
            let whole = match terms.is_into || is_folder && !terms.is_exact {
                true => destination.join(OsStr::from_bytes(name)),
                false => destination.to_path_buf(),
            };
            let last = whole.file_name().filter(|_| is_name).map(OsStr::to_os_string);
            let (Some(parent), Some(name)) = (whole.parent(), last) else {
                return Err(refused(&whole, Trouble::new("is not a valid file name")));
            };
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::open(parent, flags, Mode::empty());
            let opened = opened.map_err(|error| refused(parent, error.into()))?;
            let parent = Rc::new(opened);
            let (tree, is_new, is_fresh) = (None, false, false);
            sites.push(Site { parent, whole, name, tree, is_new, is_fresh });
        }
        Ok(Self { sites, terms, reached: None })
    }

    /// Where an entry is put, for people.
    pub(super) fn shown(&self, entry: &Entry) -> String {
        let Some(site) = self.sites.get(entry.root as usize) else { return String::new() };
        let path = match entry.path.is_empty() {
            true => site.whole.clone(),
            false => site.whole.join(OsStr::from_bytes(&entry.path)),
        };
        path.display().to_string()
    }

    /// Whether nothing of this source can be there yet.
    pub(super) fn is_fresh(&self, root: u32) -> bool {
        self.terms.is_anew || self.sites.get(root as usize).is_some_and(|site| site.is_fresh)
    }

    /// Whether this source is a folder that has no name yet.
    pub(super) fn is_new(&self, root: u32) -> bool {
        self.sites.get(root as usize).is_some_and(|site| site.is_new)
    }

    /// Makes ready for a source, which is this entry.
    pub(super) fn begin_root(&mut self, entry: &Entry) -> Result<()> {
        let is_anew = self.terms.is_anew;
        let Some(site) = self.sites.get_mut(entry.root as usize) else {
            return Err(Trouble::new("internal error: more sources than names; report this line"));
        };
        let there = kind_of(&site.parent, &site.name)?;
        if entry.kind != Kind::Folder {
            return match there {
                Some(FileType::Directory) => Err(Trouble::new(
                    "is a folder, and the source is a file; name another DEST, or remove the \
                     folder",
                )),
                _ => Ok(()),
            };
        }
        match there {
            None => {}
            Some(FileType::Directory) => {
                site.tree = Some(Rc::new(open_folder(&site.parent, &site.name)?));
                return Ok(());
            }
            Some(_) => {
                return Err(Trouble::new(
                    "is not a folder, but the source is; remove it or choose another DEST",
                ));
            }
        }
        let temporary = temporary(&site.name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&*site.parent, &*temporary, flags, Mode::empty());
        if is_anew && let Ok(old) = open() {
            // What another copy is building is not taken from it.
            take_over(&site.parent, &temporary, &old)?;
            remove_tree(&site.whole, &temporary);
        }
        site.is_fresh = match mkdirat(&*site.parent, &*temporary, Mode::RWXU) {
            Err(Errno::EXIST) => false,
            made => made.map(|()| true)?,
        };
        let tree = open()?;
        check_own(&fstat(&tree)?)?;
        take_over(&site.parent, &temporary, &tree)?;
        (site.tree, site.is_new) = (Some(Rc::new(tree)), true);
        Ok(())
    }

    /// The folder in which an entry is, and its name there.
    fn place<'a>(&mut self, entry: &'a Entry) -> Result<(Rc<OwnedFd>, OsString)> {
        let Some(site) = self.sites.get(entry.root as usize) else {
            return Err(Trouble::new("internal error: more sources than names; report this line"));
        };
        if entry.path.is_empty() {
            return Ok((Rc::clone(&site.parent), site.name.clone()));
        }
        let (above, name): (&'a [u8], &'a [u8]) = entry.parent_and_name();
        let name = OsStr::from_bytes(name).to_os_string();
        if let Some(reached) = &self.reached
            && (reached.root, &*reached.path) == (entry.root, above)
        {
            return Ok((Rc::clone(&reached.folder), name));
        }
        let Some(mut folder) = site.tree.clone() else {
            return Err(Trouble::new("its folder was not created"));
        };
        for part in above.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
            folder = Rc::new(open_folder(&folder, OsStr::from_bytes(part))?);
        }
        let (root, path) = (entry.root, above.to_vec());
        self.reached = Some(Reached { root, path, folder: Rc::clone(&folder) });
        Ok((folder, name))
    }

    /// Makes a folder below a source, if it is not there.
    pub(super) fn make_folder(&mut self, entry: &Entry) -> Result<()> {
        let (parent, name) = self.place(entry)?;
        match mkdirat(&*parent, &*name, Mode::RWXU) {
            Err(Errno::EXIST) => match kind_of(&parent, &name)? {
                Some(FileType::Directory) => Ok(()),
                _ => Err(Trouble::new(
                    "is not a folder, but the source is; remove it or choose another DEST",
                )),
            },
            made => Ok(made?),
        }
    }

    /// What is there of a file: itself as it should be by size and time, or a part of it.
    pub(super) fn find(&mut self, entry: &Entry) -> Option<Present> {
        let content = entry.content()?;
        let (parent, name) = self.place(entry).ok()?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let status = |file: &OwnedFd| {
            fstat(file).ok().filter(|it| FileType::from_raw_mode(it.st_mode).is_file())
        };
        let stands = openat(&*parent, &*name, flags | OFlags::RDONLY, Mode::empty()).ok();
        let as_meant = |it: Stat| {
            it.st_size as u64 == content.size
                && (it.st_mtime, it.st_mtime_nsec as u32) == (entry.changed.0, entry.changed.1)
        };
        if let Some(file) = stands.filter(|file| status(file).is_some_and(as_meant)) {
            let length = content.data_bytes();
            return Some(Present { file: self.held(file), length, is_final: true });
        }
        let part =
            openat(&*parent, &*temporary(&name), flags | OFlags::RDWR, Mode::empty()).ok()?;
        let it = status(&part)?;
        let is_free = take_over(&parent, &temporary(&name), &part).is_ok();
        if check_own(&it).is_err() || !is_free {
            return None;
        }
        let length = content.data_within(it.st_size as u64);
        Some(Present { file: self.held(part), length, is_final: false })
    }

    /// Begins a file under its temporary name.
    pub(super) fn begin_file(&mut self, entry: &Entry) -> Result<Held> {
        let (parent, name) = self.place(entry)?;
        let temporary = temporary(&name);
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW;
        let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |flags| openat(&*parent, &*temporary, flags, Mode::RUSR | Mode::WUSR);
        let mut file = open(flags);
        let is_ours = |file: &OwnedFd| {
            fstat(file).map_err(Trouble::from).and_then(|it| {
                check_own(&it)?;
                match FileType::from_raw_mode(it.st_mode).is_file() {
                    true => Ok(()),
                    false => Err(Trouble::new(
                        "its temporary name is taken by another file; remove that",
                    )),
                }
            })
        };
        if matches!(file, Err(Errno::LOOP | Errno::NXIO)) {
            // What is no file of ours cannot have begun as one.
            unlinkat(&*parent, &*temporary, AtFlags::empty())?;
            file = open(flags | OFlags::EXCL);
        }
        let file = file?;
        is_ours(&file)?;
        take_over(&parent, &temporary, &file)?;
        ftruncate(&file, 0)?;
        Ok(self.held(file))
    }

    fn held(&self, file: OwnedFd) -> Held {
        match self.terms.syncs {
            true => Held::synced(file.into()),
            false => Held::unsynced(file.into()),
        }
    }

    /// Gives a file that has its name already its permissions.
    pub(super) fn finish_present(&mut self, entry: &Entry, file: &File) -> Result<()> {
        self.set_owner_and_mode(entry, file)
    }

    /// Gives a file that is whole its length, permissions, time and name.
    pub(super) fn finish_file(&mut self, entry: &Entry, file: &mut Held) -> Result<()> {
        let (parent, name) = self.place(entry)?;
        let size = entry.content().map_or(0, |content| content.size);
        ftruncate(&**file, size)?;
        self.set_owner_and_mode(entry, &**file)?;
        futimens(&**file, &times(entry))?;
        file.finish()?;
        check_named(&parent, &temporary(&name), &**file)?;
        match renameat(&*parent, &*temporary(&name), &*parent, &*name) {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Err(Trouble::new(
                "is a folder, and the source is a file; name another DEST, or remove the folder",
            )),
            renamed => Ok(renamed?),
        }
    }

    fn set_owner_and_mode(&self, entry: &Entry, file: impl AsFd) -> Result<()> {
        if self.terms.keeps_owner {
            let (user, group) = owner(entry);
            fchown(&file, Some(user), Some(group))?;
        }
        // Without the owner, a program that runs as its owner would run as another user.
        let kept = if self.terms.keeps_owner { 0o7777 } else { 0o1777 };
        Ok(fchmod(&file, Mode::from_raw_mode(entry.mode & kept))?)
    }

    /// Takes away what there is of a file under its temporary name, unless another copy writes it.
    /// Where it is open here it is closed before.
    pub(super) fn discard(&mut self, entry: &Entry) {
        let Ok((parent, name)) = self.place(entry) else { return };
        let temporary = temporary(&name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(part) = openat(&*parent, &*temporary, flags, Mode::empty())
            && take_over(&parent, &temporary, &part).is_err()
        {
            return;
        }
        // There may be nothing.
        let _ = unlinkat(&*parent, &*temporary, AtFlags::empty());
    }

    /// Makes a symbolic link.
    pub(super) fn make_symlink(&mut self, entry: &Entry, target: &[u8]) -> Result<()> {
        let (parent, name) = self.place(entry)?;
        let temporary = temporary(&name);
        let _ = unlinkat(&*parent, &*temporary, AtFlags::empty());
        symlinkat(OsStr::from_bytes(target), &*parent, &*temporary)?;
        let put = || {
            if self.terms.keeps_owner {
                let (user, group) = owner(entry);
                chownat(&*parent, &*temporary, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            // Some file systems know no time of a link.
            let _ = utimensat(&*parent, &*temporary, &times(entry), AtFlags::SYMLINK_NOFOLLOW);
            renameat(&*parent, &*temporary, &*parent, &*name)
        };
        let put = put();
        if put.is_err() {
            let _ = unlinkat(&*parent, &*temporary, AtFlags::empty());
        }
        Ok(put?)
    }

    /// Gives the file that another entry is a further name.
    pub(super) fn make_hard_link(&mut self, entry: &Entry, of: &Entry) -> Result<()> {
        let (folder, file) = self.place(of)?;
        let (parent, name) = self.place(entry)?;
        let temporary = temporary(&name);
        let _ = unlinkat(&*parent, &*temporary, AtFlags::empty());
        linkat(&*folder, &*file, &*parent, &*temporary, AtFlags::empty())?;
        let renamed = renameat(&*parent, &*temporary, &*parent, &*name);
        // Two names of one file are not renamed to each other.
        let _ = unlinkat(&*parent, &*temporary, AtFlags::empty());
        Ok(renamed?)
    }

    /// Gives a folder its permissions and time, after everything in it.
    pub(super) fn finish_folder(&mut self, entry: &Entry) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let site = self.sites.get(entry.root as usize);
        let folder = match site.and_then(|site| site.tree.clone()) {
            Some(tree) if entry.path.is_empty() => openat(&*tree, ".", flags, Mode::empty())?,
            _ => {
                let (parent, name) = self.place(entry)?;
                openat(&*parent, &*name, flags, Mode::empty())?
            }
        };
        self.set_owner_and_mode(entry, &folder)?;
        Ok(futimens(&folder, &times(entry))?)
    }

    /// Gives a folder that was built under a temporary name its own.
    pub(super) fn publish(&mut self, root: u32) -> Result<()> {
        self.reached = None;
        let Some(site) = self.sites.get_mut(root as usize).filter(|site| site.is_new) else {
            return Ok(());
        };
        let temporary = temporary(&site.name);
        if let Some(tree) = &site.tree {
            check_named(&site.parent, &temporary, tree)?;
        }
        let flags = RenameFlags::NOREPLACE;
        match renameat_with(&*site.parent, &*temporary, &*site.parent, &*site.name, flags) {
            Err(Errno::EXIST) => Err(Trouble::new("was made by another process meanwhile")),
            // Some file systems cannot look and rename at once.
            Err(Errno::INVAL) => {
                Ok(renameat(&*site.parent, &*temporary, &*site.parent, &*site.name)?)
            }
            renamed => Ok(renamed?),
        }?;
        site.is_new = false;
        Ok(())
    }

    /// Takes away the folders that have temporary names.
    pub(super) fn remove_new_trees(&mut self) {
        self.reached = None;
        for site in self.sites.iter_mut().filter(|site| site.is_new) {
            let temporary = temporary(&site.name);
            if let Some(tree) = &site.tree
                && check_named(&site.parent, &temporary, tree).is_ok()
            {
                remove_tree(&site.whole, &temporary);
            }
        }
    }
}

fn remove_tree(whole: &Path, temporary: &OsStr) {
    // There may be nothing, and what cannot be removed is found by the next copy.
    let _ = std::fs::remove_dir_all(whole.with_file_name(temporary));
}

/// Whether something has a name under which copies are written. A file of that name would be in the
/// way of the one whose temporary name it is.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") && name.ends_with(MARK.as_bytes())
}

/// The name under which something is written.
fn temporary(name: &OsStr) -> OsString {
    let mut made = OsString::from(".");
    if name.len() + 1 + MARK.len() > NAME_BYTES_MAX {
        let digest = super::blocks::block_digest(name.as_bytes());
        made.push(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    } else {
        made.push(name);
    }
    made.push(MARK);
    made
}

fn times(entry: &Entry) -> Timestamps {
    let (seconds, nanoseconds) = entry.changed;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

fn owner(entry: &Entry) -> (Uid, Gid) {
    (Uid::from_raw(entry.owner.0), Gid::from_raw(entry.owner.1))
}

fn kind_of(parent: &OwnedFd, name: &OsStr) -> Result<Option<FileType>> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(it) => Ok(Some(FileType::from_raw_mode(it.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open_folder(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            Err(Trouble::new("is not a folder, but the copy needs one there"))
        }
        opened => Ok(opened?),
    }
}

/// Something that others prepared under a temporary name is not written to.
fn check_own(it: &Stat) -> Result<()> {
    let is_ours = it.st_uid == rustix::process::geteuid().as_raw();
    let has_other_names = FileType::from_raw_mode(it.st_mode).is_file() && it.st_nlink > 1;
    match is_ours && !has_other_names {
        true => Ok(()),
        false => Err(Trouble::new("something of another owner has its temporary name")),
    }
}

/// Locks something that has a temporary name. The process that had it locked until now may have
/// given it its own name since it was opened; then it is not written to any more.
fn take_over(parent: &OwnedFd, temporary: &OsStr, file: &OwnedFd) -> Result<()> {
    lock(file)?;
    check_named(parent, temporary, file)
}

/// Something is renamed, or taken away, only where it still has the name by which it was opened.
fn check_named(parent: &OwnedFd, temporary: &OsStr, file: impl AsFd) -> Result<()> {
    let held = fstat(file)?;
    match statat(parent, temporary, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) => Ok(()),
        Ok(_) | Err(Errno::NOENT) => {
            Err(Trouble::new("is being written by another copy; wait for it to end"))
        }
        Err(error) => Err(error.into()),
    }
}

fn lock(file: &OwnedFd) -> Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            Err(Trouble::new("is being written by another copy; wait for it to end"))
        }
        // A file system without locks.
        Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        locked => Ok(locked?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_for_the_next_copy_although_somebody_has_the_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let open = || OwnedFd::from(File::open(folder.path()).unwrap());
        let tree = open();
        lock(&tree).unwrap();
        let copied = tree.try_clone().unwrap();
        let whole = folder.path().to_path_buf();
        let name = OsString::from("tree");
        let (tree, parent) = (Some(Rc::new(tree)), Rc::new(open()));
        let site = Site { parent, whole, name, tree, is_new: true, is_fresh: true };
        assert!(lock(&open()).is_err(), "it is being written");
        drop(site);
        assert_eq!(lock(&open()), Ok(()));
        drop(copied);
    }

    #[test]
    fn what_got_its_own_name_meanwhile_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let parent = OwnedFd::from(File::open(folder.path()).unwrap());
        let (part, whole) = (folder.path().join(".x.sapwood-part"), folder.path().join("x"));
        let take_it = |part: &OwnedFd| take_over(&parent, OsStr::new(".x.sapwood-part"), part);
        // The second copy opens it, then the first one is done with it and gone.
        let first = OwnedFd::from(File::create(&part).unwrap());
        take_it(&first).unwrap();
        let second = OwnedFd::from(File::open(&part).unwrap());
        std::fs::rename(&part, &whole).unwrap();
        drop(first);
        assert_eq!(
            take_it(&second),
            Err(Trouble::new("is being written by another copy; wait for it to end"))
        );
        // A third has begun anew.
        let third = OwnedFd::from(File::create(&part).unwrap());
        take_it(&third).unwrap();
        assert!(take_it(&second).is_err());
    }
}
