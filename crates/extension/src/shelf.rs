//! Shipped files and the libraries loaded from them, by checksum.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sapwood_filter::ShippedFile;

use crate::ExtensionError;
use crate::file::{Digest, digest_of};

/// The library loaded from each file, or the reason why it cannot be used.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    files: Mutex<BTreeMap<Digest, Result<Arc<T>, ExtensionError>>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { files: Mutex::default() }
    }
}

impl<T> Shelf<T> {
    /// Checks and loads a file, unless it is here already.
    pub(crate) fn take(
        &self,
        file: &ShippedFile<'_>,
        load: impl FnOnce() -> Result<Arc<T>, ExtensionError>,
    ) -> Result<(), ExtensionError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = files.entry(*file.digest).or_insert_with(|| {
            if digest_of(file.bytes) != *file.digest {
                return Err(ExtensionError::Digest { file: file.name.to_string() });
            }
            load()
        });
        taken.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// The library loaded from a file.
    pub(crate) fn find(&self, name: &str, digest: &Digest) -> Result<Arc<T>, ExtensionError> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let not_shipped = || Err(ExtensionError::NotShipped { file: name.to_string() });
        files.get(digest).cloned().unwrap_or_else(not_shipped)
    }
}
