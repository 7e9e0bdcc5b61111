//! The network that members are on, and that the simulator models.

use std::time::Duration;

use sapwood::Rank;
use sapwood_command_line::exit::Failure;
use sapwood_group_tool::TestBed;
use sapwood_layout::{Emulation, Layout, SCENARIOS};
use sapwood_sim::group::Network;

use super::Arguments;

/// Members for each further unit of the scale, unless it is given.
const MEMBERS_PER_SCALE: f64 = 6.0;
/// How many roots are tried at most.
const ROOTS_MAX: usize = 5;

/// One network for both: latencies of pairs do not differ in it, since the emulator has one for
/// each pair of sites.
pub(super) struct EmulatedNetwork {
    pub(super) scenario: String,
    /// With the scale in it.
    pub(super) layout: Layout,
    pub(super) scale: f64,
    pub(super) seed: u64,
    /// As the simulator has it.
    pub(super) network: Network,
    /// As the emulator has it; none on one host.
    pub(super) hosts: Option<Hosts>,
}

/// What carries it.
pub(super) struct Hosts {
    pub(super) test_bed: TestBed,
    pub(super) emulation: Emulation,
}

impl EmulatedNetwork {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let scenario = &arguments.scenario;
        let mut layout = read(scenario)?;
        layout.hosts = arguments.members as usize;
        if layout.clusters > layout.hosts {
            return Err(Failure::usage(format!(
                "'{scenario}' has {} clusters, too many for {} members",
                layout.clusters, layout.hosts
            )));
        }
        let is_one_host = layout.is_one_host;
        let own = if is_one_host { 1.0 } else { f64::from(arguments.members) / MEMBERS_PER_SCALE };
        let scale = arguments.scale.unwrap_or(own.round().max(1.0));
        if !(0.1..=1000.0).contains(&scale) {
            return Err(Failure::usage("give a --scale of 0.1 to 1000"));
        }
        if is_one_host && scale != 1.0 {
            return Err(Failure::usage("nothing is emulated on one host: leave --scale out"));
        }
        layout = Layout { spread: 0.0, ..layout.slowed(scale) };
        let network = Network::draw(&layout, arguments.seed);
        let hosts = if is_one_host {
            None
        } else {
            let test_bed = TestBed::new(&arguments.testbed)?;
            let emulation = Emulation::new(&layout, &network.placement);
            let emulation = emulation.ok_or_else(|| {
                Failure::usage(format!("'{scenario}' has more clusters than can be emulated"))
            })?;
            Some(Hosts { test_bed, emulation })
        };
        let (scenario, seed) = (scenario.clone(), arguments.seed);
        Ok(Self { scenario, layout, scale, seed, network, hosts })
    }

    /// The first member of each cluster, and the last of all.
    pub(super) fn roots(&self) -> Vec<Rank> {
        let clusters = &self.network.placement.clusters;
        let first_of = |cluster| clusters.iter().position(|at| *at == cluster);
        let mut roots: Vec<usize> = (0..self.layout.clusters).filter_map(first_of).collect();
        roots.sort_unstable();
        roots.truncate(ROOTS_MAX - 1);
        roots.push(clusters.len() - 1);
        roots.dedup();
        roots.into_iter().map(|root| root as Rank).collect()
    }

    /// The longest round trip.
    pub(super) fn far_time(&self) -> Duration {
        let longest = self.layout.far_us.iter().copied().fold(self.layout.near_us, f64::max);
        Duration::from_secs_f64(longest / 1e6)
    }
}

/// A layout that has a name, or that of a file.
fn read(scenario: &str) -> Result<Layout, Failure> {
    if let Some(layout) = Layout::named(scenario) {
        return Ok(layout);
    }
    let text = std::fs::read_to_string(scenario).map_err(|error| {
        Failure::usage(format!(
            "no scenario is called '{scenario}', and it is no file to read ({error}); take one of \
             {}",
            SCENARIOS.join(", ")
        ))
    })?;
    text.parse().map_err(|error| Failure::usage(format!("{scenario}: {error}")))
}

/// Runs this command again where hosts are. Comes back only with an error.
pub(super) fn run_with_hosts(hosts: &Hosts) -> Failure {
    let Ok(program) = std::env::current_exe() else {
        return Failure::own(&"this program does not know where it is");
    };
    let mut words = vec![program.display().to_string()];
    words.extend(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
    // The starter adds the folder for files.
    words.push("--inside".into());
    hosts.test_bed.raise(&hosts.emulation, &words)
}
