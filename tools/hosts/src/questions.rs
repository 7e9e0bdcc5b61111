//! When hosts are asked how it goes: the next question follows when the last has been answered.
//!
//! Owns the number of the last question and when it was asked; `unanswered` chooses which hosts are
//! asked. What the question is, and how it gets there, is with the caller.

use std::time::{Duration, Instant};

use sapwood::{Answer, RankSet, Recipients, Wave};

use super::unanswered::Unanswered;

/// How fast questions follow each other.
#[derive(Clone, Copy, Debug)]
pub struct QuestionTiming {
    /// The shortest time between two questions.
    pub pause: Duration,
    /// The longest for which one is held for hosts that have nothing new to say.
    pub hold: Duration,
    /// After the first answer, those that stay silent are waited for this time.
    pub silence: Duration,
}

/// The questions of one command.
#[derive(Debug)]
pub struct Questions {
    timing: QuestionTiming,
    unanswered: Unanswered,
    last: Wave,
    is_open: bool,
    asked_at: Instant,
    /// The next one comes then at the earliest.
    next_at: Instant,
}

impl Questions {
    /// The first question, of number 0, has just been asked.
    pub fn new(timing: QuestionTiming, now: Instant) -> Self {
        let unanswered = Unanswered::default();
        let next_at = now + timing.pause;
        Self { timing, unanswered, last: 0, is_open: true, asked_at: now, next_at }
    }

    /// The number of the last one.
    pub fn last(&self) -> Wave {
        self.last
    }

    /// An answer has come.
    pub fn hear(&mut self, answer: &Answer) {
        self.unanswered.hear(&answer.contributors);
        if answer.wave >= self.last && !answer.is_late {
            self.is_open = false;
        }
    }

    /// Of these hosts, those that do not hang.
    pub fn audience(&self, hosts: &RankSet) -> RankSet {
        self.unanswered.audience(hosts)
    }

    /// Asks these hosts the next question, if the last has been answered, or its answer must have
    /// been lost. `send` is as for [`Unanswered::ask`]. Gives whether a question has gone.
    ///
    /// # Errors
    /// What `send` says.
    pub fn ask<E>(
        &mut self,
        hosts: &RankSet,
        now: Instant,
        mut send: impl FnMut(&Recipients, Wave) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let is_lost = now - self.asked_at > (self.timing.silence + self.timing.hold) * 2;
        if self.is_open && !is_lost || now < self.next_at {
            return Ok(false);
        }
        let wave = self.last + 1;
        if !self.unanswered.ask(hosts, |to| send(to, wave))? {
            // Hosts that have not read the questions before this one have enough to answer.
            self.next_at = now + self.timing.hold;
            return Ok(false);
        }
        (self.last, self.is_open) = (wave, true);
        (self.asked_at, self.next_at) = (now, now + self.timing.pause);
        Ok(true)
    }

    /// How long there is nothing to ask, unless an answer comes.
    pub fn wait(&self, now: Instant) -> Duration {
        match self.is_open {
            true => self.timing.hold,
            false => self.next_at.saturating_duration_since(now).min(self.timing.hold),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const TIMING: QuestionTiming = QuestionTiming {
        pause: Duration::from_millis(10),
        hold: Duration::from_millis(400),
        silence: Duration::from_secs(3),
    };

    /// What is left on the way to the hosts.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Room {
        Free,
        Full,
    }

    /// Asks two hosts; gives which question they are asked.
    fn ask(questions: &mut Questions, now: Instant, room: Room) -> Option<Wave> {
        let has_room = room == Room::Free;
        let mut asked = None;
        let Ok(is_asked) = questions.ask(&RankSet::range(0, 1), now, |_, wave| {
            asked = has_room.then_some(wave);
            Ok::<bool, Infallible>(has_room)
        });
        assert_eq!(is_asked, asked.is_some());
        asked
    }

    fn answer(wave: Wave) -> Answer {
        let contributors = RankSet::range(0, 1);
        Answer { stream: 1, wave, packet: None, contributors, missing: Vec::new(), is_late: false }
    }

    #[test]
    fn a_question_follows_when_the_last_has_been_answered() {
        let begin = Instant::now();
        let mut questions = Questions::new(TIMING, begin);
        assert_eq!(ask(&mut questions, begin + TIMING.pause, Room::Free), None);
        questions.hear(&Answer { is_late: true, ..answer(0) });
        assert_eq!(ask(&mut questions, begin + TIMING.pause, Room::Free), None);
        questions.hear(&answer(0));
        assert_eq!(ask(&mut questions, begin + TIMING.pause / 2, Room::Free), None);
        assert_eq!(questions.wait(begin), TIMING.pause);
        assert_eq!(ask(&mut questions, begin + TIMING.pause, Room::Free), Some(1));
        // What answers an earlier one does not answer this one.
        questions.hear(&answer(0));
        assert_eq!(questions.wait(begin), TIMING.hold);
        assert_eq!(questions.last(), 1);
    }

    #[test]
    fn an_answer_that_is_lost_keeps_nobody_waiting() {
        let begin = Instant::now();
        let mut questions = Questions::new(TIMING, begin);
        assert_eq!(ask(&mut questions, begin + TIMING.silence, Room::Free), None);
        assert_eq!(
            ask(&mut questions, begin + (TIMING.silence + TIMING.hold) * 3, Room::Free),
            Some(1)
        );
    }

    #[test]
    fn where_there_is_no_room_the_same_question_comes_later() {
        let begin = Instant::now();
        let mut questions = Questions::new(TIMING, begin);
        questions.hear(&answer(0));
        let now = begin + TIMING.pause;
        assert_eq!(ask(&mut questions, now, Room::Full), None);
        assert_eq!(ask(&mut questions, now + TIMING.hold / 2, Room::Free), None);
        assert_eq!(questions.wait(now), TIMING.hold);
        assert_eq!(ask(&mut questions, now + TIMING.hold, Room::Free), Some(1));
    }
}
