//! Events of all processes, joined by passage as they come in, round by round.

use alloc::collections::BTreeMap;

use sapwood_node::{HopEvent, HopKind, PartArrival, ProcessHops};
use sapwood_packet::{Rank, StreamId, Wave, question_of};

use crate::hops::figures::{ByStream, HopLosses, StreamFigures};
use crate::hops::passage::{HopProcess, Passage, Processes, Stamps};

/// Passages that wait for events, at most; the oldest is settled for a further one.
const PASSAGES_MAX: usize = 1 << 14;

/// Rounds of reading after the front-end's part until a passage is settled: events of other
/// processes may be read one round later.
const ROUNDS: u64 = 2;

/// The events of a tree, and the figures that follow.
#[derive(Clone, Debug, Default)]
pub struct HopTrace {
    tree: Processes,
    round: u64,
    open: BTreeMap<(StreamId, Wave), Passage>,
    /// When packets passed on their way down, by process.
    downs: BTreeMap<(StreamId, Wave), BTreeMap<Rank, u64>>,
    figures: ByStream,
    losses: BTreeMap<Rank, HopLosses>,
    /// Of sessions that have lapsed, and of waves.
    past: HopLosses,
}

impl HopTrace {
    /// A round of reading begins: these are the processes of the tree now.
    pub fn begin_round(&mut self, processes: impl IntoIterator<Item = HopProcess>) {
        self.round += 1;
        self.tree = processes.into_iter().map(|process| (process.rank, process)).collect();
    }

    /// Takes what a process has told in this round.
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
            self.past.noted += before.noted - before.unread;
            self.past.overwritten += before.overwritten;
            self.past.lapsed += 1;
        }
        for event in &hops.events {
            self.take(hops.rank, event);
        }
        let by_stream = hops.streams.iter().map(|sums| sums.stream);
        for stream in by_stream.chain(hops.children.iter().map(|sums| sums.stream)) {
            self.figures.entry(stream).or_default();
        }
        for (&stream, figures) in &mut self.figures {
            let streams = hops.streams.iter().filter(|sums| sums.stream == stream);
            let children = hops.children.iter().filter(|sums| sums.stream == stream);
            let (streams, children): (alloc::vec::Vec<_>, alloc::vec::Vec<_>) =
                (streams.copied().collect(), children.copied().collect());
            if !streams.is_empty() || !children.is_empty() {
                figures.arrivals.entry(hops.rank).or_default().merge(&streams, &children);
            }
        }
    }

    fn take(&mut self, rank: Rank, event: &HopEvent) {
        if event.kind == HopKind::Late {
            let figures = self.figures.entry(event.stream).or_default();
            return figures.arrivals.entry(rank).or_default().add_late(event);
        }
        let is_root = self.tree.get(&rank).is_some_and(|process| process.parent.is_none());
        for index in 0..u64::from(event.waves) {
            let wave = event.wave.saturating_add(index);
            if event.kind == HopKind::Down {
                self.take_down(rank, (event.stream, wave), event.time);
                continue;
            }
            let passage = self.open.entry((event.stream, wave)).or_default();
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
            if self.open.len() > PASSAGES_MAX
                && let Some((key, oldest)) = self.open.pop_first()
            {
                self.settle(key, oldest);
            }
        }
    }

    fn take_down(&mut self, rank: Rank, key: (StreamId, Wave), time: u64) {
        self.downs.entry(key).or_default().insert(rank, time);
        if self.downs.len() > PASSAGES_MAX
            && let Some((key, oldest)) = self.downs.pop_first()
        {
            self.settle_down(key, oldest);
        }
    }

    /// A round of reading has ended: settles the passages of which no further events can come.
    pub fn end_round(&mut self) {
        let round = self.round;
        let ended = self.open.extract_if(.., |_, passage| {
            passage.ended_in.is_some_and(|ended| ended + ROUNDS <= round)
        });
        let ended: alloc::vec::Vec<_> = ended.collect();
        for (key, passage) in ended {
            self.settle(key, passage);
        }
    }

    /// Settles all passages: no further events come.
    pub fn finish(&mut self) {
        for (key, passage) in core::mem::take(&mut self.open) {
            self.settle(key, passage);
        }
        for (key, times) in core::mem::take(&mut self.downs) {
            self.settle_down(key, times);
        }
    }

    fn settle(&mut self, key: (StreamId, Wave), mut passage: Passage) {
        self.past.unfinished += u64::from(passage.ended_in.is_none());
        if let Some(question) = self.question_of(key, &passage) {
            for (rank, time) in self.downs.remove(&question).unwrap_or_default() {
                passage.processes.entry(rank).or_default().down = Some(time);
            }
        }
        let figures = self.figures.entry(key.0).or_default();
        passage.settle(key, &self.tree, figures);
    }

    /// The packet that a wave answers: that of its number where the wave says so by its own, or
    /// where the front-end sent that packet before the wave came and its next packet only then.
    fn question_of(
        &self,
        (stream, wave): (StreamId, Wave),
        passage: &Passage,
    ) -> Option<(StreamId, Wave)> {
        if let Some(question) = question_of(wave) {
            return Some((stream, question));
        }
        let root = self.tree.values().find(|process| process.parent.is_none())?.rank;
        let answered = passage.processes.get(&root)?.sent_up?;
        let sent = |number: Wave| self.downs.get(&(stream, number))?.get(&root).copied();
        let is_between =
            sent(wave)? <= answered && sent(wave + 1).is_none_or(|next| answered <= next);
        is_between.then_some((stream, wave))
    }

    /// A packet to which no answer belongs.
    fn settle_down(&mut self, key: (StreamId, Wave), times: BTreeMap<Rank, u64>) {
        let stamps = |time| Stamps { down: Some(time), ..Stamps::default() };
        let processes = times.into_iter().map(|(rank, time)| (rank, stamps(time))).collect();
        let passage = Passage { processes, ended_in: None };
        passage.settle(key, &self.tree, self.figures.entry(key.0).or_default());
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
            sum.noted += one.noted;
            sum.overwritten += one.overwritten;
            sum.unread += one.unread;
            sum.refused += one.refused;
        }
        sum
    }
}
