//! What storm to raise over a group: the arguments of `sapwood-storm group`, checked once.

use std::time::Duration;

use sapwood_command_line::exit::Failure;

/// How many members there may be.
const MEMBERS: std::ops::RangeInclusive<u32> = 4..=256;
/// Operations per second.
const RATES: std::ops::RangeInclusive<u32> = 1..=1000;
/// Longest storm, seconds: a day.
const SECONDS_MAX: u32 = 86_400;

/// One group of real processes that are killed, stopped, cut off, leave and join, and checked
#[derive(clap::Args)]
pub struct GroupArguments {
    /// How long, in seconds; what is under way then is waited for.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// What chance begins with; the same seed makes the same choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of members.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 12)]
    members: u32,
    /// Operations per second at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    rate: u32,
    /// Falsify some answers before they are judged: the storm must fail.
    #[arg(long)]
    lie: bool,
    /// Print what is done to members.
    #[arg(long)]
    log: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What storm to raise.
#[derive(Clone, Debug)]
pub(super) struct GroupPlan {
    pub duration: Duration,
    pub seed: u64,
    pub members: u32,
    pub period: Duration,
    pub lies: bool,
    pub is_logged: bool,
    pub is_json: bool,
}

impl GroupPlan {
    pub(super) fn new(arguments: &GroupArguments) -> Result<Self, Failure> {
        let check = |name: &str, value: u32, range: std::ops::RangeInclusive<u32>| {
            let (least, most) = (*range.start(), *range.end());
            let wrong = || Failure::usage(format!("--{name} must be {least} to {most}"));
            range.contains(&value).then_some(value).ok_or_else(wrong)
        };
        let seconds = check("seconds", arguments.seconds, 1..=SECONDS_MAX)?;
        let members = check("members", arguments.members, MEMBERS)?;
        let rate = check("rate", arguments.rate, RATES)?;
        Ok(Self {
            duration: Duration::from_secs(seconds.into()),
            seed: arguments.seed,
            members,
            period: Duration::from_secs(1) / rate,
            lies: arguments.lie,
            is_logged: arguments.log,
            is_json: arguments.json,
        })
    }
}
