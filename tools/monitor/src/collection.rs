//! The front-end's side of the tree: asks the leaves for rounds and takes what comes.
//!
//! Five streams go to all leaves. Two are those of `guidance`. The others: one for rounds while the
//! program runs, on which no leaf is waited for long and of which only changes travel; one for the
//! last round, on which all living ranks are; one for the ranks' own profiles, which the tree does
//! not reduce. Leaves or communication processes that are lost are remembered as the reason why MPI
//! ranks are missing; nothing here ever ends the program.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use sapwood::{
    Answer, Error, Event, Network, Policy, Question, RankSet, Stream, Tag, Values, Wave, WaveRule,
};
use sapwood_profile::{PROFILE_CHANGES, PROFILE_STATISTICS, RankRows, Round, TallyKind};
use sapwood_report::record::Stacks;
use sapwood_report::stacks::{MergedStacks, STACKS_FILTER};
use sapwood_report::{Missing, Outdated, RoundRecord, Standstill, nanoseconds};

use super::Arguments;
use super::analysis::{Head, Inquiry};
use super::collected::Collected;
use super::effort::WaitsEffort;
use super::freeze::FreezeWatch;
use super::guidance::Guidance;
use super::job::{Job, is_shell};
use super::leaf::{self, LIVE, NO_BASE, ROUND, ROWS, STACKS};
use super::leaves::Leaves;
use super::places::{ANSWERS, NOT_WATCHED, Places, PlacesAsked, SILENT, Verb};
use super::processes;
use super::scope::Scopes;
use super::stack_reader;
use super::standing::{Deadline, StandingWatch};
use super::tallies::{self, Answers, Extras, TALLIES, TALLY_ROWS};
use super::tree_start::{absent_leaves, builder};
use super::waits::WaitsInquiry;
use sapwood_command_line::exit::{Failure, complain};
use sapwood_hosts::absence::{Absence, by_reason, sets_by_reason};
use sapwood_hosts::notices::Notices;

/// How long all leaves together may take to wait for ranks.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one level of the tree waits for the others in the last round, once one has answered.
const LAST_ROUND_MS: u32 = 2_000;
/// What the last round and the rows may take beside the waits of the levels.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);
/// A launcher may end a moment before the last of its ranks: for this time these are asked again.
const ENDING_TIMEOUT: Duration = Duration::from_secs(1);
/// The same if the program was told to end. Open MPI's launcher, told by the group and by us, ends
/// at once and its ranks 1 s later; others may close their files first.
const TOLD_ENDING_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two such questions.
const ENDING_PAUSE: Duration = Duration::from_millis(50);
/// How long a level waits for the stacks of others, once some have come.
const STACKS_MS: u32 = 5_000;
/// An activity that is shorter is not long, however often the leaves are asked.
const LONG_MIN: Duration = Duration::from_millis(500);
/// A host that has not answered for as many rounds is told to the user.
const SILENT_ROUNDS: u32 = 3;
/// A round while the program runs waits no longer than this on a level.
const LIVE_ROUND_MS_MAX: u32 = 500;
/// Why ranks are missing from a round before the first of them has come.
const NOT_YET: &str = "they have not called MPI_Init yet";

/// The tree, ready to be asked.
pub(crate) struct Collection {
    live: Stream,
    last: Stream,
    rows: Stream,
    inquiry: Inquiry,
    /// Opened when stacks are asked for first.
    stacks: Option<Stream>,
    stacks_asked: Wave,
    pub(crate) places: Stream,
    pub(crate) network: Network,
    leaves: Leaves,
    /// Whether the command names a shell, which is not what the ranks are.
    is_shell: bool,
    asked: u64,
    /// Which leaf serves which ranks, on which host.
    pub(crate) known: Places,
    /// What they were asked of that.
    pub(crate) places_asked: PlacesAsked,
    /// For how many rounds in turn a leaf was not there.
    absences: BTreeMap<u32, u32>,
    /// As the ranks say; 0 before the first of them.
    pub(crate) world_size: u32,
    /// From when on an activity is long.
    pub(crate) long: Duration,
    /// The wave that is known whole, so that only changes since need to come.
    base: Option<Wave>,
    /// Settings, iterations, and how ranks ended.
    pub(crate) guidance: Guidance,
    extras: Extras,
    /// Opened when ranks record their events first, at a cost; none where that is not wanted.
    pub(crate) waits: Option<WaitsInquiry>,
    effort: Option<WaitsEffort>,
    pub(crate) scopes: Scopes,
    /// What was frozen, or is to be.
    pub(crate) freeze: FreezeWatch,
    /// From when on ranks that wait are asked where they stand.
    pub(crate) deadline: Deadline,
    /// Where ranks stand that wait for long, once some do, or that is to be told.
    pub(crate) standing: Option<StandingWatch>,
    /// When the program was last told to end.
    pub(crate) ending: Option<Instant>,
    /// The next wave of the last rounds.
    last_wave: Wave,
    /// What has been collected.
    pub(crate) result: Collected,
}

impl Collection {
    /// Starts the tree; when this returns every leaf waits for its ranks at its name. A tree inside
    /// the job is given up when the program ends before it stands.
    ///
    /// # Errors
    /// When the tree or a leaf does not start. Nothing is left running.
    pub(crate) fn open(
        job: &Job,
        base: &str,
        arguments: &Arguments,
        program_end: Option<OwnedFd>,
    ) -> Result<Self, Failure> {
        let interval = arguments.interval;
        let wishes = arguments.analysis.wishes().map_err(Failure::usage)?;
        let leaves = job.leaves.clone();
        let mut builder = builder(job, base, arguments)?;
        if let (Some(in_world), Some(program_end)) = (&job.in_world, program_end) {
            builder = in_world.terms(builder, base, program_end);
        }
        let opened = builder.open();
        if let Some(in_world) = &job.in_world {
            in_world.opened();
        }
        let mut network = opened?;
        let mut known = Places::default();
        absent_leaves(&mut network, &leaves, &mut known)?;
        // The program runs as well where its tree cannot be looked at.
        let _ = network.publish(&format!("mpi-{}", std::process::id()));
        let everyone = network.everyone();
        let half = u32::try_from(interval.as_millis() / 2).unwrap_or(LIVE_ROUND_MS_MAX);
        let live = WaveRule::Timeout { milliseconds: half.clamp(1, LIVE_ROUND_MS_MAX) };
        let last = WaveRule::Timeout { milliseconds: LAST_ROUND_MS };
        let reduced = |rule| network.stream(&everyone).up(PROFILE_STATISTICS).wave(rule);
        let changes = network.stream(&everyone).up(PROFILE_CHANGES).wave(live);
        let mut collection = Self {
            guidance: Guidance::open(&network, interval, live, arguments.records())?,
            base: None,
            live: changes.policy(Policy::DropOldest).open()?,
            last: reduced(last).open()?,
            rows: network.stream(&everyone).wave(WaveRule::Immediate).open()?,
            inquiry: Inquiry::open(&network, wishes)?,
            stacks: None,
            stacks_asked: 0,
            places: network.stream(&everyone).wave(WaveRule::Immediate).open()?,
            asked: 0,
            known,
            places_asked: PlacesAsked::default(),
            absences: BTreeMap::new(),
            long: arguments.long.unwrap_or(interval).max(LONG_MIN),
            deadline: arguments.deadline,
            standing: match arguments.waits {
                true => Some(StandingWatch::open(&network, arguments.deadline)?.with_names()),
                false => None,
            },
            ending: None,
            extras: arguments.extras,
            waits: None,
            effort: arguments.waits_effort(),
            scopes: Scopes::default(),
            freeze: FreezeWatch::new(arguments.freeze.clone()),
            last_wave: 1,
            // Every program has a rank 0.
            result: Collected {
                program: job.program.clone(),
                round: Round::new(job.ranks.unwrap_or(1)),
                ..Collected::default()
            },
            world_size: 0,
            is_shell: is_shell(&job.program),
            leaves,
            network,
        };
        collection.open_scopes(&arguments.scopes);
        collection.wait_until_ready()?;
        Ok(collection)
    }

    /// The first round is asked for before the program starts: a leaf that answers it waits for
    /// ranks.
    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        self.last.broadcast(ROUND, self.question(0))?;
        let answer = self.last.recv_timeout(READY_TIMEOUT)?;
        match answer.missing.first() {
            None => Ok(()),
            Some(_) if self.is_spread() => {
                self.lose(each(&answer.missing));
                self.say(NOT_WATCHED, &self.by_cause(each(&answer.missing)));
                Ok(())
            }
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
        let (mut notices, mut lost) = (Notices::default(), Vec::new());
        while let Some(event) = self.network.next_event() {
            notices.take(&event);
            if let Event::Lost { back_ends, reason, .. } = event {
                lost.push((back_ends, reason));
            }
        }
        notices.tell();
        self.note_lost(&lost);
        Ok(())
    }

    /// Leaves were lost: tells the user, and remembers why their ranks are missing.
    fn note_lost(&mut self, lost: &[(RankSet, String)]) {
        let each = || lost.iter().map(|(leaves, reason)| (leaves, reason.as_str()));
        if self.is_spread() {
            for (leaves, _) in each() {
                self.guidance.lose(&self.known.ranks_of(leaves));
            }
            self.lose(each());
            let told = self.by_cause(each());
            told.iter().for_each(|(leaves, cause)| self.miss_hosts(leaves, cause));
            return self.say(NOT_WATCHED, &told);
        }
        for (leaves, reason) in each() {
            let ranks = self.leaves.mpi_ranks(leaves);
            self.guidance.lose(&ranks);
            if !ranks.is_empty() {
                complain(format_args!("ranks {ranks} are not watched any more: {reason}"));
            }
            self.miss_ranks(leaves, reason);
        }
    }

    /// Asks for the next round. A tree of which nothing is left is not asked.
    pub(crate) fn ask(&mut self, elapsed: Duration) {
        let question = self.question(self.asked).scalar(self.base.unwrap_or(NO_BASE));
        if self.live.broadcast(LIVE, question).is_ok() {
            self.asked += 1;
        }
        self.guidance.ask(elapsed);
        self.ask_waits();
        self.analyse();
    }

    /// Asks which ranks wait for which, if ranks record that or have recorded it.
    fn ask_waits(&mut self) {
        if self.waits.is_none() && self.guidance.settings.is_tracing {
            let open = |effort| WaitsInquiry::open(&self.network, self.is_spread(), effort).ok();
            self.waits = self.effort.and_then(open);
        }
        if let Some(waits) = &mut self.waits {
            waits.ask(&mut self.network, self.world_size);
        }
    }

    /// Whether the ranks are on several hosts.
    pub(crate) fn is_spread(&self) -> bool {
        !self.leaves.hosts().is_empty()
    }

    /// Ranks of the program as these say; 0 before the first of them.
    pub(crate) fn known_world_size(&self) -> u32 {
        self.world_size
    }

    /// The next question of another process.
    pub(crate) fn next_question(&mut self) -> Option<Question> {
        self.network.next_question()
    }

    /// Answers it.
    pub(crate) fn reply(&mut self, question: &Question, reply: &[u8]) {
        // A visitor that has asked waits no longer than it wants to.
        let _ = self.network.answer(question, reply);
    }

    /// The record of the latest round.
    pub(crate) fn record(&self, elapsed: Duration) -> RoundRecord {
        let number = self.result.rounds.saturating_sub(1);
        let result = &self.result;
        let mut record = RoundRecord::new(number, elapsed, &result.round, &result.missing);
        record.stacks.clone_from(&result.stacks);
        self.completed(record, elapsed)
    }

    /// The iterations that have come, as records.
    pub(crate) fn take_iterations(&mut self, elapsed: Duration) -> Vec<RoundRecord> {
        let iterations = self.guidance.iterations(self.result.round.covered().len());
        self.result.iterations += iterations.len() as u64;
        let record = |(number, round): (u64, Round)| {
            let record = RoundRecord::new(number - 1, elapsed, &round, &[]);
            let mut record = self.completed(record, elapsed);
            record.iteration = Some(number);
            record
        };
        iterations.into_iter().map(record).collect()
    }

    fn completed(&self, mut record: RoundRecord, elapsed: Duration) -> RoundRecord {
        record.settings = Some(self.guidance.section());
        record.deaths = self.guidance.deaths.section();
        self.result.analysis.fill(&mut record);
        if let Some(waits) = &self.waits {
            record.add_waits(waits.findings(), self.known_standing(), elapsed);
        }
        let ranks = |leaf| match self.leaves.hosts() {
            [] => self.leaves.mpi_ranks(&RankSet::range(leaf, leaf)),
            _ => self.known.ranks(leaf),
        };
        let everyone = self.network.everyone();
        let is_lost = |leaf| !everyone.ranks().contains(leaf);
        record.tree = processes::section(self.network.topology(), ranks, is_lost);
        record
    }

    /// Begins an analysis of this moment, once it is known which ranks and events there are.
    fn analyse(&mut self) {
        if self.world_size > 0 {
            let long_ns = nanoseconds(self.long);
            let head = Head { world_size: self.world_size, round: self.asked, long_ns };
            self.inquiry.begin(head, &self.result.round);
        }
    }

    pub(crate) fn question(&self, wave: Wave) -> Values {
        leaf::question(self.world_size, wave, self.long)
    }

    /// Of a command that a shell carries out, the program is what the ranks run.
    fn name_program(&mut self) {
        if self.is_shell && !self.guidance.programs.is_empty() {
            let names: Vec<&str> = self.guidance.programs.iter().map(String::as_str).collect();
            self.result.program = names.join(", ");
        }
    }

    /// Takes the rounds that have come by this time of the program; whether there was one, and a
    /// line for the user if no MPI call returns any more.
    pub(crate) fn take(&mut self, elapsed: Duration) -> (bool, Option<String>) {
        let (mut has_come, mut line) = (false, None);
        if self.guidance.take() {
            self.name_program();
        }
        if self.inquiry.take() {
            self.result.analysis = self.inquiry.result().clone();
        }
        if let Some(waits) = &mut self.waits {
            self.result.take_waits(waits, elapsed);
        }
        while let Ok(Some(answer)) = self.live.try_recv() {
            if answer.is_late {
                continue;
            }
            self.take_places();
            let is_first = self.world_size == 0;
            if let Some(round) = self.round_of(&answer) {
                if round.covered().is_empty() {
                    let (ranks, reason) = (round.missing(), NOT_YET.to_owned());
                    self.result.missing.push(Missing { ranks, reason });
                }
                // Where the tree has changed, some ranks lack their base: then all come whole.
                let is_steady = round.covered() == self.result.round.covered();
                self.base = is_steady.then_some(answer.wave);
                line = self.result.standstills.note(elapsed, &round).or(line);
                self.note_absences(&answer);
                self.ask_for_places(&round);
                // The first round of a watch has none before it, and so is no end of an interval.
                if self.result.rounds > 0 {
                    self.result.intervals.note(elapsed, &round);
                }
                self.result.as_of = (!round.covered().is_empty()).then_some(elapsed);
                let before = std::mem::replace(&mut self.result.round, round);
                self.result.before = (self.result.rounds > 0).then_some(before);
                self.result.rounds += 1;
                has_come = true;
                self.ask_standing();
                if is_first {
                    // The question of this round could not ask of events that were not known yet.
                    self.analyse();
                }
            }
        }
        if has_come {
            self.guidance.advise(&self.result.round);
        }
        (has_come, line)
    }

    /// Asks for the call stacks of all ranks.
    pub(crate) fn ask_stacks(&mut self, all_threads: bool) {
        if self.stacks.is_none() {
            let everyone = self.network.everyone();
            let wave = WaveRule::Timeout { milliseconds: STACKS_MS };
            let stream = self.network.stream(&everyone).up(STACKS_FILTER).wave(wave);
            self.stacks = stream.open().ok();
        }
        let question = stack_reader::question(self.stacks_asked, all_threads);
        let asked = self.stacks.as_mut().map(|stream| stream.broadcast(STACKS, question));
        if asked.is_some_and(|asked| asked.is_ok()) {
            self.stacks_asked += 1;
        }
    }

    /// Call stacks that have come by this time of the program.
    pub(crate) fn take_stacks(&mut self, elapsed: Duration) -> Option<Stacks> {
        let answer = self.stacks.as_mut()?.try_recv().ok()??;
        let merged = answer.value().ok().and_then(|value| MergedStacks::from_values(value).ok());
        let mut merged = merged.unwrap_or_default();
        for missing in &answer.missing {
            let ranks = self.leaves.mpi_ranks(&missing.ranks);
            merged.miss(ranks.iter(), &missing.reason);
        }
        Some(merged.section(elapsed))
    }

    /// The ranks that others wait for at this moment.
    pub(crate) fn absent(&self) -> RankSet {
        let still = Standstill::of(&self.result.round);
        let absent = still.into_iter().flat_map(|still| still.absent);
        absent.flat_map(|(_, statistics)| statistics.ranks.iter().collect::<Vec<_>>()).collect()
    }

    /// The round of an answer. Which are missing, and why, is what this answer says of it.
    fn round_of(&mut self, answer: &Answer) -> Option<Round> {
        self.note_missing(&answer.missing);
        let round = Round::decode(answer.value().ok()?).ok()?;
        self.note_uninitialised(&round);
        self.result.missing.extend(self.known.untold(&self.leaves, round.world_size()));
        if round.world_size() == 0 {
            // No rank has come yet: what the command says holds.
            return Some(Round::new(self.result.round.world_size()));
        }
        self.world_size = round.world_size();
        self.leaves.world_size = self.world_size;
        Some(round)
    }

    /// The ranks that are missing from an answer, and nothing that was before.
    fn note_missing(&mut self, missing: &[sapwood::Missing]) {
        self.result.missing.clear();
        self.miss(each(missing));
    }

    /// Remembers why the ranks of some leaves may be missing. Ranks that come after all are not
    /// counted among them by the report.
    fn miss<'a>(&mut self, missing: impl IntoIterator<Item = (&'a RankSet, &'a str)>) {
        match self.is_spread() {
            true => {
                let told = self.by_cause(missing);
                told.iter().for_each(|(leaves, cause)| self.miss_hosts(leaves, cause));
            }
            false => missing.into_iter().for_each(|(leaves, why)| self.miss_ranks(leaves, why)),
        }
    }

    fn miss_ranks(&mut self, back_ends: &RankSet, reason: &str) {
        let ranks = self.leaves.mpi_ranks(back_ends);
        let missing = Missing { ranks, reason: reason.to_owned() };
        if !missing.ranks.is_empty() && !self.result.missing.contains(&missing) {
            self.result.missing.push(missing);
        }
    }

    fn miss_hosts(&mut self, back_ends: &RankSet, reason: &str) {
        let missing = self.known.missing(&self.leaves, back_ends, reason);
        if !missing.ranks.is_empty() && !self.result.missing.contains(&missing) {
            // Before what is said of all others.
            self.result.missing.insert(0, missing);
        }
    }

    /// These leaves did not start, or are lost.
    fn lose<'a>(&mut self, lost: impl IntoIterator<Item = (&'a RankSet, &'a str)>) {
        for (leaves, reason) in lost {
            leaves.iter().for_each(|leaf| self.known.lose(leaf, reason));
        }
    }

    fn by_cause<'a>(&self, lost: impl IntoIterator<Item = (&'a RankSet, &'a str)>) -> Absence {
        sets_by_reason(lost, |leaf| self.leaves.host_name(leaf))
    }

    /// Tells the user of hosts, by their leaves, in one line for each cause.
    fn say(&self, is: Verb, told: &Absence) {
        for (leaves, cause) in told {
            if let Some(line) = self.known.line(&self.leaves, leaves, is, cause) {
                complain(line);
            }
        }
    }

    /// Tells the user of hosts that do not answer for some rounds, and that answer again.
    fn note_absences(&mut self, answer: &Answer) {
        if !self.is_spread() {
            return;
        }
        let (mut silent, mut back) = (Vec::new(), RankSet::new());
        for missing in &answer.missing {
            for leaf in missing.ranks.iter() {
                let rounds = self.absences.entry(leaf).or_insert(0);
                *rounds += 1;
                if *rounds == SILENT_ROUNDS && !self.known.is_absent(leaf) {
                    silent.push((leaf, missing.reason.as_str()));
                }
            }
        }
        for leaf in answer.contributors.iter() {
            if self.absences.remove(&leaf).is_some_and(|rounds| rounds >= SILENT_ROUNDS) {
                back.insert(leaf);
            }
        }
        self.say(SILENT, &by_reason(silent, |leaf| self.leaves.host_name(leaf)));
        self.say(ANSWERS, &Absence::from([(back, String::new())]));
    }

    /// Asks for the last round and the rows, waits for them within limits, and ends the tree.
    pub(crate) fn finish(self, elapsed: Duration, code: i32) -> Collected {
        self.finish_at(elapsed, Some(code))
    }

    /// The same for a program that runs on, or whose code is not known.
    pub(crate) fn finish_at(mut self, elapsed: Duration, code: Option<i32>) -> Collected {
        let (begun, has_ended) = (Instant::now(), code.is_some());
        let depth = self.network.topology().depth();
        let wait = Duration::from_millis(u64::from(depth * LAST_ROUND_MS)) + LAST_TIMEOUT;
        self.all_places(LAST_TIMEOUT);
        // Of a program that has ended there is no "yet".
        self.result.missing.retain(|missing| !has_ended || missing.reason != NOT_YET);
        self.last_freeze(elapsed, LAST_TIMEOUT);
        self.note_program_end(code);
        if self.last_round_at_rest(wait, has_ended) {
            self.result.rows = self.all_rows(ROWS, self.question(0), wait);
            self.result.tallies = self.tallies(wait);
            self.last_waits(wait);
            self.last_scopes(elapsed, LAST_TIMEOUT);
            self.last_analysis(wait);
        } else {
            let as_of_s = self.result.as_of.map(|time| time.as_secs_f64());
            let reason = self.result.missing.first().map(|missing| missing.reason.clone());
            let reason = reason.unwrap_or_else(|| "the tree did not answer".to_owned());
            self.result.outdated = Some(Outdated { as_of_s, reason });
        }
        // Behind the round at rest: a launcher may kill its ranks after it has ended itself.
        self.last_standing(LAST_TIMEOUT);
        // Ranks of a program that ended soon have come since.
        if !self.result.round.covered().difference(self.known.told().as_ref()).is_empty() {
            self.all_places(LAST_TIMEOUT);
        }
        self.result.has_ended = has_ended;
        self.result.hosts = self.known.hosts(&self.leaves);
        self.result.first_lost = self.known.first_lost(&self.leaves);
        let is_unknown = self.result.missing.is_empty() || !self.result.uninitialised.is_empty();
        if self.result.round.covered().is_empty() && is_unknown {
            let ranks = self.result.round.missing();
            let reason = "no MPI_Init was seen: the program ended before it or ran unobserved";
            self.result.missing.push(Missing { ranks, reason: reason.to_string() });
        }
        self.guidance.finish(elapsed + begun.elapsed(), LAST_TIMEOUT);
        self.name_program();
        self.guidance.deaths.launcher_ended(code.unwrap_or(0));
        self.result.deaths = std::mem::take(&mut self.guidance.deaths);
        self.result.settings = Some(self.guidance.section());
        self.result.has_traced = self.guidance.has_traced;
        self.result.never_found = self.inquiry.never_found();
        let Self {
            live,
            last,
            rows,
            places,
            inquiry,
            guidance,
            stacks,
            waits,
            scopes,
            freeze,
            standing,
            network,
            result,
            ..
        } = self;
        drop((
            live, last, rows, places, inquiry, guidance, stacks, waits, scopes, freeze, standing,
        ));
        // Whatever does not end by itself is ended by the network; the results are here already.
        let _ = network.close();
        result
    }

    /// Whether a round came after the program's end; one in which no rank runs any more, or is
    /// inside `MPI_Finalize`, if that can be had.
    fn last_round_at_rest(&mut self, wait: Duration, has_ended: bool) -> bool {
        let patience = match (has_ended, self.ending) {
            (true, Some(_)) => TOLD_ENDING_TIMEOUT,
            (true, None) => ENDING_TIMEOUT,
            (false, _) => Duration::ZERO,
        };
        let ending = Instant::now() + patience;
        let mut has_come = false;
        loop {
            let Some(round) = self.last_round(wait) else { break };
            // Leaves that were ended with the job have nothing: what was known before is kept.
            if round.covered().is_empty() && !self.result.round.covered().is_empty() {
                break;
            }
            let is_at_rest = round.is_at_rest();
            self.result.round = round;
            has_come = true;
            if is_at_rest || Instant::now() >= ending || self.turn(ENDING_PAUSE).is_err() {
                break;
            }
        }
        has_come
    }

    /// Asks for what was tallied.
    fn tallies(&mut self, wait: Duration) -> Answers {
        let Extras { call_sites, peers, communicators } = self.extras;
        let reduced = |collection: &mut Self, kind| {
            let wave = collection.next_last_wave();
            let question = tallies::question(collection.question(wave), kind);
            collection.last.broadcast(TALLIES, question).ok()?;
            let answer = collection.last.recv_timeout(wait).ok()?;
            Round::decode(answer.value().ok()?).ok()
        };
        Answers {
            call_sites: call_sites.then(|| reduced(self, TallyKind::CallSite)).flatten(),
            communicators: communicators.then(|| reduced(self, TallyKind::Communicator)).flatten(),
            peers: peers.then(|| {
                let question = tallies::question(self.question(1), TallyKind::Peer);
                self.all_rows(TALLY_ROWS, question, wait)
            }),
        }
    }

    /// Analyses the ranks at rest, after what is still under way; gives up after a wait.
    fn last_analysis(&mut self, wait: Duration) {
        let deadline = Instant::now() + wait;
        self.await_analysis(deadline);
        self.asked += 1;
        self.analyse();
        self.await_analysis(deadline);
        self.result.analysis = self.inquiry.result().clone();
    }

    fn await_analysis(&mut self, deadline: Instant) {
        loop {
            self.inquiry.take();
            if !self.inquiry.is_waiting()
                || Instant::now() >= deadline
                || self.turn(ENDING_PAUSE).is_err()
            {
                return;
            }
        }
    }

    /// Asks which ranks waited for which, until all is known.
    fn last_waits(&mut self, wait: Duration) {
        self.ask_waits();
        if let Some(waits) = self.waits.take() {
            self.result.waits = Some(waits.finish(&mut self.network, self.world_size, wait));
        }
    }

    fn next_last_wave(&mut self) -> Wave {
        self.last_wave += 1;
        self.last_wave - 1
    }

    fn last_round(&mut self, wait: Duration) -> Option<Round> {
        let wave = self.next_last_wave();
        let question = self.question(wave);
        let answered =
            self.last.broadcast(ROUND, question).and_then(|()| self.last.recv_timeout(wait));
        match answered {
            Ok(answer) => {
                self.lose(each(&answer.missing));
                self.round_of(&answer)
            }
            Err(Error::NoMemberLeft { missing }) => {
                self.note_missing(&missing);
                None
            }
            Err(error) => {
                let everyone = self.network.everyone();
                self.miss([(everyone.ranks(), error.to_string().as_str())]);
                None
            }
        }
    }

    fn all_rows(&mut self, tag: Tag, question: Values, wait: Duration) -> RankRows {
        let mut rows = RankRows::default();
        let mut left = self.network.everyone().ranks().clone();
        let deadline = Instant::now() + wait;
        if self.rows.broadcast(tag, question).is_err() {
            return rows;
        }
        while !left.is_empty() {
            let until = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.rows.recv_timeout(until) else { break };
            left.subtract(answer.contributors.as_ref());
            let more = answer.value().ok().and_then(|values| RankRows::decode(values).ok());
            if let Some(Err(error)) = more.map(|more| rows.extend(more)) {
                complain(format_args!("some ranks' own profiles are left out: {error}"));
            }
        }
        rows
    }
}

/// The leaves that are missing from an answer, with their reasons.
fn each(missing: &[sapwood::Missing]) -> impl Iterator<Item = (&RankSet, &str)> {
    missing.iter().map(|one| (&one.ranks, one.reason.as_str()))
}
