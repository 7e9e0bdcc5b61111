//! What a scope has gathered, as `docs/schema/scope-1.json` describes it, and as a table.

use std::time::Duration;

use sapwood_profile::Function;
use sapwood_trace::{
    EventKind, HopBy, HopCollective, HopKey, HopRole, HopScope, HopSource, Scope, ScopeBy,
    ScopeCounter, ScopeFigures, ScopeKey, ScopeReduction, ScopeStatistics, ScopeValue,
};
use serde::{Deserialize, Serialize};

use crate::mpi_call::kind_word;
use crate::quantity;
use crate::text::{Grid, Side, cut_in_the_middle, unnamed};
use crate::why::DroppedRing;

/// The form of the JSON object.
pub const SCOPE_SCHEMA: &str = "sapwood.scope/1";
/// Sources of events, as JSON has them: the calls of ranks, the hops of a network's streams, and
/// those of a group's operations.
const CALLS: &str = "calls";
const HOPS: &str = HopSource::Network.word();
const GROUP: &str = HopSource::Group.word();
/// Groups that a table shows, at most.
const ROWS_MAX: usize = 16;
/// Characters of a name, at most.
const NAME_MAX: usize = 28;

/// One gathering of one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeRecord {
    /// The form of this object.
    pub schema: String,
    /// The scope's name.
    pub scope: String,
    /// `calls` of ranks, `hops` of the streams of a network, or those of the operations of a
    /// `group`: of hops an event is one time of one hop, a rank a process of the tree or the first
    /// virtual node of a member, and the program its being followed.
    #[serde(default)]
    pub source: String,
    /// When it was gathered, from the start of the program.
    pub elapsed_s: f64,
    /// Whether it is the last of its scope.
    pub is_last: bool,
    /// `span` or `gap`; of hops `up`, `down`, `two-way`, `wait` or `inside`.
    pub value: String,
    /// `sketch`, `sums`, or `top=K`.
    #[serde(default)]
    pub reduce: String,
    /// Events of each group and thread that figures are of; 0 for all since the record before.
    pub window: u32,
    /// Ranks whose events were read.
    pub ranks: u64,
    /// Of these, those that do not record: of hops, those without room for a further session.
    pub silent_ranks: u64,
    /// Leaves that are not in it; of a group, members that did not answer.
    pub missing_leaves: u64,
    /// Of hops, streams that the scope names and of which no event has come yet.
    #[serde(default)]
    pub unseen_streams: Vec<u32>,
    /// Events that were read.
    pub events_read: u64,
    /// Of these, those that were selected.
    pub events_selected: u64,
    /// Events that were overwritten before they were read.
    pub events_dropped: u64,
    /// Of calls, the rings that have lost most of these events, the first one most.
    #[serde(default)]
    pub dropped_rings: Vec<DroppedRing>,
    /// Records that were there and not read when this was gathered: they come with the next.
    pub events_waiting: u64,
    /// Calls since the record before of threads that have no ring.
    pub events_without_ring: u64,
    /// The same on communicators for which there was no room.
    pub events_without_space: u64,
    /// Records that their rank cannot have written.
    #[serde(default)]
    pub events_damaged: u64,
    /// Readings of a rank that ended early because its leaf's share of a processor was used up.
    pub throttled: u64,
    /// Readings of a rank that ended because the ranks did not come to where events are to be read.
    pub put_off: u64,
    /// Records that were read at another moment, before they would have been overwritten.
    pub overdue: u64,
    /// Groups that were put together because an answer had no room for them.
    pub groups_folded: u64,
    /// Events that are not among the last ones of their group and thread, because windows had no
    /// room for all of these.
    #[serde(default)]
    pub events_without_window: u64,
    /// What all leaves together have used of their processors.
    pub cpu_s: f64,
    /// The groups, those with the largest sums first.
    pub groups: Vec<ScopeGroup>,
}

/// One group of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeGroup {
    /// The rank; null where ranks are not distinguished. Of a link, that of its child.
    pub rank: Option<u32>,
    /// Of hops distinguished by link, the rank of the parent; else null.
    #[serde(default)]
    pub parent: Option<u32>,
    /// Of hops, the stream; null where streams are not distinguished.
    #[serde(default)]
    pub stream: Option<u32>,
    /// Of a group, what the operations are; null where these are not distinguished.
    #[serde(default)]
    pub collective: Option<String>,
    /// Of a group, the virtual node at the root; null likewise.
    #[serde(default)]
    pub root: Option<u32>,
    /// The function; null likewise.
    pub function: Option<String>,
    /// The communicator; null likewise.
    pub communicator: Option<String>,
    /// What all processes of the communicator agree on, in hexadecimal; null likewise.
    pub communicator_identity: Option<String>,
    /// The kind; null likewise.
    pub kind: Option<String>,
    /// The number of the thread in its rank; null likewise.
    #[serde(default)]
    pub thread: Option<u8>,
    /// Whether it is all that had no room, or that is not among those with the largest sums.
    pub is_others: bool,
    /// Events.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// The most.
    pub max_ns: u64,
    /// The standard deviation of the population.
    pub deviation_ns: f64,
    /// The median, within 1/32; null where only sums were made.
    pub median_ns: Option<u64>,
    /// What 99 % stay below, within 1/32; null likewise.
    pub p99_ns: Option<u64>,
}

/// What a record is made of.
#[derive(Clone, Copy, Debug)]
pub struct ScopeParts<'a> {
    /// The scope's name.
    pub name: &'a str,
    /// The scope.
    pub scope: &'a Scope,
    /// The time of the program.
    pub elapsed: Duration,
    /// Whether it is the last one.
    pub is_last: bool,
    /// What was gathered.
    pub figures: &'a ScopeFigures,
    /// Leaves that are not in it.
    pub missing_leaves: u64,
}

/// What a record of a scope over hops is made of.
#[derive(Clone, Copy, Debug)]
pub struct HopScopeParts<'a> {
    /// The scope's name.
    pub name: &'a str,
    /// The scope.
    pub scope: &'a HopScope,
    /// For how long the network or group was followed.
    pub elapsed: Duration,
    /// Whether it is the last one.
    pub is_last: bool,
    /// What was gathered.
    pub figures: &'a ScopeFigures,
    /// Streams that the scope names and of which no event has come yet.
    pub unseen_streams: &'a [u32],
    /// Back-ends, or members of a group, that have not answered.
    pub missing_leaves: u64,
}

impl ScopeRecord {
    /// The record.
    #[must_use]
    pub fn of(parts: &ScopeParts<'_>) -> Self {
        let figures = parts.figures;
        let group = |(key, one): (&ScopeKey, _)| group(*key, one, parts.scope, figures);
        Self {
            scope: parts.name.to_owned(),
            source: CALLS.to_owned(),
            elapsed_s: parts.elapsed.as_secs_f64(),
            is_last: parts.is_last,
            value: value_word(parts.scope.value).to_owned(),
            reduce: parts.scope.reduction.to_string(),
            window: parts.scope.window,
            missing_leaves: parts.missing_leaves,
            groups: largest_first(figures.groups.iter().map(group).collect()),
            ..Self::of_counters(figures)
        }
    }

    /// The record of a scope over hops.
    #[must_use]
    pub fn of_hops(parts: &HopScopeParts<'_>) -> Self {
        let figures = parts.figures;
        let group = |(key, one): (&ScopeKey, _)| group_of_hops(*key, one, parts.scope);
        Self {
            scope: parts.name.to_owned(),
            source: parts.scope.source.word().to_owned(),
            elapsed_s: parts.elapsed.as_secs_f64(),
            is_last: parts.is_last,
            value: parts.scope.value.word().to_owned(),
            reduce: parts.scope.reduction.to_string(),
            window: parts.scope.window,
            missing_leaves: parts.missing_leaves,
            unseen_streams: parts.unseen_streams.to_vec(),
            groups: largest_first(figures.groups.iter().map(group).collect()),
            ..Self::of_counters(figures)
        }
    }

    /// What is counted beside the groups, whatever the source.
    #[allow(clippy::cast_precision_loss, reason = "a time for people")]
    fn of_counters(figures: &ScopeFigures) -> Self {
        let counter = |counter| figures.counter(counter);
        Self {
            schema: SCOPE_SCHEMA.to_owned(),
            ranks: counter(ScopeCounter::Ranks),
            silent_ranks: counter(ScopeCounter::Silent),
            events_read: counter(ScopeCounter::Read),
            events_selected: counter(ScopeCounter::Selected),
            events_dropped: counter(ScopeCounter::Dropped),
            dropped_rings: DroppedRing::of(&figures.dropped, usize::MAX),
            events_waiting: counter(ScopeCounter::Waiting),
            events_without_ring: counter(ScopeCounter::WithoutRing),
            events_without_space: counter(ScopeCounter::WithoutSpace),
            events_damaged: counter(ScopeCounter::Damaged),
            throttled: counter(ScopeCounter::Throttled),
            put_off: counter(ScopeCounter::PutOff),
            overdue: counter(ScopeCounter::Overdue),
            groups_folded: counter(ScopeCounter::Folded),
            events_without_window: counter(ScopeCounter::WithoutWindow),
            cpu_s: counter(ScopeCounter::CpuNs) as f64 / 1e9,
            ..Self::default()
        }
    }

    fn words(&self) -> SourceWords {
        match self.source.as_str() {
            HOPS => HOP_WORDS,
            GROUP => GROUP_WORDS,
            _ => CALL_WORDS,
        }
    }

    /// Lines for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let words = self.words();
        let mut head = format!(
            "scope {} after {:.1} s: {} of {}, {}",
            self.scope,
            self.elapsed_s,
            quantity::whole(self.events_selected.into()),
            quantity::counted(self.events_read.into(), "events"),
            quantity::counted(self.ranks.into(), words.processes),
        );
        let overwritten = format!("overwritten unread{}", DroppedRing::told(&self.dropped_rings));
        let losses = [
            (self.events_dropped, "events", overwritten.as_str()),
            (self.events_waiting, "events", "not read yet"),
            (self.events_without_ring, "calls", "of threads that have no ring"),
            (self.events_without_space, "calls", "on communicators beyond the capacity of a table"),
            (self.events_damaged, "damaged records", "left out"),
            (self.put_off, "readings", "postponed, as no moment occurred that 'when' chooses"),
            (
                self.overdue,
                "events",
                "read at moments that 'when' does not choose, to avoid overwriting",
            ),
            (self.throttled, "readings", "cut short by the limit on processor time"),
            (self.groups_folded, "groups", "merged for lack of space"),
            (self.events_without_window, "events", "for which windows had no room"),
            (self.silent_ranks, words.processes, words.silent),
            (self.missing_leaves, words.leaves, words.missing),
        ];
        for (count, things, what) in losses.into_iter().filter(|(count, ..)| *count > 0) {
            head.push_str(&format!("; {} {what}", quantity::counted(count.into(), things)));
        }
        if self.ranks == 0 {
            head.push_str(words.none);
        } else if self.events_selected == 0 && self.events_read > 0 {
            head.push_str("; the scope selects none of them");
        }
        if !self.unseen_streams.is_empty() {
            head.push_str(&unseen_text(&self.unseen_streams));
        }
        let mut lines = vec![head];
        if !self.groups.is_empty() {
            lines.extend(self.table());
        }
        lines
    }

    fn table(&self) -> Vec<String> {
        let is_by = |has: fn(&ScopeGroup) -> bool| self.groups.iter().any(has);
        let columns = [
            ("stream", is_by(|one| one.stream.is_some())),
            ("collective", is_by(|one| one.collective.is_some())),
            ("root", is_by(|one| one.root.is_some())),
            ("parent", is_by(|one| one.parent.is_some())),
            (self.words().rank, is_by(|one| one.rank.is_some())),
            ("function", is_by(|one| one.function.is_some())),
            ("communicator", is_by(|one| one.communicator.is_some())),
            ("kind", is_by(|one| one.kind.is_some())),
            ("thread", is_by(|one| one.thread.is_some())),
        ];
        let mut grid = Grid::new(0);
        for (name, _) in columns.into_iter().filter(|column| column.1) {
            grid.column(name, Side::Left);
        }
        // All groups of a record have the same figures.
        for figure in self.groups.iter().take(1).flat_map(ScopeGroup::figures) {
            grid.column(figure.name, Side::Right);
        }
        for one in self.groups.iter().take(ROWS_MAX) {
            let keys = [
                one.stream.map(|stream| stream.to_string()),
                one.collective.clone(),
                one.root.map(|root| root.to_string()),
                one.parent.map(|parent| parent.to_string()),
                one.rank.map(|rank| rank.to_string()),
                one.function.clone(),
                one.communicator.as_ref().map(|name| cut_in_the_middle(name, NAME_MAX)),
                one.kind.clone(),
                one.thread.map(|thread| thread.to_string()),
            ];
            let told = keys.into_iter().zip(columns).filter(|(_, column)| column.1);
            let names = told.map(|(key, _)| key.unwrap_or_else(|| "others".to_owned()));
            let cells = one.figures().into_iter().map(|figure| figure.cell);
            grid.row(names.chain(cells).collect());
        }
        let mut lines = grid.lines();
        if self.groups.len() > ROWS_MAX {
            let more = (self.groups.len() - ROWS_MAX) as u128;
            lines.push(format!("and {}", quantity::counted(more, "more groups")));
        }
        lines
    }
}

/// What is said of streams of which no event has come.
fn unseen_text(streams: &[u32]) -> String {
    let numbers: Vec<String> = streams.iter().map(u32::to_string).collect();
    let (nouns, them) = if streams.len() == 1 { ("stream", "it") } else { ("streams", "them") };
    format!(
        "; no event of {nouns} {} has come: there is no such stream, or nothing passes through \
         {them}; 'sapwood trace tree' prints those with traffic",
        numbers.join(",")
    )
}

/// What people are told of a source.
struct SourceWords {
    processes: &'static str,
    /// The name of the column of ranks.
    rank: &'static str,
    silent: &'static str,
    /// What may be missing.
    leaves: &'static str,
    missing: &'static str,
    /// Where no process was read.
    none: &'static str,
}

const CALL_WORDS: SourceWords = SourceWords {
    processes: "ranks",
    rank: "rank",
    silent: "not recording",
    leaves: "leaves",
    missing: "that did not answer",
    none: "; none of the chosen ranks was read",
};

const HOP_WORDS: SourceWords = SourceWords {
    processes: "processes",
    rank: "process",
    silent: "without room for a further session",
    leaves: "back-ends",
    missing: "that did not answer",
    none: "; no process was read",
};

const GROUP_WORDS: SourceWords = SourceWords {
    processes: "members",
    rank: "member",
    silent: "not recording",
    leaves: "members",
    missing: "that did not answer",
    none: "; no member was read",
};

/// A figure of a group, with the name of its column.
struct ShownFigure {
    name: &'static str,
    cell: String,
}

impl ScopeGroup {
    /// The columns behind those by which groups are distinguished.
    #[allow(clippy::cast_precision_loss, reason = "times for people")]
    fn figures(&self) -> Vec<ShownFigure> {
        let time = |ns: u64| quantity::time(ns as f64);
        let all = [
            ("events", Some(quantity::whole(self.count.into()))),
            ("sum", Some(time(self.sum_ns))),
            ("mean", Some(quantity::time(self.mean_ns))),
            ("min", Some(time(self.min_ns))),
            ("median", self.median_ns.map(time)),
            ("p99", self.p99_ns.map(time)),
            ("max", Some(time(self.max_ns))),
            ("deviation", Some(quantity::time(self.deviation_ns))),
        ];
        let shown = |(name, cell): (&'static str, Option<String>)| {
            cell.map(|cell| ShownFigure { name, cell })
        };
        all.into_iter().filter_map(shown).collect()
    }
}

const fn value_word(value: ScopeValue) -> &'static str {
    match value {
        ScopeValue::Span => "span",
        ScopeValue::Gap => "gap",
    }
}

fn largest_first(mut groups: Vec<ScopeGroup>) -> Vec<ScopeGroup> {
    groups.sort_by_key(|group| std::cmp::Reverse(group.sum_ns));
    groups
}

/// The figures of a group, distinguished by nothing.
fn statistics(one: &ScopeStatistics, reduction: ScopeReduction) -> ScopeGroup {
    let quantile = |per_mille| (reduction != ScopeReduction::Sums).then(|| one.quantile(per_mille));
    ScopeGroup {
        count: one.count,
        sum_ns: one.sum,
        mean_ns: one.mean(),
        min_ns: if one.count == 0 { 0 } else { one.least },
        max_ns: one.most,
        deviation_ns: one.variance().sqrt(),
        median_ns: quantile(500),
        p99_ns: quantile(990),
        ..ScopeGroup::default()
    }
}

fn group(
    key: ScopeKey,
    one: &ScopeStatistics,
    scope: &Scope,
    figures: &ScopeFigures,
) -> ScopeGroup {
    let by = scope.by;
    // What is distinguished by nothing is one group, too.
    let is_others = by != ScopeBy::default() && key == ScopeKey::OTHERS;
    let told = |is_told: bool| is_told && !is_others;
    let name = || match figures.names.get(&key.communicator) {
        Some(name) => crate::printable(name),
        None => unnamed(key.communicator),
    };
    ScopeGroup {
        rank: told(by.rank).then_some(key.rank),
        function: told(by.function).then(|| {
            Function::of(key.function).map_or_else(String::new, |one| one.name.to_owned())
        }),
        communicator: told(by.communicator).then(name),
        communicator_identity: told(by.communicator).then(|| format!("{:016x}", key.communicator)),
        kind: told(by.kind).then(|| kind_word(EventKind::from_code(key.kind)).to_owned()),
        thread: told(by.thread).then_some(key.thread),
        is_others,
        ..statistics(one, scope.reduction)
    }
}

fn group_of_hops(key: ScopeKey, one: &ScopeStatistics, scope: &HopScope) -> ScopeGroup {
    let figures = statistics(one, scope.reduction);
    if scope.by != HopBy::default() && key == ScopeKey::OTHERS {
        return ScopeGroup { is_others: true, ..figures };
    }
    let HopKey { process, parent, stream, role, collective, root } = HopKey::of(key, scope.by);
    let kind = role.map(HopRole::word).map(str::to_owned);
    let collective = collective.map(HopCollective::word).map(str::to_owned);
    ScopeGroup { rank: process, parent, stream, kind, collective, root, ..figures }
}

#[cfg(test)]
mod tests {
    use sapwood_trace::RankRing;

    use super::*;

    fn figures() -> ScopeFigures {
        let mut figures = ScopeFigures::default();
        let function = Function::named("MPI_Allreduce").expect("a function of MPI").id;
        for (rank, ns) in [(0, 1_000_000), (1, 3_000_000)] {
            let key = ScopeKey { rank, function, communicator: 7, kind: 0, thread: 0 };
            let one = figures.groups.entry(key).or_default();
            (0..10).for_each(|_| one.add(ns));
        }
        figures.names.insert(7, "MPI_COMM_WORLD".into());
        figures.count(ScopeCounter::Read, 50);
        figures.count(ScopeCounter::Selected, 20);
        figures.count(ScopeCounter::Ranks, 2);
        figures
    }

    fn record(figures: &ScopeFigures, by: ScopeBy) -> ScopeRecord {
        record_of(figures, &Scope { by, ..Scope::default() })
    }

    fn record_of(figures: &ScopeFigures, scope: &Scope) -> ScopeRecord {
        ScopeRecord::of(&ScopeParts {
            name: "calls",
            scope,
            elapsed: Duration::from_secs(2),
            is_last: false,
            figures,
            missing_leaves: 0,
        })
    }

    const BY: ScopeBy =
        ScopeBy { rank: true, function: true, communicator: true, kind: false, thread: false };

    #[test]
    fn a_record_is_as_its_schema_says() {
        let mut folded = figures();
        folded.bound(0);
        for one in
            [record(&figures(), BY), record(&folded, BY), record(&figures(), ScopeBy::default())]
        {
            let value = serde_json::to_value(&one).expect("numbers and text");
            sapwood_schema::assert_fits("scope-1", &value);
            assert_eq!(serde_json::from_value::<ScopeRecord>(value).expect("as written"), one);
        }
    }

    #[test]
    fn the_rings_that_have_lost_most_events_are_named() {
        let mut figures = figures();
        for (rank, events) in [(0, 5), (1, 2_000), (2, 7)] {
            figures.count_dropped(RankRing { rank, thread: 1 }, events);
        }
        let few = record(&figures, BY);
        let told = "scope calls after 2.0 s: 20 of 50 events, 2 ranks; 2,012 events overwritten \
                    unread: 2,000 of rank 1 (thread 1), 7 of rank 2 (thread 1), 5 of rank 0 \
                    (thread 1)";
        assert_eq!(few.lines()[0], told);
        figures.count_dropped(RankRing { rank: 3, thread: 0 }, 1);
        let more = record(&figures, BY);
        let told = format!("{}, the rest of other rings", told.replace("2,012", "2,013"));
        assert_eq!(more.lines()[0], told);
        let first = DroppedRing { rank: 1, thread: 1, events: 2_000 };
        assert_eq!((more.dropped_rings.len(), &more.dropped_rings[0]), (4, &first));
        let value = serde_json::to_value(&more).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        assert_eq!(serde_json::from_value::<ScopeRecord>(value).expect("as written"), more);
    }

    #[test]
    fn threads_are_told_apart_where_that_is_asked_for() {
        let mut figures = figures();
        let (key, one) = figures.groups.last_key_value().expect("two groups");
        let beside = (ScopeKey { thread: 3, ..*key }, one.clone());
        figures.groups.extend([beside]);
        let by = ScopeBy { rank: true, thread: true, ..ScopeBy::default() };
        let told = record(&figures, by);
        let threads: Vec<_> = told.groups.iter().map(|one| (one.rank, one.thread)).collect();
        let wanted = [(1, 0), (1, 3), (0, 0)].map(|(rank, thread)| (Some(rank), Some(thread)));
        assert_eq!(threads, wanted);
        assert!(told.lines()[1].starts_with("rank  thread  events"), "{:?}", told.lines());
        let value = serde_json::to_value(&told).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        assert!(record(&figures, BY).groups.iter().all(|one| one.thread.is_none()));
    }

    #[test]
    fn sums_have_no_median_and_no_column_of_it() {
        let scope = Scope { by: BY, reduction: ScopeReduction::Sums, ..Scope::default() };
        let mut figures = figures();
        for (key, one) in std::mem::take(&mut figures.groups) {
            (0..one.count).for_each(|_| figures.add(key, one.most, scope.reduction));
        }
        let record = record_of(&figures, &scope);
        assert_eq!(record.reduce, "sums");
        let value = serde_json::to_value(&record).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        let first = &value["groups"][0];
        assert!(first["median_ns"].is_null() && first["p99_ns"].is_null(), "{first}");
        assert_eq!(serde_json::from_value::<ScopeRecord>(value).expect("as written"), record);
        assert_eq!(
            record.lines()[1..],
            [
                "rank  function       communicator    events      sum     mean      min      max  deviation",
                "1     MPI_Allreduce  MPI_COMM_WORLD      10  30.0 ms  3.00 ms  3.00 ms  3.00 ms       0 ns",
                "0     MPI_Allreduce  MPI_COMM_WORLD      10  10.0 ms  1.00 ms  1.00 ms  1.00 ms       0 ns",
            ]
        );
    }

    #[test]
    fn what_is_not_among_the_largest_is_one_row_and_no_lack_of_space() {
        let reduction = ScopeReduction::Top { groups: 1 };
        let scope = Scope { by: BY, reduction, ..Scope::default() };
        let mut figures = figures();
        figures.keep_largest(1);
        let record = record_of(&figures, &scope);
        assert_eq!((record.reduce.as_str(), record.groups_folded), ("top=1", 0));
        let told: Vec<_> =
            record.groups.iter().map(|one| (one.rank, one.is_others, one.sum_ns)).collect();
        assert_eq!(told, [(Some(1), false, 30_000_000), (None, true, 10_000_000)]);
        assert!(record.groups.iter().all(|one| one.median_ns.is_some()));
        let value = serde_json::to_value(&record).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        let lines = record.lines();
        assert_eq!(lines[0], "scope calls after 2.0 s: 20 of 50 events, 2 ranks");
        assert!(lines[3].starts_with("others  others         others "), "{lines:?}");
    }

    #[test]
    fn hops_are_told_by_link_stream_and_kind() {
        let by = HopBy { edge: true, stream: true, kind: true, ..HopBy::default() };
        let reduction = ScopeReduction::Top { groups: 2 };
        let scope = HopScope { by, reduction, ..HopScope::default() };
        let mut figures = ScopeFigures::default();
        for (process, ns) in [(1, 5_000), (2, 3_000), (3, 1_000)] {
            let role = Some(if process == 1 { HopRole::Communication } else { HopRole::BackEnd });
            let (process, parent, stream) = (Some(process), Some(0), Some(4));
            let key = HopKey { process, parent, stream, role, ..HopKey::default() };
            figures.add(key.into(), ns, reduction);
        }
        figures.keep_largest(2);
        figures.count(ScopeCounter::Read, 9);
        figures.count(ScopeCounter::Selected, 3);
        figures.count(ScopeCounter::Ranks, 4);
        let record = ScopeRecord::of_hops(&HopScopeParts {
            name: "waits",
            scope: &scope,
            elapsed: Duration::from_secs(2),
            is_last: true,
            figures: &figures,
            unseen_streams: &[9, 999],
            missing_leaves: 1,
        });
        let told: Vec<_> = record.groups.iter().map(|one| (one.parent, one.rank)).collect();
        assert_eq!(told, [(Some(0), Some(1)), (Some(0), Some(2)), (None, None)]);
        assert_eq!((record.source.as_str(), record.value.as_str()), ("hops", "wait"));
        assert_eq!(record.groups[1].kind.as_deref(), Some("back-end"));
        assert_eq!(record.groups[1].stream, Some(4));
        assert!(record.groups[2].is_others);
        let value = serde_json::to_value(&record).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        assert_eq!(serde_json::from_value::<ScopeRecord>(value).expect("as written"), record);
        let lines = record.lines();
        assert_eq!(
            lines[0],
            "scope waits after 2.0 s: 3 of 9 events, 4 processes; 1 back-end that did not answer; no \
             event of streams 9,999 has come: there is no such stream, or nothing passes through \
             them; 'sapwood trace tree' prints those with traffic"
        );
        assert!(lines[1].starts_with("stream  parent  process  kind "), "{lines:?}");
        assert!(
            lines[2].starts_with("4       0       1        communication-process "),
            "{lines:?}"
        );
    }

    #[test]
    fn hops_of_a_group_are_told_by_collective_and_root() {
        let by = HopBy { edge: true, collective: true, root: true, ..HopBy::default() };
        let scope = HopScope { source: HopSource::Group, by, ..HopScope::default() };
        let mut figures = ScopeFigures::default();
        for (collective, ns) in [(HopCollective::Reduction, 5_000), (HopCollective::Transfer, 10)] {
            let (process, parent, root) = (Some(3), Some(1), Some(0));
            let collective = Some(collective);
            let key = HopKey { process, parent, collective, root, ..HopKey::default() };
            figures.add(key.into(), ns, scope.reduction);
        }
        figures.count(ScopeCounter::Read, 2);
        figures.count(ScopeCounter::Selected, 2);
        figures.count(ScopeCounter::Ranks, 4);
        figures.count(ScopeCounter::Dropped, 7);
        let record = ScopeRecord::of_hops(&HopScopeParts {
            name: "waits",
            scope: &scope,
            elapsed: Duration::from_secs(2),
            is_last: true,
            figures: &figures,
            unseen_streams: &[],
            missing_leaves: 1,
        });
        let told: Vec<_> = record
            .groups
            .iter()
            .map(|one| (one.collective.as_deref(), one.root, one.parent, one.rank, one.stream))
            .collect();
        let wanted = |word| (Some(word), Some(0), Some(1), Some(3), None);
        assert_eq!(told, [wanted("reduction"), wanted("transfer")]);
        assert_eq!(record.source, "group");
        let value = serde_json::to_value(&record).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
        assert_eq!(serde_json::from_value::<ScopeRecord>(value).expect("as written"), record);
        let lines = record.lines();
        assert_eq!(
            lines[0],
            "scope waits after 2.0 s: 2 of 2 events, 4 members; 7 events overwritten unread; 1 \
             member that did not answer"
        );
        assert!(lines[1].starts_with("collective  root  parent  member  events "), "{lines:?}");
    }

    #[test]
    fn a_record_is_told_as_a_table() {
        assert_eq!(
            record(&figures(), BY).lines(),
            [
                "scope calls after 2.0 s: 20 of 50 events, 2 ranks",
                "rank  function       communicator    events      sum     mean      min   median      p99      max  deviation",
                "1     MPI_Allreduce  MPI_COMM_WORLD      10  30.0 ms  3.00 ms  3.00 ms  3.00 ms  3.00 ms  3.00 ms       0 ns",
                "0     MPI_Allreduce  MPI_COMM_WORLD      10  10.0 ms  1.00 ms  1.00 ms  1.00 ms  1.00 ms  1.00 ms       0 ns",
            ]
        );
        let mut folded = figures();
        folded.bound(0);
        let lines = record(&folded, BY).lines();
        assert!(lines[0].ends_with("; 2 groups merged for lack of space"), "{lines:?}");
        let mut cut = figures();
        cut.count(ScopeCounter::WithoutWindow, 3);
        let cut = record(&cut, BY);
        assert!(cut.lines()[0].ends_with("; 3 events for which windows had no room"), "{cut:?}");
        let value = serde_json::to_value(&cut).expect("numbers and text");
        sapwood_schema::assert_fits("scope-1", &value);
    }
}
