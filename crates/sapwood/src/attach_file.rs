//! The attach file: it tells back-ends that the network does not start where to connect.
//!
//! One line for each attach point: `parent-rank address ranks encryption key-file`, for example `5
//! unix:@sapwood-1f2e 0-3 off /run/user/1000/job.key`. Where an attach point takes dynamic members
//! besides the ranks that are reserved at it, a `+` and the number of its children follow the
//! ranks: `0-3+4`, or `+4` where none are reserved.
//!
//! A process without a rank chooses an attach point by its process number: so all attach points are
//! filled to the same number of children without any exchange of messages.

use std::fs;
use std::path::{Path, PathBuf};

use sapwood_node::AttachPoint;
use sapwood_packet::{Rank, RankSet};
use sapwood_runtime::Attachment;
use sapwood_transport::{Encryption, Key};

use crate::draft::Draft;
use crate::error::file_error;
use crate::{Error, Result};

/// The contents of an attach file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachFile {
    entries: Vec<Entry>,
    key_path: PathBuf,
    encryption: Encryption,
    /// The file it was read from, for error texts.
    path: PathBuf,
}

/// One attach point: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    point: AttachPoint,
    /// Its number of children, if it takes dynamic members.
    children: Option<u32>,
}

/// Attach points are filled evenly up to this many additional children.
const LEVELS_MAX: u32 = 64;

impl AttachFile {
    /// A file of these attach points.
    #[must_use]
    pub fn new(points: &[AttachPoint], is_encrypted: bool, key_path: &Path) -> Self {
        Self {
            entries: points
                .iter()
                .map(|point| Entry { point: point.clone(), children: None })
                .collect(),
            key_path: key_path.to_path_buf(),
            encryption: if is_encrypted { Encryption::On } else { Encryption::Off },
            path: PathBuf::new(),
        }
    }

    /// All attach points take dynamic members; `children` gives their present number of children.
    #[must_use]
    pub fn with_dynamic_members(mut self, children: impl Fn(Rank) -> u32) -> Self {
        for entry in &mut self.entries {
            entry.children = Some(children(entry.point.parent));
        }
        self
    }

    /// As text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let key = self.key_path.display();
        let encryption = if self.encryption == Encryption::On { "on" } else { "off" };
        let line = |entry: &Entry| {
            let AttachPoint { parent, address, ranks } = &entry.point;
            let dynamic = entry.children.map_or(String::new(), |children| format!("+{children}"));
            format!("{parent} {address} {ranks}{dynamic} {encryption} {key}\n")
        };
        self.entries.iter().map(line).collect()
    }

    /// Writes it atomically, with mode 0600: a reader sees the old file or the new one.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let draft = Draft::of(path);
        draft
            .fill(&self.to_text(), 0o600)
            .map(drop)
            .and_then(|()| draft.put_in_place())
            .map_err(|error| file_error(path, error.to_string()))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`Error::File`] with the line that is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| file_error(path, error.to_string()))?;
        let mut entries = Vec::new();
        let mut key_path = PathBuf::new();
        let mut encryption = Encryption::On;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let wrong =
                || file_error(path, format!("line {}: '{line}' is no attach point", number + 1));
            let mut words = line.splitn(5, ' ');
            let mut word = || words.next().ok_or_else(wrong);
            let parent: Rank = word()?.parse().map_err(|_| wrong())?;
            let address = word()?.to_string();
            let kept = word()?;
            let (ranks, children) = match kept.split_once('+') {
                Some((ranks, children)) => (ranks, Some(children.parse().map_err(|_| wrong())?)),
                None => (kept, None),
            };
            let ranks: RankSet = ranks.parse().map_err(|_| wrong())?;
            encryption = match word()? {
                "on" => Encryption::On,
                "off" => Encryption::Off,
                _ => return Err(wrong()),
            };
            key_path = PathBuf::from(word()?);
            entries.push(Entry { point: AttachPoint { parent, address, ranks }, children });
        }
        Ok(Self { entries, key_path, encryption, path: path.to_path_buf() })
    }

    /// The attach point that reserves a rank, or all of them in the order in which they are best
    /// tried; each has what a back-end needs to connect.
    ///
    /// # Errors
    /// [`Error::File`] when no attach point reserves that rank, [`Error::Runtime`] when the key
    /// cannot be read.
    pub fn attachments(&self, rank: Option<Rank>) -> Result<Vec<Attachment>> {
        let reserves = |entry: &&Entry| rank.is_none_or(|rank| entry.point.ranks.contains(rank));
        let entries = self.in_order(std::process::id()).into_iter();
        let attachments = self.as_attachments(entries.filter(reserves), rank)?;
        match rank {
            Some(rank) if attachments.is_empty() => {
                let reserved = self.entries.iter().map(|entry| entry.point.ranks.to_string());
                let reserved: Vec<String> = reserved.collect();
                let reason = format!(
                    "no attach point reserves rank {rank}; reserved are {}",
                    reserved.join(",")
                );
                Err(file_error(&self.path, reason))
            }
            _ => Ok(attachments),
        }
    }

    /// The attach points that take dynamic members, in the order in which a further communication
    /// process best tries them.
    ///
    /// # Errors
    /// [`Error::File`] when there is none, [`Error::Runtime`] when the key cannot be read.
    pub fn dynamic_attachments(&self) -> Result<Vec<Attachment>> {
        let entries = self.in_order(std::process::id()).into_iter();
        let attachments =
            self.as_attachments(entries.filter(|entry| entry.children.is_some()), None)?;
        if attachments.is_empty() {
            let reason =
                "no attach point takes dynamic members: open the network with dynamic_members()"
                    .to_string();
            return Err(file_error(&self.path, reason));
        }
        Ok(attachments)
    }

    fn as_attachments<'a>(
        &self,
        entries: impl Iterator<Item = &'a Entry>,
        rank: Option<Rank>,
    ) -> Result<Vec<Attachment>> {
        let mut attachments = Vec::new();
        for entry in entries {
            let parent = entry.point.address.parse()?;
            let encryption = self.encryption;
            let key = Key::from_file(&self.key_path)?;
            attachments.push(Attachment { parent, rank, key, encryption, is_started: false });
        }
        Ok(attachments)
    }

    /// All attach points: in the order of the file if none takes dynamic members; else a weighted
    /// round robin: an attach point has as many turns as it has children fewer than the fullest
    /// one, and one more; the search begins at turn `number`.
    fn in_order(&self, number: u32) -> Vec<&Entry> {
        let children = || self.entries.iter().filter_map(|entry| entry.children);
        let (Some(least), Some(most)) = (children().min(), children().max()) else {
            return self.entries.iter().collect();
        };
        let mut turns = Vec::new();
        for level in least..=most.min(least.saturating_add(LEVELS_MAX)) {
            let has_turn = |entry: &Entry| entry.children.is_some_and(|count| count <= level);
            turns.extend((0..self.entries.len()).filter(|&at| has_turn(&self.entries[at])));
        }
        let first = number as usize % turns.len();
        turns.rotate_left(first);
        turns.extend(0..self.entries.len());
        let mut order: Vec<usize> = Vec::new();
        for at in turns {
            if !order.contains(&at) {
                order.push(at);
            }
        }
        order.into_iter().map(|at| &self.entries[at]).collect()
    }
}

/// Runs this process as a further communication process of a network that takes dynamic members,
/// until the network ends or a descriptor is readable: see [`sapwood_runtime::serve_until`].
///
/// # Errors
/// [`Error::File`] for the attach file, [`Error::Runtime`] when no attach point of it adopts this
/// process.
pub fn join(
    attach_file: &Path,
    registry: &sapwood_filter::Registry,
    leave: impl std::os::fd::AsFd,
) -> Result<()> {
    let entries = AttachFile::read(attach_file)?.dynamic_attachments()?;
    let registry = sapwood_extension::with_extensions(registry.clone());
    Ok(sapwood_runtime::join_until(entries, &registry, leave)?)
}

impl From<sapwood_transport::Error> for Error {
    fn from(error: sapwood_transport::Error) -> Self {
        Self::Runtime(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attach points with these numbers of children.
    fn file(children: &[u32]) -> AttachFile {
        let point = |parent: usize| AttachPoint {
            parent: parent as Rank,
            address: format!("unix:@{parent}"),
            ranks: RankSet::new(),
        };
        let points: Vec<AttachPoint> = (0..children.len()).map(point).collect();
        AttachFile::new(&points, false, Path::new("/tmp/a key"))
            .with_dynamic_members(|parent| children[parent as usize])
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attach");
        let mut written = file(&[2, 0]);
        written.entries[1].point.ranks = RankSet::range(3, 5);
        written.entries[1].children = None;
        written.write(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "0 unix:@0 +2 off /tmp/a key\n1 unix:@1 3-5 off /tmp/a key\n"
        );
        let read = AttachFile::read(&path).unwrap();
        assert_eq!(read.entries, written.entries);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn processes_of_consecutive_numbers_fill_places_evenly() {
        let children = [3, 0, 1];
        let file = file(&children);
        let mut now = children;
        // Two for the last entry, three for the second, and one more for each.
        for number in 70..78 {
            let order = file.in_order(number);
            assert_eq!(order.len(), 3, "a process that is refused has others to try");
            now[order[0].point.parent as usize] += 1;
        }
        assert_eq!(now, [4, 4, 4]);
    }

    #[test]
    fn without_dynamic_members_the_order_is_that_of_the_file() {
        let mut file = file(&[0, 0, 0]);
        file.entries.iter_mut().for_each(|entry| entry.children = None);
        let order: Vec<Rank> = file.in_order(7).iter().map(|entry| entry.point.parent).collect();
        assert_eq!(order, [0, 1, 2]);
        assert!(
            file.dynamic_attachments().unwrap_err().to_string().contains("takes dynamic members")
        );
    }
}
