//! Connections between hosts that break while both processes live, and those that cannot be made.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_group::{Input, MemberId, Message, Time};

/// How often the connection of each pair of hosts has broken, which dials fail, and what waits.
#[derive(Debug, Default)]
pub(super) struct Connections {
    breaks: BTreeMap<(usize, usize), u64>,
    /// Until when dials from one host to another fail.
    refused: BTreeMap<(usize, usize), Time>,
    /// What a member has sent while it had no connection.
    waiting: BTreeMap<(usize, MemberId), Vec<Message>>,
    /// How many connections have broken of which the process on this host has still to be told: a
    /// stopped one may have had several.
    untold: BTreeMap<(usize, MemberId), usize>,
}

/// The connection by which something comes; nothing comes any more by one that has broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pair: (usize, usize),
    breaks: u64,
}

impl Connections {
    /// The connection between two hosts as it is now.
    pub(super) fn between(&self, one: usize, other: usize) -> Connection {
        let pair = (one.min(other), one.max(other));
        Connection { pair, breaks: self.breaks.get(&pair).copied().unwrap_or(0) }
    }

    /// The connection that an input depends on.
    pub(super) fn carrier(&self, from: usize, to: usize, input: &Input) -> Option<Connection> {
        let is_carried = matches!(input, Input::Message { .. } | Input::LinkUp { .. });
        is_carried.then(|| self.between(from, to))
    }

    pub(super) fn is_whole(&self, connection: Connection) -> bool {
        self.between(connection.pair.0, connection.pair.1) == connection
    }

    pub(super) fn break_between(&mut self, one: usize, other: usize) {
        *self.breaks.entry((one.min(other), one.max(other))).or_insert(0) += 1;
    }

    pub(super) fn refuse(&mut self, from: usize, to: usize, until: Time) {
        self.refused.insert((from, to), until);
    }

    pub(super) fn is_refused(&self, from: usize, to: usize, now: Time) -> bool {
        self.refused.get(&(from, to)).is_some_and(|until| now < *until)
    }

    /// A message waits until there is a connection.
    pub(super) fn keep(&mut self, from: usize, to: MemberId, message: Message) {
        self.waiting.entry((from, to)).or_default().push(message);
    }

    /// What has waited for a member; nothing waits any more.
    pub(super) fn take(&mut self, from: usize, to: MemberId) -> Vec<Message> {
        self.waiting.remove(&(from, to)).unwrap_or_default()
    }

    /// A connection has broken. Until its member is told what it sends goes by the broken one, and
    /// is lost.
    pub(super) fn lose(&mut self, from: usize, to: MemberId) {
        *self.untold.entry((from, to)).or_insert(0) += 1;
    }

    /// The member is told of the first of them.
    pub(super) fn note_told(&mut self, from: usize, to: MemberId) {
        let left = self.untold.remove(&(from, to)).unwrap_or(0).saturating_sub(1);
        if left > 0 {
            self.untold.insert((from, to), left);
        }
    }

    /// Whether a member sends by a connection that has broken.
    pub(super) fn is_lost(&self, from: usize, to: MemberId) -> bool {
        self.untold.contains_key(&(from, to))
    }

    /// The process on a host has ended, and with it what it wanted to send.
    pub(super) fn forget(&mut self, host: usize) {
        self.waiting.retain(|entry, _| entry.0 != host);
        self.untold.retain(|entry, _| entry.0 != host);
    }
}
