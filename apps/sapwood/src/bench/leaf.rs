//! The back-end of the benchmarks, and what it answers.
//!
//! Owns the request that goes down ([`Request`]), the loop of a leaf, and the sum that the
//! front-end must receive ([`ExpectedSum`]). The values are those of the floor's leaves: each
//! element differs along the array and the first one from wave to wave, so that a shifted array, a
//! missing leaf or an old wave gives a wrong sum. All sums are whole numbers small enough to be
//! exact in an f64.

use std::process::ExitCode;

use sapwood::{Answer, BackEnd, Error, Rank, Tag, Values, ValuesRef};

use crate::exit::Failure;

/// The hidden argument with which this program is a back-end of the benchmarks.
pub(crate) const BACK_END: &str = "bench-back-end";

/// The tag of requests and answers.
pub(super) const TAG: Tag = 100;

/// Most elements of an answer: 64 MiB.
const ELEMENTS_MAX: u64 = (64 << 20) / 8;

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

    fn read(values: ValuesRef<'_>) -> Result<Self, Error> {
        let words = values.array::<u64>(0)?;
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let elements = word(0).clamp(1, ELEMENTS_MAX);
        Ok(Self { elements, first_wave: word(1), waves: word(2) })
    }
}

/// Is a back-end until the network ends.
pub(crate) fn back_end() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let rank = back_end.rank();
    let mut payload: Vec<f64> = Vec::new();
    loop {
        let received = match back_end.recv() {
            Ok(received) => received,
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        };
        let request = Request::read(received.values())?;
        if payload.len() as u64 != request.elements {
            payload = (0..request.elements as usize).map(|at| leaf_value(rank, at)).collect();
        }
        for wave in request.first_wave..request.first_wave.saturating_add(request.waves) {
            payload[0] = leaf_value(rank, 0) + wave_value(wave);
            match back_end.send(received.stream, TAG, payload.as_slice()) {
                Ok(()) => {}
                Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
                Err(error) => return Err(error.into()),
            }
        }
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
    leaves: usize,
    body: Vec<u8>,
}

impl ExpectedSum {
    /// For that many leaves and elements.
    pub(super) fn new(leaves: usize, elements: usize) -> Self {
        let sums: Vec<f64> = (0..elements).map(|element| base(leaves, element)).collect();
        let body = Values::new().array(&sums).as_ref().body().to_vec();
        Self { leaves, body }
    }

    /// Compares every element of an answer.
    pub(super) fn check(&mut self, answer: &Answer, wave: u64) -> Result<(), Failure> {
        let first = base(self.leaves, 0) + self.leaves as f64 * wave_value(wave);
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

/// An element's sum over all leaves in wave 0.
fn base(leaves: usize, element: usize) -> f64 {
    (leaves * (leaves + 1) / 2 + leaves * (element % ELEMENT_PERIOD)) as f64
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
        let sum: f64 = (0..5).map(|rank| leaf_value(rank, 1030)).sum();
        assert_eq!(sum, base(5, 1030));
    }
}
