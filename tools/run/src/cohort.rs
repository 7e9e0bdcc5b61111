//! Hosts that begin a command together: all of them, or those that have been reached since others
//! began it.
//!
//! Owns their streams, and when they are asked how it goes.

use std::time::{Duration, Instant};

use sapwood::{Answer, Error, RankSet, Recipients, StreamId, Tag, Values};
use sapwood_hosts::questions::{QuestionTiming, Questions};
use sapwood_hosts::tree_access::{Channels, StandardInput, Tree, WAVE_MILLISECONDS};
use sapwood_launch::Signal;

use super::protocol::{Order, POLL, RUN, SIGNAL, poll};

/// For how long the first wave is held for hosts that have not ended.
const FIRST_HOLD: Duration = Duration::from_millis(100);
/// For how long a later one is held at most.
pub(super) const HOLD_MAX: Duration = Duration::from_secs(1);

/// How fast questions follow each other.
const TIMING: QuestionTiming = QuestionTiming {
    pause: Duration::from_millis(20),
    hold: HOLD_MAX,
    silence: Duration::from_millis(WAVE_MILLISECONDS as u64),
};

/// The hosts that have begun a command at one time.
pub(super) struct Cohort {
    pub(super) channels: Channels,
    /// Those that were there at the beginning.
    pub(super) members: RankSet,
    questions: Questions,
    hold: Duration,
    /// Whether it is asked no more, since all of it have ended or are lost.
    is_over: bool,
}

impl Cohort {
    /// Opens the streams and tells the agents what to run.
    ///
    /// # Errors
    /// When a member is not there any more, or the tree fails; no stream is left open then.
    pub(super) fn begin(
        tree: &mut dyn Tree,
        members: RankSet,
        order: &Order,
        input: StandardInput,
        now: Instant,
    ) -> Result<Self, Error> {
        let channels = tree.begin(&members, input)?;
        let order = Order {
            live: channels.live,
            input: channels.input.unwrap_or(channels.control),
            hold: FIRST_HOLD,
            ..order.clone()
        };
        let told = tree.send(channels.control, &Recipients::All, RUN, order.encode());
        if let Err(error) = told.and_then(|()| tree.flush()) {
            tree.end(channels);
            return Err(error);
        }
        let questions = Questions::new(TIMING, now);
        Ok(Self { channels, members, questions, hold: FIRST_HOLD, is_over: false })
    }

    /// One of them has answered.
    pub(super) fn hear(&mut self, answer: &Answer) {
        self.questions.hear(answer);
    }

    /// Asks the next question when the last has been answered, if one of them may still tell an
    /// outcome, as one of those that are `asked`.
    ///
    /// # Errors
    /// When the tree fails.
    pub(super) fn ask(
        &mut self,
        tree: &mut dyn Tree,
        asked: &RankSet,
        now: Instant,
    ) -> Result<(), Error> {
        self.is_over = !self.members.as_ref().intersects(asked.as_ref());
        if self.is_over {
            return Ok(());
        }
        let (hold, control) = ((self.hold * 2).min(HOLD_MAX), self.channels.control);
        let send = |to: &Recipients, wave| tell(tree, control, to, POLL, poll(wave, hold));
        if self.questions.ask(&self.members, now, send)? {
            self.hold = hold;
        }
        Ok(())
    }

    /// How long there is nothing to ask, unless an answer comes.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        if self.is_over { HOLD_MAX } else { self.questions.wait(now) }
    }

    /// Passes a signal on to the commands: of those that do not hang, where others have no room.
    ///
    /// # Errors
    /// When the tree fails.
    pub(super) fn signal(&self, tree: &mut dyn Tree, signal: Signal) -> Result<(), Error> {
        let values = || Values::new().scalar(signal.as_raw());
        let control = self.channels.control;
        if !tell(tree, control, &Recipients::All, SIGNAL, values())? {
            let others = self.questions.audience(&self.members);
            if !others.is_empty() {
                tell(tree, control, &others.into(), SIGNAL, values())?;
            }
        }
        Ok(())
    }
}

/// Tells these hosts, if that need not wait; whether it did not.
///
/// # Errors
/// When the tree fails.
pub(super) fn tell(
    tree: &mut dyn Tree,
    control: StreamId,
    to: &Recipients,
    tag: Tag,
    values: Values,
) -> Result<bool, Error> {
    match tree.try_send(control, to, tag, values) {
        // All have gone; the losses say so, too.
        Err(Error::Misuse(_)) => Ok(true),
        told => told,
    }
}
