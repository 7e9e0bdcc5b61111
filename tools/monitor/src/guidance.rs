//! The front-end's side of control: one stream for settings and what ranks say of themselves,
//! apart from those of rounds, and one for the iterations that the program marks.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sapwood::{Network, Policy, RankSet, Stream, Values, Wave, WaveRule};
use sapwood_profile::{Class, PROFILE_STATISTICS, RANK_REPORTS, RankReport, Round, add_programs};
use sapwood_report::record::Settings;

use super::control::deaths::Deaths;
use super::control::request::{GROUPS, RunSettings};
use super::leaf::{ADVICE, CONTROL, MARKS};
use super::rank_control::ControlQuestion;
use sapwood_command_line::exit::Failure;

/// How long one level of the tree waits for ranks that reach a mark later than others.
const ITERATION_MS: u32 = 10_000;
/// Events of which the program gets advice, those with the most time.
const ADVICE_EVENTS_MAX: usize = 59;
/// Iterations that may be left out at the begin because they are not of all ranks.
const PARTIAL_MAX: u32 = 16;
/// Questions whose answers are awaited, at most.
const ASKED_MAX: usize = 64;
/// For how long an answer is awaited before a user who waits for the ranks has them asked again.
const AWAITED: Duration = Duration::from_secs(1);
/// Between two questions for a user who waits for the ranks.
const ASKING_PAUSE: Duration = Duration::from_millis(200);

/// What the front-end knows of its ranks beside their counts.
pub(crate) struct Guidance {
    control: Stream,
    marks: Stream,
    wave: Wave,
    /// When each question was asked that has no answer yet.
    asked: BTreeMap<Wave, Duration>,
    /// When the last question was asked.
    asked_last: Option<Duration>,
    pub(crate) settings: RunSettings,
    /// The ranks by the number of the settings that they obey.
    obeyed: BTreeMap<u32, RankSet>,
    /// Ranks that have been seen to take over no more settings.
    finished: RankSet,
    unwatched: UnwatchedRanks,
    pub(crate) deaths: Deaths,
    /// Whether ranks were told at any time to record their calls.
    pub(crate) has_traced: bool,
    /// The file names of the programs that ranks run.
    pub(crate) programs: BTreeSet<String>,
    wants_advice: bool,
    advised: u64,
    /// Marks without a snapshot, as they came too fast.
    pub(crate) marks_left_out: u64,
    /// Iterations that are left out if they are not of all ranks, before the first that is.
    partial_left: u32,
}

/// The ranks of leaves that were lost and have not reported since.
#[derive(Debug, Default)]
struct UnwatchedRanks {
    ranks: RankSet,
    /// The first question after the last loss: what a leaf said before it was lost may be among
    /// the answers to earlier ones.
    since: Wave,
}

impl UnwatchedRanks {
    /// The leaves of these ranks were lost, before this question.
    fn lose(&mut self, ranks: &RankSet, next: Wave) {
        self.ranks.union_with(ranks.as_ref());
        self.since = next;
    }

    /// These ranks were reported in answer to a question.
    fn note_reported<'a>(&mut self, wave: Wave, reported: impl Iterator<Item = &'a RankSet>) {
        if wave >= self.since {
            reported.for_each(|ranks| self.ranks.subtract(ranks.as_ref()));
        }
    }
}

/// Which of its questions this is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// One of those that follow one another.
    Periodic,
    Last,
}

impl Guidance {
    /// Opens the streams, and asks every leaf for iterations.
    ///
    /// # Errors
    /// When the tree is gone.
    pub(crate) fn open(
        network: &Network,
        interval: Duration,
        level: WaveRule,
        is_tracing: bool,
    ) -> Result<Self, Failure> {
        let everyone = network.everyone();
        let control = network.stream(&everyone).up(RANK_REPORTS).wave(level);
        let iterations = WaveRule::Timeout { milliseconds: ITERATION_MS };
        let marks = network.stream(&everyone).up(PROFILE_STATISTICS).wave(iterations);
        let mut marks = marks.policy(Policy::DropOldest).open()?;
        marks.broadcast(MARKS, Values::new().scalar(0_u32))?;
        Ok(Self {
            control: control.policy(Policy::DropOldest).open()?,
            marks,
            wave: 0,
            asked: BTreeMap::new(),
            asked_last: None,
            settings: RunSettings { is_tracing, ..RunSettings::new(interval) },
            obeyed: BTreeMap::new(),
            finished: RankSet::new(),
            unwatched: UnwatchedRanks::default(),
            deaths: Deaths::default(),
            has_traced: is_tracing,
            programs: BTreeSet::new(),
            wants_advice: false,
            advised: 0,
            marks_left_out: 0,
            partial_left: 0,
        })
    }

    /// The ranks have run before: their marks are taken from moments on that are not the same, so
    /// that the first iterations may lack some.
    pub(crate) fn begin_late(&mut self) {
        self.partial_left = PARTIAL_MAX;
    }

    /// Tells the settings and what is known of ends, and asks what the ranks report. A tree of
    /// which nothing is left is not asked.
    pub(crate) fn ask(&mut self, elapsed: Duration) {
        self.put(Asking::Periodic, elapsed);
    }

    /// The leaves of these ranks were lost.
    pub(crate) fn lose(&mut self, ranks: &RankSet) {
        self.unwatched.lose(ranks, self.wave);
    }

    /// The ranks that are known to run and not to have applied the settings. Of `round` are those
    /// of which it tells that they have ended, and `running`.
    pub(crate) fn late(&self, round: &Round, running: &RankSet) -> RankSet {
        let mut gone = round.covered().difference(running.as_ref());
        gone.union_with(self.deaths.known().as_ref());
        gone.union_with(self.finished.as_ref());
        gone.union_with(self.unwatched.ranks.as_ref());
        late(&self.obeyed, self.settings.change, running, &gone)
    }

    /// Asks again as long as some ranks are late, or none is known to have applied the settings, so
    /// that a user that waits for them does not wait for the next round.
    pub(crate) fn ask_who_obeys(&mut self, late: &RankSet, elapsed: Duration) {
        let change = self.settings.change;
        let is_known = late.is_empty() && self.obeyed.contains_key(&change);
        let is_awaited = self.asked.contains_key(&self.wave.saturating_sub(1));
        let pause = if is_awaited { AWAITED } else { ASKING_PAUSE };
        let is_due = self.asked_last.is_none_or(|asked| elapsed >= asked + pause);
        if change != 0 && !is_known && is_due {
            self.ask(elapsed);
        }
    }

    fn put(&mut self, asking: Asking, elapsed: Duration) {
        let is_last = asking == Asking::Last;
        self.has_traced |= self.settings.is_tracing;
        let question = ControlQuestion {
            wave: self.wave,
            is_last,
            known_ends: self.deaths.known().clone(),
            settings: self.settings.clone(),
        };
        if self.control.broadcast(CONTROL, question.encode()).is_ok() {
            self.asked.insert(self.wave, elapsed);
            self.asked_last = Some(elapsed);
            self.wave += 1;
        }
        while self.asked.len() > ASKED_MAX {
            self.asked.pop_first();
        }
    }

    /// Takes the reports that have come. Whether they name other programs than those before.
    pub(crate) fn take(&mut self) -> bool {
        let mut has_changed = false;
        while let Ok(Some(answer)) = self.control.try_recv() {
            let asked = self.asked.get(&answer.wave).copied();
            let report = answer.value().ok().and_then(|values| RankReport::decode(values).ok());
            let (Some(report), Some(asked)) = (report, asked) else { continue };
            self.deaths.take(&report, asked);
            has_changed |= add_programs(&mut self.programs, report.programs);
            self.wants_advice |= report.wants_advice;
            // A late part knows of other ranks than the wave that it belongs to.
            if !answer.is_late {
                self.asked.remove(&answer.wave);
                self.marks_left_out = report.marks_left_out;
                self.unwatched.note_reported(answer.wave, report.obeyed.values());
            }
            self.finished.union_with(report.finished.as_ref());
            note_obeyed(&mut self.obeyed, report.obeyed);
        }
        has_changed
    }

    /// Asks for the last time and waits for the answer.
    pub(crate) fn finish(&mut self, elapsed: Duration, wait: Duration) {
        self.put(Asking::Last, elapsed);
        let last = self.wave.saturating_sub(1);
        while self.asked.contains_key(&last) {
            let Ok(answer) = self.control.recv_timeout(wait) else { return };
            let asked = self.asked.remove(&answer.wave).unwrap_or(elapsed);
            let report = answer.value().ok().and_then(|values| RankReport::decode(values).ok());
            if let Some(report) = report {
                self.deaths.take(&report, asked);
                add_programs(&mut self.programs, report.programs);
                note_obeyed(&mut self.obeyed, report.obeyed);
            }
        }
    }

    /// Iterations that have come, by their numbers from 1. `ranks` is the number of ranks
    /// that rounds have; 0 before the first.
    pub(crate) fn iterations(&mut self, ranks: u64) -> Vec<(u64, Round)> {
        let mut found = Vec::new();
        while let Ok(Some(answer)) = self.marks.try_recv() {
            let round = answer.value().ok().and_then(|values| Round::decode(values).ok());
            let Some(round) = round.filter(|_| !answer.is_late) else { continue };
            if self.partial_left > 0 && is_partial(&round, ranks) {
                self.partial_left -= 1;
                continue;
            }
            self.partial_left = 0;
            found.push((answer.wave + 1, round));
        }
        found
    }

    /// Sends the program what it wants to know of a round.
    pub(crate) fn advise(&mut self, round: &Round) {
        if self.wants_advice && !round.covered().is_empty() {
            self.advised += 1;
            // The program does without it if the tree is gone.
            let _ = self.control.try_broadcast(ADVICE, advice(self.advised, round));
        }
    }

    /// The settings as they are shown.
    pub(crate) fn section(&self) -> Settings {
        let obeyed = self.obeyed.get(&self.settings.change);
        Settings {
            change: self.settings.change.into(),
            interval_s: self.settings.interval.map_or(0.0, |interval| interval.as_secs_f64()),
            groups: self.settings.group_names(),
            groups_known: GROUPS.iter().map(|(name, _)| (*name).to_string()).collect(),
            ranks: self.settings.ranks.to_string(),
            obeyed: obeyed.map(ToString::to_string).unwrap_or_default(),
            tracing: self.settings.is_tracing,
            sampling_s: self.settings.sampling.as_secs_f64(),
            numbers: BTreeMap::new(),
        }
    }
}

/// Whether an iteration has fewer ranks than rounds have, or than the program where no round has
/// come.
fn is_partial(round: &Round, ranks: u64) -> bool {
    let whole = if ranks == 0 { round.world_size().into() } else { ranks };
    round.covered().len() < whole
}

/// The ranks that have not applied a change, and are not gone. A leaf reports each rank that it
/// has, with the change that it obeys, also before a round has it.
fn late(
    obeyed: &BTreeMap<u32, RankSet>,
    change: u32,
    running: &RankSet,
    gone: &RankSet,
) -> RankSet {
    if change == 0 {
        return RankSet::new();
    }
    let mut late = running.clone();
    for (&other, ranks) in obeyed {
        match other == change {
            true => late.subtract(ranks.as_ref()),
            false => late.union_with(ranks.as_ref()),
        }
    }
    late.subtract(gone.as_ref());
    late
}

/// Notes which settings ranks have been seen to obey. An answer may lack ranks, or be late: what
/// was known of a rank holds until it is seen to obey later settings.
fn note_obeyed(known: &mut BTreeMap<u32, RankSet>, seen: BTreeMap<u32, RankSet>) {
    for (change, mut ranks) in seen {
        for (other, others) in known.iter_mut() {
            match other.cmp(&change) {
                Ordering::Less => others.subtract(ranks.as_ref()),
                Ordering::Equal => {}
                Ordering::Greater => ranks.subtract(others.as_ref()),
            }
        }
        known.entry(change).or_default().union_with(ranks.as_ref());
    }
    known.retain(|_, ranks| !ranks.is_empty());
}

/// `%uld` number, `%ud` covered ranks, `%ud` the slowest, `%uld` mean and largest time outside of
/// MPI, `%s` the slowest class; then of each event `%as` names, `%auld` mean and largest time and
/// calls, `%aud` ranks that have it and the slowest.
fn advice(number: u64, round: &Round) -> Values {
    let mut events: Vec<_> = round.events().iter().collect();
    events.sort_by_key(|(_, statistics)| std::cmp::Reverse(statistics.time_ns.sum()));
    events.truncate(ADVICE_EVENTS_MAX);
    let mean = |sum: u128, ranks: u64| u64::try_from(sum / u128::from(ranks.max(1))).unwrap_or(0);
    let compute = round.load().map(|load| load.compute_ns);
    let (slowest, computed) = compute
        .map_or((0, (0, 0)), |it| (it.max_rank(), (mean(it.sum(), it.ranks().into()), it.max())));
    let classes = round.classes();
    let class = classes.iter().filter(|it| it.class != Class::Region && it.time_ns > 0);
    let class = class.max_by_key(|total| total.time_ns).map_or("", |total| total.class.name());
    let names: Vec<String> = events.iter().map(|(key, _)| key.name().into_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let means = events.iter().map(|(_, it)| mean(it.time_ns.sum(), it.ranks().into()));
    let counts = events.iter().map(|(_, it)| u64::try_from(it.count.sum()).unwrap_or(u64::MAX));
    Values::new()
        .scalar(number)
        .scalar(u32::try_from(round.covered().len()).unwrap_or(u32::MAX))
        .scalar(slowest)
        .scalar(computed.0)
        .scalar(computed.1)
        .string(class)
        .strings(&names)
        .array(&means.collect::<Vec<_>>())
        .array(&events.iter().map(|(_, it)| it.time_ns.max()).collect::<Vec<_>>())
        .array(&counts.collect::<Vec<_>>())
        .array(&events.iter().map(|(_, it)| it.ranks()).collect::<Vec<_>>())
        .array(&events.iter().map(|(_, it)| it.time_ns.max_rank()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use sapwood_profile::RankProfile;

    use super::*;

    #[test]
    fn before_the_first_round_an_iteration_is_whole_if_it_is_of_the_whole_program() {
        let mut round = Round::new(2);
        round.add(&RankProfile::new(0, 2)).expect("a new rank");
        assert!(is_partial(&round, 0) && is_partial(&round, 2) && !is_partial(&round, 1));
        round.add(&RankProfile::new(1, 2)).expect("a new rank");
        assert!(!is_partial(&round, 0));
    }

    fn sets(all: &[(u32, &str)]) -> BTreeMap<u32, RankSet> {
        let set = |&(change, ranks): &(u32, &str)| (change, ranks.parse().expect("ranks"));
        all.iter().map(set).collect()
    }

    #[test]
    fn ranks_are_late_before_a_round_has_them_and_no_more_once_they_have_ended() {
        let (none, all) = (RankSet::new(), RankSet::range(0, 3));
        let obeyed = sets(&[(0, "3"), (1, "0-2")]);
        assert_eq!(late(&obeyed, 1, &none, &none).to_string(), "3", "no round has come");
        assert_eq!(late(&obeyed, 1, &all, &none).to_string(), "3");
        assert!(late(&obeyed, 1, &all, &RankSet::range(3, 3)).is_empty(), "it ended since");
        assert_eq!(late(&obeyed, 2, &none, &none), all);
        assert_eq!(late(&sets(&[(1, "0-2")]), 1, &all, &none).to_string(), "3");
        assert!(late(&obeyed, 0, &all, &none).is_empty(), "there is nothing to obey");
    }

    #[test]
    fn ranks_of_a_lost_leaf_are_watched_again_once_a_later_question_has_them() {
        let mut unwatched = UnwatchedRanks::default();
        unwatched.lose(&RankSet::range(2, 3), 7);
        unwatched.note_reported(6, sets(&[(0, "0-3")]).values());
        assert_eq!(unwatched.ranks.to_string(), "2-3", "the leaf answered before it was lost");
        unwatched.note_reported(7, sets(&[(0, "0-1"), (1, "3")]).values());
        assert_eq!(unwatched.ranks.to_string(), "2");
        unwatched.note_reported(8, sets(&[(1, "2-3")]).values());
        assert!(unwatched.ranks.is_empty());
    }

    #[test]
    fn a_rank_that_an_answer_lacks_obeys_what_it_did_and_none_goes_back() {
        let mut known = BTreeMap::new();
        note_obeyed(&mut known, sets(&[(0, "0-3")]));
        note_obeyed(&mut known, sets(&[(1, "0-1")]));
        assert_eq!(known, sets(&[(0, "2-3"), (1, "0-1")]));
        note_obeyed(&mut known, sets(&[(1, "2"), (2, "3")]));
        assert_eq!(known, sets(&[(1, "0-2"), (2, "3")]));
        // One that is late.
        note_obeyed(&mut known, sets(&[(0, "2-3"), (1, "3")]));
        assert_eq!(known, sets(&[(1, "0-2"), (2, "3")]));
    }
}
