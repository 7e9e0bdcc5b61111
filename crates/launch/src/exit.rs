//! How a process ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself with this status, 0 for success.
    Status(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// It ended, but other code of this process took its status first.
    Unknown,
}

impl Exit {
    /// Whether it ended by itself with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Status(0)
    }

    /// The status with which a program that stands for this one ends: its own, 128 and the signal's
    /// number, or 125 if the status is unknown.
    pub fn code(self) -> i32 {
        match self {
            Self::Status(status) => status,
            Self::Signal(number) => 128 + number,
            Self::Unknown => 125,
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(code),
            (None, Some(number)) => Self::Signal(number),
            (None, None) => Self::Unknown,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Status(status) => write!(f, "exited with status {status}"),
            Self::Signal(number) => match signal_name(number) {
                Some(name) => write!(f, "killed by signal {number} ({name})"),
                None => write!(f, "killed by signal {number}"),
            },
            Self::Unknown => f.write_str("ended, and its status was taken by other code"),
        }
    }
}

/// The usual name of a signal's number on Linux, without `SIG`.
fn signal_name(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_a_person_would_say_it() {
        assert_eq!(Exit::Status(3).to_string(), "exited with status 3");
        assert_eq!(Exit::Signal(9).to_string(), "killed by signal 9 (KILL)");
        assert_eq!(Exit::Signal(15).to_string(), "killed by signal 15 (TERM)");
        assert_eq!(Exit::Signal(40).to_string(), "killed by signal 40");
        assert_eq!(Exit::Signal(11).code(), 139);
        assert!(Exit::Status(0).is_success() && !Exit::Unknown.is_success());
    }
}
