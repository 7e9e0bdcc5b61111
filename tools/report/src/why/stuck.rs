//! A standstill in words: which ranks are named and in what they differ, and which wait.

use std::time::Duration;

use sapwood_packet::Rank;
use sapwood_profile::{Class, Function};
use sapwood_trace::{
    CallKind, Called, Difference, Doing, ENDING, Finding, Findings, Odd, OpenMessages, Operation,
    Place, Side, Source, Standing, Verdict, Waiting,
};
use serde::{Deserialize, Serialize};

use super::is_whole_program;
use crate::communicator::{communicator_name, name_at};
use crate::mixed_calls::{MixedCalls, on};
use crate::mpi_call::function_name;
use crate::quantity;
use crate::record::Stacks;
use crate::stacks::{RankStack, of_ranks};
use crate::text::ranks_text;

/// Different places of ranks that are named, at most.
const STACKS_MAX: usize = 4;
/// Tags that are named in a sentence, at most.
const TAGS_MAX: usize = 8;

/// Why ranks wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// When this was seen, from the start of the program.
    pub seen_s: f64,
    /// For how long no rank that waits has gone on; 0 where that is not known, or not how long it
    /// has been so for the reason that is told.
    pub for_s: f64,
    /// `absent`, `deviation`, `ring`, `split`, `none-missing` or `unknown`.
    pub finding: String,
    /// The ranks that are named; empty for none.
    pub culprits: String,
    /// The finding in one sentence.
    pub statement: String,
    /// The ranks that are named, one by one.
    pub odd: Vec<StuckOdd>,
    /// Of a ring, ranks of which each waits for the next, and the last one for the first.
    pub ring: Vec<u32>,
    /// The ranks that wait.
    pub waiting: Vec<StuckWaiting>,
    /// Where the ranks are that are named, or that wait in a ring; empty if their stacks could not
    /// be read.
    #[serde(default)]
    pub stacks: Vec<RankStack>,
}

/// Collectives in which ranks wait though all have come, since others have returned from a call
/// that does not fit: another function or root. Those by which ranks are named are not among them.
pub(super) fn unlike_calls(
    findings: &Findings,
    verdict: &Verdict,
    name: impl Fn(u64, u32) -> String,
) -> Vec<MixedCalls> {
    let unfinished = findings.unfinished.iter();
    let told = unfinished.filter_map(|(&space, one)| {
        let is_here = |place: &Place| (place.space, place.number) == (space, one.number);
        let is_named = |odd: &Odd| {
            let is_unlike =
                matches!(odd.difference, Difference::Operation(..) | Difference::Unlike(..));
            is_unlike && is_here(&odd.place)
        };
        if verdict.odd.iter().any(is_named) {
            return None;
        }
        let is_there = |waiting: &&Waiting| {
            waiting.place.kind == CallKind::Collective && is_here(&waiting.place)
        };
        let inside: Vec<(Called, Rank)> =
            verdict.waiting.iter().filter(is_there).flat_map(calls).collect();
        let mixture = one.mixture(&inside)?;
        Some(MixedCalls::of(name(space, one.size), &mixture))
    });
    told.collect()
}

/// What each of these ranks called.
fn calls(waiting: &Waiting) -> impl Iterator<Item = (Called, Rank)> {
    let Place { function, side, .. } = waiting.place;
    let root = match side {
        Side::Rank(root) => i32::try_from(root).unwrap_or(-1),
        Side::None | Side::Any => -1,
    };
    waiting.ranks.iter().map(move |rank| (Called { function, root }, rank))
}

/// Ranks that others wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StuckOdd {
    /// These.
    pub ranks: String,
    /// What they do, such as `stopped`, `computing` or `waiting`.
    pub doing: String,
    /// For how long.
    pub for_s: f64,
    /// The call in which others wait for them, and its communicator.
    pub function: String,
    /// Empty for none.
    pub communicator: String,
    /// The number of the collective there; 0 for none.
    pub number: u32,
    /// Collectives that these ranks have made there, if they have not entered this one.
    pub made: Option<u32>,
    /// The function that they call in its place.
    pub own_function: Option<String>,
    /// The root that they give.
    pub own_root: Option<u32>,
    /// The root that most give.
    pub common_root: Option<u32>,
    /// All ranks that wait for them, also through others.
    pub held: String,
    /// The same in words.
    pub text: String,
}

/// Ranks that wait alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StuckWaiting {
    /// These.
    pub ranks: String,
    /// The function that has not returned.
    pub function: String,
    /// The function that has started what it waits for, if that is another one.
    pub started_by: Option<String>,
    /// Its communicator; empty for none, or one that is not known.
    pub communicator: String,
    /// The number of the collective there; 0 for none.
    pub number: u32,
    /// Root, source or destination, in the communicator's numbering.
    pub with: Option<u32>,
    /// The tag of a message.
    pub tag: Option<i32>,
    /// Those for which they wait; empty where that is not known or none is missing.
    pub waits_for: String,
    /// Those for which they may wait, too: which of these it is, is not known.
    #[serde(default)]
    pub may_wait_for: String,
    /// The tags of the messages, where they wait for several; those of any are not there.
    #[serde(default)]
    pub tags: Vec<i32>,
    /// Whether they wait for requests beside these messages, or not all ranks that may send are
    /// known.
    #[serde(default)]
    pub other_requests: bool,
    /// Whether one of these is enough.
    pub any: bool,
    /// How long the one has waited that came first.
    pub longest_s: f64,
    /// How long the one has waited that came last.
    pub shortest_s: f64,
    /// The same in words.
    pub text: String,
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

fn time(ns: u64) -> String {
    quantity::time(ns as f64)
}

impl Stuck {
    /// What a verdict says, which was last seen at this time of the program, with where the ranks
    /// are that are named, or that wait in a ring, if these stacks were read after the standstill
    /// had been seen first.
    #[must_use]
    pub fn of(
        at: Duration,
        verdict: &Verdict,
        standing: &Standing,
        stacks: Option<&Stacks>,
    ) -> Self {
        let odd: Vec<StuckOdd> =
            verdict.odd.iter().map(|one| odd(one, standing, verdict)).collect();
        let waiting = verdict.waiting.iter().map(|one| waiting(one, standing)).collect();
        let finding = match verdict.finding {
            Finding::Absent => "absent",
            Finding::Deviation => "deviation",
            Finding::Ring => "ring",
            Finding::Split => "split",
            Finding::NoneMissing => "none-missing",
            Finding::Unknown => "unknown",
        };
        // By files it is not known when a rank died, and others may have waited before.
        let is_death = verdict.odd.first().is_some_and(|one| one.doing == Doing::Lost);
        let is_timed = !(is_death && standing.source == Source::Files);
        let for_s = if is_timed { seconds(verdict.lasts_ns) } else { 0.0 };
        let seen_s = at.as_secs_f64();
        let culprits = verdict.culprits();
        let stacks = stacks.filter(|stacks| stacks.elapsed_s >= seen_s - for_s);
        let mut stacks = stacks.map_or_else(Vec::new, |stacks| of_ranks(stacks, &culprits));
        stacks.truncate(STACKS_MAX);
        Self {
            seen_s,
            for_s,
            finding: finding.to_owned(),
            culprits: culprits.to_string(),
            statement: statement(verdict, standing, &odd),
            odd,
            ring: verdict.ring.clone(),
            waiting,
            stacks,
        }
    }
}

fn statement(verdict: &Verdict, standing: &Standing, odd: &[StuckOdd]) -> String {
    let all: Vec<&str> = odd.iter().take(3).map(|one| one.text.as_str()).collect();
    match verdict.finding {
        Finding::Absent | Finding::Deviation => all.join("; ") + &others_unread(verdict, standing),
        Finding::Ring => ring(verdict, standing),
        Finding::Split => format!("no majority: {}", all.join("; ")),
        Finding::NoneMissing => {
            "no rank is missing: all have entered the call in which they wait".to_owned()
        }
        Finding::Unknown => "the ranks for which these calls wait are unknown".to_owned(),
    }
}

/// That the same may hold for ranks whose files cannot be read.
fn others_unread(verdict: &Verdict, standing: &Standing) -> String {
    let is_missed = |one: &&Odd| matches!(one.difference, Difference::Missed(_));
    let missed = verdict.odd.iter().filter(is_missed);
    match missed.map(|one| standing.unread_members(one.place.space)).max().unwrap_or(0) {
        0 => String::new(),
        1 => "; whether another member has is unknown without its file".to_owned(),
        many => format!("; whether {many} other members have is unknown without their files"),
    }
}

fn ring(verdict: &Verdict, standing: &Standing) -> String {
    let whom = |rank: u32| {
        let group = verdict.waiting.iter().find(|one| one.ranks.contains(rank));
        group.map_or_else(String::new, |one| {
            let place = &one.place;
            let on = on(&name_at(standing, place));
            format!(" ({}{on})", function_name(place.function))
        })
    };
    let length = verdict.ring.len();
    let step = |(at, &rank): (usize, &u32)| {
        let next = verdict.ring[(at + 1) % length];
        format!("{rank} waits for {next}{}", whom(rank))
    };
    let steps: Vec<String> = verdict.ring.iter().enumerate().map(step).collect();
    let told = if length > 6 {
        format!("{}, ... {}", steps[..3].join(", "), steps[length - 1])
    } else {
        steps.join(", ")
    };
    format!("deadlock in a ring of {length} ranks: {told}")
}

fn operation_name(operation: Operation) -> String {
    let root = operation.root.map_or_else(String::new, |root| format!(" with root {root}"));
    format!("{}{root}", function_name(operation.function))
}

/// The number of a collective on its communicator; 0 where there is none. Calls that make
/// communicators are not counted with the others.
const fn number(place: &Place) -> u32 {
    match place.kind {
        CallKind::Creation => 0,
        _ if place.space == ENDING => 0,
        _ => place.number,
    }
}

/// A place in words, as `MPI_Allreduce number 41 on grid`.
fn place_name(place: &Place, standing: &Standing) -> String {
    let mut text = function_name(place.function);
    if place.behind > 0 {
        text.push_str(&format!(" for {}", function_name(place.behind)));
    }
    if let number @ 1.. = number(place) {
        text.push_str(&format!(" number {number}"));
    }
    if let (Side::Rank(root), true) = (place.side, place.number > 0) {
        text.push_str(&format!(" with root {root}"));
    }
    text.push_str(&on(&name_at(standing, place)));
    if let (CallKind::Lock, Side::Rank(target)) = (place.kind, place.side) {
        text.push_str(&format!(" at its rank {target}"));
    }
    text
}

/// Which call on which communicator, in parentheses, as far as that has words.
fn at(place: &Place, standing: &Standing) -> String {
    let on = name_at(standing, place);
    match (number(place), on.is_empty()) {
        (0, true) => String::new(),
        (0, false) => format!(" on {on}"),
        (number, true) => format!(" (number {number})"),
        (number, false) => format!(" (number {number} on {on})"),
    }
}

/// A collective that was started, in words.
fn started_name(function: u32, place: &Place, standing: &Standing) -> String {
    let on = on(&name_at(standing, place));
    format!("{} number {}{on}", function_name(function), place.number)
}

fn odd(one: &Odd, standing: &Standing, verdict: &Verdict) -> StuckOdd {
    let (own, common) = match one.difference {
        Difference::Operation(own, common) => (Some(own), Some(common)),
        Difference::Unlike(own, _) => (Some(own), None),
        _ => (None, None),
    };
    let made = match one.difference {
        Difference::Missed(made) if one.place.space != ENDING => Some(made),
        _ => None,
    };
    StuckOdd {
        ranks: one.ranks.to_string(),
        doing: doing_word(one.doing).to_owned(),
        for_s: seconds(one.for_ns),
        function: function_name(one.place.function),
        communicator: name_at(standing, &one.place),
        number: number(&one.place),
        made,
        own_function: own.map(|own| function_name(own.function)),
        own_root: own.and_then(|own| own.root),
        common_root: common.and_then(|common| common.root),
        held: one.held.to_string(),
        text: odd_text(one, standing, verdict),
    }
}

const fn doing_word(doing: Doing) -> &'static str {
    match doing {
        Doing::Stopped => "stopped",
        Doing::Lost => "lost",
        Doing::Finalizing => "finalizing",
        Doing::Ended => "ended",
        Doing::Polling(_) => "polling",
        Doing::Computing => "computing",
        Doing::Sleeping => "sleeping",
        Doing::Locked => "locked",
        Doing::Running => "running",
        Doing::Unseen => "unseen",
        Doing::Waiting => "waiting",
    }
}

/// What ranks do, and in what they differ.
fn odd_text(one: &Odd, standing: &Standing, verdict: &Verdict) -> String {
    let ranks = ranks_text(&one.ranks.to_string());
    let (is, has, does) = match one.ranks.len() {
        1 => ("is", "has", "does"),
        _ => ("are", "have", "do"),
    };
    let place = place_name(&one.place, standing);
    let started = match one.place.behind {
        0 => None,
        behind => Some(started_name(behind, &one.place, standing)),
    };
    let missed = match one.difference {
        Difference::Missed(made) if made + 1 == one.place.number && started.is_some() => {
            format!("{has} not started {}", started.unwrap_or_default())
        }
        Difference::Missed(_) if one.place.space == ENDING => format!("{has} not reached {place}"),
        Difference::Missed(made) if made + 1 == one.place.number => {
            format!("{has} not entered {place}")
        }
        Difference::Missed(made) => format!("{has} not entered {place}: {has} made {made} there"),
        Difference::Operation(own, common) | Difference::Unlike(own, common) => {
            let others = match one.difference {
                Difference::Operation(..) => "most called",
                _ => "others called",
            };
            let (own, common) = (operation_name(own), operation_name(common));
            let called =
                format!("called {own} where {others} {common}{}", at(&one.place, standing));
            match one.doing {
                Doing::Waiting | Doing::Running => return format!("{ranks} {called}"),
                _ => called,
            }
        }
        Difference::Lock => format!("{has} the lock for which others wait in {place}"),
        Difference::Thread => format!("{has} another thread that waits for a lock outside MPI"),
        Difference::HeldLock => {
            format!("{has} another thread that waits for a lock which its thread in MPI holds")
        }
        Difference::Message if one.place.kind == CallKind::Send => {
            format!("{does} not receive from those that wait in {place}")
        }
        Difference::Message => match one.place.tag {
            Some(tag) => {
                format!("{has} not sent the message with tag {tag} to those that wait in {place}")
            }
            None => format!("{has} not sent to those that wait in {place}"),
        },
        Difference::Left => {
            let seen = seen(one, standing);
            return format!("{ranks} {seen} in {place}, which all others have left");
        }
        Difference::Unknown => format!("{is} waited for in {place}"),
    };
    match doing_text(one, standing) {
        Some(doing) => format!("{ranks} {doing}, and {missed}"),
        None => format!("{ranks} {missed}{}", instead(one, standing, verdict)),
    }
}

/// What ranks do that do not wait themselves; none for those that do.
fn doing_text(one: &Odd, standing: &Standing) -> Option<String> {
    let is_one = one.ranks.len() == 1;
    let (is, has) = if is_one { ("is", "has") } else { ("are", "have") };
    let for_so_long = time(one.for_ns);
    let outside = outside(&one.place);
    Some(match one.doing {
        Doing::Stopped => format!("{is} stopped by a signal, {}", inside(one, standing)),
        Doing::Lost if standing.source == Source::FilesOfEnded => {
            format!("{} {}", seen(one, standing), inside(one, standing))
        }
        Doing::Lost => format!("{has} died, {}", inside(one, standing)),
        Doing::Finalizing => format!("ended early ({is} in MPI_Finalize for {for_so_long})"),
        Doing::Ended => format!("{has} ended"),
        Doing::Polling(function) => {
            let calls = if is_one { "calls" } else { "call" };
            format!("{calls} {} over and over, and nothing else", function_name(function))
        }
        Doing::Computing => format!("{is} computing outside {outside} for {for_so_long}"),
        Doing::Sleeping => format!("{is} sleeping outside {outside} for {for_so_long}"),
        Doing::Locked => {
            let waits = if is_one { "waits" } else { "wait" };
            format!("{waits} for a lock outside {outside} for {for_so_long}")
        }
        Doing::Running => match file_call(one, standing) {
            Some(FileCall { function, is_long: true }) => {
                let moves = if is_one { "reads or writes" } else { "read or write" };
                format!("{moves} a file in {} for {for_so_long}", function.name)
            }
            Some(FileCall { function, is_long: false }) => {
                format!("{is} making calls on a file, such as {}", function.name)
            }
            None => format!("{is} making other calls"),
        },
        Doing::Unseen if standing.source != Source::Tree => {
            format!("{has} left no file that can be read")
        }
        Doing::Unseen if outside == MPI => format!("{has} never called MPI_Init"),
        Doing::Unseen => format!("{has} never called init_process_group"),
        Doing::Waiting => return None,
    })
}

/// A call on a file.
struct FileCall {
    function: &'static Function,
    /// Whether data has been moved in it for long; else it is one of many.
    is_long: bool,
}

/// The call on a file in which all of these ranks are, if it is the same.
fn file_call(one: &Odd, standing: &Standing) -> Option<FileCall> {
    let of_rank = |rank: Rank| {
        let posture = standing.postures.get(&rank)?;
        let function = Function::of(posture.call?.function)?;
        let is_long = posture.beside_ns > 0;
        (function.class == Class::File).then_some(FileCall { function, is_long })
    };
    let mut calls = one.ranks.iter().map(of_rank);
    let first = calls.next()??;
    let is_same = |other: Option<FileCall>| {
        other.is_some_and(|other| {
            (other.function.id, other.is_long) == (first.function.id, first.is_long)
        })
    };
    calls.all(is_same).then_some(first)
}

/// Where ranks wait that others wait for.
fn instead(one: &Odd, standing: &Standing, verdict: &Verdict) -> String {
    let own = verdict
        .waiting
        .iter()
        .find(|group| one.ranks.as_ref().first().is_some_and(|rank| group.ranks.contains(rank)));
    own.map_or_else(String::new, |group| {
        format!(", and {} in {}", seen(one, standing), place_name(&group.place, standing))
    })
}

/// That ranks are somewhere, as far as that is known of those that have ended.
fn seen(one: &Odd, standing: &Standing) -> &'static str {
    match (one.ranks.len(), standing.source) {
        (1, Source::FilesOfEnded) => "was last seen",
        (_, Source::FilesOfEnded) => "were last seen",
        (1, _) => "is",
        _ => "are",
    }
}

/// The call in which ranks are.
fn inside(one: &Odd, standing: &Standing) -> String {
    let first = one.ranks.as_ref().first();
    let posture = first.and_then(|rank| standing.postures.get(&rank));
    let call = posture.and_then(sapwood_trace::Posture::only_call);
    call.map_or_else(
        || format!("outside {}", outside(&one.place)),
        |call| format!("in {}", function_name(call.function)),
    )
}

const MPI: &str = "MPI";

/// What ranks are outside of that do not come to a place.
fn outside(place: &Place) -> &'static str {
    match Function::of(place.function) {
        Some(function) if !function.is_mpi() => "torch.distributed",
        _ => MPI,
    }
}

fn waiting(one: &Waiting, standing: &Standing) -> StuckWaiting {
    let place = &one.place;
    let with = match place.side {
        Side::Rank(rank) => Some(rank),
        Side::None | Side::Any => None,
    };
    let open = one.open.as_ref();
    StuckWaiting {
        ranks: one.ranks.to_string(),
        function: function_name(place.function),
        started_by: (place.behind > 0).then(|| function_name(place.behind)),
        communicator: open.map_or_else(
            || name_at(standing, place),
            |open| communicator_name(standing, open.space),
        ),
        number: number(place),
        with,
        tag: place.tag,
        waits_for: one.targets.to_string(),
        may_wait_for: one.also.to_string(),
        tags: open.map_or_else(Vec::new, |open| open.tags.iter().copied().collect()),
        other_requests: open.is_some_and(|open| !open.is_complete),
        any: one.is_any,
        longest_s: seconds(one.longest_ns),
        shortest_s: seconds(one.shortest_ns),
        text: waiting_text(one, standing),
    }
}

fn waiting_text(one: &Waiting, standing: &Standing) -> String {
    let mut text =
        format!("{} in {}", ranks_text(&one.ranks.to_string()), place_name(&one.place, standing));
    let is_message =
        matches!(one.place.kind, CallKind::Receive | CallKind::Send | CallKind::Exchange)
            || one.place.number == 0 && one.place.kind != CallKind::Lock;
    if let (true, Some(tag)) = (is_message && one.place.side != Side::None, one.place.tag) {
        text.push_str(&format!(" tag {tag}"));
    }
    if is_message
        && !is_whole_program(standing, one.place.space)
        && let Side::Rank(rank) = one.place.side
    {
        text.push_str(&format!(" with its rank {rank}"));
    }
    if !one.targets.is_empty() {
        let any = if one.is_any { "any of " } else { "" };
        text.push_str(&format!(" for {any}{}", ranks_text(&one.targets.to_string())));
    } else if let Some(open) = &one.open {
        text.push_str(&open_text(one, open, standing));
    } else if !one.also.is_empty() {
        text.push_str(&format!(" for some of {}", ranks_text(&one.also.to_string())));
    } else if one.is_known {
        text.push_str(", and no rank is missing");
    } else {
        text.push_str(" for unknown ranks");
    }
    let (least, most) = (time(one.shortest_ns), time(one.longest_ns));
    text.push_str(&match (one.shortest_ns, one.longest_ns) {
        // How long those have waited that came last is not known.
        (0, 0) => String::new(),
        (0, _) => format!(", the first for {most}"),
        _ if least == most => format!(", for {most}"),
        _ => format!(", for {least} to {most}"),
    });
    text
}

/// For which of several messages ranks wait.
fn open_text(one: &Waiting, open: &OpenMessages, standing: &Standing) -> String {
    let some = if one.is_any { "any" } else { "some" };
    let from = ranks_text(&one.also.to_string());
    let tags: Vec<String> = open.tags.iter().take(TAGS_MAX).map(ToString::to_string).collect();
    let tags = match (tags.len(), open.tags.len() - tags.len()) {
        (0, _) => String::new(),
        (1, 0) => format!(" with tag {}", tags[0]),
        (_, 0) => format!(" with tags {}", tags.join(", ")),
        (_, more) => format!(" with tags {} and {more} more", tags.join(", ")),
    };
    let on = on(&communicator_name(standing, open.space));
    let others = if open.is_complete { "" } else { ", or for other requests" };
    format!(" for {some} of the messages from {from}{tags}{on}{others}")
}

#[cfg(test)]
mod tests {
    use sapwood_trace::{Kinds, Posture, Presence, Seat, Standpoint, Unfinished};

    use super::*;
    use crate::record::StackFrame;

    const SECOND: u64 = 1_000_000_000;
    const WORLD: u64 = 7;

    /// Three ranks: the first is in a call on a file for this time, in which it moves data for that
    /// one; the others have waited for it in a barrier for four seconds.
    fn standing(inside_ns: u64, moving_ns: u64) -> Standing {
        let mut standing = Standing { world_size: 3, ..Standing::default() };
        for rank in 0..3 {
            let (name, kind, space) = match rank {
                0 => ("MPI_File_write", CallKind::Other, 0),
                _ => ("MPI_Barrier", CallKind::Collective, WORLD),
            };
            let function = Function::named(name).expect("a function of MPI").id;
            let call = Some(Standpoint { function, kind, space, ..Standpoint::default() });
            let (for_ns, beside_ns) =
                if rank == 0 { (inside_ns, moving_ns) } else { (4 * SECOND, 0) };
            let posture = Posture { call, for_ns, beside_ns, ..Posture::default() };
            standing.postures.insert(rank, posture);
            let seat = Seat { rank, size: 3, made: 5, ..Seat::default() };
            standing.seats.insert((WORLD, rank), seat);
        }
        standing.add_name(WORLD, "MPI_COMM_WORLD".into());
        standing
    }

    fn bcast() -> u32 {
        Function::named("MPI_Bcast").expect("a function of MPI").id
    }

    fn stuck(standing: &Standing, stacks: Option<&Stacks>) -> Stuck {
        let verdict = Verdict::of(standing, 2 * SECOND).expect("ranks wait");
        Stuck::of(Duration::from_secs(10), &verdict, standing, stacks)
    }

    #[test]
    fn ranks_that_wait_for_some_of_others_are_told_with_these() {
        let ranks = sapwood_packet::RankSet::range(0, 0);
        let also = sapwood_packet::RankSet::range(1, 2);
        let one = Waiting { ranks, also, ..Waiting::default() };
        let text = waiting_text(&one, &Standing::default());
        assert!(text.ends_with(" for some of ranks 1-2"), "{text}");
    }

    #[test]
    fn ranks_that_wait_for_several_messages_are_told_with_senders_tags_and_communicator() {
        let mut there = Standing::default();
        there.add_name(WORLD, "halo".into());
        let mut one = Waiting {
            ranks: sapwood_packet::RankSet::range(3, 3),
            also: [1, 4].into_iter().collect(),
            open: Some(OpenMessages { space: WORLD, tags: [7, 9].into(), is_complete: true }),
            ..Waiting::default()
        };
        let text = waiting_text(&one, &there);
        let messages = "of the messages from ranks 1,4 with tags 7, 9 on halo";
        assert!(text.ends_with(&format!(" for some {messages}")), "{text}");
        let row = waiting(&one, &there);
        assert_eq!((row.communicator.as_str(), row.may_wait_for.as_str()), ("halo", "1,4"));
        assert_eq!((row.tags, row.other_requests), (vec![7, 9], false));
        one.is_any = true;
        one.open = Some(OpenMessages { tags: (0..10).collect(), ..OpenMessages::default() });
        let text = waiting_text(&one, &there);
        let more = "with tags 0, 1, 2, 3, 4, 5, 6, 7 and 2 more, or for other requests";
        assert!(
            text.ends_with(&format!(" for any of the messages from ranks 1,4 {more}")),
            "{text}"
        );
        one.open = Some(OpenMessages { tags: [3].into(), ..OpenMessages::default() });
        assert!(waiting_text(&one, &there).contains(" from ranks 1,4 with tag 3, or"));
    }

    #[test]
    fn a_rank_that_moves_data_in_a_call_on_a_file_is_said_to_read_or_write() {
        let missed = "and has not entered MPI_Barrier number 6 on MPI_COMM_WORLD";
        let moves = stuck(&standing(3 * SECOND, 3 * SECOND), None);
        let text = format!("rank 0 reads or writes a file in MPI_File_write for 3.00 s, {missed}");
        assert_eq!((moves.statement, moves.odd[0].doing.as_str()), (text, "running"));
        let other = stuck(&standing(SECOND / 1000, 0), None);
        let text = "rank 0 is making calls on a file, such as MPI_File_write";
        assert_eq!(other.statement, format!("{text}, {missed}"));
        let mut outside = standing(SECOND / 1000, 0);
        outside.postures.get_mut(&0).expect("a rank of the job").call = None;
        let outside = stuck(&outside, None).statement;
        assert_eq!(outside, format!("rank 0 is making other calls, {missed}"));
    }

    #[test]
    fn by_files_it_is_not_told_for_how_long_ranks_are_stuck_for_one_that_has_died() {
        let mut there = standing(SECOND, 0);
        there.source = Source::Files;
        assert!(stuck(&there, None).line().starts_with("stuck for 4.00 s: rank 0 is making"));
        there.postures.get_mut(&0).expect("a rank of the job").presence = Presence::Lost;
        let dead = stuck(&there, None);
        let line = dead.line();
        assert!(line.starts_with("stuck: rank 0 has died, in MPI_File_write, and has"), "{line}");
        assert!(line.ends_with("for rank 0, for 4.00 s"), "{line}");
        // A call that did not fit was there before.
        let root = |rank: u32| Some(u32::from(rank == 1));
        for (rank, made) in [(0, 6), (1, 6), (2, 5)] {
            let seat = there.seats.get_mut(&(WORLD, rank)).expect("a member");
            (seat.made, seat.last_function) = (made, bcast());
            seat.last_root = root(rank);
        }
        let call = &mut there.postures.get_mut(&2).expect("a rank of the job").call;
        let inside = call.as_mut().expect("a call");
        (inside.function, inside.side) = (bcast(), Side::Rank(0));
        let line = stuck(&there, None).line();
        let unlike = "stuck for 4.00 s: rank 1 called MPI_Bcast with root 1 where most called \
                      MPI_Bcast with root 0 (number 6 on MPI_COMM_WORLD); rank 0 has died";
        assert!(line.starts_with(unlike), "{line}");
    }

    #[test]
    fn a_call_that_does_not_fit_is_told_where_ranks_are_named_for_another_reason() {
        let there = standing(SECOND, 0);
        let mut verdict = Verdict::of(&there, 2 * SECOND).expect("ranks wait");
        let called = |root| Called { function: bcast(), root };
        let mut kinds = Kinds::of(called(0), 0);
        kinds.merge(&Kinds::of(called(1), 2));
        let open = Unfinished { number: 6, size: 3, count: 2, kinds, amounts: None };
        let mut findings = Findings::default();
        findings.unfinished.insert(WORLD, open);
        let [group] = &mut verdict.waiting[..] else { panic!("one place") };
        group.ranks = [1].into_iter().collect();
        (group.place.function, group.place.side) = (bcast(), Side::Rank(0));
        let told = |verdict: &Verdict| unlike_calls(&findings, verdict, |_, _| String::new());
        let [one] = &told(&verdict)[..] else { panic!("{:?}", told(&verdict)) };
        assert_eq!((one.number, one.culprit), (6, Some(2)));
        let operation = |root| Operation { function: bcast(), root: Some(root) };
        verdict.odd[0].difference = Difference::Operation(operation(1), operation(0));
        assert!(told(&verdict).is_empty(), "it is named with its call");
    }

    #[test]
    fn stacks_are_taken_if_they_were_read_after_the_standstill_began() {
        let standing = standing(SECOND / 1000, 0);
        let frame = |name: &str, ranks: &str, count| StackFrame {
            name: name.into(),
            ranks: ranks.into(),
            count,
            children: Vec::new(),
        };
        let roots = vec![frame("main", "1-2", 2), frame("write_all", "0", 1)];
        let read_at = |elapsed_s: f64| {
            let stacks = Stacks { elapsed_s, roots: roots.clone(), ..Stacks::default() };
            stuck(&standing, Some(&stacks)).stacks
        };
        assert!(read_at(5.5).is_empty(), "ranks waited from 6 s on");
        let after = read_at(6.5);
        assert_eq!((after[0].ranks.as_str(), after.len()), ("0", 1));
        assert_eq!(after[0].frames, ["write_all"]);
    }
}
