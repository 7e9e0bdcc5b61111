//! What a scope has gathered, as `docs/schema/scope-1.json` describes it, and as a table.

use std::time::Duration;

use sapwood_profile::Function;
use sapwood_trace::{
    EventKind, Scope, ScopeBy, ScopeCounter, ScopeFigures, ScopeKey, ScopeReduction,
    ScopeStatistics, ScopeValue,
};
use serde::{Deserialize, Serialize};

use crate::mpi_call::kind_word;
use crate::quantity;
use crate::text::{Grid, Side, cut_in_the_middle, unnamed};

/// The form of the JSON object.
pub const SCOPE_SCHEMA: &str = "sapwood.scope/1";
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
    /// When it was gathered, from the start of the program.
    pub elapsed_s: f64,
    /// Whether it is the last of its scope.
    pub is_last: bool,
    /// `span` or `gap`.
    pub value: String,
    /// `sketch`, `sums`, or `top=K`.
    #[serde(default)]
    pub reduce: String,
    /// Events of each group and thread that figures are of; 0 for all since the record before.
    pub window: u32,
    /// Ranks whose events were read.
    pub ranks: u64,
    /// Of these, those that do not record.
    pub silent_ranks: u64,
    /// Leaves that are not in it.
    pub missing_leaves: u64,
    /// Events that were read.
    pub events_read: u64,
    /// Of these, those that were selected.
    pub events_selected: u64,
    /// Events that were overwritten before they were read.
    pub events_dropped: u64,
    /// Records that were there and not read when this was gathered: they come with the next.
    pub events_waiting: u64,
    /// Calls since the record before of threads that have no ring.
    pub events_without_ring: u64,
    /// The same on communicators for which there was no room.
    pub events_without_space: u64,
    /// Readings of a rank that ended early because its leaf's share of a processor was used up.
    pub throttled: u64,
    /// Readings of a rank that ended because the ranks did not come to where events are to be read.
    pub put_off: u64,
    /// Records that were read at another moment, before they would have been overwritten.
    pub overdue: u64,
    /// Groups that were put together because an answer had no room for them.
    pub groups_folded: u64,
    /// What all leaves together have used of their processors.
    pub cpu_s: f64,
    /// The groups, those with the largest sums first.
    pub groups: Vec<ScopeGroup>,
}

/// One group of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeGroup {
    /// The rank; null where ranks are not told apart.
    pub rank: Option<u32>,
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

impl ScopeRecord {
    /// The record.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a time for people")]
    pub fn of(parts: &ScopeParts<'_>) -> Self {
        let figures = parts.figures;
        let counter = |counter| figures.counter(counter);
        let mut groups: Vec<ScopeGroup> = figures
            .groups
            .iter()
            .map(|(key, one)| group(*key, one, parts.scope, figures))
            .collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.sum_ns));
        Self {
            schema: SCOPE_SCHEMA.to_owned(),
            scope: parts.name.to_owned(),
            elapsed_s: parts.elapsed.as_secs_f64(),
            is_last: parts.is_last,
            value: value_word(parts.scope.value).to_owned(),
            reduce: parts.scope.reduction.to_string(),
            window: parts.scope.window,
            ranks: counter(ScopeCounter::Ranks),
            silent_ranks: counter(ScopeCounter::Silent),
            missing_leaves: parts.missing_leaves,
            events_read: counter(ScopeCounter::Read),
            events_selected: counter(ScopeCounter::Selected),
            events_dropped: counter(ScopeCounter::Dropped),
            events_waiting: counter(ScopeCounter::Waiting),
            events_without_ring: counter(ScopeCounter::WithoutRing),
            events_without_space: counter(ScopeCounter::WithoutSpace),
            throttled: counter(ScopeCounter::Throttled),
            put_off: counter(ScopeCounter::PutOff),
            overdue: counter(ScopeCounter::Overdue),
            groups_folded: counter(ScopeCounter::Folded),
            cpu_s: counter(ScopeCounter::CpuNs) as f64 / 1e9,
            groups,
        }
    }

    /// Lines for people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let whole = |number: u64| quantity::whole(number.into());
        let mut head = format!(
            "scope {} after {:.1} s: {} of {} events, {} ranks",
            self.scope,
            self.elapsed_s,
            whole(self.events_selected),
            whole(self.events_read),
            self.ranks,
        );
        let losses = [
            (self.events_dropped, "events overwritten before they were read"),
            (self.events_waiting, "events not read yet"),
            (self.events_without_ring, "calls of threads that have no ring"),
            (self.events_without_space, "calls on communicators beyond the capacity of a table"),
            (self.put_off, "readings postponed, as no moment occurred that 'when' chooses"),
            (
                self.overdue,
                "events read at moments that 'when' does not choose, to avoid overwriting",
            ),
            (self.throttled, "readings cut short by the limit on processor time"),
            (self.groups_folded, "groups merged for lack of space"),
            (self.silent_ranks, "ranks that do not record"),
            (self.missing_leaves, "leaves that did not answer"),
        ];
        for (count, what) in losses.iter().filter(|(count, _)| *count > 0) {
            head.push_str(&format!("; {} {what}", whole(*count)));
        }
        if self.ranks == 0 {
            head.push_str("; none of the chosen ranks was read");
        } else if self.events_selected == 0 && self.events_read > 0 {
            head.push_str("; the scope selects none of them");
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
            ("rank", is_by(|one| one.rank.is_some())),
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
                one.rank.map(|rank| rank.to_string()),
                one.function.clone(),
                one.communicator.as_ref().map(|name| cut_in_the_middle(name, NAME_MAX)),
                one.kind.clone(),
                one.thread.map(|thread| thread.to_string()),
            ];
            let told = keys.into_iter().zip(columns).filter(|(_, column)| column.1);
            let names = told.map(|(key, _)| key.unwrap_or_else(|| "others".to_owned()));
            let cells = one.figures().into_iter().map(|figure| figure.cell);
            grid.row(names.chain(cells).collect(), false);
        }
        let mut lines = grid.lines();
        if self.groups.len() > ROWS_MAX {
            lines.push(format!("and {} more groups", self.groups.len() - ROWS_MAX));
        }
        lines
    }
}

/// A figure of a group, with the name of its column.
struct ShownFigure {
    name: &'static str,
    cell: String,
}

impl ScopeGroup {
    /// The columns behind those by which groups are told apart.
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

fn group(
    key: ScopeKey,
    one: &ScopeStatistics,
    scope: &Scope,
    figures: &ScopeFigures,
) -> ScopeGroup {
    let by = scope.by;
    let quantile =
        |per_mille| (scope.reduction != ScopeReduction::Sums).then(|| one.quantile(per_mille));
    // What is told apart by nothing is one group, too.
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
        count: one.count,
        sum_ns: one.sum,
        mean_ns: one.mean(),
        min_ns: if one.count == 0 { 0 } else { one.least },
        max_ns: one.most,
        deviation_ns: one.variance().sqrt(),
        median_ns: quantile(500),
        p99_ns: quantile(990),
    }
}

#[cfg(test)]
mod tests {
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
    }
}
