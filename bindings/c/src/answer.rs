//! Answers: the result of one wave, with its contributors and the missing back-ends.

use std::ffi::{CString, c_char, c_int};

use sapwood::{Answer, Cause, Missing};

use crate::communicator::{lend_run, ranges_of, sapwood_rank_range_t};
use crate::error::{Failure, guard, sapwood_error_code_t as Code, sapwood_error_t, shield};
use crate::packet::sapwood_packet_t;
use crate::text::to_c;

/// The result of one wave. Plain memory: it may be read on any thread, and outlives its network.
pub struct sapwood_answer_t {
    packet: Option<sapwood_packet_t>,
    /// The words for having no value.
    no_value: String,
    wave: u64,
    question: Option<u64>,
    stream: u32,
    is_late: bool,
    contributors: Vec<sapwood_rank_range_t>,
    contributor_count: u64,
    missing: Vec<sapwood_missing_t>,
    _texts: Vec<Texts>,
}

/// What a [`sapwood_missing_t`] points to.
struct Texts {
    ranks: CString,
    reason: CString,
    ranges: Vec<sapwood_rank_range_t>,
    cause: Cause,
}

/// Why back-ends are missing from an answer, or a process from the network. A later version may
/// have further ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_cause_t {
    /// None of the others; the reason says more.
    SAPWOOD_CAUSE_OTHER = 0,
    /// It has left the network on purpose.
    SAPWOOD_CAUSE_LEFT = 1,
    /// Its link has closed, and no process knows how it ended.
    SAPWOOD_CAUSE_DIED = 2,
    /// It has ended by itself; the detail is its exit status.
    SAPWOOD_CAUSE_EXITED = 3,
    /// A signal has ended it; the detail is the signal's number.
    SAPWOOD_CAUSE_KILLED = 4,
    /// It was silent for longer than the network's limit, and its link was torn.
    SAPWOOD_CAUSE_SILENT = 5,
    /// It has never connected.
    SAPWOOD_CAUSE_NEVER_STARTED = 6,
    /// It did not answer within the time of the stream's waves.
    SAPWOOD_CAUSE_LATE = 7,
    /// It is there, and has sent nothing in this wave.
    SAPWOOD_CAUSE_SKIPPED = 8,
    /// It was given up, and has come back since.
    SAPWOOD_CAUSE_AWAY = 9,
    /// A filter failed on what it sent, or could not be made.
    SAPWOOD_CAUSE_FILTER_FAILED = 10,
    /// It has broken the rules of the network, which does not deal with it any more.
    SAPWOOD_CAUSE_REFUSED = 11,
    /// A process had no memory for its values.
    SAPWOOD_CAUSE_OUT_OF_MEMORY = 12,
}

/// The name of a `sapwood_cause_t` in one word, such as "killed"; "other" for other numbers.
/// Static.
#[unsafe(no_mangle)]
pub extern "C" fn sapwood_cause_name(cause: c_int) -> *const c_char {
    let names = [
        c"other",
        c"left",
        c"died",
        c"exited",
        c"killed",
        c"silent",
        c"never-started",
        c"late",
        c"skipped",
        c"away",
        c"filter-failed",
        c"refused",
        c"out-of-memory",
    ];
    let name = usize::try_from(cause).ok().and_then(|cause| names.get(cause));
    name.copied().unwrap_or(c"other").as_ptr()
}

/// A cause as C gives it: what it is, and its exit status or signal.
pub(crate) fn cause_of(cause: Cause) -> (c_int, u32) {
    (cause.code().cast_signed(), cause.detail())
}

/// Back-ends that an answer lacks for one reason. All of it is lent until the answer is freed.
#[repr(C)]
pub struct sapwood_missing_t {
    /// The ranks, as "0-3,7".
    pub ranks: *const c_char,
    /// Why, in one line for people.
    pub reason: *const c_char,
    /// The ranks, as sorted ranges.
    pub ranges: *const sapwood_rank_range_t,
    /// How many ranges.
    pub range_count: usize,
    /// Why: a sapwood_cause_t.
    pub cause: c_int,
    /// The exit status or signal of a cause that has one; else 0.
    pub cause_detail: u32,
}

impl sapwood_answer_t {
    pub(crate) fn new(answer: Answer) -> Self {
        let no_value = answer.value().err().map_or_else(String::new, |error| error.to_string());
        let texts: Vec<Texts> = answer.missing.iter().map(texts_of).collect();
        Self {
            no_value,
            wave: answer.wave,
            question: answer.question(),
            stream: answer.stream,
            is_late: answer.is_late,
            contributors: ranges_of(&answer.contributors),
            contributor_count: answer.contributors.len(),
            missing: texts.iter().map(missing_of).collect(),
            _texts: texts,
            packet: answer.packet.map(sapwood_packet_t::new),
        }
    }
}

fn texts_of(missing: &Missing) -> Texts {
    Texts {
        ranks: to_c(missing.ranks.to_string()),
        reason: to_c(missing.reason.as_str()),
        ranges: ranges_of(&missing.ranks),
        cause: missing.cause,
    }
}

fn missing_of(texts: &Texts) -> sapwood_missing_t {
    let (cause, cause_detail) = cause_of(texts.cause);
    sapwood_missing_t {
        cause,
        cause_detail,
        ranks: texts.ranks.as_ptr(),
        reason: texts.reason.as_ptr(),
        ranges: texts.ranges.as_ptr(),
        range_count: texts.ranges.len(),
    }
}

/// The value: a packet that is lent until the answer is freed.
///
/// Gives SAPWOOD_ERROR_NO_VALUE, with the missing back-ends and reasons, when a filter failed or no
/// back-end contributed.
///
/// # Safety
/// `answer` is NULL or alive, `packet` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_value(
    answer: *const sapwood_answer_t,
    packet: *mut *const sapwood_packet_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        guard(error, || {
            let answer = answer.as_ref().ok_or_else(|| Failure::usage("answer: is NULL"))?;
            let place = packet.as_mut().ok_or_else(|| Failure::usage("packet: no place (NULL)"))?;
            let no_value = || Failure::new(Code::SAPWOOD_ERROR_NO_VALUE, answer.no_value.as_str());
            *place = std::ptr::null();
            *place = answer.packet.as_ref().ok_or_else(no_value)?;
            Ok(())
        })
    }
}

/// The wave: a number that rises in each stream, from 0. Answers to questions
/// (`sapwood_answer_question`), and what is sent unasked behind one, have numbers from 2^62 on. 0
/// for NULL.
///
/// # Safety
/// `answer` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_wave(answer: *const sapwood_answer_t) -> u64 {
    // SAFETY: as the caller says.
    unsafe { answer.as_ref() }.map_or(0, |answer| answer.wave)
}

/// Whether back-ends have answered a packet of the front-end's (`sapwood_back_end_reply`); `number`
/// gets that packet's number in its stream, counted from 0. False for what they have sent unasked,
/// and for NULL.
///
/// # Safety
/// `answer` is NULL or alive, `number` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_question(
    answer: *const sapwood_answer_t,
    number: *mut u64,
) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        let question = answer.as_ref().and_then(|answer| answer.question);
        if let (Some(question), Some(place)) = (question, number.as_mut()) {
            *place = question;
        }
        question.is_some()
    }
}

/// The number of the stream; 0 for NULL.
///
/// # Safety
/// `answer` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_stream(answer: *const sapwood_answer_t) -> u32 {
    // SAFETY: as the caller says.
    unsafe { answer.as_ref() }.map_or(0, |answer| answer.stream)
}

/// Whether there is a value and every member of the stream is in it; false for NULL.
///
/// # Safety
/// `answer` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_is_complete(answer: *const sapwood_answer_t) -> bool {
    // SAFETY: as the caller says.
    unsafe { answer.as_ref() }
        .is_some_and(|answer| answer.packet.is_some() && answer.missing.is_empty())
}

/// Whether the wave had been answered before this part of it came; false for NULL.
///
/// # Safety
/// `answer` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_is_late(answer: *const sapwood_answer_t) -> bool {
    // SAFETY: as the caller says.
    unsafe { answer.as_ref() }.is_some_and(|answer| answer.is_late)
}

/// How many back-ends the value stands for; 0 for NULL.
///
/// # Safety
/// `answer` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_contributor_count(answer: *const sapwood_answer_t) -> u64 {
    // SAFETY: as the caller says.
    unsafe { answer.as_ref() }.map_or(0, |answer| answer.contributor_count)
}

/// The back-ends that the value stands for, as sorted ranges, lent until the answer is freed;
/// `count` gets how many ranges. NULL when there are none.
///
/// # Safety
/// `answer` is NULL or alive, `count` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_contributors(
    answer: *const sapwood_answer_t,
    count: *mut usize,
) -> *const sapwood_rank_range_t {
    // SAFETY: as the caller says.
    unsafe {
        let contributors = answer.as_ref().map_or(&[][..], |answer| &answer.contributors);
        lend_run(contributors, count)
    }
}

/// The back-ends that the value lacks, grouped by reason, lent until the answer is freed; `count`
/// gets how many groups. NULL when there are none.
///
/// # Safety
/// `answer` is NULL or alive, `count` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_missing(
    answer: *const sapwood_answer_t,
    count: *mut usize,
) -> *const sapwood_missing_t {
    // SAFETY: as the caller says.
    unsafe {
        let missing = answer.as_ref().map_or(&[][..], |answer| &answer.missing);
        lend_run(missing, count)
    }
}

/// Gives an answer back, with its packet, and sets the handle to NULL.
///
/// # Safety
/// `answer` is NULL or points to a handle's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_answer_free(answer: *mut *mut sapwood_answer_t) {
    if answer.is_null() {
        return;
    }
    // SAFETY: the caller's variable holds NULL or an answer that was made by `Box::into_raw`.
    unsafe {
        let freed = answer.replace(std::ptr::null_mut());
        if !freed.is_null() {
            shield((), || drop(Box::from_raw(freed)));
        }
    }
}
