//! Offloaded filters, which take virtual time: the same as the built-in ones, under names of their
//! own.
//!
//! A job is computed when the node emits it; its result is returned after a virtual delay, in a
//! turn of its own. Which streams of a run have such filters, and how slow these are, does not
//! change anything else that its seed draws.

use alloc::boxed::Box;

use sapwood_filter::{Emitter, Filter, FilterError, FilterSpec, Registry, WaveRef};
use sapwood_node::Job;
use sapwood_packet::ValuesRef;
use sapwood_random::Random;

use crate::agenda::{MICROSECOND, MILLISECOND, Time};
use crate::chance;
use crate::scenario::{Kind, SETTLE_MAX, Scenario};
use crate::world::World;

/// One run in this many has such streams.
const RUNS: u64 = 3;

/// Which streams are offloaded, and how long a job takes.
#[derive(Debug)]
pub(crate) struct Slowness {
    chance: Random,
    is_used: bool,
    /// The longest that a job takes.
    time_max: Time,
}

impl Slowness {
    /// Of the run of a seed. No stream is so slow that it would take longer than a run has.
    pub(crate) fn draw(seed: u64, scenario: &Scenario) -> Self {
        let mut chance = chance::of_seed(seed ^ 0x0a9a_97f1_17e2);
        let is_used = chance.one_in(RUNS);
        let times = [10 * MICROSECOND, MILLISECOND, 20 * MILLISECOND, 200 * MILLISECOND];
        // Each packet may go by itself, where windows are small one behind the other, and a process
        // waits for its parent's filters before its own go on.
        let packets = scenario.streams.iter().map(|plan| plan.waves).max().unwrap_or(0)
            * u64::from(scenario.shape.back_end_count());
        let time_max = *chance.choose(&times);
        Self { chance, is_used, time_max: time_max.min(SETTLE_MAX / 2 / packets.max(1)) }
    }

    /// The filter of a stream that computes this.
    pub(crate) fn filter(&mut self, kind: Kind) -> Option<FilterSpec> {
        let name = kind.filter()?;
        if !self.is_used || self.chance.one_in(3) {
            return Some(FilterSpec::from(name));
        }
        let at = FILTERS.iter().position(|&(built_in, _, _)| built_in == name)?;
        Some(FilterSpec::from(FILTERS[at].1))
    }

    fn time(&mut self) -> Time {
        if self.chance.one_in(4) { 0 } else { self.chance.below(self.time_max) }
    }
}

/// A filter that must not be called in the loop.
struct Offloaded(Box<dyn Filter>);

impl Filter for Offloaded {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        self.0.transform(wave, out)
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}

type Maker = fn(ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError>;

/// Names of built-in filters, and of their offloaded counterparts.
const FILTERS: [(&str, &str, Maker); 6] = [
    ("sum", "async-sum", |parameters| made("sum", parameters)),
    ("max", "async-max", |parameters| made("max", parameters)),
    ("average", "async-average", |parameters| made("average", parameters)),
    ("statistics", "async-statistics", |parameters| made("statistics", parameters)),
    ("concatenate", "async-concatenate", |parameters| made("concatenate", parameters)),
    ("equivalence", "async-equivalence", |parameters| made("equivalence", parameters)),
];

fn made(name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    let filter = Registry::built_in().make(name, parameters)?;
    Ok(Box::new(Offloaded(filter)))
}

/// Adds these filters to others.
pub(crate) fn register(registry: Registry) -> Registry {
    FILTERS.iter().fold(registry, |registry, &(_, name, maker)| registry.with(name, maker))
}

impl World {
    /// Runs a process's offloaded jobs: at once, or with a delay.
    pub(crate) fn run_jobs(&mut self, process: usize) {
        while self.processes[process].node.has_job() {
            let clock = self.processes[process].clock(self.now);
            let job = self.processes[process].node.take_job(clock);
            self.do_outputs(process);
            let Some(mut job) = job else { continue };
            job.run();
            match self.slowness.time() {
                0 => self.finish_job(process, job),
                time => {
                    let due = self.now + time;
                    self.note(process, || alloc::format!("filters of {} work", job.stream()));
                    self.processes[process].jobs.push((due, job));
                    self.poke(process, due);
                }
            }
        }
    }

    /// Gives back the jobs whose time is over; gives how many.
    pub(crate) fn finish_jobs(&mut self, process: usize) -> u64 {
        let mut count = 0;
        let now = self.now;
        let is_due = |(due, _): &(Time, Job)| *due <= now;
        while let Some(at) = self.processes[process].jobs.iter().position(is_due) {
            let (_, job) = self.processes[process].jobs.swap_remove(at);
            self.finish_job(process, job);
            self.carry_out(process);
            count += 1;
        }
        count
    }

    fn finish_job(&mut self, process: usize, job: Job) {
        let one = &mut self.processes[process];
        let clock = one.clock(self.now);
        one.node.finish_job(clock, job, core::time::Duration::ZERO);
        self.do_outputs(process);
    }
}
