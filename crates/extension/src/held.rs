//! A shipped file, held in anonymous memory.
//!
//! The loader of shared objects wants a path. A file in a folder, even one of mode 0700, stays
//! there when its process is killed; memory that has a descriptor and no name goes with the last
//! process that uses it, whatever ends that, and `/proc/self/fd` gives it a path. Sealed, it cannot
//! change under processes that have checked it.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::ExtensionError;

/// The file, until its descriptor is closed and all that was loaded from it is gone.
#[derive(Debug)]
pub(crate) struct HeldFile {
    descriptor: OwnedFd,
}

impl HeldFile {
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Result<Self, ExtensionError> {
        let held = |error: std::io::Error| ExtensionError::Held {
            file: name.to_string(),
            reason: error.to_string(),
        };
        // Beyond the limit a write raises a signal that would end the program.
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes.len() as u64 > limit) {
            return Err(held(Errno::FBIG.into()));
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = match memfd_create("sapwood-filter", flags | MemfdFlags::EXEC) {
            // Kernels before 6.3 do not know that flag, and need none.
            Err(Errno::INVAL) => memfd_create("sapwood-filter", flags),
            made => made,
        };
        let mut file = File::from(made.map_err(|error| held(error.into()))?);
        file.write_all(bytes).map_err(held)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(|error| held(error.into()))?;
        Ok(Self { descriptor: file.into() })
    }

    /// A path by which this process can open it, spelled as no other one ever was: the loader knows
    /// what it has loaded by path, and would take the next file with that descriptor for this one.
    pub(crate) fn path(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let bits = (0..u32::BITS - number.leading_zeros()).map(|bit| number >> bit & 1);
        let spelling: String = bits.map(|bit| if bit == 0 { "./" } else { ".//" }).collect();
        format!("/proc/self/fd/{spelling}{}", self.descriptor.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_like_another_and_all_lead_to_the_bytes() {
        let held = HeldFile::new("x", b"bytes").unwrap();
        let paths: std::collections::BTreeSet<String> = (0..100).map(|_| held.path()).collect();
        assert_eq!(paths.len(), 100);
        for path in paths {
            assert_eq!(std::fs::read(path).unwrap(), b"bytes");
        }
        let mut file = File::from(held.descriptor);
        assert!(file.write_all(b"more").is_err(), "it is sealed");
    }
}
