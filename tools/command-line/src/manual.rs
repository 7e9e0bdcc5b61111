//! The manual pages of a program: one for it, one for each of its commands.
//!
//! The text of a page is the table of arguments, so that it cannot differ from the help.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::exit::Failure;

/// The section of programs that users run.
const SECTION: &str = "1";

/// Writes the pages of this command and of all below it into a folder, as `NAME.1`, and
/// `NAME-BELOW.1`. Hidden commands have no page.
///
/// # Errors
/// [`Failure`] that names the page which cannot be written.
pub fn write(command: &Command, folder: &Path) -> Result<(), Failure> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    write_below(&command, folder)
}

fn write_below(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let path = folder.join(format!("{name}.{SECTION}"));
    let written = page(command, &name).and_then(|page| fs::write(&path, page));
    written.map_err(|error| Failure::own(&format!("cannot write {}: {error}", path.display())))?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_below(below, folder)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .title(name.to_uppercase())
        .section(SECTION)
        .manual("Sapwood")
        .source(concat!("Sapwood ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    Ok(page)
}
