//! Hops of bypassed reductions: what each edge of their trees has taken.

use std::cmp::Reverse;

use sapwood_trace::{BypassEdge, BypassTime, Counter, Findings, OTHERS};
use serde::{Deserialize, Serialize};

use super::Why;
use crate::quantity;
use crate::text::{Grid, Side, wrapped};

/// Edges that are told, at most.
const EDGES: usize = 12;
/// Columns of a line, as those of the answer.
const WIDTH: usize = 91;
/// The edge may be cut to as many columns, which it never needs.
const EDGE_COLUMNS: usize = 8;

/// What is known of the reductions of a run that the bypass took over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BypassHops {
    /// Ranks that could note hops.
    pub ranks: u64,
    /// Reductions of which every hop is known.
    pub reductions: u64,
    /// Reductions of which some are not, and which are not in the edges.
    pub incomplete: u64,
    /// Hops that were overwritten before they were read.
    pub overwritten: u64,
    /// Hops that found no ring, or no room on their way.
    pub left_out: u64,
    /// Hops of a kind that is not known.
    pub unknown: u64,
    /// By parent and child, those whose part was the last most often first.
    pub edges: Vec<BypassEdgeHops>,
}

/// What came over one edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BypassEdgeHops {
    /// The parent's rank in `MPI_COMM_WORLD`; null for all edges that found no room.
    pub parent: Option<u32>,
    /// The child's.
    pub child: Option<u32>,
    /// Reductions whose tree has this edge.
    pub reductions: u64,
    /// Those in which the child's part was the last that its parent lacked.
    pub last: u64,
    /// `last` as a share of the reductions.
    pub last_share: f64,
    /// Those in which the parent had called before the part came.
    pub late: u64,
    /// Those in which the parent had left its call by then.
    pub bypassed: u64,
    /// How long after the parent's return these came.
    pub after_exit: Option<HopTimes>,
    /// How long after the part of the child before it.
    pub behind: Option<HopTimes>,
    /// How long the part lay at the parent until the last one came.
    pub waited: Option<HopTimes>,
    /// From the folding of the child's place to the part's arrival.
    pub up: Option<HopTimes>,
    /// From the moment when the result was there to the child's having read it.
    pub down: Option<HopTimes>,
}

/// Times of one kind; null where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HopTimes {
    /// How many.
    pub count: u64,
    /// Their mean, in microseconds.
    pub mean_us: f64,
    /// The longest, in microseconds.
    pub max_us: f64,
}

impl HopTimes {
    #[allow(clippy::cast_precision_loss, reason = "a time in microseconds is not exact")]
    fn of(time: &BypassTime) -> Option<Self> {
        let mean_us = time.mean_ns()? / 1e3;
        Some(Self { count: time.count, mean_us, max_us: time.max_ns as f64 / 1e3 })
    }
}

impl BypassEdgeHops {
    #[allow(clippy::cast_precision_loss, reason = "a share is not exact")]
    fn of((parent, child): (u32, u32), edge: &BypassEdge) -> Self {
        let known = |rank| (rank != OTHERS).then_some(rank);
        Self {
            parent: known(parent),
            child: known(child),
            reductions: edge.instances,
            last: edge.last,
            last_share: edge.last as f64 / edge.instances.max(1) as f64,
            late: edge.late,
            bypassed: edge.bypassed,
            after_exit: HopTimes::of(&edge.after_exit),
            behind: HopTimes::of(&edge.behind),
            waited: HopTimes::of(&edge.waited),
            up: HopTimes::of(&edge.up),
            down: HopTimes::of(&edge.down),
        }
    }

    fn cells(&self) -> Vec<String> {
        let time = |times: Option<HopTimes>| {
            times.map_or_else(|| "-".to_owned(), |times| quantity::time(times.mean_us * 1e3))
        };
        let name = match (self.parent, self.child) {
            (Some(parent), Some(child)) => format!("{parent} <- {child}"),
            _ => "others".to_owned(),
        };
        vec![
            name,
            self.reductions.to_string(),
            format!("{:.1} %", self.last_share * 100.0),
            self.bypassed.to_string(),
            time(self.after_exit),
            time(self.behind),
            time(self.waited),
            time(self.up),
            time(self.down),
        ]
    }
}

impl BypassHops {
    /// What was found; nothing where no rank could note hops.
    pub(super) fn of(findings: &Findings) -> Option<Self> {
        let ranks = findings.counter(Counter::HopRanks);
        if ranks == 0 {
            return None;
        }
        let bypass = &findings.bypass;
        let edge = |(&ends, edge): (&(u32, u32), &BypassEdge)| BypassEdgeHops::of(ends, edge);
        let mut edges: Vec<BypassEdgeHops> = bypass.edges.iter().map(edge).collect();
        edges.sort_by_key(|edge| Reverse((edge.last, edge.bypassed)));
        let without_ring = findings.counter(Counter::HopsWithoutRing);
        Some(Self {
            ranks,
            reductions: bypass.instances,
            incomplete: bypass.incomplete,
            overwritten: findings.counter(Counter::HopsDropped),
            left_out: without_ring.saturating_add(findings.counter(Counter::HopsLeftOut)),
            unknown: findings.counter(Counter::HopsUnknown),
            edges,
        })
    }

    /// A line for people, and a table of the edges.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.head()];
        if !self.edges.is_empty() {
            let mut grid = Grid::new(EDGE_COLUMNS);
            grid.column("edge", Side::Left);
            for name in
                ["reductions", "last", "bypassed", "after exit", "behind", "waited", "up", "down"]
            {
                grid.column(name, Side::Right);
            }
            self.edges.iter().take(EDGES).for_each(|edge| grid.row(edge.cells()));
            lines.extend(grid.lines());
        }
        if self.edges.len() > EDGES {
            lines.push(format!("and {} more edges", self.edges.len() - EDGES));
        }
        let lost = [
            (self.incomplete, "reductions of which not every hop is known"),
            (self.overwritten, "hops overwritten unread"),
            (self.left_out, "hops that found no ring or no room"),
            (self.unknown, "hops of a kind that is not known"),
        ];
        let told = lost.into_iter().filter(|(count, _)| *count > 0);
        lines.extend(told.map(|(count, what)| format!("not known: {count} {what}")));
        lines.iter().flat_map(|line| wrapped(line, WIDTH).map(str::to_owned)).collect()
    }

    fn head(&self) -> String {
        if self.reductions == 0 && self.incomplete == 0 {
            return "hops: no reduction was bypassed; LD_PRELOAD has to name the bypass library"
                .to_owned();
        }
        let reductions = quantity::counted(self.reductions.into(), "reductions");
        format!("hops of {reductions} that were bypassed, parent <- child, with mean times:")
    }
}

impl Why {
    /// Lines for the hops of bypassed reductions; none where they were not asked for.
    #[must_use]
    pub fn hop_lines(&self) -> Vec<String> {
        self.hops.as_ref().map(BypassHops::lines).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{BypassFigures, COUNTERS};

    use super::*;

    fn findings() -> Findings {
        let time = |count, mean: u64| BypassTime { count, sum_ns: count * mean, max_ns: 2 * mean };
        let early = BypassEdge {
            instances: 50,
            waited: time(50, 5_100_000),
            up: time(50, 120),
            ..BypassEdge::default()
        };
        let late = BypassEdge {
            instances: 50,
            last: 50,
            late: 50,
            bypassed: 49,
            after_exit: time(49, 5_000_000),
            waited: time(50, 0),
            up: time(50, 90),
            down: time(4, 7_000),
            ..BypassEdge::default()
        };
        let others = BypassEdge { instances: 1, ..BypassEdge::default() };
        let edges = [((0, 1), early), ((2, 3), late), ((OTHERS, OTHERS), others)];
        let bypass = BypassFigures { instances: 50, incomplete: 2, edges: edges.into() };
        let mut counters = [0; COUNTERS];
        counters[Counter::HopRanks as usize] = 4;
        counters[Counter::HopsDropped as usize] = 7;
        Findings { bypass, counters, ..Findings::default() }
    }

    #[test]
    fn edges_whose_part_was_last_are_told_first_and_what_was_lost_behind() {
        let hops = BypassHops::of(&findings());
        let why = Why { hops, ..Why::default() };
        assert_eq!(
            why.hop_lines(),
            [
                "hops of 50 reductions that were bypassed, parent <- child, with mean times:",
                "edge    reductions     last  bypassed  after exit  behind   waited      up     down",
                "2 <- 3          50  100.0 %        49     5.00 ms       -     0 ns   90 ns  7.00 us",
                "0 <- 1          50    0.0 %         0           -       -  5.10 ms  120 ns        -",
                "others           1    0.0 %         0           -       -        -       -        -",
                "not known: 2 reductions of which not every hop is known",
                "not known: 7 hops overwritten unread",
            ]
        );
    }

    #[test]
    fn where_hops_were_not_asked_for_there_are_none() {
        assert_eq!(BypassHops::of(&Findings::default()), None);
        assert!(Why::default().hop_lines().is_empty());
        let mut asked = Findings::default();
        asked.counters[Counter::HopRanks as usize] = 4;
        let hops = BypassHops::of(&asked);
        let lines = Why { hops, ..Why::default() }.hop_lines();
        assert!(lines.len() == 1 && lines[0].contains("no reduction was bypassed"), "{lines:?}");
    }

    #[test]
    fn hops_are_as_the_schema_says() {
        let hops = BypassHops::of(&findings());
        let schema = super::super::WHY_SCHEMA.to_owned();
        let why = Why { schema, hops, ..Why::default() };
        let value = serde_json::to_value(&why).expect("numbers and text");
        sapwood_schema::assert_fits("why-1", &value);
        assert_eq!(serde_json::from_value::<Why>(value).expect("as it was written"), why);
    }
}
