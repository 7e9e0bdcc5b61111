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
    /// That of the tree that there is.
    pub(crate) present: Shape,
    /// Whether all processes are on one host, so that both trees can be measured there.
    pub(crate) is_on_one_host: bool,
    /// What the model says of an answer, in microseconds: with that tree, and with the present one.
    pub(crate) predicted_us: f64,
    pub(crate) present_us: f64,
}

/// Goes through the steps; none where no answer could be explained.
pub(crate) fn find(figures: &StreamFigures, status: &Status) -> Option<HotSpots> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let processors = u32::try_from(processors).unwrap_or(u32::MAX);
    explain(figures, &ObservedTree { nodes: &status.nodes, processors })
}

/// The tree whose answers are explained.
#[derive(Clone, Copy)]
struct ObservedTree<'a> {
    /// Its processes, the front-end first.
    nodes: &'a [NodeStatus],
    /// Of each host.
    processors: u32,
}

fn explain(figures: &StreamFigures, tree: &ObservedTree<'_>) -> Option<HotSpots> {
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
    let model = model(figures, tree);
    let may_gain = shares[1] + shares[2] >= TREE_SHARE && figures.explained >= ANSWERS_MIN;
    let measured_us = figures.elapsed.all.quantile(500) as f64 / 1e3;
    let proposal = model.filter(|_| may_gain).and_then(|model| propose(&model, measured_us, tree));
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
fn model(figures: &StreamFigures, tree: &ObservedTree<'_>) -> Option<LogGp> {
    let overhead = |node: &NodeStatus| {
        let steps = u64::try_from(node.children.len()).ok()?.checked_sub(1).filter(|&n| n > 0)?;
        let edges = node.children.iter().filter_map(|child| figures.edges.get(child));
        let last = edges.filter_map(|edge| edge.departure_wait.recent_median()).max()?;
        Some(last / steps)
    };
    let overhead = median(tree.nodes.iter().filter_map(overhead).collect())? as f64 / 1e3;
    let two_way = figures.edges.values().filter_map(|edge| edge.two_way.recent_median());
    let one_way = median(two_way.collect())? as f64 / 2e3;
    // On a busy machine children wait for processors, too.
    let overhead = overhead.min(one_way / 2.0);
    let latency = one_way - 2.0 * overhead;
    LogGp::new(latency, overhead, overhead, 0.0).ok().filter(|_| overhead > 0.0)
}

/// The tree that the model prefers, if it is much better than the present one.
fn propose(model: &LogGp, measured_us: f64, tree: &ObservedTree<'_>) -> Option<Proposal> {
    let present = present_shape(tree.nodes)?;
    let hosts: std::collections::BTreeSet<&str> = tree
        .nodes
        .iter()
        .filter(|node| node.role == Role::BackEnd)
        .filter_map(|node| Some(node.record.as_ref()?.host.as_str()))
        .collect();
    let site = Site {
        hosts: u32::try_from(hosts.len()).unwrap_or(u32::MAX),
        processors: tree.processors,
        dedicated_hosts: 0,
        fan_out_max: FAN_OUT_MAX,
    };
    let back_ends = present.back_end_count();
    let best = advise(model, &site, back_ends, BYTES, Pattern::Request).ok()?.into_iter().next()?;
    let now: Candidate =
        judge(model, &site, Kind::Balanced, present.clone(), BYTES, Pattern::Request);
    let is_true = (measured_us / TRUST..=measured_us * TRUST).contains(&now.cost_us);
    let is_better = is_true && best.shape != present && best.cost_us <= GAIN * now.cost_us;
    is_better.then(|| Proposal {
        shape: best.shape,
        present,
        is_on_one_host: is_on_one_host(tree.nodes),
        predicted_us: best.cost_us,
        present_us: now.cost_us,
    })
}

fn is_on_one_host(nodes: &[NodeStatus]) -> bool {
    let mut hosts = nodes.iter().filter_map(|node| Some(node.record.as_ref()?.host.as_str()));
    let first = hosts.next();
    hosts.all(|host| Some(host) == first)
}

/// The shape of the tree, if all processes of a level have as many children.
fn present_shape(nodes: &[NodeStatus]) -> Option<Shape> {
    let mut fan_outs = Vec::new();
    let mut level: Vec<&NodeStatus> = vec![nodes.first()?];
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
        let node = |rank: Rank| nodes.iter().find(|node| node.rank == rank);
        level = children.filter_map(|&rank| node(rank)).collect();
    }
    Shape::levels(&fan_outs).ok()
}

#[cfg(test)]
mod tests {
    use sapwood::{Health, HopEvent, HopKind, ProcessHops, StreamId, Wave};
    use sapwood_topology::compare;
    use sapwood_trace::{HopClock, HopProcess, HopTrace};

    use super::*;

    const STREAM: StreamId = 7;
    const NS: u64 = 1_000;

    /// One process, with all that takes time at it, in microseconds. Each parent stands before its
    /// children, and the front-end is the first.
    #[derive(Clone, Copy)]
    struct Place {
        parent: Rank,
        /// Of the link to its parent, each way.
        down: u64,
        up: u64,
        /// From the last part, or at a back-end from the question, to the sending.
        inside: u64,
    }

    const fn place(parent: Rank, link: u64, inside: u64) -> Place {
        Place { parent, down: link, up: link, inside }
    }

    fn children(tree: &[Place], rank: Rank) -> Vec<Rank> {
        let others = (1..).zip(&tree[1..]);
        others.filter(|(_, place)| place.parent == rank).map(|(child, _)| child).collect()
    }

    /// What processes note of a question from when one has it until that one's part leaves.
    fn pass(tree: &[Place], rank: Rank, asked: u64, wave: Wave, hops: &mut [ProcessHops]) -> u64 {
        let event =
            |kind, time, other| HopEvent { time, wave, stream: STREAM, other, waves: 1, kind };
        hops[rank as usize].events.push(event(HopKind::Down, asked, 0));
        let mut parts: Vec<(u64, Rank)> = Vec::new();
        for child in children(tree, rank) {
            let Place { down, up, .. } = tree[child as usize];
            let sent = pass(tree, child, asked + down * NS, wave, hops);
            parts.push((sent + up * NS, child));
        }
        parts.sort_unstable();
        let arrivals = parts.iter().map(|&(time, child)| event(HopKind::Arrived, time, child));
        hops[rank as usize].events.extend(arrivals);
        let last = parts.last().map_or(asked, |&(time, _)| time);
        let sent = last + tree[rank as usize].inside * NS;
        hops[rank as usize].events.push(event(HopKind::SentUp, sent, parts.len() as u32));
        sent
    }

    fn figures(tree: &[Place], answers: u64) -> StreamFigures {
        let process = |(rank, place): (Rank, &Place)| {
            let parent = (rank > 0).then_some(place.parent);
            HopProcess { rank, parent, clock: Some(HopClock::default()) }
        };
        let mut trace = HopTrace::default();
        for number in 0..answers {
            let own = |rank| ProcessHops { rank, ..ProcessHops::default() };
            let mut hops: Vec<ProcessHops> = (0..tree.len() as Rank).map(own).collect();
            pass(tree, 0, (number + 1) * 1_000_000_000, number, &mut hops);
            trace.take_round((0..).zip(tree).map(process), &hops);
        }
        trace.finish();
        trace.streams()[&STREAM].clone()
    }

    fn nodes(tree: &[Place]) -> Vec<NodeStatus> {
        let node = |(rank, place): (Rank, &Place)| {
            let children = children(tree, rank);
            let role = match (rank, children.is_empty()) {
                (0, _) => Role::FrontEnd,
                (_, true) => Role::BackEnd,
                (_, false) => Role::Comm,
            };
            let parent = (rank > 0).then_some(place.parent);
            NodeStatus {
                rank,
                role,
                parent,
                planned_parent: parent,
                planned_host: None,
                children,
                health: Health::Full,
                why: Vec::new(),
                record: None,
                link: None,
            }
        };
        (0..).zip(tree).map(node).collect()
    }

    fn explained(places: &[Place], answers: u64, processors: u32) -> HotSpots {
        let nodes = nodes(places);
        let tree = ObservedTree { nodes: &nodes, processors };
        explain(&figures(places, answers), &tree).expect("answers were explained")
    }

    fn blamed(found: &HotSpots) -> Vec<Blame> {
        found.spots.iter().map(|spot| spot.blame).collect()
    }

    fn are_close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-6
    }

    const FRONT_END: Place = place(0, 0, 3);

    /// Two communication processes with two back-ends each; a link takes 100 us both ways.
    fn two_levels() -> [Place; 7] {
        let (inner, leaf) = (|| place(0, 50, 10), |parent| place(parent, 50, 500));
        [FRONT_END, inner(), inner(), leaf(1), leaf(1), leaf(2), leaf(2)]
    }

    #[test]
    fn the_back_end_that_every_answer_waits_for_stands_out_with_its_share() {
        let leaf = |inside| place(0, 50, inside);
        let tree = [FRONT_END, leaf(1_000), leaf(1_000), leaf(9_000), leaf(1_000)];
        let found = explained(&tree, 20, 64);
        assert_eq!(blamed(&found), [Blame::BackEnd(3)]);
        let [back_ends, links, processes] = found.shares;
        assert!(are_close(back_ends, 9_000.0 / 9_103.0), "{back_ends}");
        assert!(are_close(links, 100.0 / 9_103.0) && are_close(processes, 3.0 / 9_103.0));
        assert!(are_close(found.spots[0].share, back_ends), "{found:?}");
        assert!(found.spots[0].times.is_some_and(|times| are_close(times, 9.0)), "{found:?}");
    }

    #[test]
    fn those_that_stand_out_are_ranked_by_their_share() {
        let ranked = |link: u64, inside: u64| {
            let mut tree = two_levels();
            (tree[2].down, tree[5].inside) = (link, inside);
            explained(&tree, 20, 64)
        };
        let (link, back_end) = (Blame::Link(2), Blame::BackEnd(5));
        let found = ranked(9_000, 4_000);
        assert_eq!(blamed(&found), [link, back_end]);
        assert!(found.spots[0].share > found.spots[1].share, "{found:?}");
        assert!(found.spots[0].times.is_some_and(|times| are_close(times, 90.5)), "{found:?}");
        assert_eq!(blamed(&ranked(4_000, 9_000)), [back_end, link]);
        assert_eq!(blamed(&ranked(50, 9_000)), [back_end]);
    }

    #[test]
    fn a_process_that_holds_its_wave_back_stands_out() {
        let mut tree = two_levels();
        tree[1].inside = 5_000;
        assert_eq!(blamed(&explained(&tree, 20, 64)), [Blame::Process(1)]);
    }

    #[test]
    fn what_takes_as_long_as_others_of_its_kind_or_is_rarely_seen_does_not_stand_out() {
        let even = [FRONT_END, place(0, 50, 9_000), place(0, 50, 8_900), place(0, 50, 8_800)];
        assert!(blamed(&explained(&even, 20, 64)).is_empty());
        let mut uneven = two_levels();
        uneven[5].inside = 9_000;
        assert!(blamed(&explained(&uneven, SPOT_ANSWERS_MIN - 1, 64)).is_empty());
        assert_eq!(blamed(&explained(&uneven, SPOT_ANSWERS_MIN, 64)), [Blame::BackEnd(5)]);
        let none = nodes(&even);
        let tree = ObservedTree { nodes: &none, processors: 64 };
        assert!(explain(&StreamFigures::default(), &tree).is_none());
    }

    /// A front-end with 64 back-ends, each of which costs it 10 us more on the way down: LogGP says
    /// 64 sends and 64 receives of 10 us for an answer, which takes as long as that.
    fn flat() -> Vec<Place> {
        let back_end = |at: u64| Place { parent: 0, down: 30 + 10 * at, up: 30, inside: 0 };
        let all = (0..64).map(back_end);
        std::iter::once(Place { inside: 1_280 - 690, ..FRONT_END }).chain(all).collect()
    }

    #[test]
    fn for_many_children_of_one_process_a_tree_with_levels_is_proposed() {
        let found = explained(&flat(), ANSWERS_MIN, 64);
        let model = found.model.expect("it was measured");
        // A link takes 370 us both ways, by the median: 185 us, with an overhead at either end.
        assert!(are_close(model.overhead_us(), 10.0) && are_close(model.latency_us(), 165.0));
        let proposal = found.proposal.expect("eight times eight take 880 us");
        assert!(are_close(proposal.present_us, 1_280.0), "{proposal:?}");
        assert_eq!(proposal.shape.back_end_count(), 64);
        assert_eq!(proposal.present.to_string(), "64");
        // What is printed is what --shape, --topology and --after read.
        assert_eq!(proposal.shape.to_string().parse::<Shape>().as_ref(), Ok(&proposal.shape));
        assert!(proposal.shape.depth() > 1, "{proposal:?}");
        let predicted = compare(&model, std::slice::from_ref(&proposal.shape), BYTES);
        assert!(are_close(proposal.predicted_us, predicted[0].round_trip_us), "{proposal:?}");
        // Of trees that cost nearly the same, the one with the fewest processes is taken.
        assert!(proposal.predicted_us <= 1.05 * 880.0, "{proposal:?}");
    }

    #[test]
    fn without_many_answers_or_where_the_model_is_wrong_no_tree_is_proposed() {
        let proposal = |tree: &[Place], answers| explained(tree, answers, 64).proposal;
        assert!(proposal(&flat(), ANSWERS_MIN - 1).is_none());
        let mut slower = flat();
        slower[0].inside += 1_280;
        assert!(proposal(&slower, ANSWERS_MIN).is_none(), "answers take twice what the model says");
        let mut few: Vec<Place> = flat().into_iter().take(5).collect();
        // By LogGP they take 100 us, and the last part comes after 90.
        few[0].inside = 100 - 90;
        assert!(proposal(&few, ANSWERS_MIN).is_none(), "four back-ends need no levels");
        let mut uneven = flat();
        uneven.push(place(1, 30, 0));
        assert!(proposal(&uneven, ANSWERS_MIN).is_none(), "its shape has no name");
    }

    #[test]
    fn where_two_processors_serve_all_processes_no_further_ones_are_proposed() {
        let found = explained(&flat(), ANSWERS_MIN, 2);
        assert!(found.model.is_some() && found.proposal.is_none(), "{found:?}");
    }
}
