//! Fuzzes `sapwood_fuzz::targets::trace`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::trace::TARGET)
}
