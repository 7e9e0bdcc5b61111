//! What members have noted, joined by operation, and the figures that follow.
//!
//! Of each link and direction: how often its part came last at the parent and by how much, and how
//! long the last segment took. Times of two members are compared by their clocks, which are known
//! to an error; the two-way time of a value and its acknowledgement compares none.

use std::collections::BTreeMap;

use sapwood::{GroupHop, GroupHopKind, GroupHopOperation, MemberId};
use sapwood_trace::ScopeStatistics;

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
struct Stamps {
    entered: Option<u64>,
    request: Option<u64>,
    leaves_early: bool,
    /// Of the last segment to or from another member, by what it was.
    arrived: BTreeMap<MemberId, u64>,
    sent_up: BTreeMap<MemberId, u64>,
    sent_down: BTreeMap<MemberId, u64>,
    came_down: BTreeMap<MemberId, u64>,
    acknowledged: BTreeMap<MemberId, u64>,
    sent_acknowledgement: BTreeMap<MemberId, u64>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Trace {
    operations: BTreeMap<GroupHopOperation, BTreeMap<MemberId, Stamps>>,
    exits: BTreeMap<(MemberId, u64), u64>,
    clocks: BTreeMap<MemberId, MemberClock>,
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
    /// Takes what a member has noted.
    pub(super) fn absorb(&mut self, member: MemberId, clock: MemberClock, hops: &[GroupHop]) {
        let known = self.clocks.entry(member).or_insert(clock);
        if clock.error < known.error {
            *known = clock;
        }
        for hop in hops {
            if let GroupHopKind::Exited { request } = hop.kind {
                self.exits.insert((member, request), hop.time);
            }
            let Some(operation) = hop.operation else { continue };
            let stamps = self.operations.entry(operation).or_default().entry(member).or_default();
            stamps.take(hop);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        for (operation, members) in &self.operations {
            match operation {
                GroupHopOperation::Fold(_) => figures.reductions += 1,
                GroupHopOperation::Cast(_) => figures.transfers += 1,
            }
            for (&member, stamps) in members {
                self.settle_member(member, stamps, &mut figures);
                settle_order(member, stamps, &mut figures);
                for (&child, &arrived) in &stamps.arrived {
                    let link = figures.link(member, child);
                    link.operations += 1;
                    let sent = members.get(&child).and_then(|below| below.sent_up.get(&member));
                    if let Some(&sent) = sent {
                        self.note((child, sent), (member, arrived), &mut link.up, &mut link.error);
                    }
                }
                for (&child, &sent) in &stamps.sent_down {
                    let link = figures.link(member, child);
                    link.operations += u64::from(!stamps.arrived.contains_key(&child));
                    let below = members.get(&child);
                    let came = below.and_then(|below| below.came_down.get(&member));
                    let Some(&came) = came else { continue };
                    self.note((member, sent), (child, came), &mut link.down, &mut link.error);
                    let answered = below.and_then(|below| below.sent_acknowledgement.get(&member));
                    let both = stamps.acknowledged.get(&child).zip(answered);
                    let there = both.map(|(end, answered)| {
                        end.saturating_sub(sent).saturating_sub(answered.saturating_sub(came))
                    });
                    there.into_iter().for_each(|ns| link.two_way.add(ns));
                }
            }
        }
        figures
    }

    /// A time from one member to another, on the same clock.
    fn note(
        &self,
        (from, sent): (MemberId, u64),
        (to, came): (MemberId, u64),
        figure: &mut ScopeStatistics,
        error: &mut u64,
    ) {
        let (Some(one), Some(other)) = (self.clocks.get(&from), self.clocks.get(&to)) else {
            return;
        };
        let ahead = i128::from(other.ahead) - i128::from(one.ahead);
        let time = i128::from(came) - i128::from(sent) - ahead;
        figure.add(u64::try_from(time).unwrap_or(0));
        *error = (*error).max(one.error + other.error);
    }

    fn settle_member(&self, member: MemberId, stamps: &Stamps, figures: &mut Figures) {
        let Some(entered) = stamps.entered else { return };
        let exited = stamps.request.and_then(|request| self.exits.get(&(member, request)));
        let one = figures.members.entry(member).or_default();
        if let Some(exited) = exited {
            one.calls.add(exited.saturating_sub(entered));
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
        let figures = trace.figures();
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
        let figures = trace.figures();
        let link = &figures.links[&LinkEnds { parent: TOP, child: ONE }];
        assert_eq!((link.down.sum, link.two_way.sum, link.operations), (15, 50, 1));
        assert!(figures.members.is_empty() && figures.transfers == 1);
    }
}
