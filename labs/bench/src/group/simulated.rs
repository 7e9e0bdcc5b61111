//! The same network in the simulator.

use sapwood::{Rank, TreeKind};
use sapwood_command_line::exit::Failure;
use sapwood_group::{Config, SECOND, Time};
use sapwood_layout::Layout;
use sapwood_sim::group::{Network, Start, Trial};

use super::network::EmulatedNetwork;
use super::{Arguments, Experiment, TREES};

/// The lengths of the sums.
const SUMS: [usize; 2] = [8, 8 << 10];
/// The work of a segment of a long value, in microseconds, as in `sapwood sim group`.
const LONG_OVERHEAD_US: f64 = 5.0;

/// Seconds by tree; none where a member had no value within a minute.
pub(super) struct ByTree(Vec<Option<f64>>);

impl ByTree {
    pub(super) fn of(&self, tree: TreeKind) -> Option<f64> {
        let at = TREES.iter().position(|one| *one == tree)?;
        self.0.get(at).copied().flatten()
    }
}

/// What the simulator says.
pub(super) struct Simulated {
    pub(super) start: Start,
    pub(super) short: ByTree,
    /// `adaptive` beside `static`, from several roots.
    pub(super) roots: Vec<(Rank, Option<f64>)>,
    pub(super) sums: Vec<(usize, ByTree)>,
    pub(super) long: ByTree,
}

/// Simulates what is to be measured.
///
/// # Errors
/// [`Failure`] where the simulated group does not come to rest.
pub(super) fn simulate(
    network: &EmulatedNetwork,
    arguments: &Arguments,
) -> Result<Simulated, Failure> {
    let mut trial = started(network.network.clone(), network.seed)?;
    let start = trial.start;
    let mut roots = Vec::new();
    if arguments.wants(Experiment::Roots) {
        for root in network.roots() {
            let mut time = |tree| trial.broadcast(root as usize, tree, 1).map(seconds);
            let (base, own) = (time(TreeKind::Static), time(TreeKind::Adaptive));
            roots.push((root, base.zip(own).map(|(base, own)| own / base)));
        }
    }
    let wants_papers = arguments.wants(Experiment::Short) || arguments.wants(Experiment::Long);
    if wants_papers {
        grow(&mut trial);
    }
    let mut short = Vec::new();
    if arguments.wants(Experiment::Short) {
        short = TREES.map(|tree| trial.broadcast(0, tree, 1).map(seconds)).to_vec();
    }
    let mut sums = Vec::new();
    if arguments.wants(Experiment::Sums) {
        for bytes in SUMS {
            let times = TREES.map(|tree| trial.reduce(0, tree, bytes).map(seconds));
            sums.push((bytes, ByTree(times.to_vec())));
        }
    }
    let mut long = Vec::new();
    if arguments.wants(Experiment::Long) {
        let layout = Layout { overhead_us: LONG_OVERHEAD_US, ..network.layout.clone() };
        let network = Network::draw(&layout, arguments.seed);
        let mut trial = started(network, arguments.seed)?;
        grow(&mut trial);
        long = TREES.map(|tree| trial.broadcast(0, tree, arguments.long).map(seconds)).to_vec();
    }
    Ok(Simulated { start, short: ByTree(short), roots, sums, long: ByTree(long) })
}

/// As real members are by default: with the simulator's own patience of 100 ms, members that are
/// far away in a slowed network would be taken for dead.
fn config() -> Config {
    Config { ping_timeout: SECOND, ..Config::default() }
}

fn started(network: Network, seed: u64) -> Result<Trial, Failure> {
    let trial = Trial::start(network, seed, &config());
    trial.map_err(|error| Failure::usage(format!("{error} ('--scale', '--members')")))
}

fn grow(trial: &mut Trial) {
    TREES.into_iter().filter(|tree| tree.is_paper()).for_each(|tree| trial.grow(0, tree));
}

fn seconds(time: Time) -> f64 {
    time as f64 / 1e9
}
