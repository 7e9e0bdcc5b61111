//! Fuzzes `sapwood_fuzz::targets::shm_ring`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::shm_ring::TARGET)
}
