//! What was measured, as a table for people and as one JSON object for programs.
//!
//! Owns the names of the figures and the schema. In JSON a section such as `round_trip` holds each
//! figure under its name, and `spread` with smallest, middle and largest run of each figure under
//! the same name again. Sections that were not asked for are not there.

use std::fmt::Write;

use sapwood_floor::statistics::Spread;
use serde_json::{Map, Value, json};

use super::explain::costs::Explanation;
use super::plan::Plan;
use sapwood_command_line::exit::Failure;

/// Name and version of the JSON object. Members may be added without a new version.
const SCHEMA: &str = "sapwood.bench-tree/1";

/// A figure: the median over the runs, with its spread.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    name: &'static str,
    spread: Option<Spread>,
}

impl Figure {
    /// A figure of that name; without a spread, nothing could be condensed.
    pub(super) fn new(name: &'static str, spread: Option<Spread>) -> Self {
        Self { name, spread }
    }
}

/// The figures of one experiment.
#[derive(Clone, Debug)]
pub(super) struct Section {
    name: &'static str,
    figures: Vec<(&'static str, Spread)>,
}

impl Section {
    /// A section of figures, all of which were measured.
    pub(super) fn new(
        name: &'static str,
        figures: impl IntoIterator<Item = Figure>,
    ) -> Result<Self, Failure> {
        let measured = |figure: Figure| match figure.spread {
            Some(spread) => Ok((figure.name, spread)),
            None => Err(Failure::own(&format!("{name}: nothing was measured for {}", figure.name))),
        };
        let figures = figures.into_iter().map(measured).collect::<Result<_, _>>()?;
        Ok(Self { name, figures })
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        let mut spreads = Map::new();
        for (name, spread) in &self.figures {
            members.insert((*name).to_string(), json!(spread.median));
            spreads.insert((*name).to_string(), json!(spread));
        }
        members.insert("spread".to_string(), Value::Object(spreads));
        Value::Object(members)
    }

    fn write_table(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", title(self.name));
        for (name, Spread { min, median, max, runs }) in &self.figures {
            let (label, unit, digits) = look(self.name, name);
            let _ = writeln!(
                text,
                "  {label:<26} {median:>12.digits$} {unit:<8} {min:>12.digits$} \
                 {max:>12.digits$} {runs:>5}"
            );
        }
    }
}

/// Everything that one call measured.
pub(super) struct Report {
    topology: String,
    transport: String,
    is_encrypted: bool,
    bytes: usize,
    is_pinned: bool,
    runs: usize,
    /// The main figures.
    pub sections: Vec<Section>,
    /// The same tree with encrypted links, against the same runs of the baseline.
    pub encrypted: Vec<Section>,
    /// What each process asks of the system.
    pub explanation: Option<Explanation>,
}

impl Report {
    /// An empty report of a plan.
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            topology: plan.tree.shape.to_string(),
            transport: plan.tree.transport.to_string(),
            is_encrypted: plan.tree.is_encrypted,
            bytes: plan.bytes,
            is_pinned: plan.cpu.is_some(),
            runs: plan.runs,
            sections: Vec::new(),
            encrypted: Vec::new(),
            explanation: None,
        }
    }

    /// One object in one line.
    pub(super) fn to_json(&self) -> String {
        let mut members = Map::new();
        let mut add = |name: &str, value: Value| members.insert(name.to_string(), value);
        add("schema", json!(SCHEMA));
        add("topology", json!(self.topology));
        add("transport", json!(self.transport));
        add("encryption", json!(if self.is_encrypted { "on" } else { "off" }));
        add("bytes", json!(self.bytes));
        add("pinned", json!(self.is_pinned));
        add("runs", json!(self.runs));
        for section in &self.sections {
            add(section.name, section.to_json());
        }
        if !self.encrypted.is_empty() {
            let sections = self.encrypted.iter().map(|of| (of.name.to_string(), of.to_json()));
            add("encrypted", Value::Object(sections.collect()));
        }
        if let Some(explanation) = &self.explanation {
            members.insert("explain".to_string(), explanation.to_json());
        }
        format!("{}\n", Value::Object(members))
    }

    /// A table with one line per figure.
    pub(super) fn to_table(&self) -> String {
        let placement = if self.is_pinned { "one core" } else { "all cores" };
        let encryption = if self.is_encrypted { "encrypted" } else { "not encrypted" };
        let mut text = format!(
            "{} over {}, {encryption}, {} bytes, on {placement}\n\n{:<28} {:>12} {:<8} {:>12} {:>12} {:>5}\n",
            self.topology,
            self.transport,
            self.bytes,
            "",
            "median",
            "",
            "smallest",
            "largest",
            "runs"
        );
        for section in &self.sections {
            section.write_table(&mut text);
        }
        if !self.encrypted.is_empty() {
            text.push_str("\nthe same tree with encrypted links, beside the same baseline\n");
            for section in &self.encrypted {
                section.write_table(&mut text);
            }
        }
        if let Some(explanation) = &self.explanation {
            text.push_str(&explanation.to_table());
        }
        text
    }
}

/// What a section is called in the table.
fn title(section: &str) -> &'static str {
    match section {
        "round_trip" => "round trip: one broadcast, one sum",
        "pipelined" => "pipelined: the leaves send as fast as they may",
        "pages" => "pages that a process refers to in round trips",
        "startup" => "start-up: from the first process to the whole tree's answer",
        _ => "node: a communication process with 8 children, idle",
    }
}

/// How a figure is shown in the table: its label, its unit, and digits behind the point.
fn look(section: &str, figure: &str) -> (&'static str, &'static str, usize) {
    match (section, figure) {
        ("pages", name) => (page_label(name), "", 1),
        ("round_trip", "median_us") => ("round trip", "us", 1),
        (_, "ratio_to_floor") => ("ratio to baseline", "", 2),
        (_, "floor_us") => ("baseline", "us", 1),
        (_, "waves_per_s") => ("waves", "1/s", 0),
        (_, "floor_waves_per_s") => ("baseline", "1/s", 0),
        (_, "cpu_us_per_wave") => ("CPU per wave, all nodes", "us", 1),
        (_, "cpu_ratio_to_floor") => ("ratio to baseline", "", 2),
        (_, "floor_cpu_us_per_wave") => ("baseline", "us", 1),
        (_, "ms") => ("start-up", "ms", 1),
        (_, "floor_ms") => ("baseline: connect once", "ms", 1),
        (_, "rss_bytes") => ("resident", "bytes", 0),
        _ => ("each further idle link", "bytes", 0),
    }
}

/// The label of a count of pages.
fn page_label(figure: &str) -> &'static str {
    match figure {
        "communication_code" => "communication: code",
        "communication_heap" => "communication: heap",
        "communication_other" => "communication: other",
        "back_end_code" => "back-end: code",
        "back_end_heap" => "back-end: heap",
        "back_end_other" => "back-end: other",
        "floor_communication_code" => "baseline, inner: code",
        "floor_communication_heap" => "baseline, inner: heap",
        "floor_communication_other" => "baseline, inner: other",
        "floor_back_end_code" => "baseline, leaf: code",
        "floor_back_end_heap" => "baseline, leaf: heap",
        _ => "baseline, leaf: other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_holds_each_figure_and_its_spread() {
        let spread = Spread::of(&[1.0, 2.0, 4.0]);
        let section = Section::new("startup", [Figure::new("ms", spread)]).unwrap();
        let json = section.to_json();
        assert_eq!(json["ms"], 2.0);
        assert_eq!(json["spread"]["ms"]["max"], 4.0);
        assert_eq!(json["spread"]["ms"]["runs"], 3);
    }

    #[test]
    fn a_figure_without_runs_is_an_error() {
        assert!(Section::new("startup", [Figure::new("ms", None)]).is_err());
    }
}
