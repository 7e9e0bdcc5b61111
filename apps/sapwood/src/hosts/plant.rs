//! Starting a tree of agents: over which hosts, in which shape.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

use sapwood::{Error, Hosts, Launcher, Network, NetworkBuilder, Program, Shape, Topology};
use sapwood_launch::Signal;
use sapwood_topology::{HostName, NodeSet};

use crate::exit::Failure;
use crate::hosts::selection::Reach;
use crate::mpi::leaves::shape_over;
use crate::mpi::signals::Signals;

/// Children of a process of the tree, if nothing is said: as many as make the tree two levels deep
/// for most, within these.
const FAN_OUT_MIN: u32 = 16;
const FAN_OUT_MAX: u32 = 64;

/// Hosts whose names are names that a process can be started on, rather than any text.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    pub(crate) set: NodeSet,
    /// In the order of the set.
    pub(crate) names: Vec<HostName>,
}

impl Targets {
    /// # Errors
    /// [`Failure`] for a name that no host can have.
    pub(crate) fn of(set: NodeSet) -> Result<Self, Failure> {
        let names = set.iter().map(|name| name.parse::<HostName>());
        let names = names.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
        Ok(Self { set, names })
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }
}

/// What opens a tree with an agent of that name for each host in order, and a drawing of that tree.
///
/// # Errors
/// [`Failure`] for hosts, a fan-out or a launcher of which no tree can be made.
pub(crate) fn builder(
    targets: &Targets,
    reach: &Reach,
    agent: &str,
) -> Result<(NetworkBuilder, String), Failure> {
    let topology = tree_over(targets, reach)?;
    let drawn = topology.draw();
    let launching = reach.launching.as_user(reach.user.as_deref())?;
    let agent = Program::new(sapwood::node_program()?).argument(agent).binds_itself();
    let builder = launching.apply(Network::builder(topology).back_end(agent).allow_missing());
    Ok((builder, drawn))
}

/// What became of opening a tree.
pub(crate) enum Opened {
    /// It stands. The signals go on to be heard.
    Tree(Box<Network>, Signals),
    /// A signal came first, and nothing is left running.
    Stopped(Signal),
}

/// Opens a tree, unless a signal comes before it stands.
///
/// # Errors
/// As [`NetworkBuilder::open`].
pub(crate) fn open(builder: NetworkBuilder, signals: Signals) -> Result<Opened, Failure> {
    let heard = Rc::new(RefCell::new((Some(signals), None)));
    let asked = Rc::clone(&heard);
    let builder = builder.interrupt(move || {
        let (signals, came) = &mut *asked.borrow_mut();
        // Once the tree stands, whoever runs a command hears them.
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
        (Ok(_), None, _) => unreachable!("nobody else takes the signals"),
    }
}

/// The end of a command whose tree was still being opened.
pub(crate) fn stopped(signal: Signal) -> ExitCode {
    eprintln!("sapwood: stopped while the hosts were being reached; nothing was run");
    ExitCode::from(128 + signal.as_raw().clamp(0, 127) as u8)
}

fn tree_over(targets: &Targets, reach: &Reach) -> Result<Topology, Failure> {
    let count = targets.count();
    let fan_out = reach.fan_out.unwrap_or_else(|| {
        let root = f64::from(count).sqrt().ceil() as u32;
        root.clamp(FAN_OUT_MIN, FAN_OUT_MAX)
    });
    if reach.launching.launcher == Launcher::Local {
        return labelled_tree(count, fan_out);
    }
    let hosts = Hosts::new(targets.names.clone()).map_err(Failure::usage)?;
    Topology::over_hosts(&hosts, fan_out).map_err(Failure::usage)
}

/// A tree on this machine, whose back-ends only bear the names of hosts.
fn labelled_tree(count: u32, fan_out: u32) -> Result<Topology, Failure> {
    let spec = match fan_out {
        // One process above all of them: a chain of processes would have room for one host only.
        1 => format!("1x{count}"),
        _ => shape_over(count, fan_out),
    };
    let shape: Shape = spec.parse().map_err(Failure::usage)?;
    Ok(Topology::from_shape(&shape, &Hosts::local()))
}
