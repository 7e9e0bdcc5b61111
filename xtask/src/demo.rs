//! Looks at what a demo run left: the three files of a report, in their forms.
//!
//! The numbers in them are judged by tests of their own; this look only makes sure that
//! `make demo` ends with a report that a reader and a program can open.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::finding::Finding;
use crate::steps::Look;

/// Where `make demo` writes during `cargo xtask ci`.
pub const FOLDER: &str = "target/demo-short";
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
        Ok(Value::Object(members)) if !members.is_empty() => None,
        Ok(_) => finding(file, "is not an object with members"),
        Err(error) => finding(file, format!("is no JSON: {error}")),
    }
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
    if content.contains("MPI_") { None } else { finding(file, "names no MPI function") }
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

    #[test]
    fn a_full_report_passes() {
        let sample = Sample::new("full")
            .with("profile.json", b"{\"schema\": 1}")
            .with("ranks.parquet", b"PAR1...PAR1")
            .with("report.txt", b"MPI_Send 3");
        assert!(look(&sample.0).is_ok());
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
