//! What sketches of numbers and of different values are asked: quantiles, errors, estimates.

use std::ffi::c_int;

use sapwood::AnySketch;

use crate::error::{Failure, sapwood_error_code_t as Code, sapwood_error_t};
use crate::sketch::{ask, put, sapwood_sketch_t};

/// The number of which a share (0 to 1) of all numbers is smaller, of `quantiles` and `kll`; 0.99
/// gives what 99 % stay below. How far it may be from the truth say `sapwood_sketch_relative_error`
/// and `sapwood_sketch_rank_error`. SAPWOOD_ERROR_NO_VALUE when there are no numbers.
///
/// # Safety
/// `sketch` is NULL or alive, `number` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_quantile(
    sketch: *const sapwood_sketch_t,
    share: f64,
    number: *mut f64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let found = match &sketch.sketch {
                AnySketch::Quantiles(quantiles) => quantiles.quantile(share),
                AnySketch::Kll(kll) => kll.quantile(share),
                _ => return Err(sketch.cannot("quantiles", "quantiles, kll")),
            };
            put(number, found.ok_or_else(no_numbers)?);
            Ok(())
        })
    }
}

fn no_numbers() -> Failure {
    Failure::new(Code::SAPWOOD_ERROR_NO_VALUE, "sketch: there are no numbers in it")
}

/// The smallest and the largest number, exactly, of `quantiles` and `kll`. SAPWOOD_ERROR_NO_VALUE
/// when there are no numbers.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_range(
    sketch: *const sapwood_sketch_t,
    smallest: *mut f64,
    largest: *mut f64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let found = match &sketch.sketch {
                AnySketch::Quantiles(quantiles) => quantiles.min().zip(quantiles.max()),
                AnySketch::Kll(kll) => kll.min().zip(kll.max()),
                _ => return Err(sketch.cannot("smallest and largest number", "quantiles, kll")),
            };
            let (low, high) = found.ok_or_else(no_numbers)?;
            put(smallest, low);
            put(largest, high);
            Ok(())
        })
    }
}

/// The bound on the relative error of every quantile, of `quantiles`: 0.01 unless the stream asked
/// for another, or the numbers spanned too many magnitudes for it.
///
/// # Safety
/// `sketch` is NULL or alive, `share` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_relative_error(
    sketch: *const sapwood_sketch_t,
    share: *mut f64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Quantiles(quantiles) = &sketch.sketch else {
                return Err(sketch.cannot("relative error", "quantiles"));
            };
            put(share, quantiles.relative_error());
            Ok(())
        })
    }
}

/// By how many positions the rank of a quantile of `kll` may be wrong: by more only with this
/// probability (0 to 1).
///
/// # Safety
/// `sketch` is NULL or alive, `places` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_rank_error(
    sketch: *const sapwood_sketch_t,
    chance: f64,
    places: *mut f64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Kll(kll) = &sketch.sketch else {
                return Err(sketch.cannot("error in place", "kll"));
            };
            put(places, kll.rank_error(chance));
            Ok(())
        })
    }
}

/// How many numbers are at most this one, of `kll`, within `sapwood_sketch_rank_error`.
///
/// # Safety
/// `sketch` is NULL or alive, `rank` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_rank(
    sketch: *const sapwood_sketch_t,
    number: f64,
    rank: *mut u64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Kll(kll) = &sketch.sketch else {
                return Err(sketch.cannot("places of numbers", "kll"));
            };
            put(rank, kll.rank(number));
            Ok(())
        })
    }
}

/// How many different values there are, about, and the standard deviation of that as a share of the
/// truth, which is 0 while the count is exact; of `distinct`.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_distinct(
    sketch: *const sapwood_sketch_t,
    estimate: *mut f64,
    standard_error: *mut f64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Distinct(distinct) = &sketch.sketch else {
                return Err(sketch.cannot("estimate of different values", "distinct"));
            };
            put(estimate, distinct.estimate());
            put(standard_error, distinct.standard_error());
            Ok(())
        })
    }
}
