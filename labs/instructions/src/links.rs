//! What the links of the measured tree are made of.

use sapwood_runtime::TransportKind;
use sapwood_transport::Encryption;
use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Links {
    /// Unix-domain sockets.
    Unix,
    /// TCP over loopback, encrypted.
    Tcp,
    /// Shared memory.
    Shm,
}

impl Links {
    pub const ALL: [Self; 3] = [Self::Unix, Self::Tcp, Self::Shm];

    pub fn name(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
            Self::Shm => "shm",
        }
    }

    pub fn transport(self) -> TransportKind {
        match self {
            Self::Unix => TransportKind::Unix,
            Self::Tcp => TransportKind::Tcp,
            Self::Shm => TransportKind::Shm,
        }
    }

    pub fn encryption(self) -> Encryption {
        match self {
            Self::Tcp => Encryption::On,
            Self::Unix | Self::Shm => Encryption::Off,
        }
    }
}
