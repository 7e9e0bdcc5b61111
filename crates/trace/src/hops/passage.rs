//! One question with its answer, or one wave: the time stamps of all processes, and what follows
//! from them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_node::{HopWave, PartArrival};
use sapwood_packet::{Rank, StreamId, Wave};

use crate::hops::figures::{Blame, EdgeFigures, StreamFigures};
use crate::hops::scope::{HopMeasure, HopValue};
use crate::hops::traffic::{HopRole, HopTraffic};

/// A process of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopProcess {
    /// Its rank.
    pub rank: Rank,
    /// Its parent's; none for the front-end.
    pub parent: Option<Rank>,
    /// Its clock beside the front-end's, if that is known.
    pub clock: Option<HopClock>,
}

/// A clock beside the front-end's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopClock {
    /// By how much it is ahead, in nanoseconds.
    pub ahead: i64,
    /// By how much that may be wrong, either way.
    pub error: u64,
}

/// What a process has noted of a passage, on its own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    pub(super) down: Option<u64>,
    pub(super) sent_up: Option<u64>,
    pub(super) awaited: u32,
    pub(super) arrivals: Vec<PartArrival>,
}

/// The passage of one question with its answer, or of one wave, through the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Passage {
    pub(super) processes: BTreeMap<Rank, Stamps>,
    /// The round of reading in which the front-end's part of it came.
    pub(super) ended_in: Option<u64>,
}

/// The processes of the tree.
pub(super) type Processes = BTreeMap<Rank, HopProcess>;

/// Both ends of a link, in one passage.
struct Ends<'a> {
    parent: &'a Stamps,
    child: &'a Stamps,
    /// When the child's part had come to the parent.
    arrival: Option<u64>,
}

impl Ends<'_> {
    /// From question to answer at the child.
    fn turnaround(&self) -> Option<u64> {
        self.child.sent_up?.checked_sub(self.child.down?)
    }

    /// The time on the link, both ways.
    fn two_way(&self) -> Option<u64> {
        self.arrival?.checked_sub(self.parent.down?)?.checked_sub(self.turnaround()?)
    }
}

/// A link of which a passage has both ends.
pub(super) struct HopLink<'a> {
    parent_rank: Rank,
    child_rank: Rank,
    parent: Option<&'a HopProcess>,
    child: Option<&'a HopProcess>,
    ends: Ends<'a>,
}

/// A time between two clocks.
struct OneWayTime {
    /// 0 if it lies inside the error.
    ns: u64,
    error: u64,
    is_decided: bool,
}

impl HopLink<'_> {
    /// From the child's sending to the parent's having the part.
    fn up(&self) -> Option<OneWayTime> {
        let sent = self.ends.child.sent_up.and_then(|time| aligned(self.child, time));
        between(sent, self.ends.arrival.and_then(|time| aligned(self.parent, time)))
    }

    /// From the parent's sending of the question to the child's having it.
    fn down(&self) -> Option<OneWayTime> {
        let asked = self.ends.parent.down.and_then(|time| aligned(self.parent, time));
        between(asked, self.ends.child.down.and_then(|time| aligned(self.child, time)))
    }

    /// Of a child without parts, from question to answer.
    fn own(&self) -> Option<u64> {
        let stamps = self.ends.child;
        let has_no_parts = stamps.awaited == 0 && stamps.arrivals.is_empty();
        self.ends.turnaround().filter(|_| has_no_parts)
    }
}

/// When a wave that had all its parts ended at a process.
struct WaveEnd {
    last: u64,
    sent_up: u64,
}

impl Stamps {
    fn end(&self) -> Option<WaveEnd> {
        let (sent_up, last) = (self.sent_up?, self.arrivals.last()?.time);
        let is_whole = self.arrivals.len() == self.awaited as usize;
        is_whole.then_some(WaveEnd { last, sent_up })
    }

    fn arrival_of(&self, child: Rank) -> Option<u64> {
        self.arrivals.iter().find(|part| part.child == child).map(|part| part.time)
    }

    /// The wave as this process saw it, if it has gone on.
    fn wave(&self, stream: StreamId, wave: Wave) -> Option<HopWave> {
        let sent_up = self.sent_up?;
        let (arrivals, awaited) = (self.arrivals.clone(), self.awaited);
        Some(HopWave { stream, wave, arrivals, awaited, sent_up })
    }
}

/// A time of a process on the front-end's clock, and its error.
fn aligned(process: Option<&HopProcess>, time: u64) -> Option<(i128, u64)> {
    let clock = process?.clock?;
    Some((i128::from(time) - i128::from(clock.ahead), clock.error))
}

impl Passage {
    /// Adds what follows from this passage to the figures of its stream.
    pub(super) fn settle(
        &self,
        (stream, wave): (StreamId, Wave),
        tree: &Processes,
        links: &[HopLink<'_>],
        figures: &mut StreamFigures,
    ) {
        for (&rank, stamps) in &self.processes {
            self.settle_waits(rank, stamps.wave(stream, wave), figures);
        }
        for link in links {
            let edge = figures.edges.entry(link.child_rank).or_default();
            edge.parent = link.parent_rank;
            settle_link(link, edge);
            if let Some(own) = link.own() {
                figures.processes.entry(link.child_rank).or_default().own.add(own);
            }
        }
        self.settle_departures(tree, figures);
        self.settle_path(tree, figures);
    }

    /// The links of which it has both ends.
    pub(super) fn links<'a>(&'a self, tree: &'a Processes) -> Vec<HopLink<'a>> {
        let link = |(&child_rank, stamps): (&'a Rank, &'a Stamps)| {
            let child = tree.get(&child_rank)?;
            let parent_rank = child.parent?;
            let above = self.processes.get(&parent_rank)?;
            let ends = Ends { parent: above, child: stamps, arrival: above.arrival_of(child_rank) };
            let (parent, child) = (tree.get(&parent_rank), Some(child));
            Some(HopLink { parent_rank, child_rank, parent, child, ends })
        };
        self.processes.iter().filter_map(link).collect()
    }

    /// Gives each time of each hop that follows from this passage to `take`: the same of which
    /// [`Passage::settle`] makes figures. `parents` are the processes that have children.
    pub(super) fn measure(
        &self,
        stream: StreamId,
        tree: &Processes,
        parents: &BTreeSet<Rank>,
        links: &[HopLink<'_>],
        mut take: impl FnMut(HopMeasure),
    ) {
        let role = |rank: Rank| match tree.get(&rank).and_then(|process| process.parent) {
            None => HopRole::FrontEnd,
            Some(_) if parents.contains(&rank) => HopRole::Communication,
            Some(_) => HopRole::BackEnd,
        };
        let mut tell = |value, process, parent, ns| {
            let traffic = HopTraffic::Stream(stream);
            take(HopMeasure { traffic, value, process, parent, role: role(process), ns });
        };
        for (&rank, stamps) in &self.processes {
            let Some(end) = stamps.end() else { continue };
            tell(HopValue::Inside, rank, None, end.sent_up.saturating_sub(end.last));
            for part in &stamps.arrivals {
                let wait = end.last.saturating_sub(part.time);
                tell(HopValue::Wait, part.child, Some(rank), wait);
            }
        }
        for link in links {
            let (child, parent) = (link.child_rank, Some(link.parent_rank));
            for (value, time) in [
                (HopValue::Up, link.up().map(|time| time.ns)),
                (HopValue::Down, link.down().map(|time| time.ns)),
                (HopValue::TwoWay, link.ends.two_way()),
            ] {
                if let Some(ns) = time {
                    tell(value, child, parent, ns);
                }
            }
            if let Some(own) = link.own() {
                tell(HopValue::Inside, child, None, own);
            }
        }
    }

    fn settle_waits(&self, rank: Rank, wave: Option<HopWave>, figures: &mut StreamFigures) {
        let Some(wave) = wave.filter(|wave| wave.awaited > 0) else { return };
        figures.arrivals.entry(rank).or_default().add_wave(&wave);
        let ([first, ..], [.., last]) = (&wave.arrivals[..], &wave.arrivals[..]) else { return };
        if !wave.is_whole() {
            return;
        }
        let process = figures.processes.entry(rank).or_default();
        process.spread.add(last.time.saturating_sub(first.time));
        process.passing.add(wave.sent_up.saturating_sub(last.time));
        for part in &wave.arrivals {
            let edge = figures.edges.entry(part.child).or_default();
            edge.arrival_wait.add(last.time.saturating_sub(part.time));
        }
    }

    /// How much later than the first child each had what the parent sent down.
    fn settle_departures(&self, tree: &Processes, figures: &mut StreamFigures) {
        let mut first: BTreeMap<Rank, i128> = BTreeMap::new();
        let times: Vec<(Rank, Rank, i128)> = self
            .processes
            .iter()
            .filter_map(|(&child, stamps)| {
                let process = tree.get(&child)?;
                let (time, _) = aligned(Some(process), stamps.down?)?;
                Some((process.parent?, child, time))
            })
            .collect();
        for &(parent, _, time) in &times {
            let least = first.entry(parent).or_insert(time);
            *least = (*least).min(time);
        }
        for (parent, child, time) in times {
            let wait = u64::try_from(time - first[&parent]).unwrap_or_default();
            figures.edges.entry(child).or_default().departure_wait.add(wait);
        }
    }

    /// Follows the parts that came last from the front-end down, and cuts the answer's time into
    /// what was waited for on that path.
    fn settle_path(&self, tree: &Processes, figures: &mut StreamFigures) {
        let Some(root) = tree.values().find(|process| process.parent.is_none()) else { return };
        let Some(top) = self.processes.get(&root.rank) else { return };
        let elapsed = top.down.and_then(|down| top.sent_up?.checked_sub(down));
        if let Some(elapsed) = elapsed {
            figures.elapsed.add(elapsed);
        }
        let mut parts: Vec<(Blame, u64)> = Vec::new();
        let (mut rank, mut stamps) = (root.rank, top);
        // A tree has no path longer than its processes are many.
        for _ in 0..tree.len() {
            let Some(last) = stamps.arrivals.last() else { break };
            let Some(child) = self.processes.get(&last.child) else { return };
            let ends = Ends { parent: stamps, child, arrival: Some(last.time) };
            if elapsed.is_some() {
                let passing = stamps.sent_up.and_then(|sent| sent.checked_sub(last.time));
                let (Some(passing), Some(link)) = (passing, ends.two_way()) else { return };
                parts.push((Blame::Process(rank), passing));
                parts.push((Blame::Link(last.child), link));
            }
            (rank, stamps) = (last.child, child);
        }
        if rank == root.rank {
            return;
        }
        *figures.path_ends.entry(rank).or_default() += 1;
        if elapsed.is_none() {
            return;
        }
        let own = stamps.sent_up.and_then(|sent| sent.checked_sub(stamps.down?));
        let Some(own) = own else { return };
        parts.push((Blame::BackEnd(rank), own));
        figures.explained += 1;
        for (blame, ns) in parts {
            let (sum, answers) = figures.blame.entry(blame).or_default();
            *sum = sum.saturating_add(ns);
            *answers += 1;
        }
    }
}

/// A time between two clocks, which is decided beyond their error only.
fn between(from: Option<(i128, u64)>, to: Option<(i128, u64)>) -> Option<OneWayTime> {
    let ((from, from_error), (to, to_error)) = (from?, to?);
    let error = from_error.saturating_add(to_error);
    let is_decided = to - from > i128::from(error) || error == 0;
    let ns = if is_decided { u64::try_from(to - from).unwrap_or_default() } else { 0 };
    Some(OneWayTime { ns, error, is_decided })
}

fn settle_link(link: &HopLink<'_>, edge: &mut EdgeFigures) {
    if let Some(two_way) = link.ends.two_way() {
        edge.two_way.add(two_way);
    }
    let EdgeFigures { up, down, clock_error, .. } = edge;
    for (way, time) in [(up, link.up()), (down, link.down())] {
        let Some(time) = time else { continue };
        *clock_error = (*clock_error).max(time.error);
        way.undecided += u64::from(!time.is_decided);
        way.figure.add(time.ns);
    }
}
