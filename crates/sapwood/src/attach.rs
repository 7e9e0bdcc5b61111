//! The attach file: how back-ends that start by themselves learn where to go.
//!
//! One line for each place: `parent-rank address ranks encryption key-file`, for example
//! `5 unix:@sapwood-1f2e 0-3 off /run/user/1000/job.key`.

use std::fs;
use std::path::{Path, PathBuf};

use sapwood_node::AttachPoint;
use sapwood_packet::{Rank, RankSet};
use sapwood_runtime::Attachment;
use sapwood_transport::{Encryption, Key};

use crate::{Error, Result};

/// The contents of an attach file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachFile {
    points: Vec<AttachPoint>,
    key_path: PathBuf,
    encryption: Encryption,
    /// Where it was read, for messages.
    path: PathBuf,
}

impl AttachFile {
    /// A file of these places.
    #[must_use]
    pub fn new(points: &[AttachPoint], is_encrypted: bool, key_path: &Path) -> Self {
        Self {
            points: points.to_vec(),
            key_path: key_path.to_path_buf(),
            encryption: if is_encrypted { Encryption::On } else { Encryption::Off },
            path: PathBuf::new(),
        }
    }

    /// As text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let key = self.key_path.display();
        let encryption = if self.encryption == Encryption::On { "on" } else { "off" };
        let line = |point: &AttachPoint| {
            let AttachPoint { parent, address, ranks } = point;
            format!("{parent} {address} {ranks} {encryption} {key}\n")
        };
        self.points.iter().map(line).collect()
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.to_text()).map_err(|error| file_error(path, error.to_string()))
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Error::File`] with the line that is wrong.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| file_error(path, error.to_string()))?;
        let mut points = Vec::new();
        let mut key_path = PathBuf::new();
        let mut encryption = Encryption::On;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let wrong =
                || file_error(path, format!("line {}: '{line}' is no attach point", number + 1));
            let mut words = line.splitn(5, ' ');
            let mut word = || words.next().ok_or_else(wrong);
            let parent: Rank = word()?.parse().map_err(|_| wrong())?;
            let address = word()?.to_string();
            let ranks: RankSet = word()?.parse().map_err(|_| wrong())?;
            encryption = match word()? {
                "on" => Encryption::On,
                "off" => Encryption::Off,
                _ => return Err(wrong()),
            };
            key_path = PathBuf::from(word()?);
            points.push(AttachPoint { parent, address, ranks });
        }
        Ok(Self { points, key_path, encryption, path: path.to_path_buf() })
    }

    /// The place that keeps a rank, or all places in the order of the file, as what a back-end
    /// needs to connect.
    ///
    /// # Errors
    /// [`Error::File`] when no place keeps that rank, [`Error::Runtime`] when the key cannot be
    /// read.
    pub fn attachments(&self, rank: Option<Rank>) -> Result<Vec<Attachment>> {
        let keeps = |point: &&AttachPoint| rank.is_none_or(|rank| point.ranks.contains(rank));
        let mut attachments = Vec::new();
        for point in self.points.iter().filter(keeps) {
            let parent = point.address.parse()?;
            let encryption = self.encryption;
            let key = Key::from_file(&self.key_path)?;
            attachments.push(Attachment { parent, rank, key, encryption, is_started: false });
        }
        match rank {
            Some(rank) if attachments.is_empty() => {
                let kept: Vec<String> = self.points.iter().map(|p| p.ranks.to_string()).collect();
                let reason = format!("no place keeps rank {rank}; kept are {}", kept.join(","));
                Err(file_error(&self.path, reason))
            }
            _ => Ok(attachments),
        }
    }
}

fn file_error(path: &Path, reason: String) -> Error {
    Error::File { path: path.to_path_buf(), reason }
}

impl From<sapwood_transport::Error> for Error {
    fn from(error: sapwood_transport::Error) -> Self {
        Self::Runtime(error.into())
    }
}
