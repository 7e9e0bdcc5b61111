//! Filters in shared objects.
//!
//! [`NativeSource`] finds the file and the filter in it; `library` loads it, `interface` has the
//! structs of `sapwood_filter.h`, `view` shows a wave in them, `emission` takes what a filter
//! makes, `filter` and `rule` are the filter and the synchronisation rule themselves, and `direct`
//! calls a filter without all that, to be compared.

mod direct;
mod emission;
mod filter;
mod interface;
mod library;
mod rule;
mod view;

use std::sync::Arc;

use sapwood_filter::{Filter, FilterError, FilterSource, ShippedFile, Synchronisation};
use sapwood_packet::ValuesRef;

use crate::ExtensionError;
use crate::file::Reference;
use crate::shelf::Shelf;
pub use direct::DirectCall;
use filter::NativeFilter;
use library::Library;
use rule::NativeRule;
#[cfg(feature = "wasm")]
pub(crate) use rule::verdict_of;

/// Makes the filters whose names begin with `native:`.
#[derive(Debug, Default)]
pub(crate) struct NativeSource {
    shipped: Shelf<Library>,
}

impl NativeSource {
    fn library(&self, reference: &Reference<'_>) -> Result<Arc<Library>, ExtensionError> {
        match &reference.digest {
            Some(digest) => self.shipped.find(reference.file, digest),
            None => {
                let path = crate::locate::locate(reference.file)?;
                Library::load(reference.file, &path.to_string_lossy()).map(Arc::new)
            }
        }
    }
}

impl FilterSource for NativeSource {
    fn make(&self, name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        let reference = Reference::parse(name);
        let library = self.library(&reference)?;
        Ok(Box::new(NativeFilter::new(library, reference.filter, parameters)?))
    }

    fn make_rule(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        let reference = Reference::parse(name);
        let library = self.library(&reference)?;
        Ok(Box::new(NativeRule::new(library, reference.filter, parameters)?))
    }

    fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        Ok(self.shipped.take(file, || Library::load_bytes(file))?)
    }
}
