//! What the application's threads and the member's thread share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sapwood_group::status::Status;
use sapwood_group::trees::TreeKind;
use sapwood_group::{
    Call, Definition, GraceDelay, GraceKey, GroupHopQuestion, MemberHops, MemberId, OperationId,
};
use sapwood_packet::RankSet;
use sapwood_transport::{Poller, Waker};

use super::answer::GroupAnswer;
use super::expectation::{Delivery, Expectation};
use super::failure::GroupFailure;

/// How many notices are kept.
const NOTICES_MAX: usize = 64;

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Its identity.
    pub id: MemberId,
    /// Where it can be dialled.
    pub address: String,
    /// The virtual nodes that it carries.
    pub names: RankSet,
    /// The index of its inferred cluster.
    pub cluster: Option<u16>,
}

/// What the member's thread is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Start an operation; times are in nanoseconds of the driver's clock.
    Call { request: u64, tree: TreeKind, deadline: u64, call: Call },
    /// Wait for what others send.
    Expect { request: u64, expectation: Expectation, deadline: u64 },
    /// Tell how the group is.
    Status { request: u64, tree: TreeKind, root: Option<u32>, bytes: u64 },
    /// Tell what it has noted of operations.
    Hops { request: u64, question: GroupHopQuestion },
    /// Probe for a tree of the paper's rules.
    Track { root: u32, is_bulk: bool },
    /// Know an operation of the application.
    Define { operation: OperationId, definition: Definition },
    /// Leave.
    Leave,
    /// Leave, and hand the own virtual nodes to the member that carries this one.
    LeaveTo(u32),
}

/// The end of a request.
pub(super) type Outcome = Result<GroupAnswer, GroupFailure>;

/// How far the member is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    #[default]
    Joining,
    Joined,
    Failed(GroupFailure),
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct GroupState {
    pub(super) life: Life,
    pub(super) commands: VecDeque<Command>,
    pub(super) outcomes: BTreeMap<u64, Outcome>,
    /// Requests under way whose callers may leave before they have ended.
    pub(super) may_leave: BTreeSet<u64>,
    /// How long callers wait before they leave, by the kinds that wait.
    graces: Vec<GraceDelay>,
    pub(super) statuses: BTreeMap<u64, Box<Status>>,
    pub(super) hops: BTreeMap<u64, Box<MemberHops>>,
    pub(super) deliveries: VecDeque<Delivery>,
    delivery_bytes: usize,
    inbox_bytes: usize,
    pub(super) lost: u64,
    pub(super) everyone: RankSet,
    /// The virtual nodes that this member carries.
    pub(super) names: RankSet,
    pub(super) members: Vec<GroupMember>,
    pub(super) notices: VecDeque<String>,
    /// Requests whose outcome is not wanted any more.
    pub(super) dropped: Vec<u64>,
    /// The operations that the application has defined.
    pub(super) defined: BTreeSet<OperationId>,
    /// Counts requests, and collectives.
    pub(super) next_request: u64,
    pub(super) next_number: u64,
}

pub(super) struct GroupShared {
    state: Mutex<GroupState>,
    changed: Condvar,
    /// Wakes the member's thread.
    pub(super) engine: Waker,
    /// Readable when there is news for the application.
    pub(super) notice: Notice,
}

/// A descriptor that tells of news.
pub(super) struct Notice {
    poller: Mutex<Poller>,
    waker: Waker,
}

impl GroupShared {
    pub(super) fn new(engine: Waker, inbox_bytes: usize) -> crate::Result<Self> {
        let mut poller = Poller::new().map_err(sapwood_runtime::RuntimeError::from)?;
        let waker = poller.waker(0).map_err(sapwood_runtime::RuntimeError::from)?;
        let state =
            GroupState { inbox_bytes, next_request: 1, next_number: 1, ..GroupState::default() };
        Ok(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            engine,
            notice: Notice { poller: Mutex::new(poller), waker },
        })
    }

    /// A thread that has panicked has changed nothing by halves: each change is one statement.
    pub(super) fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, GroupState>,
        time: Duration,
    ) -> MutexGuard<'a, GroupState> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells the application's threads that something has changed.
    pub(super) fn tell(&self) {
        self.changed.notify_all();
        let _ = self.notice.waker.wake();
    }

    /// The same of what concerns no descriptor: no request has ended.
    pub(super) fn tell_callers(&self) {
        self.changed.notify_all();
    }

    pub(super) fn clear_notice(&self) {
        let mut poller = self.notice.poller.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = poller.wait(&mut Vec::new(), Some(Duration::ZERO));
    }
}

impl Notice {
    pub(super) fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.waker)
    }
}

impl GroupState {
    /// Whether the member is in the group.
    pub(super) fn check_up(&self) -> Result<(), GroupFailure> {
        match &self.life {
            Life::Joining | Life::Joined => Ok(()),
            Life::Failed(failure) => Err(failure.clone()),
            Life::Ended => Err(GroupFailure::Ended),
        }
    }

    /// How long a call of a kind waits before it leaves, as the member has reported.
    pub(super) fn grace_of(&self, key: GraceKey) -> Duration {
        let known = self.graces.iter().find(|grace| grace.key == key);
        Duration::from_nanos(known.map_or(0, |grace| grace.delay))
    }

    /// The member tells of few kinds, and when it forgets one.
    pub(super) fn note_grace(&mut self, told: GraceDelay) {
        self.graces.retain(|grace| grace.key != told.key);
        if told.delay > 0 {
            self.graces.push(told);
        }
    }

    /// Forgets what has come for a request; whether anything had.
    pub(super) fn discard(&mut self, request: u64) -> bool {
        self.outcomes.remove(&request).is_some()
            || self.statuses.remove(&request).is_some()
            || self.hops.remove(&request).is_some()
    }

    /// Keeps a value for the application; the oldest go where there are too many.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        self.delivery_bytes += delivery.bytes().len();
        self.deliveries.push_back(delivery);
        while self.delivery_bytes > self.inbox_bytes && self.deliveries.len() > 1 {
            self.take_delivery();
            self.lost += 1;
        }
    }

    pub(super) fn take_delivery(&mut self) -> Option<Delivery> {
        let delivery = self.deliveries.pop_front()?;
        self.delivery_bytes -= delivery.bytes().len();
        Some(delivery)
    }

    pub(super) fn note(&mut self, notice: String) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }
}
