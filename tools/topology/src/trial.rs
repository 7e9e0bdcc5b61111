//! Small trees on this machine whose waves are timed: by `sapwood topology` for the cost of a
//! message, by `sapwood doctor` for whether trees work here at all. The
//! Python package measures itself with the same back-ends.
//!
//! Owns both ends: the front-end ([`TrialTree`]) and the loop of a back-end ([`back_end`]), which
//! answers each request with an array that depends on its rank and the wave. Every sum is checked.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::{
    Answer, BackEnd, Error, FIRST_TAG, Hosts, Network, Program, Shape, Stream, Tag, Topology,
    TransportKind, Values,
};
use sapwood_command_line::exit::Failure;

/// The argument with which the program of a communication process is such a back-end.
pub const BACK_END: &str = "trial-back-end";

/// Down: `%auld` number of elements, and the wave; what follows is not read. Up, with the tag of
/// the request: `%alf`.
const TAG: Tag = FIRST_TAG;

/// Longest wait for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Most elements of an answer: 8 MiB.
const ELEMENTS_MAX: u64 = 1 << 20;

/// After this many elements the values of an array begin anew. All sums are whole numbers that an
/// f64 holds exactly.
const ELEMENT_PERIOD: u64 = 1024;
const WAVE_PERIOD: u64 = 1 << 20;

/// Over what the processes of a trial talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialLinks {
    Unix,
    EncryptedTcp,
}

/// A running tree.
pub struct TrialTree {
    // Before the network, which it needs when it is dropped.
    stream: Stream,
    network: Network,
    back_ends: u64,
    next_wave: u64,
    /// From before the first start until the whole tree has answered.
    pub startup: Duration,
}

impl TrialTree {
    /// Starts a tree with these fan-outs on this machine, and waits until it stands.
    ///
    /// # Errors
    /// What a tree of this machine can fail with.
    pub fn open(fan_outs: &[u32], links: TrialLinks) -> Result<Self, Failure> {
        let (transport, is_encrypted) = match links {
            TrialLinks::Unix => (TransportKind::Unix, false),
            TrialLinks::EncryptedTcp => (TransportKind::Tcp, true),
        };
        let shape = Shape::levels(fan_outs).map_err(Failure::usage)?;
        let program = Program::new(sapwood::node_program()?).argument(BACK_END).binds_itself();
        let builder = Network::builder(Topology::from_shape(&shape, &Hosts::local()))
            .transport(transport)
            .encryption(is_encrypted)
            .back_end(program);
        let begin = Instant::now();
        let network = builder.open()?;
        let startup = begin.elapsed();
        let stream = network.stream(&network.everyone()).up("sum").open()?;
        let back_ends = u64::from(shape.back_end_count());
        Ok(Self { stream, network, back_ends, next_wave: 0, startup })
    }

    /// Asks for one wave after another, and gives the median time of those after the first
    /// `warmup` in microseconds.
    ///
    /// # Errors
    /// When an answer is wrong, incomplete or late.
    pub fn round_trip(
        &mut self,
        bytes: usize,
        rounds: usize,
        warmup: usize,
    ) -> Result<f64, Failure> {
        let elements = (bytes / size_of::<f64>()) as u64;
        let mut samples = Vec::with_capacity(rounds);
        for round in 0..warmup + rounds {
            let wave = self.next_wave;
            self.next_wave += 1;
            let begin = Instant::now();
            self.stream.broadcast(TAG, Values::new().array(&[elements, wave]))?;
            let answer = self.stream.recv_timeout(ANSWER_LIMIT)?;
            let elapsed = begin.elapsed();
            self.check(&answer, elements, wave)?;
            if round >= warmup {
                samples.push(elapsed.as_secs_f64() * 1e6);
            }
        }
        samples.sort_by(f64::total_cmp);
        let middle = samples.get(samples.len() / 2).copied();
        middle.ok_or_else(|| Failure::own(&"no round trip was measured"))
    }

    fn check(&self, answer: &Answer, elements: u64, wave: u64) -> Result<(), Failure> {
        let sum = answer.value()?.array::<f64>(0).map_err(Error::from)?;
        let ranks = self.back_ends * (self.back_ends + 1) / 2;
        let expected = |at: u64| (ranks + self.back_ends * element(at, wave)) as f64;
        let is_right = sum.len() as u64 == elements
            && (0..).zip(sum.iter()).all(|(at, value)| *value == expected(at));
        match is_right {
            true => Ok(()),
            false => Err(Failure::own(&format!("wave {wave} has a wrong sum"))),
        }
    }

    /// Ends the tree.
    ///
    /// # Errors
    /// As [`Network::close`].
    pub fn close(self) -> Result<(), Failure> {
        self.stream.close()?;
        Ok(self.network.close()?)
    }
}

/// What a back-end adds to its rank, counted from 1, in this element of this wave.
fn element(at: u64, wave: u64) -> u64 {
    at % ELEMENT_PERIOD + wave % WAVE_PERIOD
}

/// Answers until the network ends.
///
/// # Errors
/// When the tree cannot be joined, or fails.
pub fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let rank = u64::from(back_end.rank()) + 1;
    loop {
        let received = match back_end.recv() {
            Ok(received) => received,
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        let words = received.values().array::<u64>(0).map_err(Error::from)?;
        let [elements, wave, ..] = *words else {
            return Err(Failure::own(&"internal error: a trial has two numbers; report this line"));
        };
        let values: Vec<f64> =
            (0..elements.min(ELEMENTS_MAX)).map(|at| (rank + element(at, wave)) as f64).collect();
        back_end.reply(&received, Values::new().array(&values))?;
        back_end.flush()?;
    }
}
