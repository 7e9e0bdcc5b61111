//! One group at rest, and how long its operations take.

use alloc::vec::Vec;
use core::fmt;

use sapwood_group::message::PaperTree;
use sapwood_group::trees::TreeKind;
use sapwood_group::{
    Answer, Call, Config, Element, Event, Input, MILLISECOND, MemberId, Operation, Payload,
    Request, SECOND, Time,
};
use sapwood_packet::RankSet;

use super::{GroupWorld, Network, ObservedEvent};

/// How long an operation may take.
const LIMIT: Time = 60 * SECOND;

/// How long a group is left alone at least, and how long nothing must have changed: where latencies
/// are long, joining takes seconds.
const LEAST_REST: Time = 3 * SECOND;
const QUIET: Time = 2 * SECOND;

/// How a group came to rest.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time at which the last member had the last table of clusters.
    pub steady: Time,
    /// Probes for measurement per member until then.
    pub probes: f64,
    /// How many clusters were inferred.
    pub labels: usize,
}

/// Members are still changing what they know of each other; nothing can be measured then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsteady {
    /// How many hosts have a member.
    pub hosts: usize,
    /// For how long it was waited.
    pub waited: Time,
    /// How many others the one that knows the fewest takes for alive.
    pub known: usize,
    /// How long members wait for a sign of life, which has to exceed the longest round trip.
    pub patience: Time,
}

impl fmt::Display for Unsteady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hosts, waited, known, patience } = *self;
        write!(
            f,
            "the simulated group of {hosts} members is not steady after {} s: one of them knows \
             {known}; with a patience of {} ms for signs of life, make latencies shorter or the \
             group smaller",
            waited / SECOND,
            patience / MILLISECOND
        )
    }
}

impl core::error::Error for Unsteady {}

/// A broadcast, and when each host had it.
#[derive(Clone, Debug)]
pub struct TimedBroadcast {
    /// When it was called.
    pub begin: Time,
    /// When the root was told what has become of it.
    pub end: Time,
    /// By host, how long after the call it had the last byte; none for the root, and for hosts that
    /// do not have all bytes.
    pub took: Vec<Option<Time>>,
    /// What the root was told.
    pub answer: Answer,
}

/// A group whose members joined at the same time.
#[derive(Debug)]
pub struct Trial {
    /// The group.
    pub world: GroupWorld,
    /// How it came to rest.
    pub start: Start,
    next: Request,
}

impl Trial {
    /// Starts a member on each host, and waits until all know the clusters.
    ///
    /// # Errors
    /// [`Unsteady`] where what they know still changes after a minute of simulated time, or a
    /// member does not know all others.
    pub fn start(network: Network, seed: u64, config: &Config) -> Result<Self, Unsteady> {
        let mut world = GroupWorld::new(network, seed);
        let hosts = world.network.hosts();
        for host in 0..hosts {
            enter(&mut world, host, config);
        }
        let mut steady = 0;
        let mut probes = 0.0;
        let mut last = None;
        // The table does not change any more: that is seen a while later.
        while world.now() < LEAST_REST || world.now() < (steady + QUIET).min(LIMIT) {
            let next = world.now() + 20 * MILLISECOND;
            world.run_until(next);
            let mut state = Vec::new();
            for host in 0..hosts {
                let member = world.member(host);
                state.push(member.map(|m| {
                    (m.clusters().table().labels.len(), m.clusters().label(m.id()), m.view().len())
                }));
            }
            if last.as_ref() != Some(&state) {
                steady = world.now();
                probes = (0..hosts).filter_map(|h| world.member(h)).map(|m| m.probes()).sum::<u64>()
                    as f64
                    / hosts as f64;
                last = Some(state);
            }
        }
        world.seen.clear();
        let knows = (0..hosts).filter_map(|host| world.member(host)).map(|m| m.view().len());
        let known = knows.min().unwrap_or(0);
        if world.now() < steady + QUIET || known < hosts {
            let (waited, patience) = (world.now(), config.ping_timeout);
            return Err(Unsteady { hosts, waited, known, patience });
        }
        let labels = world.member(0).map_or(0, |member| member.clusters().len());
        Ok(Self { world, start: Start { steady, probes, labels }, next: 1 })
    }

    /// Has all members probe for the tree of the paper's rules from a root, for 8 seconds.
    pub fn grow(&mut self, root: usize, kind: TreeKind) {
        let root = MemberId(self.world.id_of(root).0);
        let tree = PaperTree { root, bulk: kind == TreeKind::PaperBandwidth };
        for host in 0..self.world.network.hosts() {
            self.world.give(host, Input::Track { tree });
        }
        let end = self.world.now() + 8 * SECOND;
        self.world.run_until(end);
    }

    fn request(&mut self) -> Request {
        self.next += 1;
        self.next
    }

    /// The time until the last host has a broadcast, if all get it and none is missing.
    pub fn broadcast(&mut self, root: usize, tree: TreeKind, bytes: usize) -> Option<Time> {
        let (time, answer) = self.measure(root, tree, bytes)?;
        answer.missing.is_empty().then_some(time)
    }

    /// The time until the last live host has a broadcast, whatever was missing.
    pub fn broadcast_to_live(&mut self, root: usize, tree: TreeKind, bytes: usize) -> Option<Time> {
        self.measure(root, tree, bytes).map(|entry| entry.0)
    }

    fn measure(&mut self, root: usize, tree: TreeKind, bytes: usize) -> Option<(Time, Answer)> {
        let cast = self.time_broadcast(root, tree, bytes)?;
        let live = (0..self.world.network.hosts()).filter(|host| self.world.is_up(*host)).count();
        let times = cast.took.iter().flatten();
        let (whole, last) = (times.clone().count(), times.max().copied().unwrap_or(0));
        (whole + 1 == live).then_some((last, cast.answer))
    }

    /// A broadcast with the times of all hosts, if the root has an answer within a minute.
    pub fn time_broadcast(
        &mut self,
        root: usize,
        tree: TreeKind,
        bytes: usize,
    ) -> Option<TimedBroadcast> {
        let begin = self.world.now();
        let request = self.request();
        let value = Payload::from(alloc::vec![7; bytes]);
        let call = Call::Broadcast { targets: None, value, tag: 0 };
        self.world.seen.clear();
        self.world.call(root, request, tree, begin + LIMIT, call);
        let answer = self.wait(root, request)?;
        let end = self.answered_at(root, request)?;
        let mut got = alloc::vec![0_usize; self.world.network.hosts()];
        let mut took = alloc::vec![None; got.len()];
        for seen in &self.world.seen {
            if let Event::Delivery { data, .. } = &seen.event {
                got[seen.host] += data.len();
                took[seen.host] = Some(seen.time - begin);
            }
        }
        for (time, got) in took.iter_mut().zip(got) {
            *time = time.filter(|_| got == bytes);
        }
        self.world.seen.clear();
        Some(TimedBroadcast { begin, end, took, answer })
    }

    /// The time until the root has the sum of all members' arrays, if all are in it.
    pub fn reduce(&mut self, root: usize, tree: TreeKind, bytes: usize) -> Option<Time> {
        let begin = self.world.now();
        let number = self.request();
        self.world.seen.clear();
        let mut request = 0;
        for host in 0..self.world.network.hosts() {
            if !self.world.is_up(host) {
                continue;
            }
            let one = self.request();
            request = if host == root { one } else { request };
            let call = Call::Reduce {
                root: root as u32,
                number,
                operation: Operation::Sum,
                element: Element::I64,
                value: Payload::from(alloc::vec![0; bytes]),
                to_all: false,
                leaves_early: false,
            };
            self.world.call(host, one, tree, begin + LIMIT, call);
        }
        let answer = self.wait(root, request)?;
        let time = self.answered_at(root, request)? - begin;
        let now = self.world.now();
        self.world.run_until(now + SECOND);
        answer.missing.is_empty().then_some(time)
    }

    /// When a request of a host was answered, of what was observed last.
    fn answered_at(&self, host: usize, request: Request) -> Option<Time> {
        let is_answer = |seen: &&ObservedEvent| {
            seen.host == host && matches!(&seen.event, Event::Answered(of, _) if *of == request)
        };
        self.world.seen.iter().find(is_answer).map(|seen| seen.time)
    }

    /// Runs until a request is answered. Processes whose members have left end meanwhile.
    pub fn wait(&mut self, host: usize, request: Request) -> Option<Answer> {
        let begin = self.world.now();
        let mut looked = 0;
        while self.world.now() < begin + LIMIT {
            let next = self.world.now() + MILLISECOND;
            self.world.run_until(next);
            let (mut answer, mut left) = (None, Vec::new());
            for seen in &self.world.seen[looked..] {
                match &seen.event {
                    Event::Answered(of, given) if (*of, seen.host) == (request, host) => {
                        answer = Some(given.clone());
                    }
                    // Where one ended before, another process may run by now.
                    Event::Ended if seen.time > begin => left.push(seen.host),
                    _ => {}
                }
            }
            looked = self.world.seen.len();
            left.into_iter().for_each(|host| self.world.crash(host));
            if answer.is_some() {
                return answer;
            }
        }
        None
    }
}

/// Starts the member that carries the virtual node of its host. It joins by host 0, whose member
/// creates the group.
pub(super) fn enter(world: &mut GroupWorld, host: usize, config: &Config) {
    let names = RankSet::range(host as u32, host as u32);
    let config = Config { names, ..config.clone() };
    world.start(host, (host > 0).then_some(0), config, |_| {});
}
