//! The looks at the repository itself: each reads the files and gives a line or its findings.

use std::path::Path;
use std::process::Command;

use crate::finding::Finding;
use crate::steps::Look;
use crate::{files, io_line, layers, method_order, module_order, packet_path, tidy};

/// Which crate may use which, and what may touch the world.
pub fn layers(root: &Path) -> Look {
    let mut findings = layers::check(root);
    let table = layers::load(root).map_err(|finding| vec![finding])?;
    let files = read(root)?;
    findings.extend(io_line::check(&table, &files));
    findings.extend(module_order::check(&table, &files));
    findings.extend(method_order::check(&table, &files));
    let crates = table.crates.len();
    answer(findings, format!("{crates} crates use only what they may"))
}

/// The house style.
pub fn tidy(root: &Path) -> Look {
    let files = read(root)?;
    let report = tidy::check(&files);
    let line = format!(
        "{} files are tidy; {} source files are over 400 lines",
        files.len(),
        report.long_files
    );
    answer(report.findings, line)
}

/// The names in the page of a packet's path.
pub fn packet_path(root: &Path) -> Look {
    answer(packet_path::check(&read(root)?), format!("every name in {} exists", packet_path::PAGE))
}

/// Gigabytes (10^9 bytes) of `target/` after all steps in an empty one, without incremental files,
/// and some for the tests' own.
const TARGET_GB: f64 = 14.0;

/// Whether all steps find room: without it they fail one after another, each in its own way.
pub fn disk_space(root: &Path) -> Look {
    let free = kilobytes(root, &["df", "-Pk", "."], 3);
    let has_target = root.join("target").is_dir();
    let target = if has_target { kilobytes(root, &["du", "-sk", "target"], 0) } else { Ok(0.0) };
    let finding = |error: String| vec![Finding::new(root.display().to_string(), 0, error)];
    let (free, target) = (free.map_err(finding)?, target.map_err(finding)?);
    let gigabytes = |kilobytes: f64| kilobytes * 1024.0 / 1e9;
    let (free, target) = (gigabytes(free), gigabytes(target));
    if free + target < TARGET_GB {
        return Err(finding(format!(
            "{free:.1} GB are free and target/ has {target:.1} GB: all steps need {TARGET_GB} GB; \
             free some, or run single steps by 'cargo xtask repeat'"
        )));
    }
    Ok(format!("{free:.1} GB free, {target:.1} GB in target/; {TARGET_GB} GB needed"))
}

/// A column of the last line that a program prints, which has kilobytes.
fn kilobytes(root: &Path, words: &[&str], column: usize) -> Result<f64, String> {
    let [program, arguments @ ..] = words else { return Err("no program".to_owned()) };
    let done = Command::new(program).args(arguments).current_dir(root).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let number = text.lines().last().and_then(|line| line.split_whitespace().nth(column));
    let number = number.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("{} gave no kilobytes: {text:?}", words.join(" ")))
}

fn read(root: &Path) -> Result<Vec<files::File>, Vec<Finding>> {
    files::all(root)
        .map_err(|error| vec![Finding::new(root.display().to_string(), 0, error.to_string())])
}

fn answer(findings: Vec<Finding>, line: String) -> Look {
    if findings.is_empty() { Ok(line) } else { Err(findings) }
}
