//! Which hosts are meant: groups of hosts from the site's files, the options with which every
//! command selects its hosts, and starting a tree over them.
//!
//! `tree` chooses the tree over them, by what `measured` knows of their links.
//!
//! The language itself and host files are `sapwood-topology`'s; here is what reads files and the
//! environment for it.

pub mod absence;
pub mod agent_errors;
pub mod cause;
pub mod deploy;
mod flat;
pub mod groups;
pub mod launching;
pub mod measured;
pub mod nodeset;
pub mod notices;
pub mod persistent;
pub mod questions;
pub mod selection;
pub mod signals;
pub mod substitution;
pub mod tree;
pub mod tree_access;
pub mod unanswered;
mod yaml;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sapwood_command_line::exit::Failure;

/// Longest file or input that lists hosts, in bytes.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Reads a file of text.
pub fn read_file(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let file =
        File::open(path).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    read_text(file, &name)
}

/// Reads all text there is, within the limit.
pub fn read_text(source: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > LIST_BYTES_MAX {
        return Err(Failure::usage(format!("{name} is longer than {LIST_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::usage(format!("{name} line {line} is not UTF-8 text"))
    })
}
