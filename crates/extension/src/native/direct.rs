//! A filter's function called as C would call it: with everything laid out beforehand, and an
//! output that only lends memory. What calls through the node cost beyond that is what
//! `sapwood bench filter` prints.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use sapwood_filter::{FilterError, WaveRef};

use super::filter::failed;
use super::interface::{RawFilter, RawOut, RawValue};
use super::library::Library;
use super::view::View;
use crate::{ExtensionError, FilterFile};

/// A stateless filter of a shared object, to be called directly.
pub struct DirectCall {
    functions: RawFilter,
    view: View,
    room: Vec<u64>,
    _library: Arc<Library>,
}

/// The output; it begins with what the filter sees of it.
#[repr(C)]
struct Room<'a> {
    raw: RawOut,
    words: &'a mut Vec<u64>,
}

impl DirectCall {
    /// Loads a file and finds a filter in it.
    ///
    /// # Errors
    /// As for a filter that a stream asks for.
    pub fn new(file: &FilterFile, name: &str) -> Result<Self, ExtensionError> {
        let library = Library::load_bytes(&file.shipped())?;
        let (_, functions) = library.find(name)?;
        Ok(Self { functions, view: View::default(), room: Vec::new(), _library: library })
    }

    /// Calls it `calls` times with the same wave, and drops what it emits.
    ///
    /// # Errors
    /// [`FilterError`] when it fails.
    pub fn repeat(&mut self, wave: &WaveRef<'_>, calls: u32) -> Result<(), FilterError> {
        let Self { functions, view, room, .. } = self;
        let shown = view.show(wave)?;
        let Some(transform) = functions.transform else {
            return Err(failed("direct", "has no transform"));
        };
        let raw = RawOut { send, send_array, fail };
        let mut out = Room { raw, words: room };
        for _ in 0..calls {
            // SAFETY: the header's contract; wave, view and output live until the call returns.
            let code =
                unsafe { transform(ptr::null_mut(), &raw const shown, (&raw mut out).cast()) };
            if code != 0 {
                return Err(failed("direct", "failed"));
            }
        }
        Ok(())
    }
}

unsafe extern "C" fn send(_: *mut RawOut, _: u32, _: i32, _: *const RawValue, _: u32) -> i32 {
    0
}

/// # Safety
/// `out` begins a [`Room`].
unsafe extern "C" fn send_array(
    out: *mut RawOut,
    _: u32,
    _: i32,
    _: u32,
    count: u64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let out = unsafe { &mut *out.cast::<Room<'_>>() };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if out.words.len() < count {
        out.words.resize(count, 0);
    }
    out.words.as_mut_ptr().cast()
}

unsafe extern "C" fn fail(_: *mut RawOut, _: *const c_char, _: u32) -> i32 {
    1
}
