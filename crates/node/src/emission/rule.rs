//! Asks the synchronisation rules of streams.

use sapwood_filter::{Chain, FilterError, Verdict};
use sapwood_link::END;
use sapwood_packet::Rank;

use crate::interface::work::Work;
use crate::interface::{Instant, Role};
use crate::streams::stream::Stream;
use crate::transform::job::{Job, Load};
use crate::transform::offload::Jobs;
use crate::transform::synchronisation::{Question, Rule, RuleState};
use crate::turn::Turn;

impl Stream {
    /// Asks a stream's rule about its first wave, or has it asked in a job.
    pub(crate) fn consult_rule(&mut self, turn: &mut Turn) {
        let (now, rank) = (turn.now, turn.rank());
        let is_root = turn.settings.role == Role::FrontEnd;
        if self.consult(rank, is_root, now) {
            let id = self.id;
            turn.jobs_wanted.push_back((id, Work::Rule));
        }
    }

    /// The job in which a rule is asked, if it still has to be.
    pub(crate) fn gather_question(&mut self, jobs: &mut Jobs, turn: &mut Turn) -> Option<Job> {
        let (now, rank) = (turn.now, turn.rank());
        let is_root = turn.settings.role == Role::FrontEnd;
        let (rule, question) = self.give_rule(rank, is_root, now)?;
        let job = self.job_of(
            jobs.next_number(),
            Work::Rule,
            Chain::default(),
            Load::Question(question),
            turn,
        );
        let job = Job { rule: Some(rule), ..job };
        jobs.lend(&job, turn.now);
        Some(job)
    }

    /// A rule has come back.
    pub(crate) fn finish_question(&mut self, job: Job, turn: &mut Turn) {
        let now = turn.now;
        let Job { rule, batch, decided, .. } = job;
        let (Some(rule), Load::Question(question)) = (rule, &batch.load) else { return };
        self.take_rule(rule);
        if let Some(decided) = decided {
            self.decided(question, decided, now);
        }
        self.go_on(turn);
    }

    /// Asks the rule, if something is new. A wave that it lets go is ready. Gives whether the rule
    /// is to be asked in a job, for which [`Stream::give_rule`] is called later.
    pub(crate) fn consult(&mut self, rank: Rank, is_root: bool, now: Instant) -> bool {
        let Some(question) = self.question(rank, is_root, now) else { return false };
        let Some(decider) = &mut self.rule else { return false };
        let decided = match &mut decider.state {
            RuleState::Here(rule) => rule.0.decide(&question.arrivals()),
            RuleState::GivenUp(error) => Err(error.clone()),
            RuleState::Listed(_) | RuleState::AtWork => return false,
            RuleState::Offload(_) => {
                decider.state = match decider.retire() {
                    Some(rule) => RuleState::Listed(rule),
                    None => return false,
                };
                // It is asked about whatever there is by then.
                (decider.asked, decider.due) = (None, None);
                return true;
            }
        };
        self.decided(&question, decided, now);
        false
    }

    /// The rule with what it is to be asked, if that is still to be asked.
    pub(crate) fn give_rule(
        &mut self,
        rank: Rank,
        is_root: bool,
        now: Instant,
    ) -> Option<(Rule, Question)> {
        let question = self.question(rank, is_root, now);
        let decider = self.rule.as_mut()?;
        match core::mem::replace(&mut decider.state, RuleState::AtWork) {
            RuleState::Listed(rule) => {
                if let Some(question) = question {
                    (decider.asked, decider.due) = (Some(question.news()), None);
                    return Some((rule, question));
                }
                decider.state = RuleState::Offload(rule);
            }
            other => decider.state = other,
        }
        None
    }

    /// The rule has come back.
    pub(crate) fn take_rule(&mut self, rule: Rule) {
        if let Some(decider) = &mut self.rule {
            decider.state = RuleState::Offload(rule);
        }
    }

    /// The rule does not come back.
    pub(crate) fn give_up_rule(&mut self, error: FilterError) {
        if let Some(decider) = &mut self.rule {
            decider.state = RuleState::GivenUp(error);
            (decider.asked, decider.due) = (None, None);
        }
    }

    /// The rule, when the stream is forgotten, if it must not be let go of in the loop.
    pub(crate) fn retire_rule(&mut self) -> Option<Rule> {
        self.rule.as_mut()?.retire()
    }

    /// What the rule is to be asked, if there is something new.
    fn question(&mut self, rank: Rank, is_root: bool, now: Instant) -> Option<Question> {
        let Self { rule, waves, slots, below, id, .. } = self;
        let decider = rule.as_mut()?;
        let Some(wave) = waves.open.front() else {
            decider.due = None;
            return None;
        };
        let is_due = decider.due.is_some_and(|due| due <= now);
        let is_ready = wave.waiting == 0 || wave.deadline.is_some_and(|deadline| deadline <= now);
        let is_old = decider.asked == Some((wave.position, wave.waiting)) && !is_due;
        if is_ready || !wave.has_values() || is_old {
            return None;
        }
        let position = wave.position;
        let arrived = slots.iter().filter(|slot| slot.next > position && slot.next < END).count();
        Some(Question {
            position,
            waiting: wave.waiting,
            stream: *id,
            rank,
            is_root,
            arrived: arrived as u32,
            contributors: wave.contributors.clone(),
            back_ends: below.len() as u32,
            elapsed: now.since(wave.begun),
            now,
        })
    }

    /// The rule has answered a question; its wave may have gone on without it.
    pub(crate) fn decided(
        &mut self,
        question: &Question,
        decided: Result<Verdict, FilterError>,
        now: Instant,
    ) {
        let Some(decider) = &mut self.rule else { return };
        (decider.asked, decider.due) = (Some(question.news()), None);
        let wave = self.waves.open.front_mut().filter(|wave| wave.position == question.position);
        let Some(wave) = wave else { return };
        match decided {
            Ok(Verdict::Go) => wave.deadline = Some(now),
            Ok(Verdict::Wait) => {}
            Ok(Verdict::WaitFor(time)) => decider.due = Some(question.now + time),
            Err(error) => {
                wave.fault = Some(error);
                wave.deadline = Some(now);
            }
        }
    }
}
