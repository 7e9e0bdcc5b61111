//! Questions of the front-end and their answers: which answer is for which question, and what is
//! discarded since its question is not waited for any more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use sapwood_node::{Answer as NodeAnswer, Cause, Delivery, Missing, NodeError};
use sapwood_packet::{IntoValues, RankSet, Recipients, StreamId, Tag, Wave, answer_wave};

use crate::error::check_tag;
use crate::shared::Shared;
use crate::{Answer, Error, Result};

/// The most runs of questions of one stream that are known as asked; what still comes for older
/// ones is received as any answer is.
const RUNS_MAX: usize = 4096;

/// The questions of one stream.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Those that are waited for; with the answer once it is there.
    waited_for: BTreeMap<u64, Option<NodeAnswer>>,
    /// All that were asked, by first and last number: between them are broadcasts.
    asked: Vec<(u64, u64)>,
    /// Answers that came when their question was not waited for any more.
    pub(crate) discarded: u64,
}

impl Questions {
    fn ask(&mut self, number: u64) {
        self.waited_for.insert(number, None);
        match self.asked.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => self.asked.push((number, number)),
        }
        if self.asked.len() > RUNS_MAX {
            self.asked.remove(0);
        }
    }

    fn has_asked(&self, number: u64) -> bool {
        let at = self.asked.partition_point(|&(_, last)| last < number);
        self.asked.get(at).is_some_and(|&(first, _)| first <= number)
    }

    /// The questions before this wave that have no answer: waves go on in order.
    fn passed_by(&mut self, wave: Wave) -> impl Iterator<Item = (u64, &mut Option<NodeAnswer>)> {
        let is_before = move |number| answer_wave(number).is_some_and(|own| own < wave);
        let waited_for = self.waited_for.iter_mut().map(|(&number, answer)| (number, answer));
        waited_for
            .take_while(move |&(number, _)| is_before(number))
            .filter(|(_, answer)| answer.is_none())
    }
}

impl Shared {
    /// Puts an answer where it is waited for; gives it back if it answers no question.
    pub(crate) fn sort_answer(&mut self, answer: NodeAnswer) -> Option<NodeAnswer> {
        let stream = answer.stream;
        let Some(questions) = self.questions.get_mut(&stream) else { return Some(answer) };
        if !answer.is_late && questions.passed_by(answer.wave).next().is_some() {
            self.end_passed(stream, answer.wave);
        }
        let number = sapwood_packet::question_of(answer.wave);
        let questions = self.questions.get_mut(&stream)?;
        let Some(number) = number.filter(|&number| questions.has_asked(number)) else {
            return Some(answer);
        };
        let delivery = Delivery::Answer(answer);
        // Its bytes are granted again at once: a front-end that asks much at a time must not fill
        // the window of the answer that is taken first.
        self.driver.application().consumed(stream, delivery.cost());
        let Delivery::Answer(answer) = delivery else {
            unreachable!("it was made an answer just now");
        };
        match questions.waited_for.get_mut(&number) {
            Some(place @ None) if !answer.is_late => *place = Some(answer),
            _ => questions.discarded += 1,
        }
        None
    }

    /// Questions that no back-end has answered, though each has answered a later one.
    #[cold]
    fn end_passed(&mut self, stream: StreamId, wave: Wave) {
        let application = self.driver.application();
        let mut left = application.members(stream).cloned().unwrap_or_default();
        let mut missing = application.missing_members(stream);
        missing.iter().for_each(|gone| left.subtract(gone.ranks.as_ref()));
        if !left.is_empty() {
            missing.push(Missing::new(left, Cause::Skipped, "did not answer it"));
        }
        let Some(questions) = self.questions.get_mut(&stream) else { return };
        for (number, place) in questions.passed_by(wave) {
            *place = Some(no_answer(stream, number, missing.clone()));
        }
    }

    /// Sends a question, for which there is room.
    pub(crate) fn ask(
        &mut self,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
    ) -> Result<u64> {
        let number = self.change(|application, now| {
            let number = application.next_question(stream)?;
            application.broadcast(now, stream, tag, values, &Recipients::All)?;
            Ok(number)
        })?;
        self.questions.entry(stream).or_default().ask(number);
        Ok(number)
    }

    /// Whether the stream takes questions.
    pub(crate) fn check_askable(&mut self, stream: StreamId, tag: Tag) -> Result<()> {
        check_tag(tag)?;
        self.driver.application().next_question(stream)?;
        Ok(())
    }

    /// Takes the answer to a question, if it is there; else says why it cannot come.
    fn take_answer(&mut self, stream: StreamId, number: u64) -> Result<Option<Answer>> {
        let questions = self.questions.get_mut(&stream);
        let Some(questions) = questions else {
            return Err(Error::Misuse(NodeError::Stream { stream }));
        };
        let is_there = matches!(questions.waited_for.get(&number), Some(Some(_)));
        if is_there && let Some(Some(answer)) = questions.waited_for.remove(&number) {
            return Ok(Some(answer.into()));
        }
        if !questions.waited_for.contains_key(&number) {
            return Err(Error::Misuse(NodeError::Answered { question: number }));
        }
        if self.has_come_to_nothing(stream, number) {
            return Ok(Some(no_answer(stream, number, Vec::new()).into()));
        }
        self.check_members(stream)?;
        let answers = self.answers.get(&stream).map_or(0, std::collections::VecDeque::len);
        if answers > 0 && self.driver.application().is_full_up(stream) {
            return Err(Error::Unreceived { stream, answers });
        }
        Ok(None)
    }

    /// Whether the stream's filters have made nothing of the answers to a question that is waited
    /// for; it is not then.
    fn has_come_to_nothing(&mut self, stream: StreamId, number: u64) -> bool {
        let Some(wave) = answer_wave(number) else { return false };
        if !self.driver.application().has_gone_on(stream, wave) {
            return false;
        }
        let questions = self.questions.get_mut(&stream);
        questions.is_some_and(|questions| questions.waited_for.remove(&number).is_some())
    }

    pub(crate) fn answer_to(
        &mut self,
        stream: StreamId,
        number: u64,
        timeout: Option<Duration>,
    ) -> Result<Answer> {
        self.wait("answer", timeout, |shared| shared.take_answer(stream, number))
    }

    fn forget(&mut self, stream: StreamId, number: u64) {
        if let Some(questions) = self.questions.get_mut(&stream)
            && let Some(Some(_)) = questions.waited_for.remove(&number)
        {
            questions.discarded += 1;
        }
    }
}

/// The reason that is given for a question without an answer.
fn no_answer(stream: StreamId, number: u64, missing: Vec<Missing>) -> NodeAnswer {
    NodeAnswer {
        stream,
        wave: answer_wave(number).unwrap_or_default(),
        packet: None,
        contributors: RankSet::new(),
        missing,
        is_late: false,
    }
}

/// The answer to a question, which is waited for: [`Stream::ask_async`](crate::Stream::ask_async).
///
/// When it is dropped the question is not waited for any more, and what comes for it is discarded.
#[must_use = "the answer is discarded when this is dropped"]
pub struct PendingAnswer {
    shared: Rc<RefCell<Shared>>,
    stream: StreamId,
    number: u64,
}

impl PendingAnswer {
    pub(crate) fn new(shared: &Rc<RefCell<Shared>>, stream: StreamId, number: u64) -> Self {
        Self { shared: Rc::clone(shared), stream, number }
    }

    /// The question's number, which its answer has as well ([`Answer::question`]).
    #[must_use]
    pub fn question(&self) -> u64 {
        self.number
    }

    /// The answer, if it is there already. Does one turn of the loop. After it was given there is
    /// no other.
    ///
    /// # Errors
    /// As [`Stream::ask`](crate::Stream::ask).
    pub fn try_take(&mut self) -> Result<Option<Answer>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(answer) = shared.take_answer(self.stream, self.number)? {
            return Ok(Some(answer));
        }
        shared.turn(Some(sapwood_runtime::clock()))?;
        match shared.answer_to(self.stream, self.number, Some(Duration::ZERO)) {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The answer; waits for it.
    ///
    /// # Errors
    /// As [`Stream::ask`](crate::Stream::ask).
    pub fn wait(&mut self) -> Result<Answer> {
        self.shared.borrow_mut().answer_to(self.stream, self.number, None)
    }

    /// The answer, if it arrives within `timeout`; this can be called again after that time.
    ///
    /// # Errors
    /// As [`Stream::ask`](crate::Stream::ask), and [`Error::Timeout`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Answer> {
        self.shared.borrow_mut().answer_to(self.stream, self.number, Some(timeout))
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.shared.borrow_mut().forget(self.stream, self.number);
    }
}

impl std::fmt::Debug for PendingAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingAnswer")
            .field("stream", &self.stream)
            .field("question", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasts_between_questions_are_no_questions() {
        let mut questions = Questions::default();
        for number in [0, 1, 2, 4, 9] {
            questions.ask(number);
        }
        let asked: Vec<u64> = (0..12).filter(|&number| questions.has_asked(number)).collect();
        assert_eq!(asked, [0, 1, 2, 4, 9]);
        for number in (100..20_000).step_by(2) {
            questions.ask(number);
        }
        assert_eq!(questions.asked.len(), RUNS_MAX);
        assert!(questions.has_asked(19_998) && !questions.has_asked(19_999));
    }
}
