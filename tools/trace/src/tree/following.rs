//! One session of events: reads them again and again, and joins them.

use std::cmp::Reverse;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sapwood::{HopForm, HopQuestion, NodeStatus, ProcessHops, Status, StreamId, VisibleNetwork};
use sapwood_command_line::exit::Failure;
use sapwood_command_line::progress::Line;
use sapwood_trace::{HopClock, HopProcess, HopTrace, StreamFigures};

/// Events of all processes that one reading takes, at most: 8 MiB of them.
const EVENTS_MAX: usize = 1 << 18;

/// Beyond the next reading a session lasts this long, if it does not come.
const LEASE: Duration = Duration::from_secs(5);

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
    pub(crate) form: HopForm,
    pub(crate) took: Duration,
    pub(crate) readings: u32,
    pub(crate) trace: HopTrace,
    /// The tree at the last reading.
    pub(crate) status: Status,
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
}

/// For how long the front-end waited, or where that is not known, for how many waves.
fn waiting(figures: &StreamFigures) -> (u64, u64) {
    let waves = |sums: &sapwood::ArrivalSums| {
        sums.streams().iter().map(|one| one.waves + one.partial).sum::<u64>()
    };
    (figures.elapsed.all.sum, figures.arrivals.values().map(waves).max().unwrap_or(0))
}

/// Follows the waves of a network.
///
/// # Errors
/// [`Failure`] when the network does not answer.
pub(crate) fn follow(network: &VisibleNetwork, wishes: &Wishes) -> Result<Followed, Failure> {
    let mut reader = Reader::new(network, wishes);
    let mut status = reader.read(LEASE)?;
    let begin = Instant::now();
    let progress = Line::new(wishes.has_progress);
    while begin.elapsed() < wishes.time {
        sleep(wishes.every.min(wishes.time.saturating_sub(begin.elapsed())));
        progress.say(format_args!(
            "{}: {:.1} of {:.1} s",
            network.name,
            begin.elapsed().as_secs_f64().min(wishes.time.as_secs_f64()),
            wishes.time.as_secs_f64()
        ));
        status = reader.read(LEASE)?;
    }
    let took = begin.elapsed();
    // What is still at the processes, and the end of the session.
    status = reader.read(Duration::ZERO).unwrap_or(status);
    reader.trace.finish();
    Ok(Followed {
        network: network.name.clone(),
        form: reader.question.form,
        took,
        readings: reader.readings,
        trace: reader.trace,
        status,
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
        self.trace.begin_round(processes(&status));
        status.hops().iter().for_each(|hops: &ProcessHops| self.trace.absorb(hops));
        self.trace.end_round();
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
