//! Whether the programs of a release share one build of what is below them (docs/decisions/0021).
//!
//! Cargo builds a package anew for each set of its features that one command asks for. So no
//! package may have other features in one command of the release build than in another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::command::output_of;
use crate::finding::Finding;
use crate::steps::Look;

/// What each command of the release build makes, as in the Makefile, and the wheel.
const COMMANDS: [&[&str]; 5] = [
    &["sapwood-c", "sapwood-stacks", "sapwood-instructions"],
    &["sapwood-node-program"],
    &["sapwood-cli"],
    &["sapwood-bench"],
    &["sapwood-python"],
];

/// The crate whose features may differ: it has no code.
const ONE_BUILD: &str = "sapwood-one-build";

/// The sets of features with which one command builds a package: a second one for build scripts
/// and macros.
type FeatureSets = BTreeSet<String>;

/// Packages with their versions, and their features.
type Packages = BTreeMap<String, FeatureSets>;

/// Looks at the features that each command asks for.
pub fn look(root: &Path) -> Look {
    let mut commands = Vec::new();
    for packages in COMMANDS {
        let mut arguments = vec!["tree", "--locked", "--edges", "normal", "--prefix", "none"];
        arguments.extend(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}|{f}"]);
        arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
        let text = output_of(root, "cargo", &arguments)
            .map_err(|why| vec![Finding::new("Cargo.toml", 0, why)])?;
        commands.push(features(&text));
    }
    let findings = differences(&commands);
    if findings.is_empty() {
        let all: BTreeSet<&String> = commands.iter().flat_map(BTreeMap::keys).collect();
        return Ok(format!("{} packages are built once for all programs", all.len()));
    }
    Err(findings)
}

/// Reads lines of `NAME VERSION ...|FEATURES`; cargo marks what it has shown before.
fn features(tree: &str) -> Packages {
    let mut packages = Packages::new();
    for line in tree.lines() {
        let line = line.trim_end_matches(" (*)");
        let Some((package, features)) = line.split_once('|') else { continue };
        let name: Vec<&str> = package.split(' ').take(2).collect();
        packages.entry(name.join(" ")).or_default().insert(features.to_owned());
    }
    packages
}

/// The packages of which two commands have no set of features in common.
fn differences(commands: &[Packages]) -> Vec<Finding> {
    let mut first: BTreeMap<&String, (usize, &FeatureSets)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (number, packages) in commands.iter().enumerate() {
        for (package, here) in packages {
            let &mut (before, there) = first.entry(package).or_insert((number, here));
            if package.starts_with(ONE_BUILD) || !here.is_disjoint(there) {
                continue;
            }
            let shown = |sets: &FeatureSets| sets.iter().cloned().collect::<Vec<_>>().join(" or ");
            findings.push(Finding::new(
                package,
                0,
                format!(
                    "is built twice: {} has its features '{}', {} '{}'; name all of them in \
                     crates/one-build",
                    COMMANDS[before][0],
                    shown(there),
                    COMMANDS[number][0],
                    shown(here)
                ),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_with_other_features_in_another_command_is_found() {
        let one =
            features("sapwood v0.1.0 (/x)|\nserde v1.0.1|default,std\nserde v1.0.1|std (*)\n");
        let other = features("serde v1.0.1|std\nbytes v1.0.0|std\n");
        let third = features("bytes v1.0.0|\nserde v2.0.0|\nsapwood-one-build v0.1.0|tools\n");
        assert!(differences(&[one.clone(), other.clone()]).is_empty());
        let found = differences(&[one, other, third]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "bytes v1.0.0");
    }
}
