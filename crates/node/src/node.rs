//! The node: its parts, and the two ways in and out.

use sapwood_link::{Filled, MemoryAdvice};
use sapwood_packet::Rank;
use sapwood_wire::Cause;

use crate::inbound::Inbound;
use crate::interface::{Input, Instant, LinkId, Output, Recovery, Settings};
use crate::members::membership::Membership;
use crate::recovery::change::TreeChange;
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::turn::Turn;
use crate::turn::links::Peer;

#[cfg(feature = "mutations")]
use crate::interface::Mutation;

/// Later than any deadline.
const NEVER: Instant = Instant(u64::MAX);

/// One process of the tree, without its I/O.
#[derive(Debug)]
pub struct Node {
    /// What all stages of a turn share.
    pub(crate) turn: Turn,
    pub(crate) membership: Membership,
    pub(crate) streams: Streams,
}

impl Node {
    /// Names the receiver of notices of memory in which large packets are put together.
    pub fn set_memory_advice(&mut self, advice: MemoryAdvice) {
        self.turn.pool.set_advice(advice);
    }

    /// Cuts large packets into chunks of this many bytes, a multiple of 256; the same in all
    /// processes of a network, and before this one's first input. Short chunks make tests of them
    /// cheap.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        self.turn.chunk_bytes = bytes;
    }

    /// A node without links. A front-end is given its children with [`Node::expect`].
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            membership: Membership::new(),
            turn: Turn::new(settings),
            streams: Streams::default(),
        }
    }

    /// Whether this process notes events of waves and packets: then calls of the application need
    /// the time at which they are made ([`Node::set_time`]), for which nothing else has a use.
    #[inline]
    #[must_use]
    pub fn notes_hops(&self) -> bool {
        self.turn.hops.is_on()
    }

    /// Sets the time before the first input; otherwise the first heartbeat would count the whole
    /// time since the clock's zero as delay. Also before a call of the application.
    pub fn set_time(&mut self, now: Instant) {
        self.turn.now = now;
    }

    /// Changes the node. Drain [`Node::poll_output`] before the next change.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.turn.now = now;
        self.turn.transformed = None;
        if self.turn.reclaims() {
            self.reclaim();
        }
        match input {
            Input::Bytes { link, bytes } => self.inbound().bytes(link, bytes),
            Input::Transmitted { link, bytes } => {
                if self.turn.parent == Some(link) {
                    self.streams.end_runs(&mut self.turn);
                }
                if let Some(open) = self.turn.links.link_mut(link) {
                    open.outbox.transmitted(bytes, &mut self.turn.pool);
                    open.owed_bytes = open.owed_bytes.saturating_sub(bytes);
                }
            }
            Input::Filled { link, bytes } => self.filled(link, bytes),
            other => self.handle_rare(other),
        }
        self.streams.add_records(&self.membership, &mut self.turn);
    }

    /// Inputs other than bytes; apart, so that the path of a packet stays small.
    #[cold]
    #[inline(never)]
    fn handle_rare(&mut self, input: Input<'_>) {
        match input {
            Input::ParentUp { link } if self.membership.ancestry.search.is_some() => {
                self.membership.ancestry.ancestor_up(link, &mut self.turn)
            }
            Input::ParentUp { link } => self.membership.parent_up(link, &mut self.turn),
            Input::ConnectFailed { reason, is_refused } => {
                self.tree_change().connect_failed(&reason, is_refused)
            }
            Input::ChildUp { link } => self.turn.links.open(link, Peer::Stranger, self.turn.now),
            // `handle_input` has taken these.
            Input::Bytes { .. } | Input::Filled { .. } | Input::Transmitted { .. } => {}
            Input::LinkDown { link, reason } => self.tree_change().link_down(link, &reason),
            Input::StartFailed { rank, text } => {
                self.tree_change().start_failed(rank, text, Cause::Died);
            }
            Input::Exited { rank, text, cause } => {
                self.tree_change().start_failed(rank, text, cause);
            }
            Input::Notice { text } => {
                let rank = self.turn.rank();
                self.turn.pass_on_notice(rank, text);
            }
            Input::Timeout => {
                self.streams.emit_all_ready(&mut self.turn);
                self.streams.end_yields(&mut self.turn);
                self.streams.look_after_jobs(&mut self.turn);
                self.tree_change().end_if_idle();
                self.streams.send_due_acknowledgements(&mut self.turn);
                self.tree_change().continue_search();
                self.tree_change().close_vacancies();
                self.tree_change().check_liveness();
                self.tree_change().depart();
            }
        }
    }

    /// The next thing to do, or `None` when the node waits for its next input.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.turn.outputs.pop_front() {
            return Some(output);
        }
        let link = self.turn.links.ready.pop()?;
        if let Some(open) = self.turn.links.link_mut(link) {
            open.transmit_asked = false;
        }
        Some(Output::Transmit(link))
    }

    /// When the node wants [`Input::Timeout`], once all outputs are taken; any input or call may
    /// change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.turn.has_ended {
            return None;
        }
        // A wave that has no room to go on is looked at again when there is room, not by the clock.
        let role = self.turn.settings.role;
        let may_go = |stream: &&Stream| {
            stream.has_room_up(role) && !stream.is_busy() && stream.replies.is_empty()
        };
        let streams = self.streams.timed().filter(may_go);
        let waves = streams.filter_map(|stream| stream.wave_due()).min();
        let others = [
            self.turn.acknowledgement_due,
            self.streams.filter_deadline(&self.turn),
            self.membership.ancestry.search.as_ref().map(crate::members::search::Search::deadline),
            self.membership.vacancies.deadline(),
            self.turn.heartbeat_due,
            self.membership.heartbeats.judgement_due,
            self.turn.departs_until,
        ];
        // Asked for in every turn: a plain loop without branches takes a fraction of what
        // iterators take here.
        let mut deadline = waves.unwrap_or(NEVER);
        for due in others {
            deadline = deadline.min(due.unwrap_or(NEVER));
        }
        (deadline != NEVER).then_some(deadline)
    }

    /// The node's rank, once it has one.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.turn.rank
    }

    /// The terms on which the network deals with processes that are gone, as far as this one knows
    /// them: those of the front-end, once it has been welcomed.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.turn.settings.recovery
    }

    /// Whether the process at the other end of a link reads it at any time, rather than when its
    /// application lets it.
    #[must_use]
    pub fn is_responsive(&self, link: LinkId) -> bool {
        match self.turn.links.link(link).map(|open| open.peer) {
            Some(Peer::Parent) => self.membership.ancestry.parent_is_responsive,
            Some(Peer::Child(rank)) => {
                self.membership.children.get(rank).is_some_and(|child| child.is_responsive)
            }
            _ => false,
        }
    }

    /// Whether a child that was to be started has not come yet.
    #[must_use]
    pub fn is_awaited(&self, rank: Rank) -> bool {
        self.membership.children.is_awaited(rank)
    }

    /// Whether a child that was to be started has ever come, though it may be gone again. One that
    /// was given up with [`Input::StartFailed`] may still come.
    #[must_use]
    pub fn has_come(&self, rank: Rank) -> bool {
        self.membership.children.has_come(rank)
    }

    /// Whether this process has been told its place in the tree.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.membership.is_planned
    }

    /// Says where this process takes connections; before [`Node::expect`].
    pub fn set_address(&mut self, address: alloc::string::String) {
        self.turn.settings.address = Some(address);
    }

    /// Whether the network has ended for this process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.turn.has_ended
    }

    /// Whether bytes wait to be written to some link.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.turn
            .links
            .ids()
            .any(|id| self.turn.links.link(id).is_some_and(|link| !link.outbox.is_empty()))
    }

    /// Where the next bytes of a link are to be read to, when the node wants them in memory of its
    /// own. Say with [`Input::Filled`] how many came.
    pub fn lend(&mut self, link: LinkId) -> Option<&mut [u8]> {
        let Self { turn: Turn { links, pool, .. }, .. } = self;
        links.link_mut(link)?.inbox.lend(pool)
    }

    /// Puts what is left of a link's last bytes in front of the buffer and gives its length, which
    /// is less than 16 KiB; the next bytes are to be read behind it, and all of it given with
    /// [`Input::Bytes`]. The buffer must start at a multiple of 8 and be longer than that.
    pub fn begin_read(&mut self, link: LinkId, buffer: &mut [u8]) -> usize {
        self.turn.links.link_mut(link).map_or(0, |open| open.inbox.begin_read(buffer))
    }

    /// What waits to be written to a link, part by part, in order.
    pub fn gather<'a>(&'a self, link: LinkId, each: impl FnMut(&'a [u8]) -> bool) {
        if let Some(open) = self.turn.links.link(link) {
            open.outbox.gather(each);
        }
    }

    /// In which order links that are ready at once are best read: children by rank, so that their
    /// packets come in the order in which they are combined.
    #[must_use]
    pub fn read_order(&self, link: LinkId) -> u64 {
        match self.turn.links.link(link).map(|open| open.peer) {
            Some(Peer::Child(rank)) => u64::from(rank) + 1,
            _ => 0,
        }
    }

    /// Whether bytes wait to be written to a link.
    #[must_use]
    pub fn wants_write(&self, link: LinkId) -> bool {
        self.turn.links.link(link).is_some_and(|open| !open.outbox.is_empty())
    }

    /// What came over a link, with all that it may concern.
    #[inline]
    fn inbound(&mut self) -> Inbound<'_> {
        let Self { turn, membership, streams } = self;
        Inbound { members: membership, streams, turn }
    }

    /// A change of the tree around this process, with all that it may touch.
    #[inline]
    pub(crate) fn tree_change(&mut self) -> TreeChange<'_> {
        let Self { turn, membership, streams } = self;
        TreeChange { members: membership, streams, turn }
    }

    #[cold]
    fn reclaim(&mut self) {
        self.turn.reclaim();
        self.streams.reclaim();
        self.streams.expire_absentees(&mut self.turn);
    }

    fn filled(&mut self, link: LinkId, bytes: usize) {
        let now = self.turn.now;
        let Some(open) = self.turn.links.link_mut(link) else { return };
        open.heard = now;
        match open.inbox.filled(bytes) {
            Ok(Filled::Partial) => {}
            Ok(Filled::Frame(slab)) => {
                open.inbox.note_length(slab.len());
                self.inbound().large_frame(link, slab);
            }
            Ok(Filled::FrameAndMore(slab, more)) => {
                open.inbox.note_length(slab.len());
                self.inbound().large_frame(link, slab);
                self.inbound().bytes(link, &more);
            }
            Ok(Filled::Bytes(slab)) => {
                self.inbound().bytes(link, slab.as_bytes());
                self.turn.pool.give(slab);
            }
            Err(error) => self.inbound().close_malformed(link, &error),
        }
    }

    /// Has this node break a rule from now on; before it is given its first input.
    #[cfg(feature = "mutations")]
    pub fn mutate(&mut self, mutation: Mutation) {
        self.turn.mutation = Some(mutation);
    }
}
