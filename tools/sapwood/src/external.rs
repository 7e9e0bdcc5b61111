//! Tools that are programs of their own: `sapwood NAME` runs `sapwood-NAME`, beside this program or
//! on PATH.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sapwood_command_line::exit::Failure;
use sapwood_launch::{locate, replace_process};

/// Runs the program that the first word names in the place of this one. Comes back where there is
/// none.
///
/// # Errors
/// [`Failure`] where there is one that cannot be run.
pub(crate) fn run_instead() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next().as_deref().and_then(program_of) else { return Ok(()) };
    let arguments: Vec<OsString> = words.collect();
    let error = replace_process(&program, &arguments);
    Err(Failure::own(&format!("cannot run {}: {error}", program.display())))
}

/// The program of a tool of this name.
fn program_of(name: &std::ffi::OsStr) -> Option<PathBuf> {
    let name = name.to_str().filter(|name| is_name(name))?;
    let file = format!("sapwood-{name}");
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(&file)));
    beside.filter(|path| path.is_file()).or_else(|| locate(Path::new(&file)).ok())
}

/// Whether a word can name a tool: no option, and no path.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_paths_name_no_tool() {
        for word in ["", "-bench", "../bench", "a/b", "a b"] {
            assert!(!is_name(word), "{word}");
        }
        assert!(is_name("bench") && is_name("trace-2"));
    }
}
