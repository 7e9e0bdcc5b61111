//! Looks at what a demo run left: the three files of a report, in their forms, of all ranks.
//!
//! The numbers in them are judged by tests of their own; this look only makes sure that
//! `make demo` ends with a report that a reader and a program can open, and that has lost nothing.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::finding::Finding;
use crate::steps::Look;

/// Where `make demo` writes during `cargo xtask ci`.
pub const FOLDER: &str = "target/demo-short";
/// Ranks of the demo.
const RANKS: u64 = 8;
/// The form of profile.json.
const SCHEMA: &str = "sapwood.profile/1";
/// What the demo's ranks call in every step that is shown.
const COUNTED: &str = "MPI_Allreduce";
/// The line of report.txt where nothing was lost.
const NO_LOSSES: &str = "losses    none";
/// A Parquet file begins and ends with these bytes.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Looks at the report in [`FOLDER`].
pub fn look(root: &Path) -> Look {
    let folder = root.join(FOLDER);
    let findings: Vec<Finding> =
        [profile(&folder), table(&folder), text(&folder)].into_iter().flatten().collect();
    if findings.is_empty() { Ok(format!("{FOLDER} holds a full report")) } else { Err(findings) }
}

fn finding(file: &str, text: impl Into<String>) -> Option<Finding> {
    Some(Finding::new(format!("{FOLDER}/{file}"), 0, text))
}

fn profile(folder: &Path) -> Option<Finding> {
    let file = "profile.json";
    let read = fs::read_to_string(folder.join(file));
    let Ok(content) = read else { return finding(file, "is missing: make demo wrote no profile") };
    match serde_json::from_str::<Value>(&content) {
        Ok(profile) => fault(&profile).and_then(|fault| finding(file, fault)),
        Err(error) => finding(file, format!("is no JSON: {error}")),
    }
}

/// What is wrong with the profile of a demo in which nothing was lost.
fn fault(profile: &Value) -> Option<String> {
    let difference = |(member, whole): (&str, Value)| {
        let found = &profile[member];
        (*found != whole).then(|| format!("has {member} {found}, not {whole}"))
    };
    let wholes = [
        ("schema", json!(SCHEMA)),
        ("is_final", json!(true)),
        ("world_size", json!(RANKS)),
        ("ranks_covered", json!(RANKS)),
        ("missing", json!([])),
        ("outdated", Value::Null),
        ("dropped", json!(0)),
        ("unreadable", json!(0)),
        ("unwatched", json!(0)),
        ("taken", json!("")),
    ];
    let lost = &profile["states"]["lost"];
    wholes
        .into_iter()
        .find_map(difference)
        .or_else(|| (lost != "").then(|| format!("has lost ranks: {lost}")))
        .or_else(|| (number(&profile["rounds"]) == 0).then(|| "has no rounds".to_owned()))
        .or_else(|| (calls(profile) == 0).then(|| format!("counts no calls of {COUNTED}")))
}

/// A whole number; 0 for what is none.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Calls of the function that every rank of the demo calls.
fn calls(profile: &Value) -> u64 {
    let events = profile["events"].as_array().into_iter().flatten();
    let counted = events.filter(|event| event["name"] == COUNTED);
    counted.map(|event| number(&event["calls"]["sum"])).sum()
}

fn table(folder: &Path) -> Option<Finding> {
    let file = "ranks.parquet";
    let read = fs::read(folder.join(file));
    let Ok(content) = read else { return finding(file, "is missing: make demo wrote no table") };
    let framed = content.starts_with(PARQUET_MAGIC) && content.ends_with(PARQUET_MAGIC);
    if framed { None } else { finding(file, "is no Parquet file") }
}

fn text(folder: &Path) -> Option<Finding> {
    let file = "report.txt";
    let read = fs::read_to_string(folder.join(file));
    let Ok(content) = read else { return finding(file, "is missing: make demo wrote no report") };
    if !content.contains(COUNTED) {
        return finding(file, format!("does not name {COUNTED}"));
    }
    let is_whole = content.lines().any(|line| line == NO_LOSSES);
    if is_whole { None } else { finding(file, "does not say that nothing was lost") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when the test ends.
    struct Sample(std::path::PathBuf);

    impl Sample {
        fn new(name: &str) -> Sample {
            let folder =
                std::env::temp_dir().join(format!("sapwood-{}-{name}", std::process::id()));
            fs::create_dir_all(folder.join(FOLDER)).expect("the temporary folder is writable");
            Sample(folder)
        }

        fn with(self, file: &str, content: &[u8]) -> Sample {
            fs::write(self.0.join(FOLDER).join(file), content).expect("the sample is writable");
            self
        }
    }

    impl Drop for Sample {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn full() -> Value {
        json!({
            "schema": SCHEMA, "is_final": true, "world_size": RANKS, "ranks_covered": RANKS,
            "missing": [], "states": {"running": "", "finalized": "0-7", "lost": ""},
            "dropped": 0, "unreadable": 0, "unwatched": 0, "taken": "", "rounds": 12,
            "events": [
                {"name": "MPI_Send", "calls": {"sum": 3}},
                {"name": COUNTED, "calls": {"sum": 800}},
            ],
        })
    }

    #[test]
    fn a_full_report_passes() {
        let sample = Sample::new("full")
            .with("profile.json", full().to_string().as_bytes())
            .with("ranks.parquet", b"PAR1...PAR1")
            .with("report.txt", b"losses    none\nMPI_Allreduce 3\n");
        let looked = look(&sample.0);
        assert!(looked.is_ok(), "{looked:?}");
    }

    #[test]
    fn a_profile_of_another_run_or_with_losses_is_refused() {
        assert_eq!(fault(&full()), None);
        let wrong = [
            ("schema", json!("sapwood.round/1"), "schema"),
            ("is_final", json!(false), "is_final"),
            ("world_size", json!(4), "world_size 4, not 8"),
            ("ranks_covered", json!(7), "ranks_covered 7, not 8"),
            ("missing", json!([{"ranks": "7", "reason": "gone"}]), "missing"),
            ("outdated", json!({"reason": "gone"}), "outdated"),
            ("states", json!({"lost": "3"}), "lost ranks: \"3\""),
            ("states", Value::Null, "lost ranks"),
            ("dropped", json!(1), "dropped 1, not 0"),
            ("unreadable", json!(1), "unreadable"),
            ("unwatched", json!(1), "unwatched"),
            ("taken", json!("0"), "taken"),
            ("rounds", json!(0), "no rounds"),
            (
                "events",
                json!([{"name": COUNTED, "calls": {"sum": 0}}]),
                "no calls of MPI_Allreduce",
            ),
            ("events", json!([{"name": "MPI_Send", "calls": {"sum": 3}}]), "no calls"),
        ];
        for (member, value, said) in wrong {
            let mut profile = full();
            profile[member] = value;
            let fault = fault(&profile).unwrap_or_default();
            assert!(fault.contains(said), "{member}: '{fault}'");
        }
        for document in [json!({"schema": 1}), json!([]), Value::Null] {
            assert!(fault(&document).is_some(), "{document}");
        }
    }

    #[test]
    fn a_text_without_calls_or_with_losses_is_refused() {
        let samples = [
            ("calls", "losses    none\nMPI_Send\n"),
            ("losses", "losses    missing ranks 4-7\nMPI_Allreduce\n"),
        ];
        for (name, content) in samples {
            let sample = Sample::new(name).with("report.txt", content.as_bytes());
            assert!(text(&sample.0.join(FOLDER)).is_some(), "{content}");
        }
    }

    #[test]
    fn every_missing_file_is_named() {
        let findings = look(&Sample::new("empty").0).expect_err("nothing was written");
        assert_eq!(findings.len(), 3);
    }

    #[test]
    fn every_broken_file_is_named() {
        let sample = Sample::new("broken")
            .with("profile.json", b"{\"schema\": ")
            .with("ranks.parquet", b"PAR1...")
            .with("report.txt", b"nothing");
        assert_eq!(look(&sample.0).expect_err("all three are broken").len(), 3);
    }
}
