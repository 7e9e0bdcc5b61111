//! Where the shim stands among libraries that are preloaded already.
//!
//! Some insist on being the first, as those of sanitizers; but one that takes MPI's functions would
//! hide its calls from a shim behind it. From in front the shim passes every call on to it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};

/// A larger file is not looked into.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The list with the shim in front of the first library that takes MPI's functions, or last.
pub(crate) fn with_shim(before: Option<OsString>, shim: &Path) -> OsString {
    let before = before.unwrap_or_default();
    let is_between = |byte: &u8| matches!(byte, b' ' | b':');
    let parts = before.as_bytes().split(is_between).filter(|part| !part.is_empty());
    let mut libraries: Vec<&Path> = parts.map(|part| Path::new(OsStr::from_bytes(part))).collect();
    let place = libraries.iter().position(|library| takes_mpi(library)).unwrap_or(libraries.len());
    libraries.insert(place, shim);
    let libraries: Vec<&OsStr> = libraries.iter().map(|library| library.as_os_str()).collect();
    libraries.join(OsStr::new(":"))
}

/// Whether a library has functions of MPI's names, and is not MPI itself.
fn takes_mpi(library: &Path) -> bool {
    let is_small = fs::metadata(library).is_ok_and(|file| file.len() <= FILE_BYTES_MAX);
    let Some(bytes) = is_small.then(|| fs::read(library).ok()).flatten() else { return false };
    let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) else { return false };
    file.dynamic_symbols().any(|symbol| {
        let is_mpi = |name: &[u8]| name.starts_with(b"MPI_") || name.starts_with(b"mpi_");
        symbol.is_definition() && symbol.name_bytes().is_ok_and(is_mpi)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_before_stays_in_front() {
        let shim = Path::new("/lib/shim.so");
        assert_eq!(with_shim(None, shim), "/lib/shim.so");
        assert_eq!(with_shim(Some("".into()), shim), "/lib/shim.so");
        assert_eq!(with_shim(Some("/a.so /b.so".into()), shim), "/a.so:/b.so:/lib/shim.so");
    }

    #[test]
    fn a_file_without_functions_of_mpi_takes_none() {
        assert!(!takes_mpi(Path::new("/nowhere.so")));
        assert!(!takes_mpi(&std::env::current_exe().expect("this test's own file")));
    }
}
