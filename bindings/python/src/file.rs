//! Files of filters that go through the tree: shared objects and WebAssembly, whose filters the
//! engine makes, and files of Python, whose callables the interpreters of the tree make.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sapwood::{FilterError, ShippedFile};

use crate::filter::PREFIX;
use crate::handle::relaxed;

/// What the names of files of Python end with.
const SUFFIX: &str = "py";

/// Reads a file to be shipped; one of Python has to be a program.
pub(crate) fn read(py: Python<'_>, path: &Path) -> PyResult<Option<sapwood::FilterFile>> {
    if path.extension().is_none_or(|suffix| suffix != SUFFIX) {
        return Ok(None);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = std::fs::read(path)?;
    py.import("sapwood.filters")?.call_method1("check", (&*source, &*name))?;
    let file = sapwood::FilterFile::for_source(PREFIX, &name, source);
    Ok(Some(file.map_err(|error| crate::error::own(py, "FilterError", &error.to_string()))?))
}

/// A file of filters that every process of the tree has.
#[pyclass(module = "sapwood", frozen)]
pub(crate) struct FilterFile {
    name: String,
}

impl FilterFile {
    pub(crate) fn new(file: &sapwood::FilterFile) -> Self {
        Self { name: file.filter_name("") }
    }
}

#[pymethods]
impl FilterFile {
    /// A filter in it, or a synchronisation rule, with its parameters, as streams take it. The name
    /// may be left out where a file has one only.
    #[pyo3(signature = (name = "", *parameters))]
    fn filter<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        parameters: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let whole = match name {
            "" => self.name.clone(),
            name => format!("{}#{name}", self.name),
        };
        let mut parts = vec![whole.into_pyobject(py)?.into_any()];
        parts.extend(parameters.iter());
        PyTuple::new(py, parts)
    }

    /// The name of the file with its checksum.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("FilterFile('{}')", self.name)
    }
}

/// A callable of a shipped file.
pub(crate) struct Shipped<'a> {
    pub(crate) source: Vec<u8>,
    pub(crate) file: &'a str,
    pub(crate) callable: &'a str,
}

/// The shipped Python sources, by name and checksum.
#[derive(Default)]
pub(crate) struct Sources {
    texts: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Sources {
    /// Keeps a source whose checksum is right.
    pub(crate) fn take(&self, file: &ShippedFile<'_>) -> Result<(), FilterError> {
        let said = |text: String| FilterError::Failed(text);
        let read = sapwood::FilterFile::for_source(PREFIX, file.name, file.bytes.to_vec());
        let read = read.map_err(|error| said(error.to_string()))?;
        if read.digest() != file.digest {
            return Err(said(format!("'{}' has another checksum than it should have", file.name)));
        }
        let mut texts = relaxed(&self.texts);
        texts.insert(read.filter_name(""), file.bytes.to_vec());
        Ok(())
    }

    /// What a name without its prefix stands for, if it is that of a file.
    pub(crate) fn find<'a>(&self, name: &'a str) -> Result<Option<Shipped<'a>>, FilterError> {
        let Some((file, digits)) = name.split_once('=') else { return Ok(None) };
        let (digits, callable) = digits.split_once('#').unwrap_or((digits, ""));
        let texts = relaxed(&self.texts);
        match texts.get(&format!("{PREFIX}:{file}={digits}")) {
            Some(text) => Ok(Some(Shipped { source: text.clone(), file, callable })),
            None => Err(FilterError::Failed(format!("filters '{file}' have not been shipped"))),
        }
    }
}
