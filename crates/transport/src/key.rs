//! The network's key: 32 random bytes that every process of one network knows.
//!
//! It travels by an inherited descriptor or in a file that only its owner can read, never on a
//! command line or in the environment. It is wiped from memory when dropped and never printed.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use zeroize::Zeroizing;

use crate::{Error, Result, check_file_limit};

/// The length of a key, in bytes.
pub const KEY_BYTES: usize = 32;

/// The length of a key's text: two hexadecimal digits a byte.
const KEY_TEXT_BYTES: usize = 2 * KEY_BYTES;

/// One more than the longest thing that is read as a key (its text and a line end).
const KEY_READ_BYTES_MAX: usize = KEY_TEXT_BYTES + 2;

/// How long a pipe may take to deliver a key.
const KEY_READ_DEADLINE: Duration = Duration::from_secs(10);

/// The secret of one network.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl Key {
    /// A new key from the system's randomness.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has none to give.
    pub fn generate() -> Result<Self> {
        let mut bytes = Zeroizing::new([0_u8; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|cause| Error::io("draw a random key", io::Error::other(cause.to_string())))?;
        Ok(Self(bytes))
    }

    /// Reads a key out of a descriptor and closes it: a memory file made by
    /// [`Self::to_descriptor`], or a pipe whose writer closes it. It holds 64 hexadecimal digits
    /// (and perhaps a line end) or 32 raw bytes, and nothing else.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if it holds something else or nothing within ten seconds.
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self> {
        let place = "the key descriptor";
        let mut file = File::from(descriptor);
        let mut bytes = Zeroizing::new([0_u8; KEY_READ_BYTES_MAX]);
        // A memory file is shared between all children that inherit it, together with its
        // position; reading at offset 0 serves each of them. A pipe has no offset.
        let length = match file.read_at(bytes.as_mut_slice(), 0) {
            Ok(length) => length,
            Err(cause) if cause.raw_os_error() == Some(rustix::io::Errno::SPIPE.raw_os_error()) => {
                read_pipe(&mut file, bytes.as_mut_slice())?
            }
            Err(cause) => return Err(Error::io("read the key descriptor", cause)),
        };
        parse(&bytes[..length], place)
    }

    /// Reads a key file: regular, owned by this user, not readable by other users.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if one of these does not hold or its contents are no key;
    /// [`Error::Io`] if it cannot be read.
    pub fn from_file(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let invalid = |problem| Error::InvalidKey { place: place.clone(), problem };
        let failed = |cause| Error::io(format!("read the key file {place}"), cause);
        // Non-blocking, so that a named pipe put there cannot hold this process up.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(invalid("it is no regular file"));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(invalid("it belongs to another user; make your own copy"));
        }
        if found.mode() & 0o177 != 0 {
            return Err(invalid("others may read or change it; run chmod 600 on it"));
        }
        let mut bytes = Zeroizing::new([0_u8; KEY_READ_BYTES_MAX]);
        let length = file.read_at(bytes.as_mut_slice(), 0).map_err(failed)?;
        parse(&bytes[..length], &place)
    }

    /// Reads a key's text, as [`Self::write_file`] writes it; `place` says where it stood.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if it is no key.
    pub fn from_text(text: &str, place: &str) -> Result<Self> {
        parse(text.as_bytes(), place)
    }

    /// Writes the key's text to a new file that only its owner may read (mode 0600).
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists or cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<()> {
        let failed = |cause| Error::io(format!("write the key file {}", path.display()), cause);
        check_file_limit(KEY_TEXT_BYTES as u64 + 1).map_err(failed)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let mut text = Zeroizing::new([0_u8; KEY_TEXT_BYTES + 1]);
        for (index, byte) in self.0.iter().enumerate() {
            text[2 * index] = HEX[usize::from(byte >> 4)];
            text[2 * index + 1] = HEX[usize::from(byte & 15)];
        }
        text[KEY_TEXT_BYTES] = b'\n';
        file.write_all(text.as_slice()).map_err(failed)
    }

    /// A sealed memory file that holds the key, for children to inherit. It can be inherited by
    /// any number of them.
    ///
    /// It is close-on-exec: the process that starts a child makes it inheritable there, with `dup2`
    /// onto the number that the child is given, or with [`Self::to_inheritable_descriptor`].
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor is free.
    pub fn to_descriptor(&self) -> Result<OwnedFd> {
        let failed = |cause: io::Error| Error::io("make a key descriptor", cause);
        check_file_limit(KEY_BYTES as u64).map_err(failed)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let descriptor =
            rustix::fs::memfd_create("sapwood-key", flags).map_err(|cause| failed(cause.into()))?;
        let file = File::from(descriptor);
        file.write_all_at(self.0.as_slice(), 0).map_err(failed)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals).map_err(|cause| failed(cause.into()))?;
        Ok(file.into())
    }

    /// As [`Self::to_descriptor`], without close-on-exec: every program started from then on
    /// inherits it until it is dropped, so make it late and drop it early.
    ///
    /// # Errors
    /// [`Error::Io`] if no descriptor is free.
    pub fn to_inheritable_descriptor(&self) -> Result<OwnedFd> {
        let descriptor = self.to_descriptor()?;
        rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::empty())
            .map_err(|cause| Error::io("make the key descriptor inheritable", cause))?;
        Ok(descriptor)
    }

    /// The key of these bytes, which came by a channel that keeps them secret.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The secret itself, for a channel that keeps it: never for a command line, a variable or a
    /// log.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<[u8; KEY_BYTES]> {
        self.0.clone()
    }

    /// The secret itself, for the handshake.
    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Reads until the writer closes, the buffer is full or the deadline passes.
fn read_pipe(file: &mut File, bytes: &mut [u8]) -> Result<usize> {
    let failed = |cause| Error::io("read the key descriptor", cause);
    let started = Instant::now();
    let mut length = 0;
    while length < bytes.len() {
        let left = KEY_READ_DEADLINE.saturating_sub(started.elapsed());
        let left = rustix::event::Timespec::try_from(left)
            .map_err(|_| Error::ApiMisuse { rule: "the deadline of a key is short" })?;
        let mut ready = [PollFd::new(file, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&left)) {
            Ok(0) => {
                let problem = "no further bytes arrived within ten seconds; close its writing end";
                return Err(Error::InvalidKey { place: "the key descriptor".to_owned(), problem });
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(cause) => return Err(failed(cause.into())),
        }
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(cause) => return Err(failed(cause)),
        }
    }
    Ok(length)
}

fn parse(bytes: &[u8], place: &str) -> Result<Key> {
    let invalid = |problem| Error::InvalidKey { place: place.to_owned(), problem };
    let mut key = Zeroizing::new([0_u8; KEY_BYTES]);
    if bytes.len() == KEY_BYTES {
        key.copy_from_slice(bytes);
        return Ok(Key(key));
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if text.len() != KEY_TEXT_BYTES {
        return Err(invalid("it holds neither 64 hexadecimal digits nor 32 bytes"));
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    for (byte, pair) in key.iter_mut().zip(text.chunks_exact(2)) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(invalid("it holds a character that is no hexadecimal digit"));
        };
        *byte = (high << 4 | low) as u8;
    }
    Ok(Key(key))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn piped(text: &[u8]) -> Result<Key> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(text).unwrap();
        drop(writer);
        Key::from_descriptor(reader.into())
    }

    #[test]
    fn one_descriptor_serves_several_children() {
        let key = Key::generate().unwrap();
        let descriptor = key.to_descriptor().unwrap();
        for _ in 0..3 {
            let copy = Key::from_descriptor(descriptor.try_clone().unwrap()).unwrap();
            assert_eq!(copy.bytes(), key.bytes());
        }
        let flags = rustix::io::fcntl_getfd(key.to_inheritable_descriptor().unwrap()).unwrap();
        assert!(flags.is_empty());
    }

    #[test]
    fn a_pipe_holds_text_or_raw_bytes_and_nothing_else() {
        assert_eq!(piped(&[7; 32]).unwrap().bytes(), &[7; 32]);
        assert_eq!(piped("0A".repeat(32).as_bytes()).unwrap().bytes(), &[10; 32]);
        assert_eq!(piped(format!("{}\n", "0a".repeat(32)).as_bytes()).unwrap().bytes(), &[10; 32]);
        for wrong in ["", "0a", &"0a".repeat(33), &"0a".repeat(500), &"zz".repeat(32)] {
            assert!(piped(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(piped(&[7; 31]).is_err());
        assert!(piped(&[7; 33]).is_err());
    }

    #[test]
    fn a_key_file_is_private_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let key = Key::generate().unwrap();
        key.write_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Key::from_file(&path).unwrap().bytes(), key.bytes());
        assert!(key.write_file(&path).is_err(), "an existing file is never overwritten");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Key::from_file(&path).unwrap_err().to_string().contains("chmod 600"));
        assert!(Key::from_file(folder.path()).unwrap_err().to_string().contains("regular"));
        assert!(Key::from_file(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_key_is_never_printed() {
        assert_eq!(format!("{:?}", Key::generate().unwrap()), "Key(..)");
    }
}
