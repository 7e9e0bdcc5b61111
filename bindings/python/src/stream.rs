//! Streams at the front-end.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use sapwood::{FIRST_TAG, Policy, WaveRule};

use crate::answer::Answer;
use crate::awaitable::awaitable;
use crate::encode;
use crate::error::{Failure, unless_full};
use crate::network::{self, FrontEnd, Network};
use crate::ranks::{self, RankSet};
use crate::settings;

// The signatures say it in digits, so that Python's `help` does.
const _: () = assert!(FIRST_TAG == 100);

/// A logical connection between the front-end and a set of back-ends.
#[pyclass(module = "sapwood", frozen, weakref)]
pub(crate) struct Stream {
    /// Keeps the network open.
    network: Py<Network>,
    id: u32,
    members: sapwood::RankSet,
}

impl Stream {
    pub(crate) fn new(network: Py<Network>, id: u32, members: sapwood::RankSet) -> Self {
        Self { network, id, members }
    }

    pub(crate) fn enter<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut sapwood::Stream) -> Result<R, Failure> + Send,
    ) -> PyResult<R> {
        let id = self.id;
        self.network.get().handle.enter(py, move |it| work(it.stream(id)?))
    }
}

#[pymethods]
impl Stream {
    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.id
    }

    /// Its back-ends.
    #[getter]
    fn members(&self) -> RankSet {
        RankSet(self.members.clone())
    }

    #[getter]
    fn network(&self, py: Python<'_>) -> Py<Network> {
        self.network.clone_ref(py)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        let handle = &self.network.get().handle;
        Ok(handle.is_closed() || !handle.enter(py, |it| Ok(it.has_stream(self.id)))?)
    }

    /// Sends values down: to all members, or to those in `to`; an empty `to` sends to no back-end.
    #[pyo3(signature = (*values, tag = 100, to = None, format = None, flush = true))]
    fn send(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        to: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
        flush: bool,
    ) -> PyResult<()> {
        let values = encode::values(values, format)?;
        let to = to.map(ranks::extract).transpose()?;
        let id = self.id;
        self.network.get().handle.enter(py, move |it| {
            let stream = it.stream(id)?;
            match to {
                Some(ranks) => stream.send_to_ranks(ranks, tag, values)?,
                None => stream.broadcast(tag, values)?,
            }
            if flush { it.flush() } else { Ok(()) }
        })
    }

    /// Sends values down as `send` does, if that need not wait; gives whether they were sent.
    #[pyo3(signature = (*values, tag = 100, to = None, format = None, flush = true))]
    fn try_send(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        to: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
        flush: bool,
    ) -> PyResult<bool> {
        let values = encode::values(values, format)?;
        let to = to.map(ranks::extract).transpose()?;
        let id = self.id;
        self.network.get().handle.enter(py, move |it| {
            let stream = it.stream(id)?;
            let sent = match to {
                Some(ranks) => stream.try_send_to_ranks(ranks, tag, values),
                None => stream.try_broadcast(tag, values),
            };
            let is_sent = unless_full(sent)?.is_some();
            if is_sent && flush {
                it.flush()?;
            }
            Ok(is_sent)
        })
    }

    /// As `send`, to be awaited: while the window is full, other tasks run.
    #[pyo3(signature = (*values, tag = 100, to = None, format = None, timeout = None))]
    fn send_async(
        slf: &Bound<'_, Self>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        to: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "send", (slf, values, tag, to, format, timeout))
    }

    /// The next answer that is none to `ask`; waits for it, and not longer than this many seconds
    /// if they are given.
    #[pyo3(signature = (timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<Answer>> {
        let timeout = timeout.map(|timeout| settings::seconds("timeout", timeout)).transpose()?;
        let answer = self.enter(py, move |stream| wait(stream, timeout))?;
        network::answer(py, answer)
    }

    /// The next answer if it is there already.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<Answer>>> {
        let answer = self.enter(py, |stream| Ok(stream.try_recv()?))?;
        answer.map(|answer| network::answer(py, answer)).transpose()
    }

    /// Asks all members and waits for the answer to this question, and not longer than this many
    /// seconds if they are given.
    #[pyo3(signature = (*values, tag = 100, format = None, timeout = None))]
    fn ask(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        format: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Py<Answer>> {
        let values = encode::values(values, format)?;
        let timeout = timeout.map(|timeout| settings::seconds("timeout", timeout)).transpose()?;
        let answer = self.enter(py, move |stream| {
            Ok(match timeout {
                Some(timeout) => stream.ask_timeout(tag, values, timeout)?,
                None => stream.ask(tag, values)?,
            })
        })?;
        network::answer(py, answer)
    }

    /// As `ask`, to be awaited; several questions may be under way.
    #[pyo3(signature = (*values, tag = 100, format = None, timeout = None))]
    fn ask_async(
        slf: &Bound<'_, Self>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        format: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "ask", (slf, values, tag, format, timeout))
    }

    fn _begin_question(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        format: Option<&str>,
    ) -> PyResult<Option<u64>> {
        let values = encode::values(values, format)?;
        let id = self.id;
        self.network.get().handle.enter(py, move |it| {
            let number = it.begin_question(id, tag, values)?;
            it.flush()?;
            Ok(number)
        })
    }

    fn _take_answer(&self, py: Python<'_>, number: u64) -> PyResult<Option<Py<Answer>>> {
        let id = self.id;
        let handle = &self.network.get().handle;
        let answer = handle.enter(py, move |it| it.take_answer(id, number))?;
        answer.map(|answer| network::answer(py, answer)).transpose()
    }

    fn _forget_question(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let id = self.id;
        let handle = &self.network.get().handle;
        if handle.is_closed() {
            return Ok(());
        }
        handle.enter(py, move |it| {
            it.forget_question(id, number);
            Ok(())
        })
    }

    /// As `recv`, to be awaited.
    #[pyo3(signature = (timeout = None))]
    fn recv_async(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "receive", (slf, timeout))
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "next_of", (slf,))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The next answer, until the stream is closed or the network has ended.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Answer>>> {
        let id = self.id;
        let handle = &self.network.get().handle;
        if handle.is_closed() {
            return Ok(None);
        }
        let answer = handle.enter(py, move |it| {
            if !it.has_stream(id) {
                return Ok(None);
            }
            match it.stream(id)?.recv() {
                Ok(answer) => Ok(Some(answer)),
                Err(sapwood::Error::Ended { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        answer.map(|answer| network::answer(py, answer)).transpose()
    }

    /// How many packets were dropped at the front-end, on a stream that drops.
    #[getter]
    fn dropped(&self, py: Python<'_>) -> PyResult<u64> {
        self.enter(py, |stream| Ok(stream.dropped()))
    }

    /// How many answers were discarded because their question was not waited for any more.
    #[getter]
    fn discarded(&self, py: Python<'_>) -> PyResult<u64> {
        self.enter(py, |stream| Ok(stream.discarded()))
    }

    /// As the network's.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.enter(py, |_| Ok(()))?;
        self.network.bind(py).call_method0("fileno")?.extract()
    }

    /// As the network's.
    fn idle_time(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.network.get().handle.enter(py, FrontEnd::idle_seconds)
    }

    /// Closes the stream everywhere.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let handle = &self.network.get().handle;
        if handle.is_closed() {
            return Ok(());
        }
        handle.enter(py, |it| FrontEnd::close_stream(it, self.id))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("<sapwood.Stream {} to '{}'>", self.id, self.members)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.network.get().handle.drop_later(self.id);
    }
}

fn wait(
    stream: &mut sapwood::Stream,
    timeout: Option<Duration>,
) -> Result<sapwood::Answer, Failure> {
    Ok(match timeout {
        Some(timeout) => stream.recv_timeout(timeout)?,
        None => stream.recv()?,
    })
}

/// When a wave is complete: `all`, `immediate`, or a number of seconds after its first packet.
pub(crate) fn wave(named: Option<&Bound<'_, PyAny>>) -> PyResult<WaveRule> {
    let Some(named) = named else { return Ok(WaveRule::All) };
    if let Ok(word) = named.cast::<PyString>() {
        return match &*word.to_cow()? {
            "all" => Ok(WaveRule::All),
            "immediate" => Ok(WaveRule::Immediate),
            other => {
                let text = format!("wave: '{other}' is no rule; use all, immediate or seconds");
                Err(PyValueError::new_err(text))
            }
        };
    }
    let time = settings::seconds("wave", named.extract()?)?;
    let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(WaveRule::Timeout { milliseconds })
}

/// The behaviour of senders when the window is full.
pub(crate) fn policy(name: &str) -> PyResult<Policy> {
    match name {
        "wait" => Ok(Policy::Block),
        "drop-oldest" => Ok(Policy::DropOldest),
        other => {
            let text = format!("policy: '{other}' is none; use wait or drop-oldest");
            Err(PyValueError::new_err(text))
        }
    }
}
