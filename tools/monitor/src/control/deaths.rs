//! How ranks ended, as the front-end knows it, and which of them ended first.

use std::time::Duration;

use sapwood::RankSet;
use sapwood_launch::Signal;
use sapwood_profile::{Cause, EndKind, RankReport, RankState, Round};
use sapwood_report::ToldToEnd;
use sapwood_report::record::{Death, DeathManner};
use sapwood_report::why::RankEnd;

use super::cause_text::{cause_text, signal_text};
use super::tool_death::ToolDeath;

/// A launcher ends the other ranks within this time of the first death, and may be seen to before.
const FOLLOWS_WITHIN: Duration = Duration::from_millis(50);

/// A process with much memory, or that finds no processor, is seen to be killed or to exit only
/// after others have ended because of that.
const KILLED_WITHIN: Duration = Duration::from_millis(500);

/// Of ends that near each other it is not known which came first if different leaves have noticed
/// them: each learns of an end when it gets a processor, and answers some time after it was asked.
const TOGETHER: Duration = Duration::from_millis(10);

/// A launcher that is told to end tells its ranks to, and kills those that run still some time
/// later: within this of the first.
const TIMED_OUT_WITHIN: Duration = Duration::from_secs(5);

/// The code with which `timeout` ends when it has told a program to end.
const TIMED_OUT: i32 = 124;

/// Ends of ranks, in the order in which they were told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Deaths {
    ends: Vec<End>,
    known: RankSet,
    /// How the launcher ended, once it has.
    launcher: Option<i32>,
    /// By what the front-end was told first to end the program.
    told: Option<Told>,
    /// The first end of a rank of the tool, if the job has some and one has ended.
    tool: Option<ToolDeath>,
}

/// A signal that asks the program to end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    signal: Signal,
    /// From the start of the program.
    at: Duration,
}

#[derive(Clone, Debug, PartialEq)]
struct End {
    kind: EndKind,
    ranks: RankSet,
    /// When the first of them ended, from the start of the program.
    elapsed: Duration,
    first_rank: u32,
    /// The leaf that has noticed that.
    leaf: u32,
    /// When the first of them ended that another leaf has noticed.
    next: Option<Duration>,
}

impl End {
    /// Whether ranks of this kind die of themselves, and not by a signal with which a launcher ends
    /// others.
    fn is_by_itself(&self) -> bool {
        match self.kind.cause {
            Cause::Signal(number) => {
                number != Signal::KILL.as_raw() && number != Signal::TERM.as_raw()
            }
            Cause::Code(_) | Cause::Abort(_) => true,
            Cause::Unknown => false,
        }
    }

    /// Whether the launcher gives this end as the reason of its own.
    fn is_reason_of(&self, launcher: Option<i32>) -> bool {
        let (Cause::Code(code) | Cause::Abort(code)) = self.kind.cause else { return false };
        code != 0 && launcher == Some(code)
    }

    fn waits(&self) -> bool {
        self.kind.inside.starts_with("MPI_")
    }

    /// Whether what is known of two ends by signals tells neither as the reason of the other.
    fn is_like(&self, other: &Self) -> bool {
        let (Cause::Signal(mine), Cause::Signal(others)) = (self.kind.cause, other.kind.cause)
        else {
            return false;
        };
        let is_same = mine == others || self.is_by_itself() && other.is_by_itself();
        is_same && self.waits() == other.waits()
    }

    /// Whether it is not known if these came first, or others that another leaf has noticed.
    fn is_one_of_several(&self, ends: &[&Self]) -> bool {
        let is_near = |elapsed: Duration| {
            elapsed <= self.elapsed + TOGETHER && self.elapsed <= elapsed + TOGETHER
        };
        let is_rival = |end: &&Self| end.leaf != self.leaf && self.is_like(end);
        let mut rivals = ends.iter().copied().filter(is_rival);
        let is_signal = matches!(self.kind.cause, Cause::Signal(_));
        is_signal && (self.next.is_some_and(is_near) || rivals.any(|end| is_near(end.elapsed)))
    }
}

impl Deaths {
    /// The ranks whose ends are known, in order or not: leaves need not tell these again.
    pub(crate) fn known(&self) -> &RankSet {
        &self.known
    }

    /// Those that ended in order.
    pub(crate) fn in_order(&self) -> RankSet {
        let ends = self.ends.iter().filter(|end| end.kind.is_in_order());
        let mut ranks = RankSet::new();
        ends.for_each(|end| ranks.union_with(end.ranks.as_ref()));
        ranks
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
            let next = (end.next_ns > 0).then(|| Duration::from_nanos(end.next_ns));
            let next = next.map(|age| asked.saturating_sub(age));
            let (kind, leaf) = (kind.clone(), end.leaf);
            self.ends.push(End { kind, ranks, elapsed, first_rank, leaf, next });
        }
        if let Some(end) = report.tool_end {
            let death = ToolDeath::of(end, asked);
            self.tool = Some(self.tool.map_or(death, |known| known.or_first(death)));
        }
    }

    /// The front-end was told by a signal to end the program, at this time of it. The first one
    /// counts.
    pub(crate) fn told_to_end(&mut self, signal: Signal, at: Duration) {
        self.told.get_or_insert(Told { signal, at });
    }

    /// What came of the signal that has told the front-end to end the program; none if none has.
    /// In `last`, the round after the program's end, ranks may run still.
    pub(crate) fn told(&self, last: Option<&Round>) -> Option<ToldToEnd> {
        let told = self.told?;
        let (mut ended, mut otherwise) = (RankSet::new(), RankSet::new());
        for end in self.ends.iter().filter(|end| !end.kind.is_in_order() && self.is_as_told(end)) {
            let is_by_it = end.kind.cause == Cause::Signal(told.signal.as_raw());
            let ranks = if is_by_it { &mut ended } else { &mut otherwise };
            ranks.union_with(end.ranks.as_ref());
        }
        let mut running = last.map(|round| round.ranks_in(RankState::Running)).unwrap_or_default();
        running.subtract(ended.as_ref());
        running.subtract(otherwise.as_ref());
        Some(ToldToEnd {
            signal: signal_name(told.signal).to_owned(),
            received_s: told.at.as_secs_f64(),
            ended: ended.to_string(),
            otherwise: otherwise.to_string(),
            running: running.to_string(),
        })
    }

    /// Whether ranks ended because the front-end, and with it the job, was told to end. They may
    /// have heard of it before the front-end, and answers make their ends earlier than they were.
    fn is_as_told(&self, end: &End) -> bool {
        self.told.is_some_and(|told| {
            let is_by_it = end.kind.cause == Cause::Signal(told.signal.as_raw());
            let error = if is_by_it { KILLED_WITHIN } else { FOLLOWS_WITHIN };
            end.elapsed + error >= told.at
        })
    }

    /// The launcher has ended with this code.
    pub(crate) fn launcher_ended(&mut self, code: i32) {
        self.launcher = Some(code);
    }

    /// Ranks that did not end in order, the first one apart from those that followed it; none is
    /// the first of those that their launcher has killed together, that ended as they were told to,
    /// that came of the death of a rank of the tool, or of which leaves have noticed several at
    /// about the same time.
    pub(crate) fn section(&self) -> Vec<Death> {
        let mut ends: Vec<&End> = self.ends.iter().filter(|end| !end.kind.is_in_order()).collect();
        ends.sort_by_key(|end| (end.elapsed, end.first_rank));
        if ends.first().is_some_and(|end| self.is_as_told(end)) {
            return self.without_first(&ends);
        }
        let tool = self.tool_before(&ends);
        let is_reason = tool.is_some_and(ToolDeath::is_by_itself);
        if !is_reason && were_killed_together(&ends, self.launcher) {
            return self.killed_by_launcher(&ends);
        }
        if let Some(tool) = tool {
            let mut followed = match ends.iter().any(|end| end.is_by_itself()) {
                true => self.without_first(&ends),
                false => self.killed_by_launcher(&ends),
            };
            followed.iter_mut().for_each(|death| death.cause.push_str(&tool.text()));
            return followed;
        }
        let Some(first) = first_of(&ends, self.launcher) else { return Vec::new() };
        if first.is_one_of_several(&ends) {
            return self.without_first(&ends);
        }
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

    /// The rank of the tool that died before all of these, which are in order of time: their
    /// launcher has ended them because of that. One that ends in order does so once ranks of the
    /// program have finalized.
    fn tool_before(&self, deaths: &[&End]) -> Option<ToolDeath> {
        let tool = self.tool.filter(|tool| !tool.is_in_order())?;
        let earliest = deaths.first()?.elapsed;
        if self.ends.iter().any(|end| end.kind.is_finalized) {
            return None;
        }
        let by = |cause: Cause, signal: Signal| cause == Cause::Signal(signal.as_raw());
        let are_terminated = deaths.iter().all(|end| by(end.kind.cause, Signal::TERM));
        let has_own = deaths.iter().any(|end| end.is_by_itself());
        let is_before = match (tool.is_by_itself(), has_own) {
            (true, true) => tool.elapsed < earliest,
            // A launcher ends the others once one has died of itself.
            (true, false) => tool.elapsed <= earliest + FOLLOWS_WITHIN,
            // It may be one of those others, which are seen to end at any moment.
            (false, true) => {
                let is_reason = deaths.iter().any(|end| end.is_reason_of(self.launcher));
                let margin = if is_reason { KILLED_WITHIN } else { FOLLOWS_WITHIN };
                tool.elapsed + margin < earliest
            }
            // Of ends that came together, a kill is before what is milder.
            (false, false) if by(tool.cause, Signal::KILL) && are_terminated => {
                tool.elapsed < earliest + TOGETHER
            }
            (false, false) => tool.elapsed < earliest,
        };
        is_before.then_some(tool)
    }

    /// Ranks that their launcher has ended.
    fn killed_by_launcher(&self, ends: &[&End]) -> Vec<Death> {
        let mut killed = self.without_first(ends);
        for death in &mut killed {
            death.manner = DeathManner::KilledByLauncher;
            death.cause.push_str(", as a launcher ends its ranks");
        }
        killed
    }

    /// Ranks of which none is the first, those together that ended in the same way.
    fn without_first(&self, ends: &[&End]) -> Vec<Death> {
        let mut kinds: Vec<End> = Vec::new();
        for &end in ends {
            match kinds.iter_mut().find(|known| known.kind == end.kind) {
                Some(known) => known.ranks.union_with(end.ranks.as_ref()),
                None => kinds.push(end.clone()),
            }
        }
        kinds.iter().map(|end| self.death(end, &end.ranks, false)).collect()
    }

    /// Of ranks that died, those that had ended in order before, if they are the fewer: others may
    /// have died of that.
    pub(crate) fn ended_before(&self) -> Option<RankEnd> {
        let deaths: Vec<&End> = self.ends.iter().filter(|end| !end.kind.is_in_order()).collect();
        let first = first_of(&deaths, self.launcher).filter(|end| !self.is_as_told(end))?;
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
            (cause, _) => cause_text(cause),
        };
        if end.kind.is_finalized {
            cause.push_str(" after MPI_Finalize");
        } else if end.kind.cause == Cause::Code(0) && end.kind.inside != "MPI_Finalize" {
            cause.push_str(" without MPI_Finalize");
        }
        let mut manner = match end.kind.cause {
            // A program may return any code when it has finalized.
            Cause::Code(_) if end.kind.is_finalized => DeathManner::Returned,
            _ => DeathManner::Died,
        };
        if !is_first && self.is_as_told(end) {
            manner = DeathManner::AsTold;
            cause.push_str(", as the job was asked to end");
        }
        Death {
            ranks: ranks.to_string(),
            elapsed_s: end.elapsed.as_secs_f64(),
            is_first,
            cause,
            inside: end.kind.inside.clone(),
            manner,
        }
    }
}

/// Whether a launcher has killed all of these ranks at once, as MPICH's does when MPI ends a
/// program with an error: none of them is known to have died first. Where another has killed a
/// rank, the launcher ends with the number of that signal, as MPICH's does, or with 128 more; a
/// code of 0 says nothing of it. The ends are in order of time. A launcher below `timeout` may
/// end its ranks more gently, and some later than others; one that ended long before them was not
/// ended by it.
fn were_killed_together(ends: &[&End], launcher: Option<i32>) -> bool {
    let kill = Signal::KILL.as_raw();
    let is_other = launcher.is_some_and(|code| ![0, kill, 128 + kill].contains(&code));
    let are_killed = ends.iter().all(|end| end.kind.cause == Cause::Signal(kill));
    let ranks: u64 = ends.iter().map(|end| end.ranks.len()).sum();
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return false };
    let is_at_once = last.elapsed <= first.elapsed + FOLLOWS_WITHIN;
    let is_timely = last.elapsed <= first.elapsed + TIMED_OUT_WITHIN;
    let are_timed_out = launcher == Some(TIMED_OUT) && is_timely && ended_with_launcher(ends);
    ranks > 1 && (are_timed_out || is_other && are_killed && is_at_once)
}

/// Whether ranks have ended as those of a launcher that is told to end: by a signal of its, or
/// several by one exit code, as those of Open MPI do that lose it while they end.
fn ended_with_launcher(ends: &[&End]) -> bool {
    let signals = [Signal::KILL, Signal::TERM].map(|signal| Cause::Signal(signal.as_raw()));
    let mut others = ends
        .iter()
        .filter(|end| !signals.contains(&end.kind.cause) && end.kind.cause != Cause::Unknown);
    let Some(one) = others.next() else { return true };
    let (mut ranks, is_code) = (one.ranks.len(), matches!(one.kind.cause, Cause::Code(_)));
    let are_alike = others.all(|end| {
        ranks += end.ranks.len();
        end.kind.cause == one.kind.cause
    });
    is_code && are_alike && ranks > 1
}

/// The death that others followed: the first one, but for the signal by which a launcher ends the
/// others when one has died of itself. Of several that were ended at once it is the one outside of
/// MPI, where the others wait for it.
fn first_of<'a>(ends: &[&'a End], launcher: Option<i32>) -> Option<&'a End> {
    if let Some(killed) = killed_from_outside(ends, launcher) {
        return Some(killed);
    }
    let earliest = ends.iter().min_by_key(|end| (end.elapsed, end.first_rank))?;
    if earliest.is_by_itself() {
        return Some(earliest);
    }
    let near = ends.iter().filter(|end| {
        let within = if end.is_reason_of(launcher) { KILLED_WITHIN } else { FOLLOWS_WITHIN };
        end.elapsed <= earliest.elapsed + within
    });
    let own = near.filter(|end| end.is_by_itself());
    let own = own.min_by_key(|end| (end.elapsed, end.first_rank));
    let together = ends.iter().filter(|end| end.elapsed <= earliest.elapsed + TOGETHER);
    let outside = together.filter(|end| !end.waits());
    let outside = outside.min_by_key(|end| (end.elapsed, end.first_rank));
    let outside = outside.filter(|_| earliest.waits());
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

/// One of the signals by which the front-end is told to end the program.
fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        _ => "SIGTERM",
    }
}

#[cfg(test)]
mod tests {
    use sapwood_profile::ToolEnd;

    use super::*;

    fn kind(cause: Cause) -> EndKind {
        EndKind { cause, is_finalized: false, inside: String::new() }
    }

    fn finalized() -> EndKind {
        EndKind { is_finalized: true, ..kind(Cause::Code(0)) }
    }

    #[test]
    fn the_first_death_stands_apart_whatever_was_told_first() {
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(15)), 40_000_000);
        report.end(3, kind(Cause::Signal(15)), 41_000_000);
        report.end(2, finalized(), 900_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        let mut late = RankReport::default();
        late.end(1, kind(Cause::Abort(13)), 150_000_000);
        late.end(3, kind(Cause::Signal(15)), 141_000_000);
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
            report.end(0, kind(Cause::Signal(9)), 41_000_000);
            report.end(2, kind(Cause::Signal(9)), 40_000_000);
            report.end(1, kind(Cause::Signal(11)), own_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.section().into_iter().map(|death| death.ranks).collect::<Vec<_>>()
        };
        assert_eq!(of(40_500_000), ["1", "0,2"]);
        // Long after a kill it is what followed.
        assert_eq!(of(900_000_000), ["1", "0,2"]);
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(9)), 900_000_000);
        report.end(1, kind(Cause::Code(1)), 40_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        assert_eq!(deaths.section()[0].ranks, "0");
    }

    #[test]
    fn a_rank_with_the_code_of_its_launcher_comes_before_those_that_this_ended() {
        let first = |cause: Cause, own_ns, launcher| {
            let mut report = RankReport::default();
            report.end(0, kind(Cause::Signal(15)), 900_000_000);
            report.end(1, kind(cause), own_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(launcher);
            deaths.section()[0].ranks.clone()
        };
        assert_eq!(first(Cause::Abort(13), 600_000_000, 13), "1");
        assert_eq!(first(Cause::Code(7), 600_000_000, 7), "1");
        assert_ne!(first(Cause::Code(7), 600_000_000, 1), "1", "another code");
        assert_ne!(first(Cause::Code(7), 300_000_000, 7), "1", "long after");
    }

    #[test]
    fn a_kill_that_is_seen_after_exits_that_came_of_it_is_the_first_death() {
        let first = |killed_ns, ended: Cause, launcher| {
            let mut report = RankReport::default();
            report.end(5, kind(Cause::Code(1)), 900_000_000);
            report.end(6, kind(Cause::Signal(9)), killed_ns);
            report.end(0, kind(ended), 500_000_000);
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
            let inside = EndKind { inside: "MPI_Sendrecv".into(), ..kind(Cause::Signal(9)) };
            let mut report = RankReport::default();
            report.end(2, inside.clone(), 41_000_000);
            report.end(0, inside, 39_000_000);
            report.end(1, kind(Cause::Signal(9)), own_ns);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.section()[0].ranks.clone()
        };
        assert_eq!(first(38_000_000), "1");
        assert_eq!(first(20_000_000), "2", "long after the others");
    }

    #[test]
    fn none_is_the_first_of_ranks_that_their_launcher_has_killed_together() {
        let inside = |call: &str| EndKind { inside: call.into(), ..kind(Cause::Signal(9)) };
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
    fn ranks_that_were_ended_because_a_rank_of_the_tool_had_died_are_told_so() {
        let told = |age_ns, killed: Cause, ended: Cause| {
            let mut report = RankReport::default();
            report.end(0, kind(ended), 40_000_000);
            report.end(1, kind(ended), 39_000_000);
            report.tool_end = Some(ToolEnd { rank: Some(2), cause: killed, age_ns });
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            // The first report of it counts.
            report.tool_end = Some(ToolEnd { rank: None, cause: killed, age_ns: 0 });
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(137);
            Death::lines(&deaths.section(), 8)
        };
        let (killed, ended) = (Cause::Signal(9), Cause::Signal(15));
        let line = "ranks 0-1 were killed together, 1.960 s after the start: signal 15 \
                    (terminated), as a launcher ends its ranks; rank 2 of the job, which is the \
                    tool's (--in-world), had died before: signal 9 (killed)";
        assert_eq!(told(41_000_000, killed, ended), [line]);
        assert_eq!(told(35_000_000, killed, ended), [line], "the launcher's signal is milder");
        let first = |lines: &[String]| lines[0].starts_with("rank 0 died first");
        assert!(!first(&told(41_000_000, Cause::Unknown, killed)));
        assert!(first(&told(39_500_000, killed, killed)), "it died after rank 0");
        assert!(first(&told(20_000_000, killed, ended)), "it died long after");
        assert!(first(&told(41_000_000, Cause::Code(0), ended)), "it ended in order");
        let aborted = |age_ns, killed| told(age_ns, killed, Cause::Abort(1)).swap_remove(0);
        let of_tool = "MPI_Abort(1); rank 2 of the job";
        assert!(aborted(100_000_000, killed).contains(of_tool), "long before");
        assert!(aborted(41_000_000, killed).contains("died first"), "as a launcher ends it");
        assert!(aborted(41_000_000, Cause::Signal(11)).contains(of_tool), "it died of itself");
        // Hydra kills all others, and ends with the signal of the first.
        assert!(told(38_000_000, Cause::Signal(11), killed)[0].contains("rank 2 of the job"));
    }

    #[test]
    fn of_two_ranks_of_the_tool_the_first_that_died_is_told() {
        let mut deaths = Deaths::default();
        for (rank, cause, age_ns) in [
            (2, Cause::Code(0), 900_000_000),
            (3, Cause::Signal(15), 80_000_000),
            (5, Cause::Signal(9), 90_000_000),
        ] {
            let tool_end = Some(ToolEnd { rank: Some(rank), cause, age_ns });
            let report = RankReport { tool_end, ..RankReport::default() };
            deaths.take(&report, Duration::from_secs(2));
        }
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(15)), 40_000_000);
        deaths.take(&report, Duration::from_secs(2));
        assert!(deaths.section()[0].cause.contains("rank 5 of the job"), "{:?}", deaths.section());
    }

    #[test]
    fn a_rank_of_the_tool_that_ends_with_the_program_has_not_died() {
        let mut report = RankReport::default();
        report.end(0, finalized(), 40_000_000);
        report.end(1, kind(Cause::Signal(11)), 30_000_000);
        let cause = Cause::Unknown;
        report.tool_end = Some(ToolEnd { rank: Some(2), cause, age_ns: 35_000_000 });
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        assert!(deaths.section()[0].is_first);
    }

    #[test]
    fn none_is_the_first_of_ranks_whose_launcher_was_below_a_time_limit() {
        let told = |last: Cause, launcher| {
            let mut report = RankReport::default();
            report.end(0, kind(Cause::Signal(15)), 140_000_000);
            report.end(1, kind(Cause::Signal(15)), 139_000_000);
            report.end(2, kind(last), 40_000_000);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(launcher);
            deaths.section()
        };
        for last in [Cause::Signal(15), Cause::Signal(9)] {
            let deaths = told(last, TIMED_OUT);
            assert!(deaths.iter().all(|death| !death.is_first), "{deaths:?}");
            let line = &Death::lines(&deaths, 8)[0];
            assert!(line.contains("were killed together"), "{line}");
            assert!(told(last, 143)[0].is_first, "the launcher has ended as a rank did");
        }
        assert!(told(Cause::Code(1), TIMED_OUT).iter().any(|death| death.is_first));
    }

    #[test]
    fn none_is_the_first_of_ranks_that_lost_their_launcher_and_ended_by_one_code() {
        let told = |codes: [i32; 3]| {
            let mut report = RankReport::default();
            for (rank, code) in (0..).zip(codes) {
                let ago = 140_000_000 - u64::from(rank);
                report.end(rank, kind(Cause::Code(code)), ago);
            }
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(TIMED_OUT);
            deaths.section().iter().any(|death| death.is_first)
        };
        assert!(!told([195, 195, 195]));
        assert!(told([195, 1, 195]));
    }

    #[test]
    fn a_rank_that_was_killed_long_before_a_time_limit_is_the_first_death() {
        let mut report = RankReport::default();
        report.end(0, kind(Cause::Signal(15)), 140_000_000);
        report.end(1, kind(Cause::Signal(15)), 139_000_000);
        report.end(2, kind(Cause::Signal(9)), 180_000_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(200));
        deaths.launcher_ended(TIMED_OUT);
        let deaths = deaths.section();
        assert_eq!((&*deaths[0].ranks, deaths[0].is_first), ("2", true));
    }

    #[test]
    fn none_is_the_first_of_ranks_that_two_leaves_have_seen_to_be_killed_at_about_the_same_time() {
        let inside = |call: &str| EndKind { inside: call.into(), ..kind(Cause::Signal(9)) };
        let told = |other_leaf, other_ns, other: &str| {
            let mut report = RankReport::default();
            report.end(0, inside("MPI_Bcast"), 45_000_000);
            let mut of_other = RankReport { leaf: other_leaf, ..RankReport::default() };
            of_other.end(2, inside(other), other_ns);
            report.merge(of_other);
            report.end(3, inside("MPI_Wait"), 5_000_000);
            let mut deaths = Deaths::default();
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(9);
            Death::lines(&deaths.section(), 8)
        };
        let killed = "signal 9 (killed), inside MPI_Bcast";
        let none = "none is known to be the first";
        assert_eq!(
            told(1, 40_000_000, "MPI_Bcast"),
            [
                format!("ranks 0,2 died, 1.955 s after the start, {none}: {killed}"),
                "rank 3 died, 1.995 s after the start: signal 9 (killed), inside MPI_Wait".into(),
            ]
        );
        assert!(told(1, 40_000_000, "MPI_Barrier")[0].contains(none));
        for (leaf, age_ns) in [(0, 40_000_000), (1, 30_000_000)] {
            for call in ["MPI_Bcast", "MPI_Barrier"] {
                let first = &told(leaf, age_ns, call)[0];
                assert!(first.starts_with("rank 0 died first"), "{leaf} {age_ns}: {first}");
            }
        }
        // The others wait for one that is outside of MPI.
        assert!(told(1, 40_000_000, "")[0].starts_with("rank 2 died first"));
    }

    #[test]
    fn ranks_that_end_after_the_job_was_told_to_end_are_told_so_and_none_is_the_first() {
        let told = |at| {
            let mut report = RankReport::default();
            report.end(0, kind(Cause::Signal(15)), 40_000_000);
            report.end(2, kind(Cause::Signal(15)), 39_000_000);
            report.end(1, kind(Cause::Code(3)), 38_000_000);
            let mut deaths = Deaths::default();
            deaths.told_to_end(Signal::TERM, Duration::from_millis(at));
            deaths.told_to_end(Signal::INT, Duration::from_millis(at + 1));
            deaths.take(&report, Duration::from_secs(2));
            deaths.launcher_ended(143);
            deaths
        };
        let deaths = told(1970);
        assert_eq!(
            Death::lines(&deaths.section(), 8),
            [
                "ranks 0,2 ended, 1.960 s after the start: signal 15 (terminated), as the job was \
                 asked to end",
                "rank 1 ended, 1.962 s after the start: exit code 3, as the job was asked to end",
            ]
        );
        let mut running = Round::new(4);
        running.add(&sapwood_profile::RankProfile::new(3, 4)).expect("a new rank");
        let found = deaths.told(Some(&running)).expect("it was told");
        let ranks = [&*found.ended, &*found.otherwise, &*found.running];
        assert_eq!((&*found.signal, found.received_s, ranks), ("SIGTERM", 1.97, ["0,2", "1", "3"]));
        assert_eq!(Deaths::default().told(None), None);
        // They had ended long before.
        assert!(told(5000).section()[0].is_first);
        assert_eq!(told(5000).told(None).expect("it was told").ended, "");
    }

    #[test]
    fn the_few_that_had_ended_in_order_before_are_told() {
        let mut report = RankReport::default();
        report.end(0, finalized(), 500_000_000);
        report.end(1, kind(Cause::Code(1)), 40_000_000);
        report.end(2, kind(Cause::Code(1)), 30_000_000);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(2));
        let expected = "rank 0 had ended normally by then, 1.500 s after the start";
        assert_eq!(deaths.ended_before().map(|end| end.text).as_deref(), Some(expected));
        assert_eq!(deaths.in_order().to_string(), "0");
        let mut none = Deaths::default();
        none.take(&RankReport::default(), Duration::from_secs(2));
        assert_eq!(none.ended_before(), None);
    }

    #[test]
    fn the_launcher_says_what_the_system_does_not() {
        let mut report = RankReport::default();
        report.end(1, kind(Cause::Unknown), 5);
        report.end(0, kind(Cause::Unknown), 4);
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
        report.end(0, finalized(), 5);
        let mut deaths = Deaths::default();
        deaths.take(&report, Duration::from_secs(1));
        assert_eq!(
            (deaths.section(), Death::lines(&deaths.section(), 3)),
            (Vec::new(), Vec::new())
        );
    }
}
