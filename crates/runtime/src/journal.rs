//! What happens to one process of a tree, as events of `tracing`: starts, links, members.
//!
//! A program that installs a subscriber gets them; without one each costs a look at an atomic. None
//! is on the way of a packet, and none has a key or what a packet holds.

use sapwood_node::{Event, LinkId, Node};
use sapwood_transport::Link;
use tracing::{debug, info, warn};

/// Logs what the node has reported, at this process.
pub(crate) fn told(node: &Node, event: &Event) {
    let own = own_rank(node);
    match event {
        Event::Ready { back_ends, .. } => {
            info!(target: "sapwood::member", own, %back_ends, "ready");
        }
        Event::Joined { back_ends } => {
            info!(target: "sapwood::member", own, %back_ends, "joined");
        }
        Event::StartFailed { rank, text } => {
            warn!(target: "sapwood::launch", own, rank, text, "not started");
        }
        Event::Lost { rank, back_ends, reason, .. } => {
            warn!(target: "sapwood::member", own, rank, %back_ends, reason, "lost");
        }
        Event::Broken { rank, back_ends, reason, .. } => {
            warn!(target: "sapwood::member", own, rank, %back_ends, reason, "lost, orphans wait");
        }
        Event::Repaired { rank, adopter, orphans, back_ends, .. } => {
            info!(target: "sapwood::member", own, rank, adopter, ?orphans, %back_ends, "adopted");
        }
        Event::Reattached { parent } => {
            info!(target: "sapwood::member", own, parent, "has a new parent");
        }
        Event::FilterFailed { stream, reason } => {
            warn!(target: "sapwood::stream", own, stream, reason, "filter failed");
        }
        Event::Notice { rank, text } => {
            info!(target: "sapwood::member", own, rank, text, "notice");
        }
        Event::StreamOpened { stream } => {
            debug!(target: "sapwood::stream", own, stream, "opened");
        }
        Event::StreamClosed { stream } => {
            debug!(target: "sapwood::stream", own, stream, "closed");
        }
        Event::Ended { on_purpose, reason } => {
            info!(target: "sapwood::member", own, on_purpose, reason, "network ended");
        }
        _ => {}
    }
}

/// Says that a child is started on this host.
pub(crate) fn started(rank: u32, pid: u32) {
    info!(target: "sapwood::launch", rank, process = pid, "started");
}

/// Says that another host is reached for a child.
pub(crate) fn reaching(rank: u32, host: &str) {
    info!(target: "sapwood::launch", rank, host, "reaching the host");
}

/// Says that a link has proved the key.
pub(crate) fn up(id: LinkId, link: &Link) {
    let (number, is_shared) = (id.0, link.is_shared());
    debug!(target: "sapwood::link", link = number, peer = %link.peer(), is_shared, "up");
}

/// Says that a link is closed.
pub(crate) fn down(id: LinkId, reason: &str) {
    debug!(target: "sapwood::link", link = id.0, reason, "down");
}

/// Says that a newcomer has not proved the key.
pub(crate) fn refused(error: &dyn std::fmt::Display) {
    warn!(target: "sapwood::link", error = %Escaped(error), "newcomer refused");
}

/// -1 before the parent has said which it is.
fn own_rank(node: &Node) -> i64 {
    node.rank().map_or(-1, i64::from)
}

/// Text of one line, whatever is in it.
struct Escaped<'a>(&'a dyn std::fmt::Display);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0.to_string())
    }
}
