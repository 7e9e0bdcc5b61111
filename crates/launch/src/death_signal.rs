//! The parent-death signal of a process: the kernel kills it when its starter ends.
//!
//! The kernel sends the signal (`PR_SET_PDEATHSIG`) only for a parent that ends after the request.
//! The process must therefore check after the request that its parent is still the starter.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::LaunchError;

/// The variable that tells a program of ours to request the death signal; it holds the starter's
/// process number.
pub const STARTER_VARIABLE: &str = "SAPWOOD_STARTER";

/// Requests the death signal if the starter ordered it
/// ([`DeathSignal::ByProgram`](crate::DeathSignal::ByProgram)), and does nothing otherwise.
///
/// Call it first thing in `main`, on the main thread.
///
/// # Errors
/// [`LaunchError::StarterGone`] if the starter has ended: end as well.
/// [`LaunchError::InvalidStarter`] if the variable is damaged.
pub fn arrange_death_signal() -> Result<(), LaunchError> {
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

/// Requests the death signal and returns whether the starter is still the parent.
///
/// Only system calls, which makes it safe between fork and exec.
pub(crate) fn bind_to(starter: Pid) -> rustix::io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid() == Some(starter))
}
