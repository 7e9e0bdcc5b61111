//! A filter in Rust for WebAssembly, written against `sapwood_filter.h` without any library: the
//! mean of doubles, element by element.
//!
//! `mean` takes one `%alf` of each back-end and gives `%uld %alf`: of how many, and the means. A
//! partial result of further down is weighed with its count, so that the tree's shape does not
//! matter.
#![no_std]

use core::slice;

const DOUBLE: u32 = 10;
const UINT64: u32 = 8;
const SCALAR: u32 = 0;
const ARRAY: u32 = 1;

/// `sapwood_filter_value_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    data: *const u8,
    padding: u32,
    count: u64,
    bytes: u64,
    element: u32,
    shape: u32,
}

/// `sapwood_filter_packet_t`
#[repr(C)]
pub struct Packet {
    values: *const Value,
    contributors: *const [u32; 2],
    value_count: u32,
    contributor_ranges: u32,
    tag: i32,
    origin: u32,
    flags: u32,
    reserved: u32,
}

/// `sapwood_filter_wave_t`, as far as it is needed.
#[repr(C)]
pub struct Wave {
    packets: *const Packet,
    contributors: *const [u32; 2],
    packet_count: u32,
    contributor_ranges: u32,
}

/// `sapwood_filter_t`
#[repr(C)]
pub struct Filter {
    name: *const u8,
    create: Option<extern "C" fn(*const Value, u32, *mut *mut u8, u32) -> i32>,
    transform: Option<extern "C" fn(*mut u8, *const Wave, u32) -> i32>,
    destroy: Option<extern "C" fn(*mut u8)>,
    state_kind: u32,
    save: Option<extern "C" fn(*mut u8, u32) -> i32>,
    merge: Option<extern "C" fn(*mut u8, *const Value, u32, u32) -> i32>,
    decide: Option<extern "C" fn(*mut u8, *const u8, *mut i64, u32) -> i32>,
}

/// `sapwood_filter_library_t`
#[repr(C)]
pub struct Library {
    version: u32,
    filter_bytes: u32,
    filter_count: u32,
    filters: *const Filter,
}

// Constant data of a program with one thread.
unsafe impl Sync for Library {}
unsafe impl Sync for Filter {}

#[link(wasm_import_module = "sapwood")]
extern "C" {
    fn emit(out: u32, way: u32, tag: i32, values: *const Value, count: u32) -> i32;
    fn fail(out: u32, text: *const u8, bytes: u32) -> i32;
}

static FILTER: Filter = Filter {
    name: b"mean\0".as_ptr(),
    create: None,
    transform: Some(mean),
    destroy: None,
    state_kind: 0,
    save: None,
    merge: None,
    decide: None,
};

static LIBRARY: Library = Library {
    version: 1,
    filter_bytes: core::mem::size_of::<Filter>() as u32,
    filter_count: 1,
    filters: &FILTER,
};

#[no_mangle]
pub extern "C" fn sapwood_filter_v1() -> *const Library {
    &LIBRARY
}

/// How many a packet stands for, and its numbers: in memory that belongs to the call.
fn part(packet: &Packet) -> Option<(u64, &mut [f64])> {
    let values = unsafe { slice::from_raw_parts(packet.values, packet.value_count as usize) };
    let (count, numbers) = match values {
        [numbers] => (1, numbers),
        [count, numbers] if (count.element, count.shape) == (UINT64, SCALAR) => {
            (unsafe { *count.data.cast::<u64>() }, numbers)
        }
        _ => return None,
    };
    if numbers.element != DOUBLE || numbers.shape == SCALAR {
        return None;
    }
    let first = numbers.data.cast::<f64>() as *mut f64;
    Some((count, unsafe { slice::from_raw_parts_mut(first, numbers.count as usize) }))
}

extern "C" fn mean(_: *mut u8, wave: *const Wave, out: u32) -> i32 {
    let wave = unsafe { &*wave };
    let packets = unsafe { slice::from_raw_parts(wave.packets, wave.packet_count as usize) };
    let refuse = |text: &str| unsafe { fail(out, text.as_ptr(), text.len() as u32) };
    let mut parts = packets.iter().map(part);
    let (mut total, means) = match parts.next() {
        Some(Some(first)) => first,
        _ => return refuse("takes one %alf, or what it has given"),
    };
    // What is given is a copy: the means are reckoned where the first packet's numbers are.
    for one in parts {
        let (count, numbers) = match one {
            Some(part) => part,
            None => return refuse("takes one %alf, or what it has given"),
        };
        if numbers.len() != means.len() {
            return refuse("the arrays of a wave differ in length");
        }
        total += count;
        let weight = count as f64 / total as f64;
        for (mean, number) in means.iter_mut().zip(numbers) {
            *mean += (*number - *mean) * weight;
        }
    }
    let numbers = means.len() as u64;
    let values = [
        Value {
            data: (&total as *const u64).cast(),
            padding: 0,
            count: 1,
            bytes: 8,
            element: UINT64,
            shape: SCALAR,
        },
        Value {
            data: means.as_ptr().cast(),
            padding: 0,
            count: numbers,
            bytes: 8 * numbers,
            element: DOUBLE,
            shape: ARRAY,
        },
    ];
    unsafe { emit(out, 0, (*wave.packets).tag, values.as_ptr(), 2) }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
