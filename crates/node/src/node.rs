//! The node: its parts, and the two ways in and out.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use sapwood_filter::{Emitter, Registry};
use sapwood_link::{Filled, MemoryAdvice, Outbox, Pool};
use sapwood_packet::{OutOfMemory, Rank, RankSet, Slab, StreamId, Values};
use sapwood_wire::limits::CHUNK_BYTES;

use crate::apart::Jobs;
use crate::file::Files;
use crate::link::{Links, Peer};
use crate::membership::Membership;
use crate::mutation::Mutation;
use crate::stream::Stream;
use crate::telemetry::Counted;
use crate::visitor::Visitors;
use crate::{Delivery, Input, Instant, LinkId, Output, Recovery};

/// What a process is in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The root: the tool's process.
    FrontEnd,
    /// An inner process: routes and filters.
    Communication,
    /// A leaf: beside the application.
    BackEnd,
}

/// Later than any deadline.
const NEVER: Instant = Instant(u64::MAX);

/// Outputs that most back-ends have at a time, and a tree may have a million of them.
const OUTPUTS: usize = 2;

/// How a node begins.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it is.
    pub role: Role,
    /// Its rank, if it knows it; a process that attaches may leave the choice to its parent.
    pub rank: Option<Rank>,
    /// Whether its parent has started it, rather than that it attaches by itself.
    pub is_started: bool,
    /// Its process id, for people.
    pub pid: u32,
    /// Where it takes connections, for people and for back-ends that attach.
    pub address: Option<alloc::string::String>,
    /// The filters that it can make.
    pub registry: Registry,
    /// What happens when processes are gone. Only a front-end's counts: it tells all others.
    pub recovery: Recovery,
}

/// One process of the tree, without its I/O.
#[derive(Debug)]
pub struct Node {
    pub(crate) settings: Settings,
    pub(crate) now: Instant,
    pub(crate) links: Links,
    pub(crate) pool: Pool,
    pub(crate) membership: Membership,
    pub(crate) streams: Streams,
    pub(crate) files: Files,
    pub(crate) emitter: Emitter,
    pub(crate) scratch: Slab,
    /// Memory in which a back-end's next small packet is built.
    pub(crate) built: Values,
    /// Length of the last packet's values, if they went away with the memory of `built`.
    pub(crate) large_bytes: usize,
    pub(crate) deliveries: VecDeque<Delivery>,
    /// What a packet for this back-end was longer than there was memory for.
    pub(crate) undelivered: Option<OutOfMemory>,
    pub(crate) outputs: VecDeque<Output>,
    /// The number of the next stream that this front-end opens.
    pub(crate) next_stream: StreamId,
    pub(crate) has_ended: bool,
    /// The stream whose filters ran last in this input, and for how many waves.
    pub(crate) transformed: Option<(StreamId, u32)>,
    /// Set when streams let others have their turn: they go on at the next wake-up.
    pub(crate) yields_until: Option<Instant>,
    /// Filters at work elsewhere.
    pub(crate) jobs: Jobs,
    /// When the front-end tells its children what is safe.
    pub(crate) acknowledgement_due: Option<Instant>,
    /// When memory that is not needed is given back next.
    pub(crate) reclaim_due: Instant,
    /// The wake-up that was last asked for.
    pub(crate) wake: Option<Instant>,
    /// A rule that this node breaks, in tests.
    pub(crate) mutation: Option<Mutation>,
    /// A longer body is cut into chunks of this length.
    pub(crate) chunk_bytes: usize,
    pub(crate) counted: Counted,
    pub(crate) visitors: Visitors,
    /// Its host, for people.
    pub(crate) host: String,
    /// See [`Node::set_wall`].
    pub(crate) wall: i64,
    /// See [`Node::distrusts`].
    pub(crate) distrusts: Option<String>,
}

impl Node {
    /// Names whom to tell of memory in which large packets are put together.
    pub fn set_memory_advice(&mut self, advice: MemoryAdvice) {
        self.pool.set_advice(advice);
    }

    /// Cuts large packets into chunks of this many bytes, a multiple of 256; the same in all
    /// processes of a network, and before this one's first input. Short chunks make tests of them
    /// cheap.
    pub fn set_chunk_bytes(&mut self, bytes: usize) {
        self.chunk_bytes = bytes;
    }

    /// A node without links. A front-end is given its children with [`Node::expect`].
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            membership: Membership::new(settings.rank),
            settings,
            now: Instant::default(),
            links: Links::default(),
            pool: Pool::default(),
            streams: Streams::default(),
            files: Files::default(),
            emitter: Emitter::new(),
            scratch: Slab::default(),
            built: Values::new(),
            large_bytes: 0,
            deliveries: VecDeque::new(),
            undelivered: None,
            outputs: VecDeque::with_capacity(OUTPUTS),
            next_stream: 1,
            has_ended: false,
            transformed: None,
            yields_until: None,
            jobs: Jobs::default(),
            acknowledgement_due: None,
            reclaim_due: Instant::default(),
            wake: None,
            mutation: None,
            chunk_bytes: CHUNK_BYTES,
            counted: Counted::default(),
            visitors: Visitors::default(),
            host: String::new(),
            wall: 0,
            distrusts: None,
        }
    }

    /// Says what time it is. A front-end is asked to do things before its first input, and would
    /// take the time since its clock began for its own lateness.
    pub fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// Changes the node. Drain [`Node::poll_output`] before the next change.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.now = now;
        self.transformed = None;
        self.reclaim_if_due();
        match input {
            Input::ParentUp { link } if self.membership.search.is_some() => self.ancestor_up(link),
            Input::ParentUp { link } => self.parent_up(link),
            Input::ConnectFailed { reason, is_refused } => self.connect_failed(&reason, is_refused),
            Input::ChildUp { link } => self.links.open(link, Peer::Stranger, now),
            Input::Bytes { link, bytes } => self.bytes(link, bytes),
            Input::Filled { link, bytes } => self.filled(link, bytes),
            Input::Transmitted { link, bytes } => {
                if self.membership.parent == Some(link) {
                    self.keep_runs();
                }
                if let Some(open) = self.links.link_mut(link) {
                    open.outbox.transmitted(bytes, &mut self.pool);
                    open.owed_bytes = open.owed_bytes.saturating_sub(bytes);
                }
            }
            Input::LinkDown { link, reason } => self.link_down(link, &reason),
            Input::StartFailed { rank, text } => self.start_failed(rank, text),
            Input::Timeout => {
                self.wake = None;
                self.emit_all_ready();
                self.end_yields();
                self.look_after_jobs();
                self.pay_acknowledgements();
                self.continue_search();
                self.close_vacancies();
                self.beat();
                self.depart();
            }
        }
    }

    /// The next thing to do, or `None` when the node waits for its next input.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if let Some(link) = self.links.ready.pop() {
            if let Some(open) = self.links.link_mut(link) {
                open.transmit_asked = false;
            }
            return Some(Output::Transmit(link));
        }
        if self.has_ended {
            return None;
        }
        // A wave that has no room to go on is looked at again when there is room, not by the clock.
        let is_root = self.settings.role == Role::FrontEnd;
        let may_go = |stream: &&Stream| {
            stream.has_room_up(is_root) && !stream.is_busy() && stream.replies.is_empty()
        };
        let streams = self.streams.timed().filter(may_go);
        let waves = streams.filter_map(|stream| stream.wave_due()).min();
        let others = [
            self.acknowledgement_due,
            self.filter_deadline(),
            self.membership.search.as_ref().map(crate::orphan::Search::deadline),
            self.vacancy_deadline(),
            self.membership.beat_due,
            self.membership.judgement_due,
            self.membership.departs_until,
        ];
        // Asked for every few packets: a plain loop without branches takes a fraction of what
        // iterators take here.
        let mut deadline = waves.unwrap_or(NEVER);
        for due in others {
            deadline = deadline.min(due.unwrap_or(NEVER));
        }
        if deadline == NEVER || self.wake == Some(deadline) {
            return None;
        }
        self.wake = Some(deadline);
        Some(Output::Wake(deadline))
    }

    /// The next thing for the application.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// Whether a packet from the front-end was lost since there was no memory for it (back-end).
    pub fn take_undelivered(&mut self) -> Option<OutOfMemory> {
        self.undelivered.take()
    }

    /// The node's rank, once it has one.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.membership.rank
    }

    /// The terms on which the network deals with processes that are gone, as far as this one knows
    /// them: those of the front-end, once it has been welcomed.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.settings.recovery
    }

    /// Whether the process at the other end of a link reads it at any time, rather than when its
    /// application lets it.
    #[must_use]
    pub fn keeps_time(&self, link: LinkId) -> bool {
        match self.links.link(link).map(|open| open.peer) {
            Some(Peer::Parent) => self.membership.parent_keeps_time,
            Some(Peer::Child(rank)) => {
                self.membership.child(rank).is_some_and(|child| child.keeps_time)
            }
            _ => false,
        }
    }

    /// The back-ends of the network that are connected below this node.
    #[must_use]
    pub fn back_ends(&self) -> RankSet {
        self.membership.connected()
    }

    /// Whether a child that was to be started has not come yet.
    #[must_use]
    pub fn is_awaited(&self, rank: Rank) -> bool {
        self.membership.is_awaited(rank)
    }

    /// Whether a child that was to be started has ever come, though it may be gone again. One that
    /// was given up with [`Input::StartFailed`] may still come.
    #[must_use]
    pub fn has_come(&self, rank: Rank) -> bool {
        self.membership.has_come(rank)
    }

    /// Whether this process has been told its place in the tree.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.membership.is_planned
    }

    /// Says where this process takes connections; before [`Node::expect`].
    pub fn set_address(&mut self, address: alloc::string::String) {
        self.settings.address = Some(address);
    }

    /// Whether the network has ended for this process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether bytes wait to be written to some link.
    #[must_use]
    pub fn has_unwritten(&self) -> bool {
        self.links.ids().any(|id| self.links.link(id).is_some_and(|link| !link.outbox.is_empty()))
    }

    /// Where the next bytes of a link are to be read to, when the node wants them in memory of its
    /// own. Say with [`Input::Filled`] how many came.
    pub fn lend(&mut self, link: LinkId) -> Option<&mut [u8]> {
        let Self { links, pool, .. } = self;
        links.link_mut(link)?.inbox.lend(pool)
    }

    /// Puts what is left of a link's last bytes in front of the buffer and gives its length, which
    /// is less than 16 KiB; the next bytes are to be read behind it, and all of it given with
    /// [`Input::Bytes`]. The buffer must start at a multiple of 8 and be longer than that.
    pub fn begin_read(&mut self, link: LinkId, buffer: &mut [u8]) -> usize {
        self.links.link_mut(link).map_or(0, |open| open.inbox.begin_read(buffer))
    }

    /// What waits to be written to a link, part by part, in order.
    pub fn gather<'a>(&'a self, link: LinkId, each: impl FnMut(&'a [u8]) -> bool) {
        if let Some(open) = self.links.link(link) {
            open.outbox.gather(each);
        }
    }

    /// In which order links that are ready at once are best read: children by rank, so that their
    /// packets come in the order in which they are combined.
    #[must_use]
    pub fn read_order(&self, link: LinkId) -> u64 {
        match self.links.link(link).map(|open| open.peer) {
            Some(Peer::Child(rank)) => u64::from(rank) + 1,
            _ => 0,
        }
    }

    /// Whether bytes wait to be written to a link.
    #[must_use]
    pub fn wants_write(&self, link: LinkId) -> bool {
        self.links.link(link).is_some_and(|open| !open.outbox.is_empty())
    }

    fn filled(&mut self, link: LinkId, bytes: usize) {
        let now = self.now;
        let Some(open) = self.links.link_mut(link) else { return };
        open.heard = now;
        match open.inbox.filled(bytes) {
            Ok(Filled::Partial) => {}
            Ok(Filled::Frame(slab)) => {
                open.inbox.note_length(slab.len());
                self.frame_owned(link, slab);
            }
            Ok(Filled::FrameAndMore(slab, more)) => {
                open.inbox.note_length(slab.len());
                self.frame_owned(link, slab);
                self.bytes(link, &more);
            }
            Ok(Filled::Bytes(slab)) => {
                self.bytes(link, slab.as_bytes());
                self.pool.give(slab);
            }
            Err(error) => self.break_link(link, &error),
        }
    }
}

/// The streams that are open at a node.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    list: Vec<Stream>,
    /// Where in the list each is, by number.
    index: Vec<(StreamId, usize)>,
    /// The stream of the last packet: the next is likely to be on the same.
    last: usize,
    /// How many have waves with deadlines.
    timed: usize,
    /// The greatest number that one has ever had here.
    latest: StreamId,
}

impl Streams {
    /// Where in the list a stream is.
    #[inline]
    pub(crate) fn find(&mut self, id: StreamId) -> Option<usize> {
        if self.list.get(self.last).is_some_and(|stream| stream.id == id) {
            return Some(self.last);
        }
        self.last = self.position(id)?;
        Some(self.last)
    }

    #[inline]
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        if let Some(stream) = self.list.get(self.last).filter(|stream| stream.id == id) {
            return Some(stream);
        }
        self.list.get(self.position(id)?)
    }

    /// Where in the list a stream is that was not the last.
    fn position(&self, id: StreamId) -> Option<usize> {
        let found = self.index.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.index[found].1)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let at = self.find(id)?;
        self.list.get_mut(at)
    }

    /// Ends the run at the end of the outbox to the parent. The streams of all that have ended keep
    /// them, before what is sent next.
    #[inline]
    pub(crate) fn keep_runs(&mut self, outbox: &mut Outbox) {
        outbox.end_run();
        outbox.take_ended_runs(|run, bytes| {
            if let Some(stream) = self.get_mut(run.stream) {
                stream.sender.record_run(run, bytes);
            }
        });
    }

    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut Stream {
        &mut self.list[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The greatest number that a stream has ever had here: later ones open behind it.
    pub(crate) fn latest(&self) -> StreamId {
        self.latest
    }

    pub(crate) fn insert(&mut self, stream: Stream) -> usize {
        self.remove(stream.id);
        self.latest = self.latest.max(stream.id);
        if self.list.is_empty() {
            // Most back-ends have one stream, and a tree may have a million of them.
            self.list.reserve_exact(1);
            self.index.reserve_exact(1);
        }
        let at = self.index.partition_point(|&(id, _)| id < stream.id);
        self.index.insert(at, (stream.id, self.list.len()));
        self.timed += usize::from(stream.is_timed());
        self.list.push(stream);
        self.list.len() - 1
    }

    pub(crate) fn remove(&mut self, id: StreamId) {
        let Ok(found) = self.index.binary_search_by_key(&id, |&(id, _)| id) else { return };
        let (_, at) = self.index.remove(found);
        let removed = self.list.swap_remove(at);
        self.timed -= usize::from(removed.is_timed());
        if let Some(id) = self.list.get(at).map(|moved| moved.id)
            && let Some((_, position)) = self.index.iter_mut().find(|(other, _)| *other == id)
        {
            *position = at;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter()
    }

    /// Those whose waves have deadlines.
    fn timed(&self) -> impl Iterator<Item = &Stream> {
        let most = if self.timed == 0 { 0 } else { self.list.len() };
        self.list[..most].iter().filter(|stream| stream.is_timed())
    }
}
