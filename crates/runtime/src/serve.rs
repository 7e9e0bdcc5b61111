//! A communication process: a node without an application.

use sapwood_filter::Registry;
use sapwood_node::Role;

use crate::{Attachment, Driver, RuntimeError};

/// Runs a communication process until its network ends. Called by the program's `node` command.
///
/// # Errors
/// [`RuntimeError`] when the environment names no parent, the parent cannot be reached, or the
/// system fails this process.
pub fn serve(registry: Registry) -> Result<(), RuntimeError> {
    sapwood_launch::bind_to_starter()?;
    let attachment = Attachment::from_environment()?;
    let mut driver = Driver::attach(attachment, Role::Communication, registry)?;
    while !driver.has_ended() {
        driver.turn(None)?;
        while driver.next_event().is_some() {}
    }
    driver.close()
}
