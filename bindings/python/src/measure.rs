//! What the benchmarks measure from within: the same questions as Python's on the same stream,
//! asked in Rust, and calls of a filter as a communication process makes them.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use sapwood::{Emitter, Error, Packet, RankSet, Tag, ValuesRef, WaveRef};

use crate::error::{self, Failure};
use crate::filter;
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

/// Calls a filter again and again with one wave, in which each child has `elements` numbers that
/// count up from the child's own; gives the CPU seconds that it took, and the sum of what came out.
#[pyfunction]
pub(crate) fn filter_calls(
    py: Python<'_>,
    name: &str,
    children: u32,
    elements: u32,
    calls: u32,
) -> PyResult<(f64, f64)> {
    let failed = |error: &dyn std::fmt::Display| error::own(py, "FilterError", &error.to_string());
    let packets: Vec<Packet> = (0..children)
        .map(|child| {
            let numbers: Vec<f64> = (child..child + elements).map(f64::from).collect();
            Packet::new(1, sapwood::FIRST_TAG, numbers)
        })
        .collect();
    let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, children.saturating_sub(1));
    let wave = WaveRef {
        stream: 1,
        wave: 0,
        packets: &lent,
        contributors: contributors.as_ref(),
        rank: children,
        is_root: true,
        children,
        back_ends: children,
    };
    let registry = filter::registry();
    let made = registry.make(name, ValuesRef::default());
    let mut filter = made.map_err(|error| failed(&error))?;
    let mut emitter = Emitter::new();
    let now = py.import("time")?.getattr("thread_time")?;
    let begin: f64 = now.call0()?.extract()?;
    for _ in 0..calls {
        emitter.clear();
        // As the node's thread for filters does: it takes the interpreter for each call.
        py.detach(|| filter.transform(&wave, &mut emitter)).map_err(|error| failed(&error))?;
    }
    let end: f64 = now.call0()?.extract()?;
    let first = emitter.emissions().next();
    let sum = first.and_then(|(_, values)| Some(values.array::<f64>(0).ok()?.iter().sum()));
    Ok((end - begin, sum.unwrap_or(f64::NAN)))
}
