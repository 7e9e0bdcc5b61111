//! What must hold of a group, whatever happens to it. The oracle knows what was called and which
//! hosts were struck, and nothing of how members work.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_group::{Answer, CastId, Event, Reason, Request, SECOND, Time};
use sapwood_packet::RankSet;

use super::folding::{Reduced, digit};
use super::{GroupWorld, ObservedEvent};

/// After a cut has ended, members find each other again within this time.
const HEALING: Time = 8 * SECOND;

/// Each host has room for this number of virtual nodes, so that none is another's.
const NAMES_PER_HOST: u32 = 2;

/// The first virtual node that a host may have.
pub(super) fn first_name(host: usize) -> u32 {
    NAMES_PER_HOST * host as u32
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: &'static str,
    /// What happened.
    pub text: String,
}

/// What was started under a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Started {
    Broadcast { bytes: usize },
    Part { number: u64 },
}

#[derive(Clone, Debug)]
struct Called {
    host: usize,
    time: Time,
    what: Started,
    answer: Option<Answer>,
}

/// Virtual nodes that one host was told to hand to another.
#[derive(Clone, Debug)]
struct HandedOver {
    from: usize,
    to: usize,
    names: RankSet,
}

/// Virtual nodes that one host was told to take from another when it joins.
#[derive(Clone, Debug)]
struct TakenOver {
    from: usize,
    to: usize,
    names: RankSet,
    /// Whether the process that takes them is in the group.
    has_joined: bool,
    /// Whether it was struck afterwards.
    is_struck: bool,
}

/// How long a process of a host was a member.
#[derive(Clone, Copy, Debug)]
struct Membership {
    host: usize,
    from: Time,
    until: Option<Time>,
}

impl Membership {
    fn is_at(&self, time: Time) -> bool {
        self.from <= time && self.until.is_none_or(|until| time < until)
    }
}

/// What a virtual node has got of a transfer: the fill of the value, and bytes by offset.
type Got = (u8, BTreeMap<u64, usize>);

/// All that was seen.
#[derive(Debug)]
pub(super) struct GroupOracle {
    names: Vec<RankSet>,
    /// Pairs of hosts that claim the same virtual nodes.
    contested: Vec<(usize, usize)>,
    handed: Vec<HandedOver>,
    taken_over: Option<TakenOver>,
    /// The virtual nodes that each host was told to carry besides its own.
    taken: Vec<RankSet>,
    faults: Vec<Option<Time>>,
    cut: Option<Time>,
    calls: BTreeMap<Request, Called>,
    reductions: BTreeMap<u64, Reduced>,
    /// By transfer, virtual node and host.
    got: BTreeMap<(CastId, u32, usize), Got>,
    /// The members that were taken for dead, and at which host.
    buried: BTreeSet<(usize, usize)>,
    /// Of all hosts that have been members.
    memberships: Vec<Membership>,
    breaches: Vec<Breach>,
}

impl GroupOracle {
    pub(super) fn new(hosts: usize) -> Self {
        Self {
            names: alloc::vec![RankSet::new(); hosts],
            contested: Vec::new(),
            handed: Vec::new(),
            taken_over: None,
            taken: alloc::vec![RankSet::new(); hosts],
            faults: alloc::vec![None; hosts],
            cut: None,
            calls: BTreeMap::new(),
            reductions: BTreeMap::new(),
            got: BTreeMap::new(),
            buried: BTreeSet::new(),
            memberships: Vec::new(),
            breaches: Vec::new(),
        }
    }

    pub(super) fn operations(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn started(&mut self, host: usize, names: RankSet, _time: Time) {
        self.names[host] = names;
    }

    /// Both hosts claim the same virtual nodes; the process of one gives them up, or is refused.
    pub(super) fn contest(&mut self, one: usize, other: usize) {
        self.contested.push((one, other));
    }

    pub(super) fn is_contested(&self, host: usize) -> bool {
        self.rival(host).is_some()
    }

    /// A host leaves and is to hand its virtual nodes to another.
    pub(super) fn hand_over(&mut self, from: usize, to: usize) {
        let names = self.kept(from);
        self.handed.push(HandedOver { from, to, names });
    }

    /// A host takes virtual nodes from another one when it joins.
    pub(super) fn taking(&mut self, from: usize, to: usize, names: RankSet) {
        self.taken_over = Some(TakenOver { from, to, names, has_joined: false, is_struck: false });
    }

    /// It joins. What it has not heard of before its time is no fault of the others.
    pub(super) fn joins_taking(&mut self, host: usize, time: Time) {
        self.faults[host].get_or_insert(time);
    }

    /// The virtual nodes that a host begins with and that no other one takes from it.
    pub(super) fn kept(&self, host: usize) -> RankSet {
        let taken = self.taken_over.as_ref().filter(|taken| taken.from == host);
        let taken = taken.map(|taken| taken.names.clone()).unwrap_or_default();
        self.names[host].difference(taken.as_ref())
    }

    /// The virtual nodes that a host carries at some time.
    fn ever_carried(&self, host: usize) -> RankSet {
        let mut names = self.names[host].clone();
        names.union_with(self.taken[host].as_ref());
        names
    }

    /// Hand-overs to hosts that were never struck, which must succeed.
    fn due(&self) -> impl Iterator<Item = &HandedOver> {
        self.handed.iter().filter(|handed| self.is_steady(handed.to))
    }

    pub(super) fn fault(&mut self, host: usize, time: Time) {
        self.faults[host].get_or_insert(time);
        if let Some(taken) = self.taken_over.as_mut().filter(|taken| taken.to == host) {
            taken.is_struck = true;
        }
    }

    fn joined(&mut self, host: usize, from: Time) {
        let is_of_host = |known: &Membership| known.host == host && known.until.is_none();
        if !self.memberships.iter().any(is_of_host) {
            self.memberships.push(Membership { host, from, until: None });
        }
    }

    /// The process on a host is gone, or has left.
    pub(super) fn ended(&mut self, host: usize, time: Time) {
        let open = self.memberships.iter_mut().filter(|known| known.until.is_none());
        open.filter(|known| known.host == host).for_each(|known| known.until = Some(time));
    }

    pub(super) fn cut(&mut self, time: Time) {
        self.cut.get_or_insert(time);
    }

    pub(super) fn call(&mut self, request: Request, host: usize, time: Time, what: Started) {
        self.calls.insert(request, Called { host, time, what, answer: None });
    }

    pub(super) fn reduction(&mut self, number: u64, what: Reduced) {
        self.reductions.insert(number, what);
    }

    /// Takes over what applications were told.
    pub(super) fn watch(&mut self, world: &mut GroupWorld) {
        for seen in core::mem::take(&mut world.seen) {
            match &seen.event {
                Event::MemberGone(member, Reason::Dead) => {
                    let gone = world.host_of(*member);
                    self.buried.extend(gone.map(|gone| (gone, seen.host)));
                }
                Event::NamesMoved { names, to, .. } if world.host_of(*to) == Some(seen.host) => {
                    self.taken[seen.host].union_with(names.as_ref());
                }
                Event::Joined => {
                    self.joined(seen.host, seen.time);
                    if let Some(taken) =
                        self.taken_over.as_mut().filter(|taken| taken.to == seen.host)
                    {
                        taken.has_joined = true;
                    }
                }
                Event::Ended => self.ended(seen.host, seen.time),
                _ => {}
            }
            self.see(seen);
        }
    }

    fn see(&mut self, seen: ObservedEvent) {
        match seen.event {
            Event::Delivery { cast, names, offset, data, .. } => {
                for name in names.iter() {
                    let fill = data.as_slice().first().copied().unwrap_or(0);
                    let key = (cast, name, seen.host);
                    let entry = self.got.entry(key).or_insert((fill, BTreeMap::new()));
                    let is_again = entry.1.insert(offset, data.len()).is_some();
                    let is_other = data.as_slice().iter().any(|byte| *byte != entry.0);
                    if is_again || is_other {
                        let text = format!("{cast:?} at {name}, offset {offset}");
                        self.breach("delivered exactly once", text);
                    }
                    if !self.ever_carried(seen.host).contains(name) {
                        let text = format!("{cast:?} for {name} at host {}", seen.host);
                        self.breach("delivered to its member", text);
                    }
                }
            }
            Event::Answered(request, answer) => {
                let Some(called) = self.calls.get_mut(&request) else { return };
                if called.answer.replace(answer).is_some() {
                    self.breach("answered once", format!("request {request}"));
                }
            }
            Event::Failed(request, error) => {
                // A member that a cut has excluded may not call.
                let called = self.calls.remove(&request);
                if called.is_none_or(|called| self.is_steady(called.host)) {
                    self.breach("calls are accepted", format!("request {request}: {error}"));
                }
            }
            _ => {}
        }
    }

    fn breach(&mut self, rule: &'static str, text: String) {
        self.breaches.push(Breach { rule, text });
    }

    /// Whether a host was never struck.
    fn is_steady(&self, host: usize) -> bool {
        self.faults[host].is_none() && self.cut.is_none()
    }

    fn steady_names(&self) -> RankSet {
        let mut names = RankSet::new();
        for host in (0..self.names.len()).filter(|host| self.is_steady(*host)) {
            names.union_with(self.names[host].as_ref());
        }
        names
    }

    /// Judges the end.
    pub(super) fn judge(&mut self, world: &GroupWorld) -> Vec<Breach> {
        let calls = self.calls.clone();
        for (request, called) in &calls {
            match (&called.answer, called.what) {
                (None, _) if self.is_steady(called.host) => {
                    let text = format!("request {request}, called at {}", called.time);
                    self.breach("every call is answered", text);
                }
                (Some(answer), Started::Broadcast { bytes }) => {
                    self.judge_broadcast(*request, called, answer, bytes);
                }
                (Some(answer), Started::Part { number }) => {
                    self.judge_part(*request, called, answer, number);
                }
                (None, _) => {}
            }
        }
        self.judge_results(&calls, world);
        for (gone, at) in core::mem::take(&mut self.buried) {
            if self.is_steady(gone) {
                self.breach("the living are not taken for dead", format!("{gone} at host {at}"));
            }
        }
        self.judge_hand_overs(world);
        self.judge_rest(world);
        for over in world.overfull() {
            self.breach("links have a bound", format!("{over:?}"));
        }
        core::mem::take(&mut self.breaches)
    }

    fn judge_broadcast(
        &mut self,
        request: Request,
        called: &Called,
        answer: &Answer,
        bytes: usize,
    ) {
        let mut whole = self.ever_carried(called.host);
        for ((_, name, _), (fill, offsets)) in &self.got {
            if *fill == request as u8 && offsets.values().sum::<usize>() == bytes {
                whole.insert(*name);
            }
        }
        if !answer.contributors.as_ref().is_within(whole.as_ref()) {
            let text = format!("request {request}: {} of {whole}", answer.contributors);
            self.breach("a member that is said to have it has it", text);
        }
        let mut due = self.steady_names();
        if let Some(taken) = self.taken_over.as_ref().filter(|taken| taken.is_struck) {
            due.subtract(taken.names.as_ref());
        }
        self.due().for_each(|handed| due.union_with(handed.names.as_ref()));
        self.judge_names(request, called, answer, &due);
    }

    /// Of the hosts that carry a virtual node one after the other exactly one delivers.
    fn judge_hand_overs(&mut self, world: &GroupWorld) {
        let mut by: BTreeMap<(CastId, u32), Vec<usize>> = BTreeMap::new();
        for (cast, name, host) in self.got.keys() {
            let is_handed = |names: &RankSet| names.contains(*name);
            if self.handed.iter().any(|handed| is_handed(&handed.names))
                || self.taken_over.iter().any(|taken| is_handed(&taken.names))
            {
                by.entry((*cast, *name)).or_default().push(*host);
            }
        }
        let doubled = by.iter().filter(|(_, hosts)| hosts.len() > 1);
        let doubled: Vec<String> = doubled
            .map(|((cast, name), hosts)| format!("{cast:?} for {name}: {hosts:?}"))
            .collect();
        let has = |host: usize, names: &RankSet| {
            let carried = world.member(host).map(sapwood_group::Member::names);
            carried.is_some_and(|carried| names.as_ref().is_within(carried.as_ref()))
        };
        let lost: Vec<String> = self
            .due()
            .filter(|handed| !has(handed.to, &handed.names))
            .chain(self.handed.iter().filter(|handed| {
                let mut steady = (0..self.names.len()).filter(|host| self.is_steady(*host));
                self.all_is_handed_over() && !steady.any(|host| has(host, &handed.names))
            }))
            .map(|handed| format!("{handed:?}"))
            .collect();
        if let Some(taken) = self.taken_over.as_ref().filter(|taken| self.is_to_succeed(taken)) {
            let rest = self.names[taken.from].difference(taken.names.as_ref());
            if !has(taken.to, &taken.names) || !has(taken.from, &rest) {
                let text = format!("{taken:?}");
                self.breach("names are taken over", text);
            }
        }
        doubled.into_iter().for_each(|text| self.breach("exactly one of two delivers", text));
        lost.into_iter().for_each(|text| self.breach("names are handed over", text));
    }

    /// Whether a host must get what it takes: neither it nor the giver was struck, and no reduction
    /// with a root among the virtual nodes keeps the giver from giving them.
    fn is_to_succeed(&self, taken: &TakenOver) -> bool {
        let is_root = |root: usize| taken.names.contains(first_name(root));
        taken.has_joined
            && !taken.is_struck
            && self.is_steady(taken.from)
            && !self.reductions.values().any(|reduced| is_root(reduced.root))
    }

    /// Whether hosts that leave are all that was struck, so that each finds an heir.
    fn all_is_handed_over(&self) -> bool {
        let leaves = |host: usize| self.handed.iter().any(|handed| handed.from == host);
        self.cut.is_none()
            && (0..self.faults.len()).all(|host| self.faults[host].is_none() || leaves(host))
    }

    /// Those that were never struck have taken part, where the caller was never struck.
    fn judge_names(
        &mut self,
        request: Request,
        called: &Called,
        answer: &Answer,
        steady: &RankSet,
    ) {
        if self.is_steady(called.host) && !steady.as_ref().is_within(answer.contributors.as_ref()) {
            let text = format!(
                "request {request}: {} without some of {steady}, missing {:?}",
                answer.contributors, answer.missing
            );
            self.breach("steady members take part", text);
        }
        let mut named = answer.contributors.clone();
        for (names, _) in &answer.missing {
            if names.as_ref().intersects(named.as_ref()) {
                let text = format!("request {request}: {names} of {answer:?}");
                self.breach("named once", text);
            }
            named.union_with(names.as_ref());
        }
    }

    fn judge_part(&mut self, request: Request, called: &Called, answer: &Answer, number: u64) {
        let Some(reduced) = self.reductions.get(&number).copied() else { return };
        // A root that gave up has no value, and says so.
        let Some(value) = &answer.value else { return };
        let sums = self.sums(&answer.contributors);
        if !reduced.is_right(value.as_slice(), &sums, &self.places()) {
            let first = value.as_slice().as_chunks::<8>().0.first();
            let first = first.map(|element| i64::from_le_bytes(*element));
            let text = format!(
                "request {request}, {:?}: {first:x?} instead of hosts {sums:x?}, contributors {}",
                reduced.folding, answer.contributors
            );
            self.breach("each counts once", text);
        }
        if called.host == reduced.root || reduced.to_all {
            let is_root_steady = self.is_steady(reduced.root);
            if is_root_steady {
                let mut steady = self.steady_names();
                if let Some(taken) = &self.taken_over {
                    // Its new member may have called before, or not at all.
                    steady.subtract(taken.names.as_ref());
                }
                self.judge_names(request, called, answer, &steady);
            }
        }
    }

    /// By host, the virtual nodes at one of which its value stands where values have an order: the
    /// first that it carries when it calls.
    fn places(&self) -> Vec<Vec<u32>> {
        (0..self.names.len()).map(|host| self.ever_carried(host).iter().collect()).collect()
    }

    /// What the values of these virtual nodes may add up to: of two hosts that claim the same ones
    /// either counts, as long as both are members.
    fn sums(&self, contributors: &RankSet) -> Vec<i64> {
        let mut sums = Vec::from([0_i64]);
        for (host, names) in self.names.iter().enumerate() {
            let (own, may_count) = self.counted(host, names, contributors);
            if !own.as_ref().intersects(contributors.as_ref()) && !may_count {
                continue;
            }
            let own_digit = digit(host);
            // The heir may have given the value for them.
            if may_count || self.handed.iter().any(|handed| handed.from == host) {
                sums = sums.iter().flat_map(|sum| [*sum, sum + own_digit]).collect();
                continue;
            }
            let rival = self.rival(host).filter(|rival| !self.names[*rival].is_empty());
            sums = match rival {
                // Both are dealt with where the later one of them comes.
                Some(rival) if rival > host => sums,
                Some(rival) => {
                    let either = [own_digit, digit(rival)];
                    sums.iter().flat_map(|sum| either.map(|digit| sum + digit)).collect()
                }
                None => sums.iter().map(|sum| sum + own_digit).collect(),
            };
        }
        sums
    }

    /// The virtual nodes for which a host's value counts, and whether it may count for others that
    /// one host takes from another.
    fn counted(&self, host: usize, names: &RankSet, contributors: &RankSet) -> (RankSet, bool) {
        let Some(taken) = &self.taken_over else { return (names.clone(), false) };
        let own = names.difference(taken.names.as_ref());
        let has_own = own.as_ref().intersects(contributors.as_ref());
        let is_one = host == taken.from || host == taken.to;
        let may_count =
            is_one && !has_own && taken.names.as_ref().intersects(contributors.as_ref());
        (own, may_count)
    }

    /// The host that claims what this one does.
    fn rival(&self, host: usize) -> Option<usize> {
        let pair = self.contested.iter().find(|pair| pair.0 == host || pair.1 == host)?;
        Some(if pair.0 == host { pair.1 } else { pair.0 })
    }

    /// All that get a result get the same.
    fn judge_results(&mut self, calls: &BTreeMap<Request, Called>, world: &GroupWorld) {
        let world_has = |host: usize| world.member(host).is_some();
        let mut results: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for called in calls.values() {
            let (Started::Part { number }, Some(answer)) = (called.what, &called.answer) else {
                continue;
            };
            if let Some(value) = &answer.value {
                results.entry(number).or_default().insert(value.as_slice().to_vec());
            }
            let gives = |host: usize| {
                let part = |called: &Called| {
                    called.host == host
                        && matches!(called.what, Started::Part { number: n } if n == number)
                };
                calls.values().any(part) || (self.faults[host].is_some() && !world_has(host))
            };
            let all_give = (0..self.names.len()).all(gives);
            // Another member is the root from some time on, and may have died.
            let moves = |root: usize| {
                let taken = self.taken_over.as_ref();
                taken.is_some_and(|taken| taken.names.contains(first_name(root)))
            };
            let is_due = all_give
                && self.reductions.get(&number).is_some_and(|reduced| {
                    let root = reduced.root;
                    (reduced.to_all || root == called.host) && self.is_steady(root) && !moves(root)
                });
            if is_due && self.is_steady(called.host) && answer.value.is_none() {
                self.breach("all get the result", format!("reduction {number}: {answer:?}"));
            }
        }
        for (number, values) in results {
            if values.len() > self.roots(number) {
                self.breach("one result", format!("reduction {number}: {} values", values.len()));
            }
        }
    }

    /// How many hosts may each have ended a reduction as its root: one, but where two that claim
    /// its virtual node were members at the same time. Each is the root until it hears of the
    /// other.
    fn roots(&self, number: u64) -> usize {
        let reduced = self.reductions.get(&number);
        reduced.map_or(1, |reduced| self.claimants_at_once(first_name(reduced.root)).max(1))
    }

    /// How many members have claimed a virtual node at one time, the most: when one of them joined.
    fn claimants_at_once(&self, name: u32) -> usize {
        let claims = |known: &&Membership| self.names[known.host].contains(name);
        let known: Vec<&Membership> = self.memberships.iter().filter(claims).collect();
        let at = |time: Time| known.iter().filter(|other| other.is_at(time)).count();
        known.iter().map(|one| at(one.from)).max().unwrap_or(0)
    }

    /// Nothing is left over, and all have one view.
    fn judge_rest(&mut self, world: &GroupWorld) {
        let mut digests = BTreeSet::new();
        let is_healed = self.cut.is_none_or(|cut| cut + HEALING < world.now());
        for host in 0..self.names.len() {
            let Some(member) = world.member(host).filter(|member| !member.view().is_empty()) else {
                continue;
            };
            if member.held() > 0 {
                self.breach("nothing is left over", format!("host {host}: {}", member.held()));
            }
            let record = member.view().record(member.id());
            let is_whole =
                record.is_none_or(|record| record.names.as_set().to_set() == member.names());
            if member.view().is_alive(member.id()) && !is_whole && is_healed {
                self.breach("a virtual node has one member", format!("host {host} lacks some"));
            }
            if member.view().is_alive(member.id()) {
                digests.insert(member.view().digest());
            }
        }
        if digests.len() > 1 && is_healed {
            self.breach("one view", format!("{} views", digests.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many claim one virtual node at once: one dies at 9, and the other joins at this time.
    fn claimants(joins: Time) -> usize {
        let mut oracle = GroupOracle::new(3);
        (0..2).for_each(|host| oracle.started(host, RankSet::range(4, 5), 0));
        oracle.started(2, RankSet::range(6, 7), 0);
        oracle.joined(2, 1);
        oracle.joined(0, 2);
        oracle.ended(0, 9);
        oracle.joined(1, joins);
        oracle.claimants_at_once(4)
    }

    #[test]
    fn two_claim_a_virtual_node_when_both_are_members_at_one_time() {
        assert_eq!(claimants(8), 2);
        assert_eq!(claimants(9), 1, "the other one is dead");
    }
}
