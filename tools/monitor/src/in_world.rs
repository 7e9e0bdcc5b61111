//! The tree inside the job: the last ranks of the program become the tool's, and each starts a leaf
//! that attaches to the tree.
//!
//! Owns the variables that divide the world (`bindings/mpi/world`), the file by which leaves find
//! the tree, and the terms of that tree. Leaves come only once the program runs, so that it is
//! started first and its ranks wait for them.

use std::cell::Cell;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sapwood::{Attach, NetworkBuilder};
use sapwood_command_line::exit::Failure;
use sapwood_topology::NodeSet;

use super::leaf::LEAF;
use super::placement::Placement;
use super::shim;

/// How long the program may take to come to `MPI_Init`, and its leaves to attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(60);
/// Divides the words of a leaf's command, as `bindings/mpi/world/tool.c` reads it.
const DIVIDER: &str = "\x1f";
/// The interface for leaves of this host.
const LOOPBACK: &str = "lo";

/// The tree of a job that has ranks for it.
#[derive(Clone, Debug)]
pub(crate) struct InWorld {
    /// How many ranks are the tool's.
    pub(crate) tools: u32,
    /// The library that divides the world.
    library: PathBuf,
    /// Set while the tree is opened, so that only that is given up when the program ends.
    is_opening: Rc<Cell<bool>>,
}

impl InWorld {
    /// The tree of a job whose last `tools` ranks are the tool's.
    ///
    /// # Errors
    /// One line when no rank is left for the program, or the library is not installed.
    pub(crate) fn new(tools: u32, ranks: Option<u32>, shim: &Path) -> Result<Self, String> {
        if let Some(ranks) = ranks.filter(|&ranks| ranks <= tools) {
            return Err(format!(
                "--in-world {tools} leaves the program none of its {ranks} ranks; start it on more \
                 than {tools}"
            ));
        }
        let name = shim.file_name().unwrap_or_default().to_string_lossy();
        let library = shim.with_file_name(name.replace("libsapwood-mpi-", "libsapwood-world-"));
        if !library.is_file() {
            return Err(format!(
                "'{}' is missing, the library that divides the program's MPI_COMM_WORLD; build it with 'make shim'",
                library.display()
            ));
        }
        Ok(Self { tools, library, is_opening: Rc::default() })
    }

    /// What the program's ranks need beside the variables of every job, of which the preloaded
    /// libraries are the first.
    ///
    /// # Errors
    /// When the program of the leaves is not installed.
    pub(crate) fn add_to(
        &self,
        variables: &mut Vec<(OsString, OsString)>,
        base: &str,
        shim: &Path,
    ) -> Result<(), Failure> {
        for (name, value) in variables.iter_mut() {
            if name == shim::PRELOAD_VARIABLE {
                // Behind the shim, which then counts what the program sees.
                value.push(":");
                value.push(&self.library);
            }
        }
        let program = sapwood::node_program()?;
        let program = std::path::absolute(&program).unwrap_or(program);
        let tools = self.tools.to_string();
        let shim = shim.to_string_lossy();
        let words = [&*program.to_string_lossy(), LEAF, base, &tools, &shim].join(DIVIDER);
        variables.extend([
            ("SAPWOOD_MPI_WORLD_TOOLS".into(), tools.into()),
            ("SAPWOOD_MPI_WORLD_COMMAND".into(), words.into()),
            (sapwood_launch::JOIN_VARIABLE.into(), join_file(base).into()),
        ]);
        Ok(())
    }

    /// The terms on which leaves come: by themselves, for as long as the program runs.
    pub(crate) fn terms(
        &self,
        builder: NetworkBuilder,
        base: &str,
        program_end: OwnedFd,
    ) -> NetworkBuilder {
        let is_opening = Rc::clone(&self.is_opening);
        is_opening.set(true);
        let has_ended = move || is_opening.get() && sapwood_launch::has_ended(&program_end);
        builder
            .attach(Attach::new().join_file(join_file(base)).timeout(ATTACH_LIMIT))
            .interfaces(LOOPBACK)
            .allow_missing()
            .interrupt(has_ended)
    }

    /// The tree stands.
    pub(crate) fn opened(&self) {
        self.is_opening.set(false);
    }
}

/// Whether the tool's ranks can serve ranks that are placed like this.
///
/// # Errors
/// One line when some are on other hosts: why these cannot be served.
pub(crate) fn check_hosts(placement: &Placement) -> Result<(), String> {
    let Placement::Hosts(hosts) = placement else { return Ok(()) };
    let named: NodeSet = hosts.names.iter().map(ToString::to_string).collect();
    Err(format!(
        "--in-world serves ranks of this host only, and these run on {named}: the tool's ranks are \
         the last ones of the job, so that not every host has one, and they find the tree by a file \
         and an interface of this host; leave --in-world out for a tree beside the job"
    ))
}

/// The file that tells leaves where the tree is, and beside which its key lies. Both are removed
/// with the tree.
fn join_file(base: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{base}.join"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::JobHosts;

    #[test]
    fn a_job_on_several_hosts_is_refused_with_the_reason() {
        let names = ["n1", "n2"].map(|name| name.parse().expect("a host's name")).to_vec();
        let hosts = JobHosts { names, ..JobHosts::default() };
        let error = check_hosts(&Placement::Hosts(hosts)).unwrap_err();
        assert!(error.contains("run on n[1-2]: the tool's ranks are the last ones"), "{error}");
        assert!(!error.contains('\n') && check_hosts(&Placement::Here(Some(4))).is_ok());
    }

    #[test]
    fn the_program_keeps_a_rank() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let shim = folder.path().join("libsapwood-mpi-openmpi.so");
        let error = InWorld::new(2, Some(2), &shim).unwrap_err();
        assert!(error.contains("none of its 2 ranks"), "{error}");
        let error = InWorld::new(2, Some(3), &shim).unwrap_err();
        assert!(error.contains("libsapwood-world-openmpi.so' is missing"), "{error}");
        std::fs::write(folder.path().join("libsapwood-world-openmpi.so"), "").expect("a file");
        assert!(InWorld::new(2, Some(3), &shim).is_ok());
        assert!(InWorld::new(2, None, &shim).is_ok());
    }
}
