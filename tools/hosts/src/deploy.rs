//! Starting a tree of agents: over which hosts, in which shape.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

use sapwood::{Error, Network, NetworkBuilder, Program, RankSet, Topology};
use sapwood_launch::Signal;
use sapwood_topology::{HostName, NodeSet};

use super::absence::{Absence, name_in, nodes, of_new_tree};
use super::selection::Reach;
use super::tree::{self, Chosen, Purpose};
use crate::launching::{Launching, dry_run};
use crate::signals::Signals;
use sapwood_command_line::exit::{Failure, by_signal, complain};

/// Hosts whose names are names that a process can be started on, rather than any text.
#[derive(Clone, Debug)]
pub struct Targets {
    pub set: NodeSet,
    /// In the order of the set.
    pub names: Vec<HostName>,
}

impl Targets {
    /// # Errors
    /// [`Failure`] for a name that no host can have.
    pub fn of(set: NodeSet) -> Result<Self, Failure> {
        let names = set.iter().map(|name| name.parse::<HostName>());
        let names = names.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
        Ok(Self { set, names })
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// How many they are, and which: `4 hosts: n[0-3]`.
    pub fn counted(&self) -> String {
        let (count, set) = (self.count(), &self.set);
        let hosts = if count == 1 { "host" } else { "hosts" };
        format!("{count} {hosts}: {set}")
    }

    /// Those of these ranks.
    pub fn nodes(&self, ranks: &RankSet) -> NodeSet {
        nodes(&self.names, ranks)
    }

    /// Which of them are not there in a tree over them that has just opened, and why.
    pub fn absent_from(&self, network: &mut Network) -> Absence {
        of_new_tree(network, self.names.len(), name_in(&self.names))
    }
}

/// A tree that is to be opened.
pub struct Plan {
    pub builder: NetworkBuilder,
    /// A drawing of it, and in one line why it is this one.
    pub drawn: String,
    pub why: String,
    /// How its hosts are reached.
    pub launching: Launching,
}

/// A tree with an agent of that name for each host in order.
///
/// # Errors
/// [`Failure`] for hosts, a fan-out or a launcher of which no tree can be made.
pub fn plan(
    targets: &Targets,
    reach: &Reach,
    purpose: Purpose,
    agent: &str,
) -> Result<Plan, Failure> {
    let launching = reach.launching.as_user(reach.user.as_deref())?;
    let Chosen { topology, why } = tree::over(targets, &reach.tree, &launching, purpose)?;
    let drawn = topology.draw();
    let builder = builder(topology, &launching, agent)?;
    Ok(Plan { builder, drawn, why, launching })
}

/// What starts a tree of this topology with an agent of that name for each back-end.
///
/// # Errors
/// [`Failure`] where there is no program for its processes.
pub fn builder(
    topology: Topology,
    launching: &Launching,
    agent: &str,
) -> Result<NetworkBuilder, Failure> {
    let agent = Program::new(sapwood::node_program()?).argument(agent).binds_itself();
    Ok(launching.apply(Network::builder(topology).back_end(agent).allow_missing()))
}

impl Plan {
    /// The hosts, the tree and the exact commands, for `--dry-run`.
    ///
    /// # Errors
    /// As [`dry_run`].
    pub fn text(&self, targets: &Targets) -> Result<String, Failure> {
        let commands = dry_run(&self.builder, &self.drawn)?;
        Ok(format!("{}\ntree: {}\n{commands}", targets.counted(), self.why))
    }
}

/// What became of opening a tree.
pub enum Opened {
    /// It is open. The signals go on to be heard.
    Tree(Box<Network>, Signals),
    /// A signal came first, and nothing is left running.
    Stopped(Signal),
}

/// Opens a tree, unless a signal comes before it stands.
///
/// # Errors
/// As [`NetworkBuilder::open`].
pub fn open(builder: NetworkBuilder, signals: Signals) -> Result<Opened, Failure> {
    let heard = Rc::new(RefCell::new((Some(signals), None)));
    let asked = Rc::clone(&heard);
    let builder = builder.interrupt(move || {
        let (signals, came) = &mut *asked.borrow_mut();
        // Once the tree stands, the command hears them.
        let Some(signals) = signals else { return false };
        *came = came.or_else(|| signals.take().pop());
        came.is_some()
    });
    let opened = builder.open();
    let (signals, came) = heard.take();
    match (opened, signals, came) {
        (Ok(network), Some(signals), _) => Ok(Opened::Tree(Box::new(network), signals)),
        (Err(Error::Interrupted { .. }), _, Some(signal)) => Ok(Opened::Stopped(signal)),
        (Err(error), _, _) => Err(error.into()),
        (Ok(_), None, _) => unreachable!("only this function takes the signals"),
    }
}

/// The end of a command whose tree was still being opened.
pub fn stopped(signal: Signal) -> ExitCode {
    complain("stopped while the hosts were being reached; nothing was done");
    ExitCode::from(by_signal(signal))
}
