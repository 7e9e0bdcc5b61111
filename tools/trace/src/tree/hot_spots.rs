//! Where the time of a stream's answers goes, and whether another tree would be better: in six
//! steps, each of which looks only at what the step before has left.
//!
//! 1. What share of the time the back-ends, the links and the processes between have.
//! 2. Whether one back-end has far more of it than the others: then work is uneven.
//! 3. Whether one process takes long between its last part and its sending.
//! 4. Whether one link is far slower than the others.
//! 5. What a further child costs its parent, and what a link takes: the parameters of LogGP.
//! 6. Which tree that model prefers, and by how much.

use std::collections::BTreeMap;

use sapwood::{NodeStatus, Rank, Role, Shape, Status};
use sapwood_topology::{Candidate, FAN_OUT_MAX, Kind, LogGp, Pattern, Site, advise, judge};
use sapwood_trace::{Blame, BlameShare, Figure, StreamFigures};

/// A single back-end, process or link with this share of the time is worth a word.
const SHARE: f64 = 0.2;

/// A single one whose mean is this many times that of the others stands out.
const TIMES: f64 = 3.0;

/// Trees differ in links and processes; below this share another one gains nothing that counts.
const TREE_SHARE: f64 = 0.3;

/// A tree is proposed if it takes at most this part of what the present one does.
const GAIN: f64 = 0.9;

/// With fewer answers nothing stands out, and with fewer than the latter nothing is proposed.
const SPOT_ANSWERS_MIN: u64 = 10;
const ANSWERS_MIN: u64 = 100;

/// The model has to say of the present tree what was measured, within this factor: else it knows
/// too little of this machine to say anything of another tree.
const TRUST: f64 = 1.5;

/// The length of a small packet, in bytes.
const BYTES: u64 = 64;

/// What the steps have found for one stream.
#[derive(Clone, Debug)]
pub(crate) struct HotSpots {
    /// Of the time of the answers: back-ends, links, processes.
    pub(crate) shares: [f64; 3],
    /// What stands out, the largest share first.
    pub(crate) spots: Vec<Spot>,
    /// What a small packet costs, where it could be measured.
    pub(crate) model: Option<LogGp>,
    pub(crate) proposal: Option<Proposal>,
}

/// One that stands out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) blame: Blame,
    /// Of the time of the answers.
    pub(crate) share: f64,
    /// Its mean beside those of the others of its kind; none without others.
    pub(crate) times: Option<f64>,
}

/// Another tree.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) shape: Shape,
    /// What the model says of an answer, in microseconds: with that tree, and with the present one.
    pub(crate) predicted_us: f64,
    pub(crate) present_us: f64,
}

/// Goes through the steps; none where no answer could be explained.
pub(crate) fn find(figures: &StreamFigures, status: &Status) -> Option<HotSpots> {
    let blame = figures.blame();
    let total = blame.iter().map(|one| one.ns).fold(0, u64::saturating_add);
    if total == 0 {
        return None;
    }
    let mut shares = [0.0; 3];
    for one in &blame {
        let kind = match one.blame {
            Blame::BackEnd(_) => 0,
            Blame::Link(_) => 1,
            Blame::Process(_) => 2,
        };
        shares[kind] += one.ns as f64 / total as f64;
    }
    let share = |one: &BlameShare| one.ns as f64 / total as f64;
    let stands_out = |one: &BlameShare| {
        let times = times_of_others(figures, one.blame);
        let is_far = times.is_none_or(|times| times >= TIMES);
        is_far.then_some(Spot { blame: one.blame, share: share(one), times })
    };
    let candidates = blame.iter().filter(|one| share(one) >= SHARE);
    let mut spots: Vec<Spot> = candidates.filter_map(stands_out).collect();
    if figures.explained < SPOT_ANSWERS_MIN {
        spots.clear();
    }
    let model = model(figures, status);
    let may_gain = shares[1] + shares[2] >= TREE_SHARE && figures.explained >= ANSWERS_MIN;
    let measured_us = figures.elapsed.all.quantile(500) as f64 / 1e3;
    let proposal =
        model.filter(|_| may_gain).and_then(|model| propose(&model, measured_us, status));
    Some(HotSpots { shares, spots, model, proposal })
}

/// The mean of one beside the median of the means of the others of its kind: rare long waits count
/// as much as small ones in each answer.
fn times_of_others(figures: &StreamFigures, blame: Blame) -> Option<f64> {
    let mean = |figure: &Figure| (figure.all.count > 0).then(|| figure.all.mean() as u64);
    let processes = figures.processes.iter();
    let means: BTreeMap<Rank, u64> = match blame {
        Blame::Link(_) => {
            let links = figures.edges.iter();
            links.filter_map(|(&rank, edge)| Some((rank, mean(&edge.two_way)?))).collect()
        }
        Blame::BackEnd(_) => {
            processes.filter_map(|(&rank, one)| Some((rank, mean(&one.own)?))).collect()
        }
        Blame::Process(_) => {
            processes.filter_map(|(&rank, one)| Some((rank, mean(&one.passing)?))).collect()
        }
    };
    let (Blame::Link(rank) | Blame::BackEnd(rank) | Blame::Process(rank)) = blame;
    let own = *means.get(&rank)?;
    let others = means.iter().filter(|(other, _)| **other != rank).map(|(_, mean)| *mean);
    let others = median(others.collect())?;
    Some(own as f64 / others.max(1) as f64)
}

fn median(mut numbers: Vec<u64>) -> Option<u64> {
    numbers.sort_unstable();
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

/// The parameters of LogGP: what a further child costs its parent is the overhead, and the rest of
/// a link's two ways is latency.
fn model(figures: &StreamFigures, status: &Status) -> Option<LogGp> {
    let overhead = |node: &NodeStatus| {
        let steps = u64::try_from(node.children.len()).ok()?.checked_sub(1).filter(|&n| n > 0)?;
        let edges = node.children.iter().filter_map(|child| figures.edges.get(child));
        let last = edges.filter_map(|edge| edge.departure_wait.recent_median()).max()?;
        Some(last / steps)
    };
    let overhead = median(status.nodes.iter().filter_map(overhead).collect())? as f64 / 1e3;
    let two_way = figures.edges.values().filter_map(|edge| edge.two_way.recent_median());
    let one_way = median(two_way.collect())? as f64 / 2e3;
    // On a busy machine children wait for processors, too.
    let overhead = overhead.min(one_way / 2.0);
    let latency = one_way - 2.0 * overhead;
    LogGp::new(latency, overhead, overhead, 0.0).ok().filter(|_| overhead > 0.0)
}

/// The tree that the model prefers, if it is much better than the present one.
fn propose(model: &LogGp, measured_us: f64, status: &Status) -> Option<Proposal> {
    let present = present_shape(status)?;
    let hosts: std::collections::BTreeSet<&str> = status
        .nodes
        .iter()
        .filter(|node| node.role == Role::BackEnd)
        .filter_map(|node| Some(node.record.as_ref()?.host.as_str()))
        .collect();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let site = Site {
        hosts: u32::try_from(hosts.len()).unwrap_or(u32::MAX),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        dedicated_hosts: 0,
        fan_out_max: FAN_OUT_MAX,
    };
    let back_ends = present.back_end_count();
    let best = advise(model, &site, back_ends, BYTES, Pattern::Request).ok()?.into_iter().next()?;
    let now: Candidate =
        judge(model, &site, Kind::Balanced, present.clone(), BYTES, Pattern::Request);
    let is_true = (measured_us / TRUST..=measured_us * TRUST).contains(&now.cost_us);
    let is_better = is_true && best.shape != present && best.cost_us <= GAIN * now.cost_us;
    is_better.then_some(Proposal {
        shape: best.shape,
        predicted_us: best.cost_us,
        present_us: now.cost_us,
    })
}

/// The shape of the tree, if all processes of a level have as many children.
fn present_shape(status: &Status) -> Option<Shape> {
    let mut fan_outs = Vec::new();
    let mut level: Vec<&NodeStatus> = vec![status.root()];
    loop {
        let counts: Vec<usize> = level.iter().map(|node| node.children.len()).collect();
        let first = *counts.first()?;
        if counts.iter().any(|&count| count != first) {
            return None;
        }
        if first == 0 {
            break;
        }
        fan_outs.push(u32::try_from(first).ok()?);
        let children = level.iter().flat_map(|node| &node.children);
        level = children.filter_map(|&rank| status.node(rank)).collect();
    }
    Shape::levels(&fan_outs).ok()
}
