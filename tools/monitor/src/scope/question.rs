//! The question for the figures of a scope, as the values of a packet:
//!
//! ```text
//!  0  %ud   the number of the scope
//!  1  %uld  the wave
//!  2  %ud   ranks of the program; 0 if that is not known
//!  3  %uld  nanoseconds that a leaf may use for its answer
//!  4  %uld  bytes that an answer may have
//!  5...     the scope
//! ```

use sapwood::{Error, Values, ValuesRef, Wave};
use sapwood_trace::Scope;

/// Where the scope begins.
const SCOPE_AT: usize = 5;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScopeQuestion {
    pub(crate) number: u32,
    pub(crate) wave: Wave,
    pub(crate) world_size: u32,
    pub(crate) cpu_ns: u64,
    pub(crate) bytes_max: u64,
    pub(crate) scope: Scope,
}

impl ScopeQuestion {
    pub(crate) fn encode(&self) -> Values {
        let head = Values::new().scalar(self.number).scalar(self.wave).scalar(self.world_size);
        self.scope.encode(head.scalar(self.cpu_ns).scalar(self.bytes_max))
    }

    /// # Errors
    /// When the values are another question's.
    pub(crate) fn decode(values: ValuesRef<'_>) -> Result<Option<Self>, Error> {
        let (number, wave, world_size) = (values.scalar(0)?, values.scalar(1)?, values.scalar(2)?);
        let (cpu_ns, bytes_max) = (values.scalar(3)?, values.scalar(4)?);
        let scope = Scope::decode(values, SCOPE_AT).ok();
        Ok(scope.map(|scope| Self { number, wave, world_size, cpu_ns, bytes_max, scope }))
    }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::ScopeReduction;

    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written() {
        let question = ScopeQuestion {
            number: 2,
            wave: 9,
            world_size: 8,
            cpu_ns: 1_000,
            bytes_max: 4_096,
            scope: Scope { window: 100, reduction: ScopeReduction::Sums, ..Scope::default() },
        };
        let read = ScopeQuestion::decode(question.encode().as_ref()).expect("values of a question");
        assert_eq!(read, Some(question));
    }
}
