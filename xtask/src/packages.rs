//! The crates that are published, and the foreign packages that all of them are made of.
//!
//! A published crate is packed as `cargo publish` would pack it, uses no crate that is not
//! published, and says what it is. Foreign packages come from a registry, have licences that
//! `deny.toml` allows, and are built in one version each but for those that it names: the same
//! lists that `cargo deny` reads, which is a program of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::command::output_of;
use crate::duplicates::{self, Bans};
use crate::finding::Finding;
use crate::licence;
use crate::steps::Look;

/// Where the allowed licences and versions are.
const TERMS: &str = "deny.toml";
/// Other systems' packages are not fetched here, and are no part of what is given on.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    /// None for a package of this repository.
    source: Option<String>,
    /// The registries for which it is; none for all, an empty list for none.
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<String>,
    path: Option<String>,
}

impl Package {
    fn is_published(&self) -> bool {
        self.source.is_none() && self.publish.as_ref().is_none_or(|to| !to.is_empty())
    }
}

#[derive(Deserialize)]
struct Terms {
    licenses: Licences,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

/// Looks at the packages of the workspace and packs those that are published.
pub fn look(root: &Path) -> Look {
    let found = |place: &str, why: String| vec![Finding::new(place, 0, why)];
    let arguments =
        ["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM];
    let text = output_of(root, "cargo", &arguments).map_err(|why| found("Cargo.toml", why))?;
    let metadata: Metadata =
        serde_json::from_str(&text).map_err(|why| found("cargo metadata", why.to_string()))?;
    let terms =
        fs::read_to_string(root.join(TERMS)).map_err(|why| found(TERMS, why.to_string()))?;
    let terms: Terms = toml::from_str(&terms).map_err(|why| found(TERMS, why.to_string()))?;
    let mut findings = foreign(&metadata.packages, &terms.licenses);
    let others = metadata.packages.iter().filter(|one| one.source.is_some());
    let versions = others.map(|one| (one.name.as_str(), one.version.as_str()));
    findings.extend(duplicates::findings(versions, &terms.bans, TERMS));
    findings.extend(published(&metadata.packages));
    if !findings.is_empty() {
        return Err(findings);
    }
    let names: Vec<&str> =
        metadata.packages.iter().filter(|one| one.is_published()).map(|one| &*one.name).collect();
    pack(root, &names).map_err(|why| found("cargo package", why))?;
    let foreign = metadata.packages.iter().filter(|one| one.source.is_some()).count();
    Ok(format!("{} crates can be packed; {foreign} foreign packages are allowed", names.len()))
}

/// What is wrong with packages of others.
fn foreign(packages: &[Package], terms: &Licences) -> Vec<Finding> {
    let allowed: BTreeSet<String> = terms.allow.iter().cloned().collect();
    let exceptions: BTreeMap<&str, &Vec<String>> =
        terms.exceptions.iter().map(|one| (&*one.name, &one.allow)).collect();
    let mut findings = Vec::new();
    for package in packages.iter().filter(|one| one.source.is_some()) {
        let place = format!("{} {}", package.name, package.version);
        if !package.source.as_ref().is_some_and(|source| source.starts_with("registry+")) {
            findings.push(Finding::new(&place, 0, "comes from no registry"));
        }
        let mut here = allowed.clone();
        here.extend(
            exceptions.get(&*package.name).into_iter().flat_map(|list| list.iter().cloned()),
        );
        let expression = package.license.as_deref().unwrap_or("");
        match licence::is_allowed(expression, &here) {
            Ok(true) => {}
            Ok(false) => {
                let text = format!("has the licence '{expression}', which {TERMS} does not allow");
                findings.push(Finding::new(&place, 0, text));
            }
            Err(why) => findings.push(Finding::new(&place, 0, format!("licence: {why}"))),
        }
    }
    findings
}

/// What is wrong with the crates that are published.
fn published(packages: &[Package]) -> Vec<Finding> {
    let names: BTreeSet<&str> =
        packages.iter().filter(|one| one.is_published()).map(|one| &*one.name).collect();
    let mut findings = Vec::new();
    for package in packages.iter().filter(|one| one.is_published()) {
        if package.description.is_none() || package.license.is_none() {
            findings.push(Finding::new(&package.name, 0, "needs a description and a licence"));
        }
        for used in package.dependencies.iter().filter(|used| used.path.is_some()) {
            let is_published = names.contains(&*used.name);
            let has_version = used.req != "*";
            // Cargo leaves a development dependency without a version out of what it packs.
            let text = match (used.kind.as_deref(), is_published, has_version) {
                (Some("dev"), false, true) => "give no version with its path",
                (Some("dev"), ..) | (_, true, true) => continue,
                (_, true, false) => "give a version with its path",
                (_, false, _) => "publish it too",
            };
            let text = format!("uses {}: {text}", used.name);
            findings.push(Finding::new(&package.name, 0, text));
        }
    }
    findings
}

/// Packs crates together, as one that uses another can only be packed beside it.
fn pack(root: &Path, names: &[&str]) -> Result<(), String> {
    let mut arguments =
        vec!["package", "--quiet", "--offline", "--no-verify", "--allow-dirty", "--no-metadata"];
    arguments.extend(names.iter().flat_map(|name| ["--package", name]));
    output_of(root, "cargo", &arguments).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(json: &str) -> Package {
        serde_json::from_str(json).expect("a sample")
    }

    fn terms() -> Licences {
        toml::from_str("allow = [\"MIT\"]\nexceptions = [{ crate = \"odd\", allow = [\"ISC\"] }]")
            .expect("a sample")
    }

    #[test]
    fn licences_and_sources_that_are_not_allowed_are_found() {
        let sample = |name: &str, license: &str, source: &str| {
            package(&format!(
                r#"{{"name":"{name}","version":"1.0.0","license":"{license}","description":null,
                    "source":"{source}","publish":null,"dependencies":[]}}"#
            ))
        };
        let packages = [
            sample("fine", "MIT", "registry+index"),
            sample("odd", "ISC", "registry+index"),
            sample("other", "ISC", "registry+index"),
            sample("branch", "MIT", "git+place"),
        ];
        let places: Vec<String> =
            foreign(&packages, &terms()).into_iter().map(|finding| finding.place).collect();
        assert_eq!(places, ["other 1.0.0", "branch 1.0.0"]);
    }

    #[test]
    fn a_published_crate_uses_only_published_ones_with_their_versions() {
        let sample = |name: &str, publish: &str, used: &str| {
            package(&format!(
                r#"{{"name":"{name}","version":"1.0.0","license":"MIT","description":"x",
                    "source":null,"publish":{publish},"dependencies":[{used}]}}"#
            ))
        };
        let used = |name: &str, req: &str, kind: &str| {
            format!(r#"{{"name":"{name}","req":"{req}","kind":{kind},"path":"/x"}}"#)
        };
        let packages = [
            sample("below", "null", ""),
            sample("hidden", "[]", ""),
            sample("right", "null", &used("below", "^1.0.0", "null")),
            sample("tested", "null", &used("hidden", "*", "\"dev\"")),
            sample("bare", "null", &used("below", "*", "null")),
            sample("leaking", "null", &used("hidden", "^1.0.0", "null")),
            sample("versioned", "null", &used("hidden", "^1.0.0", "\"dev\"")),
        ];
        let places: Vec<String> =
            published(&packages).into_iter().map(|finding| finding.place).collect();
        assert_eq!(places, ["bare", "leaking", "versioned"]);
    }
}
