//! Status queries: for the network's own application, and for visitors, while the application goes
//! on with its work.
//!
//! Each query opens a telemetry stream to all processes, asks once, and closes it. Between queries
//! there is none.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use sapwood_filter::{FilterSpec, WaveRule};
use sapwood_node::{HopQuestion, Instant, Missing, Records, StreamSpec, TELEMETRY};
use sapwood_packet::StreamId;
use sapwood_runtime::clock;
use sapwood_topology::Topology;

use crate::shared::Shared;
use crate::{Result, Status};

/// The longest time that a status may be waited for.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The first byte of a visitor's question for the network's status; the wait in milliseconds
/// follows behind three more.
const ASKS_STATUS: u8 = 1;

/// The first byte of a visitor's question for the application; its words follow behind three more.
const ASKS_APPLICATION: u8 = 2;

/// The first byte of a visitor's question for the network's status with the events of its
/// processes; the wait and the numbers of a [`HopQuestion`] follow.
const ASKS_HOPS: u8 = 3;

/// Questions of visitors that wait, at most: for the application, and for the network's status.
/// Further ones get an empty answer.
const QUESTIONS_MAX: usize = 64;

/// What another process of this user asks the application of a visible network.
#[derive(Debug)]
pub struct Question {
    visitor: u64,
    /// Its words, as [`VisibleNetwork::ask`](crate::VisibleNetwork::ask) sent them.
    pub bytes: Vec<u8>,
}

/// The pending queries, and the wave that is under way for them.
#[derive(Default)]
pub(crate) struct Inquiries {
    /// The planned tree, at a front-end.
    pub(crate) topology: Option<Rc<Topology>>,
    waiting: VecDeque<Inquiry>,
    under_way: Option<UnderWay>,
    /// The result for the application.
    result: Option<Status>,
    questions: VecDeque<Question>,
}

/// A query that waits.
struct Inquiry {
    asker: Asker,
    timeout: Duration,
    hops: Option<HopQuestion>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Application,
    Visitor(u64),
}

struct UnderWay {
    stream: StreamId,
    began: Instant,
    askers: Vec<Asker>,
    hops: Option<HopQuestion>,
}

/// What the processes of a tree have answered; of this one alone, where there are no records.
#[derive(Default)]
struct Answered {
    records: Option<Records>,
    missing: Vec<Missing>,
}

/// The question of a visitor for the network's status.
pub(crate) fn status_question(timeout: Duration) -> Vec<u8> {
    let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    [&[ASKS_STATUS, 0, 0, 0][..], &milliseconds.to_le_bytes()].concat()
}

/// The question of a visitor for the network's status and the events of its processes.
pub(crate) fn hop_question(question: &HopQuestion, timeout: Duration) -> Vec<u8> {
    let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    let numbers = question.to_numbers().into_iter().flat_map(u64::to_le_bytes);
    let head = [&[ASKS_HOPS, 0, 0, 0][..], &milliseconds.to_le_bytes()].concat();
    head.into_iter().chain(numbers).collect()
}

/// A visitor's question for the application.
pub(crate) fn application_question(words: &[u8]) -> Vec<u8> {
    [&[ASKS_APPLICATION, 0, 0, 0][..], words].concat()
}

/// Queries that one wave answers.
struct Together {
    askers: Vec<Asker>,
    timeout: Duration,
    hops: Option<HopQuestion>,
}

impl Inquiry {
    /// The query that a visitor's bytes are, if they are one.
    fn of_visitor(visitor: u64, question: &[u8]) -> Option<Self> {
        let [kind, 0, 0, 0, rest @ ..] = question else { return None };
        let (milliseconds, numbers) = rest.split_first_chunk()?;
        let hops = match (*kind, numbers) {
            (ASKS_STATUS, []) => None,
            (ASKS_HOPS, numbers) => {
                let (words, []) = numbers.as_chunks() else { return None };
                let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
                Some(HopQuestion::from_numbers(&words)?)
            }
            _ => return None,
        };
        let timeout = Duration::from_millis(u32::from_le_bytes(*milliseconds).into());
        Some(Self { asker: Asker::Visitor(visitor), timeout, hops })
    }
}

impl Inquiries {
    /// The next queries that one wave can answer: one for events alone, since each session has a
    /// place of its own in them; else all that ask for no events.
    fn take_together(&mut self) -> Option<Together> {
        let first = self.waiting.pop_front()?;
        let mut together =
            Together { askers: vec![first.asker], timeout: first.timeout, hops: first.hops };
        while together.hops.is_none()
            && let Some(next) = self.waiting.pop_front_if(|next| next.hops.is_none())
        {
            together.askers.push(next.asker);
            together.timeout = together.timeout.min(next.timeout);
        }
        Some(together)
    }

    /// Forgets the application's query, wherever it is.
    fn forget_application(&mut self) {
        self.waiting.retain(|inquiry| inquiry.asker != Asker::Application);
        if let Some(under_way) = &mut self.under_way {
            under_way.askers.retain(|asker| *asker != Asker::Application);
        }
        self.result = None;
    }
}

impl Shared {
    /// A visitor's question has come. One that is not understood gets an empty answer.
    pub(crate) fn take_question(&mut self, visitor: u64, question: &[u8]) {
        if let [ASKS_APPLICATION, 0, 0, 0, words @ ..] = question
            && self.inquiries.questions.len() < QUESTIONS_MAX
        {
            self.inquiries.questions.push_back(Question { visitor, bytes: words.to_vec() });
            return;
        }
        match Inquiry::of_visitor(visitor, question) {
            Some(inquiry) if self.inquiries.waiting.len() < QUESTIONS_MAX => {
                self.inquiries.waiting.push_back(inquiry);
            }
            _ => self.driver.application().reply(visitor, &[]),
        }
    }

    /// The next question for the application.
    pub(crate) fn next_question(&mut self) -> Option<Question> {
        self.inquiries.questions.pop_front()
    }

    /// The application's answer to it.
    pub(crate) fn answer_question(&mut self, question: &Question, answer: &[u8]) -> Result<()> {
        self.driver.application().reply(question.visitor, answer);
        Ok(self.driver.carry_out()?)
    }

    /// Asks for the application, and waits.
    pub(crate) fn status(
        &mut self,
        timeout: Duration,
        hops: Option<HopQuestion>,
    ) -> Result<Status> {
        let asker = Asker::Application;
        // A wave for a visitor may be under way; this query waits for its end, and for no other.
        self.inquiries.waiting.push_front(Inquiry { asker, timeout, hops });
        let limit = timeout.saturating_add(TIMEOUT_MAX);
        let status = self.wait("status", Some(limit), |shared| {
            shared.serve_askers()?;
            Ok(shared.inquiries.result.take())
        });
        if status.is_err() {
            // Its answer would be taken for that of the next one.
            self.inquiries.forget_application();
        }
        status
    }

    /// Continues the pending queries; costs nothing when there are none.
    #[inline]
    pub(crate) fn serve_askers(&mut self) -> Result<()> {
        if self.inquiries.waiting.is_empty() && self.inquiries.under_way.is_none() {
            return Ok(());
        }
        self.begin_inquiry()?;
        self.end_inquiry()
    }

    fn begin_inquiry(&mut self) -> Result<()> {
        if self.inquiries.under_way.is_some() {
            return Ok(());
        }
        let Some(Together { askers, timeout, hops }) = self.inquiries.take_together() else {
            return Ok(());
        };
        let wait = timeout.min(TIMEOUT_MAX);
        let milliseconds = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1);
        let began = clock();
        let mut application = self.driver.application();
        let spec = StreamSpec {
            members: application.back_ends(),
            up: vec![FilterSpec::from(TELEMETRY)],
            wave: WaveRule::Timeout { milliseconds },
            ..StreamSpec::default()
        };
        let opened = application.open_stream(spec).and_then(|stream| {
            application.ask_everyone(began, stream, hops.as_ref()).map(|()| stream)
        });
        match opened {
            Ok(stream) => {
                self.inquiries.under_way = Some(UnderWay { stream, began, askers, hops });
            }
            // Without a connected back-end no stream can be opened: this process answers alone.
            Err(_) => self.tell(&askers, began, hops.as_ref(), Answered::default()),
        }
        self.collect();
        Ok(self.driver.carry_out()?)
    }

    fn end_inquiry(&mut self) -> Result<()> {
        let Some(under_way) = &self.inquiries.under_way else { return Ok(()) };
        let stream = under_way.stream;
        let answer = self.answers.get_mut(&stream).and_then(VecDeque::pop_front);
        let mut application = self.driver.application();
        let missing = match &answer {
            Some(answer) => answer.missing.clone(),
            None if application.is_deserted(stream) => application.missing_members(stream),
            None => return Ok(()),
        };
        let packet = answer.and_then(|answer| answer.packet);
        let records = packet.and_then(|packet| Records::from_values(packet.values()).ok());
        application.close_stream(stream)?;
        self.answers.remove(&stream);
        if let Some(under_way) = self.inquiries.under_way.take() {
            let UnderWay { askers, began, hops, .. } = under_way;
            self.tell(&askers, began, hops.as_ref(), Answered { records, missing });
        }
        Ok(self.driver.carry_out()?)
    }

    /// Sends to each process that asked what has been answered since `began`.
    fn tell(
        &mut self,
        askers: &[Asker],
        began: Instant,
        hops: Option<&HopQuestion>,
        answered: Answered,
    ) {
        let Some(topology) = self.inquiries.topology.clone() else { return };
        let mut application = self.driver.application();
        let Answered { records, missing } = answered;
        let records = records.unwrap_or_else(|| application.own_records(hops));
        let status = Status::new(&topology, records, missing, clock().since(began));
        let bytes = status.to_bytes();
        for asker in askers {
            match asker {
                Asker::Visitor(visitor) => self.driver.application().reply(*visitor, &bytes),
                Asker::Application => self.inquiries.result = Some(status.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_the_application_that_failed_leaves_nothing_for_the_next() {
        let inquiry = |asker| Inquiry { asker, timeout: TIMEOUT_MAX, hops: None };
        let mut inquiries = Inquiries::default();
        let all = [Asker::Application, Asker::Visitor(1), Asker::Visitor(2)];
        inquiries.waiting.extend(all.map(inquiry));
        let began = Instant(0);
        let askers = vec![Asker::Visitor(3), Asker::Application];
        inquiries.under_way = Some(UnderWay { stream: 1, began, askers, hops: None });
        inquiries.forget_application();
        let together = inquiries.take_together().expect("visitors wait");
        assert!(together.askers == [Asker::Visitor(1), Asker::Visitor(2)]);
        assert!(inquiries.under_way.is_some_and(|one| one.askers == [Asker::Visitor(3)]));
        assert!(inquiries.result.is_none());
    }
}
