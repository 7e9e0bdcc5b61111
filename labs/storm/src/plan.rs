//! What storm to raise: the arguments of `sapwood storm`, checked once.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use sapwood::{Hosts, Recovery, Shape, Topology, TransportKind};

use super::faults::Fault;
use super::group::GroupArguments;
use sapwood_bench::Transport;
use sapwood_command_line::exit::Failure;

/// Requests per second on each stream.
const RATES: std::ops::RangeInclusive<u32> = 1..=10_000;

/// Longest storm, seconds: a day.
const SECONDS_MAX: u32 = 86_400;

/// Networks of real processes under random faults, every answer checked
#[derive(clap::Parser)]
#[command(name = "sapwood-storm", version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub(super) subject: Option<Subject>,
    /// How long, in seconds.
    #[arg(long, value_name = "N", default_value_t = 600)]
    seconds: u32,
    /// What chance begins with; the same seed makes the same choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fan-out of each level: 64, 4x4x4 or 4^3.
    #[arg(long, value_name = "SHAPE", default_value = "4x4x4")]
    topology: Shape,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Requests per second on each stream.
    #[arg(long, value_name = "N", default_value_t = 40)]
    rate: u32,
    /// Only these faults, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    faults: Vec<Fault>,
    /// The folder of a running test bed: processes live on its hosts.
    #[arg(long, value_name = "FOLDER", requires = "interface")]
    testbed: Option<PathBuf>,
    /// The address at which the hosts of the test bed reach this process.
    #[arg(long, value_name = "IP", requires = "testbed")]
    interface: Option<IpAddr>,
    /// After this much silence a communication process counts as gone, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    silence: u32,
    /// The tree does not repair itself: back-ends below a dead communication process are lost.
    #[arg(long)]
    without_recovery: bool,
    /// Print what is done and what happens.
    #[arg(long)]
    log: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the storm is raised over, if not over networks.
#[derive(clap::Subcommand)]
pub(super) enum Subject {
    /// One group of real processes that are killed, stopped, leave and join; every answer checked.
    Group(GroupArguments),
}

/// A test bed that is up.
#[derive(Clone, Debug)]
pub(super) struct Bed {
    /// Does things to hosts.
    pub script: PathBuf,
    /// Runs this program on the host that its rank chooses.
    pub on_host: PathBuf,
    pub interface: IpAddr,
}

/// What storm to raise.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub duration: Duration,
    pub seed: u64,
    pub topology: Topology,
    pub topology_text: String,
    pub transport: TransportKind,
    pub period: Duration,
    pub faults: Vec<Fault>,
    pub bed: Option<Bed>,
    pub recovery: Recovery,
    pub is_logged: bool,
    pub is_json: bool,
}

impl Plan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        if arguments.seconds == 0 || arguments.seconds > SECONDS_MAX {
            return Err(Failure::usage(format!("--seconds must be 1 to {SECONDS_MAX}")));
        }
        if !RATES.contains(&arguments.rate) {
            let (least, most) = RATES.into_inner();
            return Err(Failure::usage(format!("--rate must be {least} to {most}")));
        }
        let mut faults = arguments.faults.clone();
        if faults.is_empty() {
            faults = <Fault as clap::ValueEnum>::value_variants().to_vec();
        }
        Ok(Self {
            duration: Duration::from_secs(arguments.seconds.into()),
            seed: arguments.seed,
            topology: Topology::from_shape(&arguments.topology, &Hosts::local()),
            topology_text: arguments.topology.to_string(),
            transport: match arguments.transport {
                Transport::Unix => TransportKind::Unix,
                Transport::Tcp => TransportKind::Tcp,
                Transport::Shm => TransportKind::Shm,
            },
            period: Duration::from_secs(1) / arguments.rate,
            faults,
            bed: bed(arguments)?,
            recovery: match arguments.without_recovery {
                true => Recovery::off(),
                false => Recovery {
                    silence: Duration::from_millis(arguments.silence.into()),
                    ..Recovery::default()
                },
            },
            is_logged: arguments.log,
            is_json: arguments.json,
        })
    }
}

fn bed(arguments: &Arguments) -> Result<Option<Bed>, Failure> {
    let (Some(folder), Some(interface)) = (&arguments.testbed, arguments.interface) else {
        return Ok(None);
    };
    if arguments.transport != Transport::Tcp {
        return Err(Failure::usage("hosts of a test bed are linked by TCP: add --transport tcp"));
    }
    let file = |name: &str| {
        let path = folder.join(name);
        std::path::absolute(&path).ok().filter(|path| path.is_file()).ok_or_else(|| {
            Failure::usage(format!("{} is not there; name the folder testbed/", path.display()))
        })
    };
    Ok(Some(Bed { script: file("testbed")?, on_host: file("on-host")?, interface }))
}
