//! The plan of a process: its part of the tree, and the options that are common to all processes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use sapwood_node::{ChildPlan, Recovery};
use sapwood_packet::RankSet;
use sapwood_topology::{Role, Subtree};
use sapwood_transport::{Address, Encryption};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::RuntimeError;
use crate::transport_kind::TransportKind;

/// A program that the tree starts as every back-end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackEndProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Variables set for it beside those of the environment.
    pub environment: Vec<(String, String)>,
    /// Whether it binds its life to its starter by itself, and so is started without a fork.
    pub binds_itself: bool,
}

/// How hosts are reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// By ssh, or what the user has in its place: the client and its own arguments; empty for
    /// `ssh`.
    Ssh {
        /// The command and its arguments.
        shell: Vec<String>,
        /// The command prefix for processes on other hosts; empty for none.
        prefix: Vec<String>,
    },
    /// Not at all: nothing is started there. Processes of other hosts attach by themselves.
    Attach,
    /// By steps of a Slurm allocation.
    Slurm {
        /// Its number; none for the one that the process which starts is in.
        job: Option<String>,
    },
}

/// How the processes of a tree over several hosts are started and find each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteOptions {
    /// How hosts are reached.
    pub reach: Reach,
    /// Whether the host of the process that starts is reached so as well, where a name of it is
    /// among the hosts; else its processes are started without a log-in.
    pub reaches_own_host: bool,
    /// How long a host may take to answer, in milliseconds.
    pub connect_milliseconds: u32,
    /// How many hosts one process reaches at the same time.
    pub concurrent: u32,
    /// Which addresses processes listen at: a rule as [`sapwood_transport::InterfaceRule`] reads
    /// it; empty for all.
    pub interfaces: String,
    /// Where processes on other hosts run, if there is such a folder.
    pub directory: Option<PathBuf>,
    /// Where the front-end takes connections; it knows that itself.
    pub front_end: Vec<String>,
    /// The port at which the front-end takes connections; 0 for any that is free.
    pub front_end_port: u16,
    /// Hosts that could not be reached, and why: no process below tries them again.
    pub lost_hosts: Vec<(String, String)>,
}

/// What all processes of one tree agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeOptions {
    /// The program that is a communication process when run with the argument `node`.
    pub node_program: PathBuf,
    /// The arguments before it: `-m` and a module, where the program is an interpreter.
    pub node_arguments: Vec<String>,
    /// The program of the back-ends; none when they attach by themselves.
    pub back_end: Option<BackEndProgram>,
    /// What links are made of.
    pub transport: TransportKind,
    /// Whether links are encrypted; none for the default of their kind.
    pub encryption: Option<bool>,
    /// The address of this machine that TCP listens at, in a tree on one machine.
    pub interface: IpAddr,
    /// How other hosts take part; none in a tree on one machine.
    pub remote: Option<RemoteOptions>,
    /// How many back-ends the whole network has.
    pub back_ends: u32,
    /// How long a process waits for the children that it has started, in milliseconds.
    pub startup_milliseconds: u32,
    /// The terms of recovery.
    #[serde(with = "RecoveryTimes")]
    pub recovery: Recovery,
    /// Whether dynamic members may join.
    pub takes_dynamic_members: bool,
    /// How long offloaded filters may take for one wave, in milliseconds; 0 for ever.
    pub filter_milliseconds: u32,
}

impl TreeOptions {
    /// How long offloaded filters may take for one wave; zero for ever.
    #[must_use]
    pub fn filter_limit(&self) -> Duration {
        Duration::from_millis(self.filter_milliseconds.into())
    }
}

/// [`Recovery`] as it travels: times in milliseconds.
#[derive(Serialize, Deserialize)]
struct RecoveryTimes {
    is_on: bool,
    orphan_limit: u32,
    grace: u32,
    silence: u32,
    front_end_wait: u32,
}

impl RecoveryTimes {
    fn serialize<S: Serializer>(recovery: &Recovery, serializer: S) -> Result<S::Ok, S::Error> {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let times = Self {
            is_on: recovery.is_on,
            orphan_limit: milliseconds(recovery.orphan_limit),
            grace: milliseconds(recovery.grace),
            silence: milliseconds(recovery.silence),
            front_end_wait: milliseconds(recovery.front_end_wait),
        };
        Serialize::serialize(&times, serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Recovery, D::Error> {
        let times: Self = Deserialize::deserialize(deserializer)?;
        let time = |milliseconds: u32| Duration::from_millis(milliseconds.into());
        Ok(Recovery {
            is_on: times.is_on,
            orphan_limit: time(times.orphan_limit),
            grace: time(times.grace),
            silence: time(times.silence),
            front_end_wait: time(times.front_end_wait),
        })
    }
}

/// One process's part of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// What the whole tree agrees on.
    pub options: TreeOptions,
    /// The process and everything below it.
    pub subtree: Subtree,
}

impl Plan {
    /// The same, for a front-end that takes connections there.
    #[must_use]
    pub(crate) fn with_front_end(&self, listen_address: &Address) -> Self {
        let mut plan = self.clone();
        if let Some(remote) = &mut plan.options.remote {
            remote.front_end = vec![listen_address.to_string()];
        }
        plan
    }

    /// Whether links below it are encrypted.
    pub(crate) fn encryption(&self) -> Encryption {
        match (self.options.encryption, self.options.transport) {
            (Some(true), _) | (None, TransportKind::Tcp) => Encryption::On,
            _ => Encryption::Off,
        }
    }

    /// As it travels.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a plan holds only numbers, texts and lists of them")
    }

    /// From what the parent sent.
    ///
    /// # Errors
    /// [`RuntimeError::Plan`] when the bytes are no plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RuntimeError> {
        postcard::from_bytes(bytes).map_err(|error| RuntimeError::Plan(error.to_string()))
    }

    /// The children as the node is to know them. Children that attach by themselves are not among
    /// them.
    #[must_use]
    pub fn children(&self) -> Vec<ChildPlan> {
        let is_started =
            |subtree: &Subtree| subtree.role() != Role::BackEnd || self.options.back_end.is_some();
        self.subtree.child_plans().into_iter().filter(is_started).map(|c| self.child(c)).collect()
    }

    fn child(&self, subtree: Subtree) -> ChildPlan {
        let rank = subtree.rank();
        let mut back_ends = RankSet::new();
        for (first, last) in subtree.back_end_ranges() {
            back_ends.insert_range(first, last);
        }
        let plan = match subtree.role() {
            Role::BackEnd => Vec::new(),
            _ => Self { options: self.options.clone(), subtree }.to_bytes(),
        };
        ChildPlan { rank, back_ends, plan }
    }

    /// The ranks that are reserved for back-ends which attach to this process itself.
    #[must_use]
    pub fn attach_ranks(&self) -> RankSet {
        if self.options.back_end.is_some() {
            return RankSet::new();
        }
        let leaves = self.subtree.child_plans().into_iter();
        leaves.filter(|child| child.role() == Role::BackEnd).map(|child| child.rank()).collect()
    }

    /// Levels from this process to its farthest back-end.
    #[must_use]
    pub fn height(&self) -> u32 {
        let deepest = self.subtree.nodes().map(|node| node.depth).max().unwrap_or(0);
        deepest.saturating_sub(self.subtree.depth())
    }
}

/// The plan of a communication process that joins a tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinPlan {
    /// What the whole tree agrees on.
    pub options: TreeOptions,
    /// Levels from the process to its farthest back-end, once it has some.
    pub height: u32,
}

impl JoinPlan {
    /// For processes that join below a process of this height.
    #[must_use]
    pub fn below(height: u32, options: &TreeOptions) -> Self {
        Self { options: options.clone(), height: height.saturating_sub(1).max(1) }
    }

    /// As it travels.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a plan holds only numbers, texts and lists of them")
    }

    /// From what the parent sent.
    ///
    /// # Errors
    /// [`RuntimeError::Plan`] when the bytes are no such plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RuntimeError> {
        postcard::from_bytes(bytes).map_err(|error| RuntimeError::Plan(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_terms_of_recovery_travel_with_the_options() {
        let orphan_limit = Duration::from_millis(7);
        for recovery in [Recovery::off(), Recovery { orphan_limit, ..Recovery::default() }] {
            let options = TreeOptions {
                node_program: "sapwood".into(),
                node_arguments: vec!["-m".into()],
                back_end: None,
                transport: TransportKind::Tcp,
                encryption: None,
                interface: Ipv4Addr::LOCALHOST.into(),
                remote: None,
                back_ends: 3,
                startup_milliseconds: 5,
                recovery,
                takes_dynamic_members: true,
                filter_milliseconds: 10_000,
            };
            let bytes = postcard::to_allocvec(&options).unwrap();
            assert_eq!(postcard::from_bytes::<TreeOptions>(&bytes).unwrap(), options);
        }
    }
}
