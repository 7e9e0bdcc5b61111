//! Rounds in which no MPI call returns: which ranks wait, and which do not come.
//!
//! A rank waits when it has been inside one call for longer than the leaves were asked about. A
//! round is a standstill when some rank waits and no other makes progress: each of the others has
//! been outside of MPI for as long, is stopped or is lost. When all wait it is a deadlock or an
//! endless wait for the outside; else those that do not come are the reason.
//!
//! Once ranks die in a standstill, or the program is told to end, what was seen before stands: the
//! ranks of a program that is ended go one after another, and wait for each other no more.

use std::time::Duration;

use sapwood_packet::RankSet;
use sapwood_profile::{
    ACTIVITY_KINDS_MAX, ActivityKind, ActivityStatistics, Condition, RankState, Round,
};

use crate::quantity;
use crate::text::printable;

/// The most standstills that are remembered: the first ones and the last ones. Those between are
/// counted, since many short ones may come before the one that does not end.
const REMEMBERED_MAX: usize = 100;
/// Ranks that compute or sleep may come yet: what concerns them is told after this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is seen within this time after a rank has died in a standstill, or after the program was
/// told to end, is no reason for anything.
pub const ENDING_TIME: Duration = Duration::from_secs(10);

/// One kind of activity with its ranks.
pub type Entry = (ActivityKind, ActivityStatistics);

/// The ranks that wait and those that do not come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standstill {
    /// Calls that have not returned for long, with the ranks inside.
    pub waiting: Vec<Entry>,
    /// What the other ranks do.
    pub absent: Vec<Entry>,
    /// Ranks that have called MPI_Finalize or exited: they do not come either.
    pub ended: RankSet,
    /// Ranks of which the round knows nothing.
    pub unknown: RankSet,
}

impl Standstill {
    /// The standstill that a round shows, if it does.
    #[must_use]
    pub fn of(round: &Round) -> Option<Self> {
        let activities = round.activities();
        let waits = |kind: &ActivityKind| {
            kind.is_long && kind.function.is_some() && kind.condition == Condition::Unknown
        };
        let waiting = activities.ranks(waits);
        if waiting.is_empty() || activities.is_cut() {
            return None;
        }
        let does_not_come = |kind: &ActivityKind| match kind.condition {
            Condition::Stopped | Condition::Lost => true,
            _ => kind.is_long && kind.function.is_none(),
        };
        let still = activities.ranks(|kind| waits(kind) || does_not_come(kind));
        let working = round.ranks_in(RankState::Running).difference(still.as_ref());
        if !working.is_empty() {
            return None;
        }
        let entries = |is_wanted: &dyn Fn(&ActivityKind) -> bool| -> Vec<Entry> {
            let wanted = activities.iter().filter(|(kind, _)| is_wanted(kind));
            wanted.map(|(kind, statistics)| (kind.clone(), statistics.clone())).collect()
        };
        let (waiting, absent) = (entries(&waits), entries(&does_not_come));
        let ended = ended(round).difference(still.as_ref());
        Some(Self { waiting, absent, ended, unknown: round.missing() })
    }

    /// All ranks that do not come.
    fn not_arrived(&self) -> RankSet {
        let mut ranks = self.ended.clone();
        ranks.union_with(self.unknown.as_ref());
        self.absent.iter().for_each(|(_, one)| ranks.union_with(one.ranks.as_ref()));
        ranks
    }

    /// For how long no call has returned.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        let shortest = self.waiting.iter().map(|(_, statistics)| statistics.shortest_ns).min();
        Duration::from_nanos(shortest.unwrap_or(0))
    }

    /// Whether those that do not come can only do so after something from outside: all wait, or
    /// the others are stopped or lost.
    fn is_certain(&self) -> bool {
        let is_gone =
            |kind: &ActivityKind| matches!(kind.condition, Condition::Stopped | Condition::Lost);
        self.unknown.is_empty() && self.absent.iter().all(|(kind, _)| is_gone(kind))
    }

    /// Lines for people: what it is, which ranks wait, which do not come.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let seconds = quantity::time(self.lasts().as_nanos() as f64);
        let mut lines = vec![format!("no MPI call has returned for {seconds}")];
        lines.extend(self.waiting.iter().map(|entry| format!("waiting: {}", told(entry))));
        lines.extend(self.absent.iter().map(|entry| format!("not arrived: {}", told(entry))));
        if !self.ended.is_empty() {
            lines.push(format!("not arrived: {}, ended", ranks(&self.ended)));
        }
        if !self.unknown.is_empty() {
            lines.push(format!("no data: {}", ranks(&self.unknown)));
        } else if self.absent.is_empty() && self.ended.is_empty() {
            lines.push("all ranks wait".to_owned());
        }
        lines
    }
}

/// Ranks that have called MPI_Finalize or exited.
fn ended(round: &Round) -> RankSet {
    let mut ended = round.ranks_in(RankState::Finalized);
    ended.union_with(round.ranks_in(RankState::Exited).as_ref());
    ended
}

/// An entry in words, as `ranks 0-2 in MPI_Recv on MPI_COMM_WORLD from 1-3 for 2.10 s`.
pub(crate) fn told((kind, statistics): &Entry) -> String {
    let ranks = ranks(&statistics.ranks);
    let doing = match (kind.function, kind.condition) {
        (_, Condition::Unknown) | (None, Condition::Computing | Condition::Sleeping) => "",
        (_, condition) => condition.name(),
    };
    let place = match (kind.function, kind.condition) {
        (None, Condition::Computing) => format!("computing {kind}"),
        (None, Condition::Sleeping) => format!("sleeping {kind}"),
        (None, _) => kind.to_string(),
        (Some(_), _) => format!("in {kind}"),
    };
    let mut text = format!("{ranks}{}{doing} {place}", if doing.is_empty() { "" } else { ", " });
    if statistics.any_peer {
        text.push_str(", from any source");
    } else if !statistics.peers.is_empty() {
        text.push_str(&format!(", with {}", statistics.peers));
    }
    let (least, most) = (statistics.shortest_ns as f64, statistics.longest_ns as f64);
    let (least, most) = (quantity::time(least), quantity::time(most));
    text.push_str(&if least == most {
        format!(", for {most}")
    } else {
        format!(", for {least} to {most} (rank {})", statistics.longest_rank)
    });
    printable(&text)
}

fn ranks(ranks: &RankSet) -> String {
    if ranks.len() == 1 { format!("rank {ranks}") } else { format!("ranks {ranks}") }
}

/// A standstill from its first round to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// When the last rank of it began to wait, from the start of the program.
    pub began: Duration,
    /// When it was last seen.
    pub seen: Duration,
    /// What it was then.
    pub standstill: Standstill,
    is_told: bool,
}

/// The standstills of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standstills {
    /// The first and the last of them, in order.
    pub episodes: Vec<Episode>,
    /// How many more there were between these.
    pub more: u64,
    /// Rounds of which it is not known whether they show one: too many kinds of calls.
    pub unjudged: u64,
    is_unjudged_told: bool,
    is_going_on: bool,
    /// Ranks that had ended in the round before.
    ended: RankSet,
    /// Ranks that were lost in any round before.
    lost: RankSet,
    /// Ranks that waited when the first of a standstill died, or when they were told to end: no
    /// others wait for these.
    waited: RankSet,
    /// When the last of these died, or was told to end.
    unsettled: Option<Duration>,
}

impl Standstills {
    /// Takes in a round of this time; gives a line when there is something to be told at once.
    pub fn note(&mut self, now: Duration, round: &Round) -> Option<String> {
        let had_ended = std::mem::replace(&mut self.ended, ended(round));
        self.unjudged += u64::from(round.activities().is_cut());
        self.note_deaths(now, round);
        let is_settled = self.is_settled(now);
        let Some(standstill) = Standstill::of(round) else {
            self.is_going_on = false;
            if is_settled {
                self.waited = RankSet::new();
            }
            return None;
        };
        if !is_settled || self.is_of_victims(&standstill) {
            return None;
        }
        // The ranks of a round are not read in one moment: one that was read first seems to wait
        // for others that have gone on with it and ended meanwhile.
        if !standstill.ended.difference(had_ended.as_ref()).is_empty() {
            return None;
        }
        if !std::mem::replace(&mut self.is_going_on, true) {
            if self.episodes.len() == REMEMBERED_MAX {
                self.more += 1;
                self.episodes.remove(REMEMBERED_MAX / 2);
            }
            let began = now.saturating_sub(standstill.lasts());
            let standstill = Standstill::default();
            self.episodes.push(Episode { began, seen: now, standstill, is_told: false });
        }
        let episode = self.episodes.last_mut()?;
        (episode.seen, episode.standstill) = (now, standstill);
        let standstill = &episode.standstill;
        if episode.is_told || !(standstill.is_certain() || standstill.lasts() >= PATIENCE) {
            return None;
        }
        episode.is_told = true;
        Some(standstill.lines().join("; "))
    }

    /// Whether a standstill that was told goes on, and all of these ranks are among those that do
    /// not come in it; never for no ranks.
    #[must_use]
    pub fn names(&self, ranks: &RankSet) -> bool {
        let episode = self.episodes.last().filter(|one| self.is_going_on && one.is_told);
        let is_within = |episode: &Episode| {
            ranks.difference(episode.standstill.not_arrived().as_ref()).is_empty()
        };
        !ranks.is_empty() && episode.is_some_and(is_within)
    }

    /// The program is told to end at this time.
    pub fn note_ending(&mut self, now: Duration) {
        self.unsettled = Some(now);
        self.keep_waiting_ranks();
    }

    /// A line that standstills are not reported any more; once.
    pub fn take_unjudged(&mut self) -> Option<String> {
        let is_new = self.unjudged > 0 && !std::mem::replace(&mut self.is_unjudged_told, true);
        is_new.then(|| {
            format!(
                "standstills are not reported while more than {} kinds of calls are in progress",
                quantity::whole(ACTIVITY_KINDS_MAX as u128)
            )
        })
    }

    /// A line for the report, if standstills may be missing from it.
    pub(crate) fn unjudged_line(&self) -> Option<String> {
        (self.unjudged > 0).then(|| {
            format!(
                "not known in {}: more than {} kinds of calls in progress",
                quantity::counted(self.unjudged.into(), "rounds"),
                quantity::whole(ACTIVITY_KINDS_MAX as u128)
            )
        })
    }

    /// Whether what a round shows may be a reason: no rank has died in a standstill shortly before,
    /// and the program was not told to end.
    fn is_settled(&self, now: Duration) -> bool {
        self.unsettled.is_none_or(|since| now.saturating_sub(since) >= ENDING_TIME)
    }

    /// A rank that has died in a standstill ends it: what is still there later is another one.
    fn note_deaths(&mut self, now: Duration, round: &Round) {
        let lost = round.ranks_in(RankState::Lost);
        let has_died = !lost.difference(self.lost.as_ref()).is_empty();
        self.lost.union_with(lost.as_ref());
        if has_died && (self.is_going_on || !self.is_settled(now)) {
            self.keep_waiting_ranks();
            self.is_going_on = false;
            self.unsettled = Some(now);
        }
    }

    /// Remembers the ranks that wait in the standstill that goes on.
    fn keep_waiting_ranks(&mut self) {
        let episode = self.episodes.last().filter(|_| self.is_going_on);
        for (_, statistics) in episode.into_iter().flat_map(|episode| &episode.standstill.waiting) {
            self.waited.union_with(statistics.ranks.as_ref());
        }
    }

    /// Whether those that do not come have waited themselves before they died or ended.
    fn is_of_victims(&self, standstill: &Standstill) -> bool {
        let is_lost = |(kind, _): &&Entry| kind.condition == Condition::Lost;
        let mut gone = standstill.absent.iter().filter(is_lost);
        let waited = self.waited.as_ref();
        gone.any(|(_, statistics)| statistics.ranks.as_ref().intersects(waited))
            || standstill.ended.as_ref().intersects(waited)
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Activity, Function, Peer, RankProfile};

    use super::*;

    /// How long an activity has been going on.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Span {
        Short,
        Long,
    }

    fn activity(function: &str, span: Span, condition: Condition) -> Activity {
        let is_long = span == Span::Long;
        let function = Function::named(function).map(|function| function.id);
        let communicator = function.map_or("", |_| "MPI_COMM_WORLD").to_owned();
        let kind =
            ActivityKind { function, is_long, condition, communicator, ..ActivityKind::default() };
        let for_ns = if is_long { 2_000_000_000 } else { 1000 };
        Activity { kind, peer: Peer::None, for_ns }
    }

    fn waits() -> Activity {
        activity("MPI_Allreduce", Span::Long, Condition::Unknown)
    }

    fn round(activities: &[Activity]) -> Round {
        let size = u32::try_from(activities.len()).unwrap();
        let mut round = Round::new(size);
        for (rank, activity) in (0..).zip(activities) {
            let mut profile = RankProfile::new(rank, size);
            if activity.kind.condition == Condition::Lost {
                profile.state = RankState::Lost;
            }
            profile.activities = vec![activity.clone()];
            round.add(&profile).unwrap();
        }
        round
    }

    fn lines(activities: &[Activity]) -> Vec<String> {
        Standstill::of(&round(activities)).map(|still| still.lines()).unwrap_or_default()
    }

    #[test]
    fn ranks_that_wait_are_told_apart_from_those_that_do_not_come() {
        let stopped = activity("", Span::Long, Condition::Stopped);
        assert_eq!(
            lines(&[waits(), waits(), stopped, waits()]),
            [
                "no MPI call has returned for 2.00 s",
                "waiting: ranks 0-1,3 in MPI_Allreduce on MPI_COMM_WORLD, for 2.00 s",
                "not arrived: rank 2, stopped outside MPI, for 2.00 s",
            ]
        );
        let computing = lines(&[waits(), activity("", Span::Long, Condition::Computing)]);
        assert_eq!(computing[2], "not arrived: rank 1 computing outside MPI, for 2.00 s");
        let lost = lines(&[waits(), activity("MPI_Recv", Span::Long, Condition::Lost)]);
        assert_eq!(lost[2], "not arrived: rank 1, lost in MPI_Recv on MPI_COMM_WORLD, for 2.00 s");
    }

    #[test]
    fn a_rank_that_has_ended_does_not_come() {
        let mut round = Round::new(3);
        for rank in 0..3 {
            let mut profile = RankProfile::new(rank, 3);
            match rank {
                2 => profile.state = RankState::Exited,
                _ => profile.activities = vec![waits()],
            }
            round.add(&profile).unwrap();
        }
        let still = Standstill::of(&round).unwrap();
        assert_eq!(still.lines().last().unwrap(), "not arrived: rank 2, ended");
        assert!(still.is_certain(), "it cannot come");
    }

    fn round_with_ended(waiting: &[Activity], ended: u32) -> Round {
        let size = u32::try_from(waiting.len()).unwrap() + ended;
        let mut round = Round::new(size);
        for rank in 0..size {
            let mut profile = RankProfile::new(rank, size);
            match waiting.get(rank as usize) {
                Some(activity) => profile.activities = vec![activity.clone()],
                None => profile.state = RankState::Finalized,
            }
            round.add(&profile).unwrap();
        }
        round
    }

    #[test]
    fn ranks_that_are_seen_to_wait_before_the_others_are_seen_to_have_ended_wait_no_longer() {
        let mut all = Standstills::default();
        assert_eq!(all.note(Duration::from_secs(5), &round_with_ended(&[waits()], 3)), None);
        assert_eq!(all.note(Duration::from_secs(6), &round_with_ended(&[], 4)), None);
        assert!(all.episodes.is_empty(), "{:?}", all.episodes);
        let mut all = Standstills::default();
        let sleeps = activity("", Span::Long, Condition::Sleeping);
        let still = round(&[waits(), sleeps]);
        assert_eq!(all.note(Duration::from_secs(4), &still), None, "it may come yet");
        assert_eq!(all.note(Duration::from_secs(5), &round_with_ended(&[waits()], 1)), None);
        assert_eq!(all.note(Duration::from_secs(6), &round_with_ended(&[], 2)), None);
        assert_eq!(all.episodes[0].standstill, Standstill::of(&still).unwrap());
        // Those that wait in the next round, too, wait for ranks that have ended.
        let mut all = Standstills::default();
        for (second, is_told) in [(7, false), (8, true), (9, false)] {
            let told = all.note(Duration::from_secs(second), &round_with_ended(&[waits()], 3));
            assert_eq!(told.is_some(), is_told, "after {second} s");
        }
        assert_eq!(all.note(Duration::from_secs(10), &round_with_ended(&[], 4)), None);
        assert_eq!(all.episodes.len(), 1);
    }

    #[test]
    fn a_deadlock_is_a_standstill_of_all() {
        let lines = lines(&[waits(), activity("MPI_Recv", Span::Long, Condition::Unknown)]);
        assert_eq!(lines.last().unwrap(), "all ranks wait");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_rank_that_is_missing_from_the_round_may_be_the_one_that_does_not_come() {
        let mut round = Round::new(3);
        let mut profile = RankProfile::new(1, 3);
        profile.activities = vec![waits()];
        round.add(&profile).unwrap();
        let still = Standstill::of(&round).unwrap();
        assert_eq!(still.lines().last().unwrap(), "no data: ranks 0,2");
        assert!(!still.is_certain(), "it may come yet");
    }

    #[test]
    fn a_rank_that_makes_progress_makes_it_no_standstill() {
        assert!(lines(&[waits(), activity("", Span::Short, Condition::Computing)]).is_empty());
        assert!(
            lines(&[waits(), activity("MPI_Send", Span::Short, Condition::Unknown)]).is_empty()
        );
        assert!(
            lines(&[activity("", Span::Long, Condition::Computing)]).is_empty(),
            "no rank waits"
        );
        // A rank that was stopped a moment ago does not come either.
        assert!(!lines(&[waits(), activity("", Span::Short, Condition::Stopped)]).is_empty());
    }

    #[test]
    fn a_standstill_is_told_once_and_remembered_from_begin_to_end() {
        let seconds = Duration::from_secs;
        let mut all = Standstills::default();
        let still = round(&[waits(), waits()]);
        let moving = round(&[waits(), activity("", Span::Short, Condition::Computing)]);
        assert!(all.note(seconds(5), &still).unwrap().starts_with("no MPI call has returned"));
        assert_eq!(all.note(seconds(6), &still), None);
        assert_eq!(all.note(seconds(7), &moving), None);
        assert!(all.note(seconds(9), &still).is_some());
        let times: Vec<_> = all.episodes.iter().map(|one| (one.began, one.seen)).collect();
        assert_eq!(times, [(seconds(3), seconds(6)), (seconds(7), seconds(9))]);
    }

    #[test]
    fn ranks_that_do_not_come_are_named_while_the_standstill_goes_on() {
        let set = |ranks: &str| ranks.parse::<RankSet>().expect("a rank set");
        let mut all = Standstills::default();
        assert!(!all.names(&set("2")), "nothing was seen");
        let stopped = activity("", Span::Long, Condition::Stopped);
        let _ = all.note(Duration::from_secs(5), &round(&[waits(), waits(), stopped, waits()]));
        assert!(all.names(&set("2")));
        assert!(!all.names(&set("1")), "it waits, and may differ from the others");
        assert!(!all.names(&set("1-2")));
        let moving = round(&[waits(), activity("", Span::Short, Condition::Computing)]);
        let _ = all.note(Duration::from_secs(6), &moving);
        assert!(!all.names(&set("2")), "it is over");
    }

    #[test]
    fn ranks_that_may_come_yet_are_named_once_the_standstill_is_told() {
        let ranks = "1".parse::<RankSet>().expect("a rank set");
        let mut all = Standstills::default();
        let (mut waiting, computing) = (waits(), activity("", Span::Long, Condition::Computing));
        let still = round(&[waiting.clone(), computing.clone()]);
        assert_eq!(all.note(Duration::from_secs(5), &still), None);
        assert!(!all.names(&ranks), "nothing was said yet");
        waiting.for_ns = 10_000_000_000;
        let long = round(&[waiting, computing]);
        assert!(all.note(Duration::from_secs(13), &long).is_some());
        assert!(all.names(&ranks));
    }

    #[test]
    fn a_standstill_of_all_ranks_names_none_and_does_not_stand_for_what_names_none() {
        let mut all = Standstills::default();
        assert!(all.note(Duration::from_secs(5), &round(&[waits(), waits()])).is_some());
        assert!(!all.names(&RankSet::new()));
        assert!(!all.names(&"0".parse().expect("a rank set")));
    }

    #[test]
    fn the_last_standstill_is_told_and_remembered_however_many_were_before() {
        let still = round(&[waits(), waits()]);
        let moving = round(&[waits(), activity("", Span::Short, Condition::Computing)]);
        let mut all = Standstills::default();
        for number in 0..250 {
            let now = Duration::from_secs(10 * number + 5);
            assert!(all.note(now, &still).is_some(), "number {number}");
            all.note(now + Duration::from_secs(1), &moving);
        }
        assert_eq!((all.episodes.len(), all.more), (100, 150));
        let seen: Vec<_> = all.episodes.iter().map(|episode| episode.seen.as_secs()).collect();
        assert_eq!((seen[0], seen[49], seen[50], seen[99]), (5, 495, 2005, 2495));
    }

    fn lost_in(function: &str) -> Activity {
        activity(function, Span::Long, Condition::Lost)
    }

    #[test]
    fn ranks_that_die_one_after_another_do_not_change_what_they_waited_for() {
        let seconds = Duration::from_secs;
        let mut all = Standstills::default();
        let whole = round(&[waits(), waits(), waits(), waits()]);
        for second in 5..=13 {
            assert_eq!(all.note(seconds(second), &whole).is_some(), second == 5);
        }
        let before = all.episodes.clone();
        for dead in 1..=3_usize {
            let states: Vec<_> = (0..4)
                .map(|rank| if rank < dead { lost_in("MPI_Allreduce") } else { waits() })
                .collect();
            let now = seconds(13) + Duration::from_millis(200 * dead as u64);
            assert_eq!(all.note(now, &round(&states)), None, "{dead} have died");
            // One that is on its way out is seen outside of MPI for a moment.
            let mut leaving = states.clone();
            leaving[3] = activity("", Span::Short, Condition::Computing);
            assert_eq!(all.note(now + Duration::from_millis(100), &round(&leaving)), None);
        }
        // A launcher that hangs leaves one of them, for however long.
        let lost = || lost_in("MPI_Allreduce");
        let left = round(&[lost(), lost(), lost(), waits()]);
        assert_eq!(all.note(seconds(60), &left), None);
        assert_eq!(all.episodes, before);
        assert_eq!(all.episodes[0].standstill.lines().last().unwrap(), "all ranks wait");
    }

    #[test]
    fn what_is_seen_while_a_program_is_told_to_end_is_no_standstill() {
        let seconds = Duration::from_secs;
        let mut all = Standstills::default();
        let still = round(&[waits(), waits()]);
        assert!(all.note(seconds(5), &still).is_some());
        all.note_ending(seconds(6));
        let before = all.episodes.clone();
        assert_eq!(all.note(seconds(7), &round_with_ended(&[waits()], 1)), None);
        assert_eq!(all.note(seconds(8), &round_with_ended(&[waits()], 1)), None);
        assert_eq!(all.episodes, before);
        // One that does not end although it was told to waits as before.
        let mut all = Standstills::default();
        assert!(all.note(seconds(5), &still).is_some());
        all.note_ending(seconds(6));
        assert_eq!(all.note(seconds(7), &still), None);
        assert_eq!(all.note(seconds(30), &still), None, "it was told");
        assert_eq!((all.episodes.len(), all.episodes[0].seen), (1, seconds(30)));
    }

    #[test]
    fn a_rank_that_dies_while_others_wait_for_it_is_told_once_no_more_die() {
        let seconds = Duration::from_secs;
        let mut all = Standstills::default();
        let computes = activity("", Span::Long, Condition::Computing);
        assert_eq!(all.note(seconds(5), &round(&[waits(), computes])), None);
        let dead = round(&[waits(), lost_in("")]);
        assert_eq!(all.note(seconds(6), &dead), None, "others may die with it");
        let line = all.note(seconds(17), &dead).expect("it does not come any more");
        assert!(line.contains("not arrived: rank 1, lost outside MPI"), "{line}");
        assert_eq!(all.episodes.len(), 2);
    }

    #[test]
    fn too_many_kinds_of_calls_are_told_once_and_counted() {
        let size = u32::try_from(ACTIVITY_KINDS_MAX).unwrap() + 1;
        let mut round = Round::new(size);
        for rank in 0..size {
            let mut profile = RankProfile::new(rank, size);
            let mut one = waits();
            one.kind.region = format!("region {rank}");
            profile.activities = vec![one];
            round.add(&profile).unwrap();
        }
        let mut all = Standstills::default();
        assert_eq!((all.take_unjudged(), all.unjudged_line()), (None, None));
        for second in [5, 6] {
            assert_eq!(all.note(Duration::from_secs(second), &round), None);
        }
        assert!(all.episodes.is_empty());
        let line = all.take_unjudged().expect("it is told");
        assert!(line.ends_with("more than 1,024 kinds of calls are in progress"), "{line}");
        assert_eq!(all.take_unjudged(), None, "once");
        let line = all.unjudged_line().expect("the report has it");
        assert!(line.starts_with("not known in 2 rounds: more than 1,024 kinds"), "{line}");
    }

    #[test]
    fn ranks_that_may_come_yet_are_told_of_late() {
        let still = round(&[waits(), activity("", Span::Long, Condition::Computing)]);
        let mut all = Standstills::default();
        assert_eq!(all.note(Duration::from_secs(5), &still), None);
        assert_eq!(all.episodes.len(), 1, "the report has it");
    }
}
