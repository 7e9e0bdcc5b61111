//! Fuzzing of everything that reads bytes or text from outside.
//!
//! [`targets`] holds what is tried: functions that take any bytes and panic when a promise is
//! broken. The rest is a small coverage-guided fuzzer that needs nothing but stable Rust: the
//! [`engine`] with its command line, [`mutation`] of inputs, [`coverage`] that the compiler's
//! instrumentation reports, [`memory`], which counts what a piece of code allocates, and
//! [`source`], which turns bytes into choices and values of any type.
#![deny(missing_docs)]

// The parser of scopes takes the type of a scope that has a name from the monitor, which brings
// more than a hundred packages along: all would be built with instrumentation for three fields.
extern crate self as sapwood_monitor;

pub mod coverage;
pub mod engine;
pub mod memory;
pub mod mutation;
pub mod source;
pub mod targets;

/// A scope, what it is called, and how often it is gathered: the type of `sapwood-monitor`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedScope {
    /// Its name.
    pub name: String,
    /// Which events, and what of them.
    pub scope: sapwood_trace::Scope,
    /// Time between two gatherings; none for one at the end only.
    pub every: Option<std::time::Duration>,
}

/// Something to be fuzzed.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes any bytes; panics when a promise is broken.
    pub run: fn(&[u8]),
    /// Makes a mutated input plausible again, for instance its length prefix.
    pub repair: Option<fn(&mut Vec<u8>)>,
}
