//! The times of each operation for scopes: those of which `passage` makes its figures.

use std::collections::BTreeMap;

use sapwood::{GroupHopOperation, MemberId, Rank};
use sapwood_trace::{
    HopCollective, HopMeasure, HopOperation, HopRole, HopTraffic, HopValue, OTHERS, ScopedHops,
};

use super::passage::{LinkEnds, Members, Stamps, Trace};

/// The scopes over a group, and by which numbers they know its members.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) all: Vec<ScopedHops>,
    /// The first virtual node of each member that has one.
    pub(super) numbers: BTreeMap<MemberId, Rank>,
}

/// A time of one member, of a link its child, in one operation.
struct MemberTime {
    value: HopValue,
    member: MemberId,
    parent: Option<MemberId>,
    ns: u64,
}

impl Trace {
    /// Gives each time of an operation to the scopes. It is called before returns of calls that
    /// belong to it are forgotten.
    pub(super) fn measure(&mut self, operation: &GroupHopOperation, members: &Members) {
        if self.scopes.all.is_empty() {
            return;
        }
        let mut times = Vec::new();
        for (&member, stamps) in members {
            if stamps.is_whole(member, &self.exits) {
                self.add_stay(member, stamps, &mut times);
            }
            for child in stamps.children() {
                self.add_link(LinkEnds { parent: member, child }, members, &mut times);
            }
        }
        let Scopes { all, numbers } = &mut self.scopes;
        let number = |member: &MemberId| numbers.get(member).copied().unwrap_or(OTHERS);
        let traffic = HopTraffic::Operation(match operation {
            GroupHopOperation::Fold(fold) => {
                HopOperation { collective: HopCollective::Reduction, root: fold.root }
            }
            GroupHopOperation::Cast(cast) => {
                HopOperation { collective: HopCollective::Transfer, root: number(&cast.root) }
            }
        });
        for MemberTime { value, member, parent, ns } in times {
            // What a child is, only its own events say.
            let Some(stamps) = members.get(&member) else { continue };
            let role = role(stamps, parent);
            let (process, parent) = (number(&member), parent.as_ref().map(number));
            let measure = HopMeasure { traffic, value, process, parent, role, ns };
            all.iter_mut().for_each(|scope| scope.add(&measure));
        }
    }

    /// How long the parts of its children lay at a member before the last part came, its own
    /// application's included, and how long that lay there before it went up, or at the root before
    /// the call returned.
    fn add_stay(&self, member: MemberId, stamps: &Stamps, times: &mut Vec<MemberTime>) {
        let Some(entered) = stamps.entered else { return };
        let last = stamps.arrived.values().copied().fold(entered, u64::max);
        for (&child, &arrived) in &stamps.arrived {
            let (value, parent) = (HopValue::Wait, Some(member));
            times.push(MemberTime { value, member: child, parent, ns: last - arrived });
        }
        let end = match stamps.sent_up.values().copied().max() {
            None if stamps.arrived.is_empty() => None,
            None => stamps.exited(member, &self.exits),
            sent => sent,
        };
        // What came after a part went up, past a deadline, is not in that part.
        if let Some(ns) = end.and_then(|end| end.checked_sub(last)) {
            times.push(MemberTime { value: HopValue::Inside, member, parent: None, ns });
        }
    }

    fn add_link(&self, ends: LinkEnds, members: &Members, times: &mut Vec<MemberTime>) {
        let link = self.link_times(ends, members);
        for (value, ns) in [
            (HopValue::Up, link.up.map(|time| time.decided().unwrap_or_default())),
            (HopValue::Down, link.down.map(|time| time.decided().unwrap_or_default())),
            (HopValue::TwoWay, link.two_way),
        ] {
            let (member, parent) = (ends.child, Some(ends.parent));
            times.extend(ns.map(|ns| MemberTime { value, member, parent, ns }));
        }
    }
}

/// What a member is in an operation, below this one if a link of it leads there.
fn role(stamps: &Stamps, parent: Option<MemberId>) -> HopRole {
    if parent.is_none() && stamps.sent_up.is_empty() && stamps.came_down.is_empty() {
        HopRole::Root
    } else if stamps.arrived.is_empty() && stamps.sent_down.is_empty() {
        HopRole::Leaf
    } else {
        HopRole::Relay
    }
}

#[cfg(test)]
mod tests {
    use sapwood::{CastId, FoldId, GroupHop, GroupHopKind};
    use sapwood_trace::{HopBy, HopKey, HopScope, HopSource, ScopeCounter, ScopeFigures};

    use super::super::passage::MemberClock;
    use super::*;

    const TOP: MemberId = MemberId(1);
    const ONE: MemberId = MemberId(2);
    const TWO: MemberId = MemberId(3);
    const FOLD: GroupHopOperation = GroupHopOperation::Fold(FoldId { root: 0, number: 1 });

    /// A trace with one scope, in which members are known as 0, 1 and 2.
    fn trace(scope: HopScope) -> Trace {
        let numbers = [(TOP, 0), (ONE, 1), (TWO, 2)].into();
        let all = vec![ScopedHops::new(HopScope { source: HopSource::Group, ..scope })];
        Trace::with_scopes(Scopes { all, numbers })
    }

    fn absorb(
        trace: &mut Trace,
        member: MemberId,
        of: GroupHopOperation,
        hops: &[(u64, GroupHopKind)],
    ) {
        let hop = |&(time, kind): &(u64, GroupHopKind)| {
            let is_exit = matches!(kind, GroupHopKind::Exited { .. });
            GroupHop { time, operation: (!is_exit).then_some(of), kind }
        };
        let hops: Vec<GroupHop> = hops.iter().map(hop).collect();
        trace.absorb(member, MemberClock { ahead: 0, error: 3 }, &hops);
    }

    /// A chain TOP, ONE, TWO: the part of TWO is at ONE before ONE calls, and that of ONE at TOP
    /// after TOP has called.
    fn reduce(trace: &mut Trace) {
        use GroupHopKind::{Arrived, Entered, Exited, SentUp};
        let entered = Entered { request: 7, leaves_early: false };
        let exited = |time| (time, Exited { request: 7 });
        absorb(trace, TWO, FOLD, &[(100, entered), (105, SentUp(ONE)), exited(105)]);
        let one = [(115, Arrived(TWO)), (140, entered), (142, SentUp(TOP)), exited(142)];
        absorb(trace, ONE, FOLD, &one);
        absorb(trace, TOP, FOLD, &[(90, entered), (144, Arrived(ONE)), exited(150)]);
    }

    fn figures(mut trace: Trace) -> ScopeFigures {
        trace.finish();
        trace.scopes.all[0].take()
    }

    /// Sums of the reduction by link, of ends.
    fn by_edge(value: HopValue) -> Vec<(Option<Rank>, Option<Rank>, u64)> {
        let by = HopBy { edge: true, ..HopBy::default() };
        let mut trace = trace(HopScope { value, by, ..HopScope::default() });
        reduce(&mut trace);
        let figures = figures(trace);
        let sums = figures.groups.iter().map(|(key, one)| {
            let key = HopKey::of(*key, by);
            (key.parent, key.process, one.sum)
        });
        sums.collect()
    }

    #[test]
    fn a_part_waits_for_the_last_one_at_its_member() {
        assert_eq!(by_edge(HopValue::Wait), [(Some(0), Some(1), 0), (Some(1), Some(2), 25)]);
    }

    #[test]
    fn times_within_the_error_of_the_clocks_are_0() {
        // Two clocks are wrong by 6 together; the part of ONE took 2.
        assert_eq!(by_edge(HopValue::Up), [(Some(0), Some(1), 0), (Some(1), Some(2), 10)]);
        assert!(by_edge(HopValue::Down).is_empty() && by_edge(HopValue::TwoWay).is_empty());
    }

    #[test]
    fn a_stay_is_told_apart_by_what_a_member_is_and_by_collective_and_root() {
        let by =
            HopBy { process: true, kind: true, collective: true, root: true, ..HopBy::default() };
        let mut trace = trace(HopScope { value: HopValue::Inside, by, ..HopScope::default() });
        reduce(&mut trace);
        let told: Vec<_> = figures(trace)
            .groups
            .iter()
            .map(|(key, one)| {
                let key = HopKey::of(*key, by);
                assert_eq!((key.collective, key.root), (Some(HopCollective::Reduction), Some(0)));
                (key.process, key.role, one.sum)
            })
            .collect();
        let wanted = [
            (Some(0), Some(HopRole::Root), 6),
            (Some(1), Some(HopRole::Relay), 2),
            (Some(2), Some(HopRole::Leaf), 5),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_value_goes_down_from_the_first_virtual_node_of_its_root() {
        use GroupHopKind::{Acknowledged, CameDown, SentAcknowledgement, SentDown};
        let cast = GroupHopOperation::Cast(CastId { root: ONE, number: 1 });
        for (value, ns) in [(HopValue::Down, 15), (HopValue::TwoWay, 35)] {
            let by = HopBy { edge: true, root: true, ..HopBy::default() };
            let mut trace = trace(HopScope { value, by, ..HopScope::default() });
            absorb(&mut trace, ONE, cast, &[(10, SentDown(TOP)), (60, Acknowledged(TOP))]);
            absorb(&mut trace, TOP, cast, &[(25, CameDown(ONE)), (40, SentAcknowledgement(ONE))]);
            let figures = figures(trace);
            let told: Vec<_> =
                figures.groups.iter().map(|(key, one)| (HopKey::of(*key, by), one.sum)).collect();
            let (process, parent, root) = (Some(0), Some(1), Some(1));
            assert_eq!(told, [(HopKey { process, parent, root, ..HopKey::default() }, ns)]);
        }
    }

    #[test]
    fn a_link_to_a_member_that_was_not_read_or_has_no_number_is_in_no_group() {
        use GroupHopKind::{Arrived, Entered, Exited, SentUp};
        let entered = Entered { request: 7, leaves_early: false };
        let (later, empty) = (MemberId(8), MemberId(9));
        let mut trace = trace(HopScope::default());
        absorb(&mut trace, empty, FOLD, &[(1, entered), (2, SentUp(TOP))]);
        let top =
            [(3, entered), (4, Arrived(empty)), (5, Arrived(later)), (6, Exited { request: 7 })];
        absorb(&mut trace, TOP, FOLD, &top);
        let figures = figures(trace);
        let counted = [ScopeCounter::Read, ScopeCounter::Selected].map(|one| figures.counter(one));
        assert_eq!(counted, [1, 0], "that of the member without a virtual node is read");
    }
}
