//! How the processes of a network are started: on this machine, or on others too.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sapwood_launch::{REMOTE_SHELL_VARIABLE, SLURM_JOB_VARIABLE, Slurm, Ssh};
use sapwood_runtime::{Reach, RemoteOptions};
use sapwood_topology::{HostName, Topology};
use sapwood_transport::InterfaceRule;

#[cfg(doc)]
use crate::NetworkBuilder;
use crate::{Attach, Error, Result};

/// How long a host may take to answer by default.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many hosts one process reaches at the same time by default.
const CONCURRENT_STARTS: u32 = 32;

/// How the hosts of a topology are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// Automatic: on this machine if all hosts name it; otherwise by Slurm inside an allocation of
    /// it, and else by ssh.
    #[default]
    Automatic,
    /// All processes run on this machine; other hosts are refused.
    Local,
    /// By the user's ssh client, each process starting those below it. What is planned for this
    /// machine's own name needs no log-in, except after [`NetworkBuilder::reach_own_host`].
    Ssh,
    /// By steps of a Slurm allocation: the one that this process is in, or that
    /// [`NetworkBuilder::slurm_job`] names. They overlap with what runs there.
    Slurm,
    /// Not at all: the back-ends are started by another manager and attach by themselves, from
    /// wherever they run. Communication processes run on this machine. See
    /// [`NetworkBuilder::attach`].
    Attach,
}

/// Its name on command lines.
impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Automatic => "auto",
            Self::Local => "local",
            Self::Ssh => "ssh",
            Self::Slurm => "slurm",
            Self::Attach => "attach",
        })
    }
}

impl FromStr for Launcher {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let known = [Self::Automatic, Self::Local, Self::Ssh, Self::Slurm, Self::Attach];
        let named = known.into_iter().find(|launcher| launcher.to_string() == name);
        named.ok_or_else(|| {
            format!("there is no launcher '{name}': auto, local, ssh, slurm or attach")
        })
    }
}

/// One command of those that start a network: see [`NetworkBuilder::commands`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartCommand {
    /// The host on which it is given, as the topology calls it.
    pub host: String,
    /// The rank of the process that it starts.
    pub rank: sapwood_packet::Rank,
    /// The command, as a shell would read it.
    pub line: String,
}

/// The settings of a builder for other hosts.
#[derive(Clone, Debug)]
pub(crate) struct RemoteTerms {
    pub(crate) launcher: Launcher,
    pub(crate) reaches_own_host: bool,
    pub(crate) shell: Option<Vec<String>>,
    pub(crate) prefix: Vec<String>,
    pub(crate) slurm_job: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) concurrent: u32,
    pub(crate) interfaces: String,
    pub(crate) attach: Option<Attach>,
}

impl Default for RemoteTerms {
    fn default() -> Self {
        Self {
            launcher: Launcher::Automatic,
            reaches_own_host: false,
            shell: None,
            prefix: Vec::new(),
            slurm_job: None,
            connect_timeout: CONNECT_TIMEOUT,
            concurrent: CONCURRENT_STARTS,
            interfaces: String::new(),
            attach: None,
        }
    }
}

impl RemoteTerms {
    /// The options for a topology; none if all of it is on this machine.
    pub(crate) fn options_for(&self, topology: &Topology) -> Result<Option<RemoteOptions>> {
        let is_remote = match self.launcher {
            Launcher::Local => false,
            Launcher::Ssh | Launcher::Slurm | Launcher::Attach => true,
            Launcher::Automatic => self.reaches_own_host || has_other_hosts(topology),
        };
        let launched = |error| Error::from(sapwood_runtime::RuntimeError::Launch(error));
        if !is_remote {
            for host in topology.hosts() {
                sapwood_launch::require_local(host.as_str()).map_err(launched)?;
            }
            return Ok(None);
        }
        if !self.interfaces.is_empty() {
            self.interfaces.parse::<InterfaceRule>()?;
        }
        let (reach, launcher) = self.reach();
        for host in topology.hosts() {
            launcher.check_host(host.as_str()).map_err(launched)?;
        }
        Ok(Some(RemoteOptions {
            reach,
            reaches_own_host: self.reaches_own_host,
            connect_milliseconds: u32::try_from(self.connect_timeout.as_millis())
                .unwrap_or(u32::MAX),
            concurrent: self.concurrent,
            interfaces: self.interfaces.clone(),
            directory: std::env::current_dir().ok(),
            front_end: Vec::new(),
            front_end_port: self.attach.as_ref().map_or(0, Attach::front_end_port),
            lost_hosts: Vec::new(),
        }))
    }
}

impl RemoteTerms {
    /// How hosts are reached, as it travels and as it is.
    fn reach(&self) -> (Reach, Box<dyn sapwood_launch::Launcher>) {
        if self.launcher == Launcher::Attach {
            return (Reach::Attach, Box::new(sapwood_launch::Attach));
        }
        let is_inside = std::env::var_os(SLURM_JOB_VARIABLE).is_some();
        let by_slurm = match self.launcher {
            Launcher::Slurm => true,
            Launcher::Automatic => is_inside || self.slurm_job.is_some(),
            _ => false,
        };
        if by_slurm {
            // Processes that are started inside an allocation know it from their environment.
            let job = self.slurm_job.clone();
            let slurm = Slurm::new(job.clone(), self.connect_timeout);
            return (Reach::Slurm { job }, Box::new(slurm));
        }
        let named = || std::env::var(REMOTE_SHELL_VARIABLE).ok();
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
        let shell: Vec<String> =
            self.shell.clone().or_else(|| named().map(words)).unwrap_or_default();
        let ssh = Ssh::new(shell.clone(), self.connect_timeout);
        (Reach::Ssh { shell, prefix: self.prefix.clone() }, Box::new(ssh))
    }
}

/// Whether a process of the tree belongs on another machine. The front-end runs where it was
/// started, whatever its host is called. A name that has no address may be one that the ssh client
/// knows.
fn has_other_hosts(topology: &Topology) -> bool {
    let root = topology.root().rank();
    let mut seen: Vec<&HostName> = Vec::new();
    for node in topology.nodes().filter(|node| node.rank() != root) {
        let host = node.host();
        if seen.contains(&host) {
            continue;
        }
        if !sapwood_launch::is_local(host.as_str()).unwrap_or(false) {
            return true;
        }
        seen.push(host);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_mean_this_machine_need_no_launcher() {
        let hosts = |list: &str| {
            let hosts = list.parse().unwrap();
            RemoteTerms::default().options_for(&Topology::over_hosts(&hosts, 8).unwrap())
        };
        assert_eq!(hosts("localhost,127.0.0.1").unwrap(), None);
        let options = hosts("localhost,node9.invalid").unwrap().unwrap();
        assert_eq!(options.connect_milliseconds, 10_000);
        let terms = RemoteTerms { launcher: Launcher::Local, ..RemoteTerms::default() };
        let tree = Topology::over_hosts(&"203.0.113.1".parse().unwrap(), 8).unwrap();
        assert!(terms.options_for(&tree).unwrap_err().to_string().contains("another machine"));
    }

    #[test]
    fn a_launcher_reads_as_it_is_written() {
        use Launcher::{Automatic, Local, Slurm, Ssh};
        for launcher in [Automatic, Local, Ssh, Slurm, Launcher::Attach] {
            assert_eq!(launcher.to_string().parse(), Ok(launcher));
        }
        assert!("rsh".parse::<Launcher>().unwrap_err().contains("'rsh'"));
    }
}
