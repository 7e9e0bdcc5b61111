//! Filters from files: every process of a network can make them, besides those that its program
//! registers, and the front-end sends files to hosts that do not have them.

use std::os::fd::AsFd;
use std::path::Path;

use sapwood_extension::{FilterFile, with_extensions};
use sapwood_filter::{FilterError, Registry};
use sapwood_node::NodeError;
use sapwood_runtime::RuntimeError;

#[cfg(doc)]
use crate::Error;
use crate::{Network, Result};

/// Runs a communication process until its network ends, with these filters and those from files.
/// Called by the program that is run as `PROGRAM node`.
///
/// # Errors
/// As [`sapwood_runtime::serve`].
pub fn serve(registry: Registry) -> std::result::Result<(), RuntimeError> {
    sapwood_runtime::serve(with_extensions(registry))
}

/// As [`serve`], but the process also leaves as soon as a descriptor is readable.
///
/// # Errors
/// As [`sapwood_runtime::serve_until`].
pub fn serve_until(registry: Registry, leave: impl AsFd) -> std::result::Result<(), RuntimeError> {
    sapwood_runtime::serve_until(with_extensions(registry), leave)
}

impl Network {
    /// Sends a file of filters to every process of the tree, including those that join later, so
    /// that hosts need not share a file system: a path, or a name that is searched in the folders
    /// of `SAPWOOD_FILTER_PATH` here. Streams that are opened from now on ask for its filters by
    /// [`FilterFile::filter`]. A file that was shipped before is not sent again.
    ///
    /// It is ordered with the packets: packets sent on streams afterwards arrive after it. A
    /// process that cannot use it reports that when a stream uses a filter of it.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the file is not there, is no file of filters, or cannot be loaded
    /// here; when it is longer than 16 MiB; or when the network has been sent 64 files or 64 MiB.
    pub fn ship(&mut self, file: impl AsRef<Path>) -> Result<FilterFile> {
        let read = FilterFile::read(file.as_ref());
        let file = read.map_err(|error| NodeError::Filter(FilterError::from(error)))?;
        self.ship_file(&file)?;
        Ok(file)
    }

    /// The same for a file that has been read, or is for another source of filters that the
    /// programs of the network have added to their registries.
    ///
    /// # Errors
    /// As [`Network::ship`].
    pub fn ship_file(&mut self, file: &FilterFile) -> Result<()> {
        let mut shared = self.shared.borrow_mut();
        shared.change(|application, _| application.ship(&file.shipped()))?;
        Ok(shared.driver.carry_out()?)
    }
}
