//! `sapwood run`: a command on every host of a set, through a tree that folds the answers.
//!
//! Owns the command line and the order of things: which hosts, the tree over them, the command, the
//! report. `agent` is the process on each host, `conductor` the front-end, `protocol` what the two
//! say to each other, `results` what is known of the hosts, `folded` and `report` what is
//! written at the end. docs/run.md describes it for users.

pub(crate) mod agent;
mod conductor;
mod diff;
mod folded;
mod job;
mod lines;
mod printer;
mod protocol;
mod report;
mod results;
mod spool;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{Event, Hosts, Launcher, Network, Program, RankSet, Shape, Topology};
use sapwood_topology::{HostName, NodeSet};

use self::conductor::Conductor;
pub(crate) use self::job::substitute;
use self::printer::Printer;
use self::protocol::Order;
use crate::exit::{Failure, print};
use crate::hosts::selection::{Reach, Selection, seconds};
use crate::launching::dry_run;
use crate::mpi::leaves::shape_over;
use crate::mpi::signals::Signals;

/// Children of a process of the tree, if nothing is said: as many as make the tree two levels deep
/// for most, within these.
const FAN_OUT_MIN: u32 = 16;
const FAN_OUT_MAX: u32 = 64;

/// What `sapwood run` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: the largest of all hosts'; 124 if one timed out, 255 if one could \
                        not be reached or was lost, 128+n for signal n, 125 for a failure of \
                        Sapwood itself."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    terms: Terms,
    /// The command, as the shell of each host is to read it.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How the outcome is written.
#[derive(Clone, Debug, clap::Args)]
struct Style {
    /// Write equal outputs once, under the set of their hosts, when all have ended.
    #[arg(short = 'b', long = "fold", visible_alias = "dshbak")]
    fold: bool,
    /// Write lines in the order of the hosts when all have ended; with -b, each line after the set
    /// of its hosts.
    #[arg(short = 'L', long = "line")]
    line: bool,
    /// With -b or -L, write lines as they come, too.
    #[arg(long)]
    live: bool,
    /// Write what most hosts answered, and how the others differ from it.
    #[arg(long, conflicts_with = "line")]
    diff: bool,
    /// Print one JSON object when all have ended.
    #[arg(long, conflicts_with_all = ["fold", "line", "diff", "live"])]
    json: bool,
    /// Write no host before live lines.
    #[arg(short = 'N', long)]
    no_label: bool,
    /// Write no line about hosts that fail.
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Write each host's standard output to a file in this folder.
    #[arg(long, value_name = "FOLDER")]
    outdir: Option<PathBuf>,
    /// Write each host's standard error to a file in this folder.
    #[arg(long, value_name = "FOLDER")]
    errdir: Option<PathBuf>,
}

/// On which terms the command runs.
#[derive(Clone, Debug, clap::Args)]
struct Terms {
    /// End commands that take longer than this.
    #[arg(short = 'u', long = "command-timeout", value_name = "SECONDS", value_parser = seconds)]
    command_timeout: Option<Duration>,
    /// Accept so many hosts that are missing.
    #[arg(long, value_name = "N", default_value_t = 0)]
    quorum: usize,
    /// Set a variable for the command (repeatable).
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<String>,
    /// Run the command in this folder.
    #[arg(long, value_name = "FOLDER")]
    chdir: Option<String>,
    /// Replace %h or %host, %n or %rank, %u or %user, and %% in the command, --env and --chdir.
    #[arg(long)]
    substitute: bool,
    /// Run the words of the command as they are, without a shell.
    #[arg(long)]
    exec: bool,
    /// Give the command no standard input.
    #[arg(short = 'n', long = "nostdin")]
    no_stdin: bool,
    /// End with 0 whatever the hosts' exit codes are.
    #[arg(long)]
    no_rc: bool,
    /// Print the tree and what it would run, and run nothing.
    #[arg(long)]
    dry_run: bool,
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() && !text.contains('\0') => Ok(text.to_string()),
        _ => Err("NAME=VALUE is expected".to_string()),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let hosts = arguments.selection.resolve()?;
    let names = check_names(&hosts)?;
    let topology = tree_over(&names, &arguments.reach)?;
    let drawn = topology.draw();
    let launching = arguments.reach.launching.as_user(arguments.reach.user.as_deref())?;
    let agent = Program::new(sapwood::node_program()?).argument(agent::AGENT).binds_itself();
    let builder = launching.apply(Network::builder(topology).back_end(agent).allow_missing());
    if arguments.terms.dry_run {
        let text = dry_run(&builder, &drawn)?;
        let command = arguments.command.join(" ");
        print(&format!("{} hosts: {hosts}\n{text}command: {command}\n", names.len()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let refused = |error| Failure::own(&format!("cannot take signals over: {error}"));
    let signals = Signals::take_over().map_err(refused)?;
    let mut network = builder.open()?;
    let code = conduct(arguments, &mut network, hosts, names, signals);
    let closed = network.close();
    let code = code?;
    closed?;
    Ok(ExitCode::from(code))
}

/// Runs the command in a network whose back-ends are agents, one for each name.
fn conduct(
    arguments: &Arguments,
    network: &mut Network,
    hosts: NodeSet,
    names: Vec<String>,
    signals: Signals,
) -> Result<u8, Failure> {
    let (style, terms) = (&arguments.style, &arguments.terms);
    let (unreached, reasons) = unreached(network, names.len());
    let has_files = style.outdir.is_some() || style.errdir.is_some();
    let is_folded = style.fold || style.line || style.diff || style.json;
    let shows = !is_folded || style.live;
    let order = Order {
        hosts: hosts.to_string(),
        words: match terms.exec {
            true => arguments.command.clone(),
            false => vec![arguments.command.join(" ")],
        },
        is_shell: !terms.exec,
        substitutes: terms.substitute,
        is_live: shows || has_files,
        is_folded,
        environment: terms.environment.clone(),
        directory: terms.chdir.clone().unwrap_or_default(),
        time_limit: terms.command_timeout.unwrap_or_default(),
        ..Order::default()
    };
    let folders = [style.outdir.clone(), style.errdir.clone()];
    let printer = Printer::new(shows, !style.no_label, folders)?;
    if unreached.len() == names.len() as u64 {
        let mut results = results::Results::new(names, std::time::Instant::now());
        lose_unreached(&mut |ranks, reason| results.lose(ranks, reason), &unreached, &reasons);
        return report::write_unreached(&results, arguments);
    }
    let reads_input = !terms.no_stdin && !std::io::stdin().is_terminal();
    let mut conductor =
        Conductor::begin(network, names, order, reads_input, printer, Some(signals))?;
    lose_unreached(&mut |ranks, reason| conductor.lose(ranks, reason), &unreached, &reasons);
    let ended_by = conductor.run()?;
    report::write(&mut conductor, arguments)?;
    conductor.printer.flush()?;
    let code = match ended_by {
        Some(signal) => 128 + signal.as_raw().clamp(0, 127) as u8,
        None if terms.no_rc => 0,
        None => conductor.results.exit_code(terms.quorum),
    };
    Ok(code)
}

/// Names that a process can be started on, rather than any text.
pub(crate) fn check_names(hosts: &NodeSet) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = hosts.iter().collect();
    for name in &names {
        name.parse::<HostName>().map_err(Failure::usage)?;
    }
    Ok(names)
}

/// The tree, with one back-end for each host in order.
pub(crate) fn tree_over(names: &[String], reach: &Reach) -> Result<Topology, Failure> {
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let fan_out = reach.fan_out.unwrap_or_else(|| {
        let root = f64::from(count).sqrt().ceil() as u32;
        root.clamp(FAN_OUT_MIN, FAN_OUT_MAX)
    });
    if reach.launching.launcher == Launcher::Local {
        return labelled_tree(count, fan_out);
    }
    let names = names.iter().map(|name| name.parse::<HostName>());
    let names = names.collect::<Result<Vec<_>, _>>().map_err(Failure::usage)?;
    let hosts = Hosts::new(names).map_err(Failure::usage)?;
    Topology::over_hosts(&hosts, fan_out).map_err(Failure::usage)
}

/// A tree on this machine, whose back-ends only bear the names of hosts.
fn labelled_tree(count: u32, fan_out: u32) -> Result<Topology, Failure> {
    let spec = match fan_out {
        // Each host behind a process of its own.
        1 => format!("1x{count}"),
        _ => shape_over(count, fan_out),
    };
    let shape: Shape = spec.parse().map_err(Failure::usage)?;
    Ok(Topology::from_shape(&shape, &Hosts::local()))
}

/// Back-ends that are not there, and what was said of processes that did not start.
pub(crate) fn unreached(network: &mut Network, hosts: usize) -> (RankSet, Vec<(RankSet, String)>) {
    let everyone = u32::try_from(hosts).unwrap_or(u32::MAX);
    let all = RankSet::range(0, everyone.saturating_sub(1));
    let unreached = all.difference(network.everyone().ranks().as_ref());
    let mut reasons = Vec::new();
    if unreached.is_empty() {
        return (unreached, reasons);
    }
    while let Some(event) = network.next_event() {
        if let Event::StartFailed { rank, text } = event {
            let below = network.topology().back_end_ranges(rank);
            let mut ranks = RankSet::new();
            for (first, last) in below {
                ranks.insert_range(first, last);
            }
            if rank < everyone {
                ranks.insert(rank);
            }
            reasons.push((ranks, text));
        }
    }
    (unreached, reasons)
}

pub(crate) fn lose_unreached(
    lose: &mut dyn FnMut(&RankSet, &str),
    unreached: &RankSet,
    reasons: &[(RankSet, String)],
) {
    for (ranks, text) in reasons {
        let mut ranks = ranks.clone();
        ranks.intersect_with(unreached.as_ref());
        lose(&ranks, &format!("could not be reached: {text}"));
    }
    lose(unreached, "could not be reached");
}
