//! How a process learns where its parent is: from its environment, or from an attach file.

use std::env;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use sapwood_transport::{Address, Encryption, Key};

use crate::RuntimeError;
use crate::environment::{
    ENCRYPTION_VARIABLE, INTERFACE_VARIABLE, KEY_VARIABLE, PARENT_VARIABLE, RANK_VARIABLE,
    STARTED_VARIABLE,
};

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
