//! The counts of one build, as a file that is kept and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sapwood_command_line::exit::Failure;
use serde::{Deserialize, Serialize};

use crate::links::Links;
use crate::measure::{Allocations, Counts};

const SCHEMA: &str = "sapwood.instructions/1";

/// A count may be this much higher than the recorded one: the address of a buffer decides how its
/// bytes are copied.
const ALLOWED_PERCENT: u64 = 5;
/// The same where another compiler has built the program.
const OTHER_COMPILER_PERCENT: u64 = 25;

/// Instructions and allocations per step and kind of links.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    /// What `rustc --version` says.
    compiler: String,
    /// Instructions of one step in the wave that took least.
    counts: BTreeMap<Links, Counts>,
    /// Allocations of one step in the wave that made least.
    allocations: BTreeMap<Links, Allocations>,
}

impl Record {
    pub fn new() -> Self {
        let compiler = env!("SAPWOOD_COMPILER").to_owned();
        let (counts, allocations) = (BTreeMap::new(), BTreeMap::new());
        Self { schema: SCHEMA.to_owned(), compiler, counts, allocations }
    }

    pub fn add(&mut self, links: Links, (counts, allocations): (Counts, Allocations)) {
        self.counts.insert(links, counts);
        self.allocations.insert(links, allocations);
    }

    pub fn read(path: &Path) -> Result<Self, Failure> {
        let fault = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("{}: {error}; --write makes it anew", path.display()))
        };
        let text = fs::read_to_string(path).map_err(|error| fault(&error))?;
        let record: Self = serde_json::from_str(&text).map_err(|error| fault(&error))?;
        if record.schema != SCHEMA {
            return Err(fault(&format!("schema {}, not {SCHEMA}", record.schema)));
        }
        Ok(record)
    }

    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        fs::write(path, self.json())
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("counts are JSON") + "\n"
    }

    /// One line per step, columns per kind of links: instructions with their change if there is a
    /// record, and allocations.
    pub fn table(&self, before: Option<&Self>) -> String {
        let mut text = format!("{:40}", "instructions, allocations");
        for links in self.counts.keys() {
            let _ = write!(text, "{:>23}", links.name());
        }
        text.push('\n');
        let steps = self.counts.values().next().into_iter().flat_map(Counts::keys);
        for step in steps {
            let _ = write!(text, "{step:40}");
            for (links, counts) in &self.counts {
                let count = counts[step];
                let recorded = before.and_then(|before| before.counts.get(links)?.get(step));
                let change = recorded.map_or_else(String::new, |&recorded| {
                    format!("{:+.1} %", 100.0 * (count as f64 / recorded as f64 - 1.0))
                });
                let made = self.allocations[links][step];
                let _ = write!(text, "{count:>9}{change:>9}{made:>5}");
            }
            text.push('\n');
        }
        text
    }

    /// A line for each count that is too high, or that only one of both has.
    pub fn risen(&self, before: &Self) -> Vec<String> {
        let is_same = self.compiler == before.compiler;
        let percent = if is_same { ALLOWED_PERCENT } else { OTHER_COMPILER_PERCENT };
        let mut lines = Vec::new();
        for (links, counts) in &self.counts {
            for (step, &count) in counts {
                let what = format!("{step} over {}", links.name());
                match before.counts.get(links).and_then(|counts| counts.get(step)) {
                    Some(&recorded) if 100 * count <= (100 + percent) * recorded => {}
                    Some(recorded) => lines.push(format!(
                        "{what}: {count} instructions, recorded are {recorded}, and {percent} % \
                         more are allowed; where the rise has a reason, record it with --write"
                    )),
                    None => lines.push(format!("{what}: not recorded; record it with --write")),
                }
            }
        }
        lines.extend(self.more_allocations(before));
        lines
    }

    fn more_allocations(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (links, made) in &self.allocations {
            for (step, &made) in made {
                let recorded = before.allocations.get(links).and_then(|made| made.get(step));
                if let Some(recorded) = recorded.filter(|&&recorded| made > recorded) {
                    lines.push(format!(
                        "{step} over {}: {made} allocations, recorded are {recorded}; where the \
                         rise has a reason, record it with --write",
                        links.name()
                    ));
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(count: u64) -> Record {
        let mut record = Record::new();
        let made = Allocations::from([("sends".to_owned(), 1)]);
        record.add(Links::Unix, (Counts::from([("sends".to_owned(), count)]), made));
        record
    }

    #[test]
    fn another_allocation_per_message_is_told() {
        let (mut after, before) = (record(7), record(7));
        let made = |made| Allocations::from([("sends".to_owned(), made)]);
        after.allocations.insert(Links::Unix, made(1));
        assert!(after.risen(&before).is_empty());
        after.allocations.insert(Links::Unix, made(2));
        let lines = after.risen(&before);
        assert!(lines[0].starts_with("sends over unix: 2 allocations, recorded are 1"));
    }

    #[test]
    fn a_rise_within_the_share_passes() {
        assert!(record(1050).risen(&record(1000)).is_empty());
        assert!(record(10).risen(&record(1000)).is_empty());
    }

    #[test]
    fn a_rise_above_the_share_is_told_with_both_counts() {
        let lines = record(1051).risen(&record(1000));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("sends over unix: 1051 instructions, recorded are 1000"));
    }

    #[test]
    fn another_compiler_is_allowed_more() {
        let mut before = record(1000);
        before.compiler = "another".to_owned();
        assert!(record(1250).risen(&before).is_empty());
        assert_eq!(record(1251).risen(&before).len(), 1);
    }

    #[test]
    fn a_step_that_is_not_recorded_is_told() {
        let lines = record(1).risen(&Record::new());
        assert_eq!(lines, ["sends over unix: not recorded; record it with --write"]);
    }

    #[test]
    fn what_is_written_is_read_and_fits_the_schema() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        record(7).write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap(), record(7));
        let value = serde_json::from_str(&record(7).json()).unwrap();
        sapwood_schema::assert_fits("instructions-1", &value);
    }
}
