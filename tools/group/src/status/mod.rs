//! `sapwood group status` and `explain`: a group as one of its members sees it.
//!
//! Owns the command lines, the question to the member, and the words that `text`, `json` and
//! `svg` share.

mod json;
mod svg;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::group_status::{MemberStatus, Status, TreeStatus};
use sapwood::{Life, MemberId, Rank, TreeKind, Why, ask_group};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;
use sapwood_report::write_named;

use crate::KeyArguments;
use crate::request::bytes;

/// What `sapwood group status` and `explain` are asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The address of any member.
    address: String,
    #[command(flatten)]
    key: KeyArguments,
    /// Tree to print: adaptive, flat, binomial, static, list, paper-latency or paper-bandwidth.
    #[arg(long, value_name = "NAME", default_value = "adaptive", value_parser = crate::tree)]
    tree: TreeKind,
    /// Root of the tree: a virtual node, or 'all' for one tree from each member; by default that of
    /// the member that is asked.
    #[arg(long, value_name = "NAME", value_parser = roots)]
    root: Option<Roots>,
    /// Length of the value in bytes; long values are sent by other trees.
    #[arg(long, value_name = "LENGTH", default_value = "1", value_parser = bytes)]
    bytes: usize,
    /// Time limit for the member's answer.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Do not print the changes.
    #[arg(long)]
    brief: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `sapwood group status` is asked.
#[derive(clap::Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    of: Arguments,
    /// Write a picture of the tree to this file: clusters in colours, round trips on the edges.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Which trees are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roots {
    One(Rank),
    All,
}

fn roots(text: &str) -> Result<Roots, String> {
    match text {
        "all" => Ok(Roots::All),
        name => name
            .parse()
            .map(Roots::One)
            .map_err(|_| format!("'{name}' is no virtual node; write a number, or all")),
    }
}

/// Prints members, clusters, distances, changes and the tree.
///
/// # Errors
/// [`Failure`] where no member answers, or the picture cannot be written.
pub(crate) fn show(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let ShowArguments { of: arguments, svg } = arguments;
    if svg.is_some() && arguments.root == Some(Roots::All) {
        return Err(Failure::usage("--svg draws one tree: name its root with --root"));
    }
    let answer = ask(arguments)?;
    if let Some(file) = svg {
        let failed = |error| Failure::usage(format!("cannot write '{}': {error}", file.display()));
        write_named(file, svg::encode(&answer.status).as_bytes()).map_err(failed)?;
    }
    print(&match arguments.json {
        true => format!("{}\n", json::to_json(&answer.status, answer.trees.as_deref())),
        false => text::picture(&answer.status, answer.trees(), arguments.brief),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the tree with the reasons.
///
/// # Errors
/// [`Failure`] where no member answers.
pub(crate) fn explain(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let answer = ask(arguments)?;
    check_root(arguments.root, &answer.status)?;
    let text = match arguments.json {
        true => format!("{}\n", json::explained(&answer.status, answer.trees.as_deref())),
        false => text::reasons(&answer.status, answer.trees()),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn check_root(roots: Option<Roots>, status: &Status) -> Result<(), Failure> {
    let Some(Roots::One(root)) = roots else { return Ok(()) };
    let carries =
        |member: &MemberStatus| member.life == Life::Alive && member.names.as_set().contains(root);
    match status.members.iter().any(carries) {
        true => Ok(()),
        false => Err(Failure::usage(format!("virtual node {root} belongs to no member"))),
    }
}

/// What a member has told.
struct Answer {
    status: Status,
    /// One from each member, where all were asked for.
    trees: Option<Vec<TreeStatus>>,
}

impl Answer {
    fn trees(&self) -> &[TreeStatus] {
        self.trees.as_deref().unwrap_or(std::slice::from_ref(&self.status.tree))
    }
}

/// Asks the member; once for each root.
fn ask(arguments: &Arguments) -> Result<Answer, Failure> {
    let key = arguments.key.read(false)?;
    let encryption = arguments.key.plain.then_some(false);
    let ask_for = |root| {
        let tree = (arguments.tree, root, arguments.bytes as u64);
        ask_group(&arguments.address, &key, encryption, tree, arguments.timeout)
    };
    match arguments.root {
        Some(Roots::One(root)) => Ok(Answer { status: ask_for(Some(root))?, trees: None }),
        None => Ok(Answer { status: ask_for(None)?, trees: None }),
        Some(Roots::All) => {
            let status = ask_for(None)?;
            let alive = status.members.iter().filter(|member| member.life == Life::Alive);
            let mut roots: Vec<Rank> =
                alive.filter_map(|member| member.names.as_set().first()).collect();
            roots.sort_unstable();
            let trees = roots.into_iter().map(|root| Ok(ask_for(Some(root))?.tree));
            let trees = trees.collect::<Result<Vec<_>, Failure>>()?;
            Ok(Answer { status, trees: Some(trees) })
        }
    }
}

fn heading(tree: &TreeStatus) -> String {
    let TreeStatus { kind, root, bytes, .. } = tree;
    format!("tree '{kind}' from virtual node {root} for {bytes} bytes\n")
}

/// The virtual nodes of each member, by which people know it.
fn labels(status: &Status) -> BTreeMap<MemberId, String> {
    let label = |member: &MemberStatus| (member.id, member.names.as_set().to_set().to_string());
    status.members.iter().map(label).collect()
}

fn label<'a>(labels: &'a BTreeMap<MemberId, String>, id: &MemberId) -> &'a str {
    labels.get(id).map_or("?", String::as_str)
}

fn reason(why: &Why) -> String {
    match why {
        Why::Flat => "the root sends to each member itself".to_string(),
        Why::Order => "by the order of the virtual nodes".to_string(),
        Why::Chain => "the member before it in the chain".to_string(),
        Why::Site { site } => format!("one edge to the given cluster {site}"),
        Why::Gate { from, to, round_trip: Some(time) } => format!(
            "cluster {to} is entered from {from}, over the shortest known path: {}",
            milliseconds(*time)
        ),
        Why::Gate { from, to, round_trip: None } => {
            format!("cluster {to} is entered from {from}; that distance was not measured")
        }
        Why::FreeFirst { cluster } => {
            format!("the first member of cluster {cluster} with the value that was free")
        }
        Why::Interior => "an interior member of this stripe, and of no other".to_string(),
        Why::Probed => "found by probes, by the rule of the paper".to_string(),
        Why::Direct => "no tree reaches it yet: sent point to point".to_string(),
    }
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3} ms", nanoseconds as f64 / 1e6)
}
