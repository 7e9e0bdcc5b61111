//! Filters that are not built in: loaded from shared objects and from WebAssembly, by the name of
//! their file, or by what is in it when the file has come through the tree.
//!
//! A filter's name in a stream is then `native:FILE#NAME` or `wasm:FILE#NAME` ([`with_extensions`]
//! adds both sources to a registry). FILE is a path if there is a slash in it, else it is looked
//! for in the folders of [`PATH_VARIABLE`]. `#NAME` may be left out when a file has one filter
//! only. [`FilterFile`] reads a file that is to travel, and gives the names of the filters in it
//! that hold its checksum, so that every process uses the same bytes.
//!
//! Both kinds have one interface, `sapwood_filter.h`. Shared objects are trusted as the program
//! itself is; WebAssembly has limits of memory and fuel. When a filter is called, in which thread,
//! and what its failure costs is not decided here.
#![deny(missing_docs)]

mod error;
mod file;
mod held;
mod locate;
mod native;
mod shelf;
mod source;
mod value_span;
#[cfg(feature = "wasm")]
mod wasm;

use std::sync::Arc;

pub use error::ExtensionError;
pub use file::{FILE_BYTES_MAX, FilterFile};
pub use locate::PATH_VARIABLE;
pub use native::DirectCall;
use sapwood_filter::Registry;
use source::Source;

/// The version of `sapwood_filter.h`.
pub const INTERFACE_VERSION: u32 = 1;

/// Adds filters from shared objects (`native:`) and from WebAssembly (`wasm:`) to those that a
/// process can make.
#[must_use]
pub fn with_extensions(registry: Registry) -> Registry {
    let registry = registry.with_source("native", Arc::new(Source::<native::SharedObjects>::new()));
    #[cfg(feature = "wasm")]
    let registry = registry.with_source("wasm", Arc::new(Source::<wasm::Modules>::new()));
    registry
}
