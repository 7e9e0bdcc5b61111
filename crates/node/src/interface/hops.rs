//! Events of waves and packets at the processes of a tree, which these note while they are asked
//! for, and how both the question and the events travel.
//!
//! A question is a row of numbers in the request of a telemetry stream, and the answer stands
//! behind the other columns of that stream's packets:
//!
//! ```text
//! %Auld  one row of PROCESS_COLUMNS numbers for each process
//! %Auld  their events, 4 words each, in the order of the processes
//! %Auld  their sums by stream, STREAM_COLUMNS numbers each
//! %Auld  their sums by child, CHILD_COLUMNS numbers each
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use sapwood_filter::FilterError;
use sapwood_packet::{Rank, StreamId, Values, ValuesRef, Wave, nanoseconds};
use sapwood_wire::limits::RUN_WAVES_MAX;

use crate::interface::hop_waves::{ChildSums, StreamSums};
use crate::interface::record::wrong;

/// Events for which a process has room if a question names no other number: 1 MiB.
pub const HOP_EVENTS: u32 = 1 << 15;

/// Events for which a process has room, at most: 32 MiB.
pub const HOP_EVENTS_MAX: u32 = 1 << 20;

const EVENT_WORDS: usize = 4;
const QUESTION_WORDS: usize = 6;
const PROCESS_COLUMNS: usize = 8;
const STREAM_COLUMNS: usize = 6;
const CHILD_COLUMNS: usize = 8;

/// What happened to a wave, or to a packet on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum HopKind {
    /// A child's part of the wave has come, whole.
    Arrived = 0,
    /// A child's part has come after the wave had gone on without it.
    Late = 1,
    /// The wave has gone on: to the parent, or at the front-end to the application.
    SentUp = 2,
    /// A packet of the front-end's: it left the front-end, or came from the parent and went on to
    /// the children or the application.
    Down = 3,
}

/// One event. It takes 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopEvent {
    /// When, on the process's own clock: nanoseconds of the turn in which it happened. What one
    /// turn reads has one time.
    pub time: u64,
    /// The wave, or the number of the packet on its way down.
    pub wave: Wave,
    /// The stream.
    pub stream: StreamId,
    /// The child whose part has come; of a wave that went on, how many parts it should have had.
    pub other: u32,
    /// How many waves it is of, from that one on: what travels as one piece is noted as one.
    pub waves: u32,
    /// What happened.
    pub kind: HopKind,
}

/// What is to come of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopForm {
    /// The events themselves.
    Events,
    /// Sums by child and by stream, made at each process: the load-balance monitor in its
    /// distributed form.
    Sums,
}

/// What the processes of a tree are asked for their events. The first question of a session begins
/// it, at each process; a process notes events while it has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopQuestion {
    /// Which session: what it has been given once is not given again.
    pub session: u64,
    /// How long the session lasts beyond this question if no other follows. Zero ends it with this
    /// answer.
    pub lease: Duration,
    /// Events for which a process makes room if it has none yet; the oldest are overwritten, and
    /// counted as lost.
    pub room: u32,
    /// Events that a process reads for this answer, at most, for each of its links and one more:
    /// a process has as many for each wave.
    pub most: u32,
    /// Only of this stream, or of all.
    pub stream: Option<StreamId>,
    /// What is to come of them.
    pub form: HopForm,
}

/// What one process tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessHops {
    /// Its rank.
    pub rank: Rank,
    /// Events that it has noted since the session began.
    pub noted: u64,
    /// Of these, events that were overwritten before they were read.
    pub lost: u64,
    /// Events that wait for the next question.
    pub unread: u64,
    /// Whether the session has begun with this answer: it is the first, or an earlier one has
    /// lapsed.
    pub is_new: bool,
    /// Whether it has as many sessions as it can have, so that it notes nothing for this one.
    pub is_refused: bool,
    /// Events that were read, with [`HopForm::Events`].
    pub events: Vec<HopEvent>,
    /// Sums of the waves that went on, by stream, with [`HopForm::Sums`].
    pub streams: Vec<StreamSums>,
    /// Sums of their children's parts, by stream and child, with [`HopForm::Sums`].
    pub children: Vec<ChildSums>,
}

const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl HopQuestion {
    /// As the values of a request.
    #[must_use]
    pub(crate) fn to_values(self) -> Values {
        Values::new().large_array(&self.to_numbers())
    }

    /// As a row of numbers.
    #[must_use]
    pub fn to_numbers(&self) -> [u64; QUESTION_WORDS] {
        let lease = nanoseconds(self.lease);
        let form = u64::from(self.form == HopForm::Sums);
        let stream = self.stream.map_or(0, |stream| u64::from(stream) + 1);
        [self.session, lease, self.room.into(), self.most.into(), stream, form]
    }

    /// Out of the values of a request; none if it asks for no events.
    #[must_use]
    pub(crate) fn from_values(values: ValuesRef<'_>) -> Option<Self> {
        Self::from_numbers(values.array(0).ok()?)
    }

    /// Out of a row of numbers; none if it is no question.
    #[must_use]
    pub fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let &[session, lease, room, most, stream, form] =
            <&[u64; QUESTION_WORDS]>::try_from(numbers).ok()?;
        Some(Self {
            session,
            lease: Duration::from_nanos(lease),
            room: u32::try_from(room).ok()?,
            most: u32::try_from(most).ok()?,
            stream: match stream {
                0 => None,
                more => Some(StreamId::try_from(more - 1).ok()?),
            },
            form: if form == 1 { HopForm::Sums } else { HopForm::Events },
        })
    }
}

impl HopEvent {
    fn to_row(self) -> [u64; EVENT_WORDS] {
        let what = u64::from(self.kind as u8) | u64::from(self.waves) << 8;
        [self.time, self.wave, pair(self.stream, self.other), what]
    }

    fn from_row(row: &[u64; EVENT_WORDS]) -> Option<Self> {
        let [stream, other] = halves(row[2]);
        let kind = match row[3] & 0xff {
            0 => HopKind::Arrived,
            1 => HopKind::Late,
            2 => HopKind::SentUp,
            3 => HopKind::Down,
            _ => return None,
        };
        let waves = u32::try_from(row[3] >> 8).ok()?;
        if !(1..=RUN_WAVES_MAX).contains(&waves) {
            return None;
        }
        Some(Self { time: row[0], wave: row[1], stream, other, waves, kind })
    }
}

impl StreamSums {
    fn to_row(self) -> [u64; STREAM_COLUMNS] {
        let Self { stream, waves, partial, spread, passing, passing_most } = self;
        [stream.into(), waves, partial, spread, passing, passing_most]
    }

    fn from_row(row: &[u64; STREAM_COLUMNS]) -> Option<Self> {
        let &[stream, waves, partial, spread, passing, passing_most] = row;
        let stream = StreamId::try_from(stream).ok()?;
        Some(Self { stream, waves, partial, spread, passing, passing_most })
    }
}

impl ChildSums {
    fn to_row(self) -> [u64; CHILD_COLUMNS] {
        let Self { stream, child, waves, last, together, late, waited, caused, caused_most } = self;
        let whom = pair(stream, child);
        [whom, waves, last, together, late, waited, caused, caused_most]
    }

    fn from_row(row: &[u64; CHILD_COLUMNS]) -> Self {
        let &[whom, waves, last, together, late, waited, caused, caused_most] = row;
        let [stream, child] = halves(whom);
        Self { stream, child, waves, last, together, late, waited, caused, caused_most }
    }
}

impl ProcessHops {
    fn to_row(&self) -> [u64; PROCESS_COLUMNS] {
        [
            self.rank.into(),
            self.noted,
            self.lost,
            self.unread,
            u64::from(self.is_refused) | u64::from(self.is_new) << 1,
            self.events.len() as u64,
            self.streams.len() as u64,
            self.children.len() as u64,
        ]
    }
}

/// Adds the columns of what processes tell of their events to values.
pub(crate) fn append(all: &[ProcessHops], values: Values) -> Values {
    let processes: Vec<u64> = all.iter().flat_map(ProcessHops::to_row).collect();
    let events = || all.iter().flat_map(|one| &one.events);
    let events: Vec<u64> = events().flat_map(|event| event.to_row()).collect();
    let streams = all.iter().flat_map(|one| &one.streams).flat_map(|sums| sums.to_row());
    let children = all.iter().flat_map(|one| &one.children).flat_map(|sums| sums.to_row());
    let (streams, children): (Vec<u64>, Vec<u64>) = (streams.collect(), children.collect());
    let values = values.large_array(&processes).large_array(&events);
    values.large_array(&streams).large_array(&children)
}

/// The columns of what processes tell of their events, as they lie in a packet's values.
#[derive(Clone, Copy, Default)]
pub(crate) struct HopParts<'a> {
    processes: &'a [u64],
    events: &'a [u64],
    streams: &'a [u64],
    children: &'a [u64],
}

impl<'a> HopParts<'a> {
    /// Those that begin at this value; checked in their lengths.
    pub(crate) fn read(values: ValuesRef<'a>, at: usize) -> Result<Self, FilterError> {
        let column = |index: usize| values.array::<u64>(at + index);
        let parts = Self {
            processes: column(0)?,
            events: column(1)?,
            streams: column(2)?,
            children: column(3)?,
        };
        let (rows, rest) = parts.processes.as_chunks::<PROCESS_COLUMNS>();
        let sum =
            |column: usize| rows.iter().try_fold(0_u64, |sum, row| sum.checked_add(row[column]));
        let is = |column: usize, numbers: &[u64], width: usize| {
            let expected = sum(column).and_then(|rows| rows.checked_mul(width as u64));
            expected == Some(numbers.len() as u64)
        };
        let is_whole = rest.is_empty()
            && is(5, parts.events, EVENT_WORDS)
            && is(6, parts.streams, STREAM_COLUMNS)
            && is(7, parts.children, CHILD_COLUMNS);
        if is_whole { Ok(parts) } else { Err(wrong("rows of events are not whole")) }
    }

    pub(crate) fn to_hops(self) -> Option<Vec<ProcessHops>> {
        let mut events = self.events.as_chunks::<EVENT_WORDS>().0.iter();
        let mut streams = self.streams.as_chunks::<STREAM_COLUMNS>().0.iter();
        let mut children = self.children.as_chunks::<CHILD_COLUMNS>().0.iter();
        let rows = self.processes.as_chunks::<PROCESS_COLUMNS>().0.iter();
        let process = |row: &[u64; PROCESS_COLUMNS]| {
            let count = |column: usize| usize::try_from(row[column]).ok();
            Some(ProcessHops {
                rank: Rank::try_from(row[0]).ok()?,
                noted: row[1],
                lost: row[2],
                unread: row[3],
                is_refused: row[4] & 1 == 1,
                is_new: row[4] & 2 == 2,
                events: events
                    .by_ref()
                    .take(count(5)?)
                    .map(HopEvent::from_row)
                    .collect::<Option<_>>()?,
                streams: streams
                    .by_ref()
                    .take(count(6)?)
                    .map(StreamSums::from_row)
                    .collect::<Option<_>>()?,
                children: children.by_ref().take(count(7)?).map(ChildSums::from_row).collect(),
            })
        };
        rows.map(process).collect()
    }

    /// Puts what others tell behind it.
    pub(crate) fn gather(all: &[Self], values: Values) -> Values {
        let column =
            |of: fn(&Self) -> &'a [u64]| -> Vec<u64> { all.iter().flat_map(of).copied().collect() };
        let values = values.large_array(&column(|parts| parts.processes));
        let values = values.large_array(&column(|parts| parts.events));
        let values = values.large_array(&column(|parts| parts.streams));
        values.large_array(&column(|parts| parts.children))
    }
}
