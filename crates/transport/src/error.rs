//! What can go wrong with an address, a key, a connection or a shared table.
//!
//! One enum for the crate. Errors of an established [`Link`](crate::Link) are plain
//! `std::io::Error`, since its callers treat it as a socket.

use std::io;

use crate::{Address, Encryption, Peer};

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of this crate failed.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// A text is no address. Cure: write `unix:@name`, `unix:/path` or `tcp:host:port`.
    InvalidAddress {
        /// The offending text.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A text chooses no interfaces. Cure: write names, addresses or networks between commas, and
    /// `^` in front to turn the choice round.
    InvalidInterface {
        /// The offending text.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A host name has no address. Cure: check its spelling and this machine's resolver.
    UnresolvableHost {
        /// The host name.
        host: String,
        /// What the resolver said.
        cause: io::Error,
    },
    /// A file or descriptor holds no key that may be used. Cure: as the problem says.
    InvalidKey {
        /// The file's path, or the kind of descriptor.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The peer does not know this network's key. Cause: another network's address or an old key
    /// file. Cure: give both ends the same key.
    WrongKey {
        /// The peer.
        peer: Peer,
    },
    /// The two ends were configured differently. Cure: the same `Encryption` at both ends.
    EncryptionMismatch {
        /// The peer.
        peer: Peer,
        /// The setting of this end.
        own: Encryption,
    },
    /// Bytes arrived that no Sapwood process sends. Cause: a port scan, another protocol, or
    /// damage. Cure: none needed at the accepting end; else check the address.
    PeerMisbehaved {
        /// The peer that sent the bytes.
        peer: Peer,
        /// What was wrong.
        problem: &'static str,
    },
    /// The peer closed the connection before it had proved the key. Cause: it ended, expired this
    /// connection, or serves another protocol.
    ClosedDuringHandshake {
        /// The peer that closed the connection.
        peer: Peer,
    },
    /// No process listens at the address. Cure: start that process first, or let `connect` retry.
    Refused {
        /// The address that was tried.
        address: Address,
    },
    /// No link came about in time. Cause: the host is unreachable or the process there is stuck.
    TimedOut {
        /// The address that was tried.
        address: Address,
        /// How long, in milliseconds.
        after_ms: u64,
    },
    /// A Unix socket's other end belongs to another user. Cure: run both as the same user.
    ForeignUser {
        /// The other end's user id.
        uid: u32,
    },
    /// A local program offered something that is no shared table of ours.
    InvalidTable {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A call out of order or with an impossible argument: a bug in the caller.
    ApiMisuse {
        /// The rule that was broken.
        rule: &'static str,
    },
    /// The operating system refused.
    Io {
        /// The operation and its object.
        doing: String,
        /// Its reason.
        cause: io::Error,
    },
}

impl Error {
    /// Wraps the operating system's error with the operation.
    pub(crate) fn io(doing: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        Self::Io { doing: doing.into(), cause: cause.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InvalidAddress { text, problem } => write!(
                f,
                "invalid address {text:?}: {problem}; write unix:@name, unix:/path or tcp:host:port"
            ),
            Self::InvalidInterface { text, problem } => write!(
                f,
                "invalid choice of interfaces {text:?}: {problem}; write names, addresses or \
                 networks between commas, such as eth,10.0.0.0/8 or ^docker"
            ),
            Self::UnresolvableHost { host, cause } => {
                write!(f, "cannot resolve host {host:?}: {cause}; check the name")
            }
            Self::InvalidKey { place, problem } => write!(f, "no usable key in {place}: {problem}"),
            Self::WrongKey { peer } => write!(
                f,
                "{peer} has another network key; give both ends the same key file or descriptor"
            ),
            Self::EncryptionMismatch { peer, own } => write!(
                f,
                "{peer} disagrees about encryption (here it is {own}); set both ends alike"
            ),
            Self::PeerMisbehaved { peer, problem } => {
                write!(f, "{peer} does not speak Sapwood's handshake: {problem}")
            }
            Self::ClosedDuringHandshake { peer } => {
                write!(f, "{peer} closed the connection during the handshake")
            }
            Self::Refused { address } => {
                write!(f, "no process listens at {address}: check that it is running")
            }
            Self::TimedOut { address, after_ms } => {
                write!(f, "no link to {address} within {after_ms} ms; is it reachable and alive?")
            }
            Self::ForeignUser { uid } => {
                write!(f, "the other end runs as user {uid}; run both ends as the same user")
            }
            Self::InvalidTable { problem } => write!(f, "shared table refused: {problem}"),
            Self::ApiMisuse { rule } => write!(f, "transport used wrongly: {rule}"),
            Self::Io { doing, cause } => write!(f, "cannot {doing}: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::UnresolvableHost { cause, .. } | Self::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
