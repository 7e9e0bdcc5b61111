//! One session of events: reads them again and again, and joins them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use sapwood::{ChildSums, HopForm, Rank, Status, StreamId, VisibleNetwork};
use sapwood_command_line::exit::Failure;
use sapwood_trace::{HopTrace, StreamFigures};

use crate::hop_reading::{EVENTS_MAX, End, HopReader, ReadingWishes};

/// Events that a process may send for each of its links in one reading, whatever the tree's size.
const EVENTS_MIN: u32 = 64;

/// What is followed, and how.
pub(crate) struct Wishes {
    /// For how long.
    pub(crate) time: Duration,
    /// How often events are read.
    pub(crate) every: Duration,
    /// How long processes may take to answer.
    pub(crate) timeout: Duration,
    /// One stream, or all.
    pub(crate) stream: Option<StreamId>,
    /// Events, or sums that each process makes of its own.
    pub(crate) form: HopForm,
    /// Events for which each process makes room.
    pub(crate) room: u32,
    /// Whether a terminal shows how far it is.
    pub(crate) has_progress: bool,
}

/// What was followed, and what came of it.
pub(crate) struct Followed {
    pub(crate) network: String,
    /// The only stream that was followed.
    pub(crate) stream: Option<StreamId>,
    pub(crate) form: HopForm,
    pub(crate) took: Duration,
    pub(crate) readings: u32,
    pub(crate) trace: HopTrace,
    /// The tree at the last reading.
    pub(crate) status: Status,
    pub(crate) end: End,
}

impl Followed {
    /// The streams, by how long the front-end waited on each.
    pub(crate) fn by_time(&self) -> Vec<(StreamId, &StreamFigures)> {
        let streams = self.trace.streams().iter();
        let mut by_time: Vec<(StreamId, &StreamFigures)> =
            streams.map(|(&stream, figures)| (stream, figures)).collect();
        by_time.sort_by_key(|(stream, figures)| (Reverse(waiting(figures)), *stream));
        by_time
    }

    /// Sums of each child that is there, at the parent that it has now.
    pub(crate) fn sums_of_children(&self, figures: &StreamFigures) -> BTreeMap<Rank, ChildSums> {
        let mut sums = BTreeMap::new();
        for (&parent, all) in &figures.arrivals {
            let is_here = |child: &ChildSums| {
                let node = self.status.node(child.child);
                node.is_some_and(|node| node.parent == Some(parent) && node.record.is_some())
            };
            let here = all.children().into_iter().filter(is_here);
            sums.extend(here.map(|child| (child.child, child)));
        }
        sums
    }
}

/// For how long the front-end waited, or where that is not known, for how many waves.
fn waiting(figures: &StreamFigures) -> (u64, u64) {
    let waves = |sums: &sapwood::ArrivalSums| {
        let waves = |one: &sapwood::StreamSums| one.waves.saturating_add(one.partial);
        sums.streams().iter().map(waves).fold(0, u64::saturating_add)
    };
    (figures.elapsed.all.sum, figures.arrivals.values().map(waves).max().unwrap_or(0))
}

/// Follows the waves of a network until the time is over, a signal comes or the network ends; what
/// was read by then is told.
///
/// # Errors
/// [`Failure`] when the network does not answer the first time, or no process has room for one more
/// session.
pub(crate) fn follow(network: &VisibleNetwork, wishes: &Wishes) -> Result<Followed, Failure> {
    let reading = ReadingWishes {
        time: wishes.time,
        every: wishes.every,
        timeout: wishes.timeout,
        stream: wishes.stream,
        form: wishes.form,
        room: wishes.room,
        events_max: EVENTS_MAX,
        events_min: EVENTS_MIN,
        has_progress: wishes.has_progress,
    };
    let mut reader = HopReader::new(network, &reading, HopTrace::default());
    let ended = reader.follow(&mut |_| ())?;
    reader.trace.finish();
    Ok(Followed {
        network: network.name.clone(),
        stream: wishes.stream,
        form: wishes.form,
        took: ended.took,
        readings: reader.readings,
        trace: reader.trace,
        status: ended.status,
        end: ended.end,
    })
}
