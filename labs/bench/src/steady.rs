//! A stream of sums that goes on whatever else happens, each of them compared with what it must be.
//!
//! Owns the neighbour of the experiments: a stream over some of a tree's leaves, its round trips
//! and its streamed waves. Between its answers the caller has a turn, to deal with other streams of
//! the same network.

use std::time::{Duration, Instant};

use sapwood::{Communicator, Network, Stream};
use sapwood_floor::statistics::median;

use super::leaf::{ExpectedSum, Request, TAG};
use super::scale::DEADLINE;
use sapwood_command_line::exit::Failure;

/// Answers between two turns of the caller.
pub(super) const ANSWERS_PER_TURN: u64 = 16;

/// How long the round trips of one run may take together, about.
const ROUND_TRIPS_TIME: Duration = Duration::from_secs(2);

/// A turn in which there is nothing to do.
pub(super) fn nothing() -> Result<(), Failure> {
    Ok(())
}

/// The stream, and how far it has come.
pub(super) struct SteadyStream {
    stream: Stream,
    expected: ExpectedSum,
    elements: u64,
    next_wave: u64,
}

impl SteadyStream {
    /// Over some leaves, with answers of that many f64s.
    pub(super) fn open(
        network: &Network,
        members: &Communicator,
        elements: usize,
    ) -> Result<Self, Failure> {
        let stream = network.stream(members).up("sum").open()?;
        let expected = ExpectedSum::over(members.ranks().iter(), elements);
        Ok(Self { stream, expected, elements: elements as u64, next_wave: 0 })
    }

    /// Asks for the next waves.
    pub(super) fn ask(&mut self, waves: u64) -> Result<(), Failure> {
        let request = Request { elements: self.elements, first_wave: self.next_wave, waves };
        Ok(self.stream.broadcast(TAG, request.values())?)
    }

    /// Receives the next wave that was asked for, and compares it.
    pub(super) fn check_next(&mut self) -> Result<(), Failure> {
        let answer = self.stream.recv_timeout(DEADLINE)?;
        self.expected.check(&answer, self.next_wave)?;
        self.next_wave += 1;
        Ok(())
    }

    /// The median of this number of round trips, in microseconds; of fewer if they take too long.
    pub(super) fn round_trips(
        &mut self,
        rounds: u64,
        mut aside: impl FnMut() -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let mut samples = Vec::with_capacity(rounds as usize);
        let until = Instant::now() + ROUND_TRIPS_TIME;
        for _ in 0..rounds {
            let begin = Instant::now();
            self.ask(1)?;
            self.check_next()?;
            samples.push(begin.elapsed().as_secs_f64() * 1e6);
            aside()?;
            if Instant::now() > until {
                break;
            }
        }
        median(&samples).ok_or_else(|| Failure::own(&"no round trip was measured"))
    }

    /// How many waves per second come when the leaves send as fast as they may. They are asked for
    /// this number at a time until the run has taken its time.
    pub(super) fn rate(
        &mut self,
        batch: u64,
        time: Duration,
        mut aside: impl FnMut() -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        let begin = Instant::now();
        let mut waves = 0;
        while waves == 0 || begin.elapsed() < time {
            self.ask(batch)?;
            for wave in 0..batch {
                self.check_next()?;
                if wave % ANSWERS_PER_TURN == 0 {
                    aside()?;
                }
            }
            waves += batch;
        }
        Ok(waves as f64 / begin.elapsed().as_secs_f64())
    }

    /// Closes the stream.
    pub(super) fn close(self) -> Result<(), Failure> {
        Ok(self.stream.close()?)
    }
}
