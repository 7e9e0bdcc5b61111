//! How ranks ended, by the file that a monitor has left beside theirs.

use std::io::{ErrorKind, Read as _};
use std::path::Path;

use sapwood::RankSet;
use sapwood_report::ends::{ENDS_FILE, Ends};

use super::files::{KeptFolder, open};

/// A larger file is not read.
const BYTES_MAX: u64 = 16 << 20;
/// By how much the clocks of hosts may differ, in seconds.
const CLOCKS_APART_S: u64 = 10;
/// What is said of ranks that may have died of what ended the program.
pub(super) const WHEN_TOLD_TO_END: &str =
    "how ranks would have ended: the program was asked to end";

/// What is said of ends in a folder.
pub(super) struct KeptEnds {
    /// Nothing where no file says so.
    found: Result<Option<Ends>, String>,
}

impl KeptEnds {
    /// Reads the file that belongs to those of ranks.
    pub(super) fn read(folder: &Path, of: &KeptFolder) -> Self {
        Self { found: read(folder, of) }
    }

    /// The ranks of which it is known how they ended.
    pub(super) fn known(&self) -> RankSet {
        let known = self.found.as_ref().ok().and_then(Option::as_ref).map(Ends::known);
        known.unwrap_or_default()
    }

    /// Whether it is known how the program ended.
    pub(super) fn are_whole(&self) -> bool {
        matches!(&self.found, Ok(Some(ends)) if ends.has_ended)
    }

    /// How ranks ended; none where that is not known. Of those that ended as they were told none is
    /// the first.
    pub(super) fn told(&self) -> Option<&Ends> {
        self.found.as_ref().ok().and_then(Option::as_ref)
    }

    /// Lines for what is not known of it; `is_over` says whether all ranks have ended.
    pub(super) fn unknown(&self, folder: &Path, is_over: bool) -> Vec<String> {
        let file = folder.join(ENDS_FILE);
        match &self.found {
            Ok(Some(ends)) => {
                let as_told = ends.was_told_to_end.then(|| WHEN_TOLD_TO_END.to_owned());
                let until_s = ends.elapsed_s;
                let later = (is_over && !ends.has_ended).then(|| {
                    format!("how ranks ended after {until_s:.1} s: the monitor was gone by then")
                });
                as_told.into_iter().chain(later).collect()
            }
            Ok(None) if is_over => vec![format!(
                "how ranks ended, and which of them first: no monitor has left '{}'",
                file.display()
            )],
            Ok(None) => Vec::new(),
            Err(reason) => {
                vec![format!("how ranks ended: '{}' is left out: {reason}", file.display())]
            }
        }
    }
}

fn read(folder: &Path, of: &KeptFolder) -> Result<Option<Ends>, String> {
    let file = match open(&folder.join(ENDS_FILE)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(format!("it is no file, or has more than {BYTES_MAX} bytes"));
    }
    let mut content = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut content).map_err(|error| error.to_string())?;
    let ends = Ends::parse(&content)?;
    if ends.ranks != 0 && ends.ranks != of.world_size {
        return Err(format!(
            "it is of a program with {} ranks, and the files are of one with {}",
            ends.ranks, of.world_size
        ));
    }
    if ends.unix_s.saturating_add(CLOCKS_APART_S) < of.made_s {
        return Err("it is of an earlier run: the files of ranks were made after it".to_owned());
    }
    Ok(Some(ends))
}
