//! How the command ends: exit codes, one clear line for what went wrong, and output that may fail.
//!
//! Owns [`Failure`], which every command gives back instead of printing and leaving by itself, the
//! writing to standard output, [`StandardError`] and the lines on it, and what becomes of a fault
//! in our own code. Does not own what the lines say: that is with the code that noticed.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use sapwood_launch::Signal;

use crate::{address_space, closed_output};

/// Bad input: the user can mend it.
pub const USAGE: u8 = 2;
/// Nothing came in time: what was waited for, or the answer of a process that was asked, be it a
/// front-end, the daemon of a tree or a member of a group.
pub const TIMEOUT: u8 = 124;
/// A failure of Sapwood's own.
pub const OWN_FAILURE: u8 = 125;
/// More hosts could not be reached, or were lost, than are accepted.
pub const UNREACHED: u8 = 255;
/// The reader of our output has gone: 128 and the number of SIGPIPE, as a shell would say.
const READER_GONE: u8 = 128 + 13;

/// The exit code of a command that a signal has ended, as a shell would say it.
pub fn by_signal(signal: Signal) -> u8 {
    128 + signal.as_raw().clamp(0, 127) as u8
}

/// Why the command failed.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// The user's input cannot be used.
    pub fn usage(text: impl Display) -> Self {
        Self { code: USAGE, text: text.to_string() }
    }

    /// Sapwood itself failed.
    pub fn own(text: &impl Display) -> Self {
        Self { code: OWN_FAILURE, text: text.to_string() }
    }

    /// Nothing came in time.
    pub fn timeout(text: impl Display) -> Self {
        Self { code: TIMEOUT, text: text.to_string() }
    }

    /// Our output cannot be written. A reader that has gone, such as `head`, is no failure.
    pub fn output(error: &std::io::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::BrokenPipe => READER_GONE,
            _ => OWN_FAILURE,
        };
        let cause = match closed_output::was_closed() {
            true => "it is closed".to_owned(),
            false => error.to_string(),
        };
        Self { code, text: format!("cannot write to standard output: {cause}") }
    }

    /// The exit code of a command that fails so.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Says it on standard error, in one line.
    pub fn report(&self) -> ExitCode {
        if self.code != READER_GONE {
            complain(one_line(&self.text));
        }
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&one_line(&self.text))
    }
}

impl From<sapwood::Error> for Failure {
    fn from(error: sapwood::Error) -> Self {
        let code = match &error {
            error if error.is_timeout() => TIMEOUT,
            sapwood::Error::Topology(_)
            | sapwood::Error::Misuse(_)
            | sapwood::Error::File { .. }
            | sapwood::Error::Start(_)
            | sapwood::Error::Group(
                sapwood::GroupFailure::Space { .. } | sapwood::GroupFailure::Outside { .. },
            ) => USAGE,
            _ => OWN_FAILURE,
        };
        Self { code, text: error.to_string() }
    }
}

/// Writes to standard output. A reader that has gone, such as `head`, ends the command in silence.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Failure::output(&error))
}

/// Runs a command such that a fault in our own code becomes one line and exit code 125. What the
/// command had open is closed on the way, so a tree ends as it does after any error. A write beyond
/// a limit on the size of files fails, and does not end the program. Where a limit on the address
/// space leaves too little, the command does not begin.
pub fn guarded(command: impl FnOnce() -> ExitCode + panic::UnwindSafe) -> ExitCode {
    sapwood_launch::survive_file_limit();
    closed_output::refuse_writes();
    if let Some(reason) = address_space::lacking() {
        complain(reason);
        return ExitCode::from(OWN_FAILURE);
    }
    panic::set_hook(Box::new(|fault| complain(describe(fault))));
    panic::catch_unwind(command).unwrap_or(ExitCode::from(OWN_FAILURE))
}

/// A line as it stands on standard error.
pub fn complaint(text: impl Display) -> String {
    format!("sapwood: {text}\n")
}

/// A line on standard error, in one piece among what other processes write there. One that takes no
/// more, such as a file on a full disk, leaves no place to say so: a fault of `eprintln` would end
/// the program without its exit code.
pub fn complain(text: impl Display) {
    write_whole(&complaint(text));
}

/// Lines on standard error, in one piece among what the program writes there.
pub fn complain_all(lines: &[String]) {
    write_whole(&lines.iter().map(complaint).collect::<String>());
}

fn write_whole(text: &str) {
    // Where it is written piece by piece, no line of another thread comes between the pieces.
    let _lock = std::io::stderr().lock();
    let _ = StandardError.write_all(text.as_bytes());
}

/// Standard error. What it does not take is lost: neither the output nor the exit code of a command
/// is lost with it.
pub struct StandardError;

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        loop {
            match std::io::stderr().write(bytes) {
                // One that another program has set not to block takes more once it was read.
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room()?,
                Err(error) if error.kind() != ErrorKind::Interrupted => return Ok(bytes.len()),
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Waits until standard error takes something.
fn wait_for_room() -> std::io::Result<()> {
    let errors = std::io::stderr();
    let mut room = [PollFd::new(&errors, PollFlags::OUT)];
    match poll(&mut room, None) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn describe(fault: &PanicHookInfo<'_>) -> String {
    let payload = fault.payload();
    let words = payload.downcast_ref::<&str>().copied();
    let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let place = fault.location().map_or_else(String::new, |at| format!(" at {at}"));
    let words = one_line(words.unwrap_or("no reason given"));
    format!("a fault in Sapwood itself{place}: {words}; please report it with this line")
}

/// Several lines as one, with single blanks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_ends_with_the_code_of_our_own_failures() {
        let ended = guarded(|| panic!("the third\nwave"));
        assert_eq!(ended, ExitCode::from(OWN_FAILURE));
        assert_eq!(guarded(|| ExitCode::SUCCESS), ExitCode::SUCCESS);
        drop(panic::take_hook());
    }

    #[test]
    fn several_lines_become_one() {
        assert_eq!(one_line("rank 3:\n  no such\tfile\n"), "rank 3: no such file");
    }
}
