//! Error codes, the caller's error struct, and the wall that no panic crosses.

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sapwood::{Error, NodeError};

/// Length of the text of an error in bytes, its final NUL included. Longer texts are cut.
pub const SAPWOOD_ERROR_TEXT_BYTES: usize = 512;

/// What went wrong. Functions that can fail give 0 or one of these.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_error_code_t {
    /// Success.
    SAPWOOD_OK = 0,
    /// The call makes no sense: NULL where something is needed, a bad rank set or option, ranks
    /// that are not there, a stream that is closed. Cure: see the text.
    SAPWOOD_ERROR_USAGE = 1,
    /// A topology cannot be read. The text says what and where.
    SAPWOOD_ERROR_TOPOLOGY = 2,
    /// The network could not be started or joined: a program is missing, a process did not start,
    /// the parent does not answer. The text has the failed process's error text. Nothing is left
    /// running.
    SAPWOOD_ERROR_START = 3,
    /// The deadline passed. Try again, or go on without.
    SAPWOOD_ERROR_TIMEOUT = 4,
    /// The network has ended for this process. Close the handle.
    SAPWOOD_ERROR_ENDED = 5,
    /// All back-ends of the stream are lost: no answer can arrive. The text names them with
    /// reasons.
    SAPWOOD_ERROR_NO_MEMBER_LEFT = 6,
    /// The answer has no value. The text names the missing back-ends with reasons.
    SAPWOOD_ERROR_NO_VALUE = 7,
    /// A filter is not known or does not accept its parameters.
    SAPWOOD_ERROR_FILTER = 8,
    /// A format string is malformed, or differs from what the packet holds.
    SAPWOOD_ERROR_FORMAT = 9,
    /// The system or a connection failed this process.
    SAPWOOD_ERROR_SYSTEM = 10,
    /// A file cannot be read or written, or holds something else. The text names it.
    SAPWOOD_ERROR_FILE = 11,
    /// The handle belongs to another thread. Nothing was done.
    SAPWOOD_ERROR_THREAD = 12,
    /// The handle belongs to the process that this one was forked from. Nothing was done.
    SAPWOOD_ERROR_FORKED = 13,
    /// A fault of this library. Please report the text.
    SAPWOOD_ERROR_INTERNAL = 14,
    /// This process has no memory for a packet, which is not sent, or is lost. The text says how
    /// many bytes it takes. Small ones go on.
    SAPWOOD_ERROR_MEMORY = 15,
    /// The stream's window is full: a receiver has not read earlier packets. Nothing was sent. Try
    /// again later.
    SAPWOOD_ERROR_WOULD_WAIT = 16,
}

use sapwood_error_code_t as Code;

/// What went wrong, in memory of the caller. Any function takes NULL instead.
///
/// It need not be initialised. A call that succeeds sets it to code 0 and an empty text.
#[repr(C)]
pub struct sapwood_error_t {
    /// A `sapwood_error_code_t`, equal to what the function returned.
    pub code: c_int,
    /// One line for people, NUL-terminated UTF-8: what, where, what to do.
    pub text: [c_char; SAPWOOD_ERROR_TEXT_BYTES],
}

/// The name of an error code in one word, such as "timeout"; "unknown" for other numbers. Static.
#[unsafe(no_mangle)]
pub extern "C" fn sapwood_error_name(code: c_int) -> *const c_char {
    let names = [
        c"ok",
        c"usage",
        c"topology",
        c"start",
        c"timeout",
        c"ended",
        c"no_member_left",
        c"no_value",
        c"filter",
        c"format",
        c"system",
        c"file",
        c"thread",
        c"forked",
        c"internal",
        c"memory",
        c"would_wait",
    ];
    let name = usize::try_from(code).ok().and_then(|code| names.get(code));
    name.copied().unwrap_or(c"unknown").as_ptr()
}

/// A failure on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Code::SAPWOOD_ERROR_USAGE, text)
    }

    /// A failure of the system, while a network is being opened or joined, is one to start.
    pub(crate) fn of_start(error: Error) -> Self {
        match error {
            Error::Runtime(error) => Self::new(Code::SAPWOOD_ERROR_START, error.to_string()),
            error => error.into(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Topology(_) => Code::SAPWOOD_ERROR_TOPOLOGY,
            Error::Misuse(NodeError::Filter(_)) => Code::SAPWOOD_ERROR_FILTER,
            Error::Misuse(_) => Code::SAPWOOD_ERROR_USAGE,
            Error::Packet(_) => Code::SAPWOOD_ERROR_FORMAT,
            Error::Memory(_) => Code::SAPWOOD_ERROR_MEMORY,
            Error::Start(_) | Error::NodeProgram => Code::SAPWOOD_ERROR_START,
            Error::Timeout { .. } | Error::NoAddress { .. } => Code::SAPWOOD_ERROR_TIMEOUT,
            Error::NoMemberLeft { .. } => Code::SAPWOOD_ERROR_NO_MEMBER_LEFT,
            Error::NoValue { .. } => Code::SAPWOOD_ERROR_NO_VALUE,
            Error::Ended { .. } => Code::SAPWOOD_ERROR_ENDED,
            Error::File { .. } => Code::SAPWOOD_ERROR_FILE,
            Error::WouldWait { .. } => Code::SAPWOOD_ERROR_WOULD_WAIT,
            Error::Unreceived { .. } => Code::SAPWOOD_ERROR_USAGE,
            _ => Code::SAPWOOD_ERROR_SYSTEM,
        };
        Self::new(code, error.to_string())
    }
}

impl From<sapwood::OutOfMemory> for Failure {
    fn from(error: sapwood::OutOfMemory) -> Self {
        Self::new(Code::SAPWOOD_ERROR_MEMORY, error.to_string())
    }
}

impl From<sapwood::PacketError> for Failure {
    fn from(error: sapwood::PacketError) -> Self {
        Self::new(Code::SAPWOOD_ERROR_FORMAT, error.to_string())
    }
}

/// Runs the body of a function of the header: its failure, or its panic, becomes a code and a text.
///
/// # Safety
/// `error` is NULL or points to memory for a `sapwood_error_t`.
pub(crate) unsafe fn guard(
    error: *mut sapwood_error_t,
    body: impl FnOnce() -> Result<()>,
) -> c_int {
    // State that a panic leaves incomplete is only reachable through the same handle, whose parts
    // stay sound in themselves; the code tells the caller to close it.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        Err(Failure::new(Code::SAPWOOD_ERROR_INTERNAL, words_of(panic.as_ref())))
    });
    let (code, text) = match &result {
        Ok(()) => (Code::SAPWOOD_OK, ""),
        Err(failure) => (failure.code, failure.text.as_str()),
    };
    let code = code as c_int;
    if !error.is_null() {
        // SAFETY: the caller of this function vouches for the pointer. Only the bytes that are set
        // are written, and none are read, because the caller need not have initialised them.
        unsafe {
            (&raw mut (*error).code).write(code);
            write_text((&raw mut (*error).text).cast(), text);
        }
    }
    code
}

/// As [`guard`], for functions that give something else than a code: `otherwise` after a panic.
pub(crate) fn shield<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let words = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    format!("fault of the library: {words}")
}

/// # Safety
/// `to` points to [`SAPWOOD_ERROR_TEXT_BYTES`] writable bytes.
unsafe fn write_text(to: *mut u8, text: &str) {
    let cut = text.floor_char_boundary(SAPWOOD_ERROR_TEXT_BYTES - 1);
    // SAFETY: `cut` bytes and a NUL fit; the two do not overlap, since `text` is the library's own.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr(), cut);
        to.add(cut).write(0);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use super::*;

    fn guarded(body: impl FnOnce() -> Result<()>) -> (c_int, String) {
        let mut error = MaybeUninit::<sapwood_error_t>::uninit();
        // SAFETY: the memory is there, and the text is NUL-terminated after the call.
        unsafe {
            let code = guard(error.as_mut_ptr(), body);
            let text = CStr::from_ptr((&raw const (*error.as_ptr()).text).cast());
            (code, text.to_str().expect("texts are UTF-8").to_owned())
        }
    }

    #[test]
    fn a_panic_becomes_an_error_code() {
        let (code, text) = guarded(|| panic!("wave {} is lost", 3));
        assert_eq!(code, Code::SAPWOOD_ERROR_INTERNAL as c_int);
        assert_eq!(text, "fault of the library: wave 3 is lost");
        assert_eq!(shield(7, || panic!("again")), 7);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_characters() {
        let (code, text) = guarded(|| Err(Failure::usage("é".repeat(400))));
        assert_eq!(code, Code::SAPWOOD_ERROR_USAGE as c_int);
        assert_eq!(text, "é".repeat(255));
    }

    #[test]
    fn success_leaves_an_empty_text() {
        assert_eq!(guarded(|| Ok(())), (0, String::new()));
    }

    #[test]
    fn every_code_has_a_name() {
        for code in 0..=Code::SAPWOOD_ERROR_INTERNAL as c_int {
            // SAFETY: the names are static texts.
            let name = unsafe { CStr::from_ptr(sapwood_error_name(code)) };
            assert_ne!(name, c"unknown", "{code}");
        }
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(sapwood_error_name(-1)) }, c"unknown");
    }
}
