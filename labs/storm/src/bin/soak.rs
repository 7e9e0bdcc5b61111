//! `sapwood-soak`: a network at full rate.

use std::process::ExitCode;

use sapwood_storm::soak::{BACK_END, back_end, run};
use sapwood_storm::{ProgramRole, program};

const ROLES: [ProgramRole; 1] = [ProgramRole { name: BACK_END, run: back_end }];

fn main() -> ExitCode {
    program("sapwood-soak", run, &ROLES)
}
