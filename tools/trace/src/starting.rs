//! How a program is started and watched, of the commands that may do so.

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
}

impl Starting {
    /// These, and nothing of what the commands have by themselves.
    pub(crate) fn wishes(&self) -> WhyWishes {
        WhyWishes { topology: self.topology.clone(), mpi: self.mpi, ..WhyWishes::default() }
    }
}
