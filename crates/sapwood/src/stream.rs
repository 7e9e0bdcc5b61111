//! Streams at the front-end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sapwood_filter::{FilterSpec, WaveRule};
use sapwood_node::{Delivery, Policy, StreamSpec};
use sapwood_packet::{IntoValues, Rank, RankSet, Recipients, StreamId, Tag};

use crate::asking::PendingAnswer;
use crate::error::check_tag;
use crate::shared::Shared;
use crate::{Answer, Communicator, Error, Result};

/// A stream that is about to be opened.
#[must_use]
pub struct StreamBuilder {
    pub(crate) shared: Rc<RefCell<Shared>>,
    pub(crate) spec: StreamSpec,
}

impl StreamBuilder {
    /// Adds a filter on the way up, behind those added before.
    pub fn up(mut self, filter: impl Into<FilterSpec>) -> Self {
        self.spec.up.push(filter.into());
        self
    }

    /// Adds a filter on the way down, behind those added before.
    pub fn down(mut self, filter: impl Into<FilterSpec>) -> Self {
        self.spec.down.push(filter.into());
        self
    }

    /// When a wave is complete; the default waits for all.
    pub fn wave(mut self, rule: WaveRule) -> Self {
        self.spec.wave = rule;
        self
    }

    /// A synchronisation rule that decides, besides [`StreamBuilder::wave`], when a wave goes on
    /// that is not complete: one of a file of filters, by name as a filter's.
    pub fn rule(mut self, rule: impl Into<FilterSpec>) -> Self {
        self.spec.rule = Some(rule.into());
        self
    }

    /// What happens when the stream's window is full; the default makes senders wait.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.spec.policy = policy;
        self
    }

    /// How many bytes may be under way per link and direction.
    pub fn window_bytes(mut self, bytes: u32) -> Self {
        self.spec.window_bytes = Some(bytes.max(1024));
        self
    }

    /// Runs the filters in the stream's back-ends as well, on what each of them sends and
    /// receives: in those that were attached with filters
    /// ([`BackEnd::attach_with`](crate::BackEnd::attach_with)). Without this they run at the
    /// front-end and in communication processes, which is what filters that merge need.
    ///
    /// In a back-end a filter receives one packet at a time, before the packet gets its wave: each
    /// packet that it emits is a wave of that back-end, and if it emits none, none is sent.
    pub fn at_back_ends(mut self) -> Self {
        self.spec.at_back_ends = true;
        self
    }

    /// Opens the stream at all of its nodes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for unknown filters, or members that are not connected.
    pub fn open(self) -> Result<Stream> {
        let Self { shared, spec } = self;
        let members = spec.members.clone();
        let id = shared.borrow_mut().change(|application, _| application.open_stream(spec))?;
        tracing::debug!(target: "sapwood::stream", stream = id, %members, "opened");
        Ok(Stream { shared, id, members, is_closed: false })
    }
}

/// A logical connection between the front-end and a set of back-ends, with filters in between.
pub struct Stream {
    shared: Rc<RefCell<Shared>>,
    id: StreamId,
    members: RankSet,
    is_closed: bool,
}

impl Stream {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Its back-ends.
    #[must_use]
    pub fn members(&self) -> Communicator {
        Communicator::new(self.members.clone())
    }

    /// Sends values down to all members. Waits while the stream's window is full; one member that
    /// does not read can block it without limit: a front-end with other work calls
    /// [`Stream::try_broadcast`]. Call [`crate::Network::flush`] or receive to be sure that they
    /// are written.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the stream is closed, the values are too long or the tag is below
    /// [`FIRST_TAG`](crate::FIRST_TAG); [`Error::NoMemberLeft`] when all members are gone;
    /// [`Error::Ended`].
    pub fn broadcast(&mut self, tag: Tag, values: impl IntoValues) -> Result<()> {
        self.send(tag, values, &Recipients::All)
    }

    /// Sends values down to all members if that need not wait. Does one turn of the loop if there
    /// is no room at first.
    ///
    /// ```no_run
    /// # fn poll(stream: &mut sapwood::Stream) -> sapwood::Result<()> {
    /// match stream.try_broadcast(100, 5_i32) {
    ///     // A member has not read earlier questions: skip this one.
    ///     Err(sapwood::Error::WouldWait { .. }) => Ok(()),
    ///     sent => sent,
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WouldWait`] when the stream's window is full, so that nothing was sent; else as
    /// [`Stream::broadcast`].
    pub fn try_broadcast(&mut self, tag: Tag, values: impl IntoValues) -> Result<()> {
        self.try_send(tag, values, &Recipients::All)
    }

    /// Sends values down to one member.
    ///
    /// # Errors
    /// As [`Stream::broadcast`]; also when the rank is no member.
    pub fn send_to(&mut self, rank: Rank, tag: Tag, values: impl IntoValues) -> Result<()> {
        self.send(tag, values, &RankSet::range(rank, rank).into())
    }

    /// Sends values down to some members, or to [`Recipients::All`]. An empty set sends to no
    /// back-end. Waits while the window is full on the way to one of them.
    ///
    /// # Errors
    /// As [`Stream::send_to`].
    pub fn send_to_ranks(
        &mut self,
        to: impl Into<Recipients>,
        tag: Tag,
        values: impl IntoValues,
    ) -> Result<()> {
        self.send(tag, values, &to.into())
    }

    /// Sends values down to some members, or to [`Recipients::All`], if that need not wait. An
    /// empty set sends to no back-end. Other members need not read, as long as less than 1 MiB has
    /// been sent since they last did.
    ///
    /// # Errors
    /// [`Error::WouldWait`] when the window is full on the way to one of them, so that nothing was
    /// sent; else as [`Stream::send_to`].
    pub fn try_send_to_ranks(
        &mut self,
        to: impl Into<Recipients>,
        tag: Tag,
        values: impl IntoValues,
    ) -> Result<()> {
        self.try_send(tag, values, &to.into())
    }

    fn send(&mut self, tag: Tag, values: impl IntoValues, to: &Recipients) -> Result<()> {
        check_tag(tag)?;
        let mut shared = self.shared.borrow_mut();
        shared.wait_for_room(self.id, to, None)?;
        shared.change(|application, now| application.broadcast(now, self.id, tag, values, to))
    }

    fn try_send(&mut self, tag: Tag, values: impl IntoValues, to: &Recipients) -> Result<()> {
        check_tag(tag)?;
        let mut shared = self.shared.borrow_mut();
        if !shared.makes_room(self.id, to)? {
            return Err(Error::WouldWait { stream: self.id });
        }
        shared.change(|application, now| application.broadcast(now, self.id, tag, values, to))
    }

    /// Asks all members, and waits for the answer to this question, however long the stream's
    /// waves may wait. Back-ends answer with [`BackEnd::reply`](crate::BackEnd::reply).
    ///
    /// The answer is that of this question and of no other. What comes for a question that is not
    /// waited for any more (its time was over, or the answer is a late part) is discarded and
    /// counted ([`Stream::discarded`]). What back-ends send unasked, or in reply to
    /// [`Stream::broadcast`], stays for [`Stream::recv`], and [`Answer::question`] says what it
    /// answers. Of several packets that the stream's filters make of one wave, the first is the
    /// answer; where they make none, it has no value.
    ///
    /// ```no_run
    /// # fn load(network: &sapwood::Network) -> sapwood::Result<()> {
    /// let mut stream = network.stream(&network.everyone()).up("sum").open()?;
    /// let answer = stream.ask(100, "load")?;
    /// println!("{} without {:?}", answer.value()?.scalar::<f64>(0)?, answer.missing);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Misuse`] on a stream without one answer for all members: one that does not wait for
    /// them, or that has several and no filter; [`Error::Unreceived`] when answers that have not
    /// been received fill the stream's window; else as [`Stream::broadcast`].
    pub fn ask(&mut self, tag: Tag, values: impl IntoValues) -> Result<Answer> {
        self.ask_within(tag, values, None)
    }

    /// The same, if the answer arrives within `timeout`; the wait for room is part of it.
    ///
    /// # Errors
    /// As [`Stream::ask`], and [`Error::Timeout`].
    pub fn ask_timeout(
        &mut self,
        tag: Tag,
        values: impl IntoValues,
        timeout: Duration,
    ) -> Result<Answer> {
        self.ask_within(tag, values, Some(timeout))
    }

    fn ask_within(
        &mut self,
        tag: Tag,
        values: impl IntoValues,
        timeout: Option<Duration>,
    ) -> Result<Answer> {
        let until = timeout.map(|timeout| sapwood_runtime::clock() + timeout);
        let number = {
            let mut shared = self.shared.borrow_mut();
            shared.check_askable(self.id, tag)?;
            shared.wait_for_room(self.id, &Recipients::All, timeout)?;
            shared.ask(self.id, tag, values)?
        };
        let mut pending = PendingAnswer::new(&self.shared, self.id, number);
        let Some((until, timeout)) = until.zip(timeout) else { return pending.wait() };
        let left = until.since(sapwood_runtime::clock());
        pending.wait_timeout(left).map_err(|error| match error {
            Error::Timeout { what, .. } => Error::Timeout { what, waited: timeout },
            error => error,
        })
    }

    /// Asks all members without waiting: the answer is taken from what this gives, while other
    /// questions of the same stream may be under way.
    ///
    /// # Errors
    /// [`Error::WouldWait`] when the stream's window is full, so that nothing was sent; else as
    /// [`Stream::ask`].
    pub fn ask_async(&mut self, tag: Tag, values: impl IntoValues) -> Result<PendingAnswer> {
        let mut shared = self.shared.borrow_mut();
        shared.check_askable(self.id, tag)?;
        if !shared.makes_room(self.id, &Recipients::All)? {
            return Err(Error::WouldWait { stream: self.id });
        }
        let number = shared.ask(self.id, tag, values)?;
        drop(shared);
        Ok(PendingAnswer::new(&self.shared, self.id, number))
    }

    /// How many answers were discarded because their question was not waited for any more.
    #[must_use]
    pub fn discarded(&self) -> u64 {
        self.shared.borrow().questions.get(&self.id).map_or(0, |questions| questions.discarded)
    }

    /// The next answer; waits for it. Answers to [`Stream::ask`] are not among them.
    ///
    /// # Errors
    /// [`Error::NoMemberLeft`] when all members are gone, [`Error::Ended`].
    pub fn recv(&mut self) -> Result<Answer> {
        self.wait(None)
    }

    /// The next answer, if it arrives within `timeout`.
    ///
    /// # Errors
    /// As [`Stream::recv`], and [`Error::Timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Answer> {
        self.wait(Some(timeout))
    }

    /// The next answer, if it is there already. Does one turn of the loop.
    ///
    /// # Errors
    /// As [`Stream::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Answer>> {
        match self.wait(Some(Duration::ZERO)) {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Answer> {
        let id = self.id;
        let mut shared = self.shared.borrow_mut();
        if let Some(answer) = take(&mut shared, id)? {
            return Ok(answer);
        }
        if timeout == Some(Duration::ZERO) {
            shared.turn(Some(sapwood_runtime::clock()))?;
        }
        shared.wait("answer", timeout, |shared| take(shared, id))
    }

    /// Whether [`Stream::broadcast`] would not wait.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the stream is closed.
    pub fn has_room(&self) -> Result<bool> {
        Ok(self.shared.borrow_mut().driver.application().has_room(self.id)?)
    }

    /// The number of answers that wait to be received.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.borrow().answers.get(&self.id).map_or(0, std::collections::VecDeque::len)
    }

    /// How many packets were dropped at the front-end on this stream.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.borrow_mut().driver.application().dropped(self.id)
    }

    /// Closes the stream everywhere; answers that have not been received are lost.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn close(mut self) -> Result<()> {
        self.close_once()
    }

    fn close_once(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        let id = self.id;
        let mut shared = self.shared.borrow_mut();
        shared.answers.remove(&id);
        shared.questions.remove(&id);
        shared.change(|application, _| application.close_stream(id))?;
        tracing::debug!(target: "sapwood::stream", stream = id, "closed");
        Ok(shared.driver.carry_out()?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A drop cannot report an error; what matters is reported by the network's own end.
        let _ = self.close_once();
    }
}

fn take(shared: &mut Shared, id: StreamId) -> Result<Option<Answer>> {
    if let Some(answer) =
        shared.answers.get_mut(&id).and_then(std::collections::VecDeque::pop_front)
    {
        let delivery = Delivery::Answer(answer);
        shared.consumed(id, delivery.cost());
        let Delivery::Answer(answer) = delivery else {
            unreachable!("it was made an answer just now");
        };
        return Ok(Some(answer.into()));
    }
    let application = shared.driver.application();
    if application.members(id).is_none() {
        return Err(Error::Misuse(sapwood_node::NodeError::Stream { stream: id }));
    }
    shared.check_members(id)?;
    Ok(None)
}
