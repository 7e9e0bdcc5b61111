//! `sapwood topology advise`: which tree to take for a number of back-ends, and why.
//!
//! Owns the command line and the words. The candidates and their order are the crate
//! `sapwood-topology`'s.

use std::fmt::Write;

use sapwood_topology::{Candidate, FAN_OUT_MAX, Kind, LogGp, NodeSet, Pattern, Site, advise};
use serde_json::{Value, json};

use super::{cost, measured};
use sapwood_command_line::exit::Failure;
use sapwood_hosts::groups::SiteGroups;
use sapwood_hosts::measured::Measured;
use sapwood_hosts::tree;

/// Hosts that one process reaches at the same time, as for all commands if nothing is said.
const CONCURRENT: u32 = 32;

/// Candidates that the table shows, beside the flat tree.
const SHOWN: usize = 6;

/// What is to be advised on.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of back-ends of the tree.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    backends: u32,
    /// Hosts of the back-ends: their number, or a nodeset; by default this machine alone.
    #[arg(long, value_name = "N|NODESET", default_value = "1")]
    hosts: String,
    /// Number of processors of each host; by default that of this machine.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processors: Option<u32>,
    /// Number of further hosts, which run communication processes only; with 0 these run on the
    /// hosts of the back-ends.
    #[arg(long, value_name = "N", default_value_t = 0)]
    dedicated: u32,
    /// Maximum number of children of one process.
    #[arg(long = "fan-out", alias = "fan-out-max", value_name = "N", default_value_t = FAN_OUT_MAX,
          value_parser = clap::value_parser!(u32).range(2..))]
    fan_out_max: u32,
    /// Payload of each packet in bytes.
    #[arg(long, value_name = "B", default_value_t = 64)]
    bytes: u64,
    /// Minimise the time of one question with its answer (request), maximise the waves per second
    /// (stream), or minimise the time to start the tree by log-ins (start).
    #[arg(long, value_enum, default_value_t = PatternName::Request)]
    pattern: PatternName,
    /// Latency, overhead and gap of a packet, and gap per byte, in microseconds, separated by
    /// commas; by default the values that 'sapwood doctor --hosts' has measured on these hosts,
    /// else those of small trees that this command measures on this machine.
    #[arg(long, value_name = "L,o,g,G", value_parser = cost::parse_model)]
    loggp: Option<LogGp>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PatternName {
    Request,
    Stream,
    Start,
}

impl PatternName {
    fn pattern(self) -> Pattern {
        match self {
            Self::Request => Pattern::Request,
            Self::Stream => Pattern::Stream,
            Self::Start => Pattern::Start,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Stream => "stream",
            Self::Start => "start",
        }
    }
}

/// Compares the candidates and says which to take.
pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let (hosts, named) = hosts_of(&arguments.hosts)?;
    let links = Measured::for_hosts(&named, "ssh");
    let (model, source) = model_for(arguments, &links)?;
    let (hosts, processors) = links.machines(hosts, tree::own_processors());
    let site = Site {
        hosts,
        processors: arguments.processors.unwrap_or(processors),
        dedicated_hosts: arguments.dedicated,
        fan_out_max: arguments.fan_out_max,
    };
    let pattern = arguments.pattern.pattern();
    let candidates = advise(&model, &site, arguments.backends, arguments.bytes, pattern)
        .map_err(Failure::usage)?;
    let Some(best) = candidates.first() else {
        return Err(Failure::usage(format!(
            "no tree has {} back-ends with at most {} children each; raise --fan-out",
            arguments.backends, site.fan_out_max
        )));
    };
    let flat = candidates.iter().find(|candidate| candidate.kind == Kind::Flat);
    let why = why(best, flat, &site, arguments.pattern);
    let advice = Advice { arguments, model, source, site, candidates: &candidates, why };
    Ok(if arguments.json { advice.json() } else { advice.table() })
}

/// What is said.
struct Advice<'a> {
    arguments: &'a Arguments,
    model: LogGp,
    source: String,
    site: Site,
    /// The best first; there is one at least.
    candidates: &'a [Candidate],
    why: String,
}

impl Advice<'_> {
    fn json(&self) -> String {
        let Self { arguments, model, site, candidates, .. } = self;
        let report = json!({
            "schema": "sapwood.topology-advice/1",
            "back_ends": arguments.backends,
            "bytes": arguments.bytes,
            "pattern": arguments.pattern.name(),
            "site": {
                "hosts": site.hosts,
                "processors": site.processors,
                "dedicated_hosts": site.dedicated_hosts,
                "fan_out_max": site.fan_out_max,
            },
            "model": {
                "is_measured": self.source.contains("measured"),
                "source": self.source,
                "latency_us": model.latency_us(),
                "overhead_us": model.overhead_us(),
                "gap_us": model.gap_us(),
                "gap_per_byte_us": model.gap_per_byte_us(),
            },
            "topology": candidates[0].shape.to_string(),
            "why": self.why,
            "candidates": candidates.iter().map(as_json).collect::<Vec<_>>(),
        });
        format!("{report}\n")
    }

    fn table(&self) -> String {
        let Self { arguments, model, site, candidates, why, .. } = self;
        let best = &candidates[0];
        let source = &self.source;
        let unit = match arguments.pattern {
            PatternName::Request => "us per question",
            PatternName::Stream => "us/wave",
            PatternName::Start => "us to start",
        };
        let mut text = format!(
            "take {}: {why}\n\nLogGP {source}: --loggp {}; {} hosts of {} processors, packets of {} \
             bytes\n\n{:<10} {:<28} {:>11} {:>6} {:>8} {unit:>14} {:>12}\n",
            best.shape,
            measured::as_option(model),
            site.hosts,
            site.processors,
            arguments.bytes,
            "kind",
            "tree",
            "comm. procs",
            "depth",
            "fan-out",
            "vs. best",
        );
        for (place, candidate) in candidates.iter().enumerate() {
            if place < SHOWN || candidate.kind == Kind::Flat {
                text += &line(candidate, best.cost_us);
            }
        }
        text
    }
}

/// How many hosts, and their names if these are given.
fn hosts_of(text: &str) -> Result<(u32, NodeSet), Failure> {
    if let Ok(number) = text.parse::<u32>() {
        return match number {
            0 => Err(Failure::usage("--hosts 0: at least one host has to run the back-ends")),
            number => Ok((number, NodeSet::default())),
        };
    }
    let hosts = NodeSet::parse(text, &SiteGroups::default()).map_err(Failure::usage)?;
    match hosts.is_empty() {
        true => Err(Failure::usage(format!("--hosts {text}: the set is empty"))),
        false => Ok((u32::try_from(hosts.len()).unwrap_or(u32::MAX), hosts)),
    }
}

/// What the candidates are judged by, and where that comes from: as given; as measured between
/// these hosts; a guess for log-ins; or measured on this machine now.
fn model_for(arguments: &Arguments, links: &Measured) -> Result<(LogGp, String), Failure> {
    if let Some(model) = arguments.loggp {
        return Ok((model, "as given".to_owned()));
    }
    Ok(match arguments.pattern {
        PatternName::Start => (links.log_in(CONCURRENT), links.source()),
        _ if links.is_there() => (links.message(), links.source()),
        _ => (measured::loggp()?, "measured on this machine".to_owned()),
    })
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Flat => "flat",
        Kind::Balanced => "balanced",
        Kind::Knomial => "k-nomial",
        Kind::Grouped => "grouped",
        Kind::Postal => "postal",
    }
}

/// One sentence.
fn why(best: &Candidate, flat: Option<&Candidate>, site: &Site, pattern: PatternName) -> String {
    let processors = f64::from(site.processors);
    let is_bound = |of: &Candidate| of.host_work_us / processors >= of.cost_us * 0.999;
    let Some(flat) = flat else {
        return format!(
            "a front-end may have {} children, and this tree costs {:.1} us",
            site.fan_out_max, best.cost_us
        );
    };
    if best.kind == Kind::Flat {
        return if is_bound(best) && site.hosts == 1 {
            "all processes share this machine's processors, and one between would only take time \
             from the others"
                .to_string()
        } else {
            "no communication process saves the front-end more than it costs".to_string()
        };
    }
    let load = match pattern {
        PatternName::Start => format!("makes {} log-ins", best.prediction.back_ends),
        _ => format!("handles {} messages a wave", 2 * best.prediction.back_ends),
    };
    format!(
        "{:.1} us instead of the {:.1} us of a flat tree, whose front-end {load}; here no process \
         has more than {} children",
        best.cost_us,
        flat.cost_us,
        best.shape.fan_out()
    )
}

fn line(of: &Candidate, best_us: f64) -> String {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "{:<10} {:<28} {:>11} {:>6} {:>8} {:>14.1} {:>12.2}",
        kind_name(of.kind),
        of.prediction.shape,
        of.prediction.communication_processes,
        of.prediction.depth,
        of.shape.fan_out(),
        of.cost_us,
        if best_us > 0.0 { of.cost_us / best_us } else { 1.0 },
    );
    line
}

fn as_json(of: &Candidate) -> Value {
    json!({
        "kind": kind_name(of.kind),
        "topology": of.shape.to_string(),
        "communication_processes": of.prediction.communication_processes,
        "depth": of.prediction.depth,
        "fan_out": of.shape.fan_out(),
        "round_trip_us": of.prediction.round_trip_us,
        "waves_per_s": of.prediction.waves_per_s,
        "host_work_us": of.host_work_us,
        "cost_us": of.cost_us,
    })
}
