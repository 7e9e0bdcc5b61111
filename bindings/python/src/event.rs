//! Changes in the network, and the places where back-ends attach.

use pyo3::prelude::*;

use crate::answer::ending_of;
use crate::ranks::RankSet;

/// An attach point.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct AttachPoint {
    parent: u32,
    address: String,
    ranks: Py<RankSet>,
}

impl AttachPoint {
    pub(crate) fn all(py: Python<'_>, points: &[sapwood::AttachPoint]) -> PyResult<Vec<Py<Self>>> {
        let of = |point: &sapwood::AttachPoint| {
            let ranks = Py::new(py, RankSet(point.ranks.clone()))?;
            Py::new(py, Self { parent: point.parent, address: point.address.clone(), ranks })
        };
        points.iter().map(of).collect()
    }
}

#[pymethods]
impl AttachPoint {
    fn __repr__(&self) -> String {
        let ranks = &self.ranks.get().0;
        format!("AttachPoint(parent={}, address='{}', ranks='{ranks}')", self.parent, self.address)
    }
}

/// A change in the network. What does not belong to its kind is `None` or empty.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct Event {
    /// One word: `ready`, `joined`, `offered`, `start_failed`, `lost`, `broken`, `repaired`,
    /// `reattached`, `filter_failed`, `notice`, `stream_opened`, `stream_closed`, `ended`.
    kind: &'static str,
    /// The process that it is about.
    rank: Option<u32>,
    /// The back-ends that it is about.
    back_ends: Option<Py<RankSet>>,
    /// A description for display.
    reason: Option<String>,
    /// Why a process or back-ends are lost, for programs: a word.
    cause: Option<&'static str>,
    /// The exit status of a process that `exited`.
    status: Option<u32>,
    /// The signal of a process that was `killed`.
    signal: Option<u32>,
    /// The stream that it is about.
    stream: Option<u32>,
    /// The process that adopted the children of a lost one.
    adopter: Option<u32>,
    /// Those children.
    orphans: Vec<u32>,
    /// Stream, first wave and the one behind the last that a repair has held back.
    waves: Vec<(u32, u64, u64)>,
    /// Where back-ends may attach.
    attach_points: Vec<Py<AttachPoint>>,
}

impl Event {
    fn of_kind(kind: &'static str) -> Self {
        Self {
            kind,
            rank: None,
            back_ends: None,
            reason: None,
            cause: None,
            status: None,
            signal: None,
            stream: None,
            adopter: None,
            orphans: Vec::new(),
            waves: Vec::new(),
            attach_points: Vec::new(),
        }
    }

    pub(crate) fn new(py: Python<'_>, event: sapwood::Event) -> PyResult<Self> {
        use sapwood::Event as E;
        let set = |ranks| Ok::<_, PyErr>(Some(Py::new(py, RankSet(ranks))?));
        let of = Self::of_kind;
        Ok(match event {
            E::Ready { back_ends, attach_points } => Self {
                back_ends: set(back_ends)?,
                attach_points: AttachPoint::all(py, &attach_points)?,
                ..of("ready")
            },
            E::Joined { back_ends } => Self { back_ends: set(back_ends)?, ..of("joined") },
            E::Offered { attach_points } => {
                Self { attach_points: AttachPoint::all(py, &attach_points)?, ..of("offered") }
            }
            E::StartFailed { rank, text } => {
                Self { rank: Some(rank), reason: Some(text), ..of("start_failed") }
            }
            E::Lost { rank, back_ends, reason, cause } => Self {
                rank: Some(rank),
                cause: Some(cause.name()),
                status: ending_of(cause).0,
                signal: ending_of(cause).1,
                back_ends: set(back_ends)?,
                reason: Some(reason),
                ..of("lost")
            },
            E::Broken { rank, back_ends, reason, cause } => Self {
                rank: Some(rank),
                cause: Some(cause.name()),
                status: ending_of(cause).0,
                signal: ending_of(cause).1,
                back_ends: set(back_ends)?,
                reason: Some(reason),
                ..of("broken")
            },
            E::Repaired { rank, adopter, orphans, back_ends, waves } => Self {
                rank: Some(rank),
                adopter: Some(adopter),
                orphans,
                back_ends: set(back_ends)?,
                waves: waves.iter().map(|held| (held.stream, held.first, held.end)).collect(),
                ..of("repaired")
            },
            E::Reattached { parent } => Self { rank: Some(parent), ..of("reattached") },
            E::FilterFailed { stream, reason } => {
                Self { stream: Some(stream), reason: Some(reason), ..of("filter_failed") }
            }
            E::Notice { rank, text } => {
                Self { rank: Some(rank), reason: Some(text), ..of("notice") }
            }
            E::StreamOpened { stream } => Self { stream: Some(stream), ..of("stream_opened") },
            E::StreamClosed { stream } => Self { stream: Some(stream), ..of("stream_closed") },
            E::Ended { reason, .. } => Self { reason: Some(reason), ..of("ended") },
            other => Self { reason: Some(format!("{other:?}")), ..of("other") },
        })
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let mut text = format!("Event({}", self.kind);
        if let Some(rank) = self.rank {
            text.push_str(&format!(", rank {rank}"));
        }
        if let Some(stream) = self.stream {
            text.push_str(&format!(", stream {stream}"));
        }
        if let Some(back_ends) = &self.back_ends {
            text.push_str(&format!(", back-ends '{}'", back_ends.get().0));
        }
        if let Some(reason) = &self.reason {
            text.push_str(&format!(": {reason}"));
        }
        text.push(')');
        text
    }
}
