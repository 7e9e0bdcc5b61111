//! What the world tells a node.

use alloc::string::String;

use sapwood_packet::Rank;
use sapwood_wire::Cause;

use crate::interface::LinkId;

/// One thing that happened. Given to [`crate::Node::handle_input`] with the time.
#[derive(Debug)]
pub enum Input<'a> {
    /// The link to the parent is up and has proved the network's key.
    ParentUp {
        /// The link.
        link: LinkId,
    },
    /// The connection that [`crate::Output::Connect`] asked for has not come about.
    ConnectFailed {
        /// What was seen, for people.
        reason: String,
        /// Whether no process takes connections at that address.
        is_refused: bool,
    },
    /// A process has connected and proved the network's key; its hello will identify it.
    ChildUp {
        /// The link.
        link: LinkId,
    },
    /// Bytes have come. They must begin with what [`crate::Node::begin_read`] put there.
    Bytes {
        /// The link.
        link: LinkId,
        /// All of them, starting at a multiple of 8.
        bytes: &'a [u8],
    },
    /// Bytes have been read into the memory that [`crate::Node::lend`] gave.
    Filled {
        /// The link.
        link: LinkId,
        /// How many.
        bytes: usize,
    },
    /// Bytes of [`crate::Node::gather`] have been written.
    Transmitted {
        /// The link.
        link: LinkId,
        /// How many.
        bytes: usize,
    },
    /// A link has closed or failed; its number may be used again.
    LinkDown {
        /// The link.
        link: LinkId,
        /// What was seen, for people.
        reason: String,
    },
    /// A process that should have been started has ended before it connected, or never began.
    StartFailed {
        /// Its rank.
        rank: Rank,
        /// Its own words.
        text: String,
    },
    /// A process that was started has ended: if it has not connected, that is a failure as above.
    Exited {
        /// Its rank.
        rank: Rank,
        /// Its own words.
        text: String,
        /// How it has ended.
        cause: Cause,
    },
    /// This process has seen something that costs no answer and that the user may want to know.
    Notice {
        /// What, for display.
        text: String,
    },
    /// The time that [`crate::Node::poll_timeout`] gave has come.
    Timeout,
}
