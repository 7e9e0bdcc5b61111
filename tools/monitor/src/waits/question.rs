//! The question for waits, as the values of a packet.
//!
//! ```text
//!  0  %uld   wave to answer in
//!  1  %ud    number of MPI ranks, 0 if it is not known
//!  2  %ud    1 if the ranks are on several hosts
//!  3  %auld  the clock of one host: ticks, nanoseconds, scale, whether it is cycles; or nothing
//!  4  %auld  of several hosts: leaf, by how much its clock is ahead, error; each
//!  5  %auld  how collectives have ended: 6 words each
//! ```
//!
//! and, where answers cost what the number of events costs, what they may:
//!
//! ```text
//!  6  %ud    when events are read: a code of `Coscheduling`
//!  7  %uld   nanoseconds of a processor that a leaf may use for its answer
//! ```

use sapwood::{Error, FIRST_TAG, Tag, Values, ValuesRef, Wave};
use sapwood_trace::{Coscheduling, FileClock, SETTLED_WORDS, Settled};

/// Asks for what the ranks' events say. The answer is a [`sapwood_trace::Gathered`].
pub(crate) const WAITS: Tag = FIRST_TAG + 9;

/// By how much a leaf's clock is ahead of the front-end's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) leaf: u32,
    pub(crate) ahead: i64,
    pub(crate) error: u64,
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) wave: Wave,
    pub(crate) world_size: u32,
    pub(crate) is_spread: bool,
    pub(crate) clock: Option<FileClock>,
    pub(crate) offsets: Vec<Offset>,
    pub(crate) settled: Vec<Settled>,
}

/// What is asked for waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitsQuestion {
    /// The wave, the program's size, the clocks, and what is settled.
    pub(crate) question: Question,
    pub(crate) when: Coscheduling,
    pub(crate) cpu_ns: u64,
}

impl WaitsQuestion {
    pub(crate) fn encode(&self) -> Values {
        self.question.encode().scalar(self.when as u32).scalar(self.cpu_ns)
    }

    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, Error> {
        Ok(Self {
            question: Question::decode(values)?,
            when: Coscheduling::from_code(values.scalar(6)?),
            cpu_ns: values.scalar(7)?,
        })
    }
}

impl Question {
    pub(crate) fn encode(&self) -> Values {
        let clock = |one: FileClock| [one.ticks, one.ns, one.scale, one.is_cycles.into()];
        let clock: Vec<u64> = self.clock.into_iter().flat_map(clock).collect();
        let offset = |one: &Offset| [one.leaf.into(), one.ahead.cast_unsigned(), one.error];
        let offsets: Vec<u64> = self.offsets.iter().flat_map(offset).collect();
        let settled: Vec<u64> = self.settled.iter().flat_map(Settled::words).collect();
        Values::new()
            .scalar(self.wave)
            .scalar(self.world_size)
            .scalar(u32::from(self.is_spread))
            .array(&clock)
            .array(&offsets)
            .array(&settled)
    }

    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, Error> {
        let clock = match values.array::<u64>(3)? {
            &[ticks, ns, scale, is_cycles] => {
                Some(FileClock { ticks, ns, scale, is_cycles: is_cycles != 0 })
            }
            _ => None,
        };
        let offset = |words: &[u64]| {
            let leaf = u32::try_from(words[0]).ok()?;
            Some(Offset { leaf, ahead: words[1].cast_signed(), error: words[2] })
        };
        let offsets: &[u64] = values.array(4)?;
        let settled: &[u64] = values.array(5)?;
        let (settled, _) = settled.as_chunks::<SETTLED_WORDS>();
        Ok(Self {
            wave: values.scalar(0)?,
            world_size: values.scalar(1)?,
            is_spread: values.scalar::<u32>(2)? != 0,
            clock,
            offsets: offsets.chunks_exact(3).filter_map(offset).collect(),
            settled: settled.iter().filter_map(|&words| Settled::read(words)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{Arrival, Pattern};

    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let culprit = Arrival { time: -5, rank: 3, clock: 1, error: 9 };
        let pattern = Pattern::ToRoot;
        let question = Question {
            wave: 7,
            world_size: 8,
            is_spread: true,
            clock: Some(FileClock { ticks: 1, ns: 2, scale: 3, is_cycles: true }),
            offsets: vec![Offset { leaf: 2, ahead: -7, error: 11 }],
            settled: vec![
                Settled { key: (u64::MAX, 4), pattern, culprit: Some(culprit) },
                Settled { key: (1, 2), pattern: Pattern::All, culprit: None },
            ],
        };
        let question = WaitsQuestion { question, when: Coscheduling::Waiting, cpu_ns: 5 };
        let read = WaitsQuestion::decode(question.encode().as_ref()).expect("it was just written");
        assert_eq!(read, question);
    }
}
