//! The counts of one build, as a file that is kept and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sapwood_command_line::exit::Failure;
use serde::{Deserialize, Serialize};

use crate::links::Links;
use crate::measure::Counts;

const SCHEMA: &str = "sapwood.instructions/1";

/// A count may be this much higher than the recorded one: the address of a buffer decides how its
/// bytes are copied.
const ALLOWED_PERCENT: u64 = 5;
/// The same where another compiler has built the program.
const OTHER_COMPILER_PERCENT: u64 = 25;

/// Instructions per step and kind of links.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    schema: String,
    /// What `rustc --version` says.
    compiler: String,
    /// Instructions of one step, averages rounded up.
    counts: BTreeMap<Links, Counts>,
}

impl Record {
    pub fn new() -> Self {
        let compiler = env!("SAPWOOD_COMPILER").to_owned();
        Self { schema: SCHEMA.to_owned(), compiler, counts: BTreeMap::new() }
    }

    pub fn add(&mut self, links: Links, counts: Counts) {
        self.counts.insert(links, counts);
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

    /// One line per step, a column per kind of links, each with its change if there is a record.
    pub fn table(&self, before: Option<&Self>) -> String {
        let mut text = format!("{:40}", "instructions");
        for links in self.counts.keys() {
            let _ = write!(text, "{:>18}", links.name());
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
                let _ = write!(text, "{count:>9}{change:>9}");
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
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(count: u64) -> Record {
        let mut record = Record::new();
        record.add(Links::Unix, Counts::from([("sends".to_owned(), count)]));
        record
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
