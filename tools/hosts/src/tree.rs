//! Which tree a command has over its hosts: the one that the user asks for, or else the advised
//! one.
//!
//! Owns the choice and the line that says why. The candidates and what they cost are the crate
//! `sapwood-topology`'s; what messages and log-ins cost between these hosts is `measured`'s.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use sapwood::{Hosts, Launcher, Shape, Topology};
use sapwood_launch::Order;
use sapwood_topology::{
    Candidate, FAN_OUT_MAX, Kind, LogGp, NodeSet, Pattern, Site, Switches, advise, judge,
};

use super::deploy::Targets;
use super::groups::SiteGroups;
use super::measured::Measured;
use crate::launching::Launching;
use sapwood_command_line::exit::Failure;
use sapwood_command_line::query::answer;

/// What a question is taken to be long, in bytes.
const QUESTION_BYTES: u64 = 64;

/// Descriptors that a process has open for each child on another host, and those that it keeps.
const DESCRIPTORS_PER_CHILD: u64 = 5;
const DESCRIPTORS_KEPT: u64 = 64;

/// By so much more a tree may cost that has the hosts of one switch below one process: what passes
/// between switches costs more than the model knows of.
const SWITCH_ALLOWANCE: f64 = 1.5;

/// How long the resource manager may take to say what it knows of switches.
const SWITCHES_LIMIT: Duration = Duration::from_secs(3);

/// No shape that is tried has room for all hosts.
const NO_TREE: &str = "no tree has that many hosts within the limits of this process; raise \
                       'ulimit -n' or give --shape";

/// Most children of a process where all processes only play hosts on this machine.
const FAN_OUT_LOCAL_MAX: u32 = 64;

/// What the user says of the tree.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct TreeTerms {
    /// Maximum number of children of each process of the tree; by default the tree is chosen from
    /// measured costs of messages and log-ins.
    #[arg(short = 'f', long = "fan-out", alias = "fanout", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub fan_out: Option<u32>,
    /// Use a tree of this shape, with as many back-ends as there are hosts: 4x4, k:2@32 (k-nomial),
    /// p:1.5@16 (postal), g:2:5,3 (generic).
    #[arg(long, value_name = "SPEC", conflicts_with = "fan_out")]
    shape: Option<Shape>,
    /// Run communication processes on these hosts only; by default they run on the chosen hosts.
    #[arg(long, value_name = "NODESET")]
    communication_hosts: Option<String>,
    /// Group hosts by the switches of this file, in the format of Slurm's topology.conf; unless
    /// given, Slurm is asked in an allocation. Not for a copy.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fan_out", "shape"])]
    switches: Option<PathBuf>,
}

/// What a tree is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For one command: it is started and ends with it.
    Once,
    /// It is there for many questions.
    Kept,
}

/// A tree, and in one line why it is this one.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub topology: Topology,
    pub why: String,
}

/// The tree over these hosts, with one back-end for each in order.
///
/// # Errors
/// [`Failure`] for what the user asks for and cannot be.
pub fn over(
    targets: &Targets,
    terms: &TreeTerms,
    launching: &Launching,
    purpose: Purpose,
) -> Result<Chosen, Failure> {
    let count = targets.count();
    let is_labelled = matches!(launching.launcher(), Launcher::Local | Launcher::Attach);
    let others = terms.communication()?;
    if is_labelled {
        let unused = match (&others, &terms.switches) {
            (Some(_), _) => Some("--communication-hosts"),
            (None, Some(_)) => Some("--switches"),
            (None, None) => None,
        };
        if let Some(option) = unused {
            let text = format!("{option}: this launcher starts nothing on other hosts; omit it");
            return Err(Failure::usage(text));
        }
        let (shape, why) = labelled(targets, terms, launching)?;
        return Ok(Chosen { topology: Topology::from_shape(&shape, &Hosts::local()), why });
    }
    let hosts = Hosts::new(targets.names.clone()).map_err(Failure::usage)?;
    if let Some(shape) = &terms.shape {
        let topology =
            Topology::on_hosts(shape, &hosts, others.as_ref()).map_err(Failure::usage)?;
        return Ok(Chosen { topology, why: format!("{shape}, as given") });
    }
    if let Some(fan_out) = terms.fan_out {
        let topology = match &others {
            None => Topology::over_hosts(&hosts, fan_out),
            Some(others) => Shape::even(count, fan_out)
                .and_then(|shape| Topology::on_hosts(&shape, &hosts, Some(others))),
        };
        let topology = topology.map_err(Failure::usage)?;
        return Ok(Chosen { topology, why: format!("fan-out {fan_out}, as given") });
    }
    let measured = Measured::for_hosts(&targets.set, launching.launch_method());
    let (machines, processors) = measured.machines(count, own_processors());
    let dedicated_hosts = others.as_ref().map_or(0, |others| others.names().len());
    let site = Site {
        hosts: machines,
        processors,
        dedicated_hosts: u32::try_from(dedicated_hosts).unwrap_or(u32::MAX),
        fan_out_max: fan_out_limit(),
    };
    let (model, pattern, bytes) = match purpose {
        Purpose::Once => (measured.log_in(launching.concurrent()), Pattern::Start, 1),
        Purpose::Kept => (measured.message(), Pattern::Request, QUESTION_BYTES),
    };
    let advice = advise(&model, &site, count, bytes, pattern).map_err(Failure::usage)?;
    let flat = advice.iter().find(|one| one.kind == Kind::Flat).map(|one| one.cost_us);
    let best = advice.into_iter().next();
    let mut best = best.ok_or_else(|| Failure::usage(NO_TREE))?;
    let groups = terms.switches(launching)?.and_then(|switches| switches.groups(hosts.names()));
    let by_switch = |groups: Vec<u32>| {
        let shape = Shape::grouped(&groups).ok()?;
        let guess = judge(&model, &site, Kind::Grouped, shape, bytes, pattern);
        // Below a few hosts no process stands between, whatever switches there are.
        let bound = flat.unwrap_or(f64::INFINITY).min(best.cost_us * SWITCH_ALLOWANCE);
        (best.kind != Kind::Flat && guess.cost_us <= bound).then_some(guess)
    };
    if let Some(guess) = groups.and_then(by_switch) {
        best = guess;
    }
    let topology = Topology::on_hosts(&best.shape, &hosts, others.as_ref());
    let why = format!("{}, {}", why(&best, flat, pattern), measured.source());
    Ok(Chosen { topology: topology.map_err(Failure::usage)?, why })
}

impl TreeTerms {
    /// The names of all of these options.
    pub const OPTIONS: [&str; 4] = ["fan_out", "shape", "communication_hosts", "switches"];

    /// Takes that fan-out where the user says nothing of the tree; gives the one that it is.
    pub fn or_fan_out(&mut self, chosen: impl FnOnce() -> u32) -> u32 {
        match &self.shape {
            Some(shape) => shape.fan_out(),
            None => *self.fan_out.get_or_insert_with(chosen),
        }
    }

    /// Whether the user names a file of switches.
    pub fn names_switches(&self) -> bool {
        self.switches.is_some()
    }

    fn communication(&self) -> Result<Option<Hosts>, Failure> {
        let Some(text) = &self.communication_hosts else { return Ok(None) };
        let nodes = NodeSet::parse(text, &SiteGroups::default()).map_err(Failure::usage)?;
        Hosts::try_from(&nodes).map(Some).map_err(Failure::usage)
    }

    /// Which hosts hang at one switch, if that is known.
    fn switches(&self, launching: &Launching) -> Result<Option<Switches>, Failure> {
        if let Some(path) = &self.switches {
            let switches = Switches::parse(&super::read_file(path)?);
            return switches.map(Some).map_err(Failure::usage);
        }
        if launching.launch_method() != "slurm" {
            return Ok(None);
        }
        let mut order = Order::new("scontrol");
        order.arguments = ["show", "topology"].map(Into::into).into();
        // A guess that cannot be had is none.
        let said = answer(order, SWITCHES_LIMIT).ok().filter(|(exit, _)| exit.is_success());
        Ok(said.and_then(|(_, text)| Switches::parse(&text).ok()))
    }
}

/// The shape of a tree whose communication processes all run on this machine.
fn labelled(
    targets: &Targets,
    terms: &TreeTerms,
    launching: &Launching,
) -> Result<(Shape, String), Failure> {
    let count = targets.count();
    if launching.knows_front_end_alone() {
        let why = "flat, because processes that join by port know only the front-end".to_owned();
        return Ok((Shape::flat(count).map_err(Failure::usage)?, why));
    }
    if let Some(shape) = &terms.shape {
        let back_ends = shape.back_end_count();
        if back_ends != count {
            let text = format!("--shape {shape}: it has {back_ends} back-ends for {count} hosts");
            return Err(Failure::usage(text));
        }
        return Ok((shape.clone(), format!("{shape}, as given")));
    }
    match terms.fan_out {
        // Each host behind a process of its own.
        Some(1) => {
            let shape = Shape::levels(&[1, count]).map_err(Failure::usage)?;
            return Ok((shape, "fan-out 1, as given".to_owned()));
        }
        Some(fan_out) => {
            let shape = Shape::even(count, fan_out).map_err(Failure::usage)?;
            return Ok((shape, format!("fan-out {fan_out}, as given")));
        }
        None => {}
    }
    let is_here = launching.launcher() == Launcher::Local;
    let (model, site, source) = if is_here {
        let site = Site { fan_out_max: FAN_OUT_LOCAL_MAX, ..Site::machine(own_processors()) };
        (LogGp::LOCAL_SOCKETS, site, "estimated for local sockets".to_owned())
    } else {
        let measured = Measured::for_hosts(&targets.set, launching.launch_method());
        let site = Site { hosts: count, dedicated_hosts: 1, ..Site::machine(own_processors()) };
        (measured.message(), site, measured.source())
    };
    let pattern = Pattern::Request;
    let advice = advise(&model, &site, count, QUESTION_BYTES, pattern).map_err(Failure::usage)?;
    let flat = advice.iter().find(|one| one.kind == Kind::Flat).map(|one| one.cost_us);
    let best = advice.into_iter().next();
    let best = best.ok_or_else(|| Failure::usage(NO_TREE))?;
    let why = format!("{}, {source}", why(&best, flat, pattern));
    Ok((best.shape, why))
}

/// The processors that this process may use.
pub fn own_processors() -> u32 {
    std::thread::available_parallelism().map_or(1, NonZero::get) as u32
}

/// Most children that this process, and so likely any other, can have.
fn fan_out_limit() -> u32 {
    let open = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let children = open.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_PER_CHILD;
    u32::try_from(children).unwrap_or(u32::MAX).clamp(2, FAN_OUT_MAX)
}

/// One clause.
fn why(best: &Candidate, flat: Option<f64>, pattern: Pattern) -> String {
    let (divisor, unit) = match pattern {
        Pattern::Start => (1e3, "ms to start"),
        Pattern::Request => (1.0, "us per round trip"),
        Pattern::Stream => (1.0, "us per wave"),
    };
    let cost = best.cost_us / divisor;
    let switches = if best.kind == Kind::Grouped { " by switch" } else { "" };
    let shape = &best.shape;
    match flat {
        _ if best.kind == Kind::Flat => {
            format!("flat: {cost:.0} {unit}, and no other tree is faster")
        }
        Some(flat) => {
            format!("{shape}{switches}: {cost:.0} {unit} instead of {:.0} flat", flat / divisor)
        }
        None => format!("{shape}{switches}: {cost:.0} {unit}; flat has too many children"),
    }
}
