//! What members have noted, joined by operation, and the figures that follow.
//!
//! Of each link and direction: how often its part came last at the parent and by how much, and how
//! long the last segment took. Times of two members are compared by their clocks, which are known
//! to an error; the two-way time of a value and its acknowledgement compares none. Scopes are given
//! the same times (`measure`).

use std::collections::{BTreeMap, BTreeSet};

use sapwood::{GroupHop, GroupHopKind, GroupHopOperation, MemberId};
use sapwood_trace::ScopeStatistics;

use super::measure::Scopes;

/// Rounds of reading after the last event of an operation until it is settled: the events of some
/// members are read one round later.
const ROUNDS: u64 = 2;
/// Operations that wait for events, at most; of more, those that have waited longest are settled.
const OPEN_MAX: usize = 1 << 14;
/// Returns of calls whose operations are not settled, at most; of more, the oldest are forgotten.
const EXITS_MAX: usize = 1 << 16;
/// Of too many entries, this part is removed at once.
const REMOVED_PART: usize = 4;

/// A member's clock beside this process's, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberClock {
    /// By how much it is ahead.
    pub(super) ahead: i64,
    /// By how much that may be wrong, either way.
    pub(super) error: u64,
}

/// What one member has noted of one operation, on its own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    pub(super) entered: Option<u64>,
    request: Option<u64>,
    leaves_early: bool,
    /// Of the last segment to or from another member, by what it was.
    pub(super) arrived: BTreeMap<MemberId, u64>,
    pub(super) sent_up: BTreeMap<MemberId, u64>,
    pub(super) sent_down: BTreeMap<MemberId, u64>,
    pub(super) came_down: BTreeMap<MemberId, u64>,
    acknowledged: BTreeMap<MemberId, u64>,
    sent_acknowledgement: BTreeMap<MemberId, u64>,
}

/// What all members have noted of one operation.
pub(super) type Members = BTreeMap<MemberId, Stamps>;

/// An operation of which more events may come.
#[derive(Debug, Default)]
struct Open {
    members: Members,
    /// The round of reading that brought its last event.
    round: u64,
}

/// The return of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    time: u64,
    /// The round of reading that brought it.
    round: u64,
}

/// What was read, as figures as soon as no further event of an operation is to come.
#[derive(Debug, Default)]
pub(super) struct Trace {
    open: BTreeMap<GroupHopOperation, Open>,
    /// When calls returned, by their members and requests.
    pub(super) exits: BTreeMap<(MemberId, u64), Exit>,
    clocks: BTreeMap<MemberId, MemberClock>,
    round: u64,
    figures: Figures,
    pub(super) scopes: Scopes,
}

/// Figures of a link between two members, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkFigures {
    /// Operations in which a part went up, or a value down.
    pub(super) operations: u64,
    /// In how many the part of this child came last at the parent, its own application's included.
    pub(super) last: u64,
    /// By how much later than what came before it.
    pub(super) margin: ScopeStatistics,
    pub(super) up: ScopeStatistics,
    pub(super) down: ScopeStatistics,
    /// A value down and its acknowledgement up, without the time at the child.
    pub(super) two_way: ScopeStatistics,
    /// Times up and down that are shorter than their clocks are known: these are in no figure.
    pub(super) undecided: u64,
    /// By how much `up` and `down` may be wrong.
    pub(super) error: u64,
}

/// Figures of a member, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberFigures {
    /// From the application's call to its answer.
    pub(super) calls: ScopeStatistics,
    /// In how many reductions its own application came last here, though others are below it.
    pub(super) last: u64,
    pub(super) margin: ScopeStatistics,
    /// Calls that did not wait for the end (application bypass).
    pub(super) left_early: u64,
    /// Parts from below that were there when the application called.
    pub(super) taken_at_call: u64,
    /// Parts that came after a call that did not wait: the progress thread has folded them.
    pub(super) folded_late: u64,
    /// By how much later than the call these came.
    pub(super) lateness: ScopeStatistics,
}

/// Parent and child of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkEnds {
    pub(super) parent: MemberId,
    pub(super) child: MemberId,
}

/// All figures.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) reductions: u64,
    pub(super) transfers: u64,
    pub(super) links: BTreeMap<LinkEnds, LinkFigures>,
    pub(super) members: BTreeMap<MemberId, MemberFigures>,
}

impl Trace {
    /// One that gives the same times to these scopes, too.
    pub(super) fn with_scopes(scopes: Scopes) -> Self {
        Self { scopes, ..Self::default() }
    }

    /// Takes what a member has noted.
    pub(super) fn absorb(&mut self, member: MemberId, clock: MemberClock, hops: &[GroupHop]) {
        let known = self.clocks.entry(member).or_insert(clock);
        if clock.error < known.error {
            *known = clock;
        }
        for hop in hops {
            if let GroupHopKind::Exited { request } = hop.kind {
                self.exits.insert((member, request), Exit { time: hop.time, round: self.round });
                if self.exits.len() > EXITS_MAX {
                    for key in oldest(&self.exits, |exit| exit.round) {
                        self.exits.remove(&key);
                    }
                }
            }
            let Some(operation) = hop.operation else { continue };
            let open = self.open.entry(operation).or_default();
            open.round = self.round;
            open.members.entry(member).or_default().take(hop);
            if self.open.len() > OPEN_MAX {
                self.settle_oldest();
            }
        }
    }

    /// All members were read once: settles the operations of which no event came for some rounds,
    /// and whose calls have returned.
    pub(super) fn end_round(&mut self) {
        self.round += 1;
        let (round, exits) = (self.round, &self.exits);
        let is_over = |_: &GroupHopOperation, open: &mut Open| {
            let returned =
                |(member, stamps): (&MemberId, &Stamps)| stamps.has_returned(*member, exits);
            open.round + ROUNDS <= round && open.members.iter().all(returned)
        };
        let over: Vec<_> = self.open.extract_if(.., is_over).collect();
        over.into_iter().for_each(|(operation, open)| self.settle(&operation, &open.members));
    }

    /// No further events come.
    pub(super) fn finish(&mut self) -> Figures {
        for (operation, open) in std::mem::take(&mut self.open) {
            self.settle(&operation, &open.members);
        }
        std::mem::take(&mut self.figures)
    }

    fn settle_oldest(&mut self) {
        for operation in oldest(&self.open, |open| open.round) {
            if let Some(open) = self.open.remove(&operation) {
                self.settle(&operation, &open.members);
            }
        }
    }

    fn settle(&mut self, operation: &GroupHopOperation, members: &Members) {
        self.measure(operation, members);
        match operation {
            GroupHopOperation::Fold(_) => self.figures.reductions += 1,
            GroupHopOperation::Cast(_) => self.figures.transfers += 1,
        }
        for (&member, stamps) in members {
            if stamps.entered.is_some() && stamps.has_returned(member, &self.exits) {
                settle_order(member, stamps, &mut self.figures);
            }
            self.settle_member(member, stamps);
            for child in stamps.children() {
                let times = self.link_times(LinkEnds { parent: member, child }, members);
                let link = self.figures.link(member, child);
                link.operations += 1;
                link.note(times.up, |link| &mut link.up);
                link.note(times.down, |link| &mut link.down);
                if let Some(ns) = times.two_way {
                    link.two_way.add(ns);
                }
            }
        }
    }

    /// The times of a link in one operation.
    pub(super) fn link_times(&self, ends: LinkEnds, members: &Members) -> LinkTimes {
        let LinkEnds { parent, child } = ends;
        let Some((above, below)) = members.get(&parent).zip(members.get(&child)) else {
            return LinkTimes::default();
        };
        let stamp = |member: MemberId, times: &BTreeMap<MemberId, u64>, other: MemberId| {
            times.get(&other).map(|&time| Stamp { member, time })
        };
        let between = |from: Option<Stamp>, to: Option<Stamp>| self.time_between(from?, to?);
        let (sent, arrived) =
            (stamp(child, &below.sent_up, parent), stamp(parent, &above.arrived, child));
        let (given, came) =
            (stamp(parent, &above.sent_down, child), stamp(child, &below.came_down, parent));
        LinkTimes {
            up: between(sent, arrived),
            down: between(given, came),
            two_way: two_way(ends, above, below),
        }
    }

    /// The time from one member to another, on one clock; none where a clock is not known.
    fn time_between(&self, from: Stamp, to: Stamp) -> Option<TimeBetween> {
        let (one, other) = (self.clocks.get(&from.member)?, self.clocks.get(&to.member)?);
        let ahead = i128::from(other.ahead) - i128::from(one.ahead);
        let error = one.error.saturating_add(other.error);
        Some(TimeBetween { ns: i128::from(to.time) - i128::from(from.time) - ahead, error })
    }

    fn settle_member(&mut self, member: MemberId, stamps: &Stamps) {
        let Some(entered) = stamps.entered else { return };
        let exited = stamps.request.and_then(|request| self.exits.remove(&(member, request)));
        let one = self.figures.members.entry(member).or_default();
        if let Some(exited) = exited {
            one.calls.add(exited.time.saturating_sub(entered));
        }
        one.left_early += u64::from(stamps.leaves_early);
        for &arrived in stamps.arrived.values() {
            if arrived <= entered {
                one.taken_at_call += 1;
            } else if stamps.leaves_early {
                one.folded_late += 1;
                one.lateness.add(arrived - entered);
            }
        }
    }
}

/// A time on a member's clock.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    member: MemberId,
    time: u64,
}

/// A time from one member to another, and by how much it may be wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeBetween {
    ns: i128,
    error: u64,
}

impl TimeBetween {
    /// The time, if it is longer than what the clocks may be wrong by.
    pub(super) fn decided(self) -> Option<u64> {
        u64::try_from(self.ns).ok().filter(|&ns| ns >= self.error)
    }
}

/// The times of a link in one operation, as far as both its ends have noted them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkTimes {
    pub(super) up: Option<TimeBetween>,
    pub(super) down: Option<TimeBetween>,
    /// A value down and its acknowledgement up, without the time at the child.
    pub(super) two_way: Option<u64>,
}

fn two_way(ends: LinkEnds, above: &Stamps, below: &Stamps) -> Option<u64> {
    let (sent, came) = (above.sent_down.get(&ends.child)?, below.came_down.get(&ends.parent)?);
    let answered = below.sent_acknowledgement.get(&ends.parent)?;
    let there = answered.saturating_sub(*came);
    let end = above.acknowledged.get(&ends.child)?;
    Some(end.saturating_sub(*sent).saturating_sub(there))
}

impl LinkFigures {
    /// Adds a time to a figure, if it is longer than what the clocks may be wrong by.
    fn note(
        &mut self,
        time: Option<TimeBetween>,
        figure: impl FnOnce(&mut Self) -> &mut ScopeStatistics,
    ) {
        let Some(time) = time else { return };
        self.error = self.error.max(time.error);
        match time.decided() {
            Some(ns) => figure(self).add(ns),
            None => self.undecided += 1,
        }
    }
}

/// The keys of a part of the entries, those of the earliest rounds.
fn oldest<K: Copy, V>(entries: &BTreeMap<K, V>, round: impl Fn(&V) -> u64) -> Vec<K> {
    let mut keys: Vec<(u64, K)> = entries.iter().map(|(key, one)| (round(one), *key)).collect();
    keys.sort_by_key(|(round, _)| *round);
    keys.truncate(entries.len() / REMOVED_PART);
    keys.into_iter().map(|(_, key)| key).collect()
}

/// Which part came last at a member that has others below it: one of theirs, or its own
/// application's.
fn settle_order(member: MemberId, stamps: &Stamps, figures: &mut Figures) {
    if stamps.arrived.is_empty() {
        return;
    }
    let own = stamps.entered.map(|time| (time, None));
    let parts = stamps.arrived.iter().map(|(&child, &time)| (time, Some(child)));
    let mut order: Vec<(u64, Option<MemberId>)> = parts.chain(own).collect();
    order.sort_unstable();
    let [.., before, last] = &order[..] else { return };
    let margin = last.0 - before.0;
    match last.1 {
        Some(child) => {
            let link = figures.link(member, child);
            link.last += 1;
            link.margin.add(margin);
        }
        None => {
            let own = figures.members.entry(member).or_default();
            own.last += 1;
            own.margin.add(margin);
        }
    }
}

impl Figures {
    fn link(&mut self, parent: MemberId, child: MemberId) -> &mut LinkFigures {
        self.links.entry(LinkEnds { parent, child }).or_default()
    }
}

impl Stamps {
    /// The members below it, in this operation.
    pub(super) fn children(&self) -> BTreeSet<MemberId> {
        self.arrived.keys().chain(self.sent_down.keys()).copied().collect()
    }

    /// Whether the call of its application has returned, or it has not been seen to call.
    fn has_returned(&self, member: MemberId, exits: &BTreeMap<(MemberId, u64), Exit>) -> bool {
        let exited = |request| exits.contains_key(&(member, request));
        self.leaves_early || self.request.is_none_or(exited)
    }

    /// When the call of its application returned.
    pub(super) fn exited(
        &self,
        member: MemberId,
        exits: &BTreeMap<(MemberId, u64), Exit>,
    ) -> Option<u64> {
        exits.get(&(member, self.request?)).map(|exit| exit.time)
    }

    /// Whether all parts that it waits for have come: one that left early sends its part up then.
    pub(super) fn is_whole(
        &self,
        member: MemberId,
        exits: &BTreeMap<(MemberId, u64), Exit>,
    ) -> bool {
        match self.leaves_early {
            true => !self.sent_up.is_empty(),
            false => self.has_returned(member, exits),
        }
    }

    fn take(&mut self, hop: &GroupHop) {
        let last = |times: &mut BTreeMap<MemberId, u64>, member| {
            let time = times.entry(member).or_insert(hop.time);
            *time = hop.time.max(*time);
        };
        match hop.kind {
            GroupHopKind::Entered { request, leaves_early } => {
                self.entered = Some(hop.time);
                (self.request, self.leaves_early) = (Some(request), leaves_early);
            }
            GroupHopKind::Arrived(from) => last(&mut self.arrived, from),
            GroupHopKind::SentUp(to) => last(&mut self.sent_up, to),
            GroupHopKind::SentDown(to) => last(&mut self.sent_down, to),
            GroupHopKind::CameDown(from) => last(&mut self.came_down, from),
            GroupHopKind::Acknowledged(from) => last(&mut self.acknowledged, from),
            GroupHopKind::SentAcknowledgement(to) => last(&mut self.sent_acknowledgement, to),
            GroupHopKind::Delivered | GroupHopKind::Exited { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{CastId, FoldId};

    use super::*;

    const TOP: MemberId = MemberId(1);
    const ONE: MemberId = MemberId(2);
    const TWO: MemberId = MemberId(3);

    fn absorb(
        trace: &mut Trace,
        member: MemberId,
        ahead: i64,
        of: GroupHopOperation,
        hops: &[(u64, GroupHopKind)],
    ) {
        let operation = |kind: &GroupHopKind| match kind {
            GroupHopKind::Exited { .. } => None,
            _ => Some(of),
        };
        let hops: Vec<GroupHop> = hops
            .iter()
            .map(|(time, kind)| GroupHop { time: *time, operation: operation(kind), kind: *kind })
            .collect();
        trace.absorb(member, MemberClock { ahead, error: 3 }, &hops);
    }

    #[test]
    fn the_part_that_came_last_is_named_and_clocks_are_aligned() {
        use GroupHopKind::{Arrived, Entered, Exited, SentUp};
        let mut trace = Trace::default();
        let fold = GroupHopOperation::Fold(FoldId { root: 0, number: 1 });
        let entered = |leaves_early| Entered { request: 7, leaves_early };
        // The clock of ONE is 1000 ahead. TWO sends two segments.
        absorb(&mut trace, ONE, 1000, fold, &[(1100, entered(true)), (1110, SentUp(TOP))]);
        absorb(&mut trace, TWO, 0, fold, &[(90, SentUp(TOP)), (140, SentUp(TOP))]);
        let top = [
            (100, Arrived(TWO)),
            (120, entered(true)),
            (130, Arrived(ONE)),
            (190, Arrived(TWO)),
            (200, Exited { request: 7 }),
        ];
        absorb(&mut trace, TOP, 0, fold, &top);
        let figures = trace.finish();
        assert_eq!((figures.reductions, figures.transfers), (1, 0));
        let link = |child| &figures.links[&LinkEnds { parent: TOP, child }];
        assert_eq!((link(TWO).last, link(TWO).margin.sum, link(ONE).last), (1, 60, 0));
        assert_eq!((link(ONE).up.sum, link(ONE).error), (20, 6));
        assert_eq!(link(TWO).up.sum, 50);
        let top = &figures.members[&TOP];
        assert_eq!((top.calls.sum, top.last), (80, 0));
        assert_eq!((top.left_early, top.taken_at_call, top.folded_late), (1, 0, 2));
        assert_eq!(top.lateness.most, 70);
    }

    #[test]
    fn the_way_down_and_back_needs_no_clocks() {
        use GroupHopKind::{Acknowledged, CameDown, Delivered, SentAcknowledgement, SentDown};
        let mut trace = Trace::default();
        let cast = GroupHopOperation::Cast(CastId { root: TOP, number: 1 });
        absorb(&mut trace, TOP, 0, cast, &[(10, SentDown(ONE)), (100, Acknowledged(ONE))]);
        let below = [(520, CameDown(TOP)), (525, Delivered), (560, SentAcknowledgement(TOP))];
        absorb(&mut trace, ONE, 495, cast, &below);
        let figures = trace.finish();
        let link = &figures.links[&LinkEnds { parent: TOP, child: ONE }];
        assert_eq!((link.down.sum, link.two_way.sum, link.operations), (15, 50, 1));
        assert!(figures.members.is_empty() && figures.transfers == 1);
    }

    #[test]
    fn a_time_within_the_error_of_the_clocks_is_in_no_figure() {
        use GroupHopKind::{Arrived, SentUp};
        let mut trace = Trace::default();
        for (number, arrived) in [(1, 105), (2, 106), (3, 90)] {
            let fold = GroupHopOperation::Fold(FoldId { root: 0, number });
            absorb(&mut trace, ONE, 0, fold, &[(100, SentUp(TOP))]);
            absorb(&mut trace, TOP, 0, fold, &[(arrived, Arrived(ONE))]);
        }
        let figures = trace.finish();
        let link = &figures.links[&LinkEnds { parent: TOP, child: ONE }];
        assert_eq!((link.up.count, link.up.sum, link.undecided, link.error), (1, 6, 2, 6));
    }

    #[test]
    fn operations_are_settled_as_they_end_or_when_there_are_too_many() {
        use GroupHopKind::{Entered, Exited};
        let mut trace = Trace::default();
        let entered = |request| Entered { request, leaves_early: false };
        let fold = |number| GroupHopOperation::Fold(FoldId { root: 0, number });
        absorb(&mut trace, TOP, 0, fold(0), &[(5, entered(0)), (9, Exited { request: 0 })]);
        absorb(&mut trace, TOP, 0, fold(1), &[(20, entered(1))]);
        (0..ROUNDS).for_each(|_| trace.end_round());
        assert_eq!(trace.open.keys().collect::<Vec<_>>(), [&fold(1)], "its call has not returned");
        assert_eq!(trace.figures.members[&TOP].calls.sum, 4);
        assert!(trace.exits.is_empty());
        for number in 2..=OPEN_MAX as u64 + 1 {
            absorb(&mut trace, TOP, 0, fold(number), &[(30, entered(number))]);
        }
        assert_eq!(trace.open.len(), OPEN_MAX + 1 - OPEN_MAX / REMOVED_PART);
        assert!(!trace.open.contains_key(&fold(1)), "it has waited longest");
        assert_eq!(trace.finish().reductions, OPEN_MAX as u64 + 2);
    }

    #[test]
    fn of_too_many_returns_the_oldest_are_forgotten() {
        use GroupHopKind::{Entered, Exited};
        let mut trace = Trace::default();
        // The operations of these were overwritten before they were read.
        for request in 0..EXITS_MAX as u64 {
            let hop = GroupHop { time: 1, operation: None, kind: Exited { request } };
            trace.absorb(TWO, MemberClock { ahead: 0, error: 3 }, &[hop]);
        }
        trace.end_round();
        let fold = GroupHopOperation::Fold(FoldId { root: 0, number: 1 });
        let entered = Entered { request: 0, leaves_early: false };
        absorb(&mut trace, TOP, 0, fold, &[(5, entered), (9, Exited { request: 0 })]);
        assert!(trace.exits.len() <= EXITS_MAX);
        assert_eq!(trace.finish().members[&TOP].calls.sum, 4, "of the lowest member");
    }
}
