//! The bond between a process and its starter: the first does not outlive the second.
//!
//! The kernel keeps it (`PR_SET_PDEATHSIG`), but forgets nothing that happened before it was
//! asked: whoever asks must look afterwards whether its parent is still the starter.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::LaunchError;

/// The variable by which a program of ours learns that it shall bind itself, and to whom.
pub const STARTER_VARIABLE: &str = "SAPWOOD_STARTER";

/// Binds this process to its starter if that ordered it so
/// ([`Bond::ByProgram`](crate::Bond::ByProgram)), and does nothing otherwise.
///
/// Call it first thing in `main`, on the main thread.
///
/// # Errors
/// [`LaunchError::StarterGone`] if the starter has ended: end as well.
/// [`LaunchError::InvalidStarter`] if the variable is damaged.
pub fn bind_to_starter() -> Result<(), LaunchError> {
    let Some(text) = std::env::var_os(STARTER_VARIABLE) else {
        return Ok(());
    };
    let starter = text
        .to_str()
        .and_then(|digits| digits.parse().ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| LaunchError::InvalidStarter { text: text.to_string_lossy().into() })?;
    match bind_to(starter) {
        Ok(true) => Ok(()),
        Ok(false) => Err(LaunchError::StarterGone),
        Err(cause) => Err(LaunchError::Refused {
            program: std::env::args_os().next().unwrap_or_default().into(),
            cause: cause.into(),
        }),
    }
}

/// Asks the kernel for the bond and answers whether the starter was still there.
///
/// Only system calls, so that it may run between fork and exec.
pub(crate) fn bind_to(starter: Pid) -> rustix::io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid() == Some(starter))
}
