//! Answers: a value, its contributors, and the missing members with reasons.

use sapwood_node::Missing;
use sapwood_packet::{Packet, RankSet, StreamId, ValuesRef, Wave, question_of};

use crate::{Error, Result};

/// The result of one wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The stream.
    pub stream: StreamId,
    /// The wave: a number that rises in each stream, from 0. Answers to questions
    /// ([`Answer::question`]), and what is sent unasked behind one, have numbers from 2^62 on.
    pub wave: Wave,
    /// The packet that the filters made; none when there is no value.
    pub packet: Option<Packet>,
    /// The back-ends that the value stands for.
    pub contributors: RankSet,
    /// The missing back-ends, grouped by reason; empty when it is complete, and on streams that do
    /// not wait for members.
    pub missing: Vec<Missing>,
    /// Whether this part arrived after its wave had been answered (a straggler).
    pub is_late: bool,
}

impl Answer {
    /// The values.
    ///
    /// # Errors
    /// [`Error::NoValue`] with the missing members and reasons, when a filter failed or no member
    /// contributed.
    pub fn value(&self) -> Result<ValuesRef<'_>> {
        match &self.packet {
            Some(packet) => Ok(packet.values()),
            None => Err(Error::NoValue { missing: self.missing.clone() }),
        }
    }

    /// The number of the packet that this answers, if back-ends have answered one
    /// ([`BackEnd::reply`](crate::BackEnd::reply)): the front-end's packets are counted from 0 in
    /// each stream. `None` for what they have sent unasked.
    #[must_use]
    pub fn question(&self) -> Option<u64> {
        question_of(self.wave)
    }

    /// Whether every member of the stream is in it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.packet.is_some() && self.missing.is_empty()
    }
}

impl From<sapwood_node::Answer> for Answer {
    fn from(answer: sapwood_node::Answer) -> Self {
        let sapwood_node::Answer { stream, wave, packet, contributors, missing, is_late } = answer;
        Self { stream, wave, packet, contributors, missing, is_late }
    }
}
