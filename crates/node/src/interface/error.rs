//! What an application can ask of a node that it cannot do.

use alloc::string::String;
use core::fmt;

use sapwood_filter::FilterError;
use sapwood_packet::{OutOfMemory, Rank, RankSet, StreamId, Tag};

/// A call that the node refuses; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// No stream of that number is open here: it was closed, or never opened.
    Stream {
        /// The number.
        stream: StreamId,
    },
    /// A front-end has opened as many streams as it may. Cure: use open ones again.
    NoStreamLeft {
        /// The most.
        count: u32,
    },
    /// A stream asks for members that the network does not have.
    Members {
        /// The ranks that are none of its back-ends.
        ranks: RankSet,
    },
    /// A filter cannot be made here.
    Filter(FilterError),
    /// A back-end sends in a wave that it has passed already. Cure: number waves upwards.
    WavePassed {
        /// The wave that was named.
        wave: u64,
        /// The first one that is still open to this back-end.
        next: u64,
    },
    /// A back-end answers a question that it has answered already, or before one that it has
    /// answered. Cure: answer each question once, in the order of their arrival.
    QuestionPassed {
        /// The question's number.
        question: u64,
    },
    /// The answer to a question is asked for that has been given. Cure: ask again.
    Answered {
        /// The question's number.
        question: u64,
    },
    /// A back-end numbers a wave as one that answers a question. Cure: numbers below
    /// [`ANSWERS_BEGIN`], or answer the question.
    ///
    /// [`ANSWERS_BEGIN`]: sapwood_packet::ANSWERS_BEGIN
    AnswerWave {
        /// The wave that was named.
        wave: u64,
    },
    /// A packet that no back-end can answer, since it is not the front-end's own. Cure: send
    /// unasked.
    NoQuestion,
    /// No question can be asked on the stream, since it does not give one answer for all of its
    /// members.
    NotAskable {
        /// The stream.
        stream: StreamId,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The values are longer than a packet may be.
    TooLong {
        /// Their length in bytes.
        bytes: u64,
    },
    /// The process has no memory for the packet.
    Memory(OutOfMemory),
    /// A packet's tag is one of the network's own. Cure: tags from [`FIRST_TAG`] on.
    ///
    /// [`FIRST_TAG`]: sapwood_packet::FIRST_TAG
    Tag {
        /// The tag.
        tag: Tag,
    },
    /// A packet has more values than one may have. Cure: send arrays, or several packets.
    TooManyValues {
        /// How many it has.
        count: usize,
    },
    /// A stream asks for more than one message can tell the tree: for more filters in one direction
    /// than [`FILTERS_MAX`], or for parameters of megabytes. Cure: fewer or shorter ones.
    ///
    /// [`FILTERS_MAX`]: sapwood_wire::limits::FILTERS_MAX
    RequestTooLong,
    /// A file cannot be sent through the tree: it is empty, has a long name, or is too much.
    File {
        /// Its name.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// The network cannot begin to repair itself, since nothing has been kept for that. Cure: open
    /// it with recovery on.
    NotRecovering,
    /// Only the front-end may do this.
    NotFrontEnd,
    /// Only a back-end may do this.
    NotBackEnd,
    /// This process has no rank in a network yet, or no more.
    NotConnected,
    /// A rank that is no member of the stream.
    NotMember {
        /// The rank.
        rank: Rank,
    },
}

impl From<OutOfMemory> for NodeError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<FilterError> for NodeError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

impl NodeError {
    /// Writes the errors that are about questions and their answers.
    fn write_of_question(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuestionPassed { question } => write!(
                f,
                "question {question} has passed: it or a later one has been answered; answer each \
                 once and in order"
            ),
            Self::Answered { question } => {
                write!(f, "the answer to question {question} was given already; ask again")
            }
            Self::AnswerWave { wave } => write!(
                f,
                "wave {wave} is for the answer to a question; number waves below {} or use reply",
                sapwood_packet::ANSWERS_BEGIN
            ),
            Self::NoQuestion => f.write_str(
                "the packet was made by a filter and is no question; send on its stream instead",
            ),
            Self::NotAskable { stream, why } => {
                write!(f, "stream {stream} takes no question: {why}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream { stream } => write!(f, "stream {stream} is not open; open it first"),
            Self::NoStreamLeft { count } => write!(
                f,
                "this front-end has opened {count} streams, the most of one front-end; use open \
                 streams again, or start a new network"
            ),
            Self::Members { ranks } => write_strangers(f, ranks),
            Self::Filter(error) => write!(f, "{error}"),
            Self::WavePassed { wave, next } => {
                write!(f, "wave {wave} has passed; the next one to send in is {next}")
            }
            Self::QuestionPassed { .. }
            | Self::Answered { .. }
            | Self::AnswerWave { .. }
            | Self::NoQuestion
            | Self::NotAskable { .. } => self.write_of_question(f),
            Self::TooLong { bytes } => write!(
                f,
                "a packet of {bytes} bytes is too long; at most {} are allowed, send several",
                sapwood_wire::limits::PACKET_BYTES_MAX
            ),
            Self::Memory(error) => write!(f, "{error}"),
            Self::Tag { tag } => write!(
                f,
                "tag {tag} is the network's own; an application's begin at {}",
                sapwood_packet::FIRST_TAG
            ),
            Self::TooManyValues { count } => write!(
                f,
                "a packet of {count} values has too many; at most {} are allowed, send arrays",
                sapwood_packet::DIRECTIVES_MAX
            ),
            Self::RequestTooLong => write!(
                f,
                "the stream asks for more than {} filters in one direction or for parameters of \
                 megabytes; ask for fewer",
                sapwood_wire::limits::FILTERS_MAX
            ),
            Self::File { name, bytes } => write!(
                f,
                "file '{name}' of {bytes} bytes cannot be shipped; a network takes {} files of at \
                 most {} bytes, {} in all, with names of at most {}",
                sapwood_wire::limits::FILES_MAX,
                sapwood_wire::limits::FILE_BYTES_MAX,
                sapwood_wire::limits::FILES_BYTES_MAX,
                sapwood_wire::limits::FILE_NAME_BYTES_MAX
            ),
            Self::NotRecovering => f.write_str(
                "recovery cannot be switched on: the network was opened without it; open it with \
                 recovery",
            ),
            Self::NotFrontEnd => f.write_str("only the front-end may do this"),
            Self::NotBackEnd => f.write_str("only a back-end may do this"),
            Self::NotConnected => f.write_str("this process is not part of a network"),
            Self::NotMember { rank } => write!(f, "rank {rank} is no member of this stream"),
        }
    }
}

/// Which ranks a stream cannot have as its members; none where it was given none at all.
fn write_strangers(f: &mut fmt::Formatter<'_>, ranks: &RankSet) -> fmt::Result {
    match ranks.len() {
        0 => f.write_str("the communicator of the stream is empty; take its back-ends from ")?,
        1 => write!(f, "rank {ranks} is not a connected back-end; take them from ")?,
        _ => write!(f, "ranks {ranks} are not connected back-ends; take them from ")?,
    }
    f.write_str("Network::everyone()")
}

impl core::error::Error for NodeError {}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn members_that_are_none_one_or_several_have_their_words() {
        for (ranks, words) in [
            ("", "the communicator of the stream is empty; take its back-ends from"),
            ("8", "rank 8 is not a connected back-end; take them from"),
            ("8-9", "ranks 8-9 are not connected back-ends; take them from"),
            ("1,4", "ranks 1,4 are not connected back-ends; take them from"),
        ] {
            let error = NodeError::Members { ranks: ranks.parse().unwrap() };
            assert_eq!(error.to_string(), format!("{words} Network::everyone()"));
        }
    }
}
