//! How ranks ended, as the front-end knows it, and which of them ended first.

use std::time::Duration;

use sapwood::RankSet;
use sapwood_launch::Signal;
use sapwood_profile::{Cause, EndKind, RankReport};
use sapwood_report::record::Death;
use sapwood_report::why::RankEnd;

/// A launcher ends the other ranks within this time of the first death, and may be seen to before.
const FOLLOWS_WITHIN: Duration = Duration::from_millis(50);

/// A process with much memory is seen to be killed only after others, whose connections to it were
/// closed before, have ended because of that.
const KILLED_WITHIN: Duration = Duration::from_millis(500);

/// Of ends that near each other it is not known which came first: leaves look one after another.
const TOGETHER: Duration = Duration::from_millis(10);

/// What is added to the signal by which a launcher has killed all ranks that ended.
const BY_LAUNCHER: &str = ", as a launcher ends its ranks";

/// Ends of ranks, in the order in which they were told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Deaths {
    ends: Vec<End>,
    known: RankSet,
    /// How the launcher ended, once it has.
    launcher: Option<i32>,
}

#[derive(Clone, Debug, PartialEq)]
struct End {
    kind: EndKind,
    ranks: RankSet,
    /// When the first of them ended, from the start of the program.
    elapsed: Duration,
    first_rank: u32,
}

impl Deaths {
    /// The ranks whose ends are known, in order or not: leaves need not tell these again.
    pub(crate) fn known(&self) -> &RankSet {
        &self.known
    }

    /// Takes in a report, in answer to a question of that time of the program.
    pub(crate) fn take(&mut self, report: &RankReport, asked: Duration) {
        for (kind, end) in &report.ends {
            let ranks = end.ranks.difference(self.known.as_ref());
            if ranks.is_empty() {
                continue;
            }
            self.known.union_with(ranks.as_ref());
            let elapsed = asked.saturating_sub(Duration::from_nanos(end.oldest_ns));
            let is_new = ranks.contains(end.oldest_rank);
            let first_rank = if is_new { Some(end.oldest_rank) } else { ranks.iter().next() };
            let first_rank = first_rank.unwrap_or(end.oldest_rank);
            self.ends.push(End { kind: kind.clone(), ranks, elapsed, first_rank });
        }
    }

    /// The launcher has ended with this code.
    pub(crate) fn launcher_ended(&mut self, code: i32) {
        self.launcher = Some(code);
    }

    /// Ranks that did not end in order, the first one apart from those that followed it; none is
    /// the first of those that their launcher has killed together.
    pub(crate) fn section(&self) -> Vec<Death> {
        let mut ends: Vec<&End> = self.ends.iter().filter(|end| !end.kind.is_in_order()).collect();
        ends.sort_by_key(|end| (end.elapsed, end.first_rank));
        if were_killed_together(&ends, self.launcher) {
            return self.together(&ends);
        }
        let Some(first) = first_of(&ends, self.launcher) else { return Vec::new() };
        let alone = RankSet::range(first.first_rank, first.first_rank);
        let mut deaths = vec![self.death(first, &alone, true)];
        for end in ends {
            let ranks = end.ranks.difference(alone.as_ref());
            if !ranks.is_empty() {
                deaths.push(self.death(end, &ranks, false));
            }
        }
        deaths
    }

    /// Ranks that their launcher has killed, those together that were inside the same.
    fn together(&self, ends: &[&End]) -> Vec<Death> {
        let mut kinds: Vec<End> = Vec::new();
        for &end in ends {
            match kinds.iter_mut().find(|known| known.kind == end.kind) {
                Some(known) => known.ranks.union_with(end.ranks.as_ref()),
                None => kinds.push(end.clone()),
            }
        }
        let death = |end: &End| {
            let mut death = self.death(end, &end.ranks, false);
            death.cause.push_str(BY_LAUNCHER);
            death
        };
        kinds.iter().map(death).collect()
    }

    /// Of ranks that died, those that had ended in order before, if they are the fewer: others may
    /// have died of that.
    pub(crate) fn ended_before(&self) -> Option<RankEnd> {
        let deaths: Vec<&End> = self.ends.iter().filter(|end| !end.kind.is_in_order()).collect();
        let first = first_of(&deaths, self.launcher)?;
        let earlier = self.ends.iter().filter(|end| end.kind.is_in_order());
        let earlier: Vec<&End> = earlier.filter(|end| end.elapsed < first.elapsed).collect();
        let mut ranks = RankSet::new();
        earlier.iter().for_each(|end| ranks.union_with(end.ranks.as_ref()));
        let when = earlier.iter().map(|end| end.elapsed).min()?.as_secs_f64();
        let is_told = ranks.len() * 2 <= self.known.len();
        is_told.then(|| RankEnd::in_order(&ranks.to_string(), when))
    }

    fn death(&self, end: &End, ranks: &RankSet, is_first: bool) -> Death {
        let mut cause = match (end.kind.cause, self.launcher) {
            // A launcher ends as the rank that ended first.
            (Cause::Unknown, Some(code @ 129..=192)) if is_first => {
                format!("{}, as the launcher says", signal_text(code - 128))
            }
            (Cause::Signal(number), _) => signal_text(number),
            (cause, _) => cause.to_string(),
        };
        if end.kind.is_finalized {
            cause.push_str(" after MPI_Finalize");
        } else if end.kind.cause == Cause::Code(0) && end.kind.inside != "MPI_Finalize" {
            cause.push_str(" without MPI_Finalize");
        }
        Death {
            ranks: ranks.to_string(),
            elapsed_s: end.elapsed.as_secs_f64(),
            is_first,
            cause,
            inside: end.kind.inside.clone(),
        }
    }
}

/// Whether a launcher has killed all of these ranks at once, as MPICH's does when MPI ends a
/// program with an error: none of them is known to have died first. Where another has killed a
/// rank, the launcher ends with the number of that signal, as MPICH's does, or with 128 more; a
/// code of 0 says nothing of it. The ends are in order of time.
fn were_killed_together(ends: &[&End], launcher: Option<i32>) -> bool {
    let kill = Signal::KILL.as_raw();
    let is_other = launcher.is_some_and(|code| ![0, kill, 128 + kill].contains(&code));
    let are_killed = ends.iter().all(|end| end.kind.cause == Cause::Signal(kill));
    let ranks: u64 = ends.iter().map(|end| end.ranks.len()).sum();
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return false };
    let is_at_once = last.elapsed <= first.elapsed + FOLLOWS_WITHIN;
    is_other && are_killed && is_at_once && ranks > 1
}

/// The death that others followed: the first one, but for the signal by which a launcher ends the
/// others when one has died of itself. Of several that were ended at once it is the one outside of
/// MPI, where the others wait for it.
fn first_of<'a>(ends: &[&'a End], launcher: Option<i32>) -> Option<&'a End> {
    if let Some(killed) = killed_from_outside(ends, launcher) {
        return Some(killed);
    }
    let earliest = ends.iter().min_by_key(|end| (end.elapsed, end.first_rank))?;
    let is_by_itself = |end: &&&End| match end.kind.cause {
        Cause::Signal(number) => number != Signal::KILL.as_raw() && number != Signal::TERM.as_raw(),
        Cause::Code(_) | Cause::Abort(_) => true,
        _ => false,
    };
    let near = ends.iter().filter(|end| end.elapsed <= earliest.elapsed + FOLLOWS_WITHIN);
    let own = near.filter(is_by_itself).min_by_key(|end| (end.elapsed, end.first_rank));
    if is_by_itself(&earliest) {
        return Some(earliest);
    }
    let waits = |end: &End| end.kind.inside.starts_with("MPI_");
    let together = ends.iter().filter(|end| end.elapsed <= earliest.elapsed + TOGETHER);
    let outside =
        together.filter(|end| !waits(end)).min_by_key(|end| (end.elapsed, end.first_rank));
    let outside = outside.filter(|_| waits(earliest));
    Some(own.or(outside).unwrap_or(earliest))
}

/// The rank that was killed, and not by its launcher: the launcher has ended with that signal, or
/// has ended all others afterwards by a milder one. Exits of others may be seen shortly before.
fn killed_from_outside<'a>(ends: &[&'a End], launcher: Option<i32>) -> Option<&'a End> {
    let by = |signal: Signal| {
        let is_by = move |end: &&&End| end.kind.cause == Cause::Signal(signal.as_raw());
        ends.iter().filter(is_by).min_by_key(|end| (end.elapsed, end.first_rank))
    };
    let killed = by(Signal::KILL)?;
    let is_told = launcher == Some(128 + Signal::KILL.as_raw());
    let is_before = by(Signal::TERM).is_some_and(|ended| killed.elapsed < ended.elapsed);
    let earliest = ends.iter().map(|end| end.elapsed).min()?;
    let exits = ends.iter().filter(|end| end.elapsed < killed.elapsed);
    let are_exits = exits.clone().all(|end| matches!(end.kind.cause, Cause::Code(1..)));
    let is_near = killed.elapsed <= earliest + KILLED_WITHIN;
    ((is_told || is_before) && are_exits && is_near).then_some(killed)
}

fn signal_text(number: i32) -> String {
    let named = [
        (Signal::HUP, "hang-up"),
        (Signal::INT, "interrupt"),
        (Signal::QUIT, "quit"),
        (Signal::ILL, "illegal instruction"),
        (Signal::ABORT, "abort"),
        (Signal::BUS, "bus error"),
        (Signal::FPE, "arithmetic fault"),
        (Signal::KILL, "killed"),
        (Signal::SEGV, "segmentation fault"),
        (Signal::TERM, "terminated"),
    ];
    let name = named.iter().find(|(signal, _)| signal.as_raw() == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| format!("signal {number} ({name})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(cause: Cause, is_finalized: bool) -> EndKind {
        EndKind { cause, is_finalized, inside: String::new() }
    }

    #[test]
    fn the_first_death_stands_apart_whatever_was_told_first() {
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(15), false), 40_000_000);
        report.end(3, kind(Cause::Signal(15), false), 41_000_000);
        report.end(2, kind(Cause::Code(0), true), 900_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        let mut late = RankReport::default();
        late.end(1, kind(Cause::Abort(13), false), 150_000_000);
        late.end(3, kind(Cause::Signal(15), false), 141_000_000);
        deaths.take(&late, Duration::from_millis(2100));
        assert_eq!(deaths.known().to_string(), "0-3");
        assert_eq!(
            Death::lines(&deaths.section(), 8),
            [
                "rank 1 died first, 1.950 s after the start: MPI_Abort(13)",
                "ranks 0,3 followed: signal 15 (terminated)",
            ]
        );
        assert!(deaths.section()[0].is_first && !deaths.section()[1].is_first);
    }

    #[test]
    fn a_rank_that_died_of_itself_comes_before_those_that_its_launcher_ended() {
        let of = |own_ns| {
            let mut report = RankReport::default();
            report.end(0, kind(Cause::Signal(9), false), 41_000_000);
            report.end(2, kind(Cause::Signal(9), false), 40_000_000);
            report.end(1, kind(Cause::Signal(11), false), own_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.section().into_iter().map(|death| death.ranks).collect::<Vec<_>>()
        };
        assert_eq!(of(40_500_000), ["1", "0,2"]);
        // Long after a kill it is what followed.
        assert_eq!(of(900_000_000), ["1", "0,2"]);
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(9), false), 900_000_000);
        report.end(1, kind(Cause::Code(1), false), 40_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        assert_eq!(deaths.section()[0].ranks, "0");
    }

    #[test]
    fn a_kill_that_is_seen_after_exits_that_came_of_it_is_the_first_death() {
        let first = |killed_ns, ended: Cause, launcher| {
            let mut report = RankReport::default();
            report.end(5, kind(Cause::Code(1), false), 900_000_000);
            report.end(6, kind(Cause::Signal(9), false), killed_ns);
            report.end(0, kind(ended, false), 500_000_000);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(launcher);
            deaths.section()[0].ranks.clone()
        };
        let (exit, ended) = (Cause::Code(1), Cause::Signal(15));
        assert_eq!(first(854_000_000, ended, 1), "6", "the launcher ended others afterwards");
        assert_eq!(first(854_000_000, exit, 137), "6", "the launcher says so");
        assert_eq!(first(854_000_000, exit, 1), "5", "there is no sign of it");
        assert_eq!(first(400_000_000, ended, 1), "5", "the launcher may have killed it");
        assert_eq!(first(300_000_000, exit, 137), "5", "long after the exit");
    }

    #[test]
    fn of_ranks_that_were_killed_at_once_the_one_outside_of_mpi_is_the_first() {
        let first = |own_ns| {
            let inside = EndKind { inside: "MPI_Sendrecv".into(), ..kind(Cause::Signal(9), false) };
            let mut report = RankReport::default();
            report.end(2, inside.clone(), 41_000_000);
            report.end(0, inside, 39_000_000);
            report.end(1, kind(Cause::Signal(9), false), own_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.section()[0].ranks.clone()
        };
        assert_eq!(first(38_000_000), "1");
        assert_eq!(first(20_000_000), "2", "long after the others");
    }

    #[test]
    fn none_is_the_first_of_ranks_that_their_launcher_has_killed_together() {
        let inside = |call: &str| EndKind { inside: call.into(), ..kind(Cause::Signal(9), false) };
        let told = |last_ns, last: &str, launcher| {
            let mut report = RankReport::default();
            report.end(0, inside("MPI_Bcast"), 41_000_000);
            report.end(1, inside("MPI_Bcast"), 40_000_000);
            report.end(2, inside(last), last_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            // The same kind of end may be told in two reports.
            let mut late = RankReport::default();
            late.end(3, inside("MPI_Bcast"), 139_000_000);
            deaths.take(&late, Duration::from_millis(2100));
            if let Some(code) = launcher {
                deaths.launcher_ended(code);
            }
            let deaths = deaths.section();
            (Death::lines(&deaths, 8), deaths.iter().any(|death| death.is_first))
        };
        let (when, cause) =
            ("1.959 s after the start", "signal 9 (killed), as a launcher ends its ranks");
        let line = format!("ranks 0-3 were killed together, {when}: {cause}, inside MPI_Bcast");
        // The error of MPI with which MPICH's launcher ended the program.
        assert_eq!(told(38_000_000, "MPI_Bcast", Some(14)), (vec![line], false));
        let with_others = |ranks: &str, seconds: &str, call: &str| {
            format!(
                "{ranks} killed together with the others, {seconds} s after the start: {cause}, \
                 inside {call}"
            )
        };
        assert_eq!(
            told(38_000_000, "MPI_Barrier", Some(14)).0,
            [
                with_others("ranks 0-1,3 were", "1.959", "MPI_Bcast"),
                with_others("rank 2 was", "1.962", "MPI_Barrier"),
            ]
        );
        for launcher in [Some(9), Some(137), Some(0), None] {
            assert!(told(38_000_000, "MPI_Barrier", launcher).1, "{launcher:?}: one was killed");
        }
        assert!(told(900_000_000, "MPI_Barrier", Some(14)).1, "long before the others");
    }

    #[test]
    fn the_few_that_had_ended_in_order_before_are_told() {
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Code(0), true), 500_000_000);
        report.end(1, kind(Cause::Code(1), false), 40_000_000);
        report.end(2, kind(Cause::Code(1), false), 30_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        let expected = "rank 0 had ended normally by then, 1.500 s after the start";
        assert_eq!(deaths.ended_before().map(|end| end.text).as_deref(), Some(expected));
        let mut none = Deaths::default();
        none.take(&RankReport::default(), Duration::from_secs(2));
        assert_eq!(none.ended_before(), None);
    }

    #[test]
    fn the_launcher_says_what_the_system_does_not() {
        let mut report = RankReport::default();
        report.end(1, kind(Cause::Unknown, false), 5);
        report.end(0, kind(Cause::Unknown, false), 4);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(1));
        deaths.launcher_ended(137);
        let causes: Vec<String> = deaths.section().into_iter().map(|death| death.cause).collect();
        assert_eq!(
            causes,
            ["signal 9 (killed), as the launcher says", "ended for an unknown reason"]
        );
    }

    #[test]
    fn a_program_that_ends_in_order_has_no_deaths() {
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Code(0), true), 5);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(1));
        assert_eq!(
            (deaths.section(), Death::lines(&deaths.section(), 3)),
            (Vec::new(), Vec::new())
        );
    }
}
