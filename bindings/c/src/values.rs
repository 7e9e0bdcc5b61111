//! Values out of a format string and an array of pointers.

use std::ffi::{CStr, c_char, c_void};

use sapwood::Values;

use crate::error::{Failure, Result};
use crate::format::{for_element, is_array, is_large, parse};

/// The pointers of a call, taken one by one.
pub(crate) struct Pointers {
    next: *const *const c_void,
    left: usize,
    taken: usize,
}

impl Pointers {
    /// # Safety
    /// `first` is NULL or points to `count` pointers that live as long as this is used.
    pub(crate) unsafe fn new(first: *const *const c_void, count: usize) -> Self {
        Self { next: first, left: if first.is_null() { 0 } else { count }, taken: 0 }
    }

    /// The next one, which may be NULL.
    pub(crate) fn take(&mut self) -> Result<*const c_void> {
        let Some(left) = self.left.checked_sub(1) else {
            let text = format!("values: the format wants more than the {} pointers", self.taken);
            return Err(Failure::usage(text));
        };
        // SAFETY: the caller that made this vouches for `left` pointers.
        let pointer = unsafe { self.next.read() };
        // SAFETY: at most one past the end.
        self.next = unsafe { self.next.add(1) };
        (self.left, self.taken) = (left, self.taken + 1);
        Ok(pointer)
    }

    /// The next one, which must not be NULL.
    fn take_some(&mut self) -> Result<*const c_void> {
        let at = self.taken;
        let pointer = self.take()?;
        if pointer.is_null() {
            return Err(Failure::usage(format!("values: pointer {at} is NULL")));
        }
        Ok(pointer)
    }

    /// The number of elements that the next one points to.
    ///
    /// # Safety
    /// It points to a `uint64_t` if `is_large`, else to a `uint32_t`.
    unsafe fn take_count(&mut self, is_large: bool) -> Result<u64> {
        let pointer = self.take_some()?;
        // SAFETY: as the caller says; the caller's memory need not be aligned.
        Ok(unsafe {
            if is_large {
                pointer.cast::<u64>().read_unaligned()
            } else {
                pointer.cast::<u32>().read_unaligned().into()
            }
        })
    }

    /// Refuses pointers that the format does not name.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let text = format!("values: {} pointers more than the format names", self.left);
        Err(Failure::usage(text))
    }
}

/// Reads the caller's values.
///
/// # Safety
/// `format` is NULL or a string; `pointers` are what the format says: for a scalar one to it, for
/// `%s` the string, for an array one to its first element and one to its count.
pub(crate) unsafe fn build(format: *const c_char, mut pointers: Pointers) -> Result<Values> {
    // SAFETY: the caller's string.
    let format = unsafe { parse(format) }?;
    let mut values = Values::new();
    for &code in format.as_ref().codes() {
        // SAFETY: the caller vouches for the pointers.
        values = unsafe { add(values, code, &mut pointers) }?;
    }
    pointers.finish()?;
    Ok(values)
}

/// # Safety
/// The next pointers are what `code` says.
unsafe fn add(values: Values, code: u8, pointers: &mut Pointers) -> Result<Values> {
    if is_array(code) {
        // SAFETY: as the caller says.
        return unsafe { add_array(values, code, pointers) };
    }
    let pointer = pointers.take_some()?;
    // SAFETY: it points to one value of that type, or is a string.
    Ok(unsafe {
        for_element!(code,
            T => values.scalar(pointer.cast::<T>().read_unaligned()),
            string => values.string(CStr::from_ptr(pointer.cast()).to_bytes()))
    })
}

/// # Safety
/// The next two pointers are an array's and its count's.
unsafe fn add_array(values: Values, code: u8, pointers: &mut Pointers) -> Result<Values> {
    let at = pointers.taken;
    let first = pointers.take()?;
    // SAFETY: as the caller says.
    let count = unsafe { pointers.take_count(is_large(code)) }?;
    // SAFETY: the first of `count` elements.
    unsafe {
        for_element!(code,
        T => {
            let elements = slice::<T>(at, first, count)?;
            Ok(if is_large(code) { values.large_array(elements) } else { values.array(elements) })
        },
        string => {
            let strings = strings(at, slice::<*const c_char>(at, first, count)?)?;
            Ok(if is_large(code) { values.large_strings(&strings) } else { values.strings(&strings) })
        })
    }
}

/// # Safety
/// `first` is NULL or points to `count` elements.
unsafe fn slice<'a, T>(at: usize, first: *const c_void, count: u64) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let first = first.cast::<T>();
    let wrong = |what: &str| Failure::usage(format!("values: array at pointer {at} {what}"));
    if first.is_null() {
        return Err(wrong("is NULL and has elements"));
    }
    if !first.is_aligned() {
        return Err(wrong("is not aligned for its elements"));
    }
    let count = usize::try_from(count).ok();
    let fits = |count: &usize| {
        count.checked_mul(size_of::<T>()).is_some_and(|bytes| isize::try_from(bytes).is_ok())
    };
    let count = count.filter(fits).ok_or_else(|| wrong("is longer than memory"))?;
    // SAFETY: there, aligned and no longer than an object can be; the elements are the caller's
    // word.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// # Safety
/// Each is NULL or a string.
unsafe fn strings(at: usize, pointers: &[*const c_char]) -> Result<Vec<&[u8]>> {
    let text = |&pointer: &*const c_char| {
        if pointer.is_null() {
            return Err(Failure::usage(format!("values: array at pointer {at} holds a NULL")));
        }
        // SAFETY: as the caller says.
        Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
    };
    pointers.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(format: &CStr, pointers: &[*const c_void]) -> Result<Values> {
        // SAFETY: the tests give what the format says.
        unsafe { build(format.as_ptr(), Pointers::new(pointers.as_ptr(), pointers.len())) }
    }

    #[test]
    fn values_are_read_from_pointers() {
        let (number, loads, count) = (7_i32, [0.5_f64, 1.5], 2_u32);
        let (names, many) = ([c"a".as_ptr(), c"bc".as_ptr()], 2_u64);
        let pointers = [
            (&raw const number).cast(),
            loads.as_ptr().cast(),
            (&raw const count).cast(),
            c"text".as_ptr().cast(),
            names.as_ptr().cast(),
            (&raw const many).cast(),
        ];
        let values = built(c"%d %alf %s %As", &pointers).expect("good values");
        let values = values.as_ref();
        assert_eq!(values.scalar::<i32>(0), Ok(7));
        assert_eq!(values.array::<f64>(1), Ok(&loads[..]));
        assert_eq!(values.string(2), Ok("text"));
        assert_eq!(values.strings(3).expect("strings").last(), Some(&b"bc"[..]));
    }

    #[test]
    fn an_empty_array_needs_no_memory() {
        let count = 0_u32;
        let values = built(c"%ad", &[std::ptr::null(), (&raw const count).cast()]);
        assert_eq!(values.expect("nothing").as_ref().array::<i32>(0), Ok(&[][..]));
    }

    #[test]
    fn what_does_not_fit_the_format_is_refused() {
        let (number, count, words) = (7_i32, 1_u32, [0_u64; 2]);
        let number: *const c_void = (&raw const number).cast();
        let count: *const c_void = (&raw const count).cast();
        let odd: *const c_void = words.as_ptr().cast::<u8>().wrapping_add(1).cast();
        let nothing: *const c_void = std::ptr::null();
        let text = |format, pointers: &[_]| built(format, pointers).expect_err("refused").text;
        assert!(text(c"%d %d", &[number]).contains("wants more than the 1 pointers"));
        assert!(text(c"%d", &[number, number]).contains("1 pointers more"));
        assert!(text(c"%d", &[nothing]).contains("pointer 0 is NULL"));
        assert!(text(c"%s", &[nothing]).contains("pointer 0 is NULL"));
        assert!(text(c"%ad", &[nothing, count]).contains("is NULL and has elements"));
        assert!(text(c"%alf", &[odd, count]).contains("is not aligned"));
        assert!(text(c"%q", &[number]).contains("'%q'"));
    }
}
