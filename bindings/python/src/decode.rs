//! Values on their way out of a packet. An array is a view of the packet's own memory, which it
//! keeps alive and cannot write to.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, ffi};
use sapwood::{Packet, ValuesRef};
use sapwood_packet::{Directive, ElementType, PacketError, Shape};

use crate::encode::{BYTES, for_element};
use crate::error;

/// All values of a packet.
pub(crate) fn values<'py>(py: Python<'py>, packet: &Arc<Packet>) -> PyResult<Bound<'py, PyTuple>> {
    let count = packet.values().len();
    let values = (0..count).map(|index| value(py, packet, index));
    PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
}

/// The only value of a packet; all of them if there are several, nothing if there is none.
pub(crate) fn lone<'py>(py: Python<'py>, packet: &Arc<Packet>) -> PyResult<Bound<'py, PyAny>> {
    match packet.values().len() {
        0 => Ok(py.None().into_bound(py)),
        1 => value(py, packet, 0),
        _ => Ok(values(py, packet)?.into_any()),
    }
}

fn value<'py>(py: Python<'py>, packet: &Arc<Packet>, index: usize) -> PyResult<Bound<'py, PyAny>> {
    let all = packet.values();
    let wrong = |error: PacketError| error::of_network(py, &error.into());
    let directive = all.format().directive(index).ok_or(PacketError::Index { index, count: 0 });
    let directive = directive.map_err(wrong)?;
    if directive == BYTES {
        return bytes(py, all, index);
    }
    let Directive { element, shape } = directive;
    match (shape, element) {
        (Shape::Scalar, ElementType::String) => text(py, all.string_bytes(index).map_err(wrong)?),
        (Shape::Scalar, element) => {
            for_element!(element, scalar(py, all, index), Ok(py.None().into_bound(py)))
        }
        (_, ElementType::String) => {
            let texts = all.strings(index).map_err(wrong)?.map(|bytes| text(py, bytes));
            Ok(PyList::new(py, texts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (_, element) => {
            for_element!(element, array(py, packet, index), Ok(py.None().into_bound(py)))
        }
    }
}

/// Text where the bytes are text; a packet does not say which they are meant to be.
pub(crate) fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, bytes).into_any(),
    })
}

/// What was sent as `bytes`: a copy, as they keep nothing alive.
fn bytes<'py>(py: Python<'py>, values: ValuesRef<'_>, index: usize) -> PyResult<Bound<'py, PyAny>> {
    let elements = values.array::<i8>(index);
    let elements = elements.map_err(|error| error::of_network(py, &error.into()))?;
    let filled = PyBytes::new_with(py, elements.len(), |place| {
        for (to, from) in place.iter_mut().zip(elements) {
            *to = from.cast_unsigned();
        }
        Ok(())
    });
    Ok(filled?.into_any())
}

fn scalar<'py, T>(
    py: Python<'py>,
    values: ValuesRef<'_>,
    index: usize,
) -> PyResult<Bound<'py, PyAny>>
where
    T: sapwood_packet::Element + IntoPyObject<'py>,
{
    let number = values.scalar::<T>(index);
    number.map_err(|error| error::of_network(py, &error.into()))?.into_bound_py_any(py)
}

fn array<'py, T: sapwood_packet::Element>(
    py: Python<'py>,
    packet: &Arc<Packet>,
    index: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let elements = packet.values().array::<T>(index);
    let elements = elements.map_err(|error| error::of_network(py, &error.into()))?;
    let numpy = Numpy::of(py)?;
    let dtype = &numpy.dtypes[T::TYPE as usize - 1];
    if elements.is_empty() {
        return numpy.empty.bind(py).call1((0, dtype));
    }
    let view = View {
        _packet: Arc::clone(packet),
        start: elements.as_ptr() as usize,
        shape: [elements.len().cast_signed()],
        strides: [size_of::<T>().cast_signed()],
        element: T::TYPE,
    };
    numpy.from_buffer.bind(py).call1((Bound::new(py, view)?, dtype))
}

/// What is needed of NumPy, which is loaded with the first array and not before.
struct Numpy {
    from_buffer: Py<PyAny>,
    empty: Py<PyAny>,
    /// By element, in the order of [`ElementType::ALL`], strings aside.
    dtypes: Vec<Py<PyAny>>,
}

impl Numpy {
    fn of(py: Python<'_>) -> PyResult<&Self> {
        static LOADED: PyOnceLock<Numpy> = PyOnceLock::new();
        LOADED.get_or_try_init(py, || {
            let numpy = py.import("numpy")?;
            let dtype = numpy.getattr("dtype")?;
            let names = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"];
            let dtypes = names.into_iter().map(|name| Ok(dtype.call1((name,))?.unbind()));
            Ok(Self {
                from_buffer: numpy.getattr("frombuffer")?.unbind(),
                empty: numpy.getattr("empty")?.unbind(),
                dtypes: dtypes.collect::<PyResult<_>>()?,
            })
        })
    }
}

/// Elements that lie in a packet, lent by the buffer protocol.
#[pyclass(module = "sapwood._native", frozen)]
struct View {
    /// Keeps the elements where they are: a packet's memory neither moves nor changes.
    _packet: Arc<Packet>,
    start: usize,
    shape: [isize; 1],
    strides: [isize; 1],
    element: ElementType,
}

#[pymethods]
impl View {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            let text = "a packet's values cannot be written to; make a copy";
            return Err(PyBufferError::new_err(text));
        }
        let lent = slf.get();
        let wants = |flag: c_int| flags & flag == flag;
        let [count] = lent.shape;
        let [size] = lent.strides;
        let format = format_of(lent.element);
        // SAFETY: Python lends a `Py_buffer` to be filled. What it gets to point to lives in the
        // object that it gets to hold, which never changes, or as long as the program.
        unsafe {
            (*view).buf = lent.start as *mut c_void;
            (*view).len = count * size;
            (*view).readonly = 1;
            (*view).itemsize = size;
            (*view).format = if wants(ffi::PyBUF_FORMAT) {
                format.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).ndim = 1;
            (*view).shape = if wants(ffi::PyBUF_ND) {
                lent.shape.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).strides = if wants(ffi::PyBUF_STRIDES) {
                lent.strides.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}

fn format_of(element: ElementType) -> &'static CStr {
    match element {
        ElementType::Int8 => c"b",
        ElementType::Uint8 | ElementType::String => c"B",
        ElementType::Int16 => c"h",
        ElementType::Uint16 => c"H",
        ElementType::Int32 => c"i",
        ElementType::Uint32 => c"I",
        ElementType::Int64 => c"q",
        ElementType::Uint64 => c"Q",
        ElementType::Float => c"f",
        ElementType::Double => c"d",
    }
}
