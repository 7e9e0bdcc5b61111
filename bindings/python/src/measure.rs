//! What `sapwood.bench` compares Python with: the same questions on the same stream, asked in Rust.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sapwood::{Error, Tag};

use crate::error::Failure;
use crate::stream::Stream;

/// A round that takes longer is none.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks a stream `rounds` times for one wave of `elements` numbers of the benchmark's back-ends,
/// from wave `first` on; gives the seconds that each took and the first numbers of the answers.
#[pyfunction]
pub(crate) fn round_trips(
    py: Python<'_>,
    stream: &Bound<'_, Stream>,
    tag: Tag,
    elements: u64,
    first: u64,
    rounds: u64,
) -> PyResult<Vec<(f64, f64)>> {
    stream.get().enter(py, move |stream| {
        let mut taken = Vec::with_capacity(usize::try_from(rounds).unwrap_or(0));
        for wave in first..first.saturating_add(rounds) {
            let begin = Instant::now();
            stream.broadcast(tag, [elements, wave, 1, 0, 0, 0, 0])?;
            let answer = stream.recv_timeout(ROUND_TIMEOUT)?;
            let sums = answer.value()?.array::<f64>(0).map_err(Error::from)?;
            let sum = sums.first().copied().unwrap_or(f64::NAN);
            taken.push((begin.elapsed().as_secs_f64(), sum));
        }
        Ok::<_, Failure>(taken)
    })
}
