//! The way of waves through a tree as text: a line for each process, then what the answers waited
//! for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sapwood::{ChildSums, HopForm, NodeStatus, Rank, Role, StreamId};
use sapwood_hosts::absence::{by_cause, nameless};
use sapwood_report::quantity::counted;
use sapwood_status::branches::{BACK_ENDS_MAX, Shown};
use sapwood_trace::{Blame, BlameShare, EdgeFigures, Figure, OneWay, StreamFigures};

use crate::tree::following::Followed;
use crate::tree::hot_spots::{self, HotSpots, Proposal};
use crate::tree::times::time;

/// The columns of figures before the tree.
const MARGIN: usize = 71;

/// Streams that are drawn, at most.
const STREAMS_MAX: usize = 3;

/// What has less of the time than this is not told of.
const SHARE_MIN: f64 = 0.001;

/// Lines of what answers waited for, at most.
const BLAMES_MAX: usize = 8;

/// The whole report.
pub(crate) fn draw(followed: &Followed) -> String {
    let losses = followed.trace.losses();
    let processes = followed.status.nodes.iter().filter(|node| node.record.is_some()).count();
    let mut text = format!(
        "{}: {:.1} s, {} of {} in {}",
        followed.network,
        followed.took.as_secs_f64(),
        counted(losses.noted.into(), "events"),
        counted(processes as u128, "processes"),
        counted(followed.readings.into(), "readings")
    );
    let lacking =
        [(losses.overwritten, "overwritten before they were read"), (losses.unread, "not read")];
    for (count, what) in lacking.iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, ", {count} {what}");
    }
    text.push('\n');
    if losses.overwritten > 0 {
        let or_sums = if followed.form == HopForm::Events { ", or --sums" } else { "" };
        let _ = writeln!(text, "  give a shorter --every, a larger --room{or_sums}");
    }
    if losses.lapsed > 0 {
        let _ = writeln!(
            text,
            "{} ended early, because no reading arrived in time: the figures lack some events",
            counted(losses.lapsed.into(), "recording sessions")
        );
    }
    // Of each stream one may have been under way at the end.
    if losses.unfinished > followed.trace.streams().len() as u64 {
        let _ = writeln!(
            text,
            "left out of the times of answers: {}, of which the front-end's events were not read",
            counted(losses.unfinished.into(), "waves")
        );
    }
    if losses.refused > 0 {
        let (record, they) =
            if losses.refused == 1 { ("records", "it does") } else { ("record", "they do") };
        let _ = writeln!(
            text,
            "{} {record} no events for this command: {they} so for eight others already",
            counted(losses.refused.into(), "processes")
        );
    }
    for (ranks, cause) in by_cause(&followed.status.missing, nameless) {
        let _ = writeln!(text, "missing {ranks}: {cause}");
    }
    let streams = followed.trace.streams();
    if streams.is_empty() {
        let _ = match followed.stream {
            Some(stream) => writeln!(text, "no wave of stream {stream} passed in that time"),
            None => writeln!(text, "no wave passed in that time"),
        };
    }
    let by_time = followed.by_time();
    for (stream, figures) in by_time.iter().take(STREAMS_MAX) {
        draw_stream(*stream, figures, followed, &mut text);
    }
    let rest: Vec<String> =
        by_time.iter().skip(STREAMS_MAX).map(|(stream, _)| stream.to_string()).collect();
    if !rest.is_empty() {
        let _ = writeln!(
            text,
            "\nstreams {} had shorter waits; --stream shows one, --json all",
            rest.join(", ")
        );
    }
    text
}

fn draw_stream(stream: StreamId, figures: &StreamFigures, followed: &Followed, text: &mut String) {
    let _ = write!(text, "\nstream {stream}: ");
    let root = followed.status.root();
    let sums = figures.arrivals.get(&root.rank).map(sapwood::ArrivalSums::streams);
    let sums = sums.unwrap_or_default();
    let waves: u64 = sums.iter().map(|sums| sums.waves).sum();
    let partial: u64 = sums.iter().map(|sums| sums.partial).sum();
    let _ = write!(text, "{}", counted(waves.into(), "waves"));
    // One may have been under way when this began.
    if partial > 1 {
        let _ = write!(text, ", {partial} without some of their parts");
    }
    if figures.elapsed.all.count > 0 {
        let all = &figures.elapsed.all;
        let _ = write!(
            text,
            "; a question takes {} (median), {} at most",
            time(all.quantile(500)),
            time(all.most)
        );
    }
    text.push('\n');
    let _ = writeln!(
        text,
        "{:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  * usually last",
        "last", "by", "waits", "up", "down", "two-way", "inside"
    );
    let drawing = Drawing::new(figures, followed);
    drawing.line(root, "", text);
    drawing.children(root, "", text);
    draw_blame(figures, followed, text);
}

struct Drawing<'a> {
    figures: &'a StreamFigures,
    nodes: BTreeMap<Rank, &'a NodeStatus>,
    sums: BTreeMap<Rank, ChildSums>,
    marked: BTreeSet<Rank>,
}

impl<'a> Drawing<'a> {
    fn new(figures: &'a StreamFigures, followed: &'a Followed) -> Self {
        let nodes: BTreeMap<Rank, &NodeStatus> =
            followed.status.nodes.iter().map(|node| (node.rank, node)).collect();
        let sums = followed.sums_of_children(figures);
        let mut marked = BTreeSet::new();
        let mut node = Some(followed.status.root());
        while let Some(here) = node {
            marked.insert(here.rank);
            let children = here.children.iter().filter_map(|rank| sums.get(rank));
            let last = children.filter(|sums| sums.last > 0).max_by_key(|sums| sums.last);
            node = last.and_then(|last| nodes.get(&last.child).copied());
        }
        Self { figures, nodes, sums, marked }
    }

    fn children(&self, node: &NodeStatus, indent: &str, text: &mut String) {
        let children: Vec<&NodeStatus> =
            node.children.iter().filter_map(|rank| self.nodes.get(rank).copied()).collect();
        // Of many back-ends those are shown that come last most often.
        let last = |child: &NodeStatus| self.sums.get(&child.rank).map_or(0, |sums| sums.last);
        let mut counts: Vec<(u64, Rank)> = children
            .iter()
            .filter(|child| child.role == Role::BackEnd)
            .map(|child| (last(child), child.rank))
            .collect();
        counts.sort_by_key(|&(last, rank)| (Reverse(last), rank));
        let often: BTreeSet<Rank> =
            counts.into_iter().take(BACK_ENDS_MAX).map(|(_, rank)| rank).collect();
        let shown = Shown::new(&children, |child| often.contains(&child.rank));
        shown.draw(indent, MARGIN, text, |child, branch, text| {
            self.line(child, &branch.before, text);
            self.children(child, &branch.below, text);
        });
    }

    fn line(&self, node: &NodeStatus, branch: &str, text: &mut String) {
        let sums = self.sums.get(&node.rank);
        let edge = self.figures.edges.get(&node.rank);
        let process = self.figures.processes.get(&node.rank);
        let last = sums.filter(|sums| sums.waves > 0).map_or_else(dash, |sums| {
            format!("{:.0} %", 100.0 * sums.last as f64 / sums.waves as f64)
        });
        let mean = |sum: u64, count: u64| sum.checked_div(count).map_or_else(dash, time);
        let by = sums.map_or_else(dash, |sums| mean(sums.caused, sums.last));
        let waits = sums.map_or_else(dash, |sums| mean(sums.waited, sums.waves));
        let figure = |of: fn(&EdgeFigures) -> &Figure| {
            edge.and_then(|edge| of(edge).recent_median()).map_or_else(dash, time)
        };
        // Within the error of the clocks nothing is said of one way.
        let one_way = |of: fn(&EdgeFigures) -> &OneWay| match edge {
            Some(edge) if of(edge).undecided * 2 > of(edge).figure.all.count => {
                format!("<{}", time(edge.clock_error))
            }
            Some(edge) => of(edge).figure.recent_median().map_or_else(dash, time),
            None => dash(),
        };
        let inside = process.map_or_else(dash, |process| {
            let own = process.own.recent_median().or_else(|| process.passing.recent_median());
            own.map_or_else(dash, time)
        });
        let mark = if self.marked.contains(&node.rank) { '*' } else { ' ' };
        let _ = writeln!(
            text,
            "{last:>7} {by:>9} {waits:>9} {:>9} {:>9} {:>9} {inside:>9} {mark}{branch}{} {}{}",
            one_way(|edge| &edge.up),
            one_way(|edge| &edge.down),
            figure(|edge| &edge.two_way),
            node.role,
            node.rank,
            node.record.as_ref().map_or_else(
                || ": did not answer".to_string(),
                |record| format!("  {}", record.host),
            ),
        );
        if let Some(late) = sums.map(|sums| sums.late).filter(|&late| late > 0) {
            let parts = if late == 1 { "part" } else { "parts" };
            let _ = writeln!(
                text,
                "{:>72}{late} {parts} arrived after the wave had been forwarded",
                ""
            );
        }
    }
}

fn draw_blame(figures: &StreamFigures, followed: &Followed, text: &mut String) {
    let all = figures.blame();
    let total = all.iter().map(|one| one.ns).fold(0, u64::saturating_add);
    if figures.explained == 0 || total == 0 {
        if followed.form == HopForm::Events && !figures.path_ends.is_empty() {
            draw_path_ends(figures, text);
        }
        return;
    }
    let _ = writeln!(
        text,
        "what {} of {} answers waited for, along the parts that came last ({} each, on average); a \
         link's time ends when its process runs and reads",
        figures.explained,
        figures.elapsed.all.count,
        time(total / figures.explained)
    );
    let all: Vec<BlameShare> =
        all.into_iter().filter(|one| one.ns as f64 >= SHARE_MIN * total as f64).collect();
    for one in all.iter().take(BLAMES_MAX) {
        let _ = writeln!(
            text,
            "{:>5.1} % {:>9} in each of {:>5} answers: {}",
            100.0 * one.ns as f64 / total as f64,
            time(one.ns / one.answers.max(1)),
            one.answers,
            name(one.blame, followed)
        );
    }
    draw_rest(&all, total, text);
    if let Some(found) = hot_spots::find(figures, &followed.status) {
        draw_hot_spots(&found, followed, text);
    }
}

fn draw_rest(all: &[BlameShare], total: u64, text: &mut String) {
    if all.len() > BLAMES_MAX {
        let rest: u64 = all.iter().skip(BLAMES_MAX).map(|one| one.ns).sum();
        let _ = writeln!(
            text,
            "{:>5.1} % other links and processes",
            100.0 * rest as f64 / total as f64
        );
    }
}

fn draw_path_ends(figures: &StreamFigures, text: &mut String) {
    let total: u64 = figures.path_ends.values().sum();
    let mut ends: Vec<(&Rank, &u64)> = figures.path_ends.iter().collect();
    ends.sort_by_key(|&(rank, count)| (Reverse(*count), *rank));
    let _ =
        writeln!(text, "back-ends at which the path of the last parts began, of {total} waves:");
    for (rank, &count) in ends.into_iter().take(BLAMES_MAX) {
        let _ = writeln!(text, "{:>5.1} % back-end {rank}", 100.0 * count as f64 / total as f64);
    }
}

/// What stands out, and which tree the model prefers.
fn draw_hot_spots(found: &HotSpots, followed: &Followed, text: &mut String) {
    let [back_ends, links, processes] = found.shares.map(|share| 100.0 * share);
    let _ = writeln!(
        text,
        "by kind: back-ends {back_ends:.0} %, links {links:.0} %, processes between {processes:.0} %"
    );
    for spot in &found.spots {
        let times = spot.times.map_or_else(String::new, |times| {
            format!(", and takes {times:.0} times as long as others of its kind")
        });
        let _ = writeln!(
            text,
            "hot spot: {} has {:.0} % of the time{times}",
            name(spot.blame, followed),
            100.0 * spot.share
        );
    }
    if let Some(model) = &found.model {
        let _ = writeln!(
            text,
            "a further child costs its parent {}, and a link's latency is {} (LogGP, measured here)",
            time((1e3 * model.overhead_us()) as u64),
            time((1e3 * model.latency_us()) as u64)
        );
    }
    if let Some(proposal) = &found.proposal {
        draw_proposal(proposal, text);
    }
}

fn draw_proposal(proposal: &Proposal, text: &mut String) {
    let Proposal { shape, present, is_on_one_host, predicted_us, present_us } = proposal;
    let us = |us: f64| time((1e3 * us) as u64);
    let _ = writeln!(
        text,
        "proposal: the tree {shape} ({} for an answer by that model, {} with the present tree); \
         try it with --shape {shape} or --topology {shape}",
        us(*predicted_us),
        us(*present_us)
    );
    if *is_on_one_host {
        let _ = writeln!(
            text,
            "both trees by turns on this host: sapwood bench shapes --before {present} --after \
             {shape}"
        );
    }
}

fn name(blame: Blame, followed: &Followed) -> String {
    match blame {
        Blame::BackEnd(rank) => format!("back-end {rank} itself"),
        Blame::Process(rank) => {
            format!("{} {rank}, between its last part and sending", role(followed, rank))
        }
        Blame::Link(rank) => format!("the link to {} {rank}, both ways", role(followed, rank)),
    }
}

fn role(followed: &Followed, rank: Rank) -> String {
    followed.status.node(rank).map_or_else(|| "process".into(), |node| node.role.to_string())
}

fn dash() -> String {
    "-".to_string()
}
