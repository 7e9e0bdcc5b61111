//! `sapwood-soak`: a network at full rate.

use std::process::ExitCode;

use sapwood_storm::program;
use sapwood_storm::soak::{BACK_END, back_end, run};

fn main() -> ExitCode {
    program("sapwood-soak", run, (BACK_END, back_end))
}
