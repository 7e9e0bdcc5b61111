//! The way of a stream's waves as a picture: the tree, each link in the colour of how often its
//! child came last, and as thick as the wait that it caused.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use sapwood::{ChildSums, NodeStatus, Rank, Role, StreamId};
use sapwood_trace::StreamFigures;

use crate::tree::following::Followed;
use crate::tree::times::time;

/// The drawing's own units.
const MARGIN: f64 = 24.0;
const HEAD: f64 = 64.0;
const LEVEL: f64 = 90.0;
/// Between two back-ends, at most and at least.
const STEP: (f64, f64) = (48.0, 6.0);
const WIDTH: (f64, f64) = (640.0, 2400.0);
/// Below this step back-ends have no names.
const NAMED_STEP: f64 = 22.0;
/// The thinnest and the thickest link.
const STROKE: (f64, f64) = (1.5, 9.0);
const STYLE: &str = "svg{font:13px sans-serif}.ground{fill:#fff}text{fill:#222}.faint{fill:#666}\
    .node{fill:#fff;stroke:#444;stroke-width:1.5}\
    @media(prefers-color-scheme:dark){.ground{fill:#16181c}text{fill:#e8e8e8}.faint{fill:#a0a0a0}\
    .node{fill:#16181c;stroke:#b8b8b8}}";

/// Where a process stands.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
}

/// The picture of one stream.
pub(crate) fn encode(stream: StreamId, figures: &StreamFigures, followed: &Followed) -> String {
    let places = places(followed);
    let width = places.values().map(|place| place.x).fold(WIDTH.0 - MARGIN, f64::max) + MARGIN;
    let bottom = places.values().map(|place| place.y).fold(HEAD, f64::max);
    let height = bottom + 2.0 * MARGIN;
    let sums = followed.sums_of_children(figures);
    let most = sums.values().map(|sums| sums.caused).max().unwrap_or(0).max(1);
    let title = format!("{}: stream {stream}, parts that arrived last", followed.network);
    let nodes = &followed.status.nodes;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
            width=(format!("{width:.0}")) height=(format!("{height:.0}")) role="img"
            aria-label=(title) {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.ground width=(format!("{width:.0}")) height=(format!("{height:.0}")) {}
            text x=(MARGIN) y="24" { (title) }
            text.faint x=(MARGIN) y="44" {
                "redder: the child's part arrived last more often; thicker: the others waited longer for it"
            }
            @for node in nodes { (link(node, &places, sums.get(&node.rank), most)) }
            @for node in nodes { (process(node, &places, figures)) }
        }
    };
    picture.into_string() + "\n"
}

/// Back-ends side by side in the order of the tree, each other process above its children.
fn places(followed: &Followed) -> BTreeMap<Rank, Place> {
    let nodes: BTreeMap<Rank, &NodeStatus> =
        followed.status.nodes.iter().map(|node| (node.rank, node)).collect();
    let leaves = nodes.values().filter(|node| node.children.is_empty()).count().max(1);
    let room = (WIDTH.1 - 2.0 * MARGIN) / leaves as f64;
    let step = room.clamp(STEP.1, STEP.0).max((WIDTH.0 - 2.0 * MARGIN) / leaves as f64);
    let mut places = BTreeMap::new();
    let mut next = MARGIN + step / 2.0;
    // Each process stands in the list before its children, which therefore have places already
    // when the list is gone through from its end; back-ends are placed from the left before that.
    for node in &followed.status.nodes {
        if node.children.is_empty() {
            places.insert(node.rank, Place { x: next, y: depth(node, &nodes) });
            next += step;
        }
    }
    for node in followed.status.nodes.iter().rev().filter(|node| !node.children.is_empty()) {
        let below = node.children.iter().filter_map(|child| places.get(child));
        let (sum, count) =
            below.fold((0.0, 0.0), |(sum, count), place| (sum + place.x, count + 1.0));
        let x = if count > 0.0 { sum / count } else { next };
        places.insert(node.rank, Place { x, y: depth(node, &nodes) });
    }
    places
}

fn depth(node: &NodeStatus, nodes: &BTreeMap<Rank, &NodeStatus>) -> f64 {
    let above = std::iter::successors(Some(node), |node| nodes.get(&node.parent?).copied());
    HEAD + MARGIN + LEVEL * (above.take(nodes.len()).count() as f64 - 1.0)
}

fn link(
    node: &NodeStatus,
    places: &BTreeMap<Rank, Place>,
    sums: Option<&ChildSums>,
    most: u64,
) -> Markup {
    let above = node.parent.and_then(|parent| places.get(&parent));
    let (Some(from), Some(to)) = (above, places.get(&node.rank)) else { return html! {} };
    let share = sums.map_or(0.0, |sums| sums.last as f64 / sums.waves.max(1) as f64);
    let weight = sums.map_or(0.0, |sums| sums.caused as f64 / most as f64);
    let colour = format!(
        "hsl({:.0} {:.0}% {:.0}%)",
        210.0 - 210.0 * share,
        25.0 + 60.0 * share,
        62.0 - 12.0 * share
    );
    let width = STROKE.0 + (STROKE.1 - STROKE.0) * weight;
    let told = sums.map_or_else(String::new, |sums| {
        format!(
            "{} {}: last in {:.0} % of {} waves, others waited {} for it",
            node.role,
            node.rank,
            100.0 * share,
            sums.waves,
            time(sums.caused)
        )
    });
    html! {
        line x1=(format!("{:.1}", from.x)) y1=(format!("{:.1}", from.y))
            x2=(format!("{:.1}", to.x)) y2=(format!("{:.1}", to.y))
            stroke=(colour) stroke-width=(format!("{width:.1}")) { title { (told) } }
    }
}

fn process(node: &NodeStatus, places: &BTreeMap<Rank, Place>, figures: &StreamFigures) -> Markup {
    let Some(place) = places.get(&node.rank) else { return html! {} };
    let is_leaf = node.role == Role::BackEnd;
    let leaves = places.values().filter(|other| other.y == place.y).map(|other| other.x);
    let nearest = leaves
        .filter(|x| (x - place.x).abs() > f64::EPSILON)
        .map(|x| (x - place.x).abs())
        .fold(f64::MAX, f64::min);
    let inside = figures.processes.get(&node.rank).and_then(|process| {
        process.own.recent_median().or_else(|| process.passing.recent_median())
    });
    let two_way = figures.edges.get(&node.rank).and_then(|edge| edge.two_way.recent_median());
    let word = |ns: Option<u64>| ns.map_or_else(|| "unknown".to_owned(), time);
    let told = format!(
        "{} {}: inside {}, round trip of its link {}",
        node.role,
        node.rank,
        word(inside),
        word(two_way)
    );
    let (radius, below): (f64, f64) = if is_leaf { (5.0, 20.0) } else { (8.0, -14.0) };
    html! {
        circle.node cx=(format!("{:.1}", place.x)) cy=(format!("{:.1}", place.y))
            r=(format!("{:.1}", radius.min(nearest / 2.5))) { title { (told) } }
        @if nearest >= NAMED_STEP {
            text x=(format!("{:.1}", place.x)) y=(format!("{:.1}", place.y + below))
                text-anchor="middle" { (node.rank) }
        }
    }
}
