//! The tree inside the job: some ranks of the program become the tool's, and each starts a leaf
//! that attaches to the tree.
//!
//! Owns which ranks these are, the variables that divide the world (`bindings/mpi/world`), the file
//! by which leaves find the tree, and the terms of that tree. Leaves come only once the program
//! runs, so that it is started first and its ranks wait for them. On several hosts the tool's rank
//! of this host reads the file, and sends it to the others through MPI.

use std::cell::{Cell, OnceCell};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use sapwood::{Attach, NetworkBuilder};
use sapwood_command_line::exit::Failure;
use sapwood_topology::NodeSet;

use super::leaf::{HOSTS_VARIABLE, LEAF};
use super::leaves::Leaves;
use super::placement::{JobHosts, Placement};
use super::shim;

/// How long the program may take to come to `MPI_Init`, and its leaves to attach.
const ATTACH_LIMIT: Duration = Duration::from_secs(60);
/// Divides the words of a leaf's command and the names of hosts, as `bindings/mpi/world` reads
/// them: no launcher takes it for one of its own.
const DIVIDER: &str = "\x1f";
/// The interface for leaves of this host.
const LOOPBACK: &str = "lo";
/// Behind the number of ranks where these are of each host.
const OF_EACH_HOST: &str = "/host";

/// Which ranks of the job are the tool's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolRanks {
    /// The last ones of the job.
    Last(NonZeroU32),
    /// The last ones of each host.
    OfEachHost(NonZeroU32),
}

impl ToolRanks {
    /// Reads `N` or `N/host`.
    ///
    /// # Errors
    /// A line for the user that says what is needed.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<NonZeroU32>().map_err(|_| {
                "a number of ranks is needed, such as 2, or a number of each host's, such as \
                 1/host"
                    .to_owned()
            })
        };
        match text.strip_suffix(OF_EACH_HOST) {
            Some(text) => number(text).map(Self::OfEachHost),
            None => number(text).map(Self::Last),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Last(number) | Self::OfEachHost(number) => number.get(),
        }
    }
}

impl fmt::Display for ToolRanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last(number) => write!(f, "{number}"),
            Self::OfEachHost(number) => write!(f, "{number}{OF_EACH_HOST}"),
        }
    }
}

/// The tree of a job that has ranks for it.
#[derive(Debug)]
pub(crate) struct InWorld {
    /// How many ranks are the tool's: of each host, where there are several.
    per_host: u32,
    /// The hosts in the order of their leaves; none if all ranks are on this one.
    hosts: Vec<String>,
    /// The library that divides the world.
    library: PathBuf,
    /// Set while the tree is opened, so that only that is given up when the program ends.
    is_opening: Rc<Cell<bool>>,
    /// Where the join file comes to be, for a job on several hosts: made before the ranks start,
    /// since they look for it to see which of them is on this host.
    folder: OnceCell<JoinFolder>,
}

impl InWorld {
    /// The tree of a job in which these ranks are the tool's.
    ///
    /// # Errors
    /// One line when ranks that are placed like this cannot be served, no rank is left for the
    /// program, or the library is not installed.
    pub(crate) fn new(
        tools: ToolRanks,
        ranks: Option<u32>,
        shim: &Path,
        placement: &Placement,
    ) -> Result<Self, String> {
        check_hosts(tools, placement)?;
        let hosts = match placement {
            Placement::Hosts(hosts) => hosts.names.iter().map(ToString::to_string).collect(),
            Placement::Here(_) | Placement::Later => Vec::new(),
        };
        let name = shim.file_name().unwrap_or_default().to_string_lossy();
        let library = shim.with_file_name(name.replace("libsapwood-mpi-", "libsapwood-world-"));
        let (is_opening, folder) = (Rc::default(), OnceCell::new());
        let in_world = Self { per_host: tools.number(), hosts, library, is_opening, folder };
        let count = in_world.tools();
        if let Some(ranks) = ranks.filter(|&ranks| ranks <= count) {
            return Err(format!(
                "--in-world {tools} leaves the program none of its {ranks} ranks; start it on more \
                 than {count}"
            ));
        }
        if !in_world.library.is_file() {
            return Err(format!(
                "'{}' is missing, the library that divides the program's MPI_COMM_WORLD; build it with 'make shim'",
                in_world.library.display()
            ));
        }
        Ok(in_world)
    }

    /// How many ranks are the tool's in all.
    pub(crate) fn tools(&self) -> u32 {
        let hosts = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX).max(1);
        self.per_host.saturating_mul(hosts)
    }

    /// The leaves, one of each rank that is the tool's, for a program of this many ranks.
    ///
    /// # Errors
    /// One line when there are too many.
    pub(crate) fn leaves(
        &self,
        placement: &Placement,
        ranks: u32,
        fan_out: u32,
    ) -> Result<Leaves, String> {
        let Placement::Hosts(hosts) = placement else {
            return Leaves::inside(self.tools(), ranks, fan_out);
        };
        let count = u32::try_from(hosts.names.len()).unwrap_or(u32::MAX).max(1);
        let slots = hosts.slots_max.map(|slots| slots.saturating_sub(self.per_host));
        let ranks_max = slots.unwrap_or(ranks.div_ceil(count));
        Leaves::inside_on_hosts(&hosts.names, self.per_host, ranks_max, ranks, fan_out)
    }

    /// What the program's ranks need beside the variables of every job, of which the preloaded
    /// libraries are the first.
    ///
    /// # Errors
    /// When the program of the leaves is not installed, or no folder can be made for the join file.
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
        let tools = self.per_host.to_string();
        let shim = shim.to_string_lossy();
        let words = [&*program.to_string_lossy(), LEAF, base, &tools, &shim].join(DIVIDER);
        let join = self.join_file(base);
        if !self.hosts.is_empty() {
            let _ = self.folder.set(JoinFolder::make(join.parent().unwrap_or(Path::new("/")))?);
            variables.push((HOSTS_VARIABLE.into(), self.hosts.join(DIVIDER).into()));
        }
        variables.extend([
            ("SAPWOOD_MPI_WORLD_TOOLS".into(), tools.into()),
            ("SAPWOOD_MPI_WORLD_COMMAND".into(), words.into()),
            (sapwood_launch::JOIN_VARIABLE.into(), join.into()),
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
        let builder = builder
            .attach(Attach::new().join_file(self.join_file(base)).timeout(ATTACH_LIMIT))
            .allow_missing()
            .interrupt(has_ended);
        // Leaves of other hosts come by the interfaces that the user allows.
        if self.hosts.is_empty() { builder.interfaces(LOOPBACK) } else { builder }
    }

    /// The tree stands.
    pub(crate) fn opened(&self) {
        self.is_opening.set(false);
    }

    /// The file that tells leaves where the tree is, and beside which its key lies. Both are
    /// removed with the tree.
    fn join_file(&self, base: &str) -> PathBuf {
        let place = std::env::temp_dir();
        let place = std::path::absolute(&place).unwrap_or(place);
        match self.hosts.is_empty() {
            true => place.join(format!("{base}.join")),
            false => place.join(format!("{base}.tree")).join("join"),
        }
    }
}

/// A folder of this user's alone; dropping this removes it.
#[derive(Debug)]
struct JoinFolder(PathBuf);

impl JoinFolder {
    /// Makes it anew: one that is there is another's.
    fn make(path: &Path) -> Result<Self, Failure> {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(|error| {
            Failure::usage(format!(
                "the folder '{}' for the join file cannot be made: {error}; name another place in \
                 TMPDIR",
                path.display()
            ))
        })?;
        Ok(Self(path.to_path_buf()))
    }
}

impl Drop for JoinFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the tool's ranks can serve ranks that are placed like this.
///
/// # Errors
/// One line when they cannot: why.
fn check_hosts(tools: ToolRanks, placement: &Placement) -> Result<(), String> {
    let named =
        |hosts: &JobHosts| -> NodeSet { hosts.names.iter().map(ToString::to_string).collect() };
    match (tools, placement) {
        (ToolRanks::Last(number), Placement::Hosts(hosts)) => Err(format!(
            "--in-world {number} serves ranks of this host only, and these run on {}: the tool's \
             ranks are the last ones of the job, so that not every host has one; --in-world \
             1{OF_EACH_HOST} takes one of each host, and without --in-world the tree stands beside \
             the job",
            named(hosts)
        )),
        (ToolRanks::OfEachHost(_), Placement::Hosts(hosts)) if !hosts.have_this_one() => {
            Err(format!(
                "--in-world {tools} needs ranks on this host, and these run on {}: the tool's rank \
                 of this host tells the others where the tree is; give the command on one of these \
                 hosts, or leave --in-world out for a tree beside the job",
                named(hosts)
            ))
        }
        (ToolRanks::OfEachHost(_), Placement::Later) => Err(format!(
            "--in-world {tools} needs the hosts before the program starts, and 'srun' alone makes \
             its allocation later; give the command inside of 'salloc' or 'sbatch'"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sapwood_topology::HostName;

    fn tools(text: &str) -> ToolRanks {
        ToolRanks::read(text).expect("a number of ranks")
    }

    fn on(names: &[&str]) -> Placement {
        let name = |name: &&str| name.parse::<HostName>().expect("a host's name");
        let names = names.iter().map(name).collect();
        Placement::Hosts(JobHosts { names, slots_max: Some(4), ..JobHosts::default() })
    }

    /// A shim with the library beside it, in a folder.
    fn shim(folder: &Path) -> PathBuf {
        fs::write(folder.join("libsapwood-world-openmpi.so"), "").expect("a file");
        folder.join("libsapwood-mpi-openmpi.so")
    }

    #[test]
    fn ranks_of_the_tool_are_the_last_of_the_job_or_of_each_host() {
        for text in ["1", "12", "1/host", "2/host"] {
            assert_eq!(tools(text).to_string(), text);
        }
        assert_ne!(tools("2"), tools("2/host"));
        for wrong in ["", "0", "0/host", "/host", "1/node", "-1", "one"] {
            let error = ToolRanks::read(wrong).unwrap_err();
            assert!(error.contains("1/host"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_job_that_cannot_be_served_is_refused_with_the_reason() {
        // Names that no machine has, and so not this one.
        let several = on(&["n1.invalid", "n2.invalid"]);
        let refused =
            |text: &str, placement: &Placement| check_hosts(tools(text), placement).unwrap_err();
        let error = refused("1", &several);
        assert!(error.contains("run on n[1-2].invalid: the tool's ranks are the last"), "{error}");
        assert!(!error.contains('\n') && error.contains("--in-world 1/host takes"), "{error}");
        let error = refused("1/host", &several);
        let told = "needs ranks on this host, and these run on n[1-2].invalid";
        assert!(error.contains(told), "{error}");
        let error = refused("1/host", &Placement::Later);
        assert!(error.contains("inside of 'salloc'"), "{error}");
        for (text, placement) in [
            ("1", Placement::Here(Some(4))),
            ("1", Placement::Later),
            ("1/host", Placement::Here(None)),
            ("1/host", on(&["n1", "localhost"])),
        ] {
            assert_eq!(check_hosts(tools(text), &placement), Ok(()), "{text} on {placement:?}");
        }
    }

    #[test]
    fn the_program_keeps_a_rank() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = Placement::Here(None);
        let absent = folder.path().join("libsapwood-mpi-openmpi.so");
        let error = InWorld::new(tools("2"), Some(2), &absent, &here).unwrap_err();
        assert!(error.contains("none of its 2 ranks"), "{error}");
        let error = InWorld::new(tools("2"), Some(3), &absent, &here).unwrap_err();
        assert!(error.contains("libsapwood-world-openmpi.so' is missing"), "{error}");
        let shim = shim(folder.path());
        assert!(InWorld::new(tools("2"), Some(3), &shim, &here).is_ok());
        assert!(InWorld::new(tools("2"), None, &shim, &here).is_ok());
        let hosts = on(&["localhost", "n1", "n2"]);
        let error = InWorld::new(tools("2/host"), Some(6), &shim, &hosts).unwrap_err();
        assert!(error.contains("--in-world 2/host leaves the program none of its 6"), "{error}");
        assert!(InWorld::new(tools("2/host"), Some(7), &shim, &hosts).is_ok());
    }

    #[test]
    fn each_host_has_the_leaves_of_its_tool_ranks() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let leaves = |text: &str, placement: &Placement| {
            let shim = shim(folder.path());
            let in_world = InWorld::new(tools(text), None, &shim, placement).expect("a tree");
            let leaves = in_world.leaves(placement, 9, 8).expect("leaves");
            (in_world.tools(), leaves.count, leaves.per_host, leaves.hosts().len())
        };
        assert_eq!(leaves("2/host", &on(&["localhost", "n1", "n2"])), (6, 6, 2, 3));
        let here = Placement::Here(Some(4));
        assert_eq!(leaves("2/host", &here), leaves("2", &here));
        assert_eq!(leaves("2", &here), (2, 2, 2, 0));
    }

    #[test]
    fn the_folder_of_the_join_file_is_this_users_and_goes() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let path = place.path().join("tree");
        let folder = JoinFolder::make(&path).expect("a folder");
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).expect("it is there"));
        assert_eq!(mode & 0o077, 0);
        assert!(JoinFolder::make(&path).is_err(), "one that is there is not taken");
        drop(folder);
        assert!(!path.exists());
    }
}
