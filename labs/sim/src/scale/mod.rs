//! `sapwood sim scale`: how a tree grows, from ten back-ends to a million, against flat.
//!
//! Owns the command line and which trees are looked at. The simulation is
//! `sapwood_sim::scale`; `docs/scale.md` tells how to read what is printed.

mod plot;
mod report;
mod row;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use sapwood_sim::scale::{Costs, Recovery, StartCosts, Tree};
use sapwood_topology::LogGp;

use self::row::{Plan, Row};
use sapwood_command_line::exit::{Failure, print};

/// What `sapwood sim scale` is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Back-ends of each series of trees; 1000000 takes some 10 GB and a minute or more
    /// for each tree.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = [10, 100, 1000, 10_000, 100_000],
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    back_ends: Vec<u32>,
    /// Trees of these fan-outs, and `flat`: a front-end with nothing between it and its back-ends.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = [Series::FanOut(2), Series::FanOut(8), Series::FanOut(32), Series::FanOut(64), Series::Flat]
    )]
    fan_outs: Vec<Series>,
    /// Trees of these depths beside, all with the same number of back-ends; 0 for none.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    )]
    depths: Vec<u32>,
    /// Back-ends of the trees of different depths.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    depth_back_ends: u32,
    /// Latency, overhead and gap of a message and gap per byte, in microseconds, separated by
    /// commas; unless given, a guess for local sockets.
    #[arg(long, value_name = "L,o,g,G", value_parser = parse_model)]
    loggp: Option<LogGp>,
    /// Parent's time to start a child, child's time until it connects, either side's time to prove
    /// the key, in microseconds; and children that a parent starts at a time.
    #[arg(long, value_name = "SPAWN,READY,PROOF,N", value_parser = parse_start)]
    start: Option<StartCosts>,
    /// Waves that are asked for one after another.
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=100))]
    waves: u16,
    /// Simulate nodes without recovery.
    #[arg(long)]
    no_recovery: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Write a picture: latency, front-end load and start-up against the number of back-ends.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Trees that differ in size only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Flat,
    FanOut(u32),
    Depth(u32),
}

impl Series {
    fn tree(self, back_ends: u32) -> Result<Tree, Failure> {
        let tree = match self {
            Self::Flat => Tree::flat(back_ends),
            Self::FanOut(fan_out) => Tree::with_fan_out(back_ends, fan_out),
            Self::Depth(depth) => Tree::with_depth(back_ends, depth),
        };
        tree.map_err(Failure::usage)
    }
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("flat", _) => Ok(Self::Flat),
            (_, Ok(fan_out @ 2..)) => Ok(Self::FanOut(fan_out)),
            _ => Err("a fan-out is a number from 2 on, or 'flat'".to_string()),
        }
    }
}

impl std::fmt::Display for Series {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flat => f.pad("flat"),
            Self::FanOut(fan_out) => f.pad(&fan_out.to_string()),
            Self::Depth(depth) => f.pad(&format!("depth {depth}")),
        }
    }
}

fn parse_times(text: &str) -> Option<Vec<f64>> {
    text.split(',').map(|word| word.trim().parse().ok()).collect()
}

fn parse_model(text: &str) -> Result<LogGp, String> {
    match parse_times(text).as_deref() {
        Some([latency, overhead, gap, per_byte]) => {
            LogGp::new(*latency, *overhead, *gap, *per_byte).map_err(|error| error.to_string())
        }
        _ => Err("write four times in microseconds, such as 10,2,1,0.001".to_string()),
    }
}

fn parse_start(text: &str) -> Result<StartCosts, String> {
    match parse_times(text).as_deref() {
        Some([spawn, ready, proof, at_a_time]) if at_a_time.fract() == 0.0 => Ok(StartCosts {
            spawn_us: *spawn,
            ready_us: *ready,
            proof_us: *proof,
            // A number that is too large or too small ends at the bound, and 0 is refused.
            at_a_time: *at_a_time as u32,
        }),
        _ => Err("write three times and a number of children, such as 300,1000,60,32".to_string()),
    }
}

/// Simulates all trees and shows them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = arguments.plan()?;
    if !arguments.json {
        print(&report::head(&plan))?;
    }
    let mut rows: Vec<Row> = Vec::new();
    for (series, back_ends) in arguments.trees() {
        let row = row::measure(&plan, series, series.tree(back_ends)?, &rows)?;
        if !arguments.json {
            print(&report::line(&row, rows.last()))?;
        }
        rows.push(row);
    }
    print(&if arguments.json { report::json(&plan, &rows) } else { report::foot(&rows) })?;
    if let Some(path) = &arguments.svg {
        std::fs::write(path, plot::picture(&rows)).map_err(|error| {
            Failure::usage(format!("cannot write the picture to {}: {error}", path.display()))
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn plan(&self) -> Result<Plan, Failure> {
        let loggp = self.loggp.unwrap_or(LogGp::LOCAL_SOCKETS);
        let start = self.start.unwrap_or_default();
        let costs = Costs::new(loggp, start).map_err(Failure::usage)?;
        let recovery = if self.no_recovery { Recovery::off() } else { Recovery::default() };
        // Wrong trees are refused before the first is simulated.
        for (series, back_ends) in self.trees() {
            series.tree(back_ends)?;
        }
        Ok(Plan { costs, recovery, waves: self.waves })
    }

    /// All trees, from small to large, then the depths.
    fn trees(&self) -> Vec<(Series, u32)> {
        let mut trees = Vec::new();
        for back_ends in &self.back_ends {
            trees.extend(self.fan_outs.iter().map(|series| (*series, *back_ends)));
        }
        let depths = self.depths.iter().filter(|depth| **depth > 0);
        trees.extend(depths.map(|depth| (Series::Depth(*depth), self.depth_back_ends)));
        trees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fan_outs_and_costs_are_read_or_refused() {
        assert_eq!("flat".parse(), Ok(Series::Flat));
        assert_eq!("32".parse(), Ok(Series::FanOut(32)));
        for bad in ["1", "0", "wide", ""] {
            assert!(bad.parse::<Series>().is_err(), "{bad}");
        }
        assert_eq!(parse_start("1,2,3,4").unwrap().at_a_time, 4);
        assert!(parse_start("1,2,3,4.5").is_err() && parse_start("1,2,3").is_err());
        assert!(parse_model("1,2,3,4").is_ok() && parse_model("1,2,3,-4").is_err());
    }
}
