//! Names of filters in files, and files that travel.
//!
//! ```text
//! FILE#NAME            a filter in a file on the host at hand
//! FILE=CHECKSUM#NAME   a filter in a file that was shipped through the tree
//! ```
//!
//! The checksum is BLAKE2s of the file's bytes, as 64 hexadecimal digits.

use std::fmt::{self, Write as _};
use std::path::Path;

use blake2::{Blake2s256, Digest as _};
use sapwood_filter::{FilterSpec, ShippedFile};

use crate::ExtensionError;

/// Longest file that is shipped through a tree, in bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// The checksum of a file.
pub(crate) type Digest = [u8; 32];

pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    Blake2s256::digest(bytes).into()
}

/// A file of filters, read to be shipped.
#[derive(Clone)]
pub struct FilterFile {
    name: String,
    digest: Digest,
    bytes: Vec<u8>,
}

impl FilterFile {
    /// Reads a file: a path, or a name to be looked for in the folders of `SAPWOOD_FILTER_PATH`.
    ///
    /// # Errors
    /// [`ExtensionError::NotFound`], [`ExtensionError::Read`], [`ExtensionError::TooLong`], and
    /// [`ExtensionError::Kind`] when it is neither a shared object nor WebAssembly.
    pub fn read(path: &Path) -> Result<Self, ExtensionError> {
        let file = path.to_string_lossy();
        let found = crate::locate::locate(&file)?;
        let read = |error: std::io::Error| ExtensionError::Read {
            file: file.to_string(),
            reason: error.to_string(),
        };
        let bytes = std::fs::metadata(&found).map_err(read)?.len();
        if bytes > FILE_BYTES_MAX as u64 {
            return Err(ExtensionError::TooLong { file: file.to_string(), bytes });
        }
        let bytes = std::fs::read(&found).map_err(read)?;
        let name = found.file_name().map(|name| name.to_string_lossy().into_owned());
        Self::new(&name.unwrap_or_default(), bytes)
    }

    /// A file of these bytes; `name` is its name in messages.
    ///
    /// # Errors
    /// As [`FilterFile::read`].
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, ExtensionError> {
        let prefix = match bytes.get(..4) {
            _ if bytes.len() > FILE_BYTES_MAX => "",
            Some(b"\x7fELF") => "native",
            Some(b"\0asm") => "wasm",
            _ => return Err(ExtensionError::Kind { file: name.to_string() }),
        };
        Self::for_source(prefix, name, bytes)
    }

    /// A file for the source of that prefix, which a program has added to its registry.
    ///
    /// # Errors
    /// [`ExtensionError::TooLong`].
    pub fn for_source(prefix: &str, name: &str, bytes: Vec<u8>) -> Result<Self, ExtensionError> {
        if bytes.len() > FILE_BYTES_MAX {
            let bytes = bytes.len() as u64;
            return Err(ExtensionError::TooLong { file: name.to_string(), bytes });
        }
        // What separates the parts of a name cannot be in one.
        let plain: String =
            name.chars().map(|c| if "#=:/,".contains(c) { '_' } else { c }).collect();
        Ok(Self { name: format!("{prefix}:{plain}"), digest: digest_of(&bytes), bytes })
    }

    /// Its name with the prefix of its kind, as it travels.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its checksum.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Its contents.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As it comes to those that it is shipped to.
    #[must_use]
    pub fn shipped(&self) -> ShippedFile<'_> {
        ShippedFile { name: &self.name, digest: &self.digest, bytes: &self.bytes }
    }

    /// A filter in it, or a synchronisation rule, as streams ask for it once the file is shipped.
    #[must_use]
    pub fn filter(&self, filter: &str) -> FilterSpec {
        self.filter_name(filter).into()
    }

    /// The name by which streams ask for a filter in it; with an empty one, for its only filter.
    #[must_use]
    pub fn filter_name(&self, filter: &str) -> String {
        let mut name = format!("{}=", self.name);
        for byte in self.digest {
            write!(name, "{byte:02x}").expect("a text takes what is written to it");
        }
        if !filter.is_empty() {
            name.push('#');
            name.push_str(filter);
        }
        name
    }
}

impl fmt::Debug for FilterFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilterFile({}, {} bytes)", self.filter_name(""), self.bytes.len())
    }
}

/// The parsed text after the prefix of a filter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    pub(crate) file: &'a str,
    /// The checksum, if the file was shipped.
    pub(crate) digest: Option<Digest>,
    /// The filter; empty for the only one.
    pub(crate) filter: &'a str,
}

impl<'a> Reference<'a> {
    pub(crate) fn parse(name: &'a str) -> Self {
        let (file, filter) = name.rsplit_once('#').unwrap_or((name, ""));
        match file.rsplit_once('=').and_then(|(file, digits)| Some((file, parse_digest(digits)?))) {
            Some((file, digest)) => Self { file, digest: Some(digest), filter },
            None => Self { file, digest: None, filter },
        }
    }
}

fn parse_digest(digits: &str) -> Option<Digest> {
    let mut digest = Digest::default();
    if digits.len() != 2 * digest.len() || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_file_checksum_and_filter() {
        let file = FilterFile::new("a=b.so", b"\x7fELF and more".to_vec()).unwrap();
        let name = file.filter_name("mean");
        let (prefix, rest) = name.split_once(':').unwrap();
        let parsed = Reference::parse(rest);
        assert_eq!((prefix, parsed.file, parsed.filter), ("native", "a_b.so", "mean"));
        assert_eq!(parsed.digest, Some(digest_of(b"\x7fELF and more")));
    }

    #[test]
    fn a_file_with_an_equals_sign_in_its_path_needs_no_checksum() {
        let parsed = Reference::parse("./v=2/libmean.so#mean");
        let expected = Reference { file: "./v=2/libmean.so", digest: None, filter: "mean" };
        assert_eq!(parsed, expected);
        assert_eq!(Reference::parse("libmean.so").filter, "");
    }

    #[test]
    fn what_is_no_file_of_filters_is_not_shipped() {
        let kind = FilterFile::new("notes.txt", b"hello".to_vec()).unwrap_err();
        assert_eq!(
            kind.to_string(),
            "filters 'notes.txt' are neither a shared object nor WebAssembly"
        );
        let long = FilterFile::new("long", vec![0; FILE_BYTES_MAX + 1]).unwrap_err();
        assert!(matches!(long, ExtensionError::TooLong { .. }));
    }
}
