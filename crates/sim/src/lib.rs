//! A deterministic simulator: the real [`sapwood_node::Node`] of every process of a tree, on a
//! virtual clock, with links that are slow, cut and silent, and processes that crash and stop.
//!
//! A run is a seed. The seed draws everything: the shape of the tree, its streams, what they carry,
//! and which faults strike when. The same seed gives the same run on every machine. An oracle,
//! which knows what was sent and nothing of how nodes work, judges every answer and the state at
//! the end.
//!
//! ```
//! use sapwood_sim::{Faults, Options, run};
//!
//! let outcome = run(7, &Options { faults: Faults::NONE, ..Options::default() });
//! assert_eq!(outcome.violations, []);
//! ```
//!
//! The crate has no clock, no thread and no randomness of its own; the `sapwood sim` command counts
//! real time and uses the cores.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod agenda;
mod chance;
mod dial;
mod dropped;
mod faults;
mod focus;
mod frames;
mod fresh;
pub mod group;
mod lag;
mod log;
mod misfortune;
mod offload;
mod oracle;
mod payload;
mod process;
mod program;
mod run;
pub mod scale;
mod scenario;
mod strike;
mod turn;
mod world;

pub use faults::{Class, Faults, UnknownClass};
pub use oracle::{Expect, Rule, Violation};
pub use run::{Outcome, run};

use sapwood_filter::Registry;
use sapwood_node::Node;

/// How runs are to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// What may go wrong.
    pub faults: Faults,
    /// What is demanded when something has.
    pub expect: Expect,
    /// Whether the run writes down what happens.
    pub log: bool,
    /// Done to every node before its first input; to break a rule on purpose.
    pub prepare: Option<fn(&mut Node)>,
    /// The filters of all processes, where they are not the built-in ones.
    pub registry: Option<fn() -> Registry>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            faults: Faults::ALL,
            expect: Expect::Recovery,
            log: false,
            prepare: None,
            registry: None,
        }
    }
}
