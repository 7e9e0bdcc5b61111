//! What is true of every answer, whatever the schedule: its value is the sum of what its
//! contributors sent, no rank is in one wave twice, and a rank that is not in it is named with a
//! reason that holds.

use std::collections::{BTreeMap, BTreeSet};

use sapwood_filter::WaveRule;
use sapwood_node::{Answer, Policy, StreamSpec};
use sapwood_packet::{Rank, RankSet, StreamId, Wave};

struct Opened {
    members: RankSet,
    wave: WaveRule,
    is_sum: bool,
    drops: bool,
}

/// Everything that back-ends have sent, and what has been answered.
#[derive(Default)]
pub struct Oracle {
    streams: BTreeMap<StreamId, Opened>,
    sent: BTreeMap<(StreamId, Wave, Rank), i64>,
    next: BTreeMap<(StreamId, Rank), Wave>,
    answered: BTreeMap<(StreamId, Wave), RankSet>,
    on_time: BTreeSet<(StreamId, Wave)>,
    named: BTreeMap<(StreamId, Wave), RankSet>,
    /// Back-ends that are gone, with those behind a communication process that is.
    pub lost: RankSet,
}

impl Oracle {
    /// A stream is there; its waves are looked at when its filter is `sum`.
    pub fn opened(&mut self, stream: StreamId, spec: &StreamSpec) {
        let is_sum = spec.up.len() == 1 && spec.up[0].name == "sum";
        let drops = spec.policy == Policy::DropOldest;
        let (members, wave) = (spec.members.clone(), spec.wave);
        self.streams.insert(stream, Opened { members, wave, is_sum, drops });
    }

    /// The story itself looks at the answers of a stream, whose values are not single numbers.
    pub fn forget(&mut self, stream: StreamId) {
        if let Some(opened) = self.streams.get_mut(&stream) {
            opened.is_sum = false;
        }
    }

    pub fn next_wave(&self, stream: StreamId, rank: Rank) -> Wave {
        self.next.get(&(stream, rank)).copied().unwrap_or(0)
    }

    pub fn sent(&mut self, stream: StreamId, wave: Wave, rank: Rank, value: i64) {
        self.next.insert((stream, rank), wave + 1);
        self.sent.insert((stream, wave, rank), value);
    }

    pub fn killed(&mut self, _rank: Rank, lost: &RankSet) {
        self.lost.union_with(lost.as_ref());
    }

    /// An answer has come.
    pub fn check(&mut self, answer: &Answer) {
        let stream = &self.streams[&answer.stream];
        if !stream.is_sum || stream.wave == WaveRule::Immediate {
            return;
        }
        let wave = (answer.stream, answer.wave);
        let before = self.answered.entry(wave).or_default();
        let twice: Vec<Rank> =
            answer.contributors.iter().filter(|&rank| before.contains(rank)).collect();
        assert!(twice.is_empty(), "ranks {twice:?} are in wave {wave:?} twice");
        before.union_with(answer.contributors.as_ref());
        if let Some(packet) = &answer.packet {
            assert_eq!(packet.tag(), super::TAG, "the tag is that of the packets");
            let value: i64 = packet.values().scalar(0).expect("a sum is one number");
            let sent = |rank| self.sent.get(&(answer.stream, answer.wave, rank));
            let parts: Vec<Option<&i64>> = answer.contributors.iter().map(sent).collect();
            assert!(parts.iter().all(Option::is_some), "a contributor sent nothing: {answer:?}");
            let sum: i64 = parts.into_iter().flatten().sum();
            assert_eq!(value, sum, "the sum is that of its contributors: {answer:?}");
        } else {
            assert!(answer.contributors.is_empty(), "a value is stated and not there: {answer:?}");
        }
        if !answer.is_late {
            assert!(self.on_time.insert(wave), "wave {wave:?} is answered once");
            self.check_missing(answer);
        }
    }

    fn check_missing(&mut self, answer: &Answer) {
        let stream = &self.streams[&answer.stream];
        let mut all = answer.contributors.clone();
        for missing in &answer.missing {
            assert!(!missing.reason.is_empty(), "a reason says something");
            for rank in missing.ranks.iter() {
                assert!(!all.contains(rank), "rank {rank} is named twice: {answer:?}");
                let has_sent = self.sent.contains_key(&(answer.stream, answer.wave, rank));
                let says_silent = missing.reason.contains("sent nothing");
                assert!(
                    !(has_sent && says_silent) || stream.drops,
                    "rank {rank} did send: {answer:?}"
                );
                let says_gone = missing.reason.contains("is gone");
                assert!(!says_gone || self.lost.contains(rank), "rank {rank} lives: {answer:?}");
            }
            all.union_with(missing.ranks.as_ref());
            self.named
                .entry((answer.stream, answer.wave))
                .or_default()
                .union_with(missing.ranks.as_ref());
        }
        assert_eq!(all, stream.members, "everyone is in it or named: {answer:?}");
    }

    /// At rest, every wave of a stream that waits for all, in which a back-end that can be reached
    /// has sent, and which all that can be reached have passed, has been answered with it or
    /// without.
    pub fn check_complete(&self, stream: StreamId, reachable: &BTreeSet<Rank>) {
        let members: Vec<Rank> = self.streams[&stream].members.iter().collect();
        let alive: Vec<Rank> =
            members.into_iter().filter(|rank| reachable.contains(rank)).collect();
        let passed = alive.iter().map(|&rank| self.next_wave(stream, rank)).min().unwrap_or(0);
        for &(id, wave, rank) in self.sent.keys() {
            if id != stream || wave >= passed || !reachable.contains(&rank) {
                continue;
            }
            let in_answer = self.answered.get(&(id, wave)).is_some_and(|set| set.contains(rank));
            assert!(in_answer, "rank {rank} sent in wave {wave} of stream {id}: no answer has it");
        }
    }
}
