//! An operation of a group's member that was started, what it has given, and a value that another
//! member has sent.

use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sapwood::{GroupAnswer, GroupRequest};

use crate::error::{Failure, own};
use crate::handle::relaxed;
use crate::ranks::RankSet;

/// How often Python's signals are looked at during a wait.
pub(crate) const SIGNAL_LOOK: Duration = Duration::from_millis(50);

/// An operation under way.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct GroupCall {
    request: Mutex<Called>,
    deadline: Duration,
}

/// What a call has left behind.
pub(crate) enum Called {
    Request(GroupRequest),
    /// The answer of a reduction that was left early: none but at the root.
    Ended(Option<GroupAnswer>),
    /// Its answer was taken.
    Taken,
}

/// What an operation has given.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct GroupResult {
    answer: GroupAnswer,
}

/// A value that another member has sent.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct GroupValue {
    delivery: sapwood::Delivery,
}

#[pymethods]
impl GroupCall {
    /// The result, if there is one by now.
    fn test(&self, py: Python<'_>) -> PyResult<Option<GroupResult>> {
        self.look(py, Duration::ZERO)
    }

    /// Readable when this or another call of the member may have ended.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        match &*relaxed(&self.request) {
            Called::Request(open) => Ok(open.descriptor().as_raw_fd()),
            _ => Err(Failure::closed("the request").into_error(py)),
        }
    }

    /// Makes the descriptor unreadable until there is news again. Nothing is to be done where the
    /// result was taken, by another thread for example.
    fn clear(&self) {
        if let Called::Request(open) = &*relaxed(&self.request) {
            open.clear();
        }
    }

    /// Waits for the result, which comes within the operation's deadline.
    fn wait(&self, py: Python<'_>) -> PyResult<GroupResult> {
        let begun = Instant::now();
        loop {
            if let Some(result) = self.look(py, SIGNAL_LOOK)? {
                return Ok(result);
            }
            py.check_signals()?;
            if begun.elapsed() > self.deadline.saturating_add(Duration::from_secs(10)) {
                return Err(own(py, "TimeoutError", "no answer of the group in time"));
            }
        }
    }
}

impl GroupCall {
    /// A call that has left this behind, and the limit of its operation.
    pub(crate) fn new(request: Called, deadline: Duration) -> Self {
        Self { request: Mutex::new(request), deadline }
    }

    fn look(&self, py: Python<'_>, time: Duration) -> PyResult<Option<GroupResult>> {
        let waited = py.detach(|| {
            let mut request = relaxed(&self.request);
            let answer = match &mut *request {
                Called::Request(open) => open.wait_within(time)?,
                Called::Ended(answer) => Some(answer.take().unwrap_or_default()),
                Called::Taken => return Err(Failure::closed("the request")),
            };
            if answer.is_some() {
                *request = Called::Taken;
            }
            Ok(answer)
        });
        let answer = waited.map_err(|failure| failure.into_error(py))?;
        Ok(answer.map(|answer| GroupResult { answer }))
    }
}

#[pymethods]
impl GroupResult {
    /// The value, where the operation gives one to this member.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.answer.bytes().ok().map(|bytes| PyBytes::new(py, bytes))
    }

    /// The values of a gather or the like, by virtual node.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> Vec<(u32, Bound<'py, PyBytes>)> {
        let parts = self.answer.parts().unwrap_or_default();
        parts.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, bytes))).collect()
    }

    /// The virtual nodes that have taken part.
    #[getter]
    fn contributors(&self) -> RankSet {
        RankSet(self.answer.contributors.clone())
    }

    /// Those that have not, and why.
    #[getter]
    fn missing(&self) -> Vec<(RankSet, String)> {
        let missing = self.answer.missing.iter();
        missing.map(|(names, why)| (RankSet(names.clone()), why.to_string())).collect()
    }
}

#[pymethods]
impl GroupValue {
    #[getter]
    fn tag(&self) -> u64 {
        self.delivery.tag
    }

    /// The virtual nodes that the sender carried.
    #[getter]
    fn sender(&self) -> RankSet {
        RankSet(self.delivery.sender_names.clone())
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.delivery.bytes())
    }

    /// Its length, without a copy of it.
    #[getter]
    fn nbytes(&self) -> usize {
        self.delivery.bytes().len()
    }
}

impl GroupValue {
    /// As Python sees it.
    pub(crate) fn new(delivery: sapwood::Delivery) -> Self {
        Self { delivery }
    }
}
