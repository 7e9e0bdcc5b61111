//! The shim that is preloaded into the program: where its file lies, and the environment that makes
//! the program's ranks load it and find their leaves.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::leaves::Leaves;
use super::linkage::Abi;
use super::preload::with_shim;

/// A folder to look for the shims in, before those beside this program.
const FOLDER_VARIABLE: &str = "SAPWOOD_LIB_DIR";
const TRANSPORT_VARIABLE: &str = "SAPWOOD_MPI_TRANSPORT";
pub(crate) const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// The shim's file for an ABI.
///
/// # Errors
/// One line with the folders that were searched.
pub(crate) fn find(abi: Abi) -> Result<PathBuf, String> {
    let name = format!("libsapwood-mpi-{}.so", abi.suffix());
    let folders = folders();
    let found = folders.iter().map(|folder| folder.join(&name)).find(|file| file.is_file());
    let file = found.ok_or_else(|| {
        let searched: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!(
            "the shim for {}, {name}, is in none of {}; build it with 'make shim' or name its \
             folder in {FOLDER_VARIABLE}",
            abi.name(),
            searched.join(", ")
        )
    })?;
    let file = std::path::absolute(&file).unwrap_or(file);
    // The loader divides the list at these, and knows no way to write them.
    if file.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(format!(
            "'{}' cannot be preloaded: its path has a blank or a colon; name another folder in \
             {FOLDER_VARIABLE}",
            file.display()
        ));
    }
    Ok(file)
}

/// An ABI whose shim is here; Open MPI's, if none is.
pub(crate) fn any() -> Abi {
    let all = [Abi::OpenMpi, Abi::Mpich, Abi::Standard];
    all.into_iter().find(|&abi| find(abi).is_ok()).unwrap_or(Abi::OpenMpi)
}

/// Where shims are looked for: in the folder that is named, beside this program, and in the `lib`
/// beside its `bin`.
pub fn folders() -> Vec<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|named| !named.is_empty());
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program.parent().unwrap_or(Path::new("."));
    let above = folder.parent().unwrap_or(folder);
    let beside = [folder.join("lib/sapwood"), above.join("lib/sapwood")];
    named.map(PathBuf::from).into_iter().chain(beside).collect()
}

/// Looks that the ranks will send their counts to the tree, and not elsewhere.
///
/// # Errors
/// One line that names the variable.
pub(crate) fn check_transport() -> Result<(), String> {
    let chosen = std::env::var_os(TRANSPORT_VARIABLE).filter(|chosen| !chosen.is_empty());
    match chosen {
        Some(chosen) if chosen != "tree" => Err(format!(
            "{TRANSPORT_VARIABLE} is '{}', by which nothing reaches the tree of 'sapwood mpi'; \
             unset it, or start the program without 'sapwood mpi'",
            chosen.to_string_lossy()
        )),
        _ => Ok(()),
    }
}

/// The variables that the program's ranks have. A leaf may start later than they by `wait`.
pub(crate) fn environment(
    shim: &Path,
    base: &str,
    leaves: &Leaves,
    wait: Duration,
) -> Vec<(OsString, OsString)> {
    let preload = with_shim(std::env::var_os(PRELOAD_VARIABLE), shim);
    let number = |number: u32| OsString::from(number.to_string());
    vec![
        (PRELOAD_VARIABLE.into(), preload),
        ("SAPWOOD_MPI_LEAVES".into(), base.into()),
        ("SAPWOOD_MPI_RANKS_PER_LEAF".into(), number(leaves.ranks_per_leaf)),
        ("SAPWOOD_MPI_LEAF_COUNT".into(), number(leaves.per_host)),
        ("SAPWOOD_MPI_LEAF_WAIT_MS".into(), wait.as_millis().to_string().into()),
    ]
}
