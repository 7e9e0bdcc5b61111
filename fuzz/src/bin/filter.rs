//! Fuzzes `sapwood_fuzz::targets::filter`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::filter::TARGET)
}
