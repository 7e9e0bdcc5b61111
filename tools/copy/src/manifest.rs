//! What is copied: files, folders and links in the order in which they are made, as one end tells
//! the other.
//!
//! Owns the encoding and the rules for what comes from outside: a path never leads out of the
//! folder that it belongs to, a folder stands before what is in it, extents lie in order within
//! their file. It does no I/O.

use std::collections::BTreeMap;

/// Most entries of one copy.
pub(super) const ENTRIES_MAX: usize = 4 << 20;

/// Most extents of one file that are distinguished; behind that many, holes are copied as zeros.
pub(super) const EXTENTS_MAX: usize = 4096;

/// Most bytes that the paths, links' targets and extents of one copy may take.
pub(super) const MANIFEST_BYTES_MAX: usize = 1 << 30;

/// Longest path below a source, and longest target of a symbolic link, in bytes.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// A part of a file that is no hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A file's length, and where in it something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) size: u64,
    pub(super) extents: Vec<Extent>,
}

impl Content {
    /// A file without holes.
    pub(super) fn dense(size: u64) -> Self {
        let extents = if size > 0 { vec![Extent { offset: 0, length: size }] } else { Vec::new() };
        Self { size, extents }
    }

    /// Bytes outside of holes.
    pub(super) fn data_bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.length).sum()
    }

    /// Where `length` bytes of data from `from` on stand in the file, as offsets and lengths.
    pub(super) fn places(&self, from: u64, length: usize) -> Vec<(u64, usize)> {
        let (mut from, mut left) = (from, length as u64);
        let mut places = Vec::new();
        for extent in &self.extents {
            if left == 0 {
                break;
            }
            if from >= extent.length {
                from -= extent.length;
                continue;
            }
            let part = left.min(extent.length - from);
            places.push((extent.offset + from, part as usize));
            left -= part;
            from = 0;
        }
        places
    }

    /// The first hole from `at` on, or the rest of it, where it begins before `end` and as far as
    /// it goes before that.
    pub(super) fn hole_from(&self, at: u64, end: u64) -> Option<(u64, u64)> {
        let mut from = at;
        for extent in &self.extents {
            if from < extent.offset {
                return (from < end).then(|| (from, extent.offset.min(end)));
            }
            from = from.max(extent.offset + extent.length);
        }
        (from < end).then_some((from, end))
    }

    /// How much data stands in the first `size` bytes of the file.
    pub(super) fn data_within(&self, size: u64) -> u64 {
        let within = |extent: &Extent| size.saturating_sub(extent.offset).min(extent.length);
        self.extents.iter().map(within).sum()
    }

    fn is_sound(&self) -> bool {
        let mut end = 0;
        self.extents.len() <= EXTENTS_MAX
            && i64::try_from(self.size).is_ok()
            && self.extents.iter().all(|extent| {
                let follows = extent.offset >= end && extent.length > 0;
                end = extent.offset.saturating_add(extent.length);
                follows && end <= self.size
            })
    }
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File(Content),
    Folder,
    /// With its target, as it stands in the link.
    Symlink(Vec<u8>),
    /// Another name of the file that an earlier entry is.
    HardLink(u64),
}

/// A file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The source that it belongs to, counted from 0.
    pub(super) root: u32,
    /// Below its source; empty for the source itself.
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    /// Permissions, with the bits for set-user-id, set-group-id and sticky.
    pub(super) mode: u32,
    /// When it was changed, in seconds since 1970 and nanoseconds.
    pub(super) changed: (i64, u32),
    /// Numbers of user and group.
    pub(super) owner: (u32, u32),
}

impl Entry {
    /// Its content, if it is a file.
    pub(super) fn content(&self) -> Option<&Content> {
        match &self.kind {
            Kind::File(content) => Some(content),
            _ => None,
        }
    }

    /// What it takes in memory besides its fixed part.
    fn memory_bytes(&self) -> usize {
        let kind = match &self.kind {
            Kind::File(content) => content.extents.len() * size_of::<Extent>(),
            // It stands among the folders once more.
            Kind::Folder => self.path.len(),
            Kind::Symlink(target) => target.len(),
            Kind::HardLink(_) => 0,
        };
        kind + self.path.len()
    }

    /// The folder that it is in, and its name there.
    pub(super) fn parent_and_name(&self) -> (&[u8], &[u8]) {
        match self.path.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (&self.path[..at], &self.path[at + 1..]),
            None => (&[], &self.path),
        }
    }

    /// ```text
    /// | root u32 | mode u32 | seconds i64 | nanoseconds u32 | user u32 | group u32 |
    /// | path, u32 length and bytes | kind, 1 byte | and for a
    ///   file: size u64, count u32, offset and length u64 of each extent
    ///   symbolic link: target, u32 length and bytes     hard link: entry u64
    /// ```
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.root.to_le_bytes());
        bytes.extend(self.mode.to_le_bytes());
        bytes.extend(self.changed.0.to_le_bytes());
        bytes.extend(self.changed.1.to_le_bytes());
        bytes.extend(self.owner.0.to_le_bytes());
        bytes.extend(self.owner.1.to_le_bytes());
        encode_text(&self.path, bytes);
        match &self.kind {
            Kind::File(content) => {
                bytes.push(0);
                bytes.extend(content.size.to_le_bytes());
                bytes.extend((content.extents.len() as u32).to_le_bytes());
                for extent in &content.extents {
                    bytes.extend(extent.offset.to_le_bytes());
                    bytes.extend(extent.length.to_le_bytes());
                }
            }
            Kind::Folder => bytes.push(1),
            Kind::Symlink(target) => {
                bytes.push(2);
                encode_text(target, bytes);
            }
            Kind::HardLink(entry) => {
                bytes.push(3);
                bytes.extend(entry.to_le_bytes());
            }
        }
    }

    /// Reads one entry and moves on behind it; `None` where there is none that keeps the rules.
    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let root = u32::from_le_bytes(take(bytes)?);
        let mode = u32::from_le_bytes(take(bytes)?) & 0o7777;
        let changed = (i64::from_le_bytes(take(bytes)?), u32::from_le_bytes(take(bytes)?));
        let owner = (u32::from_le_bytes(take(bytes)?), u32::from_le_bytes(take(bytes)?));
        let path = decode_text(bytes)?;
        let kind = match take::<1>(bytes)?[0] {
            0 => {
                let size = u64::from_le_bytes(take(bytes)?);
                let count = u32::from_le_bytes(take(bytes)?) as usize;
                if count > EXTENTS_MAX {
                    return None;
                }
                let mut extents = Vec::with_capacity(count);
                for _ in 0..count {
                    let offset = u64::from_le_bytes(take(bytes)?);
                    extents.push(Extent { offset, length: u64::from_le_bytes(take(bytes)?) });
                }
                Kind::File(Content { size, extents })
            }
            1 => Kind::Folder,
            2 => Kind::Symlink(decode_text(bytes)?),
            3 => Kind::HardLink(u64::from_le_bytes(take(bytes)?)),
            _ => return None,
        };
        let entry = Self { root, path, kind, mode, changed, owner };
        entry.is_sound().then_some(entry)
    }

    fn is_sound(&self) -> bool {
        let is_kind_sound = match &self.kind {
            Kind::File(content) => content.is_sound(),
            Kind::Symlink(target) => !target.is_empty() && !target.contains(&0),
            Kind::Folder | Kind::HardLink(_) => true,
        };
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
        let is_path_sound = self.path.is_empty() || self.path.split(|&b| b == b'/').all(is_name);
        is_kind_sound && is_path_sound && self.changed.1 < 1_000_000_000
    }
}

fn encode_text(text: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text);
}

fn decode_text(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (text, rest) = bytes.split_at_checked(length).filter(|_| length <= PATH_BYTES_MAX)?;
    *bytes = rest;
    Some(text.to_vec())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// All entries of a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Manifest {
    entries: Vec<Entry>,
    /// Folders by source and path.
    folders: BTreeMap<(u32, Vec<u8>), u64>,
    data_bytes: u64,
    /// What paths, targets and extents take in memory.
    memory_bytes: usize,
}

impl Manifest {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Bytes of all files outside of holes.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// What is wrong with it, behind those that are there.
    pub(super) fn add(&mut self, entry: Entry) -> Result<(), &'static str> {
        if self.entries.len() >= ENTRIES_MAX {
            return Err("more than 4194304 files; copy them in parts");
        }
        let memory_bytes = self.memory_bytes + entry.memory_bytes();
        if memory_bytes > MANIFEST_BYTES_MAX {
            return Err("the list of files exceeds 1 GiB; copy fewer files");
        }
        if !entry.path.is_empty() {
            let parent = (entry.root, entry.parent_and_name().0.to_vec());
            if !self.folders.contains_key(&parent) {
                return Err("an entry comes before its folder");
            }
        }
        if let Kind::HardLink(to) = entry.kind {
            let target = usize::try_from(to).ok().and_then(|to| self.entries.get(to));
            if target.is_none_or(|target| target.content().is_none()) {
                return Err("a hard link points to no file");
            }
        }
        if entry.kind == Kind::Folder {
            self.folders.insert((entry.root, entry.path.clone()), self.len());
        }
        // A peer that makes up a list may say anything.
        let data_bytes = entry.content().map_or(0, Content::data_bytes);
        self.data_bytes = self.data_bytes.saturating_add(data_bytes);
        self.memory_bytes = memory_bytes;
        self.entries.push(entry);
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn entry(path: &str, kind: Kind) -> Entry {
        let path = path.as_bytes().to_vec();
        Entry { root: 0, path, kind, mode: 0o644, changed: (1_600_000_000, 5), owner: (0, 0) }
    }

    fn encoded(entry: &Entry) -> Vec<u8> {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        bytes
    }

    #[test]
    fn every_kind_is_read_as_it_is_written() {
        let sparse = Content { size: 900, extents: vec![Extent { offset: 100, length: 50 }] };
        let kinds =
            [Kind::File(sparse), Kind::Folder, Kind::Symlink(b"../x".into()), Kind::HardLink(0)];
        for kind in kinds {
            let entry = entry("a/b", kind);
            let bytes = encoded(&entry);
            assert_eq!(Entry::decode(&mut &*bytes), Some(entry));
            assert_eq!(Entry::decode(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn what_leads_out_of_its_folder_is_no_entry() {
        for path in ["..", "a/../b", "/etc", "a//b", "a/", "./a", "a\0b"] {
            assert_eq!(Entry::decode(&mut &*encoded(&entry(path, Kind::Folder))), None, "{path:?}");
        }
        let overlapping = |second: u64| {
            let extents = [(0, 10), (second, 10)];
            let extents = extents.map(|(offset, length)| Extent { offset, length }).to_vec();
            encoded(&entry("a", Kind::File(Content { size: 30, extents })))
        };
        assert!(Entry::decode(&mut &*overlapping(10)).is_some());
        assert_eq!(Entry::decode(&mut &*overlapping(9)), None);
        assert_eq!(Entry::decode(&mut &*overlapping(21)), None);
        let mut manifest = Manifest::default();
        manifest.add(entry("", Kind::Folder)).unwrap();
        manifest.add(entry("link", Kind::Symlink(b"/etc".into()))).unwrap();
        assert!(manifest.add(entry("link/passwd", Kind::File(Content::dense(1)))).is_err());
        assert!(manifest.add(entry("other", Kind::HardLink(1))).is_err());
    }

    #[test]
    fn data_is_found_between_holes() {
        let extents = [(10, 5), (100, 20)];
        let extents = extents.map(|(offset, length)| Extent { offset, length }).to_vec();
        let content = Content { size: 200, extents };
        assert_eq!(content.data_bytes(), 25);
        assert_eq!(content.places(3, 10), [(13, 2), (100, 8)]);
        assert_eq!(content.places(25, 0), []);
        assert_eq!([0, 12, 50, 110, 200].map(|size| content.data_within(size)), [0, 2, 5, 15, 25]);
        let holes = [(0, 200), (7, 9), (12, 50), (100, 200), (125, 200)];
        assert_eq!(
            holes.map(|(at, end)| content.hole_from(at, end)),
            [Some((0, 10)), Some((7, 9)), Some((15, 50)), Some((120, 200)), Some((125, 200))]
        );
        assert_eq!(
            [(10, 15), (104, 120), (200, 200)].map(|(at, end)| content.hole_from(at, end)),
            [None; 3]
        );
    }

    #[test]
    fn a_list_that_somebody_made_up_is_bounded() {
        let mut manifest = Manifest::default();
        manifest.add(entry("", Kind::Folder)).unwrap();
        for place in 0..3 {
            let content = Content::dense(i64::MAX as u64);
            manifest.add(entry(&format!("{place}"), Kind::File(content))).unwrap();
        }
        assert_eq!(manifest.data_bytes(), u64::MAX);
        manifest.memory_bytes = MANIFEST_BYTES_MAX - 3;
        assert!(manifest.add(entry("a", Kind::Symlink(b"xyz".into()))).is_err());
        manifest.add(entry("a", Kind::Symlink(b"xy".into()))).unwrap();
        assert!(manifest.add(entry("b", Kind::HardLink(1))).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_confuse_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &*bytes;
            while let Some(entry) = Entry::decode(&mut rest) {
                let again = encoded(&entry);
                prop_assert_eq!(Entry::decode(&mut &*again), Some(entry));
            }
        }
    }
}
