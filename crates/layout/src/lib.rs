//! Networks of hosts in clusters: one description for the simulator of groups and for the emulator
//! of the test bed.
//!
//! A [`Layout`] says what a network is like. It is read from a text, of which some have names
//! ([`SCENARIOS`]). A [`Placement`] says which host is in which cluster and rack and how far
//! clusters are apart: drawn by chance, as in the simulator, or in the order of the hosts. From it
//! come the sites and lines of the emulator (`testbed/wanem.c`).
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod emulator;
mod layout;
mod placement;

pub use emulator::Emulation;
pub use layout::{Layout, LayoutError, SCENARIOS};
pub use placement::Placement;
