//! Format strings, parsed for code that walks a list of values: `varargs.c` and other languages.

use std::ffi::{CStr, c_char, c_int};

use sapwood::Format;

use crate::error::{Failure, Result, guard, sapwood_error_t};
use crate::text;

/// How many directives a format string may have.
pub const SAPWOOD_DIRECTIVES_MAX: usize = 64;

/// What one element of a value is: the low four bits of a directive's code.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_type_t {
    /// `%c`: int8_t.
    SAPWOOD_TYPE_INT8 = 1,
    /// `%uc`: uint8_t.
    SAPWOOD_TYPE_UINT8 = 2,
    /// `%hd`: int16_t.
    SAPWOOD_TYPE_INT16 = 3,
    /// `%uhd`: uint16_t.
    SAPWOOD_TYPE_UINT16 = 4,
    /// `%d`: int32_t.
    SAPWOOD_TYPE_INT32 = 5,
    /// `%ud`: uint32_t.
    SAPWOOD_TYPE_UINT32 = 6,
    /// `%ld`: int64_t, whatever the machine's long is.
    SAPWOOD_TYPE_INT64 = 7,
    /// `%uld`: uint64_t, whatever the machine's long is.
    SAPWOOD_TYPE_UINT64 = 8,
    /// `%f`: float.
    SAPWOOD_TYPE_FLOAT = 9,
    /// `%lf`: double.
    SAPWOOD_TYPE_DOUBLE = 10,
    /// `%s`: a NUL-terminated string.
    SAPWOOD_TYPE_STRING = 11,
}

/// How many elements a value has: the high four bits of a directive's code.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_shape_t {
    /// `%d` and its like: one element.
    SAPWOOD_SHAPE_SCALAR = 0x00,
    /// `%ad` and its like: a pointer and a count of uint32_t.
    SAPWOOD_SHAPE_ARRAY = 0x10,
    /// `%Ad` and its like: a pointer and a count of uint64_t.
    SAPWOOD_SHAPE_LARGE_ARRAY = 0x20,
}

/// Takes a format string apart: one code per directive, a `sapwood_type_t` plus a
/// `sapwood_shape_t`.
///
/// `codes` has room for `capacity` codes; `SAPWOOD_DIRECTIVES_MAX` are always enough. `count` gets
/// how many there are.
///
/// # Safety
/// `format` is a string, `codes` has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_format_parse(
    format: *const c_char,
    codes: *mut u8,
    capacity: usize,
    count: *mut usize,
    error: *mut sapwood_error_t,
) -> c_int {
    let body = || {
        // SAFETY: the caller's string.
        let format = unsafe { parse(format) }?;
        let found = format.as_ref().codes();
        if codes.is_null() || count.is_null() || capacity < found.len() {
            let text = format!("format codes: no room for {} of them", found.len());
            return Err(Failure::usage(text));
        }
        // SAFETY: there is room, as the caller says and as was compared just now.
        unsafe {
            codes.copy_from_nonoverlapping(found.as_ptr(), found.len());
            count.write(found.len());
        }
        Ok(())
    };
    // SAFETY: the caller's error struct.
    unsafe { guard(error, body) }
}

/// # Safety
/// `format` is NULL or a string.
pub(crate) unsafe fn parse(format: *const c_char) -> Result<Format> {
    // SAFETY: as the caller says.
    let format = unsafe { text::required("format string", format) }?;
    Ok(format.parse::<Format>()?)
}

/// Runs code for the Rust type of a numeric element, or other code for a string.
macro_rules! for_element {
    ($code:expr, $T:ident => $number:expr, string => $string:expr) => {{
        use $crate::format::sapwood_type_t as Type;
        macro_rules! number {
            ($type:ty) => {{
                type $T = $type;
                $number
            }};
        }
        match $code & 0x0f {
            code if code == Type::SAPWOOD_TYPE_INT8 as u8 => number!(i8),
            code if code == Type::SAPWOOD_TYPE_UINT8 as u8 => number!(u8),
            code if code == Type::SAPWOOD_TYPE_INT16 as u8 => number!(i16),
            code if code == Type::SAPWOOD_TYPE_UINT16 as u8 => number!(u16),
            code if code == Type::SAPWOOD_TYPE_INT32 as u8 => number!(i32),
            code if code == Type::SAPWOOD_TYPE_UINT32 as u8 => number!(u32),
            code if code == Type::SAPWOOD_TYPE_INT64 as u8 => number!(i64),
            code if code == Type::SAPWOOD_TYPE_UINT64 as u8 => number!(u64),
            code if code == Type::SAPWOOD_TYPE_FLOAT as u8 => number!(f32),
            code if code == Type::SAPWOOD_TYPE_DOUBLE as u8 => number!(f64),
            _ => $string,
        }
    }};
}
pub(crate) use for_element;

/// The text of a format with one directive, as most packets have, by its code.
pub(crate) fn single(code: u8) -> Option<&'static CStr> {
    const SCALARS: [&CStr; 11] =
        [c"%c", c"%uc", c"%hd", c"%uhd", c"%d", c"%ud", c"%ld", c"%uld", c"%f", c"%lf", c"%s"];
    const ARRAYS: [&CStr; 11] = [
        c"%ac", c"%auc", c"%ahd", c"%auhd", c"%ad", c"%aud", c"%ald", c"%auld", c"%af", c"%alf",
        c"%as",
    ];
    const LARGE_ARRAYS: [&CStr; 11] = [
        c"%Ac", c"%Auc", c"%Ahd", c"%Auhd", c"%Ad", c"%Aud", c"%Ald", c"%Auld", c"%Af", c"%Alf",
        c"%As",
    ];
    let texts = match code >> 4 {
        0 => &SCALARS,
        1 => &ARRAYS,
        2 => &LARGE_ARRAYS,
        _ => return None,
    };
    texts.get(usize::from(code & 0x0f).checked_sub(1)?).copied()
}

/// Whether a directive's code is one of strings.
pub(crate) const fn is_string(code: u8) -> bool {
    code & 0x0f == sapwood_type_t::SAPWOOD_TYPE_STRING as u8
}

/// Whether a directive's code is one of an array.
pub(crate) const fn is_array(code: u8) -> bool {
    code >> 4 != 0
}

/// Whether a directive's code is one of an array with a count of 64 bits.
pub(crate) const fn is_large(code: u8) -> bool {
    code >> 4 == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_the_header_are_those_of_the_packets() {
        use sapwood_type_t as Type;
        let types = [
            ("c", Type::SAPWOOD_TYPE_INT8),
            ("uc", Type::SAPWOOD_TYPE_UINT8),
            ("hd", Type::SAPWOOD_TYPE_INT16),
            ("uhd", Type::SAPWOOD_TYPE_UINT16),
            ("d", Type::SAPWOOD_TYPE_INT32),
            ("ud", Type::SAPWOOD_TYPE_UINT32),
            ("ld", Type::SAPWOOD_TYPE_INT64),
            ("uld", Type::SAPWOOD_TYPE_UINT64),
            ("f", Type::SAPWOOD_TYPE_FLOAT),
            ("lf", Type::SAPWOOD_TYPE_DOUBLE),
            ("s", Type::SAPWOOD_TYPE_STRING),
        ];
        let shapes = [
            ("", sapwood_shape_t::SAPWOOD_SHAPE_SCALAR),
            ("a", sapwood_shape_t::SAPWOOD_SHAPE_ARRAY),
            ("A", sapwood_shape_t::SAPWOOD_SHAPE_LARGE_ARRAY),
        ];
        for (letters, element) in types {
            for (mark, shape) in shapes {
                let format: Format = format!("%{mark}{letters}").parse().expect("a directive");
                assert_eq!(format.as_ref().codes(), [element as u8 | shape as u8]);
                let text = single(element as u8 | shape as u8).expect("a text");
                assert_eq!(text.to_str(), Ok(format.to_string().as_str()));
            }
        }
    }

    #[test]
    fn a_format_as_long_as_the_limit_is_read_and_a_longer_one_refused() {
        let longest = "%d".repeat(SAPWOOD_DIRECTIVES_MAX);
        assert!(longest.parse::<Format>().is_ok());
        assert!((longest + "%d").parse::<Format>().is_err());
    }
}
