//! One member: its state, and which part of it handles which input.

mod config;
mod credit;
mod dispatch;
mod interface;
mod links;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use sapwood_packet::RankSet;
use sapwood_random::Random;

pub use config::Config;
pub(crate) use credit::{Credit, Due};
pub use interface::{Answer, Call, Event, Input, Output};
pub(crate) use links::Links;

use crate::hops::HopRing;
use crate::identity::{CastId, FoldId, MemberId, Request, Time};
use crate::measure::{Clusters, Flows, Prober, Registrar};
use crate::members::{Detector, Giving, Handed, Past, Spread, View};
use crate::message::{Message, PaperKind};
use crate::mutation::Mutation;
use crate::operations::{Definitions, Finished, Fold, Grace, Lane, Pending, ReduceCounts};
use crate::random;
use crate::status::History;
use crate::trees::{LastChoice, Papers, Terrain};

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// News is told to others.
    Spread,
    /// The clusters are computed.
    Compute,
    /// Distances are measured.
    Probe,
    /// A member is asked for a sign of life.
    Watch,
    /// A member whose connection has failed is dialled again.
    Redial(MemberId),
    /// An answer to a ping is late.
    Ping(u64),
    /// A call has not been answered.
    Deadline(Request),
    /// Children in a transfer have not answered.
    Patience(CastId, u8),
    /// Parts of a reduction have not come.
    FoldPatience(FoldId),
    /// A call that leaves a reduction early has waited for long enough.
    Grace(FoldId),
    /// A record that is over is forgotten.
    Linger(CastId, u8),
    /// The other stripes of a transfer have not come.
    LoneStripe(CastId, u8),
    /// The same of a reduction.
    FoldLinger(FoldId),
    /// The ends of reductions are told.
    Finish,
    /// A probe for the trees of the paper's rules.
    Paper(PaperKind),
    /// A hand-over of virtual nodes is looked at.
    Giving,
    /// A member that joins asks again for what it takes.
    Taking,
    /// A member that leaves has served others for long enough.
    Leave,
}

/// How far a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not a member yet.
    Outside,
    /// One of the group.
    Joined,
    /// It has left, and still forwards what it had accepted.
    Leaving,
    /// It handles nothing any more.
    Ended,
}

/// The state machine of one member of a group.
#[derive(Debug)]
pub struct Member {
    pub(crate) config: Config,
    pub(crate) me: MemberId,
    pub(crate) phase: Phase,
    pub(crate) now: Time,
    pub(crate) view: View,
    pub(crate) clusters: Clusters,
    pub(crate) papers: Papers,
    pub(crate) prober: Prober,
    pub(crate) flows: Flows,
    pub(crate) last_choice: LastChoice,
    pub(crate) registrar: Registrar,
    pub(crate) detector: Detector,
    pub(crate) past: Past,
    pub(crate) spread: Spread,
    pub(crate) giving: Option<Giving>,
    /// Until when a member that joins asks for what it takes.
    pub(crate) taking: Option<Time>,
    pub(crate) handed: Handed,
    pub(crate) links: Links,
    pub(crate) credit: Credit,
    pub(crate) history: History,
    pub(crate) hops: HopRing,
    pub(crate) lanes: BTreeMap<(CastId, u8), Lane>,
    pub(crate) floors: BTreeMap<MemberId, u64>,
    pub(crate) next_cast: u64,
    pub(crate) folds: BTreeMap<FoldId, Fold>,
    pub(crate) definitions: Definitions,
    pub(crate) finished: Finished,
    pub(crate) finishing: Vec<FoldId>,
    pub(crate) grace: Grace,
    pub(crate) reduce_counts: ReduceCounts,
    /// Reductions whose root has asked for a value that was not given yet.
    pub(crate) early_pulls: BTreeMap<FoldId, MemberId>,
    pub(crate) internal: u64,
    pub(crate) pending: BTreeMap<Request, Pending>,
    pub(crate) agenda: BTreeSet<(Time, Timer)>,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) random: Random,
    pub(crate) mutation: Option<Mutation>,
    asked_wake: Option<Time>,
}

impl Member {
    /// A process that may create a group or join one.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            me: config.id,
            phase: Phase::Outside,
            now: 0,
            view: View::default(),
            clusters: Clusters::default(),
            papers: Papers::default(),
            prober: Prober::default(),
            flows: Flows::default(),
            last_choice: LastChoice::default(),
            registrar: Registrar::default(),
            detector: Detector::default(),
            past: Past::default(),
            spread: Spread::default(),
            giving: None,
            taking: None,
            handed: Handed::default(),
            links: Links::default(),
            credit: Credit::default(),
            history: History::default(),
            hops: HopRing::default(),
            lanes: BTreeMap::new(),
            floors: BTreeMap::new(),
            next_cast: 1,
            folds: BTreeMap::new(),
            definitions: Definitions::default(),
            finished: Finished::default(),
            finishing: Vec::new(),
            grace: Grace::default(),
            reduce_counts: ReduceCounts::default(),
            early_pulls: BTreeMap::new(),
            internal: 0,
            pending: BTreeMap::new(),
            agenda: BTreeSet::new(),
            outputs: VecDeque::new(),
            random: random::of_seed(config.seed),
            mutation: None,
            asked_wake: None,
            config,
        }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.me
    }

    /// Where others dial it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.config.address
    }

    /// The members as it knows them.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The clusters as it knows them.
    #[must_use]
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// How many probes it has sent that measure distances.
    #[must_use]
    pub fn probes(&self) -> u64 {
        self.prober.sent
    }

    /// What it has done with the parts of reductions that came to it.
    #[must_use]
    pub fn reduce_counts(&self) -> ReduceCounts {
        self.reduce_counts
    }

    /// Transfers, reductions and calls that it holds any state of.
    #[must_use]
    pub fn held(&self) -> usize {
        let calls = self.pending.len() + self.put_off();
        self.lanes.len() + self.folds.len() + calls + self.handed.len()
    }

    /// Whether it joins and has not got what it takes over. It may not call before.
    #[must_use]
    pub fn is_taking(&self) -> bool {
        self.taking.is_some()
    }

    /// The virtual nodes that it carries.
    #[must_use]
    pub fn names(&self) -> RankSet {
        self.view.names_of(self.me)
    }

    pub(crate) fn terrain(&self) -> Terrain<'_> {
        Terrain {
            me: self.me,
            view: &self.view,
            clusters: &self.clusters,
            papers: &self.papers,
            overhead: self.config.overhead,
            busy: self.config.overhead,
        }
    }

    /// The same for a value of this length.
    pub(crate) fn terrain_for(&self, bytes: u64) -> Terrain<'_> {
        if let Some(near) = self.known_costs().near {
            return Terrain { overhead: near.work, busy: near.busy(bytes), ..self.terrain() };
        }
        let card = bytes.saturating_mul(1000) / self.config.card_rate.max(1);
        Terrain { busy: self.config.overhead.saturating_add(card), ..self.terrain() }
    }

    /// Sends, after a connection was asked for where there is none.
    pub(crate) fn send(&mut self, to: MemberId, message: Message) {
        if to == self.me {
            return;
        }
        self.connect(to);
        self.credit.note_sent(to, message.bulk_bytes());
        self.note_departure(to, &message);
        self.outputs.push_back(Output::Send { to, message });
    }

    /// Asks for a link to a member where there is none.
    pub(crate) fn connect(&mut self, to: MemberId) {
        if self.links.needs_connection(to) {
            let address = self.view.record(to).map(|record| record.address.clone());
            let address = address.unwrap_or_default();
            self.outputs.push_back(Output::Connect { member: Some(to), address });
        }
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.note_event(&event);
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn wake_at(&mut self, time: Time, timer: Timer) {
        self.agenda.insert((time, timer));
    }

    /// What is to be done next. Drain it after each input.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let next = self.agenda.first().map(|entry| entry.0);
        if next != self.asked_wake {
            self.asked_wake = next;
            return next.map(Output::Wake);
        }
        None
    }
}
