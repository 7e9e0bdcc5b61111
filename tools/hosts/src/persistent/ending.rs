//! Why a tree has ended without `sapwood down`: its daemon has no terminal to say so.
//!
//! The daemon leaves a line in the folder of its control socket, mode 0600. A command that looks
//! for a tree and finds none is told of it; the next tree of that name takes it away.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sapwood_command_line::exit::one_line;

/// How the files' names end, behind the name of the tree.
const ENDING: &str = "ended";

/// The most that is read of one, in bytes.
const LINE_BYTES_MAX: u64 = 4 << 10;

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.{ENDING}"))
}

/// Leaves the reason. Where that cannot be written there is no other place for it.
pub(crate) fn leave(folder: &Path, name: &str, reason: &str) {
    let path = path_of(folder, name);
    let _ = fs::remove_file(&path);
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{}", one_line(reason));
    }
}

/// There is a tree of this name again.
pub(crate) fn forget(folder: &Path, name: &str) {
    let _ = fs::remove_file(path_of(folder, name));
}

/// What is known of trees that have ended, to be said behind a line that none is up.
pub(crate) fn told(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let mut lines: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_string();
            Some(format!("; tree '{name}' has ended: {}", first_line(&path)?))
        })
        .collect();
    lines.sort();
    lines.concat()
}

fn first_line(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(LINE_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.lines().next().map(one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reason_is_told_until_there_is_a_tree_again() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(told(folder.path()), "");
        leave(folder.path(), "warm", "the first");
        leave(folder.path(), "warm", "no host is left\nof them all");
        leave(folder.path(), "other", "cannot wait");
        assert_eq!(
            told(folder.path()),
            "; tree 'other' has ended: cannot wait\
             ; tree 'warm' has ended: no host is left of them all"
        );
        forget(folder.path(), "warm");
        assert_eq!(told(folder.path()), "; tree 'other' has ended: cannot wait");
    }
}
