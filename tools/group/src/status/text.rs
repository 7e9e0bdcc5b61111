//! A group as text: its members, clusters, distances, changes, and a tree with its reasons.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sapwood::group_status::{ChangeKind, Status, TreeStatus};
use sapwood::{Life, MemberId, PartCount, Step};
use sapwood_report::quantity::counted;

use super::{heading, label, labels, living_clusters, milliseconds, reason, word};

/// How much of a group is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Without the counts of reductions and without the changes.
    Brief,
    Full,
}

pub(super) fn picture(status: &Status, trees: &[TreeStatus], detail: Detail) -> String {
    let labels = labels(status);
    let alive = |member: &&sapwood::group_status::MemberStatus| member.life == Life::Alive;
    let count = status.members.iter().filter(alive).count();
    let members = counted(count as u128, "members");
    let mut text = format!("{members}, name space 0 to {}\n\n", status.space - 1);
    text += "virtual nodes  cluster  site  address\n";
    for member in &status.members {
        let cluster = match (member.life, member.cluster) {
            (Life::Alive, Some(cluster)) => cluster.to_string(),
            (Life::Alive, None) => "-".to_string(),
            (gone, _) => word(gone).to_string(),
        };
        let names = label(&labels, &member.id);
        let (site, address) = (member.site, &member.address);
        let _ = writeln!(text, "{names:<13}  {cluster:<7}  {site:<4}  {address}");
    }
    text += "\nclusters (inferred)\n";
    let clusters = living_clusters(status);
    for (index, names) in &clusters {
        let _ = writeln!(text, "{index:<3} {names}");
    }
    text += "\nround trips between clusters\n";
    let is_there = |index: u16| clusters.contains_key(&usize::from(index));
    let is_between = |&&(from, to, _): &&(u16, u16, u64)| is_there(from) && is_there(to);
    for (from, to, time) in status.distances.iter().filter(is_between) {
        let _ = writeln!(text, "{from:>3} - {to:<3} {}", milliseconds(*time));
    }
    let (table, probes) = (status.table, status.probes);
    let _ =
        writeln!(text, "\ntable of clusters: version {table}; this member sent {probes} probes");
    if detail == Detail::Full {
        text += &reductions(status);
        text += &changes(status, &labels);
    }
    for tree in trees {
        text.push('\n');
        text += &drawing(tree, &labels);
    }
    text
}

/// Nothing of a member to which no part has come.
fn reductions(status: &Status) -> String {
    let counts = &status.reductions;
    let line = |when: &str, count: &PartCount| {
        let PartCount { bytes, copied_parts: copied, copied_bytes, .. } = count;
        let parts = counted(u128::from(count.parts), "parts");
        format!(
            "  {parts} {when} its call: {bytes} bytes, {copied} copied ({copied_bytes} bytes)\n"
        )
    };
    if counts.expected.parts + counts.unexpected.parts == 0 {
        return String::new();
    }
    let lines = [line("after", &counts.expected), line("before", &counts.unexpected)].concat();
    let (waits, met) = (counts.grace_waits, counts.grace_met);
    let left = format!("  waits before it left: {waits}, ended by the last part: {met}\n");
    format!("\nreductions at this member\n{lines}{left}")
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

pub(super) fn reasons(status: &Status, trees: &[TreeStatus]) -> String {
    let labels = labels(status);
    let texts: Vec<String> = trees.iter().map(|tree| reasons_of(tree, &labels)).collect();
    texts.join("\n")
}

fn reasons_of(tree: &TreeStatus, labels: &BTreeMap<MemberId, String>) -> String {
    let mut text = heading(tree);
    if let Some(choice) = &tree.choice {
        let _ = writeln!(text, "{choice}");
    }
    text += "child     parent    place  arrival     why\n";
    for step in &tree.steps {
        let (child, parent) = (label(labels, &step.child), label(labels, &step.parent));
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
