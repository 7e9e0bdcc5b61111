//! `sapwood topology`: a tree as a file, a drawing, numbers or a predicted cost; which to take.
//!
//! Owns the command line and where a tree is read from: a specification such as `4^3`, a file in
//! MRNet's format, or standard input. What a tree is, and how it is drawn and predicted, is the
//! crate `sapwood-topology`'s.

mod advise;
mod cost;
pub mod measured;
pub mod trial;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use sapwood_topology::{Hosts, Shape, Topology};
use serde_json::{Value, json};

use sapwood_command_line::exit::{Failure, print};

/// Longest topology file: room for the largest tree with the longest host names.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// What `sapwood topology` is asked.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write the tree as a topology file in MRNet's format.
    Print(Tree),
    /// Draw the tree with lines, or as a graph for Graphviz.
    Draw {
        #[command(flatten)]
        tree: Tree,
        /// Write a Graphviz graph: `sapwood topology draw 4^2 --dot | dot -Tsvg`.
        #[arg(long)]
        dot: bool,
    },
    /// Count processes by level, and the fan-outs.
    Count {
        #[command(flatten)]
        tree: Tree,
        /// Print one JSON object instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Predict the cost of a wave, beside that of the flat tree and of balanced trees with the same
    /// number of back-ends.
    Cost {
        #[command(flatten)]
        tree: Tree,
        #[command(flatten)]
        model: cost::Arguments,
    },
    /// Recommend a tree for a number of back-ends, and compare balanced, k-nomial and flat trees.
    Advise(advise::Arguments),
}

/// Which tree.
#[derive(clap::Args)]
struct Tree {
    /// A specification (8, 4^3, 8x8x4, k:2@16, p:1.5@16, g:2:3,5), a topology file, or - for
    /// standard input.
    #[arg(value_name = "SPEC_OR_FILE")]
    source: String,
    /// Hosts to place a specification's nodes on, separated by commas.
    #[arg(long, value_name = "LIST")]
    hosts: Option<String>,
}

/// Reads the tree and shows it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let text = match &arguments.action {
        Action::Print(tree) => tree.read()?.to_file_text(),
        Action::Draw { tree, dot: false } => tree.read()?.draw(),
        Action::Draw { tree, dot: true } => tree.read()?.dot(),
        Action::Count { tree, json } => count(&tree.read()?, *json),
        Action::Advise(arguments) => advise::run(arguments)?,
        Action::Cost { tree, model } => cost::run(&tree.read()?, &tree.source, model)?,
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Tree {
    fn read(&self) -> Result<Topology, Failure> {
        let path = Path::new(&self.source);
        if self.source == "-" {
            return self.parse_file(std::io::stdin().lock(), "standard input");
        }
        if path.is_file() {
            let file = File::open(path).map_err(|error| {
                Failure::usage(format!("cannot read topology file {:?}: {error}", self.source))
            })?;
            return self.parse_file(file, &self.source);
        }
        let shape: Shape = self.source.parse().map_err(|error| {
            let names_a_file = self.source.contains(['/', '.']);
            let no_file = if names_a_file { "; there is no file of that name either" } else { "" };
            Failure::usage(format!("{error}{no_file}"))
        })?;
        let hosts = match &self.hosts {
            Some(list) => list.parse::<Hosts>().map_err(Failure::usage)?,
            None => Hosts::local(),
        };
        Ok(Topology::from_shape(&shape, &hosts))
    }

    fn parse_file(&self, file: impl Read, name: &str) -> Result<Topology, Failure> {
        if self.hosts.is_some() {
            return Err(Failure::usage("a topology file names its hosts itself; omit --hosts"));
        }
        let unreadable =
            |why: &str| Failure::usage(format!("cannot read a topology from {name}: {why}"));
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error.to_string()))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(unreadable(&format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            unreadable(&format!("line {} is not UTF-8 text", line + 1))
        })?;
        Topology::from_file_text(&text).map_err(|error| Failure::usage(format!("{name}: {error}")))
    }
}

/// Sizes and levels of a tree.
fn count(topology: &Topology, json: bool) -> String {
    let of = topology.statistics();
    if json {
        let levels: Vec<Value> = topology
            .count()
            .iter()
            .map(|level| {
                json!({
                    "level": level.level,
                    "front_ends": level.front_ends,
                    "communication_processes": level.communication_processes,
                    "back_ends": level.back_ends,
                })
            })
            .collect();
        let report = json!({
            "schema": "sapwood.topology-count/1",
            "nodes": of.nodes,
            "communication_processes": of.communication_processes,
            "back_ends": of.back_ends,
            "depth": of.depth,
            "fan_out": {
                "min": of.fan_out_min,
                "max": of.fan_out_max,
                "mean": of.fan_out_mean,
                "standard_deviation": of.fan_out_deviation,
            },
            "levels": levels,
        });
        return format!("{report}\n");
    }
    let mut text = format!(
        "nodes                    {:>9}\ncommunication processes  {:>9}\nback-ends                {:>9}\n\
         levels below the root    {:>9}\nfan-out                  {:>9.2}  ({} to {}, deviation {:.2})\n\n\
         {:>5} {:>10} {:>14} {:>10}\n",
        of.nodes,
        of.communication_processes,
        of.back_ends,
        of.depth,
        of.fan_out_mean,
        of.fan_out_min,
        of.fan_out_max,
        of.fan_out_deviation,
        "level",
        "front-ends",
        "communication",
        "back-ends",
    );
    for level in topology.count() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>5} {:>10} {:>14} {:>10}",
            level.level, level.front_ends, level.communication_processes, level.back_ends
        );
    }
    text
}
