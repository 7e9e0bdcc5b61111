//! Filters that are Python callables.
//!
//! A stream names them `python:` and a place; which places there are and how a source travels is in
//! `sapwood.filters`. A callable is given a wave and gives values; what it raises fails that wave,
//! with its words.

use std::ffi::c_ulong;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use sapwood::{
    Emitter, Filter, FilterError, FilterSource, FilterSpec, Registry, ShippedFile, Synchronisation,
    Values, ValuesRef, WaveRef,
};
use sapwood_filter::State;

use crate::answer::Packet;
use crate::decode;
use crate::encode;
use crate::file::{Shipped, Sources};
use crate::handle::relaxed;
use crate::ranks::RankSet;
use crate::rule::Rule;

/// What the names of these filters begin with, before the colon.
pub(crate) const PREFIX: &str = "python";

/// All filters that a process with Python in it can make.
pub(crate) fn registry() -> Registry {
    Registry::built_in().with_source(PREFIX, Arc::new(Places::default()))
}

/// The filters of one direction: one, or several in order. Each is a name, `python:` and a place,
/// or a sequence of such a name and its parameters.
pub(crate) fn chain(named: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<FilterSpec>> {
    let Some(named) = named else { return Ok(Vec::new()) };
    if named.is_instance_of::<PyString>() || named.is_instance_of::<PyTuple>() {
        return Ok(vec![spec(named)?]);
    }
    if let Ok(single) = named.getattr("specification") {
        return Ok(vec![spec(&single)?]);
    }
    named.try_iter()?.map(|filter| spec(&filter?)).collect()
}

/// A filter or a rule: a name, a sequence of it and its parameters, or what has such a one.
pub(crate) fn spec(named: &Bound<'_, PyAny>) -> PyResult<FilterSpec> {
    let specification = named.getattr("specification");
    let named = specification.as_ref().unwrap_or(named);
    if let Ok(name) = named.extract::<String>() {
        return Ok(FilterSpec::from(name));
    }
    let wrong = || PyTypeError::new_err("a filter is a name, or a tuple of it and its parameters");
    let parts = named.cast::<PyTuple>().map_err(|_| wrong())?;
    let name = parts.get_item(0).map_err(|_| wrong())?.extract::<String>().map_err(|_| wrong())?;
    let parameters = encode::values(&parts.get_slice(1, parts.len()), None)?;
    Ok(FilterSpec { name, parameters })
}

/// The callables that this process's interpreter finds, in modules and in files that were shipped.
#[derive(Default)]
struct Places {
    shipped: Sources,
}

impl Places {
    fn load<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        parameters: ValuesRef<'_>,
        shipped: Option<Shipped<'_>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let packet = sapwood::Packet::new(0, 0, parameters.to_values());
        let parameters = decode::values(py, &packet.into())?;
        let filters = py.import("sapwood.filters")?;
        match shipped {
            Some(Shipped { source, file, callable }) => {
                filters.call_method1("load_of", (&*source, file, callable, parameters))
            }
            None => filters.call_method1("load", (name, parameters)),
        }
    }
}

impl FilterSource for Places {
    fn make(&self, name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
        let shipped = self.shipped.find(name)?;
        attached(|py| {
            let callable = self.load(py, name, parameters, shipped)?;
            let is_composable = callable.hasattr("save")? && callable.hasattr("absorb")?;
            Ok(Box::new(Callable { callable: callable.unbind(), is_composable }) as Box<dyn Filter>)
        })
    }

    fn make_rule(
        &self,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        let shipped = self.shipped.find(name)?;
        attached(|py| {
            let callable = self.load(py, name, parameters, shipped)?;
            Ok(Box::new(Rule(callable.unbind())) as Box<dyn Synchronisation>)
        })
    }

    fn take_file(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        self.shipped.take(file)
    }
}

/// A callable of one stream at one node.
struct Callable {
    callable: Py<PyAny>,
    /// Whether it hands its state over, with `save` and `absorb`.
    is_composable: bool,
}

impl Filter for Callable {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let _at_work = AtWork::begin();
        attached(|py| {
            let lent = Bound::new(py, Wave::new(py, wave)?)?;
            let given = self.callable.bind(py).call1((&lent,))?;
            let lent = lent.get();
            for Emission { is_reply, tag, values } in lent.take() {
                if is_reply { out.reply(tag, values) } else { out.emit(tag, values) }
            }
            if !given.is_none() {
                out.emit(lent.tag, one_or_several(&given)?);
            }
            Ok(())
        })
    }

    fn is_offloaded(&self) -> bool {
        true
    }

    fn state(&self) -> State {
        if self.is_composable { State::Composable } else { State::None }
    }

    fn save(&self) -> Option<Values> {
        let saved = attached(|py| {
            let state = self.callable.bind(py).call_method0("save")?;
            if state.is_none() { Ok(None) } else { one_or_several(&state).map(Some) }
        });
        saved.unwrap_or_default()
    }

    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        attached(|py| {
            let packet = sapwood::Packet::new(0, 0, state.to_values());
            let state = decode::lone(py, &packet.into())?;
            self.callable.bind(py).call_method1("absorb", (state,)).map(|_| ())
        })
    }
}

/// The threads in which callables are at work, as Python numbers its threads.
static AT_WORK: Mutex<Vec<c_ulong>> = Mutex::new(Vec::new());

/// A thread among them, as long as this lives.
pub(crate) struct AtWork(c_ulong);

impl AtWork {
    pub(crate) fn begin() -> Self {
        // SAFETY: the function takes nothing and cannot fail.
        let thread = unsafe { pthread_self() };
        relaxed(&AT_WORK).push(thread);
        Self(thread)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut threads = relaxed(&AT_WORK);
        if let Some(at) = threads.iter().position(|&thread| thread == self.0) {
            threads.swap_remove(at);
        }
    }
}

unsafe extern "C" {
    /// The calling thread's number in the C library, which is Python's, too.
    fn pthread_self() -> c_ulong;
}

/// The threads in which callables are at work: those of waves that were given up, once no others
/// are begun.
#[pyfunction]
pub(crate) fn filters_at_work() -> Vec<c_ulong> {
    relaxed(&AT_WORK).clone()
}

/// Works with the interpreter; what it raises becomes the filter's own reason.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R, FilterError> {
    let worked = Python::try_attach(|py| work(py).map_err(|error| reason(py, &error)));
    let ended = || Err("the interpreter has ended".to_string());
    worked.unwrap_or_else(ended).map_err(FilterError::Failed)
}

fn reason(py: Python<'_>, error: &PyErr) -> String {
    let described = py
        .import("sapwood.filters")
        .and_then(|filters| {
            filters.call_method1("describe", (error.value(py), error.traceback(py)))
        })
        .and_then(|text| text.extract::<String>());
    described.unwrap_or_else(|_| error.to_string())
}

/// A tuple is several values, anything else is one.
fn one_or_several(given: &Bound<'_, PyAny>) -> PyResult<Values> {
    match given.cast::<PyTuple>() {
        Ok(several) => encode::values(several, None),
        Err(_) => encode::values(&PyTuple::new(given.py(), [given])?, None),
    }
}

/// One wave at one node, as a callable is given it.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct Wave {
    #[pyo3(get)]
    stream: u32,
    #[pyo3(get)]
    number: u64,
    /// The number of the packet that its packets answer.
    #[pyo3(get)]
    question: Option<u64>,
    #[pyo3(get)]
    packets: Vec<Py<Packet>>,
    #[pyo3(get)]
    contributors: Py<RankSet>,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    is_root: bool,
    /// The tag of its first packet, which what the callable returns gets.
    #[pyo3(get)]
    tag: i32,
    emitted: Mutex<Vec<Emission>>,
}

/// A packet that a callable has made.
struct Emission {
    is_reply: bool,
    tag: i32,
    values: Values,
}

impl Wave {
    fn new(py: Python<'_>, wave: &WaveRef<'_>) -> PyResult<Self> {
        // Copies: a callable may keep what it is given, the node's memory is lent for this call.
        let copy = |packet: &sapwood_packet::PacketRef<'_>| {
            let copy = packet.try_to_packet();
            let copy = copy.map_err(|lacking| PyMemoryError::new_err(lacking.to_string()))?;
            Py::new(py, Packet::new(copy, wave.stream))
        };
        Ok(Self {
            stream: wave.stream,
            number: wave.wave,
            question: sapwood_packet::question_of(wave.wave),
            packets: wave.packets.iter().map(copy).collect::<PyResult<_>>()?,
            contributors: Py::new(py, RankSet(wave.contributors.to_set()))?,
            rank: wave.rank,
            is_root: wave.is_root,
            tag: wave.packets.first().map_or(sapwood::FIRST_TAG, |packet| packet.header.tag),
            emitted: Mutex::default(),
        })
    }

    fn take(&self) -> Vec<Emission> {
        self.emitted.lock().map(|mut emitted| std::mem::take(&mut *emitted)).unwrap_or_default()
    }

    fn push(
        &self,
        is_reply: bool,
        tag: Option<i32>,
        values: &Bound<'_, PyTuple>,
        format: Option<&str>,
    ) -> PyResult<()> {
        let values = encode::values(values, format)?;
        if let Ok(mut emitted) = self.emitted.lock() {
            emitted.push(Emission { is_reply, tag: tag.unwrap_or(self.tag), values });
        }
        Ok(())
    }
}

#[pymethods]
impl Wave {
    /// The value of each packet, in the order of the children.
    #[getter]
    fn values(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.packets
            .iter()
            .map(|packet| packet.bind(py).getattr("value").map(Bound::unbind))
            .collect()
    }

    /// Makes a packet that travels on, beside what the callable returns.
    #[pyo3(signature = (*values, tag = None, format = None))]
    fn emit(
        &self,
        values: &Bound<'_, PyTuple>,
        tag: Option<i32>,
        format: Option<&str>,
    ) -> PyResult<()> {
        self.push(false, tag, values, format)
    }

    /// Makes a packet that travels back.
    #[pyo3(signature = (*values, tag = None, format = None))]
    fn reply(
        &self,
        values: &Bound<'_, PyTuple>,
        tag: Option<i32>,
        format: Option<&str>,
    ) -> PyResult<()> {
        self.push(true, tag, values, format)
    }

    fn __repr__(&self) -> String {
        let (count, number) = (self.packets.len(), self.number);
        format!("Wave({number} of stream {}, {count} packets)", self.stream)
    }
}
