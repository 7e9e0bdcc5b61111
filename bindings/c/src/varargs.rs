//! Functions that end in `...`, declared for the header and defined in `varargs.c`.
//!
//! Rust cannot define a function with variable arguments. C can, but a Rust library exports only
//! what Rust defines. So each exported function is one jump, which leaves all arguments where they
//! are, to a function of `varargs.c` (see `exported.rs`), which turns them into pointers and calls
//! the variant with `_values`.

use std::ffi::{c_char, c_int};

use crate::back_end::sapwood_back_end_t;
use crate::error::sapwood_error_t;
use crate::packet::sapwood_packet_t;
use crate::stream::sapwood_stream_t;

#[allow(dead_code, reason = "declared for the generator of the header")]
unsafe extern "C" {
    /// Sends values down to all members. Waits while the stream's window is full. What has been
    /// sent leaves with `sapwood_network_flush` or with the next receive.
    ///
    /// The values follow the format string as in printf: "%d %lf %s" takes an int32_t, a double and
    /// a string. An array takes two arguments, a pointer and a count: uint32_t for "%ad" and its
    /// like, uint64_t for "%Ad" and its like. Arguments must have exactly these types.
    pub fn sapwood_stream_broadcast(
        stream: *mut sapwood_stream_t,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Sends values down to one member; as `sapwood_stream_broadcast`.
    pub fn sapwood_stream_send_to(
        stream: *mut sapwood_stream_t,
        rank: u32,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Sends values up on a stream, in its next wave; values as in `sapwood_stream_broadcast`.
    /// Packets are written together: the last ones leave with `sapwood_back_end_flush` or with the
    /// next receive. Waits while the window is full.
    pub fn sapwood_back_end_send(
        back_end: *mut sapwood_back_end_t,
        stream: u32,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Sends values in a wave of that number; waves that are left out are missed by this back-end.
    pub fn sapwood_back_end_send_in_wave(
        back_end: *mut sapwood_back_end_t,
        stream: u32,
        wave: u64,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Reads all values of a packet into places given by pointers, if its format is this one.
    ///
    /// A scalar takes a pointer to it. "%s" takes a `const char **`. An array takes a pointer to a
    /// pointer (`const double **`; for strings `const char *const **`) and a pointer to its count:
    /// uint32_t for "%ad" and its like, uint64_t for "%Ad" and its like; either reads an array that
    /// was sent with the other. NULL in place of a pointer leaves that value out.
    ///
    /// Arrays and strings are not copied: what is read points into the packet, and is gone when the
    /// packet (or the answer that has lent it) is freed.
    pub fn sapwood_packet_read(
        packet: *const sapwood_packet_t,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;
}
