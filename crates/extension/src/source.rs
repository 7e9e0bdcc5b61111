//! Filters by the name of their file: where it lies here, or what came through the tree; and by
//! their own name in it. What a file is and how it is loaded is a [`Kind`]'s to know.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use sapwood_filter::{Filter, FilterError, FilterSource, ShippedFile, Synchronisation};
use sapwood_packet::ValuesRef;

use crate::ExtensionError;
use crate::file::Reference;
use crate::shelf::Shelf;

/// A kind of file.
pub(crate) trait Kind: Debug + Default + Send + Sync {
    /// What a file is once it is loaded.
    type Loaded: Debug + Send + Sync;

    /// Loads the file at a path; `file` is what messages call it.
    fn load(&self, file: &str, path: &Path) -> Result<Arc<Self::Loaded>, ExtensionError>;

    /// Loads a shipped file with the right checksum.
    fn load_shipped(&self, file: &ShippedFile<'_>) -> Result<Arc<Self::Loaded>, ExtensionError>;

    /// Makes a filter of a loaded file.
    fn filter(
        loaded: Arc<Self::Loaded>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Filter>, FilterError>;

    /// Makes a synchronisation rule of a loaded file.
    fn rule(
        loaded: Arc<Self::Loaded>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError>;
}

/// Makes the filters of one kind of file.
#[derive(Debug)]
pub(crate) struct Source<K: Kind> {
    kind: K,
    shipped: Shelf<K::Loaded>,
}

impl<K: Kind> Source<K> {
    pub(crate) fn new() -> Self {
        Self { kind: K::default(), shipped: Shelf::default() }
    }

    fn loaded(&self, reference: &Reference<'_>) -> Result<Arc<K::Loaded>, ExtensionError> {
        match &reference.digest {
            Some(digest) => self.shipped.find(reference.file, digest),
            None => self.kind.load(reference.file, &crate::locate::locate(reference.file)?),
        }
    }
}

impl<K: Kind> FilterSource for Source<K> {
    fn make(&self, name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        let reference = Reference::parse(name);
        K::filter(self.loaded(&reference)?, reference.filter, parameters)
    }

    fn make_rule(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        let reference = Reference::parse(name);
        K::rule(self.loaded(&reference)?, reference.filter, parameters)
    }

    fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        Ok(self.shipped.take(file, || self.kind.load_shipped(file))?)
    }
}

/// What a file has under a name, or with an empty one the only thing that it has.
pub(crate) fn find_in<'a, T: Copy>(
    filters: &'a [(String, T)],
    file: &str,
    name: &str,
) -> Result<(&'a str, T), ExtensionError> {
    let found = match (filters, name) {
        ([only], "") => Some(only),
        _ => filters.iter().find(|(known, _)| known == name),
    };
    let known = || filters.iter().map(|(known, _)| &known[..]).collect::<Vec<_>>();
    found.map(|(name, filter)| (&name[..], *filter)).ok_or_else(|| ExtensionError::NoFilter {
        file: file.to_string(),
        name: name.to_string(),
        known: known().join(" "),
    })
}
