//! Fuzzes `sapwood_fuzz::targets::message`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::message::TARGET)
}
