//! `sapwood group status` and `explain`: a group as one of its members sees it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::group_status::{ChangeKind, Status, TreeStatus};
use sapwood::{Life, MemberId, Rank, Step, TreeKind, Why, ask_group};
use sapwood_command_line::exit::{Failure, print};
use sapwood_command_line::times::patience;
use serde_json::{Value, json};

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
        true => format!("{}\n", to_json(&status)),
        false => picture(&status, arguments.brief),
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
        true => format!("{}\n", tree_json(&status)),
        false => reasons(&status),
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

fn picture(status: &Status, is_brief: bool) -> String {
    let labels = labels(status);
    let alive = |member: &&sapwood::group_status::MemberStatus| member.life == Life::Alive;
    let count = status.members.iter().filter(alive).count();
    let mut text = format!("{count} members, name space 0 to {}\n\n", status.space - 1);
    text += "virtual nodes  cluster  site  address\n";
    for member in &status.members {
        let cluster = match (member.life, member.cluster) {
            (Life::Alive, Some(cluster)) => cluster.to_string(),
            (Life::Alive, None) => "-".to_string(),
            (Life::Dead, _) => "dead".to_string(),
            (Life::Left, _) => "left".to_string(),
        };
        let names = label(&labels, &member.id);
        let (site, address) = (member.site, &member.address);
        let _ = writeln!(text, "{names:<13}  {cluster:<7}  {site:<4}  {address}");
    }
    text += "\nclusters (inferred)\n";
    for (index, (_, names)) in status.clusters.iter().enumerate() {
        let _ = writeln!(text, "{index:<3} {}", names.as_set().to_set());
    }
    text += "\nround trips between clusters\n";
    for (from, to, time) in &status.distances {
        let _ = writeln!(text, "{from:>3} - {to:<3} {}", milliseconds(*time));
    }
    let (table, probes) = (status.table, status.probes);
    let _ =
        writeln!(text, "\ntable of clusters: version {table}; this member sent {probes} probes");
    if !is_brief {
        text += &changes(status, &labels);
    }
    text.push('\n');
    text += &drawing(&status.tree, &labels);
    text
}

fn changes(status: &Status, labels: &BTreeMap<MemberId, String>) -> String {
    let mut text = "\nchanges\n".to_string();
    for change in &status.changes {
        let what = match &change.what {
            ChangeKind::Joined(id) => format!("{} joined", label(labels, id)),
            ChangeKind::Gone(id, why) => format!("{} is gone: {why}", label(labels, id)),
            ChangeKind::Clusters(version, count) => {
                format!("clusters: version {version}, {count} of them")
            }
        };
        let _ = writeln!(text, "{:>9.3} s ago  {what}", change.age as f64 / 1e9);
    }
    text
}

fn heading(tree: &TreeStatus) -> String {
    let TreeStatus { kind, root, bytes, .. } = tree;
    format!("tree '{kind}' from virtual node {root} for {bytes} bytes\n")
}

fn drawing(tree: &TreeStatus, labels: &BTreeMap<MemberId, String>) -> String {
    let mut text = heading(tree);
    let stripes = tree.steps.iter().map(|step| step.stripe).max().unwrap_or(0);
    for stripe in 0..=stripes {
        if stripes > 0 {
            let _ = writeln!(text, "stripe {stripe}");
        }
        let steps: Vec<&Step> = tree.steps.iter().filter(|step| step.stripe == stripe).collect();
        let Some(first) = steps.first() else { continue };
        draw_below(&steps, first.parent, labels, 0, &mut text);
    }
    text
}

fn draw_below(
    steps: &[&Step],
    member: MemberId,
    labels: &BTreeMap<MemberId, String>,
    depth: usize,
    text: &mut String,
) {
    let _ = writeln!(text, "{}{}", "  ".repeat(depth), label(labels, &member));
    // A tree is no deeper than it has members.
    if depth > steps.len() {
        return;
    }
    for step in steps.iter().filter(|step| step.parent == member) {
        draw_below(steps, step.child, labels, depth + 1, text);
    }
}

fn reasons(status: &Status) -> String {
    let labels = labels(status);
    let mut text = heading(&status.tree);
    text += "child     parent    place  arrival     why\n";
    for step in &status.tree.steps {
        let (child, parent) = (label(&labels, &step.child), label(&labels, &step.parent));
        let (place, arrival) = (step.place, milliseconds(step.arrival));
        let why = reason(&step.why);
        let stripe = match step.stripe {
            0 => String::new(),
            stripe => format!("stripe {stripe}: "),
        };
        let _ = writeln!(text, "{child:<8}  {parent:<8}  {place:<5}  {arrival:<10}  {stripe}{why}");
    }
    text
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

fn to_json(status: &Status) -> Value {
    let labels = labels(status);
    let members: Vec<Value> = status
        .members
        .iter()
        .map(|member| {
            json!({
                "names": label(&labels, &member.id),
                "address": member.address,
                "site": member.site,
                "life": format!("{:?}", member.life).to_lowercase(),
                "cluster": member.cluster,
            })
        })
        .collect();
    let clusters: Vec<String> =
        status.clusters.iter().map(|entry| entry.1.as_set().to_set().to_string()).collect();
    let distances: Vec<Value> = status
        .distances
        .iter()
        .map(|(from, to, time)| json!({ "from": from, "to": to, "seconds": *time as f64 / 1e9 }))
        .collect();
    let changes: Vec<Value> = status
        .changes
        .iter()
        .map(|change| {
            let age = change.age as f64 / 1e9;
            match &change.what {
                ChangeKind::Joined(id) => json!({ "age": age, "joined": label(&labels, id) }),
                ChangeKind::Gone(id, why) => {
                    json!({ "age": age, "gone": label(&labels, id), "reason": why.to_string() })
                }
                ChangeKind::Clusters(version, count) => {
                    json!({ "age": age, "table": version, "clusters": count })
                }
            }
        })
        .collect();
    json!({
        "space": status.space,
        "members": members,
        "clusters": clusters,
        "round_trips": distances,
        "table": status.table,
        "probes": status.probes,
        "held": status.held,
        "changes": changes,
        "tree": tree_json(status),
    })
}

fn tree_json(status: &Status) -> Value {
    let labels = labels(status);
    let steps: Vec<Value> = status
        .tree
        .steps
        .iter()
        .map(|step| {
            json!({
                "stripe": step.stripe,
                "child": label(&labels, &step.child),
                "parent": label(&labels, &step.parent),
                "place": step.place,
                "depth": step.depth,
                "arrival_seconds": step.arrival as f64 / 1e9,
                "why": reason(&step.why),
            })
        })
        .collect();
    let TreeStatus { kind, root, bytes, .. } = &status.tree;
    json!({ "kind": kind.to_string(), "root": root, "bytes": bytes, "steps": steps })
}
