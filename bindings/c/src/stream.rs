//! Streams at the front-end.

use std::ffi::{c_char, c_int, c_void};

use sapwood::{PendingAnswer, RankSet, Stream};

use crate::answer::sapwood_answer_t;
use crate::communicator::{self, sapwood_communicator_t};
use crate::error::{guard, sapwood_error_t, shield};
use crate::handle::{Handle, give_beside, give_received, lend, take, thread_of};
use crate::network::sapwood_network_t;
use crate::options::{self, sapwood_stream_options_t};
use crate::text;
use crate::values::{self, Pointers};

/// A logical connection between the front-end and a set of back-ends, with filters in between. It
/// belongs to the thread that opened it.
pub struct sapwood_stream_t {
    _opaque: (),
}

/// A question whose answer is waited for. It belongs to the thread of its stream.
pub struct sapwood_question_t {
    _opaque: (),
}

impl Handle for sapwood_question_t {
    type Thing = PendingAnswer;
    const NAME: &'static str = "question";
}

impl Handle for sapwood_stream_t {
    type Thing = Stream;
    const NAME: &'static str = "stream";
}

/// Opens a stream to `members`, or to everyone for NULL. `options` may be NULL: no filters, and
/// waves that wait for all.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_open(
    stream: *mut *mut sapwood_stream_t,
    network: *mut sapwood_network_t,
    members: *const sapwood_communicator_t,
    options: *const sapwood_stream_options_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_beside(stream, || {
                let thread = thread_of(network)?;
                let network = &lend(network)?.network;
                let builder = match communicator::lend(members) {
                    Some(members) => network.stream(members),
                    None => network.stream(&network.everyone()),
                };
                Ok((thread, options::stream(builder, options)?.open()?))
            })
        })
    }
}

/// Closes the stream everywhere; answers that have not been received are lost. Sets the handle to
/// NULL; nothing happens if it is NULL already.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_close(
    stream: *mut *mut sapwood_stream_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || match take(stream)? {
            Some(stream) => Ok(stream.close()?),
            None => Ok(()),
        })
    }
}

/// The stream's number; 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_id(stream: *const sapwood_stream_t) -> u32 {
    // SAFETY: as the header's opening says.
    unsafe { lend(stream) }.map_or(0, |stream| stream.id())
}

/// How many packets were dropped at the front-end on this stream.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_dropped(stream: *const sapwood_stream_t) -> u64 {
    // SAFETY: as the header's opening says.
    shield(0, || unsafe { lend(stream) }.map_or(0, |stream| stream.dropped()))
}

/// As `sapwood_stream_broadcast`, with `count` pointers to the values: for a scalar one to it, for
/// `%s` the string itself, for an array one to its first element and one to its count.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_broadcast_values(
    stream: *mut sapwood_stream_t,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let stream = lend(stream)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(stream.broadcast(tag, values)?)
        })
    }
}

/// As `sapwood_stream_send_to`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_send_to_values(
    stream: *mut sapwood_stream_t,
    rank: u32,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let stream = lend(stream)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(stream.send_to_ranks(RankSet::range(rank, rank), tag, values)?)
        })
    }
}

/// Sends values down to the back-ends in `members`, or to all members of the stream where that is
/// NULL; an empty communicator sends to no back-end. Pointers as `sapwood_stream_broadcast_values`
/// takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_send_to_some_values(
    stream: *mut sapwood_stream_t,
    members: *const sapwood_communicator_t,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let stream = lend(stream)?;
            let to = communicator::recipients(members);
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(stream.send_to_ranks(to, tag, values)?)
        })
    }
}

/// As `sapwood_stream_try_broadcast`, with pointers as `sapwood_stream_broadcast_values` takes
/// them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_try_broadcast_values(
    stream: *mut sapwood_stream_t,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let stream = lend(stream)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(stream.try_broadcast(tag, values)?)
        })
    }
}

/// As `sapwood_stream_send_to_some_values`, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT
/// when the window is full on the way to one of the back-ends, so that nothing was sent.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_try_send_to_some_values(
    stream: *mut sapwood_stream_t,
    members: *const sapwood_communicator_t,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let stream = lend(stream)?;
            let to = communicator::recipients(members);
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(stream.try_send_to_ranks(to, tag, values)?)
        })
    }
}

/// As `sapwood_stream_ask`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_ask_values(
    stream: *mut sapwood_stream_t,
    answer: *mut *mut sapwood_answer_t,
    timeout_ms: i32,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(answer, "answer", || {
                let stream = lend(stream)?;
                let timeout = text::wait(timeout_ms)?;
                let values = values::build(format, Pointers::new(values, count))?;
                let answer = match timeout {
                    Some(timeout) => stream.ask_timeout(tag, values, timeout)?,
                    None => stream.ask(tag, values)?,
                };
                Ok(Some(sapwood_answer_t::new(answer)))
            })
        })
    }
}

/// As `sapwood_stream_ask_async`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_ask_async_values(
    stream: *mut sapwood_stream_t,
    question: *mut *mut sapwood_question_t,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_beside(question, || {
                let thread = thread_of(stream)?;
                let values = values::build(format, Pointers::new(values, count))?;
                Ok((thread, lend(stream)?.ask_async(tag, values)?))
            })
        })
    }
}

/// The question's number, which its answer has as well (`sapwood_answer_question`); 0 for a handle
/// that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_question_number(question: *const sapwood_question_t) -> u64 {
    // SAFETY: as the header's opening says.
    unsafe { lend(question) }.map_or(0, |question| question.question())
}

/// The answer to a question; waits for it at most `timeout_ms`, or for ever if that is -1, and can
/// be called again after that time. Once it was given there is no other. Free the answer with
/// `sapwood_answer_free`.
///
/// Gives what `sapwood_stream_ask` does.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_question_wait(
    question: *mut sapwood_question_t,
    answer: *mut *mut sapwood_answer_t,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(answer, "answer", || {
                let question = lend(question)?;
                let answer = match text::wait(timeout_ms)? {
                    Some(timeout) => question.wait_timeout(timeout)?,
                    None => question.wait()?,
                };
                Ok(Some(sapwood_answer_t::new(answer)))
            })
        })
    }
}

/// The answer to a question, if it is there already; else gives 0 and leaves NULL in `answer`.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_question_try_wait(
    question: *mut sapwood_question_t,
    answer: *mut *mut sapwood_answer_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(answer, "answer", || {
                Ok(lend(question)?.try_take()?.map(sapwood_answer_t::new))
            })
        })
    }
}

/// Waits for the answer no more: what comes for the question is discarded. Sets the handle to NULL;
/// nothing happens if it is NULL already.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_question_close(
    question: *mut *mut sapwood_question_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || take(question).map(drop)) }
}

/// How many answers were discarded because their question was not waited for any more; 0 for a
/// handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_discarded(stream: *const sapwood_stream_t) -> u64 {
    // SAFETY: as the header's opening says.
    shield(0, || unsafe { lend(stream) }.map_or(0, |stream| stream.discarded()))
}

/// The number of answers that wait to be received; 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_waiting(stream: *const sapwood_stream_t) -> u64 {
    // SAFETY: as the header's opening says.
    shield(0, || unsafe { lend(stream) }.map_or(0, |stream| stream.waiting() as u64))
}

/// The next answer that is none to `sapwood_stream_ask`; waits for it at most `timeout_ms`, or for
/// ever if that is -1. What was sent before is written first. Free the answer with
/// `sapwood_answer_free`.
///
/// Gives SAPWOOD_ERROR_TIMEOUT, SAPWOOD_ERROR_NO_MEMBER_LEFT when all members are lost, or
/// SAPWOOD_ERROR_ENDED.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_recv(
    stream: *mut sapwood_stream_t,
    answer: *mut *mut sapwood_answer_t,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(answer, "answer", || {
                let stream = lend(stream)?;
                let answer = match text::wait(timeout_ms)? {
                    Some(timeout) => stream.recv_timeout(timeout)?,
                    None => stream.recv()?,
                };
                Ok(Some(sapwood_answer_t::new(answer)))
            })
        })
    }
}

/// The next answer, if it is there already; else gives 0 and leaves NULL in `answer`.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_stream_try_recv(
    stream: *mut sapwood_stream_t,
    answer: *mut *mut sapwood_answer_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(answer, "answer", || {
                Ok(lend(stream)?.try_recv()?.map(sapwood_answer_t::new))
            })
        })
    }
}
