//! The looks at the repository itself: each reads the files and gives a line or its findings.

use std::path::Path;

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

fn read(root: &Path) -> Result<Vec<files::File>, Vec<Finding>> {
    files::all(root)
        .map_err(|error| vec![Finding::new(root.display().to_string(), 0, error.to_string())])
}

fn answer(findings: Vec<Finding>, line: String) -> Look {
    if findings.is_empty() { Ok(line) } else { Err(findings) }
}
