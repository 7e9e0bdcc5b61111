//! Values that others send: put together from their parts, and matched with the calls that wait for
//! them.

use std::collections::{BTreeMap, VecDeque};

use sapwood_group::operations::contributions;
use sapwood_group::{CastId, MemberId, Payload, Reason};
use sapwood_packet::{Rank, RankSet};

use super::answer::GroupAnswer;

/// Tags from here on belong to collectives; those of applications are below.
pub(super) const COLLECTIVE: u64 = 1 << 63;

/// Values of collectives that have come before this member's call, in bytes; the oldest go.
const EARLY_BYTES_MAX: usize = 1 << 30;

/// A value that is not whole after this long is given up: its sender is gone, in nanoseconds.
const PARTIAL_LIFE: u64 = 60_000_000_000;

/// A value for virtual nodes of this member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The number that the sender gave with it.
    pub tag: u64,
    /// The virtual nodes of this member that it is for.
    pub names: RankSet,
    /// The sender.
    pub sender: MemberId,
    /// The virtual nodes that the sender carried.
    pub sender_names: RankSet,
    value: Payload,
}

impl Delivery {
    /// The value.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.value.as_slice()
    }
}

/// What a call waits for.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) tag: u64,
    pub(super) what: What,
    /// Parts that have come.
    parts: Vec<u8>,
    have: RankSet,
    /// Those of an all-to-all, by sender and by the virtual node that they are for.
    pairs: BTreeMap<(Rank, Rank), Vec<u8>>,
    /// Whose values have come for each virtual node of this member.
    senders: BTreeMap<Rank, RankSet>,
}

/// The kinds of collectives that wait for others' values.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// One value from the member that carries this virtual node.
    Value { root: Rank },
    /// The values of the member's own virtual nodes, from the one that carries `root`.
    Own { root: Rank, names: RankSet },
    /// One value for each of the member's own virtual nodes from each of the members that carry
    /// these.
    Each { names: RankSet, own: RankSet },
}

impl Expectation {
    pub(super) fn new(tag: u64, what: What) -> Self {
        let (parts, have) = (Vec::new(), RankSet::new());
        Self { tag, what, parts, have, pairs: BTreeMap::new(), senders: BTreeMap::new() }
    }

    /// Takes a value; gives the answer if that was all.
    fn take(&mut self, delivery: &Delivery) -> Option<GroupAnswer> {
        match &self.what {
            What::Value { root } => {
                let contributors = RankSet::range(*root, *root);
                Some(GroupAnswer::new(Some(delivery.value.clone()), contributors, Vec::new()))
            }
            What::Own { root, names } => {
                for name in delivery.names.iter() {
                    self.parts.extend_from_slice(&entry(name, delivery.bytes()));
                }
                self.have.union_with(delivery.names.as_ref());
                let is_all = names.as_ref().is_within(self.have.as_ref());
                let contributors = RankSet::range(*root, *root);
                is_all.then(|| {
                    let value = Payload::from(std::mem::take(&mut self.parts));
                    GroupAnswer::new(Some(value), contributors, Vec::new())
                })
            }
            What::Each { own, .. } => {
                for to in delivery.names.iter() {
                    let senders = self.senders.entry(to).or_default();
                    // A member sends by one of its virtual nodes for all of them.
                    senders.union_with(delivery.sender_names.as_ref());
                    for (from, value) in contributions(delivery.bytes()) {
                        senders.insert(from);
                        self.pairs.insert((from, to), value.to_vec());
                    }
                }
                let mut of_each = own.iter().map(|to| self.senders.get(&to).cloned());
                let first = of_each.next().flatten().unwrap_or_default();
                self.have = of_each.fold(first, |mut have, senders| {
                    have.intersect_with(senders.unwrap_or_default().as_ref());
                    have
                });
                None
            }
        }
    }

    /// What an all-to-all has, if those that it lacks are not carried by members any more.
    pub(super) fn settle(&mut self, everyone: &RankSet) -> Option<GroupAnswer> {
        let What::Each { names, .. } = &self.what else { return None };
        let missing = names.difference(self.have.as_ref());
        if missing.as_ref().intersects(everyone.as_ref()) {
            return None;
        }
        Some(self.end(Reason::Dead))
    }

    /// What there is at the end.
    pub(super) fn end(&mut self, reason: Reason) -> GroupAnswer {
        let (wanted, has_parts) = match &self.what {
            What::Value { root } | What::Own { root, .. } => (RankSet::range(*root, *root), false),
            What::Each { names, .. } => (names.clone(), true),
        };
        for ((from, _), value) in std::mem::take(&mut self.pairs) {
            if self.have.contains(from) {
                self.parts.extend_from_slice(&entry(from, &value));
            }
        }
        let missing = wanted.difference(self.have.as_ref());
        let value = has_parts.then(|| Payload::from(std::mem::take(&mut self.parts)));
        let missing = if missing.is_empty() { Vec::new() } else { vec![(missing, reason)] };
        let contributors = if has_parts { self.have.clone() } else { RankSet::new() };
        GroupAnswer::new(value, contributors, missing)
    }

    /// The virtual node without whose member nothing comes.
    pub(super) fn root(&self) -> Option<Rank> {
        match &self.what {
            What::Value { root } | What::Own { root, .. } => Some(*root),
            What::Each { .. } => None,
        }
    }
}

/// One entry of a list of values: 4 bytes of virtual node, 4 of length, then the value.
pub(super) fn entry(name: Rank, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + value.len());
    bytes.extend_from_slice(&name.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// A value of which parts have come.
#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
    /// The virtual nodes by how many bytes of the value have come for them: a member may carry
    /// millions, which mostly get the same parts.
    have: BTreeMap<u64, RankSet>,
    touched: u64,
}

impl Partial {
    /// As many bytes more have come for these virtual nodes; gives those that have all of `whole`.
    fn advance(&mut self, names: &RankSet, bytes: u64, whole: u64) -> RankSet {
        let mut rest = names.clone();
        let mut further = Vec::new();
        for (have, of) in &mut self.have {
            let mut both = of.clone();
            both.intersect_with(names.as_ref());
            if both.is_empty() {
                continue;
            }
            of.subtract(both.as_ref());
            rest.subtract(both.as_ref());
            further.push((have + bytes, both));
        }
        further.push((bytes, rest));
        for (have, names) in further {
            self.have.entry(have).or_default().union_with(names.as_ref());
        }
        let complete = self.have.remove(&whole).unwrap_or_default();
        self.have.retain(|_, names| !names.is_empty());
        complete
    }
}

/// Puts values together.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    partial: BTreeMap<CastId, Partial>,
}

/// A part of a value, as the member delivers it.
pub(super) struct Piece {
    pub(super) cast: CastId,
    pub(super) names: RankSet,
    pub(super) offset: u64,
    pub(super) data: Payload,
    pub(super) bytes: u64,
}

impl Assembly {
    /// Takes a part; gives the virtual nodes that have the whole value now, and the value.
    pub(super) fn take(&mut self, now: u64, piece: Piece) -> Option<(RankSet, Payload)> {
        let Piece { cast, names, offset, data, bytes } = piece;
        if data.len() as u64 == bytes {
            return Some((names, data));
        }
        if data.is_empty() {
            return None;
        }
        let partial = self.partial.entry(cast).or_default();
        partial.touched = now;
        let whole = usize::try_from(bytes).ok()?;
        if partial.bytes.is_empty() {
            partial.bytes.try_reserve_exact(whole).ok()?;
            partial.bytes.resize(whole, 0);
        }
        let start = usize::try_from(offset).ok()?;
        let place = partial.bytes.get_mut(start..start.checked_add(data.len())?)?;
        place.copy_from_slice(data.as_slice());
        let complete = partial.advance(&names, data.len() as u64, bytes);
        if complete.is_empty() {
            return None;
        }
        let is_last = partial.have.is_empty();
        let value = if is_last {
            self.partial.remove(&cast).map(|partial| partial.bytes).unwrap_or_default()
        } else {
            partial.bytes.clone()
        };
        Some((complete, Payload::from(value)))
    }

    /// Forgets what will not become whole; gives how many values that were.
    pub(super) fn expire(&mut self, now: u64) -> u64 {
        let before = self.partial.len();
        self.partial.retain(|_, partial| partial.touched + PARTIAL_LIFE > now);
        (before - self.partial.len()) as u64
    }
}

/// The calls that wait, and values that have come before their calls.
#[derive(Debug, Default)]
pub(super) struct Matching {
    waiting: BTreeMap<u64, Waiting>,
    early: VecDeque<Delivery>,
    early_bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    expectation: Expectation,
    deadline: u64,
    reason: Reason,
}

impl Matching {
    /// A call waits from now on; gives its answer if all has come.
    pub(super) fn expect(
        &mut self,
        request: u64,
        mut expectation: Expectation,
        deadline: u64,
        everyone: &RankSet,
    ) -> Option<GroupAnswer> {
        let (mine, others): (VecDeque<Delivery>, VecDeque<Delivery>) =
            self.early.drain(..).partition(|delivery| delivery.tag == expectation.tag);
        self.early = others;
        let mut answer = None;
        for delivery in mine {
            self.early_bytes -= delivery.bytes().len();
            answer = answer.or_else(|| expectation.take(&delivery));
        }
        if answer.is_none() && self.has_all(&expectation) {
            answer = expectation.settle(everyone);
        }
        if answer.is_none() {
            self.waiting
                .insert(request, Waiting { expectation, deadline, reason: Reason::Deadline });
        }
        answer
    }

    /// An all-to-all is over at its start only if something has come: members may be missing from
    /// the view of one that has just joined.
    fn has_all(&self, expectation: &Expectation) -> bool {
        !expectation.have.is_empty()
    }

    /// A value of a collective has come; gives the request that it completes. Values that were
    /// dropped are counted in the second part.
    pub(super) fn come(
        &mut self,
        delivery: Delivery,
        everyone: &RankSet,
    ) -> (Option<(u64, GroupAnswer)>, u64) {
        let found = self.waiting.iter_mut().find(|entry| entry.1.expectation.tag == delivery.tag);
        let Some((&request, waiting)) = found else {
            self.early_bytes += delivery.bytes().len();
            self.early.push_back(delivery);
            let mut lost = 0;
            while self.early_bytes > EARLY_BYTES_MAX {
                let Some(oldest) = self.early.pop_front() else { break };
                self.early_bytes -= oldest.bytes().len();
                lost += 1;
            }
            return (None, lost);
        };
        let answer = waiting.expectation.take(&delivery);
        let answer = answer.or_else(|| waiting.expectation.settle(everyone));
        if answer.is_some() {
            self.waiting.remove(&request);
        }
        (answer.map(|answer| (request, answer)), 0)
    }

    /// A member is gone: calls that wait for it alone end soon, and all-to-alls without it.
    pub(super) fn gone(
        &mut self,
        names: &RankSet,
        grace: u64,
        everyone: &RankSet,
    ) -> Vec<(u64, GroupAnswer)> {
        let mut ended = Vec::new();
        for (&request, waiting) in &mut self.waiting {
            if waiting.expectation.root().is_some_and(|root| names.contains(root)) {
                waiting.deadline = waiting.deadline.min(grace);
                waiting.reason = Reason::RootLost;
            } else if let Some(answer) = waiting.expectation.settle(everyone) {
                ended.push((request, answer));
            }
        }
        for (request, _) in &ended {
            self.waiting.remove(request);
        }
        ended
    }

    /// The calls whose time is over.
    pub(super) fn expire(&mut self, now: u64) -> Vec<(u64, GroupAnswer)> {
        let is_late = |entry: &(&u64, &Waiting)| entry.1.deadline <= now;
        let late: Vec<u64> = self.waiting.iter().filter(is_late).map(|entry| *entry.0).collect();
        let mut ended = Vec::new();
        for request in late {
            if let Some(mut waiting) = self.waiting.remove(&request) {
                ended.push((request, waiting.expectation.end(waiting.reason)));
            }
        }
        ended
    }

    /// When to call [`Matching::expire`].
    pub(super) fn next_deadline(&self) -> Option<u64> {
        self.waiting.values().map(|waiting| waiting.deadline).min()
    }

    /// All calls that wait, at the end of the member.
    pub(super) fn take_all(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.waiting).into_keys().collect()
    }
}

impl Delivery {
    pub(super) fn new(
        tag: u64,
        names: RankSet,
        (sender, sender_names): (MemberId, RankSet),
        value: Payload,
    ) -> Self {
        Self { tag, names, sender, sender_names, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(names: RankSet, offset: u64) -> Piece {
        let cast = CastId { root: MemberId(1), number: 1 };
        Piece { cast, names, offset, data: Payload::from(vec![offset as u8; 4]), bytes: 8 }
    }

    #[test]
    fn millions_of_virtual_nodes_get_a_value_in_parts_without_an_entry_for_each() {
        let mut assembly = Assembly::default();
        let many = RankSet::range(0, (1 << 24) - 1);
        assert_eq!(assembly.take(0, piece(many.clone(), 0)), None);
        let entries = || assembly.partial.values().flat_map(|partial| partial.have.values());
        assert_eq!(entries().map(|names| names.as_ref().ranges().len()).collect::<Vec<_>>(), [1]);
        let (complete, value) = assembly.take(0, piece(many.clone(), 4)).expect("it is whole");
        assert_eq!((complete, value.as_slice()), (many, &[0, 0, 0, 0, 4, 4, 4, 4][..]));
        assert!(assembly.partial.is_empty());
    }

    #[test]
    fn virtual_nodes_that_get_parts_apart_have_the_value_when_each_has_all() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.take(0, piece(RankSet::range(0, 3), 0)), None);
        let of = |taken: Option<(RankSet, Payload)>| taken.map(|taken| taken.0.to_string());
        assert_eq!(of(assembly.take(0, piece(RankSet::range(2, 5), 4))).as_deref(), Some("2-3"));
        assert_eq!(of(assembly.take(0, piece(RankSet::range(0, 1), 4))).as_deref(), Some("0-1"));
        assert_eq!(of(assembly.take(0, piece(RankSet::range(4, 5), 0))).as_deref(), Some("4-5"));
        assert!(assembly.partial.is_empty());
    }
}
