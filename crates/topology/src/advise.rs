//! Which tree to take: shapes of as many back-ends beside each other, by LogGP and by the
//! processors that there are.
//!
//! Owns the candidates and the order among them. The times of a tree are `cost`'s; what is added
//! here is that processes of one host share its processors: a wave cannot take less than the
//! busiest host needs for all that its processes send and receive. Without that a tree would
//! always look better than it is where many processes share a machine, for its inner processes
//! cost work that a flat tree does not have.

use alloc::vec;
use alloc::vec::Vec;

use crate::Rank;
use crate::cost::{LogGp, Prediction};
use crate::error::Error;
use crate::hosts::Hosts;
use crate::limits::{DEPTH_MAX, FAN_OUT_MAX, NODES_MAX};
use crate::shape::{Shape, UNIT};
use crate::tree::{Role, Topology};

/// Within this part of the best the model is no reason to start more processes.
const INDIFFERENCE: f64 = 0.05;

/// A log-in is a message of this length: it has no other.
const LOG_IN_BYTES: u64 = 1;

/// What the tree is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Questions and answers one after another: what counts is the time from a small question to
    /// its merged answer.
    Request,
    /// Waves that flow: what counts is how many there are in a second.
    Stream,
    /// One question for which the tree is started, and with which it ends: what counts is the time
    /// until it stands. The model's messages are starts then: a process has the next one begin
    /// [`LogGp::overhead_us`] or the gap later, and it goes on [`LogGp::latency_us`] after that.
    Start,
}

/// Where the tree is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Hosts that back-ends run on, each as many as the others; 0 and 1 are this machine, where
    /// the front-end is too.
    pub hosts: u32,
    /// Processors of each host.
    pub processors: u32,
    /// Hosts that run communication processes and nothing else; 0 when these share the hosts of
    /// the back-ends.
    pub dedicated_hosts: u32,
    /// No process may have more children; for example what its limit of open files allows.
    pub fan_out_max: u32,
}

impl Site {
    /// One machine with this many processors.
    pub fn machine(processors: u32) -> Self {
        Self { hosts: 1, processors, dedicated_hosts: 0, fan_out_max: FAN_OUT_MAX }
    }
}

/// The families of trees that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// All back-ends below the front-end.
    Flat,
    /// Levels of communication processes that have about as many children each.
    Balanced,
    /// K-nomial trees, whose first children have the largest subtrees.
    Knomial,
    /// One communication process for each of given groups of back-ends.
    Grouped,
    /// Postal trees, which start soonest.
    Postal,
}

/// One tree that could be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its family.
    pub kind: Kind,
    /// Its shape.
    pub shape: Shape,
    /// What LogGP says of it, for processes that each have a processor.
    pub prediction: Prediction,
    /// Work of the busiest host for one wave down and up, in microseconds of one processor.
    pub host_work_us: f64,
    /// Microseconds per question, or per wave of a stream, with the processors that there are:
    /// what candidates are compared by.
    pub cost_us: f64,
}

/// All candidates for that many back-ends, by what they cost; but of those that cost at most a
/// twentieth more than the best, the one with the fewest communication processes comes first.
///
/// `bytes` is the length of an answer; of a question, where there is one, the same is assumed.
///
/// ```
/// use sapwood_topology::{Kind, LogGp, Pattern, Site, advise};
///
/// let site = Site { hosts: 4096, processors: 8, dedicated_hosts: 0, fan_out_max: 4096 };
/// let advice = advise(&LogGp::LOCAL_SOCKETS, &site, 4096, 64, Pattern::Request)?;
/// assert_ne!(advice[0].kind, Kind::Flat);
///
/// // Eight programs on two processors: a process between would only take time from them.
/// let advice = advise(&LogGp::LOCAL_SOCKETS, &Site::machine(2), 8, 64, Pattern::Request)?;
/// assert_eq!(advice[0].kind, Kind::Flat);
/// # Ok::<(), sapwood_topology::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::SpecZero`] for no back-ends, [`Error::TooManyNodes`] for more than a tree can have.
pub fn advise(
    model: &LogGp,
    site: &Site,
    back_ends: u32,
    bytes: u64,
    pattern: Pattern,
) -> Result<Vec<Candidate>, Error> {
    let mut candidates = Vec::new();
    let fan_out_max = site.fan_out_max.clamp(2, FAN_OUT_MAX);
    let mut shapes = shapes(back_ends, fan_out_max)?;
    if pattern == Pattern::Start && site.dedicated_hosts == 0 {
        let postal = postal(model, back_ends).filter(|shape| shape.fan_out() <= fan_out_max);
        shapes.extend(postal.map(|shape| (Kind::Postal, shape)));
    }
    for (kind, shape) in shapes {
        candidates.push(judge(model, site, kind, shape, bytes, pattern));
    }
    candidates.sort_by(|left, right| left.cost_us.total_cmp(&right.cost_us));
    let bound = candidates.first().map_or(0.0, |best| best.cost_us * (1.0 + INDIFFERENCE));
    let close = candidates.iter().take_while(|candidate| candidate.cost_us <= bound);
    let between = |candidate: &Candidate| candidate.prediction.communication_processes;
    let simplest = close.enumerate().min_by_key(|(_, close)| (between(close), close.kind));
    if let Some((index, _)) = simplest {
        candidates[..=index].rotate_right(1);
    }
    Ok(candidates)
}

/// The shapes that are compared, each once.
fn shapes(back_ends: u32, fan_out_max: u32) -> Result<Vec<(Kind, Shape)>, Error> {
    let mut shapes: Vec<(Kind, Shape)> = Vec::new();
    if back_ends <= fan_out_max {
        shapes.push((Kind::Flat, Shape::flat(back_ends)?));
    }
    // The fan-outs worth a look lie ever farther apart; those of the exact roots are among them.
    let steps = core::iter::successors(Some(2_u32), |step| Some(step + (step / 4).max(1)));
    let steps = steps.take_while(|step| *step < back_ends.min(fan_out_max.saturating_add(1)));
    let roots = (2..=DEPTH_MAX).map(|levels| Shape::fan_out_for(back_ends, levels));
    let mut fan_outs: Vec<u32> =
        steps.chain(roots).filter(|k| (2..=fan_out_max).contains(k)).collect();
    fan_outs.sort_unstable();
    fan_outs.dedup();
    for fan_out in fan_outs {
        if let Ok(shape) = Shape::even(back_ends, fan_out)
            && shapes.iter().all(|(_, other)| *other != shape)
        {
            shapes.push((Kind::Balanced, shape));
        }
    }
    for factor in [2, 3, 4, 6, 8, 16, 32] {
        if let Some(shape) = knomial(back_ends, factor, fan_out_max) {
            shapes.push((Kind::Knomial, shape));
        }
    }
    Ok(shapes)
}

/// The k-nomial tree with exactly that many back-ends, if it has levels and no node has too many
/// children.
fn knomial(back_ends: u32, factor: u32, fan_out_max: u32) -> Option<Shape> {
    // One more node means one more back-end, or as many as before.
    let (mut low, mut high) = (2, back_ends.checked_mul(2)?.min(NODES_MAX));
    while low < high {
        let middle = low + (high - low) / 2;
        match Shape::knomial(factor, middle).ok()?.back_end_count() < back_ends {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    let shape = Shape::knomial(factor, low).ok()?;
    let is_tree = shape.back_end_count() == back_ends && shape.depth() > 1;
    (is_tree && shape.fan_out() <= fan_out_max).then_some(shape)
}

/// The postal tree by this model, if it has levels.
fn postal(model: &LogGp, back_ends: u32) -> Option<Shape> {
    let unit = f64::from(UNIT);
    let interval = model.interval_us(LOG_IN_BYTES);
    let latency = libm::round(unit * model.message_us(LOG_IN_BYTES) / interval);
    // Where one that is under way delays no other, no tree is faster than a flat one.
    let is_tree = latency < unit * f64::from(back_ends);
    let shape = is_tree.then(|| Shape::postal((latency as u32).max(UNIT), back_ends).ok());
    shape.flatten().filter(|shape| shape.depth() > 1)
}

/// Microseconds until all back-ends have started, each on a host of its own. A communication
/// process is on the host of the first back-end below it, where it costs nothing if its parent is
/// there; else it is a log-in, of which a host makes one after another.
fn start_us(model: &LogGp, topology: &Topology) -> f64 {
    let root = topology.root().rank();
    // The front-end's host is none of the back-ends'.
    let own = topology.back_end_count();
    let host = |rank: Rank| match rank == root {
        true => own as usize,
        false => topology.leaf_range(rank).map_or(0, |(first, _)| first as usize),
    };
    let mut ready_us = vec![0.0; topology.node_count() as usize];
    let mut free_us = vec![0.0_f64; own as usize + 1];
    for rank in topology.breadth_first() {
        let here = host(rank);
        for &child in topology.children(rank) {
            let there = host(child);
            ready_us[child as usize] = ready_us[rank as usize];
            if there != here {
                let start_us = free_us[here].max(ready_us[rank as usize]);
                free_us[here] = start_us + model.interval_us(LOG_IN_BYTES);
                ready_us[child as usize] = start_us + model.message_us(LOG_IN_BYTES);
            }
        }
    }
    ready_us.into_iter().fold(0.0, f64::max)
}

/// What one shape costs; see [`advise`], which compares many.
pub fn judge(
    model: &LogGp,
    site: &Site,
    kind: Kind,
    shape: Shape,
    bytes: u64,
    pattern: Pattern,
) -> Candidate {
    let topology = Topology::from_shape(&shape, &Hosts::local());
    let mut prediction = model.predict(&topology, bytes);
    prediction.shape = alloc::format!("{shape}");
    // A stream flows up; a question goes down as well.
    let host_work_us = match pattern {
        Pattern::Request => 2.0 * busiest_host(site, &topology) * model.overhead_us(),
        Pattern::Stream => busiest_host(site, &topology) * model.overhead_us(),
        // Every host is reached once, whatever the tree: where all are one machine, all of its
        // processors are busy with every log-in for the time by which it delays the next, and no
        // tree is sooner there than a flat one. Else no host has more work than a process of it
        // waits for anyway.
        Pattern::Start if site.hosts <= 1 => {
            let others = f64::from(shape.back_end_count() - 1);
            (model.message_us(LOG_IN_BYTES) + others * model.interval_us(LOG_IN_BYTES))
                * f64::from(site.processors)
        }
        Pattern::Start => 0.0,
    };
    let alone_us = match pattern {
        Pattern::Request => prediction.round_trip_us,
        Pattern::Stream => 1.0e6 / prediction.waves_per_s,
        Pattern::Start if site.dedicated_hosts == 0 => start_us(model, &topology),
        Pattern::Start => prediction.broadcast_us,
    };
    let cost_us = alone_us.max(host_work_us / f64::from(site.processors.max(1)));
    Candidate { kind, shape, prediction, host_work_us, cost_us }
}

/// Messages that the processes of the busiest host send and receive for one wave in one direction.
fn busiest_host(site: &Site, topology: &Topology) -> f64 {
    let hosts = site.hosts.max(1) as usize;
    let dedicated = site.dedicated_hosts as usize;
    let mut messages = vec![0_u64; hosts + dedicated + 1];
    // The front-end has a machine of its own, unless all is on one.
    let front_end_at = if site.hosts <= 1 { 0 } else { hosts + dedicated };
    let mut inner = 0;
    for node in topology.nodes() {
        let links = node.children().len() as u64 + u64::from(node.parent().is_some());
        let host = match node.role() {
            Role::FrontEnd => front_end_at,
            Role::BackEnd => node.rank() as usize % hosts,
            Role::Comm => {
                inner += 1;
                if dedicated > 0 { hosts + inner % dedicated } else { inner % hosts }
            }
        };
        messages[host] += links;
    }
    messages.into_iter().max().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn best(site: Site, back_ends: u32, pattern: Pattern) -> Candidate {
        let advice = advise(&LogGp::LOCAL_SOCKETS, &site, back_ends, 64, pattern).unwrap();
        advice.into_iter().next().unwrap()
    }

    /// From one processor's sockets to a wide network and to log-ins.
    fn grid() -> impl Iterator<Item = LogGp> {
        let of = |latency: f64| {
            let overheads = [0.5, 10.0, 300.0].into_iter();
            overheads.map(move |overhead| LogGp::new(latency, overhead, overhead, 1e-3).unwrap())
        };
        let others = [0.0, 5.0, 500.0].into_iter().flat_map(of);
        [LogGp::LOCAL_SOCKETS, LogGp::LOG_IN].into_iter().chain(others)
    }

    fn cluster(hosts: u32) -> Site {
        Site { hosts, processors: 4, dedicated_hosts: 0, fan_out_max: FAN_OUT_MAX }
    }

    #[test]
    fn every_candidate_has_exactly_the_asked_back_ends() {
        for back_ends in [1, 2, 3, 5, 7, 16, 61, 64, 100, 1000, 4097] {
            let advice =
                advise(&LogGp::LOCAL_SOCKETS, &cluster(9), back_ends, 8, Pattern::Stream).unwrap();
            for candidate in &advice {
                assert_eq!(candidate.shape.back_end_count(), back_ends, "{}", candidate.shape);
            }
            assert!(advice.iter().any(|candidate| candidate.kind == Kind::Flat), "{back_ends}");
        }
    }

    #[test]
    fn the_advice_is_never_worse_than_flat() {
        for back_ends in [1, 2, 8, 64, 300, 5000] {
            // Large trees take their time to be looked at.
            let models = || grid().take(if back_ends > 1000 { 1 } else { usize::MAX });
            for site in [Site::machine(2), cluster(2), cluster(back_ends)] {
                for pattern in [Pattern::Request, Pattern::Stream, Pattern::Start] {
                    for model in models() {
                        let advice = advise(&model, &site, back_ends, 64, pattern).unwrap();
                        let flat = advice.iter().find(|one| one.kind == Kind::Flat).unwrap();
                        let (best, flat) = (&advice[0], flat.cost_us);
                        assert!(best.cost_us <= flat, "{back_ends} {site:?} {model:?} {best:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn few_back_ends_need_no_process_between_and_many_do() {
        assert_eq!(best(cluster(4), 4, Pattern::Request).kind, Kind::Flat);
        assert_ne!(best(cluster(1024), 1024, Pattern::Request).kind, Kind::Flat);
        assert_ne!(best(cluster(1024), 1024, Pattern::Stream).kind, Kind::Flat);
    }

    #[test]
    fn processes_that_share_two_processors_gain_nothing_from_others_between() {
        for back_ends in [4, 16, 64, 256] {
            assert_eq!(best(Site::machine(2), back_ends, Pattern::Stream).kind, Kind::Flat);
        }
    }

    #[test]
    fn hosts_that_are_one_machine_are_logged_in_to_side_by_side() {
        // 50 ms of a processor at either end of a log-in, and two processors for all of them.
        let log_in = LogGp::new(40_000.0, 50_000.0, 50_000.0, 0.0).unwrap();
        for back_ends in [4, 16, 64, 256] {
            let site = Site { fan_out_max: 4096, ..Site::machine(2) };
            let advice = advise(&log_in, &site, back_ends, 0, Pattern::Start).unwrap();
            assert_eq!(advice[0].kind, Kind::Flat, "{back_ends}");
            let advice = advise(&log_in, &cluster(back_ends), back_ends, 0, Pattern::Start);
            let is_flat = advice.unwrap()[0].kind == Kind::Flat;
            assert_eq!(is_flat, back_ends <= 4, "{back_ends} machines");
        }
    }

    #[test]
    fn the_tree_that_starts_soonest_is_postal_over_the_hosts() {
        // A log-in of 1.5 s delays the next one by 1.2 s, and hosts have processors of their own.
        let log_in = LogGp::new(0.0, 750_000.0, 1_200_000.0, 0.0).unwrap();
        let advice = advise(&log_in, &cluster(16), 16, 1, Pattern::Start).unwrap();
        assert_eq!(
            (advice[0].kind, advice[0].shape.to_string()),
            (Kind::Postal, "p:1.25@16".into())
        );
        // What the model of hosts says of it is what the postal model says: the last of sixteen.
        let flat = advice.iter().find(|one| one.kind == Kind::Flat).unwrap();
        assert_eq!(flat.cost_us, 1_500_000.0 + 15.0 * 1_200_000.0);
        assert!((advice[0].cost_us - 6_300_000.0).abs() < 1.0, "{}", advice[0].cost_us);
        // A communication process beside the back-end below it is no log-in.
        let chain =
            judge(&log_in, &cluster(2), Kind::Balanced, "1x1".parse().unwrap(), 1, Pattern::Start);
        assert_eq!(chain.cost_us, 1_500_000.0);
    }

    #[test]
    fn a_stream_wants_small_fan_outs_and_a_question_few_levels() {
        let stream = best(cluster(4096), 4096, Pattern::Stream);
        let request = best(cluster(4096), 4096, Pattern::Request);
        assert!(stream.shape.fan_out() <= request.shape.fan_out());
        assert!(stream.shape.depth() >= request.shape.depth());
    }

    #[test]
    fn a_bound_on_children_is_kept() {
        let site = Site { fan_out_max: 7, ..cluster(300) };
        let advice = advise(&LogGp::LOCAL_SOCKETS, &site, 300, 64, Pattern::Request).unwrap();
        assert!(!advice.is_empty());
        assert!(advice.iter().all(|candidate| candidate.shape.fan_out() <= 7));
    }

    #[test]
    fn hosts_of_their_own_relieve_those_of_the_back_ends() {
        let topology = Topology::from_shape(&"4x4".parse().unwrap(), &Hosts::local());
        let shared = busiest_host(&cluster(4), &topology);
        let apart = busiest_host(&Site { dedicated_hosts: 4, ..cluster(4) }, &topology);
        assert_eq!((shared, apart), (4.0 + 5.0, 5.0));
    }

    #[test]
    fn no_process_is_no_tree() {
        let none = advise(&LogGp::LOCAL_SOCKETS, &cluster(2), 0, 64, Pattern::Request);
        assert!(none.is_err());
    }
}
