//! Words that several stories share.

use sapwood_filter::{
    Emitter, Filter, FilterError, FilterSpec, Registry, State, WaveRef, WaveRule,
};
use sapwood_node::{Answer, StreamSpec};
use sapwood_packet::{Rank, RankSet, StreamId, Values, ValuesRef};

use super::Tree;

/// Shapes with fan-out 1, 2 and 8, of one to four levels.
pub const SHAPES: [&str; 9] = ["1", "1^2", "1^4", "2", "2^2", "2^3", "2^4", "8", "8^2"];

/// Shapes in which a communication process has more than one child.
pub const BUSHY: [&str; 4] = ["2^2", "2^3", "8^2", "3x2x2"];

/// A built-in filter as if it were foreign code.
struct Foreign(Box<dyn Filter>);

impl Filter for Foreign {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        self.0.transform(wave, out)
    }

    fn is_offloaded(&self) -> bool {
        true
    }

    fn state(&self) -> State {
        self.0.state()
    }

    fn save(&self) -> Option<Values> {
        self.0.save()
    }

    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        self.0.absorb(state)
    }
}

/// The built-in filters, of which `sum` and `accumulate` are offloaded.
pub fn foreign_filters() -> Registry {
    Registry::built_in()
        .without("sum")
        .without("accumulate")
        .with("sum", |parameters| made_foreign("sum", parameters))
        .with("accumulate", |parameters| made_foreign("accumulate", parameters))
}

fn made_foreign(name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(Foreign(Registry::built_in().make(name, parameters)?)))
}

/// A stream that is not special.
pub fn spec(members: &RankSet, up: &[&str], wave: WaveRule) -> StreamSpec {
    let up = up.iter().map(|&name| FilterSpec::from(name)).collect();
    StreamSpec { members: members.clone(), up, wave, ..StreamSpec::default() }
}

impl Tree {
    /// Opens a stream with one upward filter.
    pub fn stream(&mut self, members: &RankSet, filter: &str, wave: WaveRule) -> StreamId {
        let stream = self.open(spec(members, &[filter], wave));
        self.run();
        stream
    }

    /// A stream of sums over all back-ends, waiting for all.
    pub fn sum_of_all(&mut self) -> StreamId {
        let everyone = self.everyone();
        self.stream(&everyone, "sum", WaveRule::All)
    }

    /// These ranks send a number each that tells its sender.
    pub fn all_send(&mut self, ranks: &RankSet, stream: StreamId) {
        for rank in ranks.iter() {
            let value = number_of(rank, self.oracle.next_wave(stream, rank));
            self.send(rank, stream, value).expect("the stream is open");
        }
    }

    /// Lets everything that was asked of nodes directly take its course.
    pub fn settle(&mut self) {
        for index in 0..self.processes.len() {
            self.drain(index);
        }
        self.run();
    }

    /// Lets a back-end's program take what waits for it.
    pub fn wake_program(&mut self, rank: Rank) {
        let index = self.by_rank[&rank];
        self.drain(index);
    }

    /// How many waves of a stream are answered and not taken, found by taking all of its answers.
    pub fn front_end_waves(&mut self, stream: StreamId) -> u64 {
        self.front_end().waiting_answers(stream)
    }

    /// The only answer that has come.
    pub fn one_answer(&mut self) -> Answer {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "one answer: {answers:?}");
        answers.remove(0)
    }
}

/// A number that no other rank sends in any wave.
pub fn number_of(rank: Rank, wave: u64) -> i64 {
    (1_i64 << (rank % 40)) + i64::from(rank) * 1_000_000_007 + wave as i64 * 31
}

/// The sum of an answer.
pub fn sum_in(answer: &Answer) -> i64 {
    answer.packet.as_ref().expect("it has a value").values().scalar(0).expect("one number")
}

/// The ranks that an answer lacks.
pub fn missing_ranks(answer: &Answer) -> RankSet {
    let mut all = RankSet::new();
    answer.missing.iter().for_each(|missing| all.union_with(missing.ranks.as_ref()));
    all
}

/// Whether all reasons for these ranks say this.
pub fn says(answer: &Answer, rank: Rank, text: &str) -> bool {
    answer.missing.iter().any(|m| m.ranks.contains(rank) && m.reason.contains(text))
}
