//! `sapwood bench group`: collectives of real members on a network of the test bed, by all trees in
//! turn, with the simulator's result for the same network beside them.
//!
//! Owns the command line and what is printed. `network` is the layout, `scene` the members on it,
//! `race` measures one operation by several trees, `lengths` has it do so for several lengths,
//! `start` and `churn` are the two experiments with changing members, `simulated` asks the
//! simulator, `show` makes facts of it all and `plot` pictures.
//!
//! Members are processes of this machine, whose clock is one: times are taken where things happen.

mod churn;
mod lengths;
mod network;
mod plot;
mod race;
mod scene;
mod show;
mod simulated;
mod start;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use sapwood::TreeKind;
use sapwood_command_line::arguments::explained;
use sapwood_command_line::exit::Failure;

use super::facts::{Facts, named};
use super::progress::Progress;
use network::EmulatedNetwork;
use scene::Scene;

/// The hidden command with which this program is a member.
pub const GROUP_MEMBER: &str = "group-member";
/// The trees that are compared.
const TREES: [TreeKind; 7] = TreeKind::ALL;
/// Those by which broadcasts go while members leave and return.
const CHURN_TREES: [TreeKind; 2] = [TreeKind::Adaptive, TreeKind::List];
/// Of the numbers that are added.
const NUMBER_BYTES: usize = 8;
/// The exit code where a value was wrong or missing.
const WRONG: u8 = 1;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Experiment {
    /// Broadcasts of one byte.
    Short,
    /// The same from several roots, by `static` and `adaptive`.
    Roots,
    /// Sums of 8 bytes and of 8 KiB.
    Sums,
    /// Broadcasts of a long value.
    Long,
    /// Broadcasts of 32 KiB to '--longest' by four trees; only if it is named.
    Lengths,
    /// Sums of 8 bytes to '--longest-sum' by four trees; only if it is named.
    SumLengths,
    /// Half of the members leave and return under broadcasts, by 'adaptive' and by 'list'.
    Churn,
}

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The network: paper-3, paper-4, racks, near, slow-link, cards, campus, lan, host, or a file
    /// that describes one. All but 'host' need root, and make hosts.
    #[arg(long, value_name = "NAME", default_value = "paper-3")]
    scenario: String,
    /// Number of members.
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(4..=200))]
    members: u32,
    /// Number of rounds, in each of which all trees run one after another.
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Latencies are longer and rates lower by this factor than the network says; a sixth of the
    /// members by default, at least 1: all of them share this machine's processors.
    #[arg(long, value_name = "X")]
    scale: Option<f64>,
    /// What the places of members are drawn from.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// The length of the long broadcasts.
    #[arg(long, value_name = "LENGTH", default_value = "1M", value_parser = sapwood_group_tool::bytes)]
    long: usize,
    /// The length of the broadcasts under which members leave and return.
    #[arg(long, value_name = "LENGTH", default_value = "4M", value_parser = sapwood_group_tool::bytes)]
    churn: usize,
    /// The longest broadcast of 'lengths'. Each member holds it in memory.
    #[arg(long, value_name = "LENGTH", default_value = "64M", value_parser = sapwood_group_tool::bytes)]
    longest: usize,
    /// The longest sum of 'sum-lengths', in whole numbers of 8 bytes.
    #[arg(long, value_name = "LENGTH", default_value = "8M", value_parser = sapwood_group_tool::bytes)]
    longest_sum: usize,
    /// Only these experiments, separated by commas; all but 'lengths' and 'sum-lengths' unless
    /// given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,
    /// Write a picture of the broadcasts of one byte to this file: when each member had the value.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a picture of 'lengths' to this file: MB/s by length.
    #[arg(long, value_name = "FILE")]
    lengths_svg: Option<PathBuf>,
    /// Write a picture of 'sum-lengths' to this file: times of 'static', by length.
    #[arg(long, value_name = "FILE")]
    sums_svg: Option<PathBuf>,
    /// Write a picture of 'churn' to this file: MB/s over time.
    #[arg(long, value_name = "FILE")]
    churn_svg: Option<PathBuf>,
    /// The folder of the test bed in Sapwood's source.
    #[arg(long, value_name = "FOLDER", default_value = "testbed")]
    testbed: PathBuf,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// The hosts are there, with this folder for files: how the command runs itself.
    #[arg(long, value_name = "FOLDER", hide = true)]
    inside: Option<PathBuf>,
}

impl Arguments {
    fn wants(&self, experiment: Experiment) -> bool {
        match self.only.is_empty() {
            true => !matches!(experiment, Experiment::Lengths | Experiment::SumLengths),
            false => self.only.contains(&experiment),
        }
    }

    /// Refuses lengths that are none, and pictures of what is not measured or that cannot be
    /// written.
    fn check(&self) -> Result<(), Failure> {
        if self.long == 0 || self.churn == 0 || self.longest == 0 {
            return Err(Failure::usage("give --long, --churn and --longest at least 1 byte"));
        }
        if self.longest_sum == 0 || !self.longest_sum.is_multiple_of(NUMBER_BYTES) {
            return Err(Failure::usage("give --longest-sum a multiple of 8 bytes"));
        }
        for (option, path, experiment) in [
            ("--svg", &self.svg, Experiment::Short),
            ("--lengths-svg", &self.lengths_svg, Experiment::Lengths),
            ("--sums-svg", &self.sums_svg, Experiment::SumLengths),
            ("--churn-svg", &self.churn_svg, Experiment::Churn),
        ] {
            let Some(path) = path else { continue };
            if !self.wants(experiment) {
                let name = named(experiment);
                return Err(Failure::usage(format!(
                    "{option} is a picture of '{name}', which is not measured: name it in --only"
                )));
            }
            write(path, "")?;
        }
        Ok(())
    }
}

/// Measures; the code says whether every value was right.
pub(super) fn measure(arguments: &Arguments) -> Result<(Facts, ExitCode), Failure> {
    arguments.check()?;
    let network = EmulatedNetwork::new(arguments)?;
    if let (Some(hosts), None) = (&network.hosts, &arguments.inside) {
        return Err(network::run_with_hosts(hosts));
    }
    let mut progress = Progress::new();
    progress.say("the simulator", 0, 1);
    let simulated = simulated::simulate(&network, arguments)?;
    let mut shown = show::Shown::new(&network, arguments);
    progress.say("members start", 0, 1);
    let mut scene = Scene::start(&network, arguments.inside.as_deref())?;
    let start = start::settle(&mut scene)?;
    shown.start(&start, &simulated);
    let by_papers =
        [Experiment::Short, Experiment::Long, Experiment::Lengths, Experiment::SumLengths];
    if by_papers.into_iter().any(|experiment| arguments.wants(experiment)) {
        scene.track_papers()?;
    }
    let turns = arguments.rounds as usize;
    if arguments.wants(Experiment::Short) {
        let race = race::Race::broadcast(0, 1, &TREES);
        let raced = race.run(&mut scene, turns, &mut progress)?;
        shown.short(&raced, &simulated);
        if let Some(path) = &arguments.svg {
            write(path, &show::picture(&network, &raced))?;
        }
    }
    if arguments.wants(Experiment::Roots) {
        let mut raced = Vec::new();
        for root in network.roots() {
            let race = race::Race::broadcast(root, 1, &[TreeKind::Static, TreeKind::Adaptive]);
            raced.push((root, race.run(&mut scene, turns, &mut progress)?));
        }
        shown.roots(&raced, &simulated);
    }
    if arguments.wants(Experiment::Sums) {
        for (bytes, simulated) in simulated.sums.iter() {
            let race = race::Race::sum(*bytes, network.far_time(), &TREES);
            shown.sums(*bytes, &race.run(&mut scene, turns, &mut progress)?, simulated);
        }
    }
    if arguments.wants(Experiment::Long) {
        let race = race::Race::broadcast(0, arguments.long, &TREES);
        shown.long(arguments.long, &race.run(&mut scene, turns, &mut progress)?, &simulated);
    }
    measure_lengths_and_churn(&mut scene, &network, arguments, &mut shown, &mut progress)?;
    shown.faults(std::mem::take(&mut scene.faults));
    scene.end()?;
    let is_right = shown.is_right();
    let code = if is_right { ExitCode::SUCCESS } else { ExitCode::from(WRONG) };
    Ok((shown.into_facts(), code))
}

/// Broadcasts and sums by their length, and broadcasts while members leave and return.
fn measure_lengths_and_churn(
    scene: &mut Scene<'_>,
    network: &EmulatedNetwork,
    arguments: &Arguments,
    shown: &mut show::Shown,
    progress: &mut Progress,
) -> Result<(), Failure> {
    if arguments.wants(Experiment::Lengths) {
        let rounds = arguments.rounds as usize;
        let raced = lengths::run(scene, arguments.longest, rounds, progress)?;
        shown.lengths(&raced);
        if let Some(path) = &arguments.lengths_svg {
            write(path, &show::picture_of_lengths(network, &raced))?;
        }
    }
    if arguments.wants(Experiment::SumLengths) {
        let (longest, rounds) = (arguments.longest_sum, arguments.rounds as usize);
        let raced = lengths::run_sums(scene, longest, network.far_time(), rounds, progress)?;
        shown.sum_lengths(&raced);
        if let Some(path) = &arguments.sums_svg {
            write(path, &show::picture_of_sums(network, &raced))?;
        }
    }
    if arguments.wants(Experiment::Churn) {
        let mut churns = Vec::new();
        for (at, tree) in CHURN_TREES.into_iter().enumerate() {
            progress.say("half of the members leave and return", at, CHURN_TREES.len());
            churns.push(churn::run(scene, arguments.churn, tree)?);
        }
        shown.churns(&churns);
        if let Some(path) = &arguments.churn_svg {
            write(path, &show::picture_of_churns(network, &churns))?;
        }
    }
    Ok(())
}

/// Writes the picture; nothing before all is measured, to see whether the file can be written.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = std::fs::write(path, text);
    written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// The member that this program is: `create` or `join` of `sapwood group`.
#[derive(Parser)]
struct MemberArguments {
    #[command(flatten)]
    arguments: sapwood_group_tool::Arguments,
}

/// Is a member. The first word is skipped as a program's name.
pub fn member(words: &[OsString]) -> Result<ExitCode, Failure> {
    let read = MemberArguments::try_parse_from(words).map(Some);
    match read.or_else(|error| explained(&error, GROUP_MEMBER))? {
        Some(read) => sapwood_group_tool::run(&read.arguments),
        None => Ok(ExitCode::SUCCESS),
    }
}
