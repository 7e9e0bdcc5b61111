//! `sapwood group status` and `explain`: a group as one of its members sees it.
//!
//! Owns the command lines, the question to the member, and the words that `text` and `json` share.

mod json;
mod text;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::group_status::Status;
use sapwood::{Life, MemberId, Rank, TreeKind, Why, ask_group};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;

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
    /// Root of the tree, a virtual node; by default that of the member that is asked.
    #[arg(long, value_name = "NAME")]
    root: Option<Rank>,
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

/// Prints members, clusters, distances, changes and the tree.
///
/// # Errors
/// [`Failure`] where no member answers.
pub(crate) fn show(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let status = ask(arguments)?;
    print(&match arguments.json {
        true => format!("{}\n", json::to_json(&status)),
        false => text::picture(&status, arguments.brief),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the tree with the reasons.
///
/// # Errors
/// [`Failure`] where no member answers.
pub(crate) fn explain(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let status = ask(arguments)?;
    check_root(arguments.root, &status)?;
    let text = match arguments.json {
        true => format!("{}\n", json::tree_json(&status)),
        false => text::reasons(&status),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn check_root(root: Option<Rank>, status: &Status) -> Result<(), Failure> {
    let Some(root) = root else { return Ok(()) };
    let carries = |member: &sapwood::group_status::MemberStatus| {
        member.life == Life::Alive && member.names.as_set().contains(root)
    };
    match status.members.iter().any(carries) {
        true => Ok(()),
        false => Err(Failure::usage(format!("virtual node {root} belongs to no member"))),
    }
}

fn ask(arguments: &Arguments) -> Result<Status, Failure> {
    let key = arguments.key.read(false)?;
    let encryption = arguments.key.plain.then_some(false);
    let tree = (arguments.tree, arguments.root, arguments.bytes as u64);
    Ok(ask_group(&arguments.address, &key, encryption, tree, arguments.timeout)?)
}

/// The virtual nodes of each member, by which people know it.
fn labels(status: &Status) -> BTreeMap<MemberId, String> {
    let label = |member: &sapwood::group_status::MemberStatus| {
        (member.id, member.names.as_set().to_set().to_string())
    };
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
