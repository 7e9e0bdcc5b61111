//! What several tools need of a command line: reading arguments, exit codes, output, times,
//! progress.
//!
//! `exit` owns the exit codes and [`exit::Failure`], `arguments` the reading of a command line and
//! the one line for what is wrong with it, `log` the events that a user asks for, `manual` the
//! manual pages, `times`, `shares` and `progress` what their names say, `colour` whether a command
//! writes colours, `query` the question to another program whose answer is read within a limit,
//! `closed_output` a standard output that is closed, `address_space` whether a limit on it leaves
//! enough. What only one tool needs is that tool's.

mod address_space;
pub mod arguments;
mod closed_output;
pub mod colour;
pub mod exit;
pub mod log;
pub mod manual;
pub mod progress;
pub mod query;
pub mod shares;
pub mod times;
