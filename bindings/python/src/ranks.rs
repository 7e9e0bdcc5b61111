//! Sets of ranks, as Python sees them: ranges, not lists, so that a million back-ends are few
//! bytes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error;

/// A set of ranks.
#[pyclass(module = "sapwood", name = "RankSet", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RankSet(pub(crate) sapwood::RankSet);

#[pymethods]
impl RankSet {
    #[new]
    #[pyo3(signature = (ranks = None, /))]
    fn new(ranks: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(match ranks {
            Some(ranks) => extract(ranks)?,
            None => sapwood::RankSet::new(),
        }))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.0.len())?)
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }

    fn __contains__(&self, rank: &Bound<'_, PyAny>) -> bool {
        rank.extract().is_ok_and(|rank| self.0.contains(rank))
    }

    fn __iter__(&self) -> Ranks {
        Ranks { left: self.0.as_ref().ranges().to_vec() }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("RankSet('{}')", self.0)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut all = self.0.clone();
        all.union_with(extract(other)?.as_ref());
        Ok(Self(all))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut both = self.0.clone();
        both.intersect_with(extract(other)?.as_ref());
        Ok(Self(both))
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(self.0.difference(extract(other)?.as_ref())))
    }

    fn __reduce__(&self, py: Python<'_>) -> (Py<PyAny>, (String,)) {
        (py.get_type::<Self>().into_any().unbind(), (self.0.to_string(),))
    }
}

/// The ranks of a set, one after another.
#[pyclass(module = "sapwood._native")]
pub(crate) struct Ranks {
    left: Vec<[u32; 2]>,
}

#[pymethods]
impl Ranks {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<u32> {
        let [first, last] = self.left.first_mut()?;
        let rank = *first;
        if first == last {
            self.left.remove(0);
        } else {
            *first += 1;
        }
        Some(rank)
    }
}

/// A set out of what a caller names: a rank, several, a text such as `0-3,7`, a set or a
/// communicator.
pub(crate) fn extract(named: &Bound<'_, PyAny>) -> PyResult<sapwood::RankSet> {
    if let Ok(set) = named.cast::<RankSet>() {
        return Ok(set.get().0.clone());
    }
    if let Ok(text) = named.cast::<PyString>() {
        let parsed = text.to_cow()?.parse::<sapwood::RankSet>();
        return parsed.map_err(|error| error::of_network(named.py(), &error.into()));
    }
    if let Ok(rank) = named.extract::<u32>() {
        return Ok(sapwood::RankSet::range(rank, rank));
    }
    if let Ok(ranks) = named.getattr("ranks") {
        return extract(&ranks);
    }
    let not_ranks = |_| {
        let kind = named.get_type();
        PyTypeError::new_err(format!("{kind} names no ranks; give numbers or a text as '0-3,7'"))
    };
    named.try_iter().map_err(not_ranks)?.map(|rank| rank?.extract::<u32>()).collect()
}
