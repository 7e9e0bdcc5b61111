//! How the command ends: exit codes, and one clear line for what went wrong.

use std::fmt::Display;
use std::process::ExitCode;

/// Bad input: the user can mend it.
pub(crate) const USAGE: u8 = 2;
/// Nothing came in time.
pub(crate) const TIMEOUT: u8 = 124;
/// A failure of Sapwood's own.
pub(crate) const OWN_FAILURE: u8 = 125;

/// Why the command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// The user's input cannot be used.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { code: USAGE, text: text.to_string() }
    }

    /// Sapwood itself failed.
    pub(crate) fn own(text: &impl Display) -> Self {
        Self { code: OWN_FAILURE, text: text.to_string() }
    }

    /// Says it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("sapwood: {}", self.text);
        ExitCode::from(self.code)
    }
}

impl From<sapwood::Error> for Failure {
    fn from(error: sapwood::Error) -> Self {
        let code = match &error {
            sapwood::Error::Topology(_)
            | sapwood::Error::Misuse(_)
            | sapwood::Error::File { .. }
            | sapwood::Error::Start(_) => USAGE,
            sapwood::Error::Timeout { .. } => TIMEOUT,
            _ => OWN_FAILURE,
        };
        Self { code, text: error.to_string() }
    }
}
