//! Asks where ranks stand while the program runs, and says what that means: as soon as some wait
//! for long, at the end, and when another process asks. As long as none of these comes, nothing is
//! asked, and no stream is open for it.

use std::time::{Duration, Instant};

use sapwood::{Values, Wave};
use sapwood_launch::Signal;
use sapwood_report::freeze::FreezeReason;
use sapwood_report::why::{Parts, Why};
use sapwood_trace::Standing;

use super::collection::Collection;
use super::leaf;
use super::standing::StandingWatch;

impl Collection {
    /// Asks where ranks stand, if some wait for long.
    pub(crate) fn ask_standing(&mut self) {
        if self.standing.is_none() && self.deadline.is_reached(&self.result.round) {
            self.open_standing();
        }
        let question = self.question_of_waves();
        if let Some(standing) = &mut self.standing {
            standing.step(&self.result.round, question);
        }
    }

    fn open_standing(&mut self) {
        // A tree that fails at this will not answer either.
        self.standing = StandingWatch::open(&self.network, self.deadline).ok();
        if let (Some(standing), Some(at)) = (&mut self.standing, self.ending) {
            standing.note_ending(at);
        }
    }

    /// Asks where ranks stand, whether or not they wait.
    pub(crate) fn look_at_standing(&mut self, deadline: Duration) {
        if self.standing.is_none() {
            self.open_standing();
        }
        let question = self.question_of_waves();
        if let Some(standing) = &mut self.standing {
            standing.look(deadline, question);
        }
    }

    /// Takes what is known of where ranks stand; whether a verdict is to be told.
    pub(crate) fn take_verdict(&mut self, elapsed: Duration) -> bool {
        let is_new = self.standing.as_mut().is_some_and(|one| one.take(elapsed).is_some());
        if is_new {
            self.trigger_freeze(FreezeReason::Stuck, elapsed);
        }
        is_new
    }

    /// A line for the user on the verdict that holds: each once, and none where a standstill of all
    /// ranks was told and names the same ones. Or a line, once, that there are too many.
    pub(crate) fn verdict_line(&mut self) -> Option<String> {
        let standing = self.standing.as_mut()?;
        let Some(held) = standing.take_due() else { return standing.take_left_out() };
        if self.result.standstills.names(&held.verdict.culprits()) {
            return None;
        }
        Some(held.stuck(None).line())
    }

    /// The watch whose verdicts the report has: none where these are not wanted, though another
    /// process may have asked for them.
    pub(crate) fn reported(&self) -> Option<&StandingWatch> {
        self.standing.as_ref().filter(|_| self.deadline.time().is_some())
    }

    /// The program is told to end by a signal.
    pub(crate) fn note_ending(&mut self, signal: Signal, elapsed: Duration) {
        self.trigger_freeze(FreezeReason::Signal, elapsed);
        self.guidance.deaths.told_to_end(signal, elapsed);
        let now = Instant::now();
        self.ending = Some(now);
        if let Some(standing) = &mut self.standing {
            standing.note_ending(now);
        }
    }

    /// The program has ended with this code, or is watched no longer.
    pub(crate) fn note_program_end(&mut self, code: Option<i32>) {
        let Some(standing) = &mut self.standing else { return };
        self.result.was_told_to_end = standing.is_ending();
        // A launcher may end with 0 when it is told to end.
        if code == Some(0) && !self.result.was_told_to_end {
            standing.note_good_end();
        }
    }

    /// What was known last of where ranks stand, and names for all communicators.
    pub(crate) fn last_standing(&mut self, wait: Duration) {
        let question = self.question_of_waves();
        let Some(standing) = &mut self.standing else { return };
        standing.finish(question, wait);
        self.result.standing = standing.latest().cloned();
        if let Some(reported) = self.reported() {
            let (held, passed) = (reported.held().cloned(), reported.passed());
            (self.result.held, self.result.passed) = (held, passed);
        }
    }

    /// Makes the question for a wave.
    fn question_of_waves(&self) -> impl FnOnce(Wave) -> Values + use<> {
        let (size, long) = (self.world_size, self.long);
        move |wave| leaf::question(size, wave, long)
    }

    /// Looks where ranks stand, and says what was known before.
    pub(crate) fn look(&mut self, deadline_s: f64, elapsed: Duration) -> Why {
        let deadline = Duration::try_from_secs_f64(deadline_s).unwrap_or(Duration::from_secs(2));
        self.look_at_standing(deadline);
        self.why(elapsed)
    }

    /// Where ranks stood last, if they were asked.
    pub(crate) fn known_standing(&self) -> Option<&Standing> {
        self.standing.as_ref().and_then(StandingWatch::latest)
    }

    /// What is known at this moment.
    pub(crate) fn why(&self, elapsed: Duration) -> Why {
        let watch = self.standing.as_ref();
        let held = watch.and_then(|watch| watch.held());
        let waits = self.result.waits.as_ref().filter(|_| !self.result.waits_at.is_zero());
        Why::of(&Parts {
            program: &self.result.program,
            elapsed,
            has_ended: false,
            standing: watch.and_then(|watch| watch.latest()),
            verdict: held.map(|held| (held.at, &held.verdict, &held.standing)),
            stacks: self.result.still_stacks.as_ref(),
            passed: watch.map_or(0, |watch| watch.passed()),
            findings: waits.map(|waits| (self.result.waits_at, waits)),
            is_recording: self.guidance.settings.is_tracing,
        })
    }
}
