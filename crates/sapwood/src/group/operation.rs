//! What members do together: each operation is built, and then started or waited for.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use sapwood_group::trees::TreeKind;
use sapwood_group::{Call, Element, GraceKey, GroupError, Operation as Reduction, Payload};
use sapwood_packet::{Rank, RankSet, nanoseconds};
use sapwood_runtime::clock;

use super::Group;
use super::answer::GroupAnswer;
use super::expectation::{COLLECTIVE, Expectation, What, entry};
use super::failure::GroupFailure;
use super::request::{Finish, GroupRequest};
use super::shared::Command;
use super::value::{Number, bytes_of};
use crate::Result;

/// Longest value of one call, in bytes.
const VALUE_BYTES_MAX: usize = 1 << 30;
/// Longest value that one member gives to a gather, in bytes.
const GATHERED_BYTES_MAX: usize = 8 << 20;
/// The root of an operation whose result all get ends this much before the deadline: until that the
/// others learn what is missing.
const RESULT_TIME: Duration = Duration::from_millis(500);
/// The same of a short deadline is this part of it.
const RESULT_PART: u32 = 4;
/// How many calls may wait to be started.
const COMMANDS_MAX: usize = 1 << 16;

/// An operation that is not started yet.
#[must_use = "an operation does nothing before it is started"]
pub struct GroupOperation<'a> {
    group: &'a Group,
    act: Act,
    tree: TreeKind,
    deadline: Duration,
    number: Option<u64>,
    leaves_early: bool,
}

/// The members that get the result of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receivers {
    Root,
    All,
}

enum Act {
    /// Values for others, with a tag of the application's.
    Send {
        call: Call,
    },
    Broadcast {
        root: Rank,
        value: Option<Vec<u8>>,
    },
    Scatter {
        root: Rank,
        values: Option<Vec<(Rank, Vec<u8>)>>,
    },
    AllToAll {
        values: Vec<(Rank, Vec<u8>)>,
    },
    Reduce {
        root: Option<Rank>,
        reduction: Reduction,
        element: Element,
        value: Vec<u8>,
        receivers: Receivers,
    },
    Blocks {
        root: Option<Rank>,
        reduction: Reduction,
        element: Element,
        value: Vec<u8>,
        /// The own parts of the result, in bytes.
        blocks: Vec<Range<usize>>,
    },
}

impl Group {
    /// The member that carries the virtual node `root` sends a value to all; it alone gives one.
    pub fn broadcast(&self, root: Rank, value: Option<Vec<u8>>) -> GroupOperation<'_> {
        self.operation(Act::Broadcast { root, value })
    }

    /// Each virtual node gets its value from the member that carries `root`, which alone gives
    /// them. The answer's [`GroupAnswer::parts`] are those of this member's virtual nodes.
    pub fn scatter(&self, root: Rank, values: Option<Vec<(Rank, Vec<u8>)>>) -> GroupOperation<'_> {
        self.operation(Act::Scatter { root, values })
    }

    /// Each member sends a value to each virtual node, by the first one that it carries. The
    /// answer's [`GroupAnswer::parts`] are by sender; where this member carries several virtual
    /// nodes, those of one sender are in their order.
    pub fn all_to_all(&self, values: Vec<(Rank, Vec<u8>)>) -> GroupOperation<'_> {
        self.operation(Act::AllToAll { values })
    }

    /// Numbers of all members are combined, element by element; the member that carries `root` gets
    /// the result.
    pub fn reduce<T: Number>(
        &self,
        root: Rank,
        reduction: Reduction,
        numbers: &[T],
    ) -> GroupOperation<'_> {
        self.reduction(Some(root), reduction, numbers, Receivers::Root)
    }

    /// As [`Group::reduce`], and all get the result. The member that carries the smallest virtual
    /// node combines last; [`GroupOperation::root`] names another one.
    pub fn allreduce<T: Number>(&self, reduction: Reduction, numbers: &[T]) -> GroupOperation<'_> {
        self.reduction(None, reduction, numbers, Receivers::All)
    }

    /// As [`Group::allreduce`], but each member gets only its block of the result: `counts` gives
    /// how many elements each virtual node gets, in order, the same at all members. One that
    /// carries several virtual nodes gets the block of each, one after the other.
    ///
    /// # Errors
    /// [`GroupFailure::Call`] where the counts do not add up to the numbers.
    pub fn reduce_scatter<T: Number>(
        &self,
        reduction: Reduction,
        numbers: &[T],
        counts: &[(Rank, usize)],
    ) -> Result<GroupOperation<'_>> {
        let all: usize = counts.iter().map(|entry| entry.1).sum();
        if all != numbers.len() {
            let bytes = size_of_val(numbers) as u64;
            return Err(GroupFailure::Call(GroupError::Value { bytes }).into());
        }
        let size = T::ELEMENT.bytes();
        let own = self.names();
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for (name, count) in counts {
            let end = start + count * size;
            match blocks.last_mut() {
                _ if !own.contains(*name) => {}
                Some(last) if last.end == start => last.end = end,
                _ => blocks.push(start..end),
            }
            start = end;
        }
        let (root, value, element) = (None, bytes_of(numbers), T::ELEMENT);
        Ok(self.operation(Act::Blocks { root, reduction, element, value, blocks }))
    }

    /// Waits until all have called it.
    pub fn barrier(&self) -> GroupOperation<'_> {
        self.reduction::<u8>(None, Reduction::Sum, &[], Receivers::All)
    }

    /// The member that carries `root` gets the values of all, by the first virtual node of each.
    pub fn gather(&self, root: Rank, value: Vec<u8>) -> GroupOperation<'_> {
        self.gathering(Some(root), value, Receivers::Root)
    }

    /// As [`Group::gather`], and all get the values.
    pub fn allgather(&self, value: Vec<u8>) -> GroupOperation<'_> {
        self.gathering(None, value, Receivers::All)
    }

    /// Sends a value to the member that carries a virtual node; it gets it by [`Group::receive`].
    /// The answer says whether it has come.
    pub fn send(&self, to: Rank, tag: u64, value: Vec<u8>) -> GroupOperation<'_> {
        let value = Payload::from(value);
        self.operation(Act::Send { call: Call::Direct { to, value, tag: tag & !COLLECTIVE } })
    }

    /// Sends a value to all, which get it by [`Group::receive`]: a broadcast without a counterpart,
    /// for members that come and go.
    pub fn publish(&self, tag: u64, value: Vec<u8>) -> GroupOperation<'_> {
        let value = Payload::from(value);
        let call = Call::Broadcast { targets: None, value, tag: tag & !COLLECTIVE };
        self.operation(Act::Send { call })
    }

    fn reduction<T: Number>(
        &self,
        root: Option<Rank>,
        reduction: Reduction,
        numbers: &[T],
        receivers: Receivers,
    ) -> GroupOperation<'_> {
        let (value, element) = (bytes_of(numbers), T::ELEMENT);
        self.operation(Act::Reduce { root, reduction, element, value, receivers })
    }

    fn gathering(
        &self,
        root: Option<Rank>,
        value: Vec<u8>,
        receivers: Receivers,
    ) -> GroupOperation<'_> {
        let (reduction, element) = (Reduction::Gather, Element::Byte);
        self.operation(Act::Reduce { root, reduction, element, value, receivers })
    }

    fn operation(&self, act: Act) -> GroupOperation<'_> {
        let (tree, deadline) = (self.tree, self.deadline);
        GroupOperation { group: self, act, tree, deadline, number: None, leaves_early: false }
    }
}

impl<'a> GroupOperation<'a> {
    /// By which tree; that of the builder otherwise.
    pub fn tree(mut self, tree: TreeKind) -> Self {
        self.tree = tree;
        self
    }

    /// By when there is an answer, whatever is missing; that of the builder otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The number of the call, by which those of different members are matched: below 2^62, and
    /// used once. Otherwise each member counts its calls.
    pub fn number(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    /// At which virtual node the values of an operation for all are combined.
    pub fn root(mut self, rank: Rank) -> Self {
        if let Act::Reduce { root, .. } | Act::Blocks { root, .. } = &mut self.act {
            *root = Some(rank);
        }
        self
    }

    /// The caller does not wait for the end.
    pub(super) fn leaving_early(mut self) -> Self {
        self.leaves_early = true;
        self
    }

    pub(super) fn group(&self) -> &'a Group {
        self.group
    }

    pub(super) fn limit(&self) -> Duration {
        self.deadline
    }

    /// The root of a reduction whose result no other member gets, and the length of the value.
    pub(super) fn root_and_bytes(&self) -> Option<(Rank, usize)> {
        match &self.act {
            Act::Reduce { root: Some(root), value, receivers: Receivers::Root, .. } => {
                Some((*root, value.len()))
            }
            _ => None,
        }
    }

    /// Of which kind such a reduction is, for the history of its calls.
    pub(super) fn grace_key(&self) -> Option<GraceKey> {
        match &self.act {
            Act::Reduce {
                root: Some(root), reduction, value, receivers: Receivers::Root, ..
            } => Some(GraceKey::new(*root, self.tree, *reduction, value.len() as u64)),
            _ => None,
        }
    }

    /// Starts it and waits for the end.
    ///
    /// # Errors
    /// As [`GroupOperation::start`] and [`GroupRequest::wait`].
    pub fn wait(self) -> Result<GroupAnswer> {
        self.start()?.wait()
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`GroupFailure::Call`] where the call is wrong, [`GroupFailure::Ended`] where this member is
    /// not in the group any more.
    pub fn start(self) -> Result<GroupRequest> {
        let Self { group, act, tree, deadline, number, leaves_early } = self;
        act.check()?;
        let mut state = group.shared.lock();
        state.check_up()?;
        if state.commands.len() >= COMMANDS_MAX {
            return Err(GroupFailure::Call(GroupError::Busy).into());
        }
        let request = state.next_request;
        // An all-to-all takes two.
        state.next_request += 2;
        let number = match (number, &act) {
            (Some(number), _) => number | 1 << 62,
            (None, Act::Send { .. }) => 0,
            (None, _) => {
                state.next_number += 1;
                state.next_number
            }
        };
        let (own, everyone) = (state.names.clone(), state.everyone.clone());
        let plan = Plan { tree, request, number, deadline, leaves_early, own, everyone };
        let (commands, finish) = plan.commands(act)?;
        state.commands.extend(commands);
        drop(state);
        let _ = group.shared.engine.wake();
        Ok(GroupRequest::new(Arc::clone(&group.shared), request, finish, deadline))
    }
}

impl Act {
    /// Refuses what is too long.
    fn check(&self) -> Result<()> {
        let long = |bytes: usize, most: usize| {
            let bytes = bytes as u64;
            let failure = GroupFailure::TooLong { bytes, most: most as u64 };
            if bytes > most as u64 { Err(failure.into()) } else { Ok(()) }
        };
        let all = |values: &[(Rank, Vec<u8>)]| {
            long(values.iter().map(|entry| entry.1.len()).sum(), VALUE_BYTES_MAX)
        };
        match self {
            Self::Send { call: Call::Broadcast { value, .. } | Call::Direct { value, .. } } => {
                long(value.len(), VALUE_BYTES_MAX)
            }
            Self::Send { .. } => Ok(()),
            Self::Broadcast { value, .. } => {
                long(value.as_ref().map_or(0, Vec::len), VALUE_BYTES_MAX)
            }
            Self::Scatter { values, .. } => values.as_deref().map_or(Ok(()), all),
            Self::AllToAll { values } => all(values),
            Self::Reduce { reduction, value, .. } if reduction.keeps_apart() => {
                long(value.len(), GATHERED_BYTES_MAX)
            }
            Self::Reduce { value, .. } | Self::Blocks { value, .. } => {
                long(value.len(), VALUE_BYTES_MAX)
            }
        }
    }
}

/// How an operation is started.
struct Plan {
    tree: TreeKind,
    request: u64,
    number: u64,
    deadline: Duration,
    leaves_early: bool,
    /// The virtual nodes of this member.
    own: RankSet,
    everyone: RankSet,
}

impl Plan {
    fn commands(&self, act: Act) -> Result<(Vec<Command>, Finish)> {
        let tag = COLLECTIVE | self.number;
        let own = &self.own;
        Ok(match act {
            Act::Send { call } => (vec![self.call(call)], Finish::WithoutValue),
            Act::Broadcast { root, value } if own.contains(root) => {
                let bytes = value.ok_or_else(|| no_value(root))?;
                let value = Payload::from(bytes);
                let call = Call::Broadcast { targets: None, value: value.clone(), tag };
                (vec![self.call(call)], Finish::Own(value))
            }
            Act::Broadcast { root, .. } => {
                (vec![self.expect(self.request, tag, What::Value { root })], Finish::AsItIs)
            }
            Act::Scatter { root, values } if own.contains(root) => {
                let values = values.ok_or_else(|| no_value(root))?;
                let mut mine = Vec::new();
                let mut others = Vec::new();
                for (name, value) in values {
                    match own.contains(name) {
                        true => mine.extend(entry(name, &value)),
                        false => others.push((name, Payload::from(value))),
                    }
                }
                let call = Call::Scatter { values: others, tag };
                (vec![self.call(call)], Finish::Own(Payload::from(mine)))
            }
            Act::Scatter { root, .. } => {
                let what = What::Own { root, names: own.clone() };
                (vec![self.expect(self.request, tag, what)], Finish::AsItIs)
            }
            Act::AllToAll { values } => self.all_to_all(tag, values),
            Act::Reduce { root, reduction, element, value, receivers } => {
                let call = self.reduce(root, reduction, element, value, receivers);
                (vec![self.call_to_root(call)], Finish::AsItIs)
            }
            Act::Blocks { root, reduction, element, value, blocks } => {
                let call = self.reduce(root, reduction, element, value, Receivers::All);
                (vec![self.call_to_root(call)], Finish::Blocks(blocks))
            }
        })
    }

    /// The values go out under a request of their own; this one ends when all have come.
    fn all_to_all(&self, tag: u64, values: Vec<(Rank, Vec<u8>)>) -> (Vec<Command>, Finish) {
        let me = self.own.as_ref().first().unwrap_or(0);
        let names: RankSet = values.iter().map(|entry| entry.0).collect();
        let sent = |(to, value): (Rank, Vec<u8>)| (to, Payload::from(entry(me, &value)));
        let call = Call::Scatter { values: values.into_iter().map(sent).collect(), tag };
        let mut send = self.call(call);
        if let Command::Call { request, .. } = &mut send {
            *request = self.request + 1;
        }
        let own = self.own.clone();
        let expect = self.expect(self.request, tag, What::Each { names, own });
        (vec![expect, send], Finish::AndForget(self.request + 1))
    }

    fn reduce(
        &self,
        root: Option<Rank>,
        operation: Reduction,
        element: Element,
        value: Vec<u8>,
        receivers: Receivers,
    ) -> Call {
        let root = root.or(self.everyone.as_ref().first()).unwrap_or(0);
        let (number, value) = (self.number, Payload::from(value));
        let (to_all, leaves_early) = (receivers == Receivers::All, self.leaves_early);
        Call::Reduce { root, number, operation, element, value, to_all, leaves_early }
    }

    fn call(&self, call: Call) -> Command {
        let deadline = after(self.deadline);
        Command::Call { request: self.request, tree: self.tree, deadline, call }
    }

    /// If something is missing, a result for all leaves the root before the deadline of those that
    /// wait for it.
    fn call_to_root(&self, call: Call) -> Command {
        let is_root_of_all = matches!(
            &call,
            Call::Reduce { root, to_all: true, .. } if self.own.contains(*root)
        );
        let result_time = RESULT_TIME.min(self.deadline / RESULT_PART);
        let less = if is_root_of_all { result_time } else { Duration::ZERO };
        let deadline = after(self.deadline.saturating_sub(less));
        Command::Call { request: self.request, tree: self.tree, deadline, call }
    }

    fn expect(&self, request: u64, tag: u64, what: What) -> Command {
        let expectation = Expectation::new(tag, what);
        Command::Expect { request, expectation, deadline: after(self.deadline) }
    }
}

fn after(time: Duration) -> u64 {
    clock().0.saturating_add(nanoseconds(time))
}

fn no_value(root: Rank) -> GroupFailure {
    GroupFailure::Call(GroupError::Name { names: RankSet::range(root, root) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The deadline of the call of a member with the virtual nodes 0 and 1 to a reduction.
    fn deadline_of_call(root: Rank, deadline: Duration, receivers: Receivers) -> u64 {
        let (own, everyone) = (RankSet::range(0, 1), RankSet::range(0, 3));
        let (tree, request, number, leaves_early) = (TreeKind::default(), 1, 1, false);
        let plan = Plan { tree, request, number, deadline, leaves_early, own, everyone };
        let call = plan.reduce(Some(root), Reduction::Sum, Element::I64, vec![0; 8], receivers);
        let Command::Call { deadline, .. } = plan.call_to_root(call) else {
            panic!("a reduction is a call")
        };
        deadline
    }

    #[test]
    fn no_member_waits_beyond_its_deadline_and_the_root_of_all_ends_before() {
        for long in [Duration::from_millis(1), Duration::from_secs(1), Duration::from_secs(30)] {
            let begin = after(Duration::ZERO);
            let at_root = deadline_of_call(1, long, Receivers::All);
            let elsewhere = deadline_of_call(2, long, Receivers::All);
            let alone = deadline_of_call(1, long, Receivers::Root);
            let end = after(long);
            assert!(at_root < elsewhere && elsewhere <= end && alone <= end, "{long:?}");
            assert!(at_root > begin, "{long:?}: the root waits");
        }
    }
}
