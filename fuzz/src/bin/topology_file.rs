//! Fuzzes `sapwood_fuzz::targets::topology_file`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::topology_file::TARGET)
}
