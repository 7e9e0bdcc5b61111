//! Schedules of operations and faults, drawn from a seed, and what comes of them.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_group::trees::TreeKind;
use sapwood_group::{
    Call, Config, Element, Input, MILLISECOND, Member, Payload, Request, SECOND, Time,
};
use sapwood_layout::Layout;
use sapwood_packet::RankSet;
use sapwood_random::Random;

use super::folding::{Folding, Reduced, definitions};
use super::oracle::{Breach, GroupOracle, Started, first_name};
use super::{GroupWorld, Network};
use crate::chance;

/// When the group is at rest and operations begin.
const BEGIN: Time = SECOND;
/// In which span they begin, and faults strike.
const SPAN: Time = 2 * SECOND;
/// How long an operation may take.
const DEADLINE: Time = 4 * SECOND;
/// When nothing may be left.
const END: Time = 22 * SECOND;

/// Kept apart from the other draws, so that these are the same with and without them.
const FURTHER: u64 = 0x6675_7274_6865_7200;
/// What may wait on one link: three segments.
const LINK_BYTES: usize = 300;
/// The same of hand-overs.
const HANDED: u64 = 0x6861_6e64_6564_0000;
/// The same of heirs that leave themselves.
const CROSSED: u64 = 0x6372_6f73_7365_6400;
/// The same of hosts that join and take virtual nodes.
const TAKEN: u64 = 0x7461_6b65_6e00_0000;
/// The same of operations that hosts define.
const DEFINED: u64 = 0x6465_6669_6e65_6400;
/// An heir leaves itself within this time before and after it is to get virtual nodes.
const NEAR: Time = 6 * MILLISECOND;
/// Broadcasts begin within this time before and after a hand-over.
const AROUND: Time = 15 * MILLISECOND;
/// Dials may fail for this long, which is less than the patience of one ping.
const REFUSED_MAX: Time = 80 * MILLISECOND;

/// What came of a schedule.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The rules that were broken.
    pub breaches: Vec<Breach>,
    /// How many operations were judged.
    pub operations: usize,
    /// The most bytes of segments and parts that have waited on one link.
    pub fullest_link: usize,
    /// What was done, a line each.
    pub story: Vec<String>,
}

#[derive(Clone, Debug)]
enum Act {
    Broadcast {
        host: usize,
        tree: TreeKind,
        bytes: usize,
    },
    Reduce {
        tree: TreeKind,
        what: Reduced,
    },
    Crash(usize),
    Hang(usize),
    Resume(usize),
    Cut(Vec<usize>),
    Heal,
    Join(usize),
    /// A host joins and takes virtual nodes from another, which stays.
    JoinTaking(Newcomer),
    Leave(usize),
    /// A host leaves and hands its virtual nodes to another.
    LeaveTo {
        host: usize,
        heir: usize,
    },
    /// The connection between two living members breaks; neither can make one for a while.
    BreakLink {
        one: usize,
        other: usize,
        refused: Time,
    },
    /// A host gets a processor only once in a span.
    Slow {
        host: usize,
        period: Time,
        until: Time,
    },
    Contribute {
        host: usize,
        number: u64,
        call: Call,
        tree: TreeKind,
    },
}

/// A host that joins and takes virtual nodes.
#[derive(Clone, Debug)]
struct Newcomer {
    host: usize,
    /// By which host it joins.
    by: usize,
    own: RankSet,
    take: RankSet,
}

/// When a host defines the operations of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defines {
    Never,
    AtOnce,
    /// With each call: until the first one its member passes on what others give.
    AtCall,
}

struct PlannedAct {
    time: Time,
    /// Acts of one time follow the order in which they were drawn.
    order: u64,
    act: Act,
}

struct Run {
    world: GroupWorld,
    oracle: GroupOracle,
    acts: Vec<PlannedAct>,
    chance: Random,
    prepare: fn(&mut Member),
    next: Request,
    order: u64,
    story: Vec<String>,
    touched: Vec<bool>,
    /// Whether a host is a member from the beginning.
    is_begun: Vec<bool>,
    /// The host whose virtual nodes each host claims: its own, or another's too.
    claims: Vec<usize>,
    /// By which host each one joins.
    sponsors: Vec<usize>,
    defines: Vec<Defines>,
}

/// Runs the schedule of a seed; `prepare` is done to each member before its first input.
#[must_use]
pub fn run_schedule(seed: u64, prepare: fn(&mut Member)) -> Verdict {
    Run::drawn(seed, prepare, 0).judged()
}

/// The same with one more host, which joins and takes virtual nodes from one that stays.
#[must_use]
pub fn run_schedule_of_taking(seed: u64, prepare: fn(&mut Member)) -> Verdict {
    let mut run = Run::drawn(seed, prepare, 1);
    let newcomer = run.world.network.hosts() - 1;
    run.draw_taking(newcomer, &mut chance::of_seed(seed ^ TAKEN));
    run.judged()
}

/// The same as [`run_schedule`], with reductions by operations that the hosts define.
#[must_use]
pub fn run_schedule_of_defining(seed: u64, prepare: fn(&mut Member)) -> Verdict {
    let mut run = Run::drawn(seed, prepare, 0);
    run.draw_defined(&mut chance::of_seed(seed ^ DEFINED));
    run.judged()
}

impl Run {
    /// What the hosts do and what strikes them, but for the last ones.
    fn drawn(seed: u64, prepare: fn(&mut Member), newcomers: usize) -> Self {
        let mut chance = chance::of_seed(seed);
        let hosts = chance.between(3, 9) as usize;
        let places = hosts + newcomers;
        let clusters = chance.between(1, 3).min(hosts as u64) as usize;
        let far_us = Vec::from([3000.0, 5000.0, 9000.0]);
        let layout = Layout { hosts: places, clusters, far_us, ..Layout::default() };
        let mut run = Self {
            world: GroupWorld::new(Network::draw(&layout, seed), seed),
            oracle: GroupOracle::new(places),
            acts: Vec::new(),
            chance,
            prepare,
            next: 0,
            order: 0,
            story: Vec::new(),
            touched: alloc::vec![false; places],
            is_begun: alloc::vec![false; places],
            claims: (0..places).collect(),
            sponsors: alloc::vec![0; places],
            defines: alloc::vec![Defines::Never; places],
        };
        run.draw(hosts, &mut chance::of_seed(seed ^ FURTHER));
        run.draw_hand_over(hosts, &mut chance::of_seed(seed ^ HANDED));
        run.draw_crossing(hosts, &mut chance::of_seed(seed ^ CROSSED));
        run
    }

    /// Plays what was drawn.
    fn judged(mut self) -> Verdict {
        self.acts.sort_by_key(|planned| (planned.time, planned.order));
        self.play();
        let breaches = self.oracle.judge(&self.world);
        Verdict {
            breaches,
            operations: self.oracle.operations(),
            fullest_link: self.world.fullest_link(),
            story: self.story,
        }
    }

    fn draw(&mut self, hosts: usize, further: &mut Random) {
        // Host 0 stays whole, so that each group has a witness.
        let late = if hosts > 3 && self.chance.one_in(2) { Some(hosts - 1) } else { None };
        let rival = late.and_then(|late| self.draw_claim(late, further));
        for host in (0..hosts).filter(|host| ![late, rival].contains(&Some(*host))) {
            self.is_begun[host] = true;
            self.begin(host, (host > 0).then_some(0));
        }
        if let Some(late) = late {
            self.touched[late] = true;
            let time = self.time();
            self.add(time, Act::Join(late));
            if let Some(rival) = rival {
                let time = time + further.below(4 * MILLISECOND);
                self.add(time, Act::Join(rival));
            }
        }
        for _ in 0..self.chance.between(2, 6) {
            let tree = *self.chance.choose(&TreeKind::ALL);
            let host = self.chance.index(hosts);
            let size = *self.chance.choose(&[1, 100, 700, 3000]);
            let act = if self.chance.one_in(2) {
                Act::Broadcast { host, tree, bytes: size }
            } else {
                let to_all = self.chance.one_in(3);
                let elements = size.div_ceil(8);
                let what = Reduced { root: host, elements, to_all, folding: Folding::Sum };
                Act::Reduce { tree, what }
            };
            self.add_at(act);
        }
        for _ in 0..self.chance.below(4) {
            self.draw_fault(hosts);
        }
        if further.one_in(2) {
            for count in 0..further.between(1, 3) {
                // Two spans in turn could be longer than the patience.
                let may_refuse = count == 0;
                self.draw_break(hosts, may_refuse, further);
            }
        }
        if further.one_in(4) {
            self.draw_slow(hosts, further);
        }
    }

    fn draw_fault(&mut self, hosts: usize) {
        let host = self.chance.between(1, hosts as u64 - 1) as usize;
        if core::mem::replace(&mut self.touched[host], true) {
            return;
        }
        let time = self.time();
        match self.chance.below(6) {
            0 | 1 => self.add(time, Act::Crash(host)),
            2 => self.add(time, Act::Leave(host)),
            3 | 4 => {
                let long = time + self.chance.between(30, 1500) * MILLISECOND;
                self.add(time, Act::Hang(host));
                self.add(long, Act::Resume(host));
            }
            _ => {
                let long = time + self.chance.between(30, 1500) * MILLISECOND;
                self.add(time, Act::Cut(Vec::from([host])));
                self.add(long, Act::Heal);
            }
        }
    }

    /// The host that joins late may claim another's virtual nodes. Gives a second host that joins
    /// about when the first does, by another member, and claims the same.
    fn draw_claim(&mut self, late: usize, further: &mut Random) -> Option<usize> {
        if late < 4 || !further.one_in(3) {
            return None;
        }
        let other = further.between(1, late as u64 - 1) as usize;
        self.claims[late] = other;
        self.oracle.contest(late, other);
        if further.one_in(2) {
            return None;
        }
        // Neither is there at first, so that each sponsor takes one for the only one.
        self.touched[other] = true;
        self.sponsors[other] = if other == 1 { 2 } else { 1 };
        Some(other)
    }

    /// Of three schedules two have a hand-over, with broadcasts while it goes on.
    fn draw_hand_over(&mut self, hosts: usize, chance: &mut Random) {
        let host = chance.between(1, hosts as u64 - 1) as usize;
        let heir = (host + chance.between(1, hosts as u64 - 1) as usize) % hosts;
        let is_free = |host: usize| self.is_begun[host] && !self.oracle.is_contested(host);
        if chance.one_in(3) || !is_free(host) || !is_free(heir) {
            return;
        }
        if core::mem::replace(&mut self.touched[host], true) {
            return;
        }
        let span = if chance.one_in(2) { AROUND } else { SPAN };
        let time = BEGIN + AROUND + chance.below(span);
        self.add(time, Act::LeaveTo { host, heir });
        for _ in 0..chance.between(1, 4) {
            let at = time - AROUND + chance.below(2 * AROUND);
            let tree = *chance.choose(&TreeKind::ALL);
            let bytes = *chance.choose(&[1, 100, 700, 3000]);
            self.add(at, Act::Broadcast { host: chance.index(hosts), tree, bytes });
        }
        if chance.one_in(3) {
            // Repairs go past the member that is late, to the member that carries the names then.
            let one = if chance.one_in(2) { host } else { heir };
            let other = (one + chance.between(1, hosts as u64 - 1) as usize) % hosts;
            let at = time - AROUND + chance.below(2 * AROUND);
            self.add(at, Act::BreakLink { one, other, refused: 0 });
        }
    }

    /// Of three heirs one leaves itself at about the same time, one in two to the host that leaves.
    fn draw_crossing(&mut self, hosts: usize, chance: &mut Random) {
        let leaving = self.acts.iter().find_map(|planned| match &planned.act {
            Act::LeaveTo { host, heir } => Some((planned.time, *host, *heir)),
            _ => None,
        });
        let Some((time, other, host)) = leaving.filter(|leaving| leaving.2 > 0) else { return };
        if !chance.one_in(3) || core::mem::replace(&mut self.touched[host], true) {
            return;
        }
        let any = (host + chance.between(1, hosts as u64 - 1) as usize) % hosts;
        let is_there = self.is_begun[any] && !self.oracle.is_contested(any);
        let heir = if chance.one_in(2) && is_there { any } else { other };
        self.add(time - NEAR + chance.below(2 * NEAR), Act::LeaveTo { host, heir });
    }

    /// A host joins and takes one of two virtual nodes, with broadcasts while it does.
    fn draw_taking(&mut self, host: usize, chance: &mut Random) {
        let givers = self.free_givers(host);
        // Recorded seeds were drawn as if each giver were free, and go on meaning the same.
        let drawn = chance.index((0..host).filter(|at| gives_a_part(*at)).count());
        let Some(giver) = drawn.checked_rem(givers.len()).map(|at| givers[at]) else { return };
        let name = first_name(giver) + chance.below(2) as u32;
        let take = RankSet::range(name, name);
        let own = if chance.one_in(2) { RankSet::new() } else { names_at(host) };
        let by = if chance.one_in(2) { 0 } else { giver };
        let span = if chance.one_in(2) { AROUND } else { SPAN };
        let time = BEGIN + AROUND + chance.below(span);
        self.oracle.taking(giver, host, take.clone());
        let is_nameless = own.is_empty();
        self.add(time, Act::JoinTaking(Newcomer { host, by, own, take }));
        for _ in 0..chance.between(2, 6) {
            let at = time - AROUND / 3 + chance.below(2 * AROUND);
            let tree = *chance.choose(&TreeKind::ALL);
            let bytes = *chance.choose(&[1, 100, 700, 3000]);
            self.add(at, Act::Broadcast { host: chance.index(host), tree, bytes });
        }
        let soon = time + chance.below(2 * AROUND);
        match chance.below(8) {
            0 => self.add(soon, Act::Crash(host)),
            1 if is_nameless => self.add(soon, Act::LeaveTo { host, heir: giver }),
            2 if !core::mem::replace(&mut self.touched[giver], true) => {
                let heir = (giver + chance.between(1, host as u64 - 1) as usize) % host;
                self.add(soon, Act::LeaveTo { host: giver, heir });
            }
            3 | 4 => {
                let one = if chance.one_in(2) { host } else { giver };
                let other = (one + chance.between(1, host as u64) as usize) % (host + 1);
                self.add(soon, Act::BreakLink { one, other, refused: 0 });
            }
            _ => {}
        }
    }

    /// Hosts define operations, one in three not before it calls, and reduce by them.
    fn draw_defined(&mut self, chance: &mut Random) {
        let hosts = self.defines.len();
        for host in 0..hosts {
            self.defines[host] = if chance.one_in(3) { Defines::AtCall } else { Defines::AtOnce };
            if self.is_begun[host] {
                self.define(host, Defines::AtOnce);
            }
        }
        for _ in 0..chance.between(2, 5) {
            let folding = *chance.choose(&[Folding::Circle, Folding::Lines]);
            let tree = *chance.choose(&TreeKind::ALL);
            let elements = *chance.choose(&[1, 13, 88, 375]);
            let (root, to_all) = (chance.index(hosts), chance.one_in(3));
            let what = Reduced { root, elements, to_all, folding };
            let span = if chance.one_in(2) { 20 * MILLISECOND } else { SPAN };
            self.add(BEGIN + chance.below(span), Act::Reduce { tree, what });
        }
    }

    /// The member of a host gets the operations, if this is when the host defines them.
    fn define(&mut self, host: usize, when: Defines) {
        if self.defines[host] == when {
            for (operation, definition) in definitions() {
                self.world.give(host, Input::Define { operation, definition });
            }
        }
    }

    /// The hosts before a newcomer that can give it a virtual node and keep one.
    fn free_givers(&self, newcomer: usize) -> Vec<usize> {
        let is_free = |host: &usize| self.is_begun[*host] && !self.oracle.is_contested(*host);
        (0..newcomer).filter(|host| gives_a_part(*host)).filter(is_free).collect()
    }

    fn draw_break(&mut self, hosts: usize, may_refuse: bool, further: &mut Random) {
        let one = further.index(hosts);
        let other = (one + further.between(1, hosts as u64 - 1) as usize) % hosts;
        let refused = if may_refuse && further.one_in(2) { further.below(REFUSED_MAX) } else { 0 };
        let span = if further.one_in(2) { 30 * MILLISECOND } else { SPAN };
        let time = BEGIN + further.below(span);
        self.add(time, Act::BreakLink { one, other, refused });
    }

    fn draw_slow(&mut self, hosts: usize, further: &mut Random) {
        let host = further.between(1, hosts as u64 - 1) as usize;
        if !core::mem::replace(&mut self.touched[host], true) {
            let time = BEGIN + further.below(SPAN);
            let period = further.between(40, 190) * MILLISECOND;
            let until = time + further.between(1, 5) * SECOND;
            self.add(time, Act::Slow { host, period, until });
        }
    }

    fn time(&mut self) -> Time {
        // Half of all things happen within a few milliseconds of each other.
        let span = if self.chance.one_in(2) { 20 * MILLISECOND } else { SPAN };
        BEGIN + self.chance.below(span)
    }

    fn add_at(&mut self, act: Act) {
        let time = self.time();
        self.add(time, act);
    }

    fn add(&mut self, time: Time, act: Act) {
        self.order += 1;
        self.acts.push(PlannedAct { time, order: self.order, act });
    }

    fn begin(&mut self, host: usize, by: Option<usize>) {
        self.enter(host, by, names_at(self.claims[host]), RankSet::new());
    }

    fn enter(&mut self, host: usize, by: Option<usize>, names: RankSet, take: RankSet) {
        let config = Config {
            names: names.clone(),
            take,
            linger: 3 * SECOND,
            bulk_bytes: 256,
            stripe_bytes: 400,
            segment_bytes: Some(128),
            link_bytes: LINK_BYTES,
            ..Config::default()
        };
        self.oracle.started(host, names, self.world.now());
        self.world.start(host, by, config, self.prepare);
        self.define(host, Defines::AtOnce);
    }

    fn play(&mut self) {
        while !self.acts.is_empty() {
            let PlannedAct { time, act, .. } = self.acts.remove(0);
            self.world.run_until(time);
            self.oracle.watch(&mut self.world);
            self.story.push(alloc::format!("{} ms: {act:?}", time / MILLISECOND));
            self.act(time, act);
        }
        self.world.run_until(END);
        self.oracle.watch(&mut self.world);
    }

    fn act(&mut self, time: Time, act: Act) {
        match act {
            Act::Broadcast { host, tree, bytes } if self.world.is_up(host) => {
                self.next += 1;
                let request = self.next;
                let value = Payload::from(alloc::vec![request as u8; bytes]);
                self.oracle.call(request, host, time, Started::Broadcast { bytes });
                let call = Call::Broadcast { targets: None, value, tag: request };
                self.world.call(host, request, tree, time + DEADLINE, call);
            }
            Act::Reduce { tree, what } if self.world.is_up(what.root) => {
                self.reduce(time, tree, what);
            }
            Act::Contribute { host, number, call, tree } if self.world.member(host).is_some() => {
                self.next += 1;
                let request = self.next;
                self.oracle.call(request, host, time, Started::Part { number });
                self.define(host, Defines::AtCall);
                self.world.call(host, request, tree, time + DEADLINE, call);
            }
            Act::Crash(host) => {
                self.oracle.fault(host, time);
                self.oracle.ended(host, time);
                self.world.crash(host);
            }
            Act::Leave(host) => {
                self.oracle.fault(host, time);
                self.world.give(host, Input::Leave);
            }
            Act::LeaveTo { host, heir } => {
                self.oracle.fault(host, time);
                self.oracle.hand_over(host, heir);
                let heir = self.oracle.kept(heir).as_ref().first();
                self.world.give(host, Input::LeaveTo { heir });
            }
            Act::Hang(host) => {
                self.oracle.fault(host, time);
                self.world.hang(host);
            }
            Act::Resume(host) => self.world.resume(host),
            Act::Cut(hosts) => {
                self.oracle.cut(time);
                self.world.cut_off(&hosts);
            }
            Act::Heal => self.world.heal(),
            Act::Join(host) => {
                self.oracle.fault(host, time);
                self.begin(host, Some(self.sponsors[host]));
            }
            Act::JoinTaking(Newcomer { host, by, own, take }) => {
                self.oracle.joins_taking(host, time);
                self.enter(host, Some(by), own, take);
            }
            Act::BreakLink { one, other, refused } => {
                self.world.break_link(one, other, time + refused);
            }
            Act::Slow { host, period, until } => {
                self.oracle.fault(host, time);
                self.world.slow_down(host, period, until);
            }
            Act::Broadcast { .. } | Act::Reduce { .. } | Act::Contribute { .. } => {}
        }
    }

    /// All give their part within a few milliseconds.
    fn reduce(&mut self, time: Time, tree: TreeKind, what: Reduced) {
        self.next += 1;
        let number = self.next;
        self.oracle.reduction(number, what);
        let hosts = self.world.network.hosts();
        for host in 0..hosts {
            let call = Call::Reduce {
                root: first_name(what.root),
                number,
                operation: what.operation(),
                element: Element::I64,
                value: what.value_of(host),
                to_all: what.to_all,
                leaves_early: false,
            };
            let skew = if self.chance.one_in(4) { 150 } else { 3 };
            let at = time + self.chance.below(skew * MILLISECOND);
            self.add(at, Act::Contribute { host, number, call, tree });
        }
        self.acts.sort_by_key(|planned| (planned.time, planned.order));
    }
}

/// The virtual nodes that a host claims by itself.
fn names_at(host: usize) -> RankSet {
    let first = first_name(host);
    RankSet::range(first, first + u32::from(host % 3 == 1))
}

/// Whether a host claims more than one.
fn gives_a_part(host: usize) -> bool {
    names_at(host).len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_takes_something_wherever_a_host_can_give_it() {
        let mut takers = 0;
        for seed in 0..400 {
            let mut run = Run::drawn(seed, |_| {}, 1);
            let newcomer = run.world.network.hosts() - 1;
            let can_take = !run.free_givers(newcomer).is_empty();
            run.draw_taking(newcomer, &mut chance::of_seed(seed ^ TAKEN));
            let takes = run.acts.iter().any(|planned| matches!(planned.act, Act::JoinTaking(_)));
            assert_eq!(takes, can_take, "seed {seed}");
            takers += usize::from(takes);
        }
        assert!(takers > 360, "{takers} of 400 take something");
    }
}
