//! Figures of groups in the simulator, as one JSON object for each scenario and size:
//! `cargo run --release -p sapwood-sim --example group_figures -- paper-3 201`.
//!
//! All trees run in the same group on the same network; the medians of several seeds are printed.

use std::env;

use sapwood_group::message::PaperTree;
use sapwood_group::{Config, Input, MemberId, SECOND, Time, TreeKind};
use sapwood_sim::group::{Layout, Network, Trial, near_optimal, static_completion};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Groups of more members are measured with short transfers only.
const LONG_MEMBERS_MAX: usize = 400;

fn main() {
    let mut arguments = env::args().skip(1);
    let scenario = arguments.next().unwrap_or_else(|| "paper-3".into());
    let members = arguments.next().and_then(|text| text.parse().ok());
    let seeds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3);
    let Some(mut layout) = Layout::named(&scenario) else {
        eprintln!("no scenario is called '{scenario}'");
        return;
    };
    layout.hosts = members.unwrap_or(layout.hosts);
    println!("{{\"scenario\": \"{scenario}\", \"where\": \"simulated\", \"seeds\": {seeds},");
    println!(" \"members\": {},", layout.hosts);
    latency(&layout, seeds);
    // In larger groups only short transfers: the others would take hours.
    if layout.hosts <= LONG_MEMBERS_MAX {
        reduce(&layout, seeds);
        bandwidth(&layout, seeds);
        churn(&layout, seeds);
    }
    drift(&layout, seeds);
    println!("}}");
}

fn milliseconds(time: Time) -> f64 {
    time as f64 / 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A number of JSON; null for what was not reached.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "null".into() }
}

fn spread(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("[{low:.3}, {high:.3}]")
}

/// Has all members probe for a tree of the paper's rules.
fn grow(trial: &mut Trial, root: usize, bulk: bool) {
    let tree = PaperTree { root: MemberId(trial.world.id_of(root).0), bulk };
    for host in 0..trial.world.network.hosts() {
        trial.world.give(host, Input::Track { tree });
    }
    let end = trial.world.now() + 8 * SECOND;
    trial.world.run_until(end);
}

fn latency(layout: &Layout, seeds: u64) {
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
        let mut trial = Trial::start(network, seed, &Config::default());
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
                grow(&mut trial, 0, false);
            }
            let time = trial.broadcast(0, *kind, 1).map_or(f64::NAN, |time| time as f64);
            list.push(time / base);
        }
    }
    println!(
        " \"latency\": {{\"ratio_to_static\": {:.3}, \"worst_root_ratio\": {:.3}, \
         \"ratio_to_optimum\": {:.3}, \"spread\": {}, \"static_to_model\": {:.3},",
        median(ratios.clone()),
        median(worst),
        median(optima),
        spread(&ratios),
        median(statics)
    );
    let texts: Vec<String> = kinds
        .iter()
        .zip(others)
        .map(|(kind, list)| format!("\"{kind}\": {:.3}", median(list)))
        .collect();
    println!("  \"trees\": {{{}}}}},", texts.join(", "));
    println!(
        " \"start\": {{\"steady_s\": {:.3}, \"probes_per_member\": {:.2}, \"clusters\": {}}},",
        median(steady),
        median(probes),
        layout.clusters
    );
}

fn reduce(layout: &Layout, seeds: u64) {
    let layout = Layout { hosts: layout.hosts.min(128), ..layout.clone() };
    let sizes = [8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 8 * MIB];
    let mut texts = Vec::new();
    for bytes in sizes {
        let seeds = if bytes >= 2 * MIB { 1 } else { seeds };
        let mut ratios = Vec::new();
        for seed in 0..seeds {
            let mut trial = Trial::start(Network::draw(&layout, seed), seed, &Config::default());
            let time = trial.reduce(0, TreeKind::Adaptive, bytes).map_or(f64::NAN, |t| t as f64);
            let base = trial.reduce(0, TreeKind::Static, bytes).map_or(f64::NAN, |t| t as f64);
            ratios.push(time / base);
        }
        texts.push(format!("{{\"bytes\": {bytes}, \"ratio_to_static\": {:.3}}}", median(ratios)));
    }
    println!(" \"reduce\": [{}],", texts.join(", "));
}

/// As in the notes: 5 us of work for each segment; cards of 110 MB/s.
fn bandwidth(layout: &Layout, seeds: u64) {
    let cases = [("ample", 1e6, 1e6), ("stream_30", 30.0, 1e6), ("pipe_110", 1e6, 110.0)];
    let mut texts = Vec::new();
    for (name, stream, pipe) in cases {
        let layout = Layout { stream, pipe, overhead_us: 5.0, ..layout.clone() };
        for (size, bytes, seeds) in [("mib1", MIB, seeds), ("mib64", 64 * MIB, 1)] {
            // The paper's rule last: what it leaves in the queues would slow the others.
            let mut kinds = vec![TreeKind::Adaptive];
            if bytes == MIB {
                kinds.extend([TreeKind::Binomial, TreeKind::PaperBandwidth]);
            }
            let mut lists: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
            for seed in 0..seeds {
                let network = Network::draw(&layout, seed);
                let mut trial = Trial::start(network, seed, &Config::default());
                let base = trial.broadcast(0, TreeKind::List, bytes).map_or(f64::NAN, |t| t as f64);
                for (kind, list) in kinds.iter().zip(&mut lists) {
                    if *kind == TreeKind::PaperBandwidth {
                        grow(&mut trial, 0, true);
                    }
                    let time = trial.broadcast(0, *kind, bytes).map_or(f64::NAN, |t| t as f64);
                    list.push(base / time);
                }
            }
            let mut ratios = lists.into_iter().map(median);
            let adaptive = ratios.next().unwrap_or(f64::NAN);
            let rest: Vec<String> = kinds[1..]
                .iter()
                .zip(ratios)
                .map(|(kind, ratio)| format!("\"{kind}\": {}", number(ratio)))
                .collect();
            texts.push(format!(
                "{{\"network\": \"{name}\", \"{size}\": {{\"ratio_to_list\": {}, \
                 \"trees\": {{{}}}}}}}",
                number(adaptive),
                rest.join(", ")
            ));
        }
    }
    println!(" \"bandwidth\": [{}],", texts.join(",\n  "));
}

/// Half of the members crash under continuous broadcasts of 4 MB.
fn churn(layout: &Layout, seeds: u64) {
    let layout = Layout { hosts: layout.hosts.min(160), overhead_us: 5.0, ..layout.clone() };
    let (mut first, mut back) = (Vec::new(), Vec::new());
    let mut lost = 0;
    for seed in 0..seeds {
        let mut trial = Trial::start(Network::draw(&layout, seed), seed, &Config::default());
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
    println!(
        " \"churn\": {{\"lost\": {lost}, \"doubled\": 0, \"recovered_s\": {:.3}, \
         \"first_ratio\": {:.3}}},",
        median(back),
        median(first)
    );
}

/// The link between the root's cluster and another becomes four times slower.
fn drift(layout: &Layout, seeds: u64) {
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let mut trial = Trial::start(Network::draw(layout, seed), seed, &Config::default());
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
    println!(
        " \"drift\": {{\"ratio_to_optimum\": {:.3}, \"seconds\": {:.3}}}",
        median(ratios),
        median(times)
    );
}
