//! Groups: collectives between peers, any member as root, while members join, leave and die.
//!
//! [`Group`] is the handle of one member. The member itself lives on a thread of its own
//! (`engine`), since others send through it whatever the application does. `operation` builds what
//! is started, `definition` has functions of the program fold values, `request` waits for the end,
//! `bypass` leaves a reduction early, `expectation` matches what arrives with the calls that wait
//! for it, and `value` turns numbers into bytes.

mod answer;
mod builder;
mod bypass;
mod definition;
mod engine;
mod expectation;
mod failure;
mod operation;
mod request;
mod shared;
mod value;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sapwood_group::status::Status;
use sapwood_group::trees::TreeKind;
use sapwood_group::{GroupError, GroupHopQuestion, MemberHops, ReduceCounts};
use sapwood_packet::{Rank, RankSet};

pub use answer::GroupAnswer;
pub(crate) use builder::Occupant;
pub use builder::{GroupBuilder, ask_group, key_from_environment, trace_member};
pub use bypass::BypassCount;
pub use expectation::Delivery;
pub use failure::GroupFailure;
pub use operation::GroupOperation;
pub use request::GroupRequest;
pub use shared::GroupMember;
pub use value::Number;

use crate::{Error, Result};
use bypass::Left;
use engine::EngineThread;
use sapwood_transport::Key;
use shared::{Command, GroupShared, GroupState};

/// How long a member that leaves serves others, at most.
const LEAVE_DEADLINE: Duration = Duration::from_secs(5);

/// One member of a group.
///
/// All members call collectives in the same order, as in MPI; calls are matched by counting them.
/// A program whose members come and go names each call itself ([`GroupOperation::number`]), or uses
/// [`Group::publish`] and [`Group::send`], which need no counterpart.
///
/// ```
/// use sapwood::{Group, Key, Reduction};
/// use std::time::Duration;
///
/// fn main() -> sapwood::Result<()> {
///     let key = Key::generate()?;
///     let first = Group::builder(key.clone()).name(0).create()?;
///     let second = Group::builder(key).name(1).join(&first.address())?;
///     first.wait_for(2, Duration::from_secs(10))?;
///     second.wait_for(2, Duration::from_secs(10))?;
///
///     // The calls of two members, started side by side, as two processes would.
///     let sent = first.broadcast(0, Some(b"hello".to_vec())).start()?;
///     let got = second.broadcast(0, None).wait()?;
///     assert_eq!(got.bytes()?, b"hello");
///     assert!(sent.wait()?.missing.is_empty());
///
///     let one = first.allreduce(Reduction::Sum, &[1_i64, 10]).start()?;
///     let two = second.allreduce(Reduction::Sum, &[2_i64, 20]).wait()?;
///     assert_eq!(two.numbers::<i64>()?, [3, 30]);
///     assert_eq!(one.wait()?.contributors.to_string(), "0-1");
///
///     second.leave()?;
///     first.leave()
/// }
/// ```
pub struct Group {
    shared: Arc<GroupShared>,
    thread: Option<EngineThread>,
    address: String,
    space: u32,
    tree: TreeKind,
    deadline: Duration,
    left: Mutex<Left>,
}

impl Group {
    /// A member to be, which creates a group or joins one.
    #[must_use]
    pub fn builder(key: Key) -> GroupBuilder {
        GroupBuilder::new(key)
    }

    /// Where others dial this member; joining needs this and the key.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// The virtual nodes that this member carries, with those that others have handed to it.
    #[must_use]
    pub fn names(&self) -> RankSet {
        self.shared.lock().names.clone()
    }

    /// The size of the name space.
    #[must_use]
    pub fn space(&self) -> u32 {
        self.space
    }

    /// The virtual nodes that are carried by members, as this member knows them.
    #[must_use]
    pub fn everyone(&self) -> RankSet {
        self.shared.lock().everyone.clone()
    }

    /// The members, as this member knows them.
    #[must_use]
    pub fn members(&self) -> Vec<GroupMember> {
        self.shared.lock().members.clone()
    }

    /// Waits until this many virtual nodes are carried.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`GroupFailure::Ended`] if this member is not in the group any more.
    pub fn wait_for(&self, count: u64, deadline: Duration) -> Result<()> {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        while state.everyone.len() < count {
            state.check_up()?;
            let left = deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Error::Timeout { what: "full group", waited: deadline });
            }
            state = self.shared.wait(state, left);
        }
        Ok(())
    }

    /// Waits for a value that another member has sent to a virtual node of this one, or published.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`GroupFailure::Ended`] if this member is not in the group any more.
    pub fn receive(&self, deadline: Duration) -> Result<Delivery> {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        loop {
            if let Some(delivery) = state.take_delivery() {
                return Ok(delivery);
            }
            state.check_up()?;
            let left = deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(Error::Timeout { what: "delivery", waited: deadline });
            }
            state = self.shared.wait(state, left);
        }
    }

    /// What this member has noted of operations: when its application called, when parts and values
    /// came and went, and when the application had its answer. The question has it note more, for
    /// as long as it says; nothing is noted before the first one.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`GroupFailure::Ended`] if this member is not in the group any more.
    pub fn hops(&self, question: GroupHopQuestion) -> Result<MemberHops> {
        let command = |request| Command::Hops { request, question };
        let told = self.ask_engine("events", command, |state, request| state.hops.remove(&request));
        told.map(|told| *told)
    }

    /// How the group is, as this member sees it, with the tree by which a value of a length would
    /// go from a virtual node, or else from this member.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`GroupFailure::Ended`] if this member is not in the group any more.
    pub fn status(&self, tree: TreeKind, root: Option<Rank>, bytes: u64) -> Result<Status> {
        let command = |request| Command::Status { request, tree, root, bytes };
        let told =
            self.ask_engine("status", command, |state, request| state.statuses.remove(&request));
        told.map(|told| *told)
    }

    /// Has the member's thread carry out a command, and waits for what it tells.
    fn ask_engine<T>(
        &self,
        what: &'static str,
        command: impl FnOnce(u64) -> Command,
        take: impl Fn(&mut GroupState, u64) -> Option<T>,
    ) -> Result<T> {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        let request = state.next_request;
        state.next_request += 1;
        state.commands.push_back(command(request));
        let _ = self.shared.engine.wake();
        loop {
            if let Some(told) = take(&mut state, request) {
                return Ok(told);
            }
            state.check_up()?;
            let left = self.deadline.saturating_sub(begun.elapsed());
            if left.is_zero() {
                state.dropped.push(request);
                return Err(Error::Timeout { what, waited: self.deadline });
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Has this member probe for its parent in the tree of the paper's rules from this virtual
    /// node: [`TreeKind::PaperLatency`] or [`TreeKind::PaperBandwidth`]; other trees need no probes
    /// of their own. All members call it before the first operation by that tree, which is flat
    /// until they have.
    ///
    /// # Errors
    /// [`GroupFailure::Call`] if no member carries the virtual node; [`GroupFailure::Ended`] if
    /// this member is not in the group any more.
    pub fn track(&self, tree: TreeKind, root: Rank) -> Result<()> {
        let mut state = self.shared.lock();
        state.check_up()?;
        if !state.everyone.contains(root) {
            let names = RankSet::range(root, root);
            return Err(GroupFailure::Call(GroupError::Name { names }).into());
        }
        if tree.is_paper() {
            let is_bulk = tree == TreeKind::PaperBandwidth;
            state.commands.push_back(Command::Track { root, is_bulk });
            drop(state);
            let _ = self.shared.engine.wake();
        }
        Ok(())
    }

    /// Values that were dropped, since the application did not take them: the oldest ones beyond
    /// [`GroupBuilder::inbox_bytes`].
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lock().lost
    }

    /// What has become of the reductions that this member has left early
    /// ([`GroupOperation::bypass`]).
    #[must_use]
    pub fn bypassed(&self) -> BypassCount {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// What this member has done with the parts of reductions that came to it: how many came before
    /// and after its own calls, and were copied, and how often calls waited before they left.
    ///
    /// # Errors
    /// As [`Group::status`], of which it is a part.
    pub fn reduce_counts(&self) -> Result<ReduceCounts> {
        self.status(TreeKind::Flat, None, 0).map(|status| status.reductions)
    }

    fn left(&self) -> &Mutex<Left> {
        &self.left
    }

    /// What this member has noticed of links that could not be used, the oldest first; each once.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        self.shared.lock().notices.drain(..).collect()
    }

    /// A descriptor that is readable while a request has ended or a value has come, for programs
    /// that wait in a loop of their own. [`Group::clear`] makes it unreadable.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.notice.as_fd()
    }

    /// Makes [`Group::descriptor`] unreadable until there is news; then test all requests.
    pub fn clear(&self) {
        self.shared.clear_notice();
    }

    /// Leaves: what this member has accepted to pass on is passed on first.
    ///
    /// # Errors
    /// [`Error::Timeout`] if that has not ended in time; the member is gone all the same.
    pub fn leave(mut self) -> Result<()> {
        self.stop(Command::Leave)
    }

    /// Leaves, and hands the virtual nodes of this member to the one that carries `heir`: what is
    /// sent to them meanwhile is delivered by one of the two. If that member is not there or leaves
    /// itself, two others are asked; if none takes them no member carries them afterwards, as after
    /// [`Group::leave`].
    ///
    /// # Errors
    /// [`Error::Timeout`] if that has not ended in time; the member is gone all the same.
    pub fn leave_to(mut self, heir: Rank) -> Result<()> {
        self.stop(Command::LeaveTo(heir))
    }

    fn stop(&mut self, way: Command) -> Result<()> {
        match self.thread.take() {
            Some(thread) => thread.stop(&self.shared, way, LEAVE_DEADLINE),
            None => Ok(()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.stop(Command::Leave);
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group")
            .field("address", &self.address)
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
