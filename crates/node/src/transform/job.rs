//! Filters and rules at work outside of the node: a stream's chain, or its synchronisation rule,
//! with what it is to work on, all of it owned, so that another thread can run it while the node
//! goes on.
//!
//! The node gives a [`Job`] ([`Node::take_job`](crate::Node::take_job)), its caller runs it, and
//! the node is given it back ([`Node::finish_job`](crate::Node::finish_job)). What comes of it is
//! sent only then. `offload` has the node's side.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};

use sapwood_filter::{Chain, Emitter, Filter, FilterError, Verdict, WaveRef};
use sapwood_packet::{Packet, PacketRef, Rank, StreamId, Values};
use smallvec::SmallVec;

use crate::interface::work::Work;
use crate::transform::route::Route;
use crate::transform::synchronisation::{Question, Rule};
use crate::waves::open_wave::OpenWave;
use crate::waves::replicas::WAVES;
use crate::waves::table::WaveKind;

/// What the filters with a composable state hold, in the order of [`Chain::composable`].
pub(crate) type StateCopy = Vec<Option<Values>>;

/// A wave that has left its stream's table.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) wave: Box<OpenWave>,
    pub(crate) kind: WaveKind,
    pub(crate) route: Route,
}

impl Item {
    /// Whether it goes through the filters, rather than past them.
    pub(crate) fn runs(&self) -> bool {
        self.route == Route::Transform && self.wave.fault.is_none() && self.wave.has_values()
    }
}

/// What the filters or the rule are given.
#[derive(Debug)]
pub(crate) enum Load {
    Waves(Vec<Item>),
    /// Whole packets on their way down.
    Packets(Vec<Packet>),
    Question(Question),
}

/// What a job works on: the node keeps it, too, so that it can answer in the place of filters that
/// never come back.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) load: Load,
    /// Steps that are done: it grows while the job runs.
    steps: AtomicU64,
}

impl Batch {
    pub(crate) fn new(load: Load) -> Arc<Self> {
        Arc::new(Self { load, steps: AtomicU64::new(0) })
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// What came of one wave or packet.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) made: Result<Emitter, FilterError>,
    /// What the filters hold behind it, when that is to be handed over.
    pub(crate) copy: Option<StateCopy>,
}

/// A stream's filters, or its rule, with what they are to work on. It belongs to the thread that
/// has it, which runs it once, on any thread.
#[derive(Debug)]
pub struct Job {
    pub(crate) number: u64,
    pub(crate) stream: StreamId,
    pub(crate) work: Work,
    pub(crate) rank: Rank,
    pub(crate) is_root: bool,
    pub(crate) children: u32,
    pub(crate) back_ends: u32,
    pub(crate) chain: Chain,
    pub(crate) batch: Arc<Batch>,
    /// States of other processes that are taken over first.
    pub(crate) inherited: Vec<(usize, Values)>,
    /// Whether a copy of the states is made before the first wave.
    pub(crate) wants_copy: bool,
    /// How many waves the filters have taken in behind the last copy, on a stream that hands over.
    pub(crate) taken_in: Option<u64>,
    /// Memory to be used again.
    pub(crate) spare: Vec<Emitter>,
    /// What could not be taken over.
    pub(crate) failures: Vec<FilterError>,
    pub(crate) first_copy: Option<StateCopy>,
    pub(crate) made: Vec<Made>,
    pub(crate) rule: Option<Rule>,
    /// What the rule has decided.
    pub(crate) decided: Option<Result<Verdict, FilterError>>,
    pub(crate) broken: Option<String>,
}

impl Job {
    /// A job of these filters, of a stream that is not open any more; `job_of` says the rest of
    /// one that is.
    pub(crate) fn new(
        number: u64,
        stream: StreamId,
        work: Work,
        chain: Chain,
        load: Load,
        rank: Rank,
    ) -> Self {
        Self {
            number,
            stream,
            work,
            rank,
            is_root: false,
            children: 0,
            back_ends: 0,
            chain,
            batch: Batch::new(load),
            inherited: Vec::new(),
            wants_copy: false,
            taken_in: None,
            spare: Vec::new(),
            failures: Vec::new(),
            first_copy: None,
            made: Vec::new(),
            rule: None,
            decided: None,
            broken: None,
        }
    }

    /// The stream whose filters these are.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Calls the filters or the rule. This may take any time, and may never return.
    pub fn run(&mut self) {
        let batch = Arc::clone(&self.batch);
        // Before the waves, all of which are later than what these states stand for.
        for (filter, state) in mem::take(&mut self.inherited) {
            if let Err(error) = self.chain.absorb_into(filter, state.as_ref()) {
                self.failures.push(error);
            }
            batch.step();
        }
        if self.wants_copy {
            self.first_copy = Some(copy_of(&self.chain));
            batch.step();
        }
        match &batch.load {
            Load::Waves(items) => {
                for item in items.iter().filter(|item| item.runs()) {
                    self.run_wave(item);
                    batch.step();
                }
            }
            Load::Packets(packets) => {
                for packet in packets {
                    self.run_packet(packet);
                    batch.step();
                }
            }
            Load::Question(question) => {
                let rule = self.rule.as_mut();
                self.decided = rule.map(|rule| rule.0.decide(&question.arrivals()));
            }
        }
        if self.is_last() {
            // Here and not in the event loop: what a foreign filter does at its end may take any
            // time, too.
            drop(mem::take(&mut self.chain));
            drop(self.rule.take());
        }
    }

    /// The filters have ended in a way that leaves them of no use, such as a panic: their stream is
    /// answered with this reason from now on. They are not called any more, not even to end.
    pub fn give_up(&mut self, reason: impl Into<String>) {
        mem::forget(mem::take(&mut self.chain));
        mem::forget(self.rule.take());
        self.broken = Some(reason.into());
    }

    /// Whether it only lets go of filters whose stream is closed.
    pub(crate) fn is_last(&self) -> bool {
        self.number == 0
    }

    fn run_wave(&mut self, item: &Item) {
        let wave = &item.wave;
        let packets: SmallVec<[PacketRef<'_>; 8]> = wave.packets().collect();
        let lent = WaveRef {
            stream: self.stream,
            wave: wave.position.wave,
            packets: &packets,
            contributors: wave.contributors.as_ref(),
            rank: self.rank,
            is_root: self.is_root,
            children: self.children,
            back_ends: self.back_ends,
        };
        let made = self.call(&lent);
        let mut copy = None;
        if let (Ok(_), WaveKind::Gathered, Some(taken_in)) = (&made, item.kind, &mut self.taken_in)
        {
            *taken_in += 1;
            // Behind a wave with which the filter gave its state out, since the parent would count
            // that state a second time; and after some waves anyway, which bounds what a death can
            // cost.
            if self.chain.has_released() || *taken_in >= WAVES {
                *taken_in = 0;
                copy = Some(copy_of(&self.chain));
            }
        }
        self.made.push(Made { made, copy });
    }

    fn run_packet(&mut self, packet: &Packet) {
        let lent = WaveRef {
            stream: self.stream,
            wave: 0,
            packets: &[packet.as_ref()],
            contributors: Default::default(),
            rank: self.rank,
            is_root: self.is_root,
            children: self.children,
            back_ends: self.back_ends,
        };
        let made = self.call(&lent);
        self.made.push(Made { made, copy: None });
    }

    fn call(&mut self, wave: &WaveRef<'_>) -> Result<Emitter, FilterError> {
        let mut emitter = self.spare.pop().unwrap_or_default();
        emitter.clear();
        self.chain.transform(wave, &mut emitter)?;
        crate::transform::emissions::check_emissions(&emitter)?;
        Ok(emitter)
    }
}

/// What a chain's filters with a composable state hold.
pub(crate) fn copy_of(chain: &Chain) -> StateCopy {
    chain.composable().iter().map(|&filter| chain.save_filter(filter)).collect()
}
