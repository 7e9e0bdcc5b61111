//! Filters in shared objects.
//!
//! `library` loads a file, `interface` has the structs of `sapwood_filter.h`, `view` shows a wave
//! in them, `emission` takes what a filter makes, `filter` and `rule` are the filter and the
//! synchronisation rule themselves, and `direct` calls a filter without all that, to be compared.

mod creation;
mod direct;
mod emission;
mod filter;
mod interface;
mod library;
mod rule;
mod view;

use std::path::Path;
use std::sync::Arc;

use sapwood_filter::{Filter, FilterError, ShippedFile, Synchronisation};
use sapwood_packet::ValuesRef;

use crate::ExtensionError;
use crate::source::Kind;
pub use direct::DirectCall;
use filter::NativeFilter;
pub(crate) use library::Library;
use rule::NativeRule;
#[cfg(feature = "wasm")]
pub(crate) use rule::verdict_of;

/// Files of which the filters' names begin with `native:`.
#[derive(Debug, Default)]
pub(crate) struct SharedObjects;

impl Kind for SharedObjects {
    type Loaded = Library;

    fn load(&self, file: &str, path: &Path) -> Result<Arc<Library>, ExtensionError> {
        Library::load(file, &path.to_string_lossy()).map(Arc::new)
    }

    fn load_shipped(&self, file: &ShippedFile<'_>) -> Result<Arc<Library>, ExtensionError> {
        Library::load_bytes(file)
    }

    fn filter(
        library: Arc<Library>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Filter>, FilterError> {
        Ok(Box::new(NativeFilter::new(library, name, parameters)?))
    }

    fn rule(
        library: Arc<Library>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        Ok(Box::new(NativeRule::new(library, name, parameters)?))
    }
}
