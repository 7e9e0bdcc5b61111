//! Communication processes in a program of the caller's.

use std::ffi::c_int;

use crate::error::{Failure, guard, sapwood_error_t};
use crate::filters;

/// Runs this process as a communication process until its network ends, as its environment says.
///
/// A program that calls this when its first argument is "node" can be the `node_program` of a
/// network; it is then all that has to be installed beside the libraries.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_serve(error: *mut sapwood_error_t) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            sapwood::serve(filters::registry())
                .map_err(|error| Failure::of_start(sapwood::Error::Runtime(error)))
        })
    }
}

/// How many numbers `sapwood_usage` gives.
pub const SAPWOOD_USAGE_COLUMNS: usize = 5;

/// What this process uses, as the filter `usage` tells of communication processes: seconds of
/// processor time in the program, and in the kernel for it; seconds since the process began; KiB of
/// address space, and of memory.
///
/// `columns` has room for SAPWOOD_USAGE_COLUMNS numbers; they are 0 where the system does not say.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_usage(columns: *mut f64, error: *mut sapwood_error_t) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            if columns.is_null() {
                return Err(Failure::usage("columns: no place (NULL)"));
            }
            columns.cast::<[f64; SAPWOOD_USAGE_COLUMNS]>().write_unaligned(filters::own_usage());
            Ok(())
        })
    }
}
