//! The times of all cases, condensed and printed.

use sapwood_command_line::exit::Failure;
use sapwood_floor::statistics::{MedianInterval, Spread, median_interval};
use serde_json::{Map, Value, json};

use super::super::facts::Facts;
use super::ranks::Library;
use super::{Arguments, Case};

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-collectives/1";

/// Nanoseconds of a microsecond.
const MICROSECOND: f64 = 1e3;

/// One case: of each contender the median round of each turn, in nanoseconds, where it had one.
pub(super) struct Row {
    case: Case,
    contenders: Vec<Times>,
}

struct Times {
    name: &'static str,
    turns: Vec<Option<f64>>,
}

/// All of them.
pub(super) struct Rows {
    facts: Facts,
    rows: Vec<Value>,
    faults: Vec<String>,
    missing: Map<String, Value>,
}

impl Row {
    pub(super) fn new(case: Case, names: impl Iterator<Item = &'static str>) -> Self {
        let contenders = names.map(|name| Times { name, turns: Vec::new() }).collect();
        Self { case, contenders }
    }

    /// Adds the times of a turn, one of each contender.
    pub(super) fn note(&mut self, times: &[Option<f64>]) {
        for (contender, time) in self.contenders.iter_mut().zip(times) {
            contender.turns.push(*time);
        }
    }

    /// The times of one contender over those of another in the same turn.
    fn ratio(&self, one: &Times, other: &Times) -> Option<MedianInterval> {
        let pairs = one.turns.iter().zip(&other.turns);
        let ratios: Vec<f64> = pairs.filter_map(|(one, other)| Some((*one)? / (*other)?)).collect();
        median_interval(&ratios)
    }

    fn is_sapwood(times: &Times) -> bool {
        Library::ALL.iter().all(|library| library.name() != times.name)
    }

    fn to_json(&self) -> Value {
        let Case { operation, processes, bytes } = self.case;
        let mut row = json!({
            "operation": operation.name(), "processes": processes, "bytes": bytes,
            "us": {}, "ratios": {},
        });
        for times in &self.contenders {
            let turns: Vec<f64> =
                times.turns.iter().flatten().map(|time| time / MICROSECOND).collect();
            row["us"][times.name] = json!(Spread::of(&turns));
        }
        for one in self.contenders.iter().filter(|times| Self::is_sapwood(times)) {
            row["ratios"][one.name] = json!({});
            for other in self.contenders.iter().filter(|times| !Self::is_sapwood(times)) {
                let ratio = self.ratio(one, other).map(|interval| {
                    let MedianInterval { median, low, high, samples } = interval;
                    json!({ "median": median, "low": low, "high": high, "turns": samples })
                });
                row["ratios"][one.name][other.name] = json!(ratio);
            }
        }
        row
    }

    fn to_lines(&self) -> String {
        let mut text = format!("{}\n", self.case.name());
        let others = self.contenders.iter().filter(|times| !Self::is_sapwood(times));
        for times in &self.contenders {
            let turns: Vec<f64> =
                times.turns.iter().flatten().map(|time| time / MICROSECOND).collect();
            let Some(Spread { min, median, max, .. }) = Spread::of(&turns) else { continue };
            text += &format!("  {:<14} {median:>11.1} us  {min:>10.1} to {max:<10.1}", times.name);
            for other in others.clone().filter(|_| Self::is_sapwood(times)) {
                if let Some(MedianInterval { median, low, high, .. }) = self.ratio(times, other) {
                    let name = other.name;
                    text += &format!("  {median:>7.2} of {name} ({low:.2} to {high:.2})");
                }
            }
            text = text.trim_end().to_string() + "\n";
        }
        text
    }
}

impl Rows {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let title = format!(
            "collectives of processes on this host, which has {processors} processors: the median \
             of {} turns, smallest and largest; ratios with their interval",
            arguments.turns
        );
        let mut facts = Facts::new(SCHEMA, title);
        facts.setting("processors", processors);
        facts.setting("turns", arguments.turns);
        facts.setting("yields", true);
        Self { facts, rows: Vec::new(), faults: Vec::new(), missing: Map::new() }
    }

    /// Adds a case.
    pub(super) fn add(&mut self, row: Row) {
        self.facts.heading(row.to_lines().trim_end());
        self.rows.push(row.to_json());
    }

    /// A contender cannot be measured here.
    pub(super) fn missing(&mut self, name: &str, failure: &Failure) {
        if !self.missing.contains_key(name) {
            self.facts.heading(&format!("{name} is missing: {failure}"));
            self.missing.insert(name.to_string(), failure.to_string().into());
        }
    }

    /// A value was wrong, or a contender has ended.
    pub(super) fn fault(&mut self, name: &str, processes: u32, failure: &Failure) {
        let text = format!("{name} with {processes} processes: {failure}");
        self.facts.heading(&text);
        self.faults.push(text);
    }

    /// Whether every value was right and every contender went on to the end.
    pub(super) fn is_right(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn into_facts(self) -> Facts {
        let mut facts = self.facts;
        facts.setting("right", self.faults.is_empty());
        facts.setting("faults", self.faults);
        facts.setting("missing", self.missing);
        facts.setting("rows", self.rows);
        facts
    }
}
