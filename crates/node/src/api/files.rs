//! Files with filters that the front-end sends to all processes.

use alloc::string::ToString;

use sapwood_filter::ShippedFile;
use sapwood_wire::Control;
use sapwood_wire::limits::{FILE_NAME_BYTES_MAX, FILE_PART_BYTES_MAX};

use crate::api::application::Application;
use crate::interface::{NodeError, Role};

impl Application<'_> {
    /// Sends a file with filters to all communication processes, those that come later included,
    /// and takes it here (front-end). Streams that are opened afterwards can ask for its filters. A
    /// file that was sent before is not sent again.
    ///
    /// # Errors
    /// [`NodeError::NotFrontEnd`]; [`NodeError::File`] when it is empty, has a name that is too
    /// long, or is too much for the network's limits; [`NodeError::Filter`] when it cannot be used
    /// here.
    pub fn ship(&mut self, file: &ShippedFile<'_>) -> Result<(), NodeError> {
        if self.node.turn.settings.role != Role::FrontEnd {
            return Err(NodeError::NotFrontEnd);
        }
        if self.node.membership.files.list.iter().any(|known| known.digest == *file.digest) {
            return Ok(());
        }
        let total = u32::try_from(file.bytes.len()).unwrap_or(u32::MAX);
        if !self.node.membership.files.takes(total) || file.name.len() > FILE_NAME_BYTES_MAX {
            return Err(NodeError::File { name: file.name.to_string(), bytes: file.bytes.len() });
        }
        self.node.turn.settings.registry.take_file(file)?;
        for (index, part) in file.bytes.chunks(FILE_PART_BYTES_MAX).enumerate() {
            let offset = (index * FILE_PART_BYTES_MAX) as u32;
            let (name, bytes) = (file.name.to_string(), part.to_vec());
            let part = Control::File { name, digest: *file.digest, total, offset, bytes };
            self.node.membership.keep_part(part, &mut self.node.turn);
        }
        Ok(())
    }
}
