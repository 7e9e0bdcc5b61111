//! The one program of all fuzz targets: `sapwood-fuzz TARGET`, then what the engine takes.

use std::process::ExitCode;

use sapwood_fuzz::{engine, targets};

fn main() -> ExitCode {
    engine::main(&targets::ALL, std::env::args().skip(1))
}
