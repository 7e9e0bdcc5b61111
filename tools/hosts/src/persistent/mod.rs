//! Trees that stay up between commands: `sapwood up` and `sapwood down`, and the borrowing of such
//! a tree by a command.
//!
//! `daemon` is the process that owns the tree, `up` what starts it and `down` what ends it, `claim`
//! the right to start one of a name, `presence` which of its hosts are there, `returning` the
//! search for those that are missing, `succession` how a tree and those before it end together,
//! `shared` the tree as a command sees it, `message` what the two say to each other, `ending` what
//! is known of a tree that has ended by itself. docs/decisions/0012-warm-tree.md says why it is so.

mod again;
mod claim;
mod daemon;
pub mod down;
mod ending;
mod message;
mod place;
mod presence;
mod returning;
mod session;
pub mod shared;
mod succession;
pub mod up;

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sapwood::VisibleNetwork;
use sapwood_launch::quoted;
use sapwood_topology::NodeSet;
use sapwood_transport::{Address, Error, Interest, Link, Poller, connect_own};

use self::ending::Ending;
use self::message::{Asking, Description, Line, Reply, VERSION, absence_of_text};
use crate::absence::{line, nodes};
use sapwood_command_line::exit::{Failure, complain};

/// What a tree is called if nothing is said.
pub const DEFAULT_NAME: &str = "warm";

/// The argument with which the program of a communication process is an agent of such a tree, which
/// is that of `sapwood run`.
pub const AGENT: &str = "agent";

/// How the control sockets' names end, behind the name of the tree.
const ENDING: &str = "tree";

/// How long the daemon of a tree may take to say which tree it has. It is never busy for long.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// How long the right to make control sockets is waited for, which no process has for long.
const RIGHT_TIME: Duration = Duration::from_secs(1);
const RIGHT_PAUSE: Duration = Duration::from_millis(5);

/// What begins a line about hosts that a tree asks again.
const BY_THEMSELVES: &str =
    "hosts that answer again come back into the tree by themselves: they are";

/// A tree of this user's that is up, and a connection to it.
pub struct Found {
    pub description: Description,
    line: Line,
}

/// What is found of trees that stay up.
#[derive(Default)]
struct KeptTrees {
    found: Vec<Found>,
    unusable: Vec<UnusableTree>,
}

/// A tree that seems to be up, whose daemon does not say which tree it has.
#[derive(Debug)]
struct UnusableTree {
    name: String,
    /// The process of the daemon; none where no file says so.
    process: Option<u32>,
    why: Unusable,
}

/// What keeps a command from using a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unusable {
    /// The daemon does not answer, as one that is stopped.
    Silent,
    /// The daemon is of another version.
    Foreign,
    /// What has the path of the control socket lets no process connect, for this reason.
    Unreachable(String),
}

/// What the daemon behind a control socket says first.
enum Greeting {
    Tree(Box<Found>),
    Unusable(Unusable),
    /// It has closed the connection: it is about to end.
    Closed,
}

impl UnusableTree {
    fn to_failure(&self) -> Failure {
        match self.why {
            Unusable::Silent => Failure::timeout(self),
            Unusable::Foreign => Failure::usage(self),
            Unusable::Unreachable(_) => Failure::own(self),
        }
    }
}

impl fmt::Display for UnusableTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, why) = match &self.why {
            Unusable::Silent => ("does not answer", "is stopped or busy"),
            Unusable::Foreign => (
                "cannot be used",
                "is of another version of sapwood: end it with the version that started it",
            ),
            Unusable::Unreachable(reason) => {
                write!(f, "tree '{}' cannot be reached: {reason}", self.name)?;
                return match self.process {
                    Some(process) => write!(f, "; 'kill {process}' ends its daemon and the tree"),
                    None => f.write_str("; remove the file"),
                };
            }
        };
        write!(f, "tree '{}' {what}: its daemon", self.name)?;
        if let Some(process) = self.process {
            write!(f, ", process {process},")?;
        }
        write!(f, " {why}")?;
        match (&self.why, self.process) {
            (Unusable::Silent, Some(process)) => write!(
                f,
                "; 'kill -CONT {process}' continues it if it is stopped, 'kill -KILL {process}' \
                 ends it and its tree"
            ),
            _ => Ok(()),
        }
    }
}

/// The control socket of a tree in the folder of this user.
fn socket_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

fn address_of(path: &Path) -> Result<Address, Failure> {
    let address = path.to_str().and_then(|path| format!("unix:{path}").parse().ok());
    address.ok_or_else(|| {
        Failure::usage(format!(
            "the path is too long for a socket, or no text: {}; set XDG_RUNTIME_DIR to a folder \
             with a shorter path, the same for all commands",
            path.display()
        ))
    })
}

/// All trees of this user that are up, by name. What a daemon that was killed has left is removed.
///
/// # Errors
/// When the folder cannot be trusted.
pub fn all() -> Result<Vec<Found>, Failure> {
    let KeptTrees { found, unusable } = own_trees()?;
    unusable.iter().for_each(ignore);
    Ok(found)
}

fn ignore(tree: &UnusableTree) {
    complain(format_args!("{tree}; it is ignored"));
}

/// The trees of this user; none where nothing has made the folder for them.
fn own_trees() -> Result<KeptTrees, Failure> {
    match sapwood::existing_runtime_folder()? {
        Some(folder) => kept_trees(&folder),
        None => Ok(KeptTrees::default()),
    }
}

/// The trees in this folder.
fn kept_trees(folder: &Path) -> Result<KeptTrees, Failure> {
    let mut kept = KeptTrees::default();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(kept) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    for path in paths {
        match reached(&path)? {
            Reached::Tree(tree) => kept.found.push(*tree),
            Reached::Unusable(tree) => kept.unusable.push(tree),
            Reached::Nothing => remove_if_left(folder, &path)?,
            Reached::Ending => {}
        }
    }
    Ok(kept)
}

/// What is found by the path of a control socket.
enum Reached {
    Tree(Box<Found>),
    Unusable(UnusableTree),
    /// No process listens there.
    Nothing,
    /// A daemon that is about to end.
    Ending,
}

/// Connects to the control socket that has this path, and hears which tree is behind it. This alone
/// says what a tree is that cannot be used, to all commands.
fn reached(path: &Path) -> Result<Reached, Failure> {
    let unusable = |why| UnusableTree::at(path, why).map(Reached::Unusable);
    match connect_own(&address_of(path)?) {
        Ok(link) => match greeted(link)? {
            Greeting::Tree(tree) => Ok(Reached::Tree(tree)),
            Greeting::Unusable(why) => unusable(why),
            Greeting::Closed => Ok(Reached::Ending),
        },
        Err(Error::Refused { .. }) if is_replaced(path) => {
            let reason = format!("{} is not its control socket any more", path.display());
            let tree = UnusableTree::at(path, Unusable::Unreachable(reason))?;
            // Without a daemon it is a file that is left, of whatever kind.
            Ok(tree.process.map_or(Reached::Nothing, |_| Reached::Unusable(tree)))
        }
        Err(Error::Refused { .. }) => Ok(Reached::Nothing),
        // The daemon takes no further connection: its queue of them is full.
        Err(Error::Io { cause, .. }) if cause.kind() == ErrorKind::WouldBlock => {
            unusable(Unusable::Silent)
        }
        Err(error) if is_of_process(&error) => Err(Failure::own(&error)),
        Err(error) => unusable(Unusable::Unreachable(error.to_string())),
    }
}

/// Whether this process, or the machine, lacks what a connection takes: the tree is well then. All
/// other errors are of the file with the path of a control socket, and any command meets them.
fn is_of_process(error: &Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    matches!(error, Error::Io { cause, .. }
        if Errno::from_io_error(cause).is_some_and(|cause| lacking.contains(&cause)))
}

/// Whether a file that is no socket has the path of one.
fn is_replaced(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket())
}

impl UnusableTree {
    /// That of a control socket. Its network is visible under the same name.
    fn at(path: &Path, why: Unusable) -> Result<Self, Failure> {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let networks = VisibleNetwork::all()?;
        let process = networks.iter().find(|network| network.name == name).map(|one| one.pid);
        Ok(Self { name, process, why })
    }
}

/// Removes a control socket whose daemon was killed, and leaves that as the reason. One that is
/// just being made answers as little, but its tree is visible already; and in the place of the one
/// that did not answer there may be another by now, which does.
fn remove_if_left(folder: &Path, path: &Path) -> Result<(), Failure> {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if VisibleNetwork::all()?.iter().any(|network| network.name == name) {
        return Ok(());
    }
    let Some(_right) = right_to(folder) else { return Ok(()) };
    // Another process that has removed it has done the same work.
    if matches!(connect_own(&address_of(path)?), Err(Error::Refused { .. }))
        && std::fs::remove_file(path).is_ok()
    {
        ending::leave(folder, name, &Ending::of_killed());
    }
    Ok(())
}

/// The right to make and to remove control sockets in a folder, which one process has at a time, or
/// nothing where another process keeps it for long. It ends when it is dropped.
fn right_to(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    let until = Instant::now() + RIGHT_TIME;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(RIGHT_PAUSE);
    }
    Some(file)
}

/// Hears which tree the daemon has.
fn greeted(link: Link) -> Result<Greeting, Failure> {
    let failed = |error: Error| Failure::own(&format!("cannot wait for a tree: {error}"));
    let mut line = Line::new(link);
    let mut poller = Poller::new().map_err(failed)?;
    poller.add(line.link(), 0, Interest::READ).map_err(failed)?;
    let until = Instant::now() + ANSWER_TIME;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        poller.wait(&mut Vec::new(), Some(left)).map_err(failed)?;
        let is_open = line.read();
        let Ok(messages) = line.messages() else {
            return Ok(Greeting::Unusable(Unusable::Foreign));
        };
        let mut messages = messages.into_iter();
        if let Some(Reply::Description(mut description)) = messages.next() {
            // What changes just now may follow at once.
            for message in messages {
                match message {
                    Reply::Lost { ranks, reason } => description.absent.push((ranks, reason)),
                    Reply::Description(newer) => description = newer,
                    _ => {}
                }
            }
            return Ok(match description.version == VERSION {
                true => Greeting::Tree(Box::new(Found { description, line })),
                false => Greeting::Unusable(Unusable::Foreign),
            });
        }
        if !is_open {
            return Ok(Greeting::Closed);
        }
        if left.is_zero() {
            return Ok(Greeting::Unusable(Unusable::Silent));
        }
    }
}

/// What is to be said of a tree that is up whose network has this name: which of its hosts have
/// come back, which are missing, when these are asked again, and by which command it has them at
/// once; or why no command can use the tree. Nothing where none was missing, or no tree is up.
///
/// # Errors
/// When the folder cannot be trusted.
pub fn condition(name: &str) -> Result<Option<String>, Failure> {
    match sapwood::existing_runtime_folder()? {
        Some(folder) => condition_in(&folder, name),
        None => Ok(None),
    }
}

fn condition_in(folder: &Path, name: &str) -> Result<Option<String>, Failure> {
    Ok(match reached(&socket_path(folder, name))? {
        Reached::Tree(tree) => tree.description.condition(),
        Reached::Unusable(tree) => Some(format!("{tree}\n")),
        Reached::Nothing | Reached::Ending => None,
    })
}

impl Description {
    fn condition(&self) -> Option<String> {
        let hosts: Vec<String> = self.hosts.parse::<NodeSet>().ok()?.iter().collect();
        let absence = absence_of_text(&self.absent)?;
        let mut text = String::new();
        // Writing to a string cannot fail.
        for returned in &self.returned {
            let _ = writeln!(text, "{returned}");
        }
        for (ranks, reason) in &absence {
            let _ = writeln!(text, "{}", line(&nodes(&hosts, ranks), reason));
        }
        if !absence.is_empty() {
            let again = self.starting_again();
            let _ = match self.asking {
                Some(asking) => writeln!(text, "{asking}\nto start it anew at once: {again}"),
                None => writeln!(text, "to include hosts that are reachable again: {again}"),
            };
        }
        (!text.is_empty()).then_some(text)
    }

    /// How a command that misses hosts reaches them when they are back. It may have begun long ago.
    fn way_back(&self) -> String {
        let again = self.starting_again();
        let anew = format!("'sapwood run --new-tree', or for all commands: {again}");
        match self.asking {
            Some(Asking { pause_max, .. }) => format!(
                "{BY_THEMSELVES} asked at intervals of up to {} s; to reach them at once: {anew}",
                pause_max.as_secs_f64()
            ),
            None => format!("to reach hosts that are back: {anew}"),
        }
    }

    /// The command that starts the tree again with all of its hosts.
    fn starting_again(&self) -> String {
        let options = self.options.iter().map(|word| quoted(word));
        let words = ["sapwood", "up", "--replace"].map(str::to_owned).into_iter().chain(options);
        words.collect::<Vec<String>>().join(" ")
    }
}

impl fmt::Display for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BY_THEMSELVES)?;
        match self.next.as_millis().div_ceil(1000) {
            0 => f.write_str(" being asked")?,
            seconds => write!(f, " asked in {seconds} s")?,
        }
        write!(f, ", then at intervals of up to {} s", self.pause_max.as_secs_f64())
    }
}

/// The tree of this name, or the only one where none is named.
///
/// # Errors
/// Where there is none, several and no name, or one that does not answer or is of another version.
pub fn named(name: Option<&str>) -> Result<Found, Failure> {
    let KeptTrees { mut found, unusable } = own_trees()?;
    let is_meant = |tree: &&UnusableTree| match name {
        Some(name) => name == tree.name,
        None => found.is_empty(),
    };
    if let Some(tree) = unusable.iter().find(is_meant) {
        return Err(tree.to_failure());
    }
    unusable.iter().for_each(ignore);
    let names = found.iter().map(|tree| tree.description.name.clone()).collect::<Vec<_>>();
    match name {
        Some(name) => match names.iter().position(|known| known == name) {
            Some(at) => Ok(found.swap_remove(at)),
            None if names.is_empty() => Err(nothing_is_up(Some(name))),
            None => Err(Failure::usage(format!(
                "no tree is called '{name}'; up: {}{}",
                names.join(", "),
                why_ended(Some(name))
            ))),
        },
        None if found.len() > 1 => Err(Failure::usage(format!(
            "several trees are up: {}; choose one by its name: sapwood down NAME",
            names.join(", ")
        ))),
        None => found.pop().ok_or_else(|| nothing_is_up(None)),
    }
}

/// The tree of this name that is up, if one is.
///
/// # Errors
/// Where it does not answer, or is of another version.
pub(crate) fn standing(name: &str) -> Result<Option<Found>, Failure> {
    let KeptTrees { found, unusable } = own_trees()?;
    if let Some(tree) = unusable.iter().find(|tree| tree.name == name) {
        return Err(tree.to_failure());
    }
    unusable.iter().for_each(ignore);
    Ok(found.into_iter().find(|tree| tree.description.name == name))
}

/// All hosts of the tree of this name.
///
/// # Errors
/// Where there is none.
pub fn hosts_of(name: &str) -> Result<NodeSet, Failure> {
    named(Some(name))?.description.hosts.parse().map_err(Failure::usage)
}

fn nothing_is_up(name: Option<&str>) -> Failure {
    Failure::usage(format!(
        "no tree of this user is up on this machine; 'sapwood up' starts one{}",
        why_ended(name)
    ))
}

/// Why the tree of this name has ended by itself, or why each has where none is named, to be said
/// behind a line that it is not up. It is not said again.
pub fn why_ended(name: Option<&str>) -> String {
    let lines = ended(|known, _| name.is_none_or(|name| name == known));
    lines.iter().map(|line| format!("; {line}")).collect()
}

/// A line for each tree that has ended by itself and is meant, which is not given again.
pub(crate) fn ended(is_meant: impl Fn(&str, &Ending) -> bool) -> Vec<String> {
    let folder = sapwood::existing_runtime_folder().ok().flatten();
    folder.map(|folder| ending::take(&folder, is_meant)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};
    use std::process::ExitCode;

    use sapwood_command_line::exit::{OWN_FAILURE, TIMEOUT, USAGE};

    use super::*;

    fn tree_of(link: Link) -> Found {
        match greeted(link).unwrap() {
            Greeting::Tree(tree) => *tree,
            Greeting::Unusable(why) => panic!("it says which tree it has: {why:?}"),
            Greeting::Closed => panic!("it says which tree it has"),
        }
    }

    #[test]
    fn a_socket_that_was_left_is_removed_and_one_in_its_place_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = socket_path(folder.path(), "never-up");
        drop(UnixListener::bind(&path).unwrap());
        let right = right_to(folder.path()).unwrap();
        remove_if_left(folder.path(), &path).unwrap();
        assert!(path.exists(), "another process has the right");
        drop(right);
        remove_if_left(folder.path(), &path).unwrap();
        assert!(!path.exists());
        let told = ending::take(folder.path(), |name, _| name == "never-up");
        assert_eq!(told, ["tree 'never-up' has ended: its daemon was killed or has crashed"]);
        // The one before has been looked at.
        let _listener = UnixListener::bind(&path).unwrap();
        remove_if_left(folder.path(), &path).unwrap();
        assert!(path.exists(), "a tree is reached by it");
        assert!(ending::take(folder.path(), |_, _| true).is_empty());
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let _listener = UnixListener::bind(socket_path(folder.path(), "mute")).unwrap();
        let KeptTrees { found, unusable } = kept_trees(folder.path()).unwrap();
        let [tree] = &unusable[..] else { panic!("one tree: {unusable:?}") };
        assert!(found.is_empty());
        let why = "is stopped or busy";
        assert_eq!(tree.to_string(), format!("tree 'mute' does not answer: its daemon {why}"));
        let (name, process) = ("warm".to_owned(), Some(17));
        let stopped = UnusableTree { name, process, why: Unusable::Silent };
        assert_eq!(
            stopped.to_string(),
            "tree 'warm' does not answer: its daemon, process 17, is stopped or busy; \
             'kill -CONT 17' continues it if it is stopped, 'kill -KILL 17' ends it and its tree"
        );
        assert_eq!(stopped.to_failure().report(), ExitCode::from(TIMEOUT));
    }

    #[test]
    fn a_tree_that_cannot_be_reached_is_told_in_one_wording() {
        let folder = tempfile::tempdir().unwrap();
        let path = socket_path(folder.path(), "round");
        // No user, not even root, gets through a link to itself.
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let KeptTrees { found, unusable } = kept_trees(folder.path()).unwrap();
        let [tree] = &unusable[..] else { panic!("one tree: {unusable:?}") };
        assert!(found.is_empty() && path.symlink_metadata().is_ok());
        let said = tree.to_string();
        let begin =
            format!("tree 'round' cannot be reached: cannot connect to unix:{}: ", path.display());
        assert!(said.starts_with(&begin) && said.ends_with("; remove the file"), "{said}");
        assert_eq!(condition_in(folder.path(), "round").unwrap(), Some(format!("{said}\n")));
        assert_eq!(tree.to_failure().code(), OWN_FAILURE);
        let (name, process) = ("warm".to_owned(), Some(17));
        let why = Unusable::Unreachable("x is not its control socket any more".to_owned());
        assert_eq!(
            UnusableTree { name, process, why }.to_string(),
            "tree 'warm' cannot be reached: x is not its control socket any more; 'kill 17' ends \
             its daemon and the tree"
        );
    }

    #[test]
    fn what_this_process_lacks_is_no_reason_to_end_a_tree() {
        let is_of_process = |cause: Errno| {
            let doing = "connect to unix:/warm.tree".to_owned();
            is_of_process(&Error::Io { doing, cause: cause.into() })
        };
        let of_file = [Errno::ACCESS, Errno::LOOP, Errno::NOTDIR, Errno::PROTOTYPE];
        assert!(!of_file.into_iter().any(is_of_process));
        assert!([Errno::MFILE, Errno::NFILE, Errno::NOMEM].into_iter().all(is_of_process));
        // A socket of another kind in the place of the control socket is a file that is there.
        let folder = tempfile::tempdir().unwrap();
        let path = socket_path(folder.path(), "other-kind");
        let _socket = UnixDatagram::bind(&path).unwrap();
        let Reached::Unusable(tree) = reached(&path).unwrap() else { panic!("it is unusable") };
        assert!(tree.to_string().ends_with("; remove the file"), "{tree}");
    }

    #[test]
    fn a_file_of_another_kind_in_the_place_of_a_socket_without_a_daemon_is_no_tree() {
        let folder = tempfile::tempdir().unwrap();
        let path = socket_path(folder.path(), "never-up");
        std::fs::write(&path, "").unwrap();
        assert!(is_replaced(&path) && matches!(reached(&path).unwrap(), Reached::Nothing));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_replaced(&path) && matches!(reached(&path).unwrap(), Reached::Nothing));
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_told_with_the_cure() {
        let folder = Path::new("/folder").join("x".repeat(107));
        let told = address_of(&socket_path(&folder, "warm")).expect_err("too long").to_string();
        assert!(told.contains("set XDG_RUNTIME_DIR to a folder with a shorter path"), "{told}");
    }

    #[test]
    fn a_daemon_that_ends_is_none_and_one_of_another_version_is_no_timeout() {
        let (one, other) = Link::pair().unwrap();
        drop(one);
        assert!(matches!(greeted(other).unwrap(), Greeting::Closed));
        for can_be_read in [true, false] {
            let (one, other) = Link::pair().unwrap();
            let mut daemon = Line::new(one);
            let version = "0.0.1/1".to_owned();
            match can_be_read {
                true => {
                    let description = Description { version, ..Description::default() };
                    daemon.push(&Reply::Description(description));
                }
                // No message has this number.
                false => daemon.push(&u8::MAX),
            }
            assert!(daemon.write());
            assert!(matches!(greeted(other).unwrap(), Greeting::Unusable(Unusable::Foreign)));
        }
        let (name, process) = ("warm".to_owned(), None);
        let foreign = UnusableTree { name, process, why: Unusable::Foreign };
        assert_eq!(
            foreign.to_string(),
            "tree 'warm' cannot be used: its daemon is of another version of sapwood: end it with \
             the version that started it"
        );
        assert_eq!(foreign.to_failure().report(), ExitCode::from(USAGE));
    }

    #[test]
    fn who_is_lost_while_a_keeper_greets_is_heard_of() {
        let (one, other) = Link::pair().unwrap();
        let mut daemon = Line::new(one);
        let lost = |ranks: &str| (ranks.to_string(), "gone".to_string());
        let description = Description {
            version: VERSION.to_string(),
            hosts: "n[1-4]".to_string(),
            absent: vec![lost("0")],
            options: ["-w", "n[1-4]", "--idle", "5"].map(String::from).to_vec(),
            ..Description::default()
        };
        daemon.push(&Reply::Description(description));
        let (ranks, reason) = lost("2-3");
        daemon.push(&Reply::Lost { ranks, reason });
        assert!(daemon.write());
        let tree = tree_of(other);
        assert_eq!(tree.description.absent, [lost("0"), lost("2-3")]);
        assert_eq!(
            tree.description.condition().unwrap(),
            "n1 (1): missing: gone\nn[3-4] (2): missing: gone\n\
             to include hosts that are reachable again: sapwood up --replace -w 'n[1-4]' --idle 5\n"
        );
    }

    #[test]
    fn a_tree_that_takes_the_place_of_another_while_a_keeper_greets_is_the_one_that_counts() {
        let (one, other) = Link::pair().unwrap();
        let mut daemon = Line::new(one);
        let gone = ("1".to_string(), "gone".to_string());
        let before = Description {
            version: VERSION.to_string(),
            hosts: "n[1-4]".to_string(),
            absent: vec![gone],
            ..Description::default()
        };
        let returned = vec!["host n2 came back".to_string()];
        let after = Description { absent: Vec::new(), returned, ..before.clone() };
        daemon.push(&Reply::Description(before));
        daemon.push(&Reply::Description(after));
        assert!(daemon.write());
        let tree = tree_of(other);
        assert_eq!(tree.description.condition().unwrap(), "host n2 came back\n");
        let whole = Description { returned: Vec::new(), ..tree.description };
        assert_eq!(whole.condition(), None);
    }

    #[test]
    fn it_is_told_when_missing_hosts_are_asked_again() {
        let told = |next| {
            let pause_max = Duration::from_secs(60);
            let tree = Description {
                hosts: "n[1-2]".to_string(),
                absent: vec![("1".to_string(), "gone".to_string())],
                asking: Some(Asking { next, pause_max }),
                options: vec!["-w".to_string(), "n1".to_string()],
                ..Description::default()
            };
            (tree.condition().unwrap(), tree.way_back())
        };
        let (condition, way_back) = told(Duration::from_millis(4200));
        assert_eq!(
            condition,
            format!(
                "n2 (1): missing: gone\n\
                 {BY_THEMSELVES} asked in 5 s, then at intervals of up to 60 s\n\
                 to start it anew at once: sapwood up --replace -w n1\n"
            )
        );
        assert_eq!(
            way_back,
            format!(
                "{BY_THEMSELVES} asked at intervals of up to 60 s; to reach them at once: \
                 'sapwood run --new-tree', or for all commands: sapwood up --replace -w n1"
            )
        );
        let (condition, _) = told(Duration::ZERO);
        assert!(condition.contains("they are being asked, then at"), "{condition}");
    }
}
