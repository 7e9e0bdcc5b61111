//! A communication process with an interpreter in it: `python -m sapwood.node`.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error;
use crate::filter;

/// Serves until the network ends, or until a descriptor is readable. Joins the network of an attach
/// file if there is one, else the network that has started this process.
#[pyfunction]
#[pyo3(signature = (leave, join = None))]
pub(crate) fn serve(py: Python<'_>, leave: i32, join: Option<PathBuf>) -> PyResult<()> {
    // SAFETY: the module's own program opens the descriptor and closes it after this returns.
    let leave = unsafe { BorrowedFd::borrow_raw(leave) };
    let served = py.detach(|| {
        let registry = filter::registry();
        match join {
            Some(path) => sapwood::join(&path, &registry, leave),
            None => Ok(sapwood::serve_until(registry, leave)?),
        }
    });
    served.map_err(|error| error::of_network(py, &error))
}
