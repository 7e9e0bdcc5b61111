//! Waves out of the events of one process: whose part came when, and when the wave went on.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sapwood_packet::{Rank, StreamId, Wave};

use crate::interface::hops::{HopEvent, HopKind};

/// Waves of a stream that have begun and not gone on, at most; the oldest is given up for a further
/// one.
const OPEN_WAVES_MAX: usize = 1 << 12;
/// Streams with such waves, at most; those of the oldest stream are given up for a further one.
const OPEN_STREAMS_MAX: usize = 1 << 8;

/// A child's part of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartArrival {
    /// The child.
    pub child: Rank,
    /// When its part had come, in nanoseconds of the process's clock.
    pub time: u64,
}

/// A wave that has passed a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopWave {
    /// The stream.
    pub stream: StreamId,
    /// Its number.
    pub wave: Wave,
    /// The parts, in the order in which they came.
    pub arrivals: Vec<PartArrival>,
    /// How many parts it should have had; 0 at a back-end.
    pub awaited: u32,
    /// When it went on, in nanoseconds of the process's clock.
    pub sent_up: u64,
}

/// Whose part came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastArrival {
    /// The child.
    pub child: Rank,
    /// By how much later than the part before it, in nanoseconds: what the wave would gain if this
    /// part came no later than the others.
    pub margin: u64,
}

impl HopWave {
    /// Whether all parts came, and their events were not lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.awaited > 0 && self.arrivals.len() == self.awaited as usize
    }

    /// Whose part came last; none if the wave has a single part, is not whole, or several came
    /// together.
    #[must_use]
    pub fn last(&self) -> Option<LastArrival> {
        let [.., before, last] = &self.arrivals[..] else { return None };
        let is_alone = self.is_whole() && last.time > before.time;
        is_alone.then(|| LastArrival { child: last.child, margin: last.time - before.time })
    }
}

/// Sums of the waves of a stream that have passed a process. Times are nanoseconds of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSums {
    /// The stream.
    pub stream: StreamId,
    /// Waves that had all their parts.
    pub waves: u64,
    /// Waves that went on without some of them, or of which events were lost.
    pub partial: u64,
    /// From the first part to the last.
    pub spread: u64,
    /// From the last part to the sending.
    pub passing: u64,
    /// The longest of these.
    pub passing_most: u64,
}

/// Sums of a child's parts. Times are nanoseconds of the parent's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildSums {
    /// The stream.
    pub stream: StreamId,
    /// The child.
    pub child: Rank,
    /// Whole waves that it took part in.
    pub waves: u64,
    /// Those in which its part came last, alone.
    pub last: u64,
    /// Those in which its part came last together with others, in one turn of the parent.
    pub together: u64,
    /// Parts that came after their wave had gone on.
    pub late: u64,
    /// How long its part lay there before the last one came.
    pub waited: u64,
    /// Where its part came last: how much earlier the part before it was there.
    pub caused: u64,
    /// The most of these.
    pub caused_most: u64,
}

/// Puts the events of one process together to waves.
#[derive(Clone, Debug, Default)]
pub struct HopWaves {
    open: BTreeMap<StreamId, BTreeMap<Wave, Vec<PartArrival>>>,
}

impl HopWaves {
    /// Takes the next event; gives the waves that it ends to `ended`.
    pub fn add(&mut self, event: &HopEvent, mut ended: impl FnMut(HopWave)) {
        let HopEvent { time, stream, other, kind, .. } = *event;
        let waves = (0..u64::from(event.waves)).map(|index| event.wave.saturating_add(index));
        for wave in waves {
            match kind {
                HopKind::Arrived => {
                    let open = self.open.entry(stream).or_default();
                    open.entry(wave).or_default().push(PartArrival { child: other, time });
                    if open.len() > OPEN_WAVES_MAX {
                        open.pop_first();
                    }
                    if self.open.len() > OPEN_STREAMS_MAX {
                        self.open.pop_first();
                    }
                }
                HopKind::SentUp => {
                    let arrivals = self.take(stream, wave);
                    ended(HopWave { stream, wave, arrivals, awaited: other, sent_up: time });
                }
                HopKind::Late | HopKind::Down => {}
            }
        }
    }

    /// The parts of a wave that ends; a stream without waves is forgotten.
    fn take(&mut self, stream: StreamId, wave: Wave) -> Vec<PartArrival> {
        let Some(open) = self.open.get_mut(&stream) else { return Vec::new() };
        let arrivals = open.remove(&wave).unwrap_or_default();
        if open.is_empty() {
            self.open.remove(&stream);
        }
        arrivals
    }
}

/// Sums over waves: what the load-balance monitor shows of one process.
#[derive(Clone, Debug, Default)]
pub struct ArrivalSums {
    streams: BTreeMap<StreamId, StreamSums>,
    children: BTreeMap<(StreamId, Rank), ChildSums>,
}

impl ArrivalSums {
    /// Adds a wave that has passed.
    pub fn add_wave(&mut self, wave: &HopWave) {
        let stream = wave.stream;
        let sums =
            self.streams.entry(stream).or_insert(StreamSums { stream, ..StreamSums::default() });
        let ([first, ..], [.., last]) = (&wave.arrivals[..], &wave.arrivals[..]) else {
            sums.partial += u64::from(wave.awaited > 0);
            sums.waves += u64::from(wave.awaited == 0);
            return;
        };
        if !wave.is_whole() {
            sums.partial += 1;
            return;
        }
        let passing = wave.sent_up.saturating_sub(last.time);
        sums.waves += 1;
        sums.spread = sums.spread.saturating_add(last.time.saturating_sub(first.time));
        sums.passing = sums.passing.saturating_add(passing);
        sums.passing_most = sums.passing_most.max(passing);
        let alone = wave.last();
        for part in &wave.arrivals {
            let mine = self.child(stream, part.child);
            mine.waves += 1;
            mine.waited = mine.waited.saturating_add(last.time.saturating_sub(part.time));
            match alone {
                Some(alone) if alone.child == part.child => {
                    mine.last += 1;
                    mine.caused = mine.caused.saturating_add(alone.margin);
                    mine.caused_most = mine.caused_most.max(alone.margin);
                }
                // An only child comes with no other.
                None if part.time == last.time && wave.arrivals.len() > 1 => mine.together += 1,
                _ => {}
            }
        }
    }

    /// Counts a child's part that came after its wave.
    pub fn add_late(&mut self, event: &HopEvent) {
        self.child(event.stream, event.other).late += u64::from(event.waves);
    }

    /// Adds what another time or another process has summed.
    pub fn merge(&mut self, streams: &[StreamSums], children: &[ChildSums]) {
        for one in streams {
            let sums = self
                .streams
                .entry(one.stream)
                .or_insert(StreamSums { stream: one.stream, ..StreamSums::default() });
            sums.waves = sums.waves.saturating_add(one.waves);
            sums.partial = sums.partial.saturating_add(one.partial);
            sums.spread = sums.spread.saturating_add(one.spread);
            sums.passing = sums.passing.saturating_add(one.passing);
            sums.passing_most = sums.passing_most.max(one.passing_most);
        }
        for one in children {
            let mine = self.child(one.stream, one.child);
            mine.waves = mine.waves.saturating_add(one.waves);
            mine.last = mine.last.saturating_add(one.last);
            mine.together = mine.together.saturating_add(one.together);
            mine.late = mine.late.saturating_add(one.late);
            mine.waited = mine.waited.saturating_add(one.waited);
            mine.caused = mine.caused.saturating_add(one.caused);
            mine.caused_most = mine.caused_most.max(one.caused_most);
        }
    }

    /// By stream.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamSums> {
        self.streams.values().copied().collect()
    }

    /// By stream and child.
    #[must_use]
    pub fn children(&self) -> Vec<ChildSums> {
        self.children.values().copied().collect()
    }

    fn child(&mut self, stream: StreamId, child: Rank) -> &mut ChildSums {
        let new = ChildSums { stream, child, ..ChildSums::default() };
        self.children.entry((stream, child)).or_insert(new)
    }
}
