//! Events of all processes, joined by passage as they come in, round by round.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sapwood_node::{ArrivalSums, HopEvent, HopKind, PartArrival, ProcessHops};
use sapwood_packet::{Rank, StreamId, Wave, question_of};

use crate::hops::figures::{ByStream, HopLosses, StreamFigures};
use crate::hops::passage::{HopProcess, Passage, Processes, Stamps};
use crate::hops::scope::{HopScope, ScopedHops};
use crate::scope_figures::ScopeFigures;

/// Passages of a stream that wait for events, at most; the oldest is settled for a further one.
const PASSAGES_MAX: usize = 1 << 14;

/// Streams with such passages, at most; for a further one those of the oldest stream are settled.
const STREAMS_MAX: usize = 1 << 8;

/// Rounds of reading after the front-end's part until a passage is settled: events of other
/// processes may be read one round later.
const ROUNDS: u64 = 2;

/// By stream and wave: each stream has a room of its own, so that one whose passages never end
/// takes that of no other.
type ByWave<T> = BTreeMap<StreamId, BTreeMap<Wave, T>>;

/// The events of a tree, and the figures that follow.
#[derive(Clone, Debug, Default)]
pub struct HopTrace {
    tree: Processes,
    /// The processes that have children.
    parents: BTreeSet<Rank>,
    round: u64,
    open: ByWave<Passage>,
    /// When packets passed on their way down, by process.
    downs: ByWave<BTreeMap<Rank, u64>>,
    figures: ByStream,
    losses: BTreeMap<Rank, HopLosses>,
    /// Of sessions that have lapsed, and of waves.
    past: HopLosses,
    scopes: Vec<ScopedHops>,
}

impl HopTrace {
    /// One that makes figures for these scopes, too.
    #[must_use]
    pub fn with_scopes(scopes: impl IntoIterator<Item = HopScope>) -> Self {
        let scopes = scopes.into_iter().map(ScopedHops::new).collect();
        Self { scopes, ..Self::default() }
    }

    /// The figures of the scope of this number, from 0, of all that was settled since they were
    /// taken before; empty ones of a number that no scope has.
    pub fn take_scope(&mut self, number: usize) -> ScopeFigures {
        self.scopes.get_mut(number).map(ScopedHops::take).unwrap_or_default()
    }

    /// The streams that the scope of this number names and of which no time has come yet.
    #[must_use]
    pub fn unseen_streams(&self, number: usize) -> Vec<StreamId> {
        let unseen = self.scopes.get(number).map(ScopedHops::unseen);
        unseen.into_iter().flatten().copied().collect()
    }

    /// Takes a whole round of reading: the processes of the tree now, and what each has reported.
    pub fn take_round(
        &mut self,
        processes: impl IntoIterator<Item = HopProcess>,
        told: &[ProcessHops],
    ) {
        self.begin_round(processes);
        told.iter().for_each(|hops| self.absorb(hops));
        self.end_round();
    }

    /// A round of reading begins: these are the processes of the tree now.
    pub fn begin_round(&mut self, processes: impl IntoIterator<Item = HopProcess>) {
        self.round += 1;
        self.tree = processes.into_iter().map(|process| (process.rank, process)).collect();
        self.parents = self.tree.values().filter_map(|process| process.parent).collect();
    }

    /// Takes what a process has reported in this round.
    pub fn absorb(&mut self, hops: &ProcessHops) {
        let losses = HopLosses {
            noted: hops.noted,
            overwritten: hops.lost,
            unread: hops.unread,
            refused: hops.is_refused.into(),
            ..HopLosses::default()
        };
        let before = self.losses.insert(hops.rank, losses);
        if let Some(before) = before.filter(|before| hops.is_new && before.refused == 0) {
            let read = before.noted.saturating_sub(before.unread);
            self.past.noted = self.past.noted.saturating_add(read);
            self.past.overwritten = self.past.overwritten.saturating_add(before.overwritten);
            self.past.lapsed += 1;
        }
        for event in &hops.events {
            self.take(hops.rank, event);
        }
        for sums in &hops.streams {
            self.arrivals(sums.stream, hops.rank).merge(&[*sums], &[]);
        }
        for sums in &hops.children {
            self.arrivals(sums.stream, hops.rank).merge(&[], &[*sums]);
        }
    }

    /// Whose parts came last at a process.
    fn arrivals(&mut self, stream: StreamId, rank: Rank) -> &mut ArrivalSums {
        self.figures.entry(stream).or_default().arrivals.entry(rank).or_default()
    }

    fn take(&mut self, rank: Rank, event: &HopEvent) {
        if event.kind == HopKind::Late {
            return self.arrivals(event.stream, rank).add_late(event);
        }
        let is_root = self.tree.get(&rank).is_some_and(|process| process.parent.is_none());
        for index in 0..u64::from(event.waves) {
            let wave = event.wave.saturating_add(index);
            if event.kind == HopKind::Down {
                self.take_down(rank, (event.stream, wave), event.time);
                continue;
            }
            let open = self.open.entry(event.stream).or_default();
            let passage = open.entry(wave).or_default();
            let stamps = passage.processes.entry(rank).or_default();
            match event.kind {
                HopKind::SentUp => {
                    stamps.sent_up = Some(event.time);
                    stamps.awaited = event.other;
                    if is_root {
                        passage.ended_in = Some(self.round);
                    }
                }
                HopKind::Arrived => {
                    stamps.arrivals.push(PartArrival { child: event.other, time: event.time });
                }
                HopKind::Late | HopKind::Down => {}
            }
            if open.len() > PASSAGES_MAX
                && let Some((oldest, passage)) = open.pop_first()
            {
                self.settle((event.stream, oldest), passage);
            }
            if self.open.len() > STREAMS_MAX
                && let Some((stream, waves)) = self.open.pop_first()
            {
                waves.into_iter().for_each(|(wave, passage)| self.settle((stream, wave), passage));
            }
        }
    }

    fn take_down(&mut self, rank: Rank, (stream, wave): (StreamId, Wave), time: u64) {
        let downs = self.downs.entry(stream).or_default();
        downs.entry(wave).or_default().insert(rank, time);
        if downs.len() > PASSAGES_MAX
            && let Some((oldest, times)) = downs.pop_first()
        {
            self.settle_down((stream, oldest), times);
        }
        if self.downs.len() > STREAMS_MAX
            && let Some((stream, waves)) = self.downs.pop_first()
        {
            waves.into_iter().for_each(|(wave, times)| self.settle_down((stream, wave), times));
        }
    }

    /// A round of reading has ended: settles the passages of which no further events can come.
    pub fn end_round(&mut self) {
        let round = self.round;
        let has_ended = |_: &Wave, passage: &mut Passage| {
            passage.ended_in.is_some_and(|ended| ended + ROUNDS <= round)
        };
        let mut ended = Vec::new();
        self.open.retain(|&stream, waves| {
            let of_stream = waves.extract_if(.., has_ended);
            ended.extend(of_stream.map(|(wave, passage)| ((stream, wave), passage)));
            !waves.is_empty()
        });
        for (key, passage) in ended {
            self.settle(key, passage);
        }
    }

    /// Settles all passages: no further events come.
    pub fn finish(&mut self) {
        for (stream, waves) in core::mem::take(&mut self.open) {
            waves.into_iter().for_each(|(wave, passage)| self.settle((stream, wave), passage));
        }
        for (stream, waves) in core::mem::take(&mut self.downs) {
            waves.into_iter().for_each(|(wave, times)| self.settle_down((stream, wave), times));
        }
    }

    fn settle(&mut self, key: (StreamId, Wave), mut passage: Passage) {
        self.past.unfinished += u64::from(passage.ended_in.is_none());
        if let Some(question) = self.question_of(key, &passage)
            && let Some(downs) = self.downs.get_mut(&key.0)
        {
            for (rank, time) in downs.remove(&question).unwrap_or_default() {
                passage.processes.entry(rank).or_default().down = Some(time);
            }
            if downs.is_empty() {
                self.downs.remove(&key.0);
            }
        }
        self.add(key, &passage);
    }

    /// Adds the times of a passage to the figures of its stream, and gives them to the scopes.
    fn add(&mut self, key: (StreamId, Wave), passage: &Passage) {
        let links = passage.links(&self.tree);
        passage.settle(key, &self.tree, &links, self.figures.entry(key.0).or_default());
        let scopes = &mut self.scopes;
        if !scopes.is_empty() {
            passage.measure(key.0, &self.tree, &self.parents, &links, |measure| {
                scopes.iter_mut().for_each(|scope| scope.add(&measure));
            });
        }
    }

    /// The packet that a wave answers: that of its number where the wave says so by its own, or
    /// where the front-end sent that packet before the wave came and its next packet only then.
    fn question_of(&self, (stream, wave): (StreamId, Wave), passage: &Passage) -> Option<Wave> {
        if let Some(question) = question_of(wave) {
            return Some(question);
        }
        let root = self.tree.values().find(|process| process.parent.is_none())?.rank;
        let answered = passage.processes.get(&root)?.sent_up?;
        let sent = |number: Wave| self.downs.get(&stream)?.get(&number)?.get(&root).copied();
        let next = wave.checked_add(1).and_then(sent);
        let is_between = sent(wave)? <= answered && next.is_none_or(|next| answered <= next);
        is_between.then_some(wave)
    }

    /// A packet to which no answer belongs.
    fn settle_down(&mut self, key: (StreamId, Wave), times: BTreeMap<Rank, u64>) {
        let stamps = |time| Stamps { down: Some(time), ..Stamps::default() };
        let processes = times.into_iter().map(|(rank, time)| (rank, stamps(time))).collect();
        let passage = Passage { processes, ended_in: None };
        self.add(key, &passage);
    }

    /// The figures of the streams that waves have passed on.
    #[must_use]
    pub fn streams(&self) -> &BTreeMap<StreamId, StreamFigures> {
        &self.figures
    }

    /// What is lacking, over all processes.
    #[must_use]
    pub fn losses(&self) -> HopLosses {
        let mut sum = self.past;
        for one in self.losses.values() {
            sum.noted = sum.noted.saturating_add(one.noted);
            sum.overwritten = sum.overwritten.saturating_add(one.overwritten);
            sum.unread = sum.unread.saturating_add(one.unread);
            sum.refused += one.refused;
        }
        sum
    }
}
