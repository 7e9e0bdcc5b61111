//! Values on their way into a packet: what Python gives, by its own type or by a format string.
//!
//! An array of any library that speaks the buffer protocol is read where it lies and written once,
//! into the packet. An array keeps its element type: nothing is converted unseen.

use std::borrow::Cow;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple,
};
use sapwood::{Format, Values};
use sapwood_packet::{Directive, Element, ElementType, Shape};

use crate::error;

/// Calls a function for the Rust type of an element; a string has none.
macro_rules! for_element {
    ($element:expr, $function:ident($($argument:expr),* $(,)?), $string:expr) => {
        match $element {
            ElementType::Int8 => $function::<i8>($($argument),*),
            ElementType::Uint8 => $function::<u8>($($argument),*),
            ElementType::Int16 => $function::<i16>($($argument),*),
            ElementType::Uint16 => $function::<u16>($($argument),*),
            ElementType::Int32 => $function::<i32>($($argument),*),
            ElementType::Uint32 => $function::<u32>($($argument),*),
            ElementType::Int64 => $function::<i64>($($argument),*),
            ElementType::Uint64 => $function::<u64>($($argument),*),
            ElementType::Float => $function::<f32>($($argument),*),
            ElementType::Double => $function::<f64>($($argument),*),
            ElementType::String => $string,
        }
    };
}
pub(crate) use for_element;

/// What Python's `bytes` are in a packet. A string is text for Python, and bytes of NumPy are an
/// array; neither is sent as a large array of characters, so that this says which it was.
pub(crate) const BYTES: Directive = Directive::new(ElementType::Int8, Shape::LargeArray);

/// The values of a packet, by a format if there is one.
pub(crate) fn values(items: &Bound<'_, PyTuple>, format: Option<&str>) -> PyResult<Values> {
    let Some(format) = format else {
        let mut values = Values::new();
        for (index, item) in items.iter_borrowed().enumerate() {
            values = inferred(values, index, &item)?;
        }
        return Ok(values);
    };
    let py = items.py();
    let parsed = format.parse::<Format>().map_err(|error| error::of_network(py, &error.into()))?;
    let wanted = parsed.as_ref().directives();
    let (count, given) = (parsed.as_ref().len(), items.len());
    if count != given {
        let text = format!("the format '{format}' is for {count} values, {given} were given");
        return Err(error::own(py, "ValuesError", &text));
    }
    let mut values = Values::new();
    for (index, (directive, item)) in wanted.zip(items.iter_borrowed()).enumerate() {
        values = directed(values, index, directive, &item)?;
    }
    Ok(values)
}

/// A value by its own type.
fn inferred(values: Values, index: usize, item: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(flag) = item.cast::<PyBool>() {
        return Ok(values.scalar(u8::from(flag.is_true())));
    }
    if item.is_instance_of::<PyInt>() {
        return whole(values, index, item);
    }
    if item.is_instance_of::<PyFloat>() {
        return Ok(values.scalar(item.extract::<f64>()?));
    }
    if let Some(bytes) = bytes_of(item)? {
        return array(values, index, BYTES, item.py(), &bytes);
    }
    if let Some(text) = text_of(item)? {
        return Ok(values.string(text));
    }
    if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
        return sequence(values, index, item);
    }
    if let Some(element) = scalar_element(index, item)? {
        let (number, directive) =
            (item.call_method0("item")?, Directive::new(element, Shape::Scalar));
        return directed(values, index, directive, &number);
    }
    let Ok(buffer) = PyUntypedBuffer::get(item) else {
        let text = format!(
            "a {} is no value; send numbers, texts, arrays of numbers or lists of texts",
            item.get_type().name()?
        );
        return Err(error::value(item.py(), "DtypeError", index, &text));
    };
    let element = element_of(item.py(), index, &buffer)?;
    array(values, index, Directive::new(element, Shape::Array), item.py(), &buffer)
}

/// A whole number. Its type does not depend on its value: a filter or a receiver of the one type
/// would refuse the other, and only when a number is large.
fn whole(values: Values, index: usize, item: &Bound<'_, PyAny>) -> PyResult<Values> {
    let Ok(number) = item.extract::<i64>() else {
        return Err(error::value(item.py(), "ValuesError", index, &too_large(item)));
    };
    Ok(values.scalar(number))
}

/// What to do about a whole number that does not fit.
fn too_large(item: &Bound<'_, PyAny>) -> String {
    match item.extract::<u64>() {
        Ok(_) => format!("{item} does not fit %ld; larger numbers need format=\"%uld\""),
        Err(_) => format!("{item} does not fit 64 bits"),
    }
}

/// A list, by its elements: all texts, all whole numbers, or numbers.
fn sequence(values: Values, index: usize, item: &Bound<'_, PyAny>) -> PyResult<Values> {
    let py = item.py();
    let items = item.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    let Some(first) = items.first() else {
        let text = "an empty list has no type; give a format, or an array";
        return Err(error::value(py, "DtypeError", index, text));
    };
    if text_of(first)?.is_some() {
        return texts(values, index, Shape::Array, &items);
    }
    let is_whole = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyInt>();
    if items.iter().all(is_whole) {
        let Ok(numbers) = all_of::<i64>(&items) else {
            return Err(error::value(py, "ValuesError", index, &too_large_list(&items)));
        };
        return Ok(values.array(&numbers));
    }
    if items.iter().all(|item| is_whole(item) || item.is_instance_of::<PyFloat>()) {
        return Ok(values.array(&all_of::<f64>(&items)?));
    }
    let text = "a list holds texts or numbers, not both and nothing else; make an array of it";
    Err(error::value(py, "DtypeError", index, text))
}

/// What to do about a list of whole numbers that do not all fit.
fn too_large_list(items: &[Bound<'_, PyAny>]) -> String {
    let fits =
        |item: &Bound<'_, PyAny>| (item.extract::<i64>().is_ok(), item.extract::<u64>().is_ok());
    let first = |wanted| items.iter().find(|item| fits(item) == wanted);
    match (first((false, false)), first((true, false)), first((false, true))) {
        (Some(item), ..) => format!("{item} of the list does not fit 64 bits"),
        (_, Some(negative), Some(large)) => {
            format!("{negative} and {large} of the list fit neither %ald nor %auld together")
        }
        _ => "a number of the list does not fit %ald; larger ones need format=\"%auld\"".into(),
    }
}

fn all_of<'py, T>(items: &[Bound<'py, PyAny>]) -> PyResult<Vec<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    items.iter().map(|item| item.extract::<T>()).collect()
}

/// A value as a directive wants it.
fn directed(
    values: Values,
    index: usize,
    directive: Directive,
    item: &Bound<'_, PyAny>,
) -> PyResult<Values> {
    match (directive.shape, directive.element) {
        (Shape::Scalar, ElementType::String) => match text_of(item)? {
            Some(bytes) => Ok(values.string(bytes)),
            None => Err(mismatch(index, directive, item)),
        },
        (Shape::Scalar, element) => {
            for_element!(element, scalar_as(values, index, directive, item), Ok(values))
        }
        (shape, ElementType::String) => match item.try_iter() {
            Ok(items) if text_of(item)?.is_none() => {
                texts(values, index, shape, &items.collect::<PyResult<Vec<_>>>()?)
            }
            _ => Err(mismatch(index, directive, item)),
        },
        _ => array_as(values, index, directive, item),
    }
}

/// A number that Python can give as a type of Rust's.
trait FromNumber: Element {
    fn from_number(item: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! from_number {
    ($($type:ty)*) => {$(
        impl FromNumber for $type {
            fn from_number(item: &Bound<'_, PyAny>) -> PyResult<Self> {
                item.extract::<$type>()
            }
        }
    )*};
}

from_number! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }

fn scalar_as<T: FromNumber>(
    values: Values,
    index: usize,
    directive: Directive,
    item: &Bound<'_, PyAny>,
) -> PyResult<Values> {
    Ok(values.scalar(number::<T>(index, directive, item)?))
}

fn number<T: FromNumber>(
    index: usize,
    directive: Directive,
    item: &Bound<'_, PyAny>,
) -> PyResult<T> {
    let py = item.py();
    T::from_number(item).map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(py) {
            let text = format!("{item} does not fit {directive}");
            return error::value(py, "ValuesError", index, &text);
        }
        mismatch(index, directive, item)
    })
}

fn array_as(
    values: Values,
    index: usize,
    directive: Directive,
    item: &Bound<'_, PyAny>,
) -> PyResult<Values> {
    let py = item.py();
    let is_list = item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>();
    if is_list {
        let items = item.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return for_element!(
            directive.element,
            numbers_as(values, index, directive, &items),
            Ok(values)
        );
    }
    if directive == BYTES
        && let Some(bytes) = bytes_of(item)?
    {
        return array(values, index, BYTES, py, &bytes);
    }
    let Ok(buffer) = PyUntypedBuffer::get(item) else {
        return Err(mismatch(index, directive, item));
    };
    let element = element_of(py, index, &buffer)?;
    if element != directive.element {
        return Err(mismatch(index, directive, item));
    }
    array(values, index, directive, py, &buffer)
}

fn numbers_as<T: FromNumber>(
    values: Values,
    index: usize,
    directive: Directive,
    items: &[Bound<'_, PyAny>],
) -> PyResult<Values> {
    let numbers = items.iter().map(|item| number::<T>(index, directive, item));
    let numbers = numbers.collect::<PyResult<Vec<T>>>()?;
    Ok(put(values, directive.shape, &numbers))
}

/// An array that lies somewhere, as it lies there.
fn array(
    values: Values,
    index: usize,
    directive: Directive,
    py: Python<'_>,
    buffer: &PyUntypedBuffer,
) -> PyResult<Values> {
    if buffer.dimensions() > 1 {
        let text = format!(
            "the array has {} dimensions, of which a packet keeps none; send array.ravel() and \
             its shape",
            buffer.dimensions()
        );
        return Err(error::value(py, "LayoutError", index, &text));
    }
    if !buffer.is_c_contiguous() {
        let text = "the elements of the array do not lie one behind another; send a copy of it, \
                    as numpy.ascontiguousarray makes";
        return Err(error::value(py, "LayoutError", index, text));
    }
    for_element!(directive.element, array_of(values, directive.shape, buffer), Ok(values))
}

fn array_of<T: Element>(
    values: Values,
    shape: Shape,
    buffer: &PyUntypedBuffer,
) -> PyResult<Values> {
    let (start, count) = (buffer.buf_ptr().cast::<T>(), buffer.item_count());
    let elements: Cow<'_, [T]> = if count == 0 {
        Cow::Borrowed(&[])
    } else if start.is_aligned() {
        // SAFETY: a contiguous buffer of `count` elements of this type, which lives as long as it
        // is held here. The interpreter is not let go meanwhile; a thread that writes there without
        // it races with every reader of the array.
        Cow::Borrowed(unsafe { std::slice::from_raw_parts(start, count) })
    } else {
        // SAFETY: as above.
        Cow::Owned((0..count).map(|at| unsafe { start.add(at).read_unaligned() }).collect())
    };
    Ok(put(values, shape, &elements))
}

/// As an array with a long length where the short one does not do.
fn put<T: Element>(values: Values, shape: Shape, elements: &[T]) -> Values {
    if shape == Shape::LargeArray || u32::try_from(elements.len()).is_err() {
        values.large_array(elements)
    } else {
        values.array(elements)
    }
}

fn texts(
    values: Values,
    index: usize,
    shape: Shape,
    items: &[Bound<'_, PyAny>],
) -> PyResult<Values> {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match text_of(item)? {
            Some(text) => texts.push(text),
            None => {
                let kind = item.get_type().name()?;
                let text = format!("a list of texts holds a {kind}");
                return Err(error::value(item.py(), "DtypeError", index, &text));
            }
        }
    }
    Ok(match shape {
        Shape::LargeArray => values.large_strings(&texts),
        _ => values.strings(&texts),
    })
}

/// The bytes of a text, if it is one.
fn text_of<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<Option<Cow<'a, [u8]>>> {
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Some(match text.to_cow()? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }));
    }
    Ok(item.cast::<PyBytes>().ok().map(|bytes| Cow::Borrowed(bytes.as_bytes())))
}

/// The memory of what is bytes for Python: `bytes`, a `bytearray`, or a view of either. A view of
/// other numbers is an array of these.
fn bytes_of(item: &Bound<'_, PyAny>) -> PyResult<Option<PyUntypedBuffer>> {
    let is_view = item.is_instance_of::<PyMemoryView>();
    if !is_view && !item.is_instance_of::<PyBytes>() && !item.is_instance_of::<PyByteArray>() {
        return Ok(None);
    }
    let buffer = PyUntypedBuffer::get(item)?;
    let is_bytes = matches!(buffer.format().to_bytes(), b"B" | b"c");
    Ok(is_bytes.then_some(buffer))
}

/// What a scalar of NumPy is, or an array without dimensions; nothing for other things.
fn scalar_element(index: usize, item: &Bound<'_, PyAny>) -> PyResult<Option<ElementType>> {
    let (Ok(dtype), Ok(0)) =
        (item.getattr("dtype"), item.getattr("ndim").and_then(|n| n.extract()))
    else {
        return Ok(None);
    };
    let name: String = dtype.getattr("str")?.extract()?;
    let element = match name.as_str() {
        "|i1" => ElementType::Int8,
        "|u1" => ElementType::Uint8,
        "<i2" => ElementType::Int16,
        "<u2" => ElementType::Uint16,
        "<i4" => ElementType::Int32,
        "<u4" => ElementType::Uint32,
        "<i8" => ElementType::Int64,
        "<u8" => ElementType::Uint64,
        "<f4" => ElementType::Float,
        "<f8" => ElementType::Double,
        _ => {
            let text = format!("a number '{name}' is none that a packet holds; convert it");
            return Err(error::value(item.py(), "DtypeError", index, &text));
        }
    };
    Ok(Some(element))
}

/// What the elements of a buffer are, if a packet can hold them.
fn element_of(py: Python<'_>, index: usize, buffer: &PyUntypedBuffer) -> PyResult<ElementType> {
    let format = buffer.format().to_bytes();
    let (order, code) = match format {
        [order @ (b'@' | b'=' | b'<' | b'>' | b'!'), code @ ..] => (*order, code),
        code => (b'@', code),
    };
    let size = buffer.item_size();
    let is_swapped = matches!(order, b'>' | b'!') && size > 1;
    let element = match (code, size) {
        _ if is_swapped => None,
        (b"b", 1) => Some(ElementType::Int8),
        (b"B", 1) => Some(ElementType::Uint8),
        (b"h", 2) => Some(ElementType::Int16),
        (b"H", 2) => Some(ElementType::Uint16),
        (b"i" | b"l", 4) => Some(ElementType::Int32),
        (b"I" | b"L", 4) => Some(ElementType::Uint32),
        (b"l" | b"q" | b"n", 8) => Some(ElementType::Int64),
        (b"L" | b"Q" | b"N", 8) => Some(ElementType::Uint64),
        (b"f", 4) => Some(ElementType::Float),
        (b"d", 8) => Some(ElementType::Double),
        _ => None,
    };
    element.ok_or_else(|| {
        let found = String::from_utf8_lossy(format).into_owned();
        let text = format!(
            "an array of elements '{found}' of {size} bytes; a packet holds whole numbers of 8 to \
             64 bits and float32 and float64, in this machine's byte order: convert with astype"
        );
        error::value(py, "DtypeError", index, &text)
    })
}

/// A value is something else than its directive.
fn mismatch(index: usize, directive: Directive, item: &Bound<'_, PyAny>) -> PyErr {
    let kind = item.get_type().name().map_or_else(|_| "value".into(), |name| name.to_string());
    let kind = match item.getattr("dtype") {
        Ok(dtype) => format!("{kind} of {dtype}"),
        Err(_) => kind,
    };
    let text = format!("the format says {directive}, a {kind} was given; nothing is converted");
    error::value(item.py(), "DtypeError", index, &text)
}
