//! What programs that tests run see of the environment in which the tests are run.
//!
//! A user's settings change what programs print and do: `LC_ALL`, `RUST_BACKTRACE`,
//! `SAPWOOD_LAUNCHER`, `SLURM_JOB_NODELIST`. What a test shows must not depend on them.

use std::ffi::OsStr;
use std::process::Command;

/// Where programs are, where files of a user and temporary ones are, and who that is.
const KEPT: [&str; 5] = ["PATH", "HOME", "TMPDIR", "USER", "LOGNAME"];

/// A command that inherits nothing else; a test adds what it wants.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let kept = KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(kept);
    command
}
