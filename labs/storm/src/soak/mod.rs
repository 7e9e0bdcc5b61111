//! `sapwood soak`: a network at full rate for a long time, with an eye on memory.
//!
//! All back-ends send on four streams as fast as they may while packets go down; nothing is killed,
//! but the tree is ready to repair itself, and keeps what has not been acknowledged.
//! Every answer must be whole and in order, some values are checked, and the memory of every
//! process must be flat. `back_end` is the leaves, `memory` the samples and their trend, `report`
//! what is printed.

mod back_end;
mod memory;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{
    Answer, Error, Event, Hosts, Network, Program, Recovery, Shape, Stream, Topology,
    TransportKind, WaveRule,
};

use super::contribution::{Kind, TAG};
use super::members;
use back_end::{LAST_ANSWER, PACKETS_PER_ANSWER, Word};
use memory::History;
use report::{COMMUNICATION, FRONT_END, Progress, Report};
use sapwood_bench::Transport;
use sapwood_command_line::exit::{Failure, OWN_FAILURE, print};

pub use back_end::{BACK_END, back_end};

/// Longest soak, seconds: a day.
const SECONDS_MAX: u32 = 86_400;

/// How many samples are taken, and how far they are apart at least.
const SAMPLES: u32 = 300;
const SAMPLE_TIME_MIN: Duration = Duration::from_millis(250);

/// Packets on the way down that have not been answered. They fit into the stream's window, so that
/// sending them never waits.
const PACKETS_UNDER_WAY: u64 = 8 * PACKETS_PER_ANSWER;

/// Answers that are taken from one stream before it is another's turn.
const ANSWERS_IN_A_ROW: usize = 256;

/// One in this number of values is compared with what it must be; all contributors are.
const VALUES_PER_CHECK: u64 = 16;

/// No stream may be without an answer for this time.
const STALL_LIMIT: Duration = Duration::from_secs(20);

/// All processes must have ended in this time after the network was closed.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Violations after which a soak ends.
const VIOLATIONS_MAX: usize = 20;

/// A network at full rate, the memory of every process watched
#[derive(clap::Parser)]
#[command(name = "sapwood-soak", version)]
pub struct Arguments {
    /// How long, in seconds.
    #[arg(long, value_name = "N", default_value_t = 1800)]
    seconds: u32,
    /// Fan-out of each level: 64, 4x4x4 or 4^3.
    #[arg(long, value_name = "SHAPE", default_value = "4x4")]
    topology: Shape,
    /// What links are made of.
    #[arg(long, value_name = "KIND", default_value = "unix")]
    transport: Transport,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Soaks a network and prints what it has shown. Fails if anything grew or went against the rules.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.seconds == 0 || arguments.seconds > SECONDS_MAX {
        return Err(Failure::usage(format!("--seconds must be 1 to {SECONDS_MAX}")));
    }
    let mut report = soak(arguments)?;
    report.judge();
    print(&if arguments.json { report.to_json() } else { report.to_table() })?;
    Ok(match report.violations.len() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(OWN_FAILURE),
    })
}

fn soak(arguments: &Arguments) -> Result<Report, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::own(&format!("cannot find this program's file: {error}")))?;
    let transport = match arguments.transport {
        Transport::Unix => TransportKind::Unix,
        Transport::Tcp => TransportKind::Tcp,
        Transport::Shm => TransportKind::Shm,
    };
    let network = Network::builder(Topology::from_shape(&arguments.topology, &Hosts::local()))
        .back_end(Program::new(&own).argument(BACK_END).binds_itself())
        .node_program(&own)
        .transport(transport)
        .recovery(Recovery::default())
        .open()?;
    let members = members::find()?;
    let first = network.topology().back_end_count();
    let room = SAMPLES as usize + 2;
    let of_member = |member: &members::Member| {
        let role = if member.rank < first { report::BACK_END } else { COMMUNICATION };
        History::new(member.rank, role, member.pid, room)
    };
    let mut histories = vec![History::new(first, FRONT_END, std::process::id(), room)];
    histories.extend(members.iter().map(of_member));
    let report = Report {
        topology: arguments.topology.to_string(),
        transport: format!("{transport:?}").to_lowercase(),
        progress: Vec::with_capacity(room),
        histories,
        violations: Vec::new(),
    };
    let duration = Duration::from_secs(arguments.seconds.into());
    let mut report = Soak::open(network, report)?.run(duration)?;
    for member in members::wait_for_end(&members, END_LIMIT) {
        report.violations.push(format!("process {} of rank {} is left", member.pid, member.rank));
        member.signal(rustix::process::Signal::KILL);
    }
    Ok(report)
}

struct Soak {
    // Streams before the network, which they need when they are dropped.
    streams: Vec<Stream>,
    down: Stream,
    network: Network,
    back_ends: u64,
    waves: [u64; Kind::SMALL.len()],
    answered: Vec<Instant>,
    /// Packets sent down.
    sent: u64,
    /// Packets that all have received.
    received: u64,
    /// Whether all back-ends have sent their last wave.
    has_ended: bool,
    report: Report,
}

impl Soak {
    fn open(network: Network, report: Report) -> Result<Self, Failure> {
        let everyone = network.everyone();
        let open = |kind: &Kind| -> Result<Stream, Error> {
            let rule = match kind.wave_rule() {
                // On a machine that is busy with other things no back-end is late.
                WaveRule::Timeout { .. } => WaveRule::Timeout { milliseconds: u32::MAX },
                rule => rule,
            };
            network.stream(&everyone).up(kind.filter()).wave(rule).open()
        };
        let mut streams = Kind::SMALL.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let down = network.stream(&everyone).up("min").open()?;
        for (kind, stream) in streams.iter_mut().enumerate() {
            stream.broadcast(TAG, Word::Begin { kind }.values())?;
        }
        Ok(Self {
            streams,
            down,
            back_ends: everyone.size(),
            network,
            waves: [0; Kind::SMALL.len()],
            answered: vec![Instant::now(); Kind::SMALL.len() + 1],
            sent: 0,
            received: 0,
            has_ended: false,
            report,
        })
    }

    fn run(mut self, duration: Duration) -> Result<Report, Failure> {
        let began = Instant::now();
        let pause = SAMPLE_TIME_MIN.max(duration / SAMPLES);
        let mut next = pause;
        while began.elapsed() < duration && self.report.violations.len() < VIOLATIONS_MAX {
            self.send_down()?;
            self.take()?;
            if began.elapsed() >= next {
                self.sample(began.elapsed());
                next += pause;
            }
            if self.answered.iter().any(|at| at.elapsed() > STALL_LIMIT) {
                let text = format!("a stream had no answer for {} s", STALL_LIMIT.as_secs());
                self.report.violations.push(text);
                break;
            }
        }
        self.finish()?;
        let Self { streams, down, network, report, .. } = self;
        drop((streams, down));
        network.close()?;
        Ok(report)
    }

    /// Waits until all back-ends have sent their last wave.
    fn finish(&mut self) -> Result<(), Failure> {
        self.down.broadcast(TAG, Word::End.values())?;
        let until = Instant::now() + STALL_LIMIT;
        while !self.has_ended && Instant::now() < until {
            self.take()?;
        }
        if !self.has_ended {
            self.report.violations.push("some back-ends do not end".to_string());
        }
        Ok(())
    }

    /// As many packets as may be under way.
    fn send_down(&mut self) -> Result<(), Failure> {
        while self.sent < self.received + PACKETS_UNDER_WAY {
            self.down.broadcast(TAG, Word::Packet { number: self.sent }.values())?;
            self.sent += 1;
        }
        Ok(())
    }

    /// What has come on all streams.
    fn take(&mut self) -> Result<(), Failure> {
        for at in 0..self.streams.len() {
            for _ in 0..ANSWERS_IN_A_ROW {
                let Some(answer) = self.streams[at].try_recv()? else { break };
                self.check(at, &answer);
            }
        }
        while let Some(answer) = self.down.try_recv()? {
            let count = answer.value()?.scalar::<u64>(0).map_err(Error::from)?;
            if count == LAST_ANSWER {
                self.has_ended = true;
                break;
            }
            self.received += PACKETS_PER_ANSWER;
            self.answered[Kind::SMALL.len()] = Instant::now();
            if count != self.received || !answer.is_complete() {
                let text = format!("{count} packets were received and not {}", self.received);
                self.report.violations.push(text);
            }
        }
        while let Some(event) = self.network.next_event() {
            if let Event::Lost { .. } | Event::FilterFailed { .. } = event {
                self.report.violations.push(format!("{event:?}"));
            }
        }
        Ok(())
    }

    fn check(&mut self, at: usize, answer: &Answer) {
        let kind = Kind::SMALL[at];
        self.waves[at] += 1;
        self.answered[at] = Instant::now();
        let mut violated = |text: String| {
            let text = format!("{} wave {}: {text}", kind.filter(), answer.wave);
            self.report.violations.push(text);
        };
        if kind.wave_rule() != WaveRule::Immediate {
            if answer.wave + 1 != self.waves[at] {
                violated(format!("came where wave {} was due", self.waves[at] - 1));
            }
            if answer.contributors.len() != self.back_ends || !answer.missing.is_empty() {
                violated(format!("has only {}", answer.contributors));
            }
        }
        if answer.wave.is_multiple_of(VALUES_PER_CHECK)
            && let Err(fault) = kind.check(answer)
        {
            violated(fault);
        }
    }

    fn sample(&mut self, at: Duration) {
        self.report.progress.push(Progress { at, waves: self.waves, packets: self.received });
        for history in &mut self.report.histories {
            if !history.sample(at) {
                let text = format!("the process of rank {} has ended", history.rank);
                self.report.violations.push(text);
            }
        }
    }
}
