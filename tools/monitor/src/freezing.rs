//! Freezing for `sapwood trace`: a program that it starts, or one that `sapwood mpi` watches.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::RankSet;
use sapwood_command_line::exit::Failure;
use sapwood_report::freeze::Freeze;

use super::control::{ControlRequest, FreezeOrder, FreezeRequest};
use super::control_command;
use super::watch::News;
use super::why::{WhyWishes, watched_for};

/// How long a running program's ranks may take to answer.
const FREEZE_TIME: Duration = Duration::from_secs(20);
/// Between two questions whether they have.
const PAUSE: Duration = Duration::from_millis(50);

/// What is to be frozen.
#[derive(Clone, Debug)]
pub struct FreezeWishes {
    /// The time before the last call that returned.
    pub last: Duration,
    /// The ranks; empty for all.
    pub ranks: RankSet,
    /// Of a program that is started: freezes it when a rank comes later than this to a collective.
    pub late: Option<Duration>,
}

/// Starts a program and watches it: it is frozen when it is stuck, when a rank comes late, when it
/// is told to end, or at its end, whichever comes first. `tell` is given the document while the
/// program runs. The code with which the program ended, and the document if it came only then.
///
/// # Errors
/// As [`crate::run`].
pub fn freeze(
    wishes: &WhyWishes,
    frozen: &FreezeWishes,
    tell: &mut dyn FnMut(&Freeze),
) -> Result<(ExitCode, Option<Freeze>), Failure> {
    let FreezeWishes { last, ranks, late } = frozen.clone();
    let order = FreezeOrder { last, ranks, late };
    let watched = watched_for(wishes, Some(order), &mut |news| {
        if let News::Frozen(freeze) = news {
            tell(freeze);
        }
    })?;
    Ok((watched.end.exit_code(), watched.collected.and_then(|collected| collected.freeze)))
}

/// Asks a run of `sapwood mpi` of this user for the last events of its ranks.
///
/// # Errors
/// [`Failure`] when no run or more than one is there, it has no such ranks, or it does not answer.
pub fn freeze_of_running(name: Option<&str>, wishes: &FreezeWishes) -> Result<Freeze, Failure> {
    let network = control_command::find(name)?;
    let freeze =
        FreezeRequest { last_s: wishes.last.as_secs_f64(), ranks: wishes.ranks.to_string() };
    let request = ControlRequest { freeze: Some(freeze), ..ControlRequest::default() };
    let begun = control_command::ask(&network, &request)?;
    if !begun.error.is_empty() {
        return Err(Failure::usage(begun.error));
    }
    if begun.freezes == 0 {
        return Err(Failure::own(
            &"the tree of the run has ended: none of its leaves can be queried",
        ));
    }
    let request = ControlRequest { frozen: Some(begun.freezes), ..ControlRequest::default() };
    let limit = Instant::now() + FREEZE_TIME;
    loop {
        let reply = control_command::ask(&network, &request)?;
        if let Some(freeze) = reply.freeze {
            return Ok(freeze);
        }
        if Instant::now() >= limit {
            return Err(Failure::own(
                &"the leaves did not report the calls of their ranks in time",
            ));
        }
        std::thread::sleep(PAUSE);
    }
}
