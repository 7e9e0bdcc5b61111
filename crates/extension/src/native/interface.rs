//! The structs of `sapwood_filter.h`, member by member. The header says what they mean.

use std::ffi::{c_char, c_void};

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("values are lent to filters as they lie: 64 bits, little-endian");

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawValue {
    pub(super) data: *const c_void,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) element: u32,
    pub(super) shape: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawPacket {
    pub(super) values: *const RawValue,
    pub(super) contributors: *const [u32; 2],
    pub(super) value_count: u32,
    pub(super) contributor_ranges: u32,
    pub(super) tag: i32,
    pub(super) origin: u32,
    pub(super) flags: u32,
    pub(super) reserved: u32,
}

#[repr(C)]
pub(super) struct RawWave {
    pub(super) packets: *const RawPacket,
    pub(super) contributors: *const [u32; 2],
    pub(super) packet_count: u32,
    pub(super) contributor_ranges: u32,
    pub(super) wave: u64,
    pub(super) stream: u32,
    pub(super) rank: u32,
    pub(super) is_root: u32,
    pub(super) children: u32,
    pub(super) back_ends: u32,
    pub(super) reserved: u32,
}

#[repr(C)]
pub(super) struct RawArrivals {
    pub(super) contributors: *const [u32; 2],
    pub(super) wave: u64,
    pub(super) elapsed_ns: u64,
    pub(super) contributor_ranges: u32,
    pub(super) stream: u32,
    pub(super) rank: u32,
    pub(super) is_root: u32,
    pub(super) arrived: u32,
    pub(super) expected: u32,
    pub(super) back_ends: u32,
    pub(super) reserved: u32,
}

pub(super) const FILTERED: u32 = 1;
pub(super) const LATE: u32 = 2;
pub(super) const BACK: u32 = 1;
pub(super) const REBUILDABLE: u32 = 1;
pub(super) const COMPOSABLE: u32 = 2;

/// What a filter is given to emit to; `Emission` begins with it.
#[repr(C)]
pub(super) struct RawOut {
    pub(super) send: unsafe extern "C" fn(*mut RawOut, u32, i32, *const RawValue, u32) -> i32,
    pub(super) send_array: unsafe extern "C" fn(*mut RawOut, u32, i32, u32, u64) -> *mut c_void,
    pub(super) fail: unsafe extern "C" fn(*mut RawOut, *const c_char, u32) -> i32,
}

type Create = unsafe extern "C" fn(*const RawValue, u32, *mut *mut c_void, *mut RawOut) -> i32;
type Transform = unsafe extern "C" fn(*mut c_void, *const RawWave, *mut RawOut) -> i32;
type Destroy = unsafe extern "C" fn(*mut c_void);
type Save = unsafe extern "C" fn(*mut c_void, *mut RawOut) -> i32;
type Merge = unsafe extern "C" fn(*mut c_void, *const RawValue, u32, *mut RawOut) -> i32;
type Decide = unsafe extern "C" fn(*mut c_void, *const RawArrivals, *mut i64, *mut RawOut) -> i32;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawFilter {
    pub(super) name: *const c_char,
    pub(super) create: Option<Create>,
    pub(super) transform: Option<Transform>,
    pub(super) destroy: Option<Destroy>,
    pub(super) state_kind: u32,
    pub(super) save: Option<Save>,
    pub(super) merge: Option<Merge>,
    pub(super) decide: Option<Decide>,
}

#[repr(C)]
pub(super) struct RawLibrary {
    pub(super) version: u32,
    pub(super) filter_bytes: u32,
    pub(super) filter_count: u32,
    pub(super) filters: *const RawFilter,
}

const _: () = assert!(
    size_of::<RawValue>() == 32
        && size_of::<RawPacket>() == 40
        && size_of::<RawWave>() == 56
        && size_of::<RawArrivals>() == 56
        && size_of::<RawFilter>() == 64
        && size_of::<RawLibrary>() == 24
);
