//! The jobs of filters and rules that run apart from the loop.

use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use sapwood_packet::StreamId;

use crate::interface::Instant;
use crate::node::Node;
use crate::transform::fairness::{SLOW, VERY_SLOW};
use crate::transform::job::{Job, Load, Work};

impl Node {
    /// Whether there is a job to be done, for [`Node::take_job`].
    #[inline]
    #[must_use]
    pub fn has_job(&self) -> bool {
        !self.streams.jobs.listed.is_empty() || !self.streams.jobs.retired.is_empty()
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
        while let Some((id, work)) = self.streams.jobs.listed.pop_front() {
            let Some(at) = self.streams.find(id) else { continue };
            let job = match work {
                Work::Up => self.streams.gather_up(at, &mut self.turn),
                Work::Down => self.streams.gather_down(at, &mut self.turn),
                Work::Rule => self.streams.gather_question(at, &mut self.turn),
            };
            if job.is_some() {
                return job;
            }
        }
        let (stream, chain, rule) = self.streams.jobs.retired.pop()?;
        let load = Load::Packets(Vec::new());
        Some(Job {
            number: 0,
            rule,
            ..self.streams.job_of(stream, Work::Up, chain, load, &self.turn)
        })
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
        let Some(at) = self.streams.find(lent.stream) else { return };
        if self.turn.has_ended {
            return;
        }
        if let Some(reason) = job.broken.take() {
            self.streams.give_up_filters(at, &lent, reason, &mut self.turn);
        } else {
            drop(lent);
            match job.work {
                Work::Up => self.streams.finish_up(at, job, time, &mut self.turn),
                Work::Down => self.streams.finish_down(at, job, time, &mut self.turn),
                Work::Rule => self.streams.finish_question(at, job, &mut self.turn),
            }
        }
        self.membership.end_if_idle(&mut self.streams, &mut self.turn);
        self.membership.depart(&mut self.streams, &mut self.turn);
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
