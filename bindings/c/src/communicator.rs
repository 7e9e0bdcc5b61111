//! Communicators: sets of back-ends.

use std::ffi::{c_char, c_int};

use sapwood::{Communicator, RankSet, Recipients};

use crate::error::{Failure, Result, guard, sapwood_error_t, shield};
use crate::handle;
use crate::network::sapwood_network_t;
use crate::text;

/// First and last rank of a range, both in it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct sapwood_rank_range_t {
    /// The first rank.
    pub first: u32,
    /// The last rank.
    pub last: u32,
}

/// A set of back-ends. Plain memory: any thread may read it, and it outlives its network.
pub struct sapwood_communicator_t {
    communicator: Communicator,
    ranges: Vec<sapwood_rank_range_t>,
}

/// The ranges of a set, as C reads them.
pub(crate) fn ranges_of(ranks: &RankSet) -> Vec<sapwood_rank_range_t> {
    let range = |&[first, last]: &[u32; 2]| sapwood_rank_range_t { first, last };
    ranks.as_ref().ranges().iter().map(range).collect()
}

/// Lends C a run of elements: the first, and how many.
///
/// # Safety
/// `count` is NULL or a place for it.
pub(crate) unsafe fn lend_run<T>(elements: &[T], count: *mut usize) -> *const T {
    if !count.is_null() {
        // SAFETY: as the caller says.
        unsafe { count.write(elements.len()) };
    }
    if elements.is_empty() { std::ptr::null() } else { elements.as_ptr() }
}

/// # Safety
/// `out` is NULL or a handle's variable.
unsafe fn give(
    out: *mut *mut sapwood_communicator_t,
    make: impl FnOnce() -> Result<Communicator>,
) -> Result<()> {
    if out.is_null() {
        return Err(Failure::usage("communicator: no place to put the handle (NULL)"));
    }
    // SAFETY: not NULL, so the caller's variable.
    unsafe { out.write(std::ptr::null_mut()) };
    let communicator = make()?;
    let ranges = ranges_of(communicator.ranks());
    let made = Box::new(sapwood_communicator_t { communicator, ranges });
    // SAFETY: as above.
    unsafe { out.write(Box::into_raw(made)) };
    Ok(())
}

/// The communicator behind a handle, if there is one.
///
/// # Safety
/// `communicator` is NULL or alive.
pub(crate) unsafe fn lend<'a>(
    communicator: *const sapwood_communicator_t,
) -> Option<&'a Communicator> {
    // SAFETY: as the caller says.
    unsafe { communicator.as_ref() }.map(|made| &made.communicator)
}

/// Where a packet goes: the members of a communicator, or all where there is none.
///
/// # Safety
/// As [`lend`].
pub(crate) unsafe fn recipients(communicator: *const sapwood_communicator_t) -> Recipients {
    // SAFETY: as the caller says.
    match unsafe { lend(communicator) } {
        Some(members) => Recipients::from(members.ranks()),
        None => Recipients::All,
    }
}

/// All back-ends that are connected now.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_everyone(
    communicator: *mut *mut sapwood_communicator_t,
    network: *const sapwood_network_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || give(communicator, || Ok(handle::lend(network)?.network.everyone()))) }
}

/// The back-ends of `count` ranks, in any order. Whether they are there is seen when a stream
/// opens.
///
/// # Safety
/// As the opening of the header says; `ranks` points to `count` ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_of_ranks(
    communicator: *mut *mut sapwood_communicator_t,
    ranks: *const u32,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let ranks = match count {
                0 => &[],
                _ if ranks.is_null() => return Err(Failure::usage("ranks: is NULL")),
                _ => std::slice::from_raw_parts(ranks, count),
            };
            give(communicator, || Ok(Communicator::new(ranks.iter().copied().collect())))
        })
    }
}

/// The back-ends of a rank set that is written as "0-3,7".
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_parse(
    communicator: *mut *mut sapwood_communicator_t,
    ranks: *const c_char,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let ranks = text::required("ranks", ranks)?;
            give(communicator, || {
                let set = ranks.parse::<RankSet>().map_err(|e| Failure::usage(e.to_string()))?;
                Ok(Communicator::new(set))
            })
        })
    }
}

/// How many back-ends there are; 0 for NULL.
///
/// # Safety
/// `communicator` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_size(
    communicator: *const sapwood_communicator_t,
) -> u64 {
    // SAFETY: as the caller says.
    unsafe { lend(communicator) }.map_or(0, Communicator::size)
}

/// The ranks as sorted ranges, lent until the communicator is freed; `count` gets how many ranges.
/// NULL when there are none.
///
/// # Safety
/// `communicator` is NULL or alive, `count` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_ranges(
    communicator: *const sapwood_communicator_t,
    count: *mut usize,
) -> *const sapwood_rank_range_t {
    // SAFETY: as the caller says.
    unsafe {
        let ranges = communicator.as_ref().map_or(&[][..], |made| &made.ranges);
        lend_run(ranges, count)
    }
}

/// Gives a communicator back and sets the handle to NULL. Streams that were opened with it stay
/// open.
///
/// # Safety
/// `communicator` is NULL or points to a handle's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_communicator_free(communicator: *mut *mut sapwood_communicator_t) {
    if communicator.is_null() {
        return;
    }
    // SAFETY: the caller's variable holds NULL or what `give` made.
    unsafe {
        let freed = communicator.replace(std::ptr::null_mut());
        if !freed.is_null() {
            shield((), || drop(Box::from_raw(freed)));
        }
    }
}
