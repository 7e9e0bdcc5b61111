//! What an experiment found, as a table for people and as one JSON object for programs.
//!
//! Owns [`Facts`]: named numbers in the order in which they were found, some of them with the bar
//! that they are to reach. A fact that was not measured is not there. Figures that are condensed
//! from pairs of runs are those of `report`; here they come as ready spreads.

use std::fmt::Write;

use sapwood_floor::statistics::{MedianInterval, Spread};
use serde_json::{Map, Value, json};

/// What a figure is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bar {
    /// At most this.
    Most(f64),
    /// At least this.
    Least(f64),
}

impl Bar {
    /// What a table says of a value: what it is to reach, and whether it does.
    pub(super) fn judge(self, value: f64) -> String {
        let verdict = if self.is_reached_by(value) { "reached" } else { "missed" };
        match self {
            Self::Most(most) => format!("  at most {most}: {verdict}"),
            Self::Least(least) => format!("  at least {least}: {verdict}"),
        }
    }

    fn is_reached_by(self, value: f64) -> bool {
        match self {
            Self::Most(most) => value <= most,
            Self::Least(least) => value >= least,
        }
    }
}

/// How a figure is shown in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    label: &'static str,
    unit: &'static str,
    digits: usize,
}

/// A figure's label, its unit, and digits behind the point.
pub(super) const fn look(label: &'static str, unit: &'static str, digits: usize) -> Look {
    Look { label, unit, digits }
}

/// All facts of one call.
pub(super) struct Facts {
    title: String,
    json: Map<String, Value>,
    table: String,
}

impl Facts {
    /// No facts yet, of an experiment with that schema.
    pub(super) fn new(schema: &str, title: String) -> Self {
        let json = Map::from_iter([("schema".to_string(), json!(schema))]);
        Self { title, json, table: String::new() }
    }

    /// Adds what was run; it is in the title for people.
    pub(super) fn setting(&mut self, path: &str, value: impl Into<Value>) {
        put(&mut self.json, path, value.into());
    }

    /// Adds a line between the facts for people.
    pub(super) fn heading(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.table, "{text}");
    }

    /// Adds a number under a path in the JSON object, parted by points.
    pub(super) fn number(&mut self, path: &str, look: Look, value: f64, bar: Option<Bar>) {
        let Look { label, unit, digits } = look;
        put(&mut self.json, path, number(value, digits));
        let judged = bar.map_or_else(String::new, |bar| bar.judge(value));
        let line = format!("  {label:<44} {value:>14.digits$} {unit:<6}{judged}");
        let _ = writeln!(self.table, "{}", line.trim_end());
    }

    /// Adds a number that was condensed from several runs, with its spread.
    pub(super) fn spread(&mut self, path: &str, look: Look, spread: &Spread, bar: Option<Bar>) {
        let Look { label, unit, digits } = look;
        let Spread { min, median, max, runs } = *spread;
        put(&mut self.json, path, json!(median));
        let (section, last) = path.rsplit_once('.').map_or(("", path), |parts| parts);
        let separator = if section.is_empty() { "" } else { "." };
        put(&mut self.json, &format!("{section}{separator}spread.{last}"), json!(spread));
        let judged = bar.map_or_else(String::new, |bar| bar.judge(median));
        let _ = writeln!(
            self.table,
            "  {label:<44} {median:>14.digits$} {unit:<6} {min:.digits$} to {max:.digits$} in \
             {runs} runs{judged}"
        );
    }

    /// Says that something was not measured, and why.
    pub(super) fn missing(&mut self, path: &str, label: &str, why: &str) {
        put(&mut self.json, &format!("missing.{path}"), json!(why));
        let _ = writeln!(self.table, "  {label:<44} missing: {why}");
    }

    /// One object in one line.
    pub(super) fn to_json(&self) -> String {
        format!("{}\n", Value::Object(self.json.clone()))
    }

    /// A table with one line per fact.
    pub(super) fn to_table(&self) -> String {
        format!("{}\n\n{}", self.title, self.table)
    }
}

/// Whole numbers stay whole in JSON.
fn number(value: f64, digits: usize) -> Value {
    if digits == 0 && value.is_finite() && value.abs() < 2_f64.powi(53) {
        return json!(value.round() as i64);
    }
    json!(value)
}

/// Puts a value at a path, making the objects on the way.
fn put(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_string(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// What a choice is called on the command line, and its figures in the object.
pub(super) fn named(choice: impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string())
}

/// Whether an interval lies below what a figure may be at most, above it, or on both sides.
pub(super) fn verdict(interval: &MedianInterval, most: f64) -> &'static str {
    match (interval.high <= most, interval.low > most) {
        (true, _) => "reached",
        (_, true) => "missed",
        _ => "not resolved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEDIAN: Look = look("whole again", "ms", 1);

    #[test]
    fn a_path_with_points_makes_objects() {
        let mut facts = Facts::new("sapwood.test/1", String::from("a test"));
        facts.number("whole_again_ms.median", MEDIAN, 12.5, Some(Bar::Most(50.0)));
        facts.number("kills", look("kills", "", 0), 200.0, None);
        let json: Value = serde_json::from_str(&facts.to_json()).unwrap();
        assert_eq!(json["whole_again_ms"]["median"], 12.5);
        assert_eq!(json["kills"], 200);
        assert!(facts.to_table().contains("at most 50: reached"));
    }

    #[test]
    fn a_bar_is_missed_on_its_far_side() {
        assert!(!Bar::Least(0.5).is_reached_by(0.49));
        assert!(!Bar::Most(3.0).is_reached_by(3.01));
        assert!(Bar::Most(3.0).is_reached_by(3.0));
    }

    #[test]
    fn a_spread_stands_beside_its_median() {
        let mut facts = Facts::new("sapwood.test/1", String::new());
        let spread = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
        facts.spread("whole_again_ms.median", MEDIAN, &spread, None);
        let json: Value = serde_json::from_str(&facts.to_json()).unwrap();
        assert_eq!(json["whole_again_ms"]["median"], 2.0);
        assert_eq!(json["whole_again_ms"]["spread"]["median"]["max"], 3.0);
    }
}
