//! What the view shows, as sheets of cells: events, calls in progress, classes, ranks. Those of
//! waits are in `waits`.

use std::cmp::Ordering;

use sapwood_profile::SizeClass;
use sapwood_report::analysis::{SCORE_MARKED, score_text};
use sapwood_report::record::{Event, Metric, RoundRecord};
use sapwood_report::{printable, quantity};

use super::waits;

/// One sheet of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Events,
    Calls,
    Ranks,
    Classes,
    WaitRanks,
    WaitCalls,
}

pub(crate) const KINDS: [Kind; 6] =
    [Kind::Events, Kind::Calls, Kind::Ranks, Kind::Classes, Kind::WaitRanks, Kind::WaitCalls];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Calls => "calls in progress",
            Self::Ranks => "ranks",
            Self::Classes => "classes",
            Self::WaitRanks => "waits by rank",
            Self::WaitCalls => "waits by call",
        }
    }

    /// What stands in the place of lines where there are none.
    pub(crate) fn nothing(self) -> &'static str {
        match self {
            Self::Events => "no event has been counted yet",
            Self::Calls => "no rank is in an MPI call or a region",
            Self::Ranks => "no rank has died, is missing or deviates from the others",
            Self::Classes => "the ranks are not classified; see --classes",
            Self::WaitRanks | Self::WaitCalls => "no waits were recorded yet; --waits records them",
        }
    }

    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Events => {
                &["event", "calls", "calls/s", "mean", "min@rank", "max@rank", "imbalance", "ranks"]
            }
            Self::Calls => &["inside", "since", "ranks", "communicator", "region", "process"],
            Self::Ranks => &["ranks", "score", "what", "value", "median"],
            Self::Classes => &["class", "ranks", "factor", "members", "chosen events"],
            Self::WaitRanks => &["rank", "last", "share", "made wait", "of all", "waited"],
            Self::WaitCalls => {
                &["function", "communicator", "lost", "of time", "collectives", "last most"]
            }
        }
    }

    /// The column by which it is sorted at first.
    pub(crate) fn order(self) -> usize {
        match self {
            Self::Events => 3,
            Self::WaitRanks | Self::WaitCalls => 2,
            Self::Calls | Self::Ranks | Self::Classes => 1,
        }
    }

    pub(crate) fn lines(self, record: &RoundRecord, before: Option<&RoundRecord>) -> Vec<Line> {
        match self {
            Self::Events => events(record, before),
            Self::Calls => calls(record),
            Self::Ranks => ranks(record),
            Self::Classes => classes(record),
            Self::WaitRanks => waits::by_rank(record),
            Self::WaitCalls => waits::by_call(record),
        }
    }
}

/// A cell, and what its column is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Number(f64, String),
}

impl Cell {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(_, text) => text,
        }
    }

    /// The order of a column: text by its letters, numbers from the largest.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one, _), Self::Number(two, _)) => two.total_cmp(one),
            (one, two) => one.text().cmp(two.text()),
        }
    }
}

/// A line of a sheet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) cells: Vec<Cell>,
    /// Whether it is worth a look.
    pub(crate) is_marked: bool,
}

/// From this imbalance on an event is marked.
const IMBALANCE_MARKED: f64 = 0.5;
/// The function that is counted at its entry, since the table is closed before it returns.
const UNTIMED: &str = "MPI_Finalize";

pub(super) fn text(text: &str) -> Cell {
    Cell::Text(if text.is_empty() { "-".to_owned() } else { printable(text) })
}

fn named(event: &Event) -> Cell {
    let size = event.communicator_size_class.and_then(SizeClass::from_code);
    let size = size.map(|class| format!(" ({class})"));
    Cell::Text(printable(&event.name) + size.as_deref().unwrap_or_default())
}

fn missing() -> Cell {
    Cell::Number(f64::NEG_INFINITY, "-".to_owned())
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
pub(super) fn number(value: u128) -> Cell {
    Cell::Number(value as f64, quantity::whole(value))
}

#[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
fn at_rank(ns: u64, rank: u32) -> Cell {
    Cell::Number(ns as f64, format!("{}@{rank}", quantity::time(ns as f64)))
}

fn time_cells(time: &Metric, imbalance: Option<f64>) -> [Cell; 4] {
    [
        Cell::Number(time.mean, quantity::time(time.mean)),
        at_rank(time.min, time.min_rank),
        at_rank(time.max, time.max_rank),
        imbalance.map_or_else(missing, |value| Cell::Number(value, quantity::percent(imbalance))),
    ]
}

fn events(record: &RoundRecord, before: Option<&RoundRecord>) -> Vec<Line> {
    let line = |event: &Event| {
        let same = |other: &&Event| {
            (&other.name, other.communicator_size_class)
                == (&event.name, event.communicator_size_class)
        };
        let rate = before.and_then(|before| {
            let seconds = record.elapsed_s - before.elapsed_s;
            let calls = before.events.iter().find(same).map_or(0, |other| other.calls.sum);
            let calls = event.calls.sum.saturating_sub(calls);
            #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
            (seconds > 0.0).then(|| calls as f64 / seconds)
        });
        let rate = rate.map_or_else(missing, |rate| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is not negative"
            )]
            Cell::Number(rate, quantity::whole(rate.round() as u128))
        });
        let is_timed = event.name != UNTIMED;
        let times = if is_timed {
            time_cells(&event.time_ns, event.imbalance)
        } else {
            std::array::from_fn(|_| missing())
        };
        let mut cells = vec![named(event), number(event.calls.sum), rate];
        cells.extend(times);
        cells.push(number(event.ranks.into()));
        let is_marked = is_timed && event.imbalance.is_some_and(|value| value >= IMBALANCE_MARKED);
        Line { cells, is_marked }
    };
    record.events.iter().map(line).collect()
}

fn calls(record: &RoundRecord) -> Vec<Line> {
    let line = |activity: &sapwood_report::record::Activity| Line {
        cells: vec![
            text(activity.function.as_deref().unwrap_or("outside of MPI")),
            Cell::Number(
                activity.longest_s,
                format!("{}@{}", quantity::time(activity.longest_s * 1e9), activity.longest_rank),
            ),
            text(&activity.ranks),
            text(&activity.communicator),
            text(&activity.region),
            text(&activity.condition),
        ],
        is_marked: activity.is_long && activity.function.is_some(),
    };
    record.activities.iter().map(line).collect()
}

fn ranks(record: &RoundRecord) -> Vec<Line> {
    let line = |ranks: String, score: Cell, what: String, [value, median]: [Cell; 2]| Line {
        cells: vec![text(&ranks), score, text(&what), value, median],
        is_marked: false,
    };
    let none = || [missing(), missing()];
    let first = || Cell::Number(f64::INFINITY, "-".to_owned());
    let mut lines = Vec::new();
    for death in &record.deaths {
        let when = quantity::time(death.elapsed_s * 1e9);
        let order = if death.is_first { "the first to die" } else { "died" };
        let what = format!("{order}, at {when}: {}", death.cause);
        lines.push(Line { is_marked: true, ..line(death.ranks.clone(), first(), what, none()) });
    }
    for loss in &record.missing {
        let what = format!("missing: {}", loss.reason);
        lines.push(Line { is_marked: true, ..line(loss.ranks.clone(), first(), what, none()) });
    }
    for outlier in record.outliers.iter().filter(|one| one.score.abs() >= SCORE_MARKED) {
        let quantity = |value: f64| {
            let shown = match outlier.metric.as_str() {
                "time_ns" => quantity::time(value),
                "bytes" => quantity::bytes(value),
                _ => format!("{value:.0}"),
            };
            Cell::Number(value, shown)
        };
        let ranks = outlier.rank.map_or_else(|| outlier.host.clone(), |rank| rank.to_string());
        let score = Cell::Number(outlier.score.abs(), score_text(outlier.score));
        let what = format!("{} of {}", outlier.metric, outlier.event);
        let values = [quantity(outlier.value), quantity(outlier.median)];
        lines.push(line(ranks, score, what, values));
    }
    lines
}

fn classes(record: &RoundRecord) -> Vec<Line> {
    let of_scheme = |scheme: &sapwood_report::record::Classification| {
        let factor = scheme.reduction_factor;
        let name = scheme.scheme.clone();
        let line = move |class: &sapwood_report::record::RankClass| Line {
            cells: vec![
                text(&format!("{name} {:x}", class.id)),
                number(class.size.into()),
                Cell::Number(factor, format!("{factor:.1}")),
                text(&class.ranks),
                text(&class.names.join(" ")),
            ],
            is_marked: false,
        };
        scheme.classes.iter().map(line).collect::<Vec<_>>()
    };
    record.classifications.iter().flat_map(of_scheme).collect()
}

#[cfg(test)]
mod tests {
    use sapwood_report::record::Outlier;

    use super::*;

    #[test]
    fn sizes_of_communicators_and_scores_are_as_in_the_report() {
        let mut record = RoundRecord::default();
        let outlier = Outlier { score: -99_987.3, rank: Some(2), ..Outlier::default() };
        let near = Outlier { score: 3.4, ..outlier.clone() };
        record.outliers = vec![outlier, near];
        assert_eq!(ranks(&record).len(), 1, "the other does not deviate");
        assert_eq!(ranks(&record)[0].cells[1].text(), "<-1000");
        let mut round = sapwood_profile::Round::new(1);
        let mut profile = sapwood_profile::RankProfile::new(0, 1);
        let id = sapwood_profile::Function::named("MPI_Bcast").expect("a function").id;
        let size_class = SizeClass::from_code(2).expect("a class");
        let event = sapwood_profile::EventKey::Function { id, size_class };
        profile.events.insert(event, sapwood_profile::Counters::default());
        round.add(&profile).expect("a new rank");
        let record = RoundRecord::new(0, std::time::Duration::ZERO, &round, &[]);
        assert_eq!(events(&record, None)[0].cells[0].text(), "MPI_Bcast (3-4)");
    }
}
