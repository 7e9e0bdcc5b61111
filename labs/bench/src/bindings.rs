//! `sapwood bench bindings`: the round trip of a small wave through each interface.
//!
//! Owns the command line, which interfaces there are, where their programs are found, and what
//! is said of them. A number (`%d`) goes down to every back-end and comes back as the sum of
//! all: the same tree, filter and message for each. A row is a tool that is wholly in that
//! interface's language, or a front-end in it over the back-ends in Rust. They take turns,
//! block by block, and a ratio is taken within a round of blocks. On which cores and at which
//! addresses its processes lie is drawn for each tree anew and moves its figures by more than
//! what is looked for: so the trees are opened again and again, and each counts once. `asker` is
//! the asking tool.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum;
use sapwood::{Hosts, Topology};
use sapwood_floor::Shape;
use sapwood_floor::process::Pinned;
use sapwood_floor::statistics::{Spread, ratio};

use super::asker::{Asker, ECHO, Program, RustTool, Words, median_of};
use super::bulk_tree::levels_of;
use super::facts::{Bar, Facts, look, named};
use super::leaf::BACK_END;
use super::pairs::turns;
use super::progress::Progress;
use super::tree::own_program;
use sapwood_command_line::exit::{Failure, OWN_FAILURE};

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-bindings/2";

/// Round trips of one interface before the next one's turn.
const BLOCK: u32 = 50;
const ROUNDS_MAX: u32 = 1_000_000;
const TREES_MAX: u32 = 1_000;

/// Names the folder with the programs in C and C++, in the place of the one beside this program's.
const MRNET_VARIABLE: &str = "SAPWOOD_BENCH_MRNET";
/// Names a Python with the package `sapwood`.
const PYTHON_VARIABLE: &str = "SAPWOOD_BENCH_PYTHON";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Interface {
    /// `sapwood.h`.
    #[value(name = "c")]
    C,
    /// A front-end with `sapwood.h` over back-ends in Rust.
    #[value(name = "c_front_end")]
    CFrontEnd,
    /// MRNet's interface in C++, with its own communication processes.
    #[value(name = "mrnet")]
    Mrnet,
    /// A front-end with MRNet's interface over back-ends in Rust.
    #[value(name = "mrnet_front_end")]
    MrnetFrontEnd,
    /// The Python package.
    #[value(name = "python")]
    Python,
    /// A front-end in Python over back-ends in Rust.
    #[value(name = "python_front_end")]
    PythonFrontEnd,
}

use Interface::{C, CFrontEnd, Mrnet, MrnetFrontEnd, Python, PythonFrontEnd};

impl Interface {
    /// As on the command line.
    fn name(self) -> String {
        named(self)
    }

    fn label(self) -> &'static str {
        match self {
            C => "C library",
            CFrontEnd => "C library, back-ends in Rust",
            Mrnet => "MRNet's interface",
            MrnetFrontEnd => "MRNet's interface, back-ends in Rust",
            Python => "Python",
            PythonFrontEnd => "Python, back-ends in Rust",
        }
    }

    /// What its round trip may take, in those of Rust.
    fn bar(self) -> Option<Bar> {
        match self {
            C | CFrontEnd => None,
            Mrnet | MrnetFrontEnd => Some(Bar::Most(1.15)),
            Python | PythonFrontEnd => Some(Bar::Most(1.3)),
        }
    }

    /// Whether its back-ends are those of the benchmarks.
    fn is_over_rust(self) -> bool {
        matches!(self, CFrontEnd | MrnetFrontEnd | PythonFrontEnd)
    }
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Fan-out of each level.
    #[arg(long, value_name = "SHAPE", default_value = "2x2")]
    topology: Shape,
    /// Round trips of each interface in each of its trees.
    #[arg(long, value_name = "N", default_value_t = 500)]
    rounds: u32,
    /// Number of trees that are opened for each interface.
    #[arg(long, value_name = "N", default_value_t = 11)]
    trees: u32,
    /// Only these beside Rust, separated by commas; all unless given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Interface>,
    /// Where `make -C bindings/mrnet bench-programs` has built; else SAPWOOD_BENCH_MRNET, else
    /// 'mrnet' beside the folder of this program.
    #[arg(long, value_name = "FOLDER")]
    mrnet: Option<PathBuf>,
    /// A Python with the package 'sapwood'; else SAPWOOD_BENCH_PYTHON, else the one that the tests
    /// have made beside the folder of this program, else python3.
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Keep all processes on one core: ratios then compare work, not waiting times.
    #[arg(long)]
    pin: bool,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
}

/// One row while its tree stands.
struct Row {
    interface: Interface,
    asker: Result<Box<dyn Asker>, String>,
    us: Vec<f64>,
}

/// What came of an interface: for each of its trees the median block, in microseconds and in the
/// floor's of the same round; or why there is none.
struct Outcome {
    interface: Interface,
    seen: Result<Seen, String>,
}

struct Seen {
    /// How the interface's tool is started, for each of its trees.
    words: Words,
    us: Vec<f64>,
    ratios: Vec<f64>,
}

impl Outcome {
    /// One more tree, with the medians of its blocks.
    fn take(&mut self, us: Result<Vec<f64>, String>, floor_us: &[f64]) {
        let Ok(seen) = &mut self.seen else { return };
        match us {
            Ok(us) => {
                seen.us.extend(Spread::of(&us).map(|spread| spread.median));
                seen.ratios.extend(ratio(&us, floor_us).map(|spread| spread.median));
            }
            Err(why) => self.seen = Err(why),
        }
    }
}

/// Measures, and says whether anything could be measured.
pub(super) fn measure(arguments: &Arguments) -> Result<(Facts, ExitCode), Failure> {
    for (option, count, most) in
        [("--rounds", arguments.rounds, ROUNDS_MAX), ("--trees", arguments.trees, TREES_MAX)]
    {
        if !(1..=most).contains(&count) {
            let text = format!("{option} {count}: give a number from 1 to {most}");
            return Err(Failure::usage(text));
        }
    }
    let shape = levels_of(&arguments.topology)?;
    let pinned = arguments.pin.then(|| Pinned::first_allowed().and_then(Pinned::to)).transpose();
    let _pinned = pinned.map_err(|error| {
        Failure::own(&format!("cannot stay on one core: {error}; measure without --pin"))
    })?;
    let mut floor_us = Vec::new();
    let mut outcomes = find_tools(arguments, &shape)?;
    let mut progress = Progress::new();
    for tree in 0..arguments.trees as usize {
        progress.say("trees", tree, arguments.trees as usize);
        let floor = measure_once(arguments, &shape, &mut outcomes)?;
        floor_us.extend(Spread::of(&floor).map(|spread| spread.median));
    }
    drop(progress);
    let has_run = outcomes.iter().any(|outcome| outcome.seen.is_ok());
    let code = if has_run { ExitCode::SUCCESS } else { ExitCode::from(OWN_FAILURE) };
    Ok((report(arguments, &floor_us, &outcomes), code))
}

/// Opens all trees, lets them take turns, and closes them; gives the medians of the floor's blocks
/// in microseconds.
fn measure_once(
    arguments: &Arguments,
    shape: &sapwood::Shape,
    outcomes: &mut [Outcome],
) -> Result<Vec<f64>, Failure> {
    let mut floor = RustTool::open(shape)?;
    let mut rows: Vec<Row> = outcomes.iter().filter_map(Row::open).collect();
    let mut floor_us = Vec::new();
    let block = BLOCK.min(arguments.rounds);
    let blocks = arguments.rounds.div_ceil(block) as usize;
    // The first round of blocks warms up, and shows which programs work.
    for run in 0..=blocks {
        for which in turns(run, rows.len() + 1) {
            if which == 0 {
                floor_us.push(median_of(&mut floor, block)? / 1e3);
            } else {
                rows[which - 1].take_turn(block);
            }
        }
    }
    Box::new(floor).close()?;
    // The first round was for the caches.
    floor_us.remove(0);
    for row in rows {
        let outcome = outcomes.iter_mut().find(|outcome| outcome.interface == row.interface);
        if let Some(outcome) = outcome {
            outcome.take(row.finish(), &floor_us);
        }
    }
    Ok(floor_us)
}

/// The interfaces that are wanted, with the tool of each or what is missing of it.
fn find_tools(arguments: &Arguments, shape: &sapwood::Shape) -> Result<Vec<Outcome>, Failure> {
    let own = own_program()?;
    let wants = |which| arguments.only.is_empty() || arguments.only.contains(&which);
    let outcome = |interface| {
        let words = match interface {
            Python | PythonFrontEnd => python_words(interface, arguments, &own),
            _ => built_words(interface, arguments, shape, &own),
        };
        let seen = words.map(|words| Seen { words, us: Vec::new(), ratios: Vec::new() });
        Outcome { interface, seen }
    };
    let every = Interface::value_variants().iter().copied();
    Ok(every.filter(|which| wants(*which)).map(outcome).collect())
}

/// The programs in C and C++, or what is missing of them.
fn built_words(
    interface: Interface,
    arguments: &Arguments,
    shape: &sapwood::Shape,
    own: &Path,
) -> Result<Words, String> {
    let folder = mrnet_folder(arguments.mrnet.as_deref(), own);
    let names = match interface {
        Mrnet | MrnetFrontEnd => ["tests/round_trip", "tests/back_end"],
        _ => ["tests/bare_round_trip", "tests/bare_back_end"],
    };
    let [program, back_end] = names.map(|name| folder.join(name));
    for needed in [&program, &back_end] {
        if !needed.is_file() {
            return Err(format!(
                "there is no {}; build it with 'make -C bindings/mrnet bench-programs', or name \
                 the folder with --mrnet",
                needed.display()
            ));
        }
    }
    let topology = Topology::from_shape(shape, &Hosts::local()).to_file_text();
    let mut arguments: Vec<OsString> = vec![topology.into(), ECHO.to_string().into()];
    if interface.is_over_rust() {
        arguments.extend([own.as_os_str().to_os_string(), BACK_END.into()]);
    } else {
        arguments.push(back_end.into_os_string());
    }
    Ok(Words { program, arguments, variables: vec![node_variable()?] })
}

/// Where the programs of MRNet's interface are built.
pub(super) fn mrnet_folder(named: Option<&Path>, own: &Path) -> PathBuf {
    let named = named.map(Path::to_path_buf).or_else(|| named_in(MRNET_VARIABLE));
    named.unwrap_or_else(|| beside(own, "mrnet"))
}

/// The Python package's own measuring, or what is missing of it.
fn python_words(interface: Interface, arguments: &Arguments, own: &Path) -> Result<Words, String> {
    let python = python(arguments.python.as_deref(), own)?;
    let mut words: Vec<OsString> =
        vec!["round-trips".into(), arguments.topology.to_string().into()];
    if interface.is_over_rust() {
        words.extend([own.as_os_str().to_os_string(), BACK_END.into()]);
    }
    Ok(turns_of(python, words, vec![node_variable()?]))
}

/// Has a library take the same program for its communication processes as the trees of Rust.
pub(super) fn node_variable() -> Result<(&'static str, OsString), String> {
    let program = sapwood::node_program().map_err(|error| error.to_string())?;
    Ok(("SAPWOOD_NODE", program.into_os_string()))
}

/// `python -m sapwood.turns`, with these words.
pub(super) fn turns_of(
    python: PathBuf,
    words: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
) -> Words {
    let mut arguments: Vec<OsString> = ["-m", "sapwood.turns"].map(OsString::from).into();
    arguments.extend(words);
    Words { program: python, arguments, variables }
}

/// A Python that has the package: the one that is named, or the first that is found.
pub(super) fn python(named: Option<&Path>, own: &Path) -> Result<PathBuf, String> {
    let named = named.map(Path::to_path_buf).or_else(|| named_in(PYTHON_VARIABLE));
    let candidates = match named {
        Some(named) => vec![named],
        None => vec![beside(own, "python/environment/bin/python"), PathBuf::from("python3")],
    };
    let has_package = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import sapwood.turns"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.iter().find(|python| has_package(python)).cloned().ok_or_else(|| {
        let tried: Vec<_> = candidates.iter().map(|python| python.display().to_string()).collect();
        format!(
            "{} cannot import 'sapwood.turns'; install the package with 'pip install .' or build \
             one with 'make python-environment', and name its Python with --python",
            tried.join(" or ")
        )
    })
}

fn named_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|named| !named.is_empty()).map(PathBuf::from)
}

/// A place in the folder that everything is built in: this program lies in a folder of it.
fn beside(own: &Path, place: &str) -> PathBuf {
    own.parent().and_then(Path::parent).unwrap_or(Path::new(".")).join(place)
}

impl Row {
    /// Starts the interface's tool, unless it is missing or has failed in an earlier tree.
    fn open(outcome: &Outcome) -> Option<Self> {
        let words = &outcome.seen.as_ref().ok()?.words;
        let program = Program::start(words).map_err(|failure| failure.to_string());
        let asker = program.map(|program| Box::new(program) as Box<dyn Asker>);
        Some(Self { interface: outcome.interface, asker, us: Vec::new() })
    }

    fn take_turn(&mut self, block: u32) {
        let Ok(asker) = &mut self.asker else { return };
        match median_of(asker.as_mut(), block) {
            Ok(took) => self.us.push(took / 1e3),
            Err(failure) => self.asker = Err(failure.to_string()),
        }
    }

    /// Ends it, and gives the medians of its blocks; what has not taken all its turns has none.
    fn finish(self) -> Result<Vec<f64>, String> {
        let Self { asker, mut us, .. } = self;
        asker.and_then(|asker| asker.close().map_err(|failure| failure.to_string()))?;
        Ok(us.split_off(1))
    }
}

fn report(arguments: &Arguments, floor_us: &[f64], outcomes: &[Outcome]) -> Facts {
    let Arguments { topology, rounds, trees, .. } = arguments;
    let block = BLOCK.min(*rounds);
    let rounds = rounds.div_ceil(block) * block;
    let title = format!(
        "The round trip of one number over {topology}, through each interface.\n\
         {trees} trees of each, {rounds} round trips in each, in turns of {block}"
    );
    let mut facts = Facts::new(SCHEMA, title);
    facts.setting("topology", topology.to_string());
    facts.setting("message", "%d");
    facts.setting("trees", *trees);
    facts.setting("rounds", rounds);
    facts.setting("block", block);
    facts.setting("pinned", arguments.pin);
    facts.heading("median of a tree's blocks");
    if let Some(spread) = Spread::of(floor_us) {
        facts.spread("us.rust", look("Rust", "us", 1), &spread, None);
    }
    for Outcome { interface, seen } in outcomes {
        match seen.as_ref().map(|seen| Spread::of(&seen.us)) {
            Ok(Some(spread)) => {
                let path = format!("us.{}", interface.name());
                facts.spread(&path, look(interface.label(), "us", 1), &spread, None);
            }
            Ok(None) => {}
            Err(why) => facts.missing(&interface.name(), interface.label(), why),
        }
    }
    facts.heading("ratio to Rust");
    for Outcome { interface, seen } in outcomes {
        if let Some(spread) = seen.as_ref().ok().and_then(|seen| Spread::of(&seen.ratios)) {
            let path = format!("ratio.{}", interface.name());
            facts.spread(&path, look(interface.label(), "", 3), &spread, interface.bar());
        }
    }
    facts
}
