//! What a filter in C makes, on its way into the node's emitter.

use std::ffi::{c_char, c_void};
use std::{ptr, slice};

use sapwood_filter::{Emitter, FilterError};
use sapwood_packet::{DIRECTIVES_MAX, ElementType, Format, Shape};

use super::interface::{BACK, RawOut, RawValue};
use crate::ExtensionError;
use crate::value_span::{check_value, push_value};

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 4096;

/// One call's output. It begins with what the filter sees of it.
#[repr(C)]
pub(super) struct Emission<'a> {
    raw: RawOut,
    emitter: &'a mut Emitter,
    /// Why the call has failed, in the filter's words or ours.
    reason: Option<String>,
}

impl<'a> Emission<'a> {
    pub(super) fn into(emitter: &'a mut Emitter) -> Self {
        Self { raw: RawOut { send, send_array, fail }, emitter, reason: None }
    }

    /// What the filter is given.
    pub(super) fn as_raw(&mut self) -> *mut RawOut {
        ptr::from_mut(self).cast()
    }

    /// How the call has gone, by what the function gave.
    #[inline]
    pub(super) fn outcome(self, name: &str, code: i32) -> Result<(), FilterError> {
        match (code, self.reason) {
            (0, None) => Ok(()),
            (_, reason) => Err(failure(name, code, reason)),
        }
    }

    fn refuse(&mut self, reason: &str) {
        // The first reason is the cause of those that follow.
        if self.reason.is_none() {
            self.reason = Some(reason.to_string());
        }
    }
}

#[cold]
fn failure(name: &str, code: i32, reason: Option<String>) -> FilterError {
    let reason = reason.unwrap_or_else(|| format!("failed with {code} and gave no reason"));
    ExtensionError::Filter { name: name.to_string(), reason }.into()
}

/// # Safety
/// `out` is what [`Emission::as_raw`] gave for the call under way, and `values` points to `count`
/// values, each with the elements that it states.
unsafe extern "C" fn send(
    out: *mut RawOut,
    way: u32,
    tag: i32,
    values: *const RawValue,
    count: u32,
) -> i32 {
    // SAFETY: the caller's promise; an emission begins with its raw part.
    let out = unsafe { &mut *out.cast::<Emission<'_>>() };
    if count as usize > DIRECTIVES_MAX || (values.is_null() && count > 0) {
        out.refuse("emitted more than 64 values, or none at NULL");
        return 1;
    }
    let values: &[RawValue] = match count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { slice::from_raw_parts(values, count as usize) },
    };
    let mut format = Format::empty();
    let mut room = 0_usize;
    for value in values {
        match check_value(value.element, value.shape, value.count, value.bytes) {
            Ok((directive, length)) if length == 0 || !value.data.is_null() => {
                format.push(directive);
                room = room.saturating_add(length + 16);
            }
            Ok(_) => {
                out.refuse("emitted a value that lies at NULL");
                return 1;
            }
            Err(reason) => {
                out.refuse(reason);
                return 1;
            }
        }
    }
    let mut problem = "";
    let built = out.emitter.build(way == BACK, tag, format, room, |body| {
        for value in values {
            let checked = check_value(value.element, value.shape, value.count, value.bytes);
            let (directive, length) = checked.map_err(|reason| refusal(&mut problem, reason))?;
            let elements: &[u8] = match length {
                0 => &[],
                // SAFETY: not null, and the caller promises `length` bytes there.
                _ => unsafe { slice::from_raw_parts(value.data.cast(), length) },
            };
            push_value(body, directive, value.count, elements)
                .map_err(|reason| refusal(&mut problem, reason))?;
        }
        Ok(())
    });
    match built {
        Ok(()) => 0,
        Err(FilterError::Memory(error)) => {
            out.refuse(&error.to_string());
            1
        }
        Err(_) => {
            out.refuse(problem);
            1
        }
    }
}

#[cold]
fn refusal(problem: &mut &'static str, reason: &'static str) -> FilterError {
    *problem = reason;
    FilterError::Failed(String::new())
}

/// # Safety
/// As [`send`].
unsafe extern "C" fn send_array(
    out: *mut RawOut,
    way: u32,
    tag: i32,
    element: u32,
    count: u64,
) -> *mut c_void {
    // SAFETY: the caller's promise; an emission begins with its raw part.
    let out = unsafe { &mut *out.cast::<Emission<'_>>() };
    let shape = if u32::try_from(count).is_ok() { Shape::Array } else { Shape::LargeArray };
    let (directive, length) = match check_value(element, shape as u32, count, 0) {
        Ok((directive, length)) if directive.element != ElementType::String => (directive, length),
        Ok(_) => {
            out.refuse("asked for room for strings, whose lengths are not known");
            return ptr::null_mut();
        }
        Err(reason) => {
            out.refuse(reason);
            return ptr::null_mut();
        }
    };
    let mut format = Format::empty();
    format.push(directive);
    let mut room = ptr::null_mut();
    let built = out.emitter.build(way == BACK, tag, format, length + 8, |body| {
        body.extend_u64(count);
        // It moves only when more is emitted, from when on the filter must not use it.
        room = body.grow(length).as_mut_ptr().cast();
        Ok(())
    });
    if let Err(error) = built {
        out.refuse(&error.to_string());
    }
    room
}

/// # Safety
/// As [`send`], and `text` points to `bytes` bytes.
unsafe extern "C" fn fail(out: *mut RawOut, text: *const c_char, bytes: u32) -> i32 {
    // SAFETY: the caller's promise; an emission begins with its raw part.
    let out = unsafe { &mut *out.cast::<Emission<'_>>() };
    let length = (bytes as usize).min(REASON_BYTES_MAX);
    if text.is_null() || length == 0 {
        out.refuse("failed and gave no reason");
        return 1;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    out.refuse(&String::from_utf8_lossy(text));
    1
}
