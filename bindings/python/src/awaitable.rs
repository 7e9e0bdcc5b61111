//! What is awaited in an event loop: the coroutines of `sapwood.waiting`, which are Python's.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// The coroutine of this name.
pub(crate) fn awaitable<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Py<PyAny>> {
    Ok(py.import("sapwood.waiting")?.call_method1(name, arguments)?.unbind())
}
