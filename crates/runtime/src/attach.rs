//! How a process learns where its parent is: from its environment, or from an attach file.

use std::env;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use sapwood_transport::{Address, Encryption, Key};

use crate::RuntimeError;

/// Names the parent's address.
pub const PARENT_VARIABLE: &str = "SAPWOOD_PARENT";
/// Names the process's own rank; may be missing for a back-end that attaches by itself.
pub const RANK_VARIABLE: &str = "SAPWOOD_RANK";
/// Names where the network's key is: `fd:N`, an inherited descriptor, or `file:PATH`, a file of
/// mode 0600. Never the key itself.
pub const KEY_VARIABLE: &str = "SAPWOOD_KEY";
/// `on` or `off`: whether the link to the parent is encrypted; its default depends on the address.
pub const ENCRYPTION_VARIABLE: &str = "SAPWOOD_ENCRYPTION";
/// Set for processes that their parent has started, rather than that attach by themselves.
pub(crate) const STARTED_VARIABLE: &str = "SAPWOOD_STARTED";

/// Names the address of this machine that this process listens at for TCP, in the place of the one
/// that the whole tree was told: for machines that do not all have that address.
pub const INTERFACE_VARIABLE: &str = "SAPWOOD_INTERFACE";

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
