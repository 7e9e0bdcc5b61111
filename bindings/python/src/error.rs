//! Errors on their way to Python: which class of `sapwood.errors` each becomes, and what it
//! carries.
//!
//! The classes are Python's, so that they can be what Python programs catch already: a time-out is
//! a `TimeoutError`, a wrong value a `ValueError`. Nothing here decides what is an error.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use sapwood_node::NodeError;

use crate::answer::Missing;

/// What the network said, or what this interface says itself.
pub(crate) enum Failure {
    /// The network's own error.
    Network(sapwood::Error),
    /// An error of a class of `sapwood.errors`.
    Own(&'static str, String),
}

impl From<sapwood::Error> for Failure {
    fn from(error: sapwood::Error) -> Self {
        Self::Network(error)
    }
}

impl Failure {
    /// Something was used after it was closed.
    pub(crate) fn closed(what: &str) -> Self {
        Self::Own("ClosedError", format!("{what} is closed; open a new one"))
    }

    /// As Python raises it.
    pub(crate) fn into_error(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Network(error) => of_network(py, &error),
            Self::Own(class, text) => own(py, class, &text),
        }
    }
}

/// What was done, or nothing where it would have had to wait.
pub(crate) fn unless_full<T>(done: sapwood::Result<T>) -> Result<Option<T>, Failure> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(sapwood::Error::WouldWait { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An error of a class of `sapwood.errors`.
pub(crate) fn own(py: Python<'_>, class: &str, text: &str) -> PyErr {
    match instance(py, class, text) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// A wrong value, with its place among the values of a packet.
pub(crate) fn value(py: Python<'_>, class: &str, index: usize, text: &str) -> PyErr {
    own(py, class, &format!("value {index}: {text}"))
}

/// The network's error, with the ranks that it names.
pub(crate) fn of_network(py: Python<'_>, error: &sapwood::Error) -> PyErr {
    if let sapwood::Error::Memory(_) = error {
        return PyMemoryError::new_err(error.to_string());
    }
    let made = instance(py, class_of(error), &error.to_string()).and_then(|made| {
        match error {
            sapwood::Error::NoMemberLeft { missing } | sapwood::Error::NoValue { missing } => {
                made.setattr("missing", Missing::all(py, missing)?)?;
            }
            sapwood::Error::Group(sapwood::GroupFailure::NotJoined { is_refused, .. }) => {
                made.setattr("is_unheard", *is_refused)?;
            }
            sapwood::Error::Start(failures) => {
                let failures: Vec<(u32, &str)> =
                    failures.iter().map(|failure| (failure.rank, &*failure.text)).collect();
                made.setattr("failures", failures)?;
            }
            _ => {}
        }
        Ok(made)
    });
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

/// The system's error with a file, as Python's own functions raise it: of the class that the number
/// of the error has, with the file's name.
pub(crate) fn of_file(py: Python<'_>, path: &Path, error: &io::Error) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return PyOSError::new_err(format!("{}: {error}", path.display()));
    };
    let words = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
    let class = py.get_type::<PyOSError>();
    match words.and_then(|words| class.call1((number, words, path.as_os_str()))) {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

fn instance<'py>(py: Python<'py>, class: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("sapwood.errors")?.getattr(class)?.call1((PyString::new(py, text),))
}

fn class_of(error: &sapwood::Error) -> &'static str {
    use sapwood::Error;
    match error {
        Error::Topology(_) => "TopologyError",
        Error::Misuse(NodeError::Stream { .. }) => "ClosedError",
        Error::Misuse(NodeError::Filter(_)) => "FilterError",
        Error::Misuse(NodeError::TooLong { .. } | NodeError::TooManyValues { .. })
        | Error::Packet(_) => "ValuesError",
        Error::Misuse(_) | Error::Unreceived { .. } => "MisuseError",
        Error::Start(_) => "StartError",
        Error::Timeout { .. } | Error::NoAddress { .. } => "TimeoutError",
        Error::NoMemberLeft { .. } => "NoMemberLeftError",
        Error::NoValue { .. } => "NoValueError",
        Error::Ended { .. } => "EndedError",
        Error::Group(sapwood::GroupFailure::Ended) => "EndedError",
        Error::Group(sapwood::GroupFailure::NoValue { .. }) => "NoValueError",
        Error::Group(_) => "GroupError",
        error if error.is_missing_program() => "ProgramError",
        Error::File { .. } => "FileError",
        // `Interrupted` stands for an exception of Python's, which is raised in its place.
        _ => "SystemError",
    }
}
