//! `sapwood-floor`: the floor by itself, for a look at the machine without Sapwood.
//!
//! Exit codes: 0 measured, 2 a wrong argument, 124 a deadline passed, 125 the floor failed.

use std::ffi::OsString;
use std::process::ExitCode;

use sapwood_floor::process::Pinned;
use sapwood_floor::startup::{self, StartupPlan};
use sapwood_floor::statistics::Spread;
use sapwood_floor::{Error, Floor, PACKETS_PER_WRITE, Plan, Shape, Transport};
use serde::Serialize;
use serde_json::{Value, json};

/// The name of the JSON object's form.
const SCHEMA: &str = "sapwood.floor/1";

const USAGE: &str = "\
sapwood-floor: measure a tree of plain blocking processes

  --topology SHAPE      64, 4x4x4 or 4^3                          [4x4]
  --transport KIND      unix or tcp                               [unix]
  --bytes N             payload of an answer, a multiple of 8     [64]
  --pin                 keep the whole tree on one core
  --experiment NAME     round_trip, pipelined or startup          [round_trip]
  --runs N              repetitions                               [5]
  --rounds N            round trips or waves of a repetition      [by size]
  --packets-per-write N packets of one write of a streaming leaf  [64]
  --threads N           threads that start processes (startup)    [one a core]
  --json                one line of JSON instead of text";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(ended) = sapwood_floor::run_hidden(&arguments) {
        return ended;
    }
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(fault) => {
            eprintln!("sapwood-floor: {fault}; see sapwood-floor --help");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(report) => {
            print_report(&options, &report);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("sapwood-floor: {error}");
            ExitCode::from(match error {
                Error::Shape { .. } | Error::Argument(_) => 2,
                Error::DeadlinePassed { .. } => 124,
                _ => 125,
            })
        }
    }
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Experiment {
    RoundTrip,
    Pipelined,
    Startup,
}

struct Options {
    shape: Shape,
    transport: Transport,
    bytes: usize,
    pin: bool,
    experiment: Experiment,
    runs: usize,
    rounds: Option<usize>,
    packets_per_write: usize,
    threads: Option<usize>,
    json: bool,
}

impl Options {
    fn parse(arguments: &[OsString]) -> Result<Options, String> {
        let mut options = Options {
            shape: Shape::new(&[4, 4]).map_err(|error| error.to_string())?,
            transport: Transport::Unix,
            bytes: 64,
            pin: false,
            experiment: Experiment::RoundTrip,
            runs: 5,
            rounds: None,
            packets_per_write: PACKETS_PER_WRITE,
            threads: None,
            json: false,
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let flag = flag.to_str().ok_or("an argument is not UTF-8")?;
            let mut value = || {
                let value = arguments.next().and_then(|value| value.to_str());
                value.ok_or_else(|| format!("{flag} needs a value"))
            };
            match flag {
                "--topology" => options.shape = parsed(value()?)?,
                "--transport" => options.transport = parsed(value()?)?,
                "--bytes" => options.bytes = number(flag, value()?)?,
                "--pin" => options.pin = true,
                "--experiment" => options.experiment = experiment(value()?)?,
                "--runs" => options.runs = number(flag, value()?)?,
                "--rounds" => options.rounds = Some(number(flag, value()?)?),
                "--packets-per-write" => options.packets_per_write = number(flag, value()?)?,
                "--threads" => options.threads = Some(number(flag, value()?)?),
                "--json" => options.json = true,
                _ => return Err(format!("no such argument: {flag}")),
            }
        }
        Ok(options)
    }

    /// Rounds of a repetition: enough for a stable median, few enough for a second or so.
    fn rounds(&self) -> usize {
        let work = self.shape.processes() * (2048 + self.bytes);
        let (rounds, most) = match self.experiment {
            Experiment::RoundTrip => (100_000_000 / work, 3000),
            _ => (1_000_000_000 / work, 50_000),
        };
        self.rounds.unwrap_or(rounds.clamp(50, most))
    }
}

fn parsed<T: std::str::FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: Error| error.to_string())
}

fn number(flag: &str, text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{flag} takes a whole number above 0, not {text}")),
    }
}

fn experiment(text: &str) -> Result<Experiment, String> {
    match text {
        "round_trip" => Ok(Experiment::RoundTrip),
        "pipelined" => Ok(Experiment::Pipelined),
        "startup" => Ok(Experiment::Startup),
        _ => Err(format!("the experiment is round_trip, pipelined or startup, not {text}")),
    }
}

/// Named figures, each with its spread over the runs.
type Report = Vec<(&'static str, Spread)>;

fn measure(options: &Options) -> Result<Report, Error> {
    let cpu = match options.pin {
        true => Some(Pinned::first_allowed()).transpose(),
        false => Ok(None),
    };
    let cpu = cpu.map_err(|source| Error::System { what: "find a core", source })?;
    match options.experiment {
        Experiment::RoundTrip => {
            measure_tree(options, cpu, &["min_us", "median_us", "p90_us", "cpu_us_per_wave"])
        }
        Experiment::Pipelined => measure_tree(options, cpu, &["waves_per_s", "cpu_us_per_wave"]),
        Experiment::Startup => measure_startup(options, cpu),
    }
}

fn measure_tree(
    options: &Options,
    cpu: Option<usize>,
    names: &[&'static str],
) -> Result<Report, Error> {
    let plan = Plan { cpu, ..Plan::new(options.shape.clone(), options.transport)? };
    let mut floor = Floor::start_plan(&plan)?;
    let rounds = options.rounds();
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for _ in 0..options.runs {
        let figures = match options.experiment {
            Experiment::RoundTrip => {
                let run = floor.round_trip(options.bytes, rounds, rounds / 10)?;
                vec![run.min_us(), run.median_us(), run.p90_us(), run.cpu_us_per_wave]
            }
            _ => {
                let run =
                    floor.pipelined_by(options.bytes, rounds as u64, options.packets_per_write)?;
                vec![run.waves_per_s, run.cpu_us_per_wave]
            }
        };
        runs.iter_mut().zip(figures).for_each(|(runs, figure)| runs.push(figure));
    }
    floor.finish()?;
    Ok(condensed(names, &runs))
}

fn measure_startup(options: &Options, cpu: Option<usize>) -> Result<Report, Error> {
    let pinned = cpu.map(Pinned::to).transpose();
    let _pinned = pinned.map_err(|source| Error::System { what: "keep to one core", source })?;
    // The root of a tree is the calling process, which needs no start.
    let mut plan = StartupPlan::new(options.shape.processes() - 1)?;
    plan.threads = options.threads.unwrap_or(plan.threads);
    let mut runs = vec![Vec::new(), Vec::new()];
    for _ in 0..options.runs {
        let run = startup::run(&plan)?;
        runs[0].push(run.ms);
        runs[1].push(run.cpu_ms);
    }
    Ok(condensed(&["ms", "cpu_ms"], &runs))
}

fn condensed(names: &[&'static str], runs: &[Vec<f64>]) -> Report {
    let spreads =
        names.iter().zip(runs).filter_map(|(name, runs)| Some((*name, Spread::of(runs)?)));
    spreads.collect()
}

fn print_report(options: &Options, report: &Report) {
    if options.json {
        let figures: serde_json::Map<String, Value> =
            report.iter().map(|(name, spread)| (name.to_string(), json!(spread))).collect();
        println!(
            "{}",
            json!({
                "schema": SCHEMA,
                "topology": options.shape.to_string(),
                "processes": options.shape.processes(),
                "transport": options.transport,
                "bytes": options.bytes,
                "pinned": options.pin,
                "rounds": options.rounds(),
                "experiment": options.experiment,
                "figures": figures,
            })
        );
        return;
    }
    let placement = if options.pin { "one core" } else { "free" };
    let Options { shape, transport, bytes, .. } = options;
    println!("{shape} over {transport}, {bytes} bytes, {placement}");
    for (name, spread) in report {
        let Spread { min, median, max, runs } = spread;
        println!("  {name:<16} {median:>12.1}   ({min:.1} to {max:.1}, {runs} runs)");
    }
}
