//! What the application receives: packets at a back-end, answers at the front-end.

use alloc::string::String;
use alloc::vec::Vec;

use sapwood_packet::{Packet, RankSet, StreamId, Wave};

/// Back-ends that an answer lacks, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Who.
    pub ranks: RankSet,
    /// Why, in one line for people.
    pub reason: String,
}

/// What came of one wave: a value, who is in it, who is not, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The stream.
    pub stream: StreamId,
    /// The wave.
    pub wave: Wave,
    /// The value; none when a filter failed or no back-end was left.
    pub packet: Option<Packet>,
    /// The back-ends that the value stands for, or whose packets the filters made nothing of.
    pub contributors: RankSet,
    /// The members of the stream that the wave lacks. Where no filter joins the packets of a wave,
    /// it comes with the wave's last one. On streams that do not wait, only what a filter
    /// refused.
    pub missing: Vec<Missing>,
    /// Whether the wave had been answered before this part of it came.
    pub is_late: bool,
}

impl Answer {
    /// Whether every member of the stream is in it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.packet.is_some()
    }
}

/// One thing for the application. Its bytes count against the stream's window until
/// [`crate::Application::consumed`] is told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// An answer, at the front-end.
    Answer(Answer),
    /// A packet from the front-end, at a back-end.
    Packet(Packet),
}

impl Delivery {
    /// The stream that it came on.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Answer(answer) => answer.stream,
            Self::Packet(packet) => packet.header.stream,
        }
    }

    /// How many bytes of the stream's window it takes up.
    #[must_use]
    pub fn cost(&self) -> u32 {
        let values = match self {
            Self::Answer(answer) => answer.packet.as_ref().map_or(0, |packet| packet.body().len()),
            Self::Packet(packet) => packet.body().len(),
        };
        u32::try_from(values).unwrap_or(u32::MAX).saturating_add(COST_BYTES)
    }
}

/// What a delivery costs besides its values, in bytes.
const COST_BYTES: u32 = 64;
