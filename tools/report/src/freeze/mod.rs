//! A frozen job, as `docs/schema/freeze-1.json` describes it: the last calls of its ranks, one by
//! one, and which of them belong together.
//!
//! [`Freeze`] is made of the events that the tree has brought ([`Frozen`]). Times are nanoseconds
//! of the common clock of the run, which on one host is `CLOCK_MONOTONIC`. `places` sums them up by
//! communicator and function; `lines` is the same as a table.

mod lines;
mod place;

use std::collections::BTreeMap;
use std::time::Duration;

use sapwood_packet::{RankSet, nanoseconds};
use sapwood_trace::{Frozen, FrozenEvent, FrozenInstance, Mixture, Presence, Relations};
use serde::{Deserialize, Serialize};

use crate::mixed_calls::{MixedCalls, mixed_calls};
use crate::mpi_call::{function_name, kind_word};
use crate::quantity;
use crate::text::{agreeing, unnamed};
use crate::why::amounts::told_amounts;
use crate::why::{RankEnds, UnequalAmounts};
pub use place::{FreezeLast, FreezePlace};

/// The form of the JSON object.
pub const FREEZE_SCHEMA: &str = "sapwood.freeze/1";

/// What has ranks record their calls.
const RECORD: &str = "'sapwood mpi control --tracing on'";

/// Why a job was frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreezeReason {
    /// A user has asked for it.
    #[default]
    Asked,
    /// Ranks have waited for the deadline, and it was known why.
    Stuck,
    /// A rank came to a collective later than it may.
    Outlier,
    /// The program was told to end.
    Signal,
    /// The program has ended.
    End,
}

impl FreezeReason {
    /// In a sentence.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Asked => "on request",
            Self::Stuck => "when it was stuck",
            Self::Outlier => "when a rank was late",
            Self::Signal => "when it received a signal to end",
            Self::End => "when it had ended",
        }
    }
}

/// The last calls of a job's ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Freeze {
    /// The form of this object.
    pub schema: String,
    /// The program.
    pub program: String,
    /// Ranks of the program; 0 if none has come.
    pub ranks: u32,
    /// Why it was frozen.
    pub reason: FreezeReason,
    /// What held the ranks then, in a sentence; empty if that is not known.
    pub statement: String,
    /// For how long the program had been watched.
    pub elapsed_s: f64,
    /// The begin of the window, in nanoseconds of the common clock.
    pub begin_ns: i64,
    /// The moment of the freeze, in the same.
    pub end_ns: i64,
    /// Clocks that the times come from; times of one clock are exact to one another.
    pub clocks: u32,
    /// By how much times of different clocks may be off, either way, in nanoseconds.
    pub clock_error_ns: u64,
    /// The ranks that were looked at.
    pub processes: Vec<FreezeProcess>,
    /// Communicators, to which the events refer by their place in this list.
    pub communicators: Vec<FreezeCommunicator>,
    /// By communicator and function, those with most waiting first.
    pub places: Vec<FreezePlace>,
    /// Communicators on which ranks called different functions, or gave different roots, so that
    /// results may be wrong.
    #[serde(default)]
    pub mixed: Vec<MixedCalls>,
    /// Communicators on which ranks gave different amounts of data where MPI needs the same of
    /// all.
    #[serde(default)]
    pub amounts: Vec<UnequalAmounts>,
    /// Collectives, by their first arrival.
    pub collectives: Vec<FreezeCollective>,
    /// Messages whose send and receive are both in the window.
    pub messages: Vec<FreezeMessage>,
    /// The calls, by their begin.
    pub events: Vec<FreezeEvent>,
    /// How ranks ended that did not end in order, where files tell that: `deaths` and `ends`.
    #[serde(flatten)]
    pub ended: RankEnds,
    /// What is missing from the window.
    pub unknown: Vec<String>,
}

/// A rank at the moment of the freeze.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezeProcess {
    /// The rank.
    pub rank: u32,
    /// What its process does, as "running".
    pub state: String,
    /// Whether it recorded its calls.
    pub is_recording: bool,
    /// The number of its clock.
    pub clock: u32,
    /// By how much its times may be off against another clock's, in nanoseconds.
    pub clock_error_ns: u64,
    /// Its threads that have made calls.
    pub threads: Vec<FreezeThread>,
}

/// The ring of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezeThread {
    /// Its number in the rank.
    pub thread: u8,
    /// Events since the start.
    pub written: u64,
    /// Events that were overwritten, of which some may belong to the window; 0 if none does.
    pub dropped: u64,
    /// Events of the window that found no room in an answer; they are older than those here.
    pub left_out: u64,
}

/// A communicator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezeCommunicator {
    /// What it is called.
    pub name: String,
    /// The same in all its processes, in hexadecimal.
    pub identity: String,
    /// Processes of it.
    pub size: u32,
    /// Those that were looked at, as ranks of the program.
    pub ranks: String,
}

/// A collective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezeCollective {
    /// Its communicator.
    pub communicator: usize,
    /// The function by which its first process came.
    pub function: String,
    /// Its number on the communicator.
    pub sequence: u32,
    /// Processes of the communicator.
    pub size: u32,
    /// The events of those that came, in order.
    pub arrivals: Vec<usize>,
    /// Between the first and the last arrival, in nanoseconds; null unless all have come.
    pub spread_ns: Option<u64>,
    /// The event for which others have waited, which is the last one, or that of a root; null
    /// unless all have come.
    pub last: Option<usize>,
    /// Whether the clocks say that it was the one, and whether others have waited for it.
    pub is_decided: bool,
    /// Whether others have waited for it: whether it came after one that waits for it.
    pub is_late: bool,
    /// Whether its processes did not call the same function with the same root.
    pub is_mixed: bool,
    /// The ranks that have not come, where others wait for them still.
    pub absent: String,
    /// How long before the last arrival each came, in nanoseconds, in the order of the arrivals;
    /// null where the clocks do not tell. Empty unless all have left.
    #[serde(default)]
    pub arrival_waits_ns: Vec<Option<u64>>,
    /// How its processes left, in order; empty unless all have.
    #[serde(default)]
    pub departures: Vec<FreezeDeparture>,
    /// From the first arrival to the last departure, in nanoseconds; null unless all have left,
    /// and where the clocks do not tell.
    #[serde(default)]
    pub elapsed_ns: Option<u64>,
}

/// How a process left a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeDeparture {
    /// The event with whose return it left: its call, or the one that completed what it had
    /// started.
    pub event: usize,
    /// How many left before it; null where the clocks do not tell its departure from another's.
    pub place: Option<u32>,
    /// How long after the last arrival it left, in nanoseconds, negative for before; null
    /// likewise.
    pub wait_ns: Option<i64>,
}

/// A message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeMessage {
    /// The event that sent it.
    pub send: usize,
    /// The event that received it.
    pub receive: usize,
}

/// A call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreezeEvent {
    /// The rank.
    pub rank: u32,
    /// Its thread.
    pub thread: u8,
    /// The function.
    pub function: String,
    /// What it is, as "collective".
    pub kind: String,
    /// The communicator; null if it is not known.
    pub communicator: Option<usize>,
    /// Of a collective on its communicator, or of a message in its channel; null if it is not
    /// known.
    pub sequence: Option<u32>,
    /// The root, or the other side of the message, in the communicator; null for none.
    pub peer: Option<u32>,
    /// The tag of a message; null for another call.
    pub tag: Option<i32>,
    /// Its begin, in nanoseconds of the common clock.
    pub begin_ns: i64,
    /// Its return, or when it was last seen in it.
    pub end_ns: i64,
    /// Whether it had not returned.
    pub is_open: bool,
    /// How long of that it waited for another rank, in nanoseconds; null if that is not known.
    pub wait_ns: Option<u64>,
}

/// What a document is made of.
#[derive(Clone, Copy, Debug)]
pub struct FreezeParts<'a> {
    /// The program's name.
    pub program: &'a str,
    /// For how long it was watched.
    pub elapsed: Duration,
    /// Why it was frozen.
    pub reason: FreezeReason,
    /// What held the ranks then.
    pub statement: &'a str,
    /// The length of the window.
    pub last: Duration,
    /// Ranks that were asked for and did not answer.
    pub missing: &'a RankSet,
}

impl Freeze {
    /// The document.
    #[must_use]
    pub fn of(mut frozen: Frozen, parts: &FreezeParts<'_>) -> Self {
        let span = nanoseconds(parts.last);
        let (begin_ns, end_ns) = frozen.cut(span);
        let relations = Relations::of(&frozen);
        let clocks: BTreeMap<u32, u64> =
            frozen.ranks.values().map(|rank| (rank.clock, rank.error)).collect();
        let spaces = communicators(&frozen);
        let place_of = |identity: u64| spaces.binary_search_by_key(&identity, |one| one.0).ok();
        let events = frozen.events.iter().zip(&relations.waits);
        let collective = |one: &FrozenInstance| collective(&frozen, one, place_of(one.key.0));
        let name = |identity: u64, _: u32| {
            place_of(identity).map_or_else(String::new, |at| spaces[at].1.name.clone())
        };
        let mut freeze = Self {
            schema: FREEZE_SCHEMA.to_owned(),
            program: parts.program.to_owned(),
            ranks: frozen.world_size,
            reason: parts.reason,
            statement: parts.statement.to_owned(),
            elapsed_s: parts.elapsed.as_secs_f64(),
            begin_ns,
            end_ns,
            clocks: u32::try_from(clocks.len()).unwrap_or(u32::MAX),
            clock_error_ns: match clocks.len() {
                0 | 1 => 0,
                _ => clocks.values().copied().max().unwrap_or(0),
            },
            processes: processes(&frozen, begin_ns),
            events: events
                .map(|(event, &wait)| call(event, place_of(event.communicator), wait))
                .collect(),
            collectives: relations.instances.iter().filter_map(collective).collect(),
            messages: relations
                .messages
                .iter()
                .map(|&(send, receive)| FreezeMessage { send, receive })
                .collect(),
            mixed: mixed_calls(&mixtures(&frozen, &relations), name),
            amounts: told_amounts(relations.unequal, name),
            communicators: spaces.into_iter().map(|(_, one)| one).collect(),
            ..Self::default()
        };
        freeze.places = place::places(&freeze);
        freeze.unknown = freeze.gaps(&frozen, parts.missing);
        freeze
    }

    /// Lines for what the window lacks.
    fn gaps(&self, frozen: &Frozen, missing: &RankSet) -> Vec<String> {
        let sum = |of: fn(&FreezeThread) -> u64| {
            let threads = self.processes.iter().flat_map(|process| &process.threads);
            threads.map(of).fold(0, u64::saturating_add)
        };
        let ranks = |of: fn(&sapwood_trace::FrozenRank) -> bool| -> String {
            let those = frozen.ranks.iter().filter(|(_, rank)| of(rank));
            those.map(|(&rank, _)| rank).collect::<RankSet>().to_string()
        };
        let total = |of: fn(&sapwood_trace::FrozenRank) -> u64| {
            frozen.ranks.values().map(of).fold(0, u64::saturating_add)
        };
        let damaged = frozen.rings.values().map(|ring| ring.damaged).fold(0, u64::saturating_add);
        let counts = [
            (self.dropped(), "calls", "overwritten, of which some may be of the window"),
            (
                sum(|thread| thread.left_out),
                "older calls",
                "of the window that did not fit into an answer",
            ),
            (total(|rank| rank.without_ring), "calls", "of threads that have no ring"),
            (
                total(|rank| rank.without_space),
                "calls",
                "on communicators beyond the capacity of a table",
            ),
            (damaged, "damaged records", "of calls left out"),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        let mut lines: Vec<String> = counts
            .map(|(count, things, what)| {
                format!("{} {what}", quantity::counted(count.into(), things))
            })
            .collect();
        let all = match self.ranks {
            0 => missing.clone(),
            ranks => RankSet::range(0, ranks - 1),
        };
        let none = missing.difference(all.as_ref());
        let silent = missing.difference(none.as_ref());
        let sets =
            [(none.to_string(), "not of this program"), (silent.to_string(), "did not answer")];
        let sets = sets.iter().filter(|(ranks, _)| !ranks.is_empty());
        lines.extend(sets.map(|(ranks, what)| format!("{} {what}", crate::ranks_text(ranks))));
        let paused = ranks(|rank| !rank.is_recording);
        lines.extend((!paused.is_empty()).then(|| not_recorded(&paused)));
        let uncounted = ranks(|rank| rank.is_order_lost);
        lines.extend((!uncounted.is_empty()).then(|| not_counted(&uncounted)));
        lines
    }

    /// Calls that were overwritten and may belong to the window.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let threads = self.processes.iter().flat_map(|process| &process.threads);
        threads.map(|thread| thread.dropped).fold(0, u64::saturating_add)
    }

    /// The name of an event's communicator; empty where it is not known.
    #[must_use]
    pub fn communicator_of(&self, event: &FreezeEvent) -> &str {
        let one = event.communicator.and_then(|place| self.communicators.get(place));
        one.map_or("", |one| &one.name)
    }

    /// The whole as JSON, with a line end.
    ///
    /// # Panics
    /// Never: numbers, text and lists of them are always JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("numbers, text and lists of them are always JSON") + "\n"
    }
}

fn state(presence: Presence) -> &'static str {
    match presence {
        Presence::Running => "running",
        Presence::Computing => "computing",
        Presence::Sleeping => "sleeping",
        Presence::Stopped => "stopped",
        Presence::Lost => "lost",
        Presence::Finalizing => "finalizing",
        Presence::Ended => "ended",
    }
}

fn processes(frozen: &Frozen, begin: i64) -> Vec<FreezeProcess> {
    let threads = |rank: u32| {
        let rings = frozen.rings.range((rank, 0)..=(rank, u8::MAX));
        let thread = |(&(_, thread), ring)| {
            let ring: &sapwood_trace::FrozenRing = ring;
            let dropped = Frozen::dropped(ring, begin);
            FreezeThread { thread, written: ring.written, dropped, left_out: ring.left_out }
        };
        rings.map(thread).collect()
    };
    let process = |(&rank, one): (&u32, &sapwood_trace::FrozenRank)| FreezeProcess {
        rank,
        state: state(one.presence).to_owned(),
        is_recording: one.is_recording,
        clock: one.clock,
        clock_error_ns: one.error,
        threads: threads(rank),
    };
    frozen.ranks.iter().map(process).collect()
}

/// The communicators by their identity, in order.
fn communicators(frozen: &Frozen) -> Vec<(u64, FreezeCommunicator)> {
    let mut found: BTreeMap<u64, (u32, RankSet)> = BTreeMap::new();
    for (&(identity, rank), seat) in &frozen.seats {
        let one = found.entry(identity).or_default();
        one.0 = one.0.max(seat.size);
        one.1.insert(rank);
    }
    let one = |(identity, (size, ranks)): (u64, (u32, RankSet))| {
        let name = frozen.names.get(&identity).map(|name| crate::printable(name));
        let name = name.unwrap_or_else(|| format!("{} of {size} ranks", unnamed(identity)));
        let identity_text = format!("{identity:016x}");
        let ranks = ranks.to_string();
        (identity, FreezeCommunicator { name, identity: identity_text, size, ranks })
    };
    found.into_iter().map(one).collect()
}

/// The collectives of the window in which ranks did not call the same, by communicator.
fn mixtures(frozen: &Frozen, relations: &Relations) -> BTreeMap<u64, Mixture> {
    let is_told = |one: &&FrozenInstance| {
        one.kinds.second.is_some() && one.is_whole() && relations.is_numbered(frozen, one)
    };
    let mut found: BTreeMap<u64, Mixture> = BTreeMap::new();
    for one in relations.instances.iter().filter(is_told) {
        found.entry(one.key.0).or_default().add(one.key.1, one.size, &one.kinds);
    }
    found
}

fn collective(
    frozen: &Frozen,
    one: &FrozenInstance,
    communicator: Option<usize>,
) -> Option<FreezeCollective> {
    let begins = || one.arrivals.iter().map(|&at| frozen.events[at].begin);
    let spread = begins().max()?.saturating_sub(begins().min()?);
    let passage = one.passage.clone().unwrap_or_default();
    let departures = passage.departures.iter().map(|left| FreezeDeparture {
        event: left.event,
        place: left.place,
        wait_ns: left.wait,
    });
    Some(FreezeCollective {
        communicator: communicator?,
        function: function_name(one.function),
        sequence: one.key.1,
        size: one.size,
        spread_ns: one.is_whole().then(|| u64::try_from(spread).unwrap_or(0)),
        last: one.culprit,
        is_decided: one.is_late.is_some(),
        is_late: one.is_late == Some(true),
        is_mixed: one.kinds.second.is_some(),
        absent: one.absent.iter().copied().collect::<RankSet>().to_string(),
        arrivals: one.arrivals.clone(),
        arrival_waits_ns: passage.arrival_waits,
        departures: departures.collect(),
        elapsed_ns: passage.elapsed,
    })
}

fn call(event: &FrozenEvent, communicator: Option<usize>, wait_ns: Option<u64>) -> FreezeEvent {
    let is_message = event.kind.is_some() && !event.is_collective();
    FreezeEvent {
        rank: event.rank,
        thread: event.thread,
        function: function_name(event.function),
        kind: kind_word(event.kind).to_owned(),
        communicator,
        sequence: (event.sequence > 0).then_some(event.sequence),
        peer: u32::try_from(event.peer).ok(),
        tag: is_message.then_some(event.tag),
        begin_ns: event.begin,
        end_ns: event.end(),
        is_open: event.is_open,
        wait_ns,
    }
}

/// What is said of ranks whose calls are not known, and what to do.
fn not_recorded(ranks: &str) -> String {
    let (whose, whom) = (agreeing(ranks, "its", "their"), agreeing(ranks, "it", "them"));
    let ranks = crate::ranks_text(ranks);
    format!("{ranks} did not record {whose} calls at that moment; {RECORD} has {whom} do so")
}

/// What is said of ranks whose collectives have no number.
fn not_counted(ranks: &str) -> String {
    let were = agreeing(ranks, "was", "were");
    let ranks = crate::ranks_text(ranks);
    format!("{ranks} {were} not counted for a time: which rank was late is unknown")
}

#[cfg(test)]
pub(crate) mod tests {
    use sapwood_profile::Function;
    use sapwood_trace::{EventKind, FrozenRank, FrozenRing, FrozenSeat};

    use super::*;
    use crate::record::Death;
    use crate::why::RankEnd;

    const SECOND: u64 = 1_000_000_000;

    /// Four ranks: three reductions to which rank 1 comes last, then one without it.
    pub(crate) fn frozen() -> Frozen {
        let mut frozen = Frozen { world_size: 4, ..Frozen::default() };
        frozen.names.insert(7, "MPI_COMM_WORLD".to_owned());
        let function = Function::named("MPI_Allreduce").expect("a function of MPI").id;
        for rank in 0..4 {
            let now = 30_000_000_000;
            let one = FrozenRank { now, is_recording: true, ..FrozenRank::default() };
            frozen.ranks.insert(rank, one);
            frozen.seats.insert((7, rank), FrozenSeat { rank, size: 4, ..FrozenSeat::default() });
            let ring =
                FrozenRing { written: 40, overwritten: 3, oldest: 0, ..FrozenRing::default() };
            frozen.rings.insert((rank, 0), ring);
            let late = if rank == 1 { SECOND / 2 } else { 0 };
            for number in 1..=4_u32 {
                let is_open = number == 4;
                if is_open && rank == 1 {
                    continue;
                }
                let begin = i64::from(number) * 5_000_000_000;
                let begin = begin.saturating_add_unsigned(late) + i64::from(rank) * 1_000;
                let end =
                    if is_open { now } else { i64::from(number) * 5_000_000_000 + 600_000_000 };
                frozen.events.push(FrozenEvent {
                    rank,
                    function,
                    kind: Some(EventKind::Collective),
                    communicator: 7,
                    sequence: number,
                    peer: -1,
                    is_open,
                    begin,
                    span: u64::try_from(end - begin).expect("it ends later"),
                    ..FrozenEvent::default()
                });
            }
        }
        frozen
    }

    pub(crate) fn freeze(frozen: Frozen) -> Freeze {
        Freeze::of(
            frozen,
            &FreezeParts {
                program: "prog",
                elapsed: Duration::from_secs(31),
                reason: FreezeReason::Stuck,
                statement: "rank 1 has not entered MPI_Allreduce number 4",
                last: Duration::from_secs(8),
                missing: &RankSet::new(),
            },
        )
    }

    #[test]
    fn a_freeze_is_as_its_schema_says() {
        for freeze in [freeze(frozen()), freeze(Frozen::default())] {
            let value: serde_json::Value = serde_json::from_str(&freeze.json()).expect("JSON");
            sapwood_schema::assert_fits("freeze-1", &value);
            assert_eq!(serde_json::from_value::<Freeze>(value).expect("as it was written"), freeze);
        }
    }

    #[test]
    fn how_ranks_ended_is_told_above_what_held_them() {
        let mut freeze = freeze(frozen());
        let cause = "signal 9 (killed)".to_owned();
        let death =
            Death { ranks: "1".into(), elapsed_s: 2.0, is_first: true, cause, ..Death::default() };
        freeze.ended = RankEnds::of(&[death], Some(RankEnd::in_order("3", 1.0)));
        freeze.ended.note_found_dead(&RankSet::range(0, 0), freeze.elapsed_s);
        assert_eq!((freeze.ended.deaths.len(), freeze.ended.ends.len()), (3, 3));
        let lines = freeze.summary();
        assert_eq!(lines[2], "rank 1 died first, 2.000 s after the start: signal 9 (killed)");
        assert_eq!(lines[4..6], ["rank 0 has died, and others run", freeze.statement.as_str()]);
        let value: serde_json::Value = serde_json::from_str(&freeze.json()).expect("JSON");
        sapwood_schema::assert_fits("freeze-1", &value);
        assert_eq!(value["ends"].as_array().map(Vec::len), Some(3));
        assert_eq!(serde_json::from_value::<Freeze>(value).expect("as it was written"), freeze);
    }

    #[test]
    fn the_window_begins_before_the_last_return() {
        let freeze = freeze(frozen());
        assert_eq!((freeze.begin_ns, freeze.end_ns), (7_600_000_000, 30_000_000_000));
        let sequences: Vec<u32> = freeze.collectives.iter().map(|one| one.sequence).collect();
        assert_eq!(sequences, [2, 3, 4]);
        let last = freeze.collectives[0].last.expect("all came");
        assert_eq!((freeze.events[last].rank, freeze.events[last].wait_ns), (1, Some(0)));
        assert_eq!(
            (freeze.collectives[2].last, freeze.collectives[2].absent.as_str()),
            (None, "1")
        );
        assert_eq!(freeze.dropped(), 0);
    }

    #[test]
    fn calls_that_do_not_fit_together_are_named_but_not_before_all_ranks_have_come() {
        let broadcast = Function::named("MPI_Bcast").expect("a function of MPI").id;
        let mut all = frozen();
        let others = |event: &&mut FrozenEvent| event.rank == 2 && event.sequence > 2;
        all.events.iter_mut().filter(others).for_each(|event| event.function = broadcast);
        let freeze = freeze(all);
        let [one] = &freeze.mixed[..] else { panic!("{:?}", freeze.mixed) };
        assert_eq!((one.culprit, one.number, one.collectives), (Some(2), 3, 1));
        let lines = freeze.summary();
        let wrong: Vec<_> = lines.iter().filter(|line| line.starts_with("wrong: ")).collect();
        assert_eq!(
            wrong,
            ["wrong: rank 2 called MPI_Bcast where 3 ranks called MPI_Allreduce (number 3 on \
              MPI_COMM_WORLD)"]
        );
        let is_mixed: Vec<bool> = freeze.collectives.iter().map(|one| one.is_mixed).collect();
        assert_eq!(is_mixed, [false, true, true]);
    }

    #[test]
    fn a_call_in_progress_that_does_not_fit_is_named_where_its_number_is_certain() {
        let mut all = frozen();
        let open = |event: &&FrozenEvent| event.is_open && event.rank == 0;
        let call = *all.events.iter().find(open).expect("it waits");
        let function = Function::named("MPI_Bcast").expect("a function of MPI").id;
        all.events.push(FrozenEvent { rank: 1, function, peer: 1, ..call });
        let found = freeze(all.clone());
        let [one] = &found.mixed[..] else { panic!("{:?}", found.mixed) };
        assert_eq!((one.culprit, one.number, one.collectives), (Some(1), 4, 1));
        let lines = found.lines();
        let has = |text: &str| lines.iter().any(|line| line == text);
        assert!(has(&format!("wrong: {}", one.text)), "{lines:?}");
        let waiting = "waiting: rank 0 in MPI_Allreduce number 4 on MPI_COMM_WORLD, for 10.0 s; \
                       rank 1 called another function or root there";
        assert!(has(waiting), "{lines:?}");
        // Without the call before, it may be one of number 3 that has returned since.
        all.events.retain(|event| (event.rank, event.sequence) != (0, 3));
        assert!(freeze(all).mixed.is_empty());
    }

    #[test]
    fn a_collective_that_all_have_left_has_its_waits_around_the_last_arrival() {
        let freeze = freeze(frozen());
        let one = &freeze.collectives[0];
        assert_eq!(one.elapsed_ns, Some(600_000_000));
        let waits = [500_001_000, 499_999_000, 499_998_000, 0].map(Some);
        assert_eq!(one.arrival_waits_ns, waits, "ranks 0, 2, 3 and 1");
        let left =
            |left: &FreezeDeparture| (freeze.events[left.event].rank, left.place, left.wait_ns);
        let left: Vec<_> = one.departures.iter().map(left).collect();
        let at_once = |rank| (rank, Some(0), Some(99_999_000));
        assert_eq!(left, [0, 1, 2, 3].map(at_once));
        let open = &freeze.collectives[2];
        assert_eq!((open.elapsed_ns, open.departures.len()), (None, 0));
        assert!(open.arrival_waits_ns.is_empty());
    }

    #[test]
    fn a_rank_that_gave_another_amount_is_named() {
        let mut all = frozen();
        let bytes =
            |event: &FrozenEvent| if (event.rank, event.sequence) == (2, 3) { 72 } else { 80 };
        all.events.iter_mut().for_each(|event| event.tag = 1 + bytes(event));
        let freeze = freeze(all);
        let [one] = &freeze.amounts[..] else { panic!("{:?}", freeze.amounts) };
        assert_eq!((one.culprit, one.number, one.collectives), (Some(2), 3, 1));
        let said = "wrong: MPI_Allreduce number 3 on MPI_COMM_WORLD: rank 2 gave 72 bytes where 3 \
                    ranks gave 80 bytes";
        assert!(freeze.summary().contains(&said.to_owned()), "{:?}", freeze.summary());
        let value: serde_json::Value = serde_json::from_str(&freeze.json()).expect("JSON");
        sapwood_schema::assert_fits("freeze-1", &value);
    }

    #[test]
    fn of_many_communicators_the_first_few_are_printed() {
        let mut all = frozen();
        for (copy, space) in (20..25).enumerate() {
            let world = all.events.iter().filter(|event| event.communicator == 7).copied();
            let mut events: Vec<FrozenEvent> = world.filter(|event| event.sequence < 3).collect();
            let odd = |event: &&mut FrozenEvent| event.rank == 3 && event.sequence == 2;
            for event in &mut events {
                event.communicator = space;
            }
            events.iter_mut().filter(odd).for_each(|event| event.function += 1 + copy as u32);
            all.events.extend(events);
            for rank in 0..4 {
                all.seats
                    .insert((space, rank), FrozenSeat { rank, size: 4, ..FrozenSeat::default() });
            }
        }
        let freeze = freeze(all);
        assert_eq!(freeze.mixed.len(), 5);
        let lines = freeze.summary();
        let wrong: Vec<_> = lines.iter().filter(|line| line.starts_with("wrong: ")).collect();
        assert_eq!(wrong.len(), 4);
        assert_eq!(wrong[3], "wrong: the same on 2 more communicators, at least");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut all = frozen();
        let ring = all.rings.get_mut(&(2, 0)).expect("it writes");
        (ring.oldest, ring.left_out) = (9_000_000_000, 5);
        all.ranks.get_mut(&3).expect("a rank").is_recording = false;
        assert!(not_recorded("1-2").starts_with("ranks 1-2 did not record their calls at that "));
        assert!(not_counted("2").starts_with("rank 2 was not counted for a time: "));
        assert!(not_counted("2,4").starts_with("ranks 2,4 were not counted for a time: "));
        let freeze = freeze(all);
        assert_eq!(
            freeze.unknown,
            [
                "3 calls overwritten, of which some may be of the window",
                "5 older calls of the window that did not fit into an answer",
                "rank 3 did not record its calls at that moment; 'sapwood mpi control --tracing on' \
                 has it do so",
            ]
        );
        assert_eq!(freeze.processes[2].threads[0].dropped, 3);
    }
}
