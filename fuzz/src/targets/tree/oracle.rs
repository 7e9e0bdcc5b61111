//! What is true of every answer, whatever the order: its value is the sum of what its contributors
//! sent, no member is in one wave twice, and members that are not in it are named.

use std::collections::{BTreeMap, BTreeSet};

use sapwood_filter::WaveRule;
use sapwood_node::{Answer, Policy, StreamSpec};
use sapwood_packet::{Rank, RankSet, StreamId, Wave};

struct Opened {
    members: RankSet,
    wave: WaveRule,
    is_sum: bool,
    drops: bool,
    window_bytes: usize,
}

/// Everything that back-ends have sent, and what has been answered.
#[derive(Default)]
pub(super) struct Oracle {
    streams: BTreeMap<StreamId, Opened>,
    /// Values, and whether they came in a long array.
    sent: BTreeMap<(StreamId, Wave, Rank), (i64, bool)>,
    next: BTreeMap<(StreamId, Rank), Wave>,
    answered: BTreeMap<(StreamId, Wave), RankSet>,
    refused: BTreeMap<(StreamId, Wave), RankSet>,
    on_time: BTreeSet<(StreamId, Wave)>,
}

impl Oracle {
    pub fn opened(&mut self, stream: StreamId, spec: &StreamSpec) {
        let opened = Opened {
            members: spec.members.clone(),
            wave: spec.wave,
            is_sum: spec.up.iter().all(|filter| filter.name == "sum"),
            drops: spec.policy == Policy::DropOldest,
            window_bytes: spec.window_bytes.unwrap_or_default() as usize,
        };
        self.streams.insert(stream, opened);
    }

    pub fn closed(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    pub fn next_wave(&self, stream: StreamId, rank: Rank) -> Wave {
        self.next.get(&(stream, rank)).copied().unwrap_or(0)
    }

    pub fn sent(&mut self, stream: StreamId, wave: Wave, rank: Rank, value: i64, is_long: bool) {
        self.next.insert((stream, rank), wave + 1);
        self.sent.insert((stream, wave, rank), (value, is_long));
    }

    /// What may wait on one link for all streams, in bytes.
    pub fn window_bytes(&self, packet_bytes: usize) -> usize {
        self.streams.values().map(|stream| 4 * (stream.window_bytes + packet_bytes)).sum()
    }

    /// An answer has come.
    pub fn check(&mut self, answer: &Answer) {
        let stream = self.streams.get(&answer.stream).expect("answers of closed streams are gone");
        let mut all = answer.contributors.clone();
        for missing in &answer.missing {
            assert!(!missing.reason.is_empty(), "a reason says something");
            assert!(!all.as_ref().intersects(missing.ranks.as_ref()), "named twice: {answer:?}");
            all.union_with(missing.ranks.as_ref());
        }
        if !stream.is_sum || stream.wave == WaveRule::Immediate {
            return;
        }
        let wave = (answer.stream, answer.wave);
        let before = self.answered.entry(wave).or_default();
        let is_twice = before.as_ref().intersects(answer.contributors.as_ref());
        assert!(!is_twice, "a member is in one wave twice: {answer:?}");
        before.union_with(answer.contributors.as_ref());
        self.refused.entry(wave).or_default().union_with(all.as_ref());
        let sent = |rank| self.sent.get(&(answer.stream, answer.wave, rank));
        match &answer.packet {
            Some(packet) => {
                let values = packet.values();
                let value: i64 = values
                    .scalar(0)
                    .or_else(|_| values.array::<i64>(0).map(|array| array[array.len() - 1]))
                    .expect("a sum is of the type of its parts");
                let parts: Option<Vec<i64>> = answer
                    .contributors
                    .iter()
                    .map(|rank| sent(rank).map(|&(value, _)| value))
                    .collect();
                let parts = parts.expect("a contributor has sent");
                assert_eq!(
                    value,
                    parts.iter().sum::<i64>(),
                    "a sum is that of its parts: {answer:?}"
                );
            }
            None => {
                assert!(answer.contributors.is_empty(), "no value has contributors: {answer:?}")
            }
        }
        if !answer.is_late {
            assert!(self.on_time.insert(wave), "wave {wave:?} is answered twice");
            assert_eq!(all, stream.members, "all members are in it or named: {answer:?}");
        }
    }

    /// At rest, if no process was struck, every wave that all members have passed has been answered
    /// with all that sent in it.
    pub fn check_complete(&self, streams: &[StreamId]) {
        for &id in streams {
            let stream = &self.streams[&id];
            if !stream.is_sum || stream.drops || stream.wave != WaveRule::All {
                continue;
            }
            let passed = stream.members.iter().map(|rank| self.next_wave(id, rank)).min();
            let waves = (id, 0, 0)..(id, passed.unwrap_or(0), 0);
            for &(_, wave, rank) in self.sent.range(waves).map(|(key, _)| key) {
                // A rank that sent something else than the others is named with the filter's
                // reason.
                let is_in = self.refused.get(&(id, wave)).is_some_and(|set| set.contains(rank));
                assert!(is_in, "rank {rank} sent in wave {wave} of stream {id}: no answer has it");
            }
        }
    }
}
