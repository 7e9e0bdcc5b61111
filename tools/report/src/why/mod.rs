//! Why a job is slow or stuck, as `docs/schema/why-1.json` describes it.
//!
//! [`Why`] is made of what the tree has gathered: the waits of the run by communicator and function
//! (`slow`), and the verdict of a moment in which ranks have waited for long (`stuck`). `lines` is
//! the same on one screen.

pub(crate) mod amounts;
mod dropped;
mod end;
mod hops;
mod lines;
mod link;
mod slow;
mod stuck;

use std::time::Duration;

use sapwood_packet::RankSet;
use sapwood_trace::{Counter, Entered, Findings, Posture, Source, Standing, Verdict};
use serde::{Deserialize, Serialize};

use crate::communicator::place_name;
use crate::mixed_calls::{MixedCalls, mixed_calls};
use crate::paused::PausedTracing;
use crate::quantity::counted;
use crate::record::{MATCHING_LOSSES, Stacks};
use crate::text::ranks_text;
use crate::uneven_calls::{UnevenCalls, uneven_calls};
pub use amounts::{GivenAmount, UnequalAmounts};
pub use dropped::DroppedRing;
pub use end::{RankEnd, RankEnds};
pub use hops::{BypassEdgeHops, BypassHops, HopTimes};
pub(crate) use lines::passed_line;
pub use link::{SlowLink, SlowTcp};
pub use slow::{SlowGroup, SlowMessages, SlowPlace};
pub use stuck::{Stuck, StuckOdd, StuckWaiting};

/// The form of the JSON object.
pub const WHY_SCHEMA: &str = "sapwood.why/1";

/// What is said where nothing is known of the rank that came last.
const NONE_MATCHED: &str = "which ranks came last: no collective was matched";
/// What pauses counting.
const PAUSED_BY: &str = "'sapwood mpi control' or MPI_Pcontrol";

/// Why a job is slow or stuck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The form of this object.
    pub schema: String,
    /// The program.
    pub program: String,
    /// Ranks of the program; 0 if none has come.
    pub ranks: u32,
    /// For how long it was watched.
    pub elapsed_s: f64,
    /// Until when the waits of its calls are known, which the shares of its time are of.
    pub known_s: f64,
    /// Collectives of which all processes are known.
    pub collectives: u64,
    /// Events of calls that were read.
    #[serde(default)]
    pub events: u64,
    /// Events that were overwritten before they were read.
    #[serde(default)]
    pub events_dropped: u64,
    /// The rings that have lost most of these, the first one most; a few of them.
    #[serde(default)]
    pub dropped_rings: Vec<DroppedRing>,
    /// Whether the program had ended by then.
    pub has_ended: bool,
    /// The standstill that goes on, or in which the program ended.
    pub stuck: Option<Stuck>,
    /// Earlier standstills, after which the program went on.
    pub passed: u64,
    /// Communicators on which ranks called different functions, or gave different roots, so that
    /// results may be wrong.
    #[serde(default)]
    pub mixed: Vec<MixedCalls>,
    /// Communicators on which ranks called the same function, and gave it different amounts of data
    /// where MPI needs the same of all.
    #[serde(default)]
    pub amounts: Vec<UnequalAmounts>,
    /// Communicators on which ranks had not called as many collectives when all had ended, though
    /// those that they had called were the same.
    #[serde(default)]
    pub uneven: Vec<UnevenCalls>,
    /// Communicators and functions in which ranks have waited, those with most lost time first.
    pub slow: Vec<SlowPlace>,
    /// Messages that came late, by sender, and sends that waited for their receiver.
    pub messages: Vec<SlowMessages>,
    /// Ways from one rank to another on which messages took long, or what a collective sends.
    pub links: Vec<SlowLink>,
    /// Hops of bypassed reductions; null where they were not asked for.
    #[serde(default)]
    pub hops: Option<BypassHops>,
    /// How ranks ended that did not end in order: `deaths` and `ends`.
    #[serde(flatten)]
    pub ended: RankEnds,
    /// What is not known.
    pub unknown: Vec<String>,
}

/// What a document is made of.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The program's name.
    pub program: &'a str,
    /// For how long it was watched.
    pub elapsed: Duration,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Where ranks stand; names are taken from it.
    pub standing: Option<&'a Standing>,
    /// The verdict that holds, with the moment of it and where ranks stood.
    pub verdict: Option<(Duration, &'a Verdict, &'a Standing)>,
    /// The call stacks that were read last.
    pub stacks: Option<&'a Stacks>,
    /// Verdicts that held before.
    pub passed: u64,
    /// Which ranks waited for which, and until when that is known; none where it was not recorded.
    pub findings: Option<(Duration, &'a Findings)>,
    /// Whether ranks record, so that it will be known.
    pub is_recording: bool,
}

impl Why {
    /// The document.
    #[must_use]
    pub fn of(parts: &Parts<'_>) -> Self {
        let standing = parts.standing.cloned().unwrap_or_default();
        let stuck = parts.verdict.map(|(at, one, there)| Stuck::of(at, one, there, parts.stacks));
        let mut why = Self {
            schema: WHY_SCHEMA.to_owned(),
            program: parts.program.to_owned(),
            ranks: standing.world_size,
            elapsed_s: parts.elapsed.as_secs_f64(),
            has_ended: parts.has_ended,
            stuck,
            passed: parts.passed,
            ..Self::default()
        };
        match parts.findings {
            Some((until, findings)) => {
                why.known_s = until.as_secs_f64();
                why.collectives = findings.collectives;
                why.events = findings.counter(Counter::Events);
                why.events_dropped = findings.counter(Counter::Dropped);
                why.dropped_rings = DroppedRing::most_of(findings);
                let name = |space, size| place_name(&standing, space, size);
                why.mixed = mixed_calls(&findings.mixtures, name);
                if let Some((_, verdict, _)) = parts.verdict {
                    let unlike = stuck::unlike_calls(findings, verdict, name);
                    why.mixed.splice(0..0, unlike);
                }
                let mut entered = Entered::dead(&standing);
                if let Some((_, verdict, then)) = parts.verdict {
                    entered.extend(Entered::waiting(verdict, then, &standing));
                }
                why.amounts = amounts::unequal_amounts(findings, &entered, name);
                why.uneven = uneven_calls(findings, name);
                why.slow = slow::places(findings, &standing, until);
                why.messages = slow::messages(findings);
                why.links = link::links(findings, until);
                why.hops = BypassHops::of(findings);
                why.unknown = gaps(findings);
                if lacks_all(findings, &standing) {
                    why.unknown.insert(0, NONE_MATCHED.to_owned());
                }
            }
            None if parts.is_recording => {
                why.unknown.push("how long ranks have waited: no calls were gathered yet".into());
            }
            None => why.unknown.push("how long ranks have waited: calls were not recorded".into()),
        }
        why.unknown.extend(PausedTracing::of(&standing).map(|paused| paused.line()));
        why.unknown.extend(uncounted(&standing));
        if standing.left_out > 0 {
            let left_out = counted(standing.left_out.into(), "communicators");
            why.unknown.push(format!("{left_out} that found no room"));
        }
        // Of files it is told which are missing.
        let is_unseen = |there: &Standing, verdict: &Verdict| {
            verdict.unseen > 0 && there.source == Source::Tree
        };
        let unseen = parts.verdict.filter(|(_, one, there)| is_unseen(there, one));
        if let Some((_, verdict, _)) = unseen {
            let unseen = counted(verdict.unseen.into(), "ranks");
            why.unknown.push(format!("{unseen} never seen"));
        }
        why
    }
}

/// Ranks of which something holds.
fn ranks_that(standing: &Standing, is_one: impl Fn(&Posture) -> bool) -> RankSet {
    let those = standing.postures.iter().filter(|(_, posture)| is_one(posture));
    those.map(|(&rank, _)| rank).collect()
}

/// Whether no collective was matched though there may have been some.
fn lacks_all(findings: &Findings, standing: &Standing) -> bool {
    let has_lost = MATCHING_LOSSES.iter().any(|loss| findings.counter(loss.counter) > 0);
    let is_paused = standing.postures.values().any(|one| one.unrecorded_ns > 0);
    findings.collectives == 0 && (has_lost || is_paused || findings.incomplete > 0)
}

/// A line for ranks whose collectives were not counted for a time.
fn uncounted(standing: &Standing) -> Option<String> {
    let ranks = ranks_that(standing, |posture| posture.is_order_lost);
    let text = ranks_text(&ranks.to_string());
    (!ranks.is_empty()).then(|| {
        format!("numbers of collectives of {text}: counting was paused ({PAUSED_BY}) for a time")
    })
}

/// Lines for what the waits do not tell.
fn gaps(findings: &Findings) -> Vec<String> {
    let losses = MATCHING_LOSSES.iter().filter_map(|loss| {
        let line = loss.line(findings.counter(loss.counter))?;
        let rings = || DroppedRing::told(&DroppedRing::of(&findings.dropped, usize::MAX));
        Some(if loss.counter == Counter::Dropped { line + &rings() } else { line })
    });
    let others = [
        (
            findings.undecided,
            "collectives",
            "whose last rank is unknown, as the hosts' clocks are not exact enough",
        ),
        (findings.mixed, "collectives", "in which ranks did not call the same"),
        (findings.counter(Counter::Unsure), "receives", "whose message is unknown"),
        (
            findings.counter(Counter::TcpUnreadable),
            "leaves",
            "that may not read what the kernel counts of TCP connections: slow links in collectives",
        ),
        (findings.counter(Counter::TcpLeftOut), "TCP connections", "that found no room"),
    ];
    let told = others.into_iter().filter(|(count, ..)| *count > 0);
    let told =
        told.map(|(count, things, what)| format!("{} {what}", counted(count.into(), things)));
    losses.chain(told).collect()
}

/// The ranks of a communicator where its name does not tell them.
fn is_whole_program(standing: &Standing, space: u64) -> bool {
    standing.members(space).next().is_none_or(|(_, seat)| seat.size == standing.world_size)
}

#[cfg(test)]
mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::{
        CallKind, Kinds, Lateness, PlaceFigures, PlaceWaits, RankRing, Seat, Standpoint, Unequal,
    };

    use super::*;
    use crate::record::Death;

    const WORLD: u64 = 7;

    /// Three ranks in a reduction and one in a barrier.
    fn standing() -> Standing {
        let mut standing = Standing { world_size: 4, ..Standing::default() };
        for rank in 0..4 {
            let name = if rank == 2 { "MPI_Barrier" } else { "MPI_Allreduce" };
            let function = Function::named(name).expect("a function of MPI").id;
            let kind = CallKind::Collective;
            let call = Standpoint { function, kind, space: WORLD, ..Standpoint::default() };
            let posture = Posture { call: Some(call), for_ns: 2_300_000_000, ..Posture::default() };
            standing.postures.insert(rank, posture);
            let seat = Seat { rank, size: 4, made: 40, ..Seat::default() };
            standing.seats.insert((WORLD, rank), seat);
        }
        standing.add_name(WORLD, "MPI_COMM_WORLD".into());
        standing
    }

    fn findings() -> Findings {
        let mut place = PlaceFigures { size: 4, collectives: 100, ..PlaceFigures::default() };
        let mut late = Lateness::default();
        (0..100).for_each(|_| late.add(50_000_000));
        place.late.insert(1, late);
        for waiter in [0, 2, 3] {
            place.waits.insert((1, waiter), PlaceWaits { calls: 100, wait_ns: 5_000_000_000 });
        }
        let mut findings = Findings::default();
        let function = Function::named("MPI_Allreduce").expect("a function of MPI").id;
        findings.places.insert((WORLD, function), place);
        findings
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Job {
        Stuck,
        Running,
    }

    fn why(findings: &Findings, job: Job) -> Why {
        let standing = standing();
        let verdict = Verdict::of(&standing, 1_000_000_000).expect("ranks wait");
        let at = Duration::from_secs(4);
        Why::of(&Parts {
            program: "prog",
            elapsed: Duration::from_secs(10),
            has_ended: true,
            standing: Some(&standing),
            verdict: (job == Job::Stuck).then_some((at, &verdict, &standing)),
            stacks: None,
            passed: 1,
            findings: Some((Duration::from_secs(10), findings)),
            is_recording: true,
        })
    }

    fn why_with_ends(kinds: usize) -> Why {
        let death = |at: usize| Death {
            ranks: format!("{}-{}", 2 * at, 2 * at + 1),
            elapsed_s: 2.5,
            is_first: at == 0,
            cause: format!("exit code {at}"),
            inside: "MPI_Barrier".into(),
            ..Death::default()
        };
        let deaths: Vec<Death> = (0..kinds).map(death).collect();
        let ended = RankEnds::of(&deaths, Some(RankEnd::in_order("20", 1.5)));
        Why { ended, ..Why::default() }
    }

    #[test]
    fn how_ranks_ended_is_told_in_words_and_as_fields() {
        let RankEnds { deaths, ends } = why_with_ends(6).ended;
        assert_eq!(
            deaths[..2],
            [
                "ranks 0-1 died first, 2.500 s after the start: exit code 0, inside MPI_Barrier",
                "rank 20 had ended normally by then, 1.500 s after the start",
            ]
        );
        assert_eq!(deaths.last().map(String::as_str), Some("2 more ends of other kinds"));
        let ranks: Vec<&str> = ends.iter().map(|end| end.ranks.as_str()).collect();
        assert_eq!(ranks, ["0-1", "20", "2-3", "4-5", "6-7", "8-9", "10-11"]);
        let in_order: Vec<bool> = ends.iter().map(|end| end.is_in_order).collect();
        assert_eq!(in_order, [false, true, false, false, false, false, false]);
        assert!(ends[0].is_first && !ends[2].is_first);
        for (end, text) in ends.iter().zip(&deaths[..5]) {
            assert_eq!(end.text, *text);
        }
    }

    #[test]
    fn a_rank_is_told_by_the_messages_that_it_sends_late_and_those_that_it_receives_late() {
        let lines = |send_wait_s: f64, receive_wait_s: f64| {
            let late = SlowMessages {
                rank: 3,
                late_sends: 140,
                send_wait_s,
                late_receives: 139,
                receive_wait_s,
                ..SlowMessages::default()
            };
            let (ranks, elapsed_s, messages) = (8, 10.0, vec![late]);
            Why { ranks, elapsed_s, known_s: elapsed_s, messages, ..Why::default() }.lines()
        };
        // Of exchanges both are alike, and which is longer is a matter of luck.
        for (sent_s, received_s) in [(9.79, 9.81), (9.81, 9.79)] {
            let lines = lines(sent_s, received_s);
            assert!(lines[0].ends_with("24.5 % for late messages"), "{}", lines[0]);
            let told = format!("{} {}", lines[1], lines[2].trim_start());
            assert!(told.starts_with("messages of rank 3 came late 140 times"), "{told}");
            assert!(told.contains("it received late 139 times: senders"), "{told}");
        }
        let [_, sends] = &lines(9.8, 0.1)[..] else { panic!("two lines") };
        assert_eq!(sends, "messages of rank 3 came late 140 times: others waited 9.80 s for them");
        let [_, receives] = &lines(0.1, 9.8)[..] else { panic!("two lines") };
        assert_eq!(receives, "rank 3 received late 139 times: senders waited 9.80 s");
        assert_eq!(lines(0.3, 0.3).len(), 1, "less than 1 % of the ranks' time");
    }

    #[test]
    fn an_answer_is_as_its_schema_says() {
        let all = [
            why(&findings(), Job::Stuck),
            why(&Findings::default(), Job::Running),
            why_with_ends(2),
            Why::default(),
        ];
        for why in all {
            let why = Why { schema: WHY_SCHEMA.into(), ..why };
            let value = serde_json::to_value(&why).expect("numbers and text");
            sapwood_schema::assert_fits("why-1", &value);
            assert_eq!(serde_json::from_value::<Why>(value).expect("as it was written"), why);
        }
    }

    #[test]
    fn amounts_that_differ_are_told_as_wrong_and_as_the_schema_says() {
        let mut findings = findings();
        let function = Function::named("MPI_Bcast").expect("a function of MPI").id;
        let mut amounts = Kinds::of(80, 0);
        [(1, 80), (2, 72), (3, 80)].iter().for_each(|&(rank, bytes)| {
            amounts.merge(&Kinds::of(bytes, rank));
        });
        let one = Unequal { number: 7, function, size: 4, count: 4, amounts, collectives: 1 };
        findings.unequal.insert(WORLD, one);
        let why = why(&findings, Job::Stuck);
        assert_eq!(
            why.wrong_lines(),
            [
                "wrong: MPI_Bcast number 7 on MPI_COMM_WORLD: rank 2 gave 72 bytes where 3 ranks gave 80",
                "  bytes",
            ]
        );
        let value = serde_json::to_value(&why).expect("numbers and text");
        sapwood_schema::assert_fits("why-1", &value);
        assert_eq!(serde_json::from_value::<Why>(value).expect("as it was written"), why);
    }

    #[test]
    fn events_that_were_overwritten_are_told_as_numbers_too() {
        let mut findings = findings();
        findings.counters[Counter::Events as usize] = 90;
        findings.counters[Counter::Dropped as usize] = 10;
        let why = why(&findings, Job::Running);
        assert_eq!((why.events, why.events_dropped), (90, 10));
        assert!(why.unknown.contains(&"10 calls overwritten unread".to_owned()), "{why:?}");
    }

    #[test]
    fn the_rings_that_have_lost_most_events_are_named() {
        let mut findings = findings();
        let ring = |rank, thread| RankRing { rank, thread };
        let lost = [(ring(3, 0), 2_000), (ring(1, 2), 30), (ring(0, 0), 4), (ring(2, 0), 3)];
        lost.iter().for_each(|&(ring, events)| findings.dropped.add(ring, events));
        findings.counters[Counter::Dropped as usize] = 2_037;
        let why = why(&findings, Job::Running);
        let told = "2,037 calls overwritten unread: 2,000 of rank 3 (thread 0), 30 of rank 1 \
                    (thread 2), 4 of rank 0 (thread 0), the rest of other rings";
        assert!(why.unknown.contains(&told.to_owned()), "{:?}", why.unknown);
        let first = DroppedRing { rank: 3, thread: 0, events: 2_000 };
        assert_eq!((why.dropped_rings.len(), &why.dropped_rings[0]), (3, &first));
        let value = serde_json::to_value(&why).expect("numbers and text");
        sapwood_schema::assert_fits("why-1", &value);
        assert_eq!(serde_json::from_value::<Why>(value).expect("as it was written"), why);
    }

    #[test]
    fn ranks_that_are_paused_are_told_as_sets_and_that_nothing_was_matched() {
        let mut standing = standing();
        for (rank, paused_s) in [(1, 2), (2, 4), (3, 4)] {
            let posture = standing.postures.get_mut(&rank).expect("one of four ranks");
            posture.unrecorded_ns = paused_s * 1_000_000_000;
            posture.is_order_lost = rank > 1;
        }
        let mut findings = Findings::default();
        findings.counters[Counter::Dropped as usize] = 7;
        let told = |findings: Option<&Findings>| {
            let why = Why::of(&Parts {
                program: "prog",
                elapsed: Duration::from_secs(10),
                has_ended: true,
                standing: Some(&standing),
                verdict: None,
                stacks: None,
                passed: 0,
                findings: findings.map(|findings| (Duration::from_secs(10), findings)),
                is_recording: findings.is_some(),
            });
            why.unknown
        };
        let paused = [
            "calls of ranks 1-3: their tracing is paused, the first for 4.00 s",
            "numbers of collectives of ranks 2-3: counting was paused ('sapwood mpi control' or \
             MPI_Pcontrol) for a time",
        ];
        let none = [NONE_MATCHED, "7 calls overwritten unread"];
        assert_eq!(told(Some(&findings)), [none, paused].concat());
        findings.collectives = 3;
        assert_eq!(told(Some(&findings))[0], none[1]);
        // They were paused before anything was gathered.
        assert_eq!(told(None)[1..], paused);
    }

    #[test]
    fn what_is_stuck_is_told_before_what_is_slow() {
        let lines = why(&findings(), Job::Stuck).lines();
        assert_eq!(
            lines,
            [
                "prog: 4 ranks, 10.0 s, stuck when it ended; 37.5 % of the ranks' time lost in earlier collectives",
                "stuck for 2.30 s: rank 2 called MPI_Barrier where most called MPI_Allreduce (number 41 on",
                "  MPI_COMM_WORLD)",
                "  waiting: ranks 0-1,3 in MPI_Allreduce number 41 on MPI_COMM_WORLD for rank 2, for 2.30 s",
                "  waiting: rank 2 in MPI_Barrier number 41 on MPI_COMM_WORLD for ranks 0-1,3, for 2.30 s",
                "ranks were found waiting once before, and went on (1)",
                "1. MPI_Allreduce on MPI_COMM_WORLD: 15.0 s lost in 100 calls, 37.5 % of the ranks' time",
                "   rank 1 came last 100 times of 100, by 50.0 ms in 100: ranks 0,2-3 waited 15.0 s together",
                "     (100.0 %)",
            ]
        );
    }
}
