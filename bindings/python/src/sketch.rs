//! Sketches: what the filters of that name answer with, each as a class of its filter's noun that
//! is made of an answer or a packet. What can be asked of them is the `sapwood` crate's.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use pyo3::{IntoPyObject, IntoPyObjectExt};
use sapwood::{AnySketch, TopNumber};

use crate::answer::{Answer, Packet};
use crate::decode;
use crate::error;
use crate::ranks::RankSet;

/// The sketch in an answer or a packet.
fn read(of: &Bound<'_, PyAny>) -> PyResult<AnySketch> {
    let py = of.py();
    let read = if let Ok(answer) = of.cast::<Answer>() {
        AnySketch::from_values(answer.get().packet(py)?.values())
    } else if let Ok(packet) = of.cast::<Packet>() {
        AnySketch::from_values(packet.get().packet().values())
    } else {
        let kind = of.get_type().name()?;
        let text = format!("a sketch is read out of an Answer or a Packet, not of a {kind}");
        return Err(PyTypeError::new_err(text));
    };
    read.map_err(|wrong| error::own(py, "ValuesError", &wrong.to_string()))
}

/// The packet holds a sketch of another kind.
fn other(py: Python<'_>, found: &AnySketch, wanted: &str) -> PyErr {
    let found = found.name();
    let text = format!("the packet holds a sketch of '{found}', not of '{wanted}'");
    error::own(py, "ValuesError", &text)
}

macro_rules! classes {
    ($($class:ident = $kind:ident($sketch:ty), $name:literal;)*) => {
        $(
            #[pyclass(module = "sapwood", frozen)]
            pub(crate) struct $class($sketch);

            impl $class {
                fn of(sketch: &Bound<'_, PyAny>) -> PyResult<Self> {
                    match read(sketch)? {
                        AnySketch::$kind(sketch) => Ok(Self(sketch)),
                        found => Err(other(sketch.py(), &found, $name)),
                    }
                }
            }
        )*

        /// The sketch of an answer or a packet, of whatever kind.
        #[pyfunction]
        #[pyo3(signature = (of, /))]
        pub(crate) fn read_sketch<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let py = of.py();
            match read(of)? {
                $(AnySketch::$kind(sketch) => $class(sketch).into_bound_py_any(py),)*
                found => Err(other(py, &found, "a kind that this package knows")),
            }
        }
    };
}

classes! {
    Quantiles = Quantiles(sapwood::Quantiles), "quantiles";
    Kll = Kll(sapwood::Kll), "kll";
    Distinct = Distinct(sapwood::Distinct), "distinct";
    HeavyHitters = HeavyHitters(sapwood::HeavyHitters), "heavy-hitters";
    TopK = Top(sapwood::TopK), "top";
    Histogram = Histogram(sapwood::Histogram), "histogram";
    ItemSet = Union(sapwood::ItemSet), "union";
    PrefixTree = PrefixTree(sapwood::PrefixTree), "prefix-tree";
}

/// An item, a number or a text as Python has it; bytes where they are no text.
enum Value<'a> {
    Item(&'a sapwood::Item),
    Number(TopNumber),
}

impl<'py> IntoPyObject<'py> for Value<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Item(item) => match item.bytes() {
                Some(bytes) => decode::text(py, bytes),
                None => item.integer().unwrap_or_default().into_bound_py_any(py),
            },
            Self::Number(TopNumber::Signed(number)) => number.into_bound_py_any(py),
            Self::Number(TopNumber::Unsigned(number)) => number.into_bound_py_any(py),
            Self::Number(TopNumber::Double(number)) => number.into_bound_py_any(py),
        }
    }
}

#[pymethods]
impl Quantiles {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// The number of which this share of all is smaller.
    fn quantile(&self, share: f64) -> Option<f64> {
        self.0.quantile(share)
    }

    /// The bound on the relative error of every quantile.
    #[getter]
    fn relative_error(&self) -> f64 {
        self.0.relative_error()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    #[getter]
    fn min(&self) -> Option<f64> {
        self.0.min()
    }

    #[getter]
    fn max(&self) -> Option<f64> {
        self.0.max()
    }

    fn __repr__(&self) -> String {
        format!("Quantiles({} numbers, within {})", self.0.count(), self.0.relative_error())
    }
}

#[pymethods]
impl Kll {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// The number of which this share of all is smaller.
    fn quantile(&self, share: f64) -> Option<f64> {
        self.0.quantile(share)
    }

    /// How many numbers are at most this one.
    fn rank(&self, number: f64) -> u64 {
        self.0.rank(number)
    }

    /// By how many places a quantile may be wrong: by more only with this chance.
    fn rank_error(&self, chance: f64) -> f64 {
        self.0.rank_error(chance)
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    #[getter]
    fn min(&self) -> Option<f64> {
        self.0.min()
    }

    #[getter]
    fn max(&self) -> Option<f64> {
        self.0.max()
    }

    fn __repr__(&self) -> String {
        format!("Kll({} numbers)", self.0.count())
    }
}

#[pymethods]
impl Distinct {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// How many different values there are, about.
    #[getter]
    fn estimate(&self) -> f64 {
        self.0.estimate()
    }

    /// The standard deviation of that, as a share of the truth; 0 while it is exact.
    #[getter]
    fn standard_error(&self) -> f64 {
        self.0.standard_error()
    }

    fn __repr__(&self) -> String {
        format!("Distinct({:.0}, within {:.3})", self.0.estimate(), self.0.standard_error())
    }
}

/// An item that came often.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct Hitter {
    item: Py<PyAny>,
    at_least: u64,
    at_most: u64,
}

#[pymethods]
impl Hitter {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let item = self.item.bind(py).repr()?;
        Ok(format!("Hitter({item}, {} to {} times)", self.at_least, self.at_most))
    }
}

#[pymethods]
impl HeavyHitters {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// The most frequent items first.
    #[getter]
    fn hitters(&self, py: Python<'_>) -> PyResult<Vec<Hitter>> {
        let hitter = |hitter: sapwood::Hitter| {
            let item = Value::Item(&hitter.item).into_pyobject(py)?.unbind();
            Ok(Hitter { item, at_least: hitter.at_least, at_most: hitter.at_most })
        };
        self.0.hitters().into_iter().map(hitter).collect()
    }

    /// How much more often than `at_least` an item may have come.
    #[getter]
    fn error(&self) -> u64 {
        self.0.error()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    fn __repr__(&self) -> String {
        format!("HeavyHitters(of {} items, within {})", self.0.count(), self.0.error())
    }
}

/// One of the largest numbers.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct TopEntry {
    number: Py<PyAny>,
    count: u64,
    ranks: Py<RankSet>,
}

#[pymethods]
impl TopEntry {
    fn __repr__(&self, py: Python<'_>) -> String {
        let (number, ranks) = (self.number.bind(py), &self.ranks.get().0);
        format!("TopEntry({number}, {} times, of '{ranks}')", self.count)
    }
}

#[pymethods]
impl TopK {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// The largest numbers first.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<TopEntry>> {
        let entry = |entry: sapwood::TopEntry| {
            let number = Value::Number(entry.number).into_pyobject(py)?.unbind();
            let ranks = Py::new(py, RankSet(entry.ranks))?;
            Ok(TopEntry { number, count: entry.count, ranks })
        };
        self.0.entries().into_iter().map(entry).collect()
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    fn __repr__(&self) -> String {
        format!("TopK({} numbers)", self.0.entries().len())
    }
}

/// How many numbers are in one bin: from `low` on, and below `high`.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct HistogramBin {
    low: f64,
    high: f64,
    count: u64,
}

#[pymethods]
impl HistogramBin {
    fn __repr__(&self) -> String {
        format!("HistogramBin({} to {}: {})", self.low, self.high, self.count)
    }
}

#[pymethods]
impl Histogram {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// The bins from low to high.
    #[getter]
    fn bins(&self) -> Vec<HistogramBin> {
        let bin = |bin: sapwood::HistogramBin| HistogramBin {
            low: bin.low,
            high: bin.high,
            count: bin.count,
        };
        self.0.bins().map(bin).collect()
    }

    /// How many numbers are below all bins.
    #[getter]
    fn under(&self) -> u64 {
        self.0.under()
    }

    /// How many are above all bins.
    #[getter]
    fn over(&self) -> u64 {
        self.0.over()
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    fn __repr__(&self) -> String {
        format!("Histogram({} numbers in {} bins)", self.0.count(), self.0.bins().len())
    }
}

#[pymethods]
impl ItemSet {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// Integers by value, then texts by their bytes.
    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.iter().map(|item| Value::Item(item).into_pyobject(py)).collect()
    }

    /// Whether nothing was cut off at the end.
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> bool {
        if let Ok(text) = item.cast::<PyString>() {
            return text.to_cow().is_ok_and(|text| self.0.contains(&*text));
        }
        if let Ok(bytes) = item.cast::<PyBytes>() {
            return self.0.contains(bytes.as_bytes());
        }
        match (item.extract::<i64>(), item.extract::<u64>()) {
            (Ok(signed), _) => self.0.contains(signed),
            (_, Ok(natural)) => self.0.contains(natural),
            _ => false,
        }
    }

    fn __repr__(&self) -> String {
        let more = if self.0.is_complete() { "" } else { ", and more" };
        format!("ItemSet({} items{more})", self.0.len())
    }
}

/// A node of a prefix tree.
#[pyclass(module = "sapwood", frozen, get_all)]
pub(crate) struct PrefixNode {
    depth: usize,
    name: Py<PyAny>,
    ranks: Py<RankSet>,
    stacks: u64,
    ending: u64,
}

#[pymethods]
impl PrefixNode {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (name, ranks) = (self.name.bind(py).repr()?, &self.ranks.get().0);
        Ok(format!("PrefixNode({name} at depth {}, of '{ranks}')", self.depth))
    }
}

#[pymethods]
impl PrefixTree {
    #[new]
    #[pyo3(signature = (of, /))]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(of)
    }

    /// Each node before those below it, those of one parent sorted by name.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<PrefixNode>> {
        let node = |node: sapwood::PrefixNode<'_>| {
            let name = decode::text(py, node.name)?.unbind();
            let ranks = Py::new(py, RankSet(node.ranks.clone()))?;
            let sapwood::PrefixNode { depth, stacks, ending, .. } = node;
            Ok(PrefixNode { depth, name, ranks, stacks, ending })
        };
        self.0.nodes().map(node).collect()
    }

    /// The ranks that sent stacks.
    #[getter]
    fn ranks(&self) -> RankSet {
        RankSet(self.0.ranks().clone())
    }

    /// How many stacks there are.
    #[getter]
    fn stacks(&self) -> u64 {
        self.0.stacks()
    }

    /// Whether no node was left out for the bound.
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("PrefixTree({} stacks of '{}')", self.0.stacks(), self.0.ranks())
    }
}
