//! The network as its front-end sees it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use sapwood::PendingAnswer;

use crate::answer::Answer;
use crate::error::{Failure, unless_full};
use crate::event::{AttachPoint, Event};
use crate::file::{self, FilterFile};
use crate::filter;
use crate::handle::{Handle, Signals, Thing};
use crate::ranks::{self, RankSet};
use crate::settings::{self, Settings};
use crate::status::{Status, role_name};
use crate::stream::{self, Stream};

/// A network with its streams, which share one loop.
pub(crate) struct FrontEnd {
    // Questions and streams go before their network, in the order of these fields.
    questions: BTreeMap<(u32, u64), PendingAnswer>,
    streams: BTreeMap<u32, sapwood::Stream>,
    network: sapwood::Network,
}

// SAFETY: a network and its streams share memory that is counted without locks. All of them are in
// here, none is ever lent out, and a `Handle` lets one thread at a time in. What they hold beside
// that (descriptors, filters, and the hook that asks for signals) may go from thread to thread.
unsafe impl Send for FrontEnd {}

impl Thing for FrontEnd {
    const NAME: &'static str = "network";

    fn sweep(&mut self, dropped: Vec<u32>) {
        for id in dropped {
            self.streams.remove(&id);
        }
    }

    fn close(mut self) -> sapwood::Result<()> {
        // The streams end with the network; telling it of each takes longer.
        self.questions.clear();
        std::mem::take(&mut self.streams).into_values().for_each(drop);
        self.network.close()
    }
}

impl FrontEnd {
    fn new(network: sapwood::Network) -> Self {
        Self { questions: BTreeMap::new(), streams: BTreeMap::new(), network }
    }

    pub(crate) fn stream(&mut self, id: u32) -> Result<&mut sapwood::Stream, Failure> {
        self.streams.get_mut(&id).ok_or_else(|| Failure::closed("the stream"))
    }

    /// Asks on a stream if that need not wait, and keeps the question; gives its number, or nothing
    /// while the stream's window is full.
    pub(crate) fn begin_question(
        &mut self,
        stream: u32,
        tag: i32,
        values: sapwood::Values,
    ) -> Result<Option<u64>, Failure> {
        let pending = unless_full(self.stream(stream)?.ask_async(tag, values))?;
        let Some(pending) = pending else { return Ok(None) };
        let number = pending.question();
        self.questions.insert((stream, number), pending);
        Ok(Some(number))
    }

    /// The answer to such a question, if it is there.
    pub(crate) fn take_answer(
        &mut self,
        stream: u32,
        number: u64,
    ) -> Result<Option<sapwood::Answer>, Failure> {
        self.stream(stream)?;
        match self.questions.get_mut(&(stream, number)) {
            Some(pending) => Ok(pending.try_take()?),
            None => Ok(None),
        }
    }

    /// Waits for the answer no more.
    pub(crate) fn forget_question(&mut self, stream: u32, number: u64) {
        self.questions.remove(&(stream, number));
    }

    pub(crate) fn has_stream(&self, id: u32) -> bool {
        self.streams.contains_key(&id)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.network.flush()?)
    }

    pub(crate) fn idle_seconds(&mut self) -> Result<Option<f64>, Failure> {
        Ok(self.network.idle_time().map(|time| time.as_secs_f64()))
    }

    pub(crate) fn close_stream(&mut self, id: u32) -> Result<(), Failure> {
        match self.streams.remove(&id) {
            Some(stream) => Ok(stream.close()?),
            None => Ok(()),
        }
    }
}

/// A tree of processes, seen from its root.
#[pyclass(module = "sapwood", frozen, weakref)]
pub(crate) struct Network {
    pub(crate) handle: Handle<FrontEnd>,
    descriptor: i32,
    tree: Vec<PlannedProcess>,
}

/// A process of the planned tree.
#[derive(Clone)]
struct PlannedProcess {
    rank: u32,
    role: &'static str,
    parent: Option<u32>,
    host: String,
}

impl Network {
    fn keep(front_end: FrontEnd, signals: Signals) -> Self {
        let descriptor = front_end.network.descriptor();
        let process = |node: sapwood_topology::Node<'_>| PlannedProcess {
            rank: node.rank(),
            role: role_name(node.role()),
            parent: node.parent(),
            host: node.host().as_str().to_string(),
        };
        let tree = front_end.network.topology().nodes().map(process).collect();
        Self { handle: Handle::new(front_end, signals), descriptor, tree }
    }
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (
        topology = None, back_end = None, *, hosts = None, environment = None,
        node_program = None, transport = "automatic", encryption = None, interface = None,
        launcher = "auto", remote_shell = None, slurm_job = None, connect_timeout = None,
        startup_timeout = None, allow_missing = false, recovery = None, dynamic_members = false,
        state_file = None, name = None, filter_limit = 10.0,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are named where they are given")]
    fn new(
        py: Python<'_>,
        topology: Option<&Bound<'_, PyAny>>,
        back_end: Option<&Bound<'_, PyAny>>,
        hosts: Option<&Bound<'_, PyAny>>,
        environment: Option<BTreeMap<String, String>>,
        node_program: Option<&Bound<'_, PyAny>>,
        transport: &str,
        encryption: Option<bool>,
        interface: Option<&str>,
        launcher: &str,
        remote_shell: Option<Vec<String>>,
        slurm_job: Option<String>,
        connect_timeout: Option<f64>,
        startup_timeout: Option<f64>,
        allow_missing: bool,
        recovery: Option<&Bound<'_, PyAny>>,
        dynamic_members: bool,
        state_file: Option<PathBuf>,
        name: Option<String>,
        filter_limit: f64,
    ) -> PyResult<Self> {
        let own = match node_program {
            Some(named) => named.clone(),
            None => py.import("sapwood.programs")?.call_method0("node_program")?,
        };
        let limit =
            |what, time: Option<f64>| time.map(|time| settings::seconds(what, time)).transpose();
        let settings = Settings {
            topology: settings::topology(py, topology, hosts)?,
            back_end: back_end.map(|named| settings::words("back_end", named)).transpose()?,
            environment: environment.unwrap_or_default().into_iter().collect(),
            node_program: Some(settings::words("node_program", &own)?),
            transport: settings::transport(transport)?,
            encryption,
            interface: interface.map(settings::interface).transpose()?,
            launcher: settings::launcher(launcher)?,
            remote_shell,
            slurm_job,
            connect_timeout: limit("connect_timeout", connect_timeout)?,
            startup_timeout: limit("startup_timeout", startup_timeout)?,
            filter_limit: settings::filter_limit(filter_limit)?,
            allow_missing,
            recovery: settings::recovery(recovery)?,
            dynamic_members,
            state_file,
            name,
        };
        let signals = Signals::default();
        let opened = py.detach(|| settings.open(&signals).map(FrontEnd::new));
        Ok(Self::keep(signals.raise(py, opened)?, signals))
    }

    /// Replaces a front-end that has ended.
    #[classmethod]
    fn resume(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        state_file: PathBuf,
        timeout: f64,
    ) -> PyResult<Self> {
        let timeout = settings::seconds("timeout", timeout)?;
        let signals = Signals::default();
        let opened = py.detach(|| {
            let registry = filter::registry();
            sapwood::Network::resume_with(&state_file, registry, timeout).map(FrontEnd::new)
        });
        Ok(Self::keep(signals.raise(py, opened)?, signals))
    }

    /// The back-ends that are connected now.
    #[getter]
    fn everyone(&self, py: Python<'_>) -> PyResult<RankSet> {
        self.handle.enter(py, |it| Ok(RankSet(it.network.everyone().ranks().clone())))
    }

    /// The planned tree: rank, role, parent and host of each process, by rank.
    #[getter]
    fn tree(&self) -> Vec<(u32, &'static str, Option<u32>, String)> {
        let row = |process: &PlannedProcess| {
            (process.rank, process.role, process.parent, process.host.clone())
        };
        self.tree.iter().map(row).collect()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Opens a stream.
    #[pyo3(signature = (
        members = None, *, up = None, down = None, wave = None, rule = None, policy = "wait",
        window_bytes = None,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are named where they are given")]
    fn stream(
        slf: &Bound<'_, Self>,
        members: Option<&Bound<'_, PyAny>>,
        up: Option<&Bound<'_, PyAny>>,
        down: Option<&Bound<'_, PyAny>>,
        wave: Option<&Bound<'_, PyAny>>,
        rule: Option<&Bound<'_, PyAny>>,
        policy: &str,
        window_bytes: Option<u32>,
    ) -> PyResult<Stream> {
        let py = slf.py();
        let members = members.map(ranks::extract).transpose()?;
        let (up, down) = (filter::chain(up)?, filter::chain(down)?);
        let rule = rule.map(filter::spec).transpose()?;
        let (wave, policy) = (stream::wave(wave)?, stream::policy(policy)?);
        let (id, members) = slf.get().handle.enter(py, move |it| {
            let members = match members {
                Some(ranks) => it.network.communicator(ranks.iter()),
                None => it.network.everyone(),
            };
            let mut builder = it.network.stream(&members).wave(wave).policy(policy);
            if let Some(bytes) = window_bytes {
                builder = builder.window_bytes(bytes);
            }
            if let Some(rule) = rule {
                builder = builder.rule(rule);
            }
            builder = up.into_iter().fold(builder, sapwood::StreamBuilder::up);
            builder = down.into_iter().fold(builder, sapwood::StreamBuilder::down);
            let stream = builder.open()?;
            let (id, members) = (stream.id(), stream.members().ranks().clone());
            it.streams.insert(id, stream);
            Ok((id, members))
        })?;
        Ok(Stream::new(slf.clone().unbind(), id, members))
    }

    /// Sends a file of filters to every process of the tree.
    #[allow(clippy::needless_pass_by_value, reason = "a path is made for this call")]
    fn ship(&self, py: Python<'_>, file: PathBuf) -> PyResult<FilterFile> {
        let python = file::read(py, &file)?;
        self.handle.enter(py, move |it| {
            let Some(python) = python else { return Ok(FilterFile::new(&it.network.ship(&file)?)) };
            it.network.ship_file(&python)?;
            Ok(FilterFile::new(&python))
        })
    }

    /// Where back-ends may attach by themselves.
    #[getter]
    fn attach_points(&self, py: Python<'_>) -> PyResult<Vec<Py<AttachPoint>>> {
        let points = self.handle.enter(py, |it| Ok(it.network.attach_points()))?;
        AttachPoint::all(py, &points)
    }

    /// Writes the files that back-ends need to attach.
    #[allow(clippy::needless_pass_by_value, reason = "a path is made for this call")]
    fn write_attach_file(&self, py: Python<'_>, path: PathBuf, key_path: PathBuf) -> PyResult<()> {
        self.handle.enter(py, |it| Ok(it.network.write_attach_file(&path, &key_path)?))
    }

    /// Waits until this many back-ends are connected.
    fn wait_for_back_ends(&self, py: Python<'_>, count: u64, timeout: f64) -> PyResult<()> {
        let timeout = settings::seconds("timeout", timeout)?;
        self.handle.enter(py, move |it| Ok(it.network.wait_for_back_ends(count, timeout)?))
    }

    /// How the network is.
    #[pyo3(signature = (timeout = 2.0))]
    fn status(&self, py: Python<'_>, timeout: f64) -> PyResult<Status> {
        let timeout = settings::seconds("timeout", timeout)?;
        let status = self.handle.enter(py, move |it| Ok(it.network.status(timeout)?))?;
        Status::new(py, &status)
    }

    /// Makes the network visible to `sapwood status`.
    #[allow(clippy::needless_pass_by_value, reason = "a text is made for this call")]
    fn publish(&self, py: Python<'_>, name: String) -> PyResult<()> {
        self.handle.enter(py, |it| Ok(it.network.publish(&name)?))
    }

    /// The changes of the network since this was called last.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.handle.enter(py, |it| {
            Ok(std::iter::from_fn(|| it.network.next_event()).collect::<Vec<_>>())
        })?;
        let events = events.into_iter().map(|event| Py::new(py, Event::new(py, event)?));
        PyList::new(py, events.collect::<PyResult<Vec<_>>>()?)
    }

    /// Lets the network work for at most this many seconds, until something has happened.
    #[pyo3(signature = (timeout = 0.0))]
    fn turn(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = settings::seconds("timeout", timeout)?;
        self.handle.enter(py, move |it| Ok(it.network.turn(timeout).map(|_| ())?))?;
        py.check_signals()
    }

    /// Writes the packets sent so far.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.enter(py, FrontEnd::flush)
    }

    /// A descriptor that is readable when `turn` has something to do.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.handle.enter(py, |_| Ok(()))?;
        Ok(self.descriptor)
    }

    /// For how many seconds `turn` need not be called while the descriptor is not readable; `None`
    /// for ever.
    fn idle_time(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.handle.enter(py, FrontEnd::idle_seconds)
    }

    /// Ends the tree.
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
        format!("<sapwood.Network of {} processes, {state}>", self.tree.len())
    }
}

/// An answer for Python.
pub(crate) fn answer(py: Python<'_>, answer: sapwood::Answer) -> PyResult<Py<Answer>> {
    Py::new(py, Answer::new(answer))
}
