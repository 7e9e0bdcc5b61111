//! `sapwood manual`: the manual pages of this command and of the program of communication
//! processes. Hidden, since only an installation asks for them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use sapwood_command_line::exit::Failure;
use sapwood_command_line::manual;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder for the pages, which must be there.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes the pages of these commands.
///
/// # Errors
/// [`Failure`] that names the page which cannot be written.
pub(crate) fn run(arguments: &Arguments, commands: &Command) -> Result<ExitCode, Failure> {
    manual::write(commands, &arguments.folder)?;
    manual::write(&sapwood_node_program::node::command_line(), &arguments.folder)?;
    Ok(ExitCode::SUCCESS)
}
