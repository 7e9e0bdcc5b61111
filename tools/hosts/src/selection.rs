//! The options with which a command selects its hosts, and what they come to.
//!
//! Owns the order in which targets are looked for: the command line; a file that `WCOLL` or
//! `SAPWOOD_HOSTFILE` names; the allocation of a resource manager around us.

use std::path::{Path, PathBuf};

use sapwood_topology::{HostList, NodeSet};

use super::groups::SiteGroups;
use super::tree::TreeTerms;
use crate::launching::Launching;
use sapwood_command_line::exit::Failure;

/// Which hosts, and how they are reached.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Use these hosts: node[001-128], rack[1-4]n[01-32], @group; `,` adds, `!` excludes, `&` keeps
    /// common ones, `^` those of exactly one set (repeatable).
    #[arg(short = 'w', long = "nodes", value_name = "NODESET")]
    pub nodes: Vec<String>,
    /// Leave these hosts out (repeatable).
    #[arg(short = 'x', long = "exclude", value_name = "NODESET")]
    pub exclude: Vec<String>,
    /// Use the hosts of this group, GROUP or SOURCE:GROUP (repeatable).
    #[arg(short = 'g', long = "group", value_name = "GROUP")]
    pub group: Vec<String>,
    /// Use all hosts that the default source of groups knows.
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Use the hosts that this file lists (repeatable).
    #[arg(long, visible_alias = "machinefile", value_name = "FILE")]
    pub hostfile: Vec<PathBuf>,
    /// Use N of the hosts, chosen at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pick: Option<u32>,
}

/// How hosts are reached, and by which tree.
#[derive(Clone, Debug, clap::Args)]
pub struct Reach {
    #[command(flatten)]
    pub tree: TreeTerms,
    /// Log in to the hosts as this user.
    #[arg(short = 'l', long, value_name = "USER")]
    pub user: Option<String>,
    #[command(flatten)]
    pub launching: Launching,
}

impl Reach {
    /// In which way hosts are reached, as one line: a command uses a tree that another process
    /// keeps up only where both were to reach their hosts in the same way, as the same user.
    pub fn terms(&self) -> String {
        self.launching.terms(self.user.as_deref())
    }

    /// Whether the command line itself says as whom or in which allocation, so that no other way
    /// will do. What the environment says may be meant for other commands.
    pub fn is_particular(&self) -> bool {
        self.user.is_some() || self.launching.is_particular()
    }
}

impl Selection {
    /// The hosts, in order.
    ///
    /// # Errors
    /// Where nothing says which hosts, or what says so cannot be read.
    pub fn resolve(&self) -> Result<NodeSet, Failure> {
        self.resolve_or(surroundings)
    }

    /// As [`Selection::resolve`], with something else to ask where the command line names nothing.
    ///
    /// # Errors
    /// As [`Selection::resolve`], and what that says.
    pub fn resolve_or(
        &self,
        otherwise: impl FnOnce(&SiteGroups) -> Result<NodeSet, Failure>,
    ) -> Result<NodeSet, Failure> {
        let groups = SiteGroups::default();
        let mut hosts = self.named(&groups, otherwise)?;
        for text in &self.exclude {
            let text = NodeSet::parse(text, &groups).map_err(Failure::usage)?;
            hosts = hosts.difference(&text);
        }
        if hosts.is_empty() {
            return Err(Failure::usage(
                "no host is left; check the sets and -x with 'sapwood nodeset expand'",
            ));
        }
        match self.pick {
            Some(count) => pick(&hosts, count as usize),
            None => Ok(hosts),
        }
    }

    /// Whether the command line itself says which hosts these are.
    pub fn is_named(&self) -> bool {
        let is_there = self.hostfile.iter().all(|path| path != Path::new("-"));
        self.names_something() && is_there
    }

    fn names_something(&self) -> bool {
        let is_empty = self.nodes.is_empty() && self.group.is_empty() && self.hostfile.is_empty();
        self.all || !is_empty
    }

    fn named(
        &self,
        groups: &SiteGroups,
        otherwise: impl FnOnce(&SiteGroups) -> Result<NodeSet, Failure>,
    ) -> Result<NodeSet, Failure> {
        let parse = |text: &str| NodeSet::parse(text, groups).map_err(Failure::usage);
        let mut hosts = NodeSet::default();
        if !self.names_something() {
            return otherwise(groups);
        }
        for text in &self.nodes {
            hosts = hosts.union(&parse(text)?);
        }
        for group in &self.group {
            hosts = hosts.union(&parse(&format!("@{}", group.trim_start_matches('@')))?);
        }
        if self.all {
            hosts = hosts.union(&parse("@*")?);
        }
        for path in &self.hostfile {
            hosts = hosts.union(&file(path, groups)?);
        }
        Ok(hosts)
    }
}

fn file(path: &Path, groups: &SiteGroups) -> Result<NodeSet, Failure> {
    let text = if path == Path::new("-") {
        super::read_text(std::io::stdin().lock(), "standard input")?
    } else {
        super::read_file(path)?
    };
    let name = path.display().to_string();
    let list = HostList::from_file_text(&text, &name, groups).map_err(Failure::usage)?;
    Ok(list.names())
}

/// The hosts that the environment names.
fn surroundings(groups: &SiteGroups) -> Result<NodeSet, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    for name in ["WCOLL", "SAPWOOD_HOSTFILE"] {
        if let Some(path) = variable(name) {
            return file(Path::new(&path), groups);
        }
    }
    for name in ["SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
        if let Some(nodes) = variable(name) {
            let counts = variable("SLURM_TASKS_PER_NODE");
            let list = HostList::from_slurm(&nodes, counts.as_deref());
            return Ok(list.map_err(Failure::usage)?.names());
        }
    }
    if let Some(path) = variable("PBS_NODEFILE") {
        return file(Path::new(&path), groups);
    }
    Err(Failure::usage(
        "no hosts are given: use -w NODESET, -g GROUP, -a or --hostfile FILE, set WCOLL or \
         SAPWOOD_HOSTFILE, or run inside an allocation",
    ))
}

/// Some of the hosts, each equally likely.
pub fn pick(hosts: &NodeSet, count: usize) -> Result<NodeSet, Failure> {
    let mut names: Vec<String> = hosts.iter().collect();
    let count = count.min(names.len());
    for place in 0..count {
        let mut random = [0_u8; 8];
        let failed = |error| Failure::own(&format!("the system gives no random numbers: {error}"));
        getrandom::fill(&mut random).map_err(failed)?;
        let left = (names.len() - place) as u64;
        names.swap(place, place + (u64::from_le_bytes(random) % left) as usize);
    }
    names.truncate(count);
    Ok(names.into_iter().collect())
}
