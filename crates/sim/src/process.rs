//! A process of the simulated tree: a real node with what its runtime would keep for it.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_node::{Instant, Job, LinkId, Node, Role};
use sapwood_packet::Rank;

use crate::agenda::Time;
use crate::program::Leaf;

/// How a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// It has been stopped: it does nothing, and no other process is told.
    Stopped,
    /// It has ended by itself.
    Ended,
    /// It has crashed.
    Crashed,
}

/// Something that a process learns in its next turn, besides bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A process requests a connection.
    ConnectionRequest { dialer: usize, attempt: u64 },
    /// Its connection attempt has succeeded.
    Up { attempt: u64, wire: usize },
    /// Its connection attempt has failed.
    Failed { attempt: u64, is_refused: bool },
    /// A process that it has started has ended.
    Exited { rank: Rank },
    /// The time limit for the processes that it has started.
    StartLimit,
    /// Its application ends it.
    Leave,
}

/// One end of a wire, as its process knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) wire: usize,
    pub(crate) side: usize,
    /// Whether the node has asked for transmission and not all has been written.
    pub(crate) is_armed: bool,
    /// Whether it closes when all is written.
    pub(crate) is_leaving: bool,
    /// Whether it is on the list of links with something to read.
    pub(crate) is_listed: bool,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) node: Node,
    pub(crate) role: Role,
    /// The rank that it was given, once it is known.
    pub(crate) rank: Option<Rank>,
    pub(crate) state: State,
    /// Its clock is ahead of virtual time by this much.
    pub(crate) clock_offset: Time,
    /// How many times slower than others it is.
    pub(crate) slowness: u64,
    /// Faults that last: how many of each are on it at the moment.
    pub(crate) stops: u32,
    pub(crate) slows: u32,
    /// On which side of each partition it is, one bit each.
    pub(crate) side_bits: u64,
    /// By link number.
    pub(crate) ports: Vec<Option<Port>>,
    /// Links with something to read, in the order in which it came.
    pub(crate) readable: VecDeque<LinkId>,
    /// Links with something to write.
    pub(crate) dirty: Vec<LinkId>,
    pub(crate) notices: VecDeque<Notice>,
    /// When the node wants to be woken, by its own clock.
    pub(crate) wake: Option<Instant>,
    /// How often it has been woken since the last count.
    pub(crate) wakes: u32,
    /// The time of the turn that is on the agenda.
    pub(crate) turn_at: Option<Time>,
    pub(crate) busy_until: Time,
    pub(crate) turns: u64,
    /// The number of its last attempt to connect, and whether that is still open.
    pub(crate) attempt: u64,
    pub(crate) is_dialing: bool,
    /// The last target of its connection attempts.
    pub(crate) dialed: usize,
    pub(crate) dialed_at: Time,
    /// Whether it takes connections.
    pub(crate) listens: bool,
    /// The process that has started it.
    pub(crate) starter: Option<usize>,
    /// The wire to the parent that it knows, and when it was taken in there.
    pub(crate) parent_wire: Option<(usize, Time)>,
    /// The processes that it has started.
    pub(crate) started: Vec<Rank>,
    /// When its node said that the network is over.
    pub(crate) over_since: Option<Time>,
    /// Whether it left because its application said so.
    pub(crate) has_left: bool,
    pub(crate) leaf: Leaf,
    /// Why it last broke a link, as far as that has been written down.
    pub(crate) distrusted: Option<String>,
    /// Running jobs of filters, and when they end.
    pub(crate) jobs: Vec<(Time, Job)>,
}

impl Process {
    pub(crate) fn new(node: Node, role: Role, rank: Option<Rank>) -> Self {
        Self {
            node,
            role,
            rank,
            state: State::Running,
            clock_offset: 0,
            slowness: 1,
            stops: 0,
            slows: 0,
            side_bits: 0,
            ports: Vec::new(),
            readable: VecDeque::new(),
            dirty: Vec::new(),
            notices: VecDeque::new(),
            wake: None,
            wakes: 0,
            turn_at: None,
            busy_until: 0,
            turns: 0,
            attempt: 0,
            is_dialing: false,
            dialed: 0,
            dialed_at: 0,
            listens: role == Role::FrontEnd,
            starter: None,
            parent_wire: None,
            started: Vec::new(),
            over_since: None,
            has_left: false,
            leaf: Leaf::default(),
            distrusted: None,
            jobs: Vec::new(),
        }
    }

    /// Whether there is a process at all, though it may be stopped.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Running | State::Stopped)
    }

    /// The time on its own clock.
    pub(crate) fn clock(&self, now: Time) -> Instant {
        Instant(now + self.clock_offset)
    }

    /// The virtual time at which its clock shows this.
    pub(crate) fn virtual_time(&self, clock: Instant) -> Time {
        clock.0.saturating_sub(self.clock_offset)
    }

    /// Gives a wire a link number, the smallest that is free.
    pub(crate) fn add_port(&mut self, wire: usize, side: usize) -> LinkId {
        let free = self.ports.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.ports.push(None);
            self.ports.len() - 1
        });
        let port = Port { wire, side, is_armed: false, is_leaving: false, is_listed: false };
        self.ports[index] = Some(port);
        LinkId(index as u32)
    }

    pub(crate) fn port(&mut self, link: LinkId) -> Option<&mut Port> {
        self.ports.get_mut(link.0 as usize)?.as_mut()
    }

    /// Whether it has any link.
    pub(crate) fn is_linked(&self) -> bool {
        self.ports.iter().any(Option::is_some)
    }

    /// Its name in the log.
    pub(crate) fn name(&self) -> String {
        let role = match self.role {
            Role::FrontEnd => "fe",
            Role::Communication => "cp",
            Role::BackEnd => "be",
        };
        match self.rank {
            Some(rank) => alloc::format!("{role} {rank}"),
            None => alloc::format!("{role} ?"),
        }
    }
}
