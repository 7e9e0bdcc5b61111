//! The front-end's side of the tree: asks the leaves for rounds and takes what comes.
//!
//! Three streams go to all leaves: one for rounds while the program runs, on which no leaf is
//! waited for long; one for the last round, on which everybody alive is; one for the ranks' own
//! profiles, which the tree does not reduce. Leaves or communication processes that are lost are
//! remembered as the reason why MPI ranks are missing; nothing here ever ends the program.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sapwood::{
    Answer, Error, Event, Network, Policy, Program, RankSet, Registry, Stream, Values, Wave,
    WaveRule,
};
use sapwood_profile::{PROFILE_STATISTICS, RankRows, RankState, Round, register};
use sapwood_report::{Missing, Standstills};

use super::job::Job;
use super::leaf::{self, LEAF, ROUND, ROWS};
use super::leaves::Leaves;
use sapwood_command_line::exit::Failure;
use sapwood_hosts::notices;

/// How long all leaves together may take to wait for ranks.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one level of the tree waits for the others in the last round, once one has answered.
const LAST_ROUND_MS: u32 = 2_000;
/// What the last round and the rows may take beside the waits of the levels.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);
/// A launcher may end a moment before the last of its ranks: for this time these are asked again.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two such questions.
const ENDING_PAUSE: Duration = Duration::from_millis(50);
/// An activity that is shorter is not long, however often the leaves are asked.
const LONG_MIN: Duration = Duration::from_millis(500);
/// A round while the program runs waits no longer than this on a level.
const LIVE_ROUND_MS_MAX: u32 = 500;

/// The tree, ready to be asked.
pub(crate) struct Collection {
    live: Stream,
    last: Stream,
    rows: Stream,
    network: Network,
    leaves: Leaves,
    asked: u64,
    /// As the ranks say; 0 before the first of them.
    world_size: u32,
    /// From when on an activity is long.
    long: Duration,
    /// What has been collected.
    pub(crate) result: Collected,
}

/// What has come up the tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    /// Rounds that came while the program ran.
    pub(crate) rounds: u64,
    /// The latest round.
    pub(crate) round: Round,
    /// Whether the latest round is of a time after the program's end.
    pub(crate) is_last: bool,
    /// Why MPI ranks are missing from it.
    pub(crate) missing: Vec<Missing>,
    /// The ranks' own profiles.
    pub(crate) rows: RankRows,
    /// Rounds in which no MPI call returned.
    pub(crate) standstills: Standstills,
}

impl Collection {
    /// Starts the tree; when this returns every leaf waits for its ranks at its name.
    ///
    /// # Errors
    /// When the tree or a leaf does not start. Nothing is left running.
    pub(crate) fn open(job: &Job, base: &str, interval: Duration) -> Result<Self, Failure> {
        let leaves = job.leaves.clone();
        let program = Program::new(sapwood::node_program()?).argument(LEAF).argument(base);
        let mut network = Network::builder(leaves.topology())
            .back_end(program)
            .registry(register(Registry::built_in()))
            .open()?;
        // The program runs as well where its tree cannot be looked at.
        let _ = network.publish(&format!("mpi-{}", std::process::id()));
        let everyone = network.everyone();
        let half = u32::try_from(interval.as_millis() / 2).unwrap_or(LIVE_ROUND_MS_MAX);
        let live = WaveRule::Timeout { milliseconds: half.clamp(1, LIVE_ROUND_MS_MAX) };
        let last = WaveRule::Timeout { milliseconds: LAST_ROUND_MS };
        let reduced = |rule| network.stream(&everyone).up(PROFILE_STATISTICS).wave(rule);
        let mut collection = Self {
            live: reduced(live).policy(Policy::DropOldest).open()?,
            last: reduced(last).open()?,
            rows: network.stream(&everyone).wave(WaveRule::Immediate).open()?,
            network,
            asked: 0,
            long: interval.max(LONG_MIN),
            // Every program has a rank 0.
            result: Collected { round: Round::new(job.ranks.unwrap_or(1)), ..Collected::default() },
            world_size: 0,
            leaves,
        };
        collection.wait_until_ready()?;
        Ok(collection)
    }

    /// The first round is asked for before the program starts: who answers it waits for ranks.
    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        self.last.broadcast(ROUND, self.question(0))?;
        let answer = self.last.recv_timeout(READY_TIMEOUT)?;
        match answer.missing.first() {
            None => Ok(()),
            Some(missing) => Err(Failure::own(&format!(
                "leaves {} did not start: {}",
                missing.ranks, missing.reason
            ))),
        }
    }

    /// Watches a descriptor beside the tree.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn watch(&mut self, descriptor: impl AsFd) -> Result<(), Failure> {
        Ok(self.network.watch(descriptor)?)
    }

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn unwatch(&mut self, descriptor: impl AsFd) -> Result<(), Failure> {
        Ok(self.network.unwatch(descriptor)?)
    }

    /// Lets the tree work until something has happened, at most for this long.
    ///
    /// # Errors
    /// When the system fails this process.
    pub(crate) fn turn(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.network.turn(timeout)?;
        while let Some(event) = self.network.next_event() {
            notices::print(&event);
            if let Event::Lost { back_ends, reason, .. } = event {
                self.miss(&back_ends, reason);
            }
        }
        Ok(())
    }

    /// Asks for the next round. A tree of which nothing is left is not asked.
    pub(crate) fn ask(&mut self) {
        let question = self.question(self.asked);
        if self.live.broadcast(ROUND, question).is_ok() {
            self.asked += 1;
        }
    }

    fn question(&self, wave: Wave) -> Values {
        leaf::question(self.world_size, wave, self.long)
    }

    /// Takes the rounds that have come by this time of the program; whether there was one, and a
    /// line for the user if no MPI call returns any more.
    pub(crate) fn take(&mut self, elapsed: Duration) -> (bool, Option<String>) {
        let (mut has_come, mut line) = (false, None);
        while let Ok(Some(answer)) = self.live.try_recv() {
            if answer.is_late {
                continue;
            }
            if let Some(round) = self.round_of(&answer) {
                line = self.result.standstills.note(elapsed, &round).or(line);
                self.result.round = round;
                self.result.rounds += 1;
                has_come = true;
            }
        }
        (has_come, line)
    }

    /// The round of an answer. Who is missing, and why, is what this answer says of it.
    fn round_of(&mut self, answer: &Answer) -> Option<Round> {
        self.result.missing.clear();
        for missing in &answer.missing {
            self.miss(&missing.ranks, missing.reason.clone());
        }
        let round = Round::decode(answer.value().ok()?).ok()?;
        if round.world_size() == 0 {
            // No rank has come yet: what the command says holds.
            return Some(Round::new(self.result.round.world_size()));
        }
        self.world_size = round.world_size();
        self.leaves.world_size = self.world_size;
        Some(round)
    }

    /// Remembers why the ranks of some leaves may be missing. Ranks that come after all are not
    /// counted among them by the report.
    fn miss(&mut self, back_ends: &RankSet, reason: String) {
        let ranks = self.leaves.mpi_ranks(back_ends);
        let missing = Missing { ranks, reason };
        if !missing.ranks.is_empty() && !self.result.missing.contains(&missing) {
            self.result.missing.push(missing);
        }
    }

    /// Asks for the last round and the rows, waits for them within limits, and ends the tree.
    pub(crate) fn finish(mut self) -> Collected {
        let depth = self.network.topology().depth();
        let wait = Duration::from_millis(u64::from(depth * LAST_ROUND_MS)) + LAST_TIMEOUT;
        if self.last_round_at_rest(wait) {
            self.result.is_last = true;
            self.result.rows = self.all_rows(wait);
        }
        if self.result.round.covered().is_empty() && self.result.missing.is_empty() {
            let ranks = self.result.round.missing();
            let reason = "no MPI_Init was seen: the program ended before it or ran unobserved";
            self.result.missing.push(Missing { ranks, reason: reason.to_string() });
        }
        let Self { live, last, rows, network, result, .. } = self;
        drop((live, last, rows));
        // Whatever does not end by itself is ended by the network; the results are here already.
        let _ = network.close();
        result
    }

    /// Whether a round came after the program's end; one in which no rank runs any more, if that
    /// can be had.
    fn last_round_at_rest(&mut self, wait: Duration) -> bool {
        let ending = Instant::now() + ENDING_TIMEOUT;
        let mut has_come = false;
        for wave in 1.. {
            let Some(round) = self.last_round(wave, wait) else { break };
            let is_at_rest = round.ranks_in(RankState::Running).is_empty();
            self.result.round = round;
            has_come = true;
            if is_at_rest || Instant::now() >= ending || self.turn(ENDING_PAUSE).is_err() {
                break;
            }
        }
        has_come
    }

    fn last_round(&mut self, wave: Wave, wait: Duration) -> Option<Round> {
        let question = self.question(wave);
        let answered =
            self.last.broadcast(ROUND, question).and_then(|()| self.last.recv_timeout(wait));
        match answered {
            Ok(answer) => self.round_of(&answer),
            Err(Error::NoMemberLeft { missing }) => {
                for missing in missing {
                    self.miss(&missing.ranks, missing.reason);
                }
                None
            }
            Err(error) => {
                let everyone = self.network.everyone();
                self.miss(everyone.ranks(), error.to_string());
                None
            }
        }
    }

    fn all_rows(&mut self, wait: Duration) -> RankRows {
        let mut rows = RankRows::default();
        let mut left = self.network.everyone().ranks().clone();
        let deadline = Instant::now() + wait;
        if self.rows.broadcast(ROWS, self.question(0)).is_err() {
            return rows;
        }
        while !left.is_empty() {
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.rows.recv_timeout(until) else { break };
            left.subtract(answer.contributors.as_ref());
            let more = answer.value().ok().and_then(|values| RankRows::decode(values).ok());
            if let Some(Err(error)) = more.map(|more| rows.extend(more)) {
                eprintln!("sapwood: some ranks' own profiles are left out: {error}");
            }
        }
        rows
    }
}
