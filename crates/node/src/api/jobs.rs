//! The jobs of offloaded filters and rules.

use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use sapwood_packet::StreamId;

use crate::interface::Instant;
use crate::interface::work::Work;
use crate::node::Node;
use crate::transform::fairness::{SLOW, VERY_SLOW};
use crate::transform::job::{Job, Load};
use crate::transform::offload::Retired;

impl Node {
    /// Whether there is a job to be done, for [`Node::take_job`].
    #[inline]
    #[must_use]
    pub fn has_job(&self) -> bool {
        !self.turn.jobs_wanted.is_empty() || !self.streams.jobs.retired.is_empty()
    }

    /// How many jobs are out that the node waits for.
    #[must_use]
    pub fn jobs_out(&self) -> usize {
        self.streams.jobs.lent.len()
    }

    /// Whether filters are at work, or about to be, on what is still to be sent.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.streams.has_work()
    }

    /// The next job, whose time begins now. This changes the node as an input does: drain
    /// [`Node::poll_output`] afterwards.
    pub fn take_job(&mut self, now: Instant) -> Option<Job> {
        self.turn.now = now;
        self.turn.transformed = None;
        while let Some((id, work)) = self.turn.jobs_wanted.pop_front() {
            let Some((stream, jobs)) = self.streams.with_jobs(id) else { continue };
            let job = match work {
                Work::Up => stream.gather_up(jobs, &mut self.turn),
                Work::Down => stream.gather_down(jobs, &mut self.turn),
                Work::Rule => stream.gather_question(jobs, &mut self.turn),
            };
            if job.is_some() {
                return job;
            }
        }
        let Retired { stream, chain, rule } = self.streams.jobs.retired.pop()?;
        let load = Load::Packets(Vec::new());
        let job = Job::new(0, stream, Work::Up, chain, load, self.turn.rank());
        Some(Job { rule, ..job })
    }

    /// A job has been run, which took that long. This changes the node as an input does.
    pub fn finish_job(&mut self, now: Instant, mut job: Job, time: Duration) {
        self.turn.now = now;
        self.turn.transformed = None;
        let position = self.streams.jobs.lent.iter().position(|lent| lent.number == job.number);
        let Some(position) = position else {
            return self.streams.jobs.retire(
                job.stream,
                mem::take(&mut job.chain),
                job.rule.take(),
            );
        };
        let lent = self.streams.jobs.lent.swap_remove(position);
        let id = lent.stream;
        let Some(stream) = self.streams.get_mut(id).filter(|_| !self.turn.has_ended) else {
            return;
        };
        if let Some(reason) = job.broken.take() {
            stream.give_up_filters(&lent, reason, &mut self.turn);
        } else {
            drop(lent);
            match job.work {
                Work::Up => stream.finish_up(job, time, &mut self.turn),
                Work::Down => stream.finish_down(job, time, &mut self.turn),
                Work::Rule => stream.finish_question(job, &mut self.turn),
            }
        }
        self.streams.close_if_idle(id, &mut self.turn);
        self.tree_change().end_if_idle();
        self.tree_change().depart();
    }

    /// The stream whose filters have made packets since the last question, if there is one: the
    /// caller may say how long that took, with [`Node::spent`].
    pub fn take_transformed(&mut self) -> Option<StreamId> {
        self.turn.transformed.take().map(|(stream, _)| stream)
    }

    /// A stream's filters have run for this time, until `now`.
    pub fn spent(&mut self, stream: StreamId, now: Instant, time: Duration) {
        let Some(open) = self.streams.get_mut(stream) else { return };
        let was_slow = core::mem::replace(&mut open.filter_timing.is_slow, time >= SLOW);
        if time >= VERY_SLOW || was_slow && open.filter_timing.is_slow {
            self.turn.now = now;
            open.begin_offload();
        }
    }
}
