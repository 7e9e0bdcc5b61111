//! Asks the leaves where ranks are: after some have come, so that a lost host can be named with its
//! ranks, and as long as some are missing, so that those can be named that have not called
//! `MPI_Init`.

use std::time::{Duration, Instant};

use sapwood::{Answer, RankSet};
use sapwood_profile::Round;
use sapwood_report::Uninitialised;

use super::collection::Collection;
use super::leaf::PLACE;
use super::places::{Place, PlaceQuestion};

/// Between two questions for ranks that are missing.
const MISSING_PAUSE: Duration = Duration::from_secs(1);

impl Collection {
    /// Asks the leaves again if ranks have come since they said where, or some are missing.
    pub(crate) fn ask_for_places(&mut self, round: &Round) {
        let come = round.covered().len();
        let have_come = self.is_spread() && come > self.places_asked.ranks;
        let is_due = self.places_asked.at.is_none_or(|at| at.elapsed() >= MISSING_PAUSE);
        let are_missing = is_due && !round.missing().is_empty();
        if (have_come || are_missing) && self.ask_where_ranks_are(round.covered()) {
            self.places_asked.ranks = come;
        }
    }

    /// Asks the leaves for their places; whether they could be asked. Ranks that a round has
    /// covered have come, as have those whose leaf does not answer any more.
    fn ask_where_ranks_are(&mut self, covered: &RankSet) -> bool {
        self.places_asked.number += 1;
        self.places_asked.at = Some(Instant::now());
        let mut come = self.known.told();
        come.union_with(covered.as_ref());
        let question = PlaceQuestion { number: self.places_asked.number, come };
        self.places.broadcast(PLACE, question.encode()).is_ok()
    }

    /// Takes what leaves have said of their places.
    pub(crate) fn take_places(&mut self) {
        while let Ok(Some(answer)) = self.places.try_recv() {
            self.take_place(&answer);
        }
    }

    /// Whether it answers the question that was asked last.
    fn take_place(&mut self, answer: &Answer) -> bool {
        let place = answer.value().ok().and_then(Place::decode);
        let (Some(place), Some(leaf)) = (place, answer.contributors.as_ref().first()) else {
            return false;
        };
        let is_of_last = place.question == self.places_asked.number;
        self.known.set(leaf, place);
        is_of_last
    }

    /// Before the last round, so that the hosts of a short program are known, too, and which ranks
    /// have ended before `MPI_Init`.
    pub(crate) fn all_places(&mut self, wait: Duration) {
        let is_wanted = self.is_spread() || !self.result.uninitialised.is_empty();
        let covered = self.result.round.covered().clone();
        if !is_wanted || !self.ask_where_ranks_are(&covered) {
            return;
        }
        let mut left = self.network.everyone().ranks().clone();
        let deadline = Instant::now() + wait;
        while !left.is_empty() {
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.places.recv_timeout(until) else { break };
            // One to a question before may be of a time at which its ranks had not come.
            if self.take_place(&answer) {
                left.subtract(answer.contributors.as_ref());
            }
        }
    }

    /// Remembers which ranks that a round lacks have not called `MPI_Init`, as reasons why they are
    /// missing.
    pub(crate) fn note_uninitialised(&mut self, round: &Round) {
        let size = match round.world_size() {
            0 => self.result.round.world_size(),
            size => size,
        };
        // Before the first rank has come the size may be a guess.
        let is_guess = round.world_size() == 0 && size <= 1;
        let covered = round.covered();
        let is_missing = |rank: u32| (is_guess || rank < size) && !covered.contains(rank);
        self.result.uninitialised = self.known.uninitialised(is_missing);
        self.result.missing.extend(Uninitialised::reasons(&self.result.uninitialised));
    }

    /// Lines for the user: ranks whose processes have not called `MPI_Init` for the time after
    /// which it is asked why ranks wait, each told once.
    pub(crate) fn take_uninitialised_lines(&mut self) -> Vec<String> {
        let Some(deadline) = self.deadline.time() else { return Vec::new() };
        self.places_asked.late.take_lines(&self.result.uninitialised, deadline, Instant::now())
    }
}
