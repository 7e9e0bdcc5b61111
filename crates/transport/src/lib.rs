//! Links between processes and their authentication: the only sockets and shared mappings.
//!
//! This crate lies below the I/O line. It opens sockets, proves the network's key over them, moves
//! bytes, waits for readiness and maps shared tables. It knows nothing of packets, streams or
//! trees, starts no thread, installs no signal handler and never raises `SIGPIPE`.
//!
//! A connection goes through these types, in this order:
//!
//! 1. [`Address`] says where: `unix:@name`, `unix:/path` or `tcp:host:port`.
//! 2. [`Listener::accept`] yields an [`Incoming`] socket whose Unix credentials were checked.
//! 3. [`Handshake`] proves the [`Key`] in both directions within [`HANDSHAKE_DEADLINE_MS`], in a
//!    fixed and small memory; [`Pending`] bounds how many may be at it. The other end does
//!    all of this in one call, [`connect`], or step by step beside other work, with a [`Dial`].
//! 4. [`Link`] carries bytes, plain or encrypted as both ends agreed ([`Encryption`]), or through
//!    memory that both share ([`LinkTerms`]).
//! 5. [`Poller`] tells when any of these can go on.
//!
//! Beside the links, [`TableListener`] and [`SharedTable`] take over a sealed memory file from a
//! local program and read it while the program goes on writing; a [`ControlPage`] is written by
//! both, and [`Departing`] says how the program ended. A [`PageServer`] shows a page to scrapers
//! over HTTP, without a key, and serves nothing else. [`tcp_sockets`] tells what the kernel counts
//! of the TCP connections of other programs.
//!
//! No peer is served before it has proved knowledge of the key, except processes of the same user
//! behind a socket in a folder of their own, as each end asks for by name ([`connect_own`]). With
//! [`Encryption::Off`] the key is proved all the same, but later bytes are neither secret nor
//! protected against an attacker that can alter traffic on the way; that is the default only for
//! Unix sockets, whose ends are this machine's kernel and a process of the same user.

#![deny(missing_docs)]

mod address;
mod cipher;
mod clock;
mod connect;
mod control_page;
mod departure;
mod dial;
mod error;
mod file_limit;
mod handshake;
mod hearing;
mod inherited;
mod interface;
mod key;
mod link;
mod listener;
mod mapping;
mod memory;
mod own;
mod page;
mod peer;
mod pending;
mod poller;
mod port_probe;
mod shm;
mod socket;
mod table;
mod tcp_sockets;

pub use address::Address;
pub use clock::{monotonic_clock, wall_clock};
pub use connect::{WhenRefused, connect};
pub use control_page::{CONTROL_PAGE_BYTES, ControlPage};
pub use departure::{Departing, Departure};
pub use dial::Dial;
pub use error::{Error, Result};
pub use file_limit::check_file_limit;
pub use handshake::{
    Encryption, HANDSHAKE_DEADLINE_MS, HANDSHAKE_FRAME_BYTES_MAX, Handshake, LinkTerms, Progress,
};
pub use inherited::take_inherited_descriptor;
pub use interface::{Interface, InterfaceRule, interfaces};
pub use key::{KEY_BYTES, Key};
pub use link::{GATHER_SLICES_MAX, Link, Reader};
pub use listener::{Accepted, Incoming, Listener};
pub use mapping::{SharedTable, TABLE_BYTES_MAX};
pub use memory::back_with_pages;
pub use own::connect_own;
pub use page::{Page, PageServer, REQUEST_BYTES_MAX, VISIT_TIME, VISITORS_MAX};
pub use peer::{Peer, PeerCredentials};
pub use pending::{
    Admission, DISPLACE_AFTER_MS, DISPLACE_SILENT_AFTER_MS, PENDING_HANDSHAKES_MAX, Pending,
};
pub use poller::{Event, Interest, Poller, Waker};
pub use port_probe::probe_port;
pub use shm::{RING_BYTES, SHARED_LINK_BYTES};
pub use table::{TABLE_HELLO_BYTES, TableAccepted, TableListener, TableOffer, TablePeer};
pub use tcp_sockets::{TcpCounters, TcpSocketState, is_lasting_refusal, tcp_sockets};
