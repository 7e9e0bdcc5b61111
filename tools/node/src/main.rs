//! `sapwood-node`: what a tree starts on hosts. Communication processes, and the back-ends of the
//! tools.
//!
//! The first argument names what the process is; without one, or with `node`, it is a communication
//! process. Nothing that people type is in this program, so that hundreds of it stay small.

use std::ffi::OsString;
use std::process::ExitCode;

use sapwood_command_line::{exit, log};
use sapwood_node_program::node;

fn main() -> ExitCode {
    exit::guarded(|| {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        // The file of the front-end's host may have no folder on this one: no reason to be missing.
        if let Err(failure) = log::start() {
            exit::complain(format_args!("{failure}; this process logs nothing"));
        }
        let result = match arguments.first().and_then(|first| first.to_str()) {
            Some(sapwood_hosts::persistent::AGENT) if arguments.len() == 1 => {
                sapwood_run::agent::run()
            }
            Some(sapwood_top::agent::AGENT) if arguments.len() == 1 => sapwood_top::agent::run(),
            Some(sapwood_copy::agent::AGENT) if arguments.len() == 1 => sapwood_copy::agent::run(),
            Some(sapwood_monitor::leaf::LEAF) => sapwood_monitor::leaf::run(&arguments[1..]),
            Some(sapwood_doctor::hosts::BACK_END) => sapwood_doctor::hosts::back_end(),
            Some(sapwood_topology_tool::trial::BACK_END) => {
                sapwood_topology_tool::trial::back_end()
            }
            _ => node::run(node::registry()),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}
