//! Streams whose filters run apart from the node's loop: because nobody knows how long they run
//! ([`Filter::runs_apart`](sapwood_filter::Filter::runs_apart)), or because they were measured
//! slow (`fairness`).
//!
//! The node lends such a stream's chain and its next waves to a [`Job`], and sends on what came of
//! them when it is given the job back. **To the children a wave that is lent has gone on**: what
//! still comes for it is late. **To the parent it has not**: its credit is not granted again, it is
//! not acknowledged, and whatever has to come behind it waits, such as the end of the stream.
//! Should this process die, the children send it again.
//!
//! States are handed over as elsewhere (`replica`); only the copies are made by jobs, and the
//! states of others taken over by them.
//!
//! A job that does not come back within the network's limit is given up: its waves, and all later
//! ones of the stream at this node, fail with that reason.
//!
//! Synchronisation rules that run apart are asked in jobs as well (`decision`).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use sapwood_filter::{Chain, Emitter, Filter, FilterError};
use sapwood_link::Position;
use sapwood_packet::{Packet, PacketRef, StreamId, Values};

use crate::interface::{Instant, Role};
use crate::node::Node;
use crate::streams::stream::Stream;
use crate::transform::fairness::SLOW;
use crate::transform::job::{Batch, Item, Job, Load, Made, Work};
use crate::transform::synchronisation::Rule;

/// How long filters may run for one wave, unless the front-end says otherwise.
pub const FILTER_LIMIT: Duration = Duration::from_secs(10);

/// Most waves or packets of one job.
const ITEMS_MAX: usize = 32;
/// A job is to take about this long: more would keep what is done from going on.
const JOB_TIME: Duration = Duration::from_millis(2);
/// Waves that slow filters have to be quick in before they come back into the loop; twice as many
/// each time.
const QUICK_WAVES: u64 = 1024;
/// Emitters that a stream keeps.
const SPARE_EMITTERS_MAX: usize = ITEMS_MAX;
/// How long the end of the network waits for packets that filters are at work on.
const END_WAIT: Duration = Duration::from_millis(500);

/// Where the filters of one direction are.
#[derive(Debug, Default)]
enum Phase {
    /// Here, with nothing to do.
    #[default]
    Idle,
    /// Here, and to be given out.
    Listed,
    /// Out.
    AtWork,
    /// Lost, and why.
    GivenUp(FilterError),
}

/// How many waves or packets the next job has at most.
#[derive(Debug)]
struct Stride(usize);

impl Default for Stride {
    fn default() -> Self {
        Self(1)
    }
}

impl Stride {
    /// The last job took so long.
    fn adapt(&mut self, time: Duration) {
        self.0 = match time {
            time if time <= JOB_TIME => (self.0 * 2).min(ITEMS_MAX),
            time if time > JOB_TIME * 2 => (self.0 / 2).max(1),
            _ => self.0,
        };
    }
}

/// The upward filters of a stream that run apart.
#[derive(Debug, Default)]
pub(crate) struct Offload {
    phase: Phase,
    stride: Stride,
    /// Waves in which slow filters have to be quick in a row before they come back into the loop;
    /// none for filters that never do.
    quick_waves_needed: Option<u64>,
    quick_waves: u64,
    /// States of other processes that are to be taken over.
    pub(crate) inherited: Vec<(usize, Values)>,
    /// Whether a copy of the states is to be handed over.
    pub(crate) wants_copy: bool,
    spare: Vec<Emitter>,
}

impl Offload {
    pub(crate) fn of_foreign_filters() -> Self {
        Self::default()
    }

    /// `moves` is how often they have been moved out of the loop, this time included.
    pub(crate) fn of_slow_filters(moves: u32) -> Self {
        let needed = QUICK_WAVES.checked_shl(moves - 1).unwrap_or(u64::MAX);
        Self { quick_waves_needed: Some(needed), ..Self::of_foreign_filters() }
    }

    fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Listed | Phase::AtWork)
    }

    /// Some waves took so long.
    fn note_time(&mut self, waves: usize, time: Duration) {
        self.stride.adapt(time);
        let is_quick = time * 4 < SLOW * u32::try_from(waves).unwrap_or(u32::MAX);
        self.quick_waves = if is_quick { self.quick_waves + waves as u64 } else { 0 };
    }

    /// Whether slow filters have become quick.
    fn is_done(&self) -> bool {
        self.quick_waves_needed.is_some_and(|needed| self.quick_waves >= needed)
            && matches!(self.phase, Phase::Idle)
            && self.inherited.is_empty()
            && !self.wants_copy
    }
}

/// The downward filters of a stream that run apart, and the packets that wait for them.
#[derive(Debug, Default)]
pub(crate) struct DownOffload {
    phase: Phase,
    stride: Stride,
    waiting: VecDeque<Packet>,
    /// Bytes of those that wait, and of those at work.
    pub(crate) bytes: usize,
    /// The place of the first that is at work.
    first: Option<Position>,
    /// Whether the stream closes behind them.
    closes: bool,
    spare: Vec<Emitter>,
}

impl DownOffload {
    fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Listed | Phase::AtWork)
    }

    /// The place of the first packet that has not gone on.
    pub(crate) fn first(&self) -> Option<Position> {
        let waiting = || self.waiting.front().map(|packet| Position::of_downward(&packet.as_ref()));
        self.first.or_else(waiting)
    }
}

/// A job that is out.
#[derive(Debug)]
struct Lent {
    number: u64,
    stream: StreamId,
    work: Work,
    batch: Arc<Batch>,
    /// How far it had come when it was looked at last, and when it is given up unless it has come
    /// farther.
    steps: u64,
    until: Option<Instant>,
}

/// The jobs of a node.
#[derive(Debug)]
pub(crate) struct Jobs {
    limit: Duration,
    last_number: u64,
    /// Streams whose filters are to be given out.
    listed: VecDeque<(StreamId, Work)>,
    lent: Vec<Lent>,
    /// Filters and rules that nobody wants any more. They are let go of where they have run.
    retired: Vec<(StreamId, Chain, Option<Rule>)>,
    /// Why the network ends, once the packets at work have gone down.
    ends: Option<(Instant, String)>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            limit: FILTER_LIMIT,
            last_number: 0,
            listed: VecDeque::new(),
            lent: Vec::new(),
            retired: Vec::new(),
            ends: None,
        }
    }
}

impl Jobs {
    /// When something has to be looked at.
    fn deadline(&self) -> Option<Instant> {
        let ends = self.ends.as_ref().map(|&(until, _)| until);
        self.lent.iter().filter_map(|lent| lent.until).chain(ends).min()
    }

    /// Whether the network is about to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends.is_some()
    }

    /// Something of a stream is to be given out.
    pub(crate) fn list(&mut self, stream: StreamId, work: Work) {
        self.listed.push_back((stream, work));
    }

    fn retire(&mut self, stream: StreamId, chain: Chain, rule: Option<Rule>) {
        if !chain.is_pass() || rule.is_some() {
            self.retired.push((stream, chain, rule));
        }
    }
}

impl Node {
    /// When filters are to go on, or to be looked after. Asked after every input.
    #[inline]
    pub(crate) fn filter_deadline(&self) -> Option<Instant> {
        if self.jobs.lent.is_empty() && self.jobs.ends.is_none() {
            return self.yields_until;
        }
        self.jobs.deadline().into_iter().chain(self.yields_until).min()
    }

    /// How long filters that run apart may take for one wave; zero for ever. At first it is
    /// [`FILTER_LIMIT`].
    pub fn set_filter_limit(&mut self, limit: Duration) {
        self.jobs.limit = limit;
    }

    /// Whether there is a job to be done, for [`Node::take_job`].
    #[inline]
    #[must_use]
    pub fn has_job(&self) -> bool {
        !self.jobs.listed.is_empty() || !self.jobs.retired.is_empty()
    }

    /// How many jobs are out that the node waits for.
    #[must_use]
    pub fn jobs_out(&self) -> usize {
        self.jobs.lent.len()
    }

    /// Whether filters are at work, or about to be, on what is still to be sent.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.streams.iter().any(Stream::is_at_work)
    }

    /// The next job, whose time begins now. This changes the node as an input does: drain
    /// [`Node::poll_output`] afterwards.
    pub fn take_job(&mut self, now: Instant) -> Option<Job> {
        self.turn.now = now;
        self.transformed = None;
        while let Some((id, work)) = self.jobs.listed.pop_front() {
            let Some(at) = self.streams.find(id) else { continue };
            let job = match work {
                Work::Up => self.gather_up(at),
                Work::Down => self.gather_down(at),
                Work::Rule => self.gather_question(at),
            };
            if job.is_some() {
                return job;
            }
        }
        let (stream, chain, rule) = self.jobs.retired.pop()?;
        let load = Load::Packets(Vec::new());
        Some(Job { number: 0, rule, ..self.job_of(stream, Work::Up, chain, load) })
    }

    /// A job has been run, which took that long. This changes the node as an input does.
    pub fn finish_job(&mut self, now: Instant, mut job: Job, time: Duration) {
        self.turn.now = now;
        self.transformed = None;
        let position = self.jobs.lent.iter().position(|lent| lent.number == job.number);
        let Some(position) = position else {
            return self.jobs.retire(job.stream, mem::take(&mut job.chain), job.rule.take());
        };
        let lent = self.jobs.lent.swap_remove(position);
        let Some(at) = self.streams.find(lent.stream) else { return };
        if self.turn.has_ended {
            return;
        }
        if let Some(reason) = job.broken.take() {
            self.give_up_filters(at, &lent, reason);
        } else {
            drop(lent);
            match job.work {
                Work::Up => self.finish_up(at, job, time),
                Work::Down => self.finish_down(at, job, time),
                Work::Rule => self.finish_question(at, job),
            }
        }
        self.end_if_idle();
        self.depart();
    }

    /// The next job, to be noted once it is whole.
    pub(crate) fn new_job(
        &mut self,
        stream: StreamId,
        work: Work,
        chain: Chain,
        load: Load,
    ) -> Job {
        self.jobs.last_number += 1;
        self.job_of(stream, work, chain, load)
    }

    /// A job of these filters.
    fn job_of(&self, stream: StreamId, work: Work, chain: Chain, load: Load) -> Job {
        let open = self.streams.get(stream);
        Job {
            number: self.jobs.last_number,
            stream,
            work,
            rank: self.turn.rank_or_max(),
            is_root: self.turn.settings.role == Role::FrontEnd,
            children: open.map_or(0, |open| open.slots.len() as u32),
            back_ends: open.map_or(0, |open| open.below.len() as u32),
            chain,
            batch: Batch::new(load),
            inherited: Vec::new(),
            wants_copy: false,
            handed_over: None,
            spare: Vec::new(),
            failures: Vec::new(),
            first_copy: None,
            made: Vec::new(),
            rule: None,
            decided: None,
            broken: None,
        }
    }

    /// Remembers that a job is out.
    pub(crate) fn note_lent(&mut self, job: &Job) {
        let limit = self.jobs.limit;
        self.jobs.lent.push(Lent {
            number: job.number,
            stream: job.stream,
            work: job.work,
            batch: Arc::clone(&job.batch),
            steps: 0,
            until: (!limit.is_zero()).then(|| self.turn.now + limit),
        });
    }

    /// Looks after the jobs that have been out for long, when the time has come.
    pub(crate) fn look_after_jobs(&mut self) {
        let (now, limit) = (self.turn.now, self.jobs.limit);
        let mut index = 0;
        while let Some(lent) = self.jobs.lent.get_mut(index) {
            let steps = lent.batch.steps();
            if lent.until.is_none_or(|until| until > now) {
                index += 1;
            } else if steps > lent.steps {
                // It is slow, but comes along.
                lent.steps = steps;
                lent.until = Some(now + limit);
                index += 1;
            } else {
                let lent = self.jobs.lent.swap_remove(index);
                if let Some(at) = self.streams.find(lent.stream) {
                    let reason = format!("has run for {} ms and is given up", limit.as_millis());
                    self.give_up_filters(at, &lent, reason);
                }
            }
        }
        self.end_if_idle();
    }

    /// Filters do not come back: everything that they were to work on fails.
    fn give_up_filters(&mut self, at: usize, lent: &Lent, reason: String) {
        let stream = self.streams.at(at);
        let ended = stream.ended;
        let names = stream.names_of(lent.work);
        let reason = format!("{names} of stream {} {reason}", stream.id);
        let error = FilterError::Failed(reason.clone());
        match &lent.batch.load {
            Load::Waves(items) => {
                // What they held is lost; there is nothing to be handed over any more.
                stream.handover = None;
                if let Some(offload) = &mut stream.offload {
                    offload.phase = Phase::GivenUp(error.clone());
                }
                self.complain(at, ended, &reason);
                for item in items {
                    self.emit_finished(at, item, Some(Err(&error)));
                }
                self.streams.at(at).waves.give_back();
                self.go_on(at);
            }
            Load::Packets(packets) => {
                if let Some(offload) = &mut stream.down_offload {
                    offload.phase = Phase::GivenUp(error);
                }
                self.complain(at, ended, &format!("{reason} (downward)"));
                self.drop_down(at, packets.len());
            }
            Load::Question(_) => {
                stream.give_up_rule(error);
                self.complain(at, ended, &reason);
                self.go_on(at);
            }
        }
    }

    /// Sends on what waited for a job of the stream.
    pub(crate) fn go_on(&mut self, at: usize) {
        self.emit_ready(at);
        self.end_if_deserted(at);
        if self.turn.settings.role == Role::FrontEnd {
            self.owe_acknowledgement(at);
        }
    }

    /// A stream is forgotten: nobody waits for its filters, and they are let go of where they run.
    pub(crate) fn retire_filters(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let id = stream.id;
        let up = stream.offload.is_some().then(|| mem::take(&mut stream.up));
        let down = stream.down_offload.is_some().then(|| mem::take(&mut stream.down));
        let rule = stream.retire_rule();
        for chain in [up, down].into_iter().flatten() {
            self.jobs.retire(id, chain, None);
        }
        self.jobs.retire(id, Chain::default(), rule);
        self.jobs.lent.retain(|lent| lent.stream != id);
    }
}

/// Upward.
impl Node {
    /// Whether the next wave is left to a job, which is asked for if there is one to be done; not
    /// so when the filters have been given up.
    pub(crate) fn is_left_to_job(&mut self, at: usize) -> bool {
        if self.streams.at(at).given_up().is_some() {
            return false;
        }
        self.ask_for_work(at);
        true
    }

    /// Has the upward filters given out if there is something to do.
    pub(crate) fn ask_for_work(&mut self, at: usize) {
        let now = self.turn.now;
        // One that leaves begins no further wave: its children send it to another.
        let is_leaving = self.membership.departs_until.is_some();
        let stream = self.streams.at(at);
        let Some(offload) = &mut stream.offload else { return };
        let has_work = offload.wants_copy
            || !offload.inherited.is_empty()
            || !is_leaving && stream.waves.is_ready(now);
        if has_work && matches!(offload.phase, Phase::Idle) {
            offload.phase = Phase::Listed;
            self.jobs.list(stream.id, Work::Up);
        }
    }

    /// Takes the next waves of a stream out of its table. Those that need no filter go on at once
    /// if no other is among them.
    fn gather_up(&mut self, at: usize) -> Option<Job> {
        let (now, is_root) = (self.turn.now, self.turn.settings.role == Role::FrontEnd);
        let is_leaving = self.membership.departs_until.is_some();
        let offload = self.streams.at(at).offload.as_mut()?;
        offload.phase = Phase::Idle;
        let most = offload.stride.0;
        let (mut items, mut runs, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let stream = self.streams.at(at);
            let window = stream.request.window_bytes as usize;
            let is_enough = items.len() == most || !items.is_empty() && bytes >= window;
            let is_held = !stream.replies.is_empty() || !stream.has_room_up(is_root);
            if is_leaving || is_enough || is_held {
                break;
            }
            if stream.rule.is_some() {
                self.consult_rule(at);
            }
            let stream = self.streams.at(at);
            let Some((wave, is_single)) = stream.waves.take_ready(now) else { break };
            bytes += wave.charged_bytes();
            let route = self.begin_emission(at, &wave, is_single);
            let stream = self.streams.at(at);
            stream.waves.lend(&wave, is_single);
            if stream.keeps && !is_single {
                stream.record(&wave);
            }
            let item = Item { wave, is_single, route };
            runs += usize::from(item.runs());
            items.push(item);
        }
        let stream = self.streams.at(at);
        let offload = stream.offload.as_mut()?;
        let inherited = mem::take(&mut offload.inherited);
        let wants_copy = mem::take(&mut offload.wants_copy) || !inherited.is_empty();
        let (spare, id) = (mem::take(&mut offload.spare), stream.id);
        if runs == 0 && !wants_copy {
            self.finish_items(at, items, &mut Vec::new());
            self.go_on(at);
            return None;
        }
        let stream = self.streams.at(at);
        if let Some(offload) = &mut stream.offload {
            offload.phase = Phase::AtWork;
        }
        let handed_over = stream.handover.as_ref().map(|handover| handover.sent);
        let chain = mem::take(&mut stream.up);
        let job = self.new_job(id, Work::Up, chain, Load::Waves(items));
        let job = Job { inherited, wants_copy, handed_over, spare, ..job };
        self.note_lent(&job);
        Some(job)
    }

    /// Filters have come back.
    fn finish_up(&mut self, at: usize, job: Job, time: Duration) {
        let Job { chain, batch, spare, failures, first_copy, mut made, .. } = job;
        let stream = self.streams.at(at);
        let ended = stream.ended;
        stream.up = chain;
        if let Some(offload) = &mut stream.offload {
            offload.phase = Phase::Idle;
            offload.spare = spare;
            if !made.is_empty() {
                offload.note_time(made.len(), time);
            }
        }
        for error in failures {
            self.complain_of_loss(at, &error);
        }
        if let Some(copy) = first_copy {
            self.hand_over_copy(at, ended, copy);
        }
        // The node has let go of its own share of the batch.
        if let Some(Batch { load: Load::Waves(items), .. }) = Arc::into_inner(batch) {
            made.reverse();
            self.finish_items(at, items, &mut made);
        }
        let stream = self.streams.at(at);
        if stream.offload.as_ref().is_some_and(|offload| offload.is_done()) {
            stream.offload = None;
        }
        self.go_on(at);
    }

    /// Sends on waves that were out of the table; `made` is what came of those that needed a
    /// filter, the first last.
    fn finish_items(&mut self, at: usize, items: Vec<Item>, made: &mut Vec<Made>) {
        for item in items {
            let made = if item.runs() { made.pop() } else { None };
            let Some(Made { mut made, copy }) = made else {
                self.emit_finished(at, &item, None);
                self.recycle(at, item.wave);
                continue;
            };
            if made.is_ok() && !item.is_single {
                self.note_taken_in_offload(at, item.wave.position.wave, copy);
            }
            self.emit_finished(at, &item, Some(made.as_mut().map_err(|error| &*error)));
            if let (Ok(emitter), Some(offload)) = (made, &mut self.streams.at(at).offload)
                && offload.spare.len() < SPARE_EMITTERS_MAX
            {
                offload.spare.push(emitter);
            }
            self.recycle(at, item.wave);
        }
        self.streams.at(at).waves.give_back();
    }
}

/// Downward.
impl Node {
    /// A packet waits for downward filters that run apart.
    pub(crate) fn queue_down(&mut self, at: usize, packet: PacketRef<'_>) {
        let stream = self.streams.at(at);
        let Some(offload) = &mut stream.down_offload else { return };
        if let Phase::GivenUp(_) = offload.phase {
            stream.dropped += 1;
            return;
        }
        let copy = match packet.try_to_packet() {
            Ok(copy) => copy,
            Err(lacking) => return self.fail_down(at, &lacking.into()),
        };
        offload.bytes += packet.body.len();
        offload.waiting.push_back(copy);
        self.ask_for_work_down(at);
    }

    fn ask_for_work_down(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let Some(offload) = &mut stream.down_offload else { return };
        if matches!(offload.phase, Phase::Idle) && !offload.waiting.is_empty() {
            offload.phase = Phase::Listed;
            self.jobs.list(stream.id, Work::Down);
        }
    }

    fn gather_down(&mut self, at: usize) -> Option<Job> {
        let stream = self.streams.at(at);
        let id = stream.id;
        let offload = stream.down_offload.as_mut()?;
        offload.first = offload.first();
        offload.phase = Phase::AtWork;
        let count = offload.waiting.len().min(offload.stride.0);
        let packets: Vec<Packet> = offload.waiting.drain(..count).collect();
        let spare = mem::take(&mut offload.spare);
        let chain = mem::take(&mut stream.down);
        let job = self.new_job(id, Work::Down, chain, Load::Packets(packets));
        let job = Job { spare, ..job };
        self.note_lent(&job);
        Some(job)
    }

    fn finish_down(&mut self, at: usize, job: Job, time: Duration) {
        let Job { chain, batch, spare, made, .. } = job;
        let stream = self.streams.at(at);
        stream.down = chain;
        let Some(offload) = &mut stream.down_offload else { return };
        offload.phase = Phase::Idle;
        offload.first = None;
        offload.spare = spare;
        offload.stride.adapt(time);
        let Load::Packets(packets) = &batch.load else { return };
        for (packet, Made { made, .. }) in packets.iter().zip(made) {
            if let Some(offload) = &mut self.streams.at(at).down_offload {
                offload.bytes = offload.bytes.saturating_sub(packet.body().len());
            }
            let emitter = made.unwrap_or_else(|error| {
                self.fail_down(at, &error);
                Emitter::new()
            });
            self.send_made_down(at, packet.as_ref(), &emitter);
            if let Some(offload) = &mut self.streams.at(at).down_offload {
                offload.spare.push(emitter);
            }
        }
        self.ask_for_work_down(at);
        self.grant_to_parent(at);
        self.close_if_idle(at);
    }

    /// The packets that downward filters had, and those that wait for them, come to nothing.
    fn drop_down(&mut self, at: usize, at_work: usize) {
        let stream = self.streams.at(at);
        let Some(offload) = &mut stream.down_offload else { return };
        stream.dropped += (at_work + offload.waiting.len()) as u64;
        offload.waiting.clear();
        (offload.bytes, offload.first) = (0, None);
        self.grant_to_parent(at);
        self.close_if_idle(at);
    }

    /// Whether a stream that is to close has packets at work that come before; it closes behind
    /// them.
    pub(crate) fn closes_later(&mut self, at: usize) -> bool {
        let Some(offload) = &mut self.streams.at(at).down_offload else { return false };
        offload.closes = offload.is_busy();
        offload.closes
    }

    fn close_if_idle(&mut self, at: usize) {
        let stream = self.streams.at(at);
        let id = stream.id;
        if stream.down_offload.as_ref().is_some_and(|offload| offload.closes && !offload.is_busy())
        {
            self.close_now(id);
        }
    }

    /// The front-end has ended the network: what is at work goes down first, for a short while.
    pub(crate) fn end_behind_packets(&mut self, reason: String) {
        self.jobs.ends = Some((self.turn.now + END_WAIT, reason));
        self.end_if_idle();
    }

    fn end_if_idle(&mut self) {
        let now = self.turn.now;
        let is_busy = |stream: &Stream| stream.down_offload.as_ref().is_some_and(|a| a.is_busy());
        let is_over = |&(until, _): &(Instant, String)| until <= now;
        let is_due = self.jobs.ends.as_ref().is_some_and(is_over);
        if (is_due || !self.streams.iter().any(is_busy))
            && let Some((_, reason)) = self.jobs.ends.take()
        {
            self.end(true, reason);
        }
    }
}

impl Stream {
    /// Why the upward filters are not called any more, if they are not.
    #[inline]
    pub(crate) fn given_up(&self) -> Option<FilterError> {
        match &self.offload.as_ref()?.phase {
            Phase::GivenUp(error) => Some(error.clone()),
            _ => None,
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

    fn is_at_work(&self) -> bool {
        self.is_busy() || self.down_offload.as_ref().is_some_and(|offload| offload.is_busy())
    }

    /// What is run, for people.
    fn names_of(&self, work: Work) -> String {
        let requests = match work {
            Work::Up => &self.request.up[..],
            Work::Down => &self.request.down[..],
            Work::Rule => self.request.rule.as_slice(),
        };
        let names: Vec<String> = requests.iter().map(|one| format!("'{}'", one.name)).collect();
        let what = if work == Work::Rule { "rule" } else { "filter" };
        format!("{what} {}", names.join(", "))
    }
}
