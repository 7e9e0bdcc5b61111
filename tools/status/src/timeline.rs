//! The way of one wave as text: a line for each process, with times, and the slowest path marked.
//!
//! Every time is a difference on one process's own clock, since the clocks of two hosts are never
//! compared: how long after the request a child's part came (the parent's clock), and how long the
//! child itself had it (the child's). Where on a common line both lie is a guess: a process is
//! taken to get the request half a round trip after its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use sapwood::{NodeStatus, Rank, Role, Status};

use super::branches::Shown;
use super::drawing::{Paint, time};

/// The columns of figures before the tree.
const MARGIN: usize = 44;

/// One wave, hop by hop.
pub(super) struct Way<'a> {
    nodes: BTreeMap<Rank, &'a NodeStatus>,
    /// When each process is taken to have got the request, from the front-end's sending of it.
    pub(super) began: BTreeMap<Rank, Duration>,
    /// The processes of the slowest path, from the front-end down.
    pub(super) slowest: Vec<Rank>,
}

impl<'a> Way<'a> {
    pub(super) fn of(status: &'a Status) -> Self {
        let nodes: BTreeMap<Rank, &NodeStatus> =
            status.nodes.iter().map(|node| (node.rank, node)).collect();
        let mut began = BTreeMap::new();
        began.insert(status.root().rank, Duration::ZERO);
        for node in &status.nodes {
            let Some(&at) = began.get(&node.rank) else { continue };
            for child in node.children.iter().filter_map(|rank| nodes.get(rank)) {
                let half = child.round_trip().unwrap_or_default() / 2;
                began.insert(child.rank, at + half);
            }
        }
        let mut slowest = vec![status.root().rank];
        let mut node = status.root();
        loop {
            let children = || node.children.iter().filter_map(|rank| nodes.get(rank));
            // A child that is there and has not answered is what its parent waited for.
            let silent = children().find(|child| child.link.is_some() && child.arrived().is_none());
            let last = || children().filter(|child| child.arrived().is_some());
            let Some(next) = silent.or_else(|| last().max_by_key(|child| child.arrived())) else {
                break;
            };
            slowest.push(next.rank);
            node = next;
        }
        Self { nodes, began, slowest }
    }
}

/// The whole picture.
pub(super) fn draw(name: &str, status: &Status, paint: Paint) -> String {
    let way = Way::of(status);
    let root = status.root();
    let mut text = format!(
        "{name}: one wave through {} processes in {}\n",
        status.nodes.iter().filter(|node| node.record.is_some()).count(),
        time(status.took)
    );
    let _ = writeln!(
        text,
        "{:>10} {:>10} {:>10} {:>10}  * slowest path",
        "request at", "processing", "to parent", "link rtt"
    );
    let marked: BTreeSet<Rank> = way.slowest.iter().copied().collect();
    let drawing = Drawing { way: &way, marked, paint };
    drawing.line(root, "", &mut text);
    drawing.children(root, "", &mut text);
    text.push_str(
        "request at: estimated as half a round trip after the parent's\n\
         processing: from the request to the sending of the answer, on the process's own clock\n\
         to parent: from the request to the arrival of the answer, on the parent's clock\n",
    );
    text
}

struct Drawing<'a> {
    way: &'a Way<'a>,
    marked: BTreeSet<Rank>,
    paint: Paint,
}

impl Drawing<'_> {
    fn children(&self, node: &NodeStatus, indent: &str, text: &mut String) {
        let children: Vec<&NodeStatus> =
            node.children.iter().filter_map(|rank| self.way.nodes.get(rank).copied()).collect();
        let is_wanted =
            |child: &NodeStatus| self.marked.contains(&child.rank) || child.record.is_none();
        Shown::new(&children, is_wanted).draw(indent, MARGIN, text, |child, branch, text| {
            self.line(child, &branch.before, text);
            self.children(child, &branch.below, text);
        });
    }

    fn line(&self, node: &NodeStatus, branch: &str, text: &mut String) {
        let or_dash = |duration: Option<Duration>| duration.map_or_else(|| "-".to_string(), time);
        let is_leaf = node.role == Role::BackEnd;
        let began = self.way.began.get(&node.rank).copied().filter(|_| node.record.is_some());
        let mark = if self.marked.contains(&node.rank) { "*" } else { " " };
        let name = format!("{} {}", node.role, node.rank);
        let name = if mark == "*" { self.paint.in_colour(33, &name) } else { name };
        let why = if node.record.is_none() {
            format!(": {}", node.why.join("; "))
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>10} {:>10} {mark}{branch}{name}{why}",
            or_dash(began),
            or_dash(node.held().filter(|_| !is_leaf)),
            or_dash(node.arrived()),
            or_dash(node.round_trip()),
        );
    }
}
