//! `sapwood clocks`: how far the clocks of a running network's processes are ahead of the
//! front-end's, and how fast they drift.
//!
//! Owns the command line, the table and the JSON; `perfetto` is the trace. What is measured, and
//! how, is the library's.

mod perfetto;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{Clocks, Drift, Role, VisibleNetwork};
use serde_json::{Value, json};

use self::perfetto::Now;
use crate::Whom;
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::time;

/// What `sapwood clocks` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    whom: Whom,
    /// Number of queries; each adds one sample per link.
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    samples: u32,
    /// Measure again after this time, such as 5s, and print how the clocks have drifted.
    #[arg(long, value_name = "TIME", value_parser = time)]
    drift: Option<Duration>,
    /// Also write a trace for Perfetto to this file: snapshots of all clocks, and their offsets as
    /// counters.
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// Measures and shows.
///
/// # Errors
/// [`Failure`] when no network or more than one is there, or it does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let network = arguments.whom.find()?;
    let mut measured = Vec::new();
    let mut clocks = measure(&network, arguments, &mut measured)?;
    let mut drifts = Vec::new();
    if let Some(time) = arguments.drift {
        std::thread::sleep(time);
        let earlier = std::mem::replace(&mut clocks, measure(&network, arguments, &mut measured)?);
        drifts = clocks.drift_since(&earlier);
    }
    if let Some(path) = &arguments.perfetto {
        let written = std::fs::write(path, perfetto::trace(&measured));
        written.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    }
    print(&match arguments.whom.json {
        true => as_json(&network.name, &clocks, &drifts),
        false => table(&network.name, &clocks, &drifts),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Asks as often as is wanted. What is known after each question is kept for a trace, if one is.
fn measure(
    network: &VisibleNetwork,
    arguments: &Arguments,
    measured: &mut Vec<(Now, Clocks)>,
) -> Result<Clocks, Failure> {
    let mut ask = || -> Result<Clocks, Failure> {
        let clocks = arguments.whom.ask(network)?.clocks();
        if arguments.perfetto.is_some() {
            measured.push((Now::read(), clocks.clone()));
        }
        Ok(clocks)
    };
    let mut clocks = ask()?;
    for _ in 1..arguments.samples {
        clocks = ask()?;
    }
    Ok(clocks)
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::FrontEnd => "front-end",
        Role::Comm => "communication process",
        Role::BackEnd => "back-end",
    }
}

fn table(name: &str, clocks: &Clocks, drifts: &[Drift]) -> String {
    let mut text = format!(
        "{name}: offsets from the front-end's clock, each with its error bound\n{:>6} {:<22} {:<20} {:>16} \
         {:>12} {:>16} {:>20}\n",
        "rank", "role", "host", "offset us", "+- us", "wall clock us", "drift us/s"
    );
    for clock in &clocks.known {
        let drift = drifts.iter().find(|drift| drift.rank == clock.rank);
        let drift = drift.map_or_else(
            || String::from("-"),
            |drift| format!("{:.1} +- {:.1}", drift.rate, drift.error),
        );
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>6} {:<22} {:<20} {:>16.1} {:>12.1} {:>16.1} {drift:>20}",
            clock.rank,
            role_name(clock.role),
            clock.host,
            clock.ahead as f64 / 1e3,
            clock.error as f64 / 1e3,
            clock.wall_ahead as f64 / 1e3,
        );
    }
    if !clocks.unknown.is_empty() {
        let _ = writeln!(
            text,
            "not measured: ranks {}: no answer from them, or from a process above them",
            clocks.unknown
        );
    }
    text
}

fn as_json(name: &str, clocks: &Clocks, drifts: &[Drift]) -> String {
    let of = |clock: &sapwood::Clock| -> Value {
        let drift = drifts.iter().find(|drift| drift.rank == clock.rank);
        json!({
            "rank": clock.rank,
            "role": role_name(clock.role),
            "host": clock.host,
            "ahead_ns": clock.ahead,
            "error_ns": clock.error,
            "wall_ahead_ns": clock.wall_ahead,
            "drift_ppm": drift.map(|drift| drift.rate),
            "drift_error_ppm": drift.map(|drift| drift.error),
        })
    };
    let report = json!({
        "schema": "sapwood.clocks/1",
        "network": name,
        "clocks": clocks.known.iter().map(of).collect::<Vec<_>>(),
        "unknown": clocks.unknown.to_string(),
    });
    format!("{report}\n")
}
