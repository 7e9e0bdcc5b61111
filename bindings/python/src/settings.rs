//! What a network is opened with, taken over from Python before the interpreter is let go.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use sapwood::{
    Hosts, Launcher, Network, NetworkBuilder, Program, Recovery, Shape, Topology, TransportKind,
};

use crate::error;
use crate::filter;
use crate::handle::Signals;

/// A program with its arguments.
pub(crate) struct Words {
    program: PathBuf,
    arguments: Vec<String>,
}

/// All of it, in Rust's types.
pub(crate) struct Settings {
    pub(crate) topology: Topology,
    pub(crate) back_end: Option<Words>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) node_program: Option<Words>,
    pub(crate) transport: TransportKind,
    pub(crate) encryption: Option<bool>,
    pub(crate) interface: Option<IpAddr>,
    pub(crate) launcher: Launcher,
    pub(crate) remote_shell: Option<Vec<String>>,
    pub(crate) slurm_job: Option<String>,
    pub(crate) connect_timeout: Option<Duration>,
    /// The network's own choice where it is not given.
    pub(crate) startup_timeout: Option<Duration>,
    /// Zero for ever.
    pub(crate) filter_limit: Duration,
    pub(crate) allow_missing: bool,
    pub(crate) recovery: Recovery,
    pub(crate) dynamic_members: bool,
    pub(crate) state_file: Option<PathBuf>,
    pub(crate) name: Option<String>,
}

impl Settings {
    /// Starts the tree.
    pub(crate) fn open(self, signals: &Signals) -> sapwood::Result<Network> {
        let mut builder = Network::builder(self.topology)
            .registry(filter::registry())
            .interrupt(signals.hook())
            .transport(self.transport)
            .launcher(self.launcher)
            .filter_limit(self.filter_limit)
            .recovery(self.recovery);
        if let Some(Words { program, arguments }) = self.back_end {
            let program = arguments.into_iter().fold(Program::new(program), Program::argument);
            let set = |program: Program, (name, value)| program.variable(name, value);
            builder = builder.back_end(self.environment.into_iter().fold(program, set));
        }
        if let Some(Words { program, arguments }) = self.node_program {
            let builder_with_program = builder.node_program(program);
            builder =
                arguments.into_iter().fold(builder_with_program, NetworkBuilder::node_argument);
        }
        if let Some(is_on) = self.encryption {
            builder = builder.encryption(is_on);
        }
        if let Some(address) = self.interface {
            builder = builder.interface(address);
        }
        if let Some(words) = self.remote_shell {
            builder = builder.remote_shell(words);
        }
        if let Some(number) = self.slurm_job {
            builder = builder.slurm_job(number);
        }
        if let Some(time) = self.connect_timeout {
            builder = builder.connect_timeout(time);
        }
        if let Some(time) = self.startup_timeout {
            builder = builder.startup_timeout(time);
        }
        if self.allow_missing {
            builder = builder.allow_missing();
        }
        if self.dynamic_members {
            builder = builder.dynamic_members();
        }
        if let Some(path) = self.state_file {
            builder = builder.resumable(path);
        }
        if let Some(name) = self.name {
            builder = builder.visible(name);
        }
        builder.open()
    }
}

/// A topology: a shape such as `4^2` as a text, or a file in MRNet's form as a path; with hosts,
/// the shape over them, or a tree over them where there is none.
pub(crate) fn topology(
    py: Python<'_>,
    named: Option<&Bound<'_, PyAny>>,
    hosts: Option<&Bound<'_, PyAny>>,
) -> PyResult<Topology> {
    let hosts = hosts.map(nodeset).transpose()?;
    let shape = named.and_then(|named| named.cast::<PyString>().ok());
    let shape = shape.map(|shape| PyResult::Ok(shape.to_cow()?.parse::<Shape>())).transpose()?;
    let wrong = |text: &str| Err(PyValueError::new_err(text.to_owned()));
    let read = match (shape, named, hosts) {
        (None, None, None) => return wrong("topology: give a shape, a topology file, or hosts"),
        (None, None, Some(hosts)) => Topology::on_nodes(&hosts, None),
        (Some(shape), _, Some(hosts)) => {
            shape.and_then(|shape| Topology::on_nodes(&hosts, Some(&shape)))
        }
        (Some(shape), _, None) => shape.map(|shape| Topology::from_shape(&shape, &Hosts::local())),
        (None, Some(_), Some(_)) => {
            return wrong("hosts: a topology file names its own; give one of both");
        }
        (None, Some(file), None) => {
            let path: PathBuf = file.extract()?;
            Topology::from_file_text(&std::fs::read_to_string(path)?)
        }
    };
    read.map_err(|error| error::of_network(py, &error.into()))
}

/// Hosts as a nodeset: a text that is one, or the names.
fn nodeset(named: &Bound<'_, PyAny>) -> PyResult<String> {
    let wrong = |_| PyTypeError::new_err("hosts: give a nodeset, or a list of names");
    match named.extract::<String>() {
        Ok(text) => Ok(text),
        Err(_) => Ok(named.extract::<Vec<String>>().map_err(wrong)?.join(",")),
    }
}

pub(crate) fn launcher(name: &str) -> PyResult<Launcher> {
    match name.parse() {
        // Its terms are not to be had from Python; an attach file does the same.
        Ok(Launcher::Attach) => {
            let text = "launcher: 'attach' is for programs; write an attach file instead";
            Err(PyValueError::new_err(text))
        }
        Ok(launcher) => Ok(launcher),
        Err(text) => Err(PyValueError::new_err(format!("launcher: {text}"))),
    }
}

/// A program: its path, or a list of the path and the arguments.
pub(crate) fn words(what: &str, named: &Bound<'_, PyAny>) -> PyResult<Words> {
    if let Ok(program) = named.extract::<PathBuf>() {
        return Ok(Words { program, arguments: Vec::new() });
    }
    let wrong = || PyTypeError::new_err(format!("{what}: give a path, or a list of it and texts"));
    let mut items = named.try_iter().map_err(|_| wrong())?;
    let first = items.next().ok_or_else(wrong)??;
    let program = first.extract::<PathBuf>().map_err(|_| wrong())?;
    let arguments = items.map(|item| {
        let item = item?;
        // Paths are what programs are given most.
        item.extract::<String>().or_else(|_| match item.extract::<PathBuf>() {
            Ok(path) => path.into_os_string().into_string().map_err(|_| wrong()),
            Err(_) => Err(wrong()),
        })
    });
    Ok(Words { program, arguments: arguments.collect::<PyResult<_>>()? })
}

pub(crate) fn transport(name: &str) -> PyResult<TransportKind> {
    match name {
        "automatic" => Ok(TransportKind::Automatic),
        "unix" => Ok(TransportKind::Unix),
        "tcp" => Ok(TransportKind::Tcp),
        "shm" => Ok(TransportKind::Shm),
        other => {
            let text = format!("transport: '{other}' is none; use automatic, unix, tcp or shm");
            Err(PyValueError::new_err(text))
        }
    }
}

pub(crate) fn interface(address: &str) -> PyResult<IpAddr> {
    let wrong = |_| PyValueError::new_err(format!("interface: '{address}' is no numeric address"));
    address.parse().map_err(wrong)
}

/// The terms of recovery: `True` and `False`, or a dictionary of those that differ, in seconds.
pub(crate) fn recovery(named: Option<&Bound<'_, PyAny>>) -> PyResult<Recovery> {
    let Some(named) = named else { return Ok(Recovery::default()) };
    if let Ok(is_on) = named.extract::<bool>() {
        return Ok(if is_on { Recovery::default() } else { Recovery::off() });
    }
    let mut recovery = Recovery::default();
    for (name, value) in named.cast::<PyDict>()?.iter() {
        let name = name.extract::<String>()?;
        let time = seconds(&name, value.extract()?)?;
        match name.as_str() {
            "orphan_limit" => recovery.orphan_limit = time,
            "grace" => recovery.grace = time,
            "silence" => recovery.silence = time,
            "front_end_wait" => recovery.front_end_wait = time,
            other => {
                let text = format!(
                    "recovery: '{other}' is no term of it; there are orphan_limit, grace, silence \
                     and front_end_wait"
                );
                return Err(PyValueError::new_err(text));
            }
        }
    }
    Ok(recovery)
}

/// How long a filter may take; zero, which is for ever, for infinity alone.
pub(crate) fn filter_limit(limit: f64) -> PyResult<Duration> {
    match limit {
        f64::INFINITY => Ok(Duration::ZERO),
        limit if limit > 0.0 => Ok(seconds("filter_limit", limit)?.max(Duration::from_millis(1))),
        limit => Err(PyValueError::new_err(format!("filter_limit: {limit} is no time to work in"))),
    }
}

/// A time in seconds, as Python gives it.
pub(crate) fn seconds(what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{what}: {seconds} is no number of seconds")))
}
