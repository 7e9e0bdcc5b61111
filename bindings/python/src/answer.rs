//! Received data: answers at the front-end, packets at a back-end and in a filter.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sapwood::Cause;

use crate::decode;
use crate::error;
use crate::ranks::RankSet;

/// Back-ends that an answer lacks, and why.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct Missing {
    ranks: Py<RankSet>,
    /// Why, for programs: a word.
    cause: &'static str,
    /// The exit status of one that `exited`.
    status: Option<u32>,
    /// The signal of one that was `killed`.
    signal: Option<u32>,
    reason: String,
}

impl Missing {
    pub(crate) fn all(py: Python<'_>, missing: &[sapwood::Missing]) -> PyResult<Vec<Py<Self>>> {
        let of = |missing: &sapwood::Missing| {
            let ranks = Py::new(py, RankSet(missing.ranks.clone()))?;
            let (status, signal) = ending_of(missing.cause);
            let (cause, reason) = (missing.cause.name(), missing.reason.clone());
            Py::new(py, Self { ranks, cause, status, signal, reason })
        };
        missing.iter().map(of).collect()
    }
}

/// The exit status and the signal that a cause has.
pub(crate) fn ending_of(cause: Cause) -> (Option<u32>, Option<u32>) {
    match cause {
        Cause::Exited { status } => (Some(status), None),
        Cause::Killed { signal } => (None, Some(signal)),
        _ => (None, None),
    }
}

#[pymethods]
impl Missing {
    fn __repr__(&self) -> String {
        format!("Missing('{}': {})", self.ranks.get().0, self.reason)
    }
}

/// The result of one wave.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct Answer {
    answer: sapwood::Answer,
    packet: Option<Arc<sapwood::Packet>>,
}

impl Answer {
    pub(crate) fn new(mut answer: sapwood::Answer) -> Self {
        let packet = answer.packet.take().map(Arc::new);
        Self { answer, packet }
    }

    pub(crate) fn packet(&self, py: Python<'_>) -> PyResult<&Arc<sapwood::Packet>> {
        self.packet.as_ref().ok_or_else(|| {
            let missing = self.answer.missing.clone();
            error::of_network(py, &sapwood::Error::NoValue { missing })
        })
    }
}

#[pymethods]
impl Answer {
    /// The value; a tuple where there are several.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        decode::lone(py, self.packet(py)?)
    }

    /// All values.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        decode::values(py, self.packet(py)?)
    }

    /// The format string of the values.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.packet(py)?.format().to_string())
    }

    #[getter]
    fn tag(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.packet(py)?.tag())
    }

    #[getter]
    fn stream(&self) -> u32 {
        self.answer.stream
    }

    #[getter]
    fn wave(&self) -> u64 {
        self.answer.wave
    }

    /// The number of the packet that it answers, counted from 0 in each stream; `None` for what
    /// back-ends have sent unasked.
    #[getter]
    fn question(&self) -> Option<u64> {
        self.answer.question()
    }

    #[getter]
    fn contributors(&self) -> RankSet {
        RankSet(self.answer.contributors.clone())
    }

    #[getter]
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<Py<Missing>>> {
        Missing::all(py, &self.answer.missing)
    }

    #[getter]
    fn is_late(&self) -> bool {
        self.answer.is_late
    }

    #[getter]
    fn is_complete(&self) -> bool {
        self.packet.is_some() && self.answer.missing.is_empty()
    }

    #[getter]
    fn has_value(&self) -> bool {
        self.packet.is_some()
    }

    fn __repr__(&self) -> String {
        let format = match &self.packet {
            Some(packet) => format!("'{}'", packet.format()),
            None => "no value".to_string(),
        };
        let contributors = &self.answer.contributors;
        let mut text = format!("Answer({format} from '{contributors}'");
        for missing in sapwood::Missing::fold(&self.answer.missing) {
            text.push_str(&format!(", without '{}': {}", missing.ranks, missing.reason));
        }
        text.push(')');
        text
    }
}

/// A packet at a back-end, or one of those that a filter is given.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct Packet {
    packet: Arc<sapwood::Packet>,
    stream: u32,
}

impl Packet {
    pub(crate) fn new(packet: sapwood::Packet, stream: u32) -> Self {
        Self { packet: Arc::new(packet), stream }
    }

    pub(crate) fn packet(&self) -> &sapwood::Packet {
        &self.packet
    }
}

#[pymethods]
impl Packet {
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        decode::lone(py, &self.packet)
    }

    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        decode::values(py, &self.packet)
    }

    #[getter]
    fn format(&self) -> String {
        self.packet.format().to_string()
    }

    #[getter]
    fn tag(&self) -> i32 {
        self.packet.tag()
    }

    #[getter]
    fn stream(&self) -> u32 {
        self.stream
    }

    #[getter]
    fn wave(&self) -> u64 {
        self.packet.header.wave
    }

    /// The process that made it.
    #[getter]
    fn origin(&self) -> u32 {
        self.packet.header.origin
    }

    /// The back-ends that it stands for; empty on the way down.
    #[getter]
    fn contributors(&self) -> RankSet {
        RankSet(self.packet.contributors.clone())
    }

    fn __repr__(&self) -> String {
        format!("Packet('{}', tag={}, stream={})", self.packet.format(), self.tag(), self.stream)
    }
}
