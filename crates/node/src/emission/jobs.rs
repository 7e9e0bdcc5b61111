//! Lends offloaded filters and rules to jobs, and sends on what they made.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use sapwood_filter::{Chain, Emitter, FilterError};
use sapwood_packet::{Packet, PacketRef, StreamId};

use crate::interface::work::Work;
use crate::interface::{Instant, Role};
use crate::streams::stream::Stream;
use crate::streams::table::Streams;
use crate::transform::job::{Batch, Item, Job, Load, Made};
use crate::transform::offload::{DownOffload, END_WAIT, Jobs, Lent, Phase, SPARE_EMITTERS_MAX};
use crate::turn::Turn;

impl Streams {
    /// When filters are to go on, or to be looked after. Asked after every input.
    #[inline]
    pub(crate) fn filter_deadline(&self, turn: &Turn) -> Option<Instant> {
        if self.jobs.lent.is_empty() && self.jobs.ends.is_none() {
            return turn.yields_until;
        }
        self.jobs.deadline().into_iter().chain(turn.yields_until).min()
    }

    /// Looks after the jobs that have been out for long, when the time has come.
    pub(crate) fn look_after_jobs(&mut self, turn: &mut Turn) {
        let (now, limit) = (turn.now, self.jobs.limit);
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
                if let Some(at) = self.find(lent.stream) {
                    let reason = format!("has run for {} ms and is given up", limit.as_millis());
                    self.at(at).give_up_filters(&lent, reason, turn);
                    self.close_if_idle(lent.stream, turn);
                }
            }
        }
    }
}

/// Downward and the ends of jobs.
impl Streams {
    /// Closes a stream that was to close behind packets that were at work.
    pub(crate) fn close_if_idle(&mut self, id: StreamId, turn: &mut Turn) {
        let is_idle = |offload: &DownOffload| offload.closes && !offload.is_busy();
        let offload = self.get(id).and_then(|stream| stream.down_offload.as_ref());
        if offload.is_some_and(|offload| is_idle(offload)) {
            self.close_now(id, turn);
        }
    }

    /// The front-end has ended the network: what is at work goes down first, for a short while.
    pub(crate) fn end_behind_jobs(&mut self, reason: String, turn: &mut Turn) {
        self.jobs.ends = Some((turn.now + END_WAIT, reason));
    }

    /// Why the network ends now, if it is to end and no packet is at work any more.
    pub(crate) fn take_end(&mut self, turn: &mut Turn) -> Option<String> {
        let now = turn.now;
        let is_busy = |stream: &Stream| stream.down_offload.as_ref().is_some_and(|a| a.is_busy());
        let is_over = |&(until, _): &(Instant, String)| until <= now;
        let is_due = self.jobs.ends.as_ref().is_some_and(is_over);
        let is_over = is_due || !self.iter().any(is_busy);
        is_over.then(|| self.jobs.ends.take()).flatten().map(|(_, reason)| reason)
    }
}

impl Stream {
    /// A packet waits for downward offloaded filters.
    pub(crate) fn queue_down(&mut self, packet: PacketRef<'_>, turn: &mut Turn) {
        let Some(offload) = &mut self.down_offload else { return };
        if let Phase::GivenUp(_) = offload.phase {
            self.dropped += 1;
            return;
        }
        let copy = match packet.try_to_packet() {
            Ok(copy) => copy,
            Err(lacking) => return self.fail_down(&lacking.into(), turn),
        };
        offload.bytes += packet.body.len();
        offload.waiting.push_back(copy);
        self.ask_for_work_down(turn);
    }

    /// The packets that downward filters had, and those that wait for them, come to nothing.
    fn drop_down(&mut self, at_work: usize, turn: &mut Turn) {
        let Some(offload) = &mut self.down_offload else { return };
        self.dropped += (at_work + offload.waiting.len()) as u64;
        offload.waiting.clear();
        (offload.bytes, offload.first) = (0, None);
        self.grant_to_parent(turn);
    }

    /// Whether the next wave is left to a job, which is asked for if there is one to be done; not
    /// so when the filters have been given up.
    pub(crate) fn is_left_to_job(&mut self, turn: &mut Turn) -> bool {
        if self.given_up().is_some() {
            return false;
        }
        self.ask_for_work(turn);
        true
    }

    /// Queues a job for the upward filters if there is work.
    pub(crate) fn ask_for_work(&mut self, turn: &mut Turn) {
        let now = turn.now;
        // A leaving process begins no wave: its children retransmit it to their next parent.
        let is_leaving = turn.departs_until.is_some();
        let Some(offload) = &mut self.offload else { return };
        let has_work = offload.wants_copy
            || !offload.inherited.is_empty()
            || !is_leaving && self.waves.is_ready(now);
        if has_work && matches!(offload.phase, Phase::Idle) {
            offload.phase = Phase::Listed;
            let id = self.id;
            turn.jobs_wanted.push_back((id, Work::Up));
        }
    }

    fn ask_for_work_down(&mut self, turn: &mut Turn) {
        let Some(offload) = &mut self.down_offload else { return };
        if matches!(offload.phase, Phase::Idle) && !offload.waiting.is_empty() {
            offload.phase = Phase::Listed;
            let id = self.id;
            turn.jobs_wanted.push_back((id, Work::Down));
        }
    }

    pub(crate) fn finish_down(&mut self, job: Job, time: Duration, turn: &mut Turn) {
        let Job { chain, batch, spare, made, .. } = job;
        self.down = chain;
        let Some(offload) = &mut self.down_offload else { return };
        offload.phase = Phase::Idle;
        offload.first = None;
        offload.spare = spare;
        offload.stride.adapt(time);
        let Load::Packets(packets) = &batch.load else { return };
        for (packet, Made { made, .. }) in packets.iter().zip(made) {
            if let Some(offload) = &mut self.down_offload {
                offload.bytes = offload.bytes.saturating_sub(packet.body().len());
            }
            let emitter = made.unwrap_or_else(|error| {
                self.fail_down(&error, turn);
                Emitter::new()
            });
            self.send_made_down(packet.as_ref(), &emitter, turn);
            if let Some(offload) = &mut self.down_offload {
                offload.spare.push(emitter);
            }
        }
        self.ask_for_work_down(turn);
        self.grant_to_parent(turn);
    }

    pub(crate) fn gather_down(&mut self, jobs: &mut Jobs, turn: &mut Turn) -> Option<Job> {
        let offload = self.down_offload.as_mut()?;
        offload.first = offload.first();
        offload.phase = Phase::AtWork;
        let count = offload.waiting.len().min(offload.stride.0);
        let packets: Vec<Packet> = offload.waiting.drain(..count).collect();
        let spare = mem::take(&mut offload.spare);
        let chain = mem::take(&mut self.down);
        let job = self.job_of(jobs.next_number(), Work::Down, chain, Load::Packets(packets), turn);
        let job = Job { spare, ..job };
        jobs.lend(&job, turn.now);
        Some(job)
    }

    /// Takes the next waves of a stream out of its table. Those that need no filter go on at once
    /// if no other is among them.
    pub(crate) fn gather_up(&mut self, jobs: &mut Jobs, turn: &mut Turn) -> Option<Job> {
        let (now, role) = (turn.now, turn.settings.role);
        let is_leaving = turn.departs_until.is_some();
        let offload = self.offload.as_mut()?;
        offload.phase = Phase::Idle;
        let most = offload.stride.0;
        let (mut items, mut runs, mut bytes) = (Vec::new(), 0, 0);
        loop {
            let window = self.request.window_bytes as usize;
            let is_enough = items.len() == most || !items.is_empty() && bytes >= window;
            let is_held = !self.replies.is_empty() || !self.has_room_up(role);
            if is_leaving || is_enough || is_held {
                break;
            }
            if self.rule.is_some() {
                self.consult_rule(turn);
            }
            let Some((wave, kind)) = self.waves.take_ready(now) else { break };
            bytes += wave.charged_bytes();
            let route = self.begin_emission(&wave, kind, turn);
            self.waves.lend(&wave, kind);
            if self.keeps && !kind.is_single() {
                self.record_absence(&wave);
            }
            let item = Item { wave, kind, route };
            runs += usize::from(item.runs());
            items.push(item);
        }
        let offload = self.offload.as_mut()?;
        let inherited = mem::take(&mut offload.inherited);
        let wants_copy = mem::take(&mut offload.wants_copy) || !inherited.is_empty();
        let spare = mem::take(&mut offload.spare);
        if runs == 0 && !wants_copy {
            self.finish_items(items, &mut Vec::new(), turn);
            self.go_on(turn);
            return None;
        }
        if let Some(offload) = &mut self.offload {
            offload.phase = Phase::AtWork;
        }
        let taken_in = self.handover.as_ref().map(|handover| handover.taken_in);
        let chain = mem::take(&mut self.up);
        let job = self.job_of(jobs.next_number(), Work::Up, chain, Load::Waves(items), turn);
        let job = Job { inherited, wants_copy, taken_in, spare, ..job };
        jobs.lend(&job, turn.now);
        Some(job)
    }

    /// Filters do not come back: everything that they were to work on fails.
    pub(crate) fn give_up_filters(&mut self, lent: &Lent, reason: String, turn: &mut Turn) {
        let ended = self.ended;
        let names = self.names_of(lent.work);
        let reason = format!("{names} of stream {} {reason}", self.id);
        let error = FilterError::Failed(reason.clone());
        match &lent.batch.load {
            Load::Waves(items) => {
                // What they held is lost; there is nothing to be handed over any more.
                self.handover = None;
                if let Some(offload) = &mut self.offload {
                    offload.phase = Phase::GivenUp(error.clone());
                }
                self.complain(ended, &reason, turn);
                for item in items {
                    self.emit_finished(item, Some(Err(&error)), turn);
                }
                self.waves.give_back();
                self.go_on(turn);
            }
            Load::Packets(packets) => {
                if let Some(offload) = &mut self.down_offload {
                    offload.phase = Phase::GivenUp(error);
                }
                self.complain(ended, &format!("{reason} (downward)"), turn);
                self.drop_down(packets.len(), turn);
            }
            Load::Question(_) => {
                self.give_up_rule(error);
                self.complain(ended, &reason, turn);
                self.go_on(turn);
            }
        }
    }

    /// Sends on what waited for a job of the stream.
    pub(crate) fn go_on(&mut self, turn: &mut Turn) {
        self.emit_ready(turn);
        self.end_if_deserted(turn);
        if turn.settings.role == Role::FrontEnd {
            self.defer_acknowledgement(turn);
        }
    }

    /// A stream is forgotten: no wave waits for its filters, and they are dropped where they run.
    pub(crate) fn retire_filters(&mut self, jobs: &mut Jobs) {
        let id = self.id;
        let up = self.offload.is_some().then(|| mem::take(&mut self.up));
        let down = self.down_offload.is_some().then(|| mem::take(&mut self.down));
        let rule = self.retire_rule();
        for chain in [up, down].into_iter().flatten() {
            jobs.retire(id, chain, None);
        }
        jobs.retire(id, Chain::default(), rule);
        jobs.lent.retain(|lent| lent.stream != id);
    }

    /// Filters have come back.
    pub(crate) fn finish_up(&mut self, job: Job, time: Duration, turn: &mut Turn) {
        let Job { chain, batch, spare, failures, first_copy, mut made, .. } = job;
        let ended = self.ended;
        self.up = chain;
        if let Some(offload) = &mut self.offload {
            offload.phase = Phase::Idle;
            offload.spare = spare;
            if !made.is_empty() {
                offload.note_time(made.len(), time);
            }
        }
        for error in failures {
            self.complain_of_loss(&error, turn);
        }
        if let Some(copy) = first_copy {
            self.hand_over_copy(ended, copy, turn);
        }
        // The node has let go of its own share of the batch.
        if let Some(Batch { load: Load::Waves(items), .. }) = Arc::into_inner(batch) {
            made.reverse();
            self.finish_items(items, &mut made, turn);
        }
        if self.offload.as_ref().is_some_and(|offload| offload.is_done()) {
            self.offload = None;
        }
        self.go_on(turn);
    }

    /// Sends on waves that were out of the table; `made` is what came of those that needed a
    /// filter, the first last.
    fn finish_items(&mut self, items: Vec<Item>, made: &mut Vec<Made>, turn: &mut Turn) {
        for item in items {
            let made = if item.runs() { made.pop() } else { None };
            let Some(Made { mut made, copy }) = made else {
                self.emit_finished(&item, None, turn);
                self.recycle_wave(item.wave, turn);
                continue;
            };
            if made.is_ok() && !item.kind.is_single() {
                self.note_taken_in_offload(item.wave.position.wave, copy, turn);
            }
            self.emit_finished(&item, Some(made.as_mut().map_err(|error| &*error)), turn);
            if let (Ok(emitter), Some(offload)) = (made, &mut self.offload)
                && offload.spare.len() < SPARE_EMITTERS_MAX
            {
                offload.spare.push(emitter);
            }
            self.recycle_wave(item.wave, turn);
        }
        self.waves.give_back();
    }

    /// A job of its filters.
    pub(crate) fn job_of(
        &self,
        number: u64,
        work: Work,
        chain: Chain,
        load: Load,
        turn: &Turn,
    ) -> Job {
        Job {
            is_root: turn.settings.role == Role::FrontEnd,
            children: self.slots.len() as u32,
            back_ends: self.below.len() as u32,
            ..Job::new(number, self.id, work, chain, load, turn.rank())
        }
    }

    /// Whether a stream that is to close has packets at work that come before; it closes behind
    /// them.
    pub(crate) fn closes_later(&mut self) -> bool {
        let Some(offload) = &mut self.down_offload else { return false };
        offload.closes = offload.is_busy();
        offload.closes
    }

    /// Why the upward filters are not called any more, if they are not.
    #[inline]
    pub(crate) fn given_up(&self) -> Option<FilterError> {
        match &self.offload.as_ref()?.phase {
            Phase::GivenUp(error) => Some(error.clone()),
            _ => None,
        }
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

impl Streams {
    pub(crate) fn has_work(&self) -> bool {
        self.iter().any(Stream::is_at_work)
    }
}
