//! Visible networks: other processes of the same user can find and query them.
//!
//! A visible front-end writes two files into a folder that only its user can enter: `NAME.network`,
//! with the address at which it takes connections, and the network's key. Both are removed when the
//! network closes. The files of a process that was killed are removed by the next search. A network
//! may leave its name to another one of its process: that one's file is renamed over its own.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sapwood_node::HopQuestion;
use sapwood_runtime::{RuntimeError, Visitor};
use sapwood_transport::{Address, Encryption, Key};

use crate::draft::write_new;
use crate::inquiry::{application_question, hop_question, status_question};
use crate::{Clocks, Error, Result, Status};

/// The first line of a network's file.
const FIRST_LINE: &str = "sapwood-network 1";

/// Longest name of a visible network, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Longest file of a network, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// What is missing of a front-end that does not let its network run.
const NO_ANSWER: &str = "answer from the front-end, which is stopped or busy,";

/// How much longer than the network itself a visitor waits for the answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// A running network of this user that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibleNetwork {
    /// Its name.
    pub name: String,
    /// The process of its front-end.
    pub pid: u32,
    start: u64,
    address: String,
    encryption: Encryption,
    key_path: PathBuf,
}

impl VisibleNetwork {
    /// All of them, by name.
    ///
    /// # Errors
    /// [`Error::File`] when the folder cannot be trusted or read.
    pub fn all() -> Result<Vec<Self>> {
        let folder = runtime_folder()?;
        let mut all = Vec::new();
        for path in files(&folder)? {
            if path.extension().is_some_and(|end| end == "network")
                && let Some(found) = Self::read(&path)
            {
                if found.is_running() {
                    all.push(found);
                } else {
                    remove(&[&path, &found.key_path]);
                }
            } else if owner_of(&path).is_some_and(|pid| start_of(pid).is_none()) {
                // The file of a process that was killed before it wrote the second one.
                remove(&[&path]);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Queries the network's status. Processes that do not answer in time are named as missing.
    ///
    /// # Errors
    /// [`Error::Timeout`] when the front-end's application does not
    /// let its network run, [`Error::Runtime`] when it cannot be reached.
    pub fn status(&self, timeout: Duration) -> Result<Status> {
        let limit = timeout.saturating_add(ANSWER_TIME);
        Status::from_bytes(&self.visit(&status_question(timeout), limit)?)
    }

    /// Queries its status with the events of waves and packets that its processes have noted since
    /// the session's last question, as [`Network::hops`](crate::Network::hops) does.
    ///
    /// # Errors
    /// As [`VisibleNetwork::status`].
    pub fn hops(&self, question: &HopQuestion, timeout: Duration) -> Result<Status> {
        let limit = timeout.saturating_add(ANSWER_TIME);
        Status::from_bytes(&self.visit(&hop_question(question, timeout), limit)?)
    }

    /// The offsets of all its processes' clocks from the front-end's, from that many status queries
    /// (at least one) with that timeout: each is a sample of every link.
    ///
    /// # Errors
    /// As [`VisibleNetwork::status`].
    pub fn clocks(&self, questions: u32, timeout: Duration) -> Result<Clocks> {
        Clocks::after(questions, || self.status(timeout))
    }

    /// Asks the application of the network, in words that both understand; empty if it does not.
    ///
    /// # Errors
    /// As [`VisibleNetwork::status`].
    pub fn ask(&self, words: &[u8], timeout: Duration) -> Result<Vec<u8>> {
        self.visit(&application_question(words), timeout)
    }

    fn visit(&self, question: &[u8], limit: Duration) -> Result<Vec<u8>> {
        self.answer_to(question, limit).map_err(|error| self.unless_ended(error))
    }

    /// The error of a visit; of a network that has ended since it was found that is the cause,
    /// whatever was observed: its key is removed, and no process listens.
    fn unless_ended(&self, error: Error) -> Error {
        if self.is_running() && self.key_path.exists() {
            return error;
        }
        Error::Ended { reason: format!("'{}' is not there any more", self.name) }
    }

    fn answer_to(&self, question: &[u8], limit: Duration) -> Result<Vec<u8>> {
        let key = Key::from_file(&self.key_path)?;
        let address: Address = self.address.parse()?;
        let answer = Visitor::connect(&address, &key, self.encryption, limit)
            .and_then(|mut visitor| visitor.ask(question, limit));
        match answer {
            Ok(answer) => Ok(answer),
            Err(RuntimeError::NoReply { waited }) => {
                Err(Error::Timeout { what: NO_ANSWER, waited })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the files of this process's visible networks, for a process that is about to end
    /// without closing them.
    pub fn withdraw_own() {
        let own = std::process::id();
        let Ok(folder) = runtime_folder() else { return };
        for path in files(&folder).unwrap_or_default() {
            let found = Self::read(&path);
            if found.is_some_and(|found| found.pid == own) || owner_of(&path) == Some(own) {
                remove(&[&path]);
            }
        }
    }

    fn read(path: &Path) -> Option<Self> {
        let length = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?.len();
        let text = fs::read_to_string(path).ok().filter(|_| length <= FILE_BYTES_MAX)?;
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(Self {
            name: path.file_stem()?.to_str()?.to_string(),
            pid: field("pid")?.parse().ok()?,
            start: field("start")?.parse().ok()?,
            address: field("address")?.to_string(),
            encryption: match field("encryption")? {
                "on" => Encryption::On,
                "off" => Encryption::Off,
                _ => return None,
            },
            key_path: path.with_file_name(Path::new(field("key")?).file_name()?),
        })
    }

    fn is_running(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// What makes a network visible in the place of another one of this process, so that at every
/// moment one of the two is found. Nothing is seen of it before; dropping this removes it.
#[derive(Debug)]
pub struct PreparedName(Publication);

/// The name of a network ([`Network::name`](crate::Network::name)), which passes from one network
/// of a process to another: the second [prepares](NetworkName::prepare) for it, the first
/// [leaves it](NetworkName::leave_to), and the second [keeps it](NetworkName::keep).
#[derive(Debug)]
pub struct NetworkName<'a> {
    pub(crate) publication: &'a mut Option<Publication>,
    pub(crate) key: &'a Key,
    pub(crate) address: String,
    pub(crate) is_encrypted: bool,
}

impl NetworkName<'_> {
    /// Prepares to make this network visible in the place of another one. Nothing is seen of it
    /// yet.
    ///
    /// # Errors
    /// [`Error::File`] when the name is invalid, or the file cannot be written.
    pub fn prepare(&self, name: &str) -> Result<PreparedName> {
        let Self { key, address, is_encrypted, .. } = self;
        Publication::prepare(name, address, *is_encrypted, key).map(PreparedName)
    }

    /// Leaves this network's name to another one, which is to keep it: visitors find one of the two
    /// at every moment. Whether there was a name to leave.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be put in its place; this network keeps its name then.
    pub fn leave_to(self, successor: &mut PreparedName) -> Result<bool> {
        let own = self.publication.as_mut().filter(|own| own.is_in_place());
        let Some(own) = own else { return Ok(false) };
        own.leave_to(&mut successor.0).map(|()| true)
    }

    /// Keeps the name that another network has left to this one, until it closes.
    pub fn keep(self, name: PreparedName) {
        *self.publication = Some(name.0);
    }
}

/// The files that make a network visible; dropping this removes them.
#[derive(Debug)]
pub(crate) struct Publication {
    /// Empty while the network's file is not in its place, or when another one has taken the place.
    path: PathBuf,
    /// That file under another name; empty once it is in its place.
    draft: PathBuf,
    key_path: PathBuf,
    pid: u32,
}

impl Publication {
    /// Writes the files.
    ///
    /// # Errors
    /// [`Error::File`] for an invalid name or that of another running network, and when the folder
    /// cannot be trusted or written.
    pub(crate) fn new(name: &str, address: &str, is_encrypted: bool, key: &Key) -> Result<Self> {
        let mut publication = Self::prepare(name, address, is_encrypted, key)?;
        // Removes the files of processes that have ended, perhaps under this name.
        VisibleNetwork::all()?;
        let path = file_of(&runtime_folder()?, name);
        match fs::hard_link(&publication.draft, &path) {
            Ok(()) => publication.path = path,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let owner = VisibleNetwork::read(&path).map(|network| network.pid);
                let by = owner.map(|pid| format!(": that of process {pid}")).unwrap_or_default();
                let reason = format!(
                    "a running network is called '{name}' already{by}; end it, or use another name"
                );
                return Err(Error::File { path, reason });
            }
            Err(error) => return Err(Error::File { path, reason: error.to_string() }),
        }
        remove(&[&std::mem::take(&mut publication.draft)]);
        Ok(publication)
    }

    /// Writes the files, of which nothing is seen yet.
    ///
    /// # Errors
    /// As [`Publication::new`], but for another network of this name.
    pub(crate) fn prepare(
        name: &str,
        address: &str,
        is_encrypted: bool,
        key: &Key,
    ) -> Result<Self> {
        check_name(name)?;
        let folder = runtime_folder()?;
        let pid = std::process::id();
        let start = start_of(pid).unwrap_or(0);
        // One process may try several networks under one name.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = |ending: &str| folder.join(format!("{name}.{pid}.{number}.{ending}"));
        let (key_path, draft) = (beside("key"), beside("draft"));
        remove(&[&key_path, &draft]);
        key.write_file(&key_path)?;
        // From here on the files are removed whatever happens.
        let publication = Self { path: PathBuf::new(), draft, key_path, pid };
        let encryption = if is_encrypted { "on" } else { "off" };
        let key_name = publication.key_path.file_name().unwrap_or_default().to_string_lossy();
        let text = format!(
            "{FIRST_LINE}\npid {pid}\nstart {start}\naddress {address}\nencryption {encryption}\n\
             key {key_name}\n"
        );
        write_new(&publication.draft, &text, 0o600).map_err(|error| Error::File {
            path: file_of(&folder, name),
            reason: error.to_string(),
        })?;
        Ok(publication)
    }

    /// Whether its network is found.
    pub(crate) fn is_in_place(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }

    /// Leaves its place to another one: the file in it is that of one of the two at every moment.
    /// The key stays, for visitors that have found this one just before.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be renamed, or when another process's is in its place.
    pub(crate) fn leave_to(&mut self, successor: &mut Self) -> Result<()> {
        let moved = if self.has_its_place() {
            fs::rename(&successor.draft, &self.path)
        } else {
            // Its file was removed by hand: another network may have the name since.
            fs::hard_link(&successor.draft, &self.path).map(|()| remove(&[&successor.draft]))
        };
        moved
            .map_err(|error| Error::File { path: self.path.clone(), reason: error.to_string() })?;
        successor.draft = PathBuf::new();
        successor.path = std::mem::take(&mut self.path);
        Ok(())
    }

    /// Whether the file in its place is its own: no two networks have a key's file in common.
    fn has_its_place(&self) -> bool {
        VisibleNetwork::read(&self.path).is_some_and(|found| found.key_path == self.key_path)
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        // A forked copy of this process is not the network's front-end.
        if self.pid == std::process::id() {
            if self.has_its_place() {
                remove(&[&self.path]);
            }
            remove(&[&self.draft, &self.key_path]);
        }
    }
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.network"))
}

/// Checks the name of a network.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let length = name.len();
    if (1..=NAME_BYTES_MAX).contains(&length) && !name.starts_with('.') && name.bytes().all(is_good)
    {
        return Ok(());
    }
    let reason = format!(
        "is no name for a network: use up to {NAME_BYTES_MAX} letters, digits, '-', '_' and '.'"
    );
    // A name of blanks, or with control characters, is to be seen.
    Err(Error::File { path: PathBuf::from(format!("'{}'", name.escape_debug())), reason })
}

/// The folder of this user's runtime files: `sapwood` in `XDG_RUNTIME_DIR`, or `/tmp/sapwood-UID`.
/// Only this user can enter it; it is made if it is not there.
///
/// # Errors
/// [`Error::File`] when it cannot be made, belongs to another user, or other users may enter it.
pub fn runtime_folder() -> Result<PathBuf> {
    let path = folder_path();
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::File { path, reason: error.to_string() })
        }
        _ => checked(path),
    }
}

/// The same folder, if it is there already.
///
/// # Errors
/// As [`runtime_folder`].
pub fn existing_runtime_folder() -> Result<Option<PathBuf>> {
    let path = folder_path();
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => checked(path).map(Some),
    }
}

fn folder_path() -> PathBuf {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match given.filter(|given| given.is_absolute() && given.is_dir()) {
        Some(given) => given.join("sapwood"),
        None => PathBuf::from(format!("/tmp/sapwood-{}", rustix::process::geteuid().as_raw())),
    }
}

fn checked(path: PathBuf) -> Result<PathBuf> {
    checked_for(path, rustix::process::geteuid().as_raw())
}

fn checked_for(path: PathBuf, user: u32) -> Result<PathBuf> {
    let failed = |reason: String| Error::File { path: path.clone(), reason };
    let found = fs::symlink_metadata(&path).map_err(|error| failed(error.to_string()))?;
    if found.uid() != user {
        // In a folder such as /tmp only its owner may remove it.
        let reason = "is no folder of this user's; set XDG_RUNTIME_DIR to a folder of your own, \
                      the same for all commands, or have its owner remove it";
        return Err(failed(reason.to_string()));
    }
    if !found.is_dir() {
        return Err(failed("is no folder; remove it".to_string()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(failed("others may enter it; run chmod 700 on it".to_string()));
    }
    Ok(path)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: std::io::Error| Error::File {
        path: folder.to_path_buf(),
        reason: error.to_string(),
    };
    let entries = fs::read_dir(folder).map_err(failed)?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// The process that has written a key or a draft, from its name.
fn owner_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".key").or_else(|| name.strip_suffix(".draft"))?;
    name.rsplit('.').nth(1)?.parse().ok()
}

/// Removes files that may be there.
fn remove(paths: &[&Path]) {
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
        // Another process may have removed it already.
        let _ = fs::remove_file(path);
    }
}

/// When a process began, in the system's ticks since it was started; none if it is gone.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    // State is the third field of proc(5), the start time the twenty-second.
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_wrong_name_is_quoted_where_it_is_told() {
        for (name, quoted) in [(" ", "' ': is no name"), ("a\u{1b}", "'a\\u{1b}': is no name")] {
            let told = check_name(name).expect_err("it is no name").to_string();
            assert!(told.starts_with(quoted), "{told}");
        }
        check_name("warm-1.a_b").expect("a name");
    }

    #[test]
    fn a_folder_that_another_user_has_made_is_gone_around() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let taken = above.path().join("sapwood-7");
        fs::create_dir(&taken).expect("it may be made");
        let other = rustix::process::geteuid().as_raw() + 1;
        let error = checked_for(taken, other).expect_err("it is another's").to_string();
        assert!(error.contains("sapwood-7") && error.contains("set XDG_RUNTIME_DIR"), "{error}");
    }

    fn network_file(key: &str) -> String {
        format!("{FIRST_LINE}\npid 1\nstart 1\naddress tcp:[::1]:1\nencryption on\nkey {key}\n")
    }

    /// The network x of a folder, whose file says that it is that of a key.
    fn publication(folder: &Path, key: &str) -> Publication {
        let path = file_of(folder, "x");
        write_new(&path, &network_file(key), 0o600).expect("it may be written");
        Publication {
            path,
            draft: PathBuf::new(),
            key_path: folder.join("x.1.0.key"),
            pid: std::process::id(),
        }
    }

    /// One that is to take its place.
    fn successor(folder: &Path) -> Publication {
        let draft = folder.join("x.1.1.draft");
        write_new(&draft, &network_file("x.1.1.key"), 0o600).expect("it may be written");
        let key_path = folder.join("x.1.1.key");
        Publication { path: PathBuf::new(), draft, key_path, pid: std::process::id() }
    }

    fn key_in(path: &Path) -> Option<PathBuf> {
        VisibleNetwork::read(path).map(|found| found.key_path)
    }

    #[test]
    fn a_network_leaves_its_name_to_another_one_and_that_removes_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = file_of(folder.path(), "x");
        let (mut first, mut second) =
            (publication(folder.path(), "x.1.0.key"), successor(folder.path()));
        first.leave_to(&mut second).expect("the name is its own");
        drop(first);
        assert_eq!(key_in(&path), Some(folder.path().join("x.1.1.key")));
        drop(second);
        assert!(!path.exists());
    }

    /// The own file was removed by hand, and another process has written one.
    #[test]
    fn a_file_of_another_network_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = file_of(folder.path(), "x");
        let (mut first, mut second) =
            (publication(folder.path(), "x.2.0.key"), successor(folder.path()));
        first.leave_to(&mut second).expect_err("the name is another's");
        assert!(!second.is_in_place());
        drop((first, second));
        assert_eq!(key_in(&path), Some(folder.path().join("x.2.0.key")));
    }

    #[test]
    fn a_network_that_has_ended_since_it_was_found_is_said_to_have() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pid = std::process::id();
        let found = |pid, start| VisibleNetwork {
            name: "gone".to_owned(),
            pid,
            start,
            address: "127.0.0.1:1".to_owned(),
            encryption: Encryption::Off,
            key_path: folder.path().join("gone.key"),
        };
        // Its process runs, and has closed it; or the process has ended.
        for network in [found(pid, start_of(pid).expect("it runs")), found(pid, 0)] {
            let error = network.ask(b"", Duration::from_secs(1)).expect_err("it is gone");
            assert!(matches!(error, Error::Ended { .. }), "{error}");
            assert_eq!(error.to_string(), "the network has ended: 'gone' is not there any more");
        }
    }

    #[test]
    fn what_a_user_can_mend_is_said() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let own = above.path().join("sapwood");
        write_new(&own, "", 0o600).expect("it may be written");
        let error = checked(own).expect_err("it is no folder").to_string();
        assert!(error.contains("remove it") && !error.contains("owner"), "{error}");
        let open = above.path().to_path_buf();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let error = checked(open).expect_err("others may enter").to_string();
        assert!(error.contains("chmod 700"), "{error}");
    }
}
