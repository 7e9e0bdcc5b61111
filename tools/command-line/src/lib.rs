//! What several tools need of a command line: reading arguments, exit codes, output, times,
//! progress.
//!
//! `exit` owns the exit codes and [`exit::Failure`], `arguments` the reading of a command line and
//! the one line for what is wrong with it, `log` the events that a user asks for, `manual` the
//! manual pages, `times`, `shares` and `progress` what their names say, `query` the question to
//! another program whose answer is read within a limit, `closed_output` a standard output that is
//! closed. What only one tool needs is that tool's.

pub mod arguments;
mod closed_output;
pub mod exit;
pub mod log;
pub mod manual;
pub mod progress;
pub mod query;
pub mod shares;
pub mod times;
