//! One operation by several trees, by turns: a change of the machine's load meets all of them.

use std::time::Duration;

use sapwood::{Rank, RankSet, TreeKind};
use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::{Spread, median, ratio};
use sapwood_group_tool::{Act, Request, is_right};
use serde_json::Value;

use super::super::back_end_process::machine_nanoseconds;
use super::super::progress::Progress;
use super::scene::Scene;

/// Repetitions of a tree in a turn. One more comes before them: members read their input late.
const REPEATS: u64 = 3;
/// How long one operation may take, besides what its bytes take at 1 MB/s.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long the members may take to answer beyond that.
const SLACK: Duration = Duration::from_secs(10);
/// How many of the longest round trips, how much work, and how many nanoseconds for a byte (10
/// MB/s) a sum may take before the next one begins late.
const TRIPS: u32 = 3;
const WORK_TIME: Duration = Duration::from_millis(10);
const BYTE_NS: u64 = 100;
/// Until the first sum begins, members read their input: for all, and for each.
const READ_TIME: Duration = Duration::from_millis(50);
const READ_TIME_EACH: Duration = Duration::from_millis(2);
/// A sum from this length on may take longer than the time between two begins: a barrier comes
/// before each, or else the next one would be under way before.
const APART_FROM: usize = 32 << 10;

/// What is raced.
pub(super) struct Race<'a> {
    act: Act,
    root: Rank,
    bytes: usize,
    trees: &'a [TreeKind],
    /// The time between the begins of two sums.
    every: Duration,
    /// Whether a barrier comes before each round.
    is_apart: bool,
}

/// What came of it, by tree and turn, in seconds; turns with a fault are left out for all trees.
pub(super) struct Raced {
    pub(super) trees: Vec<TreeKind>,
    pub(super) seconds: Vec<Vec<f64>>,
    /// By tree and member: each repetition. Of broadcasts.
    by_member: Vec<Vec<Vec<f64>>>,
}

/// The repetitions of one tree in one turn.
struct Turn {
    seconds: f64,
    by_member: Vec<Vec<f64>>,
}

impl<'a> Race<'a> {
    /// Until the last member has a value.
    pub(super) fn broadcast(root: Rank, bytes: usize, trees: &'a [TreeKind]) -> Self {
        Self { act: Act::Broadcast, root, bytes, trees, every: Duration::ZERO, is_apart: false }
    }

    /// From the last member's begin until virtual node 0 has the sum. Members begin at once by
    /// their common clock, since no message could tell them to.
    pub(super) fn sum(bytes: usize, far_time: Duration, trees: &'a [TreeKind]) -> Self {
        let every = far_time * TRIPS + WORK_TIME + Duration::from_nanos(BYTE_NS * bytes as u64);
        Self { act: Act::Reduce, root: 0, bytes, trees, every, is_apart: bytes >= APART_FROM }
    }

    /// How long an operation of one round may take.
    fn deadline(&self) -> Duration {
        DEADLINE + Duration::from_micros(self.bytes as u64)
    }

    /// How long the members may take to answer: all rounds, each with the barrier before it.
    fn limit(&self) -> Duration {
        let operations = if self.is_apart { 2 } else { 1 };
        (self.deadline() * operations + self.every) * (REPEATS as u32 + 1) + SLACK
    }

    /// Runs all trees in each turn, in the other order in every second one.
    pub(super) fn run(
        &self,
        scene: &mut Scene<'_>,
        turns: usize,
        progress: &mut Progress,
    ) -> Result<Raced, Failure> {
        let count = self.trees.len();
        let by_member = vec![vec![Vec::new(); scene.members()]; count];
        let mut raced =
            Raced { trees: self.trees.to_vec(), seconds: vec![Vec::new(); count], by_member };
        let what = format!("{} of {} bytes from {}", self.act.name(), self.bytes, self.root);
        for at in 0..turns {
            progress.say(&what, at, turns);
            let mut order: Vec<usize> = (0..count).collect();
            if at % 2 == 1 {
                order.reverse();
            }
            let mut turn: Vec<Option<Turn>> = (0..count).map(|_| None).collect();
            for tree in order {
                turn[tree] = self.repeat(scene, self.trees[tree])?;
            }
            let whole: Option<Vec<Turn>> = turn.into_iter().collect();
            for (tree, turn) in whole.into_iter().flatten().enumerate() {
                raced.seconds[tree].push(turn.seconds);
                for (all, own) in raced.by_member[tree].iter_mut().zip(turn.by_member) {
                    all.extend(own);
                }
            }
        }
        Ok(raced)
    }

    /// All repetitions by one tree; none where one of them was wrong at a member.
    fn repeat(&self, scene: &mut Scene<'_>, tree: TreeKind) -> Result<Option<Turn>, Failure> {
        let mut request = Request::new(self.act);
        (request.root, request.tree, request.bytes) = (self.root, tree, self.bytes);
        (request.rounds, request.deadline) = (REPEATS + 1, self.deadline());
        (request.has_moments, request.is_apart) = (true, self.is_apart);
        if !self.every.is_zero() {
            let now = Duration::from_nanos(machine_nanoseconds());
            let begin = now + READ_TIME + READ_TIME_EACH * scene.members() as u32;
            (request.at, request.every) = (begin.as_nanos() as u64, self.every);
        }
        let answers = scene.ask(&request, self.limit())?;
        let name = self.act.name();
        let wrong = (0..).zip(&answers).filter(|entry| !is_right(entry.1));
        let members: RankSet = wrong.clone().map(|entry| entry.0).collect();
        if let Some((first, answer)) = wrong.into_iter().next() {
            scene.faults.push(format!(
                "{name} of {} bytes by {tree} at members {members}; at {first}: {}",
                self.bytes,
                fault(answer)
            ));
            return Ok(None);
        }
        let moments: Option<Vec<Vec<Moment>>> = answers.iter().map(Moment::all).collect();
        let moments = moments.ok_or_else(|| {
            Failure::own(&format!("{name} by {tree}: a member gave no times of its rounds"))
        })?;
        Ok(Some(self.times(&moments)))
    }

    fn times(&self, moments: &[Vec<Moment>]) -> Turn {
        let (mut whole, mut by_member) = (Vec::new(), vec![Vec::new(); moments.len()]);
        for repeat in 1..=REPEATS as usize {
            let at_root = &moments[self.root as usize][repeat];
            let all = moments.iter().map(|member| &member[repeat]);
            if self.act == Act::Broadcast {
                let times: Vec<f64> = all.map(|at| since(at_root.begin, at.end)).collect();
                let others = times.iter().enumerate().filter(|at| at.0 != self.root as usize);
                whole.push(others.map(|at| *at.1).fold(0.0, f64::max));
                by_member.iter_mut().zip(times).for_each(|(list, time)| list.push(time));
            } else {
                let last = all.map(|at| at.begin).max().unwrap_or(0);
                whole.push(since(last, at_root.end));
            }
        }
        Turn { seconds: median(&whole).unwrap_or(f64::NAN), by_member }
    }
}

/// Begin and end of one round at one member, in nanoseconds.
struct Moment {
    begin: u64,
    end: u64,
}

impl Moment {
    fn all(answer: &Value) -> Option<Vec<Self>> {
        let read = |pair: &Value| Some(Self { begin: pair[0].as_u64()?, end: pair[1].as_u64()? });
        let all: Option<Vec<Self>> = answer["moments"].as_array()?.iter().map(read).collect();
        all.filter(|all| all.len() == REPEATS as usize + 1)
    }
}

fn since(begin: u64, end: u64) -> f64 {
    end.saturating_sub(begin) as f64 / 1e9
}

/// What a member's answer says that is not right.
fn fault(answer: &Value) -> String {
    match answer["error"].as_str() {
        Some(error) => error.to_string(),
        None => format!(
            "{} rounds wrong, {} without a value, {} incomplete, missing {}",
            answer["wrong"], answer["without_value"], answer["incomplete"], answer["missing"]
        ),
    }
}

impl Raced {
    /// The times of a tree.
    pub(super) fn spread(&self, tree: TreeKind) -> Option<Spread> {
        Spread::of(self.of(tree)?)
    }

    /// Those of a tree beside another's in the same turns.
    pub(super) fn ratio(&self, tree: TreeKind, base: TreeKind) -> Option<Spread> {
        ratio(self.of(tree)?, self.of(base)?)
    }

    /// The median time of each member until it had a value, the soonest first, without the root.
    pub(super) fn by_member(&self, tree: TreeKind, root: Rank) -> Vec<f64> {
        let Some(at) = self.trees.iter().position(|one| *one == tree) else { return Vec::new() };
        let lists = self.by_member[at].iter().enumerate();
        let others = lists.filter(|entry| entry.0 != root as usize);
        let mut times: Vec<f64> = others.filter_map(|entry| median(entry.1)).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn of(&self, tree: TreeKind) -> Option<&[f64]> {
        let at = self.trees.iter().position(|one| *one == tree)?;
        Some(&self.seconds[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(pairs: [[u64; 2]; 4]) -> Vec<Moment> {
        pairs.into_iter().map(|[begin, end]| Moment { begin, end }).collect()
    }

    #[test]
    fn a_broadcast_ends_at_its_last_member_and_a_sum_begins_at_its_last() {
        let root = moments(
            [[0, 9], [10, 30], [100, 130], [200, 230]].map(|at| at.map(|t| t * 1_000_000_000)),
        );
        let other = moments(
            [[0, 50], [12, 15], [120, 126], [200, 204]].map(|at| at.map(|t| t * 1_000_000_000)),
        );
        let all = [root, other];
        let turn = Race::broadcast(0, 1, &[]).times(&all);
        assert_eq!((turn.seconds, &turn.by_member[1]), (5.0, &vec![5.0, 26.0, 4.0]));
        assert_eq!(Race::sum(8, Duration::ZERO, &[]).times(&all).seconds, 18.0);
    }

    #[test]
    fn longer_sums_begin_less_often_and_a_barrier_has_its_own_time() {
        let sum = |bytes| Race::sum(bytes, Duration::ZERO, &[]);
        let (short, long) = (sum(APART_FROM - 1), sum(APART_FROM));
        assert!(long.every > short.every, "{:?} and {:?}", long.every, short.every);
        let rounds = REPEATS as u32 + 1;
        assert_eq!(short.limit(), (short.deadline() + short.every) * rounds + SLACK);
        assert_eq!(long.limit(), (2 * long.deadline() + long.every) * rounds + SLACK);
    }
}
