//! How a process learns where its parent is: from its environment, or from an attach file.

use std::env;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use sapwood_node::Role;
use sapwood_transport::{Address, Encryption, Key, Link, LinkTerms, WhenRefused, connect};

use crate::RuntimeError;
use crate::environment::{
    ENCRYPTION_VARIABLE, INTERFACE_VARIABLE, KEY_VARIABLE, PARENT_VARIABLE, RANK_VARIABLE,
    STARTED_VARIABLE,
};

/// How long a process waits for its parent to answer when it connects by itself.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Connect deadline of a started process: a parent accepts only after it has started all its
/// children, perhaps hundreds. If the parent has ended, the connection is refused at once.
const STARTED_CONNECT_DEADLINE: Duration = Duration::from_secs(30);

/// Where to connect, and with which key.
#[derive(Debug)]
pub struct Attachment {
    /// The parent's address.
    pub parent: Address,
    /// The rank to take; none to take any that is free.
    pub rank: Option<u32>,
    /// The network's key.
    pub key: Key,
    /// Whether the link is encrypted.
    pub encryption: Encryption,
    /// Whether the parent has started this process.
    pub is_started: bool,
}

impl Attachment {
    /// What the environment says.
    ///
    /// # Errors
    /// [`RuntimeError::NotAttached`] when a variable is missing or wrong,
    /// [`RuntimeError::Transport`] when the key cannot be read.
    pub fn from_environment() -> Result<Self, RuntimeError> {
        let parent = required(PARENT_VARIABLE)?;
        let parent: Address = parent.parse()?;
        let rank = match env::var(RANK_VARIABLE) {
            Ok(text) => Some(text.parse().map_err(|_| wrong(RANK_VARIABLE, "is no rank"))?),
            Err(_) => None,
        };
        let is_started = env::var_os(STARTED_VARIABLE).is_some();
        Ok(Self { is_started, ..Self::at(parent, rank)? })
    }

    /// At this address, with the key and the encryption that the environment names.
    ///
    /// # Errors
    /// As [`Attachment::from_environment`].
    pub fn at(parent: Address, rank: Option<u32>) -> Result<Self, RuntimeError> {
        let key = key_from(&required(KEY_VARIABLE)?)?;
        let encryption = match env::var(ENCRYPTION_VARIABLE).as_deref() {
            Ok("on") => Encryption::On,
            Ok("off") => Encryption::Off,
            Ok(_) => return Err(wrong(ENCRYPTION_VARIABLE, "must be on or off")),
            Err(_) => Encryption::default_for(&parent),
        };
        Ok(Self { parent, rank, key, encryption, is_started: false })
    }

    /// Connects to the parent. A process that the tree has started binds its life to the tree
    /// first.
    ///
    /// # Errors
    /// [`RuntimeError`] when the parent cannot be reached or does not share the key.
    pub fn connect(self, role: Role) -> Result<ParentLink, RuntimeError> {
        let Self { parent, rank, key, encryption, is_started } = self;
        let liveness_end = if is_started { sapwood_launch::hold_liveness_pipe()? } else { None };
        if liveness_end.is_some() && role == Role::Communication {
            sapwood_launch::ignore_hangups();
        }
        let deadline = if is_started { STARTED_CONNECT_DEADLINE } else { CONNECT_DEADLINE };
        // The parent knows whether the tree has links in shared memory.
        let terms = LinkTerms { encryption, shares_memory: true };
        let link = connect(&parent, &key, terms, deadline, WhenRefused::Fail)?;
        let is_unix = parent.is_unix();
        let liveness_end = liveness_end.map(AsFd::as_fd);
        Ok(ParentLink { link, role, rank, key, encryption, is_unix, is_started, liveness_end })
    }
}

/// The key that the environment names; none if it names none.
///
/// # Errors
/// [`RuntimeError::NotAttached`] when the variable is wrong, [`RuntimeError::Transport`] when the
/// key cannot be read.
pub fn key_from_environment() -> Result<Option<Key>, RuntimeError> {
    env::var(KEY_VARIABLE).ok().map(|text| key_from(&text)).transpose()
}

/// An open link to the parent, with what [`Attachment`] says of it.
pub struct ParentLink {
    pub(crate) link: Link,
    pub(crate) role: Role,
    pub(crate) rank: Option<u32>,
    pub(crate) key: Key,
    pub(crate) encryption: Encryption,
    /// Whether it began as a Unix-domain socket.
    pub(crate) is_unix: bool,
    pub(crate) is_started: bool,
    pub(crate) liveness_end: Option<BorrowedFd<'static>>,
}

/// The interface that the environment names for this process, if it names one.
pub(crate) fn own_interface() -> Result<Option<IpAddr>, RuntimeError> {
    match env::var(INTERFACE_VARIABLE) {
        Ok(text) => match text.parse() {
            Ok(interface) => Ok(Some(interface)),
            Err(_) => Err(RuntimeError::Interface { text }),
        },
        Err(_) => Ok(None),
    }
}

fn required(variable: &'static str) -> Result<String, RuntimeError> {
    env::var(variable).map_err(|_| wrong(variable, "is not set"))
}

fn wrong(variable: &'static str, reason: &str) -> RuntimeError {
    RuntimeError::NotAttached { variable, reason: reason.to_string() }
}

fn key_from(text: &str) -> Result<Key, RuntimeError> {
    if let Some(number) = text.strip_prefix("fd:") {
        let number = number.parse().map_err(|_| wrong(KEY_VARIABLE, "names no descriptor"))?;
        let descriptor: OwnedFd = sapwood_transport::take_inherited_descriptor(number)?;
        return Ok(Key::from_descriptor(descriptor)?);
    }
    match text.strip_prefix("file:") {
        Some(path) => Ok(Key::from_file(path.as_ref())?),
        None => Err(wrong(KEY_VARIABLE, "must be fd:N or file:PATH")),
    }
}
