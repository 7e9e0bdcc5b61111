//! How a network is: the tree that it is now, process by process.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use sapwood::{NodeRecord, Role};

use crate::answer::Missing;

/// One process of the tree. Times are seconds.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct NodeStatus {
    rank: u32,
    /// `front-end`, `communication` or `back-end`.
    role: &'static str,
    parent: Option<u32>,
    planned_parent: Option<u32>,
    /// The name of its host in the plan; none for a process that was not planned.
    planned_host: Option<String>,
    children: Vec<u32>,
    /// `full`, `degraded`, `partial` or `lost`.
    health: &'static str,
    why: Vec<String>,
    round_trip: Option<f64>,
    arrived: Option<f64>,
    held: Option<f64>,
    /// The process's record of itself; none if it has not answered.
    record: Option<Py<PyDict>>,
}

/// How a network is.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct Status {
    /// All processes, each before its children; the front-end is the first.
    nodes: Vec<Py<NodeStatus>>,
    missing: Vec<Py<Missing>>,
    /// How long the answer took, in seconds.
    took: f64,
    /// The health of the whole.
    health: &'static str,
}

impl Status {
    pub(crate) fn new(py: Python<'_>, status: &sapwood::Status) -> PyResult<Self> {
        let nodes = status.nodes.iter().map(|node| Py::new(py, node_status(py, node)?));
        Ok(Self {
            nodes: nodes.collect::<PyResult<_>>()?,
            missing: Missing::all(py, &status.missing)?,
            took: status.took.as_secs_f64(),
            health: status.root().health.name(),
        })
    }
}

#[pymethods]
impl Status {
    fn __repr__(&self) -> String {
        let (count, health) = (self.nodes.len(), self.health);
        format!("Status({health}, {count} processes, {} missing)", self.missing.len())
    }
}

#[pymethods]
impl NodeStatus {
    fn __repr__(&self) -> String {
        format!("NodeStatus(rank={}, role='{}', health='{}')", self.rank, self.role, self.health)
    }
}

pub(crate) fn role_name(role: Role) -> &'static str {
    match role {
        Role::FrontEnd => "front-end",
        Role::Comm => "communication",
        Role::BackEnd => "back-end",
    }
}

fn node_status(py: Python<'_>, node: &sapwood::NodeStatus) -> PyResult<NodeStatus> {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let record = node.record.as_ref().map(|record| fields(py, record)).transpose()?;
    Ok(NodeStatus {
        rank: node.rank,
        role: role_name(node.role),
        parent: node.parent,
        planned_parent: node.planned_parent,
        planned_host: node.planned_host.clone(),
        children: node.children.clone(),
        health: node.health.name(),
        why: node.why.clone(),
        round_trip: seconds(node.round_trip()),
        arrived: seconds(node.arrived()),
        held: seconds(node.held()),
        record,
    })
}

fn fields(py: Python<'_>, record: &NodeRecord) -> PyResult<Py<PyDict>> {
    let numbers = [
        ("pid", u64::from(record.pid)),
        ("expected", record.expected.into()),
        ("connected", record.connected.into()),
        ("lost", record.lost.into()),
        ("awaited", record.awaited.into()),
        ("queued_bytes", record.queued_bytes),
        ("window_bytes", record.window_bytes),
        ("fill", record.fill.into()),
        ("kept_bytes", record.kept_bytes),
        ("dropped", record.dropped),
        ("waves", record.waves),
        ("packets", record.packets),
        ("bytes", record.bytes),
        ("interval_ns", record.interval),
        ("adopted", record.adopted.into()),
        ("gone", record.gone.into()),
        ("streams", record.streams.into()),
    ];
    let fields = PyDict::new(py);
    for (name, number) in numbers {
        fields.set_item(name, number)?;
    }
    fields.set_item("host", &record.host)?;
    Ok(fields.unbind())
}
