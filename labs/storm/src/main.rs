//! `sapwood-storm`: networks under random faults.

use std::process::ExitCode;

use sapwood_storm::{BACK_END, back_end, program, run};

fn main() -> ExitCode {
    program("sapwood-storm", run, (BACK_END, back_end))
}
