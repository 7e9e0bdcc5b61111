//! Processes that another manager starts: an MPI launcher, Flux, Kubernetes, a batch system that is
//! not known here.
//!
//! Nothing is started on another host, so that this launcher only refuses hosts for which something
//! would have to be. What it owns is the other end: how a process that such a manager has started
//! learns where to go, and which of them it is.

use std::env;

use crate::{LaunchError, Launcher, Local, Order, require_local};

/// Says where a process that was started by another manager is to go: the path of a join file, or
/// the front-end's address (`tcp:HOST:PORT`).
pub const JOIN_VARIABLE: &str = "SAPWOOD_JOIN";

/// How long such a process waits until it is taken in, in seconds: the front-end may be started
/// later than its leaves.
pub const JOIN_TIMEOUT_VARIABLE: &str = "SAPWOOD_JOIN_TIMEOUT";

/// By which managers number the processes that they start. Those that are set inside of another
/// manager's jobs stand first: in an allocation of Slurm, `mpiexec` sets its own and leaves the one
/// of the step that runs its daemons.
const RANK_VARIABLES: [&str; 7] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "JOB_COMPLETION_INDEX",
    "SLURM_PROCID",
];

/// The manager's number of this process, from 0, and the variable that says so.
///
/// # Errors
/// [`LaunchError::ManagerRank`] where the first of the variables that is set holds no number.
pub fn rank_by_manager() -> Result<Option<(u32, &'static str)>, LaunchError> {
    rank_among(|name| env::var(name).ok().filter(|value| !value.is_empty()))
}

fn rank_among(
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<(u32, &'static str)>, LaunchError> {
    for name in RANK_VARIABLES {
        if let Some(value) = variable(name) {
            let rank = value.parse();
            let rank = rank.map_err(|_| LaunchError::ManagerRank { variable: name, value })?;
            return Ok(Some((rank, name)));
        }
    }
    Ok(None)
}

/// Starts nothing on other hosts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attach;

impl Launcher for Attach {
    fn name(&self) -> &'static str {
        "attach"
    }

    fn check_host(&self, host: &str) -> Result<(), LaunchError> {
        require_local(host)
    }

    fn client(&self, host: &str, command: &str) -> Order<'static> {
        Local::new().client(host, command)
    }

    fn is_worth_retrying(&self, _words: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(set: &[(&str, &str)]) -> Result<Option<(u32, &'static str)>, LaunchError> {
        let find = |name: &str| set.iter().find(|(known, _)| *known == name);
        rank_among(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_manager_that_is_nearest_numbers_its_processes() {
        assert_eq!(rank(&[]).unwrap(), None);
        assert_eq!(rank(&[("JOB_COMPLETION_INDEX", "3")]).unwrap().unwrap().0, 3);
        let inside_slurm = [("SLURM_PROCID", "0"), ("PMI_RANK", "5")];
        assert_eq!(rank(&inside_slurm).unwrap(), Some((5, "PMI_RANK")));
        let error = rank(&[("PMIX_RANK", "many")]).unwrap_err().to_string();
        assert!(error.contains("PMIX_RANK") && error.contains("'many'"), "{error}");
    }

    #[test]
    fn nothing_is_started_elsewhere() {
        assert!(Attach.check_host("localhost").is_ok());
        assert!(Attach.check_host("203.0.113.1").is_err());
    }
}
