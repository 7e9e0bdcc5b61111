//! Waiting for the end of an operation that was started.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sapwood_group::Payload;

use super::answer::GroupAnswer;
use super::shared::{GroupShared, Outcome};
use crate::{Error, Result};

/// Beyond the deadline of the operation itself, which always gives an answer.
const SLACK: Duration = Duration::from_secs(5);

/// An operation under way. Dropped, it goes on, and its answer is not kept.
#[must_use = "the answer names the missing members"]
pub struct GroupRequest {
    shared: Arc<GroupShared>,
    request: u64,
    finish: Finish,
    deadline: Duration,
    is_taken: bool,
}

/// What is done with the member's answer.
#[derive(Clone, Debug)]
pub(super) enum Finish {
    AsItIs,
    WithoutValue,
    /// The root's own value is its answer.
    Own(Payload),
    /// These parts of the value.
    Blocks(Vec<Range<usize>>),
    /// The answer of another request is not wanted.
    AndForget(u64),
}

impl GroupRequest {
    pub(super) fn new(
        shared: Arc<GroupShared>,
        request: u64,
        finish: Finish,
        deadline: Duration,
    ) -> Self {
        if let Finish::AndForget(other) = finish {
            shared.lock().dropped.push(other);
        }
        Self { shared, request, finish, deadline, is_taken: false }
    }

    /// The answer, if there is one by now; take it once.
    ///
    /// # Errors
    /// As [`GroupRequest::wait`].
    pub fn test(&mut self) -> Result<Option<GroupAnswer>> {
        let outcome = self.shared.lock().outcomes.remove(&self.request);
        match outcome {
            Some(outcome) => self.take(outcome).map(Some),
            None if self.is_taken => Ok(None),
            None => {
                self.shared.lock().check_up()?;
                Ok(None)
            }
        }
    }

    /// Waits for the answer, which comes within the operation's deadline.
    ///
    /// # Errors
    /// [`GroupFailure::Call`](crate::GroupFailure::Call) where the call was wrong,
    /// [`GroupFailure::Ended`](crate::GroupFailure::Ended) where this member is not in the group
    /// any more.
    pub fn wait(mut self) -> Result<GroupAnswer> {
        let limit = self.deadline.saturating_add(SLACK);
        match self.wait_within(limit)? {
            Some(answer) => Ok(answer),
            None => Err(Error::Timeout { what: "answer of the group", waited: limit }),
        }
    }

    /// As [`GroupRequest::wait`], for a part of the time; none if there is no answer yet.
    ///
    /// # Errors
    /// As [`GroupRequest::wait`].
    pub fn wait_within(&mut self, time: Duration) -> Result<Option<GroupAnswer>> {
        let begun = Instant::now();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            if let Some(outcome) = state.outcomes.remove(&self.request) {
                drop(state);
                return self.take(outcome).map(Some);
            }
            state.check_up()?;
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            state = shared.wait(state, left);
        }
    }

    /// Waits until the member says that the caller may leave, or has ended the request; the answer
    /// stays. The time is looked at here, too: timers of the member's thread count milliseconds.
    pub(super) fn wait_to_leave(&self, grace: Duration) {
        if grace.is_zero() {
            return;
        }
        let begun = Instant::now();
        let mut state = self.shared.lock();
        loop {
            let has_ended = state.outcomes.contains_key(&self.request);
            let left = grace.saturating_sub(begun.elapsed());
            let may_leave = state.may_leave.contains(&self.request);
            if has_ended || may_leave || left.is_zero() || state.check_up().is_err() {
                return;
            }
            state = self.shared.wait(state, left);
        }
    }

    /// The group's descriptor, readable while a request has ended.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.shared.notice.as_fd()
    }

    /// Makes the descriptor unreadable until there is news, as [`Group::clear`] does: for loops
    /// that hold requests and not the group.
    ///
    /// [`Group::clear`]: crate::Group::clear
    pub fn clear(&self) {
        self.shared.clear_notice();
    }

    fn take(&mut self, outcome: Outcome) -> Result<GroupAnswer> {
        self.is_taken = true;
        let answer = outcome?;
        Ok(match &self.finish {
            Finish::AsItIs | Finish::AndForget(_) => answer,
            Finish::WithoutValue => answer.without_value(),
            Finish::Own(value) => {
                let GroupAnswer { contributors, missing, .. } = answer;
                GroupAnswer::new(Some(value.clone()), contributors, missing)
            }
            Finish::Blocks(blocks) => answer.with_blocks(blocks),
        })
    }
}

impl std::fmt::Debug for GroupRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Drop for GroupRequest {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !self.is_taken && state.outcomes.remove(&self.request).is_none() {
            state.dropped.push(self.request);
        }
    }
}
