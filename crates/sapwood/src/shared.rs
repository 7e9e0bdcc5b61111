//! The one driver of a process's network, with the answers, packets and events that the application
//! has not taken yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use sapwood_node::{Answer, Application, AttachPoint, Delivery, Event, Instant};
use sapwood_packet::{OutOfMemory, Packet, RankSet, Recipients, StreamId};
use sapwood_runtime::{Driver, clock};

use crate::asking::Questions;
use crate::inquiry::Inquiries;
use crate::{Error, Result, StartFailure};

/// What a network, its streams and its back-end have in common.
pub(crate) struct Shared {
    pub(crate) driver: Driver,
    /// Answers by stream, at the front-end.
    pub(crate) answers: BTreeMap<StreamId, VecDeque<Answer>>,
    /// Questions by stream, at the front-end.
    pub(crate) questions: BTreeMap<StreamId, Questions>,
    /// Packets in order of arrival, at a back-end.
    pub(crate) packets: VecDeque<Packet>,
    /// The failure of a packet after these for which there was no memory.
    pub(crate) undelivered: Option<OutOfMemory>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) failures: Vec<StartFailure>,
    pub(crate) ready: Option<RankSet>,
    /// Until when processes may start of a network that was opened with a part of them.
    pub(crate) starts_until: Option<Instant>,
    /// Where processes may attach now.
    pub(crate) attach_points: Vec<AttachPoint>,
    pub(crate) ended: Option<String>,
    pub(crate) inquiries: Inquiries,
    pub(crate) interrupt: Option<Interrupt>,
}

/// The application's function that says whether a wait is to be interrupted.
pub(crate) struct Interrupt {
    asks: Box<dyn FnMut() -> bool>,
    next: Instant,
}

impl Interrupt {
    pub(crate) fn new(asks: impl FnMut() -> bool + 'static) -> Self {
        Self { asks: Box::new(asks), next: clock() }
    }
}

/// How often it is called while a wait goes on.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// The most events that wait for the application; beyond that the oldest are dropped.
const EVENTS_MAX: usize = 4096;

impl Shared {
    pub(crate) fn new(driver: Driver) -> Self {
        Self {
            driver,
            answers: BTreeMap::new(),
            questions: BTreeMap::new(),
            packets: VecDeque::new(),
            undelivered: None,
            events: VecDeque::new(),
            failures: Vec::new(),
            ready: None,
            starts_until: None,
            attach_points: Vec::new(),
            ended: None,
            inquiries: Inquiries::default(),
            interrupt: None,
        }
    }

    /// Sorts the node's deliveries.
    pub(crate) fn collect(&mut self) {
        while let Some(delivery) = self.driver.application().poll_delivery() {
            match delivery {
                Delivery::Answer(answer) => {
                    if let Some(answer) = self.sort_answer(answer) {
                        self.answers.entry(answer.stream).or_default().push_back(answer);
                    }
                }
                Delivery::Packet(packet) => self.packets.push_back(packet),
            }
        }
        self.undelivered = self.driver.application().take_undelivered().or(self.undelivered);
        while let Some(event) = self.driver.next_event() {
            if let Event::Asked { visitor, question } = &event {
                self.take_question(*visitor, question);
                continue;
            }
            match &event {
                Event::Ready { back_ends, attach_points } => {
                    self.ready = Some(back_ends.clone());
                    self.attach_points = attach_points.clone();
                }
                Event::Offered { attach_points } => {
                    self.attach_points.extend(attach_points.iter().cloned());
                }
                // Of a back-end there is none.
                Event::Broken { rank, .. } | Event::Lost { rank, .. } => {
                    self.attach_points.retain(|point| point.parent != *rank);
                }
                Event::StartFailed { rank, text } => {
                    self.failures.push(StartFailure { rank: *rank, text: text.clone() });
                }
                Event::Ended { reason, .. } => self.ended = Some(reason.clone()),
                _ => {}
            }
            if self.events.len() == EVENTS_MAX {
                if matches!(event, Event::Notice { .. }) {
                    // A full queue drops notices first: other events explain answers.
                    continue;
                }
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    /// Changes the node and carries out its outputs.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(
            &mut Application<'_>,
            Instant,
        ) -> std::result::Result<T, sapwood_node::NodeError>,
    ) -> Result<T> {
        let result = change(&mut self.driver.application(), clock())?;
        self.collect();
        Ok(result)
    }

    /// One turn of the loop; sorts its deliveries. Returns whether a watched descriptor is
    /// readable.
    pub(crate) fn turn(&mut self, until: Option<Instant>) -> Result<bool> {
        let foreign = self.driver.turn(until)?;
        self.collect();
        self.serve_askers()?;
        Ok(foreign)
    }

    /// Turns the loop until `take` returns something, the time is over, or the network has ended.
    pub(crate) fn wait<T>(
        &mut self,
        what: &'static str,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let until = timeout.map(|timeout| clock() + timeout);
        loop {
            if let Some(thing) = take(self)? {
                return Ok(thing);
            }
            if let Some(reason) = &self.ended {
                return Err(Error::Ended { reason: reason.clone() });
            }
            if let (Some(until), Some(waited)) = (until, timeout)
                && clock() >= until
            {
                return Err(Error::Timeout { what, waited });
            }
            self.turn_interruptibly(what, until)?;
        }
    }

    /// One turn of the loop inside a wait, which the application may interrupt.
    fn turn_interruptibly(&mut self, what: &'static str, until: Option<Instant>) -> Result<()> {
        let Some(interrupt) = &mut self.interrupt else {
            self.turn(until)?;
            return Ok(());
        };
        let now = clock();
        if now >= interrupt.next {
            interrupt.next = now + INTERRUPT_INTERVAL;
            if (interrupt.asks)() {
                return Err(Error::Interrupted { what });
            }
        }
        let next = interrupt.next;
        self.turn(Some(until.map_or(next, |until| until.min(next))))?;
        Ok(())
    }

    /// Gathers further start failures for a short time, and returns all as one error.
    pub(crate) fn start_error(&mut self, time: Duration) -> Error {
        let until = clock() + time;
        while clock() < until && self.ended.is_none() && self.ready.is_none() {
            if let Err(error) = self.turn(Some(until)) {
                return error;
            }
        }
        Error::Start(std::mem::take(&mut self.failures))
    }

    /// Waits until a packet can be sent on a stream to these members within their windows.
    pub(crate) fn wait_for_room(
        &mut self,
        stream: StreamId,
        to: &Recipients,
        timeout: Option<Duration>,
    ) -> Result<()> {
        if self.has_room(stream, to)? {
            return Ok(());
        }
        self.driver.carry_out()?;
        self.wait("room on the stream", timeout, |shared| {
            Ok(shared.has_room(stream, to)?.then_some(()))
        })
    }

    /// Whether such a packet can be sent now; if not at first, then after one turn of the loop.
    pub(crate) fn makes_room(&mut self, stream: StreamId, to: &Recipients) -> Result<bool> {
        if self.has_room(stream, to)? {
            return Ok(true);
        }
        self.turn(Some(clock()))?;
        if let Some(reason) = &self.ended {
            return Err(Error::Ended { reason: reason.clone() });
        }
        self.has_room(stream, to)
    }

    /// Whether such a packet can be sent now; an error at the front-end when no member is left to
    /// read it.
    fn has_room(&mut self, stream: StreamId, to: &Recipients) -> Result<bool> {
        self.check_members(stream)?;
        Ok(self.driver.application().has_room_to(stream, to)?)
    }

    /// An error where no member of a stream of the front-end's is left.
    pub(crate) fn check_members(&mut self, stream: StreamId) -> Result<()> {
        let application = self.driver.application();
        if application.is_deserted(stream) {
            return Err(Error::NoMemberLeft { missing: application.missing_members(stream) });
        }
        Ok(())
    }

    /// The application takes a delivery: its bytes are granted to the sender again as credit.
    pub(crate) fn consumed(&mut self, stream: StreamId, cost: u32) {
        self.driver.application().consumed(stream, cost);
        // The grant may release a waiting answer without any input or output: deliveries are
        // collected now.
        self.collect();
    }
}
