//! `sapwood bench mrnet-style`: what the authors of MRNet measured, through its interface.
//!
//! Owns the command line, the tools that are measured and what is said of them. A tool starts a
//! tree, broadcasts an integer and receives the sum of all back-ends (latency), and has all
//! back-ends send one integer after another (throughput), with a flush after each or without. The
//! tools are in Rust, in C++ over MRNet's interface, and the same front-end over back-ends of its
//! lightweight interface in C. They take turns, tree by tree.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use sapwood::{Hosts, Network, Stream, Tag, Topology};
use sapwood_floor::Shape;
use sapwood_floor::statistics::{Spread, median, ratio};

use super::asker::{Asker, ECHO, FLUSHED, Program, QUEUED, Words};
use super::bindings::{mrnet_folder, node_variable};
use super::bulk_tree::levels_of;
use super::facts::{Bar, Facts, look};
use super::pairs::turns;
use super::plan::Transport;
use super::progress::Progress;
use super::scale::DEADLINE;
use super::tree::{builder, leaf_program, own_program};
use sapwood_command_line::exit::{Failure, OWN_FAILURE};

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-mrnet-style/1";

const TREES_MAX: u32 = 1_000;
/// Sums must fit an int32.
const WAVES_MAX: u32 = 100_000;
/// Round trips and waves before those that count.
const WARM_UP: u32 = 20;

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Fan-out of each level.
    #[arg(long, value_name = "SHAPE", default_value = "8x8")]
    topology: Shape,
    /// Round trips in each tree.
    #[arg(long, value_name = "N", default_value_t = 200)]
    rounds: u32,
    /// Waves in each tree, with a flush after each and again without.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    waves: u32,
    /// Number of trees that are opened.
    #[arg(long, value_name = "N", default_value_t = 5)]
    trees: u32,
    /// Where `make -C bindings/mrnet bench-programs` has built; else SAPWOOD_BENCH_MRNET, else
    /// 'mrnet' beside the folder of this program.
    #[arg(long, value_name = "FOLDER")]
    mrnet: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// A tool, with its label and what it is started with; Rust's is this program.
struct Tool {
    name: &'static str,
    label: &'static str,
    words: Result<Option<Words>, String>,
    /// One of each for each tree.
    seen: Vec<Figures>,
}

/// What one tree has shown.
#[derive(Clone, Copy)]
struct Figures {
    start_ms: f64,
    latency_ms: f64,
    flushed_per_s: f64,
    queued_per_s: f64,
}

/// A figure: its name, label, digits, and how to find it.
type Column = (&'static str, &'static str, usize, fn(&Figures) -> f64);

const COLUMNS: [Column; 4] = [
    ("start_ms", "start, ms", 0, |figures| figures.start_ms),
    ("latency_ms", "latency, ms", 3, |figures| figures.latency_ms),
    ("waves_per_s.flushed", "waves/s, a flush after each", 0, |figures| figures.flushed_per_s),
    ("waves_per_s.queued", "waves/s, no flush", 0, |figures| figures.queued_per_s),
];

/// Measures, and says whether all could be measured.
pub(super) fn measure(arguments: &Arguments) -> Result<(Facts, ExitCode), Failure> {
    for (option, count, most) in [
        ("--rounds", arguments.rounds, WAVES_MAX),
        ("--waves", arguments.waves, WAVES_MAX),
        ("--trees", arguments.trees, TREES_MAX),
    ] {
        if !(1..=most).contains(&count) {
            let text = format!("{option} {count}: give a number from 1 to {most}");
            return Err(Failure::usage(text));
        }
    }
    let shape = levels_of(&arguments.topology)?;
    let mut tools = tools(arguments, &shape)?;
    let mut progress = Progress::new();
    for tree in 0..arguments.trees as usize {
        progress.say("trees", tree, arguments.trees as usize);
        for which in turns(tree, tools.len()) {
            tools[which].measure_once(arguments, &shape)?;
        }
    }
    drop(progress);
    let has_all = tools.iter().all(|tool| tool.words.is_ok());
    let code = if has_all { ExitCode::SUCCESS } else { ExitCode::from(OWN_FAILURE) };
    Ok((report(arguments, &tools), code))
}

fn tools(arguments: &Arguments, shape: &sapwood::Shape) -> Result<Vec<Tool>, Failure> {
    let folder = mrnet_folder(arguments.mrnet.as_deref(), &own_program()?);
    let over = |back_end: &str| {
        let [program, back_end] =
            ["style_front_end", back_end].map(|name| folder.join("tests").join(name));
        for needed in [&program, &back_end] {
            if !needed.is_file() {
                return Err(format!(
                    "there is no {}; build it with 'make -C bindings/mrnet bench-programs', or \
                     name the folder with --mrnet",
                    needed.display()
                ));
            }
        }
        let topology = Topology::from_shape(shape, &Hosts::local()).to_file_text();
        let arguments: Vec<OsString> = vec![topology.into(), back_end.into_os_string()];
        Ok(Some(Words { program, arguments, variables: vec![node_variable()?] }))
    };
    let tool = |name, label, words| Tool { name, label, words, seen: Vec::new() };
    Ok(vec![
        tool("rust", "Rust", Ok(None)),
        tool("mrnet", "MRNet's interface in C++", over("style_back_end")),
        tool("mrnet_light", "its back-ends in C", over("style_light_back_end")),
    ])
}

impl Tool {
    /// One tree; a program that fails once is not asked again.
    fn measure_once(
        &mut self,
        arguments: &Arguments,
        shape: &sapwood::Shape,
    ) -> Result<(), Failure> {
        let figures = match &self.words {
            Ok(None) => rust_figures(arguments, shape)?,
            Ok(Some(words)) => match program_figures(arguments, words) {
                Ok(figures) => figures,
                Err(failure) => {
                    self.words = Err(failure.to_string());
                    return Ok(());
                }
            },
            Err(_) => return Ok(()),
        };
        self.seen.push(figures);
        Ok(())
    }
}

fn program_figures(arguments: &Arguments, words: &Words) -> Result<Figures, Failure> {
    let mut program = Program::start(words)?;
    let start = one_of(&program.numbers()?)?;
    program.ask(&format!("latency {WARM_UP}"))?;
    let times = program.ask(&format!("latency {}", arguments.rounds))?;
    let mut rate = |what: &str| {
        program.ask(&format!("{what} {WARM_UP}"))?;
        let took = one_of(&program.ask(&format!("{what} {}", arguments.waves))?)?;
        Ok::<f64, Failure>(f64::from(arguments.waves) / took * 1e9)
    };
    let (flushed_per_s, queued_per_s) = (rate("flushed")?, rate("queued")?);
    Box::new(program).close()?;
    let latency = median(&times).ok_or_else(|| Failure::own(&"no round trip was timed"))?;
    Ok(Figures { start_ms: start / 1e6, latency_ms: latency / 1e6, flushed_per_s, queued_per_s })
}

fn one_of(numbers: &[f64]) -> Result<f64, Failure> {
    numbers.first().copied().ok_or_else(|| Failure::own(&"a line without a time"))
}

fn rust_figures(arguments: &Arguments, shape: &sapwood::Shape) -> Result<Figures, Failure> {
    let begin = Instant::now();
    let network = builder(shape, Transport::Shm)?.back_end(leaf_program()?).open()?;
    let start_ms = begin.elapsed().as_secs_f64() * 1e3;
    let mut tree = RustTree::over(&network)?;
    tree.latency(WARM_UP)?;
    let latency = median(&tree.latency(arguments.rounds)?).unwrap_or(f64::NAN);
    let mut rate = |tag| {
        tree.waves(tag, WARM_UP)?;
        tree.waves(tag, arguments.waves)
    };
    let (flushed_per_s, queued_per_s) = (rate(FLUSHED)?, rate(QUEUED)?);
    tree.stream.close()?;
    network.close()?;
    Ok(Figures { start_ms, latency_ms: latency, flushed_per_s, queued_per_s })
}

struct RustTree {
    stream: Stream,
    back_ends: i32,
}

impl RustTree {
    fn over(network: &Network) -> Result<Self, Failure> {
        let stream = network.stream(&network.everyone()).up("sum").open()?;
        let back_ends = i32::try_from(network.topology().back_end_count());
        Ok(Self { stream, back_ends: back_ends.map_err(Failure::usage)? })
    }

    /// Milliseconds of each round trip.
    fn latency(&mut self, times: u32) -> Result<Vec<f64>, Failure> {
        let numbers = 0..i32::try_from(times).unwrap_or(i32::MAX);
        numbers
            .map(|number| {
                let begin = Instant::now();
                self.stream.broadcast(ECHO, number)?;
                self.next_sum(number)?;
                Ok(begin.elapsed().as_secs_f64() * 1e3)
            })
            .collect()
    }

    /// Waves per second.
    fn waves(&mut self, tag: Tag, waves: u32) -> Result<f64, Failure> {
        let begin = Instant::now();
        let count = i32::try_from(waves).unwrap_or(i32::MAX);
        self.stream.broadcast(tag, count)?;
        for number in 0..count {
            self.next_sum(number)?;
        }
        Ok(f64::from(waves) / begin.elapsed().as_secs_f64())
    }

    fn next_sum(&mut self, number: i32) -> Result<(), Failure> {
        let answer = self.stream.recv_timeout(DEADLINE)?;
        let sum = answer.value()?.scalar::<i32>(0).map_err(sapwood::Error::from)?;
        if sum == number * self.back_ends {
            return Ok(());
        }
        let text = format!("{number}: {sum} is no sum of {} back-ends", self.back_ends);
        Err(Failure::own(&text))
    }
}

fn report(arguments: &Arguments, tools: &[Tool]) -> Facts {
    let Arguments { topology, rounds, waves, trees, .. } = arguments;
    let title = format!(
        "One integer down and the sum of all up, and sums of integers, over {topology}.\n\
         {trees} trees of each tool, {rounds} round trips and twice {waves} waves in each"
    );
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", topology.to_string());
    facts.setting("rounds", *rounds);
    facts.setting("waves", *waves);
    facts.setting("trees", *trees);
    let all = |tool: &Tool, of: fn(&Figures) -> f64| tool.seen.iter().map(of).collect::<Vec<_>>();
    for (name, label, digits, of) in COLUMNS {
        facts.heading(label);
        for tool in tools {
            match (&tool.words, Spread::of(&all(tool, of))) {
                (Ok(_), Some(spread)) => {
                    let path = format!("{name}.{}", tool.name);
                    facts.spread(&path, look(tool.label, "", digits), &spread, None);
                }
                (Err(why), _) => facts.missing(tool.name, tool.label, why),
                (Ok(_), None) => {}
            }
        }
    }
    let [rust, layers @ ..] = tools else { return facts };
    for (name, label, _, of) in COLUMNS {
        facts.heading(&format!("{label}: ratio to Rust"));
        for tool in layers.iter().filter(|tool| tool.words.is_ok()) {
            if let Some(spread) = ratio(&all(tool, of), &all(rust, of)) {
                let bar = name.starts_with("waves").then_some(Bar::Least(0.9));
                let path = format!("ratio.{name}.{}", tool.name);
                facts.spread(&path, look(tool.label, "", 3), &spread, bar);
            }
        }
    }
    facts
}
