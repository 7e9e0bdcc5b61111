//! The attach file: how back-ends that start by themselves learn where to go.
//!
//! One line for each place: `parent-rank address ranks encryption key-file`, for example
//! `5 unix:@sapwood-1f2e 0-3 off /run/user/1000/job.key`. Where a place takes members beyond the
//! ranks that it keeps, a `+` and the number of its children stand behind the ranks: `0-3+4`, or
//! `+4` where it keeps none.
//!
//! Who comes without a rank chooses a place by its process number, so that places are filled up to
//! the same number of children, though nobody asks anybody.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sapwood_node::AttachPoint;
use sapwood_packet::{Rank, RankSet};
use sapwood_runtime::Attachment;
use sapwood_transport::{Encryption, Key};

use crate::{Error, Result};

/// The contents of an attach file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachFile {
    places: Vec<Place>,
    key_path: PathBuf,
    encryption: Encryption,
    /// Where it was read, for messages.
    path: PathBuf,
}

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    point: AttachPoint,
    /// The number of its children, if it takes guests.
    children: Option<u32>,
}

/// Places are filled to the same number of children over so many at most.
const LEVELS_MAX: u32 = 64;

impl AttachFile {
    /// A file of these places.
    #[must_use]
    pub fn new(points: &[AttachPoint], is_encrypted: bool, key_path: &Path) -> Self {
        Self {
            places: points
                .iter()
                .map(|point| Place { point: point.clone(), children: None })
                .collect(),
            key_path: key_path.to_path_buf(),
            encryption: if is_encrypted { Encryption::On } else { Encryption::Off },
            path: PathBuf::new(),
        }
    }

    /// All places take guests; they have so many children each.
    #[must_use]
    pub fn with_guests(mut self, children: impl Fn(Rank) -> u32) -> Self {
        for place in &mut self.places {
            place.children = Some(children(place.point.parent));
        }
        self
    }

    /// As text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let key = self.key_path.display();
        let encryption = if self.encryption == Encryption::On { "on" } else { "off" };
        let line = |place: &Place| {
            let AttachPoint { parent, address, ranks } = &place.point;
            let guests = place.children.map_or(String::new(), |children| format!("+{children}"));
            format!("{parent} {address} {ranks}{guests} {encryption} {key}\n")
        };
        self.places.iter().map(line).collect()
    }

    /// Writes it, with mode 0600; who reads it meanwhile reads the old one or the new one.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(name);
        // What was left by another process of this number goes.
        let _ = fs::remove_file(&new);
        let options = OpenOptions::new().write(true).create_new(true).mode(0o600).clone();
        options
            .open(&new)
            .and_then(|mut file| file.write_all(self.to_text().as_bytes()))
            .and_then(|()| fs::rename(&new, path))
            .map_err(|error| file_error(path, error.to_string()))
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Error::File`] with the line that is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| file_error(path, error.to_string()))?;
        let mut places = Vec::new();
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
            places.push(Place { point: AttachPoint { parent, address, ranks }, children });
        }
        Ok(Self { places, key_path, encryption, path: path.to_path_buf() })
    }

    /// The place that keeps a rank, or all places in the order in which they are best tried, as
    /// what a back-end needs to connect.
    ///
    /// # Errors
    /// [`Error::File`] when no place keeps that rank, [`Error::Runtime`] when the key cannot be
    /// read.
    pub fn attachments(&self, rank: Option<Rank>) -> Result<Vec<Attachment>> {
        let keeps = |place: &&Place| rank.is_none_or(|rank| place.point.ranks.contains(rank));
        let places = self.in_order(std::process::id()).into_iter();
        let attachments = self.as_attachments(places.filter(keeps), rank)?;
        match rank {
            Some(rank) if attachments.is_empty() => {
                let kept = self.places.iter().map(|place| place.point.ranks.to_string());
                let kept: Vec<String> = kept.collect();
                let reason = format!("no place keeps rank {rank}; kept are {}", kept.join(","));
                Err(file_error(&self.path, reason))
            }
            _ => Ok(attachments),
        }
    }

    /// The places that take guests, in the order in which a further communication process best
    /// tries them.
    ///
    /// # Errors
    /// [`Error::File`] when there is none, [`Error::Runtime`] when the key cannot be read.
    pub fn guest_attachments(&self) -> Result<Vec<Attachment>> {
        let places = self.in_order(std::process::id()).into_iter();
        let attachments =
            self.as_attachments(places.filter(|place| place.children.is_some()), None)?;
        if attachments.is_empty() {
            let reason = "no place takes guests: the network was not opened for them".to_string();
            return Err(file_error(&self.path, reason));
        }
        Ok(attachments)
    }

    fn as_attachments<'a>(
        &self,
        places: impl Iterator<Item = &'a Place>,
        rank: Option<Rank>,
    ) -> Result<Vec<Attachment>> {
        let mut attachments = Vec::new();
        for place in places {
            let parent = place.point.address.parse()?;
            let encryption = self.encryption;
            let key = Key::from_file(&self.key_path)?;
            attachments.push(Attachment { parent, rank, key, encryption, is_started: false });
        }
        Ok(attachments)
    }

    /// All places: as they stand where none takes guests; else beginning at a turn of this number,
    /// where a place has one turn for each child that it lacks to the fullest, and one more.
    fn in_order(&self, number: u32) -> Vec<&Place> {
        let children = || self.places.iter().filter_map(|place| place.children);
        let (Some(least), Some(most)) = (children().min(), children().max()) else {
            return self.places.iter().collect();
        };
        let mut turns = Vec::new();
        for level in least..=most.min(least.saturating_add(LEVELS_MAX)) {
            let has_turn = |place: &Place| place.children.is_some_and(|count| count <= level);
            turns.extend((0..self.places.len()).filter(|&at| has_turn(&self.places[at])));
        }
        let first = number as usize % turns.len();
        turns.rotate_left(first);
        turns.extend(0..self.places.len());
        let mut order: Vec<usize> = Vec::new();
        for at in turns {
            if !order.contains(&at) {
                order.push(at);
            }
        }
        order.into_iter().map(|at| &self.places[at]).collect()
    }
}

/// Runs this process as a further communication process of a network that takes guests, until the
/// network ends or a descriptor is readable: see [`sapwood_runtime::serve_until`].
///
/// # Errors
/// [`Error::File`] for the attach file, [`Error::Runtime`] when no place of it takes this process
/// in.
pub fn join(
    attach_file: &Path,
    registry: &sapwood_filter::Registry,
    leave: impl std::os::fd::AsFd,
) -> Result<()> {
    let places = AttachFile::read(attach_file)?.guest_attachments()?;
    let registry = sapwood_extension::with_extensions(registry.clone());
    Ok(sapwood_runtime::join_until(places, &registry, leave)?)
}

fn file_error(path: &Path, reason: String) -> Error {
    Error::File { path: path.to_path_buf(), reason }
}

impl From<sapwood_transport::Error> for Error {
    fn from(error: sapwood_transport::Error) -> Self {
        Self::Runtime(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places with so many children each.
    fn file(children: &[u32]) -> AttachFile {
        let point = |parent: usize| AttachPoint {
            parent: parent as Rank,
            address: format!("unix:@{parent}"),
            ranks: RankSet::new(),
        };
        let points: Vec<AttachPoint> = (0..children.len()).map(point).collect();
        AttachFile::new(&points, false, Path::new("/tmp/a key"))
            .with_guests(|parent| children[parent as usize])
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attach");
        let mut written = file(&[2, 0]);
        written.places[1].point.ranks = RankSet::range(3, 5);
        written.places[1].children = None;
        written.write(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "0 unix:@0 +2 off /tmp/a key\n1 unix:@1 3-5 off /tmp/a key\n"
        );
        let read = AttachFile::read(&path).unwrap();
        assert_eq!(read.places, written.places);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn processes_of_consecutive_numbers_fill_places_evenly() {
        let children = [3, 0, 1];
        let file = file(&children);
        let mut now = children;
        // Two for the last place, three for the second, and one more for each.
        for number in 70..78 {
            let order = file.in_order(number);
            assert_eq!(order.len(), 3, "whoever is refused has others to try");
            now[order[0].point.parent as usize] += 1;
        }
        assert_eq!(now, [4, 4, 4]);
    }

    #[test]
    fn where_nobody_takes_guests_the_order_is_that_of_the_file() {
        let mut file = file(&[0, 0, 0]);
        file.places.iter_mut().for_each(|place| place.children = None);
        let order: Vec<Rank> = file.in_order(7).iter().map(|place| place.point.parent).collect();
        assert_eq!(order, [0, 1, 2]);
        assert!(file.guest_attachments().unwrap_err().to_string().contains("takes guests"));
    }
}
