//! Where requests arrive in the loop that watches the program: from threads of this process and
//! from other processes of the user.

use std::time::Duration;

use sapwood_profile::RankState;
use serde::{Deserialize, Serialize};

use sapwood_report::freeze::{Freeze, FreezeReason};
use sapwood_report::record::Settings;
use sapwood_report::scope::ScopeRecord;
use sapwood_report::why::Why;

use super::collection::Collection;
use super::control::ControlRequest;
use super::control::channel::ControlQueue;
use super::standing::StandingWatch;

/// The answer to a request: how things are after it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    /// Why the request was refused, in one line; empty if it was not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
    /// The settings in force.
    pub(crate) settings: Option<Settings>,
    /// The ranks that run, by the last round.
    pub(crate) running: String,
    /// Ranks that are known to run, by a round or not, and not to have applied the settings yet.
    pub(crate) late: String,
    /// Rounds that have come.
    pub(crate) rounds: u64,
    /// Iterations that have come.
    pub(crate) iterations: u64,
    /// Marks of iterations that came too fast for a round.
    pub(crate) marks_left_out: u64,
    /// Ranks that did not end in order.
    pub(crate) deaths: Vec<sapwood_report::record::Death>,
    /// Why the program is slow or stuck, if that was asked.
    pub(crate) why: Option<Why>,
    /// How often it was looked at where ranks stand.
    pub(crate) looks: u64,
    /// The number of the freeze that was begun last; 0 for none.
    pub(crate) freezes: u64,
    /// The freeze that was asked for, if it has come.
    pub(crate) freeze: Option<Freeze>,
    /// The number of the scope that was begun; none where the tree is gone.
    pub(crate) scope_number: Option<u32>,
    /// What the scope that was asked for has gathered, if it has come.
    pub(crate) scope: Option<ScopeRecord>,
}

/// The settings as users give them: all ranks have a word.
fn spelled_out(mut settings: Settings) -> Settings {
    if settings.ranks.is_empty() {
        "all".clone_into(&mut settings.ranks);
    }
    settings
}

impl Collection {
    /// Answers all requests that have come.
    pub(crate) fn serve_requests(&mut self, queue: &mut ControlQueue, elapsed: Duration) {
        while let Some(waiting) = queue.next() {
            let reply = self.obey(Ok(waiting.request), elapsed);
            // The process that asked may be gone.
            let _ = waiting.answer.send(reply);
        }
        while let Some(question) = self.next_question() {
            let request = String::from_utf8(question.bytes.clone()).map_err(|_| "no text".into());
            let request = request.and_then(|text: String| ControlRequest::parse(&text));
            let reply = self.obey(request, elapsed);
            self.reply(&question, reply.as_bytes());
        }
    }

    fn obey(&mut self, request: Result<ControlRequest, String>, elapsed: Duration) -> String {
        let settings = &self.guidance.settings;
        let world_size = self.known_world_size();
        let changed = request.and_then(|request| {
            let changed = settings.changed(&request, world_size)?;
            let order = request.freeze.as_ref().map(|freeze| freeze.order(world_size));
            let named = request.scope.as_ref().map(|scope| scope.named(world_size)).transpose()?;
            Ok((changed, order.transpose()?, named, request))
        });
        let (mut why, mut freeze, mut scope, mut scope_number) = (None, None, None, None);
        let error = match changed {
            Ok((settings, order, named, request)) => {
                let flush = request.flush;
                if let Some(deadline_s) = request.why_s {
                    why = Some(self.look(deadline_s, elapsed));
                }
                if let Some(order) = order {
                    self.begin_freeze(&order, FreezeReason::Asked, elapsed);
                }
                if let Some(number) = request.frozen {
                    freeze = self.freeze.document(number).cloned();
                }
                scope_number = named.and_then(|named| self.begin_scope(named));
                scope = self.serve_scopes(&request, elapsed);
                let is_new = settings != self.guidance.settings;
                self.guidance.settings = settings;
                if flush {
                    self.ask(elapsed);
                } else if is_new {
                    self.guidance.ask(elapsed);
                }
                String::new()
            }
            Err(error) => error,
        };
        let running = self.result.round.ranks_in(RankState::Running);
        let late = self.guidance.late(&self.result.round, &running);
        // A question that was asked just now is awaited.
        self.guidance.ask_who_obeys(&late, elapsed);
        let reply = Reply {
            error,
            settings: Some(spelled_out(self.guidance.section())),
            running: running.to_string(),
            late: late.to_string(),
            rounds: self.result.rounds,
            iterations: self.result.iterations,
            marks_left_out: self.guidance.marks_left_out,
            deaths: self.guidance.deaths.section(),
            why,
            looks: self.standing.as_ref().map_or(0, StandingWatch::looks),
            freezes: self.freeze.begun(),
            freeze,
            scope_number,
            scope,
        };
        serde_json::to_string(&reply).expect("numbers, text and lists of them are always JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ranks_are_named_and_chosen_ones_are_kept() {
        let of = |ranks: &str| {
            spelled_out(Settings { ranks: ranks.to_owned(), ..Settings::default() }).ranks
        };
        assert_eq!((of(""), of("0-3,7")), ("all".to_owned(), "0-3,7".to_owned()));
    }
}
