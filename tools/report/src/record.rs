//! One round for programs: a JSON document, `sapwood.round/1`, of what the front-end knows then.
//!
//! The page draws records, `rounds.ndjson` holds one in each line, and a finished run is replayed
//! from that file. A section that was not asked for is empty or absent. Counters are cumulative
//! from the begin of counting; what is new since the record before is in `event_intervals`.

mod left_out;
mod parts;
mod sections;
mod since_before;
mod wait_calls;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use sapwood_profile::Round;
use serde::{Deserialize, Serialize};

use crate::loss::losses;
use crate::{Missing, Standstill};

pub use left_out::{Counting, LeftOut};
pub use parts::{Activity, Class, Efficiency, Episode, Event, Loss, Metric, States, Time};
pub use sections::{
    Bins, Classification, Death, DeathManner, Histogram, Outlier, Process, RankClass, RankValues,
    Settings, StackFrame, Stacks, Stopped,
};
pub use since_before::{EventInterval, EventSums, EventTotals};
pub use wait_calls::WaitCall;
#[cfg(test)]
pub(crate) use waits::tests::findings as waits_of_tests;
pub use waits::{CulpritRank, EventWait, RankWait, Waits};
pub(crate) use waits::{MATCHING_LOSSES, fill as fill_waits};

/// Which form a record has. A member that is added leaves it as it is.
pub const ROUND_SCHEMA: &str = "sapwood.round/1";

/// A deeper line would take too much of the native stack. A stack of most frames has 400.
const NESTING_MAX: usize = 600;

/// What is known after one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoundRecord {
    /// [`ROUND_SCHEMA`].
    pub schema: String,
    /// The number of the round, from 0.
    pub number: u64,
    /// The iteration, from 1, if the round is of one that the program marked: each rank's counts
    /// are then those at its mark.
    #[serde(default)]
    pub iteration: Option<u64>,
    /// Time from the start of the program, in seconds.
    pub elapsed_s: f64,
    /// Ranks in `MPI_COMM_WORLD`.
    pub world_size: u32,
    /// The ranks whose counts are in it.
    pub covered: String,
    /// How far these are.
    pub states: States,
    /// The other ranks, and why.
    pub missing: Vec<Loss>,
    /// Counts that found no room in a rank's table.
    pub dropped: u64,
    /// Slots that could not be read.
    pub unreadable: u64,
    /// Every event over all covered ranks.
    pub events: Vec<Event>,
    /// What is new in events since the round before, or the iteration before; none of the first,
    /// and where the two are not of the same ranks.
    #[serde(default)]
    pub event_intervals: Option<Vec<EventInterval>>,
    /// How the time was spent.
    pub time: Option<Time>,
    /// The same since the round before; the share and efficiencies of the interval.
    #[serde(default)]
    pub interval: Option<Time>,
    /// Figures of the ranks' processes by name, such as `resident_bytes`.
    #[serde(default)]
    pub figures: BTreeMap<String, Metric>,
    /// Processes that announced themselves and are not watched.
    #[serde(default)]
    pub unwatched: u32,
    /// Ranks of which a tool in front of the shim takes calls.
    #[serde(default)]
    pub taken: String,
    /// Whether events are left out because there were too many.
    #[serde(default)]
    pub has_left_out: bool,
    /// The call that each rank is inside, and since when.
    pub activities: Vec<Activity>,
    /// Lines for people if no MPI call returns any more.
    #[serde(default)]
    pub standstill: Vec<String>,
    /// A number of each rank, or of bins of neighbouring ranks.
    #[serde(default)]
    pub rank_values: Vec<RankValues>,
    /// Distributions of an event's metric over the ranks.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
    /// Ranks that call the same functions, as classes.
    #[serde(default)]
    pub classifications: Vec<Classification>,
    /// Ranks that deviate most.
    #[serde(default)]
    pub outliers: Vec<Outlier>,
    /// The number of the round of whose moment histograms, classes, outliers and rank values are.
    #[serde(default)]
    pub analysis_round: Option<u64>,
    /// Histograms that were left out because there were too many.
    #[serde(default)]
    pub histograms_left_out: u64,
    /// Measures without outliers and histograms of classes, because there were too many.
    #[serde(default)]
    pub measures_left_out: u64,
    /// By section of these, the ranks that are not in it.
    #[serde(default)]
    pub analysis_missing: BTreeMap<String, String>,
    /// Call stacks, merged.
    #[serde(default)]
    pub stacks: Option<Stacks>,
    /// Ranks that have died, in order.
    #[serde(default)]
    pub deaths: Vec<Death>,
    /// The processes of the tree.
    #[serde(default)]
    pub tree: Vec<Process>,
    /// The settings in force.
    #[serde(default)]
    pub settings: Option<Settings>,
    /// Which ranks waited for which, if that was asked for.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// In which collectives they waited, most time first.
    #[serde(default)]
    pub wait_calls: Vec<WaitCall>,
}

impl RoundRecord {
    /// The record of a round that was complete at a time of the program. Other sections are added
    /// to it.
    #[must_use]
    pub fn new(number: u64, elapsed: Duration, round: &Round, missing: &[Missing]) -> Self {
        Self {
            schema: ROUND_SCHEMA.to_owned(),
            number,
            elapsed_s: elapsed.as_secs_f64(),
            world_size: round.world_size(),
            covered: round.covered().to_string(),
            states: States::of(round),
            missing: losses(round, missing).into_iter().map(Loss::of).collect(),
            dropped: round.dropped(),
            unreadable: round.unreadable(),
            events: Event::of_round(round),
            time: round.load().map(Time::of),
            interval: round.interval().map(Time::of),
            figures: figures(round),
            unwatched: round.unwatched(),
            taken: round.taken().to_string(),
            has_left_out: round.has_left_out(),
            activities: round.activities().iter().map(Activity::of).collect(),
            standstill: Standstill::of(round).map(|still| still.lines()).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The record as one line of JSON, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers, text and lists of them are always JSON")
    }

    /// Reads a line.
    ///
    /// # Errors
    /// One line of text: what is wrong, and where in the line.
    pub fn parse(line: &str) -> Result<Self, String> {
        let depth = nesting(line);
        if depth > NESTING_MAX {
            return Err(format!("it is nested {depth} deep, more than {NESTING_MAX}"));
        }
        let mut reader = serde_json::Deserializer::from_str(line);
        // A stack is as deep as it is long.
        reader.disable_recursion_limit();
        let record =
            Self::deserialize(&mut reader).and_then(|record| reader.end().map(|()| record));
        let record = record.map_err(|error| error.to_string())?;
        if record.schema == ROUND_SCHEMA {
            Ok(record)
        } else {
            Err(format!("it is of the form '{}', not '{ROUND_SCHEMA}'", record.schema))
        }
    }
}

/// The figures of a round by their names.
pub(crate) fn figures(round: &Round) -> BTreeMap<String, Metric> {
    let named = round.figures().iter();
    named.map(|(figure, metric)| (figure.name().to_owned(), Metric::of(metric))).collect()
}

/// How deep objects and lists are in one another, at most: brackets in text count as well.
fn nesting(line: &str) -> usize {
    let mut open = 0_usize;
    line.bytes().fold(0, |deepest, byte| {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest.max(open)
    })
}

#[cfg(test)]
mod tests {
    use sapwood_profile::{Counters, EventKey, RankProfile};

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut round = Round::new(3);
        for rank in 0..2 {
            let mut profile = RankProfile::new(rank, 3);
            let counters = Counters { count: 1, time_ns: u64::MAX, bytes: 3 };
            profile.events.insert(EventKey::Region("solve \"it\"\n".into()), counters);
            round.add(&profile).expect("a new rank");
        }
        let record = RoundRecord::new(7, Duration::from_millis(1500), &round, &[]);
        assert_eq!(record.events[0].time_ns.sum, 2 * u128::from(u64::MAX));
        let line = record.line();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(RoundRecord::parse(&line), Ok(record));
    }

    #[test]
    fn a_record_of_another_form_is_refused() {
        let line = RoundRecord { schema: "sapwood.test/1".into(), ..RoundRecord::default() }.line();
        assert!(RoundRecord::parse(&line).unwrap_err().contains("sapwood.test/1"));
        assert!(RoundRecord::parse("{").is_err());
        let deep = "[".repeat(NESTING_MAX + 1);
        assert!(RoundRecord::parse(&deep).unwrap_err().contains("nested"));
    }
}
