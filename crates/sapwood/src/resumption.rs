//! The state file, by which a restarted front-end finds its network again.
//!
//! It holds the key, and so only its owner may read it (mode 0600). Its lines: the key, the
//! format's name, the number of front-ends that the network has had, their address, the options of
//! the whole tree (the root's plan, in hexadecimal digits), and a line for each attach point.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_node::{AttachPoint, Recovery};
use sapwood_packet::{RankSet, StreamId};
use sapwood_runtime::{Driver, Plan};
use sapwood_transport::{Address, Key, check_file_limit};

use crate::draft::Draft;
use crate::error::file_error;
use crate::shared::Shared;
use crate::{Error, Network, Result};

/// The name of the format.
const FORMAT: &str = "sapwood-state 1";

/// Each front-end of a network has this many stream numbers, beginning at a multiple of this
/// number.
const STREAMS_PER_FRONT_END: StreamId = 1 << 20;

/// Most front-ends that one network can have, one after another.
const FRONT_ENDS_MAX: u32 = 1 << 10;

/// Longest state file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What a restarted front-end must know.
pub(crate) struct State {
    pub(crate) key: Key,
    /// The number of earlier front-ends.
    pub(crate) number: u32,
    pub(crate) address: Address,
    pub(crate) plan: Plan,
    pub(crate) attach_points: Vec<AttachPoint>,
}

impl State {
    /// The first number that a stream of this front-end may have.
    pub(crate) fn first_stream(&self) -> StreamId {
        self.number * STREAMS_PER_FRONT_END + 1
    }

    /// Has this front-end open no stream with a number of the next one's.
    fn limit_streams(&self, shared: &mut Shared) -> Result<()> {
        shared.change(|application, _| {
            application.limit_streams(self.first_stream(), STREAMS_PER_FRONT_END);
            Ok(())
        })
    }

    /// The state of the next front-end.
    pub(crate) fn succeeded(mut self, path: &Path) -> Result<Self> {
        self.number += 1;
        if self.number >= FRONT_ENDS_MAX {
            let reason =
                format!("the network has had {FRONT_ENDS_MAX} front-ends: start a new one");
            return Err(file_error(path, reason));
        }
        Ok(self)
    }

    /// Writes the file, replacing an older one.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let draft = Draft::of(path);
        self.write_new(draft.path())?;
        draft.put_in_place().map_err(|error| file_error(path, error.to_string()))
    }

    fn write_new(&self, path: &Path) -> Result<()> {
        self.key.write_file(path)?;
        let mut text = format!("{FORMAT}\n{}\n{}\n", self.number, self.address);
        for byte in self.plan.to_bytes() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
        for AttachPoint { parent, address, ranks } in &self.attach_points {
            text.push_str(&format!("{parent} {address} {ranks}\n"));
        }
        let file = OpenOptions::new().append(true).open(path);
        file.and_then(|mut file| {
            check_file_limit(file.metadata()?.len() + text.len() as u64)?;
            file.write_all(text.as_bytes())
        })
        .map_err(|error| file_error(path, error.to_string()))
    }

    /// Reads the file, if no other user can have read or changed it.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = read_own(path)?;
        let wrong = |what: &str| file_error(path, format!("it is no state file: {what}"));
        let mut lines = text.lines();
        let mut line = |what: &str| lines.next().ok_or_else(|| wrong(what));
        let key = Key::from_text(line("it has no key")?, &path.display().to_string())?;
        if line("it has no format")? != FORMAT {
            return Err(wrong("it has another format"));
        }
        let number = line("it has no number")?.parse().map_err(|_| wrong("its number is none"))?;
        let address = line("it has no address")?.parse()?;
        let digits = line("it has no plan")?.as_bytes();
        let plan = from_digits(digits).ok_or_else(|| wrong("its plan is not in digits"))?;
        let plan = Plan::from_bytes(&plan)?;
        let point = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let parent = words.next()?.parse().ok()?;
            let address = words.next()?.to_string();
            let ranks = words.next()?.parse().ok()?;
            Some(AttachPoint { parent, address, ranks })
        };
        let attach_points = lines.map(|line| point(line).ok_or_else(|| wrong("an attach point")));
        let attach_points = attach_points.collect::<Result<_>>()?;
        Ok(Self { key, number, address, plan, attach_points })
    }
}

/// The file of a network that can be resumed; it goes with its owner.
pub(crate) struct StateFile {
    path: PathBuf,
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.path);
    }
}

/// A file is of use only where the tree waits for a front-end.
pub(crate) fn check_terms(path: &Path, terms: &Recovery) -> Result<()> {
    if terms.is_on && !terms.front_end_wait.is_zero() {
        return Ok(());
    }
    let reason = "the network ends with its front-end: set Recovery.front_end_wait to resume it";
    Err(file_error(path, reason.to_string()))
}

impl Network {
    /// Replaces a front-end that has ended, in a restarted program: listens at its address, proves
    /// the key of the [state file](crate::NetworkBuilder::resumable), and adopts its children.
    /// Waits until all back-ends of the topology are connected again, at most for `timeout`;
    /// [`Network::everyone`] returns those that are. The streams of the old front-end are closed,
    /// and packets that were under way on them are lost.
    ///
    /// # Errors
    /// [`Error::File`] for the state file, [`Error::Runtime`] when a process listens there already,
    /// such as a front-end that still runs, [`Error::Timeout`] when no process has returned in
    /// time. The file stays then.
    pub fn resume(path: &Path, timeout: Duration) -> Result<Self> {
        Self::resume_with(path, Registry::built_in(), timeout)
    }

    /// As [`Network::resume`], for a front-end that knows these filters.
    ///
    /// # Errors
    /// As [`Network::resume`].
    pub fn resume_with(path: &Path, registry: Registry, timeout: Duration) -> Result<Self> {
        let state = State::read(path)?.succeeded(path)?;
        let topology = state.plan.subtree.to_topology();
        let no_root = || file_error(path, "its plan is not that of a root".to_string());
        let topology = Rc::new(topology.ok_or_else(no_root)?);
        let (key, first_stream) = (state.key.clone(), state.first_stream());
        let registry = sapwood_extension::with_extensions(registry);
        let driver = Driver::resume(&state.plan, key, registry, &state.address, first_stream)?;
        // Only one process can listen there, so no other front-end writes the file.
        state.write(path)?;
        let mut shared = Shared::new(driver);
        state.limit_streams(&mut shared)?;
        shared.inquiries.topology = Some(Rc::clone(&topology));
        shared.collect();
        let root = topology.root().rank();
        let others = state.attach_points.into_iter().filter(|point| point.parent != root);
        shared.attach_points.extend(others);
        let mut network = Self {
            shared: Rc::new(RefCell::new(shared)),
            topology,
            key: state.key,
            everyone: RankSet::new(),
            takes_dynamic_members: state.plan.options.takes_dynamic_members,
            is_closed: false,
            publication: None,
            state_file: None,
            join_file: None,
        };
        match network.wait_for_back_ends(u64::from(state.plan.options.back_ends), timeout) {
            Ok(()) => {}
            Err(Error::Timeout { .. }) if network.everyone().size() > 0 => {}
            Err(error) => return Err(error),
        }
        network.everyone = network.everyone().ranks().clone();
        network.state_file = Some(StateFile { path: path.to_path_buf() });
        Ok(network)
    }

    /// Writes the state file of a started tree.
    pub(crate) fn write_state(&mut self, path: PathBuf, plan: Plan) -> Result<()> {
        let address = self.shared.borrow().driver.address().cloned();
        let no_address = || file_error(&path, "this front-end takes no connections".to_string());
        let state = State {
            key: self.key.clone(),
            number: 0,
            address: address.ok_or_else(no_address)?,
            plan,
            attach_points: self.attach_points(),
        };
        state.limit_streams(&mut self.shared.borrow_mut())?;
        state.write(&path)?;
        self.state_file = Some(StateFile { path });
        Ok(())
    }
}

fn read_own(path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| file_error(path, error.to_string());
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o177 == 0;
    if !found.is_file() || !is_own {
        let reason = "other users may read or change it, so its key is not secret";
        return Err(file_error(path, reason.to_string()));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn from_digits(digits: &[u8]) -> Option<Vec<u8>> {
    let digit =
        |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    (digits.len().is_multiple_of(2)).then(|| digits.chunks_exact(2).map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt;

    use sapwood_node::Recovery;
    use sapwood_packet::RankSet;
    use sapwood_runtime::{TransportKind, TreeOptions};
    use sapwood_topology::{Hosts, Topology};

    use super::*;

    fn state() -> State {
        let topology = Topology::from_shape(&"2x2".parse().unwrap(), &Hosts::local());
        let options = TreeOptions {
            node_program: "sapwood".into(),
            node_arguments: Vec::new(),
            back_end: None,
            transport: TransportKind::Unix,
            encryption: None,
            remote: None,
            interface: Ipv4Addr::LOCALHOST.into(),
            back_ends: 4,
            startup_milliseconds: 5,
            recovery: Recovery::default(),
            takes_dynamic_members: true,
            filter_milliseconds: 10_000,
        };
        let subtree = topology.subtree(topology.root().rank()).unwrap();
        let point = |parent, ranks| AttachPoint { parent, address: "unix:@x".into(), ranks };
        State {
            key: Key::generate().unwrap(),
            number: 3,
            address: "unix:@here".parse().unwrap(),
            plan: Plan { options, subtree },
            attach_points: vec![point(5, RankSet::range(0, 1)), point(6, RankSet::new())],
        }
    }

    #[test]
    fn what_is_written_is_read_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let written = state();
        written.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let read = State::read(&path).unwrap();
        assert_eq!((read.number, &read.address), (3, &written.address));
        assert_eq!(read.attach_points, written.attach_points);
        assert_eq!(read.plan.to_bytes(), written.plan.to_bytes());
        let next = read.succeeded(&path).unwrap();
        assert_eq!(next.first_stream(), written.first_stream() + STREAMS_PER_FRONT_END);
        next.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap().number, 4);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = State::read(&path).err().unwrap().to_string();
        assert!(error.contains("may read or change it"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_or_no_state_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        state().write(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for count in 0..5 {
            fs::write(&path, lines[..count].join("\n")).unwrap();
            assert!(State::read(&path).is_err(), "{count} lines");
        }
        fs::write(&path, text.replace("sapwood-state 1", "sapwood-state 2")).unwrap();
        assert!(State::read(&path).is_err());
    }
}
