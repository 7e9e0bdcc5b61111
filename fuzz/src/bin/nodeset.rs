//! Fuzzes `sapwood_fuzz::targets::nodeset`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sapwood_fuzz::engine::main(sapwood_fuzz::targets::nodeset::TARGET)
}
