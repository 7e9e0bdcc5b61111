//! Fuzzes `sapwood_fuzz::targets::scope`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::scope::TARGET)
}
