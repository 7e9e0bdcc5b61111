//! Texts and durations as C gives and takes them.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Failure, Result};

/// A text of the caller's; none for NULL.
///
/// # Safety
/// `text` is NULL or a NUL-terminated string that lives as long as the result is used.
pub(crate) unsafe fn optional<'a>(what: &str, text: *const c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so a string of the caller's.
    let text = unsafe { CStr::from_ptr(text) };
    let not_text = || Failure::usage(format!("{what}: '{}' is no UTF-8", text.to_string_lossy()));
    Ok(Some(text.to_str().map_err(|_| not_text())?))
}

/// A text of the caller's that must be there.
///
/// # Safety
/// As [`optional`].
pub(crate) unsafe fn required<'a>(what: &str, text: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller vouches for the text.
    unsafe { optional(what, text) }?.ok_or_else(|| Failure::usage(format!("{what}: is NULL")))
}

/// A path of the caller's; paths need not be UTF-8.
///
/// # Safety
/// As [`optional`].
pub(crate) unsafe fn path(what: &str, text: *const c_char) -> Result<PathBuf> {
    if text.is_null() {
        return Err(Failure::usage(format!("{what}: is NULL")));
    }
    // SAFETY: not NULL, so a string of the caller's.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// The texts of a list that ends with NULL; none for a list that is NULL.
///
/// # Safety
/// `list` is NULL or an array of strings whose last element is NULL.
pub(crate) unsafe fn list<'a>(
    what: &str,
    mut list: *const *const c_char,
) -> Result<Option<Vec<&'a str>>> {
    if list.is_null() {
        return Ok(None);
    }
    let mut texts = Vec::new();
    // SAFETY: the caller's array has a NULL at its end, where this stops.
    unsafe {
        while let Some(text) = optional(what, list.read())? {
            texts.push(text);
            list = list.add(1);
        }
    }
    Ok(Some(texts))
}

/// A text for C. A NUL inside, which C could not see past, ends it.
pub(crate) fn to_c(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    CString::new(bytes).expect("it was cut before its first NUL")
}

/// A wait in milliseconds; none for -1, which is for ever.
pub(crate) fn wait(timeout_ms: i32) -> Result<Option<Duration>> {
    match timeout_ms {
        -1 => Ok(None),
        _ => limited(timeout_ms).map(Some),
    }
}

/// A time without anything to do, in whole milliseconds that are not shorter; -1 for ever.
pub(crate) fn idle(time: Option<Duration>) -> i32 {
    let Some(time) = time else { return -1 };
    i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
}

/// A wait in milliseconds that has an end.
pub(crate) fn limited(timeout_ms: i32) -> Result<Duration> {
    let wrong = |_| Failure::usage(format!("timeout_ms: {timeout_ms} is no wait here"));
    Ok(Duration::from_millis(u64::try_from(timeout_ms).map_err(wrong)?))
}
