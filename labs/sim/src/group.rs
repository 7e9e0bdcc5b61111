//! `sapwood sim group`: figures of groups of real members on a modelled network, as one JSON
//! object, curves of the paper's figures as lines of JSON (`--figures`), or their rules under
//! schedules of joins, leaves and deaths (`--schedules`).
//!
//! For the figures all trees run in the same group on the same network; the medians of several
//! seeds are printed. What the network is like is the crate `sapwood-sim`'s.

mod figures;

use std::process::ExitCode;

use sapwood_command_line::exit::{Failure, print};
use sapwood_group::{Config, SECOND, Time, TreeKind};
use sapwood_layout::{Layout, SCENARIOS};
use sapwood_sim::group::{
    Network, Trial, Verdict, near_optimal, run_schedule, run_schedule_of_defining,
    run_schedule_of_taking, static_completion,
};
use serde_json::{Map, Value, json};

use figures::Figure;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Groups of more members are measured with short transfers only: others would take hours.
const LONG_MEMBERS_MAX: usize = 400;
/// Sums, and broadcasts of members that leave, are of no more members than these.
const SUM_MEMBERS_MAX: usize = 128;
const CHURN_MEMBERS_MAX: usize = 160;
/// The lengths of sums.
const SUM_SIZES: [usize; 8] = [8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 8 * MIB];
/// The work of a segment of a long value, in microseconds.
const LONG_OVERHEAD_US: f64 = 5.0;
/// More members do not fit one process, since each one's view holds all.
const MEMBERS_MAX: usize = 2000;
/// The most networks of which a median is taken.
const NETWORKS_MAX: u64 = 100;

/// What `sapwood sim group` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The network: paper-3 (the default), paper-4, racks, near, slow-link, cards, campus, lan or
    /// host.
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Number of members; by default that of the scenario.
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// Factor by which all latencies are multiplied.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    scale: f64,
    /// Number of networks of which the median is taken, 1 to 100. More, without a scenario, are
    /// schedules: as --schedules.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Measure broadcasts of one byte alone.
    #[arg(long)]
    short: bool,
    /// Print the curves of these figures of the paper instead, a line of JSON for each tree and
    /// seed.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "short")]
    figures: Vec<Figure>,
    /// Measure nothing: run this many schedules of joins, leaves and deaths, and judge each.
    #[arg(long, value_name = "N",
          conflicts_with_all = ["scenario", "members", "scale", "seeds", "short", "figures"])]
    schedules: Option<u64>,
    /// The seed of the first of these schedules.
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "schedules")]
    first: u64,
    /// In each of these schedules one more host joins, and takes virtual nodes from another.
    #[arg(long, requires = "schedules")]
    taking: bool,
    /// In each of these schedules members define operations, and reduce by them.
    #[arg(long, requires = "schedules", conflicts_with = "taking")]
    defining: bool,
}

impl Arguments {
    fn describes_no_network(&self) -> bool {
        let is_unscaled = (self.scale - 1.0).abs() < f64::EPSILON;
        let measures_all = !self.short && self.figures.is_empty();
        self.scenario.is_none() && self.members.is_none() && is_unscaled && measures_all
    }

    /// Runs a schedule of the kind that is asked for.
    fn schedule(&self) -> fn(u64) -> Verdict {
        match (self.taking, self.defining) {
            (true, _) => |seed| run_schedule_of_taking(seed, |_| {}),
            (_, true) => |seed| run_schedule_of_defining(seed, |_| {}),
            _ => |seed| run_schedule(seed, |_| {}),
        }
    }
}

/// Prints the figures.
///
/// # Errors
/// [`Failure`] where the scenario is unknown, or a number does not fit.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(schedules) = arguments.schedules {
        return judge(arguments.first, schedules, arguments.schedule());
    }
    let Arguments { seeds, short, .. } = arguments;
    if *seeds > NETWORKS_MAX && arguments.describes_no_network() {
        return judge(arguments.first, *seeds, arguments.schedule());
    }
    let scenario = arguments.scenario.as_deref().unwrap_or("paper-3");
    let Some(mut layout) = Layout::named(scenario) else {
        return Err(Failure::usage(format!(
            "no scenario is called '{scenario}'; take one of {}",
            SCENARIOS.join(", ")
        )));
    };
    layout.hosts = arguments.members.unwrap_or(layout.hosts);
    if !(0.01..=1000.0).contains(&arguments.scale) {
        return Err(Failure::usage("give a scale of 0.01 to 1000"));
    }
    layout.scale_latencies(arguments.scale);
    if !(2..=MEMBERS_MAX).contains(&layout.hosts) || !(1..=NETWORKS_MAX).contains(seeds) {
        return Err(Failure::usage(format!(
            "give 2 to {MEMBERS_MAX} members and 1 to {NETWORKS_MAX} seeds; more seeds, without a \
             scenario, are schedules"
        )));
    }
    if !arguments.figures.is_empty() {
        return figures::run(scenario, &layout, *seeds, &arguments.figures);
    }
    let mut figures = json!({
        "scenario": scenario,
        "where": "simulated",
        "seeds": seeds,
        "members": layout.hosts,
    });
    (figures["latency"], figures["start"]) = latency(&layout, *seeds)?;
    if layout.hosts <= LONG_MEMBERS_MAX && !short {
        figures["reduce"] = reduce(&layout, *seeds)?;
        figures["bandwidth"] = bandwidth(&layout, *seeds)?;
        figures["churn"] = churn(&layout, *seeds)?;
    }
    if !short {
        figures["drift"] = drift(&layout, *seeds)?;
    }
    print(&format!("{figures}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs schedules and prints each rule that one of them breaks, with the seed that repeats it.
fn judge(first: u64, schedules: u64, run: fn(u64) -> Verdict) -> Result<ExitCode, Failure> {
    let mut broken = 0_u64;
    for seed in (0..schedules).map(|at| first.wrapping_add(at)) {
        let breaches = run(seed).breaches;
        broken += u64::from(!breaches.is_empty());
        for breach in breaches {
            print(&format!("seed {seed}: rule '{}': {}\n", breach.rule, breach.text))?;
        }
    }
    print(&format!("{schedules} schedules from seed {first}: {broken} broke a rule\n"))?;
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A group at rest.
fn start(network: Network, seed: u64) -> Result<Trial, Failure> {
    let trial = Trial::start(network, seed, &Config::default());
    trial.map_err(|error| Failure::usage(error.to_string()))
}

fn milliseconds(time: Time) -> f64 {
    time as f64 / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// To three digits; null for what was not reached.
fn number(value: f64) -> Value {
    if value.is_finite() { json!((value * 1e3).round() / 1e3) } else { Value::Null }
}

fn spread(values: &[f64]) -> Value {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    json!([number(low), number(high)])
}

/// The medians of other trees, by name.
fn by_tree(kinds: &[TreeKind], lists: Vec<Vec<f64>>) -> Value {
    let entries = kinds.iter().zip(lists);
    let medians = entries.map(|(kind, list)| (kind.to_string(), number(median(list))));
    Value::Object(medians.collect::<Map<String, Value>>())
}

fn latency(layout: &Layout, seeds: u64) -> Result<(Value, Value), Failure> {
    let (mut ratios, mut worst, mut optima) = (Vec::new(), Vec::new(), Vec::new());
    let (mut steady, mut probes) = (Vec::new(), Vec::new());
    let kinds = [TreeKind::Flat, TreeKind::Binomial, TreeKind::List, TreeKind::PaperLatency];
    let mut others: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
    let mut statics = Vec::new();
    for seed in 0..seeds {
        let network = Network::draw(layout, seed);
        let (model, best) = (
            static_completion(&network, 0) as f64,
            near_optimal(&network, 0, if layout.hosts > 400 { 100 } else { 800 }) as f64,
        );
        let mut trial = start(network, seed)?;
        steady.push(milliseconds(trial.start.steady) / 1e3);
        probes.push(trial.start.probes);
        let base = trial.broadcast(0, TreeKind::Static, 1).unwrap_or(0) as f64;
        statics.push(base / model);
        let adaptive = trial.broadcast(0, TreeKind::Adaptive, 1).unwrap_or(0) as f64;
        ratios.push(adaptive / base);
        optima.push(adaptive / best);
        let mut highest: f64 = 0.0;
        for root in (0..layout.hosts).step_by((layout.hosts / 12).max(1)) {
            let one = trial.broadcast(root, TreeKind::Adaptive, 1).unwrap_or(0) as f64;
            let other = trial.broadcast(root, TreeKind::Static, 1).unwrap_or(1) as f64;
            highest = highest.max(one / other);
        }
        worst.push(highest);
        for (kind, list) in kinds.iter().zip(&mut others) {
            if *kind == TreeKind::PaperLatency {
                trial.grow(0, TreeKind::PaperLatency);
            }
            let time = trial.broadcast(0, *kind, 1).map_or(f64::NAN, |time| time as f64);
            list.push(time / base);
        }
    }
    let spread = spread(&ratios);
    let latency = json!({
        "ratio_to_static": number(median(ratios)),
        "worst_root_ratio": number(median(worst)),
        "ratio_to_optimum": number(median(optima)),
        "spread": spread,
        "static_to_model": number(median(statics)),
        "trees": by_tree(&kinds, others),
    });
    let start = json!({
        "steady_s": number(median(steady)),
        "probes_per_member": number(median(probes)),
        "clusters": layout.clusters,
    });
    Ok((latency, start))
}

fn reduce(layout: &Layout, seeds: u64) -> Result<Value, Failure> {
    let layout = Layout { hosts: layout.hosts.min(SUM_MEMBERS_MAX), ..layout.clone() };
    let mut rows = Vec::new();
    for bytes in SUM_SIZES {
        let seeds = if bytes >= 2 * MIB { 1 } else { seeds };
        let mut ratios = Vec::new();
        for seed in 0..seeds {
            let mut trial = start(Network::draw(&layout, seed), seed)?;
            let time = trial.reduce(0, TreeKind::Adaptive, bytes).map_or(f64::NAN, |t| t as f64);
            let base = trial.reduce(0, TreeKind::Static, bytes).map_or(f64::NAN, |t| t as f64);
            ratios.push(time / base);
        }
        rows.push(json!({ "bytes": bytes, "ratio_to_static": number(median(ratios)) }));
    }
    Ok(Value::Array(rows))
}

/// As in the notes: 5 us of work for each segment; cards of 110 MB/s, unless the layout has others.
fn bandwidth(layout: &Layout, seeds: u64) -> Result<Value, Failure> {
    let cases = [("ample", 1e6, 1e6), ("stream_30", 30.0, 1e6), ("pipe_110", 1e6, 110.0)];
    let mut rows = Vec::new();
    for (name, stream, pipe) in cases {
        let layout =
            Layout { stream, pipe: vec![pipe], overhead_us: LONG_OVERHEAD_US, ..layout.clone() };
        for (size, bytes, seeds) in [("mib1", MIB, seeds), ("mib64", 64 * MIB, 1)] {
            // The paper's rule last: what it leaves in the queues would slow the others.
            let mut kinds = vec![TreeKind::Adaptive];
            if bytes == MIB {
                kinds.push(TreeKind::Binomial);
            }
            kinds.push(TreeKind::PaperBandwidth);
            let mut lists: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
            for seed in 0..seeds {
                let network = Network::draw(&layout, seed);
                let mut trial = start(network, seed)?;
                let base = trial.broadcast(0, TreeKind::List, bytes).map_or(f64::NAN, |t| t as f64);
                for (kind, list) in kinds.iter().zip(&mut lists) {
                    if *kind == TreeKind::PaperBandwidth {
                        trial.grow(0, TreeKind::PaperBandwidth);
                    }
                    let time = trial.broadcast(0, *kind, bytes).map_or(f64::NAN, |t| t as f64);
                    list.push(base / time);
                }
            }
            let others = lists.split_off(1);
            let adaptive = lists.pop().map_or(f64::NAN, median);
            let trees = by_tree(&kinds[1..], others);
            rows.push(json!({
                "network": name,
                size: { "ratio_to_list": number(adaptive), "trees": trees },
            }));
        }
    }
    Ok(Value::Array(rows))
}

/// Half of the members crash under continuous broadcasts of 4 MB.
fn churn(layout: &Layout, seeds: u64) -> Result<Value, Failure> {
    let hosts = layout.hosts.min(CHURN_MEMBERS_MAX);
    let layout = Layout { hosts, overhead_us: LONG_OVERHEAD_US, ..layout.clone() };
    let (mut first, mut back) = (Vec::new(), Vec::new());
    let mut lost = 0;
    for seed in 0..seeds {
        let mut trial = start(Network::draw(&layout, seed), seed)?;
        let normal = trial.broadcast(0, TreeKind::Adaptive, 4 * MIB).unwrap_or(1) as f64;
        for host in (1..layout.hosts).step_by(2) {
            trial.world.crash(host);
        }
        let begin = trial.world.now();
        let mut settled = f64::NAN;
        for count in 0..20 {
            let started = trial.world.now();
            let time = trial.broadcast_to_live(0, TreeKind::Adaptive, 4 * MIB);
            lost += u64::from(time.is_none());
            let ratio = time.map_or(f64::NAN, |time| time as f64) / normal;
            if count == 0 {
                first.push(ratio);
            }
            if ratio <= 1.0 / 0.9 {
                settled = milliseconds(started - begin) / 1e3;
                break;
            }
        }
        back.push(settled);
    }
    Ok(json!({
        "lost": lost,
        "recovered_s": number(median(back)),
        "first_ratio": number(median(first)),
    }))
}

/// The link between the root's cluster and another becomes four times slower.
fn drift(layout: &Layout, seeds: u64) -> Result<Value, Failure> {
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let mut trial = start(Network::draw(layout, seed), seed)?;
        let here = trial.world.network.cluster(0);
        let there = (0..layout.clusters).find(|cluster| *cluster != here).unwrap_or(0);
        trial.world.network.scale(here, there, 4.0);
        let best = near_optimal(&trial.world.network, 0, 100) as f64;
        let begin = trial.world.now();
        let (mut ratio, mut settled) = (f64::NAN, f64::NAN);
        while trial.world.now() < begin + 2 * SECOND {
            let started = trial.world.now();
            let time = trial.broadcast(0, TreeKind::Adaptive, 1).map_or(f64::NAN, |t| t as f64);
            ratio = time / best;
            if ratio <= 1.2 && settled.is_nan() {
                settled = milliseconds(started - begin) / 1e3;
            }
            trial.world.run_until(started + SECOND / 5);
        }
        ratios.push(ratio);
        times.push(settled);
    }
    Ok(json!({ "ratio_to_optimum": number(median(ratios)), "seconds": number(median(times)) }))
}
