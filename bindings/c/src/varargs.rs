//! Functions that end in `...`, declared for the header and defined in `varargs.c`.
//!
//! Rust cannot define a function with variable arguments. C can, but a Rust library exports only
//! what Rust defines. So each exported function is one jump, which leaves all arguments where they
//! are, to a function of `varargs.c` (see `exported.rs`), which turns them into pointers and calls
//! the variant with `_values`.

use std::ffi::{c_char, c_int};

use crate::answer::sapwood_answer_t;
use crate::back_end::sapwood_back_end_t;
use crate::error::sapwood_error_t;
use crate::packet::sapwood_packet_t;
use crate::stream::{sapwood_question_t, sapwood_stream_t};

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

    /// Sends values down to all members, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT when
    /// the stream's window is full, so that nothing was sent. Values as in
    /// `sapwood_stream_broadcast`.
    pub fn sapwood_stream_try_broadcast(
        stream: *mut sapwood_stream_t,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Asks all members, and waits for the answer to this question at most `timeout_ms`, the wait
    /// for room included, or for ever if that is -1. Values as in `sapwood_stream_broadcast`; free
    /// the answer with `sapwood_answer_free`. Back-ends answer with `sapwood_back_end_reply`.
    ///
    /// The answer is that of this question and of no other. What comes for a question that is not
    /// waited for any more (its time was over, or the answer is a late part) is discarded and
    /// counted: `sapwood_stream_discarded`. What back-ends send unasked, or in reply to
    /// `sapwood_stream_broadcast`, stays for `sapwood_stream_recv`, and `sapwood_answer_question`
    /// says what it answers. Of several packets that the stream's filters make of one wave, the
    /// first is the answer.
    ///
    /// Gives SAPWOOD_ERROR_USAGE on a stream without one answer for all members: one that does not
    /// wait for them, or that has several and no filter; and when answers that have not been
    /// received fill the stream's window. Else what `sapwood_stream_recv` does.
    pub fn sapwood_stream_ask(
        stream: *mut sapwood_stream_t,
        answer: *mut *mut sapwood_answer_t,
        timeout_ms: i32,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Asks all members without waiting: `question` gets a handle that the answer is taken from,
    /// while other questions of the stream may be under way. Give it back with
    /// `sapwood_question_close`. Values as in `sapwood_stream_broadcast`.
    ///
    /// Gives SAPWOOD_ERROR_WOULD_WAIT when the stream's window is full, so that nothing was sent.
    pub fn sapwood_stream_ask_async(
        stream: *mut sapwood_stream_t,
        question: *mut *mut sapwood_question_t,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Answers a packet of the front-end's: sends values up on its stream with its tag, as the
    /// answer to this packet and to no other, which is how `sapwood_stream_ask` knows its answer.
    /// Each packet is answered once, in the order of their arrival; one that is passed over gets no
    /// answer of this back-end. Values as in `sapwood_stream_broadcast`; the answer leaves as
    /// `sapwood_back_end_send` says. Waits while the window is full.
    ///
    /// `is_open` may be NULL; it gets whether the stream is still open: the front-end that has
    /// closed it wants no answer. Gives SAPWOOD_ERROR_USAGE when the packet or a later one was
    /// answered, or when a filter and not the front-end has made it.
    pub fn sapwood_back_end_reply(
        back_end: *mut sapwood_back_end_t,
        packet: *const sapwood_packet_t,
        is_open: *mut bool,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Sends values up as `sapwood_back_end_send` does, if that need not wait: gives
    /// SAPWOOD_ERROR_WOULD_WAIT when the window is full, so that nothing was sent.
    pub fn sapwood_back_end_try_send(
        back_end: *mut sapwood_back_end_t,
        stream: u32,
        tag: i32,
        error: *mut sapwood_error_t,
        format: *const c_char,
        ...
    ) -> c_int;

    /// Sends values up on a stream, in its next wave: unasked, as the answer to no packet in
    /// particular (`sapwood_back_end_reply` answers one). Values as in `sapwood_stream_broadcast`.
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
