//! Fuzzes `sapwood_fuzz::targets::group`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::group::TARGET)
}
