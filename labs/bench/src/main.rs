//! `sapwood-bench`: the benchmarks, and every process that they start but plain communication
//! processes, which are `sapwood-node`.

use std::ffi::OsString;
use std::process::ExitCode;

use sapwood_bench::Arguments;
use sapwood_command_line::{arguments, exit};
use sapwood_node_program::node;

fn main() -> ExitCode {
    exit::guarded(|| {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        if let Some(code) = sapwood_floor::run_hidden(&arguments) {
            return code;
        }
        let result = match arguments.first().and_then(|first| first.to_str()) {
            Some(sapwood_bench::BACK_END) => sapwood_bench::back_end(),
            Some(sapwood_bench::BACK_ENDS) => sapwood_bench::back_ends(&arguments[1..]),
            Some(sapwood_bench::PROFILE_LEAF) => sapwood_bench::profile_leaf(&arguments[1..]),
            Some(sapwood_bench::GROUP_MEMBER) => sapwood_bench::group_member(&arguments),
            Some("node") => node::run(sapwood_bench::register(node::registry())),
            _ => arguments::read::<Arguments>("sapwood-bench").and_then(|read| match read {
                Some(arguments) => sapwood_bench::run(&arguments),
                None => Ok(ExitCode::SUCCESS),
            }),
        };
        result.unwrap_or_else(|failure| failure.report())
    })
}
