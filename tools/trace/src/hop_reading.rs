//! One session of reading the events of hops of a running network, from its begin until a time is
//! over, a signal comes or the network ends.

use std::time::{Duration, Instant};

use sapwood::{HopForm, HopQuestion, NodeStatus, Status, StreamId, VisibleNetwork};
use sapwood_command_line::exit::Failure;
use sapwood_command_line::progress::Line;
use sapwood_hosts::signals::{Signal, Signals};
use sapwood_status::unanswered;
use sapwood_trace::{HopClock, HopProcess, HopTrace};

/// Events of all processes that one reading takes, at most: 8 MiB of them.
pub(crate) const EVENTS_MAX: usize = 1 << 18;

/// Beyond the next reading a session lasts this long, if it does not come.
const LEASE: Duration = Duration::from_secs(30);

/// What is read, and how.
pub(crate) struct ReadingWishes {
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
    /// Events of all processes that one reading takes, at most.
    pub(crate) events_max: usize,
    /// Events that a process has for each of its links, at least, whatever the limit above.
    pub(crate) events_min: u32,
    /// Whether a terminal shows how far it is.
    pub(crate) has_progress: bool,
}

/// Why reading ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The time was over.
    Over,
    /// This process was asked to end.
    Signal(Signal),
    /// The network did not answer any more.
    NoAnswer(String),
}

/// How reading ended.
pub(crate) struct EndedReading {
    /// The tree at the last reading.
    pub(crate) status: Status,
    pub(crate) took: Duration,
    pub(crate) end: End,
}

/// What is known after a reading that others follow.
pub(crate) struct ReadRound<'a> {
    pub(crate) trace: &'a mut HopTrace,
    pub(crate) status: &'a Status,
    /// Since the session began.
    pub(crate) elapsed: Duration,
}

/// One session of reading.
pub(crate) struct HopReader<'a> {
    network: &'a VisibleNetwork,
    wishes: &'a ReadingWishes,
    question: HopQuestion,
    pub(crate) readings: u32,
    pub(crate) trace: HopTrace,
}

impl<'a> HopReader<'a> {
    pub(crate) fn new(
        network: &'a VisibleNetwork,
        wishes: &'a ReadingWishes,
        trace: HopTrace,
    ) -> Self {
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
        Self { network, wishes, question, readings: 0, trace }
    }

    /// Reads until the time is over, a signal comes or the network ends; what was read by then is
    /// in the trace. `after` is called after each reading but the first and the last.
    ///
    /// # Errors
    /// [`Failure`] when the network does not answer the first time, or no process has room for one
    /// more session.
    pub(crate) fn follow(
        &mut self,
        after: &mut dyn FnMut(ReadRound<'_>),
    ) -> Result<EndedReading, Failure> {
        let mut signals = Signals::take_over().map_err(|error| Failure::own(&error))?;
        let mut status = self.read(LEASE)?;
        let told = status.hops();
        if !told.is_empty() && told.iter().all(|hops| hops.is_refused) {
            return Err(Failure::own(&format!(
                "eight commands follow the waves of {} already; try again when one has ended",
                self.network.name
            )));
        }
        let time = self.wishes.time;
        let begin = Instant::now();
        let progress = Line::new(self.wishes.has_progress);
        let end = loop {
            if begin.elapsed() >= time {
                break End::Over;
            }
            let rest = time.saturating_sub(begin.elapsed());
            if let Some(signal) = signals.sleep(self.wishes.every.min(rest)) {
                break End::Signal(signal);
            }
            let seconds = begin.elapsed().as_secs_f64().min(time.as_secs_f64());
            let all = time.as_secs_f64();
            progress.say(format_args!("{}: {seconds:.1} of {all:.1} s", self.network.name));
            match self.read(LEASE) {
                Ok(read) => status = read,
                Err(failure) => break End::NoAnswer(failure.to_string()),
            }
            let (trace, elapsed) = (&mut self.trace, begin.elapsed());
            after(ReadRound { trace, status: &status, elapsed });
        };
        let took = begin.elapsed();
        if !matches!(end, End::NoAnswer(_)) {
            // What is still at the processes, and the end of the session.
            status = self.read(Duration::ZERO).unwrap_or(status);
        }
        Ok(EndedReading { status, took, end })
    }

    fn read(&mut self, beyond: Duration) -> Result<Status, Failure> {
        let own = self.wishes.every + self.wishes.timeout;
        let lease = if beyond.is_zero() { beyond } else { beyond + own };
        let question = HopQuestion { lease, ..self.question };
        let status = self.network.hops(&question, self.wishes.timeout);
        let status = status.map_err(|error| unanswered(self.network, error))?;
        self.readings += 1;
        self.trace.take_round(processes(&status), status.hops());
        // Each process has one for each of its links and one more, of which a tree has thrice as
        // many as processes.
        let share = self.wishes.events_max / (3 * status.nodes.len().max(1));
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        self.question.most = share.max(self.wishes.events_min);
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
