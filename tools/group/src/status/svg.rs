//! A group as a picture: the tree of a collective, each member in the colour of its cluster, each
//! edge with the round trip between the clusters of its ends.
//!
//! Each member has a line of its own, further to the right the deeper it is, so that a picture of
//! many members grows downwards. An only child stands below its parent: a chain stays narrow.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, PreEscaped, html};
use sapwood::group_status::{MemberStatus, Status, TreeStatus};
use sapwood::{Life, MemberId, Step};
use sapwood_report::cut;

use super::{heading, label, labels, living_clusters, milliseconds, reason, word};

/// The drawing's own units.
const MARGIN: f64 = 24.0;
const LINE: f64 = 18.0;
/// Between two members, and between an only child and its parent, whose edge is labelled there.
const ROW: (f64, f64) = (30.0, 46.0);
/// From one depth to the next; an edge's label has its place there.
const LEVEL: f64 = 92.0;
const BOX_HEIGHT: f64 = 20.0;
/// Where below a parent its edges go down.
const TRUNK: f64 = 13.0;
/// The width of a letter of a label, and of one beside a member.
const LETTER: (f64, f64) = (8.0, 6.6);
const WIDTH_MIN: f64 = 720.0;
/// Clusters in the legend; the others are counted.
const LEGEND_MAX: usize = 16;
/// Letters of a member's virtual nodes; the rest is in its title.
const NAMES_MAX: usize = 20;
/// Light ones, on which black text is read; clusters that share one differ by their number.
const COLOURS: [&str; 10] = [
    "#a6cee3", "#fdbf6f", "#b2df8a", "#cab2d6", "#fb9a99", "#ffed6f", "#8dd3c7", "#f4cae4",
    "#d9c2a3", "#c7d3dd",
];
const UNKNOWN: &str = "#ffffff";
const STYLE: &str = "svg{font:13px sans-serif}.ground{fill:#fff}text{fill:#222}\
    .faint{fill:#666;font-size:12px}.trip{fill:#444;font-size:11px}.box{stroke:#444}\
    .root .box{stroke-width:3}.name{fill:#222;text-anchor:middle;font-weight:bold}\
    path{fill:none;stroke:#888;stroke-width:1.5}\
    @media(prefers-color-scheme:dark){.ground{fill:#16181c}text{fill:#e8e8e8}\
    .faint{fill:#a0a0a0}.trip{fill:#c0c0c0}.name{fill:#222}.box{stroke:#b8b8b8}}";

/// A member where it stands.
struct Place<'a> {
    member: MemberId,
    /// The edge from its parent, and the parent's index; the root has none.
    above: Option<(&'a Step, usize)>,
    is_only: bool,
    level: usize,
    x: f64,
    y: f64,
}

/// What is known of the members.
struct Known<'a> {
    status: &'a Status,
    members: BTreeMap<MemberId, &'a MemberStatus>,
    labels: BTreeMap<MemberId, String>,
}

/// The picture.
pub(super) fn encode(status: &Status) -> String {
    let members = status.members.iter().map(|member| (member.id, member)).collect();
    let known = Known { status, members, labels: labels(status) };
    let mut y = MARGIN + 2.0 * LINE;
    let legend = known.legend(&mut y);
    let stripes = status.tree.steps.iter().map(|step| step.stripe).max().unwrap_or(0);
    let mut width = WIDTH_MIN;
    let mut trees = Vec::new();
    let mut drawn = BTreeSet::new();
    for stripe in 0..=stripes {
        y += LINE;
        let title = (stripes > 0).then_some((stripe, y));
        let places = known.places(&status.tree, stripe, &mut y);
        let right = places.iter().map(|place| known.right_end(place)).fold(0.0, f64::max);
        width = width.max(right + MARGIN);
        drawn.extend(places.iter().map(|place| place.member));
        trees.push(known.tree(stripe, title, &places));
    }
    let others = known.others(&drawn, &mut y);
    let height = y + MARGIN;
    let title = heading(&status.tree).trim_end().to_string();
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
            width=(format!("{width:.0}")) height=(format!("{height:.0}")) role="img"
            aria-label=(title) {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.ground width=(format!("{width:.0}")) height=(format!("{height:.0}")) {}
            text x=(MARGIN) y=(MARGIN + 4.0) { (title) }
            text.faint x=(MARGIN) y=(MARGIN + 4.0 + LINE) {
                "on edges: the round trip between the clusters of their ends; "
                "beside a member: when a short value arrives"
            }
            (legend)
            @for tree in trees { (tree) }
            (others)
        }
    };
    picture.into_string() + "\n"
}

impl Known<'_> {
    /// The clusters with their colours.
    fn legend(&self, y: &mut f64) -> Markup {
        let clusters = living_clusters(self.status);
        let rest = clusters.len().saturating_sub(LEGEND_MAX);
        html! {
            @for (index, names) in clusters.iter().take(LEGEND_MAX) {
                @let top = next(y, LINE);
                rect.box x=(MARGIN) y=(top) width="12" height="12" fill=(colour(*index)) {}
                text.faint x=(MARGIN + LINE) y=(top + 11.0) {
                    "cluster " (index) ": virtual nodes "
                    (cut(&names.to_string(), 4 * NAMES_MAX))
                }
            }
            @if rest > 0 {
                text.faint x=(MARGIN + LINE) y=(next(y, LINE) + 11.0) {
                    "and " (rest) " further clusters"
                }
            }
        }
    }

    /// The members of one stripe's tree, each after its parent, and `y` below them.
    fn places<'a>(&self, tree: &'a TreeStatus, stripe: u8, y: &mut f64) -> Vec<Place<'a>> {
        let mut below: BTreeMap<MemberId, Vec<&Step>> = BTreeMap::new();
        for step in tree.steps.iter().filter(|step| step.stripe == stripe) {
            below.entry(step.parent).or_default().push(step);
        }
        let holds_root = |member: &&MemberStatus| {
            member.life == Life::Alive && member.names.as_set().contains(tree.root)
        };
        let first = tree.steps.iter().find(|step| step.stripe == stripe).map(|step| step.parent);
        let root = first.or_else(|| Some(self.status.members.iter().find(holds_root)?.id));
        let mut open: Vec<(MemberId, Option<(&Step, usize)>)> =
            root.map(|root| (root, None)).into_iter().collect();
        let mut places: Vec<Place<'_>> = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some((member, above)) = open.pop() {
            // What a member tells is drawn even if it were no tree.
            if !seen.insert(member) {
                continue;
            }
            let parent = above.map(|(step, index)| (&places[index], below[&step.parent].len()));
            let is_only = parent.is_some_and(|(_, children)| children == 1);
            let level = parent.map_or(0, |(place, _)| place.level + usize::from(!is_only));
            let y = next(y, if is_only { ROW.1 } else { ROW.0 });
            let y = if is_only { y + ROW.1 - ROW.0 } else { y };
            let x = MARGIN + level as f64 * LEVEL;
            let index = places.len();
            places.push(Place { member, above, is_only, level, x, y });
            let mut children = below.get(&member).cloned().unwrap_or_default();
            children.sort_by_key(|step| std::cmp::Reverse(step.place));
            open.extend(children.into_iter().map(|step| (step.child, Some((step, index)))));
        }
        places
    }

    fn tree(&self, stripe: u8, title: Option<(u8, f64)>, places: &[Place<'_>]) -> Markup {
        html! {
            @if let Some((stripe, y)) = title {
                text.faint x=(MARGIN) y=(y - 4.0) { "stripe " (stripe) }
            }
            @for place in places { (self.edge(stripe, place, places)) }
            @for place in places { (self.member(stripe, place)) }
        }
    }

    fn edge(&self, stripe: u8, place: &Place<'_>, places: &[Place<'_>]) -> Markup {
        let Some((step, parent)) = place.above else { return html! {} };
        let from = &places[parent];
        let (x, top) = (from.x + TRUNK, from.y + BOX_HEIGHT);
        let middle = place.y + BOX_HEIGHT / 2.0;
        let (end, trip) = match place.is_only {
            true => (format!("V{}", place.y), (x + 6.0, place.y - 8.0)),
            false => (format!("V{middle}H{}", place.x), (x + 6.0, middle - 4.0)),
        };
        html! {
            g.edge data-stripe=(stripe) data-parent=(label(&self.labels, &step.parent))
                data-child=(label(&self.labels, &step.child)) {
                path d=(format!("M{x},{top}{end}")) {}
                @if let Some(time) = self.round_trip(step) {
                    text.trip x=(trip.0) y=(trip.1) { (milliseconds(time)) }
                }
            }
        }
    }

    fn member(&self, stripe: u8, place: &Place<'_>) -> Markup {
        let class = if place.above.is_none() { "member root" } else { "member" };
        let names = label(&self.labels, &place.member);
        let cluster = self.cluster(place.member);
        let middle = place.y + BOX_HEIGHT / 2.0 + 4.5;
        let width = box_width(names);
        html! {
            g class=(class) data-stripe=(stripe) data-names=(names)
                data-cluster=[cluster] {
                title {
                    "virtual nodes " (names)
                    @if let Some((step, _)) = place.above { ": " (reason(&step.why)) }
                }
                rect.box x=(place.x) y=(place.y) width=(width) height=(BOX_HEIGHT) rx="4"
                    fill=(cluster.map_or(UNKNOWN, |cluster| colour(usize::from(cluster)))) {}
                text.name x=(place.x + width / 2.0) y=(middle) { (cut(names, NAMES_MAX)) }
                text.faint x=(place.x + width + 8.0) y=(middle) { (self.beside(place)) }
            }
        }
    }

    /// What is written beside a member.
    fn beside(&self, place: &Place<'_>) -> String {
        let address = self.members.get(&place.member).map_or("", |member| &member.address);
        let arrival = place.above.map(|(step, _)| format!(", {}", milliseconds(step.arrival)));
        let cluster = match self.cluster(place.member) {
            Some(cluster) => format!(", cluster {cluster}"),
            None => String::new(),
        };
        format!("{}{cluster}{}", cut(address, 4 * NAMES_MAX), arrival.unwrap_or_default())
    }

    /// Members that this tree does not reach, and those that are gone.
    fn others(&self, drawn: &BTreeSet<MemberId>, y: &mut f64) -> Markup {
        let others = self.status.members.iter().filter(|member| !drawn.contains(&member.id));
        let lines: Vec<(&MemberStatus, f64)> =
            others.map(|member| (member, next(y, LINE) + LINE)).collect();
        html! {
            @for (member, y) in lines {
                @let life = word(member.life);
                @let names = label(&self.labels, &member.id);
                g.other data-names=(names) data-life=(life) {
                    text.faint x=(MARGIN) y=(y) {
                        "not in this tree: " (cut(names, NAMES_MAX)) ", " (life)
                    }
                }
            }
        }
    }

    fn cluster(&self, member: MemberId) -> Option<u16> {
        self.members.get(&member)?.cluster
    }

    /// Between the clusters of the two ends of an edge.
    fn round_trip(&self, step: &Step) -> Option<u64> {
        let ends = (self.cluster(step.parent)?, self.cluster(step.child)?);
        let is_it =
            |(one, other, _): &&(u16, u16, u64)| (*one, *other) == ends || (*other, *one) == ends;
        self.status.distances.iter().find(is_it).map(|entry| entry.2)
    }

    fn right_end(&self, place: &Place<'_>) -> f64 {
        let names = label(&self.labels, &place.member);
        let beside = self.beside(place).chars().count() as f64 * LETTER.1;
        place.x + box_width(names) + 8.0 + beside
    }
}

/// Where the next thing begins, and the place behind it.
fn next(y: &mut f64, height: f64) -> f64 {
    let here = *y;
    *y += height;
    here
}

fn colour(cluster: usize) -> &'static str {
    COLOURS[cluster % COLOURS.len()]
}

fn box_width(names: &str) -> f64 {
    (names.chars().count().min(NAMES_MAX) as f64 * LETTER.0 + 12.0).max(2.0 * TRUNK)
}
