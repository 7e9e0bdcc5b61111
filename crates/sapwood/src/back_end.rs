//! A back-end: a leaf of the tree, in the application's own process.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use sapwood_filter::Registry;
use sapwood_node::{Delivery, Event, NodeError, Role};
use sapwood_packet::{IntoValues, Packet, Rank, Recipients, StreamId, Tag, ValuesRef, Wave};
use sapwood_runtime::{Attachment, Driver, clock};

use crate::error::check_tag;
use crate::join::Summons;
use crate::shared::{Interrupt, Shared};
use crate::{AttachFile, Error, Result};

/// How long a back-end waits for its rank.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// Packets are written when their values have reached this many bytes, but not in the middle of a
/// run of waves: small packets together, a large one at once while it is in the processor's cache.
const COALESCE_BYTES: usize = 16 << 10;

/// A packet from the front-end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The stream on which it arrived.
    pub stream: StreamId,
    /// The packet.
    pub packet: Packet,
}

/// A received packet is one: `&received` is what [`BackEnd::reply`] takes.
impl std::ops::Deref for Received {
    type Target = Packet;

    fn deref(&self) -> &Packet {
        &self.packet
    }
}

impl Received {
    /// Its tag.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.packet.tag()
    }

    /// Its values, read in place.
    #[must_use]
    pub fn values(&self) -> ValuesRef<'_> {
        self.packet.values()
    }
}

/// A leaf of the tree.
///
/// Dropping it leaves the network, as [`BackEnd::leave`] does, unless its thread panics.
pub struct BackEnd {
    shared: Shared,
    unwritten: usize,
    has_left: bool,
    /// A forked child must not leave in the name of this process.
    process: u32,
}

impl BackEnd {
    /// Joins the network that has started this program, as its environment says. Call it on the
    /// main thread if the network was configured so that this program
    /// [binds itself](crate::Program::binds_itself).
    ///
    /// If another manager has started it, `SAPWOOD_JOIN` says where to connect: see
    /// [`Attach`](crate::Attach). Its rank is what `SAPWOOD_RANK` says (`any` for one that is
    /// free), or else the manager's number of this process, or else any.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the environment names no network, or the parent cannot be reached,
    /// has ended or does not share the key; [`Error::Ended`] when the parent refuses.
    pub fn attach() -> Result<Self> {
        Self::attach_with(Registry::empty())
    }

    /// The same, with filters for streams that run filters in their back-ends
    /// ([`StreamBuilder::at_back_ends`](crate::StreamBuilder::at_back_ends)). They run in the calls
    /// of this back-end's thread, without a time limit: packets that it sends pass the upward ones,
    /// packets that it receives the downward ones.
    ///
    /// # Errors
    /// As [`BackEnd::attach`].
    pub fn attach_with(registry: Registry) -> Result<Self> {
        sapwood_launch::arrange_death_signal().map_err(sapwood_runtime::RuntimeError::from)?;
        match Summons::from_environment()? {
            Some(summons) => summons.follow(&registry),
            None => Self::join(Attachment::from_environment()?, registry),
        }
    }

    /// Joins a network by its attach file, under a rank or under any that is free.
    ///
    /// # Errors
    /// As [`BackEnd::attach`], and [`Error::File`].
    pub fn attach_by_file(path: &Path, rank: Option<Rank>) -> Result<Self> {
        Self::attach_by_file_with(path, rank, &Registry::empty())
    }

    /// The same, with filters, as [`BackEnd::attach_with`] takes them.
    ///
    /// # Errors
    /// As [`BackEnd::attach_by_file`].
    pub fn attach_by_file_with(
        path: &Path,
        rank: Option<Rank>,
        registry: &Registry,
    ) -> Result<Self> {
        let mut refused = None;
        for attachment in AttachFile::read(path)?.attachments(rank)? {
            match Self::join(attachment, registry.clone()) {
                // Another attach point may have a free rank, and one in the file may have ended.
                Err(error @ (Error::Ended { .. } | Error::Runtime(_))) if rank.is_none() => {
                    refused = Some(error);
                }
                outcome => return outcome,
            }
        }
        let reason = "the attach file names no attach point".to_string();
        Err(refused.unwrap_or_else(|| Error::File { path: path.to_path_buf(), reason }))
    }

    pub(crate) fn join(attachment: Attachment, registry: Registry) -> Result<Self> {
        let driver = Driver::attach(attachment.connect(Role::BackEnd)?, registry)?;
        let mut back_end = Self {
            shared: Shared::new(driver),
            unwritten: 0,
            has_left: false,
            process: std::process::id(),
        };
        back_end.shared.wait("welcome from the parent", Some(WELCOME_TIMEOUT), |shared| {
            Ok(shared.driver.application().is_planned().then_some(()))
        })?;
        Ok(back_end)
    }

    /// Calls this function every tenth of a second while a call waits for the network; see
    /// [`NetworkBuilder::interrupt`](crate::NetworkBuilder::interrupt).
    pub fn interrupt(&mut self, asks: impl FnMut() -> bool + 'static) {
        self.shared.interrupt = Some(Interrupt::new(asks));
    }

    /// This back-end's rank.
    #[must_use]
    pub fn rank(&mut self) -> Rank {
        self.shared.driver.application().rank().unwrap_or(Rank::MAX)
    }

    /// From which address of this host to which of its parent's this back-end's link goes, for
    /// people; nothing for a link within the host by Unix sockets.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        self.shared.driver.path()
    }

    /// The next packet on any stream; waits for it. Packets sent before are written before the
    /// wait; while received packets are queued, the answers to them are gathered and written
    /// together.
    ///
    /// # Errors
    /// [`Error::Ended`] when the network ends.
    pub fn recv(&mut self) -> Result<Received> {
        self.wait(None)
    }

    /// The next packet, if it arrives within `timeout`.
    ///
    /// # Errors
    /// As [`BackEnd::recv`], and [`Error::Timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Received> {
        self.wait(Some(timeout))
    }

    /// The next received packet of one stream, skipping those of other streams. Does not turn the
    /// loop: see [`BackEnd::turn`]. Packets that are not taken keep their stream's window closed:
    /// so a back-end blocks one stream and still receives on the others.
    pub fn take_from(&mut self, stream: StreamId) -> Option<Received> {
        let is_there = |packet: &Packet| packet.header.stream == stream;
        let at = self.shared.packets.iter().position(is_there)?;
        let delivery = Delivery::Packet(self.shared.packets.remove(at)?);
        self.shared.consumed(stream, delivery.cost());
        let Delivery::Packet(packet) = delivery else {
            unreachable!("it was made a packet just now");
        };
        Some(Received { stream, packet })
    }

    /// The streams on which packets wait, in the order of their first packets.
    #[must_use]
    pub fn waiting_on(&self) -> Vec<StreamId> {
        let mut streams = Vec::new();
        for packet in &self.shared.packets {
            if !streams.contains(&packet.header.stream) {
                streams.push(packet.header.stream);
            }
        }
        streams
    }

    /// Whether [`BackEnd::send`] on this stream would not wait.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the stream is not open.
    pub fn has_room(&mut self, stream: StreamId) -> Result<bool> {
        Ok(self.shared.driver.application().has_room(stream)?)
    }

    /// The next packet, if it is there already. Does one turn of the loop.
    ///
    /// # Errors
    /// As [`BackEnd::recv`].
    pub fn try_recv(&mut self) -> Result<Option<Received>> {
        if self.shared.packets.is_empty() {
            self.turn(Duration::ZERO)?;
        }
        match self.wait(Some(Duration::ZERO)) {
            Ok(received) => Ok(Some(received)),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Received> {
        if self.shared.packets.is_empty() {
            // The loop is about to turn, which writes.
            self.unwritten = 0;
        }
        self.shared.wait("packet", timeout, |shared| {
            let Some(packet) = shared.packets.pop_front() else {
                return shared.undelivered.take().map_or(Ok(None), |lacking| Err(lacking.into()));
            };
            let delivery = Delivery::Packet(packet);
            shared.consumed(delivery.stream(), delivery.cost());
            let Delivery::Packet(packet) = delivery else {
                unreachable!("it was made a packet just now");
            };
            Ok(Some(Received { stream: packet.header.stream, packet }))
        })
    }

    /// Sends values up on a stream, in its next wave: unasked, as the answer to no packet in
    /// particular ([`BackEnd::reply`] answers one). Packets are written together; the last ones
    /// leave with [`BackEnd::flush`] or when the back-end waits for the next packet. Call `flush`
    /// before a long computation. Waits while the window is full.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the stream is not open, the values are too long or the tag is below
    /// [`FIRST_TAG`](crate::FIRST_TAG); [`Error::Ended`].
    pub fn send(&mut self, stream: StreamId, tag: Tag, values: impl IntoValues) -> Result<()> {
        self.send_wave(stream, tag, values, None)
    }

    /// Sends values in a wave of that number; waves that are left out are missed by this back-end.
    ///
    /// # Errors
    /// As [`BackEnd::send`]; also when the wave has passed.
    pub fn send_in_wave(
        &mut self,
        stream: StreamId,
        wave: Wave,
        tag: Tag,
        values: impl IntoValues,
    ) -> Result<()> {
        self.send_wave(stream, tag, values, Some(wave))
    }

    fn send_wave(
        &mut self,
        stream: StreamId,
        tag: Tag,
        values: impl IntoValues,
        wave: Option<Wave>,
    ) -> Result<()> {
        check_tag(tag)?;
        self.check_end()?;
        self.shared.wait_for_room(stream, &Recipients::All, None)?;
        let sent = self.shared.driver.application().send(stream, tag, values, wave)?;
        self.write_soon(stream, sent)
    }

    /// Sends values up as [`BackEnd::send`] does, if that need not wait. Does one turn of the loop
    /// if there is no room at first.
    ///
    /// # Errors
    /// [`Error::WouldWait`] when the stream's window is full, so that nothing was sent; else as
    /// [`BackEnd::send`].
    pub fn try_send(&mut self, stream: StreamId, tag: Tag, values: impl IntoValues) -> Result<()> {
        check_tag(tag)?;
        self.check_room(stream)?;
        let sent = self.shared.driver.application().send(stream, tag, values, None)?;
        self.write_soon(stream, sent)
    }

    /// Answers a packet of the front-end's: sends values up on its stream with its tag, as the
    /// answer to this packet and to no other, which is how
    /// [`Stream::ask`](crate::Stream::ask) knows its answer. Each packet is answered once, in the
    /// order of their arrival; one that is passed over gets no answer of this back-end. Waits while
    /// the window is full. The answer leaves as [`BackEnd::send`] says.
    ///
    /// Gives whether the stream is still open: the front-end that has closed it wants no answer.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the packet or a later one was answered, when a filter and not the
    /// front-end has made it, or when the values are too long; [`Error::Ended`].
    pub fn reply(&mut self, to: &Packet, values: impl IntoValues) -> Result<bool> {
        self.check_end()?;
        match self.shared.wait_for_room(to.header.stream, &Recipients::All, None) {
            Ok(()) => self.answer(to, values),
            Err(error) => is_open_after(Err(error)),
        }
    }

    /// Answers a packet as [`BackEnd::reply`] does, if that need not wait. Does one turn of the
    /// loop if there is no room at first.
    ///
    /// # Errors
    /// [`Error::WouldWait`] when the stream's window is full, so that nothing was sent; else as
    /// [`BackEnd::reply`].
    pub fn try_reply(&mut self, to: &Packet, values: impl IntoValues) -> Result<bool> {
        match self.check_room(to.header.stream) {
            Ok(()) => self.answer(to, values),
            Err(error) => is_open_after(Err(error)),
        }
    }

    fn answer(&mut self, to: &Packet, values: impl IntoValues) -> Result<bool> {
        let stream = to.header.stream;
        let sent = self.shared.driver.application().answer_packet(to, to.tag(), values);
        is_open_after(sent.map_err(Error::from).and_then(|sent| self.write_soon(stream, sent)))
    }

    fn check_end(&self) -> Result<()> {
        match &self.shared.ended {
            Some(reason) => Err(Error::Ended { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    fn check_room(&mut self, stream: StreamId) -> Result<()> {
        self.check_end()?;
        match self.shared.makes_room(stream, &Recipients::All)? {
            true => Ok(()),
            false => Err(Error::WouldWait { stream }),
        }
    }

    /// Values of this length were sent: they are written when they are many.
    fn write_soon(&mut self, stream: StreamId, length: usize) -> Result<()> {
        self.unwritten += length;
        if self.unwritten >= COALESCE_BYTES
            && !self.shared.driver.application().has_open_run(stream)
        {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the packets sent so far, as far as the system takes them.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn flush(&mut self) -> Result<()> {
        self.unwritten = 0;
        Ok(self.shared.driver.carry_out()?)
    }

    /// Waits until a stream is open here, for a back-end that sends first; returns its number.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Ended`].
    pub fn wait_for_stream(&mut self, timeout: Duration) -> Result<StreamId> {
        self.shared.wait("stream", Some(timeout), |shared| {
            let opened = |event: &Event| match event {
                Event::StreamOpened { stream } => Some(*stream),
                _ => None,
            };
            let Some(at) = shared.events.iter().position(|event| opened(event).is_some()) else {
                return Ok(None);
            };
            Ok(shared.events.remove(at).as_ref().and_then(opened))
        })
    }

    /// Turns the loop for at most this long.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn turn(&mut self, timeout: Duration) -> Result<bool> {
        self.unwritten = 0;
        self.shared.turn(Some(clock() + timeout))
    }

    /// Watches a descriptor of the application's beside the network's own; [`BackEnd::turn`] says
    /// when it is readable.
    ///
    /// # Errors
    /// [`Error::Runtime`] when it cannot be watched.
    pub fn watch(&mut self, descriptor: impl AsFd) -> Result<()> {
        Ok(self.shared.driver.watch(descriptor)?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// [`Error::Runtime`] when it is not watched.
    pub fn unwatch(&mut self, descriptor: impl AsFd) -> Result<()> {
        Ok(self.shared.driver.unwatch(descriptor)?)
    }

    /// How many of this back-end's packets were dropped here on a stream that drops.
    #[must_use]
    pub fn dropped(&mut self, stream: StreamId) -> u64 {
        self.shared.driver.application().dropped(stream)
    }

    /// The next change in the network, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        self.shared.collect();
        self.shared.events.pop_front()
    }

    /// Whether the network has ended for this process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.ended.is_some()
    }

    /// The number of packets that wait to be received.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.packets.len()
    }

    /// How long [`BackEnd::turn`] need not be called while the descriptor is not readable; `None`
    /// for ever.
    #[must_use]
    pub fn idle_time(&self) -> Option<Duration> {
        self.shared.driver.idle_time()
    }

    /// A descriptor that is readable when [`BackEnd::turn`] has work.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.shared.driver.descriptor().as_raw_fd()
    }

    /// Leaves the network on purpose. Waits until the front-end has received what was sent, at most
    /// half a second. The front-end is notified that this back-end has left, not that it died.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the system fails this process.
    pub fn leave(mut self) -> Result<()> {
        self.leave_once()
    }

    /// As [`BackEnd::leave`].
    ///
    /// # Errors
    /// As [`BackEnd::leave`].
    pub fn close(self) -> Result<()> {
        self.leave()
    }

    fn leave_once(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.has_left, true) {
            return Ok(());
        }
        Ok(self.shared.driver.close()?)
    }
}

/// Whether the stream was open when something was sent on it.
fn is_open_after(sent: Result<()>) -> Result<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(Error::Misuse(NodeError::Stream { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for BackEnd {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.process == std::process::id() {
            // A drop cannot report an error; `leave` does.
            let _ = self.leave_once();
        }
    }
}

/// The descriptor of [`BackEnd::descriptor`].
impl AsFd for BackEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.driver.descriptor()
    }
}
