//! `sapwood-storm`: networks and groups under random faults.

use std::process::ExitCode;

use sapwood_storm::group::{GROUP_MEMBER, group_member};
use sapwood_storm::{BACK_END, ProgramRole, back_end, program, run};

const ROLES: [ProgramRole; 2] = [
    ProgramRole { name: BACK_END, run: back_end },
    ProgramRole { name: GROUP_MEMBER, run: group_member },
];

fn main() -> ExitCode {
    program("sapwood-storm", run, &ROLES)
}
