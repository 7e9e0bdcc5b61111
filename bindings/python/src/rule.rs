//! Synchronisation rules that are Python callables: from the parts of a wave that have arrived,
//! they decide whether it is forwarded. They are found as filters are, and called on threads of
//! their own, as those are.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use sapwood::{FilterError, Synchronisation, Verdict};

use crate::filter::{AtWork, attached};
use crate::ranks::RankSet;

/// A callable of one stream at one node.
pub(crate) struct Rule(pub(crate) Py<PyAny>);

impl Synchronisation for Rule {
    fn decide(&mut self, arrivals: &sapwood::Arrivals<'_>) -> Result<Verdict, FilterError> {
        let _at_work = AtWork::begin();
        attached(|py| {
            let shown = Bound::new(py, Arrivals::new(py, arrivals)?)?;
            verdict_of(&self.0.bind(py).call1((shown,))?)
        })
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

/// Yes or no, or the seconds that are left: none are left when the time is up.
fn verdict_of(given: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    if given.is_none() {
        return Ok(Verdict::Wait);
    }
    if let Ok(goes) = given.extract::<bool>() {
        return Ok(if goes { Verdict::Go } else { Verdict::Wait });
    }
    let wrong = |_| {
        PyTypeError::new_err(
            "a rule gives True for a wave that goes on, False or None for one that waits, or the \
             seconds after which it is asked again",
        )
    };
    let seconds = given.extract::<f64>().map_err(wrong)?;
    Ok(match Duration::try_from_secs_f64(seconds) {
        _ if seconds <= 0.0 => Verdict::Go,
        Ok(time) => Verdict::WaitFor(time),
        // More than there is.
        Err(_) => Verdict::Wait,
    })
}

/// The parts of one wave that have arrived at one node.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct Arrivals {
    #[pyo3(get)]
    stream: u32,
    #[pyo3(get)]
    number: u64,
    #[pyo3(get)]
    rank: u32,
    #[pyo3(get)]
    is_root: bool,
    /// How many children have given their part.
    #[pyo3(get)]
    arrived: u32,
    /// How many the wave waits for in all.
    #[pyo3(get)]
    expected: u32,
    #[pyo3(get)]
    contributors: Py<RankSet>,
    /// How many members of the stream are below the node, or were.
    #[pyo3(get)]
    back_ends: u32,
    /// Seconds since the first packet of the wave came.
    #[pyo3(get)]
    elapsed: f64,
}

impl Arrivals {
    fn new(py: Python<'_>, arrivals: &sapwood::Arrivals<'_>) -> PyResult<Self> {
        Ok(Self {
            stream: arrivals.stream,
            number: arrivals.wave,
            rank: arrivals.rank,
            is_root: arrivals.is_root,
            arrived: arrivals.arrived,
            expected: arrivals.expected,
            contributors: Py::new(py, RankSet(arrivals.contributors.to_set()))?,
            back_ends: arrivals.back_ends,
            elapsed: arrivals.elapsed.as_secs_f64(),
        })
    }
}

#[pymethods]
impl Arrivals {
    fn __repr__(&self) -> String {
        let Self { number, stream, arrived, expected, .. } = self;
        format!("Arrivals({arrived} of {expected} in wave {number} of stream {stream})")
    }
}
