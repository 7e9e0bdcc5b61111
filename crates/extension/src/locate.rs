//! Where files of filters lie on a host.

use std::path::{Path, PathBuf};

use crate::ExtensionError;

/// The environment variable with the folders in which filters are looked for, separated by colons.
pub const PATH_VARIABLE: &str = "SAPWOOD_FILTER_PATH";

/// A path as it is, or a name in one of the folders.
pub(crate) fn locate(file: &str) -> Result<PathBuf, ExtensionError> {
    if file.contains('/') {
        let path = Path::new(file);
        return match path.is_file() {
            true => Ok(path.to_path_buf()),
            false => Err(not_found(file, "the place that is named")),
        };
    }
    let folders = std::env::var(PATH_VARIABLE).unwrap_or_default();
    let places = folders.split(':').filter(|folder| !folder.is_empty());
    let mut files = places.map(|folder| Path::new(folder).join(file));
    files.find(|path| path.is_file()).ok_or_else(|| {
        let searched = match folders.is_empty() {
            true => format!("the folders of {PATH_VARIABLE}, which is not set"),
            false => format!("the folders of {PATH_VARIABLE}, '{folders}'"),
        };
        not_found(file, &searched)
    })
}

fn not_found(file: &str, searched: &str) -> ExtensionError {
    ExtensionError::NotFound { file: file.to_string(), searched: searched.to_string() }
}
