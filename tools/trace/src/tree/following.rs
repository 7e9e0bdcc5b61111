//! One session of events: reads them again and again, and joins them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sapwood::{
    ChildSums, HopForm, HopQuestion, NodeStatus, Rank, Status, StreamId, VisibleNetwork,
};
use sapwood_command_line::exit::Failure;
use sapwood_command_line::progress::Line;
use sapwood_hosts::signals::{Signal, Signals};
use sapwood_trace::{HopClock, HopProcess, HopTrace, StreamFigures};

/// Events of all processes that one reading takes, at most: 8 MiB of them.
const EVENTS_MAX: usize = 1 << 18;

/// Beyond the next reading a session lasts this long, if it does not come.
const LEASE: Duration = Duration::from_secs(30);

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

/// Why following ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The time was over.
    Over,
    /// This process was asked to end.
    Signal(Signal),
    /// The network did not answer any more.
    NoAnswer(String),
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
    let mut signals = Signals::take_over().map_err(|error| Failure::own(&error))?;
    let mut reader = Reader::new(network, wishes);
    let mut status = reader.read(LEASE)?;
    let told = status.hops();
    if !told.is_empty() && told.iter().all(|hops| hops.is_refused) {
        return Err(Failure::own(&format!(
            "eight commands follow the waves of {} already; try again when one has ended",
            network.name
        )));
    }
    let begin = Instant::now();
    let progress = Line::new(wishes.has_progress);
    let end = loop {
        if begin.elapsed() >= wishes.time {
            break End::Over;
        }
        let rest = wishes.time.saturating_sub(begin.elapsed());
        if let Some(signal) = signals.sleep(wishes.every.min(rest)) {
            break End::Signal(signal);
        }
        let seconds = begin.elapsed().as_secs_f64().min(wishes.time.as_secs_f64());
        let all = wishes.time.as_secs_f64();
        progress.say(format_args!("{}: {seconds:.1} of {all:.1} s", network.name));
        match reader.read(LEASE) {
            Ok(read) => status = read,
            Err(failure) => break End::NoAnswer(failure.to_string()),
        }
    };
    let took = begin.elapsed();
    if !matches!(end, End::NoAnswer(_)) {
        // What is still at the processes, and the end of the session.
        status = reader.read(Duration::ZERO).unwrap_or(status);
    }
    reader.trace.finish();
    Ok(Followed {
        network: network.name.clone(),
        stream: wishes.stream,
        form: wishes.form,
        took,
        readings: reader.readings,
        trace: reader.trace,
        status,
        end,
    })
}

/// One session of reading.
struct Reader<'a> {
    network: &'a VisibleNetwork,
    timeout: Duration,
    question: HopQuestion,
    lease: Duration,
    readings: u32,
    trace: HopTrace,
}

impl<'a> Reader<'a> {
    fn new(network: &'a VisibleNetwork, wishes: &Wishes) -> Self {
        let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let session = since_epoch.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        let question = HopQuestion {
            session,
            lease: Duration::ZERO,
            room: wishes.room,
            // The first reading finds no events.
            most: 1,
            stream: wishes.stream,
            form: wishes.form,
        };
        let lease = wishes.every + wishes.timeout;
        let (timeout, trace) = (wishes.timeout, HopTrace::default());
        Self { network, timeout, question, lease, readings: 0, trace }
    }

    fn read(&mut self, beyond: Duration) -> Result<Status, Failure> {
        let lease = if beyond.is_zero() { beyond } else { beyond + self.lease };
        let question = HopQuestion { lease, ..self.question };
        let status = self.network.hops(&question, self.timeout)?;
        self.readings += 1;
        self.trace.take_round(processes(&status), status.hops());
        // Each process has one for each of its links and one more, of which a tree has thrice as
        // many as processes.
        let share = EVENTS_MAX / (3 * status.nodes.len().max(1));
        self.question.most = u32::try_from(share).unwrap_or(u32::MAX).max(64);
        Ok(status)
    }
}

/// The processes of the tree with their clocks. Processes of one host have one clock; those of
/// others are aligned by what the tree has measured.
fn processes(status: &Status) -> Vec<HopProcess> {
    let clocks = status.clocks();
    let host = |node: &NodeStatus| node.record.as_ref().map(|one| one.host.clone());
    let own = host(status.root());
    let clock = |node: &NodeStatus| {
        let known = clocks.of(node.rank)?;
        let measured = HopClock { ahead: known.ahead, error: known.error };
        let is_here = host(node) == own && known.ahead.unsigned_abs() <= known.error;
        Some(if is_here { HopClock::default() } else { measured })
    };
    let process = |node: &NodeStatus| HopProcess {
        rank: node.rank,
        parent: node.parent,
        clock: if node.parent.is_none() { Some(HopClock::default()) } else { clock(node) },
    };
    status.nodes.iter().map(process).collect()
}
