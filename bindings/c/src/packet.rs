//! Packets, and how their values are read where they lie.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use sapwood::{OutOfMemory, Packet, ValuesRef};

use crate::error::{Failure, Result, guard, sapwood_error_code_t as Code, sapwood_error_t, shield};
use crate::format::{for_element, is_array, is_large, is_string, parse, single};
use crate::text::to_c;
use crate::values::Pointers;

/// A packet: values with their format, and what the network knows of them.
///
/// It is plain memory: it may be read on any thread, outlives its network, and costs nothing but
/// memory until it is freed.
pub struct sapwood_packet_t {
    packet: Packet,
    /// What C needs and the packet does not hold, by value; made when it is first read. Empty for a
    /// packet without strings.
    lent: Box<[OnceLock<Lent>]>,
    format: OnceLock<CString>,
}

/// Memory lent to C beside the packet's own.
enum Lent {
    /// A string that no NUL follows in the packet.
    Copy(CString),
    /// The strings of an array.
    Strings {
        pointers: Vec<*const c_char>,
        /// Those of them that no NUL follows in the packet.
        _copies: Vec<CString>,
    },
}

impl sapwood_packet_t {
    pub(crate) fn new(packet: Packet) -> Self {
        // Most packets hold numbers, which are lent from where they lie.
        let has_strings = packet.format().codes().iter().any(|&code| is_string(code));
        let places = if has_strings { packet.format().len() } else { 0 };
        let lent = (0..places).map(|_| OnceLock::new()).collect();
        Self { packet, lent, format: OnceLock::new() }
    }

    pub(crate) fn packet(&self) -> &Packet {
        &self.packet
    }

    pub(crate) fn values(&self) -> ValuesRef<'_> {
        self.packet.values()
    }

    /// A string as C wants it: in place if a NUL follows it, as its padding mostly does.
    fn string(&self, index: usize) -> Result<*const c_char> {
        let (_, encoded) = self.packet.values().encoded(index)?;
        let string = self.packet.values().string_bytes(index)?;
        if is_terminated(encoded, string) {
            return Ok(string.as_ptr().cast());
        }
        match self.lent[index].get_or_init(|| Lent::Copy(to_c(string))) {
            Lent::Copy(copy) => Ok(copy.as_ptr()),
            Lent::Strings { .. } => unreachable!("the value is one string, not an array"),
        }
    }

    /// The strings of an array as C wants them.
    fn strings(&self, index: usize) -> Result<&[*const c_char]> {
        let (_, encoded) = self.packet.values().encoded(index)?;
        let strings = self.packet.values().strings(index)?;
        // Longer than the strings where these are short.
        let mut pointers = Vec::new();
        if self.lent[index].get().is_none() {
            let bytes = strings.len().saturating_mul(size_of::<*const c_char>());
            pointers.try_reserve_exact(strings.len()).map_err(|_| OutOfMemory { bytes })?;
        }
        let make = || {
            let mut copies = Vec::new();
            let mut pointer = |string: &[u8]| {
                if is_terminated(encoded, string) {
                    return string.as_ptr().cast();
                }
                let copy = to_c(string);
                let pointer = copy.as_ptr();
                copies.push(copy);
                pointer
            };
            pointers.extend(strings.map(&mut pointer));
            Lent::Strings { pointers, _copies: copies }
        };
        match self.lent[index].get_or_init(make) {
            Lent::Strings { pointers, .. } => Ok(pointers),
            Lent::Copy(_) => unreachable!("the value is an array, not one string"),
        }
    }
}

/// Whether a NUL follows a string within the bytes that hold it.
fn is_terminated(encoded: &[u8], string: &[u8]) -> bool {
    let end = string.as_ptr().addr() - encoded.as_ptr().addr() + string.len();
    encoded.get(end) == Some(&0)
}

/// A packet lent by the caller.
///
/// # Safety
/// `packet` is NULL or alive.
pub(crate) unsafe fn lend<'a>(packet: *const sapwood_packet_t) -> Result<&'a sapwood_packet_t> {
    // SAFETY: as the caller says.
    unsafe { packet.as_ref() }.ok_or_else(|| Failure::usage("packet: is NULL; receive one first"))
}

/// Gives a packet back and sets the handle to NULL; nothing happens if it or `packet` is NULL. What
/// it has lent is gone with it. Packets that an answer has lent are freed with the answer.
///
/// # Safety
/// `packet` is NULL or points to a handle's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_free(packet: *mut *mut sapwood_packet_t) {
    if packet.is_null() {
        return;
    }
    // SAFETY: the caller's variable holds NULL or a packet that was made by `Box::into_raw`.
    unsafe {
        let freed = packet.replace(std::ptr::null_mut());
        if !freed.is_null() {
            shield((), || drop(Box::from_raw(freed)));
        }
    }
}

/// The packet's tag; 0 for NULL.
///
/// # Safety
/// `packet` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_tag(packet: *const sapwood_packet_t) -> i32 {
    // SAFETY: as the caller says.
    unsafe { lend(packet) }.map_or(0, |packet| packet.packet.tag())
}

/// The stream that the packet came on, for the answer to be sent on; 0 for NULL.
///
/// # Safety
/// `packet` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_stream(packet: *const sapwood_packet_t) -> u32 {
    // SAFETY: as the caller says.
    unsafe { lend(packet) }.map_or(0, |packet| packet.packet.header.stream)
}

/// The rank that made the packet: its sender, or the process whose filter did; UINT32_MAX for NULL.
///
/// # Safety
/// `packet` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_origin(packet: *const sapwood_packet_t) -> u32 {
    // SAFETY: as the caller says.
    unsafe { lend(packet) }.map_or(u32::MAX, |packet| packet.packet.header.origin)
}

/// The packet's format string, such as "%d %alf"; lent until the packet is freed; NULL for NULL.
///
/// # Safety
/// `packet` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_format(packet: *const sapwood_packet_t) -> *const c_char {
    // SAFETY: as the caller says.
    let Ok(packet) = (unsafe { lend(packet) }) else { return std::ptr::null() };
    if let [code] = packet.packet.format().codes()
        && let Some(single) = single(*code)
    {
        return single.as_ptr();
    }
    shield(std::ptr::null(), || {
        packet.format.get_or_init(|| to_c(packet.packet.format().to_string())).as_ptr()
    })
}

/// Reads all values of a packet into places given by pointers; `count` says how many pointers.
///
/// As `sapwood_packet_read`, for callers without variable arguments.
///
/// # Safety
/// `packet` is NULL or alive; `places` are what the format says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_read_values(
    packet: *const sapwood_packet_t,
    format: *const c_char,
    places: *const *mut c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        guard(error, || {
            let packet = lend(packet)?;
            let format = parse(format)?;
            let wanted = format.as_ref().codes();
            let is_held = |(&wanted, &held): (&u8, &u8)| {
                wanted == held || (is_array(wanted) && is_array(held) && wanted & 15 == held & 15)
            };
            let held = packet.packet.format().codes();
            if wanted.len() != held.len() || !wanted.iter().zip(held).all(is_held) {
                let text = format!("packet holds '{}', not '{format}'", packet.packet.format());
                return Err(Failure::new(Code::SAPWOOD_ERROR_FORMAT, text));
            }
            // Reading writes through the pointers, but takes them like any others.
            let mut places = Pointers::new(places.cast(), count);
            for (index, &code) in wanted.iter().enumerate() {
                read(packet, index, code, &mut places)?;
            }
            places.finish()
        })
    }
}

/// # Safety
/// The next pointers are NULL or places for a value of that code.
unsafe fn read(
    packet: &sapwood_packet_t,
    index: usize,
    code: u8,
    places: &mut Pointers,
) -> Result<()> {
    let values = packet.packet.values();
    let place = places.take()?.cast_mut();
    if is_array(code) {
        let count_place = places.take()?.cast_mut();
        let (first, count): (*const c_void, usize) = for_element!(code,
            T => lent(values.array::<T>(index)?),
            string => lent(packet.strings(index)?));
        // SAFETY: the caller's places for a pointer and a count of that width.
        return unsafe {
            write(place, first);
            write_count(count_place, code, count)
        };
    }
    // SAFETY: the caller's place for one value.
    unsafe {
        for_element!(code,
            T => write(place, values.scalar::<T>(index)?),
            string => write(place, packet.string(index)?));
    }
    Ok(())
}

fn lent<T>(elements: &[T]) -> (*const c_void, usize) {
    (elements.as_ptr().cast(), elements.len())
}

/// # Safety
/// `place` is NULL or has room for a `T`.
unsafe fn write<T>(place: *mut c_void, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller says; C's places need not be aligned.
        unsafe { place.cast::<T>().write_unaligned(value) };
    }
}

/// # Safety
/// `place` is NULL or has room for a count of the code's width.
unsafe fn write_count(place: *mut c_void, code: u8, count: usize) -> Result<()> {
    if is_large(code) {
        // SAFETY: as the caller says.
        unsafe { write(place, count as u64) };
        return Ok(());
    }
    let too_many = |_| {
        let text = format!("array of {count} elements: read it with a large directive, as %Ad");
        Failure::new(Code::SAPWOOD_ERROR_FORMAT, text)
    };
    // SAFETY: as the caller says.
    unsafe { write(place, u32::try_from(count).map_err(too_many)?) };
    Ok(())
}

/// One `%s` value as bytes with their length, for strings that hold NULs; `index` counts values
/// from 0. The bytes are lent until the packet is freed, and no NUL need follow them.
///
/// # Safety
/// `packet` is NULL or alive; `bytes` and `length` are NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_packet_bytes(
    packet: *const sapwood_packet_t,
    index: usize,
    bytes: *mut *const c_char,
    length: *mut usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        guard(error, || {
            let string = lend(packet)?.packet.values().string_bytes(index)?;
            write(bytes.cast(), string.as_ptr());
            write(length.cast(), string.len());
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use sapwood::Values;

    use super::*;

    fn packet(values: Values) -> sapwood_packet_t {
        sapwood_packet_t::new(Packet::new(1, 100, values))
    }

    fn text(pointer: *const c_char) -> String {
        // SAFETY: the packet's strings end with a NUL, which the sanitizers and valgrind see to,
        // too.
        unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
    }

    #[test]
    fn strings_of_every_length_end_with_a_nul() {
        for length in 0..20 {
            let wanted = "x".repeat(length);
            let packet = packet(Values::new().string(&wanted).strings(&[&wanted, "", &wanted]));
            let string = packet.string(0).expect("a string");
            assert_eq!(text(string), wanted);
            assert_eq!(packet.string(0).expect("the same"), string);
            let strings = packet.strings(1).expect("strings");
            let strings: Vec<String> = strings.iter().map(|&string| text(string)).collect();
            assert_eq!(strings, [wanted.as_str(), "", wanted.as_str()]);
        }
    }

    #[test]
    fn a_string_with_padding_is_lent_in_place() {
        let packet = packet(Values::new().string("seven").string("exactly8"));
        let body = packet.packet.body().as_bytes().as_ptr_range();
        let is_inside = |string: *const c_char| body.contains(&string.cast());
        assert!(is_inside(packet.string(0).expect("a string")));
        assert!(!is_inside(packet.string(1).expect("a string")));
    }
}
