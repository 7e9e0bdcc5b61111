//! The programs gsum and compute-gsum on streams of Sapwood's own: sums of all back-ends by turns
//! over two streams, without a monitor, with the collectors alone, and with the two monitors that
//! read them, in turn.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use sapwood::{
    HOP_EVENTS, HopForm, HopQuestion, Network, NodeStatus, Shape, Status, Stream, Values,
    VisibleNetwork,
};
use sapwood_command_line::exit::Failure;
use sapwood_trace::{HopClock, HopProcess, HopTrace};
use serde_json::Value;

use super::super::facts::Facts;
use super::super::leaf::{ExpectedSum, Request, SORT, TAG};
use super::super::pairs::turns;
use super::super::plan::Transport;
use super::super::progress::Progress;
use super::super::tree::{builder, leaf_program};
use super::Arguments;
use super::rows::{Program, Run};

/// What the programs run on.
const PLACE: &str = "streams, one host";

/// The longest wait for an answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// Between two readings of a monitor.
const EVERY: Duration = Duration::from_millis(200);

/// Sums that find out how long one takes.
const TRIES: u64 = 200;

/// What watches the streams.
#[derive(Clone, Copy)]
enum Watched {
    Not,
    /// Processes note events.
    Collectors,
    /// They sum them up when they are asked, which is whose part comes last.
    LoadBalance,
    /// All events are read and joined, for the statistics of every link.
    Statistics,
}

const WATCHED: [Watched; 4] =
    [Watched::Not, Watched::Collectors, Watched::LoadBalance, Watched::Statistics];

/// Measures both programs.
pub(super) fn measure(
    arguments: &Arguments,
    facts: &mut Facts,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut bench = Bench::open(&arguments.topology)?;
    let sum = bench.iterate(TRIES, 0)? / TRIES as f64;
    let sorted = bench.as_long_as(sum)?;
    facts.setting("streams.topology", arguments.topology.to_string());
    facts.heading(&format!(
        "streams of a tree {}: with over without, seconds of the iterations themselves",
        arguments.topology
    ));
    for (name, sorted) in [("gsum", 0), ("compute_gsum", sorted)] {
        let (ranks, iterations) = (bench.back_ends, arguments.iterations);
        let program = Program { name, place: PLACE, ranks, iterations, sorted };
        let rows = bench.compare(arguments, &program, facts, progress)?;
        facts.setting(&format!("streams.{name}"), rows);
    }
    bench.close()
}

struct Bench {
    // Before the network, which they need when they are dropped.
    streams: [Stream; 2],
    network: Network,
    visible: VisibleNetwork,
    back_ends: u64,
    wave: u64,
}

impl Bench {
    fn open(shape: &Shape) -> Result<Self, Failure> {
        let mut network = builder(shape, Transport::Shm)?.back_end(leaf_program()?).open()?;
        let name = format!("bench-{}", std::process::id());
        network.publish(&name)?;
        crate::withdrawal::before_signals_end_us();
        let visible = VisibleNetwork::all()?.into_iter().find(|one| one.name == name);
        let visible = visible.ok_or_else(|| Failure::own(&"the network is not visible"))?;
        let everyone = network.everyone();
        let stream = || network.stream(&everyone).up("sum").open();
        let streams = [stream()?, stream()?];
        let back_ends = u64::from(shape.back_end_count());
        Ok(Self { streams, network, visible, back_ends, wave: 0 })
    }

    /// One program, by turns with each monitor and without.
    fn compare(
        &mut self,
        arguments: &Arguments,
        program: &Program<'_>,
        facts: &mut Facts,
        progress: &mut Progress,
    ) -> Result<Value, Failure> {
        let mut runs: [Vec<Run>; WATCHED.len()] = Default::default();
        for pair in 0..usize::from(arguments.pairs) {
            progress.say(&format!("streams: {}", program.name), pair, arguments.pairs.into());
            for which in turns(pair, WATCHED.len()) {
                let run = self.run(WATCHED[which], arguments.iterations, program.sorted)?;
                runs[which].push(run);
            }
        }
        let [bare, collectors, load_balance, statistics] = &runs;
        let monitors: [(&str, &[Run]); 3] = [
            ("collectors", collectors),
            ("load_balance", load_balance),
            ("statistics", statistics),
        ];
        program.rows(bare, &monitors, facts)
    }

    /// Seconds of this many sums, before each of which every back-end sorts as many numbers.
    fn iterate(&mut self, iterations: u64, sorted: u64) -> Result<f64, Failure> {
        let mut expected = ExpectedSum::new(self.back_ends as usize, 1);
        let begin = Instant::now();
        for iteration in 0..iterations {
            let stream = &mut self.streams[(iteration % 2) as usize];
            let request = Request { elements: 1, first_wave: self.wave, waves: 1 };
            match sorted {
                0 => stream.broadcast(TAG, request.values())?,
                _ => stream.broadcast(SORT, Values::new().array(&[1, self.wave, 1, sorted]))?,
            }
            let answer = stream.recv_timeout(DEADLINE)?;
            expected.check(&answer, self.wave)?;
            self.wave += 1;
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    /// How many numbers are sorted in that time more than a sum takes.
    fn as_long_as(&mut self, sum: f64) -> Result<u64, Failure> {
        let mut sorted = 8;
        while self.iterate(TRIES, sorted)? / (TRIES as f64) < 2.0 * sum && sorted < 1 << 16 {
            sorted = sorted * 5 / 4 + 1;
        }
        Ok(sorted)
    }

    fn run(&mut self, watched: Watched, iterations: u32, sorted: u64) -> Result<Run, Failure> {
        let Some(mut monitor) = Monitor::new(watched, self.wave) else {
            return Ok(Run { seconds: self.iterate(iterations.into(), sorted)?, gathered: None });
        };
        monitor.absorb(&self.network.hops(&monitor.question(DEADLINE), DEADLINE)?);
        let seconds = match monitor.reads {
            false => self.iterate(iterations.into(), sorted)?,
            true => self.iterate_watched(iterations, sorted, &mut monitor)?,
        };
        monitor.absorb(&self.network.hops(&monitor.question(Duration::ZERO), DEADLINE)?);
        Ok(Run { seconds, gathered: monitor.gathered() })
    }

    fn iterate_watched(
        &mut self,
        iterations: u32,
        sorted: u64,
        monitor: &mut Monitor,
    ) -> Result<f64, Failure> {
        let visible = self.visible.clone();
        thread::scope(|scope| {
            let (over, is_over) = mpsc::channel::<()>();
            let reading = scope.spawn(move || monitor.watch(&visible, &is_over));
            let seconds = self.iterate(iterations.into(), sorted);
            drop(over);
            // A reading that is under way is answered while the application waits for something.
            while !reading.is_finished() {
                self.iterate(1, 0)?;
            }
            match reading.join() {
                Ok(read) => read.and(seconds),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn close(self) -> Result<(), Failure> {
        for stream in self.streams {
            stream.close()?;
        }
        Ok(self.network.close()?)
    }
}

/// One session of events, and what follows from them.
struct Monitor {
    session: u64,
    form: HopForm,
    /// Whether events are read while they come.
    reads: bool,
    trace: HopTrace,
}

impl Monitor {
    fn new(watched: Watched, session: u64) -> Option<Self> {
        let (form, reads) = match watched {
            Watched::Not => return None,
            Watched::Collectors => (HopForm::Sums, false),
            Watched::LoadBalance => (HopForm::Sums, true),
            Watched::Statistics => (HopForm::Events, true),
        };
        Some(Self { session, form, reads, trace: HopTrace::default() })
    }

    fn question(&self, lease: Duration) -> HopQuestion {
        let (session, form) = (self.session, self.form);
        HopQuestion { session, lease, room: HOP_EVENTS, most: HOP_EVENTS, stream: None, form }
    }

    /// Reads until the iterations are over.
    fn watch(
        &mut self,
        network: &VisibleNetwork,
        is_over: &mpsc::Receiver<()>,
    ) -> Result<(), Failure> {
        while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(EVERY) {
            let status = network.hops(&self.question(DEADLINE), DEADLINE)?;
            self.absorb(&status);
        }
        Ok(())
    }

    fn absorb(&mut self, status: &Status) {
        // All processes are of this host, and have one clock.
        let clock = Some(HopClock::default());
        let process =
            |node: &NodeStatus| HopProcess { rank: node.rank, parent: node.parent, clock };
        self.trace.take_round(status.nodes.iter().map(process), status.hops());
    }

    /// Of the events that were noted, the part that was read before it was overwritten; none where
    /// nothing is read.
    fn gathered(&self) -> Option<f64> {
        let losses = self.trace.losses();
        let read = losses.noted.saturating_sub(losses.overwritten + losses.unread);
        (self.reads && losses.noted > 0).then(|| read as f64 / losses.noted as f64)
    }
}
