//! Walks the repository and hands out its files in a fixed order.
//!
//! Build output and version control (in a work tree, the file `.git`) are skipped by name rather
//! than by asking git, so that the checks also work on an unpacked archive.

use std::fs;
use std::io;
use std::path::Path;

/// Folders that hold nothing of ours.
const SKIPPED_FOLDERS: [&str; 5] = [".git", "target", "demo-out", "__pycache__", "node_modules"];

/// One file of the repository.
#[derive(Debug)]
pub struct File {
    /// Path from the root, with `/` between its parts.
    pub path: String,
    pub bytes: u64,
    /// The text, `None` for a file that is not UTF-8.
    pub text: Option<String>,
}

impl File {
    /// A file that exists only in a test.
    #[cfg(test)]
    pub fn sample(path: &str, text: &str) -> File {
        File { path: path.into(), bytes: text.len() as u64, text: Some(text.into()) }
    }
}

/// Reads every file below `root`, sorted by path.
pub fn all(root: &Path) -> io::Result<Vec<File>> {
    let mut found = Vec::new();
    collect(root, "", &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() && name != ".git" {
            // A file may be moved away between the listing and the reading; it is then not there.
            let Ok(content) = fs::read(entry.path()) else { continue };
            let bytes = content.len() as u64;
            found.push(File { path, bytes, text: String::from_utf8(content).ok() });
        }
    }
    Ok(())
}
