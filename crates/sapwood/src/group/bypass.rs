//! Reductions that a member leaves before those below it have come.
//!
//! In an ordinary reduction an inner member of the tree waits for the slowest member below it. With
//! application bypass (Wagner, Buntinas, Panda, Brightwell: "Application-Bypass Reduction for
//! Large-Scale Clusters", Cluster 2003) its call returns once its value is handed over: what the
//! reduction still needs (its intermediate result, parent, and the children that have not come)
//! stays with the member's own thread, which finishes it while the application computes. That
//! thread sleeps in the kernel meanwhile. Several such reductions may be open; [`Left`] bounds
//! them.
//!
//! A call waits for a moment before it leaves where the member has measured that the values from
//! below nearly always come within it; otherwise it does not even ask the member's thread.

use std::collections::VecDeque;
use std::time::Duration;

use super::answer::GroupAnswer;
use super::failure::GroupFailure;
use super::operation::GroupOperation;
use super::request::GroupRequest;
use crate::{Error, Result};

/// Most reductions that a member may have left and that are not passed on yet.
const LEFT_MAX: usize = 1024;
/// Most bytes of its own values in these.
const LEFT_BYTES_MAX: usize = 64 << 20;
/// Beyond the deadline of a reduction, which always ends.
const SLACK: Duration = Duration::from_secs(5);

/// What has become of the reductions that a member has left ([`GroupOperation::bypass`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassCount {
    /// Not passed on yet.
    pub open: usize,
    /// Passed on to the parent, with all that had come from below.
    pub passed_on: u64,
    /// Ended otherwise: refused, or this member left the group.
    pub failed: u64,
}

/// The reductions that a member has left, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Left {
    open: VecDeque<Open>,
    bytes: usize,
    passed_on: u64,
    failed: u64,
}

#[derive(Debug)]
struct Open {
    request: GroupRequest,
    bytes: usize,
    deadline: Duration,
}

impl Left {
    pub(super) fn count(&mut self) -> BypassCount {
        self.sweep();
        let Self { passed_on, failed, .. } = *self;
        BypassCount { open: self.open.len(), passed_on, failed }
    }

    /// Forgets those that have ended. They end in no order, so that all are looked at.
    fn sweep(&mut self) {
        let open = std::mem::take(&mut self.open);
        for mut one in open {
            match one.request.test() {
                Ok(None) => self.open.push_back(one),
                ended => self.end(one.bytes, &ended),
            }
        }
    }

    fn end(&mut self, bytes: usize, ended: &Result<Option<GroupAnswer>>) {
        self.bytes -= bytes;
        match ended {
            Ok(_) => self.passed_on += 1,
            Err(_) => self.failed += 1,
        }
    }

    /// Waits for the oldest ones until one more of this length has room.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let is_full =
            |left: &Self| left.open.len() >= LEFT_MAX || left.bytes + bytes > LEFT_BYTES_MAX;
        if is_full(self) {
            self.sweep();
        }
        while is_full(self) {
            // A single value may be longer than all that may be open.
            let Some(mut oldest) = self.open.pop_front() else { break };
            let limit = oldest.deadline.saturating_add(SLACK);
            let ended = oldest.request.wait_within(limit);
            self.end(oldest.bytes, &ended);
            if matches!(ended, Ok(None)) {
                return Err(Error::Timeout {
                    what: "end of a reduction that was left",
                    waited: limit,
                });
            }
        }
        Ok(())
    }

    fn push(&mut self, request: GroupRequest, bytes: usize, deadline: Duration) {
        self.bytes += bytes;
        self.open.push_back(Open { request, bytes, deadline });
    }
}

impl GroupOperation<'_> {
    /// Starts a reduction or a gather and, but for the root, does not wait for its end: the call
    /// of an inner member returns once its value is handed over, and the member's own thread
    /// passes on what comes from below, early, late or never (application bypass). Where these
    /// values have come within a moment so far, it waits for them ([`GroupBuilder::grace`]). The
    /// root waits, and gets the answer; the others get none. Of a member at most 1,024 reductions
    /// are open, and 64 MiB of its values; a call beyond waits for the oldest one.
    ///
    /// # Errors
    /// [`GroupFailure::NoBypass`] for an operation whose result all members get;
    /// [`Error::Timeout`] where there is no room by the deadline of the oldest one; as
    /// [`GroupOperation::start`] and [`GroupRequest::wait`].
    ///
    /// [`GroupBuilder::grace`]: super::GroupBuilder::grace
    pub fn bypass(self) -> Result<Option<GroupAnswer>> {
        let Some((root, bytes)) = self.root_and_bytes() else {
            return Err(GroupFailure::NoBypass.into());
        };
        if self.group().names().contains(root) {
            return self.wait().map(Some);
        }
        let group = self.group();
        let grace = self.grace_key().map(|key| group.shared.lock().grace_of(key));
        let (left, deadline) = (group.left(), self.limit());
        left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).make_room(bytes)?;
        let request = self.leaving_early().start()?;
        request.wait_to_leave(grace.unwrap_or_default());
        left.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(request, bytes, deadline);
        Ok(None)
    }
}
