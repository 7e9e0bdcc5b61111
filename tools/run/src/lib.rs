//! `sapwood run`: a command on every host of a set, through a tree that folds the answers.
//!
//! Owns the command line and the order of things: which hosts, the tree over them, the command,
//! the report. `agent` is the process on each host, `conductor` the front-end, `cohort` the hosts
//! that begin at one time, `protocol` what both ends say to each other, `sapwood_hosts::deploy`
//! starts the tree between them, or a daemon keeps one up (`sapwood_hosts::persistent`), `results`
//! what is known of the hosts, `fetched` how much of a long output has come, `live_output` how much
//! of a live one, `folded` and `report` what is written at the end, `prompt` commands one after
//! another. docs/run.md describes it for users.

pub mod agent;
mod cohort;
mod conductor;
mod diff;
mod fetched;
mod folded;
mod job;
mod lines;
mod live_output;
mod printer;
mod prompt;
mod protocol;
mod report;
mod results;
mod spool;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{Rank, RankSet};
use sapwood_topology::NodeSet;

use self::conductor::Conductor;
use self::printer::{HostLabel, LiveLines, Printer};
use self::protocol::Order;
use self::results::Results;
use sapwood_command_line::exit::{Failure, UNREACHED, by_signal, complain, print};
use sapwood_command_line::times::time;
use sapwood_hosts::absence::everyone;
use sapwood_hosts::deploy::{self, Opened, Targets};
use sapwood_hosts::launching::Launching;
use sapwood_hosts::persistent::{self, shared};
use sapwood_hosts::selection::{Reach, Selection};
use sapwood_hosts::signals::Signals;
use sapwood_hosts::tree::{Purpose, TreeTerms};
use sapwood_hosts::tree_access::{Flow, Owned, StandardInput, Tree};

/// How long all hosts are waited for, before those that are there begin a command whose lines are
/// written as they come.
const FIRST_HOSTS_TIME: Duration = Duration::from_secs(1);

/// Options that say how a new tree is started, which mean nothing in one that is up.
fn terms_of_new_trees() -> impl Iterator<Item = &'static str> {
    let starts = TreeTerms::OPTIONS.into_iter().chain(Launching::STARTS);
    std::iter::once("cold").chain(starts)
}

/// What `sapwood run` is asked.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit codes: the largest of all hosts'; 124 if one timed out, 255 if one could \
                        not be reached or was lost, 128+n for signal n, 125 for a failure of \
                        Sapwood itself."
)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    style: Style,
    #[command(flatten)]
    terms: Terms,
    /// Use the running tree of this name (see 'sapwood up'), and no other.
    #[arg(long = "network", visible_alias = "tree", value_name = "NAME",
          conflicts_with_all = terms_of_new_trees())]
    tree: Option<String>,
    /// Start a new tree for this command, even if one is running.
    #[arg(long = "new-tree", alias = "cold")]
    cold: bool,
    /// Read commands line by line and run one after another. This is the default on a terminal
    /// without a command.
    #[arg(long, conflicts_with_all = ["command", "dry_run"])]
    prompt: bool,
    /// The command, for the shell of each host.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How the outcome is written.
#[derive(Clone, Debug, clap::Args)]
struct Style {
    /// Write equal outputs once, under the set of their hosts, when all have ended.
    #[arg(short = 'b', long = "fold", visible_alias = "dshbak", visible_short_alias = 'B')]
    fold: bool,
    /// Write the output sorted by host when all have ended; with -b, put the set of hosts in front
    /// of each line.
    #[arg(short = 'L', long = "line")]
    line: bool,
    /// With -b, -L or --diff, also write lines as they arrive.
    #[arg(long)]
    live: bool,
    /// Write the most frequent output in full, and for each other output its differences from that.
    #[arg(long, conflicts_with = "line")]
    diff: bool,
    /// Print one JSON object when all have ended.
    #[arg(long, conflicts_with_all = ["fold", "line", "diff", "live", "no_label", "dry_run"])]
    json: bool,
    /// Write lines, live ones and those of -L, without the host in front.
    #[arg(short = 'N', long)]
    no_label: bool,
    /// Print no lines about hosts on which the command fails, is killed or times out, and about
    /// missing hosts; the exit code says that there are such hosts.
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
    /// End commands that take longer than this time.
    #[arg(short = 'u', long = "command-timeout", value_name = "SECONDS", value_parser = time)]
    command_timeout: Option<Duration>,
    /// Accept up to N missing hosts.
    #[arg(long, alias = "quorum", value_name = "N", default_value_t = 0)]
    missing_max: usize,
    /// Set a variable for the command (repeatable).
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<String>,
    /// Run the command in this folder.
    #[arg(long, value_name = "FOLDER")]
    chdir: Option<String>,
    /// Replace %h or %host, %n or %rank, %u or %user, and %% in the command, --env and --chdir.
    #[arg(long)]
    substitute: bool,
    /// Run the command without a shell: each word is one argument.
    #[arg(long)]
    exec: bool,
    /// Give the command no standard input.
    #[arg(short = 'n', long = "nostdin")]
    no_stdin: bool,
    /// Exit with the largest exit code of all hosts; this is the default.
    #[arg(short = 'S', long, conflicts_with = "no_rc")]
    maxrc: bool,
    /// Exit with 0 even if the command has failed on a host.
    #[arg(long, conflicts_with = "missing_max")]
    no_rc: bool,
    /// Print the tree and the commands that would start it, and run nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    flow: Flow,
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() && !text.contains('\0') => Ok(text.to_string()),
        _ => Err("write NAME=VALUE".to_string()),
    }
}

/// Where commands come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandSource {
    /// The one that the arguments name.
    Arguments,
    /// Those that are read one after another.
    Prompt,
}

/// Runs the command, or those that are read.
///
/// # Errors
/// [`Failure`] for bad input, and where the tree or the output fails.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let source = match arguments.prompt || arguments.command.is_empty() && is_on_terminal() {
        true => CommandSource::Prompt,
        false => CommandSource::Arguments,
    };
    if arguments.command.is_empty() && source == CommandSource::Arguments {
        return Err(Failure::usage(
            "a COMMAND is missing; commands are read one after another on a terminal, or with \
             --prompt",
        ));
    }
    if source == CommandSource::Prompt && arguments.terms.exec {
        return Err(Failure::usage(
            "--exec is for the words of a command; lines that are read are for a shell: omit it",
        ));
    }
    if arguments.style.no_label && !arguments.style.has_lines() {
        return Err(Failure::usage(
            "-N is for lines with a host in front, and -b and --diff write none; omit it, or add \
             -L or --live",
        ));
    }
    if arguments.tree.is_some() && arguments.reach.launching.names_interfaces() {
        return Err(Failure::usage(
            "--interfaces is for a new tree, which --network does not start; omit one of them",
        ));
    }
    let targets = Targets::of(match &arguments.tree {
        Some(name) => arguments.selection.resolve_or(|_| persistent::hosts_of(name))?,
        None => arguments.selection.resolve()?,
    })?;
    let standing = match arguments.cold {
        true => None,
        false => shared::find(&targets.set, &arguments.reach, arguments.tree.as_deref())?,
    };
    if arguments.terms.dry_run {
        let name = standing.as_ref().map(|(tree, _)| tree.name());
        return show_plan(arguments, &targets, name);
    }
    let refused = |error| Failure::own(&format!("cannot handle signals: {error}"));
    let signals = Signals::take_over().map_err(refused)?;
    if let Some((mut tree, ranks)) = standing {
        let way_back = tree.way_back(&ranks).filter(|_| !arguments.style.quiet);
        let mut session =
            Session { arguments, hosts: of_ranks(&ranks, &targets), targets, signals };
        let code = session.run(&mut tree, source)?;
        if let Some(way_back) = way_back.filter(|_| code == UNREACHED) {
            complain(way_back);
        }
        return Ok(ExitCode::from(code));
    }
    run_in_new_tree(arguments, targets, signals, source)
}

/// The same in a tree that is started for it.
fn run_in_new_tree(
    arguments: &Arguments,
    targets: Targets,
    signals: Signals,
    source: CommandSource,
) -> Result<ExitCode, Failure> {
    let plan = deploy::plan(&targets, &arguments.reach, Purpose::Once, persistent::AGENT)?;
    plan.launching.announce(&plan.builder);
    let builder = match arguments.style.is_live() && source == CommandSource::Arguments {
        true => plan.builder.open_after(FIRST_HOSTS_TIME),
        false => plan.builder,
    };
    let (network, signals) = match deploy::open(builder, signals)? {
        Opened::Tree(network, signals) => (*network, signals),
        Opened::Stopped(signal) => return Ok(deploy::stopped(signal)),
    };
    let count = targets.names.len();
    let ranks = everyone(count);
    let mut session = Session { arguments, hosts: of_ranks(&ranks, &targets), targets, signals };
    let mut tree = Owned::new(network, &session.targets.names).flowing(arguments.terms.flow);
    let code = session.run(&mut tree, source);
    let closed = tree.close();
    let code = code?;
    closed?;
    if code == UNREACHED && !arguments.style.quiet {
        plan.launching.tell_of_ended_job();
    }
    Ok(ExitCode::from(code))
}

fn is_on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

fn show_plan(
    arguments: &Arguments,
    targets: &Targets,
    standing: Option<&str>,
) -> Result<ExitCode, Failure> {
    let text = match standing {
        Some(name) => {
            format!("{}\ntree '{name}' is up and has them all\n", targets.counted())
        }
        None => deploy::plan(targets, &arguments.reach, Purpose::Once, persistent::AGENT)?
            .text(targets)?,
    };
    print(&format!("{text}command: {}\n", arguments.command.join(" ")))?;
    Ok(ExitCode::SUCCESS)
}

/// The names of hosts by the ranks of their back-ends, which are in the same order.
fn of_ranks(ranks: &RankSet, targets: &Targets) -> BTreeMap<Rank, String> {
    ranks.iter().zip(targets.names.iter().map(ToString::to_string)).collect()
}

/// Commands of one call, on the same hosts.
struct Session<'a> {
    arguments: &'a Arguments,
    targets: Targets,
    /// The hosts by their ranks in the tree.
    hosts: BTreeMap<Rank, String>,
    signals: Signals,
}

impl Session<'_> {
    fn run(&mut self, tree: &mut dyn Tree, source: CommandSource) -> Result<u8, Failure> {
        if source == CommandSource::Prompt {
            return prompt::run(self, tree);
        }
        let arguments = self.arguments;
        let input = match arguments.terms.no_stdin || std::io::stdin().is_terminal() {
            true => StandardInput::Closed,
            false => StandardInput::Passed,
        };
        self.conduct(tree, arguments, input)
    }

    /// Whether a host of the command is in the tree.
    fn has_host(&self, tree: &dyn Tree) -> bool {
        tree.connected().iter().any(|rank| self.hosts.contains_key(&rank))
    }

    /// Writes why no host was reached, and gives the exit code.
    fn unreached(&self, tree: &dyn Tree, arguments: &Arguments) -> Result<u8, Failure> {
        let mut results = Results::new(self.hosts.clone(), Instant::now());
        for (ranks, reason) in tree.absent() {
            results.lose(&ranks, &reason);
        }
        report::write_unreached(&results, arguments)
    }

    /// Runs one command, writes what came of it, and gives the exit code.
    fn conduct(
        &mut self,
        tree: &mut dyn Tree,
        arguments: &Arguments,
        input: StandardInput,
    ) -> Result<u8, Failure> {
        let style = &arguments.style;
        let order = order(arguments, &self.targets.set);
        let folders = [style.outdir.clone(), style.errdir.clone()];
        let printer = Printer::new(style.lines(), style.label(), folders)?;
        if !self.has_host(tree) && !tree.is_starting() {
            return self.unreached(tree, arguments);
        }
        let (hosts, signals) = (self.hosts.clone(), &mut self.signals);
        let failure = match Conductor::begin(tree, hosts, order, input, printer, signals) {
            Ok(conductor) => return carry_out(conductor, arguments),
            Err(failure) => failure,
        };
        if self.has_host(tree) {
            return Err(failure);
        }
        // The tree was ended while the command began, which no host has seen.
        self.unreached(tree, arguments)
    }
}

/// Waits until a command that has begun is over, writes what came of it, and gives the exit code.
fn carry_out(mut conductor: Conductor<'_>, arguments: &Arguments) -> Result<u8, Failure> {
    let ended_by = conductor.run()?;
    let written = report::write(&mut conductor, arguments);
    conductor.printer.flush()?;
    if let (Err(what), Some(_)) = (&written, conductor.stopped_by()) {
        complain(what);
    } else {
        written?;
    }
    Ok(match conductor.stopped_by().or(ended_by) {
        Some(signal) => by_signal(signal),
        None => report::exit_code(&conductor.results, arguments),
    })
}

impl Style {
    fn is_folded(&self) -> bool {
        self.fold || self.line || self.diff || self.json
    }

    /// Whether lines are written as they come.
    fn shows(&self) -> bool {
        !self.is_folded() || self.live
    }

    /// Whether lines are written that have a host in front.
    fn has_lines(&self) -> bool {
        self.line || self.shows()
    }

    fn lines(&self) -> LiveLines {
        if self.shows() { LiveLines::Written } else { LiveLines::Left }
    }

    fn label(&self) -> HostLabel {
        if self.no_label { HostLabel::None } else { HostLabel::Name }
    }

    /// Whether output is sent as it comes.
    fn is_live(&self) -> bool {
        self.shows() || self.outdir.is_some() || self.errdir.is_some()
    }
}

/// What the agents are told, but for the streams.
fn order(arguments: &Arguments, hosts: &NodeSet) -> Order {
    let Arguments { style, terms, command, .. } = arguments;
    let here =
        std::env::current_dir().ok().and_then(|here| here.into_os_string().into_string().ok());
    Order {
        hosts: hosts.to_string(),
        words: if terms.exec { command.clone() } else { vec![command.join(" ")] },
        is_shell: !terms.exec,
        substitutes: terms.substitute,
        is_live: style.is_live(),
        is_folded: style.is_folded(),
        environment: terms.environment.clone(),
        caller_directory: here.unwrap_or_default(),
        directory: terms.chdir.clone().unwrap_or_default(),
        time_limit: terms.command_timeout.unwrap_or_default(),
        ..Order::default()
    }
}
