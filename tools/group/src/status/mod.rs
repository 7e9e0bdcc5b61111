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
use std::time::{Duration, Instant};

use sapwood::group_status::{MemberStatus, Status, TreeStatus};
use sapwood::{Life, MemberId, Rank, RankSet, TreeKind, Why, ask_group};
use sapwood_command_line::exit::{Failure, complain, print};
use sapwood_command_line::times::patience;
use sapwood_report::write_named;

use self::text::Detail;
use crate::request::bytes;
use crate::{KeyArguments, MissingKey};

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
    /// Time limit for the member's answer; with '--root all' for all answers together.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
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
    /// Print neither the counts of reductions nor the changes.
    #[arg(long, conflicts_with = "json")]
    brief: bool,
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
/// [`Failure`] where no member answers or carries the root, or the picture cannot be written.
pub(crate) fn show(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let ShowArguments { of: arguments, svg, brief } = arguments;
    if svg.is_some() && arguments.root == Some(Roots::All) {
        return Err(Failure::usage("--svg draws one tree: name its root with --root"));
    }
    let answer = ask(arguments)?;
    check_root(arguments.root, &answer.status)?;
    if let Some(file) = svg {
        let failed = |error| Failure::usage(format!("cannot write '{}': {error}", file.display()));
        write_named(file, svg::encode(&answer.status).as_bytes()).map_err(failed)?;
    }
    let detail = if *brief { Detail::Brief } else { Detail::Full };
    print(&match arguments.json {
        true => format!("{}\n", json::to_json(&answer.status, answer.trees.as_deref())),
        false => text::picture(&answer.status, answer.trees(), detail),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the tree with the reasons.
///
/// # Errors
/// [`Failure`] where no member answers or carries the root.
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
    match is_carried(status, root) {
        true => Ok(()),
        false => Err(Failure::usage(format!("virtual node {root} belongs to no member"))),
    }
}

/// Whether a living member has the virtual node.
fn is_carried(status: &Status, root: Rank) -> bool {
    let carries =
        |member: &MemberStatus| member.life == Life::Alive && member.names.as_set().contains(root);
    status.members.iter().any(carries)
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
    let key = arguments.key.read(MissingKey::Refused)?;
    let encryption = arguments.key.plain.then_some(false);
    let begun = Instant::now();
    let ask_for = |root| {
        let tree = (arguments.tree, root, arguments.bytes as u64);
        let left = arguments.timeout.saturating_sub(begun.elapsed());
        ask_group(&arguments.address, &key, encryption, tree, left)
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
            let found = trees_from(roots, |root| Ok(ask_for(Some(root))?))?;
            for root in found.without_member {
                complain(format!("no tree from virtual node {root}: its member is gone"));
            }
            Ok(Answer { status, trees: Some(found.trees) })
        }
    }
}

/// The trees of several roots, each of which was asked for by itself.
struct FoundTrees {
    trees: Vec<TreeStatus>,
    /// Roots whose members have gone since they were listed.
    without_member: Vec<Rank>,
}

fn trees_from(
    roots: Vec<Rank>,
    ask_for: impl Fn(Rank) -> Result<Status, Failure>,
) -> Result<FoundTrees, Failure> {
    let mut found = FoundTrees { trees: Vec::new(), without_member: Vec::new() };
    for root in roots {
        let status = ask_for(root)?;
        match is_carried(&status, root) {
            true => found.trees.push(status.tree),
            // Members come and go between two questions.
            false => found.without_member.push(root),
        }
    }
    Ok(found)
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

/// The virtual nodes of each cluster that has members, by its index.
fn living_clusters(status: &Status) -> BTreeMap<usize, RankSet> {
    let all = status.clusters.iter().map(|(_, names)| names.as_set().to_set());
    all.enumerate().filter(|(_, names)| !names.is_empty()).collect()
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

const fn word(life: Life) -> &'static str {
    match life {
        Life::Alive => "alive",
        Life::Dead => "dead",
        Life::Left => "left",
    }
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3} ms", nanoseconds as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use sapwood::ReduceCounts;

    use super::*;

    fn state(root: Rank, members: &[(Rank, Life)]) -> Status {
        let member = |(name, life): &(Rank, Life)| MemberStatus {
            id: MemberId(u64::from(*name) + 1),
            address: String::new(),
            names: (&RankSet::range(*name, *name)).into(),
            site: 0,
            life: *life,
            cluster: None,
        };
        let (kind, steps) = (TreeKind::Flat, Vec::new());
        Status {
            member: MemberId(1),
            space: 16,
            members: members.iter().map(member).collect(),
            clusters: Vec::new(),
            distances: Vec::new(),
            table: 0,
            probes: 0,
            held: 0,
            changes: Vec::new(),
            tree: TreeStatus { kind, root, bytes: 1, steps, choice: None },
            reductions: ReduceCounts::default(),
        }
    }

    #[test]
    fn a_root_whose_member_has_gone_since_is_left_out() {
        // The member of node 2 dies after the first question; that of node 3 is forgotten.
        let ask_for = |root: Rank| {
            let life = if root == 0 { Life::Alive } else { Life::Dead };
            Ok(state(root, &[(0, Life::Alive), (1, Life::Alive), (2, life)]))
        };
        let found = trees_from(vec![0, 1, 2, 3], ask_for).unwrap();
        let roots: Vec<Rank> = found.trees.iter().map(|tree| tree.root).collect();
        assert_eq!((roots, found.without_member), (vec![0, 1], vec![2, 3]));
    }

    #[test]
    fn counts_of_reductions_are_printed_where_parts_have_come() {
        let mut status = state(0, &[(0, Life::Alive)]);
        assert!(!text::picture(&status, &[], Detail::Full).contains("reductions"));
        (status.reductions.expected.parts, status.reductions.expected.bytes) = (1, 8);
        let text = text::picture(&status, &[], Detail::Full);
        assert!(
            text.contains("\n  1 part after its call: 8 bytes, 0 copied (0 bytes)\n"),
            "{text}"
        );
        let json = json::to_json(&status, None);
        assert_eq!(json["reductions"]["expected"]["bytes"], 8, "{json}");
    }

    #[test]
    fn one_member_is_counted_as_one_and_clusters_without_members_are_left_out() {
        let mut status = state(0, &[(0, Life::Alive), (1, Life::Dead)]);
        let cluster = |id: u64, names: &RankSet| (MemberId(id), names.into());
        status.clusters = vec![cluster(1, &RankSet::range(0, 0)), cluster(2, &RankSet::new())];
        status.distances = vec![(0, 0, 5), (0, 1, 7), (1, 1, 9)];
        let text = text::picture(&status, &[], Detail::Brief);
        assert!(text.starts_with("1 member, name space 0 to 15\n"), "{text}");
        assert!(text.contains("clusters (inferred)\n0   0\n\nround trips"), "{text}");
        assert!(text.contains("\n  0 - 0 ") && !text.contains("0 - 1"), "{text}");
    }

    #[test]
    fn the_first_answer_that_does_not_come_ends_the_questions() {
        let ask_for = |root: Rank| match root {
            0 => Ok(state(root, &[(0, Life::Alive)])),
            _ => Err(Failure::timeout(format!("no answer about {root}"))),
        };
        let failure = trees_from(vec![0, 1, 2], ask_for).err().unwrap();
        assert_eq!(failure.to_string(), "no answer about 1");
    }
}
