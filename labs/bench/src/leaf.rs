//! The back-end of the benchmarks, and what it answers.
//!
//! Owns the request that goes down ([`Request`]), the loop of a leaf, and the sum that the
//! front-end must receive ([`ExpectedSum`]). The values are those of the floor's leaves: each
//! element differs along the array and the first one from wave to wave, so that a shifted array, a
//! missing leaf or an old wave gives a wrong sum. All sums are whole numbers small enough to be
//! exact in an f64.

use std::process::ExitCode;

use sapwood::{Answer, BackEnd, Error, Rank, Received, StreamId, Tag, Values, ValuesRef};

use super::asker::{ECHO, FLUSHED, QUEUED};
use super::bulk_leaf::BulkLeaf;
use super::disturbance::{BURN, FLOOD, STOP, burn, flood, stopped};
use super::oracle::{FLOW, flow};
use sapwood_command_line::exit::Failure;
use sapwood_random::Random;

/// The hidden argument with which this program is a back-end of the benchmarks.
pub const BACK_END: &str = "bench-back-end";

/// The tag of requests and answers.
pub(super) const TAG: Tag = 100;

/// The tag of requests that are answered when numbers have been sorted; the fourth number of the
/// request says how many.
pub(super) const SORT: Tag = TAG + 40;

/// Most numbers that are sorted.
const SORTED_MAX: u64 = 1 << 16;

/// Most elements of an answer: 512 MiB.
const ELEMENTS_MAX: u64 = (512 << 20) / 8;

const ELEMENT_PERIOD: usize = 1024;
const WAVE_PERIOD: u64 = 1 << 20;

/// Bytes before the first element in the body of an array: its length.
const ARRAY_HEAD_BYTES: usize = 8;

/// What the front-end asks of every leaf: waves `first_wave..first_wave + waves` of `elements`
/// f64s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub elements: u64,
    pub first_wave: u64,
    pub waves: u64,
}

impl Request {
    /// As values: one array of 64 bytes with its length, the payload of the floor's command.
    pub(super) fn values(self) -> Values {
        Values::new().array(&[self.elements, self.first_wave, self.waves, 0, 0, 0, 0])
    }

    pub(super) fn read(values: ValuesRef<'_>) -> Result<Self, Error> {
        let words = values.array::<u64>(0)?;
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let elements = word(0).clamp(1, ELEMENTS_MAX);
        Ok(Self { elements, first_wave: word(1), waves: word(2) })
    }
}

/// Is a back-end until the network ends.
pub fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let mut payload = Payload::default();
    let mut bulk = BulkLeaf::default();
    loop {
        let received = match back_end.recv() {
            Ok(received) => received,
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        if bulk.serve(&mut back_end, &received)? {
            continue;
        }
        let done = match received.tag() {
            ECHO => echo(&mut back_end, &received),
            FLUSHED | QUEUED => count(&mut back_end, &received),
            BURN => burn(&mut back_end, &received),
            FLOOD => flood(&mut back_end, &received),
            FLOW => flow(&mut back_end, &received),
            STOP => stopped(&mut back_end, received.stream, received.stream, 0),
            SORT => {
                sort(&received)?;
                let request = Request::read(received.values())?;
                payload.answer(&mut back_end, received.stream, request)
            }
            _ => {
                let request = Request::read(received.values())?;
                payload.answer(&mut back_end, received.stream, request)
            }
        };
        match done {
            // A stream that is closed asks for nothing any more.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sorts as many numbers as a request asks for, as compute-gsum of EventSpace's authors does.
fn sort(received: &Received) -> Result<(), Error> {
    let words = received.values().array::<u64>(0)?;
    let count = words.get(3).copied().unwrap_or(0).min(SORTED_MAX);
    let mut random = Random::new(count);
    let mut numbers: Vec<u64> = (0..count).map(|_| random.below(u64::MAX)).collect();
    numbers.sort_unstable();
    std::hint::black_box(&numbers);
    Ok(())
}

/// Sends a number back.
fn echo(back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
    let number: i32 = received.values().scalar(0)?;
    back_end.send(received.stream, ECHO, number)
}

/// Sends the numbers up to the one that is asked for, each in a wave of its own.
fn count(back_end: &mut BackEnd, received: &Received) -> Result<(), Error> {
    let waves: i32 = received.values().scalar(0)?;
    for number in 0..waves {
        back_end.send(received.stream, received.tag(), number)?;
        if received.tag() == FLUSHED {
            back_end.flush()?;
        }
    }
    Ok(())
}

/// The values of one back-end, made once and changed from wave to wave.
#[derive(Debug, Default)]
pub(super) struct Payload {
    elements: Vec<f64>,
}

impl Payload {
    /// Sends the waves that a request asks for.
    pub(super) fn answer(
        &mut self,
        back_end: &mut BackEnd,
        stream: StreamId,
        request: Request,
    ) -> Result<(), Error> {
        let rank = back_end.rank();
        for wave in request.first_wave..request.first_wave.saturating_add(request.waves) {
            let elements = self.elements_of(rank, request.elements, wave);
            back_end.send(stream, TAG, elements)?;
        }
        Ok(())
    }

    /// What a back-end sends in a wave.
    pub(super) fn elements_of(&mut self, rank: Rank, elements: u64, wave: u64) -> &[f64] {
        if self.elements.len() as u64 != elements {
            self.elements = (0..elements as usize).map(|at| leaf_value(rank, at)).collect();
        }
        self.elements[0] = leaf_value(rank, 0) + wave_value(wave);
        &self.elements
    }
}

fn leaf_value(rank: Rank, element: usize) -> f64 {
    (rank as usize + 1 + element % ELEMENT_PERIOD) as f64
}

fn wave_value(wave: u64) -> f64 {
    (wave % WAVE_PERIOD) as f64
}

/// What the front-end must receive, computed without the tree.
pub(super) struct ExpectedSum {
    ranks: Ranks,
    body: Vec<u8>,
}

impl ExpectedSum {
    /// For that many leaves and elements.
    pub(super) fn new(leaves: usize, elements: usize) -> Self {
        Self::over(0..leaves as Rank, elements)
    }

    /// For the leaves of these ranks.
    pub(super) fn over(leaves: impl Iterator<Item = Rank>, elements: usize) -> Self {
        let ranks = Ranks::of(leaves);
        let sums: Vec<f64> = (0..elements).map(|element| ranks.base(element)).collect();
        let body = Values::new().array(&sums).as_ref().body().to_vec();
        Self { ranks, body }
    }

    /// Compares every element of an answer.
    pub(super) fn check(&mut self, answer: &Answer, wave: u64) -> Result<(), Failure> {
        let first = self.ranks.base(0) + self.ranks.count as f64 * wave_value(wave);
        self.body[ARRAY_HEAD_BYTES..ARRAY_HEAD_BYTES + 8].copy_from_slice(&first.to_le_bytes());
        let values = answer.value()?;
        if answer.is_complete() && values.body() == self.body {
            return Ok(());
        }
        let found = values.array::<f64>(0).map_err(Error::from)?;
        Err(Failure::own(&format!(
            "wave {wave}: the sum over {} begins with {:?}, the right one with {first}; no figure \
             of this run may be used",
            answer.contributors,
            found.first()
        )))
    }
}

/// How many leaves there are, and the sum of their ranks, each counted from 1.
struct Ranks {
    count: usize,
    sum: usize,
}

impl Ranks {
    fn of(leaves: impl Iterator<Item = Rank>) -> Self {
        let add = |ranks: Self, rank: Rank| Self {
            count: ranks.count + 1,
            sum: ranks.sum + rank as usize + 1,
        };
        leaves.fold(Self { count: 0, sum: 0 }, add)
    }

    /// An element's sum over all of them in wave 0.
    fn base(&self, element: usize) -> f64 {
        (self.sum + self.count * (element % ELEMENT_PERIOD)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_out_of_its_values() {
        let request = Request { elements: 8, first_wave: 1 << 40, waves: 3 };
        let values = request.values();
        assert_eq!(values.as_ref().body().len(), sapwood_floor::COMMAND_PAYLOAD_BYTES);
        assert_eq!(Request::read(values.as_ref()).unwrap(), request);
    }

    #[test]
    fn the_expected_sum_is_the_sum_of_the_leaves() {
        let ranks = || [0, 1, 4, 7].into_iter();
        let sum: f64 = ranks().map(|rank| leaf_value(rank, 1030)).sum();
        assert_eq!(sum, Ranks::of(ranks()).base(1030));
    }
}
