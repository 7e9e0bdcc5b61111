//! A back-end: a leaf of the tree, in the application's own process.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use sapwood::{Received, Values};
use sapwood_node::NodeError;

use crate::answer::Packet;
use crate::awaitable::awaitable;
use crate::encode;
use crate::error::{Failure, unless_full};
use crate::event::Event;
use crate::handle::{Handle, Signals, Thing};
use crate::settings;

/// What is due at a back-end by the clock alone may be so late: news of its links, no packets.
const IDLE_SECONDS: f64 = 0.05;

/// Values of at most this many bytes are sent without releasing the interpreter lock.
const AT_ONCE_BYTES: usize = 16 << 10;

/// A back-end as a thread may have it.
pub(crate) struct Leaf(sapwood::BackEnd);

// SAFETY: a back-end shares none of its memory; what is counted without locks in it is empty at a
// back-end (the planned tree) or the hook that asks for signals, which may go from thread to
// thread. A `Handle` lets one thread at a time in.
unsafe impl Send for Leaf {}

impl Leaf {
    fn send(
        &mut self,
        stream: u32,
        tag: i32,
        values: Values,
        wave: Option<u64>,
    ) -> sapwood::Result<()> {
        match wave {
            Some(wave) => self.0.send_in_wave(stream, wave, tag, values),
            None => self.0.send(stream, tag, values),
        }
    }

    /// Sends the values if that does not wait; they are still there if it would.
    fn send_at_once(
        &mut self,
        stream: u32,
        tag: i32,
        values: &mut Option<Values>,
        wave: Option<u64>,
    ) -> sapwood::Result<()> {
        if self.0.has_room(stream)?
            && let Some(values) = values.take()
        {
            self.send(stream, tag, values, wave)?;
        }
        Ok(())
    }

    /// Answers a packet if that does not wait; the values are still there if it would. Gives
    /// whether the stream is open.
    fn reply_at_once(
        &mut self,
        to: &sapwood::Packet,
        values: &mut Option<Values>,
    ) -> Result<bool, Failure> {
        match self.0.has_room(to.header.stream) {
            Ok(false) => return Ok(true),
            Ok(true) => {}
            Err(error) => return was_open(Err(error)),
        }
        let Some(values) = values.take() else { return Ok(true) };
        self.reply(to, values)
    }

    fn reply(&mut self, to: &sapwood::Packet, values: Values) -> Result<bool, Failure> {
        let is_open = self.0.reply(to, values)?;
        self.let_answer_leave()?;
        Ok(is_open)
    }

    /// Writes an answer, unless others are about to follow: the packets that they answer are here
    /// already.
    fn let_answer_leave(&mut self) -> sapwood::Result<()> {
        if self.0.waiting() == 0 { self.0.flush() } else { Ok(()) }
    }
}

/// Whether the stream was still open.
fn was_open(sent: sapwood::Result<()>) -> Result<bool, Failure> {
    match sent {
        Ok(()) => Ok(true),
        Err(sapwood::Error::Misuse(NodeError::Stream { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What is small enough to be sent at once, and the rest.
fn is_small(values: &Values) -> bool {
    values.as_ref().body().len() <= AT_ONCE_BYTES
}

impl Thing for Leaf {
    const NAME: &'static str = "back-end";

    fn sweep(&mut self, _: Vec<u32>) {}

    fn close(self) -> sapwood::Result<()> {
        self.0.leave()
    }
}

/// A leaf of the tree.
#[pyclass(module = "sapwood", frozen, weakref)]
pub(crate) struct BackEnd {
    handle: Handle<Leaf>,
    rank: u32,
    descriptor: i32,
}

impl BackEnd {
    fn keep(
        py: Python<'_>,
        attach: impl FnOnce() -> sapwood::Result<sapwood::BackEnd> + Send,
    ) -> PyResult<Self> {
        let signals = Signals::default();
        let attached = py.detach(|| {
            attach().map(|mut back_end| {
                back_end.interrupt(signals.hook());
                Leaf(back_end)
            })
        });
        let mut leaf = signals.raise(py, attached)?;
        let (rank, descriptor) = (leaf.0.rank(), leaf.0.descriptor());
        Ok(Self { handle: Handle::new(leaf, signals), rank, descriptor })
    }
}

#[pymethods]
impl BackEnd {
    /// Joins the network that has started this program.
    #[classmethod]
    fn from_environment(_: &Bound<'_, PyType>, py: Python<'_>) -> PyResult<Self> {
        Self::keep(py, sapwood::BackEnd::attach)
    }

    /// Joins a network by its attach file.
    #[classmethod]
    #[pyo3(signature = (path, rank = None))]
    #[allow(clippy::needless_pass_by_value, reason = "a path is made for this call")]
    fn attach(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        rank: Option<u32>,
    ) -> PyResult<Self> {
        Self::keep(py, || sapwood::BackEnd::attach_by_file(&path, rank))
    }

    #[getter]
    fn rank(&self) -> u32 {
        self.rank
    }

    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The next packet on any stream; waits for it, and not longer than this many seconds if they
    /// are given.
    #[pyo3(signature = (timeout = None))]
    fn recv(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<Packet>> {
        let timeout = timeout.map(|timeout| settings::seconds("timeout", timeout)).transpose()?;
        let received = self.handle.enter(py, move |leaf| wait(leaf, timeout))?;
        packet(py, received)
    }

    /// The next packet if it is there already.
    fn try_recv(&self, py: Python<'_>) -> PyResult<Option<Py<Packet>>> {
        let received = self.handle.enter(py, |Leaf(back_end)| Ok(back_end.try_recv()?))?;
        received.map(|received| packet(py, received)).transpose()
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

    /// The next packet, until the network ends.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Packet>>> {
        if self.handle.is_closed() {
            return Ok(None);
        }
        let received = self.handle.enter(py, |Leaf(back_end)| match back_end.recv() {
            Ok(received) => Ok(Some(received)),
            Err(sapwood::Error::Ended { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        })?;
        received.map(|received| packet(py, received)).transpose()
    }

    /// Sends values up on a stream, in its next wave: unasked, as the answer to no packet in
    /// particular, which `reply` is for.
    #[pyo3(signature = (stream, *values, tag = 100, wave = None, format = None))]
    fn send(
        &self,
        py: Python<'_>,
        stream: u32,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        wave: Option<u64>,
        format: Option<&str>,
    ) -> PyResult<()> {
        let values = encode::values(values, format)?;
        let mut left = Some(values);
        if left.as_ref().is_some_and(is_small) {
            let send = |leaf: &mut Leaf| Ok(leaf.send_at_once(stream, tag, &mut left, wave)?);
            self.handle.touch(py, send)?;
        }
        match left {
            None => Ok(()),
            Some(values) => {
                self.handle.enter(py, move |leaf| Ok(leaf.send(stream, tag, values, wave)?))
            }
        }
    }

    /// Sends values up as `send` does, if that need not wait; gives whether they were sent.
    #[pyo3(signature = (stream, *values, tag = 100, format = None))]
    fn try_send(
        &self,
        py: Python<'_>,
        stream: u32,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        format: Option<&str>,
    ) -> PyResult<bool> {
        let values = encode::values(values, format)?;
        self.handle.enter(py, move |Leaf(back_end)| {
            Ok(unless_full(back_end.try_send(stream, tag, values))?.is_some())
        })
    }

    /// As `send`, to be awaited: while the window is full, other tasks run.
    #[pyo3(signature = (stream, *values, tag = 100, format = None, timeout = None))]
    fn send_async(
        slf: &Bound<'_, Self>,
        stream: u32,
        values: &Bound<'_, PyTuple>,
        tag: i32,
        format: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "send_up", (slf, stream, values, tag, format, timeout))
    }

    /// Answers a packet of the front-end's, and no other: sends values up on its stream with its
    /// tag. They leave at once if no other packet is here to be answered. Gives whether that stream
    /// is still open: the front-end that has closed it wants no answer.
    #[pyo3(signature = (to, *values, format = None))]
    fn reply(
        &self,
        py: Python<'_>,
        to: &Bound<'_, Packet>,
        values: &Bound<'_, PyTuple>,
        format: Option<&str>,
    ) -> PyResult<bool> {
        let values = encode::values(values, format)?;
        let to = to.get().packet();
        let mut left = Some(values);
        let mut is_open = true;
        if left.as_ref().is_some_and(is_small) {
            is_open = self.handle.touch(py, |leaf| leaf.reply_at_once(to, &mut left))?;
        }
        match left {
            Some(values) if is_open => self.handle.enter(py, move |leaf| leaf.reply(to, values)),
            _ => Ok(is_open),
        }
    }

    /// As `reply`, to be awaited: while the window is full, other tasks run.
    #[pyo3(signature = (to, *values, format = None, timeout = None))]
    fn reply_async(
        slf: &Bound<'_, Self>,
        to: &Bound<'_, Packet>,
        values: &Bound<'_, PyTuple>,
        format: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        awaitable(slf.py(), "reply", (slf, to, values, format, timeout))
    }

    /// Whether the stream is open; nothing while its window is full.
    fn _try_reply(
        &self,
        py: Python<'_>,
        to: &Bound<'_, Packet>,
        values: &Bound<'_, PyTuple>,
        format: Option<&str>,
    ) -> PyResult<Option<bool>> {
        let values = encode::values(values, format)?;
        let to = to.get().packet();
        self.handle.enter(py, move |leaf| {
            let is_open = unless_full(leaf.0.try_reply(to, values))?;
            if is_open.is_some() {
                leaf.let_answer_leave()?;
            }
            Ok(is_open)
        })
    }

    /// Writes the packets sent so far.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.enter(py, |Leaf(back_end)| Ok(back_end.flush()?))
    }

    /// Waits until a stream is open here, for a back-end that speaks first; gives its number.
    fn wait_for_stream(&self, py: Python<'_>, timeout: f64) -> PyResult<u32> {
        let timeout = settings::seconds("timeout", timeout)?;
        self.handle.enter(py, move |Leaf(back_end)| Ok(back_end.wait_for_stream(timeout)?))
    }

    /// Lets the network work for at most this many seconds, until something has happened.
    #[pyo3(signature = (timeout = 0.0))]
    fn turn(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = settings::seconds("timeout", timeout)?;
        self.handle.enter(py, move |Leaf(back_end)| Ok(back_end.turn(timeout).map(|_| ())?))?;
        py.check_signals()
    }

    /// The events of this back-end since the last call.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.handle.enter(py, |Leaf(back_end)| {
            Ok(std::iter::from_fn(|| back_end.next_event()).collect::<Vec<_>>())
        })?;
        let events = events.into_iter().map(|event| Py::new(py, Event::new(py, event)?));
        PyList::new(py, events.collect::<PyResult<Vec<_>>>()?)
    }

    /// How many of this back-end's packets were dropped on a stream that drops.
    fn dropped(&self, py: Python<'_>, stream: u32) -> PyResult<u64> {
        self.handle.enter(py, move |Leaf(back_end)| Ok(back_end.dropped(stream)))
    }

    /// A descriptor that is readable when there is work.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.handle.enter(py, |_| Ok(()))?;
        Ok(self.descriptor)
    }

    /// How many seconds `turn` may wait to be called while the descriptor is not readable.
    fn idle_time(&self, py: Python<'_>) -> PyResult<f64> {
        self.handle.enter(py, |_| Ok(IDLE_SECONDS))
    }

    /// Leaves the network on purpose.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.handle.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.handle.is_closed() { "closed" } else { "open" };
        format!("<sapwood.BackEnd {}, {state}>", self.rank)
    }
}

fn wait(Leaf(back_end): &mut Leaf, timeout: Option<Duration>) -> Result<Received, Failure> {
    Ok(match timeout {
        Some(timeout) => back_end.recv_timeout(timeout)?,
        None => back_end.recv()?,
    })
}

fn packet(py: Python<'_>, received: Received) -> PyResult<Py<Packet>> {
    Py::new(py, Packet::new(received.packet, received.stream))
}
