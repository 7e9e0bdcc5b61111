//! The plan of a run's faults.

use alloc::vec::Vec;

use sapwood_random::Random;

use crate::agenda::{MICROSECOND, MILLISECOND, Time};
use crate::{Class, Faults};

/// The victim, chosen from the processes that are present at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Communication,
    BackEnd,
    FrontEnd,
    /// The parent, some child or some sibling of the process that was struck last.
    Relative,
    /// The parent that the process that was struck last was planned to have.
    Parent,
    /// A back-end below the process that was struck last, and not cut off with it.
    Left,
}

/// A fault of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strike {
    pub(crate) class: Class,
    pub(crate) at: Time,
    pub(crate) target: Target,
    /// How long it lasts, where it does.
    pub(crate) lasts: Time,
    /// Whether what the process had written is lost with it, as when its machine goes.
    pub(crate) is_abrupt: bool,
    /// The processes that are cut off with it.
    pub(crate) cut: Cut,
}

/// The processes on the far side of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The process, maybe all below it, and others here and there.
    Random,
    /// The process with some of its children and their subtrees.
    Split,
}

/// Draws the faults of a run. They are single or in pairs, close together or apart.
pub(crate) fn draw_strikes(
    draws: &mut Random,
    faults: Faults,
    duration: Time,
    recovers: bool,
) -> Vec<Strike> {
    // Lateness strikes no process by itself.
    let classes: Vec<Class> = faults.classes().filter(|&class| class != Class::Lag).collect();
    let mut strikes = Vec::new();
    if classes.is_empty() {
        return strikes;
    }
    let count = draws.between(1, 5);
    // Start-up takes some of it; a few faults meet it.
    let span = duration + 40 * MILLISECOND;
    while strikes.len() < count as usize {
        let mut strike = draw_strike(draws, *draws.clone().choose(&classes), span, recovers);
        strikes.push(strike);
        while draws.one_in(3) {
            strike = draw_strike(draws, *draws.clone().choose(&classes), span, recovers);
            let first = strikes.last().map_or(0, |last: &Strike| last.at);
            strike.at = first + draws.below(*draws.clone().choose(&GAPS));
            if draws.one_in(2) {
                strike.target = Target::Relative;
            }
            strikes.push(strike);
        }
    }
    strikes
}

/// Within how long a second fault follows a first one.
const GAPS: [Time; 5] =
    [1, 200 * MICROSECOND, 5 * MILLISECOND, 100 * MILLISECOND, 1000 * MILLISECOND];

fn draw_strike(draws: &mut Random, class: Class, span: Time, recovers: bool) -> Strike {
    let target = match draws.below(20) {
        // Without recovery, a process less is a subtree less, and soon nothing is left to look at.
        0..8 if !recovers && class == Class::Crash => Target::BackEnd,
        0..5 => Target::BackEnd,
        5 if class != Class::Join => Target::FrontEnd,
        _ if class == Class::Join => Target::BackEnd,
        _ => Target::Communication,
    };
    // A front-end that crashes leaves nothing to be seen but that all others end.
    let is_spared = target == Target::FrontEnd && class == Class::Crash && !draws.one_in(6);
    let target = if is_spared { Target::Communication } else { target };
    let lasts = match draws.below(4) {
        0 => draws.below(5 * MILLISECOND),
        1 => draws.below(100 * MILLISECOND),
        2 => draws.below(1000 * MILLISECOND),
        _ => draws.below(10_000 * MILLISECOND),
    };
    Strike {
        class,
        at: draws.below(span),
        target,
        lasts,
        is_abrupt: draws.one_in(2),
        cut: Cut::Random,
    }
}
