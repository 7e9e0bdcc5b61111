//! One stream at one node.

use crate::interface::Instant;
use crate::waves::deadline::share;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use sapwood_filter::{Chain, Filter, FilterSpec, Registry};
use sapwood_link::{
    Assemblies, END, EncodedFrame, FrameInfo, Pool, Position, RetransmitBuffer, Sender,
    SequenceSpace, WhenFull,
};
use sapwood_packet::{Format, FormatRef, Rank, RankSet, RankSetRef, StreamId, Wave};
use sapwood_wire::limits::{CHUNK_BYTES, KEPT_BYTES};
use sapwood_wire::{FilterRequest, Policy, StreamRequest, WaitRule};

use crate::interface::{LinkId, Mutation, NodeError, Role};
use crate::streams::absentees::AbsentBackEnds;
use crate::streams::faults::Faults;
use crate::streams::straggler::Stragglers;
use crate::streams::telemetry_wave::TelemetryWave;
use crate::transform::back_end_filters::BackEndFilters;
use crate::transform::chain::{chain, values_of};
use crate::transform::fairness::FilterTiming;
use crate::transform::offload::{DownOffload, Offload};
use crate::transform::pending_replies::Replies;
use crate::transform::route::Route;
use crate::transform::synchronisation::Decider;
use crate::waves::absence::Absences;
use crate::waves::replicas::Handover;
use crate::waves::slot::Slot;
use crate::waves::table::WaveTable;

/// Everything that a node keeps of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    /// As it came, to be passed on to children that connect later.
    pub(crate) request: StreamRequest,
    pub(crate) members: RankSet,
    pub(crate) up: Chain,
    /// What the upward filters are, so that it is not asked for each packet.
    pub(crate) route: Route,
    pub(crate) down: Chain,
    /// Whether every packet goes down as it came.
    pub(crate) passes_down: bool,
    /// Set when the upward filters are offloaded.
    pub(crate) offload: Option<Box<Offload>>,
    /// The same of the downward filters.
    pub(crate) down_offload: Option<Box<DownOffload>>,
    /// How the states of the upward filters are handed over, if they have some.
    pub(crate) handover: Option<Box<Handover>>,
    /// What else decides when a wave goes on.
    pub(crate) rule: Option<Box<Decider>>,
    /// How long a wave may wait at this node, with [`WaitRule::Timeout`].
    pub(crate) patience: Option<Duration>,
    /// Among how many levels of the tree that time is shared out.
    pub(crate) levels: u32,
    /// The children that lead to members, in order of their smallest member.
    pub(crate) slots: Vec<Slot>,
    /// Position of a link's slot, by the link's number.
    slot_of_link: Vec<u16>,
    pub(crate) waves: WaveTable,
    /// All waves below this one have been answered upwards.
    pub(crate) ended: Wave,
    /// All waves and chunks before this place have gone on: what still comes for them is late.
    pub(crate) gone_until: Position,
    /// What goes up to the parent (unused at the front-end).
    pub(crate) sender: Sender,
    /// Whether what is sent is kept until it is acknowledged.
    pub(crate) keeps: bool,
    /// Members that have ever led through a slot.
    pub(crate) below: RankSet,
    /// The members that were absent from the waves that have gone on.
    pub(crate) absences: Absences,
    /// Parts of those that have come here late, and are not safe yet.
    pub(crate) stragglers: Stragglers,
    /// The wave before which that is known.
    pub(crate) recorded: Wave,
    /// How far each back-end has come, on a stream that does not wait.
    pub(crate) seen: BTreeMap<Rank, Position>,
    /// Waves below this one may come again from children that had another parent.
    pub(crate) resumed_until: Wave,
    /// Whether its upward filters have been slow, and how many waves they may take in one input.
    pub(crate) filter_timing: FilterTiming,
    /// What its upward filters have answered downward and has not gone yet, the first wave's first.
    pub(crate) replies: VecDeque<Replies>,
    /// Whether it lets others have their turn, and goes on then.
    pub(crate) yields: bool,
    /// The number of the front-end's next packet.
    pub(crate) next_down: Wave,
    /// The number of the packet that a downward filter was last given, and how many it has made of
    /// those of that number.
    pub(crate) down_made: (Wave, u32),
    /// Everything that came down before this place has arrived.
    pub(crate) down_next: Position,
    /// What the parent has been told of that.
    pub(crate) down_announced: Position,
    /// Bytes that have become safe since, as far as they are counted.
    pub(crate) down_unannounced: usize,
    /// Acknowledge after this many of those bytes.
    pub(crate) down_announce_bytes: usize,
    /// Everything that came down before this place has reached the back-ends, as far as the
    /// children have said so.
    pub(crate) down_reached: Position,
    /// A rule that the node breaks, in tests.
    pub(crate) mutation: Option<Mutation>,
    /// A longer body is cut into chunks of this length.
    pub(crate) chunk_bytes: usize,
    /// What went down and may have to be sent to another child.
    pub(crate) down_retransmit: RetransmitBuffer,
    /// Members that were given up, for which it is kept as well.
    pub(crate) absent: AbsentBackEnds,
    /// Large packets from the parent, or at the front-end answers, that are not whole yet.
    pub(crate) assemblies: Assemblies,
    /// Failures of its filters.
    pub(crate) faults: Faults,
    /// Bytes delivered to the application that it has not taken.
    pub(crate) unread: u64,
    /// Bytes that have come from the parent since the stream opened.
    pub(crate) down_received: u64,
    /// Bytes that the parent has been granted again.
    pub(crate) down_granted: u64,
    /// The next wave that this back-end sends in.
    pub(crate) next_wave: Wave,
    /// Whether the parent has been told that no child is left.
    pub(crate) has_said_end: bool,
    /// The back-ends that the first chunk of the packet at hand stands for.
    pub(crate) chunk_contributors: RankSet,
    /// The members in the packets of the wave at hand that have passed one by one (front-end).
    pub(crate) passed_on: RankSet,
    /// Packets dropped because the stream's policy says so, or because they came for a closed wave.
    pub(crate) dropped: u64,
    /// Set on a telemetry stream.
    pub(crate) telemetry: Option<Box<TelemetryWave>>,
    /// Filters between the application of this back-end and the stream, if it has some there.
    pub(crate) own: Option<Box<BackEndFilters>>,
}

impl Stream {
    /// Whether a complete wave waits for this process's own part of the telemetry.
    #[inline]
    pub(crate) fn waits_for_record(&self) -> bool {
        self.telemetry.as_ref().is_some_and(|asked| asked.complete.is_some())
    }

    /// Whether the clock may let its waves go on.
    pub(crate) fn is_timed(&self) -> bool {
        self.patience.is_some() || self.rule.is_some()
    }

    /// When the first wave may go on, or its rule wants to be asked.
    pub(crate) fn wave_due(&self) -> Option<Instant> {
        let due = self.rule.as_ref().and_then(|decider| decider.due);
        self.waves.deadline().into_iter().chain(due).min()
    }

    #[inline]
    pub(crate) fn breaks(&self, rule: Mutation) -> bool {
        cfg!(feature = "mutations") && self.mutation == Some(rule)
    }

    /// A stream as its request says, at a node of that height (levels to the farthest back-end).
    pub(crate) fn new(
        request: StreamRequest,
        registry: &Registry,
        height: u32,
    ) -> Result<Self, NodeError> {
        let up = chain(registry, &request.up)?;
        let down = chain(registry, &request.down)?;
        let members = request.members.to_set().map_err(|error| NodeError::Filter(error.into()))?;
        let route = Route::of(&up);
        let is_offloaded = up.is_offloaded() && route == Route::Transform;
        Ok(Self {
            id: request.stream,
            members,
            route,
            offload: is_offloaded.then(|| Offload::of_foreign_filters().into()),
            up,
            passes_down: down.is_pass(),
            down_offload: down.is_offloaded().then(Box::default),
            down,
            handover: None,
            rule: rule_of(registry, request.rule.as_ref())?,
            patience: share(request.wait, height, request.height),
            levels: request.height,
            slots: Vec::new(),
            slot_of_link: Vec::new(),
            waves: WaveTable::default(),
            ended: request.first_wave,
            gone_until: Position::default(),
            sender: Sender::new(
                request.window_bytes,
                Position::start_of(request.first_wave),
                if request.policy == Policy::Block { WhenFull::Wait } else { WhenFull::Lose },
            ),
            keeps: false,
            below: RankSet::new(),
            absences: Absences::default(),
            stragglers: Stragglers::default(),
            recorded: request.first_wave,
            seen: BTreeMap::new(),
            resumed_until: 0,
            filter_timing: FilterTiming::default(),
            replies: VecDeque::new(),
            yields: false,
            next_down: 0,
            down_made: (0, 0),
            down_next: Position::default(),
            down_announced: Position::default(),
            down_unannounced: 0,
            down_announce_bytes: 1,
            down_reached: Position::default(),
            mutation: None,
            chunk_bytes: CHUNK_BYTES,
            down_retransmit: RetransmitBuffer::default(),
            absent: AbsentBackEnds::default(),
            assemblies: Assemblies::default(),
            faults: Faults::default(),
            unread: 0,
            down_received: 0,
            down_granted: 0,
            next_wave: request.first_wave,
            has_said_end: false,
            chunk_contributors: RankSet::new(),
            passed_on: RankSet::new(),
            dropped: 0,
            telemetry: TelemetryWave::on(&request),
            own: None,
            request,
        })
    }

    /// The slot of a link.
    #[inline]
    pub(crate) fn slot_of(&self, link: LinkId) -> Option<usize> {
        let slot = usize::from(*self.slot_of_link.get(link.index())?);
        // The number of a link that is gone may have been given to another child.
        self.slots
            .get(slot)
            .is_some_and(|slot| slot.link == Some(link) && slot.alive)
            .then_some(slot)
    }

    /// Makes a child that has just come a slot, if it leads to members; gives what to tell it.
    pub(crate) fn request_for(
        &mut self,
        link: LinkId,
        back_ends: &RankSet,
    ) -> Option<StreamRequest> {
        let members = self.members_in(back_ends);
        if members.is_empty() {
            return None;
        }
        // The waves that are open do not count on it, and a process that was here before under one
        // of these ranks has used those that it has sent in.
        let seen = back_ends.iter().filter_map(|rank| self.seen.get(&rank));
        let seen =
            seen.map(|position| position.wave + u64::from(position.offset > 0)).max().unwrap_or(0);
        let first = self.ended.max(self.waves.end()).max(seen);
        let window = self.request.window_bytes;
        self.add_slot(Slot::new(Some(link), members, Position::start_of(first), window));
        Some(StreamRequest { first_wave: first, ..self.request.clone() })
    }

    /// Puts a child among the slots, in order of its smallest member. Waves that are open from
    /// where it begins wait for it.
    pub(crate) fn add_slot(&mut self, slot: Slot) {
        self.gain(&slot.members);
        self.absent.returned(&slot.members);
        self.waves.wait_from(slot.next);
        let first = slot.members.as_ref().first();
        let at = if self.waves.is_empty() {
            // Open waves know children by slot: only now may their numbers change.
            self.slots.retain(|other| other.is_awaited() || other.next < END);
            self.slots.partition_point(|other| other.members.as_ref().first() < first)
        } else {
            self.slots.len()
        };
        self.slots.insert(at, slot);
        self.map_links();
    }

    /// Members have come below. Those that come for the first time are late in what has gone on:
    /// they may have lost their parent before it told them of the stream, and send from its
    /// beginning.
    pub(crate) fn gain(&mut self, members: &RankSet) {
        let newcomers = members.difference(self.below.as_ref());
        let first = self.request.first_wave;
        if !newcomers.is_empty() && first < self.recorded {
            self.absences.record_newcomers(first, self.recorded, &newcomers);
        }
        self.below.union_with(members.as_ref());
    }

    fn map_links(&mut self) {
        self.slot_of_link.clear();
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.alive) {
            let Some(link) = slot.link.map(|link| link.index()) else { continue };
            if self.slot_of_link.len() <= link {
                self.slot_of_link.resize(link + 1, u16::MAX);
            }
            // A node has fewer children than a u16 counts: the topology's fan-out is bounded.
            self.slot_of_link[link] = u16::try_from(index).unwrap_or(u16::MAX);
        }
    }

    /// Its members among these back-ends.
    pub(crate) fn members_in(&self, back_ends: &RankSet) -> RankSet {
        let mut members = self.members.clone();
        members.intersect_with(back_ends.as_ref());
        members
    }

    /// Whether nothing is waited for.
    pub(crate) fn is_immediate(&self) -> bool {
        self.request.wait == WaitRule::Immediate
    }

    /// Whether a wave may go on: to the application at the front-end, else to the parent.
    #[inline]
    pub(crate) fn has_room_up(&self, role: Role) -> bool {
        if role == Role::FrontEnd {
            self.unread < u64::from(self.request.window_bytes)
        } else {
            self.sender.is_open()
        }
    }

    /// The place before which everything that came up has gone on here: what is safe where the
    /// front-end is.
    pub(crate) fn gone_on(&self) -> Position {
        let ended = Position::start_of(self.ended);
        if self.waves.has_lent() {
            return ended;
        }
        if self.gone_until.wave == self.ended { self.gone_until.max(ended) } else { ended }
    }

    /// The process of a slot is gone, and those below it may come: waves wait for them.
    pub(crate) fn orphan_slot(&mut self, index: usize, vacancy: u64) {
        let slot = &mut self.slots[index];
        slot.alive = false;
        slot.vacancy = Some(vacancy);
        slot.assemblies.clear();
        slot.down.clear();
        let next = slot.next;
        if self.route == Route::Transform
            && let Some(wave) = self.waves.open_at(next)
        {
            // What those below send again may be merged in another way.
            wave.remove_packets_of(index);
        }
        self.map_links();
    }

    /// The slot that is held open for a vacancy.
    pub(crate) fn slot_of_vacancy(&self, vacancy: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.vacancy == Some(vacancy))
    }

    /// Holds a slot open for members that are on their way to another parent.
    pub(crate) fn await_members(&mut self, awaited: &RankSet, vacancy: u64) -> bool {
        let members = self.members_in(awaited);
        if members.is_empty() {
            return false;
        }
        let first = Position::start_of(self.request.first_wave);
        let mut slot = Slot::new(None, members, first, self.request.window_bytes);
        slot.alive = false;
        slot.vacancy = Some(vacancy);
        self.add_slot(slot);
        true
    }

    /// Keeps what is sent from now on until it is acknowledged.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
        self.sender.enable_retransmission();
        self.begin_handover();
    }

    /// Prepares to hand over the states of the filters, if they have some that is handed over.
    fn begin_handover(&mut self) {
        let is_announced_by_waves = !self.is_immediate() && !self.drops();
        if is_announced_by_waves && !self.up.composable().is_empty() {
            let filters = self.up.composable().to_vec();
            self.handover = Some(Handover { filters, ..Handover::default() }.into());
        }
    }

    /// Whether waves go on by a job that is listed or out, rather than by the clock.
    pub(crate) fn is_busy(&self) -> bool {
        self.offload.as_ref().is_some_and(|offload| offload.is_busy())
    }

    /// Whether it is closed, and waits for packets that filters are at work on.
    pub(crate) fn is_closing(&self) -> bool {
        self.down_offload.as_ref().is_some_and(|offload| offload.closes)
    }

    /// Whether a job of it is listed or out, in either direction.
    pub(crate) fn is_at_work(&self) -> bool {
        self.is_busy() || self.down_offload.as_ref().is_some_and(|offload| offload.is_busy())
    }

    /// Whether the application may send down to some members, or to all where none are named,
    /// without anything piling up beyond the window.
    pub(crate) fn has_room_down(&self, destinations: RankSetRef<'_>) -> bool {
        let is_for =
            |slot: &Slot| destinations.is_empty() || slot.members.as_ref().intersects(destinations);
        let is_open = |slot: &Slot| !slot.alive || slot.down.is_open() || !is_for(slot);
        let window = self.request.window_bytes as usize;
        let is_waiting = self.down_offload.as_ref().is_some_and(|offload| offload.bytes >= window);
        self.drops()
            || self.slots.iter().all(is_open)
                && self.down_retransmit.bytes() < KEPT_BYTES
                && !is_waiting
    }

    /// The place before which everything that was sent down has reached its back-ends, also those
    /// that are away.
    pub(crate) fn down_safe(&self) -> Position {
        let lags = |slot: &&Slot| slot.is_awaited() && slot.down_safe < slot.down_sent;
        let lagging = self.slots.iter().filter(lags).map(|slot| slot.down_safe);
        lagging.chain(self.absent.first()).min().unwrap_or(END)
    }

    /// Keeps a frame that goes down.
    pub(crate) fn keep_down(
        &mut self,
        info: FrameInfo,
        frame: &[u8],
        shared: Option<&EncodedFrame>,
    ) {
        if !self.keeps || info.space == SequenceSpace::Unsequenced {
            return;
        }
        match shared {
            Some(shared) => self.down_retransmit.push_shared(info, shared.clone()),
            None => self.down_retransmit.push_copy(info, frame),
        }
        // Nothing makes the sender of a stream that drops wait, so that the buffer is bounded here;
        // an orphan then misses what it would have been sent again.
        while self.drops() && self.down_retransmit.bytes() > KEPT_BYTES {
            self.down_retransmit.forget_first(&mut Pool::default());
        }
        self.bound_absent();
    }

    /// Bytes from the parent that have been dealt with; gives a grant when it is worth a message.
    pub(crate) fn take_grant_to_parent(&mut self) -> Option<u32> {
        let waiting = |slot: &Slot| slot.down.waiting_bytes() as u64;
        let held = self.slots.iter().filter(|slot| slot.alive).map(waiting).max().unwrap_or(0);
        // Unacknowledged bytes beyond KEPT_BYTES count as not consumed: a child that acknowledges
        // late would let this buffer grow.
        let held = held.max(self.down_retransmit.bytes().saturating_sub(KEPT_BYTES) as u64);
        let held = held + self.down_offload.as_ref().map_or(0, |offload| offload.bytes as u64);
        let owed =
            self.down_received.saturating_sub(held + self.unread).saturating_sub(self.down_granted);
        // One grant for half a window: the sender never stalls, and grants stay rare.
        if owed < u64::from(self.request.window_bytes / 2) {
            return None;
        }
        let grant = u32::try_from(owed).unwrap_or(u32::MAX);
        self.down_granted += u64::from(grant);
        Some(grant)
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        self.sender.reclaim();
        self.down_retransmit.reclaim();
        self.waves.reclaim();
        self.stragglers.reclaim();
        self.slots.iter_mut().for_each(Slot::reclaim);
    }

    /// Whether a large packet may pass this node chunk by chunk on its way up.
    pub(crate) fn takes_chunks(&self, format: FormatRef<'_>) -> bool {
        use sapwood_packet::Shape;
        let is_one_array = format.len() == 1
            && format
                .directive(0)
                .is_some_and(|d| d.shape != Shape::Scalar && d.element.is_numeric());
        // A rule lets go whole waves.
        self.route == Route::Fold && is_one_array && self.rule.is_none()
            || self.is_immediate() && self.route == Route::Pass
    }

    /// Whether all packets of a wave are held until it is whole.
    pub(crate) fn holds_waves(&self) -> bool {
        self.route != Route::Fold && !self.is_immediate()
    }

    /// Whether dropping is what a full window does.
    pub(crate) fn drops(&self) -> bool {
        self.request.policy == Policy::DropOldest
    }
}

fn rule_of(
    registry: &Registry,
    request: Option<&FilterRequest>,
) -> Result<Option<Box<Decider>>, NodeError> {
    let Some(request) = request else { return Ok(None) };
    let rule = registry.make_rule(&request.name, values_of(request).as_ref())?;
    Ok(Some(Box::new(Decider::new(rule))))
}

/// A filter as it goes into a stream's request.
pub(crate) fn request_of(spec: FilterSpec) -> FilterRequest {
    let (format, slab): (Format, _) = spec.parameters.into_parts();
    FilterRequest {
        name: spec.name,
        format: format.as_ref().codes().to_vec(),
        parameters: slab.as_bytes().to_vec(),
    }
}
