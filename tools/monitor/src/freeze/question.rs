//! The question for frozen events, as the values of a packet: those of the question for waits, by
//! which a leaf sets its clock, and then
//!
//! ```text
//!  6  %uld  nanoseconds before the last call of a rank that returned
//!  7  %uld  nanoseconds from which on an activity is long
//!  8  %aud  ranges of the ranks that are wanted: first and last in turn; none for all
//! ```

use sapwood::{Error, RankSet, Values, ValuesRef};

use crate::control::request::{ranges, rank_set};
use crate::waits::Question;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FreezeQuestion {
    /// The wave, the program's size and the clocks; nothing is told to be settled.
    pub(crate) clocks: Question,
    pub(crate) last_ns: u64,
    pub(crate) long_ns: u64,
    /// Empty for all.
    pub(crate) ranks: RankSet,
}

impl FreezeQuestion {
    pub(crate) fn encode(&self) -> Values {
        let values = self.clocks.encode();
        values.scalar(self.last_ns).scalar(self.long_ns).array(&ranges(&self.ranks))
    }

    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Self, Error> {
        Ok(Self {
            clocks: Question::decode(values)?,
            last_ns: values.scalar(6)?,
            long_ns: values.scalar(7)?,
            ranks: rank_set(values.array(8)?),
        })
    }

    pub(crate) fn wants(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.contains(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let question = FreezeQuestion {
            clocks: Question { wave: 3, world_size: 8, ..Question::default() },
            last_ns: 10,
            long_ns: 20,
            ranks: "0-3,7".parse().expect("ranks"),
        };
        let read = FreezeQuestion::decode(question.encode().as_ref()).expect("it was just written");
        assert_eq!(read, question);
        assert!(read.wants(7) && !read.wants(4));
        assert!(FreezeQuestion::decode(Question::default().encode().as_ref()).is_err());
    }
}
