//! What the tree has told of a run by some moment, for the modules that show and keep it.

use std::time::Duration;

use sapwood_profile::{RankRows, Round};
use sapwood_report::ends::Ends;
use sapwood_report::freeze::Freeze;
use sapwood_report::record::{Settings, Stacks};
use sapwood_report::scope::ScopeRecord;
use sapwood_report::why::Stuck;
use sapwood_report::{
    Analysis, FirstLost, HostRanks, Intervals, Missing, Outdated, Standstills, Uninitialised,
};
use sapwood_trace::{Findings, Standing};

use super::control::deaths::Deaths;
use super::events_folder::ends_of;
use super::standing::Held;
use super::tallies::Answers;
use super::waits::{WaitsInquiry, WaitsNews};

/// What has come up the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    /// The program's name.
    pub(crate) program: String,
    /// Rounds that came while the program ran.
    pub(crate) rounds: u64,
    /// The latest round.
    pub(crate) round: Round,
    /// Why MPI ranks are missing from it.
    pub(crate) missing: Vec<Missing>,
    /// Of these, ranks that have not called `MPI_Init`, as far as their processes are known.
    pub(crate) uninitialised: Vec<Uninitialised>,
    /// Why the latest round is not of the program's end, if it should be.
    pub(crate) outdated: Option<Outdated>,
    /// When the latest round came, from the start of the program.
    pub(crate) as_of: Option<Duration>,
    /// Whether the program had ended when this was concluded.
    pub(crate) has_ended: bool,
    /// The ranks' own profiles.
    pub(crate) rows: RankRows,
    /// Rounds in which no MPI call returned.
    pub(crate) standstills: Standstills,
    /// What further filters have found.
    pub(crate) analysis: Analysis,
    /// Events that were asked for by name and have never appeared.
    pub(crate) never_found: Vec<String>,
    /// The latest call stacks.
    pub(crate) stacks: Option<Stacks>,
    /// Those of the latest standstill.
    pub(crate) still_stacks: Option<Stacks>,
    /// The program's hosts, if there are several.
    pub(crate) hosts: Vec<HostRanks>,
    /// Those that ended first of those that ended without a word.
    pub(crate) first_lost: Option<FirstLost>,
    /// Iterations that the program has marked and that came.
    pub(crate) iterations: u64,
    /// How ranks ended that did not end in order.
    pub(crate) deaths: Deaths,
    /// The settings at the end.
    pub(crate) settings: Option<Settings>,
    /// Whether ranks were told at any time to record their calls.
    pub(crate) has_traced: bool,
    /// The round before the latest one.
    pub(crate) before: Option<Round>,
    /// How well the ranks computed from round to round.
    pub(crate) intervals: Intervals,
    /// What was tallied beside the events.
    pub(crate) tallies: Answers,
    /// Which ranks waited for which, if that was asked for.
    pub(crate) waits: Option<Findings>,
    /// Until when that is known, and when the last answer about it came.
    pub(crate) waits_at: Duration,
    pub(crate) waits_answered: Duration,
    /// What was frozen at the end, if that was ordered and has not been told.
    pub(crate) freeze: Option<Freeze>,
    /// What scopes have gathered at the end.
    pub(crate) scopes: Vec<ScopeRecord>,
    /// The verdict that held at the end, and how many did before.
    pub(crate) held: Option<Held>,
    pub(crate) passed: u64,
    /// Whether the user has ended the program.
    pub(crate) was_told_to_end: bool,
    /// Where ranks stood last.
    pub(crate) standing: Option<Standing>,
}

impl Collected {
    /// The verdict that held, with where the ranks are that it names, if that was read since.
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        self.held.as_ref().map(|held| held.stuck(self.still_stacks.as_ref()))
    }

    /// How ranks ended, when the launcher has ended with this code.
    pub(crate) fn ends(&self, elapsed: Duration, code: i32) -> Ends {
        // Of a program of which no rank has come its size is a guess.
        let has_come = !self.round.covered().is_empty();
        let ranks = if has_come { self.round.world_size() } else { 0 };
        Ends {
            has_ended: true,
            was_told_to_end: self.was_told_to_end,
            code: Some(code),
            ..ends_of(&self.deaths, &self.program, ranks, elapsed)
        }
    }

    /// Takes the answers about waits that have come. A leaf tells how long its ranks waited in a
    /// collective with ranks of others with the answer after the one with which it became known
    /// which was last; of the first answer none is known.
    pub(crate) fn take_waits(&mut self, waits: &mut WaitsInquiry, elapsed: Duration) {
        let news = waits.take();
        if news == WaitsNews::Findings {
            self.waits = Some(waits.findings().clone());
        }
        if news != WaitsNews::None {
            self.waits_at = std::mem::replace(&mut self.waits_answered, elapsed);
        }
    }
}
