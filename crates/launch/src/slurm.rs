//! Reaching the hosts of a Slurm allocation by job steps that share it with whatever runs there.
//!
//! Slurm proves by itself who the user is (munge), puts what is started into the job's own limits,
//! and ends it with the job. A step asks for nothing: no further processors, memory or devices, and
//! no MPI.

use std::time::Duration;

use crate::{LaunchError, Launcher, Order};

/// The variable by which a process learns that it is inside an allocation.
pub const SLURM_JOB_VARIABLE: &str = "SLURM_JOB_ID";

/// What `srun` says when the controller or a host is busy for the moment.
const PASSING_TROUBLES: [&str; 3] = ["Socket timed out", "temporarily disabled", "Job credential"];

/// Reaches the hosts of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slurm {
    job: Option<String>,
    connect_timeout: Duration,
}

impl Slurm {
    /// In the allocation of this number, which may be that of a job that runs already; none for the
    /// one that this process is in.
    pub fn new(job: Option<String>, connect_timeout: Duration) -> Self {
        Self { job, connect_timeout }
    }
}

impl Launcher for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn check_host(&self, host: &str) -> Result<(), LaunchError> {
        match host.is_empty() || host.starts_with('-') || host.contains(',') {
            true => Err(LaunchError::ApiMisuse { rule: "a host of an allocation has one name" }),
            false => Ok(()),
        }
    }

    fn client(&self, host: &str, command: &str) -> Order<'static> {
        let mut order = Order::new("srun");
        let wait = self.connect_timeout.as_secs().max(1);
        let mut words = vec![
            "--overlap".to_owned(),
            "--quiet".to_owned(),
            "--nodes=1".to_owned(),
            "--ntasks=1".to_owned(),
            format!("--nodelist={host}"),
            "--mem=0".to_owned(),
            "--gres=none".to_owned(),
            "--mpi=none".to_owned(),
            "--cpu-bind=none".to_owned(),
            "--unbuffered".to_owned(),
            format!("--immediate={wait}"),
        ];
        words.extend(self.job.as_ref().map(|job| format!("--jobid={job}")));
        words.extend(["/bin/sh", "-c", command].map(str::to_owned));
        order.arguments = words.into_iter().map(Into::into).collect();
        order
    }

    fn is_worth_retrying(&self, words: &str) -> bool {
        PASSING_TROUBLES.iter().any(|trouble| words.contains(trouble))
    }

    fn is_about_its_end(&self, line: &str) -> bool {
        line.starts_with("slurmstepd") && line.contains(": error: *** STEP ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_step_is_told_apart_from_other_lines() {
        let slurm = Slurm::new(None, Duration::from_secs(8));
        let end = "slurmstepd-node02: error: *** STEP 1.1 ON node02 CANCELLED AT 2026-01-01 ***";
        assert!(slurm.is_about_its_end(end));
        assert!(!slurm.is_about_its_end("slurmstepd: error: no space left"));
        assert!(!slurm.is_about_its_end("sapwood: *** STEP CANCELLED"));
    }

    #[test]
    fn a_step_asks_for_nothing_and_one_host() {
        let order = Slurm::new(Some("17".into()), Duration::from_secs(8)).client("node3", "exec a");
        let words: Vec<_> = order.arguments.iter().map(|word| word.to_str().unwrap()).collect();
        for word in ["--overlap", "--nodelist=node3", "--gres=none", "--mem=0", "--jobid=17"] {
            assert!(words.contains(&word), "{word}");
        }
        assert_eq!(words[words.len() - 3..], ["/bin/sh", "-c", "exec a"]);
    }
}
