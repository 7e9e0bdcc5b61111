//! How a program is started and watched, of the commands that may do so.

use std::path::PathBuf;

use sapwood_monitor::{Abi, WhyWishes};

/// Options that mean something with a command only.
#[derive(clap::Args)]
pub(crate) struct Starting {
    /// MPI of the program, if it cannot be detected.
    #[arg(long, value_name = "ABI", requires = "command")]
    mpi: Option<Abi>,
    /// Shape of the tree, such as 8 or 2x4; the ranks are divided among its back-ends.
    #[arg(long, value_name = "SPEC", requires = "command")]
    topology: Option<String>,
    /// Have ranks record their calls in files of this folder on their hosts, which are left when
    /// they are killed; 'sapwood trace why --from DIR' reads them.
    #[arg(long, value_name = "DIR", requires = "command")]
    events_folder: Option<PathBuf>,
}

impl Starting {
    /// These, and nothing of what the commands have by themselves.
    pub(crate) fn wishes(&self) -> WhyWishes {
        WhyWishes {
            topology: self.topology.clone(),
            mpi: self.mpi,
            events_folder: self.events_folder.clone(),
            ..WhyWishes::default()
        }
    }
}
